/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the CUDA driver in the process, where the program has loaded it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "softhca/gpu/cuda_api.h"
#include "softhca/gpu/cuda_stand_in.h"
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
static bool find(void *lib, const char *symbol, void *to)
{
	*(void **)to = cuda_real_symbol(lib, symbol);
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
	find(lib, "cuStreamBatchMemOp_v2", &api.mem_ops);
	find(lib, "cuModuleLoadData", &api.module_load);
	find(lib, "cuModuleGetFunction", &api.module_function);
	find(lib, "cuLaunchKernel", &api.launch);
	find(lib, "cuThreadExchangeStreamCaptureMode", &api.capture_mode);
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
			__atomic_store_n(&state, fill(lib) ? GOOD : BAD, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return cuda_started();
}
