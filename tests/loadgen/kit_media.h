/* tests/loadgen/kit_media.h - the other side of the codecs: what was encoded is decoded again. */
#ifndef TESTS_LOADGEN_KIT_MEDIA_H
#define TESTS_LOADGEN_KIT_MEDIA_H

#include <stddef.h>
#include <stdint.h>

#include "loadgen/picture.h"
#include "loadgen/source.h"

/** A loop that encodes in a moment: 192x108, 10 frames/s, 1 s. */
void kit_small_config(struct source_config *config);

/** A picture of the caller's with planes of exactly its size. Every failure fails the test. */
void kit_picture_init(struct picture *p, uint32_t width, uint32_t height);
void kit_picture_fini(struct picture *p);

/** Of the luma plane, in dB; the pictures are of one size. */
double kit_psnr_db(const struct picture *a, const struct picture *b);

struct kit_vp8;
struct kit_vp8 *kit_vp8_create(void);
void kit_vp8_destroy(struct kit_vp8 *d);
/** Decode one frame. @param out planes valid until the next call */
void kit_vp8_decode(struct kit_vp8 *d, const uint8_t *bytes, size_t len, struct picture *out);

struct kit_opus;
struct kit_opus *kit_opus_create(void);
void kit_opus_destroy(struct kit_opus *d);
enum { KIT_OPUS_SAMPLES = 960 };
/** Decode one packet of KIT_OPUS_SAMPLES stereo samples. */
void kit_opus_decode(struct kit_opus *d, const uint8_t *bytes, size_t len, int16_t *out);

#endif
