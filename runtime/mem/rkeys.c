// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/mem/rkeys.h"

#include <time.h>

#include <gdr/device.h>

#include "runtime/core/agree.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/net/net.h"
#include "runtime/path/hostq.h"

/* Sets of keys: so many stay in any case, since a thread may have read a key long before it posts; beyond so many,
 * those go by which nothing is under way. */
#define KEPT_SETS 8
#define MOST_SETS 16
#define IDLE_MS 100

/* Who has keys: the queues of kernels, and with a GPU those of host threads. NULL behind the last one. */
enum { N_NETS = 2 };
static void rkeys_nets(const struct gdri_state *st, struct gdri_net *nets[N_NETS])
{
	nets[0] = st->net;
	nets[1] = st->hostq ? gdri_hostq_net(st->hostq) : NULL;
}

/* 1: what was posted on the queue before now is complete. 0: not by then. < 0: its error. */
static int wait_queue(struct gdri_dev *dev, struct gdri_qp *qp, uint64_t end)
{
	const struct timespec nap = {0, 20000};
	/* acquire: as in gdri_qp_quiet */
	uint64_t target = gdri_published(__atomic_load_n(&qp->ready, __ATOMIC_ACQUIRE));
	int done;

	while (!(done = gdri_qp_test(qp, target)) && gdri_now_ns() < end) {
		gdri_poll(dev, qp);
		nanosleep(&nap, NULL);
	}
	return done;
}

static bool is_idle(struct gdri_state *st)
{
	uint64_t end = gdri_deadline_ns(IDLE_MS);

	if (st->hostq && gdri_hostq_is_late(st->hostq))
		return false;
	if (!st->net)
		return true;
	if (st->dev_gpu)
		return !gdri_cuda_queues_test(st, 0, st->dev->n_queues, IDLE_MS);
	for (uint32_t i = 0; i < st->dev->n_queues; i++)
		if (st->qps[i].sq && wait_queue(st->dev, &st->qps[i], end) <= 0)
			return false;
	return true;
}

/* All PEs have new keys, and are past the call before, in which the others did. What goes by older ones was
 * posted before. A PE that is late, with operations that hang, keeps everybody's for another call. */
static void drop_old(struct gdri_state *st, const struct gdri_rkeys *all)
{
	struct gdri_net *nets[N_NETS];

	if (++st->key_sets <= MOST_SETS)
		return;
	for (int i = 0; i < st->n_pes; i++)
		if (!all[i].idle)
			return;
	rkeys_nets(st, nets);
	for (int i = 0; i < N_NETS && nets[i]; i++)
		nets[i]->ops->drop_keys(nets[i], KEPT_SETS);
	gdri_info("heap: %d sets of old keys are gone", st->key_sets - KEPT_SETS);
	st->key_sets = KEPT_SETS;
}

/* at NULL: the memory leaves. Where one cannot, none has. */
static int rkeys_change(struct gdri_state *st, void *at, size_t len, uint64_t offset, struct gdri_rkeys *o)
{
	struct gdri_mr_keys *keys[N_NETS] = {&o->keys, &o->host};
	struct gdri_net *nets[N_NETS];
	int i, ret = 0;

	rkeys_nets(st, nets);
	o->idle = st->key_sets >= MOST_SETS && is_idle(st);
	for (i = 0; i < N_NETS && nets[i] && !ret; i++)
		ret = at ? nets[i]->ops->grow(nets[i], at, len, offset, keys[i])
			 : nets[i]->ops->leave(nets[i], offset, len, keys[i]);
	for (i -= 2; ret && i >= 0; i--) /* those before the one that failed */
		nets[i]->ops->undo(nets[i]);
	return ret;
}

int gdri_rkeys_join(struct gdri_state *st, void *at, size_t len, uint64_t offset, struct gdri_rkeys *o)
{
	return rkeys_change(st, at, len, offset, o);
}

int gdri_rkeys_leave(struct gdri_state *st, uint64_t offset, size_t len, struct gdri_rkeys *o)
{
	return rkeys_change(st, NULL, len, offset, o);
}

void gdri_rkeys_undo(struct gdri_state *st)
{
	struct gdri_net *nets[N_NETS];

	rkeys_nets(st, nets);
	for (int i = 0; i < N_NETS && nets[i]; i++)
		nets[i]->ops->undo(nets[i]);
}

void gdri_rkeys_drop(struct gdri_state *st)
{
	struct gdri_net *nets[N_NETS];

	rkeys_nets(st, nets);
	for (int i = 0; i < N_NETS && nets[i]; i++)
		nets[i]->ops->drop_left(nets[i]);
}

/* What is under way goes on by the old keys. Device code reads each word as it is or was: both reach what it knows. */
static void set_key(gdri_be32_t *at, uint32_t key)
{
	/* relaxed: who may use what is new learns so behind the collective call */
	__atomic_store_n(&at->be, gdri_to_be32(key).be, __ATOMIC_RELAXED);
}

/* The others wait meanwhile: half of what is left of the time is theirs. */
static int rkeys_to_gpu(struct gdri_state *st, size_t at, const void *from, size_t len)
{
	return st->dev_gpu ? gdri_cuda_poke(st->cuda, (uint8_t *)st->dev_gpu + at, from, len,
					    gdri_left_ms(st->deadline_ns) / 2)
			   : 0;
}

static int rkeys_set(struct gdri_state *st, const struct gdri_rkeys *all)
{
	const size_t at = offsetof(struct gdri_qp, rkey_data), len = 8;
	size_t gpu = st->dev_gpu ? gdri_cuda_state_qps(st) : 0;
	struct gdri_qp *qp;
	uint32_t i, plain = st->dev->n_slots * (uint32_t)st->n_pes;
	int ret = 0;

	GDR_STATIC_ASSERT(offsetof(struct gdri_qp, rkey_sync) == offsetof(struct gdri_qp, rkey_data) + 4,
			  "both keys at once");
	for (i = 0; i < st->dev->n_queues; i++) {
		qp = &st->qps[i];
		if (!qp->sq)
			continue;
		/* contexts: strict for data too, as from the beginning (memory-model-internals, "Relaxed ordering") */
		set_key(&qp->rkey_data, i < plain ? all[qp->peer].keys.rkey_data : all[qp->peer].keys.rkey_sync);
		set_key(&qp->rkey_sync, all[qp->peer].keys.rkey_sync);
		if (!ret)
			ret = rkeys_to_gpu(st, gpu + i * sizeof(*qp) + at, (uint8_t *)qp + at, len);
	}
	set_key(&st->dev->lkey, all[st->pe].keys.lkey);
	if (!ret)
		ret = rkeys_to_gpu(st, offsetof(struct gdri_dev, lkey), &st->dev->lkey, sizeof(st->dev->lkey));
	for (i = 0; st->hostq && i < (uint32_t)st->n_pes; i++)
		set_key(&gdri_hostq_qps(st->hostq)[i].rkey_data, all[i].host.rkey_data);
	return ret;
}

int gdri_rkeys_use(struct gdri_state *st, const char *what, const struct gdri_rkeys *all)
{
	int ret;

	if (!st->any_net)
		return 0;
	st->pending = rkeys_set(st, all);
	ret = gdri_agree(st, what, NULL, NULL, 0);
	gdri_break(st, ret);
	if (!ret)
		drop_old(st, all);
	return ret;
}
