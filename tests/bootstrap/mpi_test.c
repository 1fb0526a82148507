// SPDX-License-Identifier: BSD-3-Clause
/* A program that uses MPI and the bootstrap, in the order that its argument
 * says: M and F are MPI_Init and MPI_Finalize, o, x and c are opening,
 * exchanging over and closing the bootstrap, X an MPI_Allreduce.
 *   mpi_test MoxXcF   mpi_test oxMXFxc   ... */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

#include "bootstrap/boot.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"

#define LIMIT_MS 20000

static struct gdr_bootstrap *boot;
static struct gdri_options opt;

static int exchange(void)
{
	int i, rc, *all = calloc((size_t)boot->n_pes, sizeof(*all));

	if (!all)
		return -1;
	rc = boot->allgather(boot, &boot->pe, all, sizeof(*all), LIMIT_MS);
	for (i = 0; i < boot->n_pes && !rc; i++)
		rc = all[i] != i;
	free(all);
	return rc ? rc : boot->barrier(boot, LIMIT_MS);
}

static int reduce(void)
{
	int one = 1, sum = 0, size;

	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	return sum != size || (boot && boot->n_pes != size);
}

static int step(char c)
{
	switch (c) {
	case 'M':
		return MPI_Init(NULL, NULL);
	case 'F':
		return MPI_Finalize();
	case 'X':
		return reduce();
	case 'o':
		return gdri_bootstrap_open(&boot, &(struct gdri_boot_how){.opt = &opt}, LIMIT_MS);
	case 'x':
		return exchange();
	case 'c':
		boot->finalize(boot, LIMIT_MS);
		boot = NULL;
		return 0;
	default:
		return -1;
	}
}

int main(int argc, char **argv)
{
	const char *p;
	int rc;

	if (gdri_options_read(&opt, NULL))
		return 1;
#if OMPI_MAJOR_VERSION >= 5
	if (argc > 1 && strcspn(argv[1], "o") < strcspn(argv[1], "M")) {
		puts("SKIP: MPI_Init of Open MPI 5.0.7 fails in a program that has called PMIx_Init");
		return 77;
	}
#endif
	for (p = argc > 1 ? argv[1] : "MoxXcF"; *p; p++) {
		rc = step(*p);
		if (rc) {
			fprintf(stderr, "mpi_test: step %c of %s: %d\n", *p, argv[1], rc);
			return 1;
		}
	}
	return 0;
}
