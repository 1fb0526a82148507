/* SPDX-License-Identifier: BSD-3-Clause */
/* What the threads of one kernel do with each other beyond gdr/simt.h, in words that both worlds have: shared memory
 * whose size the source says, atomics and ordered words, fences, every kind of shuffle. Other PEs take no part: for
 * them there are the operations of gdr/device.h. A program includes this header beside gdr.h.
 *
 * z is u32, u64, i32, i64, f32 or f64, and T the type that it names. `block` stands for `grid` as well: of the word's
 * users meanwhile all are threads of the caller's block, or all are on its device.
 *
 *	GDR_SHARED float tile[32][33];	the block's, in a kernel or a function that it calls; undefined at first;
 *					48 KiB in all. gdr_shared() has what the launch asked for, beside it
 *
 *	T gdr_block_fetch_add_z(T *p, T v);	all z; returns what was there before
 *	T gdr_block_fetch_min_z(T *p, T v);	u32, u64, i32, i64; fetch_max, too
 *	T gdr_block_fetch_and_z(T *p, T v);	u32, u64; fetch_or, fetch_xor, exchange, too
 *	T gdr_block_compare_swap_z(T *p, T expected, T v);	u32, u64
 *
 *	T gdr_block_load_z(const T *p);		u32, u64. An acquire: who sees what a store gave sees what the storing
 *	void gdr_block_store_z(T *p, T v);	thread had done before. A release
 *	void gdr_threadfence_block(void);	the caller's accesses before it and behind it, for its block,
 *	void gdr_threadfence(void);		for its device
 *
 *	T gdr_shfl_z(uint32_t mask, T v, unsigned lane);	the lane's v; all lanes of mask call, with one mask
 *	T gdr_shfl_up_z(uint32_t mask, T v, unsigned delta);	of the lane so many below; without one, the caller's
 *	T gdr_shfl_down_z(uint32_t mask, T v, unsigned delta);	so many above
 *	T gdr_shfl_xor_z(uint32_t mask, T v, unsigned lanes);	of the lane whose number differs by these bits
 *
 * p is aligned to its size, in shared memory, in memory of the device (gdr_device_malloc) or in the heap. The atomics
 * order nothing, as CUDA's: a fence goes before the one that tells, and behind the one that sees. They are none beside
 * atomics of other PEs on the word. A loop that waits calls gdr_pause. None of these calls fails. */
#ifndef GDR_THREADS_H
#define GDR_THREADS_H

#include <gdr/simt.h>
#include <gdr/impl/arch/threads.h>

#endif
