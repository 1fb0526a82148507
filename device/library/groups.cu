// SPDX-License-Identifier: BSD-3-Clause
/* What warps and blocks move together, and what lies in steps. */
#include "device/library/part.h"

/* call(scope): with the scope as a constant. */
#define BY_SCOPE(scope, call) ((scope) == GDRI_BLOCK ? call(GDRI_BLOCK) : call(GDRI_WARP))

__device__ int gdri_lib_group_memory(uint32_t form, void *remote, void *local, size_t len, int pe, uint32_t q)
{
	int nbi = (int)GDRI_FORM_B(form), scope = (int)GDRI_FORM_A(form);

#define PUT(scope) gdri_put(scope, nbi, remote, local, len, pe, q)
#define GET(scope) gdri_get(scope, nbi, local, remote, len, pe, q)
	return GDRI_FORM_OP(form) == GDRI_PUT ? BY_SCOPE(scope, PUT) : BY_SCOPE(scope, GET);
}

__device__ int gdri_lib_group_put_signal(uint32_t form, void *dst, const void *src, size_t len, uint64_t *sig,
					 uint64_t value, int op, int pe, uint32_t q)
{
	int nbi = (int)GDRI_FORM_B(form), scope = (int)GDRI_FORM_A(form);

#define PUT_SIGNAL(scope) gdri_put_signal(scope, nbi, dst, src, len, sig, value, op, pe, q)
	return BY_SCOPE(scope, PUT_SIGNAL);
}

__device__ int gdri_lib_bulk(uint32_t form, void *remote, void *local, size_t len, void *stage, size_t bytes, int pe,
			     uint32_t q)
{
	int nbi = (int)GDRI_FORM_B(form), scope = (int)GDRI_FORM_A(form);

	return GDRI_FORM_OP(form) == GDRI_PUT ? gdri_put_bulk(scope, nbi, remote, local, len, stage, bytes, pe, q)
					      : gdri_get_bulk(scope, nbi, local, remote, len, stage, bytes, pe, q);
}

__device__ int gdri_lib_strided(uint32_t form, void *dst, const void *src, int64_t dstep, int64_t sstep, size_t len,
				size_t n, int pe, uint32_t q)
{
	return gdri_strided(GDRI_FORM_OP(form), (int)GDRI_FORM_A(form), (int)GDRI_FORM_B(form), dst, src, dstep, sstep,
			    len, n, pe, q);
}
