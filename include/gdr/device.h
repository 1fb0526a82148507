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
 * next quiet. -GDR_EINVAL for a PE that there is none of is latched, too. An error of a queue is latched when this PE
 * sees it, and reported by every later operation and quiet that uses the queue. A PE is lost when the launcher
 * reported it dead, or when a queue to it had no answer to all retries, here or at a PE that gave up a collective
 * because of it. A PE that is late, stopped, or silent for a while is not: waits for it end at their limit with
 * -GDR_ETIMEOUT and name it, and what is called when it answers again succeeds. Once a PE is lost, each quiet, fence,
 * barrier and wait that needs it returns -GDR_EPEERLOST or the error of the queue, and gdr_status() stays at
 * -GDR_EPEERLOST; accesses to mapped memory of that PE by a GPU's threads return 0, since they look at nothing. Waits
 * of the library's end at GDR_TIMEOUT (0.5 s later where other PEs are told; up to 2 s where it is below 3 s). Loops of
 * the program's own around a test, a fetch or a get do not, also when the PE is lost: let them look at gdr_status().
 *
 * Scopes: no suffix: the calling thread alone. _warp, _block: all threads of
 * the warp or block call with equal arguments, and all get the status.
 *
 * With GDR_CHECKED defined before inclusion every call validates its arguments,
 * and a refusal (-GDR_EINVAL) is recorded with the caller's file and line. On the host device so is a _warp or _block
 * call that not all threads make with equal arguments. */
#ifndef GDR_DEVICE_H
#define GDR_DEVICE_H

#include <gdr/coll.h>
#include <gdr/ctx.h>
#include <gdr/enums.h>
#include <gdr/host.h>
#include <gdr/impl/arch/ops.h>
#include <gdr/macros.h>
#include <gdr/simt.h>
#include <gdr/status.h>
#include <gdr/team.h>
#include <gdr/types.h>

#include <gdr/impl/arch/iso646_off.h>

/** @defgroup who Who
 * @{ */
/** Own number; -GDR_ESTATE before gdr_init. */
GDR_DEVICE int gdr_my_pe(void);
/** Number of PEs of the job; -GDR_ESTATE before gdr_init. */
GDR_DEVICE int gdr_n_pes(void);
/** Address at which ptr's object of PE pe can be accessed with loads and stores; NULL when
 * it is reached through the NIC only, or when ptr or pe is out of range. */
GDR_DEVICE void *gdr_ptr(const void *ptr, int pe);
/** @} */

/** @defgroup rma Put and get
 * put returns when src may be reused; the data arrives by the next quiet or barrier, and in order only
 * with respect to fences. get returns when dst has the data. _nbi forms return at once: src and dst
 * belong to the operation until the next quiet. A count of 0 does nothing. Where pe is the own PE, dst and src do
 * not overlap, unless they are equal: what arrives differs by path, and the checked build refuses it with -GDR_EINVAL.
 * @include rma.c
 * @{ */
#define GDRI_DECLARE_RMA(pre, T, z, s)                                                             \
	GDRI_PROTOTYPES(int, pre##put##z##s, (T * dst, const T *src, size_t n, int pe))            \
	GDRI_PROTOTYPES(int, pre##put##z##_nbi##s,                                                 \
		       (T * dst, const T *src, size_t n, int pe))                                  \
	GDRI_PROTOTYPES(int, pre##get##z##s, (T * dst, const T *src, size_t n, int pe))            \
	GDRI_PROTOTYPES(int, pre##get##z##_nbi##s,                                                 \
		       (T * dst, const T *src, size_t n, int pe))
#define GDRI_DECLARE_RMA_SCOPES(pre, T, z)                                                         \
	GDRI_DECLARE_RMA(pre, T, z, )                                                              \
	GDRI_DECLARE_RMA(pre, T, z, _warp)                                                         \
	GDRI_DECLARE_RMA(pre, T, z, _block)
#define GDRI_DECLARE_RMA_TYPE(name, T) GDRI_DECLARE_RMA_SCOPES(name##_, T, )
#define GDRI_DECLARE_RMA_SIZE(bits, bytes) GDRI_DECLARE_RMA_SCOPES(, void, bits)
/** n bytes between own memory and that of PE pe. @{ */
GDRI_DECLARE_RMA_SCOPES(, void, )
/** @} */
/** n elements of a type: gdr_T_{put,get}[_nbi][_warp,_block]. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_RMA_TYPE)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_RMA_TYPE)
/** @} */
/** n elements of 8 to 128 bits: gdr_{put,get}N[_nbi][_warp,_block]. @{ */
GDR_RMA_SIZES(GDRI_DECLARE_RMA_SIZE)
/** @} */

#define GDRI_DECLARE_BULK(op, s)                                                                   \
	GDRI_PROTOTYPES(int, op##_bulk##s,                                                         \
		       (void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe))  \
	GDRI_PROTOTYPES(int, op##_bulk_nbi##s,                                                     \
		       (void *dst, const void *src, size_t n, void *stage, size_t bytes, int pe))
/** put and get that may go through `bytes` of shared memory, `stage`, at any address, which belong to the call until
 * it returns (_nbi too). Between memory of GPUs (sm_90 and later) that is mapped, the bulk copy engine moves what is
 * long enough, driven by one thread; 128 KiB are of use, 512 bytes the least. A put to mapped memory whose source lies
 * in shared memory needs no stage (NULL, 0). Where the engine cannot, or would be slower (short ones; source and
 * destination that differ modulo 16; by the NIC; other hardware), they are gdr_put and gdr_get. On mapped memory _nbi
 * completes as the blocking form. @{ */
GDRI_DECLARE_BULK(put, )
GDRI_DECLARE_BULK(put, _warp)
GDRI_DECLARE_BULK(put, _block)
GDRI_DECLARE_BULK(get, )
GDRI_DECLARE_BULK(get, _warp)
GDRI_DECLARE_BULK(get, _block)
/** @} */

#define GDRI_DECLARE_SCALAR(name, T)                                                               \
	GDRI_PROTOTYPES(int, name##_p, (T * dst, T value, int pe))                                 \
	GDRI_PROTOTYPES(T, name##_g, (const T *src, int pe))
/** One value: p puts it, its bytes (up to 8) arrive together when dst is aligned; g gets it, 0 on
 * failure. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_SCALAR)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_SCALAR)
/** @} */
/** @} */

/** @defgroup strided Strided put and get
 * iput, iget: n elements, of which one lies dst (at dest) or sst (at source) elements behind the one
 * before; ibput, ibget: nblocks blocks of bsize elements each, whose beginnings lie dst and sst
 * elements apart. Strides may be negative. Completion as put and get. Where pe is the own PE, no element of dest
 * overlaps one of source, unless both and their strides are equal. Through the NIC each element, or block, is an entry
 * of the queue.
 * @include strided.c
 * @{ */
#define GDRI_DECLARE_STRIDED(pre, T, z, s)                                                         \
	GDRI_PROTOTYPES(int, pre##iput##z##s,                                                      \
		       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe)) \
	GDRI_PROTOTYPES(int, pre##iget##z##s,                                                      \
		       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe)) \
	GDRI_PROTOTYPES(int, pre##ibput##z##s,                                                     \
		       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,     \
			size_t nblocks, int pe))                                                   \
	GDRI_PROTOTYPES(int, pre##ibget##z##s,                                                     \
		       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,     \
			size_t nblocks, int pe))
#define GDRI_DECLARE_STRIDED_SCOPES(pre, T, z)                                                     \
	GDRI_DECLARE_STRIDED(pre, T, z, )                                                          \
	GDRI_DECLARE_STRIDED(pre, T, z, _warp)                                                     \
	GDRI_DECLARE_STRIDED(pre, T, z, _block)                                                    \
	GDRI_DECLARE_STRIDED(pre, T, z, _nbi)                                                      \
	GDRI_DECLARE_STRIDED(pre, T, z, _nbi_warp)                                                 \
	GDRI_DECLARE_STRIDED(pre, T, z, _nbi_block)
#define GDRI_DECLARE_STRIDED_TYPE(name, T) GDRI_DECLARE_STRIDED_SCOPES(name##_, T, )
#define GDRI_DECLARE_STRIDED_SIZE(bits, bytes) GDRI_DECLARE_STRIDED_SCOPES(, void, bits)
/** Elements of a type: gdr_T_{iput,iget,ibput,ibget}[_nbi][_warp,_block]. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_STRIDED_TYPE)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_STRIDED_TYPE)
/** @} */
/** Elements of 8 to 128 bits: gdr_{iput,iget,ibput,ibget}N[_nbi][_warp,_block]. @{ */
GDR_RMA_SIZES(GDRI_DECLARE_STRIDED_SIZE)
/** @} */
/** @} */

/** @defgroup signals Signals
 * Signals are 8-byte aligned words of the heap, set or added to by other PEs.
 * @include signals.c
 * @{ */
#define GDRI_DECLARE_PUT_SIGNAL(pre, T, z, s)                                                      \
	GDRI_PROTOTYPES(int, pre##put##z##_signal##s,                                              \
		       (T * dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op,    \
			int pe))
#define GDRI_DECLARE_PUT_SIGNALS(pre, T, z)                                                        \
	GDRI_DECLARE_PUT_SIGNAL(pre, T, z, )                                                       \
	GDRI_DECLARE_PUT_SIGNAL(pre, T, z, _warp)                                                  \
	GDRI_DECLARE_PUT_SIGNAL(pre, T, z, _block)                                                 \
	GDRI_DECLARE_PUT_SIGNAL(pre, T, z, _nbi)                                                   \
	GDRI_DECLARE_PUT_SIGNAL(pre, T, z, _nbi_warp)                                              \
	GDRI_DECLARE_PUT_SIGNAL(pre, T, z, _nbi_block)
#define GDRI_DECLARE_PUT_SIGNAL_TYPE(name, T) GDRI_DECLARE_PUT_SIGNALS(name##_, T, )
#define GDRI_DECLARE_PUT_SIGNAL_SIZE(bits, bytes) GDRI_DECLARE_PUT_SIGNALS(, void, bits)
/** put, after which the signal word of the same PE is set or added to (op): the data is there for whoever
 * sees that by a wait. n bytes. @{ */
GDRI_DECLARE_PUT_SIGNALS(, void, )
/** @} */
/** The same with elements of a type: gdr_T_put_signal[_nbi][_warp,_block]. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_PUT_SIGNAL_TYPE)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_PUT_SIGNAL_TYPE)
/** @} */
/** The same with elements of 8 to 128 bits: gdr_putN_signal[_nbi][_warp,_block]. @{ */
GDR_RMA_SIZES(GDRI_DECLARE_PUT_SIGNAL_SIZE)
/** @} */
/** The word alone: what it shall stand for needs a gdr_fence before it. @{ */
GDRI_PROTOTYPES(int, signal_op, (uint64_t * sig, uint64_t value, int op, int pe))
/** @} */
/** gdr_signal_op with GDR_SIGNAL_SET. @{ */
GDRI_PROTOTYPES(int, signal_set, (uint64_t * sig, uint64_t value, int pe))
/** @} */
/** gdr_signal_op with GDR_SIGNAL_ADD. @{ */
GDRI_PROTOTYPES(int, signal_add, (uint64_t * sig, uint64_t value, int pe))
/** @} */
/** Own signal word; what was put before it is visible. */
GDRI_PROTOTYPE(uint64_t, gdr_signal_fetch, (const uint64_t *sig))
/** Waits for the own signal word. */
GDRI_PROTOTYPE(int, gdr_signal_wait_until, (const uint64_t *sig, int cmp, uint64_t value))
/** The same, knowing that PE pe will send it: its loss ends the wait at once, and its gdr_finalize does within 0.2 s,
 * both with -GDR_EPEERLOST. There is no such PE: -GDR_EINVAL, latched too, whether or not the condition holds;
 * this form alone, on GPUs, looks first and is 0 where it holds. */
GDRI_PROTOTYPE(int, gdr_signal_wait_until_from,
	       (const uint64_t *sig, int cmp, uint64_t value, int pe))
/** No longer than limit_ns, at whose end the result is -GDR_ETIMEOUT, and no error is recorded: the same wait may be
 * called again. GDR_TIMEOUT bounds them too, and its end is one. @{ */
GDRI_PROTOTYPE(int, gdr_signal_wait_until_for, (const uint64_t *sig, int cmp, uint64_t value, uint64_t limit_ns))
GDRI_PROTOTYPE(int, gdr_signal_wait_until_from_for,
	       (const uint64_t *sig, int cmp, uint64_t value, int pe, uint64_t limit_ns))
/** @} */
/** They put the value that held to *seen, own memory, which a failure leaves as it is. A later gdr_signal_fetch may
 * find another one. @{ */
GDRI_PROTOTYPE(int, gdr_signal_wait_until_seen, (const uint64_t *sig, int cmp, uint64_t value, uint64_t *seen))
GDRI_PROTOTYPE(int, gdr_signal_wait_until_from_seen,
	       (const uint64_t *sig, int cmp, uint64_t value, int pe, uint64_t *seen))
/** @} */
/** @} */

/** @defgroup atomics Atomics
 * Atomic to each other, to ADD signals and (fetch and set) to accesses of the same kind, not to p, put
 * or plain stores. Those without result are complete by the next quiet. _nbi forms bring the old value
 * to `fetch`, own memory as the destination of a get, by the next quiet.
 * @include atomics.c
 * @{ */
#define GDRI_DECLARE_FETCH(name, T, op, params, nbi_params)                                        \
	GDRI_PROTOTYPES(T, name##_atomic_##op, params)                                             \
	GDRI_PROTOTYPES(int, name##_atomic_##op##_nbi, nbi_params)
#define GDRI_DECLARE_AMO_OP(op, kind, reduction, name, T)                                          \
	GDRI_PROTOTYPES(int, name##_atomic_##op, (T * dst, T value, int pe))                       \
	GDRI_DECLARE_FETCH(name, T, fetch_##op, (T * dst, T value, int pe),                        \
			   (T * fetch, T * dst, T value, int pe))
#define GDRI_DECLARE_AMO_FLOAT(name, T)                                                            \
	GDRI_PROTOTYPES(int, name##_atomic_set, (T * dst, T value, int pe))                        \
	GDRI_DECLARE_FETCH(name, T, fetch, (const T *dst, int pe),                                 \
			   (T * fetch, const T *dst, int pe))                                      \
	GDRI_DECLARE_FETCH(name, T, swap, (T * dst, T value, int pe),                              \
			   (T * fetch, T * dst, T value, int pe))                                  \
	GDRI_DECLARE_FETCH(name, T, compare_swap, (T * dst, T cond, T value, int pe),              \
			   (T * fetch, T * dst, T cond, T value, int pe))                          \
	GDRI_PROTOTYPES(int, name##_atomic_inc, (T * dst, int pe))                                 \
	GDRI_DECLARE_FETCH(name, T, fetch_inc, (T * dst, int pe), (T * fetch, T * dst, int pe))    \
	GDRI_AMO_NUMBER_OPS(GDRI_DECLARE_AMO_OP, name, T)
#define GDRI_DECLARE_AMO(name, T)                                                                  \
	GDRI_DECLARE_AMO_FLOAT(name, T)                                                            \
	GDRI_AMO_BIT_OPS(GDRI_DECLARE_AMO_OP, name, T)
/** Integers: gdr_T_atomic_{set,fetch,inc,add,max,min,and,or,xor,swap,compare_swap,
 * fetch_{inc,add,max,min,and,or,xor}}; those with result also _nbi. max and min leave the greater or the lesser of
 * the word and `value` in the word, by the order of T. GPUs have both in memory. Elsewhere, and through the NIC, they
 * are a loop of compare-and-swap, complete when the call returns; it stores nothing where the word stays what it is.
 * The limit of every wait counts from the last change of the word that the thread saw: a thread that others overtake
 * goes on for as long as they do. @{ */
GDR_AMO_TYPES(GDRI_DECLARE_AMO)
/** @} */
/** float and double: set, fetch, swap, compare_swap (which compares bits), add, inc, max, min. GPUs have the last four
 * in memory; elsewhere, and through the NIC, each is such a loop. max and min of a NaN are unspecified, as those of
 * reductions (gdr/coll.h), and so is which of 0 and -0 stays. @{ */
GDR_FLOAT_TYPES(GDRI_DECLARE_AMO_FLOAT)
/** @} */
/** @} */

/** @defgroup waits Waits and tests
 * On own memory that others put to, a word (ptr) or n words one behind the other (ptrs). Of these, those
 * with a status that is not 0 do not count; status NULL: all do. all: each word held at some time; any:
 * its index is returned, (size_t)-1 when no word counts or the call fails; some: the indices of those
 * that hold, at least one, go to `indices`, their number is returned, 0 when no word counts. _vector: a
 * value for each word. _for: no longer than limit_ns, at whose end the result is -GDR_ETIMEOUT, or that of
 * an empty set, and no error is recorded; GDR_TIMEOUT bounds them too, and its end is one. A wait that is to fail, for
 * what reason ever, looks once more: what has come by then is success.
 * @include waits.c
 * @{ */
#define GDRI_DECLARE_SETS(name, T, tail, ...)                                                      \
	GDRI_PROTOTYPE(int, gdr_##name##_wait_until_all##tail,                                     \
		       (const T *ptrs, size_t n, const int *status, int cmp, __VA_ARGS__))         \
	GDRI_PROTOTYPE(size_t, gdr_##name##_wait_until_any##tail,                                  \
		       (const T *ptrs, size_t n, const int *status, int cmp, __VA_ARGS__))         \
	GDRI_PROTOTYPE(size_t, gdr_##name##_wait_until_some##tail,                                 \
		       (const T *ptrs, size_t n, size_t *indices, const int *status, int cmp,      \
			__VA_ARGS__))
#define GDRI_DECLARE_TESTS(name, T, tail, V)                                                       \
	GDRI_PROTOTYPE(int, gdr_##name##_test_all##tail,                                           \
		       (const T *ptrs, size_t n, const int *status, int cmp, V))                   \
	GDRI_PROTOTYPE(size_t, gdr_##name##_test_any##tail,                                        \
		       (const T *ptrs, size_t n, const int *status, int cmp, V))                   \
	GDRI_PROTOTYPE(size_t, gdr_##name##_test_some##tail,                                       \
		       (const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, V))
#define GDRI_DECLARE_WAIT(name, T)                                                                 \
	GDRI_PROTOTYPE(int, gdr_##name##_wait_until, (const T *ptr, int cmp, T value))             \
	GDRI_PROTOTYPE(int, gdr_##name##_wait_until_for,                                           \
		       (const T *ptr, int cmp, T value, uint64_t limit_ns))                        \
	GDRI_DECLARE_SETS(name, T, , T value)                                                      \
	GDRI_DECLARE_SETS(name, T, _vector, const T *values)                                       \
	GDRI_DECLARE_SETS(name, T, _for, T value, uint64_t limit_ns)                               \
	GDRI_DECLARE_SETS(name, T, _vector_for, const T *values, uint64_t limit_ns)                \
	GDRI_PROTOTYPE(int, gdr_##name##_test, (const T *ptr, int cmp, T value))                   \
	GDRI_DECLARE_TESTS(name, T, , T value)                                                     \
	GDRI_DECLARE_TESTS(name, T, _vector, const T *values)
/** gdr_T_wait_until[_all,_any,_some][_vector][_for]; gdr_T_test[_all,_any,_some][_vector], which look
 * once (test, test_all: 0 or 1). @{ */
GDR_WAIT_TYPES(GDRI_DECLARE_WAIT)
/** @} */
/** @} */

/** @defgroup locks Locks
 * A lock is a symmetric long, 0 on all PEs at first. PEs get it in the order in which they asked; one
 * that does not is named when the wait expires. Threads of a PE take turns, in no order: GDR_TIMEOUT bounds
 * the wait for all the turns of others. A failed call leaves the lock
 * of no use.
 * @include locks.c
 * @{ */
/** Takes the lock; what was done under it before, by any PE, is visible. */
GDRI_PROTOTYPE(int, gdr_set_lock, (long *lock))
/** Takes it when it is free: 0; 1 when it is not. */
GDRI_PROTOTYPE(int, gdr_test_lock, (long *lock))
/** quiet, then gives the lock to the next. -GDR_EINVAL at once, without a quiet: this PE does not hold the lock. An
 * error of the quiet, which may be that of an operation long before (-GDR_EINVAL, too), is returned, and the lock is
 * given on all the same. */
GDRI_PROTOTYPE(int, gdr_clear_lock, (long *lock))
/** @} */

/** @defgroup order Order
 * @{ */
/** The calling thread's puts, signals and atomics before it arrive at each PE before those after it.
 * Gets are not ordered. */
GDR_DEVICE int gdr_fence(void);
/** Completes all operations of this PE (every thread, kernel and queue of the default context) that are
 * ordered before the call; reports and clears the latched status.
 * -GDR_EPEERFAILED: an operation of another PE failed. -GDR_EPEERLOST: a PE is lost, from then on always. */
GDR_DEVICE int gdr_quiet(void);
/** gdr_fence, gdr_quiet for the operations to PE pe. @{ */
GDRI_PROTOTYPE(int, gdr_fence_pe, (int pe))
GDRI_PROTOTYPE(int, gdr_quiet_pe, (int pe))
/** @} */
/** gdr_fence, gdr_quiet for the operations on a context; _pe: those to PE pe of its team. @{ */
GDRI_PROTOTYPE(int, gdr_ctx_fence, (gdr_ctx_t ctx))
GDRI_PROTOTYPE(int, gdr_ctx_quiet, (gdr_ctx_t ctx))
GDRI_PROTOTYPE(int, gdr_ctx_fence_pe, (gdr_ctx_t ctx, int pe))
GDRI_PROTOTYPE(int, gdr_ctx_quiet_pe, (gdr_ctx_t ctx, int pe))
/** @} */
/** First status that was latched, or 0. A quiet reports it and takes it away; -GDR_EPEERLOST stays. */
GDR_DEVICE int gdr_status(void);
/** @} */

/** @defgroup all Barriers of all PEs
 * One thread (warp, block) of each PE calls, one at a time. gdr_barrier_all(): quiet, then wait for all
 * PEs; declared in gdr/host.h, also for kernels. Where one PE gives up all of these fail from then on, see there. In
 * the checked build who comes while another one of its PE is in such a call gets -GDR_EINVAL, latched too.
 * @{ */
/** quiet, then wait for all PEs. */
GDR_DEVICE int gdr_barrier_all_warp(void);
/** quiet, then wait for all PEs. */
GDR_DEVICE int gdr_barrier_all_block(void);
/** Waits for all PEs; completes nothing but own stores. @{ */
GDR_BOTH int gdr_sync_all(void);
GDR_DEVICE int gdr_sync_all_warp(void);
GDR_DEVICE int gdr_sync_all_block(void);
/** @} */
/** @} */

/** @defgroup grid Barrier of a grid
 * @{ */
/** All threads of all blocks of a kernel of this PE call it, and go on when all have: what each stored before, all see.
 * It completes no operation, and waits for no other PE. The blocks run at once: gdr_collective_launch, or a cooperative
 * launch of CUDA; in a kernel of several blocks that was launched otherwise -GDR_EINVAL, at once. A block that does not
 * come within GDR_TIMEOUT: -GDR_ETIMEOUT for those that did. All threads of a block get the same status. Checked build,
 * host device: -GDR_EINVAL in a block not all of whose threads make the call. */
GDR_DEVICE int gdr_grid_sync(void);
/** @} */

#include <gdr/impl/api/amo.h>
#include <gdr/impl/api/barrier.h>
#include <gdr/impl/api/coll_names.h>
#include <gdr/impl/api/grid_sync.h>
#include <gdr/impl/api/lock.h>
#include <gdr/impl/api/order.h>
#include <gdr/impl/api/rma.h>
#include <gdr/impl/api/signal.h>
#include <gdr/impl/api/wait.h>
#if defined(__CUDACC__) || defined(GDR_CHECKED)
#include <gdr/impl/api/names.h>
#endif

#include <gdr/impl/arch/iso646_on.h>

#endif
