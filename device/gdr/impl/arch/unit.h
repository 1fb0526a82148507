/* SPDX-License-Identifier: BSD-3-Clause */
/* How a translation unit with CUDA kernels meets the library: each has constants of its own, which gdr_init sets
 * through this entry. In code that is loaded by hand (compiled by NVRTC, or with
 * GDR_MODULE defined) gdr_module_init finds them by name. Units of relocatable device code that are linked with
 * libgdr_device.a share those of that library (docs/adr/0010-a-device-library-for-relocatable-code.md). */
#ifndef GDRI_UNIT_H
#define GDRI_UNIT_H

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/arch/library.h>
#include <gdr/macros.h>
#include <gdr/version.h>

#ifndef __CUDACC_RTC__
struct gdri_unit {
	int abi_version; /* of the headers it was compiled with */
	int (*set)(const struct gdri_constants *c); /* 0, or a CUDA error */
	struct gdri_unit *next;
	int queues; /* its kernels can post: it was compiled without GDR_NO_QUEUES */
	int direct; /* 1 + the device whose constants say so, or 0 */
	int any_address; /* its kernels find symmetric memory outside the heap: compiled with GDR_ANY_ADDRESS */
};

GDR_EXTERN_C_BEGIN
/* Any thread, before main too; `u` stays until it is removed. A unit that comes after gdr_init is
 * served by the next one, or by gdri_users. */
GDR_API void gdri_unit_add(struct gdri_unit *u);
GDR_API void gdri_unit_remove(struct gdri_unit *u);
GDR_EXTERN_C_END
#endif

#define GDRI_CONSTANTS_NAME "gdri_constants_here"
#define GDRI_MODULE_NO_QUEUES (1ull << 32) /* beside the version: its kernels cannot post, */
#define GDRI_MODULE_ANY_ADDRESS (1ull << 33) /* or find symmetric memory outside the heap */

#ifdef GDR_ANY_ADDRESS
#define GDRI_HAS_ANY_ADDRESS 1
#else
#define GDRI_HAS_ANY_ADDRESS 0
#endif

#if GDRI_LINKED || defined(GDRI_LIBRARY_PART)
extern "C" {
extern __constant__ struct gdri_constants gdri_constants_here;
}
#endif

#if defined(GDRI_LIBRARY_PART) || (GDRI_LINKED && defined(GDR_MODULE))
/* unit.cu sets them, or gdr_module_init. */
#elif defined(__CUDACC_RTC__) || (defined(__CUDACC__) && defined(GDR_MODULE))

extern "C" {
#if defined(GDR_MODULE_PART) /* another unit of the module holds them */
extern __constant__ struct gdri_constants gdri_constants_here;
#elif defined(GDR_NO_QUEUES)
__constant__ struct gdri_constants gdri_constants_here = {
	GDR_ABI_VERSION | GDRI_MODULE_NO_QUEUES | GDRI_HAS_ANY_ADDRESS * GDRI_MODULE_ANY_ADDRESS};
#else
__constant__ struct gdri_constants gdri_constants_here = {
	GDR_ABI_VERSION | GDRI_HAS_ANY_ADDRESS * GDRI_MODULE_ANY_ADDRESS};
#endif
}

#elif defined(__CUDACC__)

/* Set by gdr_init. */
#if defined(GDRI_LIBRARY_UNIT) /* unit.cu of libgdr_device.a; a module that is linked with it is known by its version */
extern "C" {
__constant__ struct gdri_constants gdri_constants_here = {GDR_ABI_VERSION};
}
#elif !GDRI_LINKED
static __constant__ struct gdri_constants gdri_constants_here __attribute__((unused));
#endif

static int gdri_unit_set(const struct gdri_constants *c);

#ifdef GDR_NO_QUEUES
static struct gdri_unit gdri_unit_here = {GDR_ABI_VERSION, gdri_unit_set, 0, 0, 0, GDRI_HAS_ANY_ADDRESS};
#else
static struct gdri_unit gdri_unit_here = {GDR_ABI_VERSION, gdri_unit_set, 0, 1, 0, GDRI_HAS_ANY_ADDRESS};
#endif

static int gdri_unit_set(const struct gdri_constants *c)
{
	int device;

	/* another device has constants of its own, which nobody sets */
	gdri_unit_here.direct = c->direct && cudaGetDevice(&device) == cudaSuccess ? device + 1 : 0;
#if GDRI_LINKED /* unit.cu's set them */
	return 0;
#else
	return (int)cudaMemcpyToSymbol(gdri_constants_here, c, sizeof(*c));
#endif
}

__attribute__((constructor)) static void gdri_unit_start(void)
{
	gdri_unit_add(&gdri_unit_here);
}

__attribute__((destructor)) static void gdri_unit_end(void)
{
	gdri_unit_remove(&gdri_unit_here);
}

#endif

#endif
