/* SPDX-License-Identifier: BSD-3-Clause */
/* Where polls of a completion queue pass softhca: the table that ibv_poll_cq, an inline function
 * in <infiniband/verbs.h>, calls through. It belongs to the ibv_context, is part of libibverbs's
 * ABI, and goes with the context; so nothing is put back. ibv_start_poll calls through the ibv_cq_ex
 * itself, which libmlx5 fills in before it asks for the queue; it has a function for each
 * combination of flags. */
#include <errno.h>

#include <infiniband/verbs.h>

#include "softhca/driver/control.h"
#include "softhca/engine/poll_round.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"

typedef int (*poll_fn)(struct ibv_cq *cq, int n, struct ibv_wc *wc);

/* The library's. Written before the first table that leads here. */
static poll_fn real_poll;

/* Was it a round that brought the last completion? Then one goes ahead of the next look. Relaxed: a
 * guess, whichever thread makes it. */
static bool round_first;

static void expect_round(bool expected)
{
	if (__atomic_load_n(&round_first, __ATOMIC_RELAXED) != expected) /* see there */
		__atomic_store_n(&round_first, expected, __ATOMIC_RELAXED);
}

/* No lock of softhca or of the library is held here. */
static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int got;

	if (__atomic_load_n(&round_first, __ATOMIC_RELAXED)) { /* see there */
		expect_round(poll_round());
		return real_poll(cq, n, wc);
	}
	got = real_poll(cq, n, wc);
	if (got || !poll_round())
		return got;
	got = real_poll(cq, n, wc);
	expect_round(got > 0);
	return got;
}

/* ---- ibv_start_poll ---- */

typedef int (*start_fn)(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);

enum { STARTS = 16 }; /* functions of the library; queues with others are left as they are */

static start_fn real_start[STARTS];

/* An empty queue is left unlocked. */
static inline int start_poll(start_fn real, struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	int ret = real(cq, attr);

	return ret != ENOENT || !poll_round() ? ret : real(cq, attr);
}

#define START(n)                                                                                   \
	static int start_##n(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)                  \
	{                                                                                          \
		return start_poll(real_start[n], cq, attr);                                        \
	}
START(0) START(1) START(2) START(3) START(4) START(5) START(6) START(7)
START(8) START(9) START(10) START(11) START(12) START(13) START(14) START(15)
#undef START

static const start_fn own_start[STARTS] = {
	start_0, start_1, start_2,  start_3,  start_4,	start_5,  start_6,  start_7,
	start_8, start_9, start_10, start_11, start_12, start_13, start_14, start_15,
};

/* hca_lock held; the queue is not the program's yet. */
static void adopt_queue(struct ibv_cq_ex *cq)
{
	for (unsigned i = 0; cq->start_poll && i < STARTS; i++) {
		if (cq->start_poll == own_start[i])
			return;
		if (real_start[i] && real_start[i] != cq->start_poll)
			continue;
		real_start[i] = cq->start_poll;
		cq->start_poll = own_start[i];
		return;
	}
}

/* ---- contexts ---- */

/* The program may have called the CQ by any number. */
static struct ibv_context *context_of(const struct hca_ctx *ctx, uint64_t handle)
{
	const struct ibv_cq *cq = (const void *)(uintptr_t)handle;
	struct ibv_context *c;
	struct stat st;

	/* Behind an ibv_cq libmlx5 keeps what an ibv_cq_ex has more, zero. */
	if (handle % _Alignof(struct ibv_cq) ||
	    range_check(handle, sizeof(struct ibv_cq_ex), true))
		return NULL;
	c = cq->context;
	if ((uintptr_t)c % _Alignof(struct ibv_context) ||
	    range_check((uintptr_t)c, sizeof(*c), true))
		return NULL;
	if (real_fstat(c->cmd_fd, &st) || st.st_dev != ctx->dev || st.st_ino != ctx->ino)
		return NULL;
	return c;
}

static void adopt_context(struct ibv_context *c)
{
	/* Of two libraries in one process one is served; the other has the engine's thread. */
	if (!c || !c->ops.poll_cq || (real_poll && real_poll != c->ops.poll_cq)) {
		hca_debug(1, "polls of this context run no rounds");
		return;
	}
	real_poll = c->ops.poll_cq;
	/* Release: behind real_poll. Nobody polls before there is a CQ. */
	__atomic_store_n(&c->ops.poll_cq, poll_cq, __ATOMIC_RELEASE);
}

void poll_adopt(struct hca_ctx *ctx, uint64_t handle)
{
	struct ibv_context *c;

	if (!hca_options()->poll_rounds)
		return;
	c = context_of(ctx, handle);
	if (!ctx->adopted)
		adopt_context(c);
	ctx->adopted = true;
	if (c && c->ops.poll_cq == poll_cq)
		adopt_queue((struct ibv_cq_ex *)(uintptr_t)handle);
}
