/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that uses MPI too: mpi before | after says whether MPI_Init is called
 * before or after gdr_init. Numbers agree, both exchange, both end. */
#include "tests/multi/multi.h"

#include <mpi.h>

int main(int argc, char **argv)
{
	int before = argc > 1 && !strcmp(argv[1], "before"), rank, size, sum = 0, *word, next;

#if OMPI_MAJOR_VERSION >= 5
	if (!before) {
		puts("SKIP: MPI_Init of Open MPI 5.0.7 fails in a program that has called PMIx_Init");
		return 77;
	}
#endif
	if (before)
		CHECK_EQ(MPI_Init(&argc, &argv), MPI_SUCCESS);
	multi_begin();
	if (!before)
		CHECK_EQ(MPI_Init(&argc, &argv), MPI_SUCCESS);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK_EQ(rank, multi_pe);
	CHECK_EQ(size, multi_n);
	word = gdr_calloc(1, sizeof(int));
	CHECK(word);
	next = (multi_pe + 1) % multi_n;
	CHECK_OK(gdr_host_put(word, &rank, sizeof(rank), next));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(*word, (multi_pe + multi_n - 1) % multi_n);
	CHECK_EQ(MPI_Allreduce(word, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
	CHECK_EQ(sum, multi_n * (multi_n - 1) / 2);
	if (before) {
		multi_end("mpi");
		MPI_Finalize();
	} else {
		MPI_Finalize();
		multi_end("mpi");
	}
	return 0;
}
