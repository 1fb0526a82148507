/* SPDX-License-Identifier: BSD-3-Clause */
/* Where polls of a completion queue pass softhca: the table that ibv_poll_cq, an inline function
 * in <infiniband/verbs.h>, calls through. It belongs to the ibv_context, is part of libibverbs's
 * ABI, and goes with the context; so nothing is put back. */
#include <infiniband/verbs.h>

#include "softhca/control.h"
#include "softhca/inline.h"
#include "softhca/log.h"
#include "softhca/options.h"
#include "softhca/shim.h"

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
		expect_round(inline_round());
		return real_poll(cq, n, wc);
	}
	got = real_poll(cq, n, wc);
	if (got || !inline_round())
		return got;
	got = real_poll(cq, n, wc);
	expect_round(got > 0);
	return got;
}

/* The program may have called the CQ by any number. */
static struct ibv_context *context_of(const struct hca_ctx *ctx, uint64_t handle)
{
	const struct ibv_cq *cq = (const void *)(uintptr_t)handle;
	struct ibv_context *c;
	struct stat st;

	if (handle % _Alignof(struct ibv_cq) || range_check(handle, sizeof(*cq), true))
		return NULL;
	c = cq->context;
	if ((uintptr_t)c % _Alignof(struct ibv_context) ||
	    range_check((uintptr_t)c, sizeof(*c), true))
		return NULL;
	if (real_fstat(c->cmd_fd, &st) || st.st_dev != ctx->dev || st.st_ino != ctx->ino)
		return NULL;
	return c;
}

void inline_adopt(struct hca_ctx *ctx, uint64_t handle)
{
	struct ibv_context *c;

	if (ctx->adopted || !hca_options()->inline_rounds)
		return;
	ctx->adopted = true;
	c = context_of(ctx, handle);
	/* Of two libraries in one process one is served; the other has the engine's thread. */
	if (!c || !c->ops.poll_cq || (real_poll && real_poll != c->ops.poll_cq)) {
		hca_debug(1, "polls of this context run no rounds");
		return;
	}
	real_poll = c->ops.poll_cq;
	/* Release: behind real_poll. Nobody polls before there is a CQ. */
	__atomic_store_n(&c->ops.poll_cq, poll_cq, __ATOMIC_RELEASE);
}
