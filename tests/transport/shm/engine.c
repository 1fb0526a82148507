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

enum { /* PRM, syndromes of completions with error */
	SYNDROME_LENGTH = 0x01,
	SYNDROME_REQUEST = 0x02,
	SYNDROME_LOCAL = 0x04,
	SYNDROME_REMOTE = 0x13,
	SYNDROME_INVALID = 0x12,
};

#define WQE_MOST (2 * GDRI_WQE_BLOCK) /* of all that device code posts */

struct wqe {
	uint8_t bytes[WQE_MOST];
	uint32_t opcode, opmod, ds, blocks;
	uint16_t index;
	bool tells; /* of success, too */
};

static uint32_t get32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return gdri_bswap32(v);
}

static uint64_t get64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return gdri_bswap64(v);
}

/* ---- bytes ---- */

/* What is aligned at both ends goes as a whole. The order of requests is made by engine_run's fence. */
static void move_unit(uint8_t *dst, const uint8_t *src, size_t unit)
{
#define UNIT(type)                                                                            \
	__atomic_store_n((type *)(void *)dst,                                                 \
			 __atomic_load_n((const type *)(const void *)src, __ATOMIC_RELAXED), \
			 __ATOMIC_RELAXED)
	switch (unit) { /* relaxed: pairs with loads and stores of the memory's users; for the order see above */
	case 8:
		UNIT(uint64_t);
		break;
	case 4:
		UNIT(uint32_t);
		break;
	case 2:
		UNIT(uint16_t);
		break;
	default:
		UNIT(uint8_t);
	}
#undef UNIT
}

static void move_row(uint8_t *dst, const uint8_t *src, uint64_t len)
{
	size_t unit;

	for (; len; len -= unit, dst += unit, src += unit) {
		unit = 8;
		while (unit > len || ((uintptr_t)dst | (uintptr_t)src) & (unit - 1))
			unit /= 2;
		move_unit(dst, src, unit);
	}
}

/* Both were found to be there. One that has left meanwhile takes nothing, and gives nothing. */
static void move_bytes(struct shm_memory *m, struct shm_place dst, struct shm_place src, uint64_t len)
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
		move_row(to, from, part);
	}
}

/* ---- operations: 0, or the syndrome ---- */

static uint32_t run_inline(struct shm_net *t, const struct shm_queue *q, const struct wqe *w, uint32_t len)
{
	struct shm_place dst, src = {-1, 0};
	uint64_t data[WQE_MOST / 8]; /* aligned */

	if (len > w->ds * 16 - 36)
		return SYNDROME_LENGTH;
	if (!shm_remote(&t->memory, q->qp->peer, get32(w->bytes + 24), get64(w->bytes + 16), len, &dst))
		return SYNDROME_REMOTE;
	memcpy(data, w->bytes + 36, len);
	src.addr = (uintptr_t)data;
	move_bytes(&t->memory, dst, src, len);
	return 0;
}

static uint32_t run_rdma(struct shm_net *t, const struct shm_queue *q, const struct wqe *w)
{
	const uint8_t *data = w->bytes + 32;
	uint32_t len = get32(data);
	struct shm_place near, far;

	if (w->ds < 3)
		return SYNDROME_REQUEST;
	if (w->opcode == GDRI_OP_WRITE && len & GDRI_INLINE_BIT)
		return run_inline(t, q, w, len & ~GDRI_INLINE_BIT);
	if (!shm_local_end(&t->memory, get32(data + 4), get64(data + 8), len, &near))
		return SYNDROME_LOCAL;
	if (!shm_remote(&t->memory, q->qp->peer, get32(w->bytes + 24), get64(w->bytes + 16), len, &far))
		return SYNDROME_REMOTE;
	if (w->opcode == GDRI_OP_WRITE)
		move_bytes(&t->memory, far, near, len);
	else
		move_bytes(&t->memory, near, far, len);
	return 0;
}

static uint32_t run_dump(struct shm_net *t, const struct wqe *w)
{
	const uint8_t *data = w->bytes + 16;
	struct shm_place near;

	return shm_local_end(&t->memory, get32(data + 4), get64(data + 8), get32(data), &near) ? 0 : SYNDROME_LOCAL;
}

/* Every atomic as one of two forms. */
struct atomic {
	uint32_t size;
	bool compares;
	uint64_t value, compare; /* to be added, or put in the place of `compare` */
	uint64_t value_mask, compare_mask;
	uint64_t boundary; /* of an addition: no carry leaves these bits */
	const uint8_t *result; /* data segment */
};

static bool atomic_decode(const struct wqe *w, struct atomic *a)
{
	const uint8_t *at = w->bytes + 32;
	bool masked = w->opcode == GDRI_OP_MASKED_CS || w->opcode == GDRI_OP_MASKED_FA;
	bool four = masked && w->opmod == GDRI_OPMOD_ATOMIC_4B;
	uint64_t word[4];
	int i;

	for (i = 0; i < 4; i++)
		word[i] = four ? get32(at + 4 * i) : get64(at + 8 * i);
	*a = (struct atomic){.size = four ? 4 : 8, .value = word[0], .compare = word[1], .value_mask = UINT64_MAX,
			     .compare_mask = UINT64_MAX, .result = at + 16};
	a->compares = w->opcode == GDRI_OP_ATOMIC_CS || w->opcode == GDRI_OP_MASKED_CS;
	if (w->opcode == GDRI_OP_MASKED_FA)
		a->boundary = word[1];
	if (w->opcode == GDRI_OP_MASKED_CS) {
		a->value_mask = word[2];
		a->compare_mask = word[3];
		a->result += four ? 0 : 16;
	}
	return (four || !masked || w->opmod == GDRI_OPMOD_ATOMIC_8B) && w->ds * 16 == a->result + 16 - w->bytes;
}

static uint64_t atomic_apply(const struct atomic *a, uint64_t old)
{
	uint64_t b = a->boundary;

	if (!a->compares)
		return ((old & ~b) + (a->value & ~b)) ^ ((old ^ a->value) & b);
	return (old ^ a->compare) & a->compare_mask ? old : (old & ~a->value_mask) | (a->value & a->value_mask);
}

/* Both: acq_rel, pairs with other PEs' threads and with atomics of the owner's threads. */
static uint64_t atomic_8(uint64_t *at, const struct atomic *a)
{
	uint64_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old, atomic_apply(a, old), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
	return old;
}

static uint32_t atomic_4(uint32_t *at, const struct atomic *a)
{
	uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &old, (uint32_t)atomic_apply(a, old), false, __ATOMIC_ACQ_REL,
					    __ATOMIC_RELAXED))
		;
	return old;
}

static uint32_t run_atomic(struct shm_net *t, const struct shm_queue *q, const struct wqe *w)
{
	struct shm_place near, far, src = {-1, 0};
	struct atomic a;
	uint64_t old, row;
	uint8_t *at;

	if (!atomic_decode(w, &a))
		return SYNDROME_REQUEST;
	if (get32(a.result) != a.size)
		return SYNDROME_LENGTH;
	if (!shm_local_end(&t->memory, get32(a.result + 4), get64(a.result + 8), a.size, &near))
		return SYNDROME_LOCAL;
	if (!shm_remote(&t->memory, q->qp->peer, get32(w->bytes + 24), get64(w->bytes + 16), a.size, &far))
		return SYNDROME_REMOTE;
	at = shm_at(&t->memory, far, &row);
	if (!at || row < a.size || (uintptr_t)at % a.size)
		return SYNDROME_INVALID;
	if (a.size == 8)
		old = atomic_8((uint64_t *)(void *)at, &a);
	else
		old = gdri_bswap32(atomic_4((uint32_t *)(void *)at, &a)); /* as the NIC has it: 8 bytes in host order */
	src.addr = (uintptr_t)&old;
	move_bytes(&t->memory, near, src, a.size);
	return 0;
}

static uint32_t run_wqe(struct shm_net *t, const struct shm_queue *q, const struct wqe *w)
{
	if (w->blocks > 2)
		return SYNDROME_REQUEST;
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
		return SYNDROME_REQUEST;
	}
}

/* ---- queues ---- */

static void engine_fetch(const struct shm_queue *q, struct wqe *w)
{
	const struct gdri_qp *qp = q->qp;
	uint32_t i;

	w->index = q->ci;
	memcpy(w->bytes, qp->sq + (size_t)(w->index & (qp->depth - 1)) * GDRI_WQE_BLOCK, GDRI_WQE_BLOCK);
	w->opcode = w->bytes[3];
	w->opmod = w->bytes[0];
	w->ds = w->bytes[7] & 0x3f;
	w->blocks = w->ds ? (w->ds + 3) / 4 : 1;
	w->tells = w->bytes[11] & GDRI_CE_ALWAYS;
	for (i = 1; i < w->blocks && i < WQE_MOST / GDRI_WQE_BLOCK; i++)
		memcpy(w->bytes + i * GDRI_WQE_BLOCK,
		       qp->sq + (size_t)((w->index + i) & (qp->depth - 1)) * GDRI_WQE_BLOCK, GDRI_WQE_BLOCK);
}

static void engine_complete(struct shm_queue *q, const struct wqe *w, uint32_t syndrome)
{
	const struct gdri_qp *qp = q->qp;
	struct gdri_cqe *e = &qp->cq[q->cq_pi & qp->cq_mask];
	uint64_t owner = q->cq_pi++ / ((uint64_t)qp->cq_mask + 1) & 1;
	uint32_t opcode = syndrome ? GDRI_CQE_REQ_ERR : GDRI_CQE_REQ;
	uint32_t tail = gdri_bswap16(w->index) | (uint32_t)(opcode << 4 | owner) << 24;

	e->syndrome = (uint8_t)syndrome;
	e->vendor_syndrome = 0;
	/* release: what the request did, before the word that says so; pairs with the polls of device code */
	__atomic_store_n((uint64_t *)(void *)&e->wqe_opcode_qpn,
			 gdri_bswap32(w->opcode << 24 | qp->qpn) | (uint64_t)tail << 32, __ATOMIC_RELEASE);
}

/* Up to the block that the doorbell record names. */
static void engine_run(struct shm_net *t, struct shm_queue *q)
{
	/* acquire: pairs with fence F1 of device code, blocks and payload before the record */
	uint16_t end = (uint16_t)gdri_bswap32(__atomic_load_n(q->qp->dbrec, __ATOMIC_ACQUIRE));
	uint32_t syndrome;
	struct wqe w;

	while (q->ci != end) {
		engine_fetch(q, &w);
		syndrome = q->is_broken ? GDRI_SYND_FLUSH : run_wqe(t, q, &w);
		/* requests in their order: pairs with the acquire of who waits for a word that the next one writes */
		gdri_fence_sys();
		q->is_broken |= syndrome != 0;
		if (syndrome || w.tells)
			engine_complete(q, &w, syndrome);
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
