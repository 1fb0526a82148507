/* SPDX-License-Identifier: BSD-3-Clause */
/* Posts of the library's own threads, on a queue that they name and by keys of theirs: one entry each. */
#ifndef GDRI_NAMED_H
#define GDRI_NAMED_H

#include <gdr/impl/queue/fetch.h>

/* One message of RDMA; *target: what to wait for. */
GDR_DEVICE int gdri_post_rdma(struct gdri_dev *dev, struct gdri_qp *qp, uint32_t opcode, uint64_t off, gdri_be32_t rkey,
			      struct gdri_local l, uint32_t len, uint64_t *target)
{
	struct gdri_post p;
	struct gdri_qp q;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	gdri_wqe_rdma(gdri_post_q(&p, &q), p.index, opcode, p.ce | p.fm, off, rkey, l.addr, l.lkey, len);
	*target = p.index + 1;
	return gdri_post_end(dev, qp, &p);
}

/* 8 bytes. */
GDR_DEVICE int gdri_post_value(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off, uint64_t value)
{
	struct gdri_post p;
	struct gdri_qp q;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	gdri_wqe_word(gdri_post_q(&p, &q), p.index, p.ce | p.fm, off, gdri_post_rkey(&p), value, 8);
	return gdri_post_end(dev, qp, &p);
}

/* An addition to 8 bytes, whose old value goes to l. */
GDR_DEVICE int gdri_post_add(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t off, uint64_t add, struct gdri_local l,
			     uint64_t *target)
{
	struct gdri_post p;
	struct gdri_qp q;
	int ret = gdri_post_begin(dev, qp, 1, 0, &p);

	if (gdri_unlikely(ret))
		return ret;
	gdri_wqe_fa(gdri_post_q(&p, &q), p.index, p.ce | p.fm, off, p.q.rkey_sync, l.addr, l.lkey, add);
	*target = p.index + 1;
	return gdri_post_end(dev, qp, &p);
}

#endif
