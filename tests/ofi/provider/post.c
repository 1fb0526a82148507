// SPDX-License-Identifier: BSD-3-Clause
/* What the program hands over: checked as strictly as the mode allows, then sent. */
#include "tests/ofi/provider/fake.h"

#include <stdlib.h>
#include <string.h>

/* ---- contexts ---- */

static size_t context_words(const struct fake_mode *mode)
{
	return mode->mode & FI_CONTEXT2 ? 8 : mode->mode & FI_CONTEXT ? 4 : 0;
}

void gdr_fake_context_take(const struct fake_mode *mode, void *context)
{
	size_t i, n = context_words(mode);
	void **word = context;

	if (n && !context)
		gdr_fake_fault("an operation without the context that the mode demands");
	for (i = 0; i < n; i++)
		word[i] = (uint8_t *)context + i;
}

void gdr_fake_context_check(const struct fake_mode *mode, void *context)
{
	size_t i, n = context_words(mode);
	void **word = context;

	for (i = 0; i < n; i++) {
		if (word[i] != (uint8_t *)context + i)
			gdr_fake_fault("a context was written to before its operation completed");
		word[i] = NULL;
	}
}

/* ---- operations ---- */

static bool post_has_room(struct fake_ep *ep)
{
	const struct fake_mode *m = ep->domain->mode;

	if (m->again && !(gdr_fake_random(ep) % m->again))
		return false;
	return ep->n_ops + ep->n_departures < m->tx && ep->cq->n + ep->n_ops < ep->cq->size;
}

/* Of len bytes. NULL: no memory. */
static struct fake_op *post_op(struct fake_ep *ep, struct fake_name to, void *context,
			       uint64_t flags, size_t len)
{
	struct fake_op *op = calloc(1, sizeof(*op));

	if (!op)
		return NULL;
	gdr_fake_context_take(ep->domain->mode, context);
	*op = (struct fake_op){.next = ep->ops,
			       .number = ep->next_op++,
			       .context = context,
			       .flags = flags,
			       .len = len,
			       .to = to};
	ep->ops = op;
	ep->n_ops++;
	return op;
}

/* Tells the program, once. */
static void post_tell(struct fake_ep *ep, struct fake_op *op, int err)
{
	if (op->told)
		return;
	op->told = true;
	gdr_fake_context_check(ep->domain->mode, op->context);
	gdr_fake_complete(ep->cq, op->context, op->flags, op->len, err);
}

void gdr_fake_op_end(struct fake_ep *ep, uint64_t number, int err)
{
	struct fake_op **at, *op;

	for (at = &ep->ops; *at && (*at)->number != number; at = &(*at)->next)
		;
	op = *at;
	if (!op)
		return;
	*at = op->next;
	ep->n_ops--;
	post_tell(ep, op, err);
	free(op->copy);
	free(op);
}

static bool post_knows(const struct fake_ep *ep, fi_addr_t addr)
{
	return ep->enabled && addr < ep->av->n;
}

/* ---- messages ---- */

static ssize_t post_send(struct fake_ep *ep, const void *buf, size_t len, void *desc, fi_addr_t to,
			 void *context, bool inject)
{
	struct fake_packet p = {.kind = FAKE_SEND, .from = ep->name};
	const struct fake_mode *m = ep->domain->mode;
	struct fake_op *op;

	if (!post_knows(ep, to))
		return -FI_EINVAL;
	if (len > (inject ? m->inject : m->send))
		return -FI_EMSGSIZE;
	if (!inject && !gdr_fake_registered(ep, desc, buf, len, FI_SEND | FI_WRITE))
		return -FI_EINVAL;
	if (!post_has_room(ep))
		return -FI_EAGAIN;
	if (!inject) {
		op = post_op(ep, ep->av->names[to], context, FI_MSG | FI_SEND, len);
		if (!op)
			return -FI_ENOMEM;
		p.op = op->number;
	}
	gdr_fake_depart(ep, ep->av->names[to], &p, buf, len);
	return 0;
}

static ssize_t msg_send(struct fid_ep *fid, const void *buf, size_t len, void *desc, fi_addr_t to,
			void *context)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);
	ssize_t rc;

	pthread_mutex_lock(&ep->domain->lock);
	rc = post_send(ep, buf, len, desc, to, context, false);
	pthread_mutex_unlock(&ep->domain->lock);
	return rc;
}

static ssize_t msg_inject(struct fid_ep *fid, const void *buf, size_t len, fi_addr_t to)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);
	ssize_t rc;

	pthread_mutex_lock(&ep->domain->lock);
	rc = post_send(ep, buf, len, NULL, to, NULL, true);
	pthread_mutex_unlock(&ep->domain->lock);
	return rc;
}

static ssize_t post_recv(struct fake_ep *ep, void *buf, size_t len, void *desc, void *context)
{
	const struct fake_mode *m = ep->domain->mode;
	struct fake_receive *r;

	if (!ep->enabled || !gdr_fake_registered(ep, desc, buf, len, FI_RECV | FI_READ))
		return -FI_EINVAL;
	if (ep->n_receives == m->rx || (m->again && !(gdr_fake_random(ep) % m->again)))
		return -FI_EAGAIN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -FI_ENOMEM;
	gdr_fake_context_take(m, context);
	*r = (struct fake_receive){NULL, buf, context, len};
	*ep->receives_end = r;
	ep->receives_end = &r->next;
	ep->n_receives++;
	return 0;
}

static ssize_t msg_recv(struct fid_ep *fid, void *buf, size_t len, void *desc, fi_addr_t from,
			void *context)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);
	ssize_t rc;

	(void)from;
	pthread_mutex_lock(&ep->domain->lock);
	rc = post_recv(ep, buf, len, desc, context);
	pthread_mutex_unlock(&ep->domain->lock);
	return rc;
}

struct fi_ops_msg gdr_fake_msg_ops = {
	.size = sizeof(gdr_fake_msg_ops), .recv = msg_recv, .send = msg_send, .inject = msg_inject};

/* ---- RMA ---- */

/* A write that completes before its bytes are there reads from a copy. */
static ssize_t post_early(struct fake_ep *ep, struct fake_op *op, struct fake_packet *p,
			  const void *buf)
{
	op->copy = malloc(op->len);
	if (!op->copy)
		return -FI_ENOMEM;
	memcpy(op->copy, buf, op->len);
	p->near = (uintptr_t)op->copy;
	post_tell(ep, op, 0);
	return 0;
}

static ssize_t post_rma(struct fake_ep *ep, const struct fi_msg_rma *msg, uint64_t flags,
			bool writes)
{
	const struct fake_mode *m = ep->domain->mode;
	const struct iovec *near = msg->msg_iov;
	struct fake_packet p = {.kind = writes ? FAKE_WRITE : FAKE_READ,
				.from = ep->name,
				.far = msg->rma_iov->addr,
				.key = gdr_fake_key(ep->domain, msg->rma_iov->key),
				.len = near->iov_len};
	struct fake_op *op;
	uint8_t *at;

	if (!post_knows(ep, msg->addr) || msg->iov_count != 1 || msg->rma_iov_count != 1 ||
	    msg->rma_iov->len != near->iov_len || !(flags & FI_COMPLETION) ||
	    (writes && flags & FI_DELIVERY_COMPLETE && m->no_delivery))
		return -FI_EINVAL;
	if (near->iov_len > m->most)
		return -FI_EMSGSIZE;
	at = gdr_fake_registered(ep, msg->desc ? msg->desc[0] : NULL, near->iov_base, near->iov_len,
				 writes ? FI_WRITE : FI_READ);
	if (!at)
		return -FI_EINVAL;
	if (at != near->iov_base && !ep->no_cuda)
		gdr_fake_fault("memory of a GPU is moved where calls of CUDA's are allowed");
	p.near = (uintptr_t)at;
	if (!post_has_room(ep))
		return -FI_EAGAIN;
	op = post_op(ep, ep->av->names[msg->addr], msg->context,
		     FI_RMA | (writes ? FI_WRITE : FI_READ), p.len);
	if (!op)
		return -FI_ENOMEM;
	p.op = op->number;
	if (writes && (m->lies || !(flags & FI_DELIVERY_COMPLETE)) &&
	    post_early(ep, op, &p, at))
		return -FI_ENOMEM;
	gdr_fake_depart(ep, op->to, &p, NULL, 0);
	return 0;
}

static ssize_t rma_write(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);
	ssize_t rc;

	pthread_mutex_lock(&ep->domain->lock);
	rc = post_rma(ep, msg, flags, true);
	pthread_mutex_unlock(&ep->domain->lock);
	return rc;
}

static ssize_t rma_read(struct fid_ep *fid, const struct fi_msg_rma *msg, uint64_t flags)
{
	struct fake_ep *ep = FAKE_OF(ep, fid);
	ssize_t rc;

	pthread_mutex_lock(&ep->domain->lock);
	rc = post_rma(ep, msg, flags, false);
	pthread_mutex_unlock(&ep->domain->lock);
	return rc;
}

struct fi_ops_rma gdr_fake_rma_ops = {
	.size = sizeof(gdr_fake_rma_ops), .readmsg = rma_read, .writemsg = rma_write};
