// SPDX-License-Identifier: BSD-3-Clause
/* Collective allocation. Every PE runs the same allocator on the same calls; what
 * is exchanged is only whether the calls are the same. */
#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>

#include "host/host.h"
#include "runtime/core/agree.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/core/host_barrier.h"
#include "runtime/core/range.h"
#include "runtime/core/text.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/suballoc.h"
#include "runtime/mem/symmetric.h"
#include "runtime/mem/window.h"
#include "runtime/team/join_record.h"
#include "runtime/team/team.h"

struct request {
	uint64_t call, size, alignment; /* FREE, RESIZED: size is the object's offset */
	uint64_t history;
};

/* Where the allocator's range begins. */
static uint8_t *heap_objects(const struct gdri_state *st)
{
	return st->heap->base + GDRI_CTL_SIZE + st->teams->bytes;
}

/* What a PE sent. Of those that name an object, size is its offset: below the heap it wraps. */
static void add_request(struct text *t, const struct request *r, int pe, bool aligned)
{
	static const char *const names[] = {
		[GDRI_CALL_MALLOC] = "allocates", [GDRI_CALL_FREE] = "frees", [GDRI_CALL_ZEROED] = "zeroes",
		[GDRI_CALL_SHOWN] = "registers", [GDRI_CALL_HIDDEN] = "unregisters",
		[GDRI_CALL_GIVEN_BACK] = "gives back", [GDRI_CALL_RESIZED] = "resizes",
		[GDRI_CALL_COPIED] = "copies", [GDRI_CALL_BARRIER] = "is in a barrier",
	};
	unsigned long long n = r->size;

	text_add(t, "PE %d %s", pe, r->call && r->call < sizeof(names) / sizeof(names[0]) ? names[r->call]
											   : "does something else");
	if (r->call == GDRI_CALL_MALLOC || r->call == GDRI_CALL_ZEROED || r->call == GDRI_CALL_SHOWN)
		text_add(t, " %llu bytes", n);
	else if (r->call == GDRI_CALL_FREE && r->size == GDRI_SUBALLOC_NONE)
		text_add(t, " NULL");
	else if (r->call != GDRI_CALL_BARRIER && (int64_t)r->size < 0)
		text_add(t, " what is %llu bytes below the heap", -n);
	else if (r->call != GDRI_CALL_BARRIER)
		text_add(t, " the object at offset %llu", n);
	if (r->call == GDRI_CALL_RESIZED)
		text_add(t, " to %llu bytes", (unsigned long long)r->alignment);
	else if (aligned && r->call != GDRI_CALL_SHOWN && r->alignment)
		text_add(t, " (alignment %llu)", (unsigned long long)r->alignment);
}

static void say_differ(const struct request *all, int pe)
{
	bool aligned = all[0].alignment != all[pe].alignment;
	char text[256];
	struct text t = {text, sizeof(text), 0};

	add_request(&t, &all[0], 0, aligned);
	text_add(&t, ", ");
	add_request(&t, &all[pe], pe, aligned);
	gdri_error("symmetric heap: %s: all PEs must make the same calls", text);
}

static int heap_compare(const struct gdri_state *st, const struct request *all)
{
	for (int i = 1; i < st->n_pes; i++) {
		if (!memcmp(&all[i], &all[0], sizeof(all[0])))
			continue;
		if (all[i].call == all[0].call && all[i].size == all[0].size &&
		    all[i].alignment == all[0].alignment)
			gdri_error("symmetric heap: PE 0 and PE %d have made different calls before", i);
		else
			say_differ(all, i);
		return -GDR_EMISMATCH;
	}
	return 0;
}

/* Any two requests that differ have different words, but for 2^-56 of them. */
static uint64_t word_of(const struct request *r)
{
	const uint64_t in[] = {r->call, r->size, r->alignment, r->history};
	uint64_t h = 0;

	for (size_t i = 0; i < sizeof(in) / sizeof(in[0]); i++)
		h = gdri_hash(h, in[i]);
	return h;
}

/* With the whole requests, to say what differs. */
static int heap_tell_all(struct gdri_state *st, const struct request *mine)
{
	struct request *all = calloc((size_t)st->n_pes, sizeof(*all));
	int ret;

	if (!all && !st->pending)
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	gdri_limit_begin(st, false);
	ret = gdri_agree(st, st->call, mine, all, sizeof(*mine));
	if (!ret)
		ret = heap_compare(st, all);
	free(all);
	return ret;
}

/* The word of a PE was that of gdr_finalize: it told all PEs of that before, so all know that no exchange comes about.
 * Those that have heard of it may have followed. */
static int heap_left_alone(const struct gdri_state *st)
{
	for (int pe = 0; pe < st->n_pes; pe++)
		if (gdri_join_finalizes(st, pe) == 1)
			return gdri_fail(-GDR_EPEERLOST, "%s: PE %d has called gdr_finalize: it takes no part",
					 st->call, pe);
	return 0;
}

/* Collective. Own trouble (st->pending) is told too. Under st->lock. The word says whether all
 * is well; only when it is not the PEs exchange the rest through the launcher. */
int gdri_heap_agree(struct gdri_state *st, enum gdri_heap_call call, uint64_t size,
		    uint64_t alignment)
{
	struct request mine = {call, size, alignment, gdri_suballoc_history(st->alloc)};
	int ret;

	gdri_break(st, gdri_broken(gdri_host_dev(st), -1, GDRI_HOST_CALL));
	if (st->broken) {
		gdri_error("%s: an earlier collective call failed: %s; finalize and start anew", st->call,
			   gdr_strerror(st->broken));
		st->pending = 0;
		return st->broken;
	}
	ret = gdri_host_barrier(st, st->pending ? GDRI_HOST_BARRIER_TROUBLE : word_of(&mine));
	if (ret == GDRI_HOST_BARRIER_DIFFER && !(ret = heap_left_alone(st)))
		return heap_tell_all(st, &mine);
	if (ret) {
		gdri_break(st, ret);
		st->pending = 0;
	}
	return ret;
}

/* ---- the ranges: they change under st->lock and st->local_lock, and who looks at them has one of the two ---- */

static int heap_reserve(struct gdri_state *st)
{
	int ret;

	gdri_lock(&st->local_lock);
	ret = gdri_suballoc_reserve(st->alloc);
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

static uint64_t heap_take(struct gdri_state *st, uint64_t size, uint64_t alignment)
{
	uint64_t offset;

	gdri_lock(&st->local_lock);
	offset = gdri_suballoc_alloc(st->alloc, size, alignment);
	pthread_mutex_unlock(&st->local_lock);
	return offset;
}

static int heap_resize(struct gdri_state *st, uint64_t offset, uint64_t size)
{
	int ret;

	gdri_lock(&st->local_lock);
	ret = gdri_suballoc_resize(st->alloc, offset, size);
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

static int heap_give_back(struct gdri_state *st, uint64_t offset)
{
	int ret;

	gdri_lock(&st->local_lock);
	ret = gdri_suballoc_free(st->alloc, offset);
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

static int heap_out_of_memory(const struct gdri_state *st, uint64_t size)
{
	struct gdri_suballoc_info info;

	if (size >> 47)
		return gdri_fail(-GDR_ENOMEM, "symmetric heap: %llu bytes are more than there are addresses",
				 (unsigned long long)size);
	gdri_suballoc_query(st->alloc, &info);
	return gdri_fail(-GDR_ENOMEM,
			 "symmetric heap: no room for %llu bytes: %llu of %llu are free, the largest block has %llu; "
			 "raise GDR_HEAP_SIZE (now %llu) or GDR_HEAP_MAX%s",
			 (unsigned long long)size, (unsigned long long)(info.size - info.used),
			 (unsigned long long)info.size, (unsigned long long)info.largest_free,
			 (unsigned long long)st->opt.heap_size,
			 info.size - info.used > size && st->opt.heap_max
				 ? ", or GDR_HEAP_CHUNK: an object lies in one of the parts that a heap grew by"
				 : "");
}

/* Of the checked build, which looks no object of a GPU's heap up: its kernels cannot ask. */
int gdri_hd_object(uint64_t offset, uint64_t len, uint64_t *begin, uint64_t *end)
{
	const struct gdri_state *st = gdri_state_get();
	uint64_t first;

	if (!st || st->cuda)
		return 1;
	first = GDRI_CTL_SIZE + st->teams->bytes;
	if (gdri_suballoc_within(st->alloc, offset - first, len, begin, end))
		return 1;
	if (*end) {
		*begin += first;
		*end += first;
	}
	return 0;
}

/* Bytes of a part that holds it; the allocator's own grain fits any part. */
static uint64_t part_for(uint64_t size, uint64_t alignment)
{
	return alignment > GDRI_SUBALLOC_GRAIN ? size + alignment : size;
}

/* By all PEs alike: room for an object, which the heap may grow for. */
static int heap_place(struct gdri_state *st, uint64_t size, uint64_t alignment, void **out)
{
	uint64_t offset = heap_take(st, size, alignment), part = part_for(size, alignment);
	int ret;

	if (offset == GDRI_SUBALLOC_NONE && part >= size && gdri_grow_may(st, part)) {
		ret = gdri_grow(st, part);
		if (ret)
			return ret;
		offset = heap_take(st, size, alignment);
	}
	if (offset == GDRI_SUBALLOC_NONE)
		return heap_out_of_memory(st, size);
	*out = heap_objects(st) + offset;
	return 0;
}

/* Before memory is given out: the bookkeeping has room, and no copy that was given up is still under way. */
static int heap_prepare(struct gdri_state *st)
{
	if (heap_reserve(st))
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	return st->cuda && gdri_window_settle(st, "symmetric heap") ? -GDR_ETIMEOUT : 0;
}

static int heap_allocate(struct gdri_state *st, uint64_t size, uint64_t alignment, void **out)
{
	int ret;

	if (!st->pending)
		gdri_log_clear_error();
	ret = heap_prepare(st);
	if (ret)
		st->pending = ret;
	else if (!alignment || alignment & (alignment - 1) || alignment > GDRI_HEAP_ALIGN)
		st->pending = gdri_fail(-GDR_EINVAL, "gdr_align: alignment %llu is not a power of two of at most %u",
					(unsigned long long)alignment, GDRI_HEAP_ALIGN);
	ret = gdri_heap_agree(st, GDRI_CALL_MALLOC, size, alignment);
	return ret || !size ? ret : heap_place(st, size, alignment, out);
}

static void *allocate_zeroed(const char *call, uint64_t size, uint64_t alignment, bool zero)
{
	struct gdri_state *st = gdri_need_state(call);
	void *p = NULL;
	int ret;

	if (!st)
		return NULL;
	GDRI_RANGE(st, GDRI_RANGE_HEAP, call);
	gdri_lock(&st->lock);
	gdri_call_begin(st, call);
	ret = heap_allocate(st, size, alignment, &p);
	if (!ret && p && zero) {
		st->pending = gdri_heap_zero(st->heap, p, size, gdri_cuda_copy_ms(st) / 2); /* the others wait */
		ret = gdri_heap_agree(st, GDRI_CALL_ZEROED, size, alignment); /* no PE puts before all have zeroed */
		if (ret && !st->broken) /* all PEs know, and give it back */
			heap_give_back(st, (uint64_t)((uint8_t *)p - heap_objects(st)));
	}
	pthread_mutex_unlock(&st->lock);
	gdri_host_refused(st, ret);
	return ret ? NULL : p;
}

int gdri_symmetric_alloc(struct gdri_state *st, uint64_t size, uint64_t alignment, void **out)
{
	return heap_allocate(st, size, alignment, out);
}

int gdri_symmetric_free(struct gdri_state *st, void *ptr)
{
	return heap_give_back(st, (uint64_t)((uint8_t *)ptr - heap_objects(st)));
}

void *gdr_malloc(size_t size)
{
	return allocate_zeroed("gdr_malloc", size, 1, false);
}

/* An alignment that all objects have is none: PEs agree, whether they asked for it or not. */
void *gdri_calloc(size_t alignment, size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		total = SIZE_MAX; /* no heap has it: fails like any other size, on all PEs */
	return allocate_zeroed("gdr_calloc", total, alignment > GDRI_SUBALLOC_GRAIN ? alignment : 1, true);
}

void *gdr_calloc(size_t count, size_t size)
{
	return gdri_calloc(1, count, size);
}

void *gdr_align(size_t alignment, size_t size)
{
	return allocate_zeroed("gdr_align", size, alignment, false);
}

/* Offset in the allocator's range of an object that can be freed. */
static uint64_t object_offset(struct gdri_state *st, const void *ptr)
{
	uint64_t offset = (uint64_t)((uintptr_t)ptr - (uintptr_t)heap_objects(st));

	if (!ptr)
		return GDRI_SUBALLOC_NONE;
	if (gdri_symmetric_find(st->symmetric, ptr)) {
		st->pending =
			gdri_fail(-GDR_EINVAL, "%s: %p is registered memory of the program: gdr_symmetric_unregister",
				  st->call, ptr);
	} else if (!gdri_suballoc_size(st->alloc, offset)) {
		st->pending = gdri_fail(-GDR_EINVAL,
					"%s: no object starts at %p: not from gdr_malloc, or already freed", st->call,
					ptr);
	}
	return offset;
}

static int heap_free(struct gdri_state *st, const void *ptr)
{
	uint64_t offset;
	int ret;

	gdri_log_clear_error();
	offset = object_offset(st, ptr);
	ret = gdri_heap_agree(st, GDRI_CALL_FREE, offset, 0);
	return ret || !ptr ? ret : heap_give_back(st, offset);
}

int gdr_free(void *ptr)
{
	struct gdri_state *st = gdri_need_state("gdr_free");
	int ret;

	if (!st)
		return -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_HEAP, "gdr_free");
	gdri_lock(&st->lock);
	gdri_call_begin(st, "gdr_free");
	ret = heap_free(st, ptr);
	pthread_mutex_unlock(&st->lock);
	return ret;
}

/* Where the object has no room to grow. It is given back when all PEs have its contents at the other place. */
static int heap_move(struct gdri_state *st, uint64_t offset, uint64_t size, void **out)
{
	uint64_t before = gdri_suballoc_size(st->alloc, offset);
	void *to = NULL;
	int ret = heap_place(st, size, 1, &to);

	if (ret)
		return ret;
	st->pending = gdri_heap_copy(st->heap, to, heap_objects(st) + offset, before < size ? before : size,
				     gdri_cuda_copy_ms(st) / 2); /* the others wait */
	ret = gdri_heap_agree(st, GDRI_CALL_COPIED, size, 0);
	if (!ret) {
		*out = to;
		return heap_give_back(st, offset);
	}
	if (!st->broken) /* all PEs know, and give the other place back */
		heap_give_back(st, (uint64_t)((uint8_t *)to - heap_objects(st)));
	return ret;
}

static int heap_reallocate(struct gdri_state *st, const void *ptr, uint64_t size, void **out)
{
	uint64_t offset;
	int ret;

	gdri_log_clear_error();
	offset = object_offset(st, ptr);
	ret = heap_prepare(st);
	st->pending = ret ? ret : st->pending;
	ret = gdri_heap_agree(st, GDRI_CALL_RESIZED, offset, size);
	if (ret)
		return ret;
	if (heap_resize(st, offset, size))
		return heap_move(st, offset, size, out);
	*out = heap_objects(st) + offset;
	return 0;
}

void *gdr_realloc(void *ptr, size_t size)
{
	struct gdri_state *st = gdri_need_state("gdr_realloc");
	void *p = NULL;
	int ret;

	if (!st || !ptr)
		return st ? allocate_zeroed("gdr_realloc", size, 1, false) : NULL;
	GDRI_RANGE(st, GDRI_RANGE_HEAP, "gdr_realloc");
	gdri_lock(&st->lock);
	gdri_call_begin(st, "gdr_realloc");
	ret = size ? heap_reallocate(st, ptr, size, &p) : heap_free(st, ptr);
	pthread_mutex_unlock(&st->lock);
	gdri_host_refused(st, ret);
	return ret ? NULL : p;
}

void *gdr_host_ptr(const void *ptr, int pe)
{
	struct gdri_state *st = gdri_state_get();

	if (!st || pe < 0 || pe >= st->n_pes)
		return NULL;
	if (!gdri_window_has(st, ptr, 0))
		return NULL;
	return pe == st->pe ? (void *)(uintptr_t)ptr : gdri_window_at(st, ptr, pe);
}

int gdr_heap_query(struct gdr_heap_info *info)
{
	struct gdri_state *st = gdri_need_state("gdr_heap_query");
	struct gdri_suballoc_info i;

	if (!st)
		return -GDR_ESTATE;
	if (!info)
		return gdri_fail(-GDR_EINVAL, "gdr_heap_query: info is NULL");
	gdri_lock(&st->local_lock);
	gdri_suballoc_query(st->alloc, &i);
	pthread_mutex_unlock(&st->local_lock);
	*info = (struct gdr_heap_info){i.size, i.used, i.largest_free, i.objects};
	return 0;
}

/* The list is short: as long as it is walked no other thread changes it. */
int gdr_heap_list(struct gdr_heap_object *out, int max)
{
	struct gdri_state *st = gdri_need_state("gdr_heap_list");
	uint64_t offset = 0, size;
	int n = 0;

	if (!st)
		return -GDR_ESTATE;
	if (max < 0 || (max && !out))
		return gdri_fail(-GDR_EINVAL, "gdr_heap_list: no room for %d objects at %p", max, (void *)out);
	gdri_lock(&st->local_lock);
	while ((size = gdri_suballoc_next(st->alloc, &offset))) {
		if (n < max)
			out[n] = (struct gdr_heap_object){heap_objects(st) + offset, (size_t)size};
		offset += size;
		n++;
	}
	pthread_mutex_unlock(&st->local_lock);
	return n;
}
