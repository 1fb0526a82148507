// SPDX-License-Identifier: BSD-3-Clause
/* What bring-up costs: time of gdr_init and memory per PE. PE 0 prints
 * "pes init_ms_max rss_kib_max queue_kib fds". */
#include "tests/perf/help.h"

#include <gdr.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long rss_kib(void)
{
	char line[256];
	long kib = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "VmRSS:", 6))
			kib = atol(line + 6);
	if (f)
		fclose(f);
	return kib;
}

static long count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	long n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n - 3; /* ".", ".." and the directory itself */
}

int main(int argc, char **argv)
{
	double t0, worst = 0;
	long rss0;
	struct gdr_job_info info;
	double *all, mine[2];
	int i, ret;

	help_if_asked(argc, argv, "init, as each PE of a job: prints pes init_ms_max rss_kib_max queue_kib fds");
	rss0 = rss_kib();
	t0 = now_ms();
	ret = gdr_init();
	mine[0] = now_ms() - t0;
	if (ret)
		return 1;
	mine[1] = (double)(rss_kib() - rss0);
	all = gdr_malloc(sizeof(mine) * (size_t)gdr_host_n_pes());
	if (!all)
		return 1;
	ret = gdr_host_put(all + 2 * gdr_host_my_pe(), mine, sizeof(mine), 0);
	if (!ret)
		ret = gdr_barrier_all();
	if (!ret && gdr_host_my_pe() == 0) {
		double rss = 0;

		for (i = 0; i < gdr_host_n_pes(); i++) {
			worst = all[2 * i] > worst ? all[2 * i] : worst;
			rss = all[2 * i + 1] > rss ? all[2 * i + 1] : rss;
		}
		gdr_query(&info);
		printf("%d %.1f %.0f %u %ld\n", gdr_host_n_pes(), worst, rss,
		       info.n_queues * info.queue_depth * 64 / 1024, count_fds());
	}
	gdr_free(all);
	gdr_finalize();
	return ret != 0;
}
