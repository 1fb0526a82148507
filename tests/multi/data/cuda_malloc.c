/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of cudaMalloc as symmetric memory: pieces of an allocation, at another offset of it on each PE, that kernels,
 * streams and host threads reach at all PEs by the program's own address; collectives in a kernel; then it is freed.
 * So do kernels of the library that host threads and streams ask for. What is refused: memory of a pool, of the host.
 * CUDA only; without a GPU it is tests/unit/test_cuda_job.c and test_cuda_calls.c. */
#define GDR_ANY_ADDRESS
#include "tests/multi/multi.h"

#define BYTES ((size_t)4 << 20)
#define WORDS ((size_t)65536)

struct args {
	uint64_t *words, *other;
	struct multi_report *report;
	int mapped; /* the next PE is */
};

GDR_KERNEL(write_next, struct args, a)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), next = (me + 1) % n, prev = (me + n - 1) % n;

	if (!gdr_thread_id()) {
		EXPECT_EQ(a.report, gdr_ptr(a.words, next) != NULL, a.mapped);
		EXPECT_EQ(a.report, gdr_ptr(a.words, me) == (a.mapped ? a.words : NULL), 1);
		EXPECT_OK(a.report, gdr_uint64_p(a.words, 100 + (uint64_t)me, next));
		EXPECT_OK(a.report, gdr_uint64_atomic_add(a.words + WORDS - 1, 3, next));
		EXPECT_OK(a.report, gdr_put_signal(a.other, a.words + 64, 256, a.other + 64, 7, GDR_SIGNAL_SET, next));
		EXPECT_OK(a.report, gdr_signal_wait_until(a.other + 64, GDR_CMP_EQ, 7));
	}
	EXPECT_OK(a.report, gdr_barrier_all_block());
	EXPECT_EQ(a.report, a.words[0], 100 + prev);
	EXPECT_EQ(a.report, a.words[WORDS - 1], 3);
	EXPECT_EQ(a.report, a.other[31], 1000 * prev + 95);
	EXPECT_OK(a.report, gdr_put_block(a.words + 1024, a.words, 4096, next));
	EXPECT_OK(a.report, gdr_barrier_all_block());
	EXPECT_EQ(a.report, a.words[1024], 100 + (prev + n - 1) % n);
	EXPECT_EQ(a.report, a.words[1024 + 64], 1000 * prev + 64);
	EXPECT_OK(a.report, gdr_uint64_get_block(a.words + 2048, a.words + 64, 64, next));
	EXPECT_EQ(a.report, a.words[2048 + 63], 1000 * next + 127);
	EXPECT_OK(a.report, gdr_uint64_sum_reduce_block(GDR_TEAM_WORLD, a.words + 4096, a.words + 64, 64));
	EXPECT_EQ(a.report, a.words[4096], 64 * n + 1000 * (n * (n - 1) / 2));
	EXPECT_OK(a.report, gdr_barrier_all_block());
}

static void fill(uint64_t *own)
{
	static uint64_t from[128];
	int i;

	for (i = 0; i < 128; i++)
		from[i] = (uint64_t)(1000 * multi_pe + i);
	CHECK(cudaMemset(own, 0, WORDS * 8) == cudaSuccess);
	CHECK(cudaMemcpy(own, from, sizeof(from), cudaMemcpyHostToDevice) == cudaSuccess);
	CHECK(cudaDeviceSynchronize() == cudaSuccess);
}

static void use(uint64_t *words, uint64_t *other)
{
	int next = (multi_pe + 1) % multi_n, prev = (multi_pe + multi_n - 1) % multi_n;
	struct args a = {words, other, multi_report_new(), gdr_host_ptr(words, next) != NULL};
	uint64_t v = 7 + (uint64_t)multi_pe, got = 0;
	gdr_stream_t stream;

	fill(words);
	fill(other);
	CHECK_OK(gdr_barrier_all());
	RUN(write_next, 1, 64, &a);
	CHECK_OK(gdr_host_put(words + 2, &v, sizeof(v), next));
	CHECK_OK(gdr_barrier_all());
	CHECK(cudaMemcpy(&got, words + 2, sizeof(got), cudaMemcpyDeviceToHost) == cudaSuccess);
	CHECK_EQ(got, 7 + prev);
	CHECK_OK(gdr_host_get(&got, words + 2, sizeof(got), next));
	CHECK_EQ(got, 7 + multi_pe);
	if (a.mapped) {
		CHECK_OK(gdr_stream_create(&stream));
		CHECK_OK(gdr_put_on_stream(words + 8192, words + 2, 8, next, stream));
		CHECK_OK(gdr_barrier_all_on_stream(stream));
		CHECK_OK(gdr_stream_sync(stream));
		CHECK_OK(gdr_stream_destroy(stream));
		CHECK_OK(gdr_host_get(&got, words + 8192, sizeof(got), multi_pe));
		CHECK_EQ(got, 7 + (prev + multi_n - 1) % multi_n);
	}
	CHECK_OK(gdr_barrier_all());
	multi_shared_free(a.report);
}

#define MOST (WORDS / 4) /* of a vector */

/* Sums of a member's `k` words: of 8 bytes, or floats in half of them. */
static void sums(uint64_t *dst, uint64_t *src, size_t k, gdr_stream_t stream)
{
	static uint64_t words[MOST];
	static float floats[2 * MOST];
	size_t i;

	for (i = 0; i < k; i++)
		words[i] = 1000 * (uint64_t)multi_pe + i;
	CHECK(cudaMemcpy(src, words, k * 8, cudaMemcpyHostToDevice) == cudaSuccess);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_uint64_sum_reduce_on_stream(GDR_TEAM_WORLD, dst, src, k, stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK(cudaMemcpy(words, dst, k * 8, cudaMemcpyDeviceToHost) == cudaSuccess);
	for (i = 0; i < k; i++)
		CHECK_EQ(words[i], (uint64_t)multi_n * i + 500 * (uint64_t)(multi_n * (multi_n - 1)));
	for (i = 0; i < 2 * k; i++)
		floats[i] = (float)(multi_pe + (int)(i % 1000));
	CHECK(cudaMemcpy(src, floats, k * 8, cudaMemcpyHostToDevice) == cudaSuccess);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_float_sum_reduce(GDR_TEAM_WORLD, (float *)dst, (float *)src, 2 * k));
	CHECK(cudaMemcpy(floats, dst, k * 8, cudaMemcpyDeviceToHost) == cudaSuccess);
	for (i = 0; i < 2 * k; i++)
		CHECK_EQ((int)floats[i], multi_n * (multi_n - 1) / 2 + multi_n * (int)(i % 1000));
}

/* Kernels of the library: at once and on a stream, of few bytes and of many. dst and src: of MOST words. */
static void called(uint64_t *dst, uint64_t *src)
{
	int next = (multi_pe + 1) % multi_n, prev = (multi_pe + multi_n - 1) % multi_n, root = multi_n - 1;
	static const size_t lens[] = {1, 100, 1001, MOST};
	uint64_t got[4] = {0, 0, 0, 0};
	gdr_stream_t stream;
	size_t i;

	CHECK_OK(gdr_stream_create(&stream));
	for (i = 0; i < sizeof(lens) / sizeof(*lens); i++) {
		sums(dst, src, lens[i], stream);
		fill(src);
		CHECK_OK(gdr_uint64_broadcast_on_stream(GDR_TEAM_WORLD, dst, src, lens[i], root, stream));
		CHECK_OK(gdr_uint64_fcollect_on_stream(GDR_TEAM_WORLD, dst + MOST, src, lens[i] / (size_t)multi_n,
						       stream));
		CHECK_OK(gdr_stream_sync(stream));
		CHECK_OK(gdr_barrier_all());
		CHECK_OK(gdr_host_get(got, dst, 8, next));
		CHECK_EQ(got[0], 1000 * root);
		if (lens[i] < (size_t)multi_n)
			continue;
		CHECK_OK(gdr_host_get(got, dst + MOST + lens[i] / (size_t)multi_n * (size_t)next, 8, prev));
		CHECK_EQ(got[0], 1000 * next);
	}
	CHECK_OK(gdr_barrier_all());
	CHECK(cudaMemset(dst, 0, 64) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_put_signal_on_stream(dst, src + 5, 8, dst + 1, 3, GDR_SIGNAL_ADD, next, stream));
	CHECK_OK(gdr_signal_wait_until_on_stream(dst + 1, GDR_CMP_EQ, 3, stream));
	CHECK_OK(gdr_uint64_iput_on_stream(dst + 2, src + 7, 1, 2, 2, next, stream));
	CHECK_OK(gdr_barrier_all_on_stream(stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK_OK(gdr_host_get(got, dst, sizeof(got), multi_pe));
	CHECK_EQ(got[0], 1000 * prev + 5);
	CHECK_EQ(got[1], 3);
	CHECK_EQ(got[2], 1000 * prev + 7);
	CHECK_EQ(got[3], 1000 * prev + 9);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_uint64_atomic_fetch_add(dst + 1, 4, next), 3);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_uint64_g(dst + 1, next), 7);
	CHECK_OK(gdr_stream_destroy(stream));
	CHECK_OK(gdr_barrier_all());
}

static void refuse(void)
{
	void *pooled, *host = NULL;

	CHECK(cudaMallocAsync(&pooled, BYTES, 0) == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess);
	CHECK(!gdr_symmetric_register(pooled, BYTES));
	CHECK_EQ(gdr_host_status(), -GDR_ENOTSUP);
	CHECK(cudaFreeAsync(pooled, 0) == cudaSuccess);
	CHECK(cudaMallocHost(&host, BYTES) == cudaSuccess);
	CHECK(!gdr_symmetric_register(host, BYTES));
	CHECK_EQ(gdr_host_status(), -GDR_ENOTSUP);
	CHECK(cudaFreeHost(host) == cudaSuccess);
}

/* On both sides of what is used, more of them than the first tables of the library have room for. */
static uint8_t *piece(uint8_t *all, int i)
{
	return i < 3 ? all + 16 * i : all + BYTES - 64 * (size_t)i;
}

int main(void)
{
	uint64_t *words, *other;
	uint8_t *all;
	int round, i;

	multi_begin();
	for (round = 0; round < 3; round++) {
		CHECK(cudaMalloc((void **)&all, BYTES) == cudaSuccess);
		words = (uint64_t *)(all + 48 + 4096 * (size_t)multi_pe);
		other = (uint64_t *)(all + BYTES / 2 + 256 * (size_t)multi_pe);
		CHECK(gdr_symmetric_register(words, WORDS * 8) == words);
		CHECK(gdr_symmetric_register(other, WORDS * 8) == other);
		for (i = 0; i < 40 && round == 1; i++)
			CHECK(gdr_symmetric_register(piece(all, i), 16) == piece(all, i));
		use(words, other);
		called(words, words + WORDS / 2);
		called(other, words);
		for (i = 0; i < 40 && round == 1; i++)
			CHECK_OK(gdr_symmetric_unregister(piece(all, i)));
		CHECK_OK(gdr_symmetric_unregister(words));
		CHECK_EQ(gdr_host_put(words, &round, 4, multi_pe), -GDR_EINVAL);
		if (round == 2)
			break;
		CHECK_OK(gdr_symmetric_unregister(other));
		CHECK(cudaFree(all) == cudaSuccess);
	}
	refuse();
	CHECK_OK(gdr_finalize()); /* with one there */
	CHECK(cudaFree(all) == cudaSuccess);
	return 0;
}
