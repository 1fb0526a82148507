/* SPDX-License-Identifier: BSD-3-Clause */
/* Placement out of order, which a queue pair has where the network routes adaptively (QPC.dp_ordering, OOO_RW): the
 * responder takes packets in PSN order and checks them so, but of a WRITE one line of 64 bytes of the destination may
 * be held back for a while, as if its packet were still on its way: what comes behind is seen ahead of it, and so is
 * the rest of its own message. An atomic, a SEND and an immediate wait for what is held, and so does every answer,
 * which acknowledges it: completions stay in order. What is held, and for how long, a generator of the queue pair's
 * own decides. Memory of GPUs is written as it comes. A device whose memory keys have relaxed order alone does that
 * whatever order its queue pairs have: there it is the host's bridge that lets writes overtake each other.
 *
 * Halves: the bridge between the device and memory (NVLink-C2C to a GPU: NCCL, pull request 2053) may turn writes
 * round that the device does in order. A half of such a line is held back, answers do not wait for it, and all comes
 * to be seen when the device reads: for a DUMP of its own, an atomic, or a READ. The bytes of one address stay in
 * order. */
#include <stdlib.h>
#include <string.h>

#include "softhca/memory/guest.h"
#include "softhca/transport/rc.h"

enum {
	HELD = 16, /* lines of a queue pair at a time, power of two */
	LINE = 64,
	HALF = 32,
	HOLD_NS = 20000, /* at most so long */
};

struct held {
	_Alignas(LINE) uint8_t line[LINE]; /* at the places that the bytes have in the destination's line */
	uint8_t *dst;
	uint32_t len; /* 0: placed */
	uint32_t key;
	uint64_t due;
};

struct rc_order {
	struct held held[HELD];
	uint64_t first, next; /* numbers of the oldest that is held, and of the one to come */
	uint64_t drawn;
};

static unsigned held_in_all;

/* splitmix64 */
static uint64_t order_draw(struct rc_order *o)
{
	uint64_t z = o->drawn += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static struct rc_order *order_of(struct hca_qp *qp)
{
	struct rc_order *o = qp->rc->order;

	if (o)
		return o;
	o = aligned_alloc(LINE, sizeof(*o));
	if (!o)
		return NULL;
	memset(o, 0, sizeof(*o));
	o->drawn = (uint64_t)qp->qpn << 32 | qp->dest_qpn;
	qp->rc->order = o;
	return o;
}

static void order_release(struct hca_qp *qp, struct held *h)
{
	struct rc_order *o = qp->rc->order;
	uint64_t before = o->first;

	if (h->len) {
		guest_copy_words(h->dst, h->line + ((uintptr_t)h->dst & (LINE - 1)), h->len);
		mr_accessed(h->key);
		h->len = 0;
		held_in_all--;
	}
	while (o->first != o->next && !o->held[o->first % HELD].len)
		o->first++;
	if (o->first != before) /* answers may go */
		engine_activate(qp);
}

void rc_order_settle(struct hca_qp *qp)
{
	struct rc_order *o = qp->rc ? qp->rc->order : NULL;

	/* the newest first, as they would not come by themselves */
	for (uint64_t first = o ? o->first : 0, n = o ? o->next - first : 0; n--;)
		order_release(qp, &o->held[(first + n) % HELD]);
}

void rc_order_settle_all(void)
{
	for (unsigned i = 0; held_in_all && engine_qp(i); i++)
		rc_order_settle(engine_qp(i));
}

void rc_order_end(struct hca_qp *qp)
{
	rc_order_settle(qp);
	free(qp->rc->order);
	qp->rc->order = NULL;
}

uint64_t rc_order_last(const struct hca_qp *qp)
{
	return qp->rc->order && rc_order_any(qp) ? qp->rc->order->next : 0;
}

bool rc_order_holds(const struct hca_qp *qp, uint64_t last)
{
	return qp->rc->order && qp->rc->order->first < last;
}

void rc_order_timer(struct hca_qp *qp, uint64_t now)
{
	struct rc_order *o = qp->rc->order;

	for (uint64_t i = o->first; i != o->next; i++) {
		struct held *h = &o->held[i % HELD];

		if (h->len && h->due > now)
			engine_deadline(h->due);
		else
			order_release(qp, h);
	}
}

/* What is held of these bytes is placed before newer ones. */
static void order_keep_addresses(const struct iovec *iov, int n)
{
	struct hca_qp *qp;

	for (unsigned q = 0; held_in_all && (qp = engine_qp(q)); q++) {
		struct rc_order *o = qp->halves ? qp->rc->order : NULL;

		for (uint64_t i = o ? o->first : 0, end = o ? o->next : 0; i != end; i++) {
			struct held *h = &o->held[i % HELD];

			for (int k = 0; h->len && k < n; k++)
				if (h->dst < (uint8_t *)iov[k].iov_base + iov[k].iov_len &&
				    (uint8_t *)iov[k].iov_base < h->dst + h->len)
					order_release(qp, h);
		}
	}
}

/* Cuts a line, or half of one, out of piece i, whose bytes go to h for the time being; how many pieces there are
 * then. */
static int order_cut(struct rc_order *o, uintptr_t unit, struct held *h, const struct iovec *iov, int n,
		     struct iovec *cut)
{
	int at = (int)(order_draw(o) % (unsigned)n), m = 0;

	for (int i = 0; i < n; i++) {
		uintptr_t base = (uintptr_t)iov[i].iov_base, end = base + iov[i].iov_len, from, to;

		if (i != at || base == end) {
			cut[m++] = iov[i];
			continue;
		}
		from = (base + order_draw(o) % (end - base)) & ~(unit - 1);
		to = from + unit < end ? from + unit : end;
		from = from > base ? from : base;
		h->dst = (uint8_t *)from;
		h->len = (uint32_t)(to - from);
		cut[m++] = (struct iovec){ iov[i].iov_base, from - base };
		cut[m++] = (struct iovec){ h->line + (from & (LINE - 1)), to - from };
		cut[m++] = (struct iovec){ (void *)to, end - to };
	}
	return m;
}

bool rc_order_place(struct hca_qp *qp, struct rc_responder *rs, const struct packet *p, const struct iovec *iov, int n,
		    const struct iovec *pl, int npl)
{
	struct rc_order *o = dma_on ? NULL : order_of(qp);
	struct iovec cut[PKT_MAX_IOV + 2];
	struct held *h;
	int m;

	if (qp->halves)
		order_keep_addresses(iov, n);
	if (!o || !n || order_draw(o) & 1)
		return rc_place(&rs->placed, rs->wr_rkey, p, iov, n, pl, npl);
	h = &o->held[o->next % HELD];
	if (o->next - o->first == HELD)
		order_release(qp, &o->held[o->first % HELD]);
	h->len = 0;
	m = order_cut(o, rc_order_any(qp) ? LINE : HALF, h, iov, n, cut);
	if (!rc_place(&rs->placed, rs->wr_rkey, p, cut, m, pl, npl)) {
		h->len = 0;
		return false;
	}
	if (!h->len)
		return true;
	h->key = rs->wr_rkey;
	h->due = dp_now() + order_draw(o) % HOLD_NS;
	o->next++;
	held_in_all++;
	engine_deadline(h->due);
	return true;
}
