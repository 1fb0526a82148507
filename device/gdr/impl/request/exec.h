/* SPDX-License-Identifier: BSD-3-Clause */
/* A request (request.h) executed by device code: by one thread, or by all of a block. */
#ifndef GDRI_EXEC_H
#define GDRI_EXEC_H

#include <gdr/device.h>
#include <gdr/impl/coll/direct/aligned.h>
#include <gdr/impl/coll/ll/ctas.h>
#include <gdr/impl/request/request.h>

GDR_DEVICE int gdri_exec_amo(const struct gdri_request *q, uint64_t *old)
{
	const struct gdri_rq_atomic *a = &q->atomic;

#ifndef __CUDACC__ /* of GPUs the library waits for it: src may be the host's */
	if (q->what == GDRI_RQ_FETCH_AMO && q->src)
		return gdri_fetch_nbi((int)a->kind, q->size, (void *)(uintptr_t)q->src, q->dst, a->operand, a->compare,
				      q->pe, 0);
#endif
	if (gdri_amo_combines(a->kind))
		return gdri_amo_fetch_combine(gdri_amo_code(a->kind), q->dst, a->operand, q->pe, 0, old);
	if (q->what == GDRI_RQ_FETCH_AMO)
		return gdri_atomic_of((int)a->kind, q->size, q->dst, a->operand, a->compare, q->pe, 0, old);
	return gdri_slow_atomic(GDRI_FORM(GDRI_AMO, q->size, a->kind), q->dst, a->operand, q->pe, 0);
}

GDR_DEVICE int gdri_exec_wait(const struct gdri_request *q)
{
	const struct gdri_rq_wait *w = &q->wait;

	if (!q->n) /* one word */
		return gdri_wait_until(w->words, q->size, (int)w->is_signed, (int)w->cmp, w->value,
				       w->from_pe ? q->pe : -1,
				       w->from_pe ? GDRI_SIGNAL_WAIT : GDRI_WAIT_UNTIL);
	return gdri_wait_all(w->words, q->n, w->skip, w->values, w->value, q->size, (int)w->is_signed,
			     (int)w->cmp, GDRI_NO_LIMIT);
}

GDR_DEVICE int gdri_exec_lock(const struct gdri_request *q, uint64_t *busy)
{
	long *lock = (long *)q->dst;
	int ret;

	if (q->lock.call != GDRI_LOCK_CALL_TEST)
		return q->lock.call == GDRI_LOCK_CALL_SET ? gdri_lock_set(lock) : gdri_lock_clear(lock);
	ret = gdri_lock_test(lock);
	*busy = ret == 1;
	return ret < 0 ? ret : 0;
}

/* One thread. */
GDRI_NOINLINE int gdri_exec_thread(const struct gdri_request *q, uint64_t value[2])
{
	struct gdri_dev *dev = gdri_dev();

	if (!dev)
		return -GDR_ESTATE;
	switch (q->what) {
	case GDRI_RQ_BARRIER_ALL:
		return gdri_thread_barrier_all();
	case GDRI_RQ_SYNC_ALL:
		return gdr_sync_all();
	case GDRI_RQ_BARRIER:
		return gdri_team_barrier(GDRI_THREAD, q->coll.team, 1);
	case GDRI_RQ_SYNC:
		return gdri_team_barrier(GDRI_THREAD, q->coll.team, 0);
	case GDRI_RQ_QUIET:
		return gdri_quiet(dev, 0, -1);
	case GDRI_RQ_P:
		return q->size > 8 ? gdri_put(GDRI_THREAD, 0, q->dst, q->value, 16, q->pe, 0)
				   : gdri_p(q->dst, q->value[0], q->size, q->pe, 0);
	case GDRI_RQ_G:
		gdri_g_of(value, q->src, q->size, q->pe, 0);
		return 0;
	case GDRI_RQ_SIGNAL:
		return gdri_signal_op(q->signal.word, q->signal.value, (int)q->signal.op, q->pe, 0);
	case GDRI_RQ_WAIT:
		return gdri_exec_wait(q);
	case GDRI_RQ_LOCK:
		return gdri_exec_lock(q, value);
	default:
		return gdri_exec_amo(q, value);
	}
}

/* All threads of the scope. */
GDRI_NOINLINE int gdri_exec_team(const struct gdri_request *q, int scope)
{
	const struct gdri_rq_coll *c = &q->coll;
	size_t len = q->n * q->size;

	switch (q->what) {
	case GDRI_RQ_BROADCAST:
		return gdri_broadcast(scope, c->team, q->dst, q->src, len, c->root);
	case GDRI_RQ_COLLECT:
		return gdri_collect(scope, c->team, q->dst, q->src, len);
	case GDRI_RQ_FCOLLECT:
		return gdri_fcollect(scope, c->team, q->dst, q->src, len);
	case GDRI_RQ_ALLTOALL:
		return gdri_alltoall(scope, c->team, q->dst, q->src, len);
	case GDRI_RQ_ALLTOALLS:
		return gdri_alltoalls(scope, c->team, q->dst, q->src, c->dst_step, c->src_step,
				      q->n, q->size);
	case GDRI_RQ_REDUCE:
		return gdri_reduce(scope, c->team, q->dst, q->src, q->n, c->code);
	case GDRI_RQ_REDUCESCATTER:
		return gdri_reducescatter(scope, c->team, q->dst, q->src, q->n, c->code);
	default:
		return gdri_scan(scope, c->team, q->dst, q->src, q->n, c->code,
				 q->what == GDRI_RQ_EXSCAN);
	}
}

GDRI_NOINLINE int gdri_exec_block(const struct gdri_request *q, int scope)
{
	size_t len = q->n * q->size;

	switch (q->what) {
	case GDRI_RQ_PUT:
		return gdri_put(scope, (int)q->transfer.nbi, q->dst, q->src, len, q->pe, 0);
	case GDRI_RQ_GET:
		return gdri_get(scope, (int)q->transfer.nbi, q->dst, q->src, len, q->pe, 0);
	case GDRI_RQ_IPUT:
	case GDRI_RQ_IGET:
		return gdri_strided(q->what == GDRI_RQ_IPUT ? GDRI_PUT : GDRI_GET, scope, 0,
				    q->dst, q->src, q->strided.dst_step * (int64_t)q->size,
				    q->strided.src_step * (int64_t)q->size, gdri_request_piece(q), q->n, q->pe, 0);
	case GDRI_RQ_PUT_SIGNAL:
		return gdri_put_signal(scope, (int)q->signal.nbi, q->dst, q->src, len, q->signal.word,
				       q->signal.value, (int)q->signal.op, q->pe, 0);
	default:
		return gdri_exec_team(q, scope);
	}
}

/* Which operation of a team: for messages. */
GDR_DEVICE uint32_t gdri_grid_op(uint32_t what)
{
#define GDRI_REQUEST_OP(request, number, prefix, rest, operation)                                  \
	case GDRI_RQ_##request:                                                                    \
		return GDRI_##operation;
	switch (what) {
		GDRI_REQUESTS_TEAM(GDRI_REQUEST_OP)
	default:
		return GDRI_NONE;
	}
#undef GDRI_REQUEST_OP
}

/* All threads of one of the blocks. */
GDRI_NOINLINE int gdri_exec_grid(const struct gdri_request *q)
{
	const struct gdri_grid_job job = gdri_grid_job_of(q);
	struct gdri_grid g;
	struct gdri_coll c;
	int ret = gdri_coll_begin(&c, GDRI_BLOCK, q->coll.team, gdri_grid_op(q->what));

	if (ret || !q->n)
		return ret;
	if (gdri_unlikely(gdr_grid_size() > c.team->grid_blocks))
		return gdri_coll_refuse(&c, q->dst, gdr_grid_size(), GDRI_ARG_BLOCKS);
	gdri_grid_begin(&g, &c, gdr_block_id(), gdr_grid_size());
	return gdri_grid_between(q, c.n) ? gdri_grid_in_place(&g, &job) : gdri_grid_call(&g, &job);
}

/* A collective by LL, each block by itself. */
GDR_DEVICE int gdri_exec_ll(const struct gdri_request *q)
{
	struct gdri_team *t = &gdri_k(gdri_dev(), teams)[q->coll.team];
	struct gdri_ll_ctas p;

	gdri_ll_ctas_begin(&p, q, t, gdri_grid_op(q->what));
	return q->n ? gdri_ll_ctas_call(&p, q) : p.err;
}

#ifdef __CUDACC__
/* What gdri_exec_grid does, where all PEs are mapped. */
GDR_DEVICE int gdri_exec_aligned(const struct gdri_request *q)
{
	uint32_t op = gdri_grid_op(q->what);

	if (gdri_grid_between(q, q->coll.members))
		return gdri_access_fits(q) ? gdri_aligned_in_place(q, op) : gdri_exec_grid(q);
	return gdri_aligned_fits(q) || gdri_access_fits(q) ? gdri_aligned_call(q, op) : gdri_exec_grid(q);
}
#endif

/* One thread: tells who asked. */
GDR_DEVICE void gdri_exec_end(const struct gdri_request *q, int status, const uint64_t value[2])
{
	if (q->answer) { /* zeroed before, read behind the end of the kernel, which orders */
		q->answer->value[0] = value[0];
		q->answer->value[1] = value[1];
		if (status)
			q->answer->status = status;
	} else if (gdri_unlikely(status) && gdri_dev()) {
		gdri_latch(gdri_dev(), status);
	}
}

#endif
