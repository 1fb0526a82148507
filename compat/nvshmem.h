/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of NVSHMEM for programs that were written for it: they build with this folder first in the include
 * path and libgdr instead of NVSHMEM. docs/nvshmem.md says what there is and what there is not; a name that
 * cannot be had does not compile, and says why.
 *
 * Names are functions, as there: what a program does with a function it may do with them. This file brings the
 * extensions too (nvshmemx.h), and under CUDA cooperative_groups.h, which programs count on.
 *
 * Under CUDA calls of one thread are for host and device alike, as there, but for tests and for waits for
 * several words. On the host device everything is for both. Errors, which these functions do not return, are latched:
 * gdr_status(), gdr_host_status(); and told as GDR_NVSHMEM_ERRORS says. */
#ifndef GDR_COMPAT_NVSHMEM_H
#define GDR_COMPAT_NVSHMEM_H

#ifndef __CUDACC_RTC__ /* programs count on them */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __has_include
#if __has_include(<cuda_runtime.h>)
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#endif
#endif
#ifdef __CUDACC__
#include <cooperative_groups.h>
#endif
#endif
#define GDRI_OWN_OUTSIDE /* to oneself memory need not be symmetric */
#if defined(__CUDACC_RDC__) && defined(__has_include)
#if __has_include(<gdr/compat/linked.h>) /* installed with libnvshmem_device.a, which such programs link */
#undef GDR_DEVICE_LIBRARY
#define GDR_DEVICE_LIBRARY
#endif
#endif
#include <gdr.h>
#ifndef __CUDACC__ /* host threads have calls of their own: see GDRC_VOID */
#include <gdr/host_ops.h>
#endif
#include <gdr/impl/wait/unseen.h>

#define NVSHMEM_MAJOR_VERSION 1
#define NVSHMEM_MINOR_VERSION 3
#define NVSHMEM_VENDOR_STRING "gdr " GDR_VERSION_STRING
/* The version whose names are here, for programs that choose by it; gdr's own stands in the string above. */
#define NVSHMEM_VENDOR_MAJOR_VERSION 3
#define NVSHMEM_VENDOR_MINOR_VERSION 4
#define NVSHMEM_VENDOR_PATCH_VERSION 5
#define NVSHMEM_VENDOR_VERSION                                                                     \
	(NVSHMEM_VENDOR_MAJOR_VERSION * 10000 + NVSHMEM_VENDOR_MINOR_VERSION * 100 + NVSHMEM_VENDOR_PATCH_VERSION)
#define NVSHMEM_MAX_NAME_LEN 256

#define NVSHMEM_CMP_EQ GDR_CMP_EQ
#define NVSHMEM_CMP_NE GDR_CMP_NE
#define NVSHMEM_CMP_GT GDR_CMP_GT
#define NVSHMEM_CMP_GE GDR_CMP_GE
#define NVSHMEM_CMP_LT GDR_CMP_LT
#define NVSHMEM_CMP_LE GDR_CMP_LE
#define NVSHMEM_SIGNAL_SET GDR_SIGNAL_SET
#define NVSHMEM_SIGNAL_ADD GDR_SIGNAL_ADD
#define NVSHMEM_THREAD_SINGLE 0
#define NVSHMEM_THREAD_FUNNELED 1
#define NVSHMEM_THREAD_SERIALIZED 2
#define NVSHMEM_THREAD_MULTIPLE 3

typedef gdr_team_t nvshmem_team_t;
typedef uint64_t nvshmemx_team_uniqueid_t;
typedef struct { /* 64 bytes, as there */
	int version, num_contexts;
	nvshmemx_team_uniqueid_t uniqueid;
	char padding[48];
} nvshmem_team_config_t;
#define NVSHMEM_TEAM_CONFIG_INITIALIZER {(2 << 16) + 64, -1, ~(nvshmemx_team_uniqueid_t)0, {0}}
#define NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS GDR_TEAM_NUM_CONTEXTS
#define NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID 2L
#define NVSHMEM_TEAM_INVALID GDR_TEAM_INVALID
#define NVSHMEM_TEAM_WORLD GDR_TEAM_WORLD
#define NVSHMEM_TEAM_SHARED GDR_TEAM_SHARED
#define NVSHMEMX_TEAM_NODE GDR_TEAM_NODE
/* nvshmem_team_split_strided makes it: PEs of the same number in their nodes. */
#define NVSHMEMX_TEAM_SAME_MYPE_NODE gdr_has_no_NVSHMEMX_TEAM_SAME_MYPE_NODE_split_one
#define NVSHMEM_TEAM_NUM_CONTEXTS GDR_TEAM_NUM_CONTEXTS

GDR_EXTERN_C_BEGIN

/* For host and device under CUDA: what runs on each. */
#ifdef __CUDACC__
#define GDRC_FN static __host__ __device__ __forceinline__
#else
#define GDRC_FN GDR_DEVICE
#endif
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define GDRC_EITHER(device, host) (host)
#elif defined(__CUDACC__)
#define GDRC_EITHER(device, host) (device)
#else
/* The host has no device state in a job whose kernels run on GPUs. */
#define GDRC_EITHER(device, host) (gdri_dev() ? (device) : (host))
#endif

/* A status that the program does not see is latched, counted and told (GDR_NVSHMEM_ERRORS). */
GDRC_FN int gdrc_unseen(int ret)
{
#if !defined(__CUDACC__) || defined(__CUDA_ARCH__)
	if (gdri_unlikely(ret < 0) && gdri_dev())
		gdri_note_unseen(gdri_dev(), ret);
#endif
	return ret;
}

/* What a host thread does in a call that returns nothing: the library is told of a failure, with call and PE. */
#ifdef __CUDACC_RTC__
#define GDRC_TOLD(name, pe, ...) (__VA_ARGS__)
#else
static inline int gdrc_told(const char *name, int pe, int ret)
{
	if (ret < 0)
		gdri_unseen(name, pe, ret);
	return ret;
}
#define GDRC_TOLD(name, pe, ...) gdrc_told(#name, pe, __VA_ARGS__) /* commas of templates */
#endif

/* Bodies of functions by what they return: nothing; a status. In C a host thread of a job whose kernels run on GPUs
 * has its own call, `host`; under CUDA the call of gdr is for both. */
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__)
#define GDRC_VOID(name, pe, call, host) (void)GDRC_TOLD(name, pe, call)
#elif defined(__CUDACC__)
#define GDRC_VOID(name, pe, call, host) (void)gdrc_unseen(call)
#else
#define GDRC_VOID(name, pe, call, host) (void)(gdri_dev() ? gdrc_unseen(call) : GDRC_TOLD(name, pe, host))
#endif
#ifdef __CUDACC__
#define GDRC_STATUS(call, host) return call
#else
#define GDRC_STATUS(call, host) return gdri_dev() ? (call) : (host)
#endif

/* ---- bring-up, memory: host ---- */

#ifndef __CUDACC_RTC__
/* Libraries of a program may each initialize it, as they may there: but for the first call that
 * only counts, and shows it to kernels that were loaded since. The library chooses the size of the heap. */
static inline int gdrc_init(const struct gdr_init_attr *attr)
{
	int users = gdri_users(1);

	return users ? (users < 0 ? users : 0) : gdri_init_abi(attr, GDR_ABI_VERSION | GDRI_INIT_NVSHMEM);
}

/* gdr_init says what failed; the job ends, as NVSHMEM ends it. */
static inline void nvshmem_init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	if (gdrc_init(&attr))
		gdr_global_exit(1);
}

static inline int nvshmem_init_thread(int requested, int *provided)
{
	(void)requested;
	nvshmem_init();
	*provided = NVSHMEM_THREAD_MULTIPLE;
	return 0;
}

static inline void nvshmem_query_thread(int *provided)
{
	*provided = NVSHMEM_THREAD_MULTIPLE;
}

/* The last of as many calls as initialized it ends it. */
static inline void nvshmem_finalize(void)
{
	if (gdri_users(-1) > 0)
		(void)gdr_barrier_all();
	else
		(void)gdr_finalize(); /* tells how many calls failed */
}

static inline void nvshmem_info_get_version(int *major, int *minor)
{
	*major = NVSHMEM_MAJOR_VERSION;
	*minor = NVSHMEM_MINOR_VERSION;
}

static inline void nvshmem_info_get_name(char *name)
{
	static const char text[] = NVSHMEM_VENDOR_STRING;

	for (size_t i = 0; i < sizeof(text); i++)
		name[i] = text[i];
}

static inline void nvshmem_global_exit(int code)
{
	gdr_global_exit(code);
}

static inline void *nvshmem_malloc(size_t size)
{
	return gdr_malloc(size);
}

static inline void *nvshmem_calloc(size_t count, size_t size)
{
	return gdr_calloc(count, size);
}

static inline void *nvshmem_align(size_t alignment, size_t size)
{
	return gdr_align(alignment, size);
}

static inline void nvshmem_free(void *ptr)
{
	(void)GDRC_TOLD(nvshmem_free, -1, gdr_free(ptr));
}

/* NULL, or what of it counts for gdr. */
static inline const gdr_team_config_t *gdrc_config(const nvshmem_team_config_t *config, gdr_team_config_t *own)
{
	if (!config)
		return 0;
	own->num_contexts = config->num_contexts;
	return own;
}

static inline int nvshmem_team_split_strided(nvshmem_team_t parent, int start, int stride, int size,
					     const nvshmem_team_config_t *config, long mask,
					     nvshmem_team_t *team)
{
	gdr_team_config_t own;

	return gdr_team_split_strided(parent, start, stride, size, gdrc_config(config, &own),
				      mask & GDR_TEAM_NUM_CONTEXTS, team);
}

static inline int nvshmem_team_split_2d(nvshmem_team_t parent, int xrange,
					const nvshmem_team_config_t *xconfig, long xmask,
					nvshmem_team_t *xteam, const nvshmem_team_config_t *yconfig,
					long ymask, nvshmem_team_t *yteam)
{
	gdr_team_config_t x, y;

	return gdr_team_split_2d(parent, xrange, gdrc_config(xconfig, &x),
				 xmask & GDR_TEAM_NUM_CONTEXTS, xteam, gdrc_config(yconfig, &y),
				 ymask & GDR_TEAM_NUM_CONTEXTS, yteam);
}

static inline int nvshmem_team_get_config(nvshmem_team_t team, nvshmem_team_config_t *config)
{
	gdr_team_config_t own;
	int ret = gdr_team_get_config(team, GDR_TEAM_NUM_CONTEXTS, &own);

	if (!ret && config)
		config->num_contexts = own.num_contexts;
	return config ? ret : 1; /* NVSHMEMX_ERROR_INVALID_VALUE */
}

static inline int nvshmemx_team_get_uniqueid(nvshmemx_team_uniqueid_t *id)
{
	return gdr_team_new_id(id);
}

/* Members alone call it. Its ids may be 0, and not that of the initializer; gdr's are one more. */
static inline int nvshmemx_team_init(nvshmem_team_t *team, nvshmem_team_config_t *config, long mask,
				     int n, int me)
{
	gdr_team_config_t own;

	if (!team)
		return 1;
	*team = NVSHMEM_TEAM_INVALID;
	if (!config || !~config->uniqueid)
		return 1; /* NVSHMEMX_ERROR_INVALID_VALUE */
	return gdr_team_join(config->uniqueid + 1, n, me, gdrc_config(config, &own),
			     mask & GDR_TEAM_NUM_CONTEXTS, team);
}

static inline void nvshmem_team_destroy(nvshmem_team_t team)
{
	(void)GDRC_TOLD(nvshmem_team_destroy, -1, gdr_team_destroy(team));
}
#endif

/* ---- host and device ---- */

GDRC_FN int nvshmem_my_pe(void)
{
	return GDRC_EITHER(gdr_my_pe(), gdr_host_my_pe());
}

GDRC_FN int nvshmem_n_pes(void)
{
	return GDRC_EITHER(gdr_n_pes(), gdr_host_n_pes());
}

/* Of oneself also where there are queues alone: NULL is outside the heap. */
GDR_DEVICE void *gdrc_ptr(const void *ptr, int pe)
{
	const struct gdri_dev *dev = gdri_dev();

	if (dev && pe == gdri_k(dev, pe))
		return gdri_heap_offset(dev, ptr) < gdri_k(dev, heap_size) ? (void *)(uintptr_t)ptr : 0;
	return gdr_ptr(ptr, pe);
}

GDRC_FN void *nvshmem_ptr(const void *ptr, int pe)
{
	return GDRC_EITHER(gdrc_ptr(ptr, pe), gdr_host_ptr(ptr, pe));
}

GDRC_FN int nvshmem_team_my_pe(nvshmem_team_t team)
{
	return GDRC_EITHER(gdr_team_my_pe(team), gdr_host_team_my_pe(team));
}

GDRC_FN int nvshmem_team_n_pes(nvshmem_team_t team)
{
	return GDRC_EITHER(gdr_team_n_pes(team), gdr_host_team_n_pes(team));
}

GDRC_FN int nvshmem_team_translate_pe(nvshmem_team_t from, int pe, nvshmem_team_t to)
{
	return GDRC_EITHER(gdr_team_translate_pe(from, pe, to),
			   gdr_host_team_translate_pe(from, pe, to));
}

GDRC_FN void nvshmem_fence(void)
{
	(void)GDRC_EITHER(gdrc_unseen(gdr_fence()), GDRC_TOLD(nvshmem_fence, -1, gdr_host_fence()));
}

GDRC_FN void nvshmem_quiet(void)
{
	(void)GDRC_EITHER(gdrc_unseen(gdr_quiet()), GDRC_TOLD(nvshmem_quiet, -1, gdr_host_quiet()));
}

GDRC_FN void nvshmem_barrier_all(void)
{
	(void)GDRC_EITHER(gdrc_unseen(gdr_barrier_all()), GDRC_TOLD(nvshmem_barrier_all, -1, gdr_barrier_all()));
}

/* Under CUDA the host has a barrier, which is more than asked for. */
GDRC_FN void nvshmem_sync_all(void)
{
	(void)GDRC_EITHER(gdrc_unseen(gdr_sync_all()), GDRC_TOLD(nvshmem_sync_all, -1, gdr_barrier_all()));
}

GDR_BOTH int nvshmem_barrier(nvshmem_team_t team)
{
	GDRC_STATUS(gdr_barrier(team), gdr_host_barrier(team));
}

GDR_BOTH int nvshmem_team_sync(nvshmem_team_t team)
{
	GDRC_STATUS(gdr_team_sync(team), gdr_host_team_sync(team));
}

GDR_BOTH uint64_t nvshmem_signal_fetch(uint64_t *sig)
{
#ifdef __CUDACC__
	return gdr_signal_fetch(sig);
#else
	uint64_t value = 0;

	if (gdri_dev())
		return gdr_signal_fetch(sig);
	gdri_value_get(&value, sig, sizeof(value), gdr_host_my_pe());
	return value;
#endif
}

GDR_BOTH uint64_t nvshmem_signal_wait_until(uint64_t *sig, int cmp, uint64_t value)
{
	GDRC_VOID(nvshmem_signal_wait_until, -1, gdr_signal_wait_until(sig, cmp, value),
		  gdr_host_signal_wait_until(sig, cmp, value));
	/* The wait was the acquire: this load pairs with nothing, and holds up nobody who does not use the value. On GPUs it
	 * is all: signal_fetch beside it took a kernel of wait and put to 33 registers. */
	return GDRC_EITHER(gdri_ld_relaxed_sys_u64(sig), nvshmem_signal_fetch(sig));
}

GDR_EXTERN_C_END

#include "nvshmemx.h"

#endif
