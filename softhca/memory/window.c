/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: keys that a work request binds to a part of a region, and that are
 * taken back by one, or by the peer's SEND with invalidate. IBTA volume 1, sections
 * 10.6.7 and 9.4.1.1; the UMR work request that does it: PRM "UMR WQE". */
#include "softhca/engine/dp.h"
#include "softhca/tools/log.h"
#include "softhca/transport/wqe.h"

uint8_t *mr_translate_remote(const struct hca_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
			     uint32_t access)
{
	const struct hca_mr *w = hca_find_mr(key);
	uint64_t off;

	if (!w || !w->window)
		return mr_translate(key, qp->pdn, addr, len, access);
	if (w->window == HCA_INDIRECT || !w->bound || w->pdn != qp->pdn || (w->access & access) != access ||
	    (w->window == HCA_WINDOW_2 && w->qpn != qp->qpn))
		return NULL;
	off = addr - w->iova;
	if (addr < w->iova || off > w->len || len > w->len - off)
		return NULL;
	/* The region may be gone, or another one. */
	return mr_translate(w->region, w->pdn, w->target + off, len, access & HCA_WRITES ? HCA_LOCAL_WRITE : 0);
}

int mr_pieces_remote(const struct hca_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		     uint32_t access, struct iovec *iov, int room)
{
	uint8_t *va = mr_translate_remote(qp, key, addr, len, access);

	if (!va)
		return mkey_pieces(key, qp->pdn, addr, len, access, iov, room);
	if (iov)
		*iov = (struct iovec){ va, len };
	return 1;
}

/* IBTA 10.6.7.2.1: what a bind needs. */
static const char *bind_fault(const struct hca_qp *qp, const struct hca_mr *w,
			      const struct wqe_umr *u, const struct wqe_sge *piece)
{
	const struct hca_mr *mr = hca_find_mr(piece->lkey);

	if (w->window == HCA_WINDOW_2 && w->bound)
		return "the window is bound already";
	if (!mr || mr->window || mr->pdn != qp->pdn)
		return "no region of this PD has the key";
	if (!(mr->access & HCA_MW_BIND))
		return "the region was registered without IBV_ACCESS_MW_BIND";
	if (u->access & (HCA_REMOTE_WRITE | HCA_REMOTE_ATOMIC) && !(mr->access & HCA_LOCAL_WRITE))
		return "remote write or atomic to a region without local write";
	if (!mr_translate(piece->lkey, qp->pdn, piece->addr, u->len, 0))
		return "the range lies outside the region";
	return NULL;
}

static const char *window_update_key(const struct hca_qp *qp, const struct wqe_umr *u,
				     const struct wqe_sge *pieces, unsigned n)
{
	struct hca_mr *w = hca_find_mr_by_index(u->key);
	const char *fault;

	if (!w || !w->window || w->pdn != qp->pdn)
		return "the key is no window of this PD";
	if (w->window == HCA_INDIRECT)
		return mkey_update(w, u, pieces, n);
	if (u->by_qpn != (w->window == HCA_WINDOW_2))
		return "a type 2 window is bound to a queue pair, a type 1 window is not";
	if (u->free) {
		if (w->window == HCA_WINDOW_2 && (!w->bound || w->qpn != qp->qpn))
			return "the window is not bound to this queue pair";
		w->bound = false;
		w->key = umr_key(u, w->key);
		return NULL;
	}
	if (n != 1 || u->repeat || !u->new_access || !u->new_start || !u->new_len)
		return "a window is bound to one piece of a region";
	fault = bind_fault(qp, w, u, pieces);
	if (fault)
		return fault;
	w->bound = true;
	w->key = umr_key(u, w->key);
	w->qpn = qp->qpn;
	w->access = u->access;
	w->iova = u->start;
	w->len = u->len;
	w->region = pieces->lkey;
	w->target = pieces->addr;
	return NULL;
}

bool window_update(const struct hca_qp *qp, const struct wqe_umr *u, const struct wqe_sge *pieces,
		   unsigned n)
{
	const char *fault = window_update_key(qp, u, pieces, n);

	if (fault)
		hca_debug(1, "QP 0x%x: window 0x%x cannot be changed: %s", qp->qpn, u->key, fault);
	return !fault;
}

bool window_invalidate(const struct hca_qp *qp, uint32_t key)
{
	struct hca_mr *w = hca_find_mr(key);

	if (w && w->window == HCA_INDIRECT && w->bound && w->remote_inv && w->pdn == qp->pdn) {
		w->bound = false;
		return true;
	}
	if (!w || w->window != HCA_WINDOW_2 || !w->bound || w->pdn != qp->pdn ||
	    w->qpn != qp->qpn)
		return false;
	w->bound = false;
	return true;
}
