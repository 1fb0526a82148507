// SPDX-License-Identifier: BSD-3-Clause
/* The host polls copies: of the queues' words, which lie on the GPU, and then of their completion entries. In this
 * order what the entries say is a lower bound of what is complete, as for a thread that was delayed between the two
 * (memory-model, "Wrap"). */
#include "runtime/cuda_queues.h"

#include <stdlib.h>
#include <time.h>

#include <gdr/device.h>

#include "runtime/clock.h"
#include "runtime/cuda.h"
#include "runtime/cuda_state.h"
#include "runtime/log.h"
#include "runtime/state.h"

#define COPY_MS 10000 /* far more than a copy of this size takes */

struct view {
	size_t n;
	struct gdri_qp *qps; /* [n] */
	struct gdri_cqe *cqs; /* NULL: the host reads where the NIC writes */
	size_t cq_bytes;
};

static size_t cq_bytes(const struct gdri_qp *qps, size_t n)
{
	size_t last = (size_t)(qps[n - 1].cq - qps[0].cq) + qps[n - 1].cq_mask + 1;

	return last * sizeof(struct gdri_cqe);
}

static int view_open(struct gdri_state *st, struct view *v)
{
	v->n = (size_t)st->n_pes * st->dev->n_slots;
	v->qps = aligned_alloc(GDRI_LINE, v->n * sizeof(*v->qps));
	v->cqs = NULL;
	v->cq_bytes = cq_bytes(st->qps, v->n);
	if (!gdri_nic_ring_here(st->nic))
		v->cqs = aligned_alloc(64, v->cq_bytes);
	if (v->qps && (v->cqs || gdri_nic_ring_here(st->nic)))
		return 0;
	gdri_error("out of memory");
	return -GDR_ENOMEM;
}

static void view_close(struct view *v)
{
	free(v->qps);
	free(v->cqs);
}

static int view_refresh(struct gdri_state *st, struct view *v)
{
	const uint8_t *gpu = (const uint8_t *)st->dev_gpu + gdri_cuda_state_qps(st);
	int ret = gdri_cuda_copy(st->cuda, v->qps, gpu, v->n * sizeof(*v->qps), COPY_MS);
	size_t i;

	if (!ret && v->cqs)
		ret = gdri_cuda_copy(st->cuda, v->cqs, st->qps[0].cq, v->cq_bytes, COPY_MS);
	for (i = 0; !ret && v->cqs && i < v->n; i++)
		v->qps[i].cq = v->cqs + (st->qps[i].cq - st->qps[0].cq);
	return ret;
}

/* 1: all below the target is complete; 0: not yet; < 0: the queue's error. */
static int look(struct gdri_state *st, struct gdri_qp *qp, uint64_t target)
{
	int done = gdri_qp_test(qp, target);

	if (done)
		return done;
	gdri_poll(st->dev, qp); /* changes the copy only */
	return gdri_qp_test(qp, target);
}

/* Takes what is published in the first look as the target. */
static int quiet(struct gdri_state *st, struct view *v, uint64_t *targets, uint64_t deadline)
{
	struct timespec nap = {0, 20000};
	size_t i, pending;
	int ret, status = 0, first = 1;

	for (;; first = 0) {
		ret = view_refresh(st, v);
		for (i = 0, pending = 0; !ret && i < v->n; i++) {
			if (first)
				targets[i] = (v->qps[i].ready >> 1) - (v->qps[i].ready & 1u);
			if (!targets[i])
				continue;
			ret = look(st, &v->qps[i], targets[i]);
			pending += !ret;
			if (ret < 0 && !status)
				status = ret;
			if (ret)
				targets[i] = 0; /* and no more to be asked */
			ret = 0;
		}
		if (ret || !pending)
			return ret ? ret : status;
		/* relaxed: the flag carries nothing */
		if (__atomic_load_n(st->abort_word, __ATOMIC_RELAXED))
			return -GDR_EABORTED;
		if (gdri_now_ns() > deadline)
			return -GDR_ETIMEOUT;
		nanosleep(&nap, NULL);
	}
}

int gdri_cuda_queues_quiet(struct gdri_state *st, int timeout_ms)
{
	uint64_t *targets;
	struct view v;
	int ret;

	if (!st->dev->n_slots)
		return 0;
	ret = view_open(st, &v);
	targets = calloc(v.n, sizeof(*targets));
	if (!ret && !targets) {
		gdri_error("out of memory");
		ret = -GDR_ENOMEM;
	}
	if (!ret)
		ret = quiet(st, &v, targets, gdri_deadline_ns(timeout_ms));
	if (ret == -GDR_ETIMEOUT)
		gdri_error("what kernels posted is not complete after %d ms", timeout_ms);
	free(targets);
	view_close(&v);
	return ret;
}
