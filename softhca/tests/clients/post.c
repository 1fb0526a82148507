/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting (post.h). */
#include "dynamic.h"
#include "post.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#define LIST_MAX 16u

static unsigned fill_sges(const struct peer *p, struct ibv_sge *sge, const struct pieces *pieces,
			  unsigned key)
{
	for (unsigned i = 0; i < pieces->n; i++)
		sge[i] = (struct ibv_sge){peer_address(p, key, pieces->p[i].at),
					  pieces->p[i].length, p->mr[key]->lkey};
	return pieces->n;
}

static enum ibv_wr_opcode opcode(enum plan_kind kind)
{
	static const enum ibv_wr_opcode codes[PLAN_KINDS] = {
		[PLAN_WRITE] = IBV_WR_RDMA_WRITE,
		[PLAN_WRITE_IMM] = IBV_WR_RDMA_WRITE_WITH_IMM,
		[PLAN_SEND] = IBV_WR_SEND,
		[PLAN_SEND_IMM] = IBV_WR_SEND_WITH_IMM,
		[PLAN_READ] = IBV_WR_RDMA_READ,
		[PLAN_ADD] = IBV_WR_ATOMIC_FETCH_AND_ADD,
		[PLAN_SWAP] = IBV_WR_ATOMIC_CMP_AND_SWP,
	};

	return codes[kind];
}

static unsigned send_flags(const struct op *op)
{
	return (op->signalled ? IBV_SEND_SIGNALED : 0u) | (op->inlined ? IBV_SEND_INLINE : 0u) |
	       (op->fence ? IBV_SEND_FENCE : 0u);
}

static void fill_wr(const struct peer *p, struct ibv_send_wr *wr, struct ibv_sge *sge,
		    const struct op *op)
{
	uint64_t remote = p->remote.address[op->remote_key] + op->remote;
	uint32_t rkey = p->remote.rkey[op->remote_key];

	memset(wr, 0, sizeof(*wr));
	wr->opcode = opcode(op->kind);
	wr->send_flags = send_flags(op);
	wr->sg_list = sge;
	/* Inline data is copied from where the address points. */
	wr->num_sge = (int)fill_sges(p, sge, &op->local, op->inlined ? 0 : op->local_key);
	wr->imm_data = htobe32(op->imm);
	if (op->kind == PLAN_ADD || op->kind == PLAN_SWAP) {
		bool add = op->kind == PLAN_ADD;

		wr->wr.atomic.remote_addr = remote;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = add ? op->operand : op->compare;
		wr->wr.atomic.swap = op->operand;
	} else {
		wr->wr.rdma.remote_addr = remote;
		wr->wr.rdma.rkey = rkey;
	}
}

static int post_old(struct peer *p, const struct plan *plan, const unsigned *index, unsigned n)
{
	struct ibv_sge sge[LIST_MAX][PLAN_SGES];
	struct ibv_send_wr wr[LIST_MAX], *rejected;

	for (unsigned i = 0; i < n; i++) {
		fill_wr(p, &wr[i], sge[i], &plan->op[index[i]]);
		wr[i].wr_id = index[i];
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	return ibv_post_send(p->qp[plan->op[index[0]].qp], wr, &rejected);
}

static void call_new(struct ibv_qp_ex *qp, const struct op *op, uint32_t rkey, uint64_t remote)
{
	switch (op->kind) {
	case PLAN_WRITE:
		ibv_wr_rdma_write(qp, rkey, remote);
		break;
	case PLAN_WRITE_IMM:
		ibv_wr_rdma_write_imm(qp, rkey, remote, htobe32(op->imm));
		break;
	case PLAN_SEND:
		ibv_wr_send(qp);
		break;
	case PLAN_SEND_IMM:
		ibv_wr_send_imm(qp, htobe32(op->imm));
		break;
	case PLAN_READ:
		ibv_wr_rdma_read(qp, rkey, remote);
		break;
	case PLAN_ADD:
		ibv_wr_atomic_fetch_add(qp, rkey, remote, op->operand);
		break;
	default:
		ibv_wr_atomic_cmp_swp(qp, rkey, remote, op->compare, op->operand);
	}
}

static void data_new(const struct peer *p, struct ibv_qp_ex *qp, const struct op *op)
{
	struct ibv_data_buf buf[PLAN_SGES];
	struct ibv_sge sge[PLAN_SGES];
	unsigned n = fill_sges(p, sge, &op->local, op->local_key);

	if (op->inlined) {
		for (unsigned i = 0; i < n; i++)
			buf[i] = (struct ibv_data_buf){p->memory + op->local.p[i].at,
						       op->local.p[i].length};
		ibv_wr_set_inline_data_list(qp, n, buf);
	} else {
		ibv_wr_set_sge_list(qp, n, sge);
	}
}

static int post_new(struct peer *p, const struct plan *plan, const unsigned *index, unsigned n)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(p->qp[plan->op[index[0]].qp]);

	ibv_wr_start(qp);
	for (unsigned i = 0; i < n; i++) {
		const struct op *op = &plan->op[index[i]];

		qp->wr_id = index[i];
		qp->wr_flags = send_flags(op);
		call_new(qp, op, p->remote.rkey[op->remote_key],
			 p->remote.address[op->remote_key] + op->remote);
		if (p->dct)
			dynamic_address(p, qp, op->qp);
		data_new(p, qp, op);
	}
	return ibv_wr_complete(qp);
}

int post_ops(struct peer *p, const struct plan *plan, const unsigned *index, unsigned n)
{
	int rc = p->config->new_api ? post_new(p, plan, index, n) : post_old(p, plan, index, n);

	if (rc)
		fprintf(stderr, "operation %u: cannot be posted: %s\n", index[0], strerror(rc));
	return rc;
}

/* Receives go by virtual address: what comes inside a completion (scatter to CQE) is copied by the
 * provider to where the address points. */
int post_receive(struct peer *p, const struct op *op, uint64_t wr_id)
{
	struct ibv_sge sge[PLAN_SGES];
	struct ibv_recv_wr *rejected, wr = {.wr_id = wr_id, .sg_list = sge};
	int rc;

	wr.num_sge = (int)fill_sges(p, sge, &op->receive, 0);
	rc = ibv_post_recv(p->qp[op->qp], &wr, &rejected);
	if (rc)
		fprintf(stderr, "receive %u cannot be posted: %s\n", (unsigned)wr_id, strerror(rc));
	return rc;
}

int post_slot(struct peer *p, unsigned slot)
{
	unsigned n = 1 + slot % p->config->sges;
	uint32_t left = p->config->size, at = SLOT_AT(p, slot);
	struct ibv_sge sge[PLAN_SGES];
	struct ibv_recv_wr *rejected, wr = {.wr_id = slot, .sg_list = sge};
	int rc;

	for (unsigned i = 0; i < n && left; i++) {
		uint32_t part = i + 1 == n ? left : (left + 2) / 3;

		sge[wr.num_sge++] = (struct ibv_sge){peer_address(p, 0, at), part, p->mr[0]->lkey};
		at += part;
		left -= part;
	}
	rc = ibv_post_srq_recv(p->srq, &wr, &rejected);
	if (rc)
		fprintf(stderr, "slot %u cannot be posted: %s\n", slot, strerror(rc));
	return rc;
}
