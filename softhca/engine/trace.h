/* SPDX-License-Identifier: BSD-3-Clause */
/* When work requests pass the stages of the device, for who wants to know where time goes:
 * SOFTHCA_TRACE=PATH. Nanoseconds of CLOCK_MONOTONIC, so that processes of a host can be compared. */
#ifndef SOFTHCA_TRACE_H
#define SOFTHCA_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#define TRACE_STAGES(X)                                                                            \
	X(doorbell) /* something new is posted; value: up to where */                              \
	X(fetch)    /* rings and payload of a GPU are asked for; how many reads */                 \
	X(fetched)  /* a part of a ring has arrived */                                             \
	X(picked)   /* a work request has been read; its index */                                  \
	X(received) /* a request packet has been executed; its PSN */                              \
	X(push)     /* writes to a GPU are handed to the driver; how many, */                      \
	X(pushed)   /* its calls have returned */                                                  \
	X(arrived)  /* and their number is seen */                                                 \
	X(answered) /* an answer is sent; its PSN */                                               \
	X(acked)    /* and has come; up to which PSN */                                            \
	X(cqe)      /* an entry of a completion queue is written; its index */

enum trace_stage {
#define TRACE_ENUM(name) TRACE_##name,
	TRACE_STAGES(TRACE_ENUM)
#undef TRACE_ENUM
};

enum { TRACE_KEPT = 1 << 15 };

struct trace_mark {
	uint64_t ns;
	uint32_t stage, qpn, value;
};

extern bool trace_on;
extern struct trace_mark *trace_marks; /* number i, of those kept, at i % TRACE_KEPT */
extern uint64_t trace_count;

void trace_start(void); /* before the engine works */
/* With hca_lock held. */
void trace_put(enum trace_stage stage, uint32_t qpn, uint32_t value);

#define TRACE(stage, qpn, value)                                                                   \
	do {                                                                                       \
		if (__builtin_expect(trace_on, 0))                                                 \
			trace_put(TRACE_##stage, qpn, (uint32_t)(value));                          \
	} while (0)

#endif
