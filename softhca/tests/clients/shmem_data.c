/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenSHMEM program that checks what it receives: puts, gets, atomics and collectives between all
 * PEs. It knows nothing of softhca. */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "PE %d, line %d: %s\n", me, __LINE__, #condition);         \
			shmem_global_exit(1);                                                      \
		}                                                                                  \
	} while (0)

#define LARGEST (1 << 20)
#define COUNTS 300

static int me, pes;
static uint8_t out[LARGEST], back[LARGEST];

static uint8_t byte_of(int from, int to, size_t at)
{
	return (uint8_t)(at * 131 + at / 251 + (unsigned)from * 17 + (unsigned)to * 29);
}

static void check(const uint8_t *buf, int from, int to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		CHECK(buf[i] == byte_of(from, to, i));
}

/* Everyone writes to the next one and reads it back. */
static void transfers(uint8_t *heap)
{
	static const size_t sizes[] = {1, 2, 8, 100, 4096, 65537, LARGEST};
	int next = (me + 1) % pes, previous = (me + pes - 1) % pes;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = sizes[i];

		for (size_t at = 0; at < n; at++)
			out[at] = byte_of(me, next, at);
		shmem_putmem(heap, out, n, next);
		shmem_quiet();
		shmem_getmem(back, heap, n, next);
		CHECK(!memcmp(out, back, n));
		shmem_barrier_all();
		check(heap, previous, me, n);
		shmem_barrier_all();
	}
}

static void atomics(long *counter, long *flag)
{
	long old;

	for (int i = 0; i < COUNTS; i++) {
		old = shmem_long_atomic_fetch_inc(counter, 0);
		CHECK(old >= i && old < (long)pes * COUNTS);
	}
	shmem_barrier_all();
	CHECK(shmem_long_atomic_fetch(counter, 0) == (long)pes * COUNTS);
	/* Round the ring: each waits for its predecessor's word. */
	if (me == 0)
		shmem_long_p(flag, 1, 1 % pes);
	shmem_long_wait_until(flag, SHMEM_CMP_NE, 0);
	CHECK(*flag == (me == 0 ? pes : me));
	if (me)
		shmem_long_p(flag, me + 1, (me + 1) % pes);
	shmem_barrier_all();
	old = shmem_long_atomic_compare_swap(flag, me == 0 ? pes : me, 77, me);
	CHECK(old == (me == 0 ? pes : me) && *(volatile long *)flag == 77);
	CHECK(shmem_long_atomic_swap(flag, 78, me) == 77);
}

int main(void)
{
	uint8_t *heap;
	long *words;

	shmem_init();
	me = shmem_my_pe();
	pes = shmem_n_pes();
	heap = shmem_malloc(LARGEST);
	words = shmem_malloc(2 * sizeof(*words));
	CHECK(heap && words);
	memset(words, 0, 2 * sizeof(*words));
	shmem_barrier_all();
	transfers(heap);
	atomics(words, words + 1);
	shmem_barrier_all();
	if (me == 0)
		printf("shmem_data: %d PEs, all as it has to be\n", pes);
	shmem_finalize();
	return 0;
}
