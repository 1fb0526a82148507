/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels and the asynchronous event fd (of DEVX: devx_events.c): pipes, as the uverbs
 * read() interface has it (struct ib_uverbs_comp_event_desc and
 * ib_uverbs_async_event_desc).
 *
 * libibverbs waits in destroy until it has acknowledged as many events as the
 * driver says it delivered, so events that the program has not read yet have to
 * be taken back out of the pipe and not counted. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "softhca/driver/control.h"
#include "softhca/tools/log.h"
#include "softhca/driver/shim.h"

int event_channel_create(struct hca_ctx *ctx, int flags, struct hca_comp_channel **out)
{
	struct hca_comp_channel *ch = calloc(1, sizeof(*ch));
	char self[32];
	struct stat st;
	int p[2], rc;

	if (!ch)
		return -ENOMEM;
	if (pipe2(p, O_CLOEXEC | flags)) {
		rc = -errno;
		free(ch);
		return rc;
	}
	/* A second open file on the same pipe: not blocking, while the
	 * program's end blocks unless it asks otherwise. It also keeps the
	 * pipe from ever lacking a reader. */
	snprintf(self, sizeof(self), "/proc/self/fd/%d", p[0]);
	ch->wfd = p[1];
	ch->rfd = real_open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC, 0);
	rc = ch->rfd < 0 || fcntl(p[1], F_SETFL, O_NONBLOCK | flags) || real_fstat(p[0], &st) ? errno : 0;
	if (!rc)
		rc = shim_file_add(SHIM_CHANNEL, 0, st.st_dev, st.st_ino);
	if (rc) {
		if (ch->rfd >= 0)
			real_close(ch->rfd);
		real_close(p[0]);
		real_close(p[1]);
		free(ch);
		return -rc;
	}
	ch->ctx = ctx;
	ch->dev = st.st_dev;
	ch->ino = st.st_ino;
	*out = ch;
	return p[0];
}

static void channel_free(struct hca_comp_channel *ch)
{
	struct hca_comp_channel **at = &ch->ctx->channels;

	while (*at && *at != ch)
		at = &(*at)->next;
	if (*at)
		*at = ch->next;
	if (ch->ctx->async == ch)
		ch->ctx->async = NULL;
	if (ch->devx)
		devx_channel_gone(ch);
	if (!ch->closed)
		shim_file_remove(ch->dev, ch->ino);
	real_close(ch->wfd);
	real_close(ch->rfd);
	free(ch);
}

void event_channel_close(struct hca_comp_channel *ch)
{
	if (ch->cqs == 0) {
		channel_free(ch);
		return;
	}
	if (!ch->closed)
		shim_file_remove(ch->dev, ch->ino);
	ch->closed = true;
}

void event_channel_put(struct hca_comp_channel *ch)
{
	if (--ch->cqs == 0 && ch->closed)
		channel_free(ch);
}

struct hca_comp_channel *event_channel_find(struct hca_ctx *ctx, int fd, bool devx)
{
	struct hca_comp_channel *ch = ctx->channels;
	struct stat st;

	if (real_fstat(fd, &st))
		return NULL;
	while (ch && (ch->dev != st.st_dev || ch->ino != st.st_ino || ch->devx != devx))
		ch = ch->next;
	return ch;
}

/* Both kinds of event start with the object's 64-bit name. */
static uint32_t events_take_back(struct hca_comp_channel *ch, size_t size, uint64_t element)
{
	uint32_t dropped = 0;
	int waiting = 0;
	uint64_t first;
	char ev[16];

	if (real_ioctl(ch->rfd, FIONREAD, &waiting))
		return 0;
	/* Each event is looked at once; others go to the end of the pipe. */
	for (; waiting >= (int)size; waiting -= (int)size) {
		if (read(ch->rfd, ev, size) != (ssize_t)size)
			break; /* the program was faster */
		memcpy(&first, ev, sizeof(first));
		if (first == element)
			dropped++;
		else if (hca_write(ch->wfd, ev, size) != (ssize_t)size)
			hca_warn("an event was lost: event channel full");
	}
	return dropped;
}

uint32_t event_drop_comp(struct hca_comp_channel *ch, uint64_t user_handle)
{
	return events_take_back(ch, sizeof(struct ib_uverbs_comp_event_desc), user_handle);
}

uint32_t event_drop_async(struct hca_ctx *ctx, uint64_t element)
{
	if (!ctx->async)
		return 0;
	return events_take_back(ctx->async, sizeof(struct ib_uverbs_async_event_desc), element);
}

void hca_comp_event(struct hca_cq *cq)
{
	struct ib_uverbs_comp_event_desc ev = {.cq_handle = cq->user_handle};
	struct ctl_cq *c = ctl_of(cq, struct ctl_cq, cq);

	if (c->obj.devx)
		devx_event(&c->obj, DEVX_COMP, cq->cqn);
	if (!cq->channel || cq->channel->closed)
		return;
	if (hca_write(cq->channel->wfd, &ev, sizeof(ev)) == (ssize_t)sizeof(ev))
		cq->comp_events++;
	else
		hca_warn("completion event of CQ 0x%x lost: the program leaves its channel unread",
			 cq->cqn);
}

void event_async(struct hca_ctx *ctx, uint64_t element, uint32_t type, uint32_t *count)
{
	struct ib_uverbs_async_event_desc ev = {.element = element, .event_type = type};

	if (!ctx->async || ctx->async->closed)
		return;
	if (hca_write(ctx->async->wfd, &ev, sizeof(ev)) != (ssize_t)sizeof(ev))
		return; /* nobody reads them: the kernel would drop them as well */
	if (count)
		(*count)++;
}

static void event_async_of(struct ctl_obj *obj, uint64_t user_handle, uint32_t number, uint32_t type, uint32_t *count)
{
	static const uint8_t devx[] = { /* by IBV_EVENT_ number */
		[0] = DEVX_CQ_ERROR,  [1] = DEVX_WQ_CATASTROPHIC, [2] = DEVX_WQ_INVALID_REQUEST,
		[3] = DEVX_WQ_ACCESS, [15] = DEVX_SRQ_LIMIT,	  [16] = DEVX_LAST_WQE,
	};

	if (obj->devx)
		devx_event(obj, devx[type], number);
	else
		event_async(obj->ctx, user_handle, type, count);
}

void hca_async_cq_event(struct hca_cq *cq, uint32_t type)
{
	struct ctl_cq *c = ctl_of(cq, struct ctl_cq, cq);

	event_async_of(&c->obj, cq->user_handle, cq->cqn, type, &c->async_events);
}

void hca_async_srq_event(struct hca_srq *srq, uint32_t type)
{
	struct ctl_srq *c = ctl_of(srq, struct ctl_srq, srq);

	event_async_of(&c->obj, c->user_handle, srq->srqn, type, &c->async_events);
}

void hca_async_qp_event(struct hca_qp *qp, uint32_t type)
{
	struct ctl_qp *c = ctl_of(qp, struct ctl_qp, qp);

	event_async_of(&c->obj, qp->user_handle, qp->qpn, type, &c->async_events);
}

/* The element is the port. */
void hca_async_port_event(enum hca_port_event event)
{
	for (struct hca_ctx *ctx = device_contexts(); ctx; ctx = ctx->next) {
		event_async(ctx, 1, event, NULL);
		devx_port_event(ctx, event);
	}
}
