/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs that start jobs of the whole library share: who a process is, a check that ends it (and by its
 * launcher the job), a look at the job, a little use of it, and how much is open. */
#ifndef TESTS_BOOTSTRAP_GDR_JOB_H
#define TESTS_BOOTSTRAP_GDR_JOB_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr.h>

#include "tests/entries.h"

static int rank, n_ranks; /* of the process, in whatever started it */

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "process %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #cond); \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void is_job(const char *by, int pe, int n)
{
	struct gdr_job_info info;

	CHECK(!gdr_query(&info) && !strcmp(info.bootstrap, by));
	CHECK(gdr_host_my_pe() == pe && gdr_host_n_pes() == n);
}

/* Every PE puts seed + its number into the memory of all. */
static void exchange(int seed)
{
	int pe = gdr_host_my_pe(), n = gdr_host_n_pes(), v = seed + pe;
	int *all = gdr_calloc((size_t)n, sizeof(int));

	CHECK(all);
	for (int i = 0; i < n; i++)
		CHECK(!gdr_host_put(all + pe, &v, sizeof(v), i));
	CHECK(!gdr_barrier_all());
	for (int i = 0; i < n; i++)
		CHECK(all[i] == seed + i);
	CHECK(!gdr_free(all));
}

#endif
