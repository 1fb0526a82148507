/* SPDX-License-Identifier: BSD-3-Clause */
/* GDR_CHECKED: the checks before a collective. What is wrong on one member is told to all, so that none waits for one
 * that was refused. */
#ifndef GDRI_CHECK_COLL_H
#define GDRI_CHECK_COLL_H

#include <gdr/impl/api/match.h>

/* Of this PE alone. */
GDRI_NOINLINE int gdri_check_coll_args(const struct gdri_site *at, const struct gdri_request *q,
				       const struct gdri_team *t)
{
	uint64_t dst, src, heap = gdri_dev()->heap_size;
	int64_t dst_step = q->coll.dst_step, src_step = q->coll.src_step;
	int ret, pe = gdri_dev()->pe, is_dst = dst_step < 1 || (src_step >= 1 && dst_step > src_step);

	if (q->what == GDRI_RQ_BROADCAST && (q->coll.root < 0 || q->coll.root >= t->n))
		return gdri_refuse(at, -1, GDRI_ARG_ROOT, 0, (uint64_t)(int64_t)q->coll.root, 0, (uint64_t)t->n);
	if (q->n > heap / q->size)
		return gdri_refuse(at, -1, GDRI_ARG_SIZE, 0, q->n, q->size, heap);
	if (!gdri_request_extent(q, (uint64_t)t->n, &dst, &src)) {
		if (q->what != GDRI_RQ_ALLTOALLS)
			return gdri_refuse(at, -1, GDRI_ARG_SIZE, 0, q->n, q->size, heap);
		return gdri_refuse(at, -1, (is_dst ? GDRI_DEST : GDRI_SOURCE) | GDRI_ARG_STRIDE, 0,
				   (uint64_t)(is_dst ? dst_step : src_step), q->n * (uint64_t)t->n,
				   dst_step < 1 || src_step < 1 ? 0 : heap);
	}
	ret = gdri_check_sym(at, GDRI_DEST, q->dst, dst, q->size, pe);
	if (!ret)
		ret = gdri_check_sym(at, GDRI_SOURCE, q->src, src, q->size, pe);
	if (!ret && q->n && !gdri_request_overlap(q, (uint64_t)t->me, dst, src))
		ret = gdri_refuse(at, -1, GDRI_ARG_OVERLAP, q->dst, dst, (uint64_t)(uintptr_t)q->src, src);
	return ret;
}

GDRI_NOINLINE int gdri_check_coll_of(const struct gdri_site *at, const struct gdri_request *q)
{
	struct gdri_team *t = gdri_team_of(gdri_dev(), q->coll.team);
	int bad, ret;

	if (!gdri_dev())
		return 0; /* the function itself says so */
	if (!t)
		return gdri_refuse(at, -1, GDRI_ARG_TEAM, 0, (uint64_t)(int64_t)q->coll.team, 0, 0);
	bad = gdri_check_threads(at, q->dst, q->src, q->n ^ (uint64_t)(uint32_t)q->coll.root << 32, q->coll.team);
	ret = gdri_check_alone(at, &t->match_seq);
	if (ret)
		return ret;
	if (!bad && q->what >= GDRI_RQ_COLLECTIVE)
		bad = gdri_check_coll_args(at, q, t);
	ret = gdri_check_match(at, q, bad);
	if (ret)
		gdri_alone_over(at, &t->match_seq);
	return ret;
}

/* Behind a call that was not refused. */
GDRI_NOINLINE int gdri_coll_checked(const struct gdri_site *at, gdr_team_t team, int ret)
{
	struct gdri_team *t = gdri_team_of(gdri_dev(), team);

	if (t)
		gdri_alone_over(at, &t->match_seq);
	return ret;
}

GDR_DEVICE int gdri_check_coll(const struct gdri_site *at, uint32_t what, int32_t team, void *dst,
			       const void *src, size_t n, size_t size, int root, int64_t dst_step,
			       int64_t src_step, uint32_t code)
{
	struct gdri_request q;

	gdri_zero(&q, sizeof(q));
	q.what = what;
	q.coll.team = team;
	q.dst = dst;
	q.src = src;
	q.n = n;
	q.size = (uint32_t)size;
	q.coll.root = root;
	q.coll.dst_step = dst_step;
	q.coll.src_step = src_step;
	q.coll.code = code;
	return gdri_check_coll_of(at, &q);
}

/* what: a barrier or sync of a team. */
GDR_DEVICE int gdri_check_team(const struct gdri_site *at, uint32_t what, int32_t team)
{
	return gdri_check_coll(at, what, team, 0, 0, 0, 1, 0, 0, 0, 0);
}

#endif
