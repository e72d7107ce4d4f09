/* Any text as a PATCH body. What is kept of it can be written and read again. */
#include <assert.h>

#include "media/sdpfrag.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct sdpfrag *f)
{
	static char out[SDPFRAG_REPLY_BYTES];
	static struct sdpfrag again;
	struct sdpfrag_reply reply = {
		.ufrag = f->ufrag,
		.pwd = f->pwd,
		.mid = f->mid_count ? f->mids[0] : NULL,
		.media = "audio",
		.candidates = f->candidates,
		.candidate_count = f->candidate_count,
	};
	int len = sdpfrag_write_reply(&reply, out, sizeof(out));

	assert(len > 0);
	assert(sdpfrag_parse(&again, out, (size_t)len, NULL) == SDP_OK);
	assert(strcmp(again.ufrag, f->ufrag) == 0 && strcmp(again.pwd, f->pwd) == 0);
	assert(again.candidate_count == f->candidate_count && again.discarded == 0);
	assert(again.end_of_candidates);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size ? size : 1);
	static struct sdpfrag f;
	struct sdp_error error;

	assert(copy);
	memcpy(copy, data, size);
	if (sdpfrag_parse(&f, copy, size, &error) != SDP_OK) {
		assert(error.text[0]);
		free(copy);
		return 0;
	}
	assert(f.candidate_count + f.discarded <= SDPFRAG_MAX_CANDIDATES);
	assert(f.mid_count <= SDP_MAX_MEDIA && !f.ufrag[0] == !f.pwd[0]);
	for (unsigned i = 0; i < f.candidate_count; i++)
		assert(f.candidates[i].port &&
		       (f.candidates[i].family == 4 || f.candidates[i].family == 6));
	if (f.ufrag[0])
		check_again(&f);
	free(copy);
	return 0;
}
