// SPDX-License-Identifier: BSD-3-Clause
/* The thread looks at the doorbells of all queues, and executes what is new behind one that was rung, in the order of
 * the queue: a fence has nothing to wait for. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "tests/transport/shm/shm.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include <gdr/impl/arch/arch.h>
#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/net/execute.h"

/* ---- bytes ---- */

/* Both were found to be there. One that has left meanwhile takes nothing, and gives nothing. */
static void move_bytes(struct shm_memory *m, struct shm_place dst, struct shm_place src,
		       uint64_t len)
{
	uint64_t row, part;
	uint8_t *to;
	const uint8_t *from;

	for (; len; len -= part, dst.addr += part, src.addr += part) {
		part = len;
		to = shm_at(m, dst, &row);
		part = row < part ? row : part;
		from = shm_at(m, src, &row);
		part = row < part ? row : part;
		if (!to || !from)
			return;
		gdri_net_move(to, from, part);
	}
}

/* ---- operations: 0, or the syndrome ---- */

static uint32_t run_inline(struct shm_net *t, const struct shm_queue *q,
			   const struct gdri_net_wqe *w, uint32_t len)
{
	struct shm_place dst, src = {-1, 0};
	uint64_t data[GDRI_NET_WQE_MOST / 8]; /* aligned */

	if (len > w->ds * 16 - 36)
		return GDRI_NET_LENGTH;
	if (!shm_remote(&t->memory, q->qp->peer, gdri_net_get32(w->bytes + 24),
			gdri_net_get64(w->bytes + 16), len, &dst))
		return GDRI_NET_REMOTE;
	memcpy(data, w->bytes + 36, len);
	src.addr = (uintptr_t)data;
	move_bytes(&t->memory, dst, src, len);
	return 0;
}

static uint32_t run_rdma(struct shm_net *t, const struct shm_queue *q, const struct gdri_net_wqe *w)
{
	const uint8_t *data = w->bytes + 32;
	uint32_t len = gdri_net_get32(data);
	struct shm_place near, far;

	if (w->ds < 3)
		return GDRI_NET_REQUEST;
	if (w->opcode == GDRI_OP_WRITE && len & GDRI_INLINE_BIT)
		return run_inline(t, q, w, len & ~GDRI_INLINE_BIT);
	if (!shm_local_end(&t->memory, gdri_net_get32(data + 4), gdri_net_get64(data + 8), len,
			   &near))
		return GDRI_NET_LOCAL;
	if (!shm_remote(&t->memory, q->qp->peer, gdri_net_get32(w->bytes + 24),
			gdri_net_get64(w->bytes + 16), len, &far))
		return GDRI_NET_REMOTE;
	if (w->opcode == GDRI_OP_WRITE)
		move_bytes(&t->memory, far, near, len);
	else
		move_bytes(&t->memory, near, far, len);
	return 0;
}

static uint32_t run_dump(struct shm_net *t, const struct gdri_net_wqe *w)
{
	const uint8_t *data = w->bytes + 16;
	struct shm_place near;

	return shm_local_end(&t->memory, gdri_net_get32(data + 4), gdri_net_get64(data + 8),
			     gdri_net_get32(data), &near)
		       ? 0
		       : GDRI_NET_LOCAL;
}

static uint32_t run_atomic(struct shm_net *t, const struct shm_queue *q,
			   const struct gdri_net_wqe *w)
{
	struct shm_place near, far, src = {-1, 0};
	struct gdri_net_atomic a;
	const uint8_t *result = gdri_net_atomic(w, &a);
	uint64_t old, row;
	uint8_t *at;

	if (!result)
		return GDRI_NET_REQUEST;
	if (gdri_net_get32(result) != a.size)
		return GDRI_NET_LENGTH;
	if (!shm_local_end(&t->memory, gdri_net_get32(result + 4), gdri_net_get64(result + 8),
			   a.size, &near))
		return GDRI_NET_LOCAL;
	if (!shm_remote(&t->memory, q->qp->peer, gdri_net_get32(w->bytes + 24),
			gdri_net_get64(w->bytes + 16), a.size, &far))
		return GDRI_NET_REMOTE;
	at = shm_at(&t->memory, far, &row);
	if (!at || row < a.size || (uintptr_t)at % a.size)
		return GDRI_NET_INVALID;
	old = gdri_net_atomic_run(at, &a);
	src.addr = (uintptr_t)&old;
	move_bytes(&t->memory, near, src, a.size);
	return 0;
}

static uint32_t run_wqe(struct shm_net *t, const struct shm_queue *q, const struct gdri_net_wqe *w)
{
	if (w->blocks > 2)
		return GDRI_NET_REQUEST;
	switch (w->opcode) {
	case GDRI_OP_NOP:
		return 0;
	case GDRI_OP_WRITE:
	case GDRI_OP_READ:
		return run_rdma(t, q, w);
	case GDRI_OP_DUMP:
		return run_dump(t, w);
	case GDRI_OP_ATOMIC_CS:
	case GDRI_OP_ATOMIC_FA:
	case GDRI_OP_MASKED_CS:
	case GDRI_OP_MASKED_FA:
		return run_atomic(t, q, w);
	default:
		return GDRI_NET_REQUEST;
	}
}

/* ---- queues ---- */

/* Up to the block that the doorbell record names. */
static void engine_run(struct shm_net *t, struct shm_queue *q)
{
	uint16_t end = gdri_net_posted(q->qp);
	uint32_t syndrome;
	struct gdri_net_wqe w;

	while (q->ci != end) {
		gdri_net_fetch(q->qp, q->ci, &w);
		syndrome = q->is_broken ? GDRI_SYND_FLUSH : run_wqe(t, q, &w);
		/* requests in their order: pairs with the acquire of who waits for a word that the next one writes */
		gdri_fence_sys();
		q->is_broken |= syndrome != 0;
		if (syndrome || w.tells)
			gdri_net_complete(q->qp, &q->cq_pi, w.index, w.opcode, syndrome);
		q->ci = (uint16_t)(q->ci + w.blocks);
	}
}

static bool engine_look(struct shm_net *t)
{
	bool any = false;
	uint64_t bell;
	size_t i;

	for (i = 0; i < t->layout.n; i++) {
		/* acquire: pairs with fence F2 of device code, the record before the bell */
		bell = __atomic_load_n(&t->bells[i], __ATOMIC_ACQUIRE);
		if (bell == t->queues[i].rung)
			continue;
		t->queues[i].rung = bell;
		engine_run(t, &t->queues[i]);
		any = true;
	}
	return any;
}

static void *engine_main(void *arg)
{
	struct timespec nap = {0, 50000};
	struct shm_net *t = arg;
	unsigned int round = 0;

	pthread_setname_np(pthread_self(), "gdr-shm");
	while (!__atomic_load_n(&t->stop, __ATOMIC_RELAXED)) { /* joined: needs no more order */
		round = engine_look(t) ? 0 : round + 1;
		if (round > 1000)
			nanosleep(&nap, NULL);
		else if (round)
			sched_yield();
	}
	engine_look(t);
	return NULL;
}

int shm_engine_start(struct shm_net *t)
{
	int rc = gdri_thread_start(&t->thread, engine_main, t);

	t->runs = !rc;
	if (rc)
		gdri_error("shm: cannot start: %s", strerror(rc));
	return rc ? -GDR_ESYSTEM : 0;
}

void shm_engine_stop(struct shm_net *t)
{
	if (!t->runs)
		return;
	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED); /* see engine_main */
	pthread_join(t->thread, NULL);
	t->runs = false;
}
