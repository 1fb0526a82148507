// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* pthread_tryjoin_np */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gdr/status.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/cuda/cuda_impl.h"

#define ROOM ((uint64_t)128 << 30) /* behind a heap, for memory that the program brings */

static int cuda_lacks(void *lib, const char *symbol)
{
	gdri_cu_result (*driver)(int *);
	int release = 0;

	*(void **)&driver = dlsym(lib, "cuDriverGetVersion");
	if (driver)
		driver(&release);
	return gdri_fail(-GDR_ENOTSUP,
			 "CUDA: libcuda.so.1 has no %s: the driver is one of CUDA %d.%d, and gdr takes one of "
			 "CUDA 11.8 (520) or later: update the driver", symbol, release / 1000, release % 1000 / 10);
}

static int cuda_load(struct gdri_cuda *c)
{
	/* Stays loaded: the driver has threads of its own. */
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib)
		return gdri_fail(-GDR_ENOTSUP, "CUDA: the driver library cannot be opened: %s", dlerror());
#define GDRI_CUDA_LOAD(name, symbol, args)                                                         \
	*(void **)&c->api.name = dlsym(lib, symbol);                                               \
	if (!c->api.name)                                                                          \
		return cuda_lacks(lib, symbol);
	GDRI_CUDA_FUNCTIONS(GDRI_CUDA_LOAD)
#undef GDRI_CUDA_LOAD
#define GDRI_CUDA_LOAD_LATE(name, symbol, args) *(void **)&c->api.name = dlsym(lib, symbol);
	GDRI_CUDA_FUNCTIONS_OF_LATE(GDRI_CUDA_LOAD_LATE)
#undef GDRI_CUDA_LOAD_LATE
	return 0;
}

static int choose_context(struct gdri_cuda *c, unsigned local_rank)
{
	gdri_cu_result r = c->api.init(0);
	int n = 0;

	if (!r)
		r = c->api.device_count(&n);
	if (r || !n)
		return gdri_fail(-GDR_ENOTSUP, "CUDA: no GPU: %s",
				 r ? gdri_cuda_error_text(c, r) : "the driver counts none");
	r = c->api.ctx_get(&c->ctx);
	if (!r && c->ctx) {
		r = c->api.ctx_device(&c->device);
	} else if (!r && local_rank == GDRI_CUDA_CURRENT) {
		return -GDR_ESTATE;
	} else if (!r) {
		r = c->api.device_get(&c->device, (int)(local_rank % (unsigned)n));
		if (!r)
			r = c->api.primary_retain(&c->ctx, c->device);
		c->primary = !r;
		if (!r)
			r = c->api.ctx_set(c->ctx);
	}
	return r ? gdri_cuda_refused(c, "choosing a context", r) : 0;
}

static int check_device(struct gdri_cuda *c)
{
	char name[64] = "?", bus[32] = "?";
	int vmm = 0, writes64 = 0, reads_host = 0, major = 0;

	c->api.device_name(name, sizeof(name), c->device);
	c->api.device_bus_id(bus, sizeof(bus), c->device);
	snprintf(c->text, sizeof(c->text), "%s %s", name, bus);
	memcpy(c->pci, bus, sizeof(c->pci));
	c->api.device_attribute(&vmm, GDRI_CU_ATTR_VMM, c->device);
	c->api.device_attribute(&writes64, GDRI_CU_ATTR_WRITE64, c->device);
	c->writes64 = writes64 != 0;
	c->api.device_attribute(&reads_host, GDRI_CU_ATTR_HOST_TABLES, c->device);
	c->stages = !reads_host;
	c->api.device_attribute(&major, GDRI_CU_ATTR_MAJOR, c->device);
	c->early = major >= 9;
	if (vmm)
		return 0;
	return gdri_fail(-GDR_ENOTSUP, "CUDA: %s has no virtual memory management: its memory cannot be shared",
			 c->text);
}

/* The stream of the copies, and what they go by: pinned, so that none of them keeps the caller in the driver. */
static int open_copies(struct gdri_cuda *c)
{
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.stream_create(&c->stream, GDRI_CU_STREAM_NON_BLOCKING);
	gdri_cuda_leave(c);
	if (r)
		return gdri_cuda_refused(c, "creating a stream", r);
	c->bounce[0] = gdri_cuda_alloc_host(c, 2 * GDRI_CUDA_BOUNCE);
	if (!c->bounce[0])
		return -GDR_ENOMEM;
	c->bounce[1] = c->bounce[0] + GDRI_CUDA_BOUNCE;
	return 0;
}

int gdri_cuda_open(struct gdri_cuda **out, unsigned local_rank, int handles)
{
	struct gdri_cuda *c = calloc(1, sizeof(*c));
	int ret;

	*out = c;
	if (!c)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	pthread_mutex_init(&c->lock, NULL);
	c->refs = 1;
	c->room = ROOM;
	ret = cuda_load(c);
	if (!ret)
		ret = choose_context(c, local_rank);
	if (!ret)
		ret = check_device(c);
	if (!ret)
		ret = gdri_cuda_choose_handles(c, handles);
	if (!ret)
		ret = open_copies(c);
	if (ret) {
		gdri_cuda_close(c);
		*out = NULL;
	}
	return ret;
}

/* The driver leaves a context current in a thread also when it has ended with the last release:
 * what the thread calls next would be refused. Who else uses it keeps it, and the thread as well. */
static void release_primary(struct gdri_cuda *c)
{
	gdri_cu_ctx current = NULL;
	unsigned int flags;
	int active = 1;

	c->api.primary_release(c->device);
	if (!c->api.primary_state(c->device, &flags, &active) && !active &&
	    !c->api.ctx_get(&current) && current == c->ctx)
		c->api.ctx_set(NULL);
}

/* A thread that was left behind in the driver may be the last one. */
static void cuda_put(struct gdri_cuda *c)
{
	/* release and acquire: pairs with the other puts, whose use of it comes before its end */
	if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (c->stream) {
		gdri_cuda_enter(c);
		c->api.stream_destroy(c->stream);
		gdri_cuda_leave(c);
	}
	gdri_cuda_free_host(c, c->bounce[0]);
	if (c->primary)
		release_primary(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void gdri_cuda_close(struct gdri_cuda *c)
{
	if (c)
		cuda_put(c);
}

const char *gdri_cuda_text(const struct gdri_cuda *c)
{
	return c->text;
}

void *gdri_cuda_variable(struct gdri_cuda *c, struct CUmod_st *module, const char *name, size_t size)
{
	gdri_cu_ptr at = 0;
	size_t bytes = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.module_global(&at, &bytes, module, name);
	gdri_cuda_leave(c);
	return r || bytes != size ? NULL : (void *)(uintptr_t)at;
}

/* ---- kernels ---- */

static void *cuda_synchronize(void *arg)
{
	struct gdri_cuda *c = arg;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.ctx_sync();
	gdri_cuda_leave(c);
	cuda_put(c);
	return (void *)(intptr_t)r;
}

/* Looks again and again: pthread_timedjoin_np takes the time of day, which is set, and ThreadSanitizer does not know
 * pthread_clockjoin_np. */
static bool cuda_joined(pthread_t t, void **result, int timeout_ms)
{
	const struct timespec nap = {0, 200000};
	uint64_t deadline = gdri_deadline_ns(timeout_ms);

	while (pthread_tryjoin_np(t, result)) {
		if (!gdri_left_ms(deadline))
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

/* The driver's wait has no limit: a thread waits in it, and is left behind when it takes too long. */
int gdri_cuda_wait_kernels(struct gdri_cuda *c, int timeout_ms)
{
	void *result = NULL;
	pthread_t t;

	/* relaxed: the caller has a reference, and the new thread starts behind this */
	__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
	if (gdri_thread_start(&t, cuda_synchronize, c)) {
		cuda_put(c);
		return gdri_fail(-GDR_ETIMEOUT, "CUDA: no thread to wait for kernels with: as if they still ran");
	}
	if (!cuda_joined(t, &result, timeout_ms)) {
		pthread_detach(t);
		return -GDR_ETIMEOUT;
	}
	return result ? gdri_cuda_refused(c, "kernels of this PE", (gdri_cu_result)(intptr_t)result) : 0;
}
