// SPDX-License-Identifier: BSD-3-Clause
/* Collectives that add up. */
#include "device/library/part.h"

/* call(scope): with the scope as a constant. */
#define BY_SCOPE(scope, call)                                                                                          \
	((scope) == GDRI_BLOCK ? call(GDRI_BLOCK) : (scope) == GDRI_WARP ? call(GDRI_WARP) : call(GDRI_THREAD))

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
