// SPDX-License-Identifier: BSD-3-Clause
#include "host/host.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/cuda/units.h"

static int module_change(const char *call, struct CUmod_st *module,
			 int (*how)(struct gdri_state *st, struct CUmod_st *module))
{
	struct gdri_state *st = gdri_need_state(call);
	int ret;

	if (!st)
		return -GDR_ESTATE;
	if (!st->cuda)
		return gdri_fail(-GDR_ENOTSUP,
				 "%s: kernels run on the host device here; GDR_DEVICE=cuda makes gdr_init use a GPU",
				 call);
	if (!module)
		return gdri_fail(-GDR_EINVAL, "%s: module is NULL", call);
	gdri_lock(&st->local_lock);
	ret = how(st, module);
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

int gdr_module_init(struct CUmod_st *module)
{
	return module_change("gdr_module_init", module, gdri_module_add);
}

int gdr_module_finalize(struct CUmod_st *module)
{
	return module_change("gdr_module_finalize", module, gdri_module_remove);
}
