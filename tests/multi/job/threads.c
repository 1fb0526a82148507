/* SPDX-License-Identifier: BSD-3-Clause */
/* What threads of a kernel do with each other: gdr/threads.h. */
#include "tests/multi/multi.h"

#include <gdr/threads.h>

#define THREADS 64u
#define BLOCKS 3u
#define WARP 0xffffffffu

struct totals { /* of all blocks, in the heap: a GPU's atomics have all their kinds there */
	uint64_t sum;
	double real;
	uint32_t ticket, last, parts[BLOCKS]; /* last: the sum of the parts */
};

struct threads {
	uint64_t *words; /* [BLOCKS * THREADS]: a word of each thread */
	struct totals *all;
	struct multi_report *report;
};

/* Of a thread's own word: what was there before, and what is there. */
#define OLD_NEW(by, name, T, before, operand, after)                                               \
	do {                                                                                       \
		T *p_ = (T *)(void *)word;                                                         \
                                                                                                   \
		*p_ = (before);                                                                    \
		EXPECT_EQ(r, gdr_##by##_##name(p_, operand) == (T)(before), 1);                    \
		EXPECT_EQ(r, *p_ == (T)(after), 1);                                                \
	} while (0)
#define OLD_NEW_SIGNED(by, z, T)                                                                   \
	OLD_NEW(by, fetch_add_##z, T, -5, 7, 2);                                                   \
	OLD_NEW(by, fetch_min_##z, T, 3, -4, -4);                                                  \
	OLD_NEW(by, fetch_min_##z, T, -4, 3, -4);                                                  \
	OLD_NEW(by, fetch_max_##z, T, -4, 3, 3);                                                   \
	OLD_NEW(by, fetch_max_##z, T, 3, -4, 3)
#define OLD_NEW_UNSIGNED(by, z, T, top)                                                            \
	OLD_NEW(by, fetch_add_##z, T, (top) | 5, top, 5);                                          \
	OLD_NEW(by, fetch_min_##z, T, (top) | 1, 3, 3);                                            \
	OLD_NEW(by, fetch_max_##z, T, 3, (top) | 1, (top) | 1);                                    \
	OLD_NEW(by, fetch_and_##z, T, (top) | 0x35, (top) | 0x16, (top) | 0x14);                   \
	OLD_NEW(by, fetch_or_##z, T, 0x35, (top) | 0x16, (top) | 0x37);                            \
	OLD_NEW(by, fetch_xor_##z, T, (top) | 0x35, (top) | 0x16, 0x23);                           \
	OLD_NEW(by, exchange_##z, T, (top) | 1, 9, 9);                                             \
	EXPECT_EQ(r, gdr_##by##_compare_swap_##z((T *)(void *)word, 8, 7) == 9, 1);                \
	EXPECT_EQ(r, gdr_##by##_compare_swap_##z((T *)(void *)word, 9, (top) | 2) == 9, 1);        \
	EXPECT_EQ(r, gdr_##by##_load_##z((T *)(void *)word) == ((top) | 2), 1);                    \
	gdr_##by##_store_##z((T *)(void *)word, (top) | 6);                                        \
	EXPECT_EQ(r, *(T *)(void *)word == ((top) | 6), 1)
#define OLD_NEW_ALL(by)                                                                            \
	OLD_NEW_UNSIGNED(by, u32, uint32_t, 1u << 31);                                             \
	OLD_NEW_UNSIGNED(by, u64, uint64_t, 1ull << 63);                                           \
	OLD_NEW_SIGNED(by, i32, int32_t);                                                          \
	OLD_NEW_SIGNED(by, i64, int64_t);                                                          \
	OLD_NEW(by, fetch_add_f32, float, 1.5f, 0.25f, 1.75f);                                     \
	OLD_NEW(by, fetch_add_f64, double, 1.5, -0.125, 1.375)

GDR_DEVICE void own_words(uint64_t *word, struct multi_report *r)
{
	OLD_NEW_ALL(block);
	OLD_NEW_ALL(grid);
}

#define SHUFFLES(z, T, of)                                                                         \
	do {                                                                                       \
		EXPECT_EQ(r, gdr_shfl_##z(WARP, of(lane), (lane + 5) % 32) == of((lane + 5) % 32), 1); \
		EXPECT_EQ(r, gdr_shfl_up_##z(WARP, of(lane), 3) == of(lane < 3 ? lane : lane - 3), 1); \
		EXPECT_EQ(r, gdr_shfl_down_##z(WARP, of(lane), 3) == of(lane > 28 ? lane : lane + 3), 1); \
		EXPECT_EQ(r, gdr_shfl_xor_##z(WARP, of(lane), 17) == of(lane ^ 17), 1);            \
	} while (0)
#define AS_U32(i) ((uint32_t)(i) + 0x80000000u)
#define AS_U64(i) ((uint64_t)(i) << 40 | 0x8000000000000001ull)
#define AS_I32(i) (-7 * (int32_t)(i))
#define AS_I64(i) (-7 * ((int64_t)(i) << 33))
#define AS_F32(i) (0.5f * (float)(i))
#define AS_F64(i) (1.0 / (1.0 + (double)(i)))

GDR_DEVICE void shuffles(struct multi_report *r)
{
	unsigned lane = gdr_lane_id();

	SHUFFLES(u32, uint32_t, AS_U32);
	SHUFFLES(u64, uint64_t, AS_U64);
	SHUFFLES(i32, int32_t, AS_I32);
	SHUFFLES(i64, int64_t, AS_I64);
	SHUFFLES(f32, float, AS_F32);
	SHUFFLES(f64, double, AS_F64);
}

/* All threads of a block on one word, and a message from the last to the first one. */
GDR_DEVICE void within_block(struct multi_report *r)
{
	GDR_SHARED uint64_t sum;
	GDR_SHARED uint32_t tries, flag, message[2];
	unsigned t = gdr_thread_id(), round = 0;
	uint32_t seen;

	if (t == 0) {
		sum = 0;
		tries = flag = message[0] = message[1] = 0;
	}
	gdr_sync_block();
	gdr_block_fetch_add_u64(&sum, t + 1);
	seen = gdr_block_load_u32(&tries);
	while (gdr_block_compare_swap_u32(&tries, seen, seen + 1) != seen)
		seen = gdr_block_load_u32(&tries);
	if (t == THREADS - 1) {
		message[0] = 11;
		message[1] = gdr_block_id();
		gdr_threadfence_block(); /* pairs with the one of thread 0 */
		gdr_block_exchange_u32(&flag, 1);
	}
	if (t == 0) {
		while (!gdr_block_fetch_or_u32(&flag, 0))
			gdr_pause(round++);
		gdr_threadfence_block();
		EXPECT_EQ(r, message[0], 11);
		EXPECT_EQ(r, message[1], gdr_block_id());
	}
	gdr_sync_block();
	EXPECT_EQ(r, sum, (uint64_t)THREADS * (THREADS + 1) / 2);
	EXPECT_EQ(r, tries, THREADS);
	gdr_sync_block();
}

/* The last block to come adds up what all have left. */
GDR_DEVICE void within_grid(struct totals *all)
{
	uint32_t sum = 0;

	gdr_grid_fetch_add_u64(&all->sum, gdr_thread_id() + 1);
	gdr_grid_fetch_add_f64(&all->real, 0.5);
	if (gdr_thread_id())
		return;
	all->parts[gdr_block_id()] = 100 + gdr_block_id();
	gdr_threadfence(); /* the part before the ticket */
	if (gdr_grid_fetch_add_u32(&all->ticket, 1) < BLOCKS - 1)
		return;
	gdr_threadfence(); /* the ticket before the parts: pairs with the other blocks' fence above */
	for (unsigned b = 0; b < BLOCKS; b++)
		sum += all->parts[b];
	all->last = sum;
}

GDR_KERNEL(threads_kernel, struct threads, a)
{
	own_words(&a.words[gdr_block_id() * THREADS + gdr_thread_id()], a.report);
	shuffles(a.report);
	within_block(a.report);
	within_grid(a.all);
}

int main(void)
{
	struct totals is;
	struct threads a;

	multi_begin();
	a.report = multi_report_new();
	a.words = (uint64_t *)gdr_malloc(BLOCKS * THREADS * sizeof(*a.words));
	a.all = (struct totals *)gdr_calloc(1, sizeof(*a.all));
	RUN(threads_kernel, BLOCKS, THREADS, &a);
	CHECK_OK(gdr_memcpy(&is, a.all, sizeof(is)));
	CHECK_EQ(is.sum, (uint64_t)BLOCKS * THREADS * (THREADS + 1) / 2);
	CHECK_EQ(is.real == 0.5 * BLOCKS * THREADS, 1);
	CHECK_EQ(is.last, 100 * BLOCKS + BLOCKS * (BLOCKS - 1) / 2);
	gdr_free(a.all);
	gdr_free(a.words);
	multi_shared_free(a.report);
	return multi_end("threads");
}
