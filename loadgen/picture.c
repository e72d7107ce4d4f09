#include "loadgen/picture.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "loadgen/font.h"

enum {
	TURN = 256, /* steps of a full wave */
	LUMA_BLACK = 16,
	LUMA_WHITE = 235,
	CHROMA_GREY = 128,
	GRAIN_MASK = 31, /* height of the grain, luma steps */
	CLOCK_LETTERS = 8,
	NUMBER_ROWS = 2, /* the bits and their opposites */
};

struct rect {
	uint32_t x, y, width, height;
};

static bool is_large_enough(const struct picture *p)
{
	return p->width >= PICTURE_MIN_WIDTH && p->height >= PICTURE_MIN_HEIGHT;
}

static void fill(const struct picture *p, struct rect r, uint8_t luma)
{
	for (uint32_t y = r.y; y < r.y + r.height && y < p->height; y++) {
		uint32_t end = r.x + r.width < p->width ? r.x + r.width : p->width;

		for (uint32_t x = r.x; x < end; x++) {
			p->plane[0][y * p->stride_bytes[0] + x] = luma;
			p->plane[1][y / 2 * p->stride_bytes[1] + x / 2] = CHROMA_GREY;
			p->plane[2][y / 2 * p->stride_bytes[2] + x / 2] = CHROMA_GREY;
		}
	}
}

/* ---- ground ---- */

static void make_wave(int16_t wave[TURN])
{
	for (int i = 0; i < TURN; i++)
		wave[i] = (int16_t)lrint(100 * sin(2 * M_PI * i / TURN));
}

/* A hash of a place: the same place has the same grain in every frame. */
static uint32_t grain(uint32_t x, uint32_t y)
{
	uint32_t h = x * UINT32_C(0x9e3779b1) ^ y * UINT32_C(0x85ebca77);

	h = (h ^ h >> 15) * UINT32_C(0x2c1b3c6d);
	return h >> 20 & GRAIN_MASK;
}

static void draw_ground(const struct picture *p, uint32_t turn)
{
	int16_t wave[TURN];
	uint32_t w = p->width, h = p->height;

	make_wave(wave);
	for (uint32_t y = 0; y < h; y++) {
		uint8_t *row = p->plane[0] + y * p->stride_bytes[0];
		int across = wave[(y * TURN / h + turn) % TURN];

		for (uint32_t x = 0; x < w; x++) {
			uint32_t slant = x * TURN / w + y * TURN / h;
			int sum = across + wave[(slant + 2 * turn) % TURN];

			/* Blocks of four by four pixels: grain that a video encoder keeps. */
			row[x] = (uint8_t)(96 + sum / 4 +
					   (int)grain((x + turn) / 4, (y + turn / 2) / 4));
		}
	}
	for (uint32_t y = 0; y < h / 2; y++) {
		for (uint32_t x = 0; x < w / 2; x++) {
			uint32_t u = 2 * x * TURN / w + turn, v = 2 * y * TURN / h + 2 * turn;

			p->plane[1][y * p->stride_bytes[1] + x] =
			    (uint8_t)(CHROMA_GREY + wave[u % TURN] / 3);
			p->plane[2][y * p->stride_bytes[2] + x] =
			    (uint8_t)(CHROMA_GREY + wave[v % TURN] / 3);
		}
	}
}

/* ---- text ---- */

static void draw_letter(const struct picture *p, char letter, struct rect at, uint32_t dot)
{
	const uint8_t *rows = font_rows(letter);

	for (uint32_t i = 0; i < FONT_ROWS * FONT_COLUMNS; i++) {
		uint32_t row = i / FONT_COLUMNS, column = i % FONT_COLUMNS;

		if (rows[row] >> (FONT_COLUMNS - 1 - column) & 1)
			fill(p, (struct rect){ at.x + column * dot, at.y + row * dot, dot, dot },
			     LUMA_WHITE);
	}
}

/** A line centred in the picture, on a dark field. @param dot pixels of one dot */
static void draw_line(const struct picture *p, const char *text, uint32_t y, uint32_t dot)
{
	size_t fitting = (p->width / dot - 2) / FONT_ADVANCE;
	uint32_t n = (uint32_t)strnlen(text, fitting);
	uint32_t width = (n * FONT_ADVANCE - 1) * dot;
	struct rect at = { (p->width - width) / 2, y, 0, 0 };

	if (n == 0)
		return;
	fill(p, (struct rect){ at.x - dot, y - dot, width + 2 * dot, (FONT_ROWS + 2) * dot },
	     LUMA_BLACK);
	for (uint32_t i = 0; i < n; i++, at.x += FONT_ADVANCE * dot)
		draw_letter(p, text[i], at, dot);
}

static void draw_clock(const struct picture *p, const struct picture_moment *m, uint32_t dot)
{
	uint32_t second = m->frame / m->fps, part = m->frame % m->fps;
	char text[CLOCK_LETTERS + 1];

	snprintf(text, sizeof(text), "%02u:%02u.%02u", second / 60 % 60, second % 60, part % 100);
	draw_line(p, text, p->height * 3 / 8 - FONT_ROWS * dot / 2, dot);
}

/* ---- number ---- */

static struct rect number_block(const struct picture *p, uint32_t bit, uint32_t row)
{
	uint32_t high = p->height / 16, wide = p->width / (PICTURE_NUMBER_BITS + 2);
	uint32_t side = high < wide ? high : wide;
	uint32_t left = (p->width - PICTURE_NUMBER_BITS * side) / 2;

	return (struct rect){ left + (PICTURE_NUMBER_BITS - 1 - bit) * side,
			      p->height - (NUMBER_ROWS + 1 - row) * side, side, side };
}

static void draw_number(const struct picture *p, uint32_t number)
{
	for (uint32_t bit = 0; bit < PICTURE_NUMBER_BITS; bit++) {
		bool is_set = number >> bit & 1;

		fill(p, number_block(p, bit, 0), is_set ? LUMA_WHITE : LUMA_BLACK);
		fill(p, number_block(p, bit, 1), is_set ? LUMA_BLACK : LUMA_WHITE);
	}
}

/* Mean luma of a block's inner half, away from the edges that an encoder blurs. */
static uint32_t block_luma(const struct picture *p, struct rect r)
{
	uint32_t sum = 0, n = 0;

	for (uint32_t y = r.y + r.height / 4; y < r.y + r.height * 3 / 4; y++) {
		for (uint32_t x = r.x + r.width / 4; x < r.x + r.width * 3 / 4; x++, n++)
			sum += p->plane[0][y * p->stride_bytes[0] + x];
	}
	assert(n > 0);
	return sum / n;
}

int picture_read_number(const struct picture *p)
{
	int number = 0;

	assert(is_large_enough(p));
	for (uint32_t bit = 0; bit < PICTURE_NUMBER_BITS; bit++) {
		int above = (int)block_luma(p, number_block(p, bit, 0));
		int below = (int)block_luma(p, number_block(p, bit, 1));

		if (above - below > -100 && above - below < 100)
			return -1;
		number |= (above > below) << bit;
	}
	return number;
}

void picture_draw(const struct picture *p, const struct picture_moment *m)
{
	uint32_t dot = p->width / (FONT_ADVANCE * (CLOCK_LETTERS + 2));
	uint32_t small;

	assert(is_large_enough(p) && dot > 0);
	assert(m->frame < m->frames && m->fps > 0);
	if (dot > p->height / 32) /* a wide and low picture */
		dot = p->height / 32;
	small = dot / 3 > 0 ? dot / 3 : 1;
	draw_ground(p, m->frame * TURN / m->frames);
	draw_clock(p, m, dot);
	draw_line(p, m->title, p->height * 5 / 8, small);
	draw_number(p, m->frame);
}
