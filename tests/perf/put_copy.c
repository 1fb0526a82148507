/* SPDX-License-Identifier: BSD-3-Clause */
/* A put of the host device into mapped memory beside the C library's copy of the same bytes: one PE, to itself.
 *
 *   put_copy [SIZE...]	sizes of 8 to 4096 bytes, or those named
 *
 * The two take turns of a few microseconds, so that what else the machine does meets both; medians of the turns. Prints
 * a line "size source put_ns memcpy_ns" each, source: at a multiple of 16, 8 or 1. */
#include "tests/perf/help.h"

#include <gdr.h>

#include <stdint.h>
#include <time.h>

enum { CALLS = 500, TURNS = 801, MOST = 4096 };

/* Not expanded in place, as that of gdr_put is not. */
static void *(*volatile copy)(void *, const void *, size_t) = memcpy;

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static double median(double *v)
{
	qsort(v, TURNS, sizeof(*v), by_value);
	return v[TURNS / 2] / CALLS;
}

static void measure(char *dst, const char *src, size_t size, int at)
{
	static double put[TURNS], bare[TURNS];
	double t;
	int turn, i;

	for (turn = 0; turn < TURNS; turn++) {
		t = now_ns();
		for (i = 0; i < CALLS; i++)
			gdr_put(dst, src + at, size, 0);
		put[turn] = now_ns() - t;
		t = now_ns();
		for (i = 0; i < CALLS; i++)
			copy(dst, src + at, size);
		bare[turn] = now_ns() - t;
	}
	printf("%zu %d %.2f %.2f\n", size, at ? at : 16, median(put), median(bare));
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {8,   16,	 24,  32,  40,	48,  56,  64,  80,   96,   128,	 160,
				       192, 224, 255, 256, 257, 320, 384, 512, 1024, 2048, 4096};
	static const int places[] = {0, 8, 1};
	size_t n = argc > 1 ? (size_t)argc - 1 : sizeof(sizes) / sizeof(*sizes), i, k, size;
	char *heap;

	help_if_asked(argc, argv, "put_copy [SIZE...]");
	if (gdr_init())
		return 1;
	heap = gdr_calloc(1, (size_t)4 * MOST);
	for (k = 0; heap && k < 3; k++)
		for (i = 0; i < n; i++) {
			size = argc > 1 ? strtoul(argv[i + 1], NULL, 10) : sizes[i];
			if (size >= 1 && size <= MOST) /* half a page apart: no load takes a store for its own */
				measure(heap, heap + MOST + 2048, size, places[k]);
		}
	gdr_free(heap);
	return gdr_finalize() || !heap;
}
