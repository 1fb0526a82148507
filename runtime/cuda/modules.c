// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/units.h"

#include <stdbool.h>
#include <stdlib.h>

#include <gdr/impl/arch/unit.h>
#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/mem/outside.h"

static struct gdri_module *module_find(struct gdri_state *st, const struct CUmod_st *module)
{
	for (int i = 0; i < st->modules->n; i++) {
		if (st->modules->list[i].module == module)
			return &st->modules->list[i];
	}
	return NULL;
}

/* *found: the version, and what stands beside it, to be put back when the module is let go. */
static int check_version(struct gdri_state *st, const void *constants, uint64_t *found)
{
	int ret = gdri_cuda_peek(st->cuda, found, constants, sizeof(*found), gdri_cuda_copy_ms(st));
	uint64_t abi = *found & ~(GDRI_MODULE_NO_QUEUES | GDRI_MODULE_ANY_ADDRESS);

	GDR_STATIC_ASSERT(offsetof(struct gdri_constants, abi_version) == 0, "what is read of it");
	if (!ret && abi == GDR_ABI_VERSION && *found & GDRI_MODULE_NO_QUEUES && st->dev->n_slots)
		return gdri_fail(-GDR_ENOTSUP, "gdr_module_init: the module was compiled with GDR_NO_QUEUES, and not "
					       "all PEs are mapped: compile it without");
	if (!ret && abi == GDR_ABI_VERSION && !(*found & GDRI_MODULE_ANY_ADDRESS) &&
	    __atomic_load_n(&st->outside->n, __ATOMIC_RELAXED)) { /* with local_lock: pairs with outside_count() */
		return gdri_fail(-GDR_ENOTSUP, "gdr_module_init: memory of cudaMalloc is registered, and the module "
					       "was compiled without GDR_ANY_ADDRESS: compile it with "
					       "-DGDR_ANY_ADDRESS");
	}
	if (!ret && abi != GDR_ABI_VERSION)
		ret = gdri_fail(-GDR_EVERSION,
				"gdr_module_init: the module was compiled with headers of ABI %llu, the library has "
				"ABI %d: compile it again",
				(unsigned long long)abi, GDR_ABI_VERSION);
	return ret;
}

int gdri_module_add(struct gdri_state *st, struct CUmod_st *module)
{
	struct gdri_module *list, *m = module_find(st, module), fresh = {module, NULL, 0};
	bool is_new = !m;
	int ret;

	if (is_new) {
		fresh.constants = gdri_cuda_variable(st->cuda, module, GDRI_CONSTANTS_NAME,
						     sizeof(struct gdri_constants));
		if (!fresh.constants)
			return gdri_fail(-GDR_EINVAL, "gdr_module_init: the module has no device code of gdr (of this "
						      "version); was it compiled by NVRTC, or with GDR_MODULE "
						      "defined?");
		ret = check_version(st, fresh.constants, &fresh.version);
		if (ret)
			return ret;
		list = realloc(st->modules->list, (size_t)(st->modules->n + 1) * sizeof(*list));
		if (!list)
			return gdri_fail(-GDR_ENOMEM, "out of memory");
		m = &list[st->modules->n++];
		*m = fresh;
		st->modules->list = list;
	}
	ret = gdri_cuda_poke(st->cuda, m->constants, st->constants, sizeof(*st->constants), gdri_cuda_copy_ms(st));
	if (ret && is_new && ret != -GDR_ETIMEOUT) /* it was not given: its owner may unload it */
		st->modules->n--;
	return ret;
}

bool gdri_modules_have_any_address(const struct gdri_state *st)
{
	for (int i = st->modules->library; i < st->modules->n; i++)
		if (!(st->modules->list[i].version & GDRI_MODULE_ANY_ADDRESS))
			return false;
	return true;
}

static int module_hide(struct gdri_state *st, const struct gdri_module *m)
{
	const struct gdri_constants none = {.abi_version = m->version};

	return gdri_cuda_poke(st->cuda, m->constants, &none, sizeof(none), gdri_cuda_copy_ms(st));
}

int gdri_module_remove(struct gdri_state *st, struct CUmod_st *module)
{
	struct gdri_module *m = module_find(st, module);
	int ret;

	if (!m)
		return gdri_fail(-GDR_EINVAL, "gdr_module_finalize: not a module that gdr_module_init was given");
	ret = module_hide(st, m);
	if (ret == -GDR_ETIMEOUT)
		gdri_error("gdr_module_finalize: what hides the library from the module may yet be on its way: leave "
			   "the module loaded, and call it again");
	else
		*m = st->modules->list[--st->modules->n];
	return ret;
}

void gdri_module_drop(struct gdri_state *st, struct CUmod_st *module)
{
	struct gdri_module *m = module_find(st, module);

	if (!m)
		return;
	module_hide(st, m);
	*m = st->modules->list[--st->modules->n];
}

void gdri_modules_forget(struct gdri_state *st)
{
	while (st->modules->n)
		module_hide(st, &st->modules->list[--st->modules->n]);
	free(st->modules->list);
	st->modules->list = NULL;
	st->modules->library = 0;
}
