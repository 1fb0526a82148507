/* SPDX-License-Identifier: BSD-3-Clause */
/* put and get by way of shared memory: many alignments of both ends and of the stage, lengths around those of its
 * pieces, by threads, warps and a block, from shared memory itself; what lies around destination and stage keeps
 * its poison. Then rounds in which the data changes: what threads stored is what the engine reads, and what it wrote
 * is what they see. */
#include "tests/multi/multi.h"

#define AREA (3u << 20)
#define CASES 96
#define SHARED (96u * 1024)

struct cut {
	uint32_t dst, src, len;
};

struct bulk {
	struct multi_report *report;
	int scope, get, nbi, shared, pe, n;
	uint32_t lanes;	      /* scope 0: of each warp, at once */
	uint32_t stage, skew; /* bytes of each unit's, and where they begin */
	char *dst, *src;
	struct cut *cuts;
};

#define CALL(scope)                                                                                \
	(a->get ? (a->nbi ? gdr_get_bulk_nbi##scope(d, s, c->len, stage, a->stage, a->pe)          \
			  : gdr_get_bulk##scope(d, s, c->len, stage, a->stage, a->pe))             \
		: (a->nbi ? gdr_put_bulk_nbi##scope(d, s, c->len, stage, a->stage, a->pe)          \
			  : gdr_put_bulk##scope(d, s, c->len, stage, a->stage, a->pe)))
/* A function each: gcc takes minutes for all calls in one, under sanitizers. */
#define ISSUE(name, scope)                                                                         \
	MULTI_BODY int issue_##name(const struct bulk *a, const struct cut *c, const char *s, void *stage) \
	{                                                                                          \
		char *d = a->dst + c->dst;                                                         \
                                                                                                   \
		return CALL(scope);                                                                \
	}
ISSUE(thread, )
ISSUE(warp, _warp)
ISSUE(block, _block)

GDR_DEVICE void meet(int scope)
{
	if (scope == 1)
		gdr_sync_warp(0xffffffffu);
	else if (scope == 2)
		gdr_sync_block();
}

/* Does the engine take it? Then it leaves its traces in the stage. */
GDR_DEVICE int by_engine(const struct bulk *a, const struct cut *c, uint32_t size)
{
#if GDRI_HAS_BULK
	return !a->shared && a->stage >= 512 && !((c->dst ^ c->src) & 15) && gdri_bulk_pays(size, a->get, c->len) &&
	       gdr_ptr(a->dst, a->pe);
#else
	(void)a, (void)c, (void)size;
	return 0;
#endif
}

/* Units of one thread, a warp, or the block; each with as much of the shared memory. */
GDR_KERNEL(move, struct bulk, a)
{
	uint32_t warps = gdr_block_size() / 32, lane = gdr_thread_id() % 32, size, rank, me, of, room, k;
	uint32_t taken = 0, seen = 0;
	uint8_t *own, *stage;
	int i, ret = 0, idle = a.scope == 0 && lane >= a.lanes;

	size = a.scope == 0 ? 1 : a.scope == 1 ? 32 : gdr_block_size();
	rank = a.scope == 0 ? 0 : a.scope == 1 ? lane : gdr_thread_id();
	me = a.scope == 0 ? gdr_thread_id() / 32 * a.lanes + lane : a.scope == 1 ? gdr_thread_id() / 32 : 0;
	of = a.scope == 0 ? warps * a.lanes : a.scope == 1 ? warps : 1;
	room = SHARED / of & ~15u;
	own = (uint8_t *)gdr_shared() + (size_t)(idle ? 0 : me) * room;
	stage = own + 16 + a.skew;
	if (!idle)
		for (k = rank; k < room; k += size)
			own[k] = MULTI_POISON;
	meet(a.scope);
	for (i = (int)me; i < a.n && !ret && !idle; i += (int)of) {
		const struct cut *c = &a.cuts[i];
		const char *s = a.src + c->src;

		taken += (uint32_t)by_engine(&a, c, size);
		if (a.shared) { /* at a place like the heap's */
			for (k = rank; k < c->len; k += size)
				own[c->src % 16 + k] = (uint8_t)s[k];
			s = (const char *)own + c->src % 16;
			stage = 0;
		}
		ret = a.scope == 0 ? issue_thread(&a, c, s, stage)
		      : a.scope == 1 ? issue_warp(&a, c, s, stage)
				     : issue_block(&a, c, s, stage);
		if (a.shared && a.nbi && !ret) /* the source is the operation's until then */
			ret = gdr_quiet();
		meet(a.scope); /* the source may be overwritten */
	}
	EXPECT_OK(a.report, ret);
	gdr_sync_block();
	if (gdr_thread_id() == 0)
		EXPECT_OK(a.report, gdr_quiet());
	if (a.shared || idle)
		return;
	for (k = rank; k < room; k += size)
		if (k < 16 + a.skew || k >= 16 + a.skew + a.stage)
			EXPECT_EQ(a.report, own[k], MULTI_POISON);
	for (k = 0; k < a.stage; k++)
		seen |= stage[k] != MULTI_POISON;
	EXPECT_EQ(a.report, seen, taken != 0);
}

static int make_cuts(struct cut *cuts, uint32_t most)
{
	static const uint32_t len[] = {0,    8,	   255,	 256,  257,   1024,  2047, 2048,
				       2064, 4096, 5000, 9001, 16384, 70000, 230000};
	uint32_t at = 32, i, n = 0;

	for (i = 0; i < CASES; i++) {
		uint32_t l = len[i % 15], d = i % 7 < 4 ? i % 16 : 0;

		if (l > most)
			continue;
		/* mostly alike, as the engine wants them */
		cuts[n++] = (struct cut){at + d, at + (i % 11 ? d : 15 - d), l};
		at += (l + 63) & ~15u;
	}
	CHECK(at < AREA);
	return (int)n;
}

static void verify(const uint8_t *got, const struct cut *cuts, int n, uint64_t seed)
{
	uint32_t at = 0, k;
	int i;

	for (i = 0; i < n; i++) {
		for (; at < cuts[i].dst; at++)
			CHECK_EQ(got[at], MULTI_POISON);
		for (k = 0; k < cuts[i].len; k++, at++)
			CHECK_EQ(got[at], multi_byte(seed, cuts[i].src + k));
	}
	for (; at < AREA; at++)
		CHECK_EQ(got[at], MULTI_POISON);
}

static void round_of(struct bulk *a, unsigned threads, const struct cut *cuts, uint8_t *host, uint64_t from)
{
	memset(host, MULTI_POISON, AREA);
	CHECK_OK(gdr_memcpy(a->dst, host, AREA));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_launch(move, 1, threads, SHARED, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
	if (a->report->line)
		multi_fail(__FILE__, a->report->line, "in kernel: %lld, not %lld: scope %d get %d stage %u+%u",
			   a->report->got, a->report->want, a->scope, a->get, a->stage, a->skew);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_memcpy(host, a->dst, AREA));
	verify(host, cuts, a->n, from);
	CHECK_OK(gdr_barrier_all());
}

GDR_KERNEL(ask, struct bulk, a)
{
	a.report->got = gdr_ptr(a.dst, a.pe) != 0;
}

static int mapped(struct bulk *a)
{
	CHECK_OK(gdr_launch(ask, 1, 1, 0, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
	return (int)a->report->got;
}

static void set_cuts(struct bulk *a, struct cut *cuts, uint32_t most)
{
	a->n = make_cuts(cuts, most);
	CHECK_OK(gdr_memcpy(a->cuts, cuts, CASES * sizeof(*cuts)));
}

static void everywhere(struct bulk *a, struct cut *cuts, uint8_t *host, uint64_t prev, uint64_t next)
{
	static const uint32_t stages[] = {511, 512, 1100, 5000, 20000};
	uint32_t i;

	set_cuts(a, cuts, ~0u);
	for (a->scope = 0; a->scope < 3; a->scope++)
		for (i = 0; i < 5; i++) {
			a->lanes = i < 3 ? 8 : 1;
			a->stage = i == 4 && a->scope == 2 ? 90000 : stages[i];
			a->skew = i * 5 % 16;
			a->nbi = (int)i & 1;
			for (a->get = 0; a->get < 2; a->get++)
				round_of(a, 96, cuts, host, a->get ? next : prev);
		}
}

/* A NIC reads no shared memory. A warp and a block of its own have as much as the engine takes from them. */
static void from_shared(struct bulk *a, struct cut *cuts, uint8_t *host, uint64_t prev)
{
	a->get = 0;
	a->shared = 1;
	a->lanes = 1;
	a->stage = 0;
	for (a->scope = 0; a->scope < 3; a->scope++) {
		set_cuts(a, cuts, a->scope ? SHARED - 16 : SHARED / 3 - 16);
		for (a->nbi = 0; a->nbi < 2; a->nbi++)
			round_of(a, a->scope ? 32 : 96, cuts, host, prev);
	}
}

/* ---- rounds ---- */

#define WORDS 32768u /* by two warps twice what the engine takes */

struct rounds {
	struct multi_report *report;
	int n, next, prev;
	uint32_t stage;
	uint64_t *src, *dst, *back, *sig;
};

GDR_DEVICE uint64_t word(int pe, int round, uint32_t k)
{
	return (uint64_t)round << 40 | (uint64_t)pe << 32 | k;
}

GDR_KERNEL(go_round, struct rounds, a)
{
	int me = gdr_my_pe(), i, ret = 0;
	uint32_t k, of = gdr_block_size();

	for (i = 1; i <= a.n && !ret; i++) {
		for (k = gdr_thread_id(); k < WORDS; k += of)
			a.src[k] = word(me, i, k);
		ret = gdr_put_bulk_block(a.dst, a.src, WORDS * 8, gdr_shared(), a.stage, a.next);
		if (gdr_thread_id() == 0) {
			EXPECT_OK(a.report, ret);
			EXPECT_OK(a.report, gdr_fence());
			EXPECT_OK(a.report, gdr_signal_op(a.sig, (uint64_t)i, GDR_SIGNAL_SET, a.next));
			EXPECT_OK(a.report, gdr_signal_wait_until_from(a.sig, GDR_CMP_GE, (uint64_t)i, a.prev));
			EXPECT_OK(a.report, gdr_quiet());
		}
		gdr_sync_block();
		for (k = gdr_thread_id(); k < WORDS; k += of)
			EXPECT_EQ(a.report, a.dst[k], word(a.prev, i, k));
		/* what lies at the next one, over what was read here the round before */
		ret |= gdr_get_bulk_block(a.back, a.dst, WORDS * 8, gdr_shared(), a.stage, a.next);
		for (k = gdr_thread_id(); k < WORDS; k += of)
			EXPECT_EQ(a.report, a.back[k], word(me, i, k));
		ret |= gdr_sync_all_block();
	}
	if (gdr_thread_id() == 0)
		EXPECT_OK(a.report, ret);
}

static void rounds(int n, struct multi_report *report)
{
	struct rounds a;
	uint32_t stage;

	memset(&a, 0, sizeof(a));
	a.report = report;
	a.n = n;
	a.next = (multi_pe + 1) % multi_n;
	a.prev = (multi_pe + multi_n - 1) % multi_n;
	a.src = (uint64_t *)gdr_align(64, WORDS * 8);
	a.dst = (uint64_t *)gdr_align(64, WORDS * 8);
	a.back = (uint64_t *)gdr_align(64, WORDS * 8);
	CHECK(a.src && a.dst && a.back);
	for (stage = 2048; stage <= SHARED; stage *= 6) {
		a.stage = stage;
		a.sig = (uint64_t *)gdr_calloc(1, 8);
		CHECK(a.sig);
		CHECK_OK(gdr_launch(go_round, 1, 64, SHARED, NULL, &a));
		CHECK_OK(gdr_stream_sync(NULL));
		if (report->line)
			multi_fail(__FILE__, report->line, "in kernel: %lld, not %lld", report->got, report->want);
		CHECK_OK(gdr_barrier_all());
	}
}

int main(int argc, char **argv)
{
	static struct cut cuts[CASES];
	struct bulk a;
	uint8_t *host;
	uint32_t i;

	multi_begin();
	memset(&a, 0, sizeof(a));
	a.report = multi_report_new();
	a.pe = (multi_pe + 1) % multi_n;
	a.dst = (char *)gdr_align(64, AREA);
	a.src = (char *)gdr_align(64, AREA);
	a.cuts = (struct cut *)gdr_calloc(CASES, sizeof(struct cut));
	host = (uint8_t *)malloc(AREA);
	CHECK(a.dst && a.src && a.cuts && host);
	for (i = 0; i < AREA; i++)
		host[i] = multi_byte((uint64_t)multi_pe + 1, i);
	CHECK_OK(gdr_memcpy(a.src, host, AREA));
	everywhere(&a, cuts, host, (uint64_t)((multi_pe + multi_n - 1) % multi_n) + 1, (uint64_t)a.pe + 1);
	if (mapped(&a))
		from_shared(&a, cuts, host, (uint64_t)((multi_pe + multi_n - 1) % multi_n) + 1);
	rounds(argc > 1 ? atoi(argv[1]) : 20, a.report);
	free(host);
	multi_shared_free(a.report);
	return multi_end("bulk");
}
