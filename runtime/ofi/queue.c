// SPDX-License-Identifier: BSD-3-Clause
/* Entries of the queues: what they ask for, when they may go, and their completions, in the order of the queue. */
#include "runtime/ofi/ofi.h"

#include <string.h>

#include <gdr/impl/arch/arch.h>

#define OFI_LATER 0x100u /* no syndrome: the entry has to wait */

struct queue_entry {
	struct gdri_net_wqe w;
	uint32_t len, lkey, rkey;
	uint64_t local, offset;
	const uint8_t *data; /* inline */
	struct gdri_net_atomic amo;
};

/* ---- what it asks for: 0 or the syndrome ---- */

static bool entry_is_atomic(const struct queue_entry *e)
{
	return e->w.opcode == GDRI_OP_ATOMIC_CS || e->w.opcode == GDRI_OP_ATOMIC_FA ||
	       e->w.opcode == GDRI_OP_MASKED_CS || e->w.opcode == GDRI_OP_MASKED_FA;
}

static bool entry_is_long(const struct queue_entry *e)
{
	return (e->w.opcode == GDRI_OP_WRITE || e->w.opcode == GDRI_OP_READ) && e->len > OFI_SHORT;
}

/* Of an atomic: nobody reads its old value. */
static bool entry_sinks(const struct queue_entry *e)
{
	return entry_is_atomic(e) && e->lkey == GDRI_OFI_KEY_HEAP && e->local == offsetof(struct gdri_ctl, sink);
}

/* Length, local key, address. */
static void entry_local(struct queue_entry *e, const uint8_t *segment)
{
	e->len = gdri_net_get32(segment);
	e->lkey = gdri_net_get32(segment + 4);
	e->local = gdri_net_get64(segment + 8);
}

static uint32_t entry_parse(struct queue_entry *e)
{
	const uint8_t *at = e->w.bytes + 32;

	e->data = NULL;
	e->len = 0;
	if (e->w.blocks > 2)
		return GDRI_NET_REQUEST;
	if (e->w.opcode == GDRI_OP_NOP)
		return 0;
	if (e->w.opcode == GDRI_OP_DUMP)
		return entry_local(e, e->w.bytes + 16), 0;
	e->offset = gdri_net_get64(e->w.bytes + 16);
	e->rkey = gdri_net_get32(e->w.bytes + 24);
	if (entry_is_atomic(e)) {
		at = gdri_net_atomic(&e->w, &e->amo);
		if (!at)
			return GDRI_NET_REQUEST;
		entry_local(e, at);
		return e->len == e->amo.size ? 0 : GDRI_NET_LENGTH;
	}
	if ((e->w.opcode != GDRI_OP_WRITE && e->w.opcode != GDRI_OP_READ) || e->w.ds < 3)
		return GDRI_NET_REQUEST;
	entry_local(e, at);
	if (e->w.opcode == GDRI_OP_READ || !(e->len & GDRI_INLINE_BIT))
		return 0;
	e->len &= ~GDRI_INLINE_BIT;
	e->data = e->w.bytes + 36;
	return e->len <= e->w.ds * 16 - 36 ? 0 : GDRI_NET_LENGTH;
}

/* Also whether the list of the peer's parts is the one that the key needs. */
static uint32_t entry_remote(struct gdri_ofi_proxy *t, int pe, const struct queue_entry *e)
{
	struct gdri_ofi_peer *p = &t->peers[pe];

	if (e->rkey == GDRI_OFI_KEY_PAGE) /* the target knows what it has there */
		return entry_is_long(e) ? GDRI_NET_REMOTE : 0;
	if (e->rkey < GDRI_OFI_KEY_LIST)
		return GDRI_NET_REMOTE;
	if (e->rkey > p->list && p->asked != e->rkey)
		gdri_ofi_ask(t, pe, e->rkey);
	if (e->rkey > p->list && (p->asks || p->asked != e->rkey))
		return p->lost ? GDRI_NET_LOST : OFI_LATER;
	if (e->rkey > p->list || !gdri_ofi_covers(p->parts, p->n_parts, e->offset, e->len))
		return GDRI_NET_REMOTE;
	return entry_is_atomic(e) && e->offset % e->len ? GDRI_NET_INVALID : 0;
}

static uint32_t entry_check(struct gdri_ofi_proxy *t, int pe, struct queue_entry *e)
{
	uint32_t syndrome = entry_parse(e);

	if (syndrome || e->w.opcode == GDRI_OP_NOP)
		return syndrome;
	if (!e->data && !gdri_ofi_has(&t->memory, e->lkey, e->local, e->len))
		return GDRI_NET_LOCAL;
	return e->w.opcode == GDRI_OP_DUMP ? 0 : entry_remote(t, pe, e);
}

/* Order (net.h): commands take effect in theirs. Atomics, and reads, wait for writes by RMA, what goes by RMA for
 * commands where it reads or is told to. An atomic that waits holds up all but others (entry_is_held) and writes by
 * RMA without a fence, for pages with a signal each would else go one at a time: few of these, or the first signal
 * would wait until the provider has had all of them. */
static bool entry_may_go(const struct gdri_ofi_queue *q, const struct queue_entry *e, bool by_rma)
{
	bool writes = e->w.opcode == GDRI_OP_WRITE;

	if (q->n_held && (!writes || !by_rma || e->w.fence || q->n_bytes >= OFI_AHEAD || q->n_ahead == OFI_AHEAD_ROUND))
		return false;
	if (e->w.fence && (q->n_reads || q->n_fetches || (by_rma && q->n_sinks)))
		return false;
	if (e->w.fence == GDRI_FM_STRONG && (q->n_writes || (by_rma && q->n_puts)))
		return false;
	if (!writes && q->n_writes)
		return false;
	return writes || !by_rma || !(q->n_puts || q->n_sinks || q->n_fetches);
}

static bool entry_is_held(const struct gdri_ofi_queue *q, const struct queue_entry *e)
{
	return entry_is_atomic(e) && !e->w.fence && (q->n_writes || q->n_held);
}

/* ---- completions ---- */

static void queue_retire(struct gdri_ofi_queue *q)
{
	struct gdri_ofi_op *op;
	uint32_t syndrome;

	for (; q->first != q->next && !q->ops[q->first % OFI_OPS].pending; q->first++) {
		op = &q->ops[q->first % OFI_OPS];
		syndrome = q->has_failed ? GDRI_SYND_FLUSH : op->syndrome;
		q->has_failed |= syndrome != 0;
		if (syndrome || op->tells)
			gdri_net_complete(q->qp, &q->cq_pi, op->index, op->opcode, syndrome);
	}
}

void gdri_ofi_ended(struct gdri_ofi_op *op, uint32_t syndrome)
{
	struct gdri_ofi_queue *q = op->q;

	if (syndrome && !op->syndrome)
		op->syndrome = syndrome;
	q->is_broken |= op->syndrome != 0;
	if (--op->pending)
		return;
	if (op->kind)
		(*op->kind)--;
	if (op->kind == &q->n_writes)
		q->n_bytes -= op->len;
	queue_retire(q);
}

void gdri_ofi_give_up(struct gdri_ofi_queue *q, uint32_t syndrome)
{
	struct gdri_ofi_op *op;
	uint32_t i;

	q->ci = (uint16_t)(q->ci + q->open_blocks);
	q->open_blocks = 0;
	q->n_held = 0;
	for (i = q->first; i != q->next; i++) {
		op = &q->ops[i % OFI_OPS];
		if (!op->pending)
			continue;
		op->pending = 1;
		gdri_ofi_ended(op, syndrome);
	}
}

/* ---- going ---- */

static struct gdri_ofi_op *queue_begin(struct gdri_ofi_queue *q, const struct queue_entry *e,
				       uint32_t *kind)
{
	struct gdri_ofi_op *op = &q->ops[q->next++ % OFI_OPS];

	*op = (struct gdri_ofi_op){.q = q,
				   .index = e->w.index,
				   .opcode = (uint8_t)e->w.opcode,
				   .tells = e->w.tells,
				   .pending = 1,
				   .kind = kind,
				   .lkey = e->lkey,
				   .len = e->len,
				   .local = e->local,
				   .offset = e->offset};
	if (kind)
		(*kind)++;
	return op;
}

static bool queue_end(struct gdri_ofi_queue *q, const struct queue_entry *e, uint32_t syndrome)
{
	struct gdri_ofi_op *op = queue_begin(q, e, NULL);

	q->ci = (uint16_t)(q->ci + (e->w.blocks <= 2 ? e->w.blocks : 1));
	gdri_ofi_ended(op, syndrome);
	return true;
}

static uint32_t self_key(const struct queue_entry *e)
{
	return e->rkey == GDRI_OFI_KEY_PAGE ? GDRI_OFI_KEY_PAGE : GDRI_OFI_KEY_HEAP;
}

static uint32_t self_move(struct gdri_ofi_memory *m, const struct queue_entry *e)
{
	uint32_t failures = m->failures;
	bool is;

	if (!gdri_ofi_has(m, self_key(e), e->offset, e->len))
		return GDRI_NET_REMOTE;
	if (e->w.opcode == GDRI_OP_WRITE)
		is = gdri_ofi_copy(m, self_key(e), e->offset, e->lkey, e->local, e->len);
	else
		is = gdri_ofi_copy(m, e->lkey, e->local, self_key(e), e->offset, e->len);
	return is && gdri_ofi_settle(m) == failures ? 0 : GDRI_NET_LOCAL;
}

/* The operation has an end in memory of a GPU that could not be copied. */
static uint32_t self_stored(struct gdri_ofi_memory *m, uint32_t failures, bool is, uint32_t syndrome)
{
	return is && gdri_ofi_settle(m) == failures ? 0 : syndrome;
}

/* An operation to this PE itself, at once. */
static uint32_t self_run(struct gdri_ofi_memory *m, const struct queue_entry *e)
{
	uint64_t old = 0, data[GDRI_NET_WQE_MOST / 8]; /* aligned */
	uint32_t failures = m->failures, syndrome;
	bool wanted = !entry_sinks(e);

	if (e->data) {
		memcpy(data, e->data, e->len);
		return self_stored(m, failures, gdri_ofi_store(m, self_key(e), e->offset, data, e->len),
				   GDRI_NET_REMOTE);
	}
	if (!entry_is_atomic(e))
		return self_move(m, e);
	syndrome = gdri_ofi_atomic(m, self_key(e), e->offset, &e->amo, wanted ? &old : NULL);
	if (syndrome)
		return syndrome;
	return self_stored(m, failures, !wanted || gdri_ofi_store(m, e->lkey, e->local, &old, e->len), GDRI_NET_LOCAL);
}

static struct gdri_ofi_command command_of(const struct gdri_ofi_queue *q, const struct queue_entry *e)
{
	bool writes = e->w.opcode == GDRI_OP_WRITE, reads = e->w.opcode == GDRI_OP_READ;

	return (struct gdri_ofi_command){.offset = e->offset,
					 .len = (uint16_t)e->len,
					 .verb = writes ? OFI_PUT : reads ? OFI_GET : OFI_AMO,
					 .flags = (uint8_t)((e->rkey == GDRI_OFI_KEY_PAGE ? OFI_PAGE : 0) |
							    (entry_sinks(e) ? OFI_BLIND : 0)),
					 .slot = q->qp->slot};
}

static struct gdri_ofi_op *command_begin(struct gdri_ofi_queue *q, const struct queue_entry *e)
{
	bool sinks = entry_sinks(e), writes = e->w.opcode == GDRI_OP_WRITE;
	struct gdri_ofi_op *op = queue_begin(q, e, writes ? &q->n_puts : sinks ? &q->n_sinks : &q->n_fetches);

	op->lands = !writes && !sinks;
	q->ci = (uint16_t)(q->ci + e->w.blocks);
	return op;
}

static bool queue_hold(struct gdri_ofi_queue *q, const struct queue_entry *e)
{
	command_begin(q, e)->held = true;
	if (!q->n_held++)
		q->written = q->first;
	return true;
}

/* The command of an atomic that was held, or its end where something in front of it failed; false: not now. */
static bool held_goes(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q, struct gdri_ofi_op *op)
{
	struct gdri_ofi_request *r;
	struct gdri_ofi_command c;
	struct queue_entry e;

	if (q->is_cut || q->has_failed) {
		gdri_ofi_ended(op, GDRI_SYND_FLUSH);
		return true;
	}
	gdri_net_fetch(q->qp, op->index, &e.w); /* not complete, so its blocks are what they were */
	entry_parse(&e);
	c = command_of(q, &e);
	r = gdri_ofi_room(t, q->qp->peer, &c);
	if (r)
		memcpy(gdri_ofi_command(t, q->qp->peer, r, &c, op), &e.amo, sizeof(e.amo));
	return r != NULL;
}

/* Atomics that are held, in their order, as far as the writes by RMA in front of them are delivered. */
static bool queue_let_go(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q)
{
	struct gdri_ofi_op *op;
	bool any = false;

	if ((int32_t)(q->first - q->written) > 0)
		q->written = q->first;
	for (; q->n_held; q->written++) {
		op = &q->ops[q->written % OFI_OPS];
		if (op->pending && op->kind == &q->n_writes)
			break;
		if (op->held) {
			if (!held_goes(t, q, op))
				break;
			op->held = false;
			q->n_held--;
			any = true;
		}
		q->is_cut |= op->syndrome != 0;
	}
	return any;
}

static bool entry_command(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q,
			  const struct queue_entry *e)
{
	struct gdri_ofi_command c = command_of(q, e);
	struct gdri_ofi_request *r;
	_Alignas(8) uint8_t copy[OFI_SHORT + 8];
	struct gdri_ofi_op *op;
	int pe = q->qp->peer;
	bool staged;
	void *data;

	r = gdri_ofi_room(t, pe, &c);
	if (!r)
		return false;
	staged = c.verb == OFI_PUT && !e->data && gdri_ofi_staged(&t->memory, e->lkey, e->local);
	if (c.verb == OFI_PUT && !e->data && !staged &&
	    !gdri_ofi_load(&t->memory, e->lkey, e->local, copy + (e->offset & 7), e->len))
		return queue_end(q, e, GDRI_NET_LOCAL);
	op = command_begin(q, e);
	data = gdri_ofi_command(t, pe, r, &c, op);
	if (c.verb == OFI_AMO)
		memcpy(data, &e->amo, sizeof(e->amo));
	else if (staged)
		gdri_ofi_command_from(t, r, e->lkey, e->local, data, e->len);
	else if (c.verb == OFI_PUT)
		memcpy(data, e->data ? e->data : copy + (e->offset & 7), e->len);
	return true;
}

static bool entry_move(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q, struct gdri_ofi_op *op)
{
	bool whole = gdri_ofi_move(t, op);

	if (t->peers[q->qp->peer].lost)
		return true; /* it was given up */
	if (!whole)
		return false;
	q->ci = (uint16_t)(q->ci + q->open_blocks);
	q->open_blocks = 0;
	gdri_ofi_ended(op, 0);
	return true;
}

static bool entry_begin(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q, const struct queue_entry *e,
			bool by_commands)
{
	bool writes = e->w.opcode == GDRI_OP_WRITE;
	struct gdri_ofi_op *op;

	q->open_blocks = e->w.blocks;
	q->moved = 0;
	if (by_commands)
		op = queue_begin(q, e, writes ? &q->n_puts : &q->n_fetches);
	else
		op = queue_begin(q, e, writes ? &q->n_writes : &q->n_reads);
	if (op->kind == &q->n_writes)
		q->n_bytes += e->len;
	if (q->n_held) {
		q->n_ahead++;
		t->n_ahead++;
	}
	op->by_commands = by_commands;
	op->lands = by_commands && !writes;
	return entry_move(t, q, op);
}

/* The entry at ci; false: it has to wait. */
static bool queue_take(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q)
{
	bool is_long, by_commands;
	struct queue_entry e;
	uint32_t syndrome;
	int pe = q->qp->peer;

	if (q->open_blocks)
		return entry_move(t, q, &q->ops[(q->next - 1) % OFI_OPS]);
	gdri_net_fetch(q->qp, q->ci, &e.w);
	syndrome = q->is_broken	       ? GDRI_SYND_FLUSH
		   : t->peers[pe].lost ? GDRI_NET_LOST
				       : entry_check(t, pe, &e);
	if (syndrome == OFI_LATER)
		return false;
	if (syndrome || e.w.opcode == GDRI_OP_NOP || e.w.opcode == GDRI_OP_DUMP)
		return queue_end(q, &e, syndrome);
	if (pe == t->net->pe) {
		if (!gdri_ofi_stage_begin(t))
			return false;
		syndrome = self_run(&t->memory, &e);
		gdri_ofi_stage_end(t);
		/* in order: pairs with the acquire of who waits for a word that the next entry writes */
		gdri_fence_sys();
		return queue_end(q, &e, syndrome);
	}
	is_long = entry_is_long(&e);
	by_commands = is_long && gdri_ofi_moves_by_commands(t, pe, e.w.opcode == GDRI_OP_WRITE, e.lkey, e.local,
							    e.offset, e.len);
	if (entry_is_held(q, &e))
		return queue_hold(q, &e);
	if (!entry_may_go(q, &e, is_long && !by_commands))
		return false;
	return is_long ? entry_begin(t, q, &e, by_commands) : entry_command(t, q, &e);
}

bool gdri_ofi_run(struct gdri_ofi_proxy *t, struct gdri_ofi_queue *q)
{
	bool any = queue_let_go(t, q);

	q->n_ahead = 0;
	if (any) /* it goes before the provider gets what was posted since */
		gdri_ofi_flush(t, q->qp->peer);
	while ((q->open_blocks || (q->ci != q->end && q->next - q->first < OFI_OPS)) &&
	       queue_take(t, q))
		any = true;
	return any;
}
