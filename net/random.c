#include "net/random.h"

#include <assert.h>
#include <limits.h>
#include <openssl/rand.h>
#include <stdlib.h>

void random_bytes(void *out, size_t n)
{
	assert(n <= INT_MAX);
	/* Below one every result is a failure: 0, or -1 where the method is not supported. */
	if (RAND_bytes(out, (int)n) != 1)
		abort();
}

uint64_t random_u64(void)
{
	uint64_t v;

	random_bytes(&v, sizeof(v));
	return v;
}
