/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of the host device: queues of kernels that run in order. Only the
 * head of each is handed to the workers. */

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/hostdev/hostdev_launch.h"

gdr_stream_t gdri_hd_stream_find(struct gdri_hd *hd, gdr_stream_t s)
{
	gdr_stream_t i;

	if (!s)
		return &hd->default_stream;
	for (i = hd->streams; i && i != s; i = i->next)
		;
	return i;
}

/* Hands the head of the stream to the workers. */
static int stream_activate(struct gdri_hd *hd, struct gdri_hd_run *run)
{
	if (hd->ready_tail)
		hd->ready_tail->next_ready = run;
	else
		hd->ready_head = run;
	hd->ready_tail = run;
	hd->unstarted += run->k.grid;
	return gdri_hd_workers_wake(hd);
}

static void stream_pop(struct gdri_hd *hd, gdr_stream_t s)
{
	struct gdri_hd_run *run = s->head;

	s->head = run->next_in_stream;
	if (!s->head)
		s->tail = NULL;
	s->ended++;
	hd->runs--;
	gdri_hd_record_drop(run->record);
	free(run);
}

/* Carries out the places of events at the head; true: a record was made, for which other streams may wait. */
static bool stream_pass(struct gdri_hd *hd, gdr_stream_t s)
{
	bool made = false, passed = false;
	struct gdri_hd_run *run;

	while ((run = s->head) && run->record && (!run->waits || run->record->done)) {
		if (!run->waits)
			gdri_hd_record_done(run->record);
		made |= !run->waits;
		passed = true;
		stream_pop(hd, s);
	}
	if (passed && run && !run->record)
		(void)stream_activate(hd, run); /* fewer workers than wanted: slower only */
	return made;
}

/* The head of s is new. */
static void stream_go_on(struct gdri_hd *hd, gdr_stream_t s)
{
	bool made;

	if (s->head && !s->head->record)
		(void)stream_activate(hd, s->head);
	made = stream_pass(hd, s);
	while (made) {
		made = stream_pass(hd, &hd->default_stream);
		for (s = hd->streams; s; s = s->next)
			made |= stream_pass(hd, s);
	}
	pthread_cond_broadcast(&hd->done);
}

int gdri_hd_stream_push(struct gdri_hd *hd, gdr_stream_t s, struct gdri_hd_run *run)
{
	int ret;

	run->stream = s;
	if (!run->record && !hd->n_workers) { /* the only case in which nobody would run it */
		hd->unstarted++;
		ret = gdri_hd_workers_wake(hd);
		hd->unstarted--;
		if (ret)
			return ret;
	}
	s->launched++;
	hd->runs++;
	if (s->tail)
		s->tail->next_in_stream = run;
	else
		s->head = run;
	s->tail = run;
	if (s->head == run)
		stream_go_on(hd, s);
	return GDR_OK;
}

void gdri_hd_run_ended(struct gdri_hd *hd, struct gdri_hd_run *run)
{
	gdr_stream_t s = run->stream;

	if (run->k.status && !s->status)
		s->status = run->k.status;
	stream_pop(hd, s);
	stream_go_on(hd, s);
}

/* What is left of a stream: kernels stay, since their blocks may run; nobody waits for places of events. */
static void stream_leave(struct gdri_hd *hd, gdr_stream_t s)
{
	struct gdri_hd_run *run;

	if (s->head && !s->status)
		s->status = -GDR_EABORTED;
	while ((run = s->head)) {
		if (run->record) {
			gdri_hd_record_done(run->record);
			stream_pop(hd, s);
			continue;
		}
		s->head = run->next_in_stream;
		run->next_in_stream = hd->left_runs;
		hd->left_runs = run;
	}
	s->tail = NULL;
	s->ended = s->launched;
}

void gdri_hd_streams_leave(struct gdri_hd *hd)
{
	stream_leave(hd, &hd->default_stream);
	for (gdr_stream_t s = hd->streams; s; s = s->next)
		stream_leave(hd, s);
	hd->ready_head = hd->ready_tail = NULL;
	hd->unstarted = 0;
	hd->runs = 0;
	pthread_cond_broadcast(&hd->done);
}

void gdri_hd_streams_begin(struct gdri_hd *hd)
{
	gdr_stream_t s;

	for (s = &hd->default_stream; s; s = s == &hd->default_stream ? hd->streams : s->next)
		if (s->status == -GDR_EABORTED)
			s->status = GDR_OK;
}

void gdri_hd_streams_forget(struct gdri_hd *hd)
{
	struct gdri_hd_run *run;
	gdr_stream_t s;

	for (s = &hd->default_stream; s; s = s == &hd->default_stream ? hd->streams : s->next) {
		while ((run = s->head)) {
			if (run->record)
				gdri_hd_record_done(run->record); /* nobody waits for what will not come */
			else
				s->status = -GDR_ESTATE; /* its kernels run in the parent only */
			stream_pop(hd, s);
		}
		s->ended = s->launched;
	}
	hd->ready_head = hd->ready_tail = NULL;
	hd->unstarted = 0;
	hd->running = 0;
	hd->runs = 0;
}

/* --------------------------------------------------------------- public API */

int gdr_stream_create(gdr_stream_t *stream)
{
	struct gdri_hd *hd;
	gdr_stream_t s;

	if (!stream)
		return gdri_fail(-GDR_EINVAL, "gdr_stream_create: the argument is NULL");
	s = calloc(1, sizeof(*s));
	if (!s)
		return gdri_fail(-GDR_ENOMEM, "gdr_stream_create: no memory");
	hd = gdri_hd_lock();
	s->next = hd->streams;
	hd->streams = s;
	gdri_hd_unlock(hd);
	*stream = s;
	return GDR_OK;
}

/* Waits for what was launched before; the stream as found, or NULL with *ret set. */
static gdr_stream_t stream_drain(struct gdri_hd *hd, gdr_stream_t stream, const char *who, int *ret)
{
	gdr_stream_t s = gdri_hd_stream_find(hd, stream);
	struct gdri_hd_long_wait wait = {.who = who};
	uint64_t target;

	*ret = gdri_hd_self->in_kernel ? -GDR_ENOTSUP : s ? GDR_OK : -GDR_EINVAL;
	if (*ret)
		return s ? gdri_fail(NULL, "%s: not possible inside a kernel", who)
			 : gdri_fail(NULL, "%s: no such stream, %p", who, (void *)stream);
	target = s->launched;
	while (s->ended < target)
		gdri_hd_wait_long(hd, &wait, s);
	return s;
}

int gdr_stream_sync(gdr_stream_t stream)
{
	struct gdri_hd *hd = gdri_hd_lock();
	gdr_stream_t s;
	int ret;

	s = stream_drain(hd, stream, "gdr_stream_sync", &ret);
	if (s) {
		ret = s->status;
		s->status = GDR_OK;
	}
	gdri_hd_unlock(hd);
	return ret;
}

int gdr_stream_destroy(gdr_stream_t stream)
{
	struct gdri_hd *hd;
	gdr_stream_t *link;
	int ret;

	if (!stream)
		return gdri_fail(-GDR_EINVAL, "gdr_stream_destroy: the default stream cannot be destroyed");
	hd = gdri_hd_lock();
	if (stream_drain(hd, stream, "gdr_stream_destroy", &ret)) {
		ret = stream->status;
		for (link = &hd->streams; *link && *link != stream; link = &(*link)->next)
			;
		if (*link) {
			*link = stream->next;
			free(stream);
		}
	}
	gdri_hd_unlock(hd);
	return ret;
}

int gdr_memcpy(void *dst, const void *src, size_t len)
{
	struct gdri_hd *hd;
	int ret;

	if (len && (!dst || !src))
		return gdri_fail(-GDR_EINVAL, "gdr_memcpy: %zu bytes from %p to %p", len, src, dst);
	hd = gdri_hd_lock();
	(void)stream_drain(hd, NULL, "gdr_memcpy", &ret);
	gdri_hd_unlock(hd);
	if (!ret && len)
		memcpy(dst, src, len);
	return ret;
}

int gdr_memset(void *dst, int byte, size_t len)
{
	struct gdri_hd *hd;
	int ret;

	if (len && !dst)
		return gdri_fail(-GDR_EINVAL, "gdr_memset: %zu bytes at NULL", len);
	hd = gdri_hd_lock();
	(void)stream_drain(hd, NULL, "gdr_memset", &ret);
	gdri_hd_unlock(hd);
	if (!ret && len)
		memset(dst, byte, len);
	return ret;
}
