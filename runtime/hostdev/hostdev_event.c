/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of the host device, and memory, copies and fills of its own: gdr/local.h. */
#include <gdr/local.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/hostdev/hostdev_event.h"
#include "runtime/hostdev/hostdev_launch.h"

#define ALIGNMENT 256u /* as cudaMalloc's */

struct CUevent_st { /* gdr_event_t */
	struct gdri_hd_record *last; /* NULL: never recorded */
	gdr_event_t next;
};

void gdri_hd_record_done(struct gdri_hd_record *r)
{
	r->done = true;
	r->ns = gdri_now_ns();
}

void gdri_hd_record_drop(struct gdri_hd_record *r)
{
	if (r && !--r->refs)
		free(r);
}

/* ---- events ---- */

static bool event_is(const struct gdri_hd *hd, gdr_event_t event)
{
	gdr_event_t e = hd->events;

	while (e && e != event)
		e = e->next;
	return e;
}

/* Locks; NULL, unlocked, with *ret set: inside a kernel, or there is no such event. */
static struct gdri_hd *event_lock(gdr_event_t event, const char *who, int *ret)
{
	struct gdri_hd *hd;

	*ret = -GDR_ENOTSUP;
	if (gdri_hd_self->in_kernel)
		return gdri_fail(NULL, "%s: not possible inside a kernel", who);
	hd = gdri_hd_lock();
	*ret = event_is(hd, event) ? GDR_OK : -GDR_EINVAL;
	if (!*ret)
		return hd;
	gdri_hd_unlock(hd);
	return gdri_fail(NULL, "%s: no such event", who);
}

int gdr_event_create(gdr_event_t *event)
{
	struct gdri_hd *hd;
	gdr_event_t e;

	if (!event)
		return gdri_fail(-GDR_EINVAL, "gdr_event_create: the argument is NULL");
	e = calloc(1, sizeof(*e));
	if (!e)
		return gdri_fail(-GDR_ENOMEM, "gdr_event_create: no memory");
	hd = gdri_hd_lock();
	e->next = hd->events;
	hd->events = e;
	gdri_hd_unlock(hd);
	*event = e;
	return GDR_OK;
}

int gdr_event_destroy(gdr_event_t event)
{
	gdr_event_t *link;
	int ret;
	struct gdri_hd *hd = event_lock(event, "gdr_event_destroy", &ret);

	if (!hd)
		return ret;
	for (link = &hd->events; *link != event; link = &(*link)->next)
		;
	*link = event->next;
	gdri_hd_record_drop(event->last);
	free(event);
	gdri_hd_unlock(hd);
	return GDR_OK;
}

/* Puts the place, or a wait for it, on the stream. */
static int event_push(struct gdri_hd *hd, gdr_stream_t stream, struct gdri_hd_record *r, bool waits, const char *who)
{
	struct gdri_hd_run *run = aligned_alloc(64, (sizeof(*run) + 63) & ~(size_t)63);
	gdr_stream_t s = gdri_hd_stream_find(hd, stream);

	if (!run || !s) {
		free(run);
		return s ? gdri_fail(-GDR_ENOMEM, "%s: no memory for it", who)
			 : gdri_fail(-GDR_EINVAL, "%s: no such stream, %p", who, (void *)stream);
	}
	memset(run, 0, sizeof(*run));
	run->k.name = who;
	run->record = r;
	run->waits = waits;
	r->refs++;
	return gdri_hd_stream_push(hd, s, run);
}

int gdr_event_record(gdr_event_t event, gdr_stream_t stream)
{
	struct gdri_hd_record *r;
	int ret;
	struct gdri_hd *hd = event_lock(event, "gdr_event_record", &ret);

	if (!hd)
		return ret;
	r = calloc(1, sizeof(*r));
	if (r) {
		r->refs = 1;
		ret = event_push(hd, stream, r, false, "gdr_event_record");
		gdri_hd_record_drop(ret ? r : event->last);
		event->last = ret ? event->last : r;
	}
	gdri_hd_unlock(hd);
	return r ? ret : gdri_fail(-GDR_ENOMEM, "gdr_event_record: no memory");
}

int gdr_stream_wait_event(gdr_stream_t stream, gdr_event_t event)
{
	int ret;
	struct gdri_hd *hd = event_lock(event, "gdr_stream_wait_event", &ret);

	if (!hd)
		return ret;
	if (event->last)
		ret = event_push(hd, stream, event->last, true, "gdr_stream_wait_event");
	else if (!gdri_hd_stream_find(hd, stream))
		ret = gdri_fail(-GDR_EINVAL, "gdr_stream_wait_event: no such stream, %p", (void *)stream);
	gdri_hd_unlock(hd);
	return ret;
}

int gdr_event_sync(gdr_event_t event)
{
	struct gdri_hd_record *r;
	struct gdri_hd_long_wait wait = {.who = "gdr_event_sync"};
	int ret;
	struct gdri_hd *hd = event_lock(event, "gdr_event_sync", &ret);

	if (!hd)
		return ret;
	r = event->last;
	if (r) {
		r->refs++;
		while (!r->done)
			gdri_hd_wait_long(hd, &wait, NULL);
		gdri_hd_record_drop(r);
	}
	gdri_hd_unlock(hd);
	return GDR_OK;
}

int gdr_event_query(gdr_event_t event)
{
	int ret;
	struct gdri_hd *hd = event_lock(event, "gdr_event_query", &ret);

	if (!hd)
		return ret;
	ret = !event->last || event->last->done;
	gdri_hd_unlock(hd);
	return ret;
}

/* NULL: they have, and *ns is how long the second came after the first. */
static const char *elapsed_refusal(const struct gdri_hd_record *from, const struct gdri_hd_record *to, int64_t *ns)
{
	if (!from || !to)
		return "an event was never recorded";
	if (!from->done || !to->done)
		return "an event has not been reached: gdr_event_sync waits for it";
	*ns = (int64_t)(to->ns - from->ns);
	return NULL;
}

int gdr_event_elapsed(gdr_event_t from, gdr_event_t to, float *ms)
{
	const char *why = ms ? NULL : "ms is NULL";
	struct gdri_hd *hd;
	int64_t ns = 0;
	int ret;

	hd = event_lock(from, "gdr_event_elapsed", &ret);
	if (!hd)
		return ret;
	if (!why)
		why = event_is(hd, to) ? elapsed_refusal(from->last, to->last, &ns) : "no such event";
	gdri_hd_unlock(hd);
	if (why)
		return gdri_fail(-GDR_EINVAL, "gdr_event_elapsed: %s", why);
	*ms = (float)((double)ns * 1e-6);
	return GDR_OK;
}

/* ---- memory ---- */

void *gdr_device_malloc(size_t size)
{
	void *p;

	if (gdri_hd_self->in_kernel)
		return gdri_fail(NULL, "gdr_device_malloc: not possible inside a kernel");
	if (!size)
		return NULL;
	p = size > SIZE_MAX - ALIGNMENT
		    ? NULL
		    : aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1));
	return p ? p : gdri_fail(NULL, "gdr_device_malloc: no memory for %zu bytes", size);
}

int gdr_device_free(void *ptr)
{
	if (gdri_hd_self->in_kernel)
		return gdri_fail(-GDR_ENOTSUP, "gdr_device_free: not possible inside a kernel");
	free(ptr);
	return GDR_OK;
}

struct transfer {
	void *dst;
	const void *src; /* NULL: filled with byte */
	size_t len;
	int byte;
};

static void transfer_run(const void *arg)
{
	const struct transfer *t = arg;

	if (!t->len)
		return;
	if (t->src)
		memcpy(t->dst, t->src, t->len);
	else
		memset(t->dst, t->byte, t->len);
}

static int transfer_put(const struct transfer *t, const char *who, gdr_stream_t stream)
{
	return gdri_hd_launch(transfer_run, who, 1, 1, 0, stream, t, sizeof(*t));
}

int gdr_memset_async(void *dst, int byte, size_t len, gdr_stream_t stream)
{
	const struct transfer t = {dst, NULL, len, byte};

	if (len && !dst)
		return gdri_fail(-GDR_EINVAL, "gdr_memset_async: %zu bytes at NULL", len);
	return transfer_put(&t, "gdr_memset_async", stream);
}

int gdr_memcpy_async(void *dst, const void *src, size_t len, gdr_stream_t stream)
{
	const struct transfer t = {dst, src ? src : dst, len, 0};

	if (len && (!dst || !src))
		return gdri_fail(-GDR_EINVAL, "gdr_memcpy_async: %zu bytes from %p to %p", len, src, dst);
	return transfer_put(&t, "gdr_memcpy_async", stream);
}
