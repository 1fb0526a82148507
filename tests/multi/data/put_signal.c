/* SPDX-License-Identifier: BSD-3-Clause */
/* put with signal: size x offset x scope x nbi x SET or ADD x where the source
 * lies. Every case has a region and a signal word of its own; who sees the signal
 * finds the data, what lies around both keeps its poison. */
#include "tests/multi/multi.h"

enum { THREAD, WARP, BLOCK, SCOPES };
enum { HEAP, BUFFER, STACK, SOURCES };

#define CASES 32u
#define INLINE 28u /* may come from anywhere, says gdr/device.h */
#define GAP 16u
#define AREA (5u * 4400u)
#define THREADS 64u

static const uint32_t sizes[] = {0, 1, 7, 8, 28, 29, 64, 4096 + 3};

GDRI_INLINE uint32_t offset_of(uint32_t i)
{
	return i % 4 ? i % 4 * 2 - 1 : 0; /* 0 1 3 5 */
}

struct cut {
	uint32_t dst, src, len; /* offsets in the areas */
};

struct put {
	int scope, nbi, op, source, pe;
	uint64_t seed, from; /* of the own source and of the PE that writes here */
	uint8_t *dst, *src;
	uint64_t *sig; /* word of case i: 2 * i + 1 */
	const struct cut *cuts;
	struct multi_report *report;
};

#define SIG_INIT 0xfffffffffffffff0u /* an ADD carries through all bytes */

GDRI_INLINE uint64_t value_of(uint64_t seed, uint32_t i)
{
	return multi_hash(seed * CASES + i) | 0x100;
}

static void make_cuts(struct cut *cuts)
{
	uint32_t at = GAP;

	for (uint32_t i = 0; i < CASES; i++) {
		uint32_t len = sizes[i / 4];

		cuts[i] = (struct cut){at + offset_of(i), at + offset_of(i + i / 4), len};
		at = (at + len + 2 * GAP) & ~(GAP - 1);
	}
	CHECK(at <= AREA);
}

#define FORM(suffix)                                                                               \
	(a->nbi ? gdr_put_signal_nbi##suffix(dst, src, len, sig, value, a->op, a->pe)              \
		: gdr_put_signal##suffix(dst, src, len, sig, value, a->op, a->pe))

GDR_DEVICE int issue(const struct put *a, uint8_t *dst, const uint8_t *src, uint32_t len,
		     uint64_t *sig, uint64_t value)
{
	return a->scope == THREAD ? FORM() : a->scope == WARP ? FORM(_warp) : FORM(_block);
}

/* One case as the calling unit; after a blocking form the source is free. */
GDR_DEVICE void send(const struct put *a, uint32_t i, uint32_t me, uint32_t of)
{
	const struct cut *c = &a->cuts[i];
	uint8_t *src = a->src + c->src, stack[INLINE + 8];

	if (a->source == STACK && a->scope == THREAD) { /* the kernel's own stack */
		memcpy(stack + offset_of(i), src, c->len);
		src = stack + offset_of(i);
	}
	EXPECT_OK(a->report, issue(a, a->dst + c->dst, src, c->len, a->sig + 2 * i + 1,
				   value_of(a->seed, i)));
	for (uint32_t k = me; !a->nbi && k < c->len; k += of)
		src[k] = 0xee;
}

/* Seeing the signal is enough: no quiet, no barrier in between. */
GDR_DEVICE void receive(const struct put *a, uint32_t i)
{
	const struct cut *c = &a->cuts[i];
	uint64_t want = value_of(a->from, i) + (a->op == GDR_SIGNAL_ADD ? SIG_INIT : 0);

	EXPECT_OK(a->report, gdr_signal_wait_until(a->sig + 2 * i + 1, GDR_CMP_NE, SIG_INIT));
	EXPECT_EQ(a->report, gdr_signal_fetch(a->sig + 2 * i + 1), want);
	for (uint32_t k = 0; k < c->len; k++)
		EXPECT_EQ(a->report, a->dst[c->dst + k], multi_byte(a->from, c->src + k));
}

GDRI_INLINE int applies(const struct put *a, uint32_t i)
{
	return a->source != STACK || a->cuts[i].len <= INLINE;
}

GDR_KERNEL(put, struct put, a)
{
	uint32_t t = gdr_thread_id();
	uint32_t of = a.scope == THREAD ? 1 : a.scope == WARP ? 32 : THREADS;

	for (uint32_t i = t / of; i < CASES; i += THREADS / of)
		if (applies(&a, i))
			send(&a, i, t % of, of);
	gdr_sync_block();
	if (t < CASES && applies(&a, t))
		receive(&a, t);
	gdr_sync_block();
	if (t == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

static void verify(const struct put *a)
{
	static uint64_t sig[2 * CASES + 1];
	static uint8_t dst[AREA];
	uint32_t at = 0;

	CHECK_OK(gdr_memcpy(dst, a->dst, sizeof(dst)));
	CHECK_OK(gdr_memcpy(sig, a->sig, sizeof(sig)));

	for (uint32_t i = 0; i < CASES; i++) {
		if (!applies(a, i))
			continue;
		for (; at < a->cuts[i].dst; at++)
			CHECK_EQ(dst[at], MULTI_POISON);
		for (uint32_t k = 0; k < a->cuts[i].len; k++, at++)
			CHECK_EQ(dst[at], multi_byte(a->from, a->cuts[i].src + k));
	}
	for (; at < AREA; at++)
		CHECK_EQ(dst[at], MULTI_POISON);
	for (uint32_t i = 0; i < CASES; i++) {
		uint64_t want = value_of(a->from, i) + (a->op == GDR_SIGNAL_ADD ? SIG_INIT : 0);

		CHECK_EQ(sig[2 * i], SIG_INIT);
		CHECK_EQ(sig[2 * i + 1], applies(a, i) ? want : SIG_INIT);
	}
	CHECK_EQ(sig[2 * CASES], SIG_INIT);
}

static void round_of(struct put *a, int round)
{
	int shift = (round + 1) % multi_n;
	static uint8_t src[AREA];

	a->pe = (multi_pe + shift) % multi_n;
	a->seed = (uint64_t)(round * 1024 + multi_pe);
	a->from = (uint64_t)(round * 1024 + (multi_pe + multi_n - shift) % multi_n);
	multi_fill(a->dst, MULTI_POISON, AREA);
	for (uint32_t i = 0; i <= 2 * CASES; i++)
		multi_set_u64(a->sig + i, SIG_INIT);
	for (uint32_t i = 0; i < AREA; i++)
		src[i] = multi_byte(a->seed, i);
	CHECK_OK(gdr_memcpy(a->src, src, AREA));
	CHECK_OK(gdr_barrier_all());
	RUN(put, 1, THREADS, a);
	CHECK_OK(gdr_barrier_all());
	verify(a);
}

int main(void)
{
	struct cut *cuts = (struct cut *)multi_shared_new(CASES * sizeof(struct cut));
	uint8_t *sources[SOURCES];
	struct put a;
	int round = 0;

	multi_begin();
	memset(&a, 0, sizeof(a));
	make_cuts(cuts);
	a.cuts = cuts;
	a.report = multi_report_new();
	a.dst = (uint8_t *)gdr_malloc(AREA);
	a.sig = (uint64_t *)gdr_malloc((2 * CASES + 1) * 8);
	sources[HEAP] = (uint8_t *)gdr_malloc(AREA);
	sources[BUFFER] = (uint8_t *)multi_shared_new(AREA);
	sources[STACK] = (uint8_t *)multi_shared_new(AREA); /* copied to the stack by kernels */
	CHECK(a.dst && a.sig && sources[HEAP] && sources[BUFFER]);
	CHECK_OK(gdr_buffer_register(sources[BUFFER], AREA));
	for (a.source = 0; a.source < SOURCES; a.source++) {
		a.src = sources[a.source];
		for (a.scope = 0; a.scope < SCOPES; a.scope++)
			for (int form = 0; form < 4; form++) {
				a.nbi = form & 1;
				a.op = form & 2 ? GDR_SIGNAL_ADD : GDR_SIGNAL_SET;
				round_of(&a, round++);
			}
	}
	CHECK_OK(gdr_buffer_unregister(sources[BUFFER]));
	multi_shared_free(sources[BUFFER]);
	multi_shared_free(sources[STACK]);
	multi_shared_free(cuts);
	multi_shared_free(a.report);
	return multi_end("put_signal");
}
