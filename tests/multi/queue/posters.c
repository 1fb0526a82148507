/* SPDX-License-Identifier: BSD-3-Clause */
/* Many blocks post to one queue, by one lane, some, or whole warps, with entries of one block of the ring and of two:
 * who waits for those before it marks its blocks, relays, or gives way. Each post goes to a word of its own. */
#include "tests/multi/multi.h"

#ifdef __CUDACC__
enum { BLOCKS = 132, LANES = 32, ROUNDS = 200 };
#else
enum { BLOCKS = 12, LANES = 32, ROUNDS = 60 };
#endif

struct posters {
	uint64_t *words; /* [BLOCKS][ROUNDS][LANES], of the previous PE */
	uint64_t *count; /* of the atomics that add */
	int pe, from;
	struct multi_report *report;
};

GDRI_INLINE uint64_t value_of(int pe, unsigned block, unsigned lane, unsigned k)
{
	return ((uint64_t)pe << 16 | block) << 32 | (lane << 16) | (k + 1);
}

/* A number for each round of a block. */
GDRI_INLINE uint32_t mixed(unsigned block, unsigned k)
{
	uint64_t h = (block + 1ull) * 0x9e3779b97f4a7c15ull + k * 0xd1342543de82ef95ull;

	h ^= h >> 29;
	h *= 0xbf58476d1ce4e5b9ull;
	return (uint32_t)(h >> 32);
}

/* How many lanes post: one, up to 15, up to all. */
GDRI_INLINE unsigned lanes_of(unsigned block, unsigned k)
{
	uint32_t h = mixed(block, k), kind = h % 8;

	return kind < 4 ? 1 : kind < 6 ? 2 + h / 8 % 14 : 16 + h / 8 % 17;
}

/* Posts of two blocks of the ring. */
GDRI_INLINE int is_atomic(unsigned block, unsigned k)
{
	return mixed(block, k) / 4096 % 16 == 0;
}

GDR_KERNEL(post, struct posters, a)
{
	unsigned b = gdr_block_id(), t = gdr_thread_id(), k;
	uint64_t *word, v;

	for (k = 0; k < ROUNDS; k++) {
		word = a.words + ((size_t)b * ROUNDS + k) * LANES + t;
		v = value_of(gdr_my_pe(), b, t, k);
		if (t < lanes_of(b, k))
			EXPECT_OK(a.report, is_atomic(b, k) ? gdr_uint64_atomic_set(word, v, a.pe)
							    : gdr_uint64_p(word, v, a.pe));
		if (t == 0 && is_atomic(b, k))
			EXPECT_OK(a.report, gdr_uint64_atomic_add(a.count, 1, a.pe));
		if (k % 64 == 63)
			EXPECT_OK(a.report, gdr_quiet());
	}
	gdr_sync_block();
	if (t == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

/* What the previous PE's did, and nothing else. */
GDR_KERNEL(look, struct posters, a)
{
	unsigned b = gdr_block_id(), t = gdr_thread_id(), k;

	for (k = 0; k < ROUNDS; k++)
		EXPECT_EQ(a.report, a.words[((size_t)b * ROUNDS + k) * LANES + t],
			  t < lanes_of(b, k) ? value_of(a.from, b, t, k) : 0);
}

static uint64_t atomics(void)
{
	uint64_t n = 0;
	unsigned b, k;

	for (b = 0; b < BLOCKS; b++)
		for (k = 0; k < ROUNDS; k++)
			n += (uint64_t)is_atomic(b, k);
	return n;
}

int main(void)
{
	struct posters a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.words = (uint64_t *)gdr_calloc((size_t)BLOCKS * ROUNDS * LANES, 8);
	a.count = (uint64_t *)gdr_calloc(1, 8);
	CHECK(a.words && a.count);
	a.pe = (multi_pe + 1) % multi_n;
	a.from = (multi_pe + multi_n - 1) % multi_n;
	RUN(post, BLOCKS, LANES, &a);
	CHECK_OK(gdr_barrier_all());
	RUN(look, BLOCKS, LANES, &a);
	CHECK_EQ(multi_u64(a.count), atomics());
	multi_shared_free(a.report);
	return multi_end("posters");
}
