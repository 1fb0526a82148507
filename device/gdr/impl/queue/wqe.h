/* SPDX-License-Identifier: BSD-3-Clause */
/* Work queue entries from values: pure functions of their arguments that store
 * whole 16-byte segments into the ring, every byte defined. Who may write
 * which blocks reserve.h decides. Layout: mlx5_hw.h, tables of the PRM
 * chapter "Work Queue Elements". */
#ifndef GDRI_WQE_H
#define GDRI_WQE_H

#include <gdr/impl/arch/abi.h>

GDRI_NAMESAKES_BEGIN

#ifndef GDRI_MSG_MAX /* a test makes it small */
#define GDRI_MSG_MAX (1u << 30) /* the largest message of one WQE */
#endif

/* Block `index` of the ring: the ring wraps between blocks, also inside a WQE. */
GDR_DEVICE uint8_t *gdri_sq_block(const struct gdri_qp *qp, uint64_t index)
{
	return qp->sq + (size_t)((uint32_t)index & (qp->depth - 1)) * GDRI_WQE_BLOCK;
}

/* ce: GDRI_CE_*, may be combined with GDRI_FM_FENCE. The words are put together
 * in memory order: index in bytes 1 and 2, opcode in byte 3; ds in byte 7. */
GDR_DEVICE uint8_t *gdri_wqe_ctrl(const struct gdri_qp *qp, uint64_t index, uint32_t opcode,
				  uint32_t opmod, uint32_t ds, uint32_t ce)
{
	uint8_t *w = gdri_sq_block(qp, index);

	gdri_st_v4(w, gdri_bswap32((uint32_t)index & 0xffffu) >> 8 | opcode << 24 | opmod,
		   qp->qpn_shifted | ds << 24, ce << 24, 0);
	return w;
}

GDR_DEVICE void gdri_wqe_raddr(uint8_t *w, uint64_t off, gdri_be32_t rkey)
{
	gdri_st_2x64(w + 16, gdri_bswap64(off), rkey.be);
}

GDR_DEVICE void gdri_wqe_data(uint8_t *seg, uint64_t laddr, gdri_be32_t lkey, uint32_t len)
{
	gdri_st_2x64(seg, gdri_bswap32(len) | (uint64_t)lkey.be << 32, gdri_bswap64(laddr));
}

GDR_DEVICE void gdri_wqe_nop(const struct gdri_qp *qp, uint64_t index, uint32_t ce)
{
	gdri_wqe_ctrl(qp, index, GDRI_OP_NOP, 0, 1, ce);
}

/* Local read of one byte whose data is dropped: behind a fence it shows that
 * what earlier reads brought is visible. */
GDR_DEVICE void gdri_wqe_dump(const struct gdri_qp *qp, uint64_t index, uint32_t ce, uint64_t laddr,
			      gdri_be32_t lkey, uint32_t len)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_DUMP, 0, 2, ce);

	gdri_wqe_data(w + 16, laddr, lkey, len);
}

GDR_DEVICE void gdri_wqe_rdma(const struct gdri_qp *qp, uint64_t index, uint32_t opcode,
			      uint32_t ce, uint64_t off, gdri_be32_t rkey, uint64_t laddr,
			      gdri_be32_t lkey, uint32_t len)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, opcode, 0, 3, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_wqe_data(w + 32, laddr, lkey, len);
}

/* len <= 12: one data segment. v holds len bytes, zeros behind. */
GDR_DEVICE void gdri_wqe_write_inline_12(const struct gdri_qp *qp, uint64_t index, uint32_t ce,
					 uint64_t off, gdri_be32_t rkey, const uint32_t v[3],
					 uint32_t len)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_WRITE, 0, 3, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_v4(w + 32, gdri_bswap32(len | GDRI_INLINE_BIT), v[0], v[1], v[2]);
}

/* len <= 12: one data segment, <= 28: two. */
GDR_DEVICE void gdri_wqe_write_inline(const struct gdri_qp *qp, uint64_t index, uint32_t ce,
				      uint64_t off, gdri_be32_t rkey, const uint32_t *v,
				      uint32_t len)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_WRITE, 0, len <= 12 ? 3 : 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_v4(w + 32, gdri_bswap32(len | GDRI_INLINE_BIT), v[0], v[1], v[2]);
	if (len > 12)
		gdri_st_v4(w + 48, v[3], v[4], v[5], v[6]);
}

/* Plain 8-byte FA and CS; the old value goes to laddr. Operands are numbers:
 * big-endian in the WQE whatever the memory's order is. */
GDR_DEVICE void gdri_wqe_fa(const struct gdri_qp *qp, uint64_t index, uint32_t ce, uint64_t off,
			    gdri_be32_t rkey, uint64_t laddr, gdri_be32_t lkey, uint64_t add)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_ATOMIC_FA, 0, 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_2x64(w + 32, gdri_bswap64(add), 0);
	gdri_wqe_data(w + 48, laddr, lkey, 8);
}

GDR_DEVICE void gdri_wqe_cs(const struct gdri_qp *qp, uint64_t index, uint32_t ce, uint64_t off,
			    gdri_be32_t rkey, uint64_t laddr, gdri_be32_t lkey, uint64_t swap,
			    uint64_t compare)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_ATOMIC_CS, 0, 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_2x64(w + 32, gdri_bswap64(swap), gdri_bswap64(compare));
	gdri_wqe_data(w + 48, laddr, lkey, 8);
}

/* Masked FA: each set bit of boundary ends a field, whose carry is dropped. */
GDR_DEVICE void gdri_wqe_masked_fa8(const struct gdri_qp *qp, uint64_t index, uint32_t ce,
				    uint64_t off, gdri_be32_t rkey, uint64_t laddr,
				    gdri_be32_t lkey, uint64_t add, uint64_t boundary)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_MASKED_FA, GDRI_OPMOD_ATOMIC_8B, 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_2x64(w + 32, gdri_bswap64(add), gdri_bswap64(boundary));
	gdri_wqe_data(w + 48, laddr, lkey, 8);
}

GDR_DEVICE void gdri_wqe_masked_fa4(const struct gdri_qp *qp, uint64_t index, uint32_t ce,
				    uint64_t off, gdri_be32_t rkey, uint64_t laddr,
				    gdri_be32_t lkey, uint32_t add, uint32_t boundary)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_MASKED_FA, GDRI_OPMOD_ATOMIC_4B, 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_v4(w + 32, gdri_bswap32(add), gdri_bswap32(boundary), 0, 0);
	gdri_wqe_data(w + 48, laddr, lkey, 4);
}

GDR_DEVICE void gdri_wqe_combine(const struct gdri_qp *qp, uint64_t index, uint32_t ce, uint64_t off, gdri_be32_t rkey,
				 uint64_t laddr, gdri_be32_t lkey, uint64_t operand, uint32_t code)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_MASKED_FA, GDRI_OPMOD_COMBINE, 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_2x64(w + 32, gdri_bswap64(operand), gdri_bswap64(code));
	gdri_wqe_data(w + 48, laddr, lkey, 1u << (code & 15u));
}

struct gdri_masked_cs {
	uint64_t swap, compare, swap_mask, compare_mask;
};

GDR_DEVICE void gdri_wqe_masked_cs4(const struct gdri_qp *qp, uint64_t index, uint32_t ce,
				    uint64_t off, gdri_be32_t rkey, uint64_t laddr,
				    gdri_be32_t lkey, const struct gdri_masked_cs *m)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_4B, 4, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_v4(w + 32, gdri_bswap32((uint32_t)m->swap), gdri_bswap32((uint32_t)m->compare),
		   gdri_bswap32((uint32_t)m->swap_mask), gdri_bswap32((uint32_t)m->compare_mask));
	gdri_wqe_data(w + 48, laddr, lkey, 4);
}

/* Two blocks: the data segment stands in the next one, which may be block 0. */
GDR_DEVICE void gdri_wqe_masked_cs8(const struct gdri_qp *qp, uint64_t index, uint32_t ce,
				    uint64_t off, gdri_be32_t rkey, uint64_t laddr,
				    gdri_be32_t lkey, const struct gdri_masked_cs *m)
{
	uint8_t *w = gdri_wqe_ctrl(qp, index, GDRI_OP_MASKED_CS, GDRI_OPMOD_ATOMIC_8B, 5, ce);

	gdri_wqe_raddr(w, off, rkey);
	gdri_st_2x64(w + 32, gdri_bswap64(m->swap), gdri_bswap64(m->compare));
	gdri_st_2x64(w + 48, gdri_bswap64(m->swap_mask), gdri_bswap64(m->compare_mask));
	gdri_wqe_data(gdri_sq_block(qp, index + 1), laddr, lkey, 8);
}

GDRI_NAMESAKES_END

#endif
