/* SPDX-License-Identifier: BSD-3-Clause */
/* The public names of the collectives: one line each, for every type and scope. */
#ifndef GDRI_COLL_NAMES_H
#define GDRI_COLL_NAMES_H

#include <gdr/coll.h>
#include <gdr/impl/reduce.h>

#define GDRI_COLL_BYTES(suffix, scope)                                                             \
	GDR_DEVICE int gdr_broadcastmem##suffix(gdr_team_t team, void *dest, const void *source,   \
						size_t nbytes, int root)                           \
	{                                                                                          \
		return gdri_broadcast(scope, team, dest, source, nbytes, root);                    \
	}                                                                                          \
	GDR_DEVICE int gdr_collectmem##suffix(gdr_team_t team, void *dest, const void *source,     \
					      size_t nbytes)                                       \
	{                                                                                          \
		return gdri_collect(scope, team, dest, source, nbytes);                            \
	}                                                                                          \
	GDR_DEVICE int gdr_fcollectmem##suffix(gdr_team_t team, void *dest, const void *source,    \
					       size_t nbytes)                                      \
	{                                                                                          \
		return gdri_fcollect(scope, team, dest, source, nbytes);                           \
	}                                                                                          \
	GDR_DEVICE int gdr_alltoallmem##suffix(gdr_team_t team, void *dest, const void *source,    \
					       size_t nbytes)                                      \
	{                                                                                          \
		return gdri_alltoall(scope, team, dest, source, nbytes);                           \
	}                                                                                          \
	GDR_DEVICE int gdr_alltoallsmem##suffix(gdr_team_t team, void *dest, const void *source,   \
						ptrdiff_t dst, ptrdiff_t sst, size_t nelems)       \
	{                                                                                          \
		return gdri_alltoalls(scope, team, dest, source, dst, sst, nelems, 1);             \
	}
GDRI_COLL_BYTES(, GDRI_THREAD)
GDRI_COLL_BYTES(_warp, GDRI_WARP)
GDRI_COLL_BYTES(_block, GDRI_BLOCK)

#define GDRI_COLL_ELEMENTS(name, T, suffix, scope)                                                 \
	GDR_DEVICE int gdr_##name##_broadcast##suffix(gdr_team_t team, T *dest, const T *source,   \
						      size_t nelems, int root)                     \
	{                                                                                          \
		return gdri_broadcast(scope, team, dest, source, nelems * sizeof(T), root);        \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_collect##suffix(gdr_team_t team, T *dest, const T *source,     \
						    size_t nelems)                                 \
	{                                                                                          \
		return gdri_collect(scope, team, dest, source, nelems * sizeof(T));                \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_fcollect##suffix(gdr_team_t team, T *dest, const T *source,    \
						     size_t nelems)                                \
	{                                                                                          \
		return gdri_fcollect(scope, team, dest, source, nelems * sizeof(T));               \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_alltoall##suffix(gdr_team_t team, T *dest, const T *source,    \
						     size_t nelems)                                \
	{                                                                                          \
		return gdri_alltoall(scope, team, dest, source, nelems * sizeof(T));               \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_alltoalls##suffix(gdr_team_t team, T *dest, const T *source,   \
						      ptrdiff_t dst, ptrdiff_t sst, size_t nelems) \
	{                                                                                          \
		return gdri_alltoalls(scope, team, dest, source, dst, sst, nelems, sizeof(T));     \
	}
#define GDRI_COLL_TYPE(name, T)                                                                    \
	GDRI_COLL_ELEMENTS(name, T, , GDRI_THREAD)                                                 \
	GDRI_COLL_ELEMENTS(name, T, _warp, GDRI_WARP)                                              \
	GDRI_COLL_ELEMENTS(name, T, _block, GDRI_BLOCK)
GDR_RMA_TYPES(GDRI_COLL_TYPE)

#define GDRI_REDUCE_OP(name, T, op, code, suffix, scope)                                           \
	GDR_DEVICE int gdr_##name##_##op##_reduce##suffix(gdr_team_t team, T *dest,                \
							  const T *source, size_t nreduce)         \
	{                                                                                          \
		return gdri_reduce(scope, team, dest, source, nreduce, GDRI_REDUCE_CODE(T, code)); \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_##op##_reducescatter##suffix(gdr_team_t team, T *dest,         \
								 const T *source, size_t nreduce)  \
	{                                                                                          \
		return gdri_reducescatter(scope, team, dest, source, nreduce,                      \
					  GDRI_REDUCE_CODE(T, code));                              \
	}
#define GDRI_SCAN_OP(name, T, suffix, scope)                                                       \
	GDR_DEVICE int gdr_##name##_sum_inscan##suffix(gdr_team_t team, T *dest, const T *source,  \
						       size_t nelems)                              \
	{                                                                                          \
		return gdri_scan(scope, team, dest, source, nelems, GDRI_REDUCE_CODE(T, GDRI_SUM), \
				 0);                                                               \
	}                                                                                          \
	GDR_DEVICE int gdr_##name##_sum_exscan##suffix(gdr_team_t team, T *dest, const T *source,  \
						       size_t nelems)                              \
	{                                                                                          \
		return gdri_scan(scope, team, dest, source, nelems, GDRI_REDUCE_CODE(T, GDRI_SUM), \
				 1);                                                               \
	}
#define GDRI_REDUCE_OPS(name, T, suffix, scope)                                                    \
	GDRI_REDUCE_OP(name, T, sum, GDRI_SUM, suffix, scope)                                      \
	GDRI_REDUCE_OP(name, T, prod, GDRI_PROD, suffix, scope)                                    \
	GDRI_REDUCE_OP(name, T, min, GDRI_MIN, suffix, scope)                                      \
	GDRI_REDUCE_OP(name, T, max, GDRI_MAX, suffix, scope)                                      \
	GDRI_SCAN_OP(name, T, suffix, scope)
#define GDRI_REDUCE_TYPE(name, T)                                                                  \
	GDRI_REDUCE_OPS(name, T, , GDRI_THREAD)                                                    \
	GDRI_REDUCE_OPS(name, T, _warp, GDRI_WARP)                                                 \
	GDRI_REDUCE_OPS(name, T, _block, GDRI_BLOCK)
GDR_RMA_TYPES(GDRI_REDUCE_TYPE)

#define GDRI_REDUCE_BITS(name, T, suffix, scope)                                                   \
	GDRI_REDUCE_OP(name, T, and, GDRI_AND, suffix, scope)                                      \
	GDRI_REDUCE_OP(name, T, or, GDRI_OR, suffix, scope)                                        \
	GDRI_REDUCE_OP(name, T, xor, GDRI_XOR, suffix, scope)
#define GDRI_REDUCE_INTEGER(name, T)                                                               \
	GDRI_REDUCE_BITS(name, T, , GDRI_THREAD)                                                   \
	GDRI_REDUCE_BITS(name, T, _warp, GDRI_WARP)                                                \
	GDRI_REDUCE_BITS(name, T, _block, GDRI_BLOCK)
GDR_INTEGER_TYPES(GDRI_REDUCE_INTEGER)

#endif
