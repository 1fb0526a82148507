/* SPDX-License-Identifier: BSD-3-Clause */
/* Indirect memory keys: what is behind them is pieces of regions, one behind the other or
 * interleaved. A firmware command makes one (prm_mkey.c), UMR work requests say what it holds and take
 * it back. PRM "Memory Key", access mode KLM, and "UMR WQE". */
#include <stdlib.h>

#include "softhca/engine/dp.h"
#include "softhca/transport/wqe.h"

enum { MAX_PIECES = 1 << 16 }; /* that one access may meet */

struct hca_layout {
	uint32_t n, repeat; /* repeat 0: once, else so often, each time a stride further on */
	uint64_t round;	    /* bytes of all pieces */
	struct wqe_sge piece[];
};

/* The piece that holds the byte at off, which becomes the offset in it. */
static const struct wqe_sge *piece_at(const struct hca_layout *l, uint64_t *off)
{
	for (uint32_t i = 0; i < l->n; i++) {
		if (*off < l->piece[i].len)
			return &l->piece[i];
		*off -= l->piece[i].len;
	}
	return NULL;
}

int mkey_pieces(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access,
		struct iovec *iov, int room)
{
	const struct hca_mr *m = hca_find_mr(key);
	uint64_t at;
	int n = 0;

	if (!m || m->window != HCA_INDIRECT || !m->bound || m->pdn != pdn ||
	    (m->access & access) != access)
		return -1;
	at = addr - m->iova;
	if (addr < m->iova || at > m->len || len > m->len - at)
		return -1;
	while (len) {
		const struct hca_layout *l = m->layout;
		uint64_t off = l->repeat ? at % l->round : at, take;
		const struct wqe_sge *p = piece_at(l, &off);
		uint8_t *va;

		if (!p || n == (iov ? room : MAX_PIECES))
			return -1;
		take = p->len - off < len ? p->len - off : len;
		if (l->repeat)
			off += at / l->round * p->stride;
		va = mr_translate(p->lkey, pdn, p->addr + off, take,
				  access & HCA_WRITES ? HCA_LOCAL_WRITE : 0);
		if (!va)
			return -1;
		if (iov)
			iov[n] = (struct iovec){ va, take };
		n++;
		at += take;
		len -= take;
	}
	return n;
}

static const char *set_layout(struct hca_mr *m, const struct wqe_umr *u, const struct wqe_sge *sge,
			      unsigned n)
{
	uint64_t len = u->new_len ? u->len : m->len;
	struct hca_layout *l;

	if (n > m->max_pieces)
		return "more pieces than the key was made for";
	l = malloc(sizeof(*l) + n * sizeof(*sge));
	if (!l)
		return "out of memory";
	l->n = n;
	l->repeat = u->repeat;
	l->round = 0;
	for (unsigned i = 0; i < n; i++) {
		l->piece[i] = sge[i];
		l->round += sge[i].len;
	}
	if (len > l->round * (l->repeat ? l->repeat : 1)) {
		free(l);
		return "its length is beyond that of its pieces";
	}
	free(m->layout);
	m->layout = l;
	m->len = len;
	return NULL;
}

const char *mkey_update(struct hca_mr *m, const struct wqe_umr *u, const struct wqe_sge *sge,
			unsigned n)
{
	const char *fault;

	if (u->free) {
		m->bound = false;
		return NULL;
	}
	fault = n ? set_layout(m, u, sge, n) : m->layout ? NULL : "a key without pieces";
	if (fault)
		return fault;
	if (u->new_access)
		m->access = u->access;
	if (u->new_start)
		m->iova = u->start;
	m->key = umr_key(u, m->key);
	m->bound |= u->new_free;
	return NULL;
}

void mkey_gone(struct hca_mr *m)
{
	free(m->layout);
	m->layout = NULL;
}
