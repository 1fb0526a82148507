/* SPDX-License-Identifier: BSD-3-Clause */
/* One input of the mailbox fuzzer (fuzz_prm.h). A command is
 *   what, which, lengths, patches, then patches times {offset:16, value}
 * and starts from a legal mailbox of its kind, so that few changes reach far. */
#include "fuzz_prm.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softhca/firmware/prm.h"

enum { MEMORY = 65536, OBJECTS = 16, MAX_BOX = 0x200, MAX_COMMANDS = 96 };

#define RULE(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "broken: %s\n", #condition);                               \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static struct hca_ctx *ctx;
static int file;
static struct ctl_pd *pd;
static struct ctl_srq *srq;
static struct ctl_umem *umem;
static struct ctl_uar *uar[2];
static struct ctl_obj *objects[OBJECTS];

struct input {
	const uint8_t *p;
	size_t n;
};

static uint8_t next(struct input *in)
{
	if (!in->n)
		return 0;
	in->n--;
	return *in->p++;
}

void fuzz_prm_init(void)
{
	file = device_open(0, 0);
	ctx = device_contexts();
	if (file < 0 || !ctx)
		abort();
	ctx->ready = true;
	pd = obj_new(ctx, OBJ_PD, sizeof(*pd));
	umem = obj_new(ctx, OBJ_UMEM, sizeof(*umem));
	srq = obj_new(ctx, OBJ_SRQ, sizeof(*srq));
	if (!pd || !umem || !srq || pd_number(pd) || umem_number(umem) || srq_number(srq))
		abort();
	for (int i = 0; i < 2; i++)
		if (uar_alloc(ctx, file, &uar[i]))
			abort();
	/* Exactly as long, so that an access beyond shows. */
	umem->umem.va = aligned_alloc(4096, MEMORY);
	umem->umem.len = MEMORY;
	umem->umem.page = 4096;
	if (!umem->umem.va)
		abort();
}

static uint32_t number_of(const struct ctl_obj *o)
{
	if (!o)
		return 1;
	switch (o->type) {
	case OBJ_CQ:
		return ((const struct ctl_cq *)o)->cq.cqn;
	case OBJ_QP:
		return ((const struct ctl_qp *)o)->qp.qpn;
	case OBJ_SRQ:
		return ((const struct ctl_srq *)o)->srq.srqn;
	case OBJ_COUNTERS:
		return ((const struct ctl_counters *)o)->id;
	default:
		return ((const struct ctl_mr *)o)->mr.key >> 8;
	}
}

static struct ctl_obj *some(enum obj_type type, unsigned from)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		struct ctl_obj *o = objects[(from + i) % OBJECTS];

		if (o && o->type == type)
			return o;
	}
	return NULL;
}

static void cq_box(uint8_t *in, uint16_t opcode, unsigned which)
{
	uint8_t *cqc = in + CREATE_CQ_CQC;

	prm_set(in, CMD_OPCODE, opcode);
	prm_set(cqc, CQC_LOG_CQ_SIZE, which & 7);
	prm_set(cqc, CQC_OI, which >> 3 & 1);
	prm_set(cqc, CQC_CC, which >> 4 & 1);
	prm_set(cqc, CQC_UAR_PAGE, uar[0]->page);
	prm_set(cqc, CQC_C_EQN, HCA_FIRST_EQN);
	prm_set(cqc, CQC_DBR_UMEM_ID, umem->umem.id);
	put_be64(cqc + CQC_DBR_ADDR, 60000u & ~7u);
	put_be64(in + CREATE_CQ_UMEM_OFFSET, 4096u * (which & 3));
	prm_set(in, CREATE_CQ_UMEM_ID, umem->umem.id);
}

static void qp_box(uint8_t *in, unsigned which)
{
	uint8_t *qpc = in + QP_CMD_QPC;

	prm_set(in, CMD_OPCODE, OP_CREATE_QP);
	prm_set(qpc, QPC_PD, pd->pd.pdn);
	prm_set(qpc, QPC_LOG_SQ_SIZE, which & 7);
	prm_set(qpc, QPC_LOG_RQ_SIZE, which >> 2 & 7);
	prm_set(qpc, QPC_RQ_TYPE, which & 0x40 ? 0 : 3);
	prm_set(qpc, QPC_SEND_DBR_MODE, which >> 7);
	prm_set(qpc, QPC_UAR_PAGE, uar[which >> 5 & 1]->page);
	prm_set(qpc, QPC_CQN_SND, number_of(some(OBJ_CQ, which)));
	prm_set(qpc, QPC_CQN_RCV, number_of(some(OBJ_CQ, which >> 4)));
	prm_set(qpc, QPC_DBR_UMEM_ID, umem->umem.id);
	put_be64(qpc + QPC_DBR_ADDR, 61440);
	put_be64(in + CREATE_QP_WQ_UMEM_OFFSET, 16384);
	prm_set(in, CREATE_QP_WQ_UMEM_ID, umem->umem.id);
}

static void dct_box(uint8_t *in, unsigned which)
{
	uint8_t *dctc = in + DCT_CMD_DCTC;

	prm_set(in, CMD_OPCODE, OP_CREATE_DCT);
	prm_set(dctc, DCTC_PD, pd->pd.pdn);
	prm_set(dctc, DCTC_CQN, number_of(some(OBJ_CQ, which)));
	prm_set(dctc, DCTC_SRQN, srq->srq.srqn);
	prm_set(dctc, DCTC_MTU, 1 + (which & 1));
	prm_set(dctc, DCTC_PORT, 1);
}

static void rmp_box(uint8_t *in, unsigned which)
{
	uint8_t *wq = in + CREATE_RMP_WQ;

	prm_set(in, CMD_OPCODE, OP_CREATE_RMP);
	prm_set(in, CREATE_RMP_STATE, 1);
	prm_set(wq, WQ_TYPE, which & 1);
	prm_set(wq, WQ_PD, pd->pd.pdn);
	prm_set(wq, WQ_LOG_STRIDE, 5 + (which >> 1 & 1));
	prm_set(wq, WQ_LOG_SIZE, which >> 2 & 7);
	prm_set(wq, WQ_DBR_UMEM_ID, umem->umem.id);
	prm_set(wq, WQ_UMEM_ID, umem->umem.id);
}

static void mkey_box(uint8_t *in, unsigned which)
{
	uint8_t *mkc = in + CREATE_MKEY_MKC;

	prm_set(in, CMD_OPCODE, OP_CREATE_MKEY);
	prm_set(mkc, MKC_PD, pd->pd.pdn);
	prm_set(mkc, MKC_FREE, 1);
	prm_set(mkc, MKC_UMR_EN, 1);
	prm_set(mkc, MKC_ACCESS_MODE, 2);
	prm_set(mkc, MKC_VARIANT, which);
	prm_set(mkc, MKC_EN_RINVAL, which & 1);
	prm_set(mkc, MKC_OCTOWORDS, which & 2 ? 1024 : 1);
}

static bool is_dct(const struct ctl_obj *o)
{
	return o->type == OBJ_QP && ((const struct ctl_qp *)o)->qp.type == HCA_QP_DCT;
}

static void modify_box(uint8_t *in, unsigned which)
{
	static const uint16_t opcodes[] = {OP_RST2INIT, OP_INIT2RTR, OP_RTR2RTS, OP_RTS2RTS,
					   OP_INIT2INIT, OP_2ERR, OP_2RST, OP_SQERR2RTS};
	uint8_t *qpc = in + QP_CMD_QPC;

	prm_set(in, CMD_OPCODE, opcodes[which & 7]);
	prm_set(qpc, QPC_MTU, 3);
	prm_set(qpc, QPC_REMOTE_QPN, 5);
	prm_set(qpc + QPC_PATH, PATH_PORT, 1);
}

static void general_box(uint8_t *in, unsigned which)
{
	prm_set(in, CMD_OPCODE, which & 1 ? OP_QUERY_HCA_CAP : OP_QUERY_ROCE_ADDRESS);
	if (which & 1)
		prm_set(in, CMD_OP_MOD, which >> 1);
}

/* Every failure says why, and only a failure does. */
static void judge(const struct prm_cmd *cmd, int rc)
{
	RULE(rc == 0 || rc == EREMOTEIO || rc == EINVAL);
	RULE((rc == EREMOTEIO) == (cmd->out[0] != 0));
	RULE(rc || cmd->kind != PRM_CREATE || cmd->obj);
}

static unsigned touched; /* so that the reads are not left out */

static void touch(const void *at, size_t n)
{
	const volatile uint8_t *p = at; /* volatile: read for the sanitizer's sake */

	if (at && n)
		touched += p[0] + p[n - 1];
}

/* What the device was given lies where it may. */
static void touch_object(const struct ctl_obj *o)
{
	if (o && o->type == OBJ_CQ) {
		const struct hca_cq *cq = &((const struct ctl_cq *)o)->cq;

		touch(cq->buf, (size_t)cq->cqe_size << cq->log_size);
		touch(cq->dbrec, 8);
	} else if (o && o->type == OBJ_QP) {
		const struct hca_qp *qp = &((const struct ctl_qp *)o)->qp;

		touch(qp->sq, qp->sq ? (size_t)64 << qp->log_sq_size : 0);
		touch(qp->rq, (size_t)qp->rq_cnt << qp->rq_shift);
		touch(qp->dbrec, 8);
	} else if (o && o->type == OBJ_SRQ) {
		const struct hca_srq *s = &((const struct ctl_srq *)o)->srq;

		touch(s->buf, (size_t)s->wqe_cnt << s->wqe_shift);
		touch(s->dbrec, 8);
	} else if (o && o->type == OBJ_MW) {
		const struct hca_mr *m = &((const struct ctl_mr *)o)->mr;

		/* Found by its key and by nothing else; without pieces; of a size that was asked for. */
		RULE(hca_find_mr(m->key) == m && hca_find_mr_by_index(m->key ^ 1) == m);
		RULE(!hca_find_mr(m->key ^ 1) && !m->bound && !m->layout);
		RULE(m->max_pieces && m->max_pieces <= 1u << 16 && m->pdn == pd->pd.pdn);
	}
}

static int issue(struct input *input, enum prm_kind kind, uint8_t *box, struct ctl_obj **obj)
{
	struct prm_cmd cmd = {.ctx = ctx, .kind = kind, .obj = obj ? *obj : NULL};
	uint8_t lengths = next(input), patches = next(input) & 15;
	int rc;

	/* As the ioctl: private copies of the given lengths, sixteen bytes at least. */
	cmd.in_len = lengths & 1 ? 16u + lengths : QP_CMD_LEN;
	cmd.out_len = lengths & 2 ? 16u + lengths : QP_CMD_LEN;
	while (patches--) {
		unsigned at = next(input);

		at = (at << 8 | next(input)) % MAX_BOX;
		box[at] = next(input);
	}
	cmd.in = malloc(cmd.in_len);
	cmd.out = calloc(1, cmd.out_len);
	if (!cmd.in || !cmd.out)
		abort();
	memcpy(cmd.in, box, cmd.in_len);
	rc = prm_run(&cmd);
	judge(&cmd, rc);
	free(cmd.in);
	free(cmd.out);
	if (!rc && obj)
		*obj = cmd.obj;
	if (obj)
		touch_object(*obj);
	return rc;
}

static void one_command(struct input *input)
{
	uint8_t what = next(input), which = next(input), box[MAX_BOX] = {0};
	struct ctl_obj **slot = &objects[which % OBJECTS];
	uint16_t opcode;

	switch (what % 8) {
	case 0:
	case 1:
		if (*slot)
			break;
		if (what & 1 && what >> 6 == 3)
			dct_box(box, which);
		else if (what >> 5 == 6)
			rmp_box(box, what >> 3 | which);
		else if (what >> 6 == 3)
			mkey_box(box, what >> 3 | which);
		else if (what & 1)
			qp_box(box, what >> 3 | which);
		else
			cq_box(box, OP_CREATE_CQ, what >> 3 | which);
		issue(input, PRM_CREATE, box, slot);
		break;
	case 2:
	case 3:
		if (!*slot)
			break;
		if ((*slot)->type == OBJ_CQ)
			cq_box(box, OP_MODIFY_CQ, what >> 3);
		else
			modify_box(box, what >> 3);
		if (is_dct(*slot))
			prm_set(box, CMD_OPCODE, OP_DRAIN_DCT);
		prm_set(box, CMD_OBJ_NUM, number_of(*slot));
		if ((*slot)->type == OBJ_CQ)
			prm_set(box, CMD_OP_MOD, what & 1);
		issue(input, PRM_MODIFY, box, slot);
		break;
	case 4:
		if (!*slot)
			break;
		prm_set(box, CMD_OPCODE, (*slot)->type == OBJ_CQ ? OP_QUERY_CQ
					 : is_dct(*slot)	 ? OP_QUERY_DCT
								 : OP_QUERY_QP);
		prm_set(box, CMD_OBJ_NUM, number_of(*slot));
		issue(input, PRM_QUERY, box, slot);
		break;
	case 5:
		general_box(box, what >> 3);
		issue(input, PRM_GENERAL, box, NULL);
		break;
	case 6: /* any opcode by any method */
		opcode = (uint16_t)(next(input) << 8);
		prm_set(box, CMD_OPCODE, opcode | next(input));
		prm_set(box, CMD_OBJ_NUM, number_of(*slot));
		if (what >> 3 & 1 ? *slot != NULL : *slot == NULL)
			issue(input, *slot ? (what & 16 ? PRM_MODIFY : PRM_QUERY)
					   : PRM_CREATE, box, slot);
		break;
	default:
		if (*slot && !obj_destroy(*slot))
			*slot = NULL;
		break;
	}
}

void fuzz_prm(const uint8_t *data, size_t n)
{
	struct input input = {data, n};

	hca_lock();
	for (int i = 0; i < MAX_COMMANDS && input.n; i++)
		one_command(&input);
	/* Users before what they use: each lap takes away what nothing refers to any more. */
	for (int lap = 0; lap < 4; lap++)
		for (int i = 0; i < OBJECTS; i++)
			if (objects[i] && !obj_destroy(objects[i]))
				objects[i] = NULL;
	for (int i = 0; i < OBJECTS; i++)
		RULE(!objects[i]);
	RULE(pd->obj.refs == 0 && umem->obj.refs == 0 && srq->obj.refs == 0);
	for (int i = 0; i < 2; i++)
		RULE(uar[i]->obj.refs == 0 && uar_admits(uar[i]->page, true));
	hca_unlock();
}
