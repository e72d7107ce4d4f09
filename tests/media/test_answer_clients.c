/* The offer of every client that was captured (tests/fixtures/offers), answered as the relay answers it
 * and read line by line by a reader of its own (kit_answer.h). */
#include "media/answer.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"
#include "tests/media/kit_answer.h"

TestSuite(answer_clients, .timeout = 20);

static const char folder[] = "tests/fixtures/offers";

static const struct sdp_address candidates[] = {
	{ .family = 4, .ip = { 192, 0, 2, 1 }, .port = 8189 },
	{ .family = 6, .ip = { 0x20, 1, 0xd, 0xb8, [15] = 1 }, .port = 8189 },
	{ .family = 4, .transport = SDP_TCP, .ip = { 192, 0, 2, 1 }, .port = 8189 },
};

static const struct answer_local local = {
	.ufrag = "slce0123456789ab",
	.pwd = "abcdefghijklmnopqrstuvwxyz012345",
	.fingerprint = "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:"
		       "01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF",
	.session_id = 1,
	.cname = "relay",
	.msid = "stream",
	.candidates = candidates,
	.candidate_count = 3,
};

static struct answer_policy policy_of(enum answer_role role)
{
	struct answer_policy policy;

	answer_policy_init(&policy, role);
	policy.feedback |= SDP_FB_TRANSPORT_CC | SDP_FB_REMB;
	if (role == ANSWER_INGEST)
		answer_policy_layers(&policy);
	for (unsigned kind = 0; kind < NEGOTIATED_KINDS; kind++) {
		policy.extensions[kind] |= 1u << EXT_TRANSPORT_CC;
		policy.ssrc[kind] = 1000 + kind;
		policy.rtx_ssrc[kind] = 2000 + kind;
	}
	return policy;
}

/* The directions of all audio and video; a data channel, always last, has its own. */
static bool may(const char *text, const char *direction)
{
	const char *end = strstr(text, "\nm=application");
	const char *both = strstr(strstr(text, "\nm="), "\na=sendrecv");
	const char *one = strstr(strstr(text, "\nm="), direction);

	return (one && (!end || one < end)) || (both && (!end || both < end));
}

static void answer_as(const char *name, const char *text, enum answer_role role)
{
	struct answer_policy policy = policy_of(role);
	struct negotiated *n = malloc(sizeof(*n));
	struct sdp *offer = malloc(sizeof(*offer)), *again = malloc(sizeof(*again));
	char *out = malloc(ANSWER_MAX_BYTES);
	char reason[ANSWER_REASON_BYTES];
	struct sdp_error error;

	cr_assert(n && offer && again && out);
	cr_assert_eq(sdp_parse(offer, text, strlen(text), &error), SDP_OK, "%s: %s", name,
		     error.text);
	cr_assert_eq(answer_negotiate(offer, &policy, n, reason), ANSWER_OK, "%s: %s", name,
		     reason);
	cr_assert_gt(answer_write(offer, n, &local, out, ANSWER_MAX_BYTES), 0, "%s", name);
	kit_answer_check_whole(name, text, out, role == ANSWER_INGEST);
	cr_expect_eq(sdp_parse(again, out, strlen(out), &error), SDP_OK, "%s: %s", name,
		     error.text);
	free(n);
	free(offer);
	free(again);
	free(out);
}

static void answer_client(const char *name, const char *bytes, size_t len)
{
	char *text = calloc(1, len + 1);
	unsigned answered = 0;

	cr_assert(text);
	memcpy(text, bytes, len);
	if (may(text, "\na=sendonly")) {
		answer_as(name, text, ANSWER_INGEST);
		answered++;
	}
	if (may(text, "\na=recvonly")) {
		answer_as(name, text, ANSWER_EGRESS);
		answered++;
	}
	cr_expect_gt(answered, 0u, "%s", name);
	free(text);
}

/* Nothing in the folder is left out: offers here, the others in test_sdpfrag and test_transcripts. */
static size_t offers_there(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t n = 0;

	cr_assert_not_null(dir, "run from the top of the tree");
	while ((entry = readdir(dir)) != NULL) {
		const char *dot = strrchr(entry->d_name, '.');

		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "http") == 0 ||
		    strcmp(entry->d_name, "sdpfrag") == 0)
			continue;
		cr_expect(dot && strcmp(dot, ".sdp") == 0, "%s is no offer", entry->d_name);
		n++;
	}
	closedir(dir);
	return n;
}

Test(answer_clients, each_client_gets_an_answer_that_is_right_line_by_line)
{
	size_t there = offers_there();

	cr_assert_geq(there, 84u, "a captured offer is missing");
	cr_expect_eq(fixture_each("offers", ".sdp", answer_client), there);
}
