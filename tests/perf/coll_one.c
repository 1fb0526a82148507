/* SPDX-License-Identifier: BSD-3-Clause */
/* One collective again and again: coll_one KIND BYTES CALLS ROUNDS. KIND: barrier_all, barrier, sync,
 * broadcast, fcollect, collect, alltoall, reduce, reducescatter, scan; BYTES of the result (broadcast, reduce, scan: of
 * the vector; reducescatter: of all blocks). PE 0 prints the median of the rounds, in microseconds a call. With 0
 * CALLS nothing is posted but by what is around. */
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#include <gdr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ROUNDS 99

enum { BARRIER_ALL, BARRIER, SYNC, BROADCAST, FCOLLECT, COLLECT, ALLTOALL, SCAN, REDUCE, REDUCESCATTER,
       KINDS };
static const char *const names[KINDS] = {"barrier_all", "barrier", "sync", "broadcast",
					 "fcollect", "collect", "alltoall", "scan", "reduce",
					 "reducescatter"};

struct work {
	int kind, calls;
	size_t n; /* elements */
	uint64_t *dst, *src;
	int *status;
};

GDR_DEVICE int call(const struct work *w)
{
	switch (w->kind) {
	case BARRIER_ALL:
		return gdr_barrier_all();
	case BARRIER:
		return gdr_barrier(GDR_TEAM_WORLD);
	case SYNC:
		return gdr_team_sync(GDR_TEAM_WORLD);
	case BROADCAST:
		return gdr_uint64_broadcast(GDR_TEAM_WORLD, w->dst, w->src, w->n, 0);
	case FCOLLECT:
		return gdr_uint64_fcollect(GDR_TEAM_WORLD, w->dst, w->src, w->n);
	case COLLECT:
		return gdr_uint64_collect(GDR_TEAM_WORLD, w->dst, w->src, w->n);
	case ALLTOALL:
		return gdr_uint64_alltoall(GDR_TEAM_WORLD, w->dst, w->src, w->n);
	case SCAN:
		return gdr_uint64_sum_inscan(GDR_TEAM_WORLD, w->dst, w->src, w->n);
	case REDUCESCATTER:
		return gdr_uint64_sum_reducescatter(GDR_TEAM_WORLD, w->dst, w->src, w->n);
	default:
		return gdr_uint64_sum_reduce(GDR_TEAM_WORLD, w->dst, w->src, w->n);
	}
}

GDR_KERNEL(repeat, struct work, w)
{
	int i, ret = 0;

	for (i = 0; i < w.calls && !ret; i++)
		ret = call(&w);
	*w.status = ret;
}

static int round_of(const struct work *w, double *us)
{
	double begin;
	int ret = gdr_barrier_all();

	begin = now_us();
	*w->status = 0;
	if (!ret)
		ret = gdr_launch(repeat, 1, 1, 0, NULL, w);
	if (!ret)
		ret = gdr_stream_sync(NULL);
	*us = (now_us() - begin) / (w->calls ? w->calls : 1);
	return ret ? ret : *w->status;
}

int main(int argc, char **argv)
{
	static int status;
	double us[MOST_ROUNDS];
	size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 8;
	int rounds = argc > 4 ? atoi(argv[4]) : 5, i, ret;
	struct work w = {.calls = argc > 3 ? atoi(argv[3]) : 100, .status = &status};

	help_if_asked(argc, argv, "coll_one KIND BYTES CALLS ROUNDS\n"
				  "  KIND: barrier_all barrier sync broadcast fcollect collect alltoall reduce "
				  "reducescatter scan");
	while (w.kind < KINDS && (argc < 2 || strcmp(argv[1], names[w.kind])))
		w.kind++;
	if (w.kind == KINDS || rounds < 1 || rounds > MOST_ROUNDS || gdr_init())
		return 2;
	w.n = bytes / sizeof(uint64_t);
	if (w.kind == FCOLLECT || w.kind == COLLECT || w.kind == ALLTOALL || w.kind == REDUCESCATTER)
		w.n /= (size_t)gdr_host_n_pes();
	w.dst = (uint64_t *)gdr_calloc(1, bytes + 64);
	w.src = (uint64_t *)gdr_calloc(1, bytes + 64);
	ret = !w.dst || !w.src;
	for (i = 0; i < rounds && !ret; i++)
		ret = round_of(&w, &us[i]);
	qsort(us, (size_t)i, sizeof(*us), by_value);
	if (!ret && !gdr_host_my_pe())
		printf("%.2f\n", us[rounds / 2]);
	return gdr_finalize() || ret;
}
