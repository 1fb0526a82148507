/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that post, wait and quiet, by the functions that a kernel calls. */
#ifndef WEAK_POSTER_HPP
#define WEAK_POSTER_HPP

/* Everything below target is complete, for the caller. */
static void weak_complete(uint64_t target)
{
	uint64_t i;

	for (i = WEAK_START; i < target; i++) {
		RL_ASSERT(i < truth.executed);
		(void)obj->data[i - WEAK_START]($).load();
	}
}

/* The caller is told of the error, behind an acquire. */
static void weak_told_error(uint64_t target)
{
	RL_ASSERT(scen->flushes || (scen->fails >= 0 && target > truth.failed));
	(void)obj->record($).load();
}

static void weak_wait(int ret, uint64_t target)
{
	if (!ret)
		weak_complete(target);
	else
		weak_told_error(target);
}

static void weak_posted(int thread, uint64_t index, int blocks, int last, int fm)
{
	struct weak_block *b = &truth.block[index - WEAK_START];

	b->blocks = blocks;
	b->last = last;
	b->fm = fm;
	truth.posted[thread][truth.n_posted[thread]++] = (int)(index - WEAK_START);
}

static int weak_post_one(int thread, uint64_t *target)
{
	struct gdri_qp *qp = &weak_mem.qp;
	const uint32_t v[3] = {0, 0, 0};
	struct gdri_post p;
	int ret = gdri_post_begin(&weak_mem.dev, qp, 1, 0, &p);

	if (ret)
		return ret;
	weak_posted(thread, p.index, 1, 1, p.fm != 0);
	gdri_wqe_write_inline_12(qp, p.index, p.ce | p.fm, 0, qp->rkey_sync, v, 8);
	*target = p.index + 1;
	return gdri_post_end(&weak_mem.dev, qp, &p);
}

static int weak_post_two(int thread, uint64_t *target)
{
	static const struct gdri_masked_cs cs = {};
	struct gdri_qp *qp = &weak_mem.qp;
	struct gdri_post p;
	int ret = gdri_post_begin(&weak_mem.dev, qp, 2, 1, &p);

	if (ret)
		return ret;
	weak_posted(thread, p.index, 2, 1, p.fm != 0);
	gdri_wqe_masked_cs8(qp, p.index, p.ce | p.fm, 0, qp->rkey_sync, 0, qp->rkey_sync, &cs);
	*target = p.index + 1; /* its completion carries the first block */
	return gdri_post_end(&weak_mem.dev, qp, &p);
}

/* As the leader of several lanes: as many as have leave, and may mark. */
static int weak_post_group(int thread, uint64_t *target)
{
	struct gdri_qp *qp = &weak_mem.qp;
	uint64_t base;
	int n = scen->depth / 4 < (int)GDRI_MARK_MAX ? scen->depth / 4 : (int)GDRI_MARK_MAX, i;
	int ret = gdri_sq_reserve(&weak_mem.dev, qp, (uint32_t)n, &base);

	if (ret)
		return ret;
	for (i = 0; i < n; i++) {
		weak_posted(thread, base + (uint64_t)i, 1, i == n - 1, 0);
		gdri_wqe_nop(qp, base + (uint64_t)i, i == n - 1 ? GDRI_CE_ALWAYS : GDRI_CE_ERROR_ONLY);
	}
	*target = base + (uint64_t)n;
	return gdri_sq_publish(&weak_mem.dev, qp, base, (uint32_t)n, 0);
}

static int weak_post(int thread, uint64_t *target)
{
	int kind;

	do
		kind = 1 << rl::rand(3);
	while (!(kind & scen->kinds));
	return kind == WEAK_ONE ? weak_post_one(thread, target)
	       : kind == WEAK_TWO ? weak_post_two(thread, target)
				  : weak_post_group(thread, target);
}

static void weak_poster(int thread)
{
	struct gdri_qp *qp = &weak_mem.qp;
	uint64_t target = WEAK_START;
	int i, ret;

	for (i = 0; i < scen->posts; i++) {
		ret = weak_post(thread, &target);
		if (ret == -GDR_ETIMEOUT && scen->expires)
			continue;
		if (ret) {
			weak_told_error(~0ull);
			break;
		}
		if (scen->fences)
			gdri_fence(0, -1);
		if (scen->waits && rl::rand(2))
			weak_wait(gdri_qp_wait(&weak_mem.dev, qp, target, GDRI_PUT), target);
	}
	ret = gdri_qp_quiet(&weak_mem.dev, qp, GDRI_QUIET); /* what it says of an error need be no acquire */
	if (!ret)
		weak_complete(target);
	else
		RL_ASSERT(scen->fails >= 0);
	truth.leaving++;
}

#endif
