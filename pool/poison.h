/* pool/poison.h - make use of freed pool memory visible; nothing in release builds.
 *
 * Debug builds fill freed bytes with a pattern and check it when they are taken again. Under
 * AddressSanitizer the bytes are fenced off as well, so that the access itself is reported.
 */
#ifndef POOL_POISON_H
#define POOL_POISON_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISON_FENCE 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_FENCE 1
#endif
#endif

#ifdef POISON_FENCE
#include <sanitizer/asan_interface.h>
#endif

enum { POISON_BYTE = 0xdb };

/** Open fenced memory again without a check, before it goes back to the kernel. */
static inline void poison_lift(void *bytes, size_t len)
{
#ifdef POISON_FENCE
	ASAN_UNPOISON_MEMORY_REGION(bytes, len);
#else
	(void)bytes;
	(void)len;
#endif
}

/** These bytes are free from now on. */
static inline void poison_lay(void *bytes, size_t len)
{
#ifdef SLUICE_DEBUG
	memset(bytes, POISON_BYTE, len);
#endif
#ifdef POISON_FENCE
	ASAN_POISON_MEMORY_REGION(bytes, len);
#endif
	(void)bytes;
	(void)len;
}

/** Free bytes are taken into use: nobody may have written them since poison_lay(). */
static inline void poison_take(void *bytes, size_t len)
{
	poison_lift(bytes, len);
#ifdef SLUICE_DEBUG
	for (size_t i = 0; i < len; i++)
		assert(((const uint8_t *)bytes)[i] == POISON_BYTE);
#endif
}

#endif
