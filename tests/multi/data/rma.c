/* SPDX-License-Identifier: BSD-3-Clause */
/* put and get in every form x size x alignment, from heap and registered
 * buffers, between all pairs: all cases of a form run in one kernel, each in a
 * region of its own; what is not written must keep its poison. */
#include "tests/multi/multi.h"

enum { PUT, PUT_NBI, GET, GET_NBI, OPS };
enum { THREAD, WARP, BLOCK, SCOPES };

struct cut {
	uint32_t dst, src, len; /* offsets in the two areas */
};

struct rma {
	int op, scope, pe, n_cuts;
	uint64_t seed; /* of the source */
	uint8_t *dst, *src;
	const struct cut *cuts;
	struct multi_report *report;
};

/* ThreadSanitizer is too slow for the bytes of the large sizes. */
#ifdef __SANITIZE_THREAD__
#define AREA (256u << 10)
#define N_LARGE 0
#else
#define AREA (6u << 20)
#define N_LARGE 3
#endif
#define MAX_CUTS 256

static const uint32_t sizes[] = {1,  2,	  3,   4,   5,	 7,   8,    9,	  12,	15,    16,
				 17, 28,  31,  32,  33,	 44,  45,   60,	  63,	64,    65,
				 96, 127, 128, 255, 256, 257, 1000, 4095, 4096, 4097,  9001};
static const uint32_t large[] __attribute__((unused)) = {65536 + 5, 262144, (1u << 20) + 3};
static const uint32_t align[][2] = {{0, 0}, {1, 0}, {0, 3}, {5, 7}};

static int make_cuts(struct cut *cuts)
{
	uint32_t d = 16, s = 16;
	int n = 0;

	for (unsigned a = 0; a < 4; a++)
		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			cuts[n++] = (struct cut){d + align[a][0], s + align[a][1], sizes[i]};
			d = (d + sizes[i] + 31) & ~15u;
			s = (s + sizes[i] + 31) & ~15u;
		}
	for (int i = 0; i < N_LARGE; i++) { /* N_LARGE may be 0 */
		cuts[n++] = (struct cut){d + align[i][0], s + align[i + 1][1], large[i]};
		d = (d + large[i] + 31) & ~15u;
		s = (s + large[i] + 31) & ~15u;
	}
	CHECK(n <= MAX_CUTS && d <= AREA && s <= AREA);
	return n;
}

GDR_DEVICE int issue(const struct rma *a, const struct cut *c)
{
	uint8_t *d = a->dst + c->dst;
	const uint8_t *s = a->src + c->src;

	/* not a table of functions: in the checked build they are macros */
#define FORM(op, OP, suffix, SCOPE)                                                                \
	case OP * SCOPES + SCOPE:                                                                  \
		return gdr_##op##suffix(d, s, c->len, a->pe);
#define FORMS(op, OP) FORM(op, OP, , THREAD) FORM(op, OP, _warp, WARP) FORM(op, OP, _block, BLOCK)
	switch (a->op * SCOPES + a->scope) {
		FORMS(put, PUT)
		FORMS(put_nbi, PUT_NBI)
		FORMS(get, GET)
		FORMS(get_nbi, GET_NBI)
	}
	return -GDR_EINVAL;
}

/* What a blocking form promises on return: the source of a put is free, the
 * data of a get is there. */
GDR_DEVICE void after(const struct rma *a, const struct cut *c, uint32_t i, uint32_t step)
{
	for (; i < c->len; i += step)
		if (a->op == PUT)
			a->src[c->src + i] = 0xee;
		else if (a->op == GET)
			EXPECT_EQ(a->report, a->dst[c->dst + i], multi_byte(a->seed, c->src + i));
}

GDR_KERNEL(rma, struct rma, a)
{
	uint32_t t = gdr_thread_id(), me = 0, of = 1, unit = t, units = gdr_block_size();

	if (a.scope == WARP) {
		unit = t / 32;
		units = (gdr_block_size() + 31) / 32;
		me = gdr_lane_id();
		of = 32;
	} else if (a.scope == BLOCK) {
		unit = 0;
		units = 1;
		me = t;
		of = gdr_block_size();
	}
	unit += units * gdr_block_id();
	units *= gdr_grid_size();
	for (uint32_t i = unit; i < (uint32_t)a.n_cuts; i += units) {
		EXPECT_OK(a.report, issue(&a, &a.cuts[i]));
		after(&a, &a.cuts[i], me, of);
	}
	gdr_sync_block();
	if (a.op != GET && t == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

/* Everything that should have arrived is there, everything else is poison. */
static void verify(const uint8_t *area, const struct cut *cuts, int n, uint64_t seed)
{
	uint8_t *dst = (uint8_t *)multi_copy(area, AREA);
	uint32_t at = 0;

	for (int i = 0; i < n; i++) {
		for (; at < cuts[i].dst; at++)
			CHECK_EQ(dst[at], MULTI_POISON);
		for (uint32_t k = 0; k < cuts[i].len; k++, at++)
			if (dst[at] != multi_byte(seed, cuts[i].src + k))
				multi_fail(__FILE__, __LINE__,
					   "case %d (dst %u src %u len %u): byte %u is %02x, not %02x",
					   i, cuts[i].dst, cuts[i].src, cuts[i].len, k, dst[at],
					   multi_byte(seed, cuts[i].src + k));
	}
	for (; at < AREA; at++)
		CHECK_EQ(dst[at], MULTI_POISON);
	free(dst);
}

/* One form with one distance between the PEs. `local` replaces the side of the transfer that is
 * not remote. */
static void round_of(struct rma *a, uint8_t *dst, uint8_t *src, uint8_t *local, int shift)
{
	static uint64_t round;
	static uint8_t image[AREA];
	int put = a->op == PUT || a->op == PUT_NBI;
	int to = (multi_pe + shift) % multi_n, from = (multi_pe + multi_n - shift) % multi_n;
	uint64_t mine = ++round * 1024 + (uint64_t)multi_pe;
	uint64_t peer = round * 1024 + (uint64_t)(put ? from : to);

	a->pe = to;
	a->dst = local && !put ? local : dst;
	a->src = local && put ? local : src;
	a->seed = peer;
	memset(image, MULTI_POISON, AREA);
	CHECK_OK(gdr_memcpy(put ? dst : a->dst, image, AREA));
	for (uint32_t i = 0; i < AREA; i++)
		image[i] = multi_byte(mine, i);
	CHECK_OK(gdr_memcpy(put ? a->src : src, image, AREA));
	CHECK_OK(gdr_barrier_all());
	RUN(rma, 2, 64, a);
	CHECK_OK(gdr_barrier_all());
	verify(put ? dst : a->dst, a->cuts, a->n_cuts, peer);
}

int main(int argc, char **argv)
{
	int every = argc > 1 && !strcmp(argv[1], "all");
	struct cut *cuts = (struct cut *)multi_shared_new(MAX_CUTS * sizeof(*cuts));
	struct rma a = {0};
	uint8_t *dst, *src, *local = (uint8_t *)multi_shared_new(AREA);

	multi_begin();
	CHECK(cuts && local);
	a.cuts = cuts;
	a.n_cuts = make_cuts(cuts);
	a.report = multi_report_new();
	dst = (uint8_t *)gdr_malloc(AREA);
	src = (uint8_t *)gdr_malloc(AREA);
	CHECK(dst && src);
	CHECK_OK(gdr_buffer_register(local, AREA));
	for (a.op = 0; a.op < OPS; a.op++)
		for (a.scope = 0; a.scope < SCOPES; a.scope++) {
			int shift = (a.op + a.scope) % multi_n;

			round_of(&a, dst, src, a.scope == a.op % SCOPES ? local : NULL, shift);
			for (int s = 0; every && s < multi_n; s++)
				round_of(&a, dst, src, s & 1 ? local : NULL, s);
		}
	CHECK_OK(gdr_buffer_unregister(local));
	CHECK_OK(gdr_free(dst));
	CHECK_OK(gdr_free(src));
	multi_shared_free(a.report);
	multi_shared_free(local);
	multi_shared_free(cuts);
	return multi_end("rma");
}
