// SPDX-License-Identifier: BSD-3-Clause
/* Long reads and writes, by RMA, in pieces that lie in a row at both ends. They are commands where an end is in memory
 * of a GPU that the provider does not reach, and so are writes by a provider that cannot tell when they are delivered:
 * the target's proxy says so. */
#include "runtime/ofi/ofi.h"

#include <string.h>

/* 0 or a negative number of the provider's. */
static ssize_t move_post(struct gdri_ofi_proxy *t, struct gdri_ofi_xfer *x,
			 const struct gdri_ofi_row *near, uint64_t addr, uint64_t key)
{
	struct iovec local = {near->at, near->len};
	struct fi_rma_iov remote = {addr, near->len, key};
	void *desc = near->desc;
	struct fi_msg_rma msg = {.msg_iov = &local,
				 .desc = &desc,
				 .iov_count = 1,
				 .addr = t->peers[x->ctx.peer].addr,
				 .rma_iov = &remote,
				 .rma_iov_count = 1,
				 .context = &x->ctx.fi};

	if (x->op->opcode == GDRI_OP_READ)
		return fi_readmsg(t->fabric.ep, &msg, FI_COMPLETION);
	return fi_writemsg(t->fabric.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE);
}

static uint64_t move_most(const struct gdri_ofi_proxy *t, uint64_t len)
{
	uint64_t most = t->fabric.info->ep_attr->max_msg_size;

	most = most < OFI_PIECE ? most : OFI_PIECE;
	return len < most ? len : most;
}

/* Some of the peer's memory there has no registration. */
static bool move_meets_no_rma(const struct gdri_ofi_peer *p, uint64_t offset, uint64_t len)
{
	const struct gdri_ofi_part *part;
	uint64_t row;

	for (; (part = gdri_ofi_find(p->parts, p->n_parts, offset, &row)); len -= row, offset += row) {
		if (part->no_rma)
			return true;
		if (row >= len)
			break;
	}
	return false;
}

bool gdri_ofi_moves_by_commands(struct gdri_ofi_proxy *t, int pe, bool writes, uint32_t lkey, uint64_t local,
				uint64_t offset, uint64_t len)
{
	return (writes && !t->fabric.delivers) || move_meets_no_rma(&t->peers[pe], offset, len) ||
	       gdri_ofi_no_rma(&t->memory, lkey, local, len);
}

static uint64_t move_command(struct gdri_ofi_proxy *t, struct gdri_ofi_op *op)
{
	bool writes = op->opcode == GDRI_OP_WRITE;
	struct gdri_ofi_queue *q = op->q;
	uint64_t left = op->len - q->moved, from = op->local + q->moved;
	uint32_t piece = gdri_ofi_piece(t->peers[q->qp->peer].message);
	struct gdri_ofi_command c = {.offset = op->offset + q->moved,
				     .len = (uint16_t)(left < piece ? left : piece),
				     .verb = writes ? OFI_PUT : OFI_GET,
				     .slot = q->qp->slot};
	struct gdri_ofi_request *r = gdri_ofi_room(t, q->qp->peer, &c);
	uint8_t data[OFI_MESSAGE_MOST / 8], *to;
	bool staged;

	if (!r)
		return 0;
	staged = gdri_ofi_staged(&t->memory, op->lkey, from);
	if (writes && !staged && !gdri_ofi_load(&t->memory, op->lkey, from, data, c.len)) {
		op->syndrome = GDRI_NET_LOCAL;
		return 0;
	}
	op->pending++;
	to = gdri_ofi_command(t, q->qp->peer, r, &c, op);
	if (writes && staged)
		gdri_ofi_command_from(t, r, op->lkey, from, to, c.len);
	else if (writes)
		memcpy(to, data, c.len);
	return c.len;
}

/* A quarter of what the provider takes, at most: some lost PEs leave room for the others. */
static bool move_may(const struct gdri_ofi_proxy *t, const struct gdri_ofi_peer *p)
{
	uint64_t most = t->fabric.info->tx_attr->size / 4;

	return p->n_moves == 0 || (p->n_moves < OFI_TO_ONE && (!most || p->n_moves < most));
}

/* What is next, posted: bytes, 0: not now, or the operation has ended otherwise. */
static uint64_t move_piece(struct gdri_ofi_proxy *t, struct gdri_ofi_op *op)
{
	struct gdri_ofi_queue *q = op->q;
	struct gdri_ofi_peer *p = &t->peers[q->qp->peer];
	struct gdri_ofi_xfer *x = t->free_xfers;
	uint64_t offset = op->offset + q->moved, far = 0;
	const struct gdri_ofi_part *part = gdri_ofi_find(p->parts, p->n_parts, offset, &far);
	struct gdri_ofi_row near;
	ssize_t rc;

	if (op->by_commands)
		return move_command(t, op);
	if (!gdri_ofi_row(&t->memory, op->lkey, op->local + q->moved, &near) || near.no_rma || !part ||
	    part->no_rma) {
		op->syndrome = part && !part->no_rma ? GDRI_NET_LOCAL : GDRI_NET_REMOTE;
		return 0;
	}
	if (!x || !move_may(t, p))
		return 0;
	near.len = near.len < far ? near.len : far;
	near.len = move_most(t, near.len < op->len - q->moved ? near.len : op->len - q->moved);
	x->ctx.peer = q->qp->peer;
	x->op = op;
	rc = move_post(t, x, &near, part->addr + (offset - part->offset), part->key);
	if (rc == -FI_EAGAIN)
		return 0;
	if (rc) {
		gdri_ofi_lost(t, q->qp->peer, t->fabric.lib.strerror((int)-rc));
		return 0;
	}
	t->free_xfers = x->next;
	p->n_moves++;
	op->pending++;
	if (!p->under_way++)
		p->progress = t->now;
	return near.len;
}

bool gdri_ofi_move(struct gdri_ofi_proxy *t, struct gdri_ofi_op *op)
{
	struct gdri_ofi_queue *q = op->q;
	uint64_t len;

	for (; q->moved < op->len && !op->syndrome; q->moved += len) {
		len = move_piece(t, op);
		if (!len)
			return op->syndrome != 0;
	}
	return true;
}

/* Memory of this PE could not be read or written. Providers end a connection over that, and what else went by it may
 * never complete: the operation does not wait for the rest of its pieces. */
static void move_is_alone(struct gdri_ofi_proxy *t, struct gdri_ofi_op *op)
{
	uint32_t i;

	for (i = 0; i < OFI_XFERS; i++) {
		if (t->xfers[i].op != op)
			continue;
		t->xfers[i].op = NULL;
		t->peers[t->xfers[i].ctx.peer].under_way--;
		op->pending--;
	}
}

void gdri_ofi_moved(struct gdri_ofi_proxy *t, struct gdri_ofi_xfer *x, uint32_t syndrome)
{
	struct gdri_ofi_peer *p = &t->peers[x->ctx.peer];
	struct gdri_ofi_op *op = x->op;

	p->n_moves--;
	x->op = NULL;
	if (op) {
		p->under_way--;
		p->progress = t->now;
		if (syndrome == GDRI_NET_LOCAL)
			move_is_alone(t, op);
		gdri_ofi_ended(op, syndrome);
	}
	x->next = t->free_xfers;
	t->free_xfers = x;
}
