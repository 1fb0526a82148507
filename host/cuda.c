// SPDX-License-Identifier: BSD-3-Clause

#include "host/host.h"
#include "runtime/core/range.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/diag/fault.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/window.h"
#include "runtime/path/ctx.h"
#include "runtime/path/hostq.h"

bool gdri_host_cuda(void)
{
	const struct gdri_state *st = gdri_state_get();

	return st && st->cuda;
}

/* The arguments are checked (rma.c). */
int gdri_cuda_put(void *dst, const void *src, size_t len, int pe)
{
	struct gdri_state *st = gdri_state_get();

	if (!len)
		return 0;
	if (st->peers[pe].base)
		return gdri_host_failed(st, gdri_cuda_copy_out(st->cuda, gdri_window_at(st, dst, pe), src, len,
							       (int)st->opt.timeout_ms));
	return gdri_host_failed(st, gdri_hostq_put(st, gdri_window_offset(st, dst), src, len, pe));
}

int gdri_cuda_get(void *dst, const void *src, size_t len, int pe)
{
	struct gdri_state *st = gdri_state_get();

	if (!len)
		return 0;
	if (st->peers[pe].base)
		return gdri_host_failed(st, gdri_cuda_copy_in(st->cuda, dst, gdri_window_at(st, src, pe), len,
							      (int)st->opt.timeout_ms));
	return gdri_host_failed(st, gdri_hostq_get(st, dst, gdri_window_offset(st, src), len, pe));
}

/* Copies are complete when they return: what remains is what kernels posted to n queues, and what was
 * latched. */
static int cuda_quiet(struct gdri_state *st, size_t first, size_t n)
{
	int status = gdri_cuda_queues_quiet(st, first, n, (int)st->opt.timeout_ms);
	int ret = gdri_host_failed(st, gdri_cuda_state_pull(st));
	/* relaxed: the status carries no data with it, and other threads look, too */
	int latched = __atomic_load_n(&st->dev->latched, __ATOMIC_RELAXED);

	gdri_host_failed(st, status);
	if (status)
		gdri_fault_tell(st); /* before the caller meets the others */
	else
		status = gdri_fault_heard_of(st);
	if (ret || !latched)
		return ret ? ret : status ? status : gdri_lost_any(st);
	__atomic_store_n(&st->dev->latched, gdri_lost_any(st), __ATOMIC_RELAXED); /* carries no data with it */
	ret = gdri_cuda_state_push(st, &st->dev->latched);
	return ret ? ret : status ? status : latched;
}

int gdri_cuda_quiet(void)
{
	struct gdri_state *st = gdri_state_get();

	return cuda_quiet(st, 0, (size_t)st->n_pes * st->dev->n_slots);
}

int gdri_cuda_ctx_quiet(gdr_ctx_t ctx)
{
	struct gdri_state *st = gdri_state_get();
	size_t first, n;

	if (ctx == GDR_CTX_DEFAULT)
		return gdri_cuda_quiet();
	if (ctx == GDR_CTX_INVALID)
		return 0;
	return gdri_ctx_queues(st, ctx, &first, &n) ? -GDR_EINVAL : cuda_quiet(st, first, n);
}

/* Completes what kernels did that have ended; those that run are not waited for, but for a moment those of the
 * default stream. */
int gdri_cuda_barrier_all(void)
{
	struct gdri_state *st = gdri_state_get();
	int status, ret;

	GDRI_RANGE(st, GDRI_RANGE_ORDER, "gdr_barrier_all");
	gdri_cuda_default_stream(st->cuda, 50000);
	status = gdri_cuda_quiet();

	pthread_mutex_lock(&st->lock);
	gdri_call_begin(st, "gdr_barrier_all");
	ret = gdri_heap_agree(st, GDRI_CALL_BARRIER, 0, 0);
	pthread_mutex_unlock(&st->lock);
	if (!ret && !status)
		status = gdri_fault_heard_of(st);
	return ret ? ret : status;
}
