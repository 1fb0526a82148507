/* SPDX-License-Identifier: BSD-3-Clause */
/* What completions have to say (round.h). */
#include <endian.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "post.h"
#include "round.h"

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int wrong(const struct ibv_wc *wc, const char *what, uint64_t want)
{
	fprintf(stderr,
		"completion of wr_id %llu (QP %#x, opcode %u, %u bytes, %s, vendor %#x): %s, "
		"expected %llu\n",
		(unsigned long long)wc->wr_id, wc->qp_num, wc->opcode, wc->byte_len,
		ibv_wc_status_str(wc->status), wc->vendor_err, what, (unsigned long long)want);
	return -1;
}

/* Of an initiator several lanes send: the operation says which. */
static int lane_of(const struct peer *p, const struct ibv_wc *wc, const struct plan *sent)
{
	struct ibv_qp **qp = p->dct && !sent ? p->dct : p->qp;

	if (p->dct && sent && wc->wr_id < sent->n &&
	    wc->qp_num == qp[sent->op[wc->wr_id].qp]->qp_num)
		return (int)sent->op[wc->wr_id].qp;
	for (unsigned q = 0; q < p->config->qps && !(p->dct && sent); q++)
		if (qp[q]->qp_num == wc->qp_num)
			return (int)q;
	return wrong(wc, "no such queue pair", 0);
}

static int check_send(struct round *r, const struct ibv_wc *wc)
{
	static const enum ibv_wc_opcode codes[PLAN_KINDS] = {
		IBV_WC_RDMA_WRITE, IBV_WC_RDMA_WRITE, IBV_WC_SEND,     IBV_WC_SEND,
		IBV_WC_RDMA_READ,  IBV_WC_FETCH_ADD,  IBV_WC_COMP_SWAP};
	const struct plan *plan = &r->plan[r->peer->side];
	int q = lane_of(r->peer, wc, plan);
	struct lane *l = &r->send[q < 0 ? 0 : q];
	const struct op *op;
	unsigned next;

	if (q < 0)
		return -1;
	for (next = l->done; next < l->posted && !plan->op[l->index[next]].signalled; next++)
		;
	if (next == l->posted || l->index[next] != wc->wr_id)
		return wrong(wc, "out of order", next < l->posted ? l->index[next] : ~0ull);
	op = &plan->op[wc->wr_id];
	if (wc->status)
		return wrong(wc, "failed; kind of operation", op->kind);
	if (wc->opcode != codes[op->kind])
		return wrong(wc, "opcode", codes[op->kind]);
	if (op->kind >= PLAN_READ && wc->byte_len != op->length)
		return wrong(wc, "length", op->length);
	r->sends_left -= next + 1 - l->done;
	l->done = next + 1;
	return 0;
}

static int check_slot(struct round *r, const struct ibv_wc *wc, const struct op *op)
{
	const struct peer *p = r->peer;
	uint8_t *slot = p->memory + SLOT_AT(p, wc->wr_id);
	uint32_t n = op->payload ? op->length : 0;

	if (wc->wr_id >= r->slots)
		return wrong(wc, "no such slot", r->slots);
	if (n && memcmp(slot, op->payload, n))
		return wrong(wc, "wrong data in its slot; length", n);
	for (; n < p->config->size; n++)
		if (slot[n] != 0xee)
			return wrong(wc, "bytes behind the message changed; length", op->length);
	return 0;
}

static int check_receive(struct round *r, const struct ibv_wc *wc)
{
	int q = lane_of(r->peer, wc, NULL);
	struct lane *l = &r->receive[q < 0 ? 0 : q];
	enum ibv_wc_opcode code = IBV_WC_RECV;
	const struct op *op;
	bool immediate;

	if (q < 0)
		return -1;
	if (l->done == l->n)
		return wrong(wc, "nothing more was sent", l->n);
	op = &r->plan[!r->peer->side].op[l->index[l->done]];
	if (wc->status)
		return wrong(wc, "failed; kind of operation", op->kind);
	if (!r->peer->srq && wc->wr_id != l->index[l->done])
		return wrong(wc, "out of order", l->index[l->done]);
	immediate = op->kind != PLAN_SEND;
	if (op->kind == PLAN_WRITE_IMM)
		code = IBV_WC_RECV_RDMA_WITH_IMM;
	if (wc->opcode != code)
		return wrong(wc, "opcode", code);
	if (wc->byte_len != op->length)
		return wrong(wc, "length", op->length);
	if (!(wc->wc_flags & IBV_WC_WITH_IMM) == immediate)
		return wrong(wc, "flag of immediate data", immediate);
	if (immediate && be32toh(wc->imm_data) != op->imm)
		return wrong(wc, "immediate data", op->imm);
	l->done++;
	r->receives_left--;
	return r->peer->srq ? check_slot(r, wc, op) : 0;
}

/* Number of completions taken, negative: a wrong one. */
static int poll_both(struct round *r)
{
	struct ibv_wc wc[8];
	int total = 0;

	for (int which = 0; which < 2; which++) {
		int n = ibv_poll_cq(r->peer->cq[which], 8, wc);

		if (n < 0) {
			fprintf(stderr, "ibv_poll_cq failed\n");
			return -1;
		}
		for (int i = 0; i < n; i++)
			if (which ? check_receive(r, &wc[i]) : check_send(r, &wc[i]))
				return -1;
		total += n;
	}
	return total;
}

/* Asks for events of both queues, looks once more, since something may have come before, sleeps. */
static int sleep_for_event(struct round *r)
{
	struct pollfd fd = {.fd = r->peer->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;
	int n;

	if (ibv_req_notify_cq(r->peer->cq[0], 0) || ibv_req_notify_cq(r->peer->cq[1], 0)) {
		perror("ibv_req_notify_cq");
		return -1;
	}
	n = poll_both(r);
	if (n)
		return n;
	/* While receives are still to be posted the other side may wait for them. */
	if (poll(&fd, 1, PEER_TIMEOUT * 1000) != 1)
		return 0;
	if (ibv_get_cq_event(r->peer->channel, &cq, &context)) {
		perror("ibv_get_cq_event");
		return -1;
	}
	if (cq != r->peer->cq[0] && cq != r->peer->cq[1]) {
		fprintf(stderr, "an event of an unknown completion queue\n");
		return -1;
	}
	ibv_ack_cq_events(cq, 1);
	return 0;
}

int round_complete(struct round *r, bool idle)
{
	int n = poll_both(r);

	if (!n && idle && r->peer->channel)
		n = sleep_for_event(r);
	if (n > 0)
		r->heard = now();
	if (n >= 0 && now() - r->heard > PEER_TIMEOUT) {
		fprintf(stderr, "no completion for %d s: %u sends, %u receives are missing\n",
			PEER_TIMEOUT, r->sends_left, r->receives_left);
		return -1;
	}
	return n < 0 ? -1 : 0;
}
