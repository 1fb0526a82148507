/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory as the data path sees it: key checks and copies. */
#include "softhca/engine/dp.h"
#include "softhca/memory/guest.h"
#include "softhca/memory/probe.h"

uint8_t *mr_translate(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access)
{
	const struct hca_mr *mr = hca_find_mr(key);
	uint64_t off;

	if (!mr || mr->window || mr->pdn != pdn || (mr->access & access) != access)
		return NULL;
	off = addr - mr->iova;
	if (addr < mr->iova || off > mr->len || len > mr->len - off)
		return NULL;
	if (!mr->device && !probe_mapped(mr->va + off, len, mr->access & HCA_ON_DEMAND && access & HCA_WRITES))
		return NULL;
#ifdef __SANITIZE_THREAD__
	__tsan_acquire(mr->va); /* see mr_accessed */
#endif
	return mr->va + off;
}

void mr_accessed(uint32_t key)
{
#ifdef __SANITIZE_THREAD__
	const struct hca_mr *mr = hca_find_mr(key);

	if (mr && mr->window)
		mr = hca_find_mr(mr->region);
	if (mr)
		__tsan_release(mr->va);
#else
	(void)key;
#endif
}

bool payload_copy(const struct packet *p, const struct iovec *dst, int ndst,
		  const struct iovec *src, int nsrc)
{
	if (p->peer)
		return dma_on && dma_any(dst, ndst) ? dma_peer_read(p, dst, ndst, src, nsrc)
						    : peer_memory_read(p->peer, dst, ndst, src, nsrc);
	iov_copy(dst, ndst, src, nsrc);
	return true;
}

void iov_copy(const struct iovec *dst, int ndst, const struct iovec *src, int nsrc)
{
	if (__builtin_expect(dma_on, 0))
		dma_iov_copy(dst, ndst, src, nsrc);
	else
		guest_iov_copy(dst, ndst, src, nsrc, guest_copy);
}
