/* SPDX-License-Identifier: BSD-3-Clause */
/* What the larger samples share on the host side: reporting an error with the
 * first recorded cause, and saying what the program runs on. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <gdr.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Whether the only argument asks for help: told before anything is started. */
static inline int sample_asks_help(int argc, char **argv)
{
	return argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"));
}

/* Prints what failed, and the first error that device code recorded. Returns status. */
static inline int sample_error(const char *what, int status)
{
	struct gdr_error first;

	fprintf(stderr, "PE %d: %s: %s\n", gdr_host_my_pe(), what, gdr_strerror(status));
	if (gdr_errors(&first, 1) > 0)
		fprintf(stderr, "PE %d: first error: %s\n", gdr_host_my_pe(), first.text);
	return status;
}

static inline void sample_print_setting(void)
{
	struct gdr_job_info job;
	int n = gdr_host_n_pes();

	if (gdr_query(&job))
		return;
	printf("%d PE%s on %d node%s, kernels on the %s, %s bootstrap\n", n, n == 1 ? "" : "s",
	       job.n_nodes, job.n_nodes == 1 ? "" : "s", job.device_kind, job.bootstrap);
	if (job.n_p2p)
		printf("%d PE%s reached through mapped memory\n", job.n_p2p,
		       job.n_p2p == 1 ? "" : "s");
	if (job.n_nic)
		printf("%d PE%s reached through RDMA queues of %s (%s), %u queue pairs\n",
		       job.n_nic, job.n_nic == 1 ? "" : "s", job.nic ? job.nic : "?",
		       job.nic_text ? job.nic_text : "", job.n_queues);
}

static inline int sample_is_cuda(void)
{
	struct gdr_job_info job;

	return !gdr_query(&job) && strcmp(job.device_kind, "cuda") == 0;
}

static inline double sample_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
