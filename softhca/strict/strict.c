/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode: switch, clock, life of the state of each queue pair (strict.h). */
#include "softhca/strict/strict.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "softhca/memory/guest.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/strict/strict_impl.h"

bool strict_on;
struct strict_qp *strict_qps;

static uint64_t clock_ns, last_ns;

void strict_start(void)
{
	strict_on = hca_options()->strict != 0;
}

/* Counts time in which the engine ran: a process that was stopped, or a machine
 * that stood still, has had no chance to make its next store. */
void strict_tick(uint64_t now)
{
	uint64_t step = now - last_ns;

	last_ns = now;
	clock_ns += step < 20000000 ? step : 20000000;
}

uint64_t strict_clock(void)
{
	return clock_ns;
}

void strict_qp_create(struct hca_qp *qp)
{
	struct strict_qp *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->qp = qp;
	if (strict_ring_create(s)) {
		hca_warn("strict: no memory, QP 0x%x is not checked", qp->qpn);
		strict_ring_destroy(s);
		free(s);
		return;
	}
	strict_bell_create(s);
	strict_bell_reset(s);
	s->next = strict_qps;
	strict_qps = s;
	qp->strict = s;
}

/* At the end of a queue's life the memory of its record may be gone. */
static bool record_readable(const struct hca_qp *qp)
{
	uint32_t word;
	struct iovec to = {&word, 4}, from = {qp->dbrec ? qp->dbrec + 1 : NULL, 4};

	return qp->dbrec && process_vm_readv(getpid(), &to, 1, &from, 1, 0) == 4;
}

/* What can be said when the queue posts no more. */
static bool strict_end_of(struct strict_qp *s, bool dry)
{
	struct hca_qp *qp = s->qp;
	bool bad;

	strict_bell_poll(qp->uar_page);
	if (qp->state != HCA_QPS_RTS || !record_readable(qp))
		return false;
	strict_look(qp);
	bad = strict_bell_judge(s, dry);
	if (!dry)
		strict_ring_settled(s, true);
	/* Or the engine has not come to look yet. */
	return bad || (uint16_t)s->rec != qp->sq_ci;
}

void strict_qp_modified(struct hca_qp *qp, int from)
{
	struct strict_qp *s = qp->strict;
	enum hca_qp_state to = qp->state;

	if (!s || to == (enum hca_qp_state)from)
		return;
	/* Doorbells rung before the transition belong to the state before it. */
	qp->state = (enum hca_qp_state)from;
	if (from == HCA_QPS_RTS)
		strict_end_of(s, false);
	else
		strict_bell_poll(qp->uar_page);
	qp->state = to;
	if (from == HCA_QPS_SQER)
		return; /* to RTS: it goes on where it stopped */
	if (to == HCA_QPS_RST || to == HCA_QPS_RTS) {
		strict_ring_reset(s);
		strict_bell_reset(s);
	}
	if (to == HCA_QPS_RTS)
		strict_bell_ready(s);
	if (to == HCA_QPS_RST)
		strict_recv_reset(s);
	if (from == HCA_QPS_RST)
		strict_recv_ready(s);
}

/* Packets here go by the GID alone, and would arrive. */
void strict_path(struct hca_qp *qp, const uint8_t mac[6])
{
	const uint8_t *m = qp->path.dmac;
	struct strict_at at = {.qp = qp};

	if (memcmp(m, mac, 6))
		strict_report(RULE_PATH_MAC, &at,
			      "the path's is %02x:%02x:%02x:%02x:%02x:%02x, the GID's %02x:%02x:%02x:%02x:%02x:%02x",
			      m[0], m[1], m[2], m[3], m[4], m[5], mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

void strict_qp_destroy(struct hca_qp *qp)
{
	struct strict_qp *s = qp->strict, **at = &strict_qps;

	if (!s)
		return;
	strict_end_of(s, false);
	while (*at && *at != s)
		at = &(*at)->next;
	if (*at)
		*at = s->next;
	strict_bell_destroy(s);
	strict_ring_destroy(s);
	strict_recv_free(s->recv);
	free(s);
	qp->strict = NULL;
}

void strict_remote_access(struct hca_qp *qp, uint16_t index, uint64_t raddr, uint32_t rkey)
{
	uint32_t key = __builtin_bswap32(rkey);
	struct strict_at at = {.qp = qp, .has_index = true, .index = index};

	/* Keys count up from small numbers; addresses of programs have 47 bits. */
	if (hca_find_mr(key) || (!(key >> 24) && rkey >> 24))
		strict_report(RULE_ENDIAN, &at,
			      "the peer refused rkey 0x%x: it looks like 0x%x with its bytes swapped",
			      rkey, key);
	else if (raddr >> 47 && !(__builtin_bswap64(raddr) >> 47))
		strict_report(RULE_ENDIAN, &at,
			      "the peer refused address 0x%llx: its bytes look swapped",
			      (unsigned long long)raddr);
}

void strict_cq_full(struct hca_cq *cq, uint32_t consumed)
{
	struct strict_at at = {.cq = cq};
	uint32_t size = 1u << cq->log_size;
	int32_t waiting = (int32_t)((cq->pi - consumed) << 8) >> 8;

	if (waiting < 0)
		strict_report(RULE_CQ_CONSUMER, &at,
			      "the doorbell record says %u, but only %u CQEs have been written",
			      consumed, cq->pi & 0xffffff);
	else
		strict_report(RULE_CQ_OVERRUN, &at, "%d of %u entries are not consumed (index %u)",
			      waiting, size, consumed);
}

bool strict_finish(bool last)
{
	bool bad = false;

	for (struct strict_qp *s = strict_qps; s; s = s->next)
		bad |= strict_end_of(s, !last);
	return bad;
}
