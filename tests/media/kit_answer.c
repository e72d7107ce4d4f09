#include "tests/media/kit_answer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE = 512, MAX_TYPES = 64, MAX_LINES = 16 };

/* Of a description: the session's lines, or those of one m-line. */
struct section {
	const char *at, *end;
};

struct reading {
	const char *name;
	bool is_ingest;
	struct section offer, answer; /* the m-line that is looked at */
	struct section offer_session, answer_session;
};

static struct section section_of(const char *text, int index)
{
	const char *at = text;

	for (int i = 0; i <= index; i++) {
		at = strstr(i ? at + 1 : at, "\nm=");
		if (!at)
			return (struct section){ NULL, NULL };
	}
	if (index >= 0)
		at++;
	return (struct section){ at, strstr(at, "\nm=") ? strstr(at, "\nm=") + 1
							: text + strlen(text) };
}

/* The next line into `line`, without its end and without blanks before it. */
static bool next_line(struct section *s, char line[LINE])
{
	size_t n;

	if (!s->at || s->at >= s->end)
		return false;
	n = strcspn(s->at, "\r\n");
	cr_assert_lt(n, (size_t)LINE);
	memcpy(line, s->at, n);
	while (n && line[n - 1] == ' ')
		n--;
	line[n] = '\0';
	s->at += strcspn(s->at, "\n") + 1;
	return true;
}

/* What follows `prefix` in the first line that has it. */
static bool find(struct section s, const char *prefix, char value[LINE])
{
	char line[LINE];

	while (next_line(&s, line)) {
		if (strncmp(line, prefix, strlen(prefix)) != 0)
			continue;
		memmove(value, line + strlen(prefix), strlen(line + strlen(prefix)) + 1);
		return true;
	}
	value[0] = '\0';
	return false;
}

static bool has(struct section s, const char *whole)
{
	char line[LINE];

	while (next_line(&s, line))
		if (strcmp(line, whole) == 0)
			return true;
	return false;
}

static unsigned count(struct section s, const char *prefix)
{
	unsigned n = 0;
	char line[LINE];

	while (next_line(&s, line))
		n += strncmp(line, prefix, strlen(prefix)) == 0;
	return n;
}

static bool has_word(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = list; n && (at = strstr(at, word)) != NULL; at++)
		if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
			return true;
	return false;
}

/* The fields of an m-line: kind, port, protocol, formats. */
struct m_line {
	char kind[32], protocol[64], formats[LINE];
	int port;
};

static struct m_line m_line_of(struct section s)
{
	struct m_line m = { .port = -1 };
	char line[LINE];
	int at = 0;

	cr_assert(next_line(&s, line));
	sscanf(line, "m=%31s %d %63s %n", m.kind, &m.port, m.protocol, &at);
	cr_assert(at > 0, "%s", line);
	snprintf(m.formats, sizeof(m.formats), "%s", line + at);
	return m;
}

static bool is_media(const struct m_line *m)
{
	return strcmp(m->kind, "audio") == 0 || strcmp(m->kind, "video") == 0;
}

static const char *direction_of(struct section s)
{
	static const char *const all[] = { "a=sendonly", "a=recvonly", "a=inactive", "a=sendrecv" };

	for (unsigned i = 0; i < 4; i++)
		if (has(s, all[i]))
			return all[i] + 2;
	return "sendrecv";
}

/* --- formats ----------------------------------------------------------------------------- */

/* "opus/48000/2" of a payload type. */
static bool map_of(struct section s, int type, char map[LINE])
{
	static const struct {
		int type;
		const char *map;
	} fixed[] = { { 0, "PCMU/8000" }, { 8, "PCMA/8000" }, { 9, "G722/8000" } };
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "a=rtpmap:%d ", type);
	if (find(s, prefix, map))
		return true;
	for (unsigned i = 0; i < 3; i++)
		if (fixed[i].type == type)
			snprintf(map, LINE, "%s", fixed[i].map);
	return map[0] != '\0';
}

static void fmtp_of(struct section s, int type, char fmtp[LINE])
{
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "a=fmtp:%d ", type);
	find(s, prefix, fmtp);
}

static void parameter_of(struct section s, int type, const char *name, const char *missing,
			 char value[LINE])
{
	char fmtp[LINE];
	size_t n = strlen(name);

	fmtp_of(s, type, fmtp);
	for (char *rest = fmtp, *item; (item = strsep(&rest, ";")) != NULL;) {
		item += strspn(item, " ");
		if (strncasecmp(item, name, n) == 0 && item[n] == '=') {
			snprintf(value, LINE, "%s", item + n + 1);
			return;
		}
	}
	snprintf(value, LINE, "%s", missing);
}

static bool is_map(const char *map, const char *wanted)
{
	size_t n = strlen(wanted);

	/* One channel may be said or not: Firefox writes "G722/8000/1". */
	return strncasecmp(map, wanted, n) == 0 && (!map[n] || strcmp(map + n, "/1") == 0);
}

/* A codec that the relay carries, in a form that it carries. */
static bool is_carried(struct section s, int type)
{
	static const char *const maps[] = {
		"opus/48000/2", "PCMU/8000", "PCMA/8000",  "G722/8000",
		"VP8/90000",    "VP9/90000", "H265/90000", "AV1/90000"
	};
	char map[LINE], mode[LINE];

	if (!map_of(s, type, map))
		return false;
	if (is_map(map, "H264/90000")) {
		parameter_of(s, type, "packetization-mode", "0", mode);
		return mode[0] == '0' || mode[0] == '1';
	}
	for (unsigned i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
		if (is_map(map, maps[i]))
			return true;
	return false;
}

/* The type among `formats` that repeats `type`; -1: none. */
static int rtx_of(struct section s, const char *formats, int type)
{
	char map[LINE], apt[LINE];
	const char *at = formats;

	for (int other, n; sscanf(at, "%d%n", &other, &n) == 1; at += n) {
		parameter_of(s, other, "apt", "-1", apt);
		if (map_of(s, other, map) && strncasecmp(map, "rtx/", 4) == 0 &&
		    strtol(apt, NULL, 10) == type)
			return other;
	}
	return -1;
}

/* The RED type whose blocks are all `type`; -1: none. */
static int red_of(struct section s, const char *formats, int type)
{
	char map[LINE], fmtp[LINE];
	const char *at = formats;

	for (int other, n; sscanf(at, "%d%n", &other, &n) == 1; at += n) {
		bool is_all = true;

		if (!map_of(s, other, map) || !is_map(map, "red/48000/2"))
			continue;
		fmtp_of(s, other, fmtp);
		for (char *rest = fmtp, *block; (block = strsep(&rest, "/")) != NULL;)
			is_all &= strtol(block, NULL, 10) == type;
		if (is_all)
			return other;
	}
	return -1;
}

static bool has_feedback(struct section s, int type, const char *what)
{
	char line[LINE];

	snprintf(line, sizeof(line), "a=rtcp-fb:%d %s", type, what);
	if (has(s, line))
		return true;
	snprintf(line, sizeof(line), "a=rtcp-fb:* %s", what);
	return has(s, line);
}

/* What decides whether the other side can decode it says the same on both sides. */
static void check_variant(const struct reading *r, int type)
{
	static const struct {
		const char *map, *name, *missing;
	} rows[] = { { "H264", "profile-level-id", "42000a" },
		     { "H264", "packetization-mode", "0" },
		     { "VP9", "profile-id", "0" },
		     { "AV1", "profile", "0" },
		     { "H265", "profile-id", "1" } };
	char map[LINE], said[LINE], offered[LINE];

	cr_assert(map_of(r->offer, type, map), "%s: %d", r->name, type);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strncasecmp(map, rows[i].map, strlen(rows[i].map)) != 0)
			continue;
		parameter_of(r->answer, type, rows[i].name, rows[i].missing, said);
		parameter_of(r->offer, type, rows[i].name, rows[i].missing, offered);
		cr_expect(strcasecmp(said, offered) == 0, "%s: %s of %d is %s, offered %s", r->name,
			  rows[i].name, type, said, offered);
	}
}

/* Each payload type of the answer is one of the offer, with the same meaning. */
static void check_types(const struct reading *r)
{
	struct m_line answer = m_line_of(r->answer), offer = m_line_of(r->offer);
	const char *at = answer.formats;
	char have[LINE], want[LINE], text[16];

	for (int type, n; sscanf(at, "%d%n", &type, &n) == 1; at += n) {
		snprintf(text, sizeof(text), "%d", type);
		cr_assert(has_word(offer.formats, text), "%s: %d was not offered", r->name, type);
		snprintf(want, sizeof(want), "a=rtpmap:%d ", type);
		cr_expect_eq(count(r->answer, want), 1, "%s: %d without a=rtpmap", r->name, type);
		cr_assert(map_of(r->offer, type, want) && map_of(r->answer, type, have));
		cr_expect(is_map(want, have) || is_map(have, want), "%s: %d is %s, offered %s",
			  r->name, type, have, want);
		check_variant(r, type);
	}
}

static void check_feedback(const struct reading *r)
{
	struct section s = r->answer;
	char line[LINE], what[LINE];
	bool has_remb = false, has_twcc = false;

	while (next_line(&s, line)) {
		int type, at = 0;

		if (sscanf(line, "a=rtcp-fb:%d %n", &type, &at) != 1)
			continue;
		snprintf(what, sizeof(what), "%s", line + at);
		cr_expect(has_feedback(r->offer, type, what), "%s: %s was not offered", r->name,
			  line);
		has_remb |= strcmp(what, "goog-remb") == 0;
		has_twcc |= strcmp(what, "transport-cc") == 0;
	}
	cr_expect(!r->is_ingest || !has_remb || !has_twcc, "%s: one kind of feedback", r->name);
}

/* --- extensions -------------------------------------------------------------------------- */

/* "3", "/recvonly", "urn:..." of an a=extmap line. */
static bool read_extension(const char *line, int *id, char direction[16], char uri[LINE])
{
	char number[32];
	char *slash;

	if (sscanf(line, "a=extmap:%31s %511s", number, uri) != 2)
		return false;
	slash = strchr(number, '/');
	snprintf(direction, 16, "%s", slash ? slash : "");
	*id = (int)strtol(number, NULL, 10);
	return true;
}

/* The line that names the same extension, on the m-line or for all of them. */
static bool find_extension(struct section m, struct section session, const char *uri, int *id,
			   char direction[16])
{
	struct section all[] = { m, session };
	char line[LINE], other[LINE];

	for (unsigned i = 0; i < 2; i++)
		while (next_line(&all[i], line))
			if (read_extension(line, id, direction, other) && strcmp(uri, other) == 0)
				return true;
	return false;
}

/* RFC 8285 section 6: the same numbers, and directions from the other end. */
static void check_extensions(const struct reading *r)
{
	struct section s = r->answer;
	char line[LINE], uri[LINE], direction[16], offered[16];
	int id, offered_id;

	while (next_line(&s, line)) {
		if (!read_extension(line, &id, direction, uri))
			continue;
		cr_assert(find_extension(r->offer, r->offer_session, uri, &offered_id, offered),
			  "%s: %s was not offered", r->name, line);
		cr_expect_eq(id, offered_id, "%s: %s was offered as %d", r->name, line, offered_id);
		cr_expect_eq(id == 15, 0, "%s: 15 is reserved", r->name);
		if (strcmp(offered, "/sendonly") == 0)
			cr_expect_str_eq(direction, "/recvonly", "%s: %s", r->name, line);
		else if (strcmp(offered, "/recvonly") == 0)
			cr_expect_str_eq(direction, "/sendonly", "%s: %s", r->name, line);
		else
			cr_expect_str_eq(direction, offered, "%s: %s", r->name, line);
	}
}

/* --- any answer -------------------------------------------------------------------------- */

static void check_transport(const struct reading *r)
{
	char value[LINE], setup[LINE];

	cr_expect(has(r->answer, "a=rtcp-mux"), "%s", r->name);
	cr_expect_eq(count(r->answer, "a=ice-ufrag:"), 1, "%s", r->name);
	cr_expect_eq(count(r->answer, "a=ice-pwd:"), 1, "%s", r->name);
	find(r->answer, "a=ice-ufrag:", value);
	cr_expect(strlen(value) >= 4 &&
		      strspn(value, "0123456789abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(value),
		  "%s: GStreamer wants letters and digits", r->name);
	find(r->answer, "a=ice-pwd:", value);
	cr_expect_geq(strlen(value), (size_t)22, "%s", r->name);
	cr_expect(find(r->answer, "a=fingerprint:sha-256 ", value), "%s", r->name);
	cr_expect_eq(strspn(value, "0123456789ABCDEF:"), strlen(value),
		     "%s: Firefox wants capitals", r->name);
	if (!find(r->offer, "a=setup:", setup))
		find(r->offer_session, "a=setup:", setup);
	find(r->answer, "a=setup:", value);
	cr_expect_str_eq(value, strcmp(setup, "passive") == 0 ? "active" : "passive",
			 "%s: offered %s", r->name, setup);
}

static void check_sources(const struct reading *r)
{
	cr_expect_eq(count(r->answer, "a=ssrc:") > 0, !r->is_ingest, "%s", r->name);
	cr_expect_eq(count(r->answer, "a=msid:"), r->is_ingest ? 0 : 1, "%s", r->name);
}

static bool is_answered(const struct m_line *m, struct section s)
{
	return m->port != 0 && is_media(m) && strcmp(direction_of(s), "inactive") != 0;
}

static void check_line(const struct reading *r, bool is_first)
{
	struct m_line answer = m_line_of(r->answer), offer = m_line_of(r->offer);
	char have[LINE], want[LINE];

	cr_expect_str_eq(answer.kind, offer.kind, "%s", r->name);
	cr_expect_str_eq(answer.protocol, offer.protocol, "%s", r->name);
	cr_expect(answer.formats[0], "%s: Chromium wants a format on a refused m-line", r->name);
	cr_expect(answer.port == 9 || (answer.port == 0 && !is_first), "%s: port %d", r->name,
		  answer.port);
	cr_expect(find(r->answer, "c=IN IP4 ", have), "%s: Firefox wants c=", r->name);
	if (find(r->offer, "a=mid:", want)) {
		find(r->answer, "a=mid:", have);
		cr_expect_str_eq(have, want, "%s", r->name);
	}
	cr_expect_not(has(r->answer, "a=bundle-only"), "%s", r->name);
	if (!is_answered(&answer, r->answer))
		return;
	cr_expect_str_eq(direction_of(r->answer), r->is_ingest ? "recvonly" : "sendonly", "%s",
			 r->name);
	check_transport(r);
	check_sources(r);
	check_types(r);
	check_feedback(r);
	check_extensions(r);
}

/* RFC 9143 section 7.3: what is answered of what was offered, in that order; one group. */
static void check_bundle(const char *name, const char *offer, const char *answer)
{
	struct section theirs = section_of(offer, -1), ours = section_of(answer, -1);
	char offered[LINE], said[LINE], mid[LINE], want[LINE] = "";
	size_t len = 0;

	cr_expect_eq(count(ours, "a=group:"), count(theirs, "a=group:BUNDLE") > 0, "%s", name);
	if (!find(theirs, "a=group:BUNDLE ", offered))
		return;
	for (char *rest = offered, *word; (word = strsep(&rest, " ")) != NULL;)
		for (int i = 0; section_of(answer, i).at; i++) {
			struct m_line m = m_line_of(section_of(answer, i));

			if (m.port && find(section_of(answer, i), "a=mid:", mid) &&
			    strcmp(mid, word) == 0)
				len += (size_t)snprintf(want + len, sizeof(want) - len, "%s%s",
							len ? " " : "", word);
		}
	find(ours, "a=group:BUNDLE ", said);
	cr_expect_str_eq(said, want, "%s", name);
}

static void check_session(const char *name, const char *answer)
{
	struct section s = section_of(answer, -1);
	char line[LINE];

	s.end = strstr(answer, "\nm=") + 1;
	cr_expect(strncmp(answer, "v=0\r\no=- ", 9) == 0, "%s", name);
	cr_expect(has(s, "s=-") && has(s, "t=0 0"), "%s", name);
	cr_expect(has(s, "a=ice-lite"), "%s", name);
	for (s = (struct section){ answer, answer + strlen(answer) }; next_line(&s, line);) {
		cr_expect(line[0] && line[1] == '=', "%s: '%s'", name, line);
		cr_expect(s.at[-2] == '\r' && s.at[-1] == '\n', "%s: '%s'", name, line);
	}
}

static struct reading reading_of(const char *name, const char *offer, const char *answer,
				 bool is_ingest, int index)
{
	struct reading r = { .name = name,
			     .is_ingest = is_ingest,
			     .offer = section_of(offer, index),
			     .answer = section_of(answer, index),
			     .offer_session = section_of(offer, -1),
			     .answer_session = section_of(answer, -1) };

	return r;
}

void kit_answer_check(const char *name, const char *offer, const char *answer, bool is_ingest)
{
	unsigned with_candidates = 0;
	int lines = 0;

	check_session(name, answer);
	for (; section_of(answer, lines).at; lines++) {
		struct reading r = reading_of(name, offer, answer, is_ingest, lines);

		cr_assert(r.offer.at, "%s: more m-lines than offered", name);
		check_line(&r, lines == 0);
		with_candidates += count(r.answer, "a=candidate:") > 0;
		cr_expect_eq(count(r.answer, "a=candidate:") > 0,
			     has(r.answer, "a=end-of-candidates"), "%s", name);
	}
	cr_expect_not(section_of(offer, lines).at, "%s: fewer m-lines than offered", name);
	cr_expect_eq(with_candidates, 1, "%s: one transport", name);
	check_bundle(name, offer, answer);
}

/* --- an answer that takes all ------------------------------------------------------------ */

static int add_type(char out[LINE], int type)
{
	size_t len = strlen(out);

	return snprintf(out + len, LINE - len, "%s%d", len ? " " : "", type);
}

/* The m-line's formats as they have to be: each codec, with its RED and its RTX. */
static void expect_formats(const struct reading *r, char want[LINE])
{
	struct m_line offer = m_line_of(r->offer);
	bool is_video = strcmp(offer.kind, "video") == 0;
	const char *at = offer.formats;

	want[0] = '\0';
	for (int type, n; sscanf(at, "%d%n", &type, &n) == 1; at += n) {
		int red = is_video ? -1 : red_of(r->offer, offer.formats, type);
		int rtx = is_video && has_feedback(r->offer, type, "nack")
			      ? rtx_of(r->offer, offer.formats, type)
			      : -1;
		char red_text[16];

		if (!is_carried(r->offer, type))
			continue;
		snprintf(red_text, sizeof(red_text), "%d", red);
		if (red >= 0 && !has_word(at + n, red_text))
			add_type(want, red); /* preferred */
		add_type(want, type);
		if (red >= 0 && has_word(at + n, red_text))
			add_type(want, red);
		if (rtx >= 0)
			add_type(want, rtx);
	}
}

static void check_formats_whole(const struct reading *r)
{
	static const char *const feedback[] = { "nack", "nack pli", "ccm fir" };
	struct m_line answer = m_line_of(r->answer);
	const char *at = answer.formats;
	char want[LINE];

	expect_formats(r, want);
	cr_expect_str_eq(answer.formats, want, "%s: %s", r->name, answer.kind);
	for (int type, n; sscanf(at, "%d%n", &type, &n) == 1; at += n) {
		int rtx = rtx_of(r->answer, answer.formats, type);

		for (unsigned i = 0; i < 3 && is_carried(r->offer, type); i++)
			cr_expect_eq(has_feedback(r->answer, type, feedback[i]),
				     has_feedback(r->offer, type, feedback[i]), "%s: %s of %d",
				     r->name, feedback[i], type);
		cr_expect(rtx < 0 || rtx == rtx_of(r->offer, answer.formats, type), "%s: %d",
			  r->name, rtx);
	}
}

/* RFC 7587 section 7.1: stereo is asked of who offers it, in-band FEC of all. */
static void check_opus(const struct reading *r)
{
	struct m_line answer = m_line_of(r->answer);
	const char *at = answer.formats;
	char map[LINE], value[LINE], sprop[LINE];

	for (int type, n; sscanf(at, "%d%n", &type, &n) == 1; at += n) {
		if (!map_of(r->answer, type, map) || !is_map(map, "opus/48000/2"))
			continue;
		parameter_of(r->answer, type, "useinbandfec", "0", value);
		cr_expect_str_eq(value, "1", "%s", r->name);
		parameter_of(r->offer, type, "stereo", "0", value);
		parameter_of(r->offer, type, "sprop-stereo", value, sprop);
		parameter_of(r->answer, type, "stereo", "0", value);
		cr_expect_str_eq(value, sprop, "%s: stereo", r->name);
	}
}

static void check_extensions_whole(const struct reading *r)
{
	static const struct {
		const char *uri, *kind;
		bool ingest, egress, is_for_rids;
	} wanted[] = {
		{ "urn:ietf:params:rtp-hdrext:sdes:mid", "", true, true, false },
		{ "urn:ietf:params:rtp-hdrext:ssrc-audio-level", "audio", true, true, false },
		{ "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01", "",
		  true, false, false },
		{ "urn:3gpp:video-orientation", "video", true, true, false },
		{ "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay", "video", true, true,
		  false },
		{ "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id", "video", true, false, true },
		{ "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id", "video", true, false,
		  true },
	};
	struct m_line m = m_line_of(r->offer);
	char direction[16], simulcast[LINE];
	int id;

	for (unsigned i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		if (!(r->is_ingest ? wanted[i].ingest : wanted[i].egress) ||
		    (wanted[i].kind[0] && strcmp(wanted[i].kind, m.kind) != 0) ||
		    (wanted[i].is_for_rids && !find(r->offer, "a=simulcast:", simulcast)) ||
		    !find_extension(r->offer, r->offer_session, wanted[i].uri, &id, direction) ||
		    strcmp(direction, r->is_ingest ? "/recvonly" : "/sendonly") == 0)
			continue;
		cr_expect(
		    find_extension(r->answer, r->answer_session, wanted[i].uri, &id, direction),
		    "%s: %s on %s", r->name, wanted[i].uri, m.kind);
	}
}

/* RFC 8853 section 5.3.2; OBS counts the semicolons. */
static void check_simulcast(const struct reading *r)
{
	char offered[LINE], said[LINE], rid[LINE], line[LINE * 2];

	if (!r->is_ingest || !find(r->offer, "a=simulcast:send ", offered)) {
		cr_expect_eq(count(r->answer, "a=simulcast") + count(r->answer, "a=rid:"), 0, "%s",
			     r->name);
		return;
	}
	cr_expect(find(r->answer, "a=simulcast:recv ", said), "%s", r->name);
	cr_expect_str_eq(said, offered, "%s", r->name);
	for (char *rest = offered, *word; (word = strsep(&rest, ";")) != NULL;) {
		snprintf(rid, sizeof(rid), "%s", word + (*word == '~'));
		snprintf(line, sizeof(line), "a=rid:%s recv", rid);
		cr_expect_eq(count(r->answer, line), 1, "%s: %s", r->name, line);
	}
}

void kit_answer_check_whole(const char *name, const char *offer, const char *answer, bool is_ingest)
{
	unsigned taken = 0;

	kit_answer_check(name, offer, answer, is_ingest);
	for (int i = 0; section_of(offer, i).at; i++) {
		struct reading r = reading_of(name, offer, answer, is_ingest, i);
		struct m_line offered = m_line_of(r.offer), m = m_line_of(r.answer);
		bool is_live =
		    is_media(&offered) && (offered.port || has(r.offer, "a=bundle-only"));

		cr_expect_eq(is_answered(&m, r.answer), is_live, "%s: %s", name, offered.kind);
		if (!is_live)
			continue;
		taken++;
		check_formats_whole(&r);
		check_opus(&r);
		check_extensions_whole(&r);
		check_simulcast(&r);
	}
	cr_expect_gt(taken, 0u, "%s", name);
}
