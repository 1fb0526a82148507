/* SPDX-License-Identifier: BSD-3-Clause */
/* A heap that grows: objects of several parts are symmetric, kernels and host threads reach them on every PE, what
 * was there before keeps its contents and its address, and it ends at GDR_HEAP_MAX.
 * usage: grow [many]: more often than sets of keys are kept, with puts under way. */
#include <pthread.h>

#include "tests/multi/multi.h"

#define MIB ((size_t)1 << 20)
#define N (3 * MIB / sizeof(uint64_t)) /* words of an object: more than half a chunk */
#define OBJECTS 5
#define PLACE(k, pe) ((N / 64) * (size_t)(k) + (size_t)(pe))

struct args {
	uint64_t *object[OBJECTS];
	int n_pes;
};

/* Each PE writes one word of every object of all others, at places all over it. */
GDR_KERNEL(write_all, struct args, a)
{
	int me = gdr_my_pe();

	for (int k = (int)gdr_block_id(); k < OBJECTS; k += (int)gdr_grid_size())
		for (int pe = 0; pe < a.n_pes; pe++) {
			gdr_uint64_p(a.object[k] + PLACE(k, me), (uint64_t)(1000 * k + me + 1), pe);
			gdr_uint64_atomic_add(a.object[k] + N - 128, (uint64_t)me + 1, pe);
		}
	gdr_quiet();
}

struct pour {
	uint64_t *words;
	int n_pes;
	uint64_t value;
	struct multi_report *report;
};

/* Ends with operations under way. */
GDR_KERNEL(pour, struct pour, a)
{
	for (int i = 0; i < 100; i++)
		for (int pe = 0; pe < a.n_pes; pe++)
			EXPECT_OK(a.report, gdr_uint64_p(a.words + gdr_my_pe(), a.value, pe));
}

static int many(void)
{
	struct gdr_heap_info info;
	size_t size = 0;
	struct pour a;

	setenv("GDR_HEAP_SIZE", "8m", 1);
	setenv("GDR_HEAP_MAX", "512m", 1);
	setenv("GDR_HEAP_CHUNK", "2m", 1);
	multi_begin();
	a.n_pes = multi_n;
	a.report = multi_report_new();
	a.words = (uint64_t *)gdr_calloc((size_t)multi_n, sizeof(uint64_t));
	CHECK(a.words);
	for (int grown = 0; grown < 27;) {
		uint64_t *p, v;

		a.value = v = (uint64_t)grown + 1;
		RUN(pour, 1, 1, &a);
		p = (uint64_t *)gdr_malloc(MIB + MIB / 2);
		CHECK(p);
		for (int pe = 0; pe < multi_n; pe++)
			CHECK_OK(gdr_host_put(p + multi_pe, &v, sizeof(v), pe));
		CHECK_OK(gdr_barrier_all());
		for (int pe = 0; pe < multi_n; pe++) {
			CHECK_EQ(multi_u64(p + pe), v);
			CHECK_EQ(multi_u64(a.words + pe), v);
		}
		CHECK_OK(gdr_barrier_all());
		CHECK_OK(gdr_heap_query(&info));
		grown += info.size != size;
		size = info.size;
	}
	multi_shared_free(a.report);
	return multi_end("grow");
}

static int stop; /* relaxed: nothing else is told by it */

/* Another thread looks addresses up meanwhile. */
static void *look_up(void *object)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		CHECK(gdr_host_ptr(object, multi_pe) == object);
		CHECK(!gdr_host_ptr(&stop, multi_pe));
		multi_sleep_us(100);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct gdr_heap_info before, after;
	struct gdr_job_info job;
	struct args a;
	uint64_t *first, *back, *rest;
	pthread_t looker;

	if (argc > 1 && !strcmp(argv[1], "many"))
		return many();
	setenv("GDR_HEAP_SIZE", "8m", 1);
	setenv("GDR_HEAP_MAX", "40m", 1);
	setenv("GDR_HEAP_CHUNK", "4m", 1);
	multi_begin();
	a.n_pes = multi_n;
	CHECK_OK(gdr_heap_query(&before));
	first = (uint64_t *)gdr_calloc(16, sizeof(*first));
	back = (uint64_t *)gdr_calloc(1, sizeof(*back));
	CHECK(first && back);
	CHECK(!pthread_create(&looker, NULL, look_up, first));
	for (int i = 0; i < 3; i++) { /* given back, it is used again, not grown again */
		for (int k = 0; k < OBJECTS; k++) {
			a.object[k] = (uint64_t *)gdr_calloc(N, sizeof(uint64_t));
			CHECK(a.object[k]);
		}
		if (!i) {
			CHECK_OK(gdr_heap_query(&after));
			CHECK(after.size > before.size);
		}
		CHECK_OK(gdr_launch(write_all, 2, 1, 0, 0, &a));
		CHECK_OK(gdr_stream_sync(0));
		CHECK_OK(gdr_barrier_all());
		for (int k = 0; k < OBJECTS; k++)
			for (int pe = 0; pe < multi_n; pe++)
				CHECK_EQ(multi_u64(a.object[k] + PLACE(k, pe)), 1000 * k + pe + 1);
		for (int k = 0; k < OBJECTS; k++)
			CHECK_EQ(multi_u64(a.object[k] + N - 128), multi_n * (multi_n + 1) / 2);
		for (int pe = 0; pe < multi_n; pe++) { /* host threads, at the very end of an object */
			uint64_t v = 77 + (uint64_t)multi_pe;

			CHECK_OK(gdr_host_put(a.object[OBJECTS - 1] + N - 64 + multi_pe, &v, sizeof(v), pe));
			CHECK_OK(gdr_host_get(back, a.object[OBJECTS - 1] + N - 64 + multi_pe, sizeof(v), pe));
			CHECK_EQ(multi_u64(back), v);
		}
		CHECK_OK(gdr_barrier_all());
		for (int k = 0; k < OBJECTS; k++)
			CHECK_OK(gdr_free(a.object[k]));
		CHECK_OK(gdr_heap_query(&before));
		CHECK_EQ(before.size, after.size);
	}
	for (int i = 0; i < 16; i++)
		CHECK_EQ(multi_u64(first + i), 0);
	for (int i = 0; i < 3; i++) { /* through parts: what it holds goes with it */
		a.object[0] = (uint64_t *)gdr_realloc(i ? a.object[0] : NULL, (size_t)(2 * i + 1) * MIB);
		CHECK(a.object[0]);
		for (int k = 0; k < i; k++)
			CHECK_EQ(multi_u64(a.object[0] + 1000 * k), 100 * multi_pe + k);
		multi_set_u64(a.object[0] + 1000 * i, 100 * (uint64_t)multi_pe + (uint64_t)i);
	}
	CHECK_OK(gdr_free(a.object[0]));
	CHECK(!gdr_malloc(33 * MIB)); /* says why, and goes on */
	CHECK_EQ(gdr_host_status(), -GDR_ENOMEM);
	CHECK_OK(gdr_query(&job));
	rest = (uint64_t *)gdr_malloc(40 * MIB - job.heap_size); /* all that is left */
	CHECK(rest);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	CHECK(!pthread_join(looker, NULL));
	CHECK_OK(gdr_free(rest));
	CHECK_OK(gdr_free(first));
	CHECK_OK(gdr_free(back));
	return multi_end("grow");
}
