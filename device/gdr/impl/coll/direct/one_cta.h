/* SPDX-License-Identifier: BSD-3-Clause */
/* What moves data straight through memory that all members map, by the one scope that calls: as by one block of
 * a grid (grid.h), on its words, with the own block copied while the others' words are on their way. */
#ifndef GDRI_ONE_CTA_H
#define GDRI_ONE_CTA_H

#include <gdr/impl/coll/direct/cta_barrier.h>

/* Copy i of the call: 0 the own one, else to member number me + i, or (from) from that member. */
struct gdri_one_cta_move {
	uint8_t *dst;
	const uint8_t *src;
	size_t src_step, len;
	const uint8_t *own; /* source of the own one; NULL: none */
	int from;	    /* the one copy's member; -1: the copies go to all; n: there are none */
};

/* What is copied in about the time that a word takes. */
GDR_DEVICE size_t gdri_one_cta_while(const struct gdri_coll *c, size_t len)
{
	size_t most = c->scope == GDRI_THREAD ? 1024 : 128 * (size_t)gdri_scope_size(c->scope);

	return len < most ? len : most;
}

/* Copy i of the call: 0 and the last one are of the own block, of which `first` bytes come first. */
GDR_DEVICE void gdri_one_cta_copy(const struct gdri_coll *c, const struct gdri_one_cta_move *m, int i, int copies,
				   size_t first)
{
	const uint8_t *src = m->own;
	uint8_t *dst = m->dst;
	size_t len = first;
	int to;

	if (i > copies) {
		src = src ? src + first : 0;
		dst += first;
		len = m->len - first;
	} else if (i) {
		to = m->from >= 0 ? m->from : gdri_coll_after(c, i);
		src = m->from >= 0 ? gdri_chan_mapped(c, m->src, gdri_team_pe(c->team, to))
				   : m->src + m->src_step * (size_t)(uint32_t)to;
		dst = m->from >= 0 ? dst : gdri_chan_mapped(c, dst, gdri_team_pe(c->team, to));
		len = m->len;
	}
	if (src)
		gdri_coll_copy(c, dst, src, len);
}

/* Each member's block of src + src_step * its number to dst of that member; or all of it from one. Of the own one
 * so much is copied while the words of the first meeting are on their way, the rest while those of the second are. */
GDRI_NAMESAKES_BEGIN
GDRI_NOINLINE int gdri_one_cta(const struct gdri_coll *c, const struct gdri_one_cta_move *m)
{
	int n = c->n, talks = (int)gdri_scope_rank(c->scope) < n, late = 0, copies, i, ret;
	size_t first = gdri_one_cta_while(c, m->len);
	uint64_t *words = gdri_cta_words(c->team, 0), epoch;

	/* of this PE alone; written behind the next sync */
	epoch = talks ? gdri_ld_relaxed_gpu_u64(&words[c->me]) : 0;
	copies = m->from == n ? 0 : m->from >= 0 ? 1 : n - 1;
	GDRI_NOT_UNROLLED
	for (i = 0; i <= copies + 1; i++) {
		if (!i || i > copies) { /* what the block stored and loaded: before the release of who tells */
			epoch++;
			gdri_scope_sync(c->scope);
			if (talks)
				gdri_cta_tell(c, words, epoch);
		}
		gdri_one_cta_copy(c, m, i, copies, first);
		if (i && i <= copies)
			continue;
		if (talks)
			late = gdri_cta_hear(c, words, epoch);
		ret = gdri_cta_end(c, words, epoch, late);
		if (gdri_unlikely(ret))
			return gdri_coll_fail(c, ret);
	}
	return 0;
}
GDRI_NAMESAKES_END

/* len bytes to dst of each member, from src + step * its number. */
GDR_DEVICE int gdri_one_cta_spread(const struct gdri_coll *c, void *dst, const void *src, size_t step,
				    size_t len)
{
	const struct gdri_one_cta_move m = {(uint8_t *)dst, (const uint8_t *)src, step, len,
					     (const uint8_t *)src + step * (size_t)(uint32_t)c->me, -1};

	return gdri_one_cta(c, &m);
}

/* All from the root. */
GDR_DEVICE int gdri_one_cta_broadcast(const struct gdri_coll *c, void *dst, const void *src, size_t len,
				       int root)
{
	const struct gdri_one_cta_move m = {(uint8_t *)dst, (const uint8_t *)src, 0, len,
					     c->me == root ? (const uint8_t *)src : 0,
					     c->me == root ? c->n : root};

	return gdri_one_cta(c, &m);
}

#endif
