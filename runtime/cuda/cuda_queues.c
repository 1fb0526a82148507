// SPDX-License-Identifier: BSD-3-Clause
/* The host polls copies: of the queues' words, which lie on the GPU, and then of their completion entries. In this
 * order what the entries say is a lower bound of what is complete, as for a thread that was delayed between the two
 * (memory-model-internals, "Wrap"). */

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/net/net.h"

struct view {
	size_t first, n;      /* of the PE's queues */
	struct gdri_qp *qps;  /* [n] */
	struct gdri_cqe *cqs; /* of one queue; NULL: the host reads where the NIC writes */
	uint8_t *sq;	      /* of a queue with an error; NULL: not yet, or the host reads it in place */
	size_t cq_bytes, sq_bytes;
};

static int view_open(struct gdri_state *st, struct view *v)
{
	v->qps = aligned_alloc(GDRI_LINE, v->n * sizeof(*v->qps));
	v->cq_bytes = (st->qps[0].cq_mask + 1) * sizeof(struct gdri_cqe);
	v->sq_bytes = (size_t)st->qps[0].depth * 64;
	if (!st->net->queues_here) {
		v->cqs = aligned_alloc(64, v->cq_bytes);
		v->sq = aligned_alloc(64, v->sq_bytes);
	}
	if (v->qps && ((v->cqs && v->sq) || st->net->queues_here))
		return 0;
	return gdri_fail(-GDR_ENOMEM, "out of memory");
}

static void view_close(struct view *v)
{
	free(v->qps);
	free(v->cqs);
	free(v->sq);
}

static int view_refresh(struct gdri_state *st, struct view *v)
{
	const uint8_t *gpu = (const uint8_t *)st->dev_gpu + gdri_cuda_state_qps(st) +
			     v->first * sizeof(*v->qps);

	return gdri_cuda_peek(st->cuda, v->qps, gpu, v->n * sizeof(*v->qps), GDRI_COPY_MS);
}

/* Polls the copy; an error does not change it: there is to be a record of that. */
static bool has_error(struct gdri_qp *qp)
{
	struct gdri_dev none = {0};
	struct gdri_qp copy = *qp;

	none.n_errors = GDRI_MAX_ERRORS;
	none.pe = qp->peer; /* nobody asks whether that one has left: there are no peers here */
	gdri_poll(&none, &copy);
	if (copy.err)
		return true;
	*qp = copy;
	return false;
}

/* What the host found out of a queue stays in `there`, its own copy of it: one record of a failure.
 * Under fault_lock. */
static bool cuda_queue_recall(const struct gdri_qp *there, struct gdri_qp *qp)
{
	if (!there->err)
		return false;
	if (qp->done < there->done)
		qp->done = there->done;
	qp->err = there->err;
	return true;
}

static bool cuda_queue_known(struct gdri_state *st, const struct gdri_qp *there, struct gdri_qp *qp)
{
	bool found;

	pthread_mutex_lock(&st->fault_lock);
	found = cuda_queue_recall(there, qp);
	pthread_mutex_unlock(&st->fault_lock);
	return found;
}

static void cuda_queue_record(struct gdri_state *st, struct gdri_qp *there, struct gdri_qp *qp)
{
	pthread_mutex_lock(&st->fault_lock);
	if (!cuda_queue_recall(there, qp)) {
		gdri_poll(st->host_view, qp); /* changes the copy only */
		there->done = qp->done;
		there->err = qp->err;
	}
	pthread_mutex_unlock(&st->fault_lock);
}

/* 1: all below the target is complete; 0: not yet; < 0: the queue's error, of which there is a record. */
static int cuda_queue_look(struct gdri_state *st, struct view *v, size_t i, uint64_t target)
{
	struct gdri_qp *there = &st->qps[v->first + i];
	struct gdri_qp *qp = &v->qps[i];
	int done = gdri_qp_test(qp, target), ret = 0;

	if (done)
		return done;
	if (cuda_queue_known(st, there, qp))
		return gdri_qp_test(qp, target);
	if (v->cqs) {
		ret = gdri_cuda_peek(st->cuda, v->cqs, there->cq, v->cq_bytes, GDRI_COPY_MS);
		qp->cq = v->cqs;
	}
	if (ret || !has_error(qp))
		return ret ? ret : gdri_qp_test(qp, target);
	if (v->sq) { /* the record tells of the work request */
		ret = gdri_cuda_peek(st->cuda, v->sq, there->sq, v->sq_bytes, GDRI_COPY_MS);
		qp->sq = v->sq;
	}
	if (ret)
		return ret;
	cuda_queue_record(st, there, qp);
	return gdri_qp_test(qp, target);
}

/* Takes what is published in the first look as the target. */
static int cuda_queues_quiet(struct gdri_state *st, struct view *v, uint64_t *targets, uint64_t deadline)
{
	struct timespec nap = {0, 20000};
	size_t i, pending;
	int ret, why, status = 0, first = 1;

	for (;; first = 0) {
		/* before the look, which may have been long ago. relaxed: the flag carries nothing */
		why = __atomic_load_n(st->abort_word, __ATOMIC_RELAXED) ? -GDR_EABORTED
		      : gdri_now_ns() > deadline			? -GDR_ETIMEOUT
									: 0;
		ret = view_refresh(st, v);
		for (i = 0, pending = 0; !ret && i < v->n; i++) {
			if (first)
				targets[i] = gdri_published(v->qps[i].ready);
			if (!targets[i])
				continue;
			ret = cuda_queue_look(st, v, i, targets[i]);
			pending += !ret;
			if (ret < 0 && !status)
				status = ret;
			if (ret)
				targets[i] = 0; /* and no more to be asked */
			ret = 0;
		}
		if (ret || !pending)
			return ret ? ret : status;
		if (why)
			return why;
		nanosleep(&nap, NULL);
	}
}

int gdri_cuda_queues_test(struct gdri_state *st, size_t first, size_t n, int timeout_ms)
{
	struct view v = {.first = first, .n = n};
	uint64_t *targets;
	int ret;

	if (!n)
		return 0;
	if (gdri_cuda_settle(st->cuda, 0)) /* nothing goes behind it */
		return -GDR_ETIMEOUT;
	ret = view_open(st, &v);
	targets = calloc(v.n, sizeof(*targets));
	if (!ret && !targets)
		ret = gdri_fail(-GDR_ENOMEM, "out of memory");
	if (!ret)
		ret = cuda_queues_quiet(st, &v, targets, gdri_deadline_ns(timeout_ms));
	free(targets);
	view_close(&v);
	return ret;
}

int gdri_cuda_queues_quiet(struct gdri_state *st, size_t first, size_t n, int timeout_ms)
{
	int ret = gdri_cuda_queues_test(st, first, n, timeout_ms);

	if (ret != -GDR_ETIMEOUT)
		return ret;
	if (gdri_cuda_settle(st->cuda, 0))
		gdri_error("what kernels posted is not known: a copy that took too long is still under way");
	else
		gdri_error("what kernels posted is not complete after %d ms", timeout_ms);
	return ret;
}
