// SPDX-License-Identifier: BSD-3-Clause
/* What is stored waits in pinned memory, and what is loaded comes there, so that the driver keeps nobody and an overdue
 * copy touches no memory of the caller's. Neighbours that are loaded go together. */
#include "runtime/cuda/cuda_lane.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/core/clock.h"
#include "runtime/cuda/cuda_impl.h"

#define LANE_LOADS 512u

enum lane_way { LANE_STORE, LANE_LOAD };

struct lane_landing {
	void *to;
	const uint8_t *at;
	size_t len;
};

struct gdri_lane {
	struct gdri_cuda *c;
	gdri_cu_stream stream;
	uint8_t *ring;
	size_t bytes, used; /* of it: all, and since the last wait */
	uint64_t end; /* when what the driver has is overdue (ns) */
	struct lane_copy { /* which the driver has not been told of: what comes next may make it longer */
		enum lane_way way;
		uint8_t *gpu, *at;
		size_t len; /* 0: none */
	} open;
	uint32_t n_loads;
	struct lane_landing loads[LANE_LOADS];
	int limit_ms, error; /* error: for the next wait */
	bool busy, stuck;    /* the driver has copies; an overdue one, too */
};

int gdri_lane_open(struct gdri_cuda *c, size_t bytes, int limit_ms, struct gdri_lane **out)
{
	struct gdri_lane *l = calloc(1, sizeof(*l));
	gdri_cu_result r;

	*out = l;
	if (!l)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	l->c = c;
	l->bytes = bytes;
	l->limit_ms = limit_ms;
	l->ring = gdri_cuda_alloc_host(c, bytes);
	if (!l->ring)
		return -GDR_ENOMEM;
	gdri_cuda_enter(c);
	/* no priority: CUDA knows that of kernels alone */
	r = c->api.stream_create(&l->stream, GDRI_CU_STREAM_NON_BLOCKING);
	gdri_cuda_leave(c);
	return r ? gdri_cuda_refused(c, "creating a stream", r) : 0;
}

/* ---- the driver ---- */

static void lane_refused(struct gdri_lane *l, gdri_cu_result r)
{
	if (r && !l->error)
		l->error = gdri_cuda_refused(l->c, "a copy for other PEs", r);
}

/* What a thread had before it came to the driver. */
struct lane_visit {
	bool pushed;
	int mode;
};

/* Captures of the program's, of whatever thread, must not meet these calls. */
static void lane_enter(struct gdri_lane *l, struct lane_visit *v)
{
	v->mode = GDRI_CU_CAPTURE_RELAXED;
	if (l->c->api.capture_mode)
		l->c->api.capture_mode(&v->mode);
	v->pushed = gdri_cuda_enter_another(l->c);
}

static void lane_leave(struct gdri_lane *l, struct lane_visit *v)
{
	if (v->pushed)
		gdri_cuda_leave(l->c);
	if (l->c->api.capture_mode)
		l->c->api.capture_mode(&v->mode);
}

static void lane_begins(struct gdri_lane *l)
{
	if (!l->busy)
		l->end = gdri_deadline_ns(l->limit_ms);
	l->busy = true;
}

static void lane_send(struct gdri_lane *l)
{
	struct lane_copy *o = &l->open;
	bool stores = o->way == LANE_STORE;
	struct lane_visit v;

	if (!o->len)
		return;
	lane_enter(l, &v);
	lane_refused(l, l->c->api.copy((uintptr_t)(stores ? o->gpu : o->at), (uintptr_t)(stores ? o->at : o->gpu),
				       o->len, l->stream));
	lane_leave(l, &v);
	o->len = 0;
	lane_begins(l);
}

/* Polls: a sleep of the driver could not be bounded. */
static gdri_cu_result lane_finish(struct gdri_lane *l, int limit_ms)
{
	uint64_t end = gdri_deadline_ns(limit_ms);
	struct timespec nap = {0, 20000};
	gdri_cu_result r;

	for (unsigned int i = 0; (r = l->c->api.stream_query(l->stream)) == GDRI_CU_NOT_READY; i++) {
		if (gdri_left_ms(end) <= 0)
			break;
		if (i > 1000)
			nanosleep(&nap, NULL);
	}
	return r;
}

/* All that has begun ends; the ring is free. */
static void lane_drain(struct gdri_lane *l, int limit_ms)
{
	bool was_stuck = l->stuck;
	struct lane_visit v;
	gdri_cu_result r = 0;
	uint32_t i;

	lane_send(l);
	if (l->busy) {
		lane_enter(l, &v);
		r = lane_finish(l, limit_ms);
		lane_leave(l, &v);
	}
	l->stuck = r == GDRI_CU_NOT_READY;
	if (l->stuck && was_stuck && !l->error)
		l->error = -GDR_ETIMEOUT;
	else if (l->stuck && !l->error)
		l->error = gdri_fail(-GDR_ETIMEOUT,
				     "CUDA: copies for other PEs did not finish in %d ms: the GPU hangs, or a kernel "
				     "holds it", l->limit_ms);
	else if (!l->stuck)
		lane_refused(l, r);
	for (i = 0; !l->error && i < l->n_loads; i++)
		memcpy(l->loads[i].to, l->loads[i].at, l->loads[i].len);
	l->n_loads = 0;
	if (l->stuck)
		return;
	l->busy = false;
	l->used = 0;
}

void gdri_lane_close(struct gdri_lane *l)
{
	if (!l)
		return;
	if (l->stream)
		lane_drain(l, 0);
	if (l->stuck) /* freeing what the GPU still uses would wait for it without limit */
		return;
	gdri_cuda_enter(l->c);
	if (l->stream)
		l->c->api.stream_destroy(l->stream);
	gdri_cuda_leave(l->c);
	gdri_cuda_free_host(l->c, l->ring);
	free(l);
}

/* ---- what is asked for ---- */

/* Room for the next bytes, fewer where the ring ends; NULL: an earlier copy failed. Words lie in it as in the GPU's
 * memory. */
static uint8_t *lane_take(struct gdri_lane *l, enum lane_way way, const void *gpu, size_t *len)
{
	struct lane_copy *o = &l->open;
	uint8_t *at = l->ring + l->used;
	/* not what is stored: a word may be the flag that a fence put behind its neighbours, and a copy has no order in
	 * itself */
	bool joins = way == LANE_LOAD && o->len && o->way == way && o->gpu + o->len == (const uint8_t *)gpu &&
		     o->at + o->len == at;

	if (l->stuck)
		lane_drain(l, 0);
	if (!joins)
		l->used = ((l->used + 7) & ~(size_t)7) + ((uintptr_t)gpu & 7);
	if (l->used + 16 > l->bytes || l->n_loads == LANE_LOADS) {
		lane_drain(l, l->limit_ms);
		l->used = l->stuck ? l->bytes : (uintptr_t)gpu & 7;
		joins = false;
	}
	if (l->stuck || l->error)
		return NULL;
	at = l->ring + l->used;
	*len = *len < l->bytes - l->used ? *len : l->bytes - l->used;
	if (!joins) {
		lane_send(l);
		*o = (struct lane_copy){way, (uint8_t *)(uintptr_t)gpu, at, 0};
	}
	o->len += *len;
	l->used += *len;
	return at;
}

void gdri_lane_store(struct gdri_lane *l, void *gpu, const void *from, size_t len)
{
	const uint8_t *src = from;
	uint8_t *at, *to = gpu;
	size_t part;

	for (; len; len -= part, to += part, src += part) {
		part = len;
		at = lane_take(l, LANE_STORE, to, &part);
		if (!at)
			return;
		memcpy(at, src, part);
	}
}

void gdri_lane_load(struct gdri_lane *l, void *to, const void *gpu, size_t len)
{
	const uint8_t *from = gpu;
	uint8_t *at, *into = to;
	size_t part;

	for (; len; len -= part, from += part, into += part) {
		part = len;
		at = lane_take(l, LANE_LOAD, from, &part);
		if (!at)
			return;
		l->loads[l->n_loads++] = (struct lane_landing){into, at, part};
	}
}

void gdri_lane_move(struct gdri_lane *l, void *gpu, const void *from, size_t len)
{
	struct lane_visit v;

	lane_send(l);
	if (l->stuck)
		lane_drain(l, 0);
	if (l->stuck || l->error)
		return;
	lane_enter(l, &v);
	lane_refused(l, l->c->api.copy((uintptr_t)gpu, (uintptr_t)from, len, l->stream));
	lane_leave(l, &v);
	lane_begins(l);
}

int gdri_lane_has_work(const struct gdri_lane *l)
{
	return l->busy || l->open.len || l->error;
}

static int lane_result(struct gdri_lane *l, int limit_ms)
{
	int ret;

	lane_drain(l, limit_ms);
	ret = l->error;
	l->error = 0;
	return ret;
}

int gdri_lane_wait(struct gdri_lane *l)
{
	return lane_result(l, l->stuck ? 0 : l->limit_ms);
}

int gdri_lane_test(struct gdri_lane *l)
{
	gdri_cu_result r = 0;
	struct lane_visit v;

	lane_send(l);
	if (l->busy && !l->stuck && !l->error && gdri_left_ms(l->end) > 0) {
		lane_enter(l, &v);
		r = l->c->api.stream_query(l->stream);
		lane_leave(l, &v);
	}
	return r == GDRI_CU_NOT_READY ? GDRI_LANE_COPIES : lane_result(l, 0);
}
