/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the GPU that the program made, as part of the heap: kernels, streams, host threads and collectives reach
 * it at all PEs, the program by its own address. CUDA only; what is refused is tests/unit/test_cuda.c. */
#include <cuda.h>

#include "tests/multi/multi.h"

#define BYTES ((size_t)4 << 20)
#define WORDS (BYTES / 8)

struct args {
	uint64_t *words;
	struct multi_report *report;
	int mapped; /* the next PE is */
};

static CUdeviceptr make(void)
{
	CUmemAccessDesc access = {};
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle mem;
	CUdeviceptr at;
	CUdevice device;

	CHECK_OK(cuCtxGetDevice(&device));
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	prop.allocFlags.gpuDirectRDMACapable = 1;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = device;
	access.location = prop.location;
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	CHECK_OK(cuMemCreate(&mem, BYTES, &prop, 0));
	CHECK_OK(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	CHECK_OK(cuMemMap(at, BYTES, 0, mem, 0));
	CHECK_OK(cuMemSetAccess(at, BYTES, &access, 1));
	CHECK_OK(cuMemRelease(mem));
	CHECK_OK(cuMemsetD8(at, 0, BYTES));
	return at;
}

static void end(CUdeviceptr at)
{
	CHECK_OK(cuMemUnmap(at, BYTES));
	CHECK_OK(cuMemAddressFree(at, BYTES));
}

GDR_KERNEL(write_next, struct args, a)
{
	int me = gdr_my_pe(), next = (me + 1) % gdr_n_pes(), prev = (me + gdr_n_pes() - 1) % gdr_n_pes();

	if (!gdr_thread_id()) {
		EXPECT_EQ(a.report, gdr_ptr(a.words, next) != NULL, a.mapped);
		EXPECT_OK(a.report, gdr_uint64_p(a.words, 100 + (uint64_t)me, next));
		EXPECT_OK(a.report, gdr_uint64_atomic_add(a.words + WORDS - 1, 3, next));
	}
	EXPECT_OK(a.report, gdr_barrier_all_block());
	EXPECT_EQ(a.report, a.words[0], 100 + prev);
	EXPECT_EQ(a.report, a.words[WORDS - 1], 3);
	EXPECT_OK(a.report, gdr_put_block(a.words + 1024, a.words, 8, next));
	EXPECT_OK(a.report, gdr_barrier_all_block());
	EXPECT_EQ(a.report, a.words[1024], 100 + (prev + gdr_n_pes() - 1) % gdr_n_pes());
}

static void use(uint64_t *words, CUdeviceptr own)
{
	int next = (multi_pe + 1) % multi_n, prev = (multi_pe + multi_n - 1) % multi_n;
	struct args a = {words, multi_report_new(), gdr_host_ptr(words, next) != NULL};
	uint64_t v = 7 + (uint64_t)multi_pe, got = 0;
	gdr_stream_t stream;

	RUN(write_next, 1, 64, &a);
	CHECK_OK(gdr_host_put(words + 2, &v, sizeof(v), next));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(cuMemcpyDtoH(&got, own + 16, 8)); /* by the program's address */
	CHECK_EQ(got, 7 + prev);
	CHECK_OK(gdr_host_get(&got, words + 2, sizeof(got), next));
	CHECK_EQ(got, 7 + multi_pe);
	CHECK_OK(gdr_stream_create(&stream));
	CHECK_OK(gdr_uint64_p_on_stream(words + 3, v, next, stream));
	CHECK_OK(gdr_barrier_all_on_stream(stream));
	CHECK_OK(gdr_uint64_sum_reduce_on_stream(GDR_TEAM_WORLD, words + 65536, words + 3, 1, stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK_OK(gdr_memcpy(&got, words + 65536, sizeof(got)));
	CHECK_EQ(got, 7 * multi_n + multi_n * (multi_n - 1) / 2);
	CHECK_OK(gdr_stream_destroy(stream));
	CHECK_OK(gdr_barrier_all());
	multi_shared_free(a.report);
}

int main(void)
{
	CUdeviceptr own, second;
	struct gdr_job_info info;
	uint64_t *words, *more;
	void *plain;

	multi_begin();
	CHECK_OK(gdr_query(&info));
	own = make();
	second = make();
	words = (uint64_t *)gdr_symmetric_register((void *)own, BYTES);
	CHECK(words);
	use(words, own);
	more = (uint64_t *)gdr_symmetric_register((void *)second, BYTES);
	CHECK(more == words + WORDS);
	use(more, second);
	CHECK(cudaMalloc(&plain, BYTES) == cudaSuccess);
	CHECK(!gdr_symmetric_register(plain, BYTES)); /* this file has no GDR_ANY_ADDRESS */
	CHECK_EQ(gdr_host_status(), -GDR_ENOTSUP);
	CHECK_OK(gdr_symmetric_unregister(words));
	CHECK_EQ(gdr_host_put(words, &info, 8, multi_pe), -GDR_EINVAL);
	CHECK_OK(gdr_finalize()); /* with the second one there */
	end(own);
	end(second);
	return 0;
}
