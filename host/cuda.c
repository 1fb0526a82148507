// SPDX-License-Identifier: BSD-3-Clause
#include "host/cuda.h"

#include "host/host.h"
#include "runtime/agree.h"
#include "runtime/clock.h"
#include "runtime/cuda.h"
#include "runtime/cuda_state.h"
#include "runtime/log.h"

bool gdri_host_cuda(void)
{
	const struct gdri_state *st = gdri_state_get();

	return st && st->cuda;
}

/* Address here of bytes of a PE's heap; NULL, with the reason logged, when there is none. */
static void *mapped(const char *call, const void *ptr, size_t len, int pe)
{
	struct gdri_state *st = gdri_state_get();
	uint64_t offset = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap.base);

	if (pe < 0 || pe >= st->n_pes) {
		gdri_error("%s: there is no PE %d, the job has %d", call, pe, st->n_pes);
	} else if (offset >= st->heap.size || len > st->heap.size - offset) {
		gdri_error("%s: %p with %zu bytes is not in the symmetric heap", call, ptr, len);
	} else if (!st->peers[pe].base) {
		gdri_error("%s: the memory of PE %d is not mapped here", call, pe);
	} else {
		return st->peers[pe].base + offset;
	}
	return NULL;
}

int gdri_cuda_put(void *dst, const void *src, size_t len, int pe)
{
	struct gdri_state *st = gdri_state_get();
	void *to = mapped("gdr_host_put", dst, len, pe);

	return to ? gdri_cuda_copy(st->cuda, to, src, len, (int)st->opt.timeout_ms) : -GDR_EINVAL;
}

int gdri_cuda_get(void *dst, const void *src, size_t len, int pe)
{
	struct gdri_state *st = gdri_state_get();
	const void *from = mapped("gdr_host_get", src, len, pe);

	return from ? gdri_cuda_copy(st->cuda, dst, from, len, (int)st->opt.timeout_ms) : -GDR_EINVAL;
}

/* Copies are complete when they return: what remains is what was latched. */
int gdri_cuda_quiet(void)
{
	struct gdri_state *st = gdri_state_get();
	int ret = gdri_cuda_state_pull(st), latched = st->dev->latched;

	if (ret || !latched)
		return ret;
	st->dev->latched = 0;
	ret = gdri_cuda_state_push(st, &st->dev->latched);
	return ret ? ret : latched;
}

/* Completes what kernels did that have ended; those that run are not waited for. */
int gdri_cuda_barrier_all(void)
{
	struct gdri_state *st = gdri_state_get();
	int status = gdri_cuda_quiet(), ret;

	pthread_mutex_lock(&st->lock);
	if (st->broken) {
		gdri_error("gdr_barrier_all: an earlier collective call expired; finalize and start anew");
		ret = -GDR_ESTATE;
	} else {
		st->deadline_ns = gdri_deadline_ns(st->opt.timeout_ms);
		ret = gdri_agree(st, "barrier", NULL, NULL, 0);
		st->broken = ret == -GDR_ETIMEOUT || ret == -GDR_EBOOTSTRAP;
	}
	pthread_mutex_unlock(&st->lock);
	return ret ? ret : status;
}
