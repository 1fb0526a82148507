/* SPDX-License-Identifier: BSD-3-Clause */
/* How a translation unit with CUDA kernels meets the library: no relocatable
 * device code, so each unit has a gdri_dev_state of its own, which gdr_init
 * sets through this entry. */
#ifndef GDRI_UNIT_H
#define GDRI_UNIT_H

#include <gdr/macros.h>
#include <gdr/version.h>

struct gdri_dev;

struct gdri_unit {
	int abi_version; /* of the headers it was compiled with */
	int (*set)(struct gdri_dev *dev); /* 0, or a CUDA error */
	struct gdri_unit *next;
};

GDR_EXTERN_C_BEGIN
/* Any thread, before main too; `u` stays until it is removed. A unit that comes after gdr_init is
 * served by the next one. */
GDR_API void gdri_unit_add(struct gdri_unit *u);
GDR_API void gdri_unit_remove(struct gdri_unit *u);
GDR_EXTERN_C_END

#ifdef __CUDACC__

/* Set by gdr_init. */
static __device__ struct gdri_dev *gdri_dev_state __attribute__((unused));

static int gdri_unit_set(struct gdri_dev *dev)
{
	return (int)cudaMemcpyToSymbol(gdri_dev_state, &dev, sizeof(dev));
}

static struct gdri_unit gdri_unit_here = {GDR_ABI_VERSION, gdri_unit_set, 0};

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
