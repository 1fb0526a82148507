/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric allocation: same offsets on all PEs, alignment, zeroed calloc,
 * reuse, other sizes for what is there, disagreement and exhaustion reported on every PE, and a heap that is
 * whole afterwards. */
#include "tests/multi/multi.h"

#define SLOTS 64

static uint64_t heap_used(void)
{
	struct gdr_heap_info info;

	CHECK_OK(gdr_heap_query(&info));
	CHECK(info.used <= info.size && info.largest_free <= info.size - info.used);
	return info.used;
}

/* The same address means the same object: everybody writes its number into the
 * object of every PE and finds those of all. */
static void symmetric(void)
{
	int *all = (int *)gdr_calloc((size_t)multi_n, sizeof(int));

	CHECK(all);
	for (int i = 0; i < multi_n; i++)
		CHECK_EQ(multi_u32((uint32_t *)all + i), 0);
	CHECK_OK(gdr_barrier_all()); /* everybody has looked */
	for (int pe = 0; pe < multi_n; pe++) {
		int v = multi_pe + 100;

		CHECK_OK(gdr_host_put(all + multi_pe, &v, sizeof(v), pe));
	}
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < multi_n; i++)
		CHECK_EQ(multi_u32((uint32_t *)all + i), i + 100);
	CHECK_OK(gdr_free(all));
}

/* The same random sequence on all PEs; objects keep their contents. */
static void churn(void)
{
	uint8_t *object[SLOTS] = {0};
	size_t size[SLOTS] = {0};
	uint64_t seed = 42;

	for (int i = 0; i < 300; i++) {
		uint64_t r = multi_hash(seed++);
		int s = (int)(r % SLOTS);

		if (object[s]) {
			uint8_t *seen = (uint8_t *)multi_copy(object[s], size[s]);

			for (size_t k = 0; k < size[s]; k += 97)
				CHECK_EQ(seen[k], (uint8_t)(s + multi_pe));
			free(seen);
			CHECK_OK(gdr_free(object[s]));
			object[s] = NULL;
			continue;
		}
		size[s] = 1 + (r >> 8) % (r & 0x100 ? 100000 : 200);
		if (r & 0x200) {
			size_t align = (size_t)1 << (r >> 40) % 15;

			object[s] = (uint8_t *)gdr_align(align, size[s]);
			CHECK_EQ((uintptr_t)object[s] % align, 0);
		} else {
			object[s] = (uint8_t *)gdr_malloc(size[s]);
		}
		CHECK(object[s]);
		multi_fill(object[s], s + multi_pe, size[s]);
	}
	for (int s = 0; s < SLOTS; s++)
		CHECK_OK(gdr_free(object[s]));
}

/* As large an alignment as the heap itself has. */
static void aligned(void)
{
	void *between = gdr_malloc(100), *p;

	CHECK(between);
	for (size_t align = 4096; align <= (size_t)2 << 20; align *= 2) {
		p = gdr_align(align, 100);
		CHECK(p);
		CHECK_EQ((uintptr_t)p % align, 0);
		for (int pe = 0; pe < multi_n; pe++)
			CHECK_EQ((uintptr_t)gdr_host_ptr(p, pe) % align, 0);
		CHECK_OK(gdr_free(p));
	}
	CHECK_OK(gdr_free(between));
}

/* NULL on every PE, and the status says why, once. */
static void refused(const void *p, int status)
{
	CHECK(!p);
	CHECK_EQ(gdr_host_status(), status);
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_host_quiet());
}

static void refusals(void)
{
	struct gdr_heap_info info;
	void *p;

	CHECK(!gdr_malloc(0));
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_free(NULL));
	CHECK_OK(gdr_heap_query(&info));
	refused(gdr_malloc(info.size * 2), -GDR_ENOMEM);
	/* the product overflows */
	refused(gdr_calloc((size_t)1 << 40, (size_t)1 << 40), -GDR_ENOMEM);
	refused(gdr_align(48, 100), -GDR_EINVAL);
	refused(gdr_align((size_t)4 << 20, 100), -GDR_EINVAL);
	if (multi_n > 1) {
		refused(gdr_malloc(multi_pe == multi_n - 1 ? 2000 : 1000), -GDR_EMISMATCH);
		p = gdr_malloc(1000); /* the heaps still agree */
		CHECK(p);
		CHECK_EQ(gdr_free(multi_pe ? p : NULL), -GDR_EMISMATCH);
		CHECK_OK(gdr_free(p));
	}
	CHECK_EQ(gdr_free(&info), -GDR_EINVAL);
	gdr_host_quiet();
}

/* What each PE wrote there, of `len` bytes. */
static void keeps(const uint8_t *object, int value, size_t len)
{
	uint8_t *seen = (uint8_t *)multi_copy(object, len);

	for (size_t k = 0; k < len; k++)
		CHECK_EQ(seen[k], (uint8_t)value);
	free(seen);
}

/* Where there is room behind it, an object stays; else it moves, and its place can be had anew. */
static void resizes(void)
{
	int mine = multi_pe + 3, v = multi_pe + 40, next = (multi_pe + 1) % multi_n;
	uint8_t *p = (uint8_t *)gdr_realloc(NULL, 1000), *first = p, *behind;

	CHECK(p);
	multi_fill(p, mine, 1000);
	p = (uint8_t *)gdr_realloc(p, 5000);
	CHECK(p == first);
	keeps(p, mine, 1000);
	behind = (uint8_t *)gdr_malloc(100);
	CHECK(behind);
	multi_fill(p, mine, 5000);
	p = (uint8_t *)gdr_realloc(p, 300000);
	CHECK(p && p != first);
	keeps(p, mine, 5000);
	CHECK_OK(gdr_host_put(p + 299996, &v, sizeof(v), next)); /* the same object on all PEs */
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(multi_u32((uint32_t *)(void *)(p + 299996)), (multi_pe + multi_n - 1) % multi_n + 40);
	CHECK((uint8_t *)gdr_malloc(5000) == first);
	CHECK_OK(gdr_free(first));
	first = p;
	p = (uint8_t *)gdr_realloc(p, 700);
	CHECK(p == first);
	keeps(p, mine, 700);
	CHECK(!gdr_realloc(p, 0));
	CHECK_OK(gdr_host_status());
	CHECK(!gdr_realloc(NULL, 0));
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_free(behind));
}

/* The object is as it was. */
static void resize_refusals(void)
{
	uint8_t *p = (uint8_t *)gdr_malloc(1000);
	struct gdr_heap_info info;
	int mine = multi_pe + 3;

	CHECK(p);
	multi_fill(p, mine, 1000);
	CHECK_OK(gdr_heap_query(&info));
	refused(gdr_realloc(p, info.size * 2), -GDR_ENOMEM);
	refused(gdr_realloc(p, SIZE_MAX), -GDR_ENOMEM);
	refused(gdr_realloc(p + 256, 2000), -GDR_EINVAL);
	refused(gdr_realloc(&info, 2000), -GDR_EINVAL);
	refused(gdr_realloc(&info, 0), -GDR_EINVAL);
	if (multi_n > 1) {
		refused(gdr_realloc(p, multi_pe ? 2000 : 3000), -GDR_EMISMATCH);
		refused(gdr_realloc(multi_pe ? p : NULL, 3000), -GDR_EMISMATCH);
		refused(gdr_realloc(p, multi_pe == multi_n - 1 ? 0 : 3000), -GDR_EMISMATCH);
		refused(gdr_realloc(multi_pe ? (void *)p : (void *)&p, 3000), -GDR_EINVAL); /* of one PE, on all */
	}
	keeps(p, mine, 1000);
	CHECK_OK(gdr_free(p));
}

/* All of it in the largest piece, and again. */
static void exhaust(void)
{
	struct gdr_heap_info info;

	for (int i = 0; i < 3; i++) {
		void *p;

		CHECK_OK(gdr_heap_query(&info));
		p = gdr_malloc(info.largest_free);
		CHECK(p);
		refused(gdr_malloc(info.largest_free), -GDR_ENOMEM);
		CHECK_OK(gdr_free(p));
	}
}

/* What a neighbour wrote, read and added to can be freed and given out anew with nothing between
 * but the free: its owner zeroes it at once. */
static void reuse(void)
{
	int next = (multi_pe + 1) % multi_n;
	uint8_t *src = (uint8_t *)gdr_calloc(1, 4096), *back = (uint8_t *)gdr_calloc(1, 4096), *p;
	uint64_t last;

	CHECK(src && back);
	for (int round = 0; round < 10; round++) {
		p = (uint8_t *)gdr_calloc(1, 4096);
		CHECK(p);
		multi_fill(src, round + 1, 4096);
		CHECK_OK(gdr_host_put(p, src, 4096, next));
		CHECK_OK(gdr_host_quiet());
		CHECK_OK(gdr_host_get(back, p, 4096, next));
		last = multi_u64((uint64_t *)(void *)(back + 4088));
		CHECK_EQ(last >> 56, round + 1);
#ifndef __CUDACC__
		gdr_uint64_atomic_inc((uint64_t *)(void *)p, next);
#endif
		CHECK_OK(gdr_host_quiet());
		CHECK_OK(gdr_free(p));
	}
	CHECK_OK(gdr_free(back));
	CHECK_OK(gdr_free(src));
}

int main(void)
{
	uint64_t used;

	multi_begin();
	used = heap_used();
	symmetric();
	churn();
	CHECK_EQ(heap_used(), used);
	aligned();
	refusals();
	resizes();
	CHECK_EQ(heap_used(), used);
	resize_refusals();
	CHECK_EQ(heap_used(), used);
	exhaust();
	reuse();
	CHECK_EQ(heap_used(), used);
	symmetric();
	return multi_end("heap");
}
