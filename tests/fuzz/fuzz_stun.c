/* STUN messages: parsing stays in bounds, and what was understood can be written and read again. */
#include <assert.h>
#include <stdlib.h>

#include "net/stun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char pwd[] = "password+of/22+charact";

static bool is_inside(const struct stun_message *m, const void *at, size_t n)
{
	const uint8_t *p = at;

	return p >= m->bytes && p + n <= m->bytes + m->len;
}

static size_t write_again(const struct stun_message *m, uint8_t *out, size_t cap)
{
	struct stun_writer w;

	stun_write_begin(&w, out, cap, m->class, m->transaction);
	if (m->username)
		stun_write(&w, STUN_USERNAME, m->username, m->username_bytes);
	if (m->has_mapped)
		stun_write_mapped(&w, &m->mapped);
	if (m->has_priority)
		stun_write_u32(&w, STUN_PRIORITY, m->priority);
	if (m->has_controlling || m->has_controlled)
		stun_write_u64(&w, m->has_controlling ? STUN_ICE_CONTROLLING : STUN_ICE_CONTROLLED,
			       m->tie_breaker);
	if (m->has_use_candidate)
		stun_write(&w, STUN_USE_CANDIDATE, NULL, 0);
	if (m->error_code)
		stun_write_error(&w, m->error_code);
	for (size_t i = 0; i < m->unknown_count; i++)
		stun_write(&w, m->unknown[i], NULL, 0);
	return stun_write_end(&w, m->integrity_offset ? pwd : NULL, m->has_fingerprint);
}

static void expect_same(const struct stun_message *a, const struct stun_message *b)
{
	assert(a->class == b->class && b->method == STUN_BINDING);
	assert(memcmp(a->transaction, b->transaction, STUN_TRANSACTION_BYTES) == 0);
	assert(!a->username == !b->username && a->username_bytes == b->username_bytes);
	assert(!a->username || memcmp(a->username, b->username, a->username_bytes) == 0);
	assert(a->has_mapped == b->has_mapped);
	assert(!a->has_mapped || net_addr_is_equal(&a->mapped, &b->mapped));
	assert(a->has_priority == b->has_priority && a->priority == b->priority);
	assert(a->has_controlling == b->has_controlling && a->has_controlled == b->has_controlled);
	assert(a->tie_breaker == b->tie_breaker && a->error_code == b->error_code);
	assert(a->has_use_candidate == b->has_use_candidate);
	assert(a->unknown_count == b->unknown_count);
	assert(memcmp(a->unknown, b->unknown, sizeof(a->unknown)) == 0);
	assert(a->has_fingerprint == b->has_fingerprint);
	assert(!a->integrity_offset == !b->integrity_offset);
}

static void check_helpers(const struct stun_message *m)
{
	const char *ours, *theirs, *peeked;
	size_t ours_bytes, theirs_bytes, n;
	bool is_split = stun_username_split(m, &ours, &ours_bytes, &theirs, &theirs_bytes);

	assert(!is_split || (ours_bytes > 0 && theirs_bytes > 0));
	assert(!is_split || (is_inside(m, ours, ours_bytes) && is_inside(m, theirs, theirs_bytes)));
	if (stun_peek_username(m->bytes, m->len, &peeked, &n))
		assert(is_split && peeked == ours && n == ours_bytes);
	assert(!stun_is_authentic(m, pwd)); /* nobody finds a hash by chance */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);
	uint8_t out[1024];
	struct stun_message m, again;

	assert(bytes);
	if (size)
		memcpy(bytes, data, size);
	if (stun_parse(&m, bytes, size) == STUN_OK) {
		assert(stun_is_message(bytes, size) && m.unknown_count <= STUN_MAX_UNKNOWN);
		assert(!m.username || is_inside(&m, m.username, m.username_bytes));
		check_helpers(&m);
		size_t len = write_again(&m, out, sizeof(out));
		assert(len > 0);
		assert(stun_parse(&again, out, len) == STUN_OK);
		expect_same(&m, &again);
		assert(!m.integrity_offset || stun_is_authentic(&again, pwd));
	}
	free(bytes);
	return 0;
}
