// SPDX-License-Identifier: BSD-3-Clause
/* The symmetric allocator against a model: a map of the heap, grain by grain. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "runtime/mem/suballoc.h"

#define G GDRI_SUBALLOC_GRAIN

static void fills_and_comes_back(void **state)
{
	struct gdri_suballoc *a = gdri_suballoc_create(64 * G + 17, 0);
	struct gdri_suballoc_info info;
	uint64_t at[64];
	int cycle, i;

	(void)state;
	for (cycle = 0; cycle < 1000; cycle++) {
		for (i = 0; i < 64; i++) {
			at[i] = gdri_suballoc_alloc(a, 1, 1);
			assert_int_equal(at[i], (uint64_t)i * G);
		}
		assert_int_equal(gdri_suballoc_alloc(a, 1, 1), GDRI_SUBALLOC_NONE);
		for (i = 0; i < 64; i++) /* odd ones first: every way of merging */
			assert_int_equal(gdri_suballoc_free(a, at[(i * 37 + cycle) % 64]), 0);
		gdri_suballoc_query(a, &info);
		assert_int_equal(info.used, 0);
		assert_int_equal(info.objects, 0);
		assert_int_equal(info.largest_free, 64 * G);
	}
	gdri_suballoc_destroy(a);
}

static void aligns(void **state)
{
	struct gdri_suballoc *a = gdri_suballoc_create(1 << 20, 0);
	uint64_t x, y;

	(void)state;
	assert_int_equal(gdri_suballoc_alloc(a, 1, 1), 0);
	x = gdri_suballoc_alloc(a, 10, 65536);
	assert_int_equal(x, 65536);
	y = gdri_suballoc_alloc(a, 300, 1); /* the hole in front is used */
	assert_int_equal(y, G);
	assert_int_equal(gdri_suballoc_size(a, y), 2 * G);
	assert_int_equal(gdri_suballoc_alloc(a, 1, 1ull << 40), GDRI_SUBALLOC_NONE);
	assert_int_equal(gdri_suballoc_alloc(a, 1, 3), GDRI_SUBALLOC_NONE);
	gdri_suballoc_destroy(a);
	a = gdri_suballoc_create(1 << 20, 3 * 65536); /* the range begins so far behind such an address */
	assert_int_equal(gdri_suballoc_alloc(a, 1, 65536), 0);
	assert_int_equal(gdri_suballoc_alloc(a, 1, 131072), 65536);
	assert_int_equal(gdri_suballoc_alloc(a, 1, 524288), 5 * 65536);
	gdri_suballoc_destroy(a);
}

/* What is added is used behind the rest, and no object lies on both sides. */
static void grows(void **state)
{
	struct gdri_suballoc *a = gdri_suballoc_create(4 * G, 0);
	struct gdri_suballoc_info info;
	uint64_t x, y;
	int i;

	(void)state;
	for (i = 0; i < 100; i++) { /* the array grows as well */
		assert_int_equal(gdri_suballoc_alloc(a, 5 * G, 1), GDRI_SUBALLOC_NONE);
		x = gdri_suballoc_alloc(a, 2 * G, 1);
		assert_int_equal(x, (uint64_t)i * 4 * G);
		assert_int_equal(gdri_suballoc_grow(a, 4 * G + 5), 0);
		y = gdri_suballoc_alloc(a, 3 * G, 1);
		assert_int_equal(y, (uint64_t)(i + 1) * 4 * G); /* 2 G before it are free */
		assert_int_equal(gdri_suballoc_free(a, i % 2 ? x : y), 0);
		assert_int_equal(gdri_suballoc_free(a, i % 2 ? y : x), 0);
		x = gdri_suballoc_alloc(a, 4 * G, 1); /* the first one is whole again */
		assert_int_equal(x, (uint64_t)i * 4 * G);
	}
	gdri_suballoc_query(a, &info);
	assert_int_equal(info.size, 101 * 4 * G);
	assert_int_equal(info.largest_free, 4 * G);
	assert_int_equal(info.used, 100 * 4 * G);
	gdri_suballoc_destroy(a);
}

static void refuses(void **state)
{
	struct gdri_suballoc *a = gdri_suballoc_create(16 * G, 0);
	uint64_t x = gdri_suballoc_alloc(a, 3 * G, 1), h;

	(void)state;
	h = gdri_suballoc_history(a);
	assert_int_equal(gdri_suballoc_free(a, x + G), -GDR_EINVAL);
	assert_int_equal(gdri_suballoc_free(a, 5 * G), -GDR_EINVAL);
	assert_int_equal(gdri_suballoc_free(a, UINT64_MAX), -GDR_EINVAL);
	assert_int_equal(gdri_suballoc_free(a, 16 * G), -GDR_EINVAL);
	assert_int_equal(gdri_suballoc_alloc(a, 0, 1), GDRI_SUBALLOC_NONE);
	assert_int_equal(gdri_suballoc_alloc(a, UINT64_MAX, 1), GDRI_SUBALLOC_NONE);
	assert_int_equal(gdri_suballoc_alloc(a, 14 * G, 1), GDRI_SUBALLOC_NONE);
	assert_int_equal(gdri_suballoc_history(a), h); /* what failed changed nothing */
	assert_int_equal(gdri_suballoc_free(a, x), 0);
	assert_int_equal(gdri_suballoc_free(a, x), -GDR_EINVAL);
	assert_true(gdri_suballoc_history(a) != h);
	gdri_suballoc_destroy(a);
}

#define GRAINS 512

struct model {
	int owner[GRAINS]; /* 0 free, else number of the object */
	uint64_t start[GRAINS];
	int live[GRAINS], n_live, next;
};

/* First fit, over the map. */
static int model_fit(const struct model *m, uint64_t grains, uint64_t align)
{
	uint64_t s, i;

	for (s = 0; s + grains <= GRAINS; s += align) {
		for (i = 0; i < grains && !m->owner[s + i]; i++)
			;
		if (i == grains)
			return (int)s;
	}
	return -1;
}

static uint64_t model_largest(const struct model *m)
{
	uint64_t best = 0, run = 0;
	int i;

	for (i = 0; i < GRAINS; i++) {
		run = m->owner[i] ? 0 : run + 1;
		best = run > best ? run : best;
	}
	return best;
}

static void model_alloc(struct model *m, struct gdri_suballoc *a, unsigned int r)
{
	uint64_t grains = 1 + r % (r & 0x10000 ? 60 : 4), align = 1ull << (r >> 20) % 6, i;
	uint64_t got = gdri_suballoc_alloc(a, grains * G - r % G, align * G);
	int want = model_fit(m, grains, align);

	if (want < 0) {
		assert_int_equal(got, GDRI_SUBALLOC_NONE);
		return;
	}
	assert_int_equal(got, (uint64_t)want * G);
	assert_int_equal(gdri_suballoc_size(a, got), grains * G);
	m->next++;
	for (i = 0; i < grains; i++)
		m->owner[(uint64_t)want + i] = m->next;
	m->live[m->n_live++] = want;
}

static void model_free(struct model *m, struct gdri_suballoc *a, unsigned int r)
{
	int k = (int)(r % (unsigned int)m->n_live), s = m->live[k], id = m->owner[s], i;

	assert_int_equal(gdri_suballoc_free(a, (uint64_t)s * G), 0);
	for (i = s; i < GRAINS && m->owner[i] == id; i++)
		m->owner[i] = 0;
	m->live[k] = m->live[--m->n_live];
}

static void model_resize(struct model *m, struct gdri_suballoc *a, unsigned int r)
{
	int s = m->live[r % (unsigned int)m->n_live], id = m->owner[s], end = s, free_end, i;
	int grains = 1 + (int)((r >> 8) % 60), ret;

	ret = gdri_suballoc_resize(a, (uint64_t)s * G, (uint64_t)grains * G - r % G);
	while (end < GRAINS && m->owner[end] == id)
		end++;
	for (free_end = end; free_end < GRAINS && !m->owner[free_end];)
		free_end++;
	if (s + grains > free_end) {
		assert_int_equal(ret, -GDR_ENOMEM);
		assert_int_equal(gdri_suballoc_size(a, (uint64_t)s * G), (uint64_t)(end - s) * G);
		return;
	}
	assert_int_equal(ret, 0);
	assert_int_equal(gdri_suballoc_size(a, (uint64_t)s * G), (uint64_t)grains * G);
	for (i = s; i < end || i < s + grains; i++)
		m->owner[i] = i < s + grains ? id : 0;
}

static void model_within(const struct model *m, struct gdri_suballoc *a, unsigned int r)
{
	uint64_t at = r % (GRAINS * G), len = r >> 4 & 4095, begin, end, want_begin, want_end;
	bool within = gdri_suballoc_within(a, at, len, &begin, &end);
	int s = (int)(at / G), last;

	while (s >= 0 && !m->owner[s])
		s--;
	for (last = s; last + 1 < GRAINS && s >= 0 && m->owner[last + 1] == m->owner[s];)
		last++;
	while (s > 0 && m->owner[s - 1] == m->owner[s])
		s--;
	want_begin = s < 0 ? 0 : (uint64_t)s * G;
	want_end = s < 0 ? 0 : (uint64_t)(last + 1) * G;
	assert_int_equal(begin, want_begin);
	assert_int_equal(end, want_end);
	assert_int_equal(within, at < want_end && at + len <= want_end);
}

static void agrees_with_the_model(void **state)
{
	struct gdri_suballoc *a = gdri_suballoc_create(GRAINS * G, 0);
	struct gdri_suballoc *twin = gdri_suballoc_create(GRAINS * G, 0);
	struct model *m = calloc(1, sizeof(*m)), *m2 = calloc(1, sizeof(*m2));
	struct gdri_suballoc_info info;
	unsigned int seed = 12345, r;
	int i;

	(void)state;
	for (i = 0; i < 200000; i++) {
		r = seed = seed * 1664525u + 1013904223u;
		r ^= r >> 13;
		if (m->n_live && (r & 0x700) < 0x300) {
			model_free(m, a, r >> 12);
			model_free(m2, twin, r >> 12);
		} else if (m->n_live && (r & 0x700) == 0x300) {
			model_resize(m, a, r >> 12);
			model_resize(m2, twin, r >> 12);
		} else {
			model_alloc(m, a, r >> 4);
			model_alloc(m2, twin, r >> 4);
		}
		model_within(m, a, seed >> 3);
		gdri_suballoc_query(a, &info);
		assert_int_equal(info.objects, m->n_live);
		assert_int_equal(info.largest_free, model_largest(m) * G);
	}
	assert_int_equal(gdri_suballoc_history(a), gdri_suballoc_history(twin));
	gdri_suballoc_destroy(a);
	gdri_suballoc_destroy(twin);
	free(m);
	free(m2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fills_and_comes_back),
		cmocka_unit_test(aligns),
		cmocka_unit_test(grows),
		cmocka_unit_test(refuses),
		cmocka_unit_test(agrees_with_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
