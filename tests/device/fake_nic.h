/* SPDX-License-Identifier: BSD-3-Clause */
/* A NIC in memory: a thread that watches doorbells and executes work queue
 * entries against the heaps of PEs that exist only as memory. Its decoder shares
 * no code with the headers under test: it reads bytes as the PRM lays them out.
 * PE 0 is the one that runs the device code. */
#ifndef TESTS_DEVICE_FAKE_NIC_H
#define TESTS_DEVICE_FAKE_NIC_H

#include <pthread.h>
#include <stdint.h>

#include <gdr.h>

#define FAKE_HEAP (1u << 20)
#define FAKE_USER GDRI_CTL_SIZE /* first byte that tests use */

struct fake_qp {
	struct gdri_qp *qp;
	uint64_t next;	/* next block to execute */
	uint64_t n_cqe; /* CQEs written */
	int failed;
	struct fake_late *late; /* an atomic whose effect is still to come */
	/* fault: the WQE at this block index completes with error (0: none) */
	uint64_t fail_at;
	uint8_t fail_syndrome, fail_vendor;
};

struct fake_options {
	int n_pes;
	uint32_t n_slots, depth;
	int ring;
	uint64_t start;	  /* all counters begin here */
	int mapped;	  /* PEs are mapped as well */
	uint32_t flags;	  /* gdri_dev.flags */
	uint64_t timeout_ms;
	unsigned slow_us; /* random delay per WQE, up to */
	unsigned each_us; /* delay of each WQE */
	int buffer;	  /* register fake.buffer */
	/* Atomics take effect after the WRITE behind them, unless that one has the fence bit: as
	 * IBTA volume 1, 10.8.3.3 allows. */
	int late_atomics;
};

struct fake {
	struct fake_options opt;
	struct gdri_dev *dev;
	uint8_t **heap; /* [n_pes] */
	struct fake_qp *qps;
	uint8_t *buffer; /* 64 KiB outside the heap */
	pthread_t thread;
	int stop;
	int hold;	 /* 1: executes nothing */
	uint64_t n_idle; /* rounds that found nothing to do */
	uint64_t n_wqe;	 /* executed, without error */
	uint64_t n_bad;	 /* blocks fetched before they were written, records behind doorbells */
	uint64_t n_rings; /* doorbells seen that moved a queue */
	unsigned rng;
};

/* Sets gdri_dev_state. */
struct fake *fake_start(const struct fake_options *opt);
void fake_stop(struct fake *f);
void fake_hold(struct fake *f, int hold);
/* Returns when a NIC that is not held has carried out what was rung. */
void fake_settle(struct fake *f);

static inline struct fake_qp *fake_qp_to(struct fake *f, int pe)
{
	return &f->qps[(unsigned)pe * f->opt.n_slots];
}

/* Called in each pause of a wait, between its look at the condition and that at all else, and in front of each look at
 * the clock; NULL: nothing is. */
extern void (*fake_on_pause)(unsigned round);
extern void (*fake_on_clock)(void);
/* The clock goes on by at least and at most so many ns from one look at it to the next, of whatever threads: how long
 * they have no core ends nothing. Most 0: it is the machine's. */
extern uint64_t fake_clock_least, fake_clock_most;

/* Symmetric address in PE 0's heap, and the same object of another PE. */
static inline void *fake_sym(struct fake *f, uint64_t off)
{
	return f->heap[0] + FAKE_USER + off;
}

static inline void *fake_at(struct fake *f, int pe, uint64_t off)
{
	return f->heap[pe] + FAKE_USER + off;
}

#endif
