// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/net/execute.h"

#include <string.h>

#include <gdr/impl/arch/arch.h>
#include <gdr/impl/coll/reduce_op.h>

/* ---- entries and completions ---- */

uint16_t gdri_net_posted(const struct gdri_qp *qp)
{
	/* acquire: pairs with fence F1 of device code, blocks and payload before the record */
	return (uint16_t)gdri_bswap32(__atomic_load_n(qp->dbrec, __ATOMIC_ACQUIRE));
}

void gdri_net_fetch(const struct gdri_qp *qp, uint16_t index, struct gdri_net_wqe *w)
{
	uint32_t i;

	w->index = index;
	memcpy(w->bytes, qp->sq + (size_t)(index & (qp->depth - 1)) * GDRI_WQE_BLOCK,
	       GDRI_WQE_BLOCK);
	w->opcode = w->bytes[3];
	w->opmod = w->bytes[0];
	w->ds = w->bytes[7] & 0x3f;
	w->blocks = w->ds ? (w->ds + 3) / 4 : 1;
	w->fence = w->bytes[11] & GDRI_FM_STRONG;
	w->tells = w->bytes[11] & GDRI_CE_ALWAYS;
	for (i = 1; i < w->blocks && i < GDRI_NET_WQE_MOST / GDRI_WQE_BLOCK; i++)
		memcpy(w->bytes + i * GDRI_WQE_BLOCK,
		       qp->sq + (size_t)((index + i) & (qp->depth - 1)) * GDRI_WQE_BLOCK,
		       GDRI_WQE_BLOCK);
}

void gdri_net_complete(const struct gdri_qp *qp, uint64_t *cq_pi, uint16_t index, uint32_t opcode,
		       uint32_t syndrome)
{
	struct gdri_cqe *e = &qp->cq[*cq_pi & qp->cq_mask];
	uint64_t owner = (*cq_pi)++ / ((uint64_t)qp->cq_mask + 1) & 1;
	uint32_t kind = syndrome ? GDRI_CQE_REQ_ERR : GDRI_CQE_REQ;
	uint32_t tail = gdri_bswap16(index) | (uint32_t)(kind << 4 | owner) << 24;

	e->syndrome = (uint8_t)syndrome;
	e->vendor_syndrome = 0;
	/* release: what the request did, before the word that says so; pairs with the polls of device code */
	__atomic_store_n((uint64_t *)(void *)&e->wqe_opcode_qpn,
			 gdri_bswap32(opcode << 24 | qp->qpn) | (uint64_t)tail << 32,
			 __ATOMIC_RELEASE);
}

/* ---- bytes ---- */

/* What is aligned at both ends goes as a whole. The order of requests is made by a fence of who executes them. */
static void execute_unit(uint8_t *dst, const uint8_t *src, size_t unit)
{
#define UNIT(type)                                                                           \
	__atomic_store_n((type *)(void *)dst,                                                \
			 __atomic_load_n((const type *)(const void *)src, __ATOMIC_RELAXED), \
			 __ATOMIC_RELAXED)
	switch (unit) { /* relaxed: pairs with loads and stores of the memory's users; the executor's fence orders */
	case 8:
		UNIT(uint64_t);
		break;
	case 4:
		UNIT(uint32_t);
		break;
	case 2:
		UNIT(uint16_t);
		break;
	default:
		UNIT(uint8_t);
	}
#undef UNIT
}

void gdri_net_move(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	size_t unit;

	for (; len; len -= unit, dst += unit, src += unit) {
		unit = 8;
		while (unit > len || ((uintptr_t)dst | (uintptr_t)src) & (unit - 1))
			unit /= 2;
		execute_unit(dst, src, unit);
	}
}

/* ---- atomics ---- */

static const uint8_t *execute_combine(const struct gdri_net_wqe *w, struct gdri_net_atomic *a)
{
	const uint8_t *at = w->bytes + 32;

	*a = (struct gdri_net_atomic){.value = gdri_net_get64(at), .code = gdri_net_get32(at + 12)};
	a->size = (uint16_t)(1u << (a->code & 15u));
	return a->code && gdri_net_atomic_is(a) && w->ds == 4 ? at + 16 : NULL;
}

const uint8_t *gdri_net_atomic(const struct gdri_net_wqe *w, struct gdri_net_atomic *a)
{
	const uint8_t *at = w->bytes + 32, *result = at + 16;
	bool masked = w->opcode == GDRI_OP_MASKED_CS || w->opcode == GDRI_OP_MASKED_FA;
	bool four = masked && w->opmod == GDRI_OPMOD_ATOMIC_4B;
	uint64_t word[4];
	int i;

	if (w->opcode == GDRI_OP_MASKED_FA && w->opmod == GDRI_OPMOD_COMBINE)
		return execute_combine(w, a);
	for (i = 0; i < 4; i++)
		word[i] = four ? gdri_net_get32(at + 4 * i) : gdri_net_get64(at + 8 * i);
	*a = (struct gdri_net_atomic){.size = four ? 4 : 8,
				      .value = word[0],
				      .compare = word[1],
				      .value_mask = UINT64_MAX,
				      .compare_mask = UINT64_MAX};
	a->compares = w->opcode == GDRI_OP_ATOMIC_CS || w->opcode == GDRI_OP_MASKED_CS;
	if (w->opcode == GDRI_OP_MASKED_FA)
		a->boundary = word[1];
	if (w->opcode == GDRI_OP_MASKED_CS) {
		a->value_mask = word[2];
		a->compare_mask = word[3];
		result += four ? 0 : 16;
	}
	if (masked && !four && w->opmod != GDRI_OPMOD_ATOMIC_8B)
		return NULL;
	return w->ds * 16 == result + 16 - w->bytes ? result : NULL;
}

bool gdri_net_atomic_is(const struct gdri_net_atomic *a)
{
	return (a->size == 4 || a->size == 8) && (!a->code || a->size == 1u << (a->code & 15u));
}

static uint64_t execute_apply(const struct gdri_net_atomic *a, uint64_t old)
{
	uint64_t b = a->boundary;

	if (a->code)
		return gdri_amo_combine(a->code, old, a->value);
	if (!a->compares)
		return ((old & ~b) + (a->value & ~b)) ^ ((old ^ a->value) & b);
	return (old ^ a->compare) & a->compare_mask
		       ? old
		       : (old & ~a->value_mask) | (a->value & a->value_mask);
}

/* Both: acq_rel, pairs with other PEs' threads and with atomics of the owner's threads. */
static uint64_t execute_8(uint64_t *at, const struct gdri_net_atomic *a)
{
	uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old, execute_apply(a, old), false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return old;
}

static uint32_t execute_4(uint32_t *at, const struct gdri_net_atomic *a)
{
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old, (uint32_t)execute_apply(a, old), false,
					    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return old;
}

uint64_t gdri_net_atomic_run(void *at, const struct gdri_net_atomic *a)
{
	if (a->size == 8)
		return execute_8(at, a);
	return gdri_bswap32(execute_4(at, a)); /* as the NIC has it: 8 bytes in host order */
}
