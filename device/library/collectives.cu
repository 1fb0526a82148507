// SPDX-License-Identifier: BSD-3-Clause
/* Collectives of data: one file, since those that move and those that add up share their engines. */
#include "device/library/part.h"

/* call(scope): with the scope as a constant. */
#define BY_SCOPE(scope, call)                                                                                          \
	((scope) == GDRI_BLOCK ? call(GDRI_BLOCK) : (scope) == GDRI_WARP ? call(GDRI_WARP) : call(GDRI_THREAD))

__device__ int gdri_lib_broadcast(int scope, gdr_team_t team, void *dst, const void *src, size_t len, int root)
{
#define BROADCAST(scope) gdri_broadcast(scope, team, dst, src, len, root)
	return BY_SCOPE(scope, BROADCAST);
}

__device__ int gdri_lib_fcollect(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
#define FCOLLECT(scope) gdri_fcollect(scope, team, dst, src, len)
	return BY_SCOPE(scope, FCOLLECT);
}

__device__ int gdri_lib_alltoall(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
#define ALLTOALL(scope) gdri_alltoall(scope, team, dst, src, len)
	return BY_SCOPE(scope, ALLTOALL);
}

__device__ int gdri_lib_collect(int scope, gdr_team_t team, void *dst, const void *src, size_t len)
{
	return gdri_collect(scope, team, dst, src, len);
}

__device__ int gdri_lib_alltoalls(int scope, gdr_team_t team, void *dst, const void *src, int64_t dstep, int64_t sstep,
				  size_t n, uint32_t elem)
{
	return gdri_alltoalls(scope, team, dst, src, dstep, sstep, n, elem);
}

__device__ int gdri_lib_reduce(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code)
{
#define REDUCE(scope) gdri_reduce(scope, team, dst, src, n, code)
	return BY_SCOPE(scope, REDUCE);
}

__device__ int gdri_lib_reducescatter(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code)
{
#define REDUCESCATTER(scope) gdri_reducescatter(scope, team, dst, src, n, code)
	return BY_SCOPE(scope, REDUCESCATTER);
}

__device__ int gdri_lib_scan(int scope, gdr_team_t team, void *dst, const void *src, size_t n, uint32_t code,
			     int exclusive)
{
#define SCAN(scope) gdri_scan(scope, team, dst, src, n, code, exclusive)
	return BY_SCOPE(scope, SCAN);
}
