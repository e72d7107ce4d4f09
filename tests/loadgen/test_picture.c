#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

#include "loadgen/font.h"
#include "loadgen/picture.h"
#include "tests/loadgen/kit_media.h"

TestSuite(picture, .timeout = 10);

enum { WIDTH = 320, HEIGHT = 180, BLACK = 16, WHITE = 235 };

static void draw(struct picture *p, uint32_t frame, uint32_t frames, const char *title)
{
	struct picture_moment m = { frame, frames, 30, title };

	picture_draw(p, &m);
}

static uint8_t luma(const struct picture *p, uint32_t x, uint32_t y)
{
	return p->plane[0][y * p->stride_bytes[0] + x];
}

struct box {
	uint32_t left, top, right, bottom; /* right and bottom outside */
};

/* The dark field with text between two rows of the picture. */
static struct box find_field(const struct picture *p, uint32_t top, uint32_t bottom)
{
	struct box b = { p->width, p->height, 0, 0 };

	for (uint32_t y = top; y < bottom; y++) {
		for (uint32_t x = 0; x < p->width; x++) {
			if (luma(p, x, y) != BLACK)
				continue;
			b.left = x < b.left ? x : b.left;
			b.right = x + 1 > b.right ? x + 1 : b.right;
			b.top = y < b.top ? y : b.top;
			b.bottom = y + 1 > b.bottom ? y + 1 : b.bottom;
		}
	}
	return b;
}

static char read_letter(const struct picture *p, uint32_t left, uint32_t top, uint32_t dot)
{
	uint8_t rows[FONT_ROWS] = { 0 };

	for (uint32_t i = 0; i < FONT_ROWS * FONT_COLUMNS; i++) {
		uint32_t row = i / FONT_COLUMNS, column = i % FONT_COLUMNS;

		if (luma(p, left + column * dot + dot / 2, top + row * dot + dot / 2) == WHITE)
			rows[row] |= (uint8_t)(1 << (FONT_COLUMNS - 1 - column));
	}
	for (char c = ' '; c <= 'Z'; c++) {
		if (memcmp(rows, font_rows(c), FONT_ROWS) == 0)
			return c;
	}
	return '\0';
}

/* What a person reads there, dot by dot. */
static void read_text(const struct picture *p, uint32_t top, uint32_t bottom, char text[64])
{
	struct box b = find_field(p, top, bottom);
	uint32_t dot, n;

	cr_assert_lt(b.left, b.right);
	dot = (b.bottom - b.top) / (FONT_ROWS + 2);
	n = (b.right - b.left - dot) / (FONT_ADVANCE * dot);
	cr_assert(n > 0 && n < 64);
	for (uint32_t i = 0; i < n; i++)
		text[i] = read_letter(p, b.left + dot + i * FONT_ADVANCE * dot, b.top + dot, dot);
	text[n] = '\0';
}

Test(picture, every_letter_has_a_shape_of_its_own)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:.,-_/+=#()!? ";

	for (size_t i = 0; letters[i]; i++) {
		for (size_t k = 0; k < i; k++)
			cr_expect(memcmp(font_rows(letters[i]), font_rows(letters[k]), FONT_ROWS),
				  "%c and %c", letters[i], letters[k]);
	}
	cr_expect_eq(font_rows('a'), font_rows('A'));
	cr_expect_eq(font_rows('\x80'), font_rows('?'));
	cr_expect_eq(font_rows('~'), font_rows('?'));
}

Test(picture, the_clock_tells_the_time_in_the_loop)
{
	static const struct {
		uint32_t frame;
		const char *text;
	} rows[] = {
		{ 0, "00:00.00" },           { 29, "00:00.29" },       { 30, "00:01.00" },
		{ 30 * 59 + 7, "00:59.07" }, { 30 * 754, "12:34.00" },
	};
	struct picture p;
	char text[64];

	kit_picture_init(&p, WIDTH, HEIGHT);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		draw(&p, rows[i].frame, 30 * 3600, "TITLE");
		read_text(&p, 0, HEIGHT / 2, text);
		cr_expect_str_eq(text, rows[i].text);
	}
	kit_picture_fini(&p);
}

Test(picture, the_title_is_drawn_and_cut_where_it_does_not_fit)
{
	struct picture p;
	char text[64];

	kit_picture_init(&p, WIDTH, HEIGHT);
	draw(&p, 0, 30, "Stream-7");
	read_text(&p, HEIGHT * 11 / 20, HEIGHT * 3 / 4, text);
	cr_expect_str_eq(text, "STREAM-7");
	draw(&p, 0, 30, "A123456789B123456789C123456789D123456789E123456789");
	read_text(&p, HEIGHT * 11 / 20, HEIGHT * 3 / 4, text);
	cr_expect_eq(strncmp(text, "A123456789B123456789", 20), 0, "%s", text);
	draw(&p, 0, 30, "");
	cr_expect_eq(find_field(&p, HEIGHT * 11 / 20, HEIGHT * 3 / 4).right, 0,
		     "no title, no field");
	kit_picture_fini(&p);
}

Test(picture, the_number_reads_as_drawn_in_every_size)
{
	static const uint32_t sizes[][2] = { { 128, 96 },  { 320, 180 },  { 640, 360 },
					     { 1920, 96 }, { 128, 1080 }, { 1280, 720 } };
	static const uint32_t numbers[] = { 0, 1, 119, 2730, 1365, 4095 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct picture p;

		kit_picture_init(&p, sizes[i][0], sizes[i][1]);
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++) {
			draw(&p, numbers[k], 4096, "X");
			cr_expect_eq(picture_read_number(&p), (int)numbers[k], "%u in %ux%u",
				     numbers[k], p.width, p.height);
		}
		kit_picture_fini(&p);
	}
}

Test(picture, a_damaged_number_is_noticed)
{
	struct picture p;

	kit_picture_init(&p, WIDTH, HEIGHT);
	draw(&p, 77, 100, "X");
	memset(p.plane[0] + p.stride_bytes[0] * HEIGHT * 3 / 4, 128,
	       p.stride_bytes[0] * HEIGHT / 4);
	cr_expect_eq(picture_read_number(&p), -1);
	kit_picture_fini(&p);
}

Test(picture, the_ground_moves_with_every_frame)
{
	struct picture a, b;

	kit_picture_init(&a, WIDTH, HEIGHT);
	kit_picture_init(&b, WIDTH, HEIGHT);
	for (uint32_t frame = 0; frame + 1 < 120; frame++) {
		draw(&a, frame, 120, "X");
		draw(&b, frame + 1, 120, "X");
		/* Above the clock is nothing but ground. */
		cr_expect(memcmp(a.plane[0], b.plane[0], a.stride_bytes[0] * HEIGHT / 8),
			  "frame %u", frame);
	}
	kit_picture_fini(&a);
	kit_picture_fini(&b);
}

Test(picture, drawing_stays_within_the_width_where_lines_are_longer)
{
	enum { SLACK = 16, STRIDE = WIDTH + SLACK };
	static uint8_t planes[PICTURE_PLANES][STRIDE * HEIGHT];
	struct picture p = {
		WIDTH, HEIGHT, { planes[0], planes[1], planes[2] }, { STRIDE, STRIDE, STRIDE }
	};

	memset(planes, 7, sizeof(planes));
	draw(&p, 5, 10,
	     "A TITLE THAT IS LONGER THAN THE PICTURE IS WIDE, AND THEN SOME MORE OF IT");
	for (size_t plane = 0; plane < PICTURE_PLANES; plane++) {
		uint32_t half = plane == 0 ? 1 : 2;

		for (uint32_t y = 0; y < HEIGHT / half; y++) {
			for (uint32_t x = WIDTH / half; x < STRIDE; x++)
				cr_assert_eq(planes[plane][y * STRIDE + x], 7, "plane %zu", plane);
		}
	}
}
