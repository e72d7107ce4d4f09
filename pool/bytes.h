/* pool/bytes.h - big-endian fields of wire formats. The caller has checked the bounds. */
#ifndef POOL_BYTES_H
#define POOL_BYTES_H

#include <stdint.h>

static inline uint16_t be16_read(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t be24_read(const uint8_t *p)
{
	return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t be32_read(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | be24_read(p + 1);
}

static inline uint64_t be64_read(const uint8_t *p)
{
	return (uint64_t)be32_read(p) << 32 | be32_read(p + 4);
}

static inline void be16_write(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void be24_write(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 16);
	be16_write(p + 1, (uint16_t)v);
}

static inline void be32_write(uint8_t *p, uint32_t v)
{
	be16_write(p, (uint16_t)(v >> 16));
	be16_write(p + 2, (uint16_t)v);
}

static inline void be64_write(uint8_t *p, uint64_t v)
{
	be32_write(p, (uint32_t)(v >> 32));
	be32_write(p + 4, (uint32_t)v);
}

#endif
