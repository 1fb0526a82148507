/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: a queue of PEs (after Mellor-Crummey and Scott). A lock is a symmetric `long`, two words on
 * each PE. The low one holds, on the PE that owns the lock (a function of its address), the last PE of the
 * queue. The high one is the PE's place in the queue: a PE waits on its own memory, for the PE before
 * it, so that the chain of waits leads to the one that holds the lock.
 *
 * Threads of one PE take turns (HELD) before they queue. All accesses are the PE's own atomics, by
 * whatever path they go in this job. */
#ifndef GDRI_LOCK_H
#define GDRI_LOCK_H

#include <gdr/impl/api/amo.h>
#include <gdr/impl/api/order.h>

#if !GDRI_LINKED /* else they are in the library */
#define GDRI_LOCK_NEXT 0xffffu /* 1 + the PE that queued behind this one */
#define GDRI_LOCK_WAITS 0x10000u
#define GDRI_LOCK_HELD 0x20000u

GDR_DEVICE uint32_t *gdri_lock_tail(long *lock)
{
	return (uint32_t *)lock;
}

GDR_DEVICE uint32_t *gdri_lock_node(long *lock)
{
	return (uint32_t *)lock + 1;
}

GDR_DEVICE int gdri_lock_owner(const struct gdri_dev *dev, const long *lock)
{
	return (int)(gdri_heap_offset(dev, lock) / sizeof(long) % (uint32_t)gdri_k(dev, n_pes));
}

/* Until the bits of the own place are as wanted (all or none of `mask`); *seen: the place. */
GDR_DEVICE int gdri_lock_look(struct gdri_dev *dev, struct gdri_waiter *w, const uint32_t *node,
			      uint32_t mask, int set, uint32_t *seen)
{
	int ret;

	for (;;) {
		/* acquire: pairs with the atomic of who changes it, which came after its quiet */
		*seen = gdri_ld_acquire_sys_u32(node);
		if (!!(*seen & mask) == set)
			return 0;
		ret = gdri_wait_step(dev, w);
		if (gdri_unlikely(ret))
			return ret;
	}
}

GDRI_NOINLINE int gdri_lock_wait(struct gdri_dev *dev, const uint32_t *node, uint32_t mask, int set,
				 int peer, uint32_t *seen)
{
	struct gdri_waiter w;
	int ret;

	gdri_wait_begin(&w, GDRI_LOCK, peer, gdri_heap_offset(dev, node));
	ret = gdri_lock_look(dev, &w, node, mask, set, seen);
	if (!ret)
		gdri_wait_end(dev, &w);
	return ret;
}

/* The PE's turn among its own threads: 1 got it, 0 another one has it, < 0 failed. */
GDR_DEVICE int gdri_lock_turn(struct gdri_dev *dev, long *lock, uint32_t bits)
{
	uint64_t old;
	int ret = gdri_atomic_of(GDRI_AMO_CSWAP, 4, gdri_lock_node(lock), GDRI_LOCK_HELD | bits, 0,
				 gdri_k(dev, pe), 0, &old);

	return ret ? ret : !old;
}

/* Waits for it, once in all: others may take each turn that this thread sees. */
GDRI_NOINLINE int gdri_lock_own_turn(struct gdri_dev *dev, long *lock)
{
	uint32_t *node = gdri_lock_node(lock), seen;
	struct gdri_waiter w;
	int ret;

	GDRI_DEV_CONSTANT(dev);
	gdri_wait_begin(&w, GDRI_LOCK, gdri_k(dev, pe), gdri_heap_offset(dev, node));
	while (!(ret = gdri_lock_turn(dev, lock, GDRI_LOCK_WAITS))) {
		ret = gdri_wait_step(dev, &w);
		if (!ret)
			ret = gdri_lock_look(dev, &w, node, ~0u, 0, &seen);
		if (ret)
			return ret;
	}
	if (ret < 0)
		gdri_wait_leave(dev, &w);
	else
		gdri_wait_end(dev, &w);
	return ret < 0 ? ret : 0;
}

GDRI_NOINLINE int gdri_lock_set(long *lock)
{
	struct gdri_dev *dev = gdri_dev();
	uint32_t *node = gdri_lock_node(lock), seen;
	uint64_t before, old;
	int me, ret;

	GDRI_BY_ABI(gdri_lock_set);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	me = gdri_k(dev, pe);
	ret = gdri_lock_own_turn(dev, lock);
	if (ret)
		return ret;
	ret = gdri_atomic_of(GDRI_AMO_SWAP, 4, gdri_lock_tail(lock), (uint64_t)me + 1, 0,
			     gdri_lock_owner(dev, lock), 0, &before);
	if (ret)
		return ret;
	if (before) { /* whoever is there hands over by taking WAITS away */
		ret = gdri_atomic_of(GDRI_AMO_OR, 4, node, (uint64_t)me + 1, 0, (int)before - 1, 0,
				     &old);
		if (!ret)
			ret = gdri_lock_wait(dev, node, GDRI_LOCK_WAITS, 0, (int)before - 1, &seen);
		if (!ret)
			ret = gdri_wait_flush(dev, GDRI_LOCK);
	} else {
		ret = gdri_atomic_of(GDRI_AMO_AND, 4, node, ~(uint64_t)GDRI_LOCK_WAITS, 0, me, 0, &old);
	}
	gdri_fence_sys(); /* acquire: pairs with the quiet of the PE before */
	return ret;
}

/* 0 taken, 1 not, < 0 failed. */
GDRI_NOINLINE int gdri_lock_test(long *lock)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t tail, old;
	int ret;

	GDRI_BY_ABI(gdri_lock_test);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	ret = gdri_lock_turn(dev, lock, 0);
	if (ret <= 0)
		return ret ? ret : 1;
	ret = gdri_atomic_of(GDRI_AMO_CSWAP, 4, gdri_lock_tail(lock), (uint64_t)gdri_k(dev, pe) + 1,
			     0, gdri_lock_owner(dev, lock), 0, &tail);
	if (!ret && !tail) {
		gdri_fence_sys(); /* acquire: pairs with the quiet of the last holder */
		return 0;
	}
	if (!ret) /* nobody can have queued behind this PE */
		ret = gdri_atomic_of(GDRI_AMO_AND, 4, gdri_lock_node(lock), 0, 0, gdri_k(dev, pe), 0,
				     &old);
	return ret ? ret : 1;
}

GDRI_NOINLINE int gdri_lock_clear(long *lock)
{
	struct gdri_dev *dev = gdri_dev();
	uint32_t *node = gdri_lock_node(lock), seen;
	uint64_t tail, old;
	int me, ret, status;

	GDRI_BY_ABI(gdri_lock_clear);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	me = gdri_k(dev, pe);
	/* relaxed: who took it, or the thread behind whom it was taken, is this PE's, and has seen the atomic done */
	seen = gdri_ld_relaxed_sys_u32(node);
	if (gdri_unlikely((seen & (GDRI_LOCK_HELD | GDRI_LOCK_WAITS)) != GDRI_LOCK_HELD))
		return gdri_error_arg(dev, GDRI_LOCK, -1, lock, 0, GDRI_ARG_OTHER);
	status = gdri_quiet(dev, 0, -1); /* what was done under the lock, before the lock is free */
	ret = gdri_atomic_of(GDRI_AMO_CSWAP, 4, gdri_lock_tail(lock), 0, (uint64_t)me + 1,
			     gdri_lock_owner(dev, lock), 0, &tail);
	seen = 0;
	/* somebody queued behind, and is about to say who */
	if (!ret && tail != (uint64_t)me + 1)
		ret = gdri_lock_wait(dev, node, GDRI_LOCK_NEXT, 1, tail ? (int)tail - 1 : -1, &seen);
	/* before the hand-over: the own threads may queue again from here on */
	if (!ret)
		ret = gdri_atomic_of(GDRI_AMO_AND, 4, node, 0, 0, me, 0, &old);
	if (!ret && seen)
		ret = gdri_atomic_of(GDRI_AMO_AND, 4, node, ~(uint64_t)GDRI_LOCK_WAITS, 0,
				     (int)(seen & GDRI_LOCK_NEXT) - 1, 0, &old);
	return ret ? ret : status;
}
#endif

GDRI_SINGLE
GDRI_FN(int, GDRI_PLAIN(set_lock), (long *lock), (GDRI_CALLED(GDRI_LOCK, SET_LOCK), GDRI_THREAD),
	gdri_check_wait(&at, GDRI_WORD, lock, 8, GDR_CMP_EQ), gdri_lock_set(lock))
GDRI_FN(int, GDRI_PLAIN(test_lock), (long *lock), (GDRI_CALLED(GDRI_LOCK, TEST_LOCK), GDRI_THREAD),
	gdri_check_wait(&at, GDRI_WORD, lock, 8, GDR_CMP_EQ), gdri_lock_test(lock))
GDRI_FN(int, GDRI_PLAIN(clear_lock), (long *lock), (GDRI_CALLED(GDRI_LOCK, CLEAR_LOCK), GDRI_THREAD),
	gdri_check_wait(&at, GDRI_WORD, lock, 8, GDR_CMP_EQ), gdri_lock_clear(lock))

#endif
