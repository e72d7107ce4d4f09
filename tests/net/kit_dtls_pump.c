#include "tests/net/kit_dtls_pump.h"

#include <criterion/criterion.h>

enum { RECORD_BYTES = 2048 };

void dtls_pump_step(uint64_t now_us, struct dtls *d)
{
	while (dtls_wants_step(d, now_us))
		dtls_step(d, now_us);
}

int dtls_pump_move(uint64_t now_us, struct dtls *from, struct dtls *to)
{
	const uint8_t *bytes;
	size_t len;
	int n = 0;

	dtls_pump_step(now_us, from);
	for (; (bytes = dtls_next_datagram(from, &len)) != NULL; n++) {
		cr_expect_leq(len, DTLS_MTU_BYTES);
		dtls_on_datagram(to, bytes, len);
	}
	return n;
}

void dtls_pump(uint64_t now_us, struct dtls *a, struct dtls *b)
{
	while (dtls_pump_move(now_us, a, b) + dtls_pump_move(now_us, b, a) > 0)
		;
}

static int to_plain(uint64_t now_us, struct dtls *d, struct plain_dtls *p)
{
	const uint8_t *bytes;
	size_t len;
	int n = 0;

	dtls_pump_step(now_us, d);
	for (; (bytes = dtls_next_datagram(d, &len)) != NULL; n++) {
		cr_expect_leq(len, DTLS_MTU_BYTES);
		plain_dtls_input(p, bytes, len);
	}
	return n;
}

static int from_plain(uint64_t now_us, struct plain_dtls *p, struct dtls *d)
{
	uint8_t record[RECORD_BYTES];
	size_t len;
	int n = 0;

	for (; (len = plain_dtls_output(p, record, sizeof(record))) > 0; n++) {
		dtls_on_datagram(d, record, len);
		dtls_pump_step(now_us, d);
	}
	return n;
}

void dtls_pump_plain(uint64_t now_us, struct dtls *d, struct plain_dtls *p)
{
	int moved;

	plain_dtls_input(p, NULL, 0);
	do {
		moved = to_plain(now_us, d, p);
		moved += from_plain(now_us, p, d);
	} while (moved > 0);
}

void dtls_pump_lose(struct dtls *d)
{
	size_t len;

	while (dtls_next_datagram(d, &len))
		;
}
