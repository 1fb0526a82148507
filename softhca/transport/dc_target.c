/* SPDX-License-Identifier: BSD-3-Clause */
/* Dynamically connected transport, the target. A DCT has a responder for each
 * DCI that it has heard of, made by the first packet of a connection. The mistake of
 * one ends its connection and nothing else. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/tools/log.h"
#include "softhca/transport/rc.h"

enum { BUCKETS = 64, MAX_REQUESTERS = 1024 };

#define FORGET_NS  2000000000u /* a requester that is silent so long may be another one */
#define RESOLVE_NS 10000000u   /* the way back is believed so long */

struct requester {
	struct requester *next;	      /* of its bucket */
	struct requester *next_ready; /* with answers to send */
	bool ready;
	uint8_t life;
	uint32_t dci, first;
	uint64_t key;
	uint64_t heard_at, resolve_at;
	struct wire_dest from;
	struct rc_responder rs;
};

struct dc_target {
	struct requester *bucket[BUCKETS];
	struct requester *ready, *ready_tail;
	unsigned count;
};

int dc_target_create(struct hca_qp *qp)
{
	qp->rc->target = calloc(1, sizeof(*qp->rc->target));
	return qp->rc->target ? 0 : -ENOMEM;
}

static void forget_all(struct dc_target *t)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (t->bucket[i]) {
			struct requester *r = t->bucket[i];

			t->bucket[i] = r->next;
			free(r);
		}
	}
	memset(t, 0, sizeof(*t));
}

void dc_target_destroy(struct hca_qp *qp)
{
	if (!qp->rc->target)
		return;
	forget_all(qp->rc->target);
	free(qp->rc->target);
	qp->rc->target = NULL;
}

void dc_target_reset(struct hca_qp *qp)
{
	struct dc_target *t = qp->rc->target;

	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct requester *r = t->bucket[i]; r; r = r->next)
			rc_resp_flush(qp, &r->rs);
	forget_all(t);
}

/* ---- who asks ---- */

static struct requester **bucket_of(struct dc_target *t, uint32_t dci)
{
	return &t->bucket[(dci ^ dci >> 14) % BUCKETS];
}

/* QPNs are unique on a host. */
static bool same_host(const struct wire_dest *a, const struct wire_dest *b)
{
	if (a->kind != b->kind)
		return false;
	return a->kind != WIRE_REMOTE ||
	       (a->sgid == b->sgid && IN6_ARE_ADDR_EQUAL(&a->gid, &b->gid));
}

static struct requester *dc_find_requester(struct dc_target *t, const struct wire_dest *from, uint32_t dci)
{
	struct requester *r = *bucket_of(t, dci);

	while (r && (r->dci != dci || !same_host(&r->from, from)))
		r = r->next;
	return r;
}

/* Frees one that has been silent for long. */
static void forget_one(struct hca_qp *qp)
{
	struct dc_target *t = qp->rc->target;

	for (unsigned i = 0; i < BUCKETS; i++) {
		for (struct requester **at = &t->bucket[i]; *at; at = &(*at)->next) {
			struct requester *r = *at;

			if (r->ready || dp_now() - r->heard_at < FORGET_NS)
				continue;
			*at = r->next;
			t->count--;
			rc_resp_flush(qp, &r->rs);
			free(r);
			return;
		}
	}
}

static struct requester *dc_admit(struct hca_qp *qp, const struct wire_dest *from, uint32_t dci)
{
	struct dc_target *t = qp->rc->target;
	struct requester *r;

	if (t->count == MAX_REQUESTERS)
		forget_one(qp);
	r = t->count < MAX_REQUESTERS ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return NULL;
	r->dci = dci;
	r->from = *from;
	r->next = *bucket_of(t, dci);
	*bucket_of(t, dci) = r;
	t->count++;
	return r;
}

/* The way of the answers. False where the QPN is not of the process that sent. */
static bool way_back(struct hca_qp *qp, struct requester *r)
{
	struct in6_addr gid = {0};

	if (dp_now() < r->resolve_at)
		return true;
	if (r->from.kind == WIRE_REMOTE)
		gid = r->from.gid;
	if (!wire_resolve(&gid, r->from.sgid, r->dci, &r->rs.dest) ||
	    r->rs.dest.kind != r->from.kind ||
	    (r->from.kind == WIRE_HOST && r->rs.dest.slot != r->from.slot))
		return false;
	r->rs.dest.tclass = qp->path.tclass;
	r->rs.dest.sport = rc_sport(qp->qpn, r->dci);
	r->rs.dest_qpn = r->dci;
	r->resolve_at = dp_now() + RESOLVE_NS;
	return true;
}

/* A packet of a connection that is over: it took long, or is a double. */
static bool is_old(const struct requester *r, const struct packet *p)
{
	return r->life == p->life && psn_diff(p->first_psn, r->first) <= 0 &&
	       dp_now() - r->heard_at < FORGET_NS;
}

static bool dc_start_requester(struct hca_qp *qp, struct requester *r, const struct packet *p)
{
	if (!way_back(qp, r))
		return false;
	rc_resp_flush(qp, &r->rs);
	rc_resp_reset(&r->rs, p->first_psn);
	r->first = p->first_psn;
	r->life = p->life;
	r->key = p->dc_key;
	if (p->dc_key != qp->dc_key) {
		hca_debug(1, "DCT 0x%x: wrong access key from DCI 0x%x", qp->qpn, p->sqpn);
		qp->dc_violations++;
		r->rs.refused = AETH_NAK_ACCESS;
	}
	return true;
}

/* The requester whose connection the packet belongs to, or begins. */
static struct requester *dc_connection(struct hca_qp *qp, const struct wire_dest *from,
				       const struct packet *p)
{
	struct requester *r = dc_find_requester(qp->rc->target, from, p->sqpn);

	if (r && r->heard_at && r->life == p->life && r->first == p->first_psn &&
	    r->key == p->dc_key)
		return r;
	if (qp->dc_drained || (r && is_old(r, p)))
		return NULL;
	if (!r)
		r = dc_admit(qp, from, p->sqpn);
	return r && dc_start_requester(qp, r, p) ? r : NULL;
}

/* ---- work ---- */

static void make_ready(struct dc_target *t, struct requester *r)
{
	if (r->ready)
		return;
	r->ready = true;
	r->next_ready = NULL;
	if (t->ready)
		t->ready_tail->next_ready = r;
	else
		t->ready = r;
	t->ready_tail = r;
}

void dc_target_receive(struct hca_qp *qp, const struct wire_dest *from, const struct packet *p,
		       const struct iovec *pl, int npl)
{
	struct requester *r = dc_connection(qp, from, p);

	if (!r) {
		STAT_INC(pkts_dropped);
		return;
	}
	r->heard_at = dp_now();
	rc_resp_request(qp, &r->rs, p, pl, npl);
	if (r->rs.resp_head != r->rs.resp_tail)
		make_ready(qp->rc->target, r);
}

/* Each that has answers gets a turn. */
bool dc_target_run(struct hca_qp *qp, unsigned budget)
{
	struct dc_target *t = qp->rc->target;
	struct requester *last = t->ready ? t->ready_tail : NULL, *r = NULL;

	while (t->ready && budget && r != last) {
		unsigned room, left;

		r = t->ready;
		t->ready = r->next_ready;
		r->ready = false;
		room = left = wire_room_to(&r->rs.dest, qp->mtu, budget);
		/* It may also be that what an answer tells of has not arrived: rc_placing(). */
		if (rc_resp_run(qp, &r->rs, &left) || r->rs.resp_head != r->rs.resp_tail)
			make_ready(t, r);
		budget -= room - left;
	}
	return t->ready != NULL;
}
