/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles, numbers and life of the objects; the lock that covers them all.
 * Numbers (QPN, CQN, ...) are the device's and unique in the process; handles
 * are the kernel driver's and belong to one context. */
#include "softhca/driver/control.h"
#include "softhca/engine/dp.h"
#include "softhca/gpu/dma.h"
#include "softhca/faults/faults.h"
#include "softhca/memory/probe.h"
#include "softhca/strict/strict.h"
#include "softhca/tools/options.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- lock ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t engine_turn = PTHREAD_COND_INITIALIZER;
/* Control calls that want the lock, and the engine's thread where others run rounds. Relaxed
 * throughout: it is a hint to the engine and to those others; hca_lock_engine reads it again
 * with the mutex held. */
static atomic_uint waiters;
static bool engine_sleeps; /* under the mutex */
/* Who has the mutex, 0: nobody. Relaxed throughout: a thread asks whether it is the one itself. */
static atomic_uintptr_t holder;

static void lock_is_held(void)
{
	atomic_store_explicit(&holder, (uintptr_t)pthread_self(), memory_order_relaxed);
}

bool hca_lock_is_mine(void)
{
	return atomic_load_explicit(&holder, memory_order_relaxed) == (uintptr_t)pthread_self();
}

void hca_lock(void)
{
	atomic_fetch_add_explicit(&waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&lock);
	lock_is_held();
	atomic_fetch_sub_explicit(&waiters, 1, memory_order_relaxed);
	trap_wake(); /* the engine, which looks at what this call does when it has the lock */
}

bool hca_lock_within(unsigned seconds)
{
	struct timespec until;
	int rc;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	atomic_fetch_add_explicit(&waiters, 1, memory_order_relaxed);
	rc = pthread_mutex_timedlock(&lock, &until);
	atomic_fetch_sub_explicit(&waiters, 1, memory_order_relaxed);
	if (!rc)
		lock_is_held();
	return rc == 0;
}

bool hca_trylock(void)
{
	/* Who waits goes first: a thread that polls is back at once. */
	if (hca_lock_wanted() || pthread_mutex_trylock(&lock))
		return false;
	lock_is_held();
	return true;
}

void hca_unlock(void)
{
	if (engine_sleeps)
		pthread_cond_signal(&engine_turn);
	atomic_store_explicit(&holder, 0, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
}

bool hca_lock_wanted(void)
{
	return atomic_load_explicit(&waiters, memory_order_relaxed) != 0;
}

void hca_lock_engine(void)
{
	/* Who has the lock may wait for a thread that waits at its trapped store. */
	if (pthread_mutex_trylock(&lock)) {
		trap_release();
		atomic_fetch_add_explicit(&waiters, 1, memory_order_relaxed);
		pthread_mutex_lock(&lock);
		atomic_fetch_sub_explicit(&waiters, 1, memory_order_relaxed);
	}
	/* Whoever waits takes the mutex that the wait releases, and signals. */
	while (hca_lock_wanted()) {
		trap_release();
		engine_sleeps = true;
		pthread_cond_wait(&engine_turn, &lock);
		engine_sleeps = false;
	}
	lock_is_held();
}

/* ---- number tables ---- */

struct numbers {
	void **slot;
	uint8_t *variant; /* raised whenever a slot is freed */
	uint32_t size, used, next;
};

static struct numbers pds, mrs, cqs, srqs, qps, umems, counter_sets;
static struct hca_qp **live;
static uint32_t n_live, live_size, sweep_at;

static int numbers_grow(struct numbers *t, uint32_t max)
{
	uint32_t size = t->size ? t->size * 2 : 64;
	void **slot;
	uint8_t *variant;

	if (size > max)
		size = max;
	if (size <= t->size)
		return t->used < t->size ? 0 : ENOMEM;
	slot = realloc(t->slot, size * sizeof(*slot));
	if (!slot)
		return ENOMEM;
	memset(slot + t->size, 0, (size - t->size) * sizeof(*slot));
	t->slot = slot;
	variant = realloc(t->variant, size);
	if (!variant)
		return ENOMEM;
	memset(variant + t->size, 0, size - t->size);
	t->variant = variant;
	t->size = size;
	return 0;
}

/* Numbers go round: one that was freed is used again as late as possible, so
 * that a stale number names nothing for a while. */
static int numbers_add(struct numbers *t, uint32_t min, uint32_t max, void *obj, uint32_t *out)
{
	int rc;

	if (t->used + min >= t->size / 2) {
		rc = numbers_grow(t, max);
		if (rc)
			return rc;
	}
	if (t->used + min >= t->size)
		return ENOMEM;
	for (uint32_t i = 0; i <= t->size; i++, t->next++) {
		if (t->next >= t->size || t->next < min)
			t->next = min;
		if (!t->slot[t->next]) {
			t->slot[t->next] = obj;
			t->used++;
			*out = t->next++;
			return 0;
		}
	}
	return ENOMEM;
}

static void *numbers_get(const struct numbers *t, uint32_t n)
{
	return n < t->size ? t->slot[n] : NULL;
}

static void numbers_remove(struct numbers *t, uint32_t n)
{
	if (n < t->size && t->slot[n]) {
		t->slot[n] = NULL;
		t->variant[n]++;
		t->used--;
	}
}

/* A number of another context of the process names nothing here. */
static void *object_own(struct hca_ctx *ctx, void *found)
{
	struct ctl_obj *obj = found;

	return obj && obj->ctx == ctx ? obj : NULL;
}

#define NUMBERED(kind, number)                                                                     \
	int kind##_number(struct ctl_##kind *c)                                                    \
	{                                                                                          \
		return numbers_add(&kind##s, 1, 1u << 24, c, &c->kind.number);                     \
	}                                                                                          \
	struct ctl_##kind *kind##_find(struct hca_ctx *ctx, uint32_t n)                            \
	{                                                                                          \
		return object_own(ctx, numbers_get(&kind##s, n));                                  \
	}
NUMBERED(pd, pdn)
NUMBERED(cq, cqn)
NUMBERED(srq, srqn)
NUMBERED(umem, id)

int counters_number(struct ctl_counters *c)
{
	return numbers_add(&counter_sets, 1, 1u << 8, c, &c->id);
}

struct ctl_counters *counters_find(struct hca_ctx *ctx, uint32_t id)
{
	return object_own(ctx, numbers_get(&counter_sets, id));
}

/* Index 1 with variant 0 would be 0x100, the key that ends a scatter list. */
int mr_number(struct ctl_mr *mr)
{
	uint32_t index;
	int rc = numbers_add(&mrs, 16, 1u << 24, mr, &index);

	if (!rc)
		mr->mr.key = index << 8 | mrs.variant[index];
	return rc;
}

/* QP 0 and 1 are the management QPs of the port and never handed out. */
int qp_number(struct ctl_qp *qp)
{
	uint32_t first = dp_first_qpn(), index;
	struct hca_qp **grown;
	int rc;

	if (n_live >= hca_options()->device.qp_limit)
		return ENOMEM;
	if (n_live == live_size) {
		grown = realloc(live, (live_size + 64) * sizeof(*live));
		if (!grown)
			return ENOMEM;
		live = grown;
		live_size += 64;
	}
	rc = numbers_add(&qps, first < 2 ? 2 - first : 0, dp_qpn_count(), qp, &index);
	if (rc)
		return rc;
	qp->qp.qpn = first + index;
	qp->live_index = n_live;
	live[n_live++] = &qp->qp;
	return 0;
}

struct hca_qp *hca_find_qp(uint32_t qpn)
{
	struct ctl_qp *qp = numbers_get(&qps, qpn - dp_first_qpn());

	return qp ? &qp->qp : NULL;
}

struct hca_mr *hca_find_mr(uint32_t key)
{
	struct ctl_mr *mr = numbers_get(&mrs, key >> 8);

	return mr && mr->mr.key == key ? &mr->mr : NULL;
}

struct hca_mr *hca_find_mr_by_index(uint32_t key)
{
	struct ctl_mr *mr = numbers_get(&mrs, key >> 8);

	return mr ? &mr->mr : NULL;
}

void hca_sweep_qps(unsigned n, void (*fn)(struct hca_qp *qp))
{
	if (n > n_live)
		n = n_live;
	while (n--) {
		if (sweep_at >= n_live)
			sweep_at = 0;
		fn(live[sweep_at++]);
	}
}

/* ---- handles ---- */

static int handle_add(struct hca_ctx *ctx, struct ctl_obj *obj)
{
	struct ctl_obj **grown;
	uint32_t h, size;

	for (h = 1; h < ctx->n_handles; h++)
		if (!ctx->handles[h])
			break;
	if (h >= ctx->n_handles) {
		size = ctx->n_handles ? ctx->n_handles * 2 : 32;
		grown = realloc(ctx->handles, size * sizeof(*grown));
		if (!grown)
			return ENOMEM;
		memset(grown + ctx->n_handles, 0, (size - ctx->n_handles) * sizeof(*grown));
		ctx->handles = grown;
		ctx->n_handles = size;
		if (h == 0)
			h = 1;
	}
	ctx->handles[h] = obj;
	obj->handle = h;
	return 0;
}

/* Does the fault schedule refuse an object of this type? */
static bool object_refused(enum obj_type type)
{
	static const uint8_t what[] = { /* plus one: other types are never refused */
		[OBJ_PD] = 1 + FAULT_PD,   [OBJ_MR] = 1 + FAULT_MR,	[OBJ_CQ] = 1 + FAULT_CQ,
		[OBJ_QP] = 1 + FAULT_QP,   [OBJ_SRQ] = 1 + FAULT_SRQ,	[OBJ_AH] = 1 + FAULT_AH,
		[OBJ_UMEM] = 1 + FAULT_UMEM, [OBJ_UAR] = 1 + FAULT_UAR,
	};

	return faults_on && type < sizeof(what) && what[type] &&
	       faults_refuse((enum fault_object)(what[type] - 1));
}

static void object_give_back(struct ctl_obj *obj)
{
	if (obj->type == OBJ_QP)
		id_table_put(obj, sizeof(struct ctl_qp));
	else
		free(obj);
}

void *obj_new(struct hca_ctx *ctx, enum obj_type type, size_t size)
{
	struct ctl_obj *obj;

	if (object_refused(type))
		return NULL;
	obj = type == OBJ_QP ? id_table_get(size) : calloc(1, size);
	if (!obj)
		return NULL;
	obj->type = type;
	obj->ctx = ctx;
	if (handle_add(ctx, obj)) {
		object_give_back(obj);
		return NULL;
	}
	return obj;
}

void obj_free(struct ctl_obj *obj)
{
	devx_object_gone(obj);
	obj->ctx->handles[obj->handle] = NULL;
	object_give_back(obj);
}

struct ctl_obj *obj_any(struct hca_ctx *ctx, uint64_t handle)
{
	return handle < ctx->n_handles ? ctx->handles[handle] : NULL;
}

void *obj_get(struct hca_ctx *ctx, uint64_t handle, enum obj_type type)
{
	struct ctl_obj *obj = obj_any(ctx, handle);

	return obj && obj->type == type ? obj : NULL;
}

/* ---- memory ---- */

static bool mr_holds(const struct hca_mr *mr, uintptr_t page)
{
	return !mr->window && !mr->device && (page_has(page, mr->va, mr->len) || hca_mr_implicit(mr));
}

static bool cq_holds(const struct hca_cq *cq, uintptr_t page)
{
	return page_has(page, cq->buf, (uint64_t)cq->cqe_size << cq->log_size) || page_has(page, cq->dbrec, 8);
}

static bool srq_holds(const struct hca_srq *srq, uintptr_t page)
{
	return page_has(page, srq->buf, (uint64_t)srq->wqe_cnt << srq->wqe_shift) || page_has(page, srq->dbrec, 4);
}

static bool qp_holds(const struct hca_qp *qp, uintptr_t page)
{
	return page_has(page, qp->sq, 64ull << qp->log_sq_size) ||
	       page_has(page, qp->rq, (uint64_t)qp->rq_cnt << qp->rq_shift) || page_has(page, qp->dbrec, 8);
}

static bool object_holds(const struct ctl_obj *obj, uintptr_t page)
{
	const struct hca_umem *umem;

	switch (obj->type) {
	case OBJ_MR:
		return mr_holds(&((const struct ctl_mr *)obj)->mr, page);
	case OBJ_UMEM:
		umem = &((const struct ctl_umem *)obj)->umem;
		return page_has(page, umem->va, umem->len);
	case OBJ_CQ:
		return cq_holds(&((const struct ctl_cq *)obj)->cq, page);
	case OBJ_SRQ:
		return srq_holds(&((const struct ctl_srq *)obj)->srq, page);
	case OBJ_QP:
		return qp_holds(&((const struct ctl_qp *)obj)->qp, page);
	default:
		return false;
	}
}

bool hca_holds_page(uintptr_t page)
{
	for (const struct hca_ctx *ctx = device_contexts(); ctx; ctx = ctx->next)
		for (uint32_t h = 1; h < ctx->n_handles; h++)
			if (ctx->handles[h] && object_holds(ctx->handles[h], page))
				return true;
	return false;
}

/* ---- destruction ---- */

#define ADD(member, n)                                                                             \
	do {                                                                                       \
		if (member)                                                                        \
			(member)->obj.refs += (uint32_t)(n);                                       \
	} while (0)
#define PUT(member) ADD(member, -1)

void qp_refs(struct ctl_qp *qp, int by)
{
	ADD(qp->pd, by);
	ADD(qp->umem, by);
	ADD(qp->dbr_umem, by);
	ADD(qp->uar, by);
	ADD(qp->counters, by);
	if (qp->qp.scq)
		ctl_of(qp->qp.scq, struct ctl_cq, cq)->obj.refs += (uint32_t)by;
	if (qp->qp.rcq)
		ctl_of(qp->qp.rcq, struct ctl_cq, cq)->obj.refs += (uint32_t)by;
	if (qp->qp.srq)
		ctl_of(qp->qp.srq, struct ctl_srq, srq)->obj.refs += (uint32_t)by;
}

static void cq_release(struct ctl_cq *cq)
{
	dp_cq_destroy(&cq->cq);
	numbers_remove(&cqs, cq->cq.cqn);
	PUT(cq->umem);
	PUT(cq->dbr_umem);
	PUT(cq->uar);
	if (cq->cq.channel)
		event_channel_put(cq->cq.channel);
}

static void qp_release(struct ctl_qp *qp)
{
	dp_qp_destroy(&qp->qp);
	numbers_remove(&qps, qp->qp.qpn - dp_first_qpn());
	live[qp->live_index] = live[--n_live];
	ctl_of(live[qp->live_index], struct ctl_qp, qp)->live_index = qp->live_index;
	if (qp->uar)
		uar_qp_removed(qp->qp.uar_page);
	qp_refs(qp, -1);
}

static void mr_release(struct ctl_mr *mr)
{
	if (mr->obj.type == OBJ_MR)
		dp_mr_gone(&mr->mr);
	numbers_remove(&mrs, mr->mr.key >> 8);
	PUT(mr->pd);
	PUT(mr->dm);
	if (mr->mr.owns_map)
		range_unmap(mr->mr.va, mr->mr.len);
	if (mr->mr.device)
		dma_forget((uintptr_t)mr->mr.va, mr->mr.len);
	mkey_gone(&mr->mr);
}

static void umem_release(struct ctl_umem *umem)
{
	numbers_remove(&umems, umem->umem.id);
	if (umem->owns_map)
		range_unmap(umem->umem.va, umem->umem.len);
	if (umem->device)
		dma_forget((uintptr_t)umem->umem.va, umem->umem.len);
}

int obj_destroy(struct ctl_obj *obj)
{
	if (obj->refs)
		return EBUSY;
	switch (obj->type) {
	case OBJ_PD:
		numbers_remove(&pds, ((struct ctl_pd *)obj)->pd.pdn);
		break;
	case OBJ_MR:
	case OBJ_MW:
		mr_release((struct ctl_mr *)obj);
		break;
	case OBJ_CQ:
		cq_release((struct ctl_cq *)obj);
		break;
	case OBJ_QP:
		qp_release((struct ctl_qp *)obj);
		break;
	case OBJ_SRQ:
		numbers_remove(&srqs, ((struct ctl_srq *)obj)->srq.srqn);
		if (strict_on)
			strict_srq_destroy(&((struct ctl_srq *)obj)->srq);
		PUT(((struct ctl_srq *)obj)->pd);
		PUT(((struct ctl_srq *)obj)->umem);
		PUT(((struct ctl_srq *)obj)->dbr_umem);
		break;
	case OBJ_AH:
		PUT(((struct ctl_ah *)obj)->pd);
		break;
	case OBJ_UMEM:
		umem_release((struct ctl_umem *)obj);
		break;
	case OBJ_UAR:
		uar_destroy((struct ctl_uar *)obj);
		break;
	case OBJ_DM:
		break;
	case OBJ_COUNTERS:
		numbers_remove(&counter_sets, ((struct ctl_counters *)obj)->id);
		break;
	}
	obj_free(obj);
	return 0;
}

void obj_destroy_all(struct hca_ctx *ctx)
{
	/* Users before what they use. */
	static const enum obj_type order[] = {OBJ_QP, OBJ_SRQ, OBJ_CQ,	OBJ_MW, OBJ_MR,
					      OBJ_AH, OBJ_UAR, OBJ_UMEM, OBJ_DM, OBJ_COUNTERS, OBJ_PD};

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		for (uint32_t h = 1; h < ctx->n_handles; h++)
			if (ctx->handles[h] && ctx->handles[h]->type == order[i])
				obj_destroy(ctx->handles[h]);
	free(ctx->handles);
	ctx->handles = NULL;
	ctx->n_handles = 0;
}
