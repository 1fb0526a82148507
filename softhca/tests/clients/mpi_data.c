/* SPDX-License-Identifier: BSD-3-Clause */
/* An MPI program that checks what it receives: messages of all sizes between all ranks at once,
 * collectives, one-sided access with atomics. It knows nothing of softhca. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "rank %d, line %d: %s\n", rank, __LINE__, #condition);     \
			MPI_Abort(MPI_COMM_WORLD, 1);                                              \
		}                                                                                  \
	} while (0)

#define LARGEST (1 << 20)
#define COUNTS 1000

static int rank, ranks;

static uint8_t byte_of(int from, int to, size_t at, unsigned round)
{
	return (uint8_t)(at * 131 + at / 251 + (unsigned)from * 17 + (unsigned)to * 29 + round * 7);
}

static void fill(uint8_t *buf, int from, int to, size_t size, unsigned round)
{
	for (size_t i = 0; i < size; i++)
		buf[i] = byte_of(from, to, i, round);
}

static void check(const uint8_t *buf, int from, int to, size_t size, unsigned round)
{
	for (size_t i = 0; i < size; i++)
		CHECK(buf[i] == byte_of(from, to, i, round));
}

static void *memory(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	CHECK(p);
	return p;
}

/* Everyone to everyone, several at a time, eager and rendezvous. */
static void messages(void)
{
	static const int sizes[] = {0, 1, 8, 100, 1023, 4096, 8191, 30000, 65536, 300001, LARGEST};
	uint8_t *out = memory((size_t)ranks * LARGEST), *in = memory((size_t)ranks * LARGEST);
	MPI_Request *request = memory(2 * (size_t)ranks * sizeof(*request));

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = (size_t)sizes[i];

		for (int r = 0; r < ranks; r++) {
			fill(out + (size_t)r * LARGEST, rank, r, n, i);
			MPI_Irecv(in + (size_t)r * LARGEST, sizes[i], MPI_BYTE, r, (int)i,
				  MPI_COMM_WORLD, &request[2 * r]);
			MPI_Isend(out + (size_t)r * LARGEST, sizes[i], MPI_BYTE, r, (int)i,
				  MPI_COMM_WORLD, &request[2 * r + 1]);
		}
		MPI_Waitall(2 * ranks, request, MPI_STATUSES_IGNORE);
		for (int r = 0; r < ranks; r++)
			check(in + (size_t)r * LARGEST, r, rank, n, i);
	}
	free(out);
	free(in);
	free(request);
}

static void collectives(void)
{
	int64_t mine[COUNTS], sum[COUNTS];
	int *to = memory((size_t)ranks * sizeof(int)), *from = memory((size_t)ranks * sizeof(int));
	uint8_t *bytes = memory(LARGEST);

	for (int i = 0; i < COUNTS; i++)
		mine[i] = (int64_t)rank * i + i;
	MPI_Allreduce(mine, sum, COUNTS, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; i < COUNTS; i++)
		CHECK(sum[i] == (int64_t)ranks * (ranks - 1) / 2 * i + (int64_t)ranks * i);
	for (int root = 0; root < ranks; root++) {
		if (rank == root)
			fill(bytes, root, 0, LARGEST, 99);
		MPI_Bcast(bytes, LARGEST, MPI_BYTE, root, MPI_COMM_WORLD);
		check(bytes, root, 0, LARGEST, 99);
	}
	for (int r = 0; r < ranks; r++)
		to[r] = rank * 1000 + r;
	MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 0; r < ranks; r++)
		CHECK(from[r] == r * 1000 + rank);
	MPI_Barrier(MPI_COMM_WORLD);
	free(to);
	free(from);
	free(bytes);
}

/* Everyone puts into the next one's window, reads it back, and counts in the first one's. */
static void one_sided(void)
{
	int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
	size_t half = LARGEST / 2;
	uint8_t *base, *out = memory(half), *back = memory(half);
	int64_t one = 1, old, *counter, total = 0;
	MPI_Win win;

	MPI_Win_allocate(LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	counter = (int64_t *)(void *)(base + LARGEST - 8);
	*counter = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	fill(out, rank, next, half, 5);
	MPI_Put(out, (int)half, MPI_BYTE, next, 0, (int)half, MPI_BYTE, win);
	MPI_Win_flush(next, win);
	MPI_Get(back, (int)half, MPI_BYTE, next, 0, (int)half, MPI_BYTE, win);
	MPI_Win_flush(next, win);
	CHECK(!memcmp(out, back, half));
	for (int i = 0; i < COUNTS; i++) {
		MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, LARGEST - 8, MPI_SUM, win);
		MPI_Win_flush(0, win);
		CHECK(old >= i && old < (int64_t)ranks * COUNTS);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Get(&total, 1, MPI_INT64_T, 0, LARGEST - 8, 1, MPI_INT64_T, win);
	MPI_Win_flush(0, win);
	CHECK(total == (int64_t)ranks * COUNTS);
	MPI_Win_sync(win);
	check(base, previous, rank, half, 5);
	MPI_Win_unlock_all(win);
	MPI_Win_free(&win);
	free(out);
	free(back);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	messages();
	collectives();
	if (argc < 2 || strcmp(argv[1], "two-sided"))
		one_sided();
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("mpi_data: %d ranks, all as it has to be\n", ranks);
	MPI_Finalize();
	return 0;
}
