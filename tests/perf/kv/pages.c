/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of a KV cache from PE 0 (prefill) straight into the cache of PE 1 (decode), which has said where each
 * belongs, as a request of NIXL or puts of UCX have it (nixl_pages.py, ucx_pages.c).
 *
 *	pages each|one BYTES MIB ROUNDS [BLOCKS [THREADS]]
 *
 * A round: decode asks by a signal, prefill's blocks put the pages, by their places in both caches, and decode waits
 * for the first one and for all, by its own clock. Blocks share what is long, in parts of 64 KiB or more: the first
 * page is there sooner. each: with a signal a part, which decode's threads wait for side by side. one: the first page
 * has them, and each block gives another one behind its last. Prints, of PE 1, medians of the rounds:
 * "BYTES us-to-first-page GB/s pages". Behind the last round each word of decode's cache is looked at. */
#include "samples/sample.h"
#include "tests/perf/help.h"
#include "tests/perf/times.h"

#define USAGE "pages each|one BYTES MIB ROUNDS [BLOCKS [THREADS]], on two PEs"

struct cache {
	char *pages;	   /* symmetric, of both caches */
	uint32_t *place;   /* symmetric, [2][n]: page of prefill's cache and of decode's, of the k-th that is sent */
	uint64_t *arrived; /* decode: [n]: parts that are there; behind them, one for all: how many blocks' pages are */
	uint64_t *asked;   /* prefill: the round */
	uint64_t *ns;	   /* decode: [2]: until the first page, until all */
	int *status;
	size_t bytes;
	uint32_t n, blocks, shift; /* shift: a page has 1 << shift parts, */
	size_t part;		   /* of so many bytes, the last one of what is left */
	int each;
	uint64_t round;
};

GDR_BOTH uint64_t page_word(uint64_t page, uint64_t w)
{
	return sample_mix(page << 32 ^ w);
}

GDR_KERNEL(fill, struct cache, c)
{
	size_t words = c.bytes / sizeof(uint64_t), at = gdr_block_id() * (size_t)gdr_block_size() + gdr_thread_id();

	for (; at < c.n * words; at += (size_t)gdr_grid_size() * gdr_block_size())
		((uint64_t *)c.pages)[at] = page_word(at / words, at % words);
}

/* The u-th part of all. Of one part the signal is set: a queue by the CPU copies nothing back for that. */
GDR_DEVICE int part_put(const struct cache *c, uint32_t u)
{
	uint32_t k = u >> c->shift;
	size_t from = (u - (k << c->shift)) * c->part, len = c->bytes - from < c->part ? c->bytes - from : c->part;
	char *dst = c->pages + c->place[c->n + k] * c->bytes + from, *src = c->pages + c->place[k] * c->bytes + from;

	if (k && !c->each)
		return gdr_put_nbi_block(dst, src, len, 1);
	return gdr_put_signal_nbi_block(dst, src, len, &c->arrived[k], c->shift ? 1 : c->round,
					c->shift ? GDR_SIGNAL_ADD : GDR_SIGNAL_SET, 1);
}

GDR_KERNEL(prefill, struct cache, c)
{
	int ret = gdr_thread_id() ? 0 : gdr_uint64_wait_until_for(c.asked, GDR_CMP_EQ, c.round, 20000000000ull);

	ret = sample_of_first(ret);
	for (uint32_t u = gdr_block_id(); u < c.n << c.shift && !ret; u += gdr_grid_size())
		ret = part_put(&c, u);
	if (!c.each) /* behind the puts of all threads of the block */
		ret = sample_of_first(ret ? ret : gdr_fence());
	if (gdr_thread_id())
		return;
	if (!c.each && !ret)
		ret = gdr_signal_add(&c.arrived[c.n], 1, 1);
	c.status[gdr_block_id()] = ret ? ret : gdr_quiet();
}

/* One block. */
GDR_KERNEL(decode, struct cache, c)
{
	uint64_t since = gdr_clock_ns(), limit = 20000000000ull;
	int first = gdr_thread_id() == 0, ret = first ? gdr_signal_set(c.asked, c.round, 0) : 0;

	for (uint32_t k = gdr_thread_id(); k < (c.each ? c.n : 1) && !ret; k += gdr_block_size()) {
		ret = gdr_uint64_wait_until_for(&c.arrived[k], GDR_CMP_EQ, c.round << c.shift, limit);
		if (k == 0)
			c.ns[0] = gdr_clock_ns() - since;
	}
	if (first && !c.each && !ret)
		ret = gdr_uint64_wait_until_for(&c.arrived[c.n], GDR_CMP_EQ, c.round * c.blocks, limit);
	gdr_sync_block();
	if (first) {
		c.ns[1] = gdr_clock_ns() - since;
		ret = ret ? ret : gdr_quiet();
	}
	if (ret)
		c.status[0] = ret; /* of any of its threads */
}

/* Places that nothing orders, the same on both PEs. */
static void draw_places(uint32_t *place, uint32_t n)
{
	for (uint32_t side = 0; side < 2; side++, place += n)
		for (uint32_t k = 0; k < n; k++) {
			uint32_t other = (uint32_t)(sample_mix(side << 20 | k) % (k + 1));

			place[k] = place[other];
			place[other] = k;
		}
}

static int run_rounds(struct cache *c, int rounds, unsigned blocks, unsigned threads, double *first, double *all)
{
	int me = gdr_host_my_pe(), ret = 0;
	uint64_t ns[2];

	for (int i = -3; i < rounds && !ret; i++) { /* three to warm up */
		c->round++;
		ret = gdr_barrier_all();
		if (!ret && me == 0)
			ret = gdr_launch(prefill, blocks, threads, sizeof(int), NULL, c);
		else if (!ret)
			ret = gdr_launch(decode, 1, threads, 0, NULL, c);
		ret = ret ? ret : gdr_stream_sync(NULL);
		ret = ret ? ret : sample_first_status(c->status, me == 0 ? (int)blocks : 1);
		ret = ret ? ret : gdr_memcpy(ns, c->ns, sizeof(ns));
		if (i >= 0) {
			first[i] = (double)ns[0] / 1e3;
			all[i] = (double)c->n * (double)c->bytes / (double)ns[1];
		}
	}
	return ret;
}

static int check(const struct cache *c, const uint32_t *place)
{
	size_t words = c->bytes / sizeof(uint64_t);
	uint64_t *copy = (uint64_t *)malloc(c->n * c->bytes);
	int ret = copy ? gdr_memcpy(copy, c->pages, c->n * c->bytes) : -GDR_ENOMEM;

	for (uint32_t k = 0; k < c->n && !ret; k++)
		for (size_t w = 0; w < words && !ret; w++)
			if (copy[place[c->n + k] * words + w] != page_word(place[k], w)) {
				fprintf(stderr, "WRONG: word %zu of page %u\n", w, k);
				ret = -GDR_EINVAL;
			}
	free(copy);
	return ret;
}

static int run(struct cache *c, int rounds, unsigned blocks, unsigned threads)
{
	size_t places = 2 * (size_t)c->n * sizeof(uint32_t);
	uint32_t *place = (uint32_t *)calloc(1, places);
	double *first = (double *)calloc(2 * (size_t)rounds, sizeof(double)), *all = first + rounds;
	int ret = place && first ? 0 : -GDR_ENOMEM;

	c->pages = (char *)gdr_malloc(c->n * c->bytes);
	c->place = (uint32_t *)gdr_malloc(places);
	c->arrived = (uint64_t *)gdr_calloc(c->n + 1, sizeof(uint64_t));
	c->asked = (uint64_t *)gdr_calloc(1, sizeof(uint64_t));
	c->ns = (uint64_t *)gdr_calloc(2, sizeof(uint64_t));
	c->status = (int *)gdr_calloc(blocks, sizeof(int));
	if (!ret && (!c->pages || !c->place || !c->arrived || !c->asked || !c->ns || !c->status))
		ret = -GDR_ENOMEM;
	if (!ret) {
		draw_places(place, c->n);
		ret = gdr_memcpy(c->place, place, places);
	}
	if (!ret && gdr_host_my_pe() == 0)
		ret = gdr_launch(fill, blocks, threads, 0, NULL, c);
	ret = ret ? ret : gdr_stream_sync(NULL);
	ret = ret ? ret : run_rounds(c, rounds, blocks, threads, first, all);
	if (!ret && gdr_host_my_pe() == 1) {
		ret = check(c, place);
		qsort(first, (size_t)rounds, sizeof(double), by_value);
		qsort(all, (size_t)rounds, sizeof(double), by_value);
		if (!ret)
			printf("%zu %.2f %.3f %u\n", c->bytes, first[rounds / 2], all[rounds / 2], c->n);
	}
	free(place);
	free(first);
	return ret;
}

int main(int argc, char **argv)
{
	struct cache c;
	int ret, rounds = argc > 4 ? atoi(argv[4]) : 0;
	unsigned blocks, threads;

	help_if_asked(argc, argv, USAGE);
	memset(&c, 0, sizeof(c));
	c.bytes = argc > 4 ? strtoul(argv[2], NULL, 0) : 0;
	c.each = argc > 1 && !strcmp(argv[1], "each");
	if (!c.bytes || c.bytes % 8 || rounds < 1) {
		fprintf(stderr, "usage: " USAGE "\n");
		return 2;
	}
	c.n = (uint32_t)((strtoul(argv[3], NULL, 0) << 20) / c.bytes);
	if (gdr_init())
		return 1;
	blocks = argc > 5 ? (unsigned)atoi(argv[5]) : sample_is_cuda() ? 32 : 1;
	c.blocks = blocks;
	while (1u << c.shift < blocks && c.bytes >> (c.shift + 1) >= 65536)
		c.shift++;
	c.part = ((c.bytes >> c.shift) + 7) & ~(size_t)7;
	threads = argc > 6 ? (unsigned)atoi(argv[6]) : sample_is_cuda() ? 1024 : 1;
	ret = gdr_host_n_pes() == 2 && c.n ? run(&c, rounds, blocks, threads) : -GDR_EINVAL;
	if (ret)
		sample_error("pages", ret);
	return sample_end(ret);
}
