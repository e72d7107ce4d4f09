/* tests/sim/kit_judge.c - what a run of kit_path.h came to: figures and a picture. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/sim/kit_path.h"

static bool is_within(const struct sim_sample *s, uint64_t from_us, uint64_t to_us)
{
	return s->at_us >= from_us && s->at_us < to_us;
}

double sim_path_use(const struct sim_path_result *r, uint64_t from_us, uint64_t to_us)
{
	double media = 0, capacity = 0;

	for (size_t i = 0; i < r->count; i++) {
		if (!is_within(&r->samples[i], from_us, to_us))
			continue;
		media += (double)r->samples[i].media_bps;
		capacity += (double)r->samples[i].capacity_bps;
	}
	cr_assert_gt(capacity, 0);
	return 100 * media / capacity;
}

static int by_size(const void *a, const void *b)
{
	uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

uint32_t sim_path_delay_us(const struct sim_path_result *r, uint64_t from_us, uint64_t to_us,
			   unsigned percent)
{
	static uint32_t delays[SIM_MAX_SAMPLES];
	size_t n = 0;

	for (size_t i = 0; i < r->count; i++)
		if (is_within(&r->samples[i], from_us, to_us))
			delays[n++] = r->samples[i].delay_us;
	cr_assert_gt(n, 0);
	qsort(delays, n, sizeof(delays[0]), by_size);
	return delays[(n - 1) * percent / 100];
}

double sim_path_loss(const struct sim_path_result *r)
{
	return 100.0 * (double)(r->lost + r->overflowed) / (double)r->sent;
}

uint64_t sim_path_settled_us(const struct sim_path_result *r, uint32_t layer, uint64_t from_us,
			     uint64_t to_us)
{
	uint64_t since_us = to_us;

	for (size_t i = r->count; i-- > 0;) {
		if (!is_within(&r->samples[i], from_us, to_us))
			continue;
		if (r->samples[i].layer != layer)
			break;
		since_us = r->samples[i].at_us;
	}
	return since_us;
}

/* --- the picture --------------------------------------------------------------------------- */

enum { WIDTH = 960, LEFT = 60, RIGHT = 20, TOP = 60, RATES = 260, GAP = 40, DELAYS = 120 };

struct plot {
	FILE *f;
	double x_per_us;
	double y_per_unit;
	double base; /* y of 0 */
};

struct series {
	const char *name, *colour;
	size_t offset; /* of a uint64_t or uint32_t in struct sim_sample */
	bool is_narrow;
};

static const struct series rates[] = {
	{ "capacity", "#c0c4c8", offsetof(struct sim_sample, capacity_bps), false },
	{ "sent", "#7fb069", offsetof(struct sim_sample, sent_bps), false },
	{ "received media", "#1b6ca8", offsetof(struct sim_sample, media_bps), false },
	{ "estimate", "#d1495b", offsetof(struct sim_sample, target_bps), false },
};
static const struct series delay = { "delay", "#8d5a97", offsetof(struct sim_sample, delay_us),
				     true };
enum { RATE_SERIES = sizeof(rates) / sizeof(rates[0]) };

static double value_of(const struct sim_sample *s, const struct series *series)
{
	const char *at = (const char *)s + series->offset;

	return series->is_narrow ? (double)*(const uint32_t *)(const void *)at
				 : (double)*(const uint64_t *)(const void *)at;
}

static double largest(const struct sim_path_result *r, const struct series *series)
{
	double most = 1;

	for (size_t i = 0; i < r->count; i++)
		if (value_of(&r->samples[i], series) > most)
			most = value_of(&r->samples[i], series);
	return most;
}

static void draw_line(const struct plot *p, const struct sim_path_result *r,
		      const struct series *series)
{
	fprintf(p->f, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" d=\"",
		series->colour);
	for (size_t i = 0; i < r->count; i++)
		fprintf(p->f, "%c%.1f %.1f", i ? 'L' : 'M',
			LEFT + (double)r->samples[i].at_us * p->x_per_us,
			p->base - value_of(&r->samples[i], series) * p->y_per_unit);
	fprintf(p->f, "\"/>\n");
}

static void draw_axis(const struct plot *p, double top, const char *unit)
{
	for (int i = 0; i <= 4; i++) {
		double y = p->base - top * i / 4 * p->y_per_unit;

		fprintf(p->f,
			"<path d=\"M%d %.1fH%d\" stroke=\"#ddd\"/>"
			"<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.0f</text>\n",
			LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, top * i / 4 / 1000);
	}
	fprintf(p->f, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT + 4,
		p->base - top * p->y_per_unit + 12, unit);
}

static void draw(FILE *f, const struct sim_path_result *r, const char *title)
{
	double end_us = (double)r->samples[r->count - 1].at_us;
	double top_bps = 0, top_us = largest(r, &delay) * 1.05;
	struct plot p = { .f = f, .x_per_us = (WIDTH - LEFT - RIGHT) / end_us };

	for (size_t i = 0; i < RATE_SERIES; i++)
		if (largest(r, &rates[i]) * 1.05 > top_bps)
			top_bps = largest(r, &rates[i]) * 1.05;
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
		"font-family=\"sans-serif\" font-size=\"11\">"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>"
		"<text x=\"%d\" y=\"20\" font-size=\"15\">%s</text>\n",
		WIDTH, TOP + RATES + GAP + DELAYS + GAP, LEFT, title);
	for (int i = 0; i < RATE_SERIES; i++)
		fprintf(f,
			"<rect x=\"%d\" y=\"32\" width=\"12\" height=\"12\" fill=\"%s\"/>"
			"<text x=\"%d\" y=\"42\">%s</text>\n",
			LEFT + i * 130, rates[i].colour, LEFT + i * 130 + 17, rates[i].name);
	p.base = TOP + RATES;
	p.y_per_unit = RATES / top_bps;
	draw_axis(&p, top_bps, "kbit/s");
	for (size_t i = 0; i < RATE_SERIES; i++)
		draw_line(&p, r, &rates[i]);
	p.base = TOP + RATES + GAP + DELAYS;
	p.y_per_unit = DELAYS / top_us;
	draw_axis(&p, top_us, "ms queued");
	draw_line(&p, r, &delay);
	for (int s = 0; s <= end_us / 1e6; s += 10)
		fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%d s</text>\n",
			LEFT + s * 1e6 * p.x_per_us, p.base + 16, s);
	fprintf(f, "</svg>\n");
}

void sim_path_plot(const struct sim_path_result *r, const char *name, const char *title)
{
	char path[128];
	FILE *f;

	cr_assert((mkdir("build", 0777) == 0 || errno == EEXIST) &&
		  (mkdir("build/sim", 0777) == 0 || errno == EEXIST));
	snprintf(path, sizeof(path), "build/sim/%s.svg", name);
	f = fopen(path, "w");
	cr_assert(f, "%s cannot be written", path);
	draw(f, r, title);
	cr_assert_eq(fclose(f), 0);
	cr_log_info("%s\n", path);
}
