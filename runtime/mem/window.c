// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/mem/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/agree.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_ipc.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/outside.h"
#include "runtime/mem/rkeys.h"
#include "runtime/mem/share.h"
#include "runtime/mem/suballoc.h"
#include "runtime/mem/symmetric.h"

#define PLACE ((uint64_t)2 << 20) /* places begin at multiples */
#define SETTLE_US 1000000
#define MARK 16

uint64_t gdri_window_reach(const struct gdri_state *st)
{
	return st->heap->max + (st->heap->cuda ? gdri_cuda_room(st->heap->cuda) : 0);
}

/* The registration that bytes outside the heap belong to, with symmetric_lock; NULL: none. */
static const struct gdri_symmetric *entry_of(const struct gdri_state *st, const void *ptr, uint64_t len)
{
	const struct gdri_symmetric *s;
	uint64_t from;

	for (s = st->symmetric; s; s = s->next) {
		from = (uint64_t)((uintptr_t)ptr - (uintptr_t)gdri_symmetric_name(s));
		if (s->cuda && !s->left && from < s->len && len <= s->len - from)
			break;
	}
	return s;
}

static pthread_mutex_t *lock_of(const struct gdri_state *st)
{
	return (pthread_mutex_t *)(uintptr_t)&st->symmetric_lock;
}

/* Within the heaps' range one distance leads to all. */
static bool is_in_range(const struct gdri_state *st, const void *ptr)
{
	/* relaxed: who has such an address learnt of it behind the call that counted it */
	return (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap->base) < gdri_window_reach(st) ||
	       !__atomic_load_n(&st->outside->n, __ATOMIC_RELAXED);
}

bool gdri_window_is_outside(const struct gdri_state *st, const void *ptr)
{
	const struct gdri_symmetric *s;

	if (is_in_range(st, ptr))
		return false;
	pthread_mutex_lock(lock_of(st));
	s = entry_of(st, ptr, 0);
	pthread_mutex_unlock(lock_of(st));
	return s;
}

uint8_t *gdri_window_at(const struct gdri_state *st, const void *ptr, int pe)
{
	uint64_t offset = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap->base);
	uint8_t *at = st->peers[pe].base ? (uint8_t *)((uintptr_t)st->peers[pe].base + offset) : NULL;
	const struct gdri_symmetric *s;

	if (is_in_range(st, ptr))
		return at;
	pthread_mutex_lock(lock_of(st));
	s = entry_of(st, ptr, 0);
	if (s)
		at = s->at[pe] ? s->at[pe] + ((const uint8_t *)ptr - s->addr) : NULL;
	pthread_mutex_unlock(lock_of(st));
	return at;
}

uint64_t gdri_window_offset(const struct gdri_state *st, const void *ptr)
{
	uint64_t offset = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap->base);
	const struct gdri_symmetric *s;

	if (is_in_range(st, ptr))
		return offset;
	pthread_mutex_lock(lock_of(st));
	s = entry_of(st, ptr, 0);
	if (s)
		offset = (uint64_t)(s->ptr - st->heap->base) + (uint64_t)((const uint8_t *)ptr - s->addr);
	pthread_mutex_unlock(lock_of(st));
	return offset;
}

bool gdri_window_has(const struct gdri_state *st, const void *ptr, uint64_t len)
{
	uint64_t at = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap->base), size = gdri_heap_size(st->heap);
	const struct gdri_symmetric *s;

	if (at < size)
		return len <= size - at;
	if (at >= gdri_window_reach(st) && is_in_range(st, ptr)) /* nothing is outside */
		return false;
	pthread_mutex_lock(lock_of(st));
	s = entry_of(st, ptr, len);
	pthread_mutex_unlock(lock_of(st));
	return s;
}

static const char *refuse_view(struct gdri_state *st, const void *addr, size_t len)
{
	uint64_t grain = gdri_cuda_grain(st->heap->cuda);

	if (gdri_cuda_is_pooled(st->cuda, addr))
		return "it is of a memory pool (cudaMallocAsync), whose memory the driver does not map for others by "
		       "itself: take memory of cudaMalloc or cuMemCreate";
	if (!grain || len % grain)
		return "the length has to be a multiple of what the driver maps (2 MiB)";
	return NULL;
}

const char *gdri_window_refuse(struct gdri_state *st, const void *addr, size_t len)
{
	const char *why;

	if (!gdri_cuda_room(st->heap->cuda))
		return "the driver reserved no addresses for it behind the heap";
	if (!addr || !len || (uintptr_t)addr + len < (uintptr_t)addr)
		return "this is no memory";
	if (!gdri_cuda_is_device(st->heap->cuda, addr))
		return "it is not memory of a GPU, as the heap is; GDR_HEAP_KIND=host has another";
	why = gdri_cuda_is_plain(st->cuda, addr) ? gdri_outside_refuse(addr, len) : refuse_view(st, addr, len);
	if (why)
		return why;
	if ((uintptr_t)addr - (uintptr_t)st->heap->base < gdri_window_reach(st))
		return "it is in the symmetric heap already";
	for (const struct gdri_symmetric *s = st->symmetric; s; s = s->next)
		if ((uintptr_t)addr < (uintptr_t)s->addr + s->len && (uintptr_t)s->addr < (uintptr_t)addr + len)
			return "a part of it is registered already";
	return NULL;
}

int gdri_window_prepare(struct gdri_state *st)
{
	if (!st->window)
		st->window = gdri_suballoc_create(gdri_cuda_room(st->heap->cuda), 0);
	if (st->window && !gdri_suballoc_reserve(st->window))
		return 0;
	return gdri_fail(-GDR_ENOMEM, "out of memory");
}

int gdri_window_alloc(struct gdri_state *st, size_t len, void **out)
{
	uint64_t at = gdri_suballoc_alloc(st->window, len, PLACE);

	if (at == GDRI_SUBALLOC_NONE)
		return gdri_fail(-GDR_ENOMEM, "gdr_symmetric_register: no room for %zu bytes: %llu are reserved in all",
				 len, (unsigned long long)gdri_cuda_room(st->heap->cuda));
	*out = st->heap->base + st->heap->max + at;
	return 0;
}

int gdri_window_free(struct gdri_state *st, void *ptr)
{
	return gdri_suballoc_free(st->window, (uint64_t)((uint8_t *)ptr - st->heap->base) - st->heap->max);
}

/* The others wait meanwhile: half of what is left of the time is theirs. */
static int window_look(struct gdri_state *st, uint8_t *to, const uint8_t *gpu)
{
	return gdri_cuda_peek(st->cuda, to, gpu, MARK, gdri_left_ms(st->deadline_ns) / 2);
}

static int window_store(struct gdri_state *st, uint8_t *gpu, const uint8_t *from)
{
	return gdri_cuda_poke(st->cuda, gpu, from, MARK, gdri_left_ms(st->deadline_ns) / 2);
}

/* Both addresses have to name one memory, else -GDR_EINVAL: the handle is that of a whole allocation, of which addr may
 * not be the begin. Its contents stay, or the log says that they may not. */
static int check_same(struct gdri_state *st, uint8_t *addr, uint8_t *view)
{
	uint8_t mark[MARK], seen[MARK], keep[MARK]; /* keep: where they are two, it is the view's */
	int i, ret = window_look(st, mark, addr), back;

	if (!ret)
		ret = window_look(st, keep, view);
	if (ret)
		return ret;
	for (i = 0; i < MARK; i++)
		mark[i] = (uint8_t)~mark[i];
	ret = window_store(st, view, mark);
	if (!ret)
		ret = window_look(st, seen, addr);
	if (!ret && memcmp(seen, mark, MARK))
		ret = -GDR_EINVAL;
	back = window_store(st, view, keep);
	if (back)
		gdri_error("gdr_symmetric_register: the %u bytes at %p may hold a mark of the library's now", MARK,
			   (void *)addr);
	return back ? back : ret;
}

static int check_view(struct gdri_state *st, const struct gdri_symmetric *s, char *why, size_t room)
{
	int ret = check_same(st, s->addr, s->ptr);

	if (!ret)
		ret = check_same(st, s->addr + s->len - MARK, s->ptr + s->len - MARK);
	if (ret == -GDR_EINVAL)
		snprintf(why, room, "it is not mapped there from the begin of its allocation on, in one piece");
	else if (ret)
		snprintf(why, room, "whether it is mapped there could not be seen: %s", gdr_strerror(ret));
	return ret;
}

static int add_view(struct gdri_symmetric *s, uint8_t *at, int fd, char *why, size_t room)
{
	int ret = gdri_cuda_view_map(s->cuda, at, s->len, fd, why, room);

	if (!ret)
		s->views[s->n_views++] = at;
	return ret;
}

static int view_own(struct gdri_state *st, struct gdri_symmetric *s, int *fd)
{
	char why[256];
	int ret = gdri_cuda_view_export(st->cuda, s->addr, fd, why, sizeof(why));

	gdri_cuda_default_stream(st->cuda, SETTLE_US); /* a cudaMemset amid check_view would look like other memory */
	if (!ret)
		ret = add_view(s, s->ptr, *fd, why, sizeof(why));
	if (!ret)
		ret = check_view(st, s, why, sizeof(why));
	if (ret)
		gdri_error("gdr_symmetric_register: %p with %zu bytes: %s", (void *)s->addr, s->len, why);
	return ret;
}

static int view_peers(struct gdri_state *st, struct gdri_symmetric *s, struct gdri_share *share, int fd,
		      const struct gdri_rkeys *all)
{
	struct gdri_share_peer *sp = calloc((size_t)st->n_pes, sizeof(*sp));
	int i, n = 0, ret = sp ? 0 : -GDR_ENOMEM;

	for (i = 0; sp && i < st->n_pes; i++)
		if (i != st->pe && st->peers[i].base)
			sp[n++] = (struct gdri_share_peer){.pe = i, .address = all[i].address};
	if (n)
		ret = gdri_share_exchange(share, st->pe, fd, -1, sp, n, gdri_left_ms(st->deadline_ns) / 2);
	for (i = 0; i < n; i++) {
		if (!ret) {
			ret = -GDR_ESYSTEM;
			if (sp[i].fd >= 0)
				ret = add_view(s, st->peers[sp[i].pe].base + (s->ptr - st->heap->base), sp[i].fd,
					       sp[i].why, sizeof(sp[i].why));
			if (ret)
				gdri_error("gdr_symmetric_register: the memory of PE %d: %s", sp[i].pe, sp[i].why);
		}
		if (sp[i].fd >= 0)
			close(sp[i].fd);
	}
	free(sp);
	return ret;
}

struct entering { /* a registration under way */
	struct gdri_symmetric *s;
	struct gdri_share share;
	struct gdri_outside_kept kept;
	int fd;
	bool joined; /* there are keys that nobody has used yet */
};

static struct gdri_symmetric *new_entry(struct gdri_state *st, void *addr, void *ptr, size_t len)
{
	struct gdri_symmetric *s = calloc(1, sizeof(*s));
	uint8_t **views = calloc((size_t)st->n_pes, sizeof(*views)), **at = NULL;
	bool plain = gdri_cuda_is_plain(st->cuda, addr);

	if (plain)
		at = calloc((size_t)st->n_pes, sizeof(*at));
	if (!s || !views || (plain && !at)) {
		free(s);
		free(views);
		free(at);
		return gdri_fail(NULL, "out of memory");
	}
	*s = (struct gdri_symmetric){.next = st->symmetric, .addr = addr, .ptr = ptr, .len = len,
				     .cuda = st->cuda, .views = views, .at = at};
	return s;
}

static void window_drop(struct gdri_symmetric *s)
{
	gdri_window_leave(s);
	gdri_symmetric_end(s);
}

/* A copy to its first bytes may yet land in a view of it: that stays mapped meanwhile. Under symmetric_lock. */
static void drop_or_keep(struct gdri_state *st, struct gdri_symmetric *s)
{
	if (!s->n_views || !gdri_cuda_settle(st->cuda, 0)) {
		window_drop(s);
		return;
	}
	s->left = s->late = true;
	st->symmetric = s;
}

static void window_sweep(struct gdri_state *st)
{
	struct gdri_symmetric **at = &st->symmetric, *s;

	pthread_mutex_lock(&st->symmetric_lock);
	while ((s = *at)) {
		if (!s->late) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		window_drop(s);
	}
	pthread_mutex_unlock(&st->symmetric_lock);
}

int gdri_window_settle(struct gdri_state *st, const char *call)
{
	if (gdri_cuda_settle(st->cuda, 0))
		return gdri_fail(-GDR_ETIMEOUT,
				 "%s: a copy that took too long is still under way, and may yet land there: call again "
				 "when the kernel that holds the GPU has ended",
				 call);
	window_sweep(st);
	return 0;
}

static int window_prepare(struct gdri_state *st, struct entering *e, struct gdri_rkeys *mine)
{
	struct gdri_symmetric *s = e->s;
	int ret = s ? gdri_share_open(&e->share) : -GDR_ENOMEM;

	if (!ret)
		ret = s->at ? gdri_outside_send(st, s, mine, &e->kept) : view_own(st, s, &e->fd);
	if (!ret)
		ret = gdri_rkeys_join(st, gdri_symmetric_name(s), s->len, (uint64_t)(s->ptr - st->heap->base), mine);
	mine->address = e->share.address;
	return ret;
}

/* Whether all have mapped it; what one cannot, none keeps. */
static int agree_mapped(struct gdri_state *st, struct entering *e)
{
	int ret = gdri_agree(st, "gdr_symmetric_register", NULL, NULL, 0);

	if (!e->s->at)
		return ret;
	gdri_outside_unmark(st, e->s, &e->kept); /* nobody looks for it any more, or writes yet */
	if (ret)
		gdri_outside_give_up(st, e->s);
	return ret;
}

/* All have sent what they have, and map that of the others. */
static int window_exchange(struct gdri_state *st, struct entering *e, const struct gdri_rkeys *all)
{
	int ret = gdri_outside_alike(st, e->s, all);

	if (ret)
		return ret;
	st->pending = e->s->at ? gdri_outside_open(st, e->s, all) : view_peers(st, e->s, &e->share, e->fd, all);
	if (!st->any_net && !e->s->at)
		return 0; /* the caller's next agreement tells */
	ret = agree_mapped(st, e);
	if (ret)
		return ret;
	e->joined = false;
	return gdri_rkeys_use(st, "gdr_symmetric_register", all);
}

/* Also where some PEs use the keys already it stays: it goes when the library is left. */
static void keep_or_drop(struct gdri_state *st, const struct entering *e, bool keep)
{
	int listed = keep && e->s->at;

	pthread_mutex_lock(&st->symmetric_lock);
	if (keep)
		st->symmetric = e->s;
	else
		drop_or_keep(st, e->s);
	/* relaxed: see is_in_range */
	__atomic_add_fetch(&st->outside->n, listed - (int)e->kept.is_counted, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&st->symmetric_lock);
}

int gdri_window_enter(struct gdri_state *st, void *addr, void *ptr, size_t len)
{
	struct gdri_rkeys mine = {0}, *all = calloc((size_t)st->n_pes, sizeof(*all));
	struct entering e = {.s = all ? new_entry(st, addr, ptr, len) : NULL, .share = {.listener = -1}, .fd = -1};
	int ret;

	gdri_limit_begin(st, false);
	st->pending = window_prepare(st, &e, &mine);
	e.joined = !st->pending && st->any_net;
	ret = gdri_agree(st, "gdr_symmetric_register", &mine, all, sizeof(*all));
	if (!ret)
		ret = window_exchange(st, &e, all);
	if (ret && e.joined && !st->broken)
		gdri_rkeys_undo(st);
	if (e.s) {
		gdri_outside_unmark(st, e.s, &e.kept);
		keep_or_drop(st, &e, (!ret && !st->pending) || st->broken);
	}
	if (!ret && !st->pending) /* else the next agreement tells */
		st->pending = gdri_outside_publish(st);
	gdri_share_close(&e.share);
	if (e.fd >= 0)
		close(e.fd);
	free(all);
	return ret;
}

int gdri_window_retire(struct gdri_state *st, void *ptr)
{
	const struct gdri_symmetric *s = gdri_symmetric_find(st->symmetric, ptr);
	struct gdri_rkeys mine = {0}, *all;
	bool joined = false;
	int ret;

	if (!st->any_net)
		return 0;
	all = calloc((size_t)st->n_pes, sizeof(*all));
	gdri_limit_begin(st, false);
	if (!all || !s) {
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	} else {
		st->pending = gdri_rkeys_leave(st, (uint64_t)(s->ptr - st->heap->base), s->len, &mine);
		joined = !st->pending;
	}
	ret = gdri_agree(st, "gdr_symmetric_unregister", &mine, all, sizeof(*all));
	if (ret && joined && !st->broken) /* else some PEs may use the keys already */
		gdri_rkeys_undo(st);
	if (!ret)
		ret = gdri_rkeys_use(st, "gdr_symmetric_unregister", all);
	if (!ret)
		gdri_rkeys_drop(st);
	free(all);
	return ret;
}

void gdri_window_leave(struct gdri_symmetric *s)
{
	uint8_t *view;

	while (s->n_views) {
		view = s->views[--s->n_views];
		if (s->at)
			gdri_cuda_ipc_close(s->cuda, view);
		else
			gdri_cuda_view_unmap(s->cuda, view, s->len);
	}
}
