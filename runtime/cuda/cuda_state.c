// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/cuda_state.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_impl.h"
#include "runtime/cuda/units.h"
#include "runtime/exec/exec.h"
#include "runtime/mem/outside.h"
#include "runtime/mem/window.h"
#include "runtime/net/net.h"
#include "runtime/path/ctx.h"
#include "runtime/team/team.h"

int gdri_up_cuda(struct gdri_state *st)
{
	int ret;

	if (!gdri_units_exist() && st->opt.device != GDRI_DEVICE_CUDA)
		return 0;
	ret = st->cuda ? 0 : gdri_cuda_open(&st->cuda, gdri_local_rank(st), st->opt.heap_handle);
	if (!ret)
		gdri_info("CUDA: PE %d uses %s", st->pe, gdri_cuda_text(st->cuda));
	return ret;
}

void gdri_down_cuda(struct gdri_state *st)
{
	gdri_cuda_close(st->cuda);
	st->cuda = NULL;
}

/* What lies on the GPU, in one allocation: struct gdri_dev, then, each from a line of its own, what it points to. */
struct block {
	size_t qps, used, peers, total;
};

static size_t cuda_state_lines(size_t n)
{
	return (n + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE;
}

static struct block cuda_state_layout(const struct gdri_state *st)
{
	size_t n = st->dev->n_queues;
	struct block b;

	b.qps = GDRI_QPS_AT;
	b.used = b.qps + n * sizeof(struct gdri_qp);
	b.peers = b.used + cuda_state_lines((n + 63) / 64 * sizeof(uint64_t));
	b.total = b.peers + cuda_state_lines((size_t)st->n_pes * sizeof(struct gdri_peer));
	return b;
}

size_t gdri_cuda_state_qps(const struct gdri_state *st)
{
	return cuda_state_layout(st).qps;
}

/* The block as it begins, for the GPU at address `at`. */
static void cuda_state_fill(const struct gdri_state *st, const struct block *b, uint8_t *p, uint8_t *at)
{
	struct gdri_qp *qps = (struct gdri_qp *)(void *)(p + b->qps);
	struct gdri_dev *d = (struct gdri_dev *)(void *)p;

	memset(p, 0, b->total);
	*d = *st->dev;
	d->heap_size = gdri_window_reach(st);
	d->n_errors = 0;
	d->qps = (struct gdri_qp *)(void *)(at + b->qps);
	d->used = (uint64_t *)(void *)(at + b->used);
	d->peers = (struct gdri_peer *)(void *)(at + b->peers);
	d->teams = st->teams->gpu;
	d->ctxs = st->ctxs->gpu;
	for (uint32_t i = 0; i < d->n_queues; i++) {
		qps[i] = st->qps[i];
		qps[i].cq_far = st->net->queues_here;
	}
	memcpy(p + b->peers, st->peers, (size_t)st->n_pes * sizeof(*st->peers));
}

/* The units write through the context that is current, which is the caller's business. */
static int set_units(struct gdri_state *st, const struct gdri_constants *c)
{
	int ret;

	gdri_cuda_enter(st->cuda);
	ret = gdri_units_set(c);
	gdri_cuda_leave(st->cuda);
	return ret;
}

static int set_constants(struct gdri_state *st)
{
	struct gdri_constants *c = calloc(1, sizeof(*c));
	const struct gdri_dev *d = st->dev;

	if (!c)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	c->abi_version = GDR_ABI_VERSION;
	c->dev = st->dev_gpu;
	c->heap = d->heap;
	c->heap_size = gdri_window_reach(st);
	c->ctl = d->ctl;
	c->ctxs = st->ctxs->gpu;
	c->teams = st->teams->gpu;
	c->n_teams = st->teams->n;
	c->pe = d->pe;
	c->n_pes = d->n_pes;
	c->n_slots = d->n_slots;
	c->flags = d->flags;
	c->direct = !d->n_slots;
	c->none = GDRI_UNMAPPED;
	for (int i = 0; i < GDRI_MAX_PES; i++)
		c->delta[i] = i < d->n_pes && st->peers[i].base ? st->peers[i].base - d->heap : GDRI_UNMAPPED;
	st->constants = c;
	return set_units(st, c);
}

int gdri_cuda_state_up(struct gdri_state *st)
{
	struct block b = cuda_state_layout(st);
	uint8_t *gpu = gdri_cuda_alloc_bare(st->cuda, b.total), *p = aligned_alloc(GDRI_LINE, b.total);
	int ret = -GDR_ENOMEM;

	st->dev->n_errors = GDRI_MAX_ERRORS; /* to the host: it looks at each record's state */
	st->dev_gpu = (struct gdri_dev *)(void *)gpu;
	if (gpu && p) {
		cuda_state_fill(st, &b, p, gpu);
		ret = gdri_cuda_poke(st->cuda, gpu, p, b.total, GDRI_COPY_MS);
	} else if (!p) {
		gdri_error("out of memory");
	}
	free(p);
	if (!ret)
		ret = set_constants(st);
	if (!ret)
		gdri_exec_up(st);
	st->modules->library = st->modules->n;
	return ret;
}

int gdri_cuda_state_show(struct gdri_state *st)
{
	int ret;

	if (!st->cuda && !gdri_units_exist())
		return 0;
	if (!st->cuda)
		return gdri_fail(-GDR_ESTATE, "CUDA kernels were loaded after gdr_init, when there were none: set "
					      "GDR_DEVICE=cuda");
	if (st->any_net && !gdri_units_have_queues())
		return gdri_fail(-GDR_ENOTSUP, "kernels compiled with GDR_NO_QUEUES were loaded, and not all PEs are "
					       "mapped");
	/* relaxed: pairs with outside_count(), which counts before it looks at the units */
	if (__atomic_load_n(&st->outside->n, __ATOMIC_RELAXED) && !gdri_units_have_any_address())
		return gdri_fail(-GDR_ENOTSUP, "kernels compiled without GDR_ANY_ADDRESS were loaded, and memory of "
					       "cudaMalloc is registered: compile them with -DGDR_ANY_ADDRESS");
	gdri_cuda_enter(st->cuda); /* the units write through the context that is current */
	ret = gdri_units_set_late(st->constants);
	gdri_cuda_leave(st->cuda);
	return ret;
}

void gdri_cuda_state_down(struct gdri_state *st)
{
	if (!st->dev_gpu)
		return;
	set_units(st, NULL);
	gdri_modules_forget(st);
	gdri_exec_down(st);
	gdri_outside_down(st);
	free(st->constants);
	st->constants = NULL;
	gdri_cuda_free(st->cuda, st->dev_gpu);
	st->dev_gpu = NULL;
}

int gdri_cuda_copy_ms(const struct gdri_state *st)
{
	return st->opt.timeout_ms < GDRI_COPY_MS ? (int)st->opt.timeout_ms : GDRI_COPY_MS;
}

/* A kernel, too, finds that a PE is lost: `latched` says that there may be something to look at. */
static int cuda_state_pull_lost(struct gdri_state *st)
{
	int32_t lost, none = 0;
	int ret = gdri_cuda_peek(st->cuda, &lost, &st->dev_gpu->lost, sizeof(lost), gdri_cuda_copy_ms(st));

	/* relaxed: other threads pull, too; lost carries no data with it */
	if (!ret && lost)
		__atomic_compare_exchange_n(&st->dev->lost, &none, lost, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return ret;
}

int gdri_cuda_state_pull(struct gdri_state *st)
{
	uint32_t word[3]; /* latched, failed, first */
	int ret;

	GDR_STATIC_ASSERT(offsetof(struct gdri_dev, failed) == offsetof(struct gdri_dev, latched) + 4 &&
			  offsetof(struct gdri_dev, first) == offsetof(struct gdri_dev, latched) + 8,
			  "fields that are pulled");
	if (!st->dev_gpu)
		return 0;
	ret = gdri_cuda_peek(st->cuda, word, &st->dev_gpu->latched, sizeof(word), gdri_cuda_copy_ms(st));
	if (ret)
		return ret;
	/* relaxed: other threads pull, too; a status carries no data with it */
	__atomic_store_n(&st->dev->latched, (int32_t)word[0], __ATOMIC_RELAXED);
	__atomic_store_n(&st->dev->failed, (int32_t)word[1], __ATOMIC_RELAXED);
	__atomic_store_n(&st->dev->first, (int32_t)word[2], __ATOMIC_RELAXED);
	return word[0] ? cuda_state_pull_lost(st) : 0;
}

int gdri_cuda_state_push(struct gdri_state *st, const void *field)
{
	size_t at = (size_t)((const uint8_t *)field - (const uint8_t *)st->dev);
	uint32_t word;

	if (!st->dev_gpu)
		return 0;
	/* relaxed: one word, which other threads may pull or push */
	word = __atomic_load_n((const uint32_t *)field, __ATOMIC_RELAXED);
	return gdri_cuda_poke(st->cuda, (uint8_t *)st->dev_gpu + at, &word, sizeof(word), gdri_cuda_copy_ms(st));
}

/* A word of struct gdri_peer, as the host has it. */
static int push_peer(struct gdri_state *st, int pe, size_t field)
{
	struct gdri_peer *peers;
	uint32_t word;

	if (!st->dev_gpu)
		return 0;
	/* relaxed: the caller wrote it */
	word = __atomic_load_n((const uint32_t *)(const void *)((const uint8_t *)&st->peers[pe] + field),
			       __ATOMIC_RELAXED);
	peers = (struct gdri_peer *)((uint8_t *)st->dev_gpu + cuda_state_layout(st).peers);
	return gdri_cuda_poke(st->cuda, (uint8_t *)&peers[pe] + field, &word, sizeof(word), gdri_cuda_copy_ms(st));
}

int gdri_cuda_state_push_lost(struct gdri_state *st, int pe)
{
	return push_peer(st, pe, offsetof(struct gdri_peer, lost));
}

int gdri_cuda_state_push_finalizes(struct gdri_state *st, int pe)
{
	return push_peer(st, pe, offsetof(struct gdri_peer, finalizes));
}
