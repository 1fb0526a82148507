/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs for NVSHMEM do with its names in files of host code that a C++ compiler compiles. */
#include <nvshmem_host.h>
#include <nvshmemx_error.h>
#include <host/nvshmem_api.h>
#include <host/nvshmem_coll_api.h>
#include <host/nvshmem_macros.h>
#include <host/nvshmemx_api.h>
#include <host/nvshmemx_coll_api.h>
#include <bootstrap_device_host/nvshmem_uniqueid.h>
#include <device_host/nvshmem_common.cuh>
#include <device_host/nvshmem_types.h>
#include <device_host_transport/nvshmem_constants.h>
#include <non_abi/nvshmem_build_options.h>
#include <non_abi/nvshmem_version.h>
#include <non_abi/nvshmemx_error.h>

#include <functional>
#include <memory>

extern "C" void nvshmem_init(void); /* declared once more */

/* Work arrays of older reductions have a length. */
static_assert(NVSHMEMI_REDUCE_SYNC_SIZE > 0 && NVSHMEMI_REDUCE_MIN_WRKDATA_SIZE > 0, "no length");

namespace own {
void nvshmemx_cumodule_init(uintptr_t module)
{
	(void)::nvshmemx_cumodule_init(reinterpret_cast<CUmod_st *>(module));
}
struct heap {
	void *nvshmem_malloc(size_t size)
	{
		return ::nvshmem_malloc(size);
	}
	void nvshmem_free(void *ptr)
	{
		return ::nvshmem_free(ptr);
	}
};
} // namespace own

int main()
{
	std::unique_ptr<void, void (*)(void *)> memory(nullptr, &nvshmem_free);
	std::function<void(void *)> give_back = nvshmem_free;
	nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER;
	own::heap heap;
	int me, n, wrong = 0, *word, outside = 0;
	float *sum;
	uint64_t *sig;

	(void)nvshmemx_set_attr_uniqueid_args(0, 1, &id, &attr);
	own::nvshmemx_cumodule_init(0); /* before init: refused */
	::nvshmem_init();
	me = nvshmem_my_pe();
	n = nvshmem_n_pes();
	memory.reset(heap.nvshmem_malloc(64));
	word = static_cast<int *>(nvshmem_calloc(2 * (size_t)n, sizeof(int)));
	sum = static_cast<float *>(nvshmem_calloc(2, sizeof(float)));
	sig = static_cast<uint64_t *>(nvshmem_calloc(1, sizeof(uint64_t)));
	if (!memory || !word || !sum || !sig)
		return 1;

	/* Collectives of a host thread. */
	sum[1] = (float)(me + 1);
	wrong |= nvshmem_float_sum_reduce(NVSHMEM_TEAM_WORLD, sum, sum + 1, 1) || sum[0] != (float)(n * (n + 1) / 2);
	word[0] = me;
	wrong |= nvshmem_fcollectmem(NVSHMEM_TEAM_WORLD, word + n, word, sizeof(int)) || word[2 * n - 1] != n - 1;
	wrong |= nvshmem_barrier(NVSHMEM_TEAM_WORLD) || nvshmem_team_sync(NVSHMEM_TEAM_WORLD);

	/* Inside the heap, to oneself too: the address. Outside: NULL. */
	wrong |= nvshmem_ptr(word, me) != word || nvshmem_ptr(&outside, me) || nvshmem_ptr(&outside, (me + 1) % n);
	wrong |= nvshmem_ptr(word, n) != nullptr;
	nvshmem_barrier_all();
	nvshmem_int_p(word, 7, (me + 1) % n);
	nvshmem_barrier_all();
	wrong |= *word != 7 || nvshmem_int_g(word, me) != 7;

	nvshmemx_uint64_signal(sig, 7, (me + 1) % n); /* a store: it has no operation */
	nvshmem_barrier_all();
	wrong |= *sig != 7;

	/* A value below zero is no status. */
	nvshmem_int_atomic_set(word, -5, me);
	nvshmem_quiet();
	wrong |= nvshmem_int_atomic_fetch(word, me) != -5 || nvshmem_int_g(word, me) != -5 || gdr_host_status();

	nvshmem_barrier_all();
	heap.nvshmem_free(sum);
	heap.nvshmem_free(sig);
	give_back(word);
	memory.reset();
	nvshmem_finalize();
	return wrong;
}
