/* SPDX-License-Identifier: BSD-3-Clause */
/* How long collectives on a stream take, one behind the other: a line "path" with that of the job, then
 * lines "kind bytes microseconds" of PE 0.
 * bytes are those of the table of algorithms (runtime/team/coll.def). usage: coll_times [CALLS [MOST_BYTES]] */
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#include <gdr.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t *dst, *src;
static gdr_stream_t stream;

static int call(int kind, size_t bytes)
{
	int t = GDR_TEAM_WORLD, n = gdr_host_n_pes();
	size_t each = bytes / 4 / (size_t)n;

	switch (kind) {
	case 0:
		return gdr_team_sync_on_stream(t, stream);
	case 1:
		return gdr_uint32_broadcast_on_stream(t, dst, src, bytes / 4, 0, stream);
	case 2:
		return gdr_uint32_fcollect_on_stream(t, dst, src, each ? each : 1, stream);
	case 3:
		return gdr_uint32_alltoall_on_stream(t, dst, src, each ? each : 1, stream);
	case 4:
		return gdr_uint32_sum_reduce_on_stream(t, dst, src, bytes / 4, stream);
	default:
		return gdr_uint32_sum_inscan_on_stream(t, dst, src, bytes / 4, stream);
	}
}

/* As gdr_info --coll names it, seen from the node of PE 0. */
static const char *path(void)
{
	struct gdr_job_info info;

	if (gdr_query(&info) || !info.n_nic)
		return "mapped";
	return info.n_nodes > 1 && info.n_p2p > 1 ? "nodes" : "queue";
}

/* Best of three. */
static int measure(int kind, size_t bytes, int calls, double *us)
{
	double begin, t;
	int round, i, ret = 0;

	for (round = 0; round < 4 && !ret; round++) { /* the first one does not count */
		ret = gdr_barrier_all();
		begin = now_us();
		for (i = 0; i < calls && !ret; i++)
			ret = call(kind, bytes);
		if (!ret)
			ret = gdr_stream_sync(stream);
		t = (now_us() - begin) / calls;
		if (round == 1 || (round && t < *us))
			*us = t;
	}
	return ret ? ret : gdr_host_status();
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"sync", "broadcast", "collect", "alltoall", "reduce", "scan"};
	int calls = argc > 1 ? atoi(argv[1]) : 20, kind, ret = 0;
	size_t most = argc > 2 ? strtoul(argv[2], NULL, 0) : 4u << 20, bytes;
	double us = 0;

	help_if_asked(argc, argv, "coll_times [CALLS [MOST_BYTES]]");
	if (calls < 1 || gdr_init())
		return 1;
	dst = (uint32_t *)gdr_calloc(1, most + 4096);
	src = (uint32_t *)gdr_calloc(1, most + 4096);
	if (!dst || !src || gdr_stream_create(&stream))
		return 1;
	if (!gdr_host_my_pe())
		printf("path %s\n", path());
	for (kind = 0; kind < 6 && !ret; kind++) {
		for (bytes = kind ? 64 : 0; bytes <= most && !ret; bytes = bytes ? 4 * bytes : most + 1) {
			ret = measure(kind, bytes, calls, &us);
			if (!ret && !gdr_host_my_pe())
				printf("%s %zu %.2f\n", kinds[kind], bytes, us);
		}
	}
	gdr_stream_destroy(stream);
	return gdr_finalize() || ret;
}
