/* SPDX-License-Identifier: BSD-3-Clause */
/* The schedule at work: what the data path and the control half ask of it.
 *
 * Random decisions of a QP come from a generator of its own, seeded by the
 * schedule's seed, the rank and the QP's number in the process: the n-th
 * decision of a QP is the same in each run, whatever the other QPs do. */
#include "softhca/faults/faults.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/engine/dp.h"
#include "softhca/faults/faults_plan.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/transport/rc.h"

enum { REORDER_NS = 200000, MAX_QPS = 1 << 14, CQE_BURST = 8 };

/* What is remembered of a QP, by its number; outlives the QP. */
struct fault_qp {
	uint64_t draws, picked; /* random numbers drawn; WQE blocks picked up */
	uint64_t busy_until, complete_at, doorbell_at, wake;
	uint64_t begun[FAULT_MAX_CLAUSES]; /* when the QP reached the clause's WQE, 0: not yet */
	int64_t peer; /* its rank, -1 */
	unsigned may_complete;
	uint16_t doorbell_pi;
};

bool faults_on;
struct fault_plan faults_plan;
static struct fault_plan *const plan = &faults_plan;
static uint64_t start_ns, seed, nic_busy, picked_all, last_picked;
static uint64_t begun[FAULT_MAX_CLAUSES]; /* as in fault_qp, for clauses of the whole process */
static uint64_t asked[FAULT_OBJECTS];
static struct fault_qp *by_index[MAX_QPS], *no_qp;
static uint32_t known[MAX_QPS]; /* indices in by_index */
static unsigned n_known;

static bool own_rank(uint32_t *rank)
{
	const char *text = getenv("PMIX_RANK");
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return false;
	*rank = (uint32_t)strtoul(text, &end, 10);
	return !*end;
}

/* The clause that sets it for the whole process, the last one counts. */
static uint64_t process_setting(enum fault_setting what, uint64_t unset)
{
	for (unsigned i = plan->n; i--;)
		if (plan->clause[i].kind == FAULT_SETTINGS && plan->clause[i].set & 1u << what)
			return plan->clause[i].value[what];
	return unset;
}

int faults_start(uint64_t now, char *err, size_t n)
{
	const char *text = hca_options()->faults;
	uint32_t rank = 0;
	bool have_rank = own_rank(&rank);

	return text ? faults_start_with(text, have_rank ? &rank : NULL, now, err, n) : 0;
}

static void faults_forget(void)
{
	while (n_known) {
		free(by_index[known[--n_known]]);
		by_index[known[n_known]] = NULL;
	}
	memset(begun, 0, sizeof(begun));
	memset(asked, 0, sizeof(asked));
	nic_busy = picked_all = last_picked = 0;
	faults_on = false;
}

int faults_start_with(const char *text, const uint32_t *rank, uint64_t now, char *err, size_t n)
{
	faults_forget();
	if (faults_parse(text, rank, plan, err, n))
		return -EINVAL;
	if (!no_qp)
		no_qp = calloc(1, sizeof(*no_qp));
	if (!no_qp)
		return -ENOMEM;
	seed = process_setting(SET_SEED, 1) * 0x9e3779b97f4a7c15ull + (rank ? *rank : 0);
	start_ns = now;
	faults_on = plan->n != 0;
	engine_deadline(now); /* of link clauses, see faults_link_timer */
	return 0;
}

void faults_wire_ready(uint32_t slot)
{
	uint32_t rank;

	/* A schedule that has nothing for this process may have its rank as a peer. */
	if (hca_options()->faults && own_rank(&rank))
		faults_peer_publish(slot, rank);
}

/* ---- QPs ---- */

static uint32_t faults_index_of(const struct hca_qp *qp)
{
	return (qp->qpn - dp_first_qpn()) % MAX_QPS;
}

/* Out of memory all such QPs share one state: faults, only less exact. */
static struct fault_qp *faults_state_of(const struct hca_qp *qp)
{
	uint32_t i = faults_index_of(qp);
	struct fault_qp *f = by_index[i];

	if (f)
		return f;
	f = calloc(1, sizeof(*f));
	if (!f)
		return no_qp;
	f->peer = -1;
	by_index[i] = f;
	known[n_known++] = i;
	return f;
}

void faults_qp_ready(const struct hca_qp *qp)
{
	struct fault_qp *f = faults_state_of(qp);
	uint64_t draws = f->draws;

	memset(f, 0, sizeof(*f));
	f->draws = draws;
	f->peer = -1;
	if (qp->rc && (qp->rc->dest.kind == WIRE_LOCAL || qp->rc->dest.kind == WIRE_HOST))
		f->peer = faults_peer_rank(qp->dest_qpn / dp_qpn_count());
}

static bool faults_selects(const struct fault_clause *c, const struct hca_qp *qp, const struct fault_qp *f)
{
	if (c->of_qp && c->qpn != FAULT_ANY_QP && c->qpn != qp->qpn)
		return false;
	switch (c->of_peer) {
	case PEER_RANK:
		return f->peer == c->rank;
	case PEER_ADDRESS:
		return !memcmp(&qp->path.dgid, &c->addr, sizeof(c->addr));
	case PEER_ANY:
		break;
	}
	return true;
}

/* When the clause begins, or began; 0: not known yet. */
static uint64_t faults_clause_begins(unsigned i, const struct fault_qp *f)
{
	const struct fault_clause *c = &plan->clause[i];

	if (c->at_wqe)
		return c->of_qp ? f->begun[i] : begun[i];
	return start_ns + (c->at_time ? c->at : 0);
}

static bool in_force(unsigned i, const struct fault_qp *f, uint64_t now)
{
	uint64_t from = faults_clause_begins(i, f), lasts = plan->clause[i].lasts;

	return from && now >= from && (!lasts || now - from < lasts);
}

bool faults_in_force(unsigned clause, uint64_t now)
{
	return in_force(clause, no_qp, now);
}

uint64_t faults_begins(unsigned clause)
{
	return faults_clause_begins(clause, no_qp);
}

/* The last clause that selects the QP now and names the setting. */
static const struct fault_clause *faults_setting_of(enum fault_setting what, const struct hca_qp *qp,
						    const struct fault_qp *f, uint64_t now)
{
	for (unsigned i = plan->n; i--;) {
		const struct fault_clause *c = &plan->clause[i];

		if (c->kind == FAULT_SETTINGS && c->set & 1u << what && faults_selects(c, qp, f) &&
		    in_force(i, f, now))
			return c;
	}
	return NULL;
}

static uint64_t faults_value_of(enum fault_setting what, const struct hca_qp *qp, const struct fault_qp *f,
				uint64_t now)
{
	const struct fault_clause *c = faults_setting_of(what, qp, f, now);

	return c ? c->value[what] : 0;
}

/* ---- chance ---- */

/* splitmix64 (public domain algorithm), of 53 bits. */
static uint64_t faults_draw(const struct hca_qp *qp, struct fault_qp *f)
{
	uint64_t z = seed + (uint64_t)(faults_index_of(qp) + 1) * 0xd1342543de82ef95ull +
		     ++f->draws * 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return (z ^ z >> 31) >> 11;
}

static bool faults_chance(enum fault_setting what, const struct hca_qp *qp, struct fault_qp *f,
			  uint64_t now)
{
	uint64_t p = faults_value_of(what, qp, f, now);

	return p && faults_draw(qp, f) < p;
}

/* ---- packets ---- */

static bool cut_off(const struct hca_qp *qp, const struct fault_qp *f, uint64_t now)
{
	for (unsigned i = 0; i < plan->n; i++) {
		const struct fault_clause *c = &plan->clause[i];

		if ((c->kind == FAULT_MUTE || c->kind == FAULT_LINK) && faults_selects(c, qp, f) &&
		    in_force(i, f, now))
			return true;
	}
	return false;
}

void faults_tx(const struct hca_qp *qp, uint64_t now, struct fault_fate *fate)
{
	struct fault_qp *f = faults_state_of(qp);
	uint64_t delay, depth;

	memset(fate, 0, sizeof(*fate));
	fate->drop = cut_off(qp, f, now) || faults_chance(SET_DROP, qp, f, now);
	if (fate->drop)
		return;
	fate->corrupt = faults_chance(SET_CORRUPT, qp, f, now);
	if (fate->corrupt) {
		fate->bit = (uint32_t)faults_draw(qp, f);
		return;
	}
	fate->dup = faults_chance(SET_DUP, qp, f, now);
	delay = faults_value_of(SET_DELAY, qp, f, now);
	depth = faults_value_of(SET_REORDER_DEPTH, qp, f, now);
	if (depth)
		fate->after = (uint32_t)(faults_draw(qp, f) % depth);
	if (fate->after || faults_chance(SET_REORDER, qp, f, now))
		delay += REORDER_NS;
	fate->until = delay ? now + delay : 0;
}

bool faults_rx_drop(const struct hca_qp *qp, uint64_t now)
{
	return cut_off(qp, faults_state_of(qp), now);
}

/* ---- waiting ---- */

/* The QP is activated at that time. */
static bool faults_later(struct fault_qp *f, uint64_t when)
{
	if (!f->wake || when < f->wake)
		f->wake = when;
	engine_deadline(when);
	return false;
}

/* What was held back, unless the QP has been reset since. */
static void believe_doorbell(struct hca_qp *qp, struct fault_qp *f)
{
	uint16_t d = (uint16_t)(f->doorbell_pi - qp->sq_ci);

	f->doorbell_at = 0;
	if (qp->sq && (qp->state == HCA_QPS_RTS || qp->state == HCA_QPS_ERR) &&
	    d <= 1u << qp->log_sq_size && d > (uint16_t)(qp->sq_pi - qp->sq_ci))
		qp->sq_pi = f->doorbell_pi;
}

static void faults_wake(uint32_t index, uint64_t now)
{
	struct fault_qp *f = by_index[index];
	struct hca_qp *qp;

	if (!f->wake)
		return;
	if (now < f->wake) {
		engine_deadline(f->wake);
		return;
	}
	f->wake = 0;
	qp = engine_find_qp(dp_first_qpn() + index);
	if (!qp)
		return;
	if (f->doorbell_at && now >= f->doorbell_at)
		believe_doorbell(qp, f);
	else if (f->doorbell_at)
		faults_later(f, f->doorbell_at);
	engine_activate(qp);
}

void faults_timer(uint64_t now)
{
	/* Who had the NIC last comes last. */
	for (unsigned i = 0; i < n_known; i++)
		faults_wake(known[(last_picked + 1 + i) % n_known], now);
	faults_link_timer(now);
}

/* ---- work requests ---- */

bool faults_doorbell_late(const struct hca_qp *qp, uint64_t now, uint16_t pi)
{
	struct fault_qp *f = faults_state_of(qp);
	uint64_t delay = faults_value_of(SET_DOORBELL, qp, f, now);

	if (f->doorbell_at && now >= f->doorbell_at) {
		f->doorbell_at = 0;
		return false;
	}
	if (!f->doorbell_at) {
		if (!delay)
			return false;
		f->doorbell_at = now + delay;
		faults_later(f, f->doorbell_at);
	}
	f->doorbell_pi = pi;
	return true;
}

bool faults_may_pick(const struct hca_qp *qp, uint64_t now)
{
	struct fault_qp *f = faults_state_of(qp);
	uint64_t busy = nic_busy > f->busy_until ? nic_busy : f->busy_until;

	return now >= busy || faults_later(f, busy);
}

/* The time that a WQE takes, of its QP or of the NIC, as the clause selects. */
static void faults_charge(const struct fault_clause *c, uint64_t cost, struct fault_qp *f, uint64_t now)
{
	uint64_t *busy = c->of_qp || c->of_peer ? &f->busy_until : &nic_busy;

	*busy = (*busy > now ? *busy : now) + cost;
}

static void take_time(const struct hca_qp *qp, struct fault_qp *f, uint64_t bytes, uint64_t now)
{
	const struct fault_clause *c = faults_setting_of(SET_SLOW, qp, f, now);

	if (c)
		faults_charge(c, c->value[SET_SLOW], f, now);
	c = faults_setting_of(SET_RATE, qp, f, now);
	if (c)
		faults_charge(c, (uint64_t)((double)bytes * 1e9 / (double)c->value[SET_RATE]), f, now);
	for (unsigned i = 0; i < n_known; i++)
		if (known[i] == faults_index_of(qp))
			last_picked = i;
}

/* Clauses that begin with this WQE. */
static void faults_begin(const struct hca_qp *qp, struct fault_qp *f, uint64_t now)
{
	for (unsigned i = 0; i < plan->n; i++) {
		const struct fault_clause *c = &plan->clause[i];
		uint64_t *at;

		if (!c->at_wqe)
			continue;
		at = c->of_qp ? &f->begun[i] : &begun[i];
		if (*at || !faults_selects(c, qp, f) || c->at >= (c->of_qp ? f->picked : picked_all))
			continue;
		*at = now;
		engine_deadline(now); /* the link */
		hca_debug(1, "faults: clause %u begins with WQE %llu of QP 0x%x", i + 1,
			  (unsigned long long)f->picked - 1, qp->qpn);
	}
}

bool faults_wqe(const struct hca_qp *qp, uint64_t now, unsigned blocks, uint64_t bytes,
		uint8_t *syndrome, uint8_t *vendor)
{
	struct fault_qp *f = faults_state_of(qp);
	uint64_t first = f->picked;

	f->picked += blocks;
	picked_all += blocks;
	faults_begin(qp, f, now);
	take_time(qp, f, bytes, now);
	for (unsigned i = 0; i < plan->n; i++) {
		const struct fault_clause *c = &plan->clause[i];

		if (c->kind != FAULT_ERROR || c->wqe < first || c->wqe >= f->picked ||
		    !faults_selects(c, qp, f))
			continue;
		*syndrome = c->syndrome;
		*vendor = c->vendor;
		return true;
	}
	return false;
}

/* Several at a time, so that a queue is late without being slow. */
bool faults_may_complete(const struct hca_qp *qp, uint64_t now)
{
	struct fault_qp *f = faults_state_of(qp);
	uint64_t most = faults_value_of(SET_CQE, qp, f, now);

	if (!most)
		return true;
	if (f->may_complete) {
		f->may_complete--;
		return true;
	}
	if (!f->complete_at)
		f->complete_at = now + faults_draw(qp, f) % (most + 1);
	if (now < f->complete_at)
		return faults_later(f, f->complete_at);
	f->complete_at = 0;
	f->may_complete = (unsigned)(faults_draw(qp, f) % CQE_BURST);
	return true;
}

/* ---- counters ---- */

uint32_t faults_first(enum fault_counter of, uint32_t unset)
{
	static const enum fault_setting setting[] = {
		[FAULT_FIRST_WQE] = SET_FIRST_WQE, [FAULT_FIRST_CQE] = SET_FIRST_CQE, [FAULT_FIRST_PSN] = SET_FIRST_PSN,
	};

	return faults_on ? (uint32_t)process_setting(setting[of], unset) : unset;
}

/* ---- control half ---- */

bool faults_refuse(enum fault_object what)
{
	uint64_t n = ++asked[what];

	for (unsigned i = 0; i < plan->n; i++) {
		const struct fault_clause *c = &plan->clause[i];

		if (c->kind == FAULT_REFUSE && c->object == what &&
		    (c->after ? n > c->n : n == c->n))
			return true;
	}
	return false;
}
