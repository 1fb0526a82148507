// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/agree.h"
#include "runtime/clock.h"
#include "runtime/cuda.h"
#include "runtime/cuda_map.h"
#include "runtime/cuda_view.h"
#include "runtime/log.h"
#include "runtime/offer.h"
#include "runtime/state.h"

#define PLACE ((uint64_t)2 << 20) /* places begin at multiples */
#define SETTLE_US 1000000
#define MARK 16

uint64_t gdri_window_reach(const struct gdri_state *st)
{
	return st->heap.max + (st->heap.cuda ? gdri_cuda_room(st->heap.cuda) : 0);
}

bool gdri_window_has(const struct gdri_state *st, const void *ptr, uint64_t len)
{
	uint64_t at = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap.base), size = gdri_heap_size(&st->heap), from;
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&st->symmetric_lock;
	const struct gdri_symmetric *s;

	if (at < size)
		return len <= size - at;
	if (at >= gdri_window_reach(st))
		return false;
	pthread_mutex_lock(lock);
	for (s = st->symmetric; s; s = s->next) {
		from = (uint64_t)((uintptr_t)ptr - (uintptr_t)s->ptr);
		if (s->cuda && !s->left && from < s->len && len <= s->len - from)
			break;
	}
	pthread_mutex_unlock(lock);
	return s;
}

const char *gdri_window_refuse(struct gdri_state *st, const void *addr, size_t len)
{
	uint64_t grain = gdri_cuda_grain(st->heap.cuda);
	const struct gdri_symmetric *s;

	if (!gdri_cuda_room(st->heap.cuda))
		return "the driver reserved no addresses for it behind the heap";
	if (!addr || !len || (uintptr_t)addr + len < (uintptr_t)addr)
		return "this is no memory";
	if (!gdri_cuda_is_device(st->heap.cuda, addr))
		return "it is not memory of a GPU, as the heap is; GDR_HEAP_KIND=host has another";
	if (!grain || len % grain)
		return "the length has to be a multiple of what the driver maps (2 MiB)";
	if ((uintptr_t)addr - (uintptr_t)st->heap.base < gdri_window_reach(st))
		return "it is in the symmetric heap already";
	for (s = st->symmetric; s; s = s->next)
		if ((uintptr_t)addr < (uintptr_t)s->addr + s->len && (uintptr_t)s->addr < (uintptr_t)addr + len)
			return "a part of it is registered already";
	return NULL;
}

int gdri_window_prepare(struct gdri_state *st)
{
	if (!st->window)
		st->window = gdri_suballoc_create(gdri_cuda_room(st->heap.cuda), 0);
	if (st->window && !gdri_suballoc_reserve(st->window))
		return 0;
	gdri_error("out of memory");
	return -GDR_ENOMEM;
}

int gdri_window_alloc(struct gdri_state *st, size_t len, void **out)
{
	uint64_t at = gdri_suballoc_alloc(st->window, len, PLACE);

	if (at == GDRI_SUBALLOC_NONE) {
		gdri_error("gdr_symmetric_register: no room for %zu bytes: %llu are reserved in all", len,
			   (unsigned long long)gdri_cuda_room(st->heap.cuda));
		return -GDR_ENOMEM;
	}
	*out = st->heap.base + st->heap.max + at;
	return 0;
}

int gdri_window_free(struct gdri_state *st, void *ptr)
{
	return gdri_suballoc_free(st->window, (uint64_t)((uint8_t *)ptr - st->heap.base) - st->heap.max);
}

/* The others wait meanwhile: half of what is left of the time is theirs. */
static bool look(struct gdri_state *st, uint8_t *to, const uint8_t *gpu)
{
	return !gdri_cuda_peek(st->cuda, to, gpu, MARK, gdri_left_ms(st->deadline_ns) / 2);
}

static bool store(struct gdri_state *st, uint8_t *gpu, const uint8_t *from)
{
	return !gdri_cuda_poke(st->cuda, gpu, from, MARK, gdri_left_ms(st->deadline_ns) / 2);
}

/* Do both addresses name one memory? The handle is that of a whole allocation, of which addr may not be the begin.
 * Its contents stay. */
static bool is_same(struct gdri_state *st, uint8_t *addr, uint8_t *view)
{
	uint8_t mark[MARK], seen[MARK], keep[MARK]; /* keep: where they are two, it is the view's */
	bool same;
	int i;

	if (!look(st, mark, addr) || !look(st, keep, view))
		return false;
	for (i = 0; i < MARK; i++)
		mark[i] = (uint8_t)~mark[i];
	same = store(st, view, mark) && look(st, seen, addr) && !memcmp(seen, mark, MARK);
	return store(st, view, keep) && same;
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

	gdri_cuda_default_stream(st->cuda, SETTLE_US); /* a cudaMemset amid is_same would look like other memory */
	if (!ret)
		ret = add_view(s, s->ptr, *fd, why, sizeof(why));
	if (!ret && (!is_same(st, s->addr, s->ptr) ||
		     !is_same(st, s->addr + s->len - MARK, s->ptr + s->len - MARK))) {
		snprintf(why, sizeof(why), "it is not mapped there from the begin of its allocation on, in one piece");
		ret = -GDR_EINVAL;
	}
	if (ret)
		gdri_error("gdr_symmetric_register: %p with %zu bytes: %s", (void *)s->addr, s->len, why);
	return ret;
}

static int view_peers(struct gdri_state *st, struct gdri_symmetric *s, struct gdri_share *share, int fd,
		      const struct gdri_offer *all)
{
	struct gdri_share_peer *sp = calloc((size_t)st->n_pes, sizeof(*sp));
	int i, n = 0, ret = sp ? 0 : -GDR_ENOMEM;

	for (i = 0; sp && i < st->n_pes; i++)
		if (i != st->pe && st->peers[i].base)
			sp[n++] = (struct gdri_share_peer){.pe = i, .address = all[i].address};
	if (n)
		gdri_share_trade(share, st->pe, fd, -1, sp, n, gdri_left_ms(st->deadline_ns) / 2);
	for (i = 0; i < n; i++) {
		if (sp[i].fd < 0)
			ret = -GDR_ESYSTEM;
		else if (!ret)
			ret = add_view(s, st->peers[sp[i].pe].base + (s->ptr - st->heap.base), sp[i].fd, sp[i].why,
				       sizeof(sp[i].why));
		if (ret)
			gdri_error("gdr_symmetric_register: the memory of PE %d: %s", sp[i].pe, sp[i].why);
		if (sp[i].fd >= 0)
			close(sp[i].fd);
	}
	free(sp);
	return ret;
}

static struct gdri_symmetric *new_entry(struct gdri_state *st, void *addr, void *ptr, size_t len)
{
	struct gdri_symmetric *s = calloc(1, sizeof(*s));
	uint8_t **views = calloc((size_t)st->n_pes, sizeof(*views));

	if (!s || !views) {
		free(s);
		free(views);
		gdri_error("out of memory");
		return NULL;
	}
	*s = (struct gdri_symmetric){.next = st->symmetric, .addr = addr, .ptr = ptr, .len = len,
				     .cuda = st->cuda, .views = views};
	return s;
}

static void drop(struct gdri_symmetric *s)
{
	gdri_window_leave(s);
	free(s->views);
	free(s);
}

static int prepare(struct gdri_state *st, struct gdri_symmetric *s, struct gdri_share *share, int *fd,
		   struct gdri_offer *mine)
{
	int ret = s ? gdri_share_open(share) : -GDR_ENOMEM;

	if (!ret)
		ret = view_own(st, s, fd);
	if (!ret)
		ret = gdri_offer_join(st, s->ptr, s->len, (uint64_t)(s->ptr - st->heap.base), mine);
	mine->address = share->address;
	return ret;
}

/* All have what they offer, and map that of the others. joined: nobody has used the own keys yet. */
static int exchange(struct gdri_state *st, struct gdri_symmetric *s, struct gdri_share *share, int fd,
		    const struct gdri_offer *all, bool *joined)
{
	int ret;

	st->pending = view_peers(st, s, share, fd, all);
	if (!st->any_nic)
		return 0; /* the caller's next agreement tells */
	ret = gdri_agree(st, "gdr_symmetric_register", NULL, NULL, 0);
	if (ret)
		return ret;
	*joined = false;
	return gdri_offer_use(st, "gdr_symmetric_register", all);
}

int gdri_window_enter(struct gdri_state *st, void *addr, void *ptr, size_t len)
{
	struct gdri_offer mine = {0}, *all = calloc((size_t)st->n_pes, sizeof(*all));
	struct gdri_symmetric *s = all ? new_entry(st, addr, ptr, len) : NULL;
	struct gdri_share share = {.listener = -1};
	int fd = -1, ret;
	bool joined;

	st->deadline_ns = gdri_deadline_ns((int)st->opt.timeout_ms);
	st->pending = prepare(st, s, &share, &fd, &mine);
	joined = !st->pending && st->any_nic;
	ret = gdri_agree(st, "gdr_symmetric_register", &mine, all, sizeof(*all));
	if (!ret)
		ret = exchange(st, s, &share, fd, all, &joined);
	if (ret && joined && !st->broken)
		gdri_offer_undo(st);
	pthread_mutex_lock(&st->symmetric_lock);
	if (s && (ret || st->pending) && !st->broken)
		drop(s);
	else if (s) /* also where some PEs use the keys already: it goes when the library is left */
		st->symmetric = s;
	pthread_mutex_unlock(&st->symmetric_lock);
	gdri_share_close(&share);
	if (fd >= 0)
		close(fd);
	free(all);
	return ret;
}

int gdri_window_retire(struct gdri_state *st, void *ptr)
{
	const struct gdri_symmetric *s = gdri_symmetric_find(st->symmetric, ptr);
	struct gdri_offer mine = {0}, *all;
	bool joined = false;
	int ret;

	if (!st->any_nic)
		return 0;
	all = calloc((size_t)st->n_pes, sizeof(*all));
	st->deadline_ns = gdri_deadline_ns((int)st->opt.timeout_ms);
	if (!all || !s) {
		gdri_error("out of memory");
		st->pending = -GDR_ENOMEM;
	} else {
		st->pending = gdri_offer_leave(st, (uint64_t)(s->ptr - st->heap.base), s->len, &mine);
		joined = !st->pending;
	}
	ret = gdri_agree(st, "gdr_symmetric_unregister", &mine, all, sizeof(*all));
	if (ret && joined && !st->broken) /* else some PEs may use the keys already */
		gdri_offer_undo(st);
	if (!ret)
		ret = gdri_offer_use(st, "gdr_symmetric_unregister", all);
	if (!ret)
		gdri_offer_drop(st);
	free(all);
	return ret;
}

void gdri_window_leave(struct gdri_symmetric *s)
{
	while (s->n_views)
		gdri_cuda_view_unmap(s->cuda, s->views[--s->n_views], s->len);
}
