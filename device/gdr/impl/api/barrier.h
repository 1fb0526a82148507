/* SPDX-License-Identifier: BSD-3-Clause */
/* Bodies of barrier_all and sync_all. Where there are no queues and few PEs each
 * tells all the others and hears of all (gdri_ctl.flat): one round. Else
 * dissemination over the words gdri_ctl.barrier: in round k a PE tells the one 2^k
 * above it and hears of the one 2^k below; after ceil(log2 n) rounds it has heard of
 * all. Epochs only grow, so a partner that is one barrier ahead does no harm. Where nodes have
 * several PEs, the first of each does that, when its node's have told it (gdri_ctl.flat), and tells them. */
#ifndef GDRI_BARRIER_H
#define GDRI_BARRIER_H

#include <gdr/impl/api/order.h>
#include <gdr/impl/api/wait.h>
#if !GDRI_LINKED /* else they are in the library */
#include <gdr/impl/coll/levels.h>

GDRI_NOINLINE int gdri_sync_hear(struct gdri_dev *dev, int pe, const uint64_t *word, uint64_t epoch,
				 uint32_t op)
{
	struct gdri_waiter w;
	int ret;

	GDRI_BY_ABI(gdri_sync_hear);
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
GDR_DEVICE uint64_t gdri_sync_epoch(struct gdri_dev *dev)
{
	/* pairs with nothing: one caller at a time, each ordered behind the one before by the program */
	uint64_t epoch = gdri_ld_relaxed_gpu_u64(&dev->barrier_epoch) + 1;

	gdri_st_relaxed_gpu_u64(&dev->barrier_epoch, epoch);
	return epoch;
}

/* All PEs go on: what one of them was blamed for is over. */
GDR_DEVICE void gdri_sync_over(struct gdri_dev *dev, uint32_t failed)
{
	if (gdri_unlikely(failed))
		gdri_tell_recovered(dev);
}

/* Always by the queue of slot 0, whichever block calls: an epoch that came later than its successor would overwrite the
 * successor. */
GDR_DEVICE int gdri_sync_tell(struct gdri_dev *dev, int pe, uint64_t *word, uint64_t epoch)
{
	return gdri_coll_tell(dev, pe, 0, word, epoch);
}

/* The PEs of the world's nodes, if they are to be told apart here. */
GDR_DEVICE const struct gdri_team *gdri_sync_nodes(const struct gdri_dev *dev)
{
	const struct gdri_team *t = dev->n_teams ? dev->teams : 0; /* GDR_TEAM_WORLD is 0 */

	return t && t->nodes && t->most <= (int)GDRI_FLAT_MAX &&
			       t->algo[GDRI_K_SYNC][0] == GDRI_A_SINGLE_LEADER ? t : 0;
}

/* How many take part in it. */
GDR_DEVICE int gdri_sync_n(const struct gdri_dev *dev, const struct gdri_team *t)
{
	return t ? t->nodes : gdri_k(dev, n_pes);
}

/* The PE that stands so far above this one in the circle. */
GDRI_NOINLINE int gdri_sync_partner(const struct gdri_dev *dev, const struct gdri_team *t, int above)
{
	int n = gdri_sync_n(dev, t), at = (t ? t->node : gdri_k(dev, pe)) + above;

	at = at < 0 ? at + n : at < n ? at : at - n;
	return t ? gdri_node_member(t, at, 0) : at;
}

/* Dissemination among all PEs, or (t) the first ones of the nodes. */
GDRI_NOINLINE int gdri_sync_round(struct gdri_dev *dev, const struct gdri_team *t, uint64_t epoch,
				  uint32_t op)
{
	int round, ret = 0;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (round = 0; 1 << round < gdri_sync_n(dev, t) && !ret; round++) {
		ret = gdri_sync_tell(dev, gdri_sync_partner(dev, t, 1 << round), &gdri_k(dev, ctl)->barrier[round],
				     epoch);
		if (!ret)
			ret = gdri_sync_hear(dev, gdri_sync_partner(dev, t, -(1 << round)),
					     &gdri_k(dev, ctl)->barrier[round], epoch, op);
	}
	return ret;
}

/* Within the own node, before its first one goes on: it hears of the others, which hear of the end by it. */
GDRI_NOINLINE int gdri_sync_gather(struct gdri_dev *dev, const struct gdri_team *t, uint64_t epoch, uint32_t op)
{
	uint64_t *flat = gdri_k(dev, ctl)->flat;
	int i, ret = 0;

	GDRI_DEV_CONSTANT(dev);
	if (t->local) {
		ret = gdri_sync_tell(dev, gdri_node_member(t, t->node, 0), &flat[t->local], epoch);
		return ret ? ret : gdri_sync_hear(dev, gdri_node_member(t, t->node, 0), &flat[0], epoch, op);
	}
	GDRI_NOT_UNROLLED
	for (i = 1; i < gdri_node_size(t, t->node) && !ret; i++)
		ret = gdri_sync_hear(dev, gdri_node_member(t, t->node, i), &flat[i], epoch, op);
	return ret;
}

/* ... and behind that, by the first one. */
GDRI_NOINLINE int gdri_sync_release(struct gdri_dev *dev, const struct gdri_team *t, uint64_t epoch)
{
	int i, ret = 0;

	GDRI_DEV_CONSTANT(dev);
	GDRI_NOT_UNROLLED
	for (i = 1; i < gdri_node_size(t, t->node) && !ret; i++)
		ret = gdri_sync_tell(dev, gdri_node_member(t, t->node, i), &gdri_k(dev, ctl)->flat[0], epoch);
	return ret;
}

/* One behind the other, none on another one's frame. */
GDR_DEVICE int gdri_sync_steps(struct gdri_dev *dev, const struct gdri_team *t, uint64_t epoch, uint32_t op)
{
	int ret = t ? gdri_sync_gather(dev, t, epoch, op) : 0;

	if (ret || (t && t->local))
		return ret;
	ret = gdri_sync_round(dev, t, epoch, op);
	return ret || !t ? ret : gdri_sync_release(dev, t, epoch);
}

/* Behind a fence of the caller's: its stores pair with the acquire of who hears. */
GDRI_FRAMELESS int gdri_sync_rounds(struct gdri_dev *dev, uint64_t epoch, uint32_t op)
{
	int ret = gdri_sync_steps(dev, gdri_sync_nodes(dev), epoch, op);

	GDRI_DEV_CONSTANT(dev);
	if (ret) /* where a queue took no word; a wait has told */
		return gdri_broken_set(dev, -1, op, ret, -1);
	gdri_sync_over(dev, gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed));
	return gdri_k(dev, n_pes) > 1 ? gdri_wait_flush(dev, op) : 0;
}

GDRI_NOINLINE int gdri_sync_all(struct gdri_dev *dev)
{
	uint64_t epoch = gdri_sync_epoch(dev);
	int ret = gdri_broken(dev, -1, GDRI_SYNC);

	GDRI_BY_ABI(gdri_sync_all);
	if (ret)
		return ret;
	/* the stores of the threads that this one speaks for; pairs with the acquire in gdri_sync_hear
	 * of the PEs that are told */
	gdri_fence_sys();
	return gdri_sync_rounds(dev, epoch, GDRI_SYNC);
}

/* After an error of an operation the barrier still takes place, so that it does
 * not become everybody's; not when the wait itself was given up. What was latched before says nothing of this one. */
GDRI_NOINLINE int gdri_barrier_all(struct gdri_dev *dev)
{
	uint64_t epoch = gdri_sync_epoch(dev);
	int ret = gdri_broken(dev, -1, GDRI_BARRIER), latched, quiet;

	GDRI_BY_ABI(gdri_barrier_all);
	if (ret)
		return ret;
	latched = (int)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->latched); /* alone: pairs with nothing */
	if (gdri_unlikely(latched))
		latched = gdri_take_latched(dev);
	quiet = gdri_quiet(dev, 0, -1);
	if (quiet == -GDR_ETIMEOUT || quiet == -GDR_EPEERLOST || quiet == -GDR_EABORTED)
		return gdri_broken_set(dev, -1, GDRI_BARRIER, quiet, -1);
	gdri_fence_sys();
	ret = gdri_sync_rounds(dev, epoch, GDRI_BARRIER);
	return ret ? ret : quiet ? quiet : latched; /* a broken one says from now on what it says here */
}

/* This PE's word at the one that stands `behind` places behind it in the circle. */
GDR_DEVICE uint64_t *gdri_flat_word(int n, int me, int behind)
{
	int pe = me + behind;

	return (uint64_t *)gdri_direct_at(&gdri_k(gdri_dev(), ctl)->flat[me], pe < n ? pe : pe - n);
}

/* Tells all but the next PE. Of one or two the addresses are found at once: a loop looks at the constants for each.
 * Behind a fence of the caller's, with which the stores pair with the acquire fence of who hears. */
GDR_DEVICE void gdri_flat_tell(int n, int me, uint64_t epoch)
{
	uint64_t *second = gdri_flat_word(n, me, 2), *third = gdri_flat_word(n, me, 3);

	gdri_st_fenced_u64(second, epoch);
	if (n > 3)
		gdri_st_fenced_u64(third, epoch);
	GDRI_NOT_UNROLLED
	for (int i = 4; i < n; i++)
		gdri_st_fenced_u64(gdri_flat_word(n, me, i), epoch);
}

/* Looks for a while whether all have told; the caller's fence makes that acquires. */
GDR_DEVICE int gdri_flat_spin(const uint64_t *flat, const uint64_t *from, int n, int me, uint64_t epoch)
{
	return n > 2 ? gdri_spin_all(flat, 1, n, me, epoch) : gdri_spin(from, 8, 0, GDR_CMP_GE, epoch);
}

GDRI_NOINLINE int gdri_flat_hear(struct gdri_dev *dev, uint64_t epoch, uint32_t op)
{
	int n = gdri_k(dev, n_pes), me = gdri_k(dev, pe), pe, ret = 0;

	GDRI_BY_ABI(gdri_flat_hear);
	for (pe = 0; pe < n && !ret; pe++)
		if (pe != me)
			ret = gdri_sync_hear(dev, pe, &gdri_k(dev, ctl)->flat[pe], epoch, op);
	return ret;
}

/* With something to look at before, or to say behind: a wait that was given up, a latched status. */
GDRI_NOINLINE int gdri_flat_odd(struct gdri_dev *dev, int quiet)
{
	uint32_t op = quiet ? GDRI_BARRIER : GDRI_SYNC;
	int n = gdri_k(dev, n_pes), me = gdri_k(dev, pe), behind, ret = gdri_broken(dev, -1, op);
	uint64_t epoch;

	GDRI_BY_ABI(gdri_flat_odd);
	GDRI_DEV_CONSTANT(dev);
	if (ret)
		return ret;
	epoch = gdri_sync_epoch(dev);
	gdri_fence_sys(); /* as in gdri_barrier_flat */
	GDRI_NOT_UNROLLED
	for (behind = 1; behind < n; behind++)
		gdri_st_fenced_u64(gdri_flat_word(n, me, behind), epoch);
	ret = gdri_flat_hear(dev, epoch, op);
	if (ret)
		return ret;
	gdri_tell_recovered(dev);
	return quiet ? gdri_take_latched(dev) : 0;
}

/* All mapped, and few: each tells all, one round. The loads stand before the fence, whose time hides theirs, and the
 * first address, since all between fence and flag is the call's time. Of two PEs there is one word each way; one
 * PE tells itself. */
GDR_DEVICE int gdri_barrier_flat(struct gdri_dev *dev, int quiet)
{
	uint32_t failed = gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed);
	uint32_t latched = quiet ? gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->latched) : 0;
	uint64_t epoch = gdri_ld_relaxed_gpu_u64(&dev->barrier_epoch) + 1;
	struct gdri_ctl *ctl = gdri_k(dev, ctl);
	/* the half that is never 0: as in gdri_broken */
	uint32_t broken = gdri_ld_relaxed_sys_u32((const uint32_t *)&ctl->broken);
	int n = gdri_k(dev, n_pes), me = gdri_k(dev, pe), next = me + 1 < n ? me + 1 : 0, ret;
	uint64_t *to = gdri_flat_word(n, me, 1), *from = &ctl->flat[next];

	GDRI_FOUND(to);
	GDRI_FOUND(from);
	/* what this thread and those that it speaks for stored; pairs with the acquire fence below */
	gdri_release_to_all(quiet);
	if (gdri_unlikely(failed | latched | broken))
		return gdri_flat_odd(dev, quiet);
	gdri_st_fenced_u64(to, epoch);
	if (n > 2)
		gdri_flat_tell(n, me, epoch);
	gdri_st_relaxed_gpu_u64(&dev->barrier_epoch, epoch);
	if (gdri_unlikely(!gdri_flat_spin(ctl->flat, from, n, me, epoch))) {
		ret = gdri_flat_hear(dev, epoch, quiet ? GDRI_BARRIER : GDRI_SYNC);
		if (gdri_unlikely(ret))
			return ret;
	}
	gdri_fence_acquire_sys();
	return 0;
}

GDR_DEVICE int gdri_barrier_thread(struct gdri_dev *dev, int quiet)
{
	if (gdri_direct() && gdri_k(dev, n_pes) <= GDRI_FLAT_MAX)
		return gdri_barrier_flat(dev, quiet);
	return quiet ? gdri_barrier_all(dev) : gdri_sync_all(dev);
}

GDR_DEVICE int gdri_barrier_scope(int scope, int quiet)
{
	struct gdri_dev *dev = gdri_dev();
	int ret = 0;

	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope))
		ret = gdri_barrier_thread(dev, quiet);
	return gdri_scope_bcast(scope, ret);
}
#endif

GDR_DEVICE int gdri_thread_barrier_all(void)
{
	return gdri_barrier_scope(GDRI_THREAD, 1);
}

#define GDRI_BARRIER_FN(member, name, scope, quiet, host)                                          \
	member int name(void)                                                                      \
	{                                                                                          \
		GDRI_NEED_LIBRARY(name)                                                            \
		return GDRI_PICK_##scope(gdri_barrier_scope(scope, quiet), host);                  \
	}
GDRI_BARRIER_FN(GDR_DEVICE, gdr_barrier_all_warp, GDRI_WARP, 1, )
GDRI_BARRIER_FN(GDR_DEVICE, gdr_barrier_all_block, GDRI_BLOCK, 1, )
GDRI_BARRIER_FN(GDRI_MEMBER_GDRI_THREAD, gdr_sync_all, GDRI_THREAD, 0, gdri_submit_sync(GDRI_RQ_SYNC_ALL, 0, GDRI_NOW))
GDRI_BARRIER_FN(GDR_DEVICE, gdr_sync_all_warp, GDRI_WARP, 0, )
GDRI_BARRIER_FN(GDR_DEVICE, gdr_sync_all_block, GDRI_BLOCK, 0, )

/* The library has a host function of this name. On the host device that one is
 * called by kernels too; it is gdri_thread_barrier_all. Under CUDA: */
#ifdef __CUDACC_RTC__
#define gdr_barrier_all() gdri_thread_barrier_all()
#elif defined(__CUDACC__)
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

#ifdef GDR_CHECKED
/* The default context is everybody's: its owner counts these calls. */
GDR_DEVICE int gdri_check_barrier(const struct gdri_site *at)
{
	int ret = gdri_check_threads(at, 0, 0, 0, -1);

	return ret || !gdri_dev() ? ret : gdri_check_alone(at, &gdri_ctx_at(gdri_dev(), GDR_CTX_DEFAULT)->owner);
}

GDR_DEVICE int gdri_barrier_over(const struct gdri_site *at, int ret)
{
	if (gdri_dev())
		gdri_alone_over(at, &gdri_ctx_at(gdri_dev(), GDR_CTX_DEFAULT)->owner);
	return ret;
}

#define GDRI_CHECKED_BARRIER(member, name, scope, op)                                              \
	member int gdri_at_##name(const char *file, uint32_t line)                                 \
	{                                                                                          \
		struct gdri_site at = {file, line, op, scope};                                     \
		int bad = GDRI_PICK_##scope(gdri_check_barrier(&at), 0);                           \
                                                                                                   \
		(void)at;                                                                          \
		return bad ? bad : GDRI_PICK_##scope(gdri_barrier_over(&at, name()), name());      \
	}
GDRI_CHECKED_BARRIER(GDRI_MEMBER_GDRI_THREAD, gdr_barrier_all, GDRI_THREAD, GDRI_BARRIER)
GDRI_CHECKED_BARRIER(GDR_DEVICE, gdr_barrier_all_warp, GDRI_WARP, GDRI_BARRIER)
GDRI_CHECKED_BARRIER(GDR_DEVICE, gdr_barrier_all_block, GDRI_BLOCK, GDRI_BARRIER)
GDRI_CHECKED_BARRIER(GDRI_MEMBER_GDRI_THREAD, gdr_sync_all, GDRI_THREAD, GDRI_SYNC)
GDRI_CHECKED_BARRIER(GDR_DEVICE, gdr_sync_all_warp, GDRI_WARP, GDRI_SYNC)
GDRI_CHECKED_BARRIER(GDR_DEVICE, gdr_sync_all_block, GDRI_BLOCK, GDRI_SYNC)
#undef gdr_barrier_all
#define gdr_barrier_all() gdri_at_gdr_barrier_all(__FILE__, __LINE__)
#define gdr_barrier_all_warp() gdri_at_gdr_barrier_all_warp(__FILE__, __LINE__)
#define gdr_barrier_all_block() gdri_at_gdr_barrier_all_block(__FILE__, __LINE__)
#define gdr_sync_all() gdri_at_gdr_sync_all(__FILE__, __LINE__)
#define gdr_sync_all_warp() gdri_at_gdr_sync_all_warp(__FILE__, __LINE__)
#define gdr_sync_all_block() gdri_at_gdr_sync_all_block(__FILE__, __LINE__)
#endif

#endif
