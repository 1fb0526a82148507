/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of barrier_all and sync_all: dissemination over the words
 * gdri_ctl.barrier. In round k a PE tells the one 2^k above it and hears of the
 * one 2^k below; after ceil(log2 n) rounds it has heard of all. Epochs only grow,
 * so a partner that is one barrier ahead does no harm. */
#ifndef GDRI_BARRIER_H
#define GDRI_BARRIER_H

#include <gdr/impl/order.h>
#include <gdr/impl/wait.h>

/* A release store, or a WRITE behind everything earlier on its queue. */
GDR_DEVICE_COLD int gdri_sync_tell(struct gdri_dev *dev, int pe, int round, uint64_t epoch)
{
	return gdri_xfer_signal(dev, &dev->ctl->barrier[round], epoch, 0, pe);
}

GDR_DEVICE_COLD int gdri_sync_hear(struct gdri_dev *dev, int pe, int round, uint64_t epoch,
				   uint32_t op)
{
	const uint64_t *word = &dev->ctl->barrier[round];
	struct gdri_waiter w;
	int ret;

	gdri_wait_begin(&w, op, pe, gdri_heap_offset(dev, word));
	/* acquire: pairs with the partner's release, or the NIC's order */
	while (gdri_ld_acquire_sys_u64(word) < epoch) {
		ret = gdri_wait_step(dev, &w);
		if (ret)
			return ret;
	}
	gdri_wait_end(dev, &w);
	return 0;
}

/* Every call has an epoch of its own, whatever becomes of it: were one that failed early not
 * counted, this PE would take the others' arrival at it for that at its next one. */
GDR_DEVICE_COLD uint64_t gdri_sync_epoch(struct gdri_dev *dev)
{
	/* pairs with nothing: a number of its own is all that it gives */
	return gdri_add_u64(&dev->barrier_epoch, 1) + 1;
}

GDRI_NOINLINE int gdri_sync_all(struct gdri_dev *dev, uint64_t epoch, uint32_t op)
{
	int n = dev->n_pes, me = dev->pe, round, step, ret;

	/* the stores of the threads that this one speaks for; pairs with the acquire in gdri_sync_hear
	 * of the PEs that are told */
	gdri_fence_sys();
	for (round = 0, step = 1; step < n; round++, step *= 2) {
		ret = gdri_sync_tell(dev, me + step < n ? me + step : me + step - n, round, epoch);
		if (!ret)
			ret = gdri_sync_hear(dev, me >= step ? me - step : me - step + n, round,
					     epoch, op);
		if (ret)
			return ret;
	}
	/* all PEs go on: what one of them was blamed for is over */
	if (gdri_unlikely(gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed)))
		gdri_watch_recovered(dev);
	return n > 1 ? gdri_wait_flush(dev, op) : 0;
}

/* After an error of an operation the barrier still takes place, so that it does
 * not become everybody's; not when the wait itself was given up. */
GDRI_NOINLINE int gdri_barrier_all(struct gdri_dev *dev)
{
	uint64_t epoch = gdri_sync_epoch(dev);
	int quiet = gdri_quiet(dev, -1), ret;

	if (quiet == -GDR_ETIMEOUT || quiet == -GDR_EPEERLOST || quiet == -GDR_EABORTED)
		return quiet;
	ret = gdri_sync_all(dev, epoch, GDRI_BARRIER);
	return quiet ? quiet : ret;
}

GDR_DEVICE int gdri_barrier_scope(int scope, int quiet)
{
	struct gdri_dev *dev = gdri_dev();
	int ret = 0;

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope))
		ret = quiet ? gdri_barrier_all(dev)
			    : gdri_sync_all(dev, gdri_sync_epoch(dev), GDRI_SYNC);
	return gdri_scope_bcast(scope, ret);
}

GDR_DEVICE int gdri_thread_barrier_all(void)
{
	return gdri_barrier_scope(GDRI_THREAD, 1);
}

GDR_DEVICE int gdr_barrier_all_warp(void)
{
	return gdri_barrier_scope(GDRI_WARP, 1);
}

GDR_DEVICE int gdr_barrier_all_block(void)
{
	return gdri_barrier_scope(GDRI_BLOCK, 1);
}

GDR_DEVICE int gdr_sync_all(void)
{
	return gdri_barrier_scope(GDRI_THREAD, 0);
}

GDR_DEVICE int gdr_sync_all_warp(void)
{
	return gdri_barrier_scope(GDRI_WARP, 0);
}

GDR_DEVICE int gdr_sync_all_block(void)
{
	return gdri_barrier_scope(GDRI_BLOCK, 0);
}

/* The library has a host function of this name. On the host device that one is
 * called by kernels too; it is gdri_thread_barrier_all. Under CUDA: */
#ifdef __CUDACC__
static __host__ __device__ __forceinline__ int gdri_any_barrier_all(void)
{
#ifdef __CUDA_ARCH__
	return gdri_thread_barrier_all();
#else
	return gdr_barrier_all();
#endif
}
#define gdr_barrier_all() gdri_any_barrier_all()
#endif

#endif
