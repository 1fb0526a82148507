/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode: judges what the program posts by what hardware demands of it.
 * The data half calls in here where it looks at a doorbell, picks a WQE up and
 * completes it; nothing here changes what it then does. Everything needs
 * hca_lock. Callers ask strict_on first.
 *
 * Only what no legal order of the program's stores explains is reported. Where
 * the program is between two stores (record, then doorbell), strict waits
 * STRICT_SETTLE_NS for the second one, on a clock that stands still while the
 * process is stopped. */
#ifndef SOFTHCA_STRICT_H
#define SOFTHCA_STRICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_cq;
struct hca_qp;
struct wqe;
struct wqe_sge;
struct hca_srq;

#define STRICT_SETTLE_NS 1000000000ull

enum strict_rule {
#define RULE(id, name, text, see) RULE_##id,
#include "softhca/strict/strict_rules.def"
#undef RULE
	RULE_COUNT
};

extern bool strict_on;

/* Reads SOFTHCA_STRICT. */
void strict_start(void);
/* Once per engine round. */
void strict_tick(uint64_t now);

/* Life of a queue pair. Modified: its state was `from`. */
void strict_qp_create(struct hca_qp *qp);
void strict_qp_modified(struct hca_qp *qp, int from);
void strict_qp_destroy(struct hca_qp *qp);
/* Its path was set by a mailbox; mac: what the GID's is. */
void strict_path(struct hca_qp *qp, const uint8_t mac[6]);

/* Takes note of what stands in the registers of the UAR page; judges new values. */
void strict_bell_poll(uint32_t page);
/* The engine looks at the doorbell record. */
void strict_look(struct hca_qp *qp);
/* The WQE at sq_ci, n bytes at buf as fetched; why: the device refuses it, else NULL. decoded may be
 * NULL for one of a single block. */
void strict_fetch(struct hca_qp *qp, const uint8_t *buf, size_t n, const struct wqe *decoded,
		    const char *why);
/* Before the CQE, if there is one, of the WQE at this index. */
void strict_completed(struct hca_qp *qp, uint16_t index, unsigned blocks, bool cqe);
/* The responder refused this remote key or address. */
void strict_remote_access(struct hca_qp *qp, uint16_t index, uint64_t raddr, uint32_t rkey);
/* A CQ with oi 0 has no room for a CQE; consumed: as its doorbell record says. */
void strict_cq_full(struct hca_cq *cq, uint32_t consumed);

/* Receive queues, the QP's own or its SRQ. Look: at the record; taken: a message goes into the
 * entry with this index, as the CQE will say it; completed: before that CQE. */
void strict_recv_look(struct hca_qp *qp);
void strict_recv_taken(struct hca_qp *qp, uint16_t index);
void strict_recv_completed(struct hca_qp *qp, uint16_t index);
void strict_srq_destroy(struct hca_srq *srq);

/* Short data would go into the completion, but this piece is not where its address says. */
void strict_cqe_data(const struct hca_qp *qp, const struct wqe_sge *sge);

/* A firmware command breaks the rule. */
void strict_command(enum strict_rule rule, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What can still be judged when the process ends; true when something looks
 * wrong that may be on its way: ask again a little later, with last set. */
bool strict_finish(bool last);
/* Writes the counts by kind; the number of errors. */
unsigned long strict_summary(void);

#endif
