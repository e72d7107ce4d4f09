/* tests/media/kit_answer.h - an answer read by eyes of its own: lines of text, no parser of ours.
 *
 * What is asked of an answer is written down from RFC 3264, 8829, 9143, 8853, 9725 and from what
 * clients were seen to refuse, not from what media/answer does.
 */
#ifndef TESTS_MEDIA_KIT_ANSWER_H
#define TESTS_MEDIA_KIT_ANSWER_H

#include <stdbool.h>

/** What holds for any answer to any offer: shape, order, mids, BUNDLE, transport, directions, payload
 *  types and extensions that were offered. `name` is for the messages. */
void kit_answer_check(const char *name, const char *offer, const char *answer, bool is_ingest);

/** And what holds where the relay takes all it can: each m-line of audio and video with each format it
 *  can carry, in the order of the offer, each with its parameters, RTX, RED, feedback; each extension;
 *  simulcast whole. */
void kit_answer_check_whole(const char *name, const char *offer, const char *answer,
			    bool is_ingest);

#endif
