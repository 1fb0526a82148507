// SPDX-License-Identifier: BSD-3-Clause
// What collectives in device code cost, by a block, a warp, or one thread of each PE: lines
// RESULT kind_<bytes>B_<scope> us us [least..most] of PE 0, medians of 5 launches after a warm-up.
// usage: coll_device [MOST [SCOPE..]], MOST bytes that a PE brings (alltoall, reducescatter: for each PE), scopes:
// thread warp block; default: all. Warps up to 1 MiB, threads up to 64 KiB. Up to 4 MiB fit into the default heap: then
// it is that. The same source measures NVSHMEM: as_nvshmem.h.
#define GDR_KERNEL_THREADS 512
#ifdef AS_NVSHMEM
#include "tests/perf/as_nvshmem.h"
#else
#ifdef __CUDACC__
#define GDR_NO_QUEUES /* nvcc takes a third of the time */
#endif
#include <gdr.h>
#endif
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAUNCHES 5
#define KINDS 5
#define IN_DEFAULT ((size_t)4 << 20)
#ifdef __CUDACC__
#define AREA ((size_t)256 << 20)
#define THREADS 512
#else
#define AREA ((size_t)4 << 20)
#define THREADS 4
#endif

static const char *const kinds[KINDS] = {"broadcast", "fcollect", "alltoall", "sum_reduce",
					 "sum_reducescatter"};

struct work {
	int kind, calls;
	size_t n; /* elements */
	float *dst, *src;
	uint64_t *time; /* [2] */
	int *status;
};

/* The first call is not timed: it waits until all are there. */
#define SCOPE(name, suffix)                                                       \
	GDR_DEVICE int call_##name(const struct work *w)                                           \
	{                                                                                          \
		switch (w->kind) {                                                                 \
		case 0:                                                                            \
			return gdr_float_broadcast##suffix(GDR_TEAM_WORLD, w->dst, w->src, w->n, 0);    \
		case 1:                                                                            \
			return gdr_float_fcollect##suffix(GDR_TEAM_WORLD, w->dst, w->src, w->n);   \
		case 2:                                                                            \
			return gdr_float_alltoall##suffix(GDR_TEAM_WORLD, w->dst, w->src, w->n);   \
		case 3:                                                                            \
			return gdr_float_sum_reduce##suffix(GDR_TEAM_WORLD, w->dst, w->src, w->n); \
		default:                                                                           \
			return gdr_float_sum_reducescatter##suffix(GDR_TEAM_WORLD, w->dst, w->src, \
								   w->n);                          \
		}                                                                                  \
	}                                                                                          \
	GDR_KERNEL(repeat_##name, struct work, w)                                                  \
	{                                                                                          \
		int i, ret = call_##name(&w);                                                      \
		uint64_t start = gdr_clock_ns();                                                   \
                                                                                                   \
		for (i = 0; i < w.calls && !ret; i++)                                              \
			ret = call_##name(&w);                                                     \
		if (gdr_thread_id())                                                               \
			return;                                                                    \
		w.time[0] = start;                                                                 \
		w.time[1] = gdr_clock_ns();                                                        \
		*w.status = ret;                                                                   \
	}
SCOPE(thread, )
SCOPE(warp, _warp)
SCOPE(block, _block)

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "coll_device: %s: %d\n", what, ret);
	exit(1);
}

#define TIMES(name, threads, w, us)                                                                \
	do {                                                                                       \
		uint64_t t_[2];                                                                    \
		int r_, status_;                                                                   \
                                                                                                   \
		for (r_ = -1; r_ < LAUNCHES; r_++) {                                               \
			must(gdr_launch(repeat_##name, 1, threads, 0, NULL, w), "launch");         \
			must(gdr_stream_sync(NULL), "kernel");                                     \
			must(gdr_memcpy(t_, (w)->time, sizeof(t_)), "copy");                       \
			must(gdr_memcpy(&status_, (w)->status, sizeof(status_)), "copy");          \
			must(status_, kinds[(w)->kind]);                                           \
			if (r_ >= 0)                                                               \
				(us)[r_] = (double)(t_[1] - t_[0]) / 1e3 / (w)->calls;             \
		}                                                                                  \
		qsort(us, LAUNCHES, sizeof(*(us)), by_value);                                      \
	} while (0)

struct scope {
	const char *name;
	size_t most, often, some; /* bytes: at most, of which there are 100 calls, and 20; else 2 */
};

static const struct scope scopes[] = {{"block", SIZE_MAX, 65536, 1 << 20},
				      {"warp", 1 << 20, 16384, 262144},
				      {"thread", 65536, 4096, 16384}};

static void figure(struct work *w, const struct scope *by, size_t bytes)
{
	const char *scope = by->name;
	double us[LAUNCHES];

	w->n = bytes / sizeof(float);
	w->calls = bytes <= by->often ? 100 : bytes <= by->some ? 20 : 2;
	if (!strcmp(scope, "block"))
		TIMES(block, THREADS, w, us);
	else if (!strcmp(scope, "warp"))
		TIMES(warp, 32, w, us);
	else
		TIMES(thread, 1, w, us);
	if (!gdr_host_my_pe())
		printf("RESULT %s_%zuB_%s %.2f us [%.2f..%.2f]\n", kinds[w->kind], bytes, scope,
		       us[LAUNCHES / 2], us[0], us[LAUNCHES - 1]);
	fflush(stdout);
}

static int wanted(int argc, char **argv, const char *scope)
{
	int i;

	for (i = 2; i < argc; i++)
		if (!strcmp(argv[i], scope))
			return 1;
	return argc < 3;
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {8,     64,    256,    512,    1024,    2048,    4096,	  8192,
				       16384, 32768, 65536, 131072, 262144, 1 << 20, 4 << 20, 64 << 20};
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	size_t most = argc > 1 ? strtoul(argv[1], NULL, 0) : 64 << 20, area = AREA;
	struct work w;
	unsigned i, s;

	help_if_asked(argc, argv, "coll_device [MOST [SCOPE..]]\n"
				  "  MOST: bytes that a PE brings, 64 MiB; SCOPE: thread warp block, all");
	if (most > IN_DEFAULT)
		attr.heap_size = 2 * AREA + AREA / 2 + ((size_t)16 << 20); /* the library may keep an eighth */
	must(gdr_init_attr(&attr), "init");
	if (most * (size_t)gdr_host_n_pes() < area)
		area = most * (size_t)gdr_host_n_pes();
	memset(&w, 0, sizeof(w));
	w.src = (float *)gdr_calloc(1, area);
	w.dst = (float *)gdr_calloc(1, area);
	w.time = (uint64_t *)gdr_calloc(2, sizeof(uint64_t));
	w.status = (int *)gdr_calloc(1, sizeof(int));
	must(!w.src || !w.dst || !w.time || !w.status, "memory");
	for (i = 0; i < 3; i++)
		for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]) && wanted(argc, argv, scopes[i].name); s++)
			for (w.kind = 0; w.kind < KINDS; w.kind++)
				if (sizes[s] <= most && sizes[s] * (size_t)gdr_host_n_pes() <= area &&
				    sizes[s] <= scopes[i].most)
					figure(&w, &scopes[i], sizes[s]);
	must(gdr_barrier_all(), "barrier");
	return gdr_finalize() != 0;
}
