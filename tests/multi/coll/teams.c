/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: split, listed, nested and destroyed, against lists that the test makes for itself; what a
 * team says about itself, on the host and in kernels; syncs and broadcasts of many at once. */
#include "tests/multi/multi.h"

#include <sys/mman.h>

#define MAX_PES 16

struct args {
	gdr_team_t team;
	int pes[MAX_PES], n; /* in the world */
	uint64_t *words, *out;
	uint64_t round;
	struct multi_report *report;
};

static struct args a;

/* ---- what a team is ---- */

GDR_KERNEL(identity, struct args, k)
{
	int me = -1;

	for (int i = 0; i < k.n; i++) {
		EXPECT_EQ(k.report, gdr_team_translate_pe(k.team, i, GDR_TEAM_WORLD), k.pes[i]);
		EXPECT_EQ(k.report, gdr_team_translate_pe(GDR_TEAM_WORLD, k.pes[i], k.team), i);
		EXPECT_EQ(k.report, gdr_team_ptr(k.team, k.words, i) == gdr_ptr(k.words, k.pes[i]), 1);
		if (k.pes[i] == gdr_my_pe())
			me = i;
	}
	EXPECT_EQ(k.report, gdr_team_n_pes(k.team), k.n);
	EXPECT_EQ(k.report, gdr_team_my_pe(k.team), me);
	EXPECT_EQ(k.report, gdr_team_translate_pe(k.team, k.n, GDR_TEAM_WORLD), -1);
	EXPECT_EQ(k.report, gdr_team_translate_pe(k.team, -1, GDR_TEAM_WORLD), -1);
	EXPECT_EQ(k.report, gdr_team_ptr(k.team, k.words, k.n) == 0, 1);
}

/* Said to nobody: the others are not waiting. */
GDR_KERNEL(wrong, struct args, k)
{
	EXPECT_EQ(k.report, gdr_team_my_pe(63), -1);
	EXPECT_EQ(k.report, gdr_team_n_pes(GDR_TEAM_INVALID), -1);
	EXPECT_EQ(k.report, gdr_team_translate_pe(GDR_TEAM_WORLD, 0, 63), -1);
	EXPECT_EQ(k.report, gdr_team_sync(GDR_TEAM_INVALID), -GDR_EINVAL);
	EXPECT_EQ(k.report, gdr_barrier(63), -GDR_EINVAL);
	EXPECT_EQ(k.report, gdr_uint64_broadcast(GDR_TEAM_WORLD, k.out, k.words, 1, gdr_n_pes()),
		  -GDR_EINVAL);
}

/* Everybody puts its round into all members, late; after the sync all are there. */
GDR_KERNEL(meet, struct args, k)
{
	int me = gdr_team_my_pe(k.team);
	unsigned t = gdr_thread_id();

	for (uint64_t r = k.round; r < k.round + 6; r++) {
		if (t == 0 && (multi_hash(r) & 7) == (unsigned)me) {
			uint64_t until = gdr_clock_ns() + 200000;

			for (unsigned i = 0; gdr_clock_ns() < until; i++)
				gdr_pause(i);
		}
		if (t == 0)
			for (int i = 0; i < k.n; i++)
				EXPECT_OK(k.report, gdr_uint64_p(k.words + gdr_my_pe(), r, k.pes[i]));
		if (t == 0 && (r % 6 == 0 || r % 6 > 3))
			EXPECT_OK(k.report, gdr_quiet());
		gdr_sync_block();
		switch (r % 6) {
		case 0:
			if (t == 0)
				EXPECT_OK(k.report, gdr_team_sync(k.team));
			break;
		case 1:
			if (t == 0)
				EXPECT_OK(k.report, gdr_barrier(k.team));
			break;
		case 2:
			if (t < 32)
				EXPECT_OK(k.report, gdr_barrier_warp(k.team));
			break;
		case 3:
			EXPECT_OK(k.report, gdr_barrier_block(k.team));
			break;
		case 4:
			if (t < 32)
				EXPECT_OK(k.report, gdr_team_sync_warp(k.team));
			break;
		default:
			EXPECT_OK(k.report, gdr_team_sync_block(k.team));
			break;
		}
		gdr_sync_block();
		for (int i = 0; i < k.n; i++)
			EXPECT_EQ(k.report, gdri_ld_relaxed_sys_u64(k.words + k.pes[i]) >= r, 1);
		gdr_sync_block();
	}
}

/* Each member is the root in turn, into the same words. */
GDR_KERNEL(speak, struct args, k)
{
	for (int root = 0; root < k.n; root++) {
		uint64_t value = multi_hash(k.round * 64 + (uint64_t)k.pes[root]);

		k.words[MAX_PES] = multi_hash(k.round * 64 + (uint64_t)gdr_my_pe());
		EXPECT_OK(k.report, gdr_uint64_broadcast(k.team, k.out, k.words + MAX_PES, 1, root));
		EXPECT_EQ(k.report, *k.out, value);
	}
}

static uint64_t rounds;


/* pes: those that should be in it, in their order. */
static void check_team(gdr_team_t team, const int *pes, int n)
{
	int me = -1, world;

	a.team = team;
	a.n = n;
	memcpy(a.pes, pes, (size_t)n * sizeof(*pes));
	for (int i = 0; i < n; i++)
		if (pes[i] == multi_pe)
			me = i;
	if (me < 0) {
		CHECK_EQ(team, GDR_TEAM_INVALID);
		return;
	}
	CHECK_EQ(gdr_host_team_my_pe(team), me);
	CHECK_EQ(gdr_host_team_n_pes(team), n);
	for (int i = 0; i < n; i++) {
		world = gdr_host_team_translate_pe(team, i, GDR_TEAM_WORLD);
		CHECK_EQ(world, pes[i]);
		CHECK_EQ(gdr_host_team_translate_pe(GDR_TEAM_WORLD, world, team), i);
		CHECK(gdr_host_team_ptr(team, a.words, i) == gdr_host_ptr(a.words, world));
	}
	CHECK_EQ(gdr_host_team_translate_pe(team, n, GDR_TEAM_WORLD), -1);
	CHECK(gdr_host_team_ptr(team, a.words, n) == NULL);
	RUN(identity, 1, 1, &a);
}

static void use_team(gdr_team_t team, const int *pes, int n)
{
	check_team(team, pes, n);
	if (team == GDR_TEAM_INVALID)
		return;
	a.round = rounds;
	RUN(meet, 1, 64, &a);
	RUN(speak, 1, 1, &a);
}

static void next_round(void)
{
	rounds += 6;
	CHECK_OK(gdr_barrier_all());
}

/* ---- ways to make one ---- */

/* One, or those that softhca makes of it. */
static int node_of(int pe)
{
	struct gdr_job_info info;

	CHECK_OK(gdr_query(&info));
	return pe * info.n_nodes / multi_n;
}

static void predefined(void)
{
	int pes[MAX_PES], n = 0, mapped = 0;

	for (int i = 0; i < multi_n; i++)
		pes[i] = i;
	use_team(GDR_TEAM_WORLD, pes, multi_n);
	next_round();
	for (int i = 0; i < multi_n; i++) {
		if (node_of(i) != node_of(multi_pe))
			continue;
		mapped += gdr_host_ptr(a.words, i) != NULL;
		pes[n++] = i;
	}
	use_team(GDR_TEAM_NODE, pes, n);
	next_round();
	if (mapped != n) {
		pes[0] = multi_pe;
		n = 1;
	}
	use_team(GDR_TEAM_SHARED, pes, n);
	next_round();
	CHECK_EQ(gdr_team_destroy(GDR_TEAM_WORLD), -GDR_EINVAL);
	CHECK_EQ(gdr_team_destroy(GDR_TEAM_NODE), -GDR_EINVAL);
	CHECK_OK(gdr_team_destroy(GDR_TEAM_INVALID));
}

static void strided(int start, int stride, int size)
{
	gdr_team_config_t config = {start + 40}, got = {0};
	int pes[MAX_PES];
	gdr_team_t team;

	for (int i = 0; i < size; i++)
		pes[i] = start + i * stride;
	CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, start, stride, size, &config,
					GDR_TEAM_NUM_CONTEXTS, &team));
	use_team(team, pes, size);
	if (team != GDR_TEAM_INVALID) {
		CHECK_OK(gdr_team_get_config(team, GDR_TEAM_NUM_CONTEXTS, &got));
		CHECK_EQ(got.num_contexts, start + 40);
		CHECK_EQ(gdr_team_get_config(team, 2, &got), -GDR_EINVAL);
		CHECK_OK(gdr_team_destroy(team));
		CHECK_EQ(gdr_host_team_my_pe(team), -1);
		CHECK_EQ(gdr_team_destroy(team), -GDR_EINVAL);
	}
	next_round();
}

static void all_strided(void)
{
	for (int stride = -3; stride <= 3; stride++)
		for (int size = 1; size <= multi_n; size += 1 + multi_n / 3) {
			int reach = stride * (size - 1), start = stride < 0 ? -reach : 0;

			if (!stride && size > 1)
				continue;
			if (start < multi_n && start + reach < multi_n)
				strided(start, stride, size);
		}
}

/* One of them calls another way: all hear of it, and in what. */
static void told_apart(void)
{
	static const char *const words[] = {"(size is 1 and 2)", "(start is 0 and 1)", "(xrange is 1 and 2)",
					    "(n is 1 and 2)", "(other PEs, or another config)",
					    "(gdr_team_split_strided and gdr_team_create)"};
	int real = dup(2), texts = memfd_create("texts", 0), odd = multi_pe == 1, two[] = {0, 1};
	char said[4096] = "";
	gdr_team_t team, y;

	CHECK(real >= 0 && texts >= 0 && dup2(texts, 2) == 2);
	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, 1 + odd, NULL, 0, &team), -GDR_EMISMATCH);
	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, odd, 1, 1, NULL, 0, &team), -GDR_EMISMATCH);
	CHECK_EQ(gdr_team_split_2d(GDR_TEAM_WORLD, 1 + odd, NULL, 0, &team, NULL, 0, &y), -GDR_EMISMATCH);
	CHECK_EQ(gdr_team_create(GDR_TEAM_WORLD, two, 1 + odd, NULL, 0, &team), -GDR_EMISMATCH);
	CHECK_EQ(gdr_team_create(GDR_TEAM_WORLD, two + odd, 1, NULL, 0, &team), -GDR_EMISMATCH);
	CHECK_EQ(odd ? gdr_team_create(GDR_TEAM_WORLD, two, 1, NULL, 0, &team)
		     : gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, 1, NULL, 0, &team), -GDR_EMISMATCH);
	CHECK(dup2(real, 2) == 2 && pread(texts, said, sizeof(said) - 1, 0) >= 0);
	close(real);
	close(texts);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strstr(said, words[i]))
			multi_fail(__FILE__, __LINE__, "nothing says %s: %s", words[i], said);
}

static void refused(void)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	int twice[MAX_PES] = {0, 0};

	RUN(wrong, 1, 1, &a);
	CHECK_EQ(gdr_errors(NULL, 0), 3);
	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n + 1, NULL, 0, &team),
		 -GDR_EINVAL);
	CHECK_EQ(team, GDR_TEAM_INVALID);
	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 0, 2, NULL, 0, &team), -GDR_EINVAL);
	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 1, 1, multi_n, NULL, 0, &team), -GDR_EINVAL);
	CHECK_EQ(gdr_team_split_strided(62, 0, 1, 1, NULL, 0, &team), -GDR_EINVAL);
	CHECK_EQ(gdr_team_create(GDR_TEAM_WORLD, twice, 2, NULL, 0, &team), -GDR_EINVAL);
	CHECK_EQ(gdr_team_split_2d(GDR_TEAM_WORLD, 0, NULL, 0, &team, NULL, 0, &team), -GDR_EINVAL);
	if (multi_n > 1)
		told_apart();
	if (multi_n > 1) /* and of what only one of them is refused */
		CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_pe == 1 ? 0 : 1, NULL, 0,
						&team), -GDR_EINVAL);
}

/* One that has no place for the result: all hear of it. */
static void no_place(void)
{
	gdr_team_t team = GDR_TEAM_WORLD, other = GDR_TEAM_WORLD, *out = multi_pe == multi_n - 1 ? NULL : &team;
	int one = 0;

	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n, NULL, 0, out), -GDR_EINVAL);
	CHECK_EQ(gdr_team_create(GDR_TEAM_WORLD, &one, 1, NULL, 0, out), -GDR_EINVAL);
	CHECK_EQ(gdr_team_split_2d(GDR_TEAM_WORLD, 2, NULL, 0, out, NULL, 0, &other), -GDR_EINVAL);
	CHECK_EQ(gdr_team_split_2d(GDR_TEAM_WORLD, 2, NULL, 0, &other, NULL, 0, out), -GDR_EINVAL);
	CHECK_EQ(other, GDR_TEAM_INVALID);
	CHECK(!out || team == GDR_TEAM_INVALID);
}

static void grid(int xrange)
{
	int pes[MAX_PES], n = 0, cols = xrange < multi_n ? xrange : multi_n;
	gdr_team_t x, y;

	CHECK_OK(gdr_team_split_2d(GDR_TEAM_WORLD, xrange, NULL, 0, &x, NULL, 0, &y));
	for (int i = multi_pe / cols * cols; i < multi_n && i / cols == multi_pe / cols; i++)
		pes[n++] = i;
	use_team(x, pes, n);
	next_round();
	n = 0;
	for (int i = multi_pe % cols; i < multi_n; i += cols)
		pes[n++] = i;
	use_team(y, pes, n);
	next_round();
	CHECK_OK(gdr_team_destroy(y));
	CHECK_OK(gdr_team_destroy(x));
}

/* n different PEs out of max, the same on all for the same seed. */
static void choose(uint64_t seed, int *list, int n, int max)
{
	for (int i = 0; i < n; i++) {
		int again;

		do {
			list[i] = (int)(multi_hash(seed++) % (uint64_t)max);
			again = 0;
			for (int j = 0; j < i; j++)
				again |= list[j] == list[i];
		} while (again);
	}
}

/* A team of random PEs, and one of random members of that. */
static void listed(uint64_t seed)
{
	int outer[MAX_PES], inner[MAX_PES], pes[MAX_PES];
	int n = 1 + (int)(multi_hash(seed) % (uint64_t)multi_n);
	int m = 1 + (int)(multi_hash(seed + 1) % (uint64_t)n);
	gdr_team_t team, sub = GDR_TEAM_INVALID;

	choose(seed * 1000, outer, n, multi_n);
	CHECK_OK(gdr_team_create(GDR_TEAM_WORLD, outer, n, NULL, 0, &team));
	use_team(team, outer, n);
	next_round();
	choose(seed * 1000 + 500, inner, m, n);
	for (int i = 0; i < m; i++)
		pes[i] = outer[inner[i]];
	if (team != GDR_TEAM_INVALID) {
		CHECK_OK(gdr_team_create(team, inner, m, NULL, 0, &sub));
		use_team(sub, pes, m);
		if (sub != GDR_TEAM_INVALID && seed % 2)
			CHECK_OK(gdr_team_destroy(sub));
		CHECK_OK(gdr_team_destroy(team));
		if (sub != GDR_TEAM_INVALID && seed % 2 == 0)
			CHECK_OK(gdr_team_destroy(sub)); /* outlives the one it was made of */
	}
	next_round();
}

/* The one that PE 0 makes. */
static uint64_t shared_id(void)
{
	uint64_t id = 0;

	if (multi_pe == 0) {
		CHECK_OK(gdr_team_new_id(&id));
		CHECK(id);
		for (int pe = 0; pe < multi_n; pe++)
			CHECK_OK(gdr_host_put(a.words + MAX_PES, &id, sizeof(id), pe));
	}
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_memcpy(&id, a.words + MAX_PES, sizeof(id)));
	CHECK_OK(gdr_barrier_all());
	return id;
}

/* Of random PEs, and at the same time of the others: nobody but the members calls. */
static void joined(uint64_t seed)
{
	gdr_team_config_t config = {(int)seed}, got = {0};
	int pes[MAX_PES], rest[MAX_PES], me = -1, m = 0;
	int n = 1 + (int)(multi_hash(seed + 70) % (uint64_t)multi_n);
	uint64_t id = shared_id();
	gdr_team_t team = GDR_TEAM_INVALID, other = GDR_TEAM_INVALID;

	choose(seed * 1000 + 250, pes, n, multi_n);
	for (int i = 0; i < n; i++)
		me = pes[i] == multi_pe ? i : me;
	for (int pe = multi_n - 1, in; pe >= 0; pe--) {
		in = 0;
		for (int i = 0; i < n; i++)
			in |= pes[i] == pe;
		if (!in)
			rest[m++] = pe;
	}
	for (int i = 0; i < m; i++)
		if (rest[i] == multi_pe)
			CHECK_OK(gdr_team_join(id + 1, m, i, NULL, 0, &other));
	if (me >= 0) {
		CHECK_OK(gdr_team_join(id, n, me, &config, GDR_TEAM_NUM_CONTEXTS, &team));
		CHECK_OK(gdr_team_get_config(team, GDR_TEAM_NUM_CONTEXTS, &got));
		CHECK_EQ(got.num_contexts, config.num_contexts);
	}
	use_team(team, pes, n);
	if (m)
		use_team(other, rest, m);
	CHECK_OK(gdr_team_destroy(me >= 0 ? team : other));
	next_round();
}

/* All hear of what is wrong with one. */
static void not_joined(void)
{
	gdr_team_config_t config = {multi_pe == 1 ? 2 : 3};
	uint64_t id = shared_id();
	gdr_team_t team = GDR_TEAM_WORLD;

	CHECK_EQ(gdr_team_new_id(NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_team_join(0, 1, 0, NULL, 0, &team), -GDR_EINVAL);
	CHECK_EQ(team, GDR_TEAM_INVALID);
	CHECK_EQ(gdr_team_join(id, multi_n + 1, 0, NULL, 0, &team), -GDR_EINVAL);
	next_round();
	CHECK_EQ(gdr_team_join(id + 1, multi_n, multi_pe == 0 ? -1 : multi_pe, NULL, 0, &team), -GDR_EINVAL);
	next_round();
	if (multi_n > 1) /* one number twice */
		CHECK_EQ(gdr_team_join(id + 2, multi_n, multi_pe ? multi_pe : 1, NULL, 0, &team),
			 -GDR_EINVAL);
	next_round();
	if (multi_n > 1)
		CHECK_EQ(gdr_team_join(id + 3, multi_n, multi_pe, &config, GDR_TEAM_NUM_CONTEXTS, &team),
			 -GDR_EMISMATCH);
	next_round();
	CHECK_EQ(gdr_team_join(id + 4, multi_n, multi_pe, NULL, 0, multi_pe == multi_n - 1 ? NULL : &team),
		 -GDR_EINVAL);
	next_round();
}

/* As many as there may be, then one more; then again. */
static void exhaust(void)
{
	uint64_t last = shared_id();
	gdr_team_t teams[64];
	int n = 0, ret = 0;

	for (int again = 0; again < 2; again++) {
		for (n = 0; n < 64; n++) {
			ret = gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n, NULL, 0, &teams[n]);
			if (ret)
				break;
		}
		CHECK_EQ(ret, -GDR_ENOMEM);
		CHECK(n > 8);
		if (!again)
			CHECK_EQ(gdr_team_join(last, multi_n, multi_pe, NULL, 0, &teams[n]), -GDR_ENOMEM);
		while (n-- > 0)
			CHECK_OK(gdr_team_destroy(teams[n]));
	}
}

int main(void)
{
	multi_begin();
	if (multi_n > MAX_PES)
		multi_fail(__FILE__, __LINE__, "more than %d PEs", MAX_PES);
	a.report = multi_report_new();
	a.words = (uint64_t *)gdr_calloc(MAX_PES + 1, 8);
	a.out = (uint64_t *)gdr_calloc(1, 8);
	CHECK(a.words && a.out);
	rounds = 6;
	predefined();
	all_strided();
	refused();
	no_place();
	for (int xrange = 1; xrange <= multi_n + 1; xrange++)
		grid(xrange);
	for (uint64_t seed = 1; seed <= 12; seed++)
		listed(seed);
	for (uint64_t seed = 1; seed <= 4; seed++)
		joined(seed);
	not_joined();
	exhaust();
	multi_shared_free(a.report);
	CHECK_OK(gdr_finalize());
	if (multi_pe == 0)
		printf("teams: all right on %d PEs\n", multi_n);
	return 0;
}
