/* media/rtcp_twcc.c - transport-wide congestion control feedback; see rtcp.h for the contract.
 *
 * Building: arrival times become one symbol and one delta a packet, symbols are packed into
 * chunks at their final place until the space ends, and the deltas of what was packed follow.
 * A symbol's value is also how many bytes its delta takes.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "media/rtcp.h"
#include "media/rtcp_wire.h"
#include "pool/bytes.h"

static bool is_vector(uint16_t chunk)
{
	return chunk & 0x8000;
}

static bool is_two_bit(uint16_t chunk)
{
	return chunk & 0x4000;
}

static uint16_t chunk_length(uint16_t chunk)
{
	if (!is_vector(chunk))
		return chunk & 0x1fff;
	return is_two_bit(chunk) ? TWCC_TWO_BIT_SYMBOLS : TWCC_ONE_BIT_SYMBOLS;
}

bool rtcp_twcc_init(struct rtcp_twcc_cursor *c, const struct rtcp_feedback *fb)
{
	const uint8_t *at = fb->fci + TWCC_FIXED_BYTES;
	size_t covered = 0;

	if (fb->fci_bytes < TWCC_FIXED_BYTES)
		return false;
	memset(c, 0, sizeof(*c));
	c->base_seq = be16_read(fb->fci);
	c->statuses = be16_read(fb->fci + 2);
	c->reference_64ms = signed24(be24_read(fb->fci + 4));
	c->feedback_count = fb->fci[7];
	c->chunk = at;
	c->end = fb->fci + fb->fci_bytes;
	c->arrival_us = (int64_t)c->reference_64ms * TWCC_REFERENCE_US;
	while (covered < c->statuses) {
		if (c->end - at < TWCC_CHUNK_BYTES)
			return false;
		covered += chunk_length(be16_read(at));
		at += TWCC_CHUNK_BYTES;
	}
	c->delta = at;
	return c->statuses > 0;
}

/* rtcp_twcc_init() saw enough chunks for every status. */
static unsigned next_symbol(struct rtcp_twcc_cursor *c)
{
	while (c->run_left == 0) {
		c->symbols = be16_read(c->chunk);
		c->run_left = chunk_length(c->symbols);
		c->chunk += TWCC_CHUNK_BYTES;
	}
	c->run_left--;
	if (!is_vector(c->symbols))
		return c->symbols >> 13 & 3;
	if (is_two_bit(c->symbols))
		return c->symbols >> (2 * c->run_left) & 3;
	return c->symbols >> c->run_left & 1;
}

bool rtcp_twcc_next(struct rtcp_twcc_cursor *c, struct rtcp_twcc_status *out)
{
	unsigned symbol;
	int32_t delta;

	if (c->is_cut || c->given == c->statuses)
		return false;
	symbol = next_symbol(c);
	memset(out, 0, sizeof(*out));
	out->seq = (uint16_t)(c->base_seq + c->given++);
	if (symbol == TWCC_NOT_RECEIVED || symbol == TWCC_RESERVED)
		return true;
	if (c->end - c->delta < (ptrdiff_t)symbol) {
		c->is_cut = true;
		return false;
	}
	delta = symbol == TWCC_SMALL_DELTA ? c->delta[0] : (int16_t)be16_read(c->delta);
	c->delta += symbol;
	c->arrival_us += (int64_t)delta * TWCC_DELTA_US;
	out->is_received = true;
	out->arrival_us = c->arrival_us;
	return true;
}

/* ---- Building ---- */

struct encoding {
	size_t n; /* statuses described */
	int32_t reference_64ms;
	uint8_t symbol[RTCP_TWCC_MAX_STATUSES];
	int16_t delta[RTCP_TWCC_MAX_STATUSES];
};

/* Fills e up to the first delta that 16 bits cannot hold. @return a packet was received */
static bool classify(struct encoding *e, const struct rtcp_twcc_report *r)
{
	int64_t last_ticks = -1;

	for (e->n = 0; e->n < r->n && e->n < RTCP_TWCC_MAX_STATUSES; e->n++) {
		int64_t arrival_us = r->arrival_us[e->n];
		int64_t ticks = arrival_us / TWCC_DELTA_US;
		int64_t delta;

		e->symbol[e->n] = TWCC_NOT_RECEIVED;
		if (arrival_us == RTCP_TWCC_MISSING)
			continue;
		assert(arrival_us >= 0);
		if (last_ticks < 0) {
			e->reference_64ms = (int32_t)(arrival_us / TWCC_REFERENCE_US & 0xffffff);
			last_ticks =
			    arrival_us / TWCC_REFERENCE_US * (TWCC_REFERENCE_US / TWCC_DELTA_US);
		}
		delta = ticks - last_ticks;
		if (delta < INT16_MIN || delta > INT16_MAX)
			break;
		last_ticks = ticks;
		e->delta[e->n] = (int16_t)delta;
		e->symbol[e->n] =
		    delta >= 0 && delta <= UINT8_MAX ? TWCC_SMALL_DELTA : TWCC_LARGE_DELTA;
	}
	return last_ticks >= 0;
}

_Static_assert((int)RTCP_TWCC_MAX_STATUSES <= (int)TWCC_RUN_MAX, "one chunk holds any run");

static size_t run_of(const uint8_t *symbols, size_t n)
{
	size_t run = 1;

	while (run < n && symbols[run] == symbols[0])
		run++;
	return run;
}

/* The chunk that says most about what comes next. @return how many symbols it takes */
static size_t choose_chunk(const uint8_t *symbols, size_t n, uint16_t *form)
{
	size_t run = run_of(symbols, n);
	size_t one_bit = n < TWCC_ONE_BIT_SYMBOLS ? n : TWCC_ONE_BIT_SYMBOLS;
	size_t two_bit = n < TWCC_TWO_BIT_SYMBOLS ? n : TWCC_TWO_BIT_SYMBOLS;
	size_t small = 0;

	while (small < one_bit && symbols[small] != TWCC_LARGE_DELTA)
		small++;
	if (run >= one_bit || (run >= two_bit && small < one_bit)) {
		*form = 0;
		return run;
	}
	*form = small == one_bit ? 0x8000 : 0xc000;
	return small == one_bit ? one_bit : two_bit;
}

static uint16_t pack_chunk(uint16_t form, const uint8_t *symbols, size_t n)
{
	unsigned chunk = form;

	if (!is_vector(form))
		return (uint16_t)((unsigned)symbols[0] << 13 | n);
	for (size_t i = 0; i < n; i++)
		chunk |= is_two_bit(form) ? (unsigned)symbols[i] << (12 - 2 * i)
					  : (unsigned)symbols[i] << (13 - i);
	return (uint16_t)chunk;
}

struct layout {
	size_t covered; /* statuses */
	size_t chunk_bytes;
	size_t delta_bytes;
	bool has_received;
};

static size_t member_bytes(const struct layout *l)
{
	size_t bytes =
	    RTCP_HEADER_BYTES + FEEDBACK_BYTES + TWCC_FIXED_BYTES + l->chunk_bytes + l->delta_bytes;

	return (bytes + 3) / 4 * 4;
}

/* Adds `take` symbols as one chunk, or as many of them as `room` allows. @return how many */
static size_t extend(struct layout *l, const uint8_t *symbols, size_t take, size_t room)
{
	struct layout grown = *l;
	size_t fits = 0;

	grown.chunk_bytes += TWCC_CHUNK_BYTES;
	for (; fits < take; fits++) {
		grown.delta_bytes += symbols[fits];
		if (member_bytes(&grown) > room)
			break;
		grown.has_received |= symbols[fits] != TWCC_NOT_RECEIVED;
		l->delta_bytes = grown.delta_bytes;
	}
	if (fits == 0)
		return 0;
	l->chunk_bytes = grown.chunk_bytes;
	l->has_received = grown.has_received;
	l->covered += fits;
	return fits;
}

static void write_chunks(struct layout *l, const struct encoding *e, uint8_t *out, size_t room)
{
	size_t take = 0;
	size_t fits = 0;

	while (l->covered < e->n && fits == take) {
		const uint8_t *symbols = e->symbol + l->covered;
		uint16_t form;

		take = choose_chunk(symbols, e->n - l->covered, &form);
		fits = extend(l, symbols, take, room);
		if (fits > 0)
			be16_write(out + l->chunk_bytes - TWCC_CHUNK_BYTES,
				   pack_chunk(form, symbols, fits));
	}
}

static void write_deltas(const struct layout *l, const struct encoding *e, uint8_t *out)
{
	for (size_t i = 0; i < l->covered; i++) {
		if (e->symbol[i] == TWCC_SMALL_DELTA)
			out[0] = (uint8_t)e->delta[i];
		else if (e->symbol[i] == TWCC_LARGE_DELTA)
			be16_write(out, (uint16_t)e->delta[i]);
		out += e->symbol[i];
	}
}

int rtcp_write_twcc(struct rtcp_writer *w, const struct rtcp_twcc_report *report)
{
	uint8_t *p = w->out + w->len_bytes;
	uint8_t *chunks = p + RTCP_HEADER_BYTES + FEEDBACK_BYTES + TWCC_FIXED_BYTES;
	struct layout l = { 0 };
	struct encoding e;
	size_t total;

	assert(report->n > 0 && report->n <= UINT16_MAX);
	if (!classify(&e, report))
		return -ENODATA;
	write_chunks(&l, &e, chunks, w->cap_bytes - w->len_bytes);
	if (!l.has_received)
		return -ENOSPC;
	write_deltas(&l, &e, chunks + l.chunk_bytes);
	total = member_bytes(&l);
	memset(chunks + l.chunk_bytes + l.delta_bytes, 0,
	       (size_t)(p + total - (chunks + l.chunk_bytes + l.delta_bytes)));
	p[0] = RTCP_VERSION << 6 | FMT_TRANSPORT_CC;
	p[1] = PT_RTPFB;
	be16_write(p + 2, (uint16_t)(total / 4 - 1));
	be32_write(p + 4, report->sender_ssrc);
	be32_write(p + 8, report->media_ssrc);
	be16_write(p + 12, report->base_seq);
	be16_write(p + 14, (uint16_t)l.covered);
	be24_write(p + 16, (uint32_t)e.reference_64ms);
	p[19] = report->feedback_count;
	w->len_bytes += total;
	return (int)l.covered;
}
