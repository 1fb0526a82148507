/* SPDX-License-Identifier: BSD-3-Clause */
/* GDR_CHECKED: the checks before a collective. Wrong arguments are wrong on all members alike, so that
 * none waits for one that was refused. */
#ifndef GDRI_CHECK_COLL_H
#define GDRI_CHECK_COLL_H

#include <gdr/impl/check.h>
#include <gdr/impl/request.h>
#include <gdr/impl/team.h>

GDRI_NOINLINE int gdri_check_coll_of(const struct gdri_site *at, const struct gdri_request *q)
{
	const struct gdri_team *t = gdri_team_of(gdri_dev(), q->team);
	uint64_t dst, src;
	int ret;

	if (!gdri_dev())
		return 0; /* the function itself says so */
	if (!t)
		return gdri_refuse(at, -1, 0, (uint64_t)(int64_t)q->team);
	if (q->what == GDRI_RQ_BROADCAST && (q->pe < 0 || q->pe >= t->n))
		return gdri_refuse(at, q->pe, q->dst, q->n);
	if (!gdri_request_extent(q, (uint64_t)t->n, &dst, &src))
		return gdri_refuse(at, -1, q->dst, q->n);
	ret = gdri_check_sym(at, q->dst, dst, q->size, gdri_dev()->pe);
	if (!ret)
		ret = gdri_check_sym(at, q->src, src, q->size, gdri_dev()->pe);
	if (!ret && q->n && !gdri_request_overlap(q, (uint64_t)t->me, dst, src))
		ret = gdri_refuse(at, -1, q->dst, dst);
	return ret;
}

GDR_DEVICE int gdri_check_coll(const struct gdri_site *at, uint32_t what, int32_t team, void *dst,
			       const void *src, size_t n, size_t size, int root, int64_t dst_step,
			       int64_t src_step)
{
	struct gdri_request q;

	gdri_zero(&q, sizeof(q));
	q.what = what;
	q.team = team;
	q.dst = dst;
	q.src = src;
	q.n = n;
	q.size = (uint32_t)size;
	q.pe = root;
	q.dst_step = dst_step;
	q.src_step = src_step;
	return gdri_check_coll_of(at, &q);
}

#endif
