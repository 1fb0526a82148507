/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives one behind the other in one kernel, of random kinds, sizes and roots, on the same
 * objects: dest is refilled right before each call and looked at right after it, source overwritten
 * after it. At the same time the other block of the kernel does so over another team: two halves of
 * the world, or two teams that share members. Behind each call one of its threads makes another one alone.
 * usage: coll_order [wrap]: the numbers in the words of short calls (ll.h) begin anew on the way, with what
 * the last time left there. */
#include "tests/multi/coll/coll.h"

#define MOST 600u /* elements of a call */
#define BUF (MOST * COLL_MAX_PES)
#define THREADS 64u

struct side { /* of one block */
	gdr_team_t team;
	int members, me, pes[COLL_MAX_PES];
	uint64_t *dst, *src;
	uint64_t *one; /* dest of a call by one thread: MOST */
	uint64_t seed;
};

struct storm {
	struct side side[2];
	int calls;
	struct multi_report *report;
};

GDR_DEVICE uint64_t value(const struct side *s, int call, int member, uint64_t k)
{
	return multi_hash((s->seed + (uint64_t)call) * 65537 + (uint64_t)s->pes[member] * 4099 + k);
}

GDR_DEVICE uint64_t sum(const struct side *s, int call, int lo, int hi, uint64_t k)
{
	uint64_t v = 0;

	for (int i = lo; i < hi; i++)
		v += value(s, call, i, k);
	return v;
}

GDR_DEVICE int perform(const struct side *s, int kind, size_t n, int root)
{
	switch (kind) {
	case 0:
		return gdr_uint64_broadcast_block(s->team, s->dst, s->src, 3 * n, root);
	case 1:
		return gdr_uint64_fcollect_block(s->team, s->dst, s->src, n);
	case 2:
		return gdr_uint64_alltoall_block(s->team, s->dst, s->src, n);
	case 3:
		return gdr_uint64_sum_reduce_block(s->team, s->dst, s->src, n);
	case 4:
		return gdr_uint64_sum_reducescatter_block(s->team, s->dst, s->src, n);
	case 5:
		return gdr_uint64_sum_inscan_block(s->team, s->dst, s->src, n);
	case 6:
		return gdr_uint64_sum_exscan_block(s->team, s->dst, s->src, n);
	case 7:
		return gdr_uint64_collect_block(s->team, s->dst, s->src,
						s->me % 2 ? n : 2 * n);
	default:
		return gdr_team_sync_block(s->team);
	}
}

GDR_DEVICE size_t length(const struct side *s, int kind, size_t n)
{
	size_t odd = (size_t)s->members / 2;

	return kind == 0	      ? 3 * n
	       : kind == 1 || kind == 2 ? n * (size_t)s->members
	       : kind == 7	      ? n * (2 * (size_t)s->members - odd)
	       : kind == 8	      ? 0
				      : n;
}

/* Element k of the result. */
GDR_DEVICE uint64_t result(const struct side *s, int call, int kind, size_t n, int root, size_t k)
{
	int i = 0;

	switch (kind) {
	case 0:
		return value(s, call, root, k);
	case 1:
		return value(s, call, (int)(k / n), k % n);
	case 2:
		return value(s, call, (int)(k / n), (size_t)s->me * n + k % n);
	case 3:
		return sum(s, call, 0, s->members, k);
	case 4:
		return sum(s, call, 0, s->members, (size_t)s->me * n + k);
	case 5:
		return sum(s, call, 0, s->me + 1, k);
	case 6:
		return sum(s, call, 0, s->me, k);
	default:
		for (; k >= (i % 2 ? n : 2 * n); i++)
			k -= i % 2 ? n : 2 * n;
		return value(s, call, i, k);
	}
}

/* By one thread: of an element, or so many that they take several messages. */
GDR_DEVICE void alone(struct multi_report *report, const struct side *s, int call, uint64_t h)
{
	size_t n = (h & 3) ? 1 : (h >> 2) % MOST, first = h >> 40 & 1 ? n * (size_t)s->me : 0;

	if (h >> 40 & 1)
		EXPECT_OK(report, gdr_uint64_sum_reducescatter(s->team, s->one, s->src, n));
	else
		EXPECT_OK(report, gdr_uint64_sum_reduce(s->team, s->one, s->src, n));
	for (size_t k = 0; k < n; k++)
		EXPECT_EQ(report, s->one[k], sum(s, call, 0, s->members, first + k));
}

GDR_KERNEL(storm, struct storm, a)
{
	const struct side *s = &a.side[gdr_block_id()];
	unsigned t = gdr_thread_id();

	for (int call = 0; call < a.calls && s->members; call++) {
		uint64_t h = multi_hash(s->seed * 1000 + (uint64_t)call);
		int kind = (int)(h % 9), root = (int)((h >> 8) % (uint64_t)s->members);
		size_t n = (h >> 16) % ((h >> 40 & 3) ? 20 : MOST / 2), len = length(s, kind, n);

		for (size_t k = t; k < BUF; k += THREADS)
			s->src[k] = value(s, call, s->me, k);
		for (size_t k = t; k <= len; k += THREADS)
			s->dst[k] = 0xdead;
		gdr_sync_block();
		if (t == 0 && (h >> 48) % (uint64_t)s->members == (uint64_t)s->me)
			for (unsigned i = 0; i < (h >> 52 & 63); i++)
				gdr_pause(i);
		EXPECT_OK(a.report, perform(s, kind, n, root));
		/* the next call, by another thread, with nothing between */
		if (t == (h >> 58) % THREADS)
			alone(a.report, s, call, multi_hash(h));
		for (size_t k = t; k < len; k += THREADS)
			EXPECT_EQ(a.report, s->dst[k], result(s, call, kind, n, root, k));
		EXPECT_EQ(a.report, s->dst[len], 0xdead);
		gdr_sync_block();
	}
}

/* A broadcast that is under way when the team gets a status returns that, and nothing else. */
GDR_KERNEL(late, struct storm, a)
{
	struct gdri_team *t = gdri_team_of(gdri_dev(), a.side[0].team);
	uint8_t *dst = (uint8_t *)a.side[0].dst;
	const uint8_t *src = (const uint8_t *)a.side[0].src;

	if (!gdr_thread_id())
		gdri_st_relaxed_gpu_u32((uint32_t *)&t->err, (uint32_t)-GDR_ETIMEOUT);
	EXPECT_EQ(a.report, gdri_ll_bcast(GDRI_BLOCK, a.side[0].team, dst, src, 8, 0, 1), -GDR_ETIMEOUT);
	gdr_sync_block();
	if (!gdr_thread_id())
		gdri_st_relaxed_gpu_u32((uint32_t *)&t->err, 0);
}

static void set_side(struct side *s, gdr_team_t team, uint64_t seed)
{
	s->team = team;
	s->seed = seed;
	s->me = gdr_host_team_my_pe(team);
	s->members = team == GDR_TEAM_INVALID ? 0 : gdr_host_team_n_pes(team);
	for (int i = 0; i < s->members; i++)
		s->pes[i] = gdr_host_team_translate_pe(team, i, GDR_TEAM_WORLD);
}

#ifdef __CUDACC__
#define set_words(team) CHECK(!"on a GPU")
#else
/* The numbers begin anew with the second part, and the units hold some of those that come then. */
static void set_words(gdr_team_t team)
{
	struct gdri_team *t = &gdri_dev_state->teams[team];
	uint64_t units = t->ll_size / 8, area, k;

	t->ll_seq = 0xfffffffe;
	for (area = 0; area < 2; area++)
		for (k = 0; k < units * (uint64_t)t->n; k++) {
			uint64_t *unit = t->ll + (area * units * (uint64_t)t->n + k) * 2;

			unit[0] = unit[1] = (k % 32 * 2 + (area ? 1 : 2)) << 32 | 0xdead;
		}
	t->bcast_seq = t->bcast_known = 0xfffffffe;
	for (k = 0; k < (uint64_t)t->n; k++)
		t->chan[k].bcast_taken = 0xfffffffe;
	for (k = 0; k < GDRI_BCAST_DEPTH * 2 * t->slot_size / 8; k++)
		t->ll_bcast[k] = (k % 64 + 1) << 32 | 0xdead;
}
#endif

/* lists[i]: the PEs of team i. Returns with the teams gone. */
static void together(struct storm *a, int lists[2][COLL_MAX_PES], const int n[2], uint64_t seed,
		     int wrap)
{
	gdr_team_t team[2] = {GDR_TEAM_INVALID, GDR_TEAM_INVALID};

	for (int i = 0; i < 2; i++) {
		if (n[i])
			CHECK_OK(gdr_team_create(GDR_TEAM_WORLD, lists[i], n[i], NULL, 0, &team[i]));
		set_side(&a->side[i], team[i], seed * 10 + (uint64_t)i);
		if (wrap && team[i] != GDR_TEAM_INVALID)
			set_words(team[i]);
	}
	CHECK_OK(gdr_barrier_all());
	RUN(storm, 2, THREADS, a);
	for (int i = 0; i < 2; i++)
		CHECK_OK(gdr_team_destroy(team[i]));
}

int main(int argc, char **argv)
{
	int wrap = argc > 1 && !strcmp(argv[1], "wrap"), lists[2][COLL_MAX_PES], n[2];
	struct storm a;

	memset(&a, 0, sizeof(a));
	multi_begin();
	CHECK(multi_n <= COLL_MAX_PES);
	a.report = multi_report_new();
	a.calls = 120;
	for (int i = 0; i < 2; i++) {
		a.side[i].dst = (uint64_t *)gdr_malloc((BUF + 1) * sizeof(uint64_t));
		a.side[i].src = (uint64_t *)gdr_malloc(BUF * sizeof(uint64_t));
		a.side[i].one = (uint64_t *)gdr_malloc(MOST * sizeof(uint64_t));
		CHECK(a.side[i].dst && a.side[i].src && a.side[i].one);
	}
	/* two that share members: all of them, in different orders */
	n[0] = coll_choose(1, lists[0], multi_n, multi_n);
	n[1] = coll_choose(2, lists[1], multi_n, multi_n);
	together(&a, lists, n, 1, wrap);
	/* two halves: the even ones and the odd ones */
	n[0] = n[1] = 0;
	for (int i = 0; i < multi_n; i++)
		lists[i % 2][n[i % 2]++] = i;
	together(&a, lists, n, 2, wrap);
	/* some of them */
	for (uint64_t seed = 3; seed < 6; seed++) {
		n[0] = coll_choose(seed * 2, lists[0], multi_n, 0);
		n[1] = coll_choose(seed * 2 + 1, lists[1], multi_n, 0);
		together(&a, lists, n, seed, wrap);
	}
	if (multi_n > 1) {
		a.side[0].team = GDR_TEAM_WORLD;
		RUN(late, 1, THREADS, &a);
	}
	multi_shared_free(a.report);
	return multi_end("coll_order");
}
