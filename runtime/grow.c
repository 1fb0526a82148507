// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/grow.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/agree.h"
#include "runtime/clock.h"
#include "runtime/cuda.h"
#include "runtime/cuda_queues.h"
#include "runtime/cuda_state.h"
#include "runtime/hostq.h"
#include "runtime/log.h"
#include "runtime/state.h"

#define TRADE_MS 10000
#define COPY_MS 10000 /* far more than a copy of this size takes */

/* What a PE tells the others: where its part is to be had, and by which keys its whole heap is reached now, also by
 * the queues of host threads. */
struct offer {
	struct gdri_share_address address;
	struct gdri_mr_keys keys, host;
};

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
	return bytes <= left(st);
}

static int register_part(struct gdri_state *st, struct offer *o)
{
	const struct gdri_heap_part *p = &st->heap.parts[st->heap.n - 1];
	uint8_t *at = st->heap.base + p->offset;
	int ret = gdri_nic_grow_heap(st->nic, at, p->size, p->offset, &o->keys);

	if (ret || !st->hostq)
		return ret;
	ret = gdri_hostq_grow(st->hostq, st->cuda, at, p->size, p->offset, &o->host);
	if (ret)
		gdri_nic_shrink_heap(st->nic);
	return ret;
}

/* The part of this PE. */
static int create(struct gdri_state *st, uint64_t size, struct offer *o)
{
	int ret = gdri_heap_grow(&st->heap, size);

	if (ret)
		return ret;
	if (st->nic)
		ret = register_part(st, o);
	if (ret)
		gdri_heap_shrink(&st->heap);
	return ret;
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
static int trade(struct gdri_state *st, const struct offer *all, bool *mapped)
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
		sp[n++].address = all[i].address;
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
	if (st->nic)
		gdri_nic_shrink_heap(st->nic);
	if (st->hostq)
		gdri_nic_shrink_heap(gdri_hostq_nic(st->hostq));
	gdri_heap_shrink(&st->heap);
}

/* What is under way goes on by the old keys. Device code reads each word as it is or was: both reach what it knows. */
static void set_key(gdri_be32_t *at, uint32_t key)
{
	/* relaxed: who may use what is new learns so behind gdr_malloc */
	__atomic_store_n(&at->be, gdri_to_be32(key).be, __ATOMIC_RELAXED);
}

static int use_keys(struct gdri_state *st, const struct offer *all)
{
	const size_t at = offsetof(struct gdri_qp, rkey_data), len = 8;
	uint8_t *gpu = st->dev_gpu ? (uint8_t *)st->dev_gpu + gdri_cuda_state_qps(st) : NULL;
	struct gdri_qp *qp;
	uint32_t i;
	int ret = 0;

	GDR_STATIC_ASSERT(offsetof(struct gdri_qp, rkey_sync) == offsetof(struct gdri_qp, rkey_data) + 4,
			  "both keys at once");
	for (i = 0; i < st->dev->n_queues; i++) {
		qp = &st->qps[i];
		if (!qp->sq)
			continue;
		set_key(&qp->rkey_data, all[qp->peer].keys.rkey_data);
		set_key(&qp->rkey_sync, all[qp->peer].keys.rkey_sync);
		if (gpu && !ret)
			ret = gdri_cuda_copy(st->cuda, gpu + i * sizeof(*qp) + at, (uint8_t *)qp + at, len, COPY_MS);
	}
	set_key(&st->dev->lkey, all[st->pe].keys.lkey);
	if (gpu && !ret)
		ret = gdri_cuda_state_push(st, &st->dev->lkey);
	for (i = 0; st->hostq && i < (uint32_t)st->n_pes; i++)
		set_key(&gdri_hostq_qps(st->hostq)[i].rkey_data, all[i].host.rkey_data);
	return ret;
}

static int grow(struct gdri_state *st, uint64_t size, struct offer *all, bool *mapped)
{
	int before = st->heap.n, ret;
	struct offer mine;

	memset(&mine, 0, sizeof(mine));
	st->pending = create(st, size, &mine);
	if (!st->pending)
		st->pending = gdri_share_open(&st->share);
	mine.address = st->share.address;
	ret = gdri_agree(st, "heap growth", &mine, all, sizeof(*all));
	if (!ret) {
		st->pending = trade(st, all, mapped);
		ret = gdri_agree(st, "heap growth", NULL, NULL, 0);
	}
	if (ret) {
		if (st->heap.n > before)
			undo(st, mapped);
		return ret;
	}
	if (st->nic)
		ret = use_keys(st, all);
	if (!ret)
		ret = gdri_suballoc_grow(st->alloc, size);
	if (ret) {
		gdri_error("heap growth: %s", gdr_strerror(ret));
		st->broken = true; /* the others have grown */
	}
	return ret;
}

int gdri_grow(struct gdri_state *st, uint64_t bytes)
{
	struct offer *all = calloc((size_t)st->n_pes, sizeof(*all));
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
