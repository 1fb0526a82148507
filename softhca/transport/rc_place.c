/* SPDX-License-Identifier: BSD-3-Clause */
/* Placing payload in memory of GPUs: which writes are relaxed, and the order between those, which
 * are posted, and stores of the CPU. */
#include "softhca/transport/rc.h"

void rc_place_settle(uint64_t placed, const void *mem)
{
	if (!dma_device(mem) && !dma_done(placed))
		dma_settle();
}

bool rc_place_gpu(uint64_t *placed, uint32_t key, const struct packet *p, const struct iovec *dst,
		  int ndst, const struct iovec *src, int nsrc)
{
	const struct hca_mr *mr = hca_find_mr(key);
	bool gpu = dma_any(dst, ndst), ok;

	if (mr && mr->window && mr->window != HCA_INDIRECT) /* which says for itself */
		mr = hca_find_mr(mr->region);
	for (int i = 0; i < ndst; i++)
		rc_place_settle(*placed, dst[i].iov_base);
	dma_relax(mr && mr->access & HCA_RELAXED_ORDERING);
	ok = payload_copy(p, dst, ndst, src, nsrc);
	dma_relax(false);
	if (gpu)
		*placed = dma_posted();
	return ok;
}
