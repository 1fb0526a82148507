/* SPDX-License-Identifier: BSD-3-Clause */
/* What host threads call and no other program does: order and completion outside of a job, kernels launched
 * together, a job of one PE made by unique id. */
#include "tests/multi/multi.h"

#include <pthread.h>

#define STATE(call) CHECK_EQ(call, -GDR_ESTATE)

/* What a fence does in a job may not show: the machine may order what nobody asked it to order; nor a wait for
 * what has come by then. */
static void outside(void)
{
	struct gdr_job_info info;

	STATE(gdr_query(&info));
	STATE(gdr_my_pe());
	STATE(gdr_n_pes());
	STATE(gdr_status());
	STATE(gdr_host_status());
	STATE(gdr_quiet_on_stream(NULL));
	STATE(gdr_barrier_all_on_stream(NULL));
	STATE(gdr_sync_all_on_stream(NULL));
	STATE(gdr_barrier_on_stream(GDR_TEAM_WORLD, NULL));
	STATE(gdr_team_sync_on_stream(GDR_TEAM_WORLD, NULL));
	CHECK_EQ(gdr_stream_destroy(NULL), -GDR_EINVAL);
	STATE(gdr_fence());
	STATE(gdr_fence_pe(0));
	STATE(gdr_quiet());
	STATE(gdr_quiet_pe(0));
	STATE(gdr_ctx_fence(GDR_CTX_DEFAULT));
	STATE(gdr_ctx_fence_pe(GDR_CTX_DEFAULT, 0));
	STATE(gdr_ctx_quiet(GDR_CTX_DEFAULT));
	STATE(gdr_ctx_quiet_pe(GDR_CTX_DEFAULT, 0));
	STATE(gdr_host_fence());
	STATE(gdr_host_quiet());
	STATE(gdr_host_ctx_fence(GDR_CTX_DEFAULT));
	STATE(gdr_host_ctx_quiet(GDR_CTX_DEFAULT));
	STATE(gdr_module_init(NULL));
	STATE(gdr_module_finalize(NULL));
}

/* Host threads of the host device, which have the names of kernels. */
static void transfers(void)
{
	uint64_t *word = (uint64_t *)gdr_calloc(8, sizeof(*word)), *own = word + 4;
	int next = (multi_pe + 1) % multi_n;

	CHECK(word);
	own[0] = 7;
	own[1] = 8;
	CHECK_OK(gdr_host_put_nbi(word, own, 16, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr_signal_set(word + 2, 5, next));
	CHECK_OK(gdr_fence());
	CHECK_OK(gdr_signal_add(word + 2, 6, next));
	CHECK_OK(gdr_signal_wait_until(word + 2, GDR_CMP_EQ, 11));
	CHECK_OK(gdr_ctx_signal_set(GDR_CTX_DEFAULT, word + 3, 6, next));
	CHECK_OK(gdr_ctx_fence(GDR_CTX_DEFAULT));
	CHECK_OK(gdr_ctx_signal_add(GDR_CTX_DEFAULT, word + 3, 7, next));
	CHECK_OK(gdr_signal_wait_until(word + 3, GDR_CMP_EQ, 13));
	CHECK_OK(gdr_barrier_all());
	own[0] = own[1] = 0;
	CHECK_OK(gdr_host_get_nbi(own, word, 16, next));
	CHECK_OK(gdr_host_quiet());
	CHECK(own[0] == 7 && own[1] == 8);
	CHECK_OK(gdr_free(word));
}

/* In any build: the library's own calls do not trust their arguments. A count of 0 does nothing. */
static void refused(void)
{
	uint64_t v = 1, *word = (uint64_t *)gdr_calloc(1, sizeof(*word));
	const gdr_ctx_t none[] = {GDR_CTX_INVALID, -2, 5, 1000000, INT32_MIN};
	const int pes[] = {-1, multi_n, INT32_MIN, INT32_MAX};

	for (size_t i = 0; i < sizeof(pes) / sizeof(pes[0]); i++) {
		CHECK_EQ(gdr_host_put(word, &v, 8, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_put_nbi(word, &v, 8, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_get(&v, word, 8, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_get_nbi(&v, word, 8, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_ctx_put(GDR_CTX_DEFAULT, word, &v, 8, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_ctx_get_nbi(GDR_CTX_DEFAULT, &v, word, 8, pes[i]), -GDR_EINVAL);
	}
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		CHECK_EQ(gdr_host_ctx_put_nbi(none[i], word, &v, 8, 0), -GDR_EINVAL);
		CHECK_EQ(gdr_host_ctx_get(none[i], &v, word, 8, 0), -GDR_EINVAL);
		CHECK_EQ(gdr_host_ctx_fence(none[i]), i ? -GDR_EINVAL : 0);
		CHECK_EQ(gdr_host_ctx_quiet(none[i]), i ? -GDR_EINVAL : 0);
	}
	CHECK_EQ(gdr_host_put(&v, &v, 8, 0), -GDR_EINVAL); /* not in the heap */
	CHECK_EQ(gdr_host_get(&v, NULL, 8, multi_n - 1), -GDR_EINVAL);
	CHECK_EQ(gdr_host_put(word, &v, SIZE_MAX, multi_n - 1), -GDR_EINVAL);
	CHECK_EQ(gdr_host_ctx_get(GDR_CTX_DEFAULT, &v, word, SIZE_MAX, multi_n - 1), -GDR_EINVAL);
	CHECK_OK(gdr_host_put(NULL, NULL, 0, multi_n - 1));
	CHECK_OK(gdr_host_get_nbi(NULL, NULL, 0, 0));
	CHECK_OK(gdr_host_quiet());
	CHECK(!*word && v == 1);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_free(word));
}

static void *allocate(void *out)
{
	*(void **)out = gdr_malloc(64);
	return NULL;
}

/* By a thread beside one that waits for the other PEs: all that is a PE's own matter. */
static void do_alone(void)
{
	static char bytes[4096];
	struct gdr_heap_object object;
	struct gdr_heap_info info;
	gdr_ctx_t ctx;
	int ret = gdr_ctx_create(0, &ctx);

	CHECK(!ret || ret == -GDR_ENOQUEUE); /* GDR_CTX_QUEUES keeps none */
	CHECK_OK(gdr_ctx_destroy(ctx));
	CHECK_OK(gdr_buffer_register(bytes, sizeof(bytes)));
	CHECK_OK(gdr_buffer_unregister(bytes));
	CHECK_OK(gdr_buffer_unregister_all());
	CHECK_OK(gdr_heap_query(&info));
	CHECK(gdr_heap_list(&object, 1) == (int)info.objects);
}

/* The others allocate when PE 0, where a thread waits for them in gdr_malloc, has told them to. */
static void meanwhile(void)
{
	uint64_t *word = (uint64_t *)gdr_calloc(1, sizeof(*word));
	void *made = NULL;
	pthread_t thread;

	CHECK(word);
	if (multi_pe == 0) {
		CHECK_EQ(pthread_create(&thread, NULL, allocate, &made), 0);
		usleep(200000);
		do_alone();
		for (int pe = 1; pe < multi_n; pe++)
			CHECK_OK(gdr_signal_set(word, 1, pe));
		CHECK_EQ(pthread_join(thread, NULL), 0);
	} else {
		CHECK_OK(gdr_signal_wait_until(word, GDR_CMP_EQ, 1));
		allocate(&made);
	}
	CHECK(made);
	CHECK_OK(gdr_free(made));
	CHECK_OK(gdr_free(word));
}

struct meet {
	uint64_t *counter;
	struct multi_report *report;
};

/* Every block waits for all of them. */
GDR_KERNEL(meet, struct meet, a)
{
	EXPECT_OK(a.report, gdr_uint64_atomic_inc(a.counter, gdr_my_pe()));
	EXPECT_OK(a.report, gdr_uint64_wait_until(a.counter, GDR_CMP_EQ, gdr_grid_size()));
}

static void together(void)
{
	struct meet a = {(uint64_t *)gdr_calloc(1, sizeof(uint64_t)), multi_report_new()};
	int grid = 0;

	CHECK(a.counter);
	CHECK_OK(gdr_collective_launch_query_gridsize(meet, 1, 0, &grid));
	CHECK(grid > 0);
	grid = grid > 4 ? 4 : grid;
	CHECK_OK(gdr_collective_launch(meet, (unsigned)grid, 1, 0, NULL, &a));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(a.report->line, 0);
	CHECK_EQ(multi_u64(a.counter), grid);
	multi_shared_free(a.report);
	CHECK_OK(gdr_free(a.counter));
}

/* Each process for itself. */
static void alone(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	gdr_uniqueid_t id = GDR_UNIQUEID_INITIALIZER;

	CHECK_OK(gdr_get_uniqueid(&id));
	attr.uniqueid = &id;
	attr.n_pes = 1;
	CHECK_OK(gdr_init_attr(&attr));
	CHECK_EQ(gdr_host_n_pes(), 1);
	CHECK_OK(gdr_finalize());
}

int main(void)
{
	outside();
	multi_begin();
	transfers();
	refused();
	meanwhile();
	together();
	if (multi_end("host"))
		return 1;
	outside();
	alone();
	return 0;
}
