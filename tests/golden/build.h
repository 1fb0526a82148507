/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds the WQE of a vector with the device code's builders and compares it. */
#ifndef GOLDEN_BUILD_H
#define GOLDEN_BUILD_H

#include <gdr/impl/queue/wqe.h>

#include <stdio.h>
#include <string.h>

#include "tests/golden/golden.h"

static inline void golden_build(const struct golden *g, uint8_t *sq, uint32_t depth)
{
	struct gdri_qp qp;
	uint32_t v[7] = {0};

	memset(&qp, 0, sizeof(qp));
	qp.sq = sq;
	qp.depth = depth;
	qp.qpn = g->qpn;
	qp.qpn_shifted = gdri_bswap32(g->qpn << 8);
	switch (g->op) {
	case GOLDEN_WRITE:
	case GOLDEN_READ:
		gdri_wqe_rdma(&qp, g->index, g->op == GOLDEN_READ ? GDRI_OP_READ : GDRI_OP_WRITE,
			      g->fm_ce_se, g->raddr, gdri_to_be32(g->rkey), g->laddr,
			      gdri_to_be32(g->lkey), g->len);
		break;
	case GOLDEN_WRITE_INLINE:
		memset(v, 0x5a, g->len); /* what the source buffer holds */
		gdri_wqe_write_inline(&qp, g->index, g->fm_ce_se, g->raddr, gdri_to_be32(g->rkey),
				      v, g->len);
		break;
	case GOLDEN_FA:
		gdri_wqe_fa(&qp, g->index, g->fm_ce_se, g->raddr, gdri_to_be32(g->rkey), g->laddr,
			    gdri_to_be32(g->lkey), g->swap_add);
		break;
	case GOLDEN_CS:
		gdri_wqe_cs(&qp, g->index, g->fm_ce_se, g->raddr, gdri_to_be32(g->rkey), g->laddr,
			    gdri_to_be32(g->lkey), g->swap_add, g->compare);
		break;
	}
}

/* Bytes that the device reads: the segments that ds counts, less the padding
 * behind inline data, the signature (off) and the reserved bytes. */
static inline unsigned golden_used(const struct golden *g)
{
	if (g->op == GOLDEN_WRITE_INLINE)
		return 32 + 4 + g->len;
	return (g->bytes[7] & 0x3fu) * 16;
}

/* First byte that differs from libmlx5's, or -1. */
static inline int golden_differs(const struct golden *g, const uint8_t *w)
{
	unsigned i;

	for (i = 0; i < golden_used(g); i++)
		if (i != 8 && w[i] != g->bytes[i]) /* 8: signature */
			return (int)i;
	return -1;
}

static inline int golden_compare(const struct golden *g)
{
	uint8_t sq[64 * 64];
	const uint8_t *w = sq + g->index % 64 * 64;
	int i;

	memset(sq, 0xee, sizeof(sq));
	golden_build(g, sq, 64);
	i = golden_differs(g, w);
	if (i >= 0)
		printf("op %d len %u: byte %d is 0x%02x, libmlx5 wrote 0x%02x\n", g->op, g->len, i,
		       w[i], g->bytes[i]);
	return i >= 0;
}

#endif
