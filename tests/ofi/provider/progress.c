// SPDX-License-Identifier: BSD-3-Clause
/* What goes out and what comes in. What the mode gives no order is held back by chance, and writes are placed in
 * pieces, in any order: a program that counts on an order which nobody promised is to be seen. */
#define _GNU_SOURCE
#include "tests/ofi/provider/fake.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#define IN_MOST 64	  /* datagrams of a round */
#define PIECES	16u	  /* of a write, at most */
#define PING_NS 50000000u /* peers that operations wait for are looked at so often */
#define BLOCKED 32	  /* peers without room in a round */

uint32_t gdr_fake_random(struct fake_ep *ep)
{
	ep->random = ep->random * 1664525u + 1013904223u;
	return ep->random >> 8;
}

static uint64_t progress_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool progress_same(struct fake_name a, struct fake_name b)
{
	return a.pid == b.pid && a.n == b.n;
}

/* ---- out ---- */

void gdr_fake_depart(struct fake_ep *ep, struct fake_name to, const struct fake_packet *p,
		     const void *data, size_t len)
{
	struct fake_departure *d = calloc(1, sizeof(*d) + len);

	if (!d)
		gdr_fake_fault("out of memory");
	d->to = to;
	d->len = sizeof(*p) + len;
	d->packet = *p;
	if (len)
		memcpy(&d->packet + 1, data, len);
	*ep->departures_end = d;
	ep->departures_end = &d->next;
	ep->n_departures++;
	gdr_fake_flush(ep);
}

static void progress_gone(struct fake_ep *ep, const struct fake_departure *d)
{
	if (d->packet.kind != FAKE_DONE && !ep->domain->mode->silent)
		gdr_fake_op_end(ep, d->packet.op, FI_EHOSTUNREACH);
}

/* A PE without room does not hold up others; what goes to it stays in its order. */
void gdr_fake_flush(struct fake_ep *ep)
{
	struct fake_departure **at = &ep->departures, *d;
	struct fake_name blocked[BLOCKED];
	size_t n = 0, i;
	int rc;

	while ((d = *at) && n < BLOCKED) {
		for (i = 0; i < n && !progress_same(blocked[i], d->to); i++)
			;
		rc = i < n ? EAGAIN : gdr_fake_socket_send(ep->socket, d->to, &d->packet, d->len);
		if (rc == EAGAIN || rc == ENOBUFS) {
			if (i == n)
				blocked[n++] = d->to;
			at = &d->next;
			continue;
		}
		*at = d->next;
		if (!*at)
			ep->departures_end = at;
		ep->n_departures--;
		if (rc)
			progress_gone(ep, d);
		free(d);
	}
}

/* Ends operations to PEs that are not there any more, though their requests went out. */
static void progress_ping(struct fake_ep *ep)
{
	struct fake_packet p = {.kind = FAKE_PING};
	uint64_t now = progress_now(), number = 0;
	struct fake_op *op;
	int rc;

	if (ep->domain->mode->silent || now < ep->pinged + PING_NS)
		return;
	ep->pinged = now;
	for (op = ep->ops; op && !number; op = op->next) {
		rc = gdr_fake_socket_send(ep->socket, op->to, &p, sizeof(p));
		if (rc == ECONNREFUSED || rc == ENOENT)
			number = op->number;
	}
	if (!number)
		return;
	ep->pinged = 0; /* others may wait for it, too */
	gdr_fake_op_end(ep, number, FI_EHOSTUNREACH);
}

/* ---- in ---- */

static bool progress_ordered(const struct fake_ep *ep, uint32_t kind)
{
	return kind == FAKE_DONE ||
	       ep->domain->mode->order & (kind == FAKE_SEND ? FI_ORDER_SAS : FI_ORDER_WAW);
}

static void progress_arrive(struct fake_ep *ep, const struct fake_packet *p, size_t len)
{
	struct fake_arrival *a;

	if (len < sizeof(*p) || p->kind == FAKE_PING)
		return;
	len -= sizeof(*p);
	a = calloc(1, sizeof(*a) + len);
	if (!a)
		gdr_fake_fault("out of memory");
	a->packet = *p;
	a->len = len;
	a->left = progress_ordered(ep, p->kind) || p->len < PIECES ? 1 : (1u << PIECES) - 1;
	a->hold = progress_ordered(ep, p->kind)
			  ? 0
			  : gdr_fake_random(ep) % (ep->domain->mode->hold + 1);
	memcpy(a->data, p + 1, len);
	*ep->arrivals_end = a;
	ep->arrivals_end = &a->next;
}

static void progress_drain(struct fake_ep *ep)
{
	_Alignas(16) uint8_t buf[sizeof(struct fake_packet) + FAKE_SEND_MOST];
	ssize_t len;
	int i;

	for (i = 0; i < IN_MOST; i++) {
		len = recv(ep->socket, buf, sizeof(buf), MSG_DONTWAIT);
		if (len < 0)
			return;
		progress_arrive(ep, (const struct fake_packet *)(const void *)buf, (size_t)len);
	}
}

static void progress_answer(struct fake_ep *ep, const struct fake_packet *to, int err)
{
	struct fake_packet p = {.kind = FAKE_DONE, .err = err, .op = to->op, .from = ep->name};

	if (to->op)
		gdr_fake_depart(ep, to->from, &p, NULL, 0);
}

/* Whether it is done with. */
static bool progress_message(struct fake_ep *ep, struct fake_arrival *a)
{
	struct fake_receive *r = ep->receives;

	if (!r || ep->cq->n + ep->n_ops >= ep->cq->size)
		return false;
	if (r->len < a->len)
		gdr_fake_fault("a message is longer than what receives it");
	ep->receives = r->next;
	if (!r->next)
		ep->receives_end = &ep->receives;
	ep->n_receives--;
	memcpy(r->buf, a->data, a->len);
	gdr_fake_context_check(ep->domain->mode, r->context);
	gdr_fake_complete(ep->cq, r->context, FI_MSG | FI_RECV, a->len, 0);
	free(r);
	progress_answer(ep, &a->packet, 0);
	return true;
}

/* 0 or errno: len bytes from the offset on, between the source's memory and this process's. */
static int progress_copy(const struct fake_packet *p, uint8_t *at, size_t offset, size_t len)
{
	struct iovec here = {at + offset, len},
		     there = {(void *)(uintptr_t)(p->near + offset), len};
	ssize_t n;

	if (p->kind == FAKE_WRITE)
		n = process_vm_readv(p->from.pid, &here, 1, &there, 1, 0);
	else
		n = process_vm_writev(p->from.pid, &here, 1, &there, 1, 0);
	return n < 0 ? errno : n == (ssize_t)len ? 0 : EFAULT;
}

static bool progress_inserted(const struct fake_ep *ep, struct fake_name from)
{
	size_t i;

	for (i = 0; i < ep->av->n; i++)
		if (progress_same(ep->av->names[i], from))
			return true;
	return !ep->domain->mode->inserted;
}

/* A piece of it, of those left one by chance. */
static bool progress_rma(struct fake_ep *ep, struct fake_arrival *a)
{
	const struct fake_packet *p = &a->packet;
	uint64_t access = p->kind == FAKE_WRITE ? FI_REMOTE_WRITE : FI_REMOTE_READ, piece, offset;
	uint8_t *at = gdr_fake_reach(ep, p->key, p->far, p->len, access);
	unsigned int i;
	int rc;

	if (ep->cut)
		return true;
	if (!at || !progress_inserted(ep, p->from)) {
		progress_answer(ep, p, FI_EACCES);
		return true;
	}
	if (a->left == 1)
		i = 0;
	else
		for (i = gdr_fake_random(ep) % PIECES; !(a->left >> i & 1); i = (i + 1) % PIECES)
			;
	piece = progress_ordered(ep, p->kind) || p->len < PIECES ? p->len : p->len / PIECES;
	offset = i * piece;
	if (piece != p->len && i == PIECES - 1)
		piece = p->len - offset;
	a->left &= ~(1ull << i);
	rc = progress_copy(p, at, offset, piece);
	if (rc)
		a->left = 0;
	ep->cut = ep->cuts && rc == EFAULT;
	if (rc != ESRCH && !a->left)
		progress_answer(ep, p, rc == EFAULT ? FI_EFAULT : rc ? FI_EIO : 0);
	return !a->left;
}

static bool progress_one(struct fake_ep *ep, struct fake_arrival *a)
{
	if (a->hold) {
		a->hold--;
		return false;
	}
	if (a->packet.kind == FAKE_DONE) {
		gdr_fake_op_end(ep, a->packet.op, a->packet.err);
		return true;
	}
	if (a->packet.kind == FAKE_SEND)
		return progress_message(ep, a);
	/* some pieces a round, so that others come in between */
	return progress_rma(ep, a) || progress_rma(ep, a) || progress_rma(ep, a);
}

void gdr_fake_progress(struct fake_ep *ep)
{
	struct fake_arrival **at = &ep->arrivals, *a;

	progress_drain(ep);
	while ((a = *at)) {
		if (!progress_one(ep, a)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		if (!*at)
			ep->arrivals_end = at;
		free(a);
	}
	gdr_fake_flush(ep);
	progress_ping(ep);
}
