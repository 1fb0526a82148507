// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/path/hostq.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/device.h>
#include <gdr/impl/queue/named.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/window.h"
#include "runtime/net/net.h"

#define BOUNCE ((size_t)1 << 20)

struct gdri_hostq {
	struct gdri_net *net;
	struct gdri_qp *qps; /* [n_pes] */
	struct gdri_dev dev; /* what the posting code looks at */
	uint32_t no_abort;
	void *bounce;
	uint32_t lkey;
	void *handle;
	pthread_mutex_t lock; /* of the bounce buffer: one transfer at a time */
	struct gdri_qp *late; /* still uses the bounce buffer, until late_target is complete; or NULL */
	uint64_t late_target;
};

struct gdri_net *gdri_hostq_net(const struct gdri_hostq *q)
{
	return q->net;
}

bool gdri_hostq_is_late(const struct gdri_hostq *q)
{
	return q->late != NULL;
}

struct gdri_qp *gdri_hostq_qps(const struct gdri_hostq *q)
{
	return q->qps;
}

static int hostq_open_net(struct gdri_state *st, struct gdri_hostq *q, const char *near)
{
	struct gdri_options opt = st->opt;
	const struct gdri_net_how how = {
		.opt = &opt, .near = near, .turn = gdri_local_rank(st), .from = &st->from, .apart = st->apart,
		.cuda = st->cuda, .host_posts = true};
	struct gdri_mr_keys keys = {0};
	int ret;

	opt.qps_per_pe = 1;
	opt.ctx_queues = 0;
	opt.doorbell = GDRI_DOORBELL_GPU;
	opt.doorbell_mode = GDRI_BELL_RECORD; /* what the device has few of is for kernels */
	ret = gdri_net_chosen(&opt)->open(&how, &q->net);
	if (ret)
		return ret;
	ret = q->net->ops->register_heap(q->net, st->heap->base, st->heap->size, st->page->base, st->page->size, &keys);
	q->dev.lkey = gdri_to_be32(keys.lkey);
	if (!ret)
		ret = q->net->ops->register_buffer(q->net, q->bounce, BOUNCE, &q->lkey, NULL, &q->handle);
	return ret ? ret : q->net->ops->create_queues(q->net, st->n_pes, q->qps);
}

static void hostq_fill(const struct gdri_state *st, struct gdri_hostq *q)
{
	struct gdri_dev *d = &q->dev;

	d->pe = st->pe;
	d->n_pes = st->n_pes;
	d->n_slots = 1;
	d->n_queues = (uint32_t)st->n_pes;
	d->heap_size = gdri_window_reach(st);
	d->ctl = (struct gdri_ctl *)st->page->base; /* the heap's is not the host's to write */
	d->peers = st->page_peers; /* whom a wait for room looks at */
	d->qps = q->qps;
	d->timeout_ns = (uint64_t)st->opt.timeout_ms * 1000000u;
	d->abort = &q->no_abort;
	d->n_errors = GDRI_MAX_ERRORS; /* no records: who calls is told */
}

int gdri_hostq_open(struct gdri_state *st, const char *near)
{
	size_t n = (size_t)st->n_pes;
	struct gdri_hostq *q = aligned_alloc(GDRI_LINE, (sizeof(*q) + GDRI_LINE - 1) / GDRI_LINE * GDRI_LINE);

	st->hostq = q;
	if (!q)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	memset(q, 0, sizeof(*q));
	pthread_mutex_init(&q->lock, NULL);
	q->qps = aligned_alloc(GDRI_LINE, n * sizeof(*q->qps));
	q->dev.used = calloc(n / 64 + 1, sizeof(uint64_t));
	q->bounce = aligned_alloc(4096, BOUNCE);
	if (!q->qps || !q->dev.used || !q->bounce)
		return gdri_fail(-GDR_ENOMEM, "out of memory for the queues of host threads");
	memset(q->qps, 0, n * sizeof(*q->qps));
	memset(q->bounce, 0, BOUNCE);
	hostq_fill(st, q);
	return hostq_open_net(st, q, near);
}

void gdri_hostq_close(struct gdri_state *st)
{
	struct gdri_hostq *q = st->hostq;

	if (!q)
		return;
	if (q->handle)
		q->net->ops->deregister(q->net, q->handle);
	if (q->net)
		q->net->ops->close(q->net);
	pthread_mutex_destroy(&q->lock);
	free(q->qps);
	free(q->dev.used);
	free(q->bounce);
	free(q);
	st->hostq = NULL;
}

void gdri_hostq_show(const struct gdri_hostq *q, struct gdri_dev *host_view)
{
	host_view->qps = q->dev.qps;
	host_view->used = q->dev.used;
	host_view->n_slots = q->dev.n_slots;
	host_view->n_queues = q->dev.n_queues;
	host_view->lkey = q->dev.lkey;
}

/* *done: the NIC has let go of the buffer: all is complete, or the queue had an error, which
 * says so here, too: nothing is posted to it any more. */
static int hostq_await(struct gdri_state *st, struct gdri_qp *qp, uint64_t target, uint64_t deadline,
		       bool *done)
{
	int ret, why;

	for (uint32_t round = 0;; round++) {
		/* before the look, which may have been long ago. relaxed: the flag carries nothing */
		why = __atomic_load_n(st->abort_word, __ATOMIC_RELAXED) ? -GDR_EABORTED
		      : gdri_now_ns() > deadline			? -GDR_ETIMEOUT
									: 0;
		gdri_poll(&st->hostq->dev, qp);
		ret = gdri_qp_test(qp, target);
		*done = ret != 0;
		if (ret)
			return ret < 0 ? ret : 0;
		if (why)
			return why;
		gdr_pause(round);
	}
}

/* Waits for a copy and a transfer that were given up: the buffer is still theirs. */
static int hostq_settle(struct gdri_state *st, uint64_t deadline)
{
	struct gdri_hostq *q = st->hostq;
	int ret = gdri_cuda_settle(st->cuda, gdri_left_ms(deadline));
	bool done = true;

	if (ret)
		return ret;
	if (q->late)
		ret = hostq_await(st, q->late, q->late_target, deadline, &done);
	if (!done)
		return ret;
	q->late = NULL;
	return 0; /* an error is that queue's */
}

static int hostq_move(struct gdri_state *st, uint32_t opcode, uint64_t offset, size_t len, int pe,
		      uint64_t deadline)
{
	struct gdri_hostq *q = st->hostq;
	struct gdri_local l = {(uintptr_t)q->bounce, gdri_to_be32(q->lkey)};
	struct gdri_qp *qp = &q->qps[pe];
	uint64_t target = 0;
	bool done;
	/* rkey_sync is the page's */
	int ret = gdri_post_rdma(&q->dev, qp, opcode, offset, qp->rkey_data, l, (uint32_t)len, &target);

	if (ret)
		return ret;
	ret = hostq_await(st, qp, target, deadline, &done);
	if (!done) {
		q->late = qp;
		q->late_target = target;
	}
	return ret;
}

static int put_part(struct gdri_state *st, uint64_t offset, const void *src, size_t len, int pe,
		    uint64_t deadline)
{
	int ret = hostq_settle(st, deadline);

	if (!ret && gdri_cuda_is_device(st->cuda, src))
		ret = gdri_cuda_peek(st->cuda, st->hostq->bounce, src, len, gdri_left_ms(deadline));
	else if (!ret)
		memcpy(st->hostq->bounce, src, len);
	return ret ? ret : hostq_move(st, GDRI_OP_WRITE, offset, len, pe, deadline);
}

static int get_part(struct gdri_state *st, void *dst, uint64_t offset, size_t len, int pe)
{
	uint64_t deadline = gdri_deadline_ns(st->opt.timeout_ms);
	int ret = hostq_settle(st, deadline);

	if (!ret)
		ret = hostq_move(st, GDRI_OP_READ, offset, len, pe, deadline);
	if (ret)
		return ret;
	if (gdri_cuda_is_device(st->cuda, dst))
		return gdri_cuda_poke(st->cuda, dst, st->hostq->bounce, len, gdri_left_ms(deadline));
	memcpy(dst, st->hostq->bounce, len);
	return 0;
}

static int hostq_failed(const char *call, int pe, int status)
{
	gdri_error("%s: PE %d: %s", call, pe, gdr_strerror(status));
	return status;
}

int gdri_hostq_put(struct gdri_state *st, uint64_t offset, const void *src, size_t len, int pe)
{
	struct gdri_hostq *q = st->hostq;
	const uint8_t *from = src;
	size_t part;
	int ret = 0;

	pthread_mutex_lock(&q->lock);
	for (; len && !ret; len -= part, from += part, offset += part) {
		part = len < BOUNCE ? len : BOUNCE;
		ret = put_part(st, offset, from, part, pe,
			       gdri_deadline_ns((int)st->opt.timeout_ms));
	}
	pthread_mutex_unlock(&q->lock);
	return ret ? hostq_failed("gdr_host_put", pe, ret) : 0;
}

int gdri_hostq_get(struct gdri_state *st, void *dst, uint64_t offset, size_t len, int pe)
{
	struct gdri_hostq *q = st->hostq;
	uint8_t *to = dst;
	size_t part;
	int ret = 0;

	pthread_mutex_lock(&q->lock);
	for (; len && !ret; len -= part, to += part, offset += part) {
		part = len < BOUNCE ? len : BOUNCE;
		ret = get_part(st, to, offset, part, pe);
	}
	pthread_mutex_unlock(&q->lock);
	return ret ? hostq_failed("gdr_host_get", pe, ret) : 0;
}

/* Not under the lock: who holds it may wait for a GPU that is stuck. */
int gdri_hostq_tell(struct gdri_state *st, uint64_t offset, uint64_t word, int pe)
{
	struct gdri_hostq *q = st->hostq;

	return q ? gdri_post_value(&q->dev, &q->qps[pe], offset, word) : -GDR_ESTATE;
}

int gdri_hostq_told(struct gdri_state *st, int pe, uint64_t deadline)
{
	struct gdri_qp *qp = &st->hostq->qps[pe];
	/* acquire: as in gdri_qp_quiet */
	uint64_t target = gdri_published(__atomic_load_n(&qp->ready, __ATOMIC_ACQUIRE));
	bool done;

	return hostq_await(st, qp, target, deadline, &done);
}
