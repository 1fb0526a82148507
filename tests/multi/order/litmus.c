/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory model as litmus tests, each thread of each PE with words of its own, round after round:
 *
 *	signal	put_signal; who has waited for the signal reads the data
 *	quiet	p, p, ..; quiet; p(flag); who has waited for the flag reads the data
 *	fence	the same with fence
 *	atomic	p, p, ..; fence; atomic_inc(flag)
 *	get	p, p, ..; quiet; g of what was put
 *	put	put_nbi; fence; p(flag): data that may overtake data, and a flag that may not
 *	puts	put_nbi; fence; put_nbi of the last word; who has waited for that reads the rest
 *
 * usage: litmus [ROUNDS [BLOCKS [THREADS [strong | reordered | weak | grown [SECONDS [MANY]]]]]].
 * grown: all words lie in what the heap grew by. reordered: the sender does what the order forbids,
 * flag first, and the data when that has been looked for: a test that does not see that sees nothing.
 * weak: sender and receiver leave out what orders; whether that shows is the machine's matter, and only
 * counted.
 * SECONDS: each pattern goes on for so long, ROUNDS in each kernel, or until all PEs together have had
 * MANY. Where an operation takes tens of microseconds but many go at a time (softhca, memory of GPUs),
 * many threads make many rounds.
 */
#include "tests/multi/multi.h"

enum { SIGNAL, QUIET, FENCE, ATOMIC, GET, PUT, PUTS, PATTERNS };
static const char *const names[] = {"signal", "quiet", "fence", "atomic", "get", "put", "puts"};

#define WORDS 4

enum { STRONG, REORDERED, WEAK };

struct litmus {
	int pattern, mode, rounds;
	uint64_t before; /* rounds of earlier kernels */
	uint64_t many; /* that much is enough, of each thread */
	uint64_t *data; /* [WORDS][threads], but for SIGNAL, PUT and PUTS [threads][WORDS] */
	uint64_t *from; /* the same, what put_signal and put take */
	uint64_t *flag, *ack; /* [threads] */
	uint64_t *more; /* PE 0's host thread to the others' */
	uint64_t *bad; /* [2]: forbidden outcomes, and calls that failed */
};

GDR_DEVICE uint64_t *word(const struct litmus *a, unsigned t, unsigned threads, unsigned w)
{
	int whole = a->pattern == SIGNAL || a->pattern >= PUT;

	return a->data + (whole ? t * WORDS + w : w * threads + t);
}

GDR_DEVICE int put_words(const struct litmus *a, unsigned t, unsigned threads, uint64_t k, int pe)
{
	int ret = 0;

	for (unsigned w = 0; w < WORDS; w++)
		ret |= gdr_uint64_p(word(a, t, threads, w), k, pe);
	return ret;
}

GDR_DEVICE int raise_flag(const struct litmus *a, unsigned t, uint64_t k, int pe)
{
	return a->pattern == ATOMIC ? gdr_uint64_atomic_inc(a->flag + t, pe)
				    : gdr_uint64_p(a->flag + t, k, pe);
}

/* The words but the last one, which PUTS puts behind the fence. */
GDR_DEVICE int put_whole(const struct litmus *a, unsigned t, uint64_t k, int pe)
{
	unsigned n = a->pattern == PUTS ? WORDS - 1 : WORDS;

	for (unsigned w = 0; w < WORDS; w++)
		a->from[t * WORDS + w] = k;
	return gdr_put_nbi(a->data + t * WORDS, a->from + t * WORDS, n * 8, pe);
}

GDR_DEVICE int send(const struct litmus *a, unsigned t, unsigned threads, uint64_t k, int pe)
{
	int ret;

	if (a->mode == REORDERED)
		return raise_flag(a, t, k, pe);
	if (a->pattern == SIGNAL && a->mode == STRONG) {
		for (unsigned w = 0; w < WORDS; w++)
			a->from[t * WORDS + w] = k;
		return gdr_put_signal(a->data + t * WORDS, a->from + t * WORDS, WORDS * 8,
				      a->flag + t, k, GDR_SIGNAL_SET, pe);
	}
	ret = a->pattern >= PUT ? put_whole(a, t, k, pe) : put_words(a, t, threads, k, pe);
	if (a->mode == STRONG)
		ret |= a->pattern == QUIET || a->pattern == GET ? gdr_quiet() : gdr_fence();
	if (a->pattern == PUTS)
		return ret | gdr_put_nbi(a->data + t * WORDS + WORDS - 1, a->from + t * WORDS + WORDS - 1, 8,
					 pe);
	return ret | raise_flag(a, t, k, pe);
}

GDR_DEVICE int hear(const struct litmus *a, unsigned t, uint64_t k)
{
	uint64_t *flag = a->pattern == PUTS && a->mode != REORDERED ? a->data + t * WORDS + WORDS - 1
								    : a->flag + t;

	/* pairs with nothing, which is the point */
	for (unsigned i = 0; a->mode == WEAK && i < 10000; i++)
		if (gdri_ld_relaxed_sys_u64(flag) >= k)
			return 0;
	return gdr_uint64_wait_until(flag, GDR_CMP_GE, k);
}

/* Ordinary loads: what a cache kept of the round before counts, too. */
GDR_DEVICE uint64_t look(const struct litmus *a, unsigned t, unsigned threads, uint64_t k, int pe)
{
	uint64_t bad = 0, v;

	for (unsigned w = 0; w < WORDS; w++) {
		if (a->pattern == GET)
			v = gdr_uint64_g(word(a, t, threads, w), pe);
		else
			memcpy(&v, word(a, t, threads, w), sizeof(v));
		bad += v != k;
	}
	return bad;
}

/* A ring; the acknowledgement says that the words may be written again. */
GDR_KERNEL(litmus, struct litmus, a)
{
	unsigned t = gdr_block_id() * gdr_block_size() + gdr_thread_id();
	unsigned threads = gdr_grid_size() * gdr_block_size();
	int me = gdr_my_pe(), n = gdr_n_pes(), next = (me + 1) % n, prev = (me + n - 1) % n;
	uint64_t bad = 0, failed = 0;

	for (uint64_t k = a.before + 1; k <= a.before + (uint64_t)a.rounds && !failed; k++) {
		failed |= send(&a, t, threads, k, next) != 0;
		if (a.pattern == GET)
			bad += look(&a, t, threads, k, next);
		failed |= hear(&a, t, k) != 0;
		if (a.pattern != GET)
			bad += look(&a, t, threads, k, me);
		/* the loads above before the acknowledgement: pairs with the sender's wait */
		failed |= gdr_fence() != 0;
		failed |= gdr_uint64_p(a.ack + t, k, prev) != 0;
		failed |= gdr_uint64_wait_until(a.ack + t, GDR_CMP_GE, k) != 0;
		if (a.mode == REORDERED)
			failed |= put_words(&a, t, threads, k, next) != 0;
	}
	failed |= gdr_quiet() != 0;
	/* read after the kernel's end */
	if (bad)
		gdri_amo_add_u64(a.bad, bad);
	if (failed)
		gdri_amo_add_u64(a.bad + 1, failed);
}

/* All PEs go on for as long as PE 0's clock says. */
static int again(const struct litmus *a, uint64_t until)
{
	uint64_t v = multi_clock_ns() < until && a->before < a->many;

	for (int pe = 0; pe < multi_n && multi_pe == 0; pe++)
		CHECK_OK(gdr_host_put(a->more, &v, sizeof(v), pe));
	CHECK_OK(gdr_barrier_all());
	v = multi_u64(a->more);
	CHECK_OK(gdr_barrier_all());
	return v != 0;
}

/* Forbidden outcomes on this PE; ->before: the rounds of each thread. */
static uint64_t run(struct litmus *a, int pattern, unsigned blocks, unsigned threads, uint64_t ns)
{
	size_t all = (size_t)blocks * threads;
	uint64_t until = multi_clock_ns() + ns;

	a->pattern = pattern;
	a->before = 0;
	multi_fill(a->data, 0, all * WORDS * 8);
	multi_fill(a->flag, 0, all * 8);
	multi_fill(a->ack, 0, all * 8);
	a->bad[0] = a->bad[1] = 0;
	CHECK_OK(gdr_barrier_all());
	do {
		CHECK_OK(gdr_launch(litmus, blocks, threads, 0, NULL, a));
		CHECK_OK(gdr_stream_sync(NULL));
		CHECK_EQ(a->bad[1], 0);
		a->before += (uint64_t)a->rounds;
	} while (ns && again(a, until));
	CHECK_OK(gdr_barrier_all());
	return a->bad[0];
}

static void show(const struct litmus *a, size_t all, uint64_t bad, uint64_t ns)
{
	if (multi_pe == 0)
		printf("%s: %llu rounds, %llu forbidden outcomes, %.1f s\n", names[a->pattern],
		       (unsigned long long)(all * a->before), (unsigned long long)bad, (double)ns / 1e9);
	if (a->mode == STRONG)
		CHECK_EQ(bad, 0);
	if (a->mode == REORDERED)
		CHECK(bad);
}

/* All that the heap began with is taken. */
static void fill_heap(void)
{
	struct gdr_heap_info info;

	do {
		CHECK_OK(gdr_heap_query(&info));
		CHECK(!info.largest_free || gdr_malloc(info.largest_free));
	} while (info.largest_free);
}

int main(int argc, char **argv)
{
	int grown = argc > 4 && !strcmp(argv[4], "grown");
	unsigned blocks = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	unsigned threads = argc > 3 ? (unsigned)atoi(argv[3]) : 4;
	const char *weak = argc > 4 && !grown && strcmp(argv[4], "strong") ? argv[4] : "";
	uint64_t bad, seconds = argc > 5 ? (uint64_t)atoi(argv[5]) : 0, began;
	size_t all = (size_t)blocks * threads;
	struct litmus a = {0};

	if (grown) {
		setenv("GDR_HEAP_SIZE", "8m", 1);
		setenv("GDR_HEAP_MAX", "40m", 1);
		setenv("GDR_HEAP_CHUNK", "4m", 1);
	}
	multi_begin();
	if (grown)
		fill_heap();
	a.rounds = argc > 1 ? atoi(argv[1]) : 100;
	a.mode = !strcmp(weak, "reordered") ? REORDERED : !strcmp(weak, "weak") ? WEAK : STRONG;
	CHECK(a.rounds > 0 && all > 0 && (a.mode || !*weak));
	a.many = argc > 6 ? strtoull(argv[6], NULL, 0) / (all * (size_t)multi_n) + 1 : ~0ull;
	a.data = (uint64_t *)gdr_calloc(all * WORDS, 8);
	a.from = (uint64_t *)gdr_calloc(all * WORDS, 8);
	a.flag = (uint64_t *)gdr_calloc(all, 8);
	a.ack = (uint64_t *)gdr_calloc(all, 8);
	a.more = (uint64_t *)gdr_calloc(1, 8);
	a.bad = (uint64_t *)multi_shared_new(2 * sizeof(uint64_t));
	CHECK(a.data && a.from && a.flag && a.ack && a.more);
	for (int pattern = 0; pattern < PATTERNS; pattern++) {
		began = multi_clock_ns();
		bad = run(&a, pattern, blocks, threads, seconds * 1000000000u);
		show(&a, all, bad, multi_clock_ns() - began);
	}
	multi_shared_free(a.bad);
	return multi_end("litmus");
}
