/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of every type and scope, as rows (define.h). */
#ifndef GDRI_COLL_NAMES_H
#define GDRI_COLL_NAMES_H

#include <gdr/coll.h>
#include <gdr/impl/api/define.h>
#if GDRI_LINKED
#include <gdr/impl/arch/library.h>
#else
#include <gdr/impl/coll/reducescatter.h>
#include <gdr/impl/coll/scan.h>
#endif

#ifdef GDR_CHECKED
#include <gdr/impl/api/check_coll.h>
#define GDRI_COLL_DONE(team, result) gdri_coll_checked(&at, team, result)
#else
#define GDRI_COLL_DONE(team, result) result
#endif

/* op: GDRI_BROADCAST, ..., or GDRI_CALLED: for messages of the checked build. what: what a host thread asks for, with n
 * elements of E bytes, root, steps, code. */
#define GDRI_COLL_FN(pre, name, z, s, op, scope, params, result, what, n, E, root, dst, sst, code) \
	GDRI_FN_BOTH(scope, int, GDRI_NAME(pre, name, z, s), params, (op, scope),                  \
		     gdri_check_coll(&at, what, team, dest, source, n, E, root, dst, sst, code),   \
		     GDRI_COLL_DONE(team, result),                                                 \
		     gdri_submit_coll(what, team, dest, source, n, E, root, dst, sst, code,           \
				   GDRI_NOW))

#define GDRI_COLL_ROWS(pre, T, E, z, s, scope)                                                     \
	GDRI_COLL_FN(pre, broadcast, z, s, GDRI_BROADCAST, scope,                                  \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems, int root),        \
		     gdri_broadcast(scope, team, dest, source, nelems * (E), root),                \
		     GDRI_RQ_BROADCAST, nelems, E, root, 1, 1, 0)                                  \
	GDRI_COLL_FN(pre, collect, z, s, GDRI_COLLECT, scope,                                      \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems),                  \
		     gdri_collect(scope, team, dest, source, nelems * (E)),                        \
		     GDRI_RQ_COLLECT, nelems, E, 0, 1, 1, 0)                                       \
	GDRI_COLL_FN(pre, fcollect, z, s, GDRI_CALLED(GDRI_COLLECT, FCOLLECT), scope,              \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems),                  \
		     gdri_fcollect(scope, team, dest, source, nelems * (E)),                       \
		     GDRI_RQ_FCOLLECT, nelems, E, 0, 1, 1, 0)                                      \
	GDRI_COLL_FN(pre, alltoall, z, s, GDRI_ALLTOALL, scope,                                    \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems),                  \
		     gdri_alltoall(scope, team, dest, source, nelems * (E)),                       \
		     GDRI_RQ_ALLTOALL, nelems, E, 0, 1, 1, 0)                                      \
	GDRI_COLL_FN(pre, alltoalls, z, s, GDRI_CALLED(GDRI_ALLTOALL, ALLTOALLS), scope,           \
		     (gdr_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst,    \
		      size_t nelems),                                                              \
		     gdri_alltoalls(scope, team, dest, source, dst, sst, nelems, E),               \
		     GDRI_RQ_ALLTOALLS, nelems, E, 0, dst, sst, 0)

#define GDRI_REDUCE_OP(pre, op, T, code, s, scope)                                                 \
	GDRI_COLL_FN(pre, op##_reduce, , s, GDRI_REDUCE, scope,                                    \
		     (gdr_team_t team, T * dest, const T *source, size_t nreduce),                 \
		     gdri_reduce(scope, team, dest, source, nreduce, code),                        \
		     GDRI_RQ_REDUCE, nreduce, sizeof(T), 0, 1, 1, code)                            \
	GDRI_COLL_FN(pre, op##_reducescatter, , s, GDRI_REDUCESCATTER, scope,                      \
		     (gdr_team_t team, T * dest, const T *source, size_t nreduce),                 \
		     gdri_reducescatter(scope, team, dest, source, nreduce, code),                 \
		     GDRI_RQ_REDUCESCATTER, nreduce, sizeof(T), 0, 1, 1, code)
#define GDRI_SCAN_OP(pre, op, T, exclusive, OP, s, scope)                                          \
	GDRI_COLL_FN(pre, sum_##op, , s, GDRI_CALLED(GDRI_SCAN, OP), scope,                        \
		     (gdr_team_t team, T * dest, const T *source, size_t nelems),                  \
		     gdri_scan(scope, team, dest, source, nelems, GDRI_REDUCE_CODE(T, GDRI_SUM),   \
			       exclusive),                                                         \
		     GDRI_RQ_##OP, nelems, sizeof(T), 0, 1, 1, GDRI_REDUCE_CODE(T, GDRI_SUM))

#define GDRI_REDUCE_ROWS(pre, T, E, z, s, scope)                                                   \
	GDRI_REDUCE_OP(pre, sum, T, GDRI_REDUCE_CODE(T, GDRI_SUM), s, scope)                       \
	GDRI_REDUCE_OP(pre, prod, T, GDRI_REDUCE_CODE(T, GDRI_PROD), s, scope)                     \
	GDRI_REDUCE_OP(pre, min, T, GDRI_REDUCE_CODE(T, GDRI_MIN), s, scope)                       \
	GDRI_REDUCE_OP(pre, max, T, GDRI_REDUCE_CODE(T, GDRI_MAX), s, scope)                       \
	GDRI_SCAN_OP(pre, inscan, T, 0, INSCAN, s, scope)                                          \
	GDRI_SCAN_OP(pre, exscan, T, 1, EXSCAN, s, scope)
#define GDRI_REDUCE_BITS_ROWS(pre, T, E, z, s, scope)                                              \
	GDRI_REDUCE_OP(pre, and, T, GDRI_REDUCE_CODE(T, GDRI_AND), s, scope)                       \
	GDRI_REDUCE_OP(pre, or, T, GDRI_REDUCE_CODE(T, GDRI_OR), s, scope)                         \
	GDRI_REDUCE_OP(pre, xor, T, GDRI_REDUCE_CODE(T, GDRI_XOR), s, scope)

/* name: half or bfloat16 */
#define GDRI_REDUCE_16_ROWS(pre, T, name, s, scope)                                                \
	GDRI_REDUCE_OP(pre, sum, T, GDRI_CODE_##name(GDRI_SUM), s, scope)                          \
	GDRI_REDUCE_OP(pre, prod, T, GDRI_CODE_##name(GDRI_PROD), s, scope)                        \
	GDRI_REDUCE_OP(pre, min, T, GDRI_CODE_##name(GDRI_MIN), s, scope)                          \
	GDRI_REDUCE_OP(pre, max, T, GDRI_CODE_##name(GDRI_MAX), s, scope)

GDRI_SINGLE
#define GDRI_TEAM_ROWS(s, scope)                                                                   \
	GDRI_FN_BOTH(scope, int, GDRI_PLAIN(team_sync##s), (gdr_team_t team),                      \
		     (GDRI_CALLED(GDRI_TEAM_SYNC, TEAM_SYNC), scope),                              \
		     gdri_check_team(&at, GDRI_RQ_SYNC, team),                                     \
		     GDRI_COLL_DONE(team, gdri_team_barrier(scope, team, 0)),                      \
		     gdri_submit_sync(GDRI_RQ_SYNC, team, GDRI_NOW))                                  \
	GDRI_FN_BOTH(scope, int, GDRI_PLAIN(barrier##s), (gdr_team_t team),                        \
		     (GDRI_CALLED(GDRI_TEAM_SYNC, BARRIER), scope),                                \
		     gdri_check_team(&at, GDRI_RQ_BARRIER, team),                                  \
		     GDRI_COLL_DONE(team, gdri_team_barrier(scope, team, 1)),                      \
		     gdri_submit_sync(GDRI_RQ_BARRIER, team, GDRI_NOW))
GDRI_TEAM_ROWS(, GDRI_THREAD)
GDRI_TEAM_ROWS(_warp, GDRI_WARP)
GDRI_TEAM_ROWS(_block, GDRI_BLOCK)

#define GDRI_COLL_ALL(pre, T, E, z) GDRI_SCOPES(GDRI_COLL_ROWS, pre, T, E, z)
#define GDRI_REDUCE_ALL(pre, T, E, z) GDRI_SCOPES(GDRI_REDUCE_ROWS, pre, T, E, z)
#define GDRI_REDUCE_BITS_ALL(pre, T, E, z) GDRI_SCOPES(GDRI_REDUCE_BITS_ROWS, pre, T, E, z)
#define GDRI_REDUCE_16_ALL(pre, T, name)                                                           \
	GDRI_REDUCE_16_ROWS(pre, T, name, , GDRI_THREAD)                                           \
	GDRI_REDUCE_16_ROWS(pre, T, name, _warp, GDRI_WARP)                                        \
	GDRI_REDUCE_16_ROWS(pre, T, name, _block, GDRI_BLOCK)
#define GDRI_REDUCE_HALF_ALL(pre, T, E, z) GDRI_REDUCE_16_ALL(pre, T, half)
#define GDRI_REDUCE_BFLOAT_ALL(pre, T, E, z) GDRI_REDUCE_16_ALL(pre, T, bfloat16)
GDRI_TEMPLATE(gdri_t_coll, GDRI_COLL_ALL)
GDRI_TEMPLATE(gdri_t_reduce, GDRI_REDUCE_ALL)
GDRI_TEMPLATE(gdri_t_reduce_bits, GDRI_REDUCE_BITS_ALL)
GDRI_TEMPLATE(gdri_t_reduce_half, GDRI_REDUCE_HALF_ALL)
GDRI_TEMPLATE(gdri_t_reduce_bfloat16, GDRI_REDUCE_BFLOAT_ALL)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_COLL_TYPE(name, T)                                                                    \
	GDRI_OF(gdri_t_coll, T, sizeof(T))                                                         \
	GDRI_COLL_ALL(name##_, T, sizeof(T), )
#define GDRI_COLL_SIZE(bits, bytes)                                                                \
	GDRI_OF(gdri_t_coll, void, bytes)                                                          \
	GDRI_COLL_ALL(, void, bytes, bits)
#define GDRI_REDUCE_TYPE(name, T)                                                                  \
	GDRI_OF(gdri_t_reduce, T, sizeof(T))                                                       \
	GDRI_REDUCE_ALL(name##_, T, sizeof(T), )
#define GDRI_REDUCE_INTEGER(name, T)                                                               \
	GDRI_OF(gdri_t_reduce_bits, T, sizeof(T))                                                  \
	GDRI_REDUCE_BITS_ALL(name##_, T, sizeof(T), )
#define GDRI_REDUCE_TYPE_16(name, T)                                                               \
	GDRI_OF(gdri_t_reduce_##name, T, sizeof(T))                                                \
	GDRI_REDUCE_16_ALL(name##_, T, name)
GDR_RMA_TYPES(GDRI_COLL_TYPE)
GDR_RMA_TYPES_MORE(GDRI_COLL_TYPE)
GDR_RMA_SIZES(GDRI_COLL_SIZE)
GDRI_OF(gdri_t_coll, void, 1)
GDRI_COLL_ALL(, void, 1, mem)
GDR_RMA_TYPES(GDRI_REDUCE_TYPE)
GDR_INTEGER_TYPES(GDRI_REDUCE_INTEGER)
GDR_HALF_TYPES(GDRI_REDUCE_TYPE_16)
#endif

#endif
