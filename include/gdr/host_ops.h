/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of host threads by type. Not part of gdr.h: it brings no device code, and files of the host that gcc, g++
 * or nvcc compiles include it by itself, or beside gdr.h.
 *
 * The functions are those of gdr/device.h and gdr/coll.h without `host_` in their names, and promise what these do:
 * arguments, order, completion, status. They are for host threads alone, on the host device and where kernels run on
 * GPUs. What is more here:
 *
 * - Arguments are always checked: -GDR_EINVAL for a PE that there is not, for what is not in the symmetric heap, for
 *   an element of p, g, atomics, signals, waits, locks, reductions and scans that is not aligned to its size (at most
 *   8 bytes; memory that is only moved lies anywhere), and, but for strided forms, for dest and source that overlap at
 *   the own PE. A collective that is refused on one
 *   member does not begin there, and the others are not told, but with GDR_CHECKED on the host device: they take the
 *   member's next call of the team for it, or wait until GDR_TIMEOUT. So end the job where one is refused.
 * - Local memory is any memory of the process, as for gdr_host_put (gdr/host.h): of a GPU, too, where kernels run on
 *   one. Strided forms go element by element, or block by block, in a job on GPUs unless all of the local memory is a
 *   GPU's; and by queue, with memory that is neither in the heap nor registered, iget, ibget, and ibput of blocks of
 *   more than 28 bytes.
 * - Any thread may call. Of a PE's threads one at a time is in a collective of a team; its members all call from the
 *   host. On the host device it counts as the form of one thread (gdr/coll.h).
 * - Where kernels run on GPUs atomics, signals, waits, locks, strided forms and collectives are executed by a kernel of
 *   the library, which the call waits for, and are atomic to those of kernels. It takes room on the GPU beside kernels
 *   that run, and waits for none of them. A library that was built without nvcc has no such kernel: -GDR_ENOTSUP. p,
 *   g, put, get, wait_until_for, waits for several words and tests do without, but where what a NIC wrote to a GPU may
 *   be seen late (GDR_FLUSH) waits and tests take one when what they look at holds.
 * - Functions that return a value return 0 on failure, and latch the status: gdr_host_status(), and the next quiet.
 *
 * p, put, atomics without result and signals are complete by the next gdr_host_quiet or barrier, and in order only with
 * respect to gdr_host_fence. */
#ifndef GDR_HOST_OPS_H
#define GDR_HOST_OPS_H

#include <gdr/enums.h>
#include <gdr/host.h>
#include <gdr/impl/request/amo_kind.h>
#include <gdr/impl/request/submit.h>
#include <gdr/team.h>
#include <gdr/types.h>

#include <gdr/impl/arch/iso646_off.h>

#if GDRI_HAS_HOST

/* What an operation of dst's type reads; host_ops.hpp has C++ look at dst alone for it. */
#define GDRI_HOST_FROM(T) const T *

#ifdef GDRI_REFERENCE
#define GDRI_HOST_OP(ret, name, params, result) ret gdr_host_##name params;
#define GDRI_HOST_OP_VALUE(ret, name, params, statement) ret gdr_host_##name params;
#else
#define GDRI_HOST_OP(ret, name, params, result)                                                    \
	static inline __attribute__((unused)) ret gdr_host_##name params                           \
	{                                                                                          \
		return result;                                                                     \
	}
#define GDRI_HOST_OP_VALUE(ret, name, params, statement)                                           \
	static inline __attribute__((unused)) ret gdr_host_##name params                           \
	{                                                                                          \
		ret out;                                                                           \
                                                                                                   \
		statement;                                                                         \
		return out;                                                                        \
	}
#endif

/* Numbers of 16 bits under CUDA are its own: where its headers of them were included before. */
#if !defined(__CUDACC__) || (defined(__CUDA_FP16_TYPES_EXIST__) && defined(__CUDA_BF16_TYPES_EXIST__))
#define GDRI_HOST_HALF_TYPES(X) GDR_HALF_TYPES(X)
#else
#define GDRI_HOST_HALF_TYPES(X)
#endif
#define GDRI_HOST_RMA_TYPES(X)                                                                     \
	GDR_RMA_TYPES(X)                                                                           \
	GDRI_HOST_HALF_TYPES(X)                                                                    \
	X(complexf, gdr_complexf_t)                                                                \
	X(complexd, gdr_complexd_t)                                                                \
	GDRI_HOST_TYPES(X)

/** @defgroup hostops Operations of host threads, by type
 * See the beginning of gdr/host_ops.h. Without a type, in bytes, with contexts: gdr/host.h and gdr/ctx.h.
 * @include host_ops.c
 * @{ */
#define GDRI_HOST_PUT(pre, op, T, E, z, what, nbi)                                                 \
	GDRI_HOST_OP(int, pre##op, (T * dst, GDRI_HOST_FROM(T) src, size_t n, int pe),             \
		     gdri_submit_rma(what, nbi, dst, src, n, E, pe, GDRI_HOST))
#define GDRI_HOST_RMA(pre, T, E, z)                                                                \
	GDRI_HOST_PUT(pre, put##z, T, E, z, GDRI_RQ_PUT, 0)                                        \
	GDRI_HOST_PUT(pre, get##z, T, E, z, GDRI_RQ_GET, 0)                                        \
	GDRI_HOST_PUT(pre, put##z##_nbi, T, E, z, GDRI_RQ_PUT, 1)                                  \
	GDRI_HOST_PUT(pre, get##z##_nbi, T, E, z, GDRI_RQ_GET, 1)
#define GDRI_HOST_STRIDED(pre, T, E, z)                                                            \
	GDRI_HOST_OP(int, pre##iput##z,                                                            \
		     (T * dest, GDRI_HOST_FROM(T) source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe), \
		     gdri_submit_strided(GDRI_RQ_IPUT, dest, source, dst, sst, n, E, pe, GDRI_HOST)) \
	GDRI_HOST_OP(int, pre##iget##z,                                                            \
		     (T * dest, GDRI_HOST_FROM(T) source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe), \
		     gdri_submit_strided(GDRI_RQ_IGET, dest, source, dst, sst, n, E, pe, GDRI_HOST))
#define GDRI_HOST_BLOCKS(pre, op, T, E, z, what)                                                   \
	GDRI_HOST_OP(int, pre##op##z,                                                              \
		     (T * dest, GDRI_HOST_FROM(T) source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,      \
		      size_t nblocks, int pe),                                                     \
		     gdri_host_blocks(what, dest, source, dst, sst, bsize, nblocks, E, pe))
#define GDRI_HOST_PUT_SIGNAL(pre, T, E, z, nbi, tail)                                              \
	GDRI_HOST_OP(int, pre##put##z##_signal##tail,                                              \
		     (T * dst, GDRI_HOST_FROM(T) src, size_t n, uint64_t *sig, uint64_t value, int op, int pe), \
		     gdri_submit_signal(nbi, dst, src, n, E, sig, value, op, pe, GDRI_HOST))
#define GDRI_HOST_PUT_SIGNALS(pre, T, E, z)                                                        \
	GDRI_HOST_PUT_SIGNAL(pre, T, E, z, 0, )                                                    \
	GDRI_HOST_PUT_SIGNAL(pre, T, E, z, 1, _nbi)
#define GDRI_HOST_MOVE(pre, T, E, z)                                                               \
	GDRI_HOST_RMA(pre, T, E, z)                                                                \
	GDRI_HOST_STRIDED(pre, T, E, z)                                                            \
	GDRI_HOST_BLOCKS(pre, ibput, T, E, z, GDRI_RQ_IPUT)                                        \
	GDRI_HOST_BLOCKS(pre, ibget, T, E, z, GDRI_RQ_IGET)                                        \
	GDRI_HOST_PUT_SIGNALS(pre, T, E, z)
#define GDRI_HOST_VALUE(name, T)                                                                   \
	GDRI_HOST_OP(int, name##_p, (T * dst, T value, int pe),                                    \
		     gdri_submit_p(dst, &value, sizeof(T), pe, GDRI_HOST))                         \
	GDRI_HOST_OP_VALUE(T, name##_g, (const T *src, int pe), gdri_host_g(&out, src, sizeof(T), pe))
#define GDRI_HOST_MOVE_TYPE(name, T)                                                               \
	GDRI_HOST_MOVE(name##_, T, sizeof(T), )                                                    \
	GDRI_HOST_VALUE(name, T)
#define GDRI_HOST_MOVE_SIZE(bits, bytes) GDRI_HOST_MOVE(, void, bytes, bits)
/** gdr_host_T_{p,g}, gdr_host_T_{put,get}[_nbi], gdr_host_T_{iput,iget,ibput,ibget}, gdr_host_T_put_signal[_nbi]. @{ */
GDRI_HOST_RMA_TYPES(GDRI_HOST_MOVE_TYPE)
/** @} */
/** n elements of 8 to 128 bits. @{ */
GDR_RMA_SIZES(GDRI_HOST_MOVE_SIZE)
/** @} */
/** n bytes. @{ */
GDRI_HOST_PUT_SIGNALS(, void, 1, )
/** @} */

/** Signal words, of PE pe. @{ */
GDRI_HOST_OP(int, signal_op, (uint64_t * sig, uint64_t value, int op, int pe),
	     gdri_submit_signal_op(sig, value, op, pe, GDRI_HOST))
GDRI_HOST_OP(int, signal_set, (uint64_t * sig, uint64_t value, int pe),
	     gdri_submit_signal_op(sig, value, GDR_SIGNAL_SET, pe, GDRI_HOST))
GDRI_HOST_OP(int, signal_add, (uint64_t * sig, uint64_t value, int pe),
	     gdri_submit_signal_op(sig, value, GDR_SIGNAL_ADD, pe, GDRI_HOST))
/** @} */
/** Waits for the own signal word; _for: no longer than limit_ns, at whose end the result is -GDR_ETIMEOUT, and no error
 * is recorded. What was put before the signal is there for host threads and for kernels that are launched later. @{ */
GDRI_HOST_OP(int, signal_wait_until, (const uint64_t *sig, int cmp, uint64_t value),
	     gdri_host_waits(gdri_rq_words(0, sig, 0, 0, 0, cmp, 0, value, 8, 0), GDRI_HOST_NO_LIMIT))
GDRI_HOST_OP(int, signal_wait_until_for, (const uint64_t *sig, int cmp, uint64_t value, uint64_t limit_ns),
	     gdri_host_waits(gdri_rq_words(0, sig, 0, 0, 0, cmp, 0, value, 8, 0), limit_ns))
/** @} */

/* Of a word or of several: what is asked for. set: bits of enum gdri_words. */
#define GDRI_HOST_WORDS(T, set, ptrs, n, indices, status, values, value)                           \
	gdri_rq_words(set, ptrs, n, indices, status, cmp, values, value, sizeof(T),                \
		      GDRI_CLASS(T) == (unsigned)GDRI_C_SIGNED)
#define GDRI_HOST_WORD(T) GDRI_HOST_WORDS(T, 0, ptr, 0, 0, 0, 0, (uint64_t)value)
#define GDRI_HOST_WAIT(name, T)                                                                    \
	GDRI_HOST_OP(int, name##_wait_until, (const T *ptr, int cmp, T value),                     \
		     gdri_host_waits(GDRI_HOST_WORD(T), GDRI_HOST_NO_LIMIT))                       \
	GDRI_HOST_OP(int, name##_wait_until_for, (const T *ptr, int cmp, T value, uint64_t limit_ns), \
		     gdri_host_waits(GDRI_HOST_WORD(T), limit_ns))                                 \
	GDRI_HOST_OP(int, name##_test, (const T *ptr, int cmp, T value), gdri_host_looks(GDRI_HOST_WORD(T)))
/** gdr_host_T_wait_until[_for], of an own word; gdr_host_T_test looks once, 1 or 0. @{ */
GDR_WAIT_TYPES(GDRI_HOST_WAIT)
/** @} */

/* ...: the last parameters, a value for all words or one for each, and a limit. */
#define GDRI_HOST_SET(T, set, indices, ...) GDRI_HOST_WORDS(T, set, ptrs, n, indices, status, __VA_ARGS__)
#define GDRI_HOST_SETS(name, T, tail, set, values, value, limit, ...)                              \
	GDRI_HOST_OP(int, name##_wait_until_all##tail,                                             \
		     (const T *ptrs, size_t n, const int *status, int cmp, __VA_ARGS__),           \
		     gdri_host_waits(GDRI_HOST_SET(T, GDRI_WORDS_ALL | (set), 0, values, value), limit)) \
	GDRI_HOST_OP(size_t, name##_wait_until_any##tail,                                          \
		     (const T *ptrs, size_t n, const int *status, int cmp, __VA_ARGS__),           \
		     gdri_host_found(GDRI_HOST_SET(T, GDRI_WORDS_ANY | (set), 0, values, value), limit, (size_t)-1)) \
	GDRI_HOST_OP(size_t, name##_wait_until_some##tail,                                         \
		     (const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, __VA_ARGS__), \
		     gdri_host_found(GDRI_HOST_SET(T, GDRI_WORDS_SOME | (set), indices, values, value), limit, 0))
#define GDRI_HOST_TESTS(name, T, tail, set, values, value, V)                                      \
	GDRI_HOST_OP(int, name##_test_all##tail,                                                   \
		     (const T *ptrs, size_t n, const int *status, int cmp, V),                     \
		     gdri_host_looks(GDRI_HOST_SET(T, GDRI_WORDS_ALL | (set), 0, values, value)))  \
	GDRI_HOST_OP(size_t, name##_test_any##tail,                                                \
		     (const T *ptrs, size_t n, const int *status, int cmp, V),                     \
		     gdri_host_found(GDRI_HOST_SET(T, GDRI_WORDS_ANY | (set), 0, values, value), 0, (size_t)-1)) \
	GDRI_HOST_OP(size_t, name##_test_some##tail,                                               \
		     (const T *ptrs, size_t n, size_t *indices, const int *status, int cmp, V),    \
		     gdri_host_found(GDRI_HOST_SET(T, GDRI_WORDS_SOME | (set), indices, values, value), 0, 0))
#define GDRI_HOST_WAIT_SETS(name, T)                                                               \
	GDRI_HOST_SETS(name, T, , 0, 0, (uint64_t)value, GDRI_HOST_NO_LIMIT, T value)              \
	GDRI_HOST_SETS(name, T, _for, 0, 0, (uint64_t)value, limit_ns, T value, uint64_t limit_ns) \
	GDRI_HOST_SETS(name, T, _vector, GDRI_WORDS_VECTOR, values, 0, GDRI_HOST_NO_LIMIT, const T *values) \
	GDRI_HOST_SETS(name, T, _vector_for, GDRI_WORDS_VECTOR, values, 0, limit_ns, const T *values, \
		       uint64_t limit_ns)                                                          \
	GDRI_HOST_TESTS(name, T, , GDRI_WORDS_TEST, 0, (uint64_t)value, T value)                   \
	GDRI_HOST_TESTS(name, T, _vector, GDRI_WORDS_TEST | GDRI_WORDS_VECTOR, values, 0, const T *values)
/** gdr_host_T_wait_until_{all,any,some}[_vector][_for], gdr_host_T_test_{all,any,some}[_vector]: of n own words, one
 * behind the other, as in gdr/device.h. ptrs is in the heap; status, values and indices are memory of the host: values
 * NULL of a _vector form, and indices NULL, are -GDR_EINVAL. Of an empty set, and where there is none, any is
 * (size_t)-1 and some 0; so they are behind limit_ns, which is no error, and on failure, whose status is latched: the
 * next quiet tells it. @{ */
GDR_WAIT_TYPES(GDRI_HOST_WAIT_SETS)
/** @} */

#define GDRI_HOST_AMO(name, op, T, params, kind, a)                                                \
	GDRI_HOST_OP(int, name##_atomic_##op, params, gdri_host_amo(kind, sizeof(T), dst, a, pe))
#define GDRI_HOST_FETCH(name, op, T, params, nbi_params, kind, a, b)                               \
	GDRI_HOST_OP_VALUE(T, name##_atomic_##op, params,                                          \
			   gdri_host_fetch(&out, kind, sizeof(T), dst, a, b, pe))                  \
	GDRI_HOST_OP(int, name##_atomic_##op##_nbi, nbi_params,                                    \
		     gdri_host_fetch_nbi(fetch, kind, sizeof(T), dst, a, b, pe))
#define GDRI_HOST_OPERAND gdri_bits(&value, sizeof(value))
#define GDRI_HOST_AMO_OP(op, kind, reduction, name, T)                                             \
	GDRI_HOST_AMO(name, op, T, (T * dst, T value, int pe), GDRI_AMO_KIND(kind, reduction, T),  \
		      GDRI_HOST_OPERAND)                                                           \
	GDRI_HOST_FETCH(name, fetch_##op, T, (T * dst, T value, int pe), (T * fetch, T * dst, T value, int pe), \
			GDRI_AMO_KIND(kind, reduction, T), GDRI_HOST_OPERAND, 0)
#define GDRI_HOST_AMO_NUMBER(name, T)                                                              \
	GDRI_HOST_AMO(name, set, T, (T * dst, T value, int pe), GDRI_AMO_SET, GDRI_HOST_OPERAND)   \
	GDRI_HOST_FETCH(name, fetch, T, (const T *dst, int pe), (T * fetch, const T *dst, int pe), \
			GDRI_AMO_FETCH, 0, 0)                                                      \
	GDRI_HOST_FETCH(name, swap, T, (T * dst, T value, int pe), (T * fetch, T * dst, T value, int pe), \
			GDRI_AMO_SWAP, GDRI_HOST_OPERAND, 0)                                       \
	GDRI_HOST_FETCH(name, compare_swap, T, (T * dst, T cond, T value, int pe),                 \
			(T * fetch, T * dst, T cond, T value, int pe), GDRI_AMO_CSWAP, GDRI_HOST_OPERAND, \
			gdri_bits(&cond, sizeof(cond)))                                            \
	GDRI_HOST_AMO(name, inc, T, (T * dst, int pe), GDRI_AMO_INC(T), GDRI_AMO_ONE(T))           \
	GDRI_HOST_FETCH(name, fetch_inc, T, (T * dst, int pe), (T * fetch, T * dst, int pe), GDRI_AMO_INC(T), \
			GDRI_AMO_ONE(T), 0)                                                        \
	GDRI_AMO_NUMBER_OPS(GDRI_HOST_AMO_OP, name, T)
#define GDRI_HOST_AMO_INTEGER(name, T)                                                             \
	GDRI_HOST_AMO_NUMBER(name, T)                                                              \
	GDRI_AMO_BIT_OPS(GDRI_HOST_AMO_OP, name, T)
/** gdr_host_T_atomic_{set,inc,add,max,min,fetch,swap,compare_swap,fetch_{inc,add,max,min}}; of integers also
 * {and,or,xor} and fetch_{and,or,xor}. Those with result also _nbi: the old value is in `fetch`, any memory of the
 * process, by the next gdr_host_quiet; it is there at once where kernels run on GPUs, and where a NIC would have to
 * write to memory that it does not know. fetch and the call's own word lie apart. @{ */
GDR_AMO_TYPES(GDRI_HOST_AMO_INTEGER)
GDR_FLOAT_TYPES(GDRI_HOST_AMO_NUMBER)
/** @} */

/** gdr_set_lock, gdr_test_lock, gdr_clear_lock: locks that host threads and kernels share. A thread that waits for
 * one keeps no other thread from calling, and GDR_TIMEOUT bounds it: -GDR_ETIMEOUT, with the PE named that does not
 * give it. On GPUs, where a kernel waits, that holds of 7 threads of a PE at a time. test: 0 taken, 1 not. What was
 * put under the lock is there for who gets it next: clear has a quiet. @{ */
GDRI_HOST_OP(int, set_lock, (long *lock), gdri_host_lock(GDRI_LOCK_CALL_SET, lock))
GDRI_HOST_OP(int, test_lock, (long *lock), gdri_host_lock(GDRI_LOCK_CALL_TEST, lock))
GDRI_HOST_OP(int, clear_lock, (long *lock), gdri_host_lock(GDRI_LOCK_CALL_CLEAR, lock))
/** @} */

#define GDRI_HOST_COLL_OF(pre, op, T, E, what)                                                     \
	GDRI_HOST_OP(int, pre##op, (gdr_team_t team, T * dest, GDRI_HOST_FROM(T) source, size_t nelems), \
		     gdri_submit_coll(what, team, dest, source, nelems, E, 0, 1, 1, 0, GDRI_HOST))
#define GDRI_HOST_COLL(pre, T, E, z)                                                               \
	GDRI_HOST_OP(int, pre##broadcast##z,                                                       \
		     (gdr_team_t team, T * dest, GDRI_HOST_FROM(T) source, size_t nelems, int root), \
		     gdri_submit_coll(GDRI_RQ_BROADCAST, team, dest, source, nelems, E, root, 1, 1, 0, GDRI_HOST)) \
	GDRI_HOST_COLL_OF(pre, collect##z, T, E, GDRI_RQ_COLLECT)                                  \
	GDRI_HOST_COLL_OF(pre, fcollect##z, T, E, GDRI_RQ_FCOLLECT)                                \
	GDRI_HOST_COLL_OF(pre, alltoall##z, T, E, GDRI_RQ_ALLTOALL)                                \
	GDRI_HOST_OP(int, pre##alltoalls##z,                                                       \
		     (gdr_team_t team, T * dest, GDRI_HOST_FROM(T) source, ptrdiff_t dst, ptrdiff_t sst,   \
		      size_t nelems),                                                              \
		     gdri_submit_coll(GDRI_RQ_ALLTOALLS, team, dest, source, nelems, E, 0, dst, sst, 0, GDRI_HOST))
#define GDRI_HOST_COLL_TYPE(name, T) GDRI_HOST_COLL(name##_, T, sizeof(T), )
#define GDRI_HOST_COLL_SIZE(bits, bytes) GDRI_HOST_COLL(, void, bytes, bits)
/** Collectives of teams that move data: elements of a type, of 8 to 128 bits, bytes. @{ */
GDRI_HOST_RMA_TYPES(GDRI_HOST_COLL_TYPE)
GDR_RMA_SIZES(GDRI_HOST_COLL_SIZE)
GDRI_HOST_COLL(, void, 1, mem)
/** @} */

#define GDRI_HOST_REDUCE_OF(name, op, T, what, code)                                               \
	GDRI_HOST_OP(int, name##_##op, (gdr_team_t team, T * dest, const T *source, size_t nreduce), \
		     gdri_submit_coll(what, team, dest, source, nreduce, sizeof(T), 0, 1, 1, code, GDRI_HOST))
#define GDRI_HOST_REDUCE_OP(name, op, T, code)                                                     \
	GDRI_HOST_REDUCE_OF(name, op##_reduce, T, GDRI_RQ_REDUCE, code)                            \
	GDRI_HOST_REDUCE_OF(name, op##_reducescatter, T, GDRI_RQ_REDUCESCATTER, code)
#define GDRI_HOST_REDUCE(name, T)                                                                  \
	GDRI_HOST_REDUCE_OP(name, sum, T, GDRI_REDUCE_CODE(T, GDRI_SUM))                           \
	GDRI_HOST_REDUCE_OP(name, prod, T, GDRI_REDUCE_CODE(T, GDRI_PROD))                         \
	GDRI_HOST_REDUCE_OP(name, min, T, GDRI_REDUCE_CODE(T, GDRI_MIN))                           \
	GDRI_HOST_REDUCE_OP(name, max, T, GDRI_REDUCE_CODE(T, GDRI_MAX))                           \
	GDRI_HOST_REDUCE_OF(name, sum_inscan, T, GDRI_RQ_INSCAN, GDRI_REDUCE_CODE(T, GDRI_SUM))    \
	GDRI_HOST_REDUCE_OF(name, sum_exscan, T, GDRI_RQ_EXSCAN, GDRI_REDUCE_CODE(T, GDRI_SUM))
#define GDRI_HOST_REDUCE_BITS(name, T)                                                             \
	GDRI_HOST_REDUCE_OP(name, and, T, GDRI_REDUCE_CODE(T, GDRI_AND))                           \
	GDRI_HOST_REDUCE_OP(name, or, T, GDRI_REDUCE_CODE(T, GDRI_OR))                             \
	GDRI_HOST_REDUCE_OP(name, xor, T, GDRI_REDUCE_CODE(T, GDRI_XOR))
#define GDRI_HOST_REDUCE_HALF(name, T) GDRI_HOST_REDUCE_CODES(name, T, GDRI_CODE_##name)
#define GDRI_HOST_REDUCE_CODES(name, T, code)                                                      \
	GDRI_HOST_REDUCE_OP(name, sum, T, code(GDRI_SUM))                                          \
	GDRI_HOST_REDUCE_OP(name, prod, T, code(GDRI_PROD))                                        \
	GDRI_HOST_REDUCE_OP(name, min, T, code(GDRI_MIN))                                          \
	GDRI_HOST_REDUCE_OP(name, max, T, code(GDRI_MAX))
/** gdr_host_T_{sum,prod,min,max}_{reduce,reducescatter}, gdr_host_T_sum_{inscan,exscan}; of integers also and, or,
 * xor. @{ */
GDR_RMA_TYPES(GDRI_HOST_REDUCE)
GDR_INTEGER_TYPES(GDRI_HOST_REDUCE_BITS)
GDRI_HOST_HALF_TYPES(GDRI_HOST_REDUCE_HALF)
/** @} */

/** gdr_barrier, gdr_team_sync, gdr_sync_all. The barrier of all PEs is gdr_barrier_all (gdr/host.h). @{ */
GDRI_HOST_OP(int, barrier, (gdr_team_t team), gdri_submit_sync(GDRI_RQ_BARRIER, team, GDRI_HOST))
GDRI_HOST_OP(int, team_sync, (gdr_team_t team), gdri_submit_sync(GDRI_RQ_SYNC, team, GDRI_HOST))
GDRI_HOST_OP(int, sync_all, (void), gdri_submit_sync(GDRI_RQ_SYNC_ALL, 0, GDRI_HOST))
/** @} */
/** @} */

#endif

#include <gdr/impl/arch/iso646_on.h>

#endif
