/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies at every pair of alignments and many lengths, by thread, warp and block: what lies
 * around them keeps its poison. Host memory goes to the device by gdr_memcpy alone, so this
 * program runs on GPUs too. */
#include "tests/multi/multi.h"

#define AREA (1u << 20)
#define CASES 700

struct cut {
	uint32_t dst, src, len;
};

struct copies {
	int scope, get, pe, n;
	char *dst, *src;
	struct cut *cuts;
	int *status;
};

GDR_DEVICE int issue(const struct copies *a, const struct cut *c)
{
	char *d = a->dst + c->dst;
	const char *s = a->src + c->src;

	if (a->get)
		return a->scope == 0   ? gdr_get_nbi(d, s, c->len, a->pe)
		       : a->scope == 1 ? gdr_get_nbi_warp(d, s, c->len, a->pe)
				       : gdr_get_nbi_block(d, s, c->len, a->pe);
	return a->scope == 0   ? gdr_put_nbi(d, s, c->len, a->pe)
	       : a->scope == 1 ? gdr_put_nbi_warp(d, s, c->len, a->pe)
			       : gdr_put_nbi_block(d, s, c->len, a->pe);
}

GDR_KERNEL(copy_all, struct copies, a)
{
	uint32_t unit = a.scope == 0 ? 1 : a.scope == 1 ? 32 : gdr_block_size();
	uint32_t me = gdr_thread_id() / unit, of = (gdr_block_size() + unit - 1) / unit;
	int i, ret = 0;

	for (i = (int)me; i < a.n && !ret; i += (int)of)
		ret = issue(&a, &a.cuts[i]);
	gdr_sync_block();
	if (!ret && gdr_thread_id() == 0)
		ret = gdr_quiet();
	if (ret)
		*a.status = ret;
}

/* Lengths around the widths of accesses and of unrolled loops; all pairs of alignments. */
static int make_cuts(struct cut *cuts)
{
	static const uint32_t len[] = {1, 7, 15, 16, 17, 100, 127, 1024 + 3, 4096};
	uint32_t at = 16, i, n = 0;

	for (i = 0; i < 256; i++) {
		cuts[n] = (struct cut){at + (i & 15), at + (i >> 4), len[i % 9]};
		at += (cuts[n++].len + 63) & ~15u;
	}
	for (i = 0; i < 3; i++) {
		cuts[n] = (struct cut){at + 5 * i, at + 5 * i, 150000 + i};
		at += (cuts[n++].len + 63) & ~15u;
	}
	CHECK(n <= CASES && at < AREA);
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

static void round_of(struct copies *a, unsigned threads, const struct cut *cuts, uint8_t *host,
		     uint64_t from)
{
	int status;
	uint32_t i;

	memset(host, MULTI_POISON, AREA);
	CHECK_OK(gdr_memcpy(a->dst, host, AREA));
	for (i = 0; i < AREA; i++)
		host[i] = multi_byte((uint64_t)multi_pe + 1, i);
	CHECK_OK(gdr_memcpy(a->src, host, AREA));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_launch(copy_all, 1, threads, 0, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_OK(gdr_memcpy(&status, a->status, sizeof(status)));
	CHECK_OK(status);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_memcpy(host, a->dst, AREA));
	verify(host, cuts, a->n, from);
	CHECK_OK(gdr_barrier_all());
}

int main(void)
{
	static struct cut cuts[CASES];
	struct copies a;
	uint8_t *host;
	int next, previous;

	multi_begin();
	next = (multi_pe + 1) % multi_n;
	previous = (multi_pe + multi_n - 1) % multi_n;
	memset(&a, 0, sizeof(a));
	a.n = make_cuts(cuts);
	a.pe = next;
	a.dst = (char *)gdr_align(64, AREA);
	a.src = (char *)gdr_align(64, AREA);
	a.cuts = (struct cut *)gdr_calloc(CASES, sizeof(struct cut));
	a.status = (int *)gdr_calloc(1, sizeof(int));
	host = (uint8_t *)malloc(AREA);
	CHECK(a.dst && a.src && a.cuts && a.status && host);
	CHECK_OK(gdr_memcpy(a.cuts, cuts, sizeof(cuts)));
	for (a.scope = 0; a.scope < 3; a.scope++)
		for (a.get = 0; a.get < 2; a.get++)
			round_of(&a, 128, cuts, host, (uint64_t)(a.get ? next : previous) + 1);
	/* no whole number of warps, and not even one */
	a.scope = 2;
	a.get = 1;
	round_of(&a, 100, cuts, host, (uint64_t)next + 1);
	a.get = 0;
	for (a.scope = 1; a.scope < 3; a.scope++)
		round_of(&a, 20, cuts, host, (uint64_t)previous + 1);
	free(host);
	return multi_end("copies");
}
