/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: mpi_gdr jobs | missing | silent | late_mpi
 * Jobs by MPI communicator: all ranks, all reversed, parts side by side, a part alone, by a unique id that
 * MPI carries, by the launcher, and again; what stays open does not grow. missing: a rank does not come
 * in time; silent: it does, and then says nothing more. late_mpi: MPI is not up. */
#include <mpi.h>

#include "tests/bootstrap/gdr_job.h"

static void work(const char *by, int pe, int n, int seed)
{
	is_job(by, pe, n);
	exchange(seed);
	CHECK(!gdr_finalize());
}

static void by_comm(MPI_Comm comm, int seed)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	int pe, n;

	MPI_Comm_rank(comm, &pe);
	MPI_Comm_size(comm, &n);
	attr.heap_size = 16 << 20;
	attr.mpi_comm = &comm;
	CHECK(!gdr_init_attr(&attr));
	work("mpi", pe, n, seed);
}

static void by_split(int color, int key, int seed)
{
	MPI_Comm part;

	MPI_Comm_split(MPI_COMM_WORLD, color, key, &part);
	if (part != MPI_COMM_NULL) {
		by_comm(part, seed + 1000 * color);
		MPI_Comm_free(&part);
	}
}

static void by_id(int seed)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	gdr_uniqueid_t id = GDR_UNIQUEID_INITIALIZER;

	if (rank == 0)
		CHECK(!gdr_get_uniqueid(&id));
	MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
	attr.heap_size = 8 << 20;
	attr.uniqueid = &id;
	attr.pe = rank;
	attr.n_pes = n_ranks;
	CHECK(!gdr_init_attr(&attr));
	work("uniqueid", rank, n_ranks, seed);
}

static void jobs(void)
{
	int files = 0;

	for (int turn = 0; turn < 4; turn++) {
		by_comm(MPI_COMM_WORLD, turn);
		by_split(0, -rank, 10 + turn); /* reversed */
		by_split(1 + rank % 2, rank, 20 + turn);
		by_split(rank ? 3 : MPI_UNDEFINED, rank, 30 + turn);
		by_id(40 + turn);
		CHECK(!gdr_init());
		work(n_ranks > 1 || getenv("PMIX_RANK") ? "pmix" : "single", rank, n_ranks, 50 + turn);
		MPI_Barrier(MPI_COMM_WORLD);
		if (turn == 1)
			files = entries("/proc/self/fd");
		else if (turn > 1)
			CHECK(entries("/proc/self/fd") <= files);
	}
}

/* late_s: when rank 1 takes part in the duplication, and in nothing else. */
static void missing(unsigned late_s)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	MPI_Comm comm = MPI_COMM_WORLD, late;
	MPI_Request request;

	if (rank != 1) {
		attr.mpi_comm = &comm;
		CHECK(gdr_init_attr(&attr) == -GDR_ETIMEOUT);
	} else { /* in the end, so that MPI can end */
		sleep(late_s);
		MPI_Comm_idup(comm, &late, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	MPI_Comm null = MPI_COMM_NULL;
	int provided;

	if (argc > 1 && !strcmp(argv[1], "late_mpi")) {
		attr.mpi_comm = &null;
		return gdr_init_attr(&attr) == -GDR_ESTATE ? 0 : 1;
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
	attr.mpi_comm = &null;
	CHECK(gdr_init_attr(&attr) == -GDR_EINVAL);
	if (argc > 1 && !strcmp(argv[1], "missing"))
		missing(5);
	else if (argc > 1 && !strcmp(argv[1], "silent"))
		missing(0);
	else
		jobs();
	if (rank == 0)
		printf("mpi_gdr: all right on %d ranks\n", n_ranks);
	MPI_Finalize();
	return 0;
}
