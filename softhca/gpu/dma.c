/* SPDX-License-Identifier: BSD-3-Clause */
/* Which addresses are memory of a GPU; the driver's context and streams. */
#include "softhca/gpu/dma.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/gpu/dma_impl.h"
#include "softhca/tools/log.h"
#include "softhca/transport/rc.h"

bool dma_on;
struct dma_gpu dma_gpu;

/* Sorted by start. Ranges may overlap: end_max is the greatest end up to here. */
struct range {
	uint64_t start, end, end_max;
	int device; /* -1: not known, another process's */
};

static struct range *ranges;
static unsigned n_ranges, cap_ranges;

/* The thread that keeps the context from call to call. Relaxed: it alone sees itself there. */
static pthread_t keeper;

static uint32_t *waiters; /* QPNs */
static unsigned n_waiters, cap_waiters;

/* ---- ranges ---- */

/* Index of the first range that starts behind addr. */
static unsigned dma_range_behind(uint64_t addr)
{
	unsigned lo = 0, hi = n_ranges;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (ranges[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

bool dma_lookup(const void *p)
{
	uint64_t addr = (uintptr_t)p;
	unsigned i = dma_range_behind(addr);

	return i && ranges[i - 1].end_max > addr;
}

bool dma_goes_on(uint64_t addr)
{
	unsigned i = dma_range_behind(addr - 1);

	return i && ranges[i - 1].end_max > addr;
}

bool dma_all_on(int device, uint64_t addr, size_t n)
{
	for (unsigned i = dma_range_behind(addr); i-- > 0 && ranges[i].end_max > addr;)
		if (n <= ranges[i].end - ranges[i].start && addr - ranges[i].start <= ranges[i].end -
								ranges[i].start - n)
			return ranges[i].device == device;
	return false;
}

bool dma_any(const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++)
		if (dma_device(iov[i].iov_base))
			return true;
	return false;
}

static void renew_ends(unsigned from)
{
	for (unsigned i = from; i < n_ranges; i++) {
		uint64_t before = i ? ranges[i - 1].end_max : 0;

		ranges[i].end_max = ranges[i].end > before ? ranges[i].end : before;
	}
}

int dma_add_range(uint64_t start, uint64_t end, int device)
{
	unsigned at = dma_range_behind(start);

	if (n_ranges == cap_ranges) {
		unsigned cap = cap_ranges ? cap_ranges * 2 : 64;
		struct range *bigger = realloc(ranges, cap * sizeof(*ranges));

		if (!bigger)
			return -ENOMEM;
		ranges = bigger;
		cap_ranges = cap;
	}
	memmove(ranges + at + 1, ranges + at, (n_ranges - at) * sizeof(*ranges));
	ranges[at] = (struct range){ .start = start, .end = end, .device = device };
	n_ranges++;
	renew_ends(at);
	return 0;
}

void dma_forget(uint64_t addr, uint64_t len)
{
	unsigned i = dma_range_behind(addr);

	/* What is under way goes there, or comes from there, while it is the program's. */
	dma_settle();
	dma_read_settle();
	while (i-- > 0 && ranges[i].start == addr) {
		if (ranges[i].end != addr + len)
			continue;
		n_ranges--;
		memmove(ranges + i, ranges + i + 1, (n_ranges - i) * sizeof(*ranges));
		renew_ends(i);
		return;
	}
}

/* ---- the driver ---- */

bool dma_ok(cu_result rc, const char *call)
{
	if (!rc)
		return true;
	if (!dma_gpu.dead && rc != CU_DEINITIALIZED)
		hca_warn("%s failed with CUDA error %d: memory of GPUs is out of reach from now on",
			 call, rc);
	dma_gpu.dead = true;
	return false;
}

/* A capture of the program's in global mode would forbid calls to all threads. */
static void relax_keeper(void)
{
	static bool done; /* by the keeper, the only one to look */
	int mode = CU_CAPTURE_RELAXED;

	/* Relaxed: see keeper. */
	if (__atomic_load_n(&keeper, __ATOMIC_RELAXED) != pthread_self() || done)
		return;
	done = true;
	if (dma_gpu.api->capture_mode)
		dma_gpu.api->capture_mode(&mode);
}

cu_ctx dma_enter(void)
{
	cu_ctx before = NULL;

	relax_keeper();
	if (dma_gpu.api->ctx_get(&before) || before != dma_gpu.ctx)
		dma_ok(dma_gpu.api->ctx_set(dma_gpu.ctx), "cuCtxSetCurrent");
	return before;
}

void dma_leave(cu_ctx before)
{
	if (before != dma_gpu.ctx && __atomic_load_n(&keeper, __ATOMIC_RELAXED) != pthread_self())
		dma_gpu.api->ctx_set(before);
}

void dma_keep(void)
{
	__atomic_store_n(&keeper, pthread_self(), __ATOMIC_RELAXED); /* see there */
}

static int dma_pin_memory(const struct cuda_api *api)
{
	void *p;

	if (!dma_ok(api->host_alloc(&p, DMA_STAGE + DMA_SYNC + DMA_FLAGS, CU_HOST_PORTABLE),
		    "cuMemHostAlloc"))
		return -ENOMEM;
	dma_gpu.stage = p;
	dma_gpu.sync = dma_gpu.stage + DMA_STAGE;
	dma_gpu.flag = (volatile uint32_t *)(void *)(dma_gpu.sync + DMA_SYNC);
	memset(p, 0, DMA_STAGE + DMA_SYNC + DMA_FLAGS);
	return 0;
}

/* Tried on pinned memory: not every device stores 64 bits. */
static bool can_store(const struct cuda_api *api)
{
	struct cu_mem_op op = { .operation = CU_WRITE_VALUE_64 };

	op.address = (uintptr_t)&dma_gpu.flag[32];
	return api->mem_ops && !api->mem_ops(dma_gpu.writes, 1, &op, 0);
}

/* Streams and pinned memory, in the context that is current. */
static int dma_prepare(const struct cuda_api *api)
{
	int least = 0, greatest = 0, ret;

	api->priorities(&least, &greatest);
	ret = dma_ok(api->stream_create(&dma_gpu.writes, CU_STREAM_IS_NON_BLOCKING, greatest),
		     "cuStreamCreateWithPriority") &&
			      dma_ok(api->stream_create(&dma_gpu.reads, CU_STREAM_IS_NON_BLOCKING,
							greatest), "cuStreamCreateWithPriority")
		      ? dma_pin_memory(api)
		      : -ENODEV;
	if (!ret)
		dma_gpu.stores = can_store(api);
	if (!ret)
		ret = dma_read_start(api);
	if (!ret)
		dma_kernel_start(api);
	return ret ? ret : dma_watch_start();
}

/* In the program's thread, and before kernels of it can be waiting for what they are about to ask
 * of the device. Nobody else looks at these things before dma_register(). */
static int dma_start(const struct cuda_api *api, uint64_t addr)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool started;
	cu_ctx before = NULL;
	int ret = 0;

	pthread_mutex_lock(&lock);
	if (!started) {
		if (api->pointer(&dma_gpu.ctx, CU_ATTR_CONTEXT, addr) || !dma_gpu.ctx)
			if (api->ctx_get(&dma_gpu.ctx) || !dma_gpu.ctx)
				ret = -ENODEV;
		if (!ret) {
			api->ctx_get(&before);
			api->ctx_set(dma_gpu.ctx);
			ret = dma_prepare(api);
			api->ctx_set(before);
		}
		started = !ret;
		if (ret)
			dma_gpu.dead = false; /* of that try: the next one may do */
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

static bool is_device(const struct cuda_api *api, uint64_t addr)
{
	unsigned type = 0, managed = 0;

	/* Managed memory is the CPU's, too. */
	return !api->pointer(&type, CU_ATTR_MEMORY_TYPE, addr) && type == CU_MEMORY_DEVICE &&
	       (api->pointer(&managed, CU_ATTR_IS_MANAGED, addr) || !managed);
}

/* Of an address's memory; -1: no telling. */
static int device_of(const struct cuda_api *api, uint64_t addr)
{
	int device;

	return api->pointer(&device, CU_ATTR_DEVICE, addr) ? -1 : device;
}

void dma_ask(struct dma_answer *a, uint64_t addr, uint64_t len)
{
	const struct cuda_api *api = cuda_driver();

	*a = (struct dma_answer){ .addr = addr, .len = len, .device = -1 };
	if (!api || !len || !is_device(api, addr))
		return;
	a->device = device_of(api, addr);
	if (device_of(api, addr + len - 1) != a->device)
		a->device = -1;
	a->is = is_device(api, addr + len - 1) ? dma_start(api, addr) : -EFAULT;
	if (!a->is)
		a->is = 1;
}

int dma_register(const struct dma_answer *a, uint64_t addr, uint64_t len)
{
	int ret = a->addr == addr && a->len == len ? a->is : 0;

	if (ret > 0)
		ret = dma_add_range(addr, addr + len, a->device) ? -ENOMEM : 1;
	if (ret <= 0)
		return ret;
	dma_gpu.api = cuda_driver();
	/* Relaxed: only cuda_wait.c looks at it without the lock. */
	__atomic_store_n(&dma_on, true, __ATOMIC_RELAXED);
	hca_debug(1, "memory of a GPU: 0x%llx, %llu bytes", (unsigned long long)addr,
		  (unsigned long long)len);
	return 1;
}

/* ---- waiting ---- */

void dma_wait(struct hca_qp *qp)
{
	if (qp->rc->dma_waits)
		return;
	if (n_waiters == cap_waiters) {
		unsigned cap = cap_waiters ? cap_waiters * 2 : 64;
		uint32_t *bigger = realloc(waiters, cap * sizeof(*waiters));

		if (!bigger) { /* asks at each turn */
			engine_activate(qp);
			return;
		}
		waiters = bigger;
		cap_waiters = cap;
	}
	waiters[n_waiters++] = qp->qpn;
	qp->rc->dma_waits = true;
}

void dma_wake(void)
{
	for (unsigned i = 0; i < n_waiters; i++) {
		struct hca_qp *qp = engine_find_qp(waiters[i]);

		if (!qp || !qp->rc || !qp->rc->dma_waits)
			continue;
		qp->rc->dma_waits = false;
		engine_activate(qp);
	}
	n_waiters = 0;
}

void dma_works_for(uint32_t qpn)
{
	__atomic_store_n(&dma_call.qpn, qpn, __ATOMIC_RELAXED); /* for a message alone */
}

unsigned dma_poll(void)
{
	unsigned n;

	dma_works_for(0);
	n = dma_write_poll() + dma_read_poll();
	dma_queue_poll(dp_now());
	return n;
}

bool dma_busy(void)
{
	return dma_writing() || dma_reading();
}
