/* SPDX-License-Identifier: BSD-3-Clause */
/* Rounds of the engine in threads of the program that poll an empty completion queue
 * (SOFTHCA_INLINE=1), and when the engine's own thread leaves the rounds to them. */
#ifndef SOFTHCA_POLL_ROUND_H
#define SOFTHCA_POLL_ROUND_H

#include <stdbool.h>
#include <stdint.h>

struct hca_ctx;

/* ---- the program's threads, without hca_lock ---- */

/* A round, if one may be run here and now. True: there was something to do. */
bool poll_round(void);
/* From now on, for good, the engine's thread alone: memory of GPUs, a child of fork. */
void poll_forbid(void);

/* ---- the engine's thread ---- */

void poll_start(void); /* hca_lock held, before the thread is there */
/* Without hca_lock: how long to leave the rounds to those who poll; 0: not at all. */
uint64_t poll_leave(void);
/* Somebody who polls does not get the lock. */
bool poll_wanted(void);
/* After each round: how much there was to do. */
void poll_found(unsigned work);

/* ---- poll_hook.c ---- */

/* A completion queue is made, hca_lock held: polls of this context run rounds from now on.
 * handle: what libibverbs calls it by. */
void poll_adopt(struct hca_ctx *ctx, uint64_t handle);

#endif
