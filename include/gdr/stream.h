/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that a host thread puts on a stream: they begin when what was put there before has ended,
 * and what follows begins when they have. What a kernel of the stream wrote, they see. On GPUs each is a
 * kernel of the library, or the driver's copy; streams that are captured into a graph take them (the
 * graph may be replayed as often as all PEs replay it). On the host device they run as its kernels do.
 *
 * Arguments, order and completion are those of the functions without _on_stream (gdr/device.h,
 * gdr/coll.h), to which a block of threads, or as many blocks as pay, would pass them. Functions
 * return 0, or at once -GDR_EINVAL for arguments (always checked here), -GDR_ENOTSUP where the library
 * was built without nvcc and the call needs a kernel of it. An error of the operation itself is
 * latched: gdr_host_status(), and the next quiet. Any host thread may call, also several for one stream.
 *
 * Collectives: all members put them on streams in the same order, and one at a time of a team is under
 * way: calls of one team on several streams have to be ordered by the program. A GPU must have room for
 * their blocks beside kernels that do not end before.
 *
 * A GPU may finish what runs before it takes the first launch of a kernel: CUDA loads it then, and makes
 * room for its stack. gdr_init has it take the library's kernels, so that kernels of the program may wait
 * for what a stream or a host thread does. Of two kernels of its own of which one waits for the other the
 * program launches each once before. */
#ifndef GDR_STREAM_H
#define GDR_STREAM_H

#include <gdr/device.h>
#include <gdr/launch.h>

#include <gdr/impl/arch/iso646_off.h>

#if GDRI_HAS_HOST

/** @defgroup stream Operations on streams
 * @include stream.c
 * @{ */
#define GDRI_DECLARE_STREAM_RMA(pre, T, z)                                                         \
	GDRI_PROTOTYPE(int, gdr_##pre##put##z##_on_stream,                                         \
		       (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream))             \
	GDRI_PROTOTYPE(int, gdr_##pre##get##z##_on_stream,                                         \
		       (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream))             \
	GDRI_PROTOTYPE(int, gdr_##pre##put##z##_nbi_on_stream,                                     \
		       (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream))             \
	GDRI_PROTOTYPE(int, gdr_##pre##get##z##_nbi_on_stream,                                     \
		       (T * dst, const T *src, size_t n, int pe, gdr_stream_t stream))             \
	GDRI_PROTOTYPE(int, gdr_##pre##put##z##_signal_on_stream,                                  \
		       (T * dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op,    \
			int pe, gdr_stream_t stream))                                              \
	GDRI_PROTOTYPE(int, gdr_##pre##put##z##_signal_nbi_on_stream,                              \
		       (T * dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op,    \
			int pe, gdr_stream_t stream))
#define GDRI_DECLARE_STREAM_STRIDED(pre, T, z)                                                     \
	GDRI_PROTOTYPE(int, gdr_##pre##iput##z##_on_stream,                                        \
		       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe, \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##pre##iget##z##_on_stream,                                        \
		       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe, \
			gdr_stream_t stream))
#define GDRI_DECLARE_STREAM_SCALAR(name, T)                                                        \
	GDRI_PROTOTYPE(int, gdr_##name##_p_on_stream, (T * dst, T value, int pe, gdr_stream_t stream)) \
	GDRI_PROTOTYPE(T, gdr_##name##_g_on_stream, (const T *src, int pe, gdr_stream_t stream))
#define GDRI_DECLARE_STREAM_TYPE(name, T)                                                          \
	GDRI_DECLARE_STREAM_RMA(name##_, T, )                                                      \
	GDRI_DECLARE_STREAM_STRIDED(name##_, T, )                                                  \
	GDRI_DECLARE_STREAM_SCALAR(name, T)
#define GDRI_DECLARE_STREAM_SIZE(bits, bytes)                                                      \
	GDRI_DECLARE_STREAM_RMA(, void, bits)                                                      \
	GDRI_DECLARE_STREAM_STRIDED(, void, bits)
/** n bytes. @{ */
GDRI_DECLARE_STREAM_RMA(, void, )
/** @} */
/** Elements of a type: gdr_T_{put,get}[_nbi]_on_stream, gdr_T_put_signal[_nbi]_on_stream,
 * gdr_T_{iput,iget}_on_stream, gdr_T_{p,g}_on_stream; g waits for the stream, which cannot be
 * captured then. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_STREAM_TYPE)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_STREAM_TYPE)
/** @} */
/** Elements of 8 to 128 bits. @{ */
GDR_RMA_SIZES(GDRI_DECLARE_STREAM_SIZE)
/** @} */

#define GDRI_DECLARE_STREAM_WAIT(name, T)                                                          \
	GDRI_PROTOTYPE(int, gdr_##name##_wait_until_on_stream,                                     \
		       (const T *ptr, int cmp, T value, gdr_stream_t stream))                      \
	GDRI_PROTOTYPE(int, gdr_##name##_wait_until_all_on_stream,                                 \
		       (const T *ptrs, size_t n, const int *status, int cmp, T value,              \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##name##_wait_until_all_vector_on_stream,                          \
		       (const T *ptrs, size_t n, const int *status, int cmp, const T *values,      \
			gdr_stream_t stream))
/** The stream goes on when the words hold; status and values are read then. @{ */
GDR_WAIT_TYPES(GDRI_DECLARE_STREAM_WAIT)
/** @} */

#define GDRI_DECLARE_STREAM_COLL(pre, T, z)                                                        \
	GDRI_PROTOTYPE(int, gdr_##pre##broadcast##z##_on_stream,                                   \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems, int root,       \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##pre##collect##z##_on_stream,                                     \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems,                 \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##pre##fcollect##z##_on_stream,                                    \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems,                 \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##pre##alltoall##z##_on_stream,                                    \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems,                 \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##pre##alltoalls##z##_on_stream,                                   \
		       (gdr_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,  \
			size_t nelems, gdr_stream_t stream))
#define GDRI_DECLARE_STREAM_COLL_TYPE(name, T) GDRI_DECLARE_STREAM_COLL(name##_, T, )
#define GDRI_DECLARE_STREAM_COLL_SIZE(bits, bytes) GDRI_DECLARE_STREAM_COLL(, void, bits)
/** Collectives of teams that move data: bytes, elements of a type, of 8 to 128 bits. @{ */
GDRI_DECLARE_STREAM_COLL(, void, mem)
GDR_RMA_TYPES(GDRI_DECLARE_STREAM_COLL_TYPE)
GDR_RMA_TYPES_MORE(GDRI_DECLARE_STREAM_COLL_TYPE)
GDR_RMA_SIZES(GDRI_DECLARE_STREAM_COLL_SIZE)
/** @} */

#define GDRI_DECLARE_STREAM_OP(name, T, op)                                                        \
	GDRI_PROTOTYPE(int, gdr_##name##_##op##_reduce_on_stream,                                  \
		       (gdr_team_t team, T * dest, const T *source, size_t nreduce,                \
			gdr_stream_t stream))                                                      \
	GDRI_PROTOTYPE(int, gdr_##name##_##op##_reducescatter_on_stream,                           \
		       (gdr_team_t team, T * dest, const T *source, size_t nreduce,                \
			gdr_stream_t stream))
#define GDRI_DECLARE_STREAM_SCAN(name, T, op)                                                      \
	GDRI_PROTOTYPE(int, gdr_##name##_sum_##op##_on_stream,                                     \
		       (gdr_team_t team, T * dest, const T *source, size_t nelems,                 \
			gdr_stream_t stream))
#define GDRI_DECLARE_STREAM_OPS(name, T)                                                           \
	GDRI_DECLARE_STREAM_OP(name, T, sum)                                                       \
	GDRI_DECLARE_STREAM_OP(name, T, prod)                                                      \
	GDRI_DECLARE_STREAM_OP(name, T, min)                                                       \
	GDRI_DECLARE_STREAM_OP(name, T, max)
#define GDRI_DECLARE_STREAM_REDUCE(name, T)                                                        \
	GDRI_DECLARE_STREAM_OPS(name, T)                                                           \
	GDRI_DECLARE_STREAM_SCAN(name, T, inscan)                                                  \
	GDRI_DECLARE_STREAM_SCAN(name, T, exscan)
#define GDRI_DECLARE_STREAM_BITS(name, T)                                                          \
	GDRI_DECLARE_STREAM_OP(name, T, and)                                                       \
	GDRI_DECLARE_STREAM_OP(name, T, or)                                                        \
	GDRI_DECLARE_STREAM_OP(name, T, xor)
/** Reductions, their scattered form, and scans. @{ */
GDR_RMA_TYPES(GDRI_DECLARE_STREAM_REDUCE)
GDR_INTEGER_TYPES(GDRI_DECLARE_STREAM_BITS)
GDR_HALF_TYPES(GDRI_DECLARE_STREAM_OPS)
/** @} */

/** gdr_signal_op, gdr_signal_wait_until. @{ */
GDRI_PROTOTYPE(int, gdr_signal_op_on_stream,
	       (uint64_t * sig, uint64_t value, int op, int pe, gdr_stream_t stream))
GDRI_PROTOTYPE(int, gdr_signal_wait_until_on_stream,
	       (const uint64_t *sig, int cmp, uint64_t value, gdr_stream_t stream))
/** @} */
/** Completes what this PE did before: operations of the stream, and those ordered before the call. */
GDRI_PROTOTYPE(int, gdr_quiet_on_stream, (gdr_stream_t stream))
/** Barriers and syncs of all PEs, of a team. @{ */
GDRI_PROTOTYPE(int, gdr_barrier_all_on_stream, (gdr_stream_t stream))
GDRI_PROTOTYPE(int, gdr_sync_all_on_stream, (gdr_stream_t stream))
GDRI_PROTOTYPE(int, gdr_barrier_on_stream, (gdr_team_t team, gdr_stream_t stream))
GDRI_PROTOTYPE(int, gdr_team_sync_on_stream, (gdr_team_t team, gdr_stream_t stream))
/** @} */
/** @} */

#include <gdr/impl/api/stream_names.h>
#if defined(__CUDACC__) || defined(GDR_CHECKED)
#include <gdr/impl/api/names.h>
#endif

#endif

#include <gdr/impl/arch/iso646_on.h>

#endif
