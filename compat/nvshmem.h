/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of NVSHMEM for programs that were written for it: they build with this folder first in the include
 * path and libgdr instead of NVSHMEM. docs/nvshmem.md says what there is and what there is not; a name that
 * cannot be had does not compile, and says why.
 *
 * Under CUDA calls of one thread are for host and device alike, as there, but for tests and for waits for
 * several words. On the host device everything is for both. Errors, which these functions do not return, are latched:
 * gdr_status(), gdr_host_status(). */
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
#endif
#include <gdr.h>

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

/* A status that the program does not see is latched; quiet and barrier, which take it, put it back. The
 * library says on stderr what it refuses a host thread. */
GDRC_FN int gdrc_said(int ret)
{
#if !defined(__CUDACC__) || defined(__CUDA_ARCH__)
	if (gdri_unlikely(ret < 0) && gdri_dev())
		gdri_latch(gdri_dev(), ret);
#endif
	return ret;
}

/* ---- bring-up, memory: host ---- */

#ifndef __CUDACC_RTC__
/* Bytes of the heap: GDR_HEAP_SIZE if there is one (0), or NVSHMEM_SYMMETRIC_SIZE and what the library needs
 * of it. In memory of a GPU 2 GiB at least: there programs count on a heap that grows. */
static inline size_t gdrc_heap_size(void)
{
	static const char units[] = "kmgt";
	const char *own = getenv("GDR_HEAP_SIZE"), *text = getenv("NVSHMEM_SYMMETRIC_SIZE");
	size_t size = 0, k = 0;
	double n = 0;
	char *end;

	if (own && *own)
		return 0;
	if (text && *text) {
		n = strtod(text, &end);
		while (units[k] && units[k] != (*end | 32))
			k++;
		if (units[k])
			n *= (double)((size_t)1024 << 10 * k);
	}
	if (n > 0)
		size = (size_t)n + ((size_t)64 << 20);
#ifdef __CUDACC__
	size = size > (size_t)2 << 30 ? size : (size_t)2 << 30;
#endif
	return size;
}

/* Libraries of a program may each initialize it, as they may there: but for the first call that
 * only counts, and shows it to kernels that were loaded since. */
static inline int gdrc_init(const struct gdr_init_attr *attr)
{
	int users = gdri_users(1);

	return users ? (users < 0 ? users : 0) : gdr_init_attr(attr);
}

/* gdr_init says what failed; the job ends, as NVSHMEM ends it. */
static inline void nvshmem_init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	attr.heap_size = gdrc_heap_size();
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
		(void)gdr_finalize();
}

static inline void nvshmem_info_get_version(int *major, int *minor)
{
	*major = NVSHMEM_MAJOR_VERSION;
	*minor = NVSHMEM_MINOR_VERSION;
}

static inline void nvshmem_info_get_name(char *name)
{
	static const char text[] = NVSHMEM_VENDOR_STRING;
	size_t i;

	for (i = 0; i < sizeof(text); i++)
		name[i] = text[i];
}

#define nvshmem_global_exit(code) gdr_global_exit(code)
#define nvshmem_malloc(size) gdr_malloc(size)
#define nvshmem_calloc(count, size) gdr_calloc(count, size)
#define nvshmem_align(alignment, size) gdr_align(alignment, size)
#define nvshmem_free(ptr) ((void)gdr_free(ptr))

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

#define nvshmem_team_destroy(team) ((void)gdr_team_destroy(team))
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

/* One's own objects can always be accessed. */
GDRC_FN void *nvshmem_ptr(const void *ptr, int pe)
{
	if (pe == nvshmem_my_pe())
		return (void *)(uintptr_t)ptr;
	return GDRC_EITHER(gdr_ptr(ptr, pe), gdr_host_ptr(ptr, pe));
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
	(void)GDRC_EITHER(gdrc_said(gdr_fence()), gdr_host_fence());
}

GDRC_FN void nvshmem_quiet(void)
{
	(void)GDRC_EITHER(gdrc_said(gdr_quiet()), gdr_host_quiet());
}

GDRC_FN void nvshmem_barrier_all(void)
{
	(void)GDRC_EITHER(gdrc_said(gdr_barrier_all()), gdr_barrier_all());
}

/* Under CUDA the host has a barrier, which is more than asked for. */
GDRC_FN void nvshmem_sync_all(void)
{
	(void)GDRC_EITHER(gdrc_said(gdr_sync_all()), gdr_barrier_all());
}

/* ---- device ---- */

#define nvshmem_barrier(team) gdrc_said(gdr_barrier(team))
#define nvshmem_team_sync(team) gdrc_said(gdr_team_sync(team))
#define nvshmem_signal_fetch(sig) gdr_signal_fetch(sig)

GDRC_FN uint64_t nvshmem_signal_wait_until(uint64_t *sig, int cmp, uint64_t value)
{
	(void)gdrc_said(gdr_signal_wait_until(sig, cmp, value));
	return gdr_signal_fetch(sig);
}

/* ---- typed names ---- */

#ifdef __CUDACC__
/* The forms of one thread that NVSHMEM has for the host, too. */
template <typename T, unsigned E> struct gdrc_rma {
	GDRC_FN void put(T *dst, const T *src, size_t n, int pe)
	{
		(void)GDRC_EITHER((gdrc_said(gdri_t_rma<T, E>::put(GDRI_HERE dst, src, n, pe))),
				  gdr_host_put(dst, src, n * E, pe));
	}
	GDRC_FN void put_nbi(T *dst, const T *src, size_t n, int pe)
	{
		(void)GDRC_EITHER((gdrc_said(gdri_t_rma<T, E>::put_nbi(GDRI_HERE dst, src, n, pe))),
				  gdr_host_put_nbi(dst, src, n * E, pe));
	}
	GDRC_FN void get(T *dst, const T *src, size_t n, int pe)
	{
		(void)GDRC_EITHER((gdrc_said(gdri_t_rma<T, E>::get(GDRI_HERE dst, src, n, pe))),
				  gdr_host_get(dst, src, n * E, pe));
	}
	GDRC_FN void get_nbi(T *dst, const T *src, size_t n, int pe)
	{
		(void)GDRC_EITHER((gdrc_said(gdri_t_rma<T, E>::get_nbi(GDRI_HERE dst, src, n, pe))),
				  gdr_host_get_nbi(dst, src, n * E, pe));
	}
};
template <typename T, unsigned E> struct gdrc_scalar {
	GDRC_FN void p(T *dst, T value, int pe)
	{
		(void)GDRC_EITHER((gdrc_said(gdri_t_scalar<T, E>::p(GDRI_HERE dst, value, pe))),
				  gdr_host_put(dst, &value, E, pe));
	}
	GDRC_FN T g(const T *src, int pe)
	{
#ifdef __CUDA_ARCH__
		return gdri_t_scalar<T, E>::g(GDRI_HERE src, pe);
#else
		T value;

		(void)gdr_host_get(&value, src, E, pe);
		return value;
#endif
	}
};
#define GDRC_BOTH(name, family, T, E, member, ...) family<T, E>::member(__VA_ARGS__)
#else
/* In C both are the same function, but in a job whose kernels run on GPUs: there the host has no device
 * state, and its own calls. */
#define GDRC_BOTH(name, family, T, E, member, ...) GDRC_##member(name, T, E, __VA_ARGS__)
#define GDRC_put(name, T, E, dst, src, n, pe)                                                      \
	(gdri_dev() ? gdrc_said(name(dst, src, n, pe)) : gdr_host_put(dst, src, (n) * (E), pe))
#define GDRC_put_nbi(name, T, E, dst, src, n, pe)                                                  \
	(gdri_dev() ? gdrc_said(name(dst, src, n, pe)) : gdr_host_put_nbi(dst, src, (n) * (E), pe))
#define GDRC_get(name, T, E, dst, src, n, pe)                                                      \
	(gdri_dev() ? gdrc_said(name(dst, src, n, pe)) : gdr_host_get(dst, src, (n) * (E), pe))
#define GDRC_get_nbi(name, T, E, dst, src, n, pe)                                                  \
	(gdri_dev() ? gdrc_said(name(dst, src, n, pe)) : gdr_host_get_nbi(dst, src, (n) * (E), pe))
#define GDRC_p(name, T, E, dst, value, pe)                                                         \
	__extension__({                                                                            \
		T gdrc_v = (value);                                                                \
		gdri_dev() ? gdrc_said(name(dst, gdrc_v, pe)) : gdr_host_put(dst, &gdrc_v, E, pe); \
	})
#define GDRC_g(name, T, E, src, pe)                                                                \
	__extension__({                                                                            \
		T gdrc_v = {0};                                                                    \
		if (gdri_dev())                                                                    \
			gdrc_v = name(src, pe);                                                    \
		else                                                                               \
			(void)gdr_host_get(&gdrc_v, src, E, pe);                                   \
		gdrc_v;                                                                            \
	})
#endif
#include <gdr/compat/nvshmem_names.h>

#endif
