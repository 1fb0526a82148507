// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* pthread_timedjoin_np */
#include "runtime/cuda_impl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/thread.h"

#define BUSY_US 1000 /* see gdri_cuda_default_stream */
#define ROOM ((uint64_t)128 << 30) /* behind a heap, for memory that the program brings */

static int load(struct gdri_cuda *c)
{
	/* Stays loaded: the driver has threads of its own. */
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!lib) {
		gdri_error("CUDA: the driver library cannot be opened: %s", dlerror());
		return -GDR_ENOTSUP;
	}
#define GDRI_CUDA_LOAD(name, symbol, args)                                                         \
	*(void **)&c->api.name = dlsym(lib, symbol);                                               \
	if (!c->api.name) {                                                                        \
		gdri_error("CUDA: libcuda.so.1 has no %s: the driver is too old", symbol);         \
		return -GDR_ENOTSUP;                                                               \
	}
	GDRI_CUDA_FUNCTIONS(GDRI_CUDA_LOAD)
#undef GDRI_CUDA_LOAD
	return 0;
}

static int choose_context(struct gdri_cuda *c, unsigned local_rank)
{
	gdri_cu_result r = c->api.init(0);
	int n = 0;

	if (!r)
		r = c->api.device_count(&n);
	if (r || !n) {
		gdri_error("CUDA: no GPU: %s", r ? gdri_cuda_error_text(c, r) : "the driver counts none");
		return -GDR_ENOTSUP;
	}
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
	gdri_error("CUDA: %s has no virtual memory management: its memory cannot be shared", c->text);
	return -GDR_ENOTSUP;
}

int gdri_cuda_open(struct gdri_cuda **out, unsigned local_rank, int handles)
{
	struct gdri_cuda *c = calloc(1, sizeof(*c));
	gdri_cu_result r;
	int ret;

	*out = c;
	if (!c) {
		gdri_error("out of memory");
		return -GDR_ENOMEM;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->refs = 1;
	c->room = ROOM;
	ret = load(c);
	if (!ret)
		ret = choose_context(c, local_rank);
	if (!ret)
		ret = check_device(c);
	if (!ret)
		ret = gdri_cuda_choose_handles(c, handles);
	if (!ret) {
		gdri_cuda_enter(c);
		r = c->api.stream_create(&c->stream, GDRI_CU_STREAM_NON_BLOCKING);
		gdri_cuda_leave(c);
		ret = r ? gdri_cuda_refused(c, "creating a stream", r) : 0;
	}
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
static void put(struct gdri_cuda *c)
{
	/* release and acquire: pairs with the other puts, whose use of it comes before its end */
	if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL))
		return;
	if (c->stream) {
		gdri_cuda_enter(c);
		c->api.stream_destroy(c->stream);
		gdri_cuda_leave(c);
	}
	if (c->primary)
		release_primary(c);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void gdri_cuda_close(struct gdri_cuda *c)
{
	if (c)
		put(c);
}

const char *gdri_cuda_text(const struct gdri_cuda *c)
{
	return c->text;
}

/* ---- memory that can be shared ---- */

static struct gdri_cu_prop property(const struct gdri_cuda *c)
{
	struct gdri_cu_prop p = {
		.type = GDRI_CU_MEM_PINNED,
		.handles = c->handles,
		.location = {GDRI_CU_LOCATION_DEVICE, c->device},
	};
	int rdma = 0;

	c->api.device_attribute(&rdma, GDRI_CU_ATTR_RDMA_VMM, c->device);
	p.flags.rdma = rdma != 0;
	return p;
}

/* Readable and writable by this PE's GPU. */
static gdri_cu_result map(struct gdri_cuda *c, gdri_cu_mem mem, uint8_t *at, uint64_t size)
{
	struct gdri_cu_access access = {{GDRI_CU_LOCATION_DEVICE, c->device},
					GDRI_CU_ACCESS_READWRITE};
	gdri_cu_result r = c->api.map((uintptr_t)at, size, 0, mem, 0);

	if (r)
		return r;
	r = c->api.set_access((uintptr_t)at, size, &access, 1);
	if (r)
		c->api.unmap((uintptr_t)at, size);
	return r;
}

static uint64_t whole(uint64_t size, uint64_t grain)
{
	return (size + grain - 1) / grain * grain;
}

int gdri_cuda_heap_reserve(struct gdri_cuda *c, bool own, uint64_t *size, uint64_t *max, uint8_t **base)
{
	struct gdri_cu_prop prop = property(c);
	gdri_cu_ptr at = 0;
	gdri_cu_result r;
	size_t grain = 0;

	gdri_cuda_enter(c);
	r = c->api.granularity(&grain, &prop, GDRI_CU_GRANULARITY_BEST);
	if (!r) {
		*size = whole(*size, grain);
		*max = whole(*max, grain);
		r = c->api.reserve(&at, *max + c->room, 0, 0, 0);
		if (r && own && c->room) { /* the heap goes before what may come to it */
			c->room = 0;
			r = c->api.reserve(&at, *max, 0, 0, 0);
		}
	}
	gdri_cuda_leave(c);
	*base = (uint8_t *)(uintptr_t)at;
	return r ? gdri_cuda_refused(c, "reserving addresses for a heap", r) : 0;
}

void gdri_cuda_heap_release(struct gdri_cuda *c, uint8_t *base, uint64_t max)
{
	gdri_cuda_enter(c);
	c->api.unreserve((uintptr_t)base, max + c->room);
	gdri_cuda_leave(c);
}

int gdri_cuda_heap_create(struct gdri_cuda *c, uint8_t *at, uint64_t size, int *fd)
{
	struct gdri_cu_prop prop = property(c);
	gdri_cu_mem mem = 0;
	gdri_cu_result r;

	*fd = -1;
	gdri_cuda_enter(c);
	r = c->api.mem_create(&mem, size, &prop, 0);
	if (!r) {
		r = map(c, mem, at, size);
		if (!r) { /* not before: under compute-sanitizer's initcheck memsets of it would fail */
			r = gdri_cuda_export(c, mem, fd);
			if (r)
				c->api.unmap((uintptr_t)at, size);
		}
		c->api.mem_release(mem); /* mapping and descriptor keep it */
	}
	gdri_cuda_leave(c);
	if (!r)
		return 0;
	if (*fd >= 0)
		close(*fd);
	gdri_error("heap: %llu bytes of %s: %s; lower GDR_HEAP_SIZE or free memory of the GPU",
		   (unsigned long long)size, c->text, gdri_cuda_error_text(c, r));
	return r == 2 ? -GDR_ENOMEM : -GDR_ESYSTEM;
}

int gdri_cuda_heap_import(struct gdri_cuda *c, int fd, uint8_t *at, uint64_t size, char *why, size_t room)
{
	gdri_cu_mem mem = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = gdri_cuda_import(c, fd, &mem);
	if (!r) {
		r = map(c, mem, at, size);
		c->api.mem_release(mem);
	}
	gdri_cuda_leave(c);
	if (!r)
		return 0;
	snprintf(why, room, "%s cannot map its memory: %s", c->text, gdri_cuda_error_text(c, r));
	return -GDR_ESYSTEM;
}

void gdri_cuda_heap_unmap(struct gdri_cuda *c, uint8_t *at, uint64_t size)
{
	gdri_cuda_enter(c);
	c->api.unmap((uintptr_t)at, size);
	gdri_cuda_leave(c);
}

/* ---- other memory ---- */

void *gdri_cuda_alloc_bare(struct gdri_cuda *c, size_t size)
{
	gdri_cu_ptr p = 0;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.alloc(&p, size);
	gdri_cuda_leave(c);
	if (r) {
		gdri_cuda_refused(c, "allocating memory of the GPU", r);
		return NULL;
	}
	return (void *)(uintptr_t)p;
}

void *gdri_cuda_alloc(struct gdri_cuda *c, size_t size)
{
	void *p = gdri_cuda_alloc_bare(c, size);

	if (p && gdri_cuda_zero(c, p, size, 10000)) {
		gdri_cuda_free(c, p);
		return NULL;
	}
	return p;
}

void gdri_cuda_free(struct gdri_cuda *c, void *p)
{
	if (!p)
		return;
	gdri_cuda_enter(c);
	c->api.free((uintptr_t)p);
	gdri_cuda_leave(c);
}

void *gdri_cuda_alloc_host(struct gdri_cuda *c, size_t size)
{
	void *p = NULL;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.host_alloc(&p, size, GDRI_CU_HOST_PORTABLE | GDRI_CU_HOST_MAPPED);
	gdri_cuda_leave(c);
	if (r) {
		gdri_cuda_refused(c, "allocating host memory that the GPU sees", r);
		return NULL;
	}
	memset(p, 0, size);
	return p;
}

void gdri_cuda_free_host(struct gdri_cuda *c, void *p)
{
	if (!p)
		return;
	gdri_cuda_enter(c);
	c->api.host_free(p);
	gdri_cuda_leave(c);
}

/* ---- copies ---- */

/* Polls: a sleep of the driver could not be bounded. */
static gdri_cu_result finish(struct gdri_cuda *c, int timeout_ms)
{
	uint64_t end = gdri_deadline_ns(timeout_ms);
	struct timespec nap = {0, 20000};
	gdri_cu_result r;
	unsigned i;

	for (i = 0; (r = c->api.stream_query(c->stream)) == GDRI_CU_NOT_READY; i++) {
		if (gdri_left_ms(end) <= 0)
			break;
		if (i > 1000)
			nanosleep(&nap, NULL);
	}
	return r;
}

/* Is an earlier copy, which took too long, still on the stream? What is put behind it would wait
 * for it. */
static bool blocked(struct gdri_cuda *c)
{
	if (c->stuck)
		c->stuck = c->api.stream_query(c->stream) == GDRI_CU_NOT_READY;
	return c->stuck;
}

/* A copy's end, with the lock held. src NULL: zeroes. Not begun: the same as not finished. */
static gdri_cu_result carry(struct gdri_cuda *c, void *dst, const void *src, size_t len, int timeout_ms, bool *began)
{
	gdri_cu_result r = GDRI_CU_NOT_READY;

	gdri_cuda_enter(c);
	*began = !blocked(c);
	if (*began) {
		r = src ? c->api.copy((uintptr_t)dst, (uintptr_t)src, len, c->stream)
			: c->api.set((uintptr_t)dst, 0, len, c->stream);
		if (!r)
			r = finish(c, timeout_ms);
		c->stuck = r == GDRI_CU_NOT_READY;
	}
	gdri_cuda_leave(c);
	return r;
}

static int carried(struct gdri_cuda *c, const char *what, gdri_cu_result r, bool began, int timeout_ms)
{
	if (!r)
		return 0;
	if (r != GDRI_CU_NOT_READY)
		return gdri_cuda_refused(c, what, r);
	gdri_error(began ? "CUDA: %s did not finish in %d ms: the GPU hangs, or a kernel holds it"
			 : "CUDA: %s cannot begin: an earlier copy, which took too long, is still "
			   "under way", what, timeout_ms);
	return -GDR_ETIMEOUT;
}

static int transfer(struct gdri_cuda *c, const char *what, void *dst, const void *src, size_t len,
		    int timeout_ms)
{
	gdri_cu_result r;
	bool began;

	pthread_mutex_lock(&c->lock);
	r = carry(c, dst, src, len, timeout_ms, &began);
	pthread_mutex_unlock(&c->lock);
	return carried(c, what, r, began, timeout_ms);
}

int gdri_cuda_copy(struct gdri_cuda *c, void *dst, const void *src, size_t len, int timeout_ms)
{
	return len ? transfer(c, "a copy", dst, src, len, timeout_ms) : 0;
}

int gdri_cuda_peek(struct gdri_cuda *c, uint32_t word[2], const void *gpu, int timeout_ms)
{
	gdri_cu_result r;
	bool began;

	pthread_mutex_lock(&c->lock);
	r = carry(c, c->words, gpu, sizeof(c->words), timeout_ms, &began);
	if (!r)
		memcpy(word, c->words, sizeof(c->words));
	pthread_mutex_unlock(&c->lock);
	return carried(c, "a look at the device state", r, began, timeout_ms);
}

int gdri_cuda_poke(struct gdri_cuda *c, void *gpu, uint32_t word, int timeout_ms)
{
	gdri_cu_result r = GDRI_CU_NOT_READY;
	bool began;

	pthread_mutex_lock(&c->lock);
	gdri_cuda_enter(c);
	began = !blocked(c); /* else the words may be those that are still under way */
	gdri_cuda_leave(c);
	if (began) {
		c->words[0] = word;
		r = carry(c, gpu, c->words, sizeof(word), timeout_ms, &began);
	}
	pthread_mutex_unlock(&c->lock);
	return carried(c, "a change of the device state", r, began, timeout_ms);
}

int gdri_cuda_settle(struct gdri_cuda *c, int timeout_ms)
{
	int ret = 0;

	pthread_mutex_lock(&c->lock);
	if (c->stuck) {
		gdri_cuda_enter(c);
		c->stuck = finish(c, timeout_ms) == GDRI_CU_NOT_READY;
		gdri_cuda_leave(c);
		ret = c->stuck ? -GDR_ETIMEOUT : 0;
	}
	pthread_mutex_unlock(&c->lock);
	return ret;
}

/* A program that cleared memory there (cudaMemset returns before it is done) counts on it behind a barrier. Where other
 * programs use the GPU, too, it takes as long as their slices of time. A kernel that waits for what comes after the
 * barrier is waited for once: from then on, until the stream was seen idle, for BUSY_US at most. */
void gdri_cuda_default_stream(struct gdri_cuda *c, int limit_us)
{
	int us = __atomic_load_n(&c->default_busy, __ATOMIC_RELAXED) && limit_us > BUSY_US ? BUSY_US : limit_us;
	uint64_t end = gdri_now_ns() + (uint64_t)us * 1000;
	int capturing = 0;
	bool busy = false;

	gdri_cuda_enter(c);
	/* refused, or 1: a capture is under way, which the query would break */
	if (!c->api.stream_capturing(GDRI_CU_STREAM_LEGACY, &capturing) && !capturing)
		do
			busy = c->api.stream_query(GDRI_CU_STREAM_LEGACY) == GDRI_CU_NOT_READY;
		while (busy && gdri_now_ns() < end);
	/* relaxed: a hint, of which a stale one costs time */
	__atomic_store_n(&c->default_busy, busy, __ATOMIC_RELAXED);
	gdri_cuda_leave(c);
}

int gdri_cuda_zero(struct gdri_cuda *c, void *dst, size_t len, int timeout_ms)
{
	return transfer(c, "zeroing memory", dst, NULL, len, timeout_ms);
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

static void *synchronize(void *arg)
{
	struct gdri_cuda *c = arg;
	gdri_cu_result r;

	gdri_cuda_enter(c);
	r = c->api.ctx_sync();
	gdri_cuda_leave(c);
	put(c);
	return (void *)(intptr_t)r;
}

/* The driver's wait has no limit: a thread waits in it, and is left behind when it takes too long. */
int gdri_cuda_wait_kernels(struct gdri_cuda *c, int timeout_ms)
{
	void *result = NULL;
	struct timespec end;
	pthread_t t;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += timeout_ms / 1000;
	end.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	/* relaxed: the caller has a reference, and the new thread starts behind this */
	__atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
	if (gdri_thread_start(&t, synchronize, c)) {
		put(c);
		gdri_error("CUDA: no thread to wait for kernels with: as if they still ran");
		return -GDR_ETIMEOUT;
	}
	if (pthread_timedjoin_np(t, &result, &end)) {
		pthread_detach(t);
		return -GDR_ETIMEOUT;
	}
	return result ? gdri_cuda_refused(c, "kernels of this PE", (gdri_cu_result)(intptr_t)result) : 0;
}
