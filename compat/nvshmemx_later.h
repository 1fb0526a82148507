/* SPDX-License-Identifier: BSD-3-Clause */
/* Extensions of releases behind the one that nvshmem.h names (3.5 to 3.8), as far as they ask for nothing that gdr has
 * not. Included by nvshmemx.h. */
#ifndef GDR_COMPAT_NVSHMEMX_LATER_H
#define GDR_COMPAT_NVSHMEMX_LATER_H

/* Sources of what was put before, by the thread or all of the scope, may be reused: a quiet is more than that. */
GDRC_FN void nvshmemx_flush(void)
{
	nvshmem_quiet();
}

GDR_DEVICE void gdrc_flush(int scope)
{
	gdri_scope_sync(scope);
	if (!gdri_scope_rank(scope))
		(void)gdrc_unseen(gdr_quiet());
	gdri_scope_sync(scope);
}

GDR_DEVICE void nvshmemx_flush_warp(void)
{
	gdrc_flush(GDRI_WARP);
}

GDR_DEVICE void nvshmemx_flush_block(void)
{
	gdrc_flush(GDRI_BLOCK);
}

#if GDRI_HAS_HOST
static inline void nvshmemx_flush_on_stream(gdr_stream_t stream)
{
	(void)GDRC_TOLD(nvshmemx_flush_on_stream, -1, gdr_quiet_on_stream(stream));
}
#endif

/* Shared memory for the bulk copy engine: a block gives it, and puts may use it. Here they do not, as there by default
 * (NVSHMEM_TMA_POLICY); gdr_put_bulk takes it call by call. */
typedef enum {
	NVSHMEMX_SMEM_RECOMMENDED,
	NVSHMEMX_SMEM_MINIMUM,
	NVSHMEMX_SMEM_BARRIERS_ONLY,
} nvshmemx_smem_amount_t;

GDRC_FN int nvshmemx_ask_smem(nvshmemx_smem_amount_t amount)
{
	return amount == NVSHMEMX_SMEM_BARRIERS_ONLY ? 1024 : amount == NVSHMEMX_SMEM_MINIMUM ? 32768 : 65536;
}

GDR_DEVICE void nvshmemx_give_smem(void *smem, size_t size)
{
	(void)smem, (void)size;
	gdr_sync_block(); /* as there */
}

GDR_DEVICE void nvshmemx_release_smem(void)
{
}

/* Sums of floating-point numbers in memory. */
GDR_BOTH void nvshmemx_float_atomic_add(float *dst, float value, int pe)
{
	GDRC_VOID(nvshmemx_float_atomic_add, pe, gdr_float_atomic_add(dst, value, pe), -GDR_ESTATE);
}

GDR_BOTH float nvshmemx_float_atomic_fetch_add(float *dst, float value, int pe)
{
	return gdr_float_atomic_fetch_add(dst, value, pe);
}

GDR_BOTH void nvshmemx_double_atomic_add(double *dst, double value, int pe)
{
	GDRC_VOID(nvshmemx_double_atomic_add, pe, gdr_double_atomic_add(dst, value, pe), -GDR_ESTATE);
}

GDR_BOTH double nvshmemx_double_atomic_fetch_add(double *dst, double value, int pe)
{
	return gdr_double_atomic_fetch_add(dst, value, pe);
}

#ifndef __CUDACC_RTC__
/* Where it is mapped is the library's to say: a preference is none. */
static inline void *nvshmemx_buffer_register_symmetric_at_preferred_address(void *addr, size_t size, void *preferred,
									     int flags)
{
	(void)preferred;
	return nvshmemx_buffer_register_symmetric(addr, size, flags);
}

static inline const char *nvshmemx_status_string(int status)
{
	switch ((enum nvshmemx_status)status) {
	case NVSHMEMX_SUCCESS:
		return "NVSHMEMX_SUCCESS";
	case NVSHMEMX_ERROR_INVALID_VALUE:
		return "NVSHMEMX_ERROR_INVALID_VALUE";
	case NVSHMEMX_ERROR_OUT_OF_MEMORY:
		return "NVSHMEMX_ERROR_OUT_OF_MEMORY";
	case NVSHMEMX_ERROR_NOT_SUPPORTED:
		return "NVSHMEMX_ERROR_NOT_SUPPORTED";
	case NVSHMEMX_ERROR_SYMMETRY:
		return "NVSHMEMX_ERROR_SYMMETRY";
	case NVSHMEMX_ERROR_GPU_NOT_SELECTED:
		return "NVSHMEMX_ERROR_GPU_NOT_SELECTED";
	case NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED:
		return "NVSHMEMX_ERROR_COLLECTIVE_LAUNCH_FAILED";
	case NVSHMEMX_ERROR_INTERNAL:
		return "NVSHMEMX_ERROR_INTERNAL";
	}
	return "NVSHMEMX_ERROR_<unknown>";
}
#endif

#endif
