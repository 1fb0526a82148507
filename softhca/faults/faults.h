/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on request (SOFTHCA_FAULTS). faults_parse.c reads the schedule,
 * faults.c answers what the data path and the control half ask of it,
 * faults_link.c moves the port down and up, faults_peer.c knows which process
 * is which rank. docs/softhca.md has the language.
 *
 * All but faults_check is called with hca_lock held. */
#ifndef SOFTHCA_FAULTS_H
#define SOFTHCA_FAULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_qp;

/* Is the text a schedule? 0, or -EINVAL and in err the place and what may stand there. */
int faults_check(const char *text, char *err, size_t n);

/* Reads SOFTHCA_FAULTS and PMIX_RANK; 0 or -EINVAL with the reason in err. */
int faults_start(uint64_t now, char *err, size_t n);

/* The slot is known; the engine is about to start. */
void faults_wire_ready(uint32_t slot);

extern bool faults_on; /* there is a schedule; set before the engine starts */

/* ---- packets ---- */

/* What becomes of a packet about to be sent. */
struct fault_fate {
	bool drop, dup, corrupt;
	uint64_t until; /* held back up to this time, 0: not */
	uint32_t after; /* or until so many later packets of the QP have gone, 0: only the time */
	uint32_t bit;	/* corrupt: this one changes, modulo the packet's length */
};

void faults_tx(const struct hca_qp *qp, uint64_t now, struct fault_fate *fate);
bool faults_rx_drop(const struct hca_qp *qp, uint64_t now);

/* ---- work requests ---- */

/* The QP becomes ready to send: its WQEs are counted from here. */
void faults_qp_ready(const struct hca_qp *qp);
/* May the QP pick up another WQE now? If not it is activated when it may. */
bool faults_may_pick(const struct hca_qp *qp, uint64_t now);
/* A WQE is picked up. True when it shall end in the given error instead of being executed. */
bool faults_wqe(const struct hca_qp *qp, uint64_t now, unsigned blocks, uint64_t bytes,
		uint8_t *syndrome, uint8_t *vendor);
/* May the oldest WQE, which is done, be completed now? If not the QP is activated when it may. */
bool faults_may_complete(const struct hca_qp *qp, uint64_t now);
/* The doorbell says that everything before block pi is posted. True: it is believed later. */
bool faults_doorbell_late(const struct hca_qp *qp, uint64_t now, uint16_t pi);

/* ---- counters ---- */

enum fault_counter { FAULT_FIRST_WQE, FAULT_FIRST_CQE, FAULT_FIRST_PSN };
/* The counter's first value: what the process's settings say, else `unset`. */
uint32_t faults_first(enum fault_counter of, uint32_t unset);

/* ---- control half ---- */

enum fault_object { FAULT_PD, FAULT_MR, FAULT_UMEM, FAULT_CQ, FAULT_QP, FAULT_SRQ, FAULT_AH,
		    FAULT_UAR, FAULT_OBJECTS };

/* An object is asked for: true when it is refused. */
bool faults_refuse(enum fault_object what);

/* ---- time ---- */

/* Wakes QPs whose time has come, moves the link; the engine's timer round. */
void faults_timer(uint64_t now);
bool faults_link_down(void);
bool faults_gids_shuffled(void); /* each entry of the table is one further on */

#endif
