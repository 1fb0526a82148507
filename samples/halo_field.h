/* SPDX-License-Identifier: BSD-3-Clause */
/* The problem of halo_exchange, apart from its parallel solution: a square
 * plate with cold edges on which some cells are kept hot (three letters), how
 * it is divided among the PEs, and the serial solution. */
#ifndef HALO_FIELD_H
#define HALO_FIELD_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HALO_FREE (-1.0f) /* a cell that is computed; others are kept at the value given */

/* Distance of a point from a straight stroke and from a circle. */
static inline float halo_stroke(float x, float y, float x0, float y0, float x1, float y1)
{
	float dx = x1 - x0, dy = y1 - y0;
	float t = ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy);

	t = t < 0 ? 0 : t > 1 ? 1 : t;
	return hypotf(x - x0 - t * dx, y - y0 - t * dy);
}

static inline float halo_circle(float x, float y, float cx, float cy, float r)
{
	return fabsf(hypotf(x - cx, y - cy) - r);
}

/* Kept value of cell (row, col) of n x n, or HALO_FREE. */
static inline float halo_fixed(int row, int col, int n)
{
	float x = ((float)col + 0.5f) / (float)n + 0.03f, y = ((float)row + 0.5f) / (float)n;
	float d = halo_circle(x, y, 0.24f, 0.50f, 0.10f); /* g */
	float hook = halo_circle(x, y, 0.24f, 0.68f, 0.10f);

	d = fminf(d, halo_stroke(x, y, 0.34f, 0.40f, 0.34f, 0.68f));
	if (y > 0.68f)
		d = fminf(d, hook);
	d = fminf(d, halo_circle(x, y, 0.54f, 0.50f, 0.10f)); /* d */
	d = fminf(d, halo_stroke(x, y, 0.64f, 0.24f, 0.64f, 0.60f));
	d = fminf(d, halo_stroke(x, y, 0.76f, 0.40f, 0.76f, 0.60f)); /* r */
	if (y < 0.47f)
		d = fminf(d, halo_circle(x, y, 0.84f, 0.48f, 0.08f));
	return d < 0.015f ? 1.0f : HALO_FREE;
}

static inline float halo_start(int row, int col, int n)
{
	float fixed = halo_fixed(row, col, n);

	return fixed == HALO_FREE ? 0.0f : fixed;
}

/* The PEs as a grid of rows x cols, as square as their number allows. */
struct halo_grid {
	int n; /* cells along an edge of the plate */
	int rows, cols;
};

static inline struct halo_grid halo_divide(int n, int n_pes)
{
	struct halo_grid g;

	g.n = n;
	g.rows = 1;
	for (int r = 1; r * r <= n_pes; r++)
		if (n_pes % r == 0)
			g.rows = r;
	g.cols = n_pes / g.rows;
	return g;
}

/* First cell of part i of `parts`; part i has halo_first(i + 1) - halo_first(i) cells. */
static inline int halo_first(int n, int parts, int i)
{
	return (int)((long)n * i / parts);
}

/* What one PE computes. */
struct halo_part {
	int row, col;	/* place in the grid of PEs */
	int row0, col0; /* first cell */
	int ny, nx;	/* cells */
};

static inline struct halo_part halo_part_of(const struct halo_grid *g, int pe)
{
	struct halo_part p;

	p.row = pe / g->cols;
	p.col = pe % g->cols;
	p.row0 = halo_first(g->n, g->rows, p.row);
	p.col0 = halo_first(g->n, g->cols, p.col);
	p.ny = halo_first(g->n, g->rows, p.row + 1) - p.row0;
	p.nx = halo_first(g->n, g->cols, p.col + 1) - p.col0;
	return p;
}

/* Fills field with the state after `iterations`, computed in the plainest way.
 * 0, or -1 without memory. */
static inline int halo_serial(float *field, int n, int iterations)
{
	int pitch = n + 2;
	size_t cells = (size_t)pitch * (size_t)pitch;
	float *old = (float *)calloc(cells, sizeof(float));
	float *now = (float *)calloc(cells, sizeof(float));
	float *fixed = (float *)calloc(cells, sizeof(float));

	for (int i = 0; old && now && fixed && i < n * n; i++) {
		int at = (i / n + 1) * pitch + i % n + 1;

		fixed[at] = halo_fixed(i / n, i % n, n);
		old[at] = halo_start(i / n, i % n, n);
	}
	for (int k = 0; old && now && fixed && k < iterations; k++) {
		float *swap = old;

		for (int r = 1; r <= n; r++)
			for (int at = r * pitch + 1; at <= r * pitch + n; at++)
				now[at] = fixed[at] != HALO_FREE
						  ? fixed[at]
						  : 0.25f * (old[at - pitch] + old[at + pitch] +
							     old[at - 1] + old[at + 1]);
		old = now;
		now = swap;
	}
	for (int r = 0; old && now && fixed && r < n; r++)
		memcpy(field + (size_t)r * (size_t)n, old + (size_t)(r + 1) * (size_t)pitch + 1,
		       (size_t)n * sizeof(float));
	n = old && now && fixed ? 0 : -1;
	free(old);
	free(now);
	free(fixed);
	return n;
}

#endif
