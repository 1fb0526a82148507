/* SPDX-License-Identifier: BSD-3-Clause */
/* The part of the fake driver that waits. As seen with NVIDIA's 580.159 on an H200, synchronous
 * copies, cuMemFree and the like hold a lock while they wait for the device, which whoever hands over
 * a copy or asks for pinned memory needs; cuStreamSynchronize and cuCtxSynchronize hold none. */
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "softhca/tests/cuda/fake_cuda.h"

/* The prototypes are in NVIDIA's cuda.h, which need not be here. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t driver = PTHREAD_MUTEX_INITIALIZER;
/* Acquire, release: the end of a kernel pairs with who waits for it. */
static bool kernel;
static unsigned waiting;

void fake_driver_enter(void)
{
	pthread_mutex_lock(&driver);
}

void fake_driver_leave(void)
{
	pthread_mutex_unlock(&driver);
}

void fake_driver_wait(void)
{
	__atomic_fetch_add(&waiting, 1, __ATOMIC_ACQ_REL);
	while (__atomic_load_n(&kernel, __ATOMIC_ACQUIRE))
		usleep(100);
	__atomic_fetch_sub(&waiting, 1, __ATOMIC_ACQ_REL);
}

EXPORT void fake_cuda_kernel(bool runs)
{
	__atomic_store_n(&kernel, runs, __ATOMIC_RELEASE);
}

EXPORT unsigned fake_cuda_waiting(void)
{
	return __atomic_load_n(&waiting, __ATOMIC_ACQUIRE);
}

EXPORT void fake_cuda_hold(bool held)
{
	if (held)
		fake_driver_enter();
	else
		fake_driver_leave();
}

static unsigned ctx_waits;

EXPORT unsigned fake_cuda_ctx_waits(void)
{
	return __atomic_load_n(&ctx_waits, __ATOMIC_ACQUIRE);
}

EXPORT int cuCtxSynchronize(void)
{
	__atomic_fetch_add(&ctx_waits, 1, __ATOMIC_ACQ_REL);
	fake_driver_wait();
	return 0;
}

EXPORT int cuStreamSynchronize(void *stream)
{
	if (stream == (void *)1) /* CU_STREAM_LEGACY */
		fake_driver_wait();
	return stream == (void *)1 ? 0 : 801;
}

EXPORT int cuStreamIsCapturing(void *stream, int *status)
{
	(void)stream;
	*status = 0;
	return 0;
}

/* Of a stream that does not wait for the default one: cuStreamIsCapturing() of that does not tell. */
EXPORT int cuStreamBeginCapture_v2(void *stream, int mode)
{
	(void)stream;
	return mode > 2; /* CUDA_ERROR_INVALID_VALUE */
}

EXPORT int cuStreamEndCapture(void *stream, void **graph)
{
	(void)stream;
	*graph = NULL;
	return 0;
}

EXPORT int cuStreamEndCapture_ptsz(void *stream, void **graph)
{
	return cuStreamEndCapture(stream, graph);
}

/* ---- what waits with the lock held ---- */

static int copy(void *dst, const void *src, size_t n)
{
	fake_driver_enter();
	fake_driver_wait();
	memcpy(dst, src, n);
	fake_driver_leave();
	return 0;
}

EXPORT int cuMemcpyDtoH_v2(void *dst, uint64_t src, size_t n)
{
	return copy(dst, fake_cuda_view(src), n);
}

EXPORT int cuMemcpyHtoD_v2(uint64_t dst, const void *src, size_t n)
{
	return copy(fake_cuda_view(dst), src, n);
}

EXPORT int cuMemsetD8_v2(uint64_t dst, unsigned char value, size_t n)
{
	fake_driver_enter();
	fake_driver_wait(); /* as with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
	memset(fake_cuda_view(dst), value, n);
	fake_driver_leave();
	return 0;
}

EXPORT int cuMemFreeHost(void *p)
{
	(void)p;
	fake_driver_enter();
	fake_driver_wait();
	fake_driver_leave();
	return 0;
}

EXPORT int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags, int *status)
{
	(void)version;
	(void)status;
	*fn = NULL;
	if (!strcmp(symbol, "cuMemcpyHtoD"))
		*fn = (void *)cuMemcpyHtoD_v2;
	else if (!strcmp(symbol, "cuStreamEndCapture"))
		*fn = flags & 2 ? (void *)cuStreamEndCapture_ptsz : (void *)cuStreamEndCapture;
	return *fn ? 0 : 500;
}
