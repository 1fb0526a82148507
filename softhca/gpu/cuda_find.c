/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the CUDA driver in the process, where the program has loaded it. */
#include <dlfcn.h>
#include <pthread.h>

#include "softhca/gpu/cuda_api.h"
#include "softhca/tools/log.h"

static struct cuda_api api;
static enum { UNKNOWN, GOOD, BAD } state;

bool cuda_loaded(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);

	if (lib)
		dlclose(lib); /* the program's own reference keeps it */
	return lib != NULL;
}

/* ISO C has no conversion from object to function pointer; POSIX's dlsym needs it. */
static bool cuda_find_symbol(void *lib, const char *symbol, void *to)
{
	*(void **)to = cuda_real_symbol(lib, symbol);
	return *(void **)to != NULL;
}

static bool cuda_fill_api(void *lib)
{
	bool all = true;

#define FIND(name, symbol, args)                                                                   \
	if (!cuda_find_symbol(lib, symbol, &api.name)) {                                           \
		hca_warn("libcuda.so.1 has no %s: no memory of GPUs", symbol);                     \
		all = false;                                                                       \
	}
	HCA_CUDA_FUNCTIONS(FIND)
#undef FIND
	if (!cuda_find_symbol(lib, "cuMemcpyBatchAsync_v2", &api.batch))
		cuda_find_symbol(lib, "cuMemcpyBatchAsync", &api.batch_1);
	cuda_find_symbol(lib, "cuStreamBatchMemOp_v2", &api.mem_ops);
	cuda_find_symbol(lib, "cuModuleLoadData", &api.module_load);
	cuda_find_symbol(lib, "cuModuleGetFunction", &api.module_function);
	cuda_find_symbol(lib, "cuLaunchKernel", &api.launch);
	cuda_find_symbol(lib, "cuThreadExchangeStreamCaptureMode", &api.capture_mode);
	return all;
}

const struct cuda_api *cuda_started(void)
{
	/* Acquire: pairs with cuda_driver(). */
	return __atomic_load_n(&state, __ATOMIC_ACQUIRE) == GOOD ? &api : NULL;
}

/* The library is kept from here on: the engine calls it. */
const struct cuda_api *cuda_driver(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	void *lib;

	pthread_mutex_lock(&lock);
	if (state == UNKNOWN) {
		lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
		if (lib) /* else perhaps later; release: pairs with cuda_started() */
			__atomic_store_n(&state, cuda_fill_api(lib) ? GOOD : BAD, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return cuda_started();
}
