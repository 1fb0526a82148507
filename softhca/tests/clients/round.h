/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of verbs_data: both sides carry out their plans at the same time. */
#ifndef CLIENTS_ROUND_H
#define CLIENTS_ROUND_H

#include "peer.h"

/* The operations of one plan by queue pair, in order. */
struct lane {
	unsigned *index, n; /* operations of this queue pair */
	unsigned posted, done;
};

struct round {
	struct peer *peer;
	struct plan plan[2];
	struct lane *send;     /* mine, by queue pair */
	struct lane *receive;  /* the other side's that consume a receive */
	unsigned sends_left, receives_left, slots;
	uint64_t state; /* this process's own random numbers */
	double heard;	/* when something last completed */
};

int round_begin(struct round *r, struct peer *p, struct memory *model, uint64_t *state);
int round_run(struct round *r);
void round_end(struct round *r);

/* completion.c: polls both queues, sleeps for an event where those are asked for, and checks what
 * comes. Nonzero: a wrong completion, or none for too long. */
int round_complete(struct round *r, bool idle);
double now(void);

#endif
