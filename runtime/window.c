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
#include "runtime/state.h"

#define PLACE ((uint64_t)2 << 20) /* places begin at multiples */
#define MARK 16

uint64_t gdri_window_reach(const struct gdri_state *st)
{
	return st->heap.max + (st->heap.cuda && !st->any_nic ? gdri_cuda_room(st->heap.cuda) : 0);
}

bool gdri_window_has(const struct gdri_state *st, const void *ptr, uint64_t len)
{
	uint64_t at = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap.base), from;
	pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&st->symmetric_lock;
	const struct gdri_symmetric *s;

	if (at < st->heap.size)
		return len <= st->heap.size - at;
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

	if (st->any_nic)
		return "some PEs are reached through queues, whose memory keys cover the heap alone";
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

int gdri_window_alloc(struct gdri_state *st, size_t len, void **out)
{
	uint64_t at;

	if (!st->window)
		st->window = gdri_suballoc_create(gdri_cuda_room(st->heap.cuda));
	if (!st->window || gdri_suballoc_reserve(st->window)) {
		gdri_error("out of memory");
		return -GDR_ENOMEM;
	}
	at = gdri_suballoc_alloc(st->window, len, PLACE);
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

/* Do both addresses name one memory? The handle is that of a whole allocation, of which addr may not be the begin.
 * Its contents stay. */
static bool is_same(struct gdri_state *st, uint8_t *addr, uint8_t *view)
{
	uint8_t mark[MARK], seen[MARK], keep[MARK]; /* keep: where they are two, it is the view's */
	int i, ms = (int)st->opt.timeout_ms;
	bool same;

	if (gdri_cuda_copy(st->cuda, mark, addr, MARK, ms) || gdri_cuda_copy(st->cuda, keep, view, MARK, ms))
		return false;
	for (i = 0; i < MARK; i++)
		mark[i] = (uint8_t)~mark[i];
	same = !gdri_cuda_copy(st->cuda, view, mark, MARK, ms) &&
	       !gdri_cuda_copy(st->cuda, seen, addr, MARK, ms) && !memcmp(seen, mark, MARK);
	return !gdri_cuda_copy(st->cuda, view, keep, MARK, ms) && same;
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
		      const struct gdri_share_address *all)
{
	struct gdri_share_peer *sp = calloc((size_t)st->n_pes, sizeof(*sp));
	int i, n = 0, ret = sp ? 0 : -GDR_ENOMEM;

	for (i = 0; sp && i < st->n_pes; i++)
		if (i != st->pe)
			sp[n++] = (struct gdri_share_peer){.pe = i, .address = all[i]};
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

int gdri_window_enter(struct gdri_state *st, void *addr, void *ptr, size_t len)
{
	struct gdri_share_address *all = calloc((size_t)st->n_pes, sizeof(*all));
	struct gdri_symmetric *s = all ? new_entry(st, addr, ptr, len) : NULL;
	struct gdri_share share = {.listener = -1};
	int fd = -1, ret;

	st->pending = s ? gdri_share_open(&share) : -GDR_ENOMEM;
	if (!st->pending)
		st->pending = view_own(st, s, &fd);
	st->deadline_ns = gdri_deadline_ns((int)st->opt.timeout_ms);
	ret = gdri_agree(st, "gdr_symmetric_register", &share.address, all, sizeof(*all));
	st->broken |= ret == -GDR_ETIMEOUT || ret == -GDR_EBOOTSTRAP;
	if (!ret)
		st->pending = view_peers(st, s, &share, fd, all);
	pthread_mutex_lock(&st->symmetric_lock);
	if (s && (ret || st->pending))
		drop(s);
	else if (s)
		st->symmetric = s;
	pthread_mutex_unlock(&st->symmetric_lock);
	gdri_share_close(&share);
	if (fd >= 0)
		close(fd);
	free(all);
	return ret;
}

void gdri_window_leave(struct gdri_symmetric *s)
{
	while (s->n_views)
		gdri_cuda_view_unmap(s->cuda, s->views[--s->n_views], s->len);
}
