/* SPDX-License-Identifier: BSD-3-Clause */
/* The operations on streams, as rows (define.h): each makes a request of its arguments. */
#ifndef GDRI_STREAM_NAMES_H
#define GDRI_STREAM_NAMES_H

#include <gdr/impl/api/coll_names.h>
#include <gdr/impl/api/define.h>

#define GDRI_STREAM_ROW(pre, op, T, E, z, what, nbi)                                               \
	GDRI_HOST_FN(int, GDRI_NAME(pre, op, z, _on_stream),                                       \
		     (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream),               \
		     gdri_submit_rma(what, nbi, dst, src, n, E, pe, stream))
#define GDRI_STREAM_RMA_ROWS(pre, T, E, z)                                                         \
	GDRI_STREAM_ROW(pre, put, T, E, z, GDRI_RQ_PUT, 0)                                         \
	GDRI_STREAM_ROW(pre, get, T, E, z, GDRI_RQ_GET, 0)                                         \
	GDRI_HOST_FN(int, GDRI_NAME(pre, put, z, _nbi_on_stream),                                  \
		     (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream),               \
		     gdri_submit_rma(GDRI_RQ_PUT, 1, dst, src, n, E, pe, stream))                     \
	GDRI_HOST_FN(int, GDRI_NAME(pre, get, z, _nbi_on_stream),                                  \
		     (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream),               \
		     gdri_submit_rma(GDRI_RQ_GET, 1, dst, src, n, E, pe, stream))                     \
	GDRI_HOST_FN(int, GDRI_NAME(pre, put, z, _signal_on_stream),                               \
		     (T * dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op,      \
		      int pe, gdr_stream_t stream),                                                \
		     gdri_submit_signal(0, dst, src, n, E, sig, value, op, pe, stream))               \
	GDRI_HOST_FN(int, GDRI_NAME(pre, put, z, _signal_nbi_on_stream),                           \
		     (T * dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op,      \
		      int pe, gdr_stream_t stream),                                                \
		     gdri_submit_signal(1, dst, src, n, E, sig, value, op, pe, stream))
#define GDRI_STREAM_STRIDED_ROW(pre, op, T, E, z, what)                                            \
	GDRI_HOST_FN(int, GDRI_NAME(pre, op, z, _on_stream),                                       \
		     (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe,   \
		      gdr_stream_t stream),                                                        \
		     gdri_submit_strided(what, dest, source, dst, sst, n, E, pe, stream))
#define GDRI_STREAM_STRIDED_ROWS(pre, T, E, z)                                                     \
	GDRI_STREAM_STRIDED_ROW(pre, iput, T, E, z, GDRI_RQ_IPUT)                                  \
	GDRI_STREAM_STRIDED_ROW(pre, iget, T, E, z, GDRI_RQ_IGET)
#define GDRI_STREAM_SCALAR_ROWS(pre, T, E, z)                                                      \
	GDRI_HOST_FN(int, GDRI_NAME(pre, p, z, _on_stream),                                        \
		     (T * dst, T value, int pe, gdr_stream_t stream),                              \
		     gdri_submit_p(dst, &value, E, pe, stream))                                       \
	GDRI_HOST_FN_VALUE(T, GDRI_NAME(pre, g, z, _on_stream),                                    \
			   (const T *src, int pe, gdr_stream_t stream),                            \
			   gdri_submit_g(&out, src, E, pe, stream))

#define GDRI_STREAM_WAIT_ROWS(pre, T, E, z)                                                        \
	GDRI_HOST_FN(int, GDRI_NAME(pre, wait_until, , _on_stream),                                \
		     (const T *ptr, int cmp, T value, gdr_stream_t stream),                        \
		     gdri_submit_wait(ptr, 0, 0, 0, (uint64_t)value, sizeof(T), GDRI_SIGNED(T),       \
					 cmp, stream))                                             \
	GDRI_HOST_FN(int, GDRI_NAME(pre, wait_until_all, , _on_stream),                            \
		     (const T *ptrs, size_t n, const int *status, int cmp, T value,                \
		      gdr_stream_t stream),                                                        \
		     n ? gdri_submit_wait(ptrs, n, status, 0, (uint64_t)value, sizeof(T),             \
					     GDRI_SIGNED(T), cmp, stream) : 0)                     \
	GDRI_HOST_FN(int, GDRI_NAME(pre, wait_until_all_vector, , _on_stream),                     \
		     (const T *ptrs, size_t n, const int *status, int cmp, const T *values,        \
		      gdr_stream_t stream),                                                        \
		     n ? gdri_submit_wait(ptrs, n, status, values, 0, sizeof(T),                      \
					     GDRI_SIGNED(T), cmp, stream) : 0)

#define GDRI_STREAM_COLL_ROW(pre, op, T, E, z, what)                                               \
	GDRI_HOST_FN(int, GDRI_NAME(pre, op, z, _on_stream),                                       \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems,                   \
		      gdr_stream_t stream),                                                        \
		     gdri_submit_coll(what, team, dest, source, nelems, E, 0, 1, 1, 0, stream))
#define GDRI_STREAM_COLL_ROWS(pre, T, E, z)                                                        \
	GDRI_HOST_FN(int, GDRI_NAME(pre, broadcast, z, _on_stream),                                \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems, int root,         \
		      gdr_stream_t stream),                                                        \
		     gdri_submit_coll(GDRI_RQ_BROADCAST, team, dest, source, nelems, E, root,         \
					 1, 1, 0, stream))                                         \
	GDRI_STREAM_COLL_ROW(pre, collect, T, E, z, GDRI_RQ_COLLECT)                               \
	GDRI_STREAM_COLL_ROW(pre, fcollect, T, E, z, GDRI_RQ_FCOLLECT)                             \
	GDRI_STREAM_COLL_ROW(pre, alltoall, T, E, z, GDRI_RQ_ALLTOALL)                             \
	GDRI_HOST_FN(int, GDRI_NAME(pre, alltoalls, z, _on_stream),                                \
		     (gdr_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,    \
		      size_t nelems, gdr_stream_t stream),                                         \
		     gdri_submit_coll(GDRI_RQ_ALLTOALLS, team, dest, source, nelems, E, 0, dst,       \
					 sst, 0, stream))

#define GDRI_STREAM_REDUCE_ROW(pre, op, T, E, what, code)                                          \
	GDRI_HOST_FN(int, GDRI_NAME(pre, op, , _on_stream),                                        \
		     (gdr_team_t team, T * dest, const T *source, size_t nreduce,                  \
		      gdr_stream_t stream),                                                        \
		     gdri_submit_coll(what, team, dest, source, nreduce, E, 0, 1, 1, code,            \
					 stream))
#define GDRI_STREAM_OP(pre, op, T, E, code)                                                        \
	GDRI_STREAM_REDUCE_ROW(pre, op##_reduce, T, E, GDRI_RQ_REDUCE, code)                       \
	GDRI_STREAM_REDUCE_ROW(pre, op##_reducescatter, T, E, GDRI_RQ_REDUCESCATTER, code)
#define GDRI_STREAM_REDUCE_ROWS(pre, T, E, z)                                                      \
	GDRI_STREAM_OP(pre, sum, T, E, GDRI_REDUCE_CODE(T, GDRI_SUM))                              \
	GDRI_STREAM_OP(pre, prod, T, E, GDRI_REDUCE_CODE(T, GDRI_PROD))                            \
	GDRI_STREAM_OP(pre, min, T, E, GDRI_REDUCE_CODE(T, GDRI_MIN))                              \
	GDRI_STREAM_OP(pre, max, T, E, GDRI_REDUCE_CODE(T, GDRI_MAX))                              \
	GDRI_STREAM_REDUCE_ROW(pre, sum_inscan, T, E, GDRI_RQ_INSCAN, GDRI_REDUCE_CODE(T, GDRI_SUM)) \
	GDRI_STREAM_REDUCE_ROW(pre, sum_exscan, T, E, GDRI_RQ_EXSCAN, GDRI_REDUCE_CODE(T, GDRI_SUM))
#define GDRI_STREAM_BITS_ROWS(pre, T, E, z)                                                        \
	GDRI_STREAM_OP(pre, and, T, E, GDRI_REDUCE_CODE(T, GDRI_AND))                              \
	GDRI_STREAM_OP(pre, or, T, E, GDRI_REDUCE_CODE(T, GDRI_OR))                                \
	GDRI_STREAM_OP(pre, xor, T, E, GDRI_REDUCE_CODE(T, GDRI_XOR))

#define GDRI_STREAM_16_ROWS(pre, T, E, name)                                                       \
	GDRI_STREAM_OP(pre, sum, T, E, GDRI_CODE_##name(GDRI_SUM))                                 \
	GDRI_STREAM_OP(pre, prod, T, E, GDRI_CODE_##name(GDRI_PROD))                               \
	GDRI_STREAM_OP(pre, min, T, E, GDRI_CODE_##name(GDRI_MIN))                                 \
	GDRI_STREAM_OP(pre, max, T, E, GDRI_CODE_##name(GDRI_MAX))
#define GDRI_STREAM_HALF_ROWS(pre, T, E, z) GDRI_STREAM_16_ROWS(pre, T, E, half)
#define GDRI_STREAM_BFLOAT_ROWS(pre, T, E, z) GDRI_STREAM_16_ROWS(pre, T, E, bfloat16)

#define GDRI_STREAM_ALL(pre, T, E, z)                                                              \
	GDRI_STREAM_RMA_ROWS(pre, T, E, z)                                                         \
	GDRI_STREAM_STRIDED_ROWS(pre, T, E, z)                                                     \
	GDRI_STREAM_COLL_ROWS(pre, T, E, z)
GDRI_TEMPLATE(gdri_t_stream, GDRI_STREAM_ALL)
GDRI_TEMPLATE(gdri_t_stream_scalar, GDRI_STREAM_SCALAR_ROWS)
GDRI_TEMPLATE(gdri_t_stream_wait, GDRI_STREAM_WAIT_ROWS)
GDRI_TEMPLATE(gdri_t_stream_reduce, GDRI_STREAM_REDUCE_ROWS)
GDRI_TEMPLATE(gdri_t_stream_bits, GDRI_STREAM_BITS_ROWS)
GDRI_TEMPLATE(gdri_t_stream_half, GDRI_STREAM_HALF_ROWS)
GDRI_TEMPLATE(gdri_t_stream_bfloat16, GDRI_STREAM_BFLOAT_ROWS)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_STREAM_TYPE(name, T)                                                                  \
	GDRI_OF(gdri_t_stream, T, sizeof(T))                                                       \
	GDRI_STREAM_ALL(name##_, T, sizeof(T), )                                                   \
	GDRI_OF(gdri_t_stream_scalar, T, sizeof(T))                                                \
	GDRI_STREAM_SCALAR_ROWS(name##_, T, sizeof(T), )
#define GDRI_STREAM_SIZE(bits, bytes)                                                              \
	GDRI_OF(gdri_t_stream, void, bytes)                                                        \
	GDRI_STREAM_ALL(, void, bytes, bits)
#define GDRI_STREAM_WAIT(name, T)                                                                  \
	GDRI_OF(gdri_t_stream_wait, T, sizeof(T))                                                  \
	GDRI_STREAM_WAIT_ROWS(name##_, T, sizeof(T), )
#define GDRI_STREAM_REDUCE(name, T)                                                                \
	GDRI_OF(gdri_t_stream_reduce, T, sizeof(T))                                                \
	GDRI_STREAM_REDUCE_ROWS(name##_, T, sizeof(T), )
#define GDRI_STREAM_BITS(name, T)                                                                  \
	GDRI_OF(gdri_t_stream_bits, T, sizeof(T))                                                  \
	GDRI_STREAM_BITS_ROWS(name##_, T, sizeof(T), )
#define GDRI_STREAM_TYPE_16(name, T)                                                               \
	GDRI_OF(gdri_t_stream_##name, T, sizeof(T))                                                \
	GDRI_STREAM_16_ROWS(name##_, T, sizeof(T), name)
GDR_RMA_TYPES(GDRI_STREAM_TYPE)
GDR_RMA_TYPES_MORE(GDRI_STREAM_TYPE)
GDR_RMA_SIZES(GDRI_STREAM_SIZE)
GDRI_OF(gdri_t_stream, void, 1)
GDRI_STREAM_RMA_ROWS(, void, 1, )
GDRI_STREAM_COLL_ROWS(, void, 1, mem)
GDR_WAIT_TYPES(GDRI_STREAM_WAIT)
GDR_RMA_TYPES(GDRI_STREAM_REDUCE)
GDR_INTEGER_TYPES(GDRI_STREAM_BITS)
GDR_HALF_TYPES(GDRI_STREAM_TYPE_16)
#endif

GDRI_SINGLE
GDRI_HOST_FN(int, GDRI_PLAIN(signal_op_on_stream),
	     (uint64_t * sig, uint64_t value, int op, int pe, gdr_stream_t stream),
	     gdri_submit_signal_op(sig, value, op, pe, stream))
GDRI_HOST_FN(int, GDRI_PLAIN(signal_wait_until_on_stream),
	     (const uint64_t *sig, int cmp, uint64_t value, gdr_stream_t stream),
	     gdri_submit_wait(sig, 0, 0, 0, value, 8, 0, cmp, stream))
GDRI_HOST_FN(int, GDRI_PLAIN(quiet_on_stream), (gdr_stream_t stream),
	     gdri_submit_sync(GDRI_RQ_QUIET, 0, stream))
GDRI_HOST_FN(int, GDRI_PLAIN(barrier_all_on_stream), (gdr_stream_t stream),
	     gdri_submit_sync(GDRI_RQ_BARRIER_ALL, 0, stream))
GDRI_HOST_FN(int, GDRI_PLAIN(sync_all_on_stream), (gdr_stream_t stream),
	     gdri_submit_sync(GDRI_RQ_SYNC_ALL, 0, stream))
GDRI_HOST_FN(int, GDRI_PLAIN(barrier_on_stream), (gdr_team_t team, gdr_stream_t stream),
	     gdri_submit_sync(GDRI_RQ_BARRIER, team, stream))
GDRI_HOST_FN(int, GDRI_PLAIN(team_sync_on_stream), (gdr_team_t team, gdr_stream_t stream),
	     gdri_submit_sync(GDRI_RQ_SYNC, team, stream))

#endif
