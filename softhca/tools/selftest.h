/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca --selftest: a program on the device like any other, which knows
 * nothing of softhca but how its fabric reaches other processes. */
#ifndef SOFTHCA_SELFTEST_H
#define SOFTHCA_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum { ST_HALF = 65536, ST_SIZE = 2 * ST_HALF };

/* A queue pair with its memory: the first half is the source, the second the target. */
struct st_end {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
};

struct st_address { /* what the other side has to know */
	uint32_t qpn, psn, rkey;
	uint64_t mem;
	union ibv_gid gid;
	uint16_t lid;
};

/* One line of the report; counts what failed. */
void st_report(bool ok, const char *what, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void st_note(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* false: errno is set, *what says at which call. */
bool st_open(struct st_end *e, struct ibv_context *ctx, struct ibv_pd *pd, const char **what);
bool st_address(const struct st_end *e, struct st_address *a);
bool st_connect(struct st_end *e, const struct st_address *self, const struct st_address *peer);
/* Posts, waits at most 5 s; a verbs completion status, or -1. */
int st_do(struct st_end *e, enum ibv_wr_opcode op, uint32_t len, const struct st_address *peer,
	  uint64_t a, uint64_t b);
const char *st_status(int status);

/* ---- selftest_peer.c: a second process ---- */

/* Before anything is opened: starts the process that will be the peer. */
bool st_peer_start(void);
void st_peer_test(struct st_end *e);
int st_peer_stop(void);

#endif
