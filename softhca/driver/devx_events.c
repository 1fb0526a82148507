/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that DEVX programs subscribe to, of objects and of the port, and what their channels read (rules: the kernel's
 * mlx5 devx.c): the cookie of the subscription and behind it, unless the channel leaves that out, the event as the
 * device writes it to its event queue. The channel is a pipe in packet mode: a read takes one event. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "softhca/driver/control.h"
#include "softhca/driver/shim.h"
#include "softhca/engine/dp.h"
#include "softhca/memory/guest.h"
#include "softhca/tools/log.h"

enum {
	EQE_SIZE = 64, /* PRM, "Event Queue Entry": the data is at 32 */
	EQE_CQ_ERR_CQN = 32,
	EQE_CQ_ERR_SYNDROME = 43,
	EQE_PORT = 40, /* in the upper four bits */
	EQE_NUMBER = 56, /* of all other objects */
	CQ_OVERRUN = 1,
	PORT_DOWN = 1, /* subtypes of DEVX_PORT_CHANGE */
	PORT_ACTIVE = 4,
	CQ_DOORBELL = 0x20, /* in a page of registers */
	LOOK_NS = 1000000,
};

struct devx_sub {
	struct devx_sub *next; /* of the same object, or of the context */
	struct hca_comp_channel *channel;
	uint16_t type;
	int eventfd; /* -1: the channel is told */
	uint64_t cookie;
	uint64_t last; /* number of its last event in the channel, from 1 */
};

static bool backlogs; /* some channel has one */

/* ---- delivery ---- */

static size_t event_size(const struct hca_comp_channel *ch)
{
	return ch->omit_data ? sizeof(uint64_t) : sizeof(uint64_t) + EQE_SIZE;
}

/* The kernel's list has no end. A pipe has one: what finds no room waits for the program to read. */
static void channel_push(struct hca_comp_channel *ch)
{
	size_t size = event_size(ch), n = 0;

	while (n < ch->n_backlog && hca_write(ch->wfd, ch->backlog + n * size, size) == (ssize_t)size)
		n++;
	ch->n_backlog -= n;
	memmove(ch->backlog, ch->backlog + n * size, ch->n_backlog * size);
	if (ch->n_backlog) {
		backlogs = true;
		engine_deadline(dp_now() + LOOK_NS);
	}
}

void hca_events_timer(void)
{
	if (!backlogs)
		return;
	backlogs = false;
	for (struct hca_ctx *ctx = device_contexts(); ctx; ctx = ctx->next)
		for (struct hca_comp_channel *ch = ctx->channels; ch; ch = ch->next)
			if (ch->n_backlog)
				channel_push(ch);
}

static bool event_unread(const struct devx_sub *sub)
{
	const struct hca_comp_channel *ch = sub->channel;
	int bytes = 0;

	if (real_ioctl(ch->rfd, FIONREAD, &bytes))
		return false;
	return sub->last > ch->made - ch->n_backlog - (uint64_t)bytes / event_size(ch);
}

static void sub_tell(struct devx_sub *sub, const uint8_t eqe[EQE_SIZE])
{
	static const uint64_t one = 1;
	struct hca_comp_channel *ch = sub->channel;
	size_t size = event_size(ch);
	uint8_t *at;

	if (sub->eventfd >= 0) {
		if (hca_write(sub->eventfd, &one, sizeof(one)) < 0)
			hca_debug(1, "eventfd %d takes no event", sub->eventfd);
		return;
	}
	/* One that has no data says no more when it is there twice. */
	if (ch->omit_data && event_unread(sub))
		return;
	at = realloc(ch->backlog, (ch->n_backlog + 1) * size);
	if (!at) {
		hca_warn("an event of type 0x%x was lost: out of memory", sub->type);
		return;
	}
	ch->backlog = at;
	at += ch->n_backlog++ * size;
	memcpy(at, &sub->cookie, sizeof(sub->cookie));
	memcpy(at + sizeof(sub->cookie), eqe, size - sizeof(sub->cookie));
	sub->last = ++ch->made;
	channel_push(ch);
}

static void subs_tell(struct devx_sub *sub, const uint8_t eqe[EQE_SIZE])
{
	for (; sub; sub = sub->next)
		if (sub->type == eqe[1])
			sub_tell(sub, eqe);
}

void devx_event(struct ctl_obj *obj, enum devx_event type, uint32_t number)
{
	uint8_t eqe[EQE_SIZE] = {[1] = (uint8_t)type};

	if (type == DEVX_CQ_ERROR)
		eqe[EQE_CQ_ERR_SYNDROME] = CQ_OVERRUN;
	put_be32(eqe + (type == DEVX_CQ_ERROR ? EQE_CQ_ERR_CQN : EQE_NUMBER), number);
	subs_tell(obj->subs, eqe);
}

void devx_port_event(struct hca_ctx *ctx, enum hca_port_event event)
{
	const uint8_t eqe[EQE_SIZE] = {[1] = DEVX_PORT_CHANGE,
				       [3] = event == HCA_PORT_ACTIVE ? PORT_ACTIVE : PORT_DOWN,
				       [EQE_PORT] = 1 << 4};

	if (event != HCA_GID_CHANGE) /* which is the host's, not the device's */
		subs_tell(ctx->subs, eqe);
}

/* ---- subscriptions ---- */

/* As for a device that does not list its events (event_cap). */
static bool event_known(const struct ctl_obj *obj, unsigned type)
{
	/* Numbers without a name do not happen here. */
	static const uint8_t of_objects[] = {0, 1, 2, 3, DEVX_CQ_ERROR, DEVX_WQ_CATASTROPHIC, 7,
					     DEVX_WQ_INVALID_REQUEST, DEVX_WQ_ACCESS, 0x12, DEVX_LAST_WQE,
					     DEVX_SRQ_LIMIT, 0x18, DEVX_DCT_DRAINED, 0x1d};

	if (!obj)
		return type == DEVX_PORT_CHANGE;
	return type < 256 && memchr(of_objects, (int)type, sizeof(of_objects));
}

/* Those of the channel, or all. */
static void subs_drop(struct devx_sub **at, const struct hca_comp_channel *ch)
{
	while (*at) {
		struct devx_sub *sub = *at;

		if (ch && sub->channel != ch) {
			at = &sub->next;
			continue;
		}
		*at = sub->next;
		if (sub->eventfd >= 0)
			real_close(sub->eventfd);
		free(sub);
	}
}

void devx_object_gone(struct ctl_obj *obj)
{
	subs_drop(&obj->subs, NULL);
}

void devx_channel_gone(struct hca_comp_channel *ch)
{
	for (uint32_t h = 1; h < ch->ctx->n_handles; h++)
		if (ch->ctx->handles[h])
			subs_drop(&ch->ctx->handles[h]->subs, ch);
	subs_drop(&ch->ctx->subs, ch);
	free(ch->backlog);
}

/* The subscription's own copy, since the program may close its one; -errno. */
static int eventfd_copy(int fd)
{
	char path[32], to[32] = "";
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	if (readlink(path, to, sizeof(to) - 1) > 0 && !strcmp(to, "anon_inode:[eventfd]"))
		return copy;
	real_close(copy);
	return -EINVAL;
}

static void qp_look_again(struct hca_qp *qp)
{
	doorbell_qp_changed(qp);
}

/* The first arm may write 0 where 0 lies already: make it differ, unless its doorbell shows that it was that. */
static void cq_announce(struct ctl_cq *c)
{
	const uint8_t *page = hca_uar_page(c->uar_page);
	uint32_t *word = &c->cq.dbrec[1];

	if (c->cq.events)
		return;
	c->cq.events = true;
	c->cq.armed_word = HCA_NEVER_ARMED;
	if (!guest_dbrec(word) && be64toh(guest_uar(page + CQ_DOORBELL)) != c->cq.cqn)
		put_be32((uint8_t *)word, HCA_NEVER_ARMED);
	hca_sweep_qps(UINT32_MAX, qp_look_again); /* at its records alone until now */
}

static int sub_add(struct devx_sub ***at, const struct devx_sub *what, int eventfd)
{
	struct devx_sub *sub = malloc(sizeof(*sub));

	if (!sub)
		return ENOMEM;
	*sub = *what;
	sub->eventfd = eventfd < 0 ? -1 : eventfd_copy(eventfd);
	if (eventfd >= 0 && sub->eventfd < 0) {
		int rc = -sub->eventfd;

		free(sub);
		return rc;
	}
	**at = sub;
	*at = &sub->next;
	return 0;
}

int devx_subscribe(struct hca_comp_channel *ch, struct ctl_obj *obj, const uint16_t *types, unsigned n, uint64_t cookie,
		   int eventfd)
{
	struct devx_sub *fresh = NULL, **at = &fresh;
	bool comp = false;

	for (unsigned i = 0; i < n; i++) {
		const struct devx_sub what = {.channel = ch, .type = types[i], .cookie = cookie};
		int rc = event_known(obj, types[i]) ? sub_add(&at, &what, eventfd) : EINVAL;

		if (rc) {
			subs_drop(&fresh, NULL);
			return rc;
		}
		comp |= types[i] == DEVX_COMP;
	}
	for (at = obj ? &obj->subs : &ch->ctx->subs; *at; at = &(*at)->next)
		;
	*at = fresh;
	if (comp && obj->type == OBJ_CQ)
		cq_announce((struct ctl_cq *)obj);
	return 0;
}
