/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of strict mode share: strict.c (life), strict_wqe.c (a work
 * request by itself), strict_ring.c (its place), strict_bell.c (doorbells and
 * records), strict_recv.c (receive queues), strict_report.c. */
#ifndef SOFTHCA_STRICT_IMPL_H
#define SOFTHCA_STRICT_IMPL_H

#include "softhca/engine/dp.h"
#include "softhca/strict/strict.h"
#include "softhca/transport/wqe.h"

/* ---- report ---- */

/* The place of a mistake. All but the rule's text may be left out (0). */
struct strict_at {
	const struct hca_qp *qp;
	const struct hca_cq *cq;
	const struct hca_srq *srq;
	bool is_recv; /* entry of entries */
	uint32_t entry, entries;
	bool has_index;
	uint16_t index;
	const uint8_t *bytes; /* hex, by 16; at most STRICT_DUMP_MAX */
	size_t n;
	size_t mark; /* offset of the segment to point at; beyond n: none */
};

enum { STRICT_DUMP_MAX = 256, STRICT_NO_MARK = 0xffff, STRICT_REGS = 5 /* of doorbells, in a UAR page */ };

void strict_report(enum strict_rule rule, const struct strict_at *at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
extern unsigned long strict_wqes; /* looked at */

/* ---- state of a queue ---- */

struct strict_slot {
	uint16_t index;	 /* position that was last picked up here */
	uint8_t blocks;	 /* of the WQE that starts here, 0: none does */
	uint8_t off;	 /* this is so many blocks after its start */
	bool seen;	 /* the shadow holds a block */
	bool done;	 /* completed */
};

struct strict_qp {
	struct hca_qp *qp;
	struct strict_qp *next;

	/* strict_ring.c */
	uint8_t *shadow; /* the blocks as they were picked up */
	struct strict_slot *slot;
	uint64_t total;	     /* sq_ci without wrap, see strict_total */
	uint16_t freed;	     /* everything before has been given back by a CQE */
	uint16_t last_start; /* first block of the last WQE picked up */
	bool picked;	     /* any */
	uint32_t unsignalled;
	bool told_overrun;   /* until a CQE comes */

	/* strict_bell.c */
	uint32_t rec;	     /* record as last seen */
	int64_t rec_max;     /* farthest, without wrap */
	uint64_t rec_at;     /* when it, or the doorbell, last changed */
	uint32_t seq_before; /* page's changes before the record's */
	uint32_t seq_look;
	bool judged, bell_seen, strange_page;
	bool bell_is_pi;     /* its doorbells carry the producer index, not that of the last WQE */
	int64_t bell;	     /* farthest index rung, without wrap */
	int64_t rung[STRICT_REGS]; /* and in each register, where there is no record */

	struct strict_recv *recv; /* strict_recv.c, of its own receive ring */
};

extern struct strict_qp *strict_qps;
uint64_t strict_clock(void);

static inline uint32_t strict_ring_blocks(const struct hca_qp *qp)
{
	return 1u << qp->log_sq_size;
}

/* sq_ci, counted since the queue became ready; all of this file's callers come often
 * enough for 16 bits. */
static inline uint64_t strict_total(struct strict_qp *s)
{
	s->total += (uint16_t)(s->qp->sq_ci - (uint16_t)s->total);
	return s->total;
}

/* An index near sq_ci, without wrap; one of before the start is below 0. At 2^15 from sq_ci it is ahead: the largest
 * ring is full. */
static inline int64_t strict_unwrap(struct strict_qp *s, uint16_t index)
{
	uint64_t total = strict_total(s);

	return (int64_t)total + 1 + (int16_t)(index - 1 - (uint16_t)total);
}

/* ---- strict_wqe.c ---- */

/* Reports what is wrong with the WQE itself; true if something is. */
bool strict_check_wqe(struct hca_qp *qp, const struct strict_at *at, const uint8_t *buf, size_t n);

/* One data segment, off bytes into what `at` shows; into: local memory is written. */
bool strict_check_segment(uint32_t pdn, const struct strict_at *at, const uint8_t *seg, size_t off,
			  bool into);

/* ---- strict_recv.c ---- */

void strict_recv_ready(struct strict_qp *s);
void strict_recv_reset(struct strict_qp *s);
void strict_recv_free(struct strict_recv *r);

/* ---- strict_ring.c ---- */

int strict_ring_create(struct strict_qp *s);
void strict_ring_reset(struct strict_qp *s);
void strict_ring_destroy(struct strict_qp *s);
/* The program may have posted up to pi (exclusive). */
void strict_ring_producer(struct strict_qp *s, uint16_t pi, const char *source);
/* Blocks that changed after their doorbell; with end: WQEs that nothing posted. */
void strict_ring_settled(struct strict_qp *s, bool end);

/* ---- strict_bell.c ---- */

void strict_bell_create(struct strict_qp *s);
void strict_bell_reset(struct strict_qp *s);
void strict_bell_destroy(struct strict_qp *s);
void strict_bell_ready(struct strict_qp *s);
/* Record and doorbell against each other, when nothing moves any more: true if they do
 * not fit, which dry keeps from being reported. */
bool strict_bell_judge(struct strict_qp *s, bool dry);

#endif
