/* SPDX-License-Identifier: BSD-3-Clause */
/* A schedule as the parser leaves it: clauses in the order of the text. */
#ifndef SOFTHCA_FAULTS_PLAN_H
#define SOFTHCA_FAULTS_PLAN_H

#include <netinet/in.h>

#include "softhca/faults/faults.h"

enum { FAULT_MAX_CLAUSES = 64, FAULT_ANY_QP = 1 << 24 };

enum fault_kind { FAULT_SETTINGS, FAULT_MUTE, FAULT_LINK, FAULT_GIDS, FAULT_ERROR, FAULT_REFUSE };

/* Probabilities are kept as 53-bit fractions, times as ns, rates as bytes per second. */
#define FAULT_ONE (1ull << 53)

enum fault_setting {
	SET_DROP,
	SET_DUP,
	SET_REORDER,
	SET_REORDER_DEPTH,
	SET_CORRUPT,
	SET_DELAY,
	SET_SLOW,
	SET_RATE,
	SET_DOORBELL,
	SET_CQE,
	SET_FIRST_WQE,
	SET_FIRST_CQE,
	SET_FIRST_PSN,
	SET_SEED,
	SETTINGS,
};

enum fault_peer { PEER_ANY, PEER_RANK, PEER_ADDRESS };

struct fault_clause {
	enum fault_kind kind;
	/* selection */
	bool of_qp;
	uint32_t qpn; /* or FAULT_ANY_QP */
	enum fault_peer of_peer;
	uint32_t rank;
	struct in6_addr addr;
	/* window; a WQE index counts the QP's, without a QP all of the process */
	bool at_time, at_wqe;
	uint64_t at, lasts; /* lasts 0: for ever */
	/* FAULT_SETTINGS */
	uint32_t set; /* 1 << enum fault_setting */
	uint64_t value[SETTINGS];
	/* FAULT_ERROR */
	uint64_t wqe;
	uint8_t syndrome, vendor;
	/* FAULT_REFUSE: the n-th, counted from 1, or all after the n-th */
	enum fault_object object;
	bool after;
	uint64_t n;
};

struct fault_plan {
	struct fault_clause clause[FAULT_MAX_CLAUSES];
	unsigned n;
};

/* Clauses for other ranks are checked and left out. rank: NULL when there is none. */
int faults_parse(const char *text, const uint32_t *rank, struct fault_plan *out, char *err,
		 size_t n);

/* ---- faults.c for its companions and its tests ---- */

/* faults_start with a schedule and a rank that are given. */
int faults_start_with(const char *text, const uint32_t *rank, uint64_t now, char *err, size_t n);

/* Is the clause in force? Only for clauses that select no QP. */
bool faults_in_force(unsigned clause, uint64_t now);
/* When it begins, or began; 0: not known yet. */
uint64_t faults_begins(unsigned clause);
extern struct fault_plan faults_plan;

/* ---- faults_link.c ---- */

void faults_link_timer(uint64_t now);

/* ---- faults_peer.c ---- */

void faults_peer_publish(uint32_t slot, uint32_t rank);
/* The rank of the process that has the slot of this host, -1 when it is not known. */
int64_t faults_peer_rank(uint32_t slot);

#endif
