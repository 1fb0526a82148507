/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes how many tokens each expert got as an SVG: a bar for each expert, in a colour for each PE that they came
 * from, and a line at the mean. */
#ifndef MOE_PICTURE_H
#define MOE_PICTURE_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { MOE_LEFT = 52, MOE_TOP = 40, MOE_WIDTH = 660, MOE_HEIGHT = 200 };

/* Tokens of an expert that came from PEs below `pe`. */
static inline uint64_t moe_tokens_below(const uint32_t *of, int pe)
{
	uint64_t sum = 0;

	for (int p = 0; p < pe; p++)
		sum += of[p];
	return sum;
}

/* The part of each bar that came from this PE. */
static inline void moe_draw_pe(FILE *f, const uint32_t *load, int experts, int n_pes, int pe, double most)
{
	double step = (double)MOE_WIDTH / experts, width = step > 3 ? step - 1 : step;

	fprintf(f, "<path fill=\"hsl(%d,55%%,45%%)\" d=\"", 210 + 360 * pe / n_pes);
	for (int e = 0; e < experts; e++) {
		const uint32_t *of = load + (size_t)e * (size_t)n_pes;
		double height = MOE_HEIGHT * of[pe] / most;
		double below = MOE_HEIGHT * (double)moe_tokens_below(of, pe) / most;

		if (of[pe])
			fprintf(f, "M%.1f %.1fh%.1fv%.1fh%.1fz", MOE_LEFT + e * step, MOE_TOP + MOE_HEIGHT - below,
				width, -height, -width);
	}
	fprintf(f, "\"/>\n<text x=\"%d\" y=\"%d\" fill=\"hsl(%d,55%%,45%%)\">PE %d</text>\n", MOE_LEFT + 56 * pe,
		MOE_TOP + MOE_HEIGHT + 36, 210 + 360 * pe / n_pes, pe);
}

static inline void moe_draw(FILE *f, const uint32_t *load, int experts, int n_pes)
{
	uint64_t sum = 0, most = 1;
	double line;

	for (int e = 0; e < experts; e++) {
		uint64_t n = moe_tokens_below(load + (size_t)e * (size_t)n_pes, n_pes);

		sum += n;
		most = n > most ? n : most;
	}
	line = MOE_TOP + MOE_HEIGHT * (1 - (double)sum / experts / (double)most);
	fprintf(f,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\""
		" font-size=\"11\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		"<text x=\"%d\" y=\"18\" font-size=\"14\">Tokens of each expert, by the PE that they came from</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%llu</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n",
		MOE_LEFT + MOE_WIDTH + 80, MOE_TOP + MOE_HEIGHT + 50, MOE_LEFT, MOE_LEFT - 6, MOE_TOP + 4,
		(unsigned long long)most, MOE_LEFT - 6, MOE_TOP + MOE_HEIGHT + 4);
	for (int pe = 0; pe < n_pes; pe++)
		moe_draw_pe(f, load, experts, n_pes, pe, (double)most);
	fprintf(f,
		"<path stroke=\"black\" stroke-dasharray=\"4 3\" d=\"M%d %.1fh%d\"/>\n"
		"<text x=\"%d\" y=\"%.1f\">mean %.1f</text>\n<text x=\"%d\" y=\"%d\">expert 0</text>\n"
		"<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%d</text>\n</svg>\n",
		MOE_LEFT, line, MOE_WIDTH, MOE_LEFT + MOE_WIDTH + 4, line + 4, (double)sum / experts, MOE_LEFT,
		MOE_TOP + MOE_HEIGHT + 16, MOE_LEFT + MOE_WIDTH, MOE_TOP + MOE_HEIGHT + 16, experts - 1);
}

/* load: [experts][n_pes]. */
static inline int moe_write_picture(const char *path, const uint32_t *load, int experts, int n_pes)
{
	FILE *f = fopen(path, "w");
	int bad = !f;

	if (f) {
		moe_draw(f, load, experts, n_pes);
		bad = ferror(f);
		bad |= fclose(f);
	}
	if (bad)
		fprintf(stderr, "cannot write %s: %s\n", path, strerror(errno));
	return bad ? -1 : 0;
}

#endif
