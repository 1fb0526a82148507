/* SPDX-License-Identifier: BSD-3-Clause */
/* Many callers at once: kernels on several streams and host threads of each PE
 * put, get and count at the same time; nothing is lost or mixed up. */
#include "tests/multi/multi.h"

#include <pthread.h>

enum { STREAMS = 3, THREADS = 3, WORDS = 64, ROUNDS = 40 };

struct mt {
	uint64_t *area;	 /* [n_pes][STREAMS + THREADS][WORDS], each written by one */
	uint64_t *count; /* everybody counts on PE 0 */
	uint64_t *back;	 /* local: [STREAMS + THREADS][WORDS] */
	int stream, pe;
	struct multi_report *report;
};

GDRI_INLINE uint64_t *slot(const struct mt *a, int pe, int writer)
{
	return a->area + ((size_t)pe * (STREAMS + THREADS) + (size_t)writer) * WORDS;
}

GDR_KERNEL(work, struct mt, a)
{
	unsigned t = gdr_thread_id();
	uint64_t *mine = slot(&a, gdr_my_pe(), a.stream) + t;
	uint64_t *back = a.back + (unsigned)a.stream * WORDS + t;

	for (uint64_t k = 1; k <= ROUNDS; k++) {
		uint64_t v = k << 32 | (uint64_t)gdr_my_pe() << 16 | t;

		EXPECT_OK(a.report, gdr_fence()); /* the word is put again: the last one counts */
		EXPECT_OK(a.report, gdr_put_nbi(mine, &v, 8, a.pe));
		EXPECT_OK(a.report, gdr_uint64_atomic_inc(a.count, 0));
		if (k % 8 == 0) {
			EXPECT_OK(a.report, gdr_quiet());
			EXPECT_OK(a.report, gdr_get(back, mine, 8, a.pe));
			EXPECT_EQ(a.report, *back, v);
		}
	}
}

struct thread {
	struct mt *a;
	int writer, gpu;
	pthread_t id;
};

static void *host_work(void *arg)
{
	struct thread *t = (struct thread *)arg;
	uint64_t *mine = slot(t->a, multi_pe, t->writer), v[WORDS];
	uint64_t *back = t->a->back + t->writer * WORDS;

#ifdef __CUDACC__
	CHECK_EQ(cudaSetDevice(t->gpu), cudaSuccess); /* the threads of a program begin with the first */
#endif
	for (uint64_t k = 1; k <= ROUNDS; k++) {
		for (unsigned i = 0; i < WORDS; i++)
			v[i] = k << 32 | (uint64_t)multi_pe << 16 | i;
		for (unsigned i = 0; i < WORDS; i++)
			CHECK_OK(gdr_host_put_nbi(mine + i, v + i, 8, t->a->pe));
		CHECK_OK(gdr_host_quiet());
		for (unsigned i = 0; i < WORDS; i += 9) {
			CHECK_OK(gdr_host_get(back + i, mine + i, 8, t->a->pe));
			CHECK_EQ(multi_u64(back + i), v[i]);
		}
	}
	return NULL;
}

static void start(struct mt *a, gdr_stream_t *streams, struct thread *threads)
{
	for (int s = 0; s < STREAMS; s++) {
		a->stream = s;
		CHECK_OK(gdr_stream_create(&streams[s]));
		CHECK_OK(gdr_launch(work, 1, WORDS, 0, streams[s], a));
	}
	for (int i = 0; i < THREADS; i++) {
		threads[i].a = a;
		threads[i].writer = STREAMS + i;
#ifdef __CUDACC__
		CHECK_EQ(cudaGetDevice(&threads[i].gpu), cudaSuccess);
#endif
		CHECK_EQ(pthread_create(&threads[i].id, NULL, host_work, &threads[i]), 0);
	}
}

int main(void)
{
	gdr_stream_t streams[STREAMS];
	struct thread threads[THREADS];
	struct mt a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.area = (uint64_t *)gdr_calloc((size_t)multi_n * (STREAMS + THREADS) * WORDS, 8);
	a.count = (uint64_t *)gdr_calloc(1, 8);
	a.back = (uint64_t *)gdr_calloc((STREAMS + THREADS) * WORDS, 8);
	CHECK(a.area && a.count && a.back);
	a.pe = (multi_pe + 1) % multi_n;
	start(&a, streams, threads);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(pthread_join(threads[i].id, NULL), 0);
	for (int s = 0; s < STREAMS; s++) {
		CHECK_OK(gdr_stream_sync(streams[s]));
		CHECK_OK(gdr_stream_destroy(streams[s]));
	}
	if (a.report->line)
		multi_fail(__FILE__, a.report->line, "in kernel: %lld, not %lld", a.report->got,
			   a.report->want);
	CHECK_OK(gdr_barrier_all());
	for (int w = 0; w < STREAMS + THREADS; w++)
		for (unsigned i = 0; i < WORDS; i++) {
			uint64_t from = (uint64_t)((multi_pe + multi_n - 1) % multi_n);

			CHECK_EQ(multi_u64(slot(&a, (int)from, w) + i), (uint64_t)ROUNDS << 32 | from << 16 | i);
		}
	if (multi_pe == 0)
		CHECK_EQ(multi_u64(a.count), (uint64_t)multi_n * STREAMS * WORDS * ROUNDS);
	multi_shared_free(a.report);
	return multi_end("mt");
}
