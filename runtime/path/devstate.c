// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/path/devstate.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/host_view.h"
#include "runtime/net/net.h"
#include "runtime/net/queues.h"
#include "runtime/path/ctx.h"
#include "runtime/team/team.h"

/* Device code of the host device finds the library here. Programs may hold a copy
 * relocation of it: libgdr itself must go through its GOT (no -Bsymbolic for data). */
extern GDR_API struct gdri_dev *gdri_dev_state;
struct gdri_dev *gdri_dev_state;

void gdri_devstate_publish(struct gdri_dev *dev)
{
	/* release: pairs with the dependent loads of device code, whose kernels are launched
	 * later; a forked child only ever sees NULL stored. */
	__atomic_store_n(&gdri_dev_state, dev, __ATOMIC_RELEASE);
}

void gdri_devstate_abort(struct gdri_state *st)
{
	/* release: pairs with the acquire in every wait of device code. NULL: an init that ended before any. */
	if (st->abort_word)
		__atomic_store_n(st->abort_word, 1, __ATOMIC_RELEASE);
}

void gdri_devstate_latch(struct gdri_state *st, int status)
{
	int32_t none = 0;
	int pulled = gdri_cuda_state_pull(st);

	/* relaxed: the status carries no data with it */
	__atomic_compare_exchange_n(&st->dev->latched, &none, status, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (!pulled) /* else the GPU's own stays, which nobody knows */
		gdri_cuda_state_push(st, &st->dev->latched);
}

static void *devstate_zeroed(size_t size)
{
	size_t whole = (size + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE;
	void *p = aligned_alloc(GDRI_LINE, whole ? whole : GDRI_LINE);

	if (p)
		memset(p, 0, whole ? whole : GDRI_LINE);
	return p;
}

/* Memory that device code and host both use. */
static void *devstate_shared(struct gdri_state *st, size_t size)
{
	return st->cuda ? gdri_cuda_alloc_host(st->cuda, size) : devstate_zeroed(size);
}

static void devstate_unshare(struct gdri_state *st, void *p)
{
	if (st->cuda)
		gdri_cuda_free_host(st->cuda, p);
	else
		free(p);
}

/* What the NIC wrote is seen when something was read behind it. */
static bool is_late(const struct gdri_state *st)
{
	if (st->opt.flush != GDRI_FLUSH_AUTO)
		return st->opt.flush == GDRI_FLUSH_ON;
	return st->heap->cuda && (st->net->late_writes || gdri_cuda_late_writes(st->heap->cuda));
}

static uint32_t flags_of(const struct gdri_state *st)
{
	uint32_t flags = 0;
	bool alone;

	if (!st->any_net)
		return st->nvshmem ? GDRI_DEV_LOCAL_SYNC : 0;
	alone = st->heap->cuda && st->net->queues_on_gpu;
	flags |= GDRI_DEV_NIC_ATOMICS;
	for (int i = 0; i < st->n_pes; i++) {
		if (st->peers[i].base)
			flags |= GDRI_DEV_MIXED;
		alone = alone && (!st->peers[i].base || i == st->pe);
	}
	if (alone)
		flags |= GDRI_DEV_ON_GPU;
	if (st->net->relaxed)
		flags |= GDRI_DEV_RELAXED;
	if (st->net->combines)
		flags |= GDRI_DEV_COMBINES;
	if (st->net->host_rings)
		flags |= GDRI_DEV_HOST_RINGS;
	if (st->net->early)
		flags |= GDRI_DEV_EARLY;
	if (st->net->no_record)
		flags |= GDRI_DEV_NO_RECORD;
	if (is_late(st))
		flags |= GDRI_DEV_READ_FLUSH;
	return flags;
}

static void devstate_fill(struct gdri_state *st, struct gdri_dev *d)
{
	d->abi_version = GDR_ABI_VERSION;
	d->struct_size = sizeof(*d);
	d->pe = st->pe;
	d->n_pes = st->n_pes;
	d->n_slots = st->any_net ? st->opt.qps_per_pe : 0;
	d->flags = flags_of(st);
	d->heap = st->heap->base;
	d->heap_size = st->heap->max; /* what may yet come is known to all kernels */
	d->own_size = GDRI_CTL_SIZE + st->teams->bytes;
	d->ctl = (struct gdri_ctl *)st->heap->base;
	d->peers = st->peers;
	d->qps = st->qps;
	d->lkey = gdri_to_be32(st->keys->lkey);
	d->n_queues = st->any_net ? gdri_net_slots(&st->opt) * (uint32_t)st->n_pes : 0;
	d->timeout_ns = (uint64_t)st->opt.timeout_ms * 1000000u;
	d->abort = st->abort_word;
}

int gdri_up_device(struct gdri_state *st)
{
	struct gdri_dev *d = devstate_zeroed(sizeof(*d));
	int ret;

	st->dev = d;
	st->abort_word = devstate_shared(st, sizeof(*st->abort_word));
	if (d) {
		d->errors = devstate_shared(st, GDRI_MAX_ERRORS * sizeof(*d->errors));
		d->buffers = devstate_shared(st, GDRI_MAX_BUFFERS * sizeof(*d->buffers));
		d->used = devstate_zeroed(((size_t)st->n_pes * gdri_net_slots(&st->opt) + 63) / 64 * 8);
	}
	if (!d || !st->abort_word || !d->errors || !d->buffers || !d->used)
		return gdri_fail(-GDR_ENOMEM, "out of memory for the device state of %d PEs", st->n_pes);
	devstate_fill(st, d);
	ret = st->cuda ? gdri_host_view_up(st) : 0;
	if (!ret)
		ret = gdri_up_teams(st);
	if (!ret)
		ret = gdri_up_ctxs(st);
	if (ret)
		return ret;
	if (st->cuda)
		return gdri_cuda_state_up(st);
	gdri_link_prepare(d->ctl, st->pe);
	gdri_devstate_publish(d);
	return 0;
}

void gdri_down_device(struct gdri_state *st)
{
	gdri_devstate_publish(NULL);
	gdri_cuda_state_down(st);
	gdri_down_ctxs(st);
	gdri_down_teams(st);
	for (size_t i = 0; i < GDRI_MAX_BUFFERS; i++) {
		if (st->regs[i].handle)
			st->net->ops->deregister(st->net, st->regs[i].handle);
		st->regs[i].handle = NULL;
	}
	if (st->dev) {
		devstate_unshare(st, st->dev->errors);
		devstate_unshare(st, st->dev->buffers);
		free(st->dev->used);
	}
	free(st->dev);
	gdri_host_view_down(st);
	devstate_unshare(st, st->abort_word);
	st->dev = NULL;
	st->abort_word = NULL;
}

void gdri_devstate_look(const struct gdri_state *st)
{
	if (st->net && st->net->ops->look)
		st->net->ops->look(st->net);
}
