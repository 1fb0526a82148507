/* SPDX-License-Identifier: BSD-3-Clause */
/* What short collectives rest on (ll.h; docs/memory-model-internals.md, LL protocol), with its accesses and without the
 * rest: in each epoch each thread of each PE stores an element, data and number in one word, to each other PE, takes
 * those of all, and the block meets; two areas take turns. Forbidden are a number whose data is another epoch's, and
 * the number of a later epoch in the place of one that was not read yet.
 *
 * usage: litmus_words [ROUNDS [THREADS [MODE]]]. Modes that take something away, so that what is forbidden shows:
 *	one	one area in place of two
 *	silent	PE 0 alone sends: it need not wait for anybody
 *	ahead	the number in a word of its own, stored before the data
 * apart: the same behind the data, with nothing between; whether that shows is the machine's matter, and only counted.
 */
#include "tests/multi/multi.h"

#define LIMIT_NS 60000000000u

enum { STRONG, ONE, SILENT, AHEAD, APART, MODES };
static const char *const modes[MODES] = {"", "one", "silent", "ahead", "apart"};

struct words {
	int mode, rounds;
	uint64_t *unit; /* [2][PEs][threads][2] */
	uint64_t *bad;	/* [2]: forbidden outcomes, and waits without end */
};

GDR_DEVICE uint64_t *unit_of(const struct words *w, uint64_t part, int from)
{
	uint64_t area = w->mode == ONE ? 0 : part & 1;
	uint64_t row = area * (uint64_t)gdr_n_pes() + (uint64_t)from;

	return w->unit + 2 * (row * gdr_block_size() + gdr_thread_id());
}

GDR_DEVICE uint64_t data_of(uint64_t part, int from, int to)
{
	return multi_hash(part * 65537 + (uint64_t)from * 4099 + (uint64_t)to * 257 + gdr_thread_id());
}

/* Pairs with the loads in take by what the words hold. */
GDR_DEVICE void send(const struct words *w, uint64_t part, int to)
{
	uint64_t v = data_of(part, gdr_my_pe(), to);
	uint64_t *p = (uint64_t *)gdr_ptr(unit_of(w, part, gdr_my_pe()), to);

	if (w->mode == AHEAD) {
		gdri_st_relaxed_sys_u64(p + 1, part);
		for (unsigned i = 0; i < 20; i++)
			gdr_pause(i);
		gdri_st_relaxed_sys_u64(p, v);
	} else if (w->mode == APART) {
		gdri_st_relaxed_sys_u64(p, v);
		gdri_st_relaxed_sys_u64(p + 1, part);
	} else {
		gdri_st_pair_sys(p, part << 32 | (uint32_t)v, part << 32 | v >> 32);
	}
}

/* 1: the number of this part, or of a later one, is there. */
GDR_DEVICE int look(const struct words *w, const uint64_t *p, uint64_t part, uint64_t *v, int *later)
{
	uint64_t a, b;

	if (w->mode == AHEAD || w->mode == APART) {
		a = gdri_ld_relaxed_sys_u64(p + 1);
		*v = gdri_ld_relaxed_sys_u64(p);
		*later = a > part;
		return a >= part;
	}
	gdri_ld_pair_sys(p, &a, &b);
	*v = (uint32_t)a | b << 32;
	*later = a >> 32 > part || b >> 32 > part;
	return a >> 32 >= part && b >> 32 >= part;
}

/* Forbidden outcomes; *stuck: nothing came. */
GDR_DEVICE uint64_t take(const struct words *w, uint64_t part, int from, int *stuck)
{
	const uint64_t *p = unit_of(w, part, from);
	uint64_t v, end = gdr_clock_ns() + LIMIT_NS;
	int later;

	for (unsigned i = 0; !look(w, p, part, &v, &later); i++) {
		gdr_pause(i);
		if (i % 1024 == 1023 && gdr_clock_ns() > end) {
			*stuck = 1;
			return 0;
		}
	}
	return later || v != data_of(part, from, gdr_my_pe());
}

GDR_KERNEL(exchange, struct words, w)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), stuck = 0;
	uint64_t bad = 0, h;

	for (uint64_t part = 1; part <= (uint64_t)w.rounds && !stuck; part++) {
		h = multi_hash(part * 131 + (uint64_t)me);
		for (int i = 1; i < n && (w.mode != SILENT || !me); i++)
			send(&w, part, (me + i) % n);
		/* now and then a PE, or a thread of it, is late to look */
		if (!(h & 63) && (h >> 8 & 1 || (h >> 16) % gdr_block_size() == gdr_thread_id()))
			for (unsigned i = 0; i < (h >> 32 & 63); i++)
				gdr_pause(i);
		for (int i = 1; i < n; i++)
			if (w.mode != SILENT || !((me + i) % n))
				bad += take(&w, part, (me + i) % n, &stuck);
		gdr_sync_block();
	}
	/* read after the kernel's end */
	if (bad)
		gdri_amo_add_u64(w.bad, bad);
	if (stuck)
		gdri_amo_add_u64(w.bad + 1, 1);
}

/* Of all PEs. */
static uint64_t all_bad(uint64_t mine)
{
	uint64_t *sum = (uint64_t *)gdr_calloc(2, sizeof(uint64_t)), v;

	CHECK(sum);
	CHECK_OK(gdr_memcpy(sum + 1, &mine, sizeof(mine)));
	CHECK_OK(gdr_uint64_sum_reduce(GDR_TEAM_WORLD, sum, sum + 1, 1));
	CHECK_OK(gdr_memcpy(&v, sum, sizeof(v)));
	CHECK_OK(gdr_free(sum));
	return v;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 4;
	struct words w = {0};
	uint64_t bad;

	multi_begin();
	w.rounds = argc > 1 ? atoi(argv[1]) : 300;
	while (argc > 3 && w.mode < MODES && strcmp(argv[3], modes[w.mode]))
		w.mode++;
	CHECK(w.rounds > 0 && threads && w.mode < MODES);
	w.unit = (uint64_t *)gdr_calloc((size_t)multi_n * threads * 4, sizeof(uint64_t));
	w.bad = (uint64_t *)multi_shared_new(2 * sizeof(uint64_t));
	CHECK(w.unit);
	for (int i = 0; i < multi_n; i++)
		CHECK(gdr_host_ptr(w.unit, i)); /* words are for members that map each other's memory */
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_launch(exchange, 1, threads, 0, NULL, &w));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(w.bad[1], 0);
	bad = all_bad(w.bad[0]);
	if (multi_pe == 0)
		printf("words%s%s: %zu units, %llu forbidden outcomes\n", w.mode ? ", " : "", modes[w.mode],
		       (size_t)multi_n * (size_t)(multi_n - 1) * threads * (size_t)w.rounds,
		       (unsigned long long)bad);
	if (w.mode == STRONG)
		CHECK_EQ(bad, 0);
	if (w.mode && w.mode != APART && multi_n > 1)
		CHECK(bad);
	multi_shared_free(w.bad);
	return multi_end("litmus_words");
}
