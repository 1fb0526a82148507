// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/mem/suballoc.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

/* The heap is cut into ranges without gaps, in an array ordered by offset: found
 * by bisection, walked by the allocator, shifted by insertions. Symmetric objects
 * are few and long-lived: tens of thousands still take microseconds. */
struct range {
	uint64_t offset;
	bool used;
	bool first; /* what was added begins here: never merged with what is before */
};

struct gdri_suballoc {
	struct range *ranges; /* n of them, then an end mark at [n].offset == size */
	size_t n, room;
	uint64_t size, phase, used, history;
	size_t objects;
	pthread_rwlock_t lock; /* of the array: who changes it, and gdri_suballoc_within; held for no call */
};

static uint64_t suballoc_length(const struct range *r)
{
	return r[1].offset - r->offset;
}

struct gdri_suballoc *gdri_suballoc_create(uint64_t size, uint64_t phase)
{
	struct gdri_suballoc *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->size = size - size % GDRI_SUBALLOC_GRAIN;
	a->phase = phase;
	a->room = 64;
	a->ranges = calloc(a->room, sizeof(*a->ranges));
	if (!a->ranges) {
		free(a);
		return NULL;
	}
	a->n = 1;
	a->ranges[1].offset = a->size;
	pthread_rwlock_init(&a->lock, NULL);
	return a;
}

int gdri_suballoc_grow(struct gdri_suballoc *a, uint64_t size)
{
	if (gdri_suballoc_reserve(a))
		return -GDR_ENOMEM;
	pthread_rwlock_wrlock(&a->lock);
	a->ranges[a->n] = (struct range){a->size, false, true};
	a->size += size - size % GDRI_SUBALLOC_GRAIN;
	a->ranges[++a->n] = (struct range){a->size, false, false};
	pthread_rwlock_unlock(&a->lock);
	return 0;
}

void gdri_suballoc_destroy(struct gdri_suballoc *a)
{
	if (!a)
		return;
	pthread_rwlock_destroy(&a->lock);
	free(a->ranges);
	free(a);
}

int gdri_suballoc_reserve(struct gdri_suballoc *a)
{
	struct range *r;

	if (a->n + 3 <= a->room) /* one alloc adds at most two ranges; and the end mark */
		return 0;
	pthread_rwlock_wrlock(&a->lock);
	r = realloc(a->ranges, 2 * a->room * sizeof(*r));
	if (r) {
		a->ranges = r;
		a->room *= 2;
	}
	pthread_rwlock_unlock(&a->lock);
	return r ? 0 : -GDR_ENOMEM;
}

/* FNV-1a over the words of each call. */
static void suballoc_note(struct gdri_suballoc *a, uint64_t word)
{
	a->history = (a->history ^ word) * 0x100000001b3ull + 0x9e3779b97f4a7c15ull;
}

static void suballoc_insert(struct gdri_suballoc *a, size_t at, uint64_t offset, bool used)
{
	memmove(&a->ranges[at + 1], &a->ranges[at], (a->n + 1 - at) * sizeof(*a->ranges));
	a->ranges[at] = (struct range){offset, used, false};
	a->n++;
}

static void suballoc_erase(struct gdri_suballoc *a, size_t at)
{
	memmove(&a->ranges[at], &a->ranges[at + 1], (a->n - at) * sizeof(*a->ranges));
	a->n--;
}

/* Cuts [start, start + len) out of the free range i. */
static void suballoc_carve(struct gdri_suballoc *a, size_t i, uint64_t start, uint64_t len)
{
	uint64_t end = a->ranges[i + 1].offset;

	if (start > a->ranges[i].offset)
		suballoc_insert(a, ++i, start, false);
	a->ranges[i].used = true;
	if (start + len < end)
		suballoc_insert(a, i + 1, start + len, false);
	a->used += len;
	a->objects++;
}

static uint64_t suballoc_grains(uint64_t len)
{
	return (len + GDRI_SUBALLOC_GRAIN - 1) / GDRI_SUBALLOC_GRAIN * GDRI_SUBALLOC_GRAIN;
}

uint64_t gdri_suballoc_alloc(struct gdri_suballoc *a, uint64_t len, uint64_t alignment)
{
	uint64_t start, skip;

	if (!len || len > a->size || alignment & (alignment - 1) || gdri_suballoc_reserve(a))
		return GDRI_SUBALLOC_NONE;
	if (alignment < GDRI_SUBALLOC_GRAIN)
		alignment = GDRI_SUBALLOC_GRAIN;
	len = suballoc_grains(len);
	for (size_t i = 0; i < a->n; i++) {
		if (a->ranges[i].used)
			continue;
		start = a->ranges[i].offset;
		skip = -(a->phase + start) & (alignment - 1);
		if (skip > suballoc_length(&a->ranges[i]) || suballoc_length(&a->ranges[i]) - skip < len)
			continue;
		start += skip;
		pthread_rwlock_wrlock(&a->lock);
		suballoc_carve(a, i, start, len);
		pthread_rwlock_unlock(&a->lock);
		suballoc_note(a, start);
		suballoc_note(a, len);
		return start;
	}
	return GDRI_SUBALLOC_NONE;
}

/* Index of the first range at or behind offset, or n. */
static size_t suballoc_bisect(const struct gdri_suballoc *a, uint64_t offset)
{
	size_t low = 0, high = a->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->ranges[mid].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Index of the object that starts at offset, or n. */
static size_t suballoc_find(const struct gdri_suballoc *a, uint64_t offset)
{
	size_t i = suballoc_bisect(a, offset);

	return i < a->n && a->ranges[i].offset == offset && a->ranges[i].used ? i : a->n;
}

int gdri_suballoc_free(struct gdri_suballoc *a, uint64_t offset)
{
	size_t i = suballoc_find(a, offset);

	if (i == a->n)
		return -GDR_EINVAL;
	pthread_rwlock_wrlock(&a->lock);
	a->used -= suballoc_length(&a->ranges[i]);
	a->objects--;
	a->ranges[i].used = false;
	if (i + 1 < a->n && !a->ranges[i + 1].used && !a->ranges[i + 1].first)
		suballoc_erase(a, i + 1);
	if (i && !a->ranges[i - 1].used && !a->ranges[i].first)
		suballoc_erase(a, i);
	pthread_rwlock_unlock(&a->lock);
	suballoc_note(a, ~offset);
	return 0;
}

/* The border between object i and what follows it moves to `end`. */
static int suballoc_move_end(struct gdri_suballoc *a, size_t i, uint64_t end)
{
	bool joins = i + 1 < a->n && !a->ranges[i + 1].used && !a->ranges[i + 1].first;
	uint64_t most = a->ranges[joins ? i + 2 : i + 1].offset;

	if (end > most)
		return -GDR_ENOMEM;
	if (joins && end == most)
		suballoc_erase(a, i + 1);
	else if (joins)
		a->ranges[i + 1].offset = end;
	else if (end < most)
		suballoc_insert(a, i + 1, end, false);
	return 0;
}

int gdri_suballoc_resize(struct gdri_suballoc *a, uint64_t offset, uint64_t len)
{
	size_t i = suballoc_find(a, offset);
	uint64_t before;
	int ret;

	if (i == a->n || !len)
		return -GDR_EINVAL;
	if (len > a->size || gdri_suballoc_reserve(a))
		return -GDR_ENOMEM;
	len = suballoc_grains(len);
	before = suballoc_length(&a->ranges[i]);
	pthread_rwlock_wrlock(&a->lock);
	ret = suballoc_move_end(a, i, offset + len);
	pthread_rwlock_unlock(&a->lock);
	if (ret)
		return ret;
	a->used += len - before;
	suballoc_note(a, ~offset);
	suballoc_note(a, len);
	return 0;
}

uint64_t gdri_suballoc_size(const struct gdri_suballoc *a, uint64_t offset)
{
	size_t i = suballoc_find(a, offset);

	return i == a->n ? 0 : suballoc_length(&a->ranges[i]);
}

uint64_t gdri_suballoc_next(const struct gdri_suballoc *a, uint64_t *offset)
{
	size_t i = suballoc_bisect(a, *offset);

	while (i < a->n && !a->ranges[i].used)
		i++;
	if (i == a->n)
		return 0;
	*offset = a->ranges[i].offset;
	return suballoc_length(&a->ranges[i]);
}

bool gdri_suballoc_within(struct gdri_suballoc *a, uint64_t offset, uint64_t len, uint64_t *begin, uint64_t *end)
{
	size_t i;

	*begin = *end = 0;
	pthread_rwlock_rdlock(&a->lock);
	i = suballoc_bisect(a, offset + 1);
	while (i && !a->ranges[i - 1].used)
		i--;
	if (i) {
		*begin = a->ranges[i - 1].offset;
		*end = a->ranges[i].offset;
	}
	pthread_rwlock_unlock(&a->lock);
	return offset < *end && len <= *end - offset;
}

void gdri_suballoc_query(const struct gdri_suballoc *a, struct gdri_suballoc_info *info)
{
	*info = (struct gdri_suballoc_info){.size = a->size, .used = a->used, .objects = a->objects};
	for (size_t i = 0; i < a->n; i++) {
		if (!a->ranges[i].used && suballoc_length(&a->ranges[i]) > info->largest_free)
			info->largest_free = suballoc_length(&a->ranges[i]);
	}
}

uint64_t gdri_suballoc_history(const struct gdri_suballoc *a)
{
	return a->history;
}
