/* First STUN datagrams of real clients (tests/fixtures/packets), met by an agent that holds the
 * credentials of the answer each of them got. */
#include <criterion/criterion.h>
#include <dirent.h>

#include "tests/corpus.h"
#include "tests/net/ice_kit.h"

TestSuite(ice_packets, .timeout = 10);

enum { MAX_FILES = 64 };

static const char folder[] = "tests/fixtures/packets";

struct capture {
	char client[64];
	uint8_t bytes[1500];
	size_t len;
};

static size_t read_file(const char *name, uint8_t *bytes, size_t cap)
{
	char path[512];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "rb");
	cr_assert_not_null(f, "%s", path);
	n = fread(bytes, 1, cap, f);
	fclose(f);
	return n;
}

/* Every "<client>.stun-<type>.<n>.bin". */
static size_t load(struct capture captures[MAX_FILES])
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t n = 0;

	cr_assert_not_null(dir, "run from the top of the tree");
	while ((entry = readdir(dir)) != NULL) {
		const char *mark = strstr(entry->d_name, ".stun-");
		struct capture *c = &captures[n];

		if (!mark)
			continue;
		cr_assert_lt(n, MAX_FILES);
		n++;
		snprintf(c->client, sizeof(c->client), "%.*s", (int)(mark - entry->d_name),
			 entry->d_name);
		c->len = read_file(entry->d_name, c->bytes, sizeof(c->bytes));
	}
	closedir(dir);
	cr_assert_geq(n, 20, "captures of every client are there");
	return n;
}

static void take_attribute(const char *sdp, const char *name, char *out, size_t cap)
{
	const char *at = strstr(sdp, name);
	size_t n;

	cr_assert_not_null(at, "%s", name);
	at += strlen(name);
	n = strcspn(at, "\r\n");
	cr_assert_lt(n, cap);
	memcpy(out, at, n);
	out[n] = '\0';
}

/* Ours from the answer; the client's ufrag from its request, where it has one. */
static struct ice_config config_of(const struct capture *c)
{
	static uint8_t sdp[8192];
	struct ice_config config = { .role = ICE_LITE, .remote = kit_client };
	struct stun_message m;
	const char *ours, *theirs;
	size_t ours_bytes, theirs_bytes;
	char name[128];

	snprintf(name, sizeof(name), "%s.answer.sdp", c->client);
	sdp[read_file(name, sdp, sizeof(sdp) - 1)] = '\0';
	take_attribute((char *)sdp, "a=ice-ufrag:", config.local.ufrag, sizeof(config.local.ufrag));
	take_attribute((char *)sdp, "a=ice-pwd:", config.local.pwd, sizeof(config.local.pwd));
	cr_assert_eq(stun_parse(&m, c->bytes, c->len), STUN_OK, "%s", c->client);
	if (stun_username_split(&m, &ours, &ours_bytes, &theirs, &theirs_bytes)) {
		cr_assert_lt(theirs_bytes, sizeof(config.remote.ufrag));
		memcpy(config.remote.ufrag, theirs, theirs_bytes);
		config.remote.ufrag[theirs_bytes] = '\0';
	}
	return config;
}

static void expect_answer(const struct capture *c, const struct ice_config *config,
			  const struct kit_log *log)
{
	struct stun_message asked, m;

	cr_assert_eq(stun_parse(&asked, c->bytes, c->len), STUN_OK);
	cr_assert_geq(log->sent, 1, "%s", c->client);
	cr_assert_eq(stun_parse(&m, log->out[0].bytes, log->out[0].len), STUN_OK);
	cr_expect_eq(m.class, STUN_SUCCESS, "%s", c->client);
	cr_expect(stun_is_authentic(&m, config->local.pwd), "%s", c->client);
	cr_expect_leq(m.len, c->len, "%s: never more than was asked", c->client);
	cr_expect_eq(kit_count(log, ICE_EVENT_SELECTED), asked.has_use_candidate, "%s", c->client);
}

Test(ice_packets, every_clients_checks_are_answered_and_its_indications_accepted)
{
	static struct capture captures[MAX_FILES];
	static const char *const remotes[] = { "192.0.2.1:1", "[2001:db8::1]:1" };
	size_t n = load(captures), requests = 0, indications = 0;

	for (size_t i = 0; i < 2 * n; i++) {
		const struct capture *c = &captures[i / 2];
		struct ice_config config = config_of(c);
		struct net_path path = kit_path(remotes[i % 2]);
		enum ice_verdict verdict;
		struct ice_agent *a;
		struct kit_log log;

		cr_assert_eq(ice_agent_create(&a, 0, &config), 0);
		verdict = ice_agent_on_stun(a, 0, &path, c->bytes, c->len);
		log = kit_drain(a);
		if (c->bytes[1] == 0x11) {
			cr_expect_eq(verdict, ICE_INDICATION, "%s", c->client);
			cr_expect_eq(log.sent + log.events, 0, "%s", c->client);
			indications++;
		} else {
			cr_expect_eq(verdict, ICE_ACCEPTED, "%s", c->client);
			expect_answer(c, &config, &log);
			requests++;
		}
		ice_agent_destroy(a);
	}
	cr_expect_geq(requests, 2 * 18);
	cr_expect_geq(indications, 2 * 2);
}

Test(ice_packets, under_another_password_every_one_of_them_meets_silence)
{
	static struct capture captures[MAX_FILES];
	size_t n = load(captures);

	for (size_t i = 0; i < n; i++) {
		struct ice_config config = config_of(&captures[i]);
		struct net_path path = kit_path("192.0.2.1:1");
		struct ice_agent *a;
		struct kit_log log;

		config.local.pwd[0] ^= 1;
		cr_assert_eq(ice_agent_create(&a, 0, &config), 0);
		cr_expect_neq(ice_agent_on_stun(a, 0, &path, captures[i].bytes, captures[i].len),
			      ICE_ACCEPTED);
		log = kit_drain(a);
		cr_expect_eq(log.sent + log.events, 0, "%s", captures[i].client);
		ice_agent_destroy(a);
	}
}

Test(ice_packets, the_directory_finds_the_session_of_each)
{
	static struct capture captures[MAX_FILES];
	size_t n = load(captures);

	for (size_t i = 0; i < n; i++) {
		const struct capture *c = &captures[i];
		struct ice_config config = config_of(c);
		const char *ufrag;
		size_t bytes;

		if (c->bytes[1] == 0x11) {
			cr_expect_not(stun_peek_username(c->bytes, c->len, &ufrag, &bytes));
			continue;
		}
		cr_assert(stun_peek_username(c->bytes, c->len, &ufrag, &bytes), "%s", c->client);
		cr_expect(bytes == strlen(config.local.ufrag) &&
			  memcmp(ufrag, config.local.ufrag, bytes) == 0);
		cr_expect(stun_check_integrity(c->bytes, c->len, config.local.pwd));
		cr_expect_not(stun_check_integrity(c->bytes, c->len, kit_relay.pwd));
	}
}

static void meet_stranger(const char *name, const uint8_t *bytes, size_t len, void *agent)
{
	struct net_path path = kit_path("192.0.2.1:1");
	enum ice_verdict verdict = ice_agent_on_stun(agent, 0, &path, bytes, len);
	struct kit_log log = kit_drain(agent);

	cr_expect_neq(verdict, ICE_ACCEPTED, "%s", name);
	cr_expect_eq(log.sent + log.events, 0, "%s", name);
}

Test(ice_packets, public_samples_and_past_crashes_meet_silence)
{
	struct ice_config config = { .role = ICE_LITE, .local = kit_relay, .remote = kit_client };
	struct ice_agent *a;

	cr_assert_eq(ice_agent_create(&a, 0, &config), 0);
	corpus_each_file("stun", meet_stranger, a);
	ice_agent_destroy(a);
}
