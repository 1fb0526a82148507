/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the CUDA driver that wait for the device with a lock of the driver held: copies that
 * are synchronous, cuMemFree and some more. A kernel that they wait for may wait for the network, and
 * the engine, which carries out what it waits for, for that lock. So the program waits here first, in
 * cuStreamSynchronize() or cuCtxSynchronize(), which hold none, for what the function would wait for;
 * it finds the device idle then.
 *
 * Captures of streams are counted: then nothing must be waited for.
 *
 * All arguments of these functions are integers and pointers, six at most, and go on as they came. */
#include <stdint.h>

#include "softhca/gpu/cuda_api.h"
#include "softhca/gpu/dma.h"
#include "softhca/engine/hca.h"
#include "softhca/driver/shim.h"

typedef uintptr_t word;
typedef cu_result (*any_fn)(word a, word b, word c, word d, word e, word f);

/* In the order of the table. */
enum {
	COPY, TO_HOST, TO_DEVICE, BETWEEN, PEER, SET_8, SET_16, SET_32, SET_2D_8, SET_2D_16, SET_2D_32,
	TO_HOST_ASYNC, FREE, FREE_HOST, BEGIN, BEGIN_PTSZ, BEGIN_GRAPH, BEGIN_GRAPH_PTSZ, END, END_PTSZ,
};

/* ---- waiting ---- */

static const struct cuda_api *cuda_wait_driver(void)
{
	/* Relaxed: who registers memory and then copies it is one thread, or passes it on. */
	return __atomic_load_n(&dma_on, __ATOMIC_RELAXED) ? cuda_started() : NULL;
}

/* A stream that is being captured must not be waited for. */
static void wait_stream(cu_stream s)
{
	const struct cuda_api *api = cuda_wait_driver();
	int capturing = 0;

	if (api && !api->capturing(s, &capturing) && !capturing)
		api->stream_wait(s);
}

/* The legacy default stream waits for all that the functions without a stream wait for. */
static void wait_legacy(void)
{
	wait_stream(CU_STREAM_LEGACY);
}

static bool is_registered(cu_ptr p)
{
	bool yes;

	hca_lock();
	yes = dma_lookup((const void *)(uintptr_t)p);
	hca_unlock();
	return yes;
}

/* Operations on memory of which the program wants it (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), or which it
 * has exported: the driver's attribute does not tell, but what was exported is registered here. */
static void wait_if_synchronous(cu_ptr p)
{
	const struct cuda_api *api = cuda_wait_driver();
	unsigned sync = 0;

	if (api && ((!api->pointer(&sync, CU_ATTR_SYNC_MEMOPS, p) && sync) || is_registered(p)))
		wait_legacy();
}

static bool in_device(const struct cuda_api *api, cu_ptr p)
{
	unsigned type = 0;

	return !api->pointer(&type, CU_ATTR_MEMORY_TYPE, p) && type == CU_MEMORY_DEVICE;
}

static void wait_copy(cu_ptr dst, cu_ptr src)
{
	const struct cuda_api *api = cuda_wait_driver();

	if (!api)
		return;
	if (in_device(api, dst) && in_device(api, src)) {
		wait_if_synchronous(dst);
		wait_if_synchronous(src);
	} else {
		wait_legacy();
	}
}

/* A copy to memory that the driver does not know ends before the function does. */
static void wait_pageable(cu_ptr dst, cu_stream s)
{
	const struct cuda_api *api = cuda_wait_driver();
	unsigned type;

	if (api && api->pointer(&type, CU_ATTR_MEMORY_TYPE, dst))
		wait_stream(s);
}

/* Captures of streams that are open. Relaxed: a thread that frees memory while another one begins
 * a capture is in either order. */
static int captures;

static void wait_free(word p)
{
	const struct cuda_api *api = p ? cuda_wait_driver() : NULL;
	int capturing = 0;

	/* To wait for the context would end captures, of which the default stream does not tell when
	 * they are of streams that do not wait for it. */
	if (api && __atomic_load_n(&captures, __ATOMIC_RELAXED) <= 0 &&
	    !api->capturing(CU_STREAM_LEGACY, &capturing) && !capturing)
		api->ctx_wait();
}

/* ---- stand-ins ---- */

#define STAND_IN(name, number, wait)                                                               \
	SHIM_EXPORT cu_result name(word a, word b, word c, word d, word e, word f);                \
	cu_result name(word a, word b, word c, word d, word e, word f)                             \
	{                                                                                          \
		any_fn real = (any_fn)cuda_behind(&cuda_waiting[number]);                          \
                                                                                                   \
		if (!real)                                                                         \
			return CU_NOT_SUPPORTED;                                                   \
		wait;                                                                              \
		return real(a, b, c, d, e, f);                                                     \
	}

STAND_IN(cuMemcpy, COPY, wait_copy(a, b))
STAND_IN(cuMemcpyDtoH_v2, TO_HOST, wait_legacy())
STAND_IN(cuMemcpyHtoD_v2, TO_DEVICE, wait_legacy())
STAND_IN(cuMemcpyDtoD_v2, BETWEEN, wait_copy(a, b))
STAND_IN(cuMemcpyPeer, PEER, wait_copy(a, c))
STAND_IN(cuMemsetD8_v2, SET_8, wait_if_synchronous(a))
STAND_IN(cuMemsetD16_v2, SET_16, wait_if_synchronous(a))
STAND_IN(cuMemsetD32_v2, SET_32, wait_if_synchronous(a))
STAND_IN(cuMemsetD2D8_v2, SET_2D_8, wait_if_synchronous(a))
STAND_IN(cuMemsetD2D16_v2, SET_2D_16, wait_if_synchronous(a))
STAND_IN(cuMemsetD2D32_v2, SET_2D_32, wait_if_synchronous(a))
STAND_IN(cuMemcpyDtoHAsync_v2, TO_HOST_ASYNC, wait_pageable(a, (cu_stream)d))
STAND_IN(cuMemFree_v2, FREE, wait_free(a))
STAND_IN(cuMemFreeHost, FREE_HOST, wait_free(a))

/* ---- captures ---- */

static cu_result cuda_capture_begun(cu_result rc)
{
	if (!rc)
		__atomic_add_fetch(&captures, 1, __ATOMIC_RELAXED); /* see there */
	return rc;
}

/* With most errors the capture has ended, too. */
static cu_result cuda_capture_ended(cu_result rc)
{
	if (rc != CU_INVALID && rc != CU_INVALID_HANDLE && rc != CU_ILLEGAL_STATE &&
	    rc != CU_CAPTURE_WRONG_THREAD)
		__atomic_sub_fetch(&captures, 1, __ATOMIC_RELAXED); /* see there */
	return rc;
}

#define STAND_IN_CAPTURE(name, number, count)                                                      \
	SHIM_EXPORT cu_result name(word a, word b, word c, word d, word e, word f);                \
	cu_result name(word a, word b, word c, word d, word e, word f)                             \
	{                                                                                          \
		any_fn real = (any_fn)cuda_behind(&cuda_waiting[number]);                          \
                                                                                                   \
		return real ? count(real(a, b, c, d, e, f)) : CU_NOT_SUPPORTED;                    \
	}

STAND_IN_CAPTURE(cuStreamBeginCapture_v2, BEGIN, cuda_capture_begun)
STAND_IN_CAPTURE(cuStreamBeginCapture_v2_ptsz, BEGIN_PTSZ, cuda_capture_begun)
STAND_IN_CAPTURE(cuStreamBeginCaptureToGraph, BEGIN_GRAPH, cuda_capture_begun)
STAND_IN_CAPTURE(cuStreamBeginCaptureToGraph_ptsz, BEGIN_GRAPH_PTSZ, cuda_capture_begun)
STAND_IN_CAPTURE(cuStreamEndCapture, END, cuda_capture_ended)
STAND_IN_CAPTURE(cuStreamEndCapture_ptsz, END_PTSZ, cuda_capture_ended)

struct cuda_stand_in cuda_waiting[] = {
#define ROW(number, function) [number] = { #function, (void *)function, NULL }
	ROW(COPY, cuMemcpy),
	ROW(TO_HOST, cuMemcpyDtoH_v2),
	ROW(TO_DEVICE, cuMemcpyHtoD_v2),
	ROW(BETWEEN, cuMemcpyDtoD_v2),
	ROW(PEER, cuMemcpyPeer),
	ROW(SET_8, cuMemsetD8_v2),
	ROW(SET_16, cuMemsetD16_v2),
	ROW(SET_32, cuMemsetD32_v2),
	ROW(SET_2D_8, cuMemsetD2D8_v2),
	ROW(SET_2D_16, cuMemsetD2D16_v2),
	ROW(SET_2D_32, cuMemsetD2D32_v2),
	ROW(TO_HOST_ASYNC, cuMemcpyDtoHAsync_v2),
	ROW(FREE, cuMemFree_v2),
	ROW(FREE_HOST, cuMemFreeHost),
	ROW(BEGIN, cuStreamBeginCapture_v2),
	ROW(BEGIN_PTSZ, cuStreamBeginCapture_v2_ptsz),
	ROW(BEGIN_GRAPH, cuStreamBeginCaptureToGraph),
	ROW(BEGIN_GRAPH_PTSZ, cuStreamBeginCaptureToGraph_ptsz),
	ROW(END, cuStreamEndCapture),
	ROW(END_PTSZ, cuStreamEndCapture_ptsz),
#undef ROW
};
const size_t n_cuda_waiting = sizeof(cuda_waiting) / sizeof(cuda_waiting[0]);
