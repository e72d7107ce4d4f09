/* answer.c - print the answer the relay would give to an offer: answer ingest|egress <OFFER */
#include "media/answer.h"

enum { OFFER_CAP = SDP_MAX_BYTES + 1 };

static const struct sdp_address candidates[] = {
	{ .family = 6, .ip = { [15] = 1 }, .port = 8189 },
	{ .family = 4, .ip = { 127, 0, 0, 1 }, .port = 8189 },
};

static const struct answer_local local = {
	.ufrag = "slce0123456789ab",
	.pwd = "abcdefghijklmnopqrstuvwxyz012345",
	.fingerprint = "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"
		       "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF",
	.session_id = 4611686018427387905,
	.cname = "relay",
	.msid = "stream",
	.candidates = candidates,
	.candidate_count = sizeof(candidates) / sizeof(candidates[0]),
};

int main(int argc, char **argv)
{
	static char text[OFFER_CAP], out[ANSWER_MAX_BYTES];
	static struct sdp offer;
	static struct negotiated n;
	char reason[ANSWER_REASON_BYTES];
	struct answer_policy policy;
	struct sdp_error error;
	size_t len = fread(text, 1, sizeof(text), stdin);

	answer_policy_init(&policy, argc > 1 && strcmp(argv[1], "egress") == 0 ? ANSWER_EGRESS
									       : ANSWER_INGEST);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		policy.ssrc[kind] = 1000 + kind;
		policy.rtx_ssrc[kind] = 2000 + kind;
	}
	if (sdp_parse(&offer, text, len, &error) != SDP_OK) {
		fprintf(stderr, "%s\n", error.text);
		return 1;
	}
	if (answer_negotiate(&offer, &policy, &n, reason) != ANSWER_OK) {
		fprintf(stderr, "%s\n", reason);
		return 1;
	}
	if (answer_write(&offer, &n, &local, out, sizeof(out)) < 0)
		return 1;
	fputs(out, stdout);
	return 0;
}
