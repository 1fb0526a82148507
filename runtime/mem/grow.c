// SPDX-License-Identifier: BSD-3-Clause

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/agree.h"
#include "runtime/core/clock.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/rkeys.h"
#include "runtime/mem/share.h"
#include "runtime/mem/suballoc.h"

#define EXCHANGE_MS 10000

static uint64_t grow_left(const struct gdri_state *st)
{
	return st->heap->n < GDRI_HEAP_PARTS ? st->heap->max - st->heap->size : 0;
}

/* Whole chunks, and an eighth of what there is: few parts. At the end, what is left. */
static uint64_t part_size(const struct gdri_state *st, uint64_t bytes)
{
	uint64_t chunk = st->opt.heap_chunk, most = grow_left(st), size = st->heap->size / 8;

	size = size > bytes ? size : bytes;
	size = size > most ? most : size;
	size = (size + chunk - 1) / chunk * chunk;
	return size > most ? most : size;
}

bool gdri_grow_may(const struct gdri_state *st, uint64_t bytes)
{
	return bytes <= grow_left(st);
}

/* The part of this PE. */
static int grow_create(struct gdri_state *st, uint64_t size, struct gdri_rkeys *o)
{
	const struct gdri_heap_part *p = &st->heap->parts[st->heap->n];
	int ret = gdri_heap_grow(st->heap, size);

	if (ret)
		return ret;
	ret = gdri_rkeys_join(st, st->heap->base + p->offset, p->size, p->offset, o);
	if (ret)
		gdri_heap_shrink(st->heap);
	return ret;
}

static int grow_take(struct gdri_state *st, struct gdri_share_peer *p, bool told)
{
	int ret = -GDR_ESYSTEM;

	if (p->fd >= 0)
		ret = gdri_heap_map_part(st->heap, p->fd, st->peers[p->pe].base, p->why, sizeof(p->why));
	if (p->fd >= 0)
		close(p->fd);
	if (ret && !told)
		gdri_error("heap: the memory that PE %d added cannot be mapped: %s", p->pe, p->why);
	return ret;
}

/* mapped[i]: the new part of PE i is. */
static int grow_exchange(struct gdri_state *st, const struct gdri_rkeys *all, bool *mapped)
{
	struct gdri_share_peer *sp = calloc((size_t)st->n_pes, sizeof(*sp));
	int i, n = 0, rc, ret = 0;

	if (!sp)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	for (i = 0; i < st->n_pes; i++) {
		if (i == st->pe || !st->peers[i].base)
			continue;
		sp[n].pe = i;
		sp[n++].address = all[i].address;
	}
	if (n)
		ret = gdri_share_exchange(st->share, st->pe, st->heap->parts[st->heap->n - 1].fd, -1, sp, n,
				       gdri_left_ms(st->deadline_ns) / 2 < EXCHANGE_MS
					       ? gdri_left_ms(st->deadline_ns) / 2 : EXCHANGE_MS);
	for (i = 0; i < n; i++) {
		rc = grow_take(st, &sp[i], ret != 0);
		mapped[sp[i].pe] = !rc;
		ret = ret ? ret : rc;
	}
	free(sp);
	return ret;
}

static void grow_undo(struct gdri_state *st, const bool *mapped)
{
	for (int i = 0; i < st->n_pes; i++) {
		if (mapped[i])
			gdri_heap_unmap_part(st->heap, st->peers[i].base);
	}
	gdri_rkeys_undo(st);
	gdri_heap_shrink(st->heap);
}

/* The others are told of a PE that has no memory for what it would hear. */
static int grow_refuse(struct gdri_state *st)
{
	struct gdri_rkeys none = {0};

	st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	return gdri_agree(st, "heap growth", &none, NULL, sizeof(none));
}

static int grow_heap(struct gdri_state *st, uint64_t size, struct gdri_rkeys *all, bool *mapped)
{
	int before = st->heap->n, ret;
	struct gdri_rkeys mine;

	memset(&mine, 0, sizeof(mine));
	st->pending = grow_create(st, size, &mine);
	if (!st->pending)
		st->pending = gdri_share_open(st->share);
	mine.address = st->share->address;
	ret = gdri_agree(st, "heap growth", &mine, all, sizeof(*all));
	if (!ret) {
		st->pending = grow_exchange(st, all, mapped);
		ret = gdri_agree(st, "heap growth", NULL, NULL, 0);
	}
	if (ret) { /* out of step: some PEs may use the keys already, and it goes when the library is left */
		if (st->heap->n > before && !st->broken)
			grow_undo(st, mapped);
		return ret;
	}
	ret = gdri_rkeys_use(st, "heap growth", all);
	if (ret)
		return ret;
	gdri_lock(&st->local_lock);
	ret = gdri_suballoc_grow(st->alloc, size);
	pthread_mutex_unlock(&st->local_lock);
	gdri_break(st, ret); /* the others have grown */
	return ret;
}

int gdri_grow(struct gdri_state *st, uint64_t bytes)
{
	struct gdri_rkeys *all = calloc((size_t)st->n_pes, sizeof(*all));
	bool *mapped = calloc((size_t)st->n_pes, sizeof(*mapped));
	uint64_t size = part_size(st, bytes);
	int ret;

	gdri_limit_begin(st, false);
	ret = all && mapped ? grow_heap(st, size, all, mapped) : grow_refuse(st);
	gdri_share_close(st->share);
	free(all);
	free(mapped);
	if (!ret)
		gdri_info("heap: %llu bytes more, %llu in %d parts", (unsigned long long)size,
			  (unsigned long long)st->heap->size, st->heap->n);
	return ret;
}
