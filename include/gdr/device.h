/* SPDX-License-Identifier: BSD-3-Clause */
/* Device API: what the threads of a kernel call, and host threads of the host
 * device. Declarations and contracts; the bodies, which need not be read, are
 * inline in gdr/impl/.
 *
 * dst or src at a PE: the caller's own address of a symmetric object (gdr_malloc);
 * the same object of that PE is meant. Local memory is any address the thread can
 * use; through the NIC it must be in the heap or in a buffer given to
 * gdr_buffer_register, except the source of a put of up to 28 bytes, which may be
 * anywhere. Sizes are bytes in untyped functions, elements in typed ones.
 *
 * Functions return 0 or -GDR_E* (gdr/status.h) as soon as they know; those that
 * return a value return 0 on failure and latch the status: gdr_status(), and the
 * next quiet. An error of a queue is reported by every later operation and quiet
 * that uses it. Nothing waits longer than GDR_TIMEOUT (and 0.5 s to tell the
 * other PEs; below 3 s finding out who is to blame may take 2 s).
 *
 * Scopes: no suffix: the calling thread alone. _warp, _block: all threads of
 * the warp or block call with equal arguments, and all get the status.
 *
 * With GDR_CHECKED defined before inclusion every call validates its arguments,
 * and a refusal (-GDR_EINVAL) is recorded with the caller's file and line. */
#ifndef GDR_DEVICE_H
#define GDR_DEVICE_H

#include <gdr/coll.h>
#include <gdr/host.h>
#include <gdr/macros.h>
#include <gdr/simt.h>
#include <gdr/status.h>
#include <gdr/team.h>
#include <gdr/types.h>

/* ---- who ---- */

GDR_DEVICE int gdr_my_pe(void); /* -GDR_ESTATE before gdr_init */
GDR_DEVICE int gdr_n_pes(void);
/* Address at which ptr's object of PE pe can be accessed with loads and stores; NULL when
 * it is reached through the NIC only, or when ptr or pe is out of range. */
GDR_DEVICE void *gdr_ptr(const void *ptr, int pe);

/* ---- put and get ----
 *
 * put returns when src may be reused; the data arrives by the next quiet or
 * barrier, and in order only with respect to fences. get returns when dst has
 * the data. _nbi forms return at once: src and dst belong to the operation until the
 * next quiet. len 0 does nothing. */
#define GDRI_DECLARE_RMA(suffix)                                                                   \
	GDR_DEVICE int gdr_put##suffix(void *dst, const void *src, size_t len, int pe);            \
	GDR_DEVICE int gdr_put_nbi##suffix(void *dst, const void *src, size_t len, int pe);        \
	GDR_DEVICE int gdr_get##suffix(void *dst, const void *src, size_t len, int pe);            \
	GDR_DEVICE int gdr_get_nbi##suffix(void *dst, const void *src, size_t len, int pe);
GDRI_DECLARE_RMA()
GDRI_DECLARE_RMA(_warp)
GDRI_DECLARE_RMA(_block)

/* gdr_<T>_put, _get, _nbi, _warp, _block: the same with elements of T; gdr_<T>_p(dst, value,
 * pe): put of one value, whose bytes arrive together when dst is aligned; gdr_<T>_g(src, pe). */
#define GDRI_DECLARE_RMA_TYPED(name, T, suffix)                                                    \
	GDR_DEVICE int gdr_##name##_put##suffix(T *dst, const T *src, size_t nelems, int pe);      \
	GDR_DEVICE int gdr_##name##_put_nbi##suffix(T *dst, const T *src, size_t nelems, int pe);  \
	GDR_DEVICE int gdr_##name##_get##suffix(T *dst, const T *src, size_t nelems, int pe);      \
	GDR_DEVICE int gdr_##name##_get_nbi##suffix(T *dst, const T *src, size_t nelems, int pe);
#define GDRI_DECLARE_RMA_TYPE(name, T)                                                             \
	GDRI_DECLARE_RMA_TYPED(name, T, )                                                          \
	GDRI_DECLARE_RMA_TYPED(name, T, _warp)                                                     \
	GDRI_DECLARE_RMA_TYPED(name, T, _block)                                                    \
	GDR_DEVICE int gdr_##name##_p(T *dst, T value, int pe);                                    \
	GDR_DEVICE T gdr_##name##_g(const T *src, int pe);
GDR_RMA_TYPES(GDRI_DECLARE_RMA_TYPE)

/* ---- signals ----
 *
 * put_signal: the signal word of the same PE is set, or added to, after the data is there
 * for whoever sees it by a wait. Signals are 8-byte aligned words of the heap. */
enum { GDR_SIGNAL_SET = 0, GDR_SIGNAL_ADD = 1 };
enum {
	GDR_CMP_EQ = 0,
	GDR_CMP_NE = 1,
	GDR_CMP_GT = 2,
	GDR_CMP_GE = 3,
	GDR_CMP_LT = 4,
	GDR_CMP_LE = 5,
};

#define GDRI_DECLARE_PUT_SIGNAL(suffix)                                                            \
	GDR_DEVICE int gdr_put_signal##suffix(void *dst, const void *src, size_t len,              \
					      uint64_t *sig, uint64_t value, int op, int pe);      \
	GDR_DEVICE int gdr_put_signal_nbi##suffix(void *dst, const void *src, size_t len,          \
						  uint64_t *sig, uint64_t value, int op, int pe);
GDRI_DECLARE_PUT_SIGNAL()
GDRI_DECLARE_PUT_SIGNAL(_warp)
GDRI_DECLARE_PUT_SIGNAL(_block)

/* The word alone: what it shall stand for needs a gdr_fence before it. */
GDR_DEVICE int gdr_signal_op(uint64_t *sig, uint64_t value, int op, int pe);
/* Own signal word; what was put before it is visible. */
GDR_DEVICE uint64_t gdr_signal_fetch(const uint64_t *sig);
GDR_DEVICE int gdr_signal_wait_until(const uint64_t *sig, int cmp, uint64_t value);
/* The same, knowing that PE pe will send it: its loss ends the wait at once. */
GDR_DEVICE int gdr_signal_wait_until_from(const uint64_t *sig, int cmp, uint64_t value, int pe);

/* ---- atomics: gdr_<A>_atomic_<op> ----
 *
 * Atomic to each other, to ADD signals and (fetch and set) to accesses of the same kind,
 * not to p, put or plain stores. Those without result are complete by the next quiet. */
#define GDRI_DECLARE_AMO(name, T)                                                                  \
	GDR_DEVICE int gdr_##name##_atomic_set(T *dst, T value, int pe);                           \
	GDR_DEVICE int gdr_##name##_atomic_inc(T *dst, int pe);                                    \
	GDR_DEVICE int gdr_##name##_atomic_add(T *dst, T value, int pe);                           \
	GDR_DEVICE int gdr_##name##_atomic_and(T *dst, T value, int pe);                           \
	GDR_DEVICE int gdr_##name##_atomic_or(T *dst, T value, int pe);                            \
	GDR_DEVICE int gdr_##name##_atomic_xor(T *dst, T value, int pe);                           \
	GDR_DEVICE T gdr_##name##_atomic_fetch(const T *src, int pe);                              \
	GDR_DEVICE T gdr_##name##_atomic_fetch_inc(T *dst, int pe);                                \
	GDR_DEVICE T gdr_##name##_atomic_fetch_add(T *dst, T value, int pe);                       \
	GDR_DEVICE T gdr_##name##_atomic_fetch_and(T *dst, T value, int pe);                       \
	GDR_DEVICE T gdr_##name##_atomic_fetch_or(T *dst, T value, int pe);                        \
	GDR_DEVICE T gdr_##name##_atomic_fetch_xor(T *dst, T value, int pe);                       \
	GDR_DEVICE T gdr_##name##_atomic_swap(T *dst, T value, int pe);                            \
	GDR_DEVICE T gdr_##name##_atomic_compare_swap(T *dst, T cond, T value, int pe);
GDR_AMO_TYPES(GDRI_DECLARE_AMO)

/* ---- waits on own memory that others put to ---- */

#define GDRI_DECLARE_WAIT(name, T)                                                                 \
	GDR_DEVICE int gdr_##name##_wait_until(const T *ptr, int cmp, T value);                    \
	GDR_DEVICE int gdr_##name##_test(const T *ptr, int cmp, T value); /* 0 or 1 */
GDR_AMO_TYPES(GDRI_DECLARE_WAIT)

/* ---- order ---- */

/* The calling thread's puts, signals and atomics before it arrive at each PE before
 * those after it. Gets are not ordered. */
GDR_DEVICE int gdr_fence(void);
/* Completes all operations of this PE (every thread, kernel and queue) that are ordered
 * before the call; reports and clears the latched status. _pe: those to one PE. */
GDR_DEVICE int gdr_quiet(void);
GDR_DEVICE int gdr_quiet_pe(int pe);

/* ---- collectives: one thread (warp, block) of each PE, one at a time ---- */

/* gdr_barrier_all(): quiet, then wait for all PEs; declared in gdr/host.h, also for kernels */
GDR_DEVICE int gdr_barrier_all_warp(void);
GDR_DEVICE int gdr_barrier_all_block(void);
GDR_DEVICE int gdr_sync_all(void); /* waits for all PEs; completes nothing but own stores */
GDR_DEVICE int gdr_sync_all_warp(void);
GDR_DEVICE int gdr_sync_all_block(void);

/* ---- errors ---- */

GDR_DEVICE int gdr_status(void); /* latched status or 0; stays until a quiet reports it */

#include <gdr/impl/amo.h>
#include <gdr/impl/barrier.h>
#include <gdr/impl/coll_names.h>
#include <gdr/impl/order.h>
#include <gdr/impl/rma.h>
#include <gdr/impl/signal.h>
#include <gdr/impl/wait.h>
#ifdef GDR_CHECKED
#include <gdr/impl/checked.h>
#endif

#endif
