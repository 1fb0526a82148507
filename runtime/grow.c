// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/grow.h"

#include <stdlib.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/agree.h"
#include "runtime/clock.h"
#include "runtime/log.h"
#include "runtime/state.h"

#define TRADE_MS 10000

static uint64_t left(const struct gdri_state *st)
{
	return st->heap.n < GDRI_HEAP_PARTS ? st->heap.max - st->heap.size : 0;
}

/* Whole chunks, and an eighth of what there is: few parts. At the end, what is left. */
static uint64_t part_size(const struct gdri_state *st, uint64_t bytes)
{
	uint64_t chunk = st->opt.heap_chunk, most = left(st), size = st->heap.size / 8;

	size = size > bytes ? size : bytes;
	size = size > most ? most : size;
	size = (size + chunk - 1) / chunk * chunk;
	return size > most ? most : size;
}

bool gdri_grow_may(const struct gdri_state *st, uint64_t bytes)
{
	return bytes <= left(st) && !st->any_nic;
}

/* The part of this PE, and where it is to be had. */
static int offer(struct gdri_state *st, uint64_t size)
{
	int ret = gdri_heap_grow(&st->heap, size);

	return ret ? ret : gdri_share_open(&st->share);
}

static int take(struct gdri_state *st, struct gdri_share_peer *p)
{
	int ret = -GDR_ESYSTEM;

	if (p->fd >= 0)
		ret = gdri_heap_map_part(&st->heap, p->fd, st->peers[p->pe].base, p->why, sizeof(p->why));
	if (p->fd >= 0)
		close(p->fd);
	if (ret)
		gdri_error("heap: the memory that PE %d added cannot be mapped: %s", p->pe, p->why);
	return ret;
}

/* mapped[i]: the new part of PE i is. */
static int trade(struct gdri_state *st, const struct gdri_share_address *all, bool *mapped)
{
	struct gdri_share_peer *sp = calloc((size_t)st->n_pes, sizeof(*sp));
	int i, n = 0, rc, ret = 0;

	if (!sp) {
		gdri_error("out of memory");
		return -GDR_ENOMEM;
	}
	for (i = 0; i < st->n_pes; i++) {
		if (i == st->pe || !st->peers[i].base)
			continue;
		sp[n].pe = i;
		sp[n++].address = all[i];
	}
	if (n)
		gdri_share_trade(&st->share, st->pe, st->heap.parts[st->heap.n - 1].fd, -1, sp, n,
				 gdri_left_ms(st->deadline_ns) / 2 < TRADE_MS
					 ? gdri_left_ms(st->deadline_ns) / 2 : TRADE_MS);
	for (i = 0; i < n; i++) {
		rc = take(st, &sp[i]);
		mapped[sp[i].pe] = !rc;
		ret = ret ? ret : rc;
	}
	free(sp);
	return ret;
}

static void undo(struct gdri_state *st, const bool *mapped)
{
	int i;

	for (i = 0; i < st->n_pes; i++) {
		if (mapped[i])
			gdri_heap_unmap_part(&st->heap, st->peers[i].base);
	}
	gdri_heap_shrink(&st->heap);
}

static int grow(struct gdri_state *st, uint64_t size, struct gdri_share_address *all, bool *mapped)
{
	int before = st->heap.n, ret;

	st->pending = offer(st, size);
	ret = gdri_agree(st, "heap growth", &st->share.address, all, sizeof(*all));
	if (!ret) {
		st->pending = trade(st, all, mapped);
		ret = gdri_agree(st, "heap growth", NULL, NULL, 0);
	}
	if (!ret) {
		ret = gdri_suballoc_grow(st->alloc, size);
		if (!ret)
			return 0;
		gdri_error("out of memory");
		st->broken = true; /* the others have grown */
	}
	if (st->heap.n > before)
		undo(st, mapped);
	return ret;
}

int gdri_grow(struct gdri_state *st, uint64_t bytes)
{
	struct gdri_share_address *all = calloc((size_t)st->n_pes, sizeof(*all));
	bool *mapped = calloc((size_t)st->n_pes, sizeof(*mapped));
	uint64_t size = part_size(st, bytes);
	int ret = -GDR_ENOMEM;

	st->deadline_ns = gdri_deadline_ns((int)st->opt.timeout_ms);
	if (all && mapped) {
		ret = grow(st, size, all, mapped);
	} else { /* the others' exchange fails */
		gdri_error("out of memory");
		st->broken = true;
	}
	gdri_share_close(&st->share);
	if (ret == -GDR_ETIMEOUT || ret == -GDR_EBOOTSTRAP)
		st->broken = true;
	free(all);
	free(mapped);
	if (!ret)
		gdri_info("heap: %llu bytes more, %llu in %d parts", (unsigned long long)size,
			  (unsigned long long)st->heap.size, st->heap.n);
	return ret;
}
