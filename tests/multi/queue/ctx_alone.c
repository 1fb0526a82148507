/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: ctx_alone slow	under a schedule that makes each queue slow from its block SLOW_FROM on: who completes
 *				one context waits for no other
 *        ctx_alone misuse	checked build: threads that do not share a context are refused */
#include "tests/multi/multi.h"

#define SLOW_FROM 60

struct alone {
	uint64_t *word; /* [4] */
	gdr_ctx_t ctx, fast;
	int what;
	struct multi_report *report;
};

GDR_DEVICE struct gdri_qp *queue_to(gdr_ctx_t ctx, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return &dev->qps[dev->ctxs[ctx].first + (unsigned)pe];
}

/* Everything that is posted next on this queue is slow. */
GDR_KERNEL(use_up, struct alone, a)
{
	int pe = (gdr_my_pe() + 1) % gdr_n_pes();
	struct gdri_qp *qp = queue_to(a.ctx, pe);

	EXPECT_OK(a.report, qp->rsvd >= SLOW_FROM);
	while (qp->rsvd < SLOW_FROM)
		EXPECT_OK(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 0, pe));
	EXPECT_OK(a.report, gdr_ctx_quiet(a.ctx));
}

/* The queue of `ctx` is busy for seconds, no other one. */
GDR_KERNEL(beside, struct alone, a)
{
	int pe = (gdr_my_pe() + 1) % gdr_n_pes();
	struct gdri_qp *qp = queue_to(a.ctx, pe);

	EXPECT_OK(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 0, pe));
	EXPECT_OK(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 1, pe));
	EXPECT_OK(a.report, gdr_ctx_uint64_p(a.fast, a.word + 1, 2, pe));
	EXPECT_OK(a.report, gdr_ctx_quiet(a.fast));
	EXPECT_EQ(a.report, gdr_ctx_uint64_g(a.fast, a.word + 1, pe), 2);
	EXPECT_OK(a.report, gdr_ctx_uint64_atomic_add(a.fast, a.word + 1, 3, pe));
	EXPECT_OK(a.report, gdr_ctx_fence(a.fast));
	EXPECT_OK(a.report, gdr_ctx_uint64_p(a.fast, a.word + 2, 4, pe));
	EXPECT_OK(a.report, gdr_ctx_quiet_pe(a.fast, pe));
	EXPECT_EQ(a.report, gdr_ctx_uint64_g(a.fast, a.word + 1, pe), 5);
	EXPECT_OK(a.report, gdr_uint64_p(a.word + 3, 6, pe));
	EXPECT_OK(a.report, gdr_quiet());
	EXPECT_OK(a.report, gdr_quiet_pe(pe));
	EXPECT_EQ(a.report, gdr_uint64_g(a.word + 3, pe), 6);
	gdri_poll(gdri_dev(), qp);
	EXPECT_EQ(a.report, gdri_qp_test(qp, SLOW_FROM + 2), 0); /* still under way */
	EXPECT_OK(a.report, gdr_ctx_quiet(a.ctx));
	EXPECT_EQ(a.report, gdri_qp_test(qp, SLOW_FROM + 2), 1);
	EXPECT_EQ(a.report, gdr_ctx_uint64_g(a.fast, a.word, pe), 1);
}

static void slow(struct alone *a)
{
	CHECK_OK(gdr_ctx_create(GDR_CTX_THREAD, &a->ctx));
	CHECK_OK(gdr_ctx_create(GDR_CTX_THREAD, &a->fast));
	RUN(use_up, 1, 1, a);
	CHECK_OK(gdr_barrier_all());
	RUN(beside, 1, 1, a);
	CHECK_OK(gdr_ctx_destroy(a->fast));
	CHECK_OK(gdr_ctx_destroy(a->ctx));
	CHECK_OK(gdr_barrier_all());
}

/* ---- misuse ---- */

enum { OTHER_THREAD, OTHER_BLOCK, WARP_FORM, ALL_OF_BLOCK, NO_QUIET, CASES };

/* The first one uses it; whether the second one may is the case's matter. */
GDR_KERNEL(use, struct alone, a)
{
	unsigned t = gdr_thread_id(), b = gdr_block_id();
	int n = gdr_n_pes(), pe = (gdr_my_pe() + 1) % n, two = a.what == OTHER_THREAD ? t == 1 : t == 0;

	if (a.what == WARP_FORM) {
		EXPECT_EQ(a.report, gdr_ctx_put_warp(a.ctx, a.word, a.word, 8, pe), -GDR_EINVAL);
		return;
	}
	if (t == 0 && b == 0)
		EXPECT_OK(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 1, pe));
	gdr_sync_block();
	if (a.what == ALL_OF_BLOCK)
		EXPECT_OK(a.report, gdr_ctx_put_block(a.ctx, a.word + 1, a.word, 8, pe));
	if (a.what == OTHER_THREAD && two) {
		EXPECT_EQ(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 2, pe), -GDR_EINVAL);
		EXPECT_EQ(a.report, gdr_ctx_fence(a.ctx), -GDR_EINVAL);
		EXPECT_EQ(a.report, gdr_ctx_uint64_g(a.ctx, a.word, pe), 0);
		EXPECT_OK(a.report, gdr_ctx_quiet(a.ctx) == -GDR_EINVAL ? 0 : 1); /* what p and g latched */
		EXPECT_OK(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 2, pe));
		EXPECT_OK(a.report, gdr_ctx_quiet(a.ctx));
	}
}

/* Block 1 alone, behind a kernel that did not complete what its block 0 did. */
GDR_KERNEL(use_other, struct alone, a)
{
	if (gdr_block_id() == 1)
		EXPECT_EQ(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 2, 0), -GDR_EINVAL);
}

GDR_KERNEL(use_destroyed, struct alone, a)
{
	EXPECT_EQ(a.report, gdr_ctx_uint64_p(a.ctx, a.word, 1, 0), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_ctx_quiet(a.ctx), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_ctx_uint64_p(GDR_CTX_INVALID, a.word, 1, 0), -GDR_EINVAL);
}

GDR_KERNEL(use_no_pe, struct alone, a)
{
	EXPECT_EQ(a.report, gdr_ctx_uint64_p(GDR_CTX_DEFAULT, a.word, 1, gdr_n_pes()), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr_ctx_quiet_pe(GDR_CTX_DEFAULT, -1), -GDR_EINVAL);
}

/* The host may complete it, then it is anybody's. On GPUs its threads use no contexts. */
static void by_host(struct alone *a)
{
#ifdef __CUDACC__
	(void)a;
#else
	CHECK_EQ(gdr_ctx_uint64_p(a->ctx, a->word, 1, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_ctx_quiet(a->ctx), -GDR_EINVAL);
	CHECK_OK(gdr_ctx_uint64_p(a->ctx, a->word, 1, 0));
#endif
}

static void says_why(int from)
{
	struct gdr_error e[16];
	int n = gdr_errors(e, 16);

	CHECK(n > from && n <= 16);
	for (; from < n; from++) {
		CHECK(strstr(e[from].text, "context"));
		CHECK(strstr(e[from].text, "ctx_alone.c"));
	}
}

static void misuse(struct alone *a)
{
	int from;

	for (a->what = 0; a->what < CASES; a->what++) {
		from = gdr_errors(NULL, 0);
		CHECK_OK(gdr_ctx_create(a->what == ALL_OF_BLOCK || a->what == OTHER_BLOCK
						? GDR_CTX_BLOCK : GDR_CTX_THREAD, &a->ctx));
		RUN(use, 1, 64, a);
		if (a->what == OTHER_BLOCK || a->what == NO_QUIET)
			RUN(use_other, 2, 1, a);
		if (a->what != ALL_OF_BLOCK)
			says_why(from);
		else
			CHECK_EQ(gdr_errors(NULL, 0), from);
		if (a->what == NO_QUIET)
			by_host(a);
		CHECK_OK(gdr_ctx_destroy(a->ctx));
	}
	from = gdr_errors(NULL, 0);
	RUN(use_destroyed, 1, 1, a);
	says_why(from);
	RUN(use_no_pe, 1, 1, a);
	CHECK_EQ(gdr_barrier_all(), -GDR_EINVAL); /* what that latched */
}

int main(int argc, char **argv)
{
	struct alone a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.word = (uint64_t *)gdr_calloc(4, 8);
	CHECK(a.word && argc == 2);
	if (!strcmp(argv[1], "slow")) {
		slow(&a);
		multi_shared_free(a.report);
		return multi_end("ctx_alone");
	}
	misuse(&a);
	multi_shared_free(a.report);
	CHECK_OK(gdr_finalize());
	return 0;
}
