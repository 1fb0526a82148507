/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program does with its own device, in one source for GPUs and the host device: memory that no other PE
 * reaches, copies and fills in the order of a stream, events that mark a place in it. Under nvcc these are calls of
 * CUDA's runtime on the current device; on the host device the memory is the process's own, and what is put on a
 * stream runs as its kernels do.
 *
 *	float *scratch = (float *)gdr_device_malloc(bytes);
 *	gdr_memcpy_async(scratch, input, bytes, copies);
 *	gdr_event_record(arrived, copies);
 *	gdr_stream_wait_event(compute, arrived);
 *	gdr_launch(step, blocks, threads, 0, compute, &args);
 *
 * Host threads call, any of them, before gdr_init too; not kernels (on the host device -GDR_ENOTSUP, or NULL). None of
 * these calls meets another PE. -GDR_EINVAL: an argument is NULL where it must not be, or no such stream or event;
 * -GDR_ENOMEM; -GDR_ESYSTEM: CUDA refused, the log has its text.
 *
 * Memory of gdr_device_malloc is no symmetric object. Where all PEs are mapped a kernel may put from it and get into it
 * as it stands; queues take it once gdr_buffer_register has. */
#ifndef GDR_LOCAL_H
#define GDR_LOCAL_H

#include <gdr/launch.h>

#if !defined(__CUDACC_RTC__) && !(defined(__CUDACC__) && defined(GDR_MODULE))

/** @defgroup local A PE's own device
 * @{ */

GDR_EXTERN_C_BEGIN

/* A place in a stream; under CUDA this is cudaEvent_t. */
typedef struct CUevent_st *gdr_event_t;

#ifdef __CUDACC__

static inline void *gdr_device_malloc(size_t size)
{
	void *p = NULL;

	if (size && gdri_cuda_result("cudaMalloc", cudaMalloc(&p, size)))
		return NULL;
	return p;
}

static inline int gdr_device_free(void *ptr)
{
	return gdri_cuda_result("cudaFree", cudaFree(ptr));
}

static inline int gdr_memset(void *dst, int byte, size_t len)
{
	int ret = gdri_cuda_result("cudaMemset", cudaMemset(dst, byte, len));

	/* It returns before the bytes are there, and peers do not wait for that stream. */
	return ret ? ret : gdri_cuda_result("cudaMemset", cudaStreamSynchronize(0));
}

static inline int gdr_memset_async(void *dst, int byte, size_t len, gdr_stream_t stream)
{
	return gdri_cuda_result("cudaMemsetAsync", cudaMemsetAsync(dst, byte, len, stream));
}

static inline int gdr_memcpy_async(void *dst, const void *src, size_t len, gdr_stream_t stream)
{
	return gdri_cuda_result("cudaMemcpyAsync", cudaMemcpyAsync(dst, src, len, cudaMemcpyDefault, stream));
}

static inline int gdr_event_create(gdr_event_t *event)
{
	return gdri_cuda_result("cudaEventCreate", cudaEventCreate(event));
}

static inline int gdr_event_destroy(gdr_event_t event)
{
	return gdri_cuda_result("cudaEventDestroy", cudaEventDestroy(event));
}

static inline int gdr_event_record(gdr_event_t event, gdr_stream_t stream)
{
	return gdri_cuda_result("cudaEventRecord", cudaEventRecord(event, stream));
}

static inline int gdr_stream_wait_event(gdr_stream_t stream, gdr_event_t event)
{
	return gdri_cuda_result("cudaStreamWaitEvent", cudaStreamWaitEvent(stream, event, 0));
}

static inline int gdr_event_sync(gdr_event_t event)
{
	return gdri_cuda_result("cudaEventSynchronize", cudaEventSynchronize(event));
}

static inline int gdr_event_query(gdr_event_t event)
{
	cudaError_t e = cudaEventQuery(event);

	return e == cudaErrorNotReady ? 0 : e == cudaSuccess ? 1 : gdri_cuda_result("cudaEventQuery", e);
}

static inline int gdr_event_elapsed(gdr_event_t from, gdr_event_t to, float *ms)
{
	return gdri_cuda_result("cudaEventElapsedTime", cudaEventElapsedTime(ms, from, to));
}

#else

/** Memory of the device, aligned to 256 bytes, contents indeterminate; NULL on failure, which is logged. Size 0 gives
 * NULL and no error. It lasts until gdr_device_free, also beyond gdr_finalize. */
GDR_API void *gdr_device_malloc(size_t size);
/** Of gdr_device_malloc, whole, once: nobody can tell other memory, as with free(). NULL is a no-op. Kernels and copies
 * that use the memory have ended before. */
GDR_API int gdr_device_free(void *ptr);
/** Fills len bytes, of memory of the device or symmetric: waits for the default stream, as gdr_memcpy does, and returns
 * when the bytes are there. */
GDR_API int gdr_memset(void *dst, int byte, size_t len);
/** As gdr_memset and gdr_memcpy, in the order of the stream: returns at once, done when the stream gets there. The
 * memory stays as it is until then, the program's own source too; on GPUs, host memory that is not pinned is copied
 * when the call returns. dst and src do not overlap. */
GDR_API int gdr_memset_async(void *dst, int byte, size_t len, gdr_stream_t stream);
/** As gdr_memset_async: returns at once, done when the stream gets there. */
GDR_API int gdr_memcpy_async(void *dst, const void *src, size_t len, gdr_stream_t stream);

/** An event that was never recorded counts as reached. */
GDR_API int gdr_event_create(gdr_event_t *event);
/** What waits for it goes on to wait: the place in the stream stays. */
GDR_API int gdr_event_destroy(gdr_event_t event);
/** Marks what was put on the stream so far; a second record forgets the place of the first. */
GDR_API int gdr_event_record(gdr_event_t event, gdr_stream_t stream);
/** What is put on the stream from now on begins when the place that the event marks now has been reached, in whichever
 * stream. The host thread goes on at once. */
GDR_API int gdr_stream_wait_event(gdr_stream_t stream, gdr_event_t event);
/** Waits until the place has been reached; bounded only by the kernels before it. It tells no kernel's error: that is
 * for gdr_stream_sync. */
GDR_API int gdr_event_sync(gdr_event_t event);
/** 1: the place has been reached, 0: not yet. Does not wait. */
GDR_API int gdr_event_query(gdr_event_t event);
/** Milliseconds between two places that have been reached, to about half a microsecond. Both were recorded. */
GDR_API int gdr_event_elapsed(gdr_event_t from, gdr_event_t to, float *ms);

#endif

GDR_EXTERN_C_END

/** @} */

#endif
#endif
