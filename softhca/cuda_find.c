/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the CUDA driver in the process, where the program has loaded it. */
#include <dlfcn.h>
#include <stddef.h>

#include "softhca/cuda_api.h"
#include "softhca/log.h"

static struct cuda_api api;

bool cuda_loaded(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	if (lib)
		dlclose(lib); /* the program's own reference keeps it */
	return lib != NULL;
}

/* ISO C has no conversion from object to function pointer; POSIX's dlsym needs it. */
static bool find(void *lib, const char *symbol, void *to)
{
	*(void **)to = dlsym(lib, symbol);
	return *(void **)to != NULL;
}

static bool fill(void *lib)
{
	bool all = true;

#define FIND(name, symbol, args)                                                                   \
	if (!find(lib, symbol, &api.name)) {                                                       \
		hca_warn("libcuda.so.1 has no %s: no memory of GPUs", symbol);                     \
		all = false;                                                                       \
	}
	HCA_CUDA_FUNCTIONS(FIND)
#undef FIND
	if (!find(lib, "cuMemcpyBatchAsync_v2", &api.batch))
		find(lib, "cuMemcpyBatchAsync", &api.batch_1);
	return all;
}

/* With hca_lock held. The library is kept from here on: the engine calls it. */
const struct cuda_api *cuda_driver(void)
{
	static enum { UNKNOWN, GOOD, BAD } state;
	void *lib;

	if (state != UNKNOWN)
		return state == GOOD ? &api : NULL;
	lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
	if (!lib)
		return NULL; /* perhaps later */
	state = fill(lib) ? GOOD : BAD;
	return state == GOOD ? &api : NULL;
}
