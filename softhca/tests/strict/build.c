/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a WQE (poster.h). */
#include <endian.h>
#include <string.h>

#include "poster.h"

static void be32(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static void be64(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

static void swap(uint8_t *p, unsigned n)
{
	for (unsigned i = 0; i < n / 2; i++) {
		uint8_t t = p[i];

		p[i] = p[n - 1 - i];
		p[n - 1 - i] = t;
	}
}

static uint8_t *remote(const struct poster *p)
{
	return p->buf + BUFFER / 2;
}

/* ---- segments ---- */

static void put_control(struct poster *p, uint8_t *s, uint8_t opcode, uint8_t opmod, unsigned ds,
			bool signalled)
{
	uint32_t index = p->posted & 0xffff, qpn = p->q.qpn;

	index += makes(p, M_INDEX_OFF_BY_ONE);
	if (makes(p, M_INDEX_MODULO_RING))
		index %= RING;
	if (makes(p, M_OPCODE))
		opcode = 0x18;
	if (makes(p, M_OPMOD_LEFT))
		opmod = 8;
	if (makes(p, M_OPMOD_MISSING))
		opmod = 0;
	if (makes(p, M_QPN_OF_PEER))
		qpn = p->peer.qpn;
	if (makes(p, M_DS_TOO_SMALL))
		ds = 2;
	if (makes(p, M_DS_TOO_LARGE) || makes(p, M_DS_OF_MASKED))
		ds = 4;
	if (makes(p, M_DS_ZERO))
		ds = 0;
	if (makes(p, M_DS_IN_BLOCKS))
		ds = 1;
	if (makes(p, M_DS_OF_ATOMIC))
		ds = 3;
	if (makes(p, M_RESERVED_DS))
		ds += 64;
	be32(s, (uint32_t)opmod << 24 | index << 8 | opcode);
	be32(s + 4, qpn << 8 | ds);
	if (makes(p, M_QPN_NOT_SHIFTED))
		be32(s + 4, qpn | ds);
	if (makes(p, M_INDEX_ENDIAN))
		swap(s, 4);
	if (makes(p, M_QPN_ENDIAN))
		swap(s + 4, 4);
	s[11] = signalled ? 8 : 0;
	if (makes(p, M_RESERVED_FLAGS))
		s[11] = 1;
	if (makes(p, M_FENCE_MODE))
		s[11] |= 5 << 5;
	if (p->mistake == M_RIGHT_GARBAGE) {
		s[8] = (uint8_t)(0xa5 + index);
		memset(s + 12, 0x5a, 4);
	}
}

static void put_remote(struct poster *p, uint8_t *s, uint8_t *at)
{
	be64(s, (uintptr_t)at + makes(p, M_ATOMIC_ALIGN));
	be32(s + 8, p->mr->rkey);
	if (makes(p, M_RKEY_ENDIAN))
		swap(s + 8, 4);
	if (makes(p, M_RADDR_ENDIAN))
		swap(s, 8);
}

static void put_data(struct poster *p, uint8_t *s, uint8_t *at, uint32_t len)
{
	uint32_t key = p->mr->lkey;

	if (makes(p, M_KEY_PD))
		key = p->other_pd->lkey;
	if (makes(p, M_KEY_ACCESS))
		key = p->read_only->lkey;
	if (makes(p, M_KEY_STALE))
		key = p->stale_key;
	if (makes(p, M_KEY_RANGE))
		len = BUFFER + 1;
	if (makes(p, M_BYTE_COUNT_ZERO))
		len = 0;
	if (makes(p, M_INLINE_READ))
		len |= 0x80000000;
	if (makes(p, M_TOO_LONG)) {
		key = p->huge->lkey;
		at = p->huge->addr;
		len = 0x48000000;
	}
	be32(s, len);
	be32(s + 4, key);
	be64(s + 8, (uintptr_t)at);
	if (makes(p, M_LENGTH_ENDIAN))
		swap(s, 4);
	if (makes(p, M_KEY_ENDIAN))
		swap(s + 4, 4);
	if (makes(p, M_ADDRESS_ENDIAN))
		swap(s + 8, 8);
}

static void put_inline(struct poster *p, uint8_t *s, uint32_t len)
{
	memcpy(s + 4, p->buf, len);
	be32(s, 0x80000000 | (makes(p, M_INLINE_LENGTH) ? len + 20 : len));
}

/* ---- operations ---- */

/* Operands of the masked ones; returns the segments that they take. */
static unsigned put_masked(uint8_t *s, bool add)
{
	if (add) { /* 4 bytes: add, field boundary */
		be32(s, 3);
		be32(s + 4, 0);
		return 1;
	}
	be64(s, 7); /* swap, compare, swap mask, compare mask */
	be64(s + 8, 0);
	be64(s + 16, UINT64_MAX);
	be64(s + 24, 0);
	return 2;
}

unsigned build(struct poster *p, uint8_t wqe[2 * BLOCK], enum op op, bool signalled)
{
	static const uint8_t opcode[] = {0x08, 0x08, 0x08, 0x12, 0x10, 0x11, 0x15, 0x14, 0x00};
	static const uint8_t segments[] = {3, 3, 4, 4, 3, 4, 4, 5, 1};
	uint8_t opmod = op == OP_MASKED_FA ? 8 : op == OP_MASKED_CS ? 9 : 0;
	/* places that move, so that no two WQEs are alike */
	uint8_t *there = remote(p) + p->posted % 64 * 256;
	uint8_t *here = p->buf + 4096 + p->posted % 64 * 256;
	unsigned n;

	memset(wqe, 0, 2 * BLOCK);
	put_control(p, wqe, opcode[op], opmod, segments[op], signalled);
	if (op == OP_NOP)
		return 1;
	put_remote(p, wqe + 16, there);
	switch (op) {
	case OP_INLINE:
	case OP_INLINE_LONG:
		if (op == OP_INLINE && p->mistake == M_RIGHT_TAIL) {
			put_control(p, wqe, opcode[op], opmod, 5, signalled);
			put_inline(p, wqe + 32, TAIL);
			return 2;
		}
		put_inline(p, wqe + 32, op == OP_INLINE ? 12 : 28);
		return 1;
	case OP_WRITE:
	case OP_READ:
		put_data(p, wqe + 32, here, 1024);
		return 1;
	case OP_FETCH_ADD:
	case OP_CMP_SWAP:
		be64(wqe + 32, 5);
		put_data(p, wqe + 48, p->buf + 2048, 8);
		return 1;
	default:
		n = put_masked(wqe + 32, op == OP_MASKED_FA);
		put_data(p, wqe + 32 + 16 * n, p->buf + 2048, op == OP_MASKED_FA ? 4 : 8);
		return n;
	}
}
