/* SPDX-License-Identifier: BSD-3-Clause */
/* What two processes do to each other's memory, drawn from a seed that both know, and the memory of
 * both as it has to look afterwards. Each direction of each queue pair has a slice of its own on
 * both sides, so the order of operations of different queue pairs does not matter. */
#ifndef CLIENTS_PLAN_H
#define CLIENTS_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_SGES 8u
#define PLAN_QPS 256u

enum plan_kind {
	PLAN_WRITE,
	PLAN_WRITE_IMM,
	PLAN_SEND,
	PLAN_SEND_IMM,
	PLAN_READ,
	PLAN_ADD,
	PLAN_SWAP,
	PLAN_KINDS
};

struct config {
	bool unreliable;  /* UC: no reads, no atomics */
	bool dynamic;	  /* DC, by new_api, with srq */
	bool events;	  /* sleep on a completion channel */
	bool new_api;	  /* ibv_wr_*, else ibv_post_send */
	bool srq;	  /* receives of all queue pairs from one shared queue */
	bool late;	  /* receives are posted while messages arrive */
	bool file;	  /* memory of a file, which other processes can map */
	bool broken;	  /* a byte is changed before each comparison */
	unsigned qps, rounds, ops, size, sges, depth, inline_size, list, mtu, gid;
	uint64_t seed;
	const char *port, *host;
};

struct piece {
	uint32_t at, length; /* offset in the process's memory */
};

struct pieces {
	struct piece p[PLAN_SGES];
	unsigned n;
};

struct op {
	enum plan_kind kind;
	unsigned qp, local_key, remote_key;
	struct pieces local;   /* the actor's */
	struct pieces receive; /* the target's, for sends */
	uint32_t length, remote, imm;
	uint64_t operand, compare;
	bool signalled, inlined, fence;
	uint8_t *payload; /* what a send carries, where it lands in a shared slot */
};

/* One round of one direction: what `from` does. */
struct plan {
	struct op *op;
	unsigned n;
};

struct memory {
	uint8_t *side[2]; /* 0: server, 1: client */
	size_t size;
};

/* Splitmix64: small, the same everywhere. */
uint64_t draw(uint64_t *state);
uint32_t draw_below(uint64_t *state, uint32_t n);

size_t plan_memory(const struct config *c);
bool plan_sends(enum plan_kind kind);	 /* a receive's buffer is filled */
bool plan_receives(enum plan_kind kind); /* a receive is consumed */

/* Draws the round of side `from` and applies it to the model. */
void plan_make(struct plan *plan, const struct config *c, uint64_t *state, int from,
	       struct memory *model);
void plan_free(struct plan *plan);

#endif
