#include <criterion/criterion.h>
#include <errno.h>

#include "loadgen/feedback.h"
#include "tests/fault.h"

TestSuite(feedback, .timeout = 10);

enum {
	BEGIN_US = 5000000,
	CAP_BYTES = 1000,
	SENDER = 0x11,
	MEDIA = 0x22,
};

static struct feedback *f;
static uint8_t bytes[CAP_BYTES];
static size_t len;

static void setup(void)
{
	cr_assert_eq(feedback_create(&f), 0);
}

static void teardown(void)
{
	feedback_destroy(f);
}

static int write_into(size_t cap, uint64_t now_us)
{
	struct rtcp_writer w;
	int told;

	rtcp_writer_init(&w, bytes, cap);
	told = feedback_write(f, &w, SENDER, MEDIA, now_us);
	len = w.len_bytes;
	return told;
}

/* The numbers from `first` on, of which all but the missing arrived. */
static void expect_told(uint16_t first, unsigned count, uint16_t missing)
{
	struct rtcp_cursor cursor;
	struct rtcp_member m;
	struct rtcp_feedback fb;
	struct rtcp_twcc_cursor at;
	struct rtcp_twcc_status status;
	unsigned seen = 0;

	rtcp_cursor_init(&cursor, bytes, len);
	cr_assert_eq(rtcp_cursor_next(&cursor, &m), RTCP_NEXT_MEMBER);
	cr_assert_eq(m.kind, RTCP_TRANSPORT_CC);
	cr_assert(rtcp_parse_feedback(&m, &fb));
	cr_expect_eq(fb.sender_ssrc, SENDER);
	cr_expect_eq(fb.media_ssrc, MEDIA);
	cr_assert(rtcp_twcc_init(&at, &fb));
	for (; rtcp_twcc_next(&at, &status); seen++) {
		cr_expect_eq(status.seq, (uint16_t)(first + seen));
		cr_expect_eq(status.is_received, status.seq != missing, "number %u", status.seq);
	}
	cr_expect_eq(seen, count);
}

/* One packet every 10 ms for so long, each told of at its beat. @return how many feedbacks */
static unsigned run(uint16_t *seq, uint32_t packet_bytes, uint64_t from_us, uint64_t to_us)
{
	unsigned told = 0;

	for (uint64_t now_us = from_us; now_us < to_us; now_us += 1000) {
		if ((now_us - from_us) % 10000 == 0)
			feedback_on_packet(f, (*seq)++, packet_bytes, now_us);
		while (feedback_due_us(f) <= now_us)
			told += write_into(CAP_BYTES, now_us) > 0;
	}
	return told;
}

Test(feedback, begins_with_the_first_packet, .init = setup, .fini = teardown)
{
	cr_expect_eq(feedback_due_us(f), UINT64_MAX);
	feedback_on_packet(f, 65534, 1000, BEGIN_US);
	feedback_on_packet(f, 65535, 1000, BEGIN_US + 1000);
	feedback_on_packet(f, 1, 1000, BEGIN_US + 2000);
	cr_assert_eq(feedback_due_us(f), BEGIN_US + FEEDBACK_FIRST_US);
	cr_expect_eq(write_into(CAP_BYTES, BEGIN_US + FEEDBACK_FIRST_US - 1), 0, "not yet");
	cr_expect_eq(len, 0);
	cr_assert_eq(write_into(CAP_BYTES, BEGIN_US + FEEDBACK_FIRST_US), 4);
	expect_told(65534, 4, 0);
	cr_expect_eq(feedback_due_us(f), BEGIN_US + 2 * FEEDBACK_FIRST_US);
}

Test(feedback, is_silent_while_nothing_comes, .init = setup, .fini = teardown)
{
	uint64_t now_us = BEGIN_US + FEEDBACK_FIRST_US;

	feedback_on_packet(f, 7, 1000, BEGIN_US);
	cr_assert_eq(write_into(CAP_BYTES, now_us), 1);
	now_us += 10 * FEEDBACK_FIRST_US;
	cr_expect_eq(write_into(CAP_BYTES, now_us), 0);
	cr_expect_eq(len, 0);
	cr_expect_gt(feedback_due_us(f), now_us, "the beats that were missed are over");
	feedback_on_packet(f, 8, 1000, now_us + 1);
	now_us = feedback_due_us(f);
	cr_expect_eq(write_into(CAP_BYTES, now_us), 1);
	expect_told(8, 1, 0);
}

Test(feedback, comes_as_often_as_its_share_of_the_rate_allows, .init = setup, .fini = teardown)
{
	static const struct {
		const char *name;
		uint32_t packet_bytes; /* 100 of them a second */
		unsigned least, most;  /* feedbacks a second */
	} rows[] = {
		{ "a large stream: twenty a second", 1200, 19, 21 },
		{ "a small one: 5 % of 136 kbit/s", 170, 12, 13 },
		{ "a trickle: four a second", 20, 4, 5 },
	};
	uint64_t now_us = BEGIN_US;
	uint16_t seq = 65000;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned told;

		run(&seq, rows[i].packet_bytes, now_us, now_us + 3000000);
		told = run(&seq, rows[i].packet_bytes, now_us + 3000000, now_us + 4000000);
		cr_expect(told >= rows[i].least && told <= rows[i].most, "%s: %u", rows[i].name,
			  told);
		now_us += 4000000;
	}
}

Test(feedback, that_does_not_fit_follows_at_once, .init = setup, .fini = teardown)
{
	enum { PACKETS = 100, SMALL_BYTES = 60 };
	uint64_t due_us = BEGIN_US + FEEDBACK_FIRST_US;
	int told = 0, parts = 0;

	for (unsigned i = 0; i < PACKETS; i++)
		feedback_on_packet(f, (uint16_t)i, 1000, BEGIN_US + i);
	while (feedback_due_us(f) <= due_us) {
		int part = write_into(SMALL_BYTES, due_us);

		cr_assert_gt(part, 0);
		expect_told((uint16_t)told, (unsigned)part, UINT16_MAX);
		told += part;
		parts++;
	}
	cr_expect_eq(told, PACKETS);
	cr_expect_gt(parts, 1);
}

Test(feedback, whichever_allocation_fails_nothing_is_left)
{
	for (int faults = 0; faults < 2; faults++) {
		fault_after(faults);
		cr_expect_eq(feedback_create(&f), -ENOMEM);
		fault_after(-1);
		cr_expect_null(f);
	}
	feedback_destroy(NULL);
}
