// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/mem/outside.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/impl/arch/abi.h>
#include <gdr/status.h>

#include "runtime/core/agree.h"
#include "runtime/core/clock.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/cuda/units.h"
#include "runtime/exec/exec.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/rkeys.h"
#include "runtime/mem/symmetric.h"
#include "runtime/mem/window.h"

/* A thread that looks an address up while the table changes has the old one: it stays for as many changes, each a
 * collective call. */
#define TABLES 16u
#define ROOM 32u /* for registrations, of the first tables */
#define MARK GDRI_OUTSIDE_MARK

const char *gdri_outside_refuse(const void *addr, size_t len)
{
	return ((uintptr_t)addr | len) % MARK ? "address and length have to be multiples of 16 bytes" : NULL;
}

/* The others wait meanwhile: half of what is left of the time is theirs. */
static int copy_ms(const struct gdri_state *st)
{
	return gdri_left_ms(st->deadline_ns) / 2;
}

/* ---- marks ---- */

/* Nothing else holds it: a number of this PE's, and the time. */
static void make_mark(const struct gdri_state *st, uint8_t mark[MARK])
{
	uint64_t words[2] = {GDRI_CTL_MAGIC ^ (uint64_t)st->pe << 32, gdri_now_ns()};

	memcpy(mark, words, sizeof(words));
}

static uint8_t *outside_end_of(const struct gdri_symmetric *s, uint8_t *begin)
{
	return begin + s->len - MARK; /* where there are 16 bytes, they are the begin, too */
}

static int put_mark(struct gdri_state *st, const struct gdri_symmetric *s, const uint8_t *mark,
		    struct gdri_outside_kept *kept)
{
	int ret = gdri_cuda_peek(st->cuda, kept->begin, s->addr, MARK, copy_ms(st));

	if (!ret)
		ret = gdri_cuda_peek(st->cuda, kept->end, outside_end_of(s, s->addr), MARK, copy_ms(st));
	kept->is_marked = !ret;
	if (!ret)
		ret = gdri_cuda_poke(st->cuda, s->addr, mark, MARK, copy_ms(st));
	return ret ? ret : gdri_cuda_poke(st->cuda, outside_end_of(s, s->addr), mark, MARK, copy_ms(st));
}

static bool has_mark(struct gdri_state *st, const uint8_t *at, const uint8_t *mark)
{
	uint8_t seen[MARK];

	return !gdri_cuda_peek(st->cuda, seen, at, MARK, copy_ms(st)) && !memcmp(seen, mark, MARK);
}

void gdri_outside_unmark(struct gdri_state *st, const struct gdri_symmetric *s, struct gdri_outside_kept *kept)
{
	if (!kept->is_marked)
		return;
	kept->is_marked = false;
	if (gdri_cuda_poke(st->cuda, outside_end_of(s, s->addr), kept->end, MARK, copy_ms(st)) ||
	    gdri_cuda_poke(st->cuda, s->addr, kept->begin, MARK, copy_ms(st)))
		gdri_error("gdr_symmetric_register: %p with %zu bytes: the first and the last 16 hold a mark of the "
			   "library's now", (void *)s->addr, s->len);
}

/* ---- what PEs send each other, and take ---- */

/* Counted before the look: kernels that come meanwhile are seen here, or their loader sees the number (modules.c,
 * cuda_state.c). The numbers are relaxed, the locks of the lists of kernels order them. */
static int outside_count(struct gdri_state *st, const struct gdri_symmetric *s, struct gdri_outside_kept *kept)
{
	gdri_lock(&st->local_lock);
	__atomic_add_fetch(&st->outside->n, 1, __ATOMIC_RELAXED);
	kept->is_counted = gdri_units_have_any_address() && gdri_modules_have_any_address(st);
	if (!kept->is_counted)
		__atomic_sub_fetch(&st->outside->n, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&st->local_lock);
	if (kept->is_counted)
		return 0;
	return gdri_fail(-GDR_ENOTSUP,
			 "gdr_symmetric_register: %p with %zu bytes: memory of cudaMalloc takes device code that was "
			 "compiled with -DGDR_ANY_ADDRESS, all of it; or take memory of cuMemCreate",
			 (void *)s->addr, s->len);
}

int gdri_outside_send(struct gdri_state *st, struct gdri_symmetric *s, struct gdri_rkeys *mine,
		       struct gdri_outside_kept *kept)
{
	char why[256] = "it cannot be read and written";
	int ret = outside_count(st, s, kept);

	if (!ret)
		ret = gdri_exec_up_any(st);
	if (ret)
		return ret;
	gdri_cuda_default_stream(st->cuda, 1000000); /* a cudaMemset would write over the mark */
	ret = gdri_cuda_ipc_export(st->cuda, s->addr, s->len, &mine->ipc, why, sizeof(why));
	make_mark(st, mine->mark);
	if (!ret)
		ret = put_mark(st, s, mine->mark, kept);
	if (ret)
		gdri_error("gdr_symmetric_register: %p with %zu bytes: %s", (void *)s->addr, s->len, why);
	return ret;
}

static const char *outside_kind_of(const struct gdri_rkeys *o)
{
	return o->ipc.size ? "cudaMalloc" : "cuMemCreate";
}

int gdri_outside_alike(const struct gdri_state *st, const struct gdri_symmetric *s, const struct gdri_rkeys *all)
{
	for (int i = 0; i < st->n_pes; i++) {
		if (!!all[i].ipc.size == !!all[0].ipc.size)
			continue;
		return gdri_fail(-GDR_EMISMATCH,
				 "gdr_symmetric_register: %p with %zu bytes: PE %d brings memory of %s, PE 0 of %s: "
				 "all have to bring the same kind",
				 (void *)s->addr, s->len, i, outside_kind_of(&all[i]), outside_kind_of(&all[0]));
	}
	return 0;
}

static int open_peer(struct gdri_state *st, struct gdri_symmetric *s, int pe, const struct gdri_rkeys *o)
{
	char why[256] = "what is mapped is not its memory";
	uint8_t *base;
	int ret;

	if (o->ipc.offset > o->ipc.size || s->len > o->ipc.size - o->ipc.offset) /* a peer's word */
		ret = -GDR_EBOOTSTRAP;
	else
		ret = gdri_cuda_ipc_open(st->cuda, &o->ipc, &base, why, sizeof(why));
	if (!ret) {
		s->views[s->n_views++] = base;
		s->at[pe] = base + o->ipc.offset;
		if (!has_mark(st, s->at[pe], o->mark) || !has_mark(st, outside_end_of(s, s->at[pe]), o->mark))
			ret = -GDR_ESYSTEM;
	}
	if (ret)
		gdri_error("gdr_symmetric_register: the memory of PE %d: %s", pe, why);
	return ret;
}

int gdri_outside_open(struct gdri_state *st, struct gdri_symmetric *s, const struct gdri_rkeys *all)
{
	int i, ret = 0;

	s->at[st->pe] = s->addr;
	for (i = 0; i < st->n_pes && !ret; i++)
		if (i != st->pe && st->peers[i].base)
			ret = open_peer(st, s, i, &all[i]);
	return ret;
}

void gdri_outside_give_up(struct gdri_state *st, struct gdri_symmetric *s)
{
	if (!gdri_cuda_settle(st->cuda, 0)) {
		gdri_window_leave(s);
	} else if (s->n_views) { /* drop_or_keep gives these views up, too */
		st->pending = gdri_fail(-GDR_ETIMEOUT, "gdr_symmetric_register: memory of another PE stays mapped "
						       "until a look at it, which takes too long, ends: do not free it "
						       "before the next such call has returned");
	}
	if (!st->broken)
		gdri_agree(st, "gdr_symmetric_register", NULL, NULL, 0);
}

void gdri_outside_close(struct gdri_state *st)
{
	for (struct gdri_symmetric *s = st->symmetric; s; s = s->next)
		if (s->at)
			gdri_window_leave(s);
}

/* ---- what kernels look up ---- */

static size_t table_bytes(const struct gdri_state *st, size_t n)
{
	size_t bytes = sizeof(struct gdri_outside_table) +
		       n * (sizeof(struct gdri_outside) + (size_t)st->n_pes * sizeof(int64_t));

	return (bytes + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE;
}

static size_t outside_room(const struct gdri_state *st)
{
	return st->outside->grown ? (size_t)ROOM << (st->outside->grown - 1) : 0;
}

static int outside_by_address(const void *a, const void *b)
{
	const struct gdri_symmetric *x = *(struct gdri_symmetric *const *)a, *y = *(struct gdri_symmetric *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void outside_fill(const struct gdri_state *st, struct gdri_outside_table *t,
			 const struct gdri_symmetric *const *all)
{
	struct gdri_outside *o = (struct gdri_outside *)(void *)(t + 1);
	int64_t *delta = (int64_t *)(void *)(o + t->n);

	for (uint32_t k = 0; k < t->n; k++, o++) {
		const struct gdri_symmetric *s = all[k];

		*o = (struct gdri_outside){.addr = (uintptr_t)s->addr, .len = s->len,
					   .offset = (uint64_t)(s->ptr - st->heap->base)};
		for (int i = 0; i < st->n_pes; i++)
			*delta++ = s->at[i] ? (int64_t)((uintptr_t)s->at[i] - (uintptr_t)s->addr) : 0;
	}
}

static struct gdri_outside_table *make_table(struct gdri_state *st)
{
	const struct gdri_symmetric **all;
	struct gdri_outside_table *t;
	uint32_t n = 0;

	for (const struct gdri_symmetric *s = st->symmetric; s; s = s->next)
		n += s->at && !s->left;
	t = calloc(1, table_bytes(st, n));
	all = calloc(n + 1, sizeof(const struct gdri_symmetric *));
	if (t && all) {
		t->n_pes = (uint32_t)st->n_pes;
		for (const struct gdri_symmetric *s = st->symmetric; s; s = s->next)
			if (s->at && !s->left)
				all[t->n++] = s;
		qsort(all, n, sizeof(const struct gdri_symmetric *), outside_by_address);
		outside_fill(st, t, all);
	} else {
		free(t);
		t = gdri_fail(NULL, "out of memory");
	}
	free(all);
	return t;
}

static int outside_grow(struct gdri_state *st, size_t n)
{
	struct gdri_outsides *o = st->outside;

	while (n > outside_room(st)) {
		if (o->grown == GDRI_OUTSIDE_GROWN)
			return gdri_fail(-GDR_ENOMEM, "gdr_symmetric_register: %zu pieces of memory of cudaMalloc are "
						      "too many", n);
		o->gpu[o->grown] = gdri_cuda_alloc_bare(st->cuda, TABLES * table_bytes(st, (size_t)ROOM << o->grown));
		if (!o->gpu[o->grown])
			return -GDR_ENOMEM;
		o->grown++;
	}
	return 0;
}

/* The table, written whole, then the word that leads to it: a thread finds all of the one or all of the other. */
static int outside_to_gpu(struct gdri_state *st, const struct gdri_outside_table *t)
{
	struct gdri_outsides *o = st->outside;
	uint8_t *at = o->gpu[o->grown - 1] + o->turn++ % TABLES * table_bytes(st, outside_room(st));
	uint64_t word = t->n ? (uintptr_t)at : 0;
	int ms = gdri_cuda_copy_ms(st) / 2, ret = gdri_cuda_poke(st->cuda, at, t, table_bytes(st, t->n), ms);

	return ret ? ret : gdri_cuda_poke(st->cuda, &st->dev_gpu->outside, &word, sizeof(word), ms);
}

int gdri_outside_publish(struct gdri_state *st)
{
	struct gdri_outside_table *t;
	int ret;

	if (!st->outside->grown && !st->outside->n)
		return 0;
	t = make_table(st);
	ret = t ? outside_grow(st, t->n) : -GDR_ENOMEM;
	if (!ret && st->outside->grown)
		ret = outside_to_gpu(st, t);
	free(t);
	return ret;
}

void gdri_outside_down(struct gdri_state *st)
{
	while (st->outside->grown)
		gdri_cuda_free(st->cuda, st->outside->gpu[--st->outside->grown]);
}
