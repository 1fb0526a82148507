// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/offer.h"

#include "runtime/agree.h"
#include "runtime/clock.h"
#include "runtime/cuda.h"
#include "runtime/cuda_state.h"
#include "runtime/hostq.h"
#include "runtime/state.h"

int gdri_offer_join(struct gdri_state *st, void *at, size_t len, uint64_t offset, struct gdri_offer *o)
{
	int ret = st->nic ? gdri_nic_grow_heap(st->nic, at, len, offset, &o->keys) : 0;

	if (ret || !st->hostq)
		return ret;
	ret = gdri_hostq_grow(st->hostq, st->cuda, at, len, offset, &o->host);
	if (ret)
		gdri_nic_shrink_heap(st->nic);
	return ret;
}

int gdri_offer_leave(struct gdri_state *st, uint64_t offset, size_t len, struct gdri_offer *o)
{
	int ret = st->nic ? gdri_nic_leave_heap(st->nic, offset, len, &o->keys) : 0;

	if (ret || !st->hostq)
		return ret;
	ret = gdri_nic_leave_heap(gdri_hostq_nic(st->hostq), offset, len, &o->host);
	if (ret)
		gdri_nic_shrink_heap(st->nic);
	return ret;
}

void gdri_offer_undo(struct gdri_state *st)
{
	if (st->nic)
		gdri_nic_shrink_heap(st->nic);
	if (st->hostq)
		gdri_nic_shrink_heap(gdri_hostq_nic(st->hostq));
}

void gdri_offer_drop(struct gdri_state *st)
{
	if (st->nic)
		gdri_nic_drop_left(st->nic);
	if (st->hostq)
		gdri_nic_drop_left(gdri_hostq_nic(st->hostq));
}

/* What is under way goes on by the old keys. Device code reads each word as it is or was: both reach what it knows. */
static void set_key(gdri_be32_t *at, uint32_t key)
{
	/* relaxed: who may use what is new learns so behind the collective call */
	__atomic_store_n(&at->be, gdri_to_be32(key).be, __ATOMIC_RELAXED);
}

/* The others wait meanwhile: half of what is left of the time is theirs. */
static int to_gpu(struct gdri_state *st, size_t at, const void *from, size_t len)
{
	return st->dev_gpu ? gdri_cuda_copy(st->cuda, (uint8_t *)st->dev_gpu + at, from, len,
					    gdri_left_ms(st->deadline_ns) / 2)
			   : 0;
}

static int set_keys(struct gdri_state *st, const struct gdri_offer *all)
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
		/* contexts: strict for data too, as from the beginning (memory-model, "Relaxed ordering") */
		set_key(&qp->rkey_data, i < plain ? all[qp->peer].keys.rkey_data : all[qp->peer].keys.rkey_sync);
		set_key(&qp->rkey_sync, all[qp->peer].keys.rkey_sync);
		if (!ret)
			ret = to_gpu(st, gpu + i * sizeof(*qp) + at, (uint8_t *)qp + at, len);
	}
	set_key(&st->dev->lkey, all[st->pe].keys.lkey);
	if (!ret)
		ret = to_gpu(st, offsetof(struct gdri_dev, lkey), &st->dev->lkey, sizeof(st->dev->lkey));
	for (i = 0; st->hostq && i < (uint32_t)st->n_pes; i++)
		set_key(&gdri_hostq_qps(st->hostq)[i].rkey_data, all[i].host.rkey_data);
	return ret;
}

int gdri_offer_use(struct gdri_state *st, const char *what, const struct gdri_offer *all)
{
	int ret;

	if (!st->any_nic)
		return 0;
	st->pending = set_keys(st, all);
	ret = gdri_agree(st, what, NULL, NULL, 0);
	st->broken |= ret != 0;
	return ret;
}
