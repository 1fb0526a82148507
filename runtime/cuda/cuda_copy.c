// SPDX-License-Identifier: BSD-3-Clause
/* Copies, over one stream of the library's, each bounded in time; and the wait for the default stream. */
#include <string.h>
#include <time.h>

#include "runtime/core/clock.h"
#include "runtime/cuda/cuda_impl.h"

#define BUSY_US 1000 /* see gdri_cuda_default_stream */

/* Polls: a sleep of the driver could not be bounded. */
static gdri_cu_result copy_finish(struct gdri_cuda *c, int timeout_ms)
{
	uint64_t end = gdri_deadline_ns(timeout_ms);
	struct timespec nap = {0, 20000};
	gdri_cu_result r;

	for (unsigned i = 0; (r = c->api.stream_query(c->stream)) == GDRI_CU_NOT_READY; i++) {
		if (gdri_left_ms(end) <= 0)
			break;
		if (i > 1000)
			nanosleep(&nap, NULL);
	}
	return r;
}

/* Takes the stream and the context. False: an earlier copy, which took too long, is still on the stream, and what is
 * put behind it would wait for it. */
static bool copy_begin(struct gdri_cuda *c)
{
	pthread_mutex_lock(&c->lock);
	gdri_cuda_enter(c);
	if (c->stuck)
		c->stuck = c->api.stream_query(c->stream) == GDRI_CU_NOT_READY;
	return !c->stuck;
}

static void copy_end(struct gdri_cuda *c)
{
	gdri_cuda_leave(c);
	pthread_mutex_unlock(&c->lock);
}

/* Between the two, where the stream is free: a copy begins. src NULL: zeroes. */
static gdri_cu_result copy_send(struct gdri_cuda *c, void *dst, const void *src, size_t len)
{
	return src ? c->api.copy((uintptr_t)dst, (uintptr_t)src, len, c->stream)
		   : c->api.set((uintptr_t)dst, 0, len, c->stream);
}

/* Up to its end. */
static gdri_cu_result copy_arrive(struct gdri_cuda *c, int timeout_ms)
{
	gdri_cu_result r = copy_finish(c, timeout_ms);

	c->stuck = r == GDRI_CU_NOT_READY;
	return r;
}

/* What became of it. Not begun: as if not finished. */
static int copy_carried(struct gdri_cuda *c, const char *what, gdri_cu_result r, bool began, int timeout_ms)
{
	if (!r)
		return 0;
	if (r != GDRI_CU_NOT_READY)
		return gdri_cuda_refused(c, what, r);
	return gdri_fail(-GDR_ETIMEOUT,
			 began ? "CUDA: %s did not finish in %d ms: the GPU hangs, or a kernel holds it"
			       : "CUDA: %s cannot begin: an earlier copy, which took too long, is still under way",
			 what, timeout_ms);
}

static int copy_transfer(struct gdri_cuda *c, const char *what, void *dst, const void *src, size_t len,
			 int timeout_ms)
{
	gdri_cu_result r = GDRI_CU_NOT_READY;
	bool began = copy_begin(c);

	if (began) {
		r = copy_send(c, dst, src, len);
		r = r ? r : copy_arrive(c, timeout_ms);
	}
	copy_end(c);
	return copy_carried(c, what, r, began, timeout_ms);
}

int gdri_cuda_copy(struct gdri_cuda *c, void *dst, const void *src, size_t len, int timeout_ms)
{
	return len ? copy_transfer(c, "a copy", dst, src, len, timeout_ms) : 0;
}

static size_t copy_part(size_t left)
{
	return left < GDRI_CUDA_BOUNCE ? left : GDRI_CUDA_BOUNCE;
}

/* Each part is taken from one buffer while the next one comes to the other. */
static gdri_cu_result copy_take(struct gdri_cuda *c, uint8_t *to, const uint8_t *gpu, size_t len, int timeout_ms)
{
	size_t part = copy_part(len), next;
	gdri_cu_result r = copy_send(c, c->bounce[0], gpu, part);
	unsigned int at = 0;

	for (; !r && part; at ^= 1, to += part, len -= part, part = next) {
		r = copy_arrive(c, timeout_ms);
		gpu += part;
		next = copy_part(len - part);
		if (!r && next)
			r = copy_send(c, c->bounce[at ^ 1], gpu, next);
		if (!r)
			memcpy(to, c->bounce[at], part);
	}
	return r;
}

/* Each part goes to one buffer while the one before leaves the other. */
static gdri_cu_result copy_give(struct gdri_cuda *c, uint8_t *gpu, const uint8_t *from, size_t len, int timeout_ms)
{
	gdri_cu_result r = 0;
	bool sent = false; /* the part before is on its way */
	unsigned int at = 0;
	size_t part;

	for (; !r && len; at ^= 1, gpu += part, from += part, len -= part, sent = true) {
		part = copy_part(len);
		memcpy(c->bounce[at], from, part);
		if (sent)
			r = copy_arrive(c, timeout_ms);
		if (!r)
			r = copy_send(c, gpu, c->bounce[at], part);
	}
	return r ? r : copy_arrive(c, timeout_ms);
}

/* By way of the buffers: from memory of the GPU (look), or to it. */
static int copy_bounced(struct gdri_cuda *c, bool look, void *dst, const void *src, size_t len, int timeout_ms)
{
	gdri_cu_result r = GDRI_CU_NOT_READY;
	bool began;

	if (!len)
		return 0;
	began = copy_begin(c);
	if (began)
		r = look ? copy_take(c, dst, src, len, timeout_ms) : copy_give(c, dst, src, len, timeout_ms);
	copy_end(c);
	return copy_carried(c, look ? "a look at memory of the GPU" : "a change of memory of the GPU", r, began,
			    timeout_ms);
}

int gdri_cuda_peek(struct gdri_cuda *c, void *to, const void *gpu, size_t len, int timeout_ms)
{
	return copy_bounced(c, true, to, gpu, len, timeout_ms);
}

int gdri_cuda_poke(struct gdri_cuda *c, void *gpu, const void *from, size_t len, int timeout_ms)
{
	return copy_bounced(c, false, gpu, from, len, timeout_ms);
}

int gdri_cuda_settle(struct gdri_cuda *c, int timeout_ms)
{
	int ret = 0;

	pthread_mutex_lock(&c->lock);
	if (c->stuck) {
		gdri_cuda_enter(c);
		c->stuck = copy_finish(c, timeout_ms) == GDRI_CU_NOT_READY;
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
	return copy_transfer(c, "zeroing memory", dst, NULL, len, timeout_ms);
}
