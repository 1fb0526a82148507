/* SPDX-License-Identifier: BSD-3-Clause */
/* The program's side of the data path, and the few functions that the control
 * half would give to the data half. */
#include "sim.h"

#include <endian.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softhca/gpu/cuda_api.h"

enum { MAX_MR = 256, UAR_PAGES = 16, CQ_LOG = 10, RQ_LOG = 6, RQ_SHIFT = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int waiters;
static struct hca_mr mrs[MAX_MR];
static unsigned n_mr;
static uint8_t *uar;
static unsigned n_qp;
static unsigned async_events, port_events[2];

/* ---- what the control half provides ---- */

/* No test here has a driver. */
void *cuda_real_symbol(void *lib, const char *name)
{
	(void)lib;
	(void)name;
	return NULL;
}

void hca_lock(void)
{
	__atomic_add_fetch(&waiters, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&mutex);
	__atomic_sub_fetch(&waiters, 1, __ATOMIC_RELAXED);
}

void hca_lock_engine(void)
{
	while (hca_lock_wanted())
		sched_yield();
	pthread_mutex_lock(&mutex);
}

bool hca_lock_wanted(void)
{
	return __atomic_load_n(&waiters, __ATOMIC_RELAXED) != 0;
}

bool hca_trylock(void)
{
	return !hca_lock_wanted() && !pthread_mutex_trylock(&mutex);
}

void hca_unlock(void)
{
	pthread_mutex_unlock(&mutex);
}

struct hca_mr *hca_find_mr(uint32_t key)
{
	uint32_t i = key >> 8;

	return i < n_mr && mrs[i].key == key ? &mrs[i] : NULL;
}

struct hca_mr *hca_find_mr_by_index(uint32_t key)
{
	return key >> 8 < n_mr ? &mrs[key >> 8] : NULL;
}

uint8_t *hca_uar_page(uint32_t page)
{
	return page < UAR_PAGES ? uar + page * 4096 : NULL;
}

uint32_t hca_uar_pages_used(void)
{
	return UAR_PAGES;
}

/* No page here is one of a device file. */
bool hca_uar_mappings(bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg)
{
	(void)fn;
	(void)arg;
	return false;
}

void hca_events_timer(void)
{
}

void hca_comp_event(struct hca_cq *cq)
{
	cq->comp_events++;
}

void hca_async_cq_event(struct hca_cq *cq, uint32_t type)
{
	(void)cq;
	(void)type;
}

void hca_async_srq_event(struct hca_srq *srq, uint32_t type)
{
	(void)srq;
	(void)type;
	__atomic_add_fetch(&async_events, 1, __ATOMIC_RELAXED);
}

void hca_async_qp_event(struct hca_qp *qp, uint32_t type)
{
	(void)qp;
	(void)type;
	__atomic_add_fetch(&async_events, 1, __ATOMIC_RELAXED);
}

void hca_async_port_event(enum hca_port_event event)
{
	__atomic_add_fetch(&port_events[event == HCA_PORT_ERR], 1, __ATOMIC_RELAXED);
}

/* ---- objects ---- */

static void *alloc(size_t n)
{
	void *p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095);

	if (!p)
		abort();
	memset(p, 0, (n + 4095) & ~(size_t)4095);
	return p;
}

void sim_init_idle(void)
{
	uar = alloc(UAR_PAGES * 4096);
}

void sim_init(void)
{
	sim_init_idle();
	if (engine_start()) {
		fprintf(stderr, "engine did not start\n");
		exit(1);
	}
}

uint32_t sim_mr(void *va, uint64_t len, uint32_t access, uint32_t pdn, uint64_t iova)
{
	struct hca_mr *mr;

	hca_lock();
	if (n_mr == MAX_MR)
		abort();
	mr = &mrs[n_mr];
	*mr = (struct hca_mr){ .key = n_mr << 8 | 0x5a, .pdn = pdn, .access = access,
			       .iova = iova, .len = len, .va = va };
	n_mr++;
	hca_unlock();
	return mr->key;
}

uint8_t *sim_memory(uint64_t len, uint32_t access, uint32_t *key)
{
	uint8_t *mem = aligned_alloc(4096, len);

	if (!mem)
		abort();
	memset(mem, 0, len);
	*key = sim_mr(mem, len, access, 1, (uint64_t)(uintptr_t)mem);
	return mem;
}

uint32_t sim_window(enum hca_window type, uint32_t pdn)
{
	uint32_t key = sim_mr(NULL, 0, 0, pdn, 0);

	hca_find_mr(key)->window = type;
	return key;
}

void sim_mr_remove(uint32_t key)
{
	hca_lock();
	mrs[key >> 8].key = 0;
	hca_unlock();
}

static void init_cq(struct hca_cq *cq, uint32_t cqn, uint32_t *dbrec, enum sim_cq_mode mode)
{
	*cq = (struct hca_cq){ .cqn = cqn, .cqe_size = 64, .dbrec = dbrec, .armed_word = ~0u,
			       .log_size = mode == SIM_CQ_ONE ? 0 : CQ_LOG,
			       .collapsed = mode != SIM_CQ_RING,
			       .overrun_ignore = mode != SIM_CQ_RING };
	cq->buf = alloc((size_t)64 << cq->log_size);
	for (size_t i = 0; i < (size_t)1 << cq->log_size; i++)
		cq->buf[i * 64 + 63] = 0xf1; /* invalid, owned by hardware */
}

struct sim_qp *sim_qp(unsigned log_sq, enum sim_cq_mode mode)
{
	return sim_qp_as(HCA_QP_RC, log_sq, mode);
}

struct sim_qp *sim_qp_as(enum hca_qp_type type, unsigned log_sq, enum sim_cq_mode mode)
{
	struct sim_qp *q = calloc(1, sizeof(*q));
	static uint32_t next;

	q->dbrec = alloc(64);
	q->uar = uar + (n_qp++ % UAR_PAGES) * 4096 + 0x800;
	hca_lock();
	q->qp = (struct hca_qp){ .type = type, .qpn = dp_first_qpn() + 0x100 + next++, .pdn = 1,
				 .user_index = 0x4242, .log_sq_size = log_sq, .rq_cnt = 1 << RQ_LOG,
				 .rq_shift = RQ_SHIFT, .dbrec = q->dbrec, .mtu = 1024,
				 .ack_timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
				 .min_rnr_timer = 1, .max_rd_atomic = 16, .max_dest_rd_atomic = 16,
				 .access = HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC,
				 .atomic_mode = HCA_ATOMIC_UP_TO_8B };
	q->qp.sq = alloc((size_t)64 << log_sq);
	q->qp.rq = alloc((size_t)1 << (RQ_LOG + RQ_SHIFT));
	init_cq(&q->scq, 2 * next, q->dbrec + 2, mode);
	init_cq(&q->rcq, 2 * next + 1, q->dbrec + 4, SIM_CQ_RING);
	q->qp.scq = &q->scq;
	q->qp.rcq = &q->rcq;
	if (dp_qp_create(&q->qp))
		abort();
	hca_unlock();
	return q;
}

void sim_qp_free(struct sim_qp *q)
{
	hca_lock();
	dp_qp_destroy(&q->qp);
	dp_cq_destroy(&q->scq);
	dp_cq_destroy(&q->rcq);
	hca_unlock();
	free(q->qp.sq);
	free(q->qp.rq);
	free(q->scq.buf);
	free(q->rcq.buf);
	free(q->dbrec);
	free(q);
}

static void modify(struct hca_qp *qp, enum hca_qp_state to)
{
	enum hca_qp_state from = qp->state;

	qp->state = to;
	dp_qp_modified(qp, from);
}

void sim_connect(struct sim_qp *q, uint32_t dest_qpn)
{
	hca_lock();
	q->qp.dest_qpn = dest_qpn;
	q->qp.path.dgid = dp_gid(0);
	modify(&q->qp, HCA_QPS_INIT);
	modify(&q->qp, HCA_QPS_RTR);
	modify(&q->qp, HCA_QPS_RTS);
	hca_unlock();
}

void sim_listen(struct sim_qp *q)
{
	hca_lock();
	modify(&q->qp, HCA_QPS_INIT);
	modify(&q->qp, HCA_QPS_RTR);
	hca_unlock();
}

void sim_reset(struct sim_qp *q)
{
	hca_lock();
	modify(&q->qp, HCA_QPS_RST);
	q->dbrec[0] = q->dbrec[1] = 0;
	q->pi = q->rq_pi = 0;
	hca_unlock();
}

void sim_pair(struct sim_qp *a, struct sim_qp *b)
{
	sim_connect(a, b->qp.qpn);
	sim_connect(b, a->qp.qpn);
}

/* ---- posting ---- */

static uint8_t *ring_seg(struct sim_qp *q, unsigned i)
{
	size_t size = (size_t)64 << q->qp.log_sq_size;

	return q->qp.sq + (((size_t)q->pi * 64 + i * 16) & (size - 1));
}

/* Segment i of the next WQE, not counting the address vector of a datagram. */
static uint8_t *seg(struct sim_qp *q, unsigned i)
{
	i += i ? q->av : 0;
	return ring_seg(q, i);
}

static void be32_at(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

static void be64_at(uint8_t *p, uint64_t v)
{
	v = htobe64(v);
	memcpy(p, &v, 8);
}

static void ctrl(struct sim_qp *q, unsigned opmod, uint8_t opcode, unsigned ds, int ce,
		 uint32_t imm)
{
	uint8_t *s = seg(q, 0);

	ds += q->av;
	be32_at(s, opmod << 24 | (q->pi & 0xffff) << 8 | opcode);
	be32_at(s + 4, q->qp.qpn << 8 | ds);
	be32_at(s + 8, (ce ? 8u : 0) | q->fence);
	be32_at(s + 12, imm);
	q->pi += (ds + 3) / 4;
}

static void raddr_seg(struct sim_qp *q, uint64_t raddr, uint32_t rkey)
{
	be64_at(seg(q, 1), raddr);
	be32_at(seg(q, 1) + 8, rkey);
	be32_at(seg(q, 1) + 12, 0);
}

static void data_seg(struct sim_qp *q, unsigned i, const void *p, uint32_t len, uint32_t lkey)
{
	be32_at(seg(q, i), len);
	be32_at(seg(q, i) + 4, lkey);
	be64_at(seg(q, i) + 8, (uint64_t)(uintptr_t)p);
}

static void rdma(struct sim_qp *q, uint8_t opcode, uint64_t raddr, uint32_t rkey, const void *p,
		 uint32_t len, uint32_t lkey, uint32_t imm, int ce)
{
	raddr_seg(q, raddr, rkey);
	if (len)
		data_seg(q, 2, p, len, lkey);
	ctrl(q, 0, opcode, len ? 3 : 2, ce, imm);
}

void sim_write(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len,
	       uint32_t lkey, int ce)
{
	rdma(q, WQE_WRITE, raddr, rkey, src, len, lkey, 0, ce);
}

void sim_write_imm(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len,
		   uint32_t lkey, uint32_t imm, int ce)
{
	rdma(q, WQE_WRITE_IMM, raddr, rkey, src, len, lkey, imm, ce);
}

void sim_read(struct sim_qp *q, uint64_t raddr, uint32_t rkey, void *dst, uint32_t len,
	      uint32_t lkey, int ce)
{
	rdma(q, WQE_READ, raddr, rkey, dst, len, lkey, 0, ce);
}

/* The inline segment as i-th; the index behind it. */
static unsigned inline_seg(struct sim_qp *q, unsigned i, const uint8_t *p, uint32_t len)
{
	be32_at(seg(q, i), 0x80000000u | len);
	for (uint32_t k = 0; k < len; k++)
		seg(q, i + (4 + k) / 16)[(4 + k) % 16] = p[k];
	return i + (4 + len + 15) / 16;
}

void sim_inline(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len,
		int ce)
{
	raddr_seg(q, raddr, rkey);
	ctrl(q, 0, WQE_WRITE, inline_seg(q, 2, src, len), ce, 0);
}

void sim_mixed(struct sim_qp *q, uint64_t raddr, uint32_t rkey, const void *src, uint32_t head,
	       uint32_t len, uint32_t lkey, int ce)
{
	unsigned i;

	raddr_seg(q, raddr, rkey);
	i = inline_seg(q, 2, src, head);
	data_seg(q, i, (const uint8_t *)src + head, len - head, lkey);
	ctrl(q, 0, WQE_WRITE, i + 1, ce, 0);
}

void sim_send(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, int ce)
{
	data_seg(q, 1, src, len, lkey);
	ctrl(q, 0, WQE_SEND, len ? 2 : 1, ce, 0);
}

void sim_send_imm(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, uint32_t imm,
		  int ce)
{
	data_seg(q, 1, src, len, lkey);
	ctrl(q, 0, WQE_SEND_IMM, len ? 2 : 1, ce, imm);
}

void sim_send_inv(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, uint32_t rkey,
		  int ce)
{
	data_seg(q, 1, src, len, lkey);
	ctrl(q, 0, WQE_SEND_INV, len ? 2 : 1, ce, rkey);
}

void sim_umr(struct sim_qp *q, uint32_t window, bool bind, uint32_t lkey, const void *at, uint64_t len,
	     uint32_t access)
{
	for (unsigned i = 1; i < 12; i++)
		memset(ring_seg(q, i), 0, 16);
	ring_seg(q, 1)[0] = 0x80; /* inline */
	be64_at(ring_seg(q, 1) + 8, 1ull << 29 | 1ull << 14 | 1ull << 13 | (bind ? 0x3c0041 : 0));
	ring_seg(q, 4)[0] = bind ? 0 : 0x40; /* free */
	ring_seg(q, 4)[2] = (uint8_t)((access & HCA_REMOTE_ATOMIC ? 0x40 : 0) |
				      (access & HCA_REMOTE_WRITE ? 0x20 : 0) |
				      (access & HCA_REMOTE_READ ? 0x10 : 0));
	be32_at(ring_seg(q, 4) + 4, q->qp.qpn << 8 | (window & 0xff));
	be64_at(ring_seg(q, 5), (uint64_t)(uintptr_t)at);
	be64_at(ring_seg(q, 5) + 8, len);
	if (bind)
		data_seg(q, 8, at, (uint32_t)len, lkey);
	ctrl(q, 0, WQE_UMR, bind ? 12 : 8, 1, window);
}

void sim_to(struct sim_qp *q, uint32_t dqpn, uint64_t key)
{
	struct in6_addr gid = dp_gid(0);

	q->av = 3;
	for (unsigned i = 1; i <= 3; i++)
		memset(ring_seg(q, i), 0, 16);
	be64_at(ring_seg(q, 1), key);
	be32_at(ring_seg(q, 1) + 8, dqpn | 1u << 31);
	memcpy(ring_seg(q, 3), &gid, 16);
}

void sim_nop(struct sim_qp *q, int ce)
{
	ctrl(q, 0, WQE_NOP, 1, ce, 0);
}

void sim_wait(struct sim_qp *q, uint32_t cqn, uint32_t index, int ce)
{
	memset(ring_seg(q, 1), 0, 8);
	be32_at(ring_seg(q, 1) + 8, index);
	be32_at(ring_seg(q, 1) + 12, cqn);
	ctrl(q, 0, WQE_WAIT, 2, ce, 0);
}

void sim_dump(struct sim_qp *q, const void *src, uint32_t len, uint32_t lkey, int ce)
{
	data_seg(q, 1, src, len, lkey);
	ctrl(q, 0, WQE_DUMP, 2, ce, 0);
}

static void plain_atomic(struct sim_qp *q, uint8_t opcode, uint64_t raddr, uint32_t rkey, void *dst,
			 uint32_t lkey, uint64_t operand, uint64_t compare, int ce)
{
	raddr_seg(q, raddr, rkey);
	be64_at(seg(q, 2), operand);
	be64_at(seg(q, 2) + 8, compare);
	data_seg(q, 3, dst, 8, lkey);
	ctrl(q, 0, opcode, 4, ce, 0);
}

void sim_fetch_add(struct sim_qp *q, uint64_t raddr, uint32_t rkey, void *dst, uint32_t lkey,
		   uint64_t add, int ce)
{
	plain_atomic(q, WQE_FETCH_ADD, raddr, rkey, dst, lkey, add, 0, ce);
}

void sim_cmp_swap(struct sim_qp *q, uint64_t raddr, uint32_t rkey, void *dst, uint32_t lkey,
		  uint64_t compare, uint64_t swap, int ce)
{
	plain_atomic(q, WQE_CMP_SWAP, raddr, rkey, dst, lkey, swap, compare, ce);
}

/* operands: add, boundary | swap, compare, swap mask, compare mask */
void sim_masked(struct sim_qp *q, bool add, unsigned size, uint64_t raddr, uint32_t rkey, void *dst,
		uint32_t lkey, const uint64_t v[4], int ce)
{
	bool two = !add && size == 8;
	unsigned n = add ? 2 : 4;

	raddr_seg(q, raddr, rkey);
	memset(seg(q, 2), 0, 16);
	for (unsigned i = 0; i < n; i++) {
		if (size == 4)
			be32_at(seg(q, 2) + 4 * i, (uint32_t)v[i]);
		else
			be64_at(seg(q, 2 + i / 2) + 8 * (i % 2), v[i]);
	}
	data_seg(q, two ? 4 : 3, dst, size, lkey);
	ctrl(q, size == 4 ? 8 : 9, add ? WQE_MASKED_FETCH_ADD : WQE_MASKED_CMP_SWAP, two ? 5 : 4,
	     ce, 0);
}

void sim_raw(struct sim_qp *q, const uint8_t *bytes, unsigned segments)
{
	for (unsigned i = 0; i < segments; i++)
		memcpy(ring_seg(q, i), bytes + 16 * i, 16);
	q->pi += (segments + 3) / 4;
}

void sim_recv(struct sim_qp *q, void *dst, uint32_t len, uint32_t lkey)
{
	uint8_t *w = q->qp.rq + ((size_t)(q->rq_pi++ % q->qp.rq_cnt) << RQ_SHIFT);

	be32_at(w, len);
	be32_at(w + 4, lkey);
	be64_at(w + 8, (uint64_t)(uintptr_t)dst);
	be32_at(w + 16, 0);
	be32_at(w + 20, 0x100);
	/* Release: pairs with the responder's acquire of the record. */
	__atomic_store_n(&q->dbrec[0], htobe32(q->rq_pi & 0xffff), __ATOMIC_RELEASE);
}

void sim_ring(struct sim_qp *q)
{
	uint8_t b[8];
	uint64_t v;

	/* Release both: pair with the engine's acquire loads. */
	__atomic_store_n(&q->dbrec[1], htobe32(q->pi & 0xffff), __ATOMIC_RELEASE);
	if (q->no_uar)
		return;
	be32_at(b, (q->pi & 0xffff) << 8);
	be32_at(b + 4, q->qp.qpn << 8);
	memcpy(&v, b, 8);
	__atomic_store_n((uint64_t *)(void *)q->uar, v, __ATOMIC_RELEASE);
}

/* ---- completions ---- */

uint64_t sim_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void decode(const uint8_t *e, uint64_t tail, struct sim_cqe *c)
{
	uint8_t t[8];
	uint32_t v;

	memcpy(t, &tail, 8);
	c->type = t[7] >> 4;
	c->opcode = t[0];
	c->qpn = (uint32_t)t[1] << 16 | (uint32_t)t[2] << 8 | t[3];
	c->counter = (uint16_t)(t[4] << 8 | t[5]);
	c->vendor = e[54];
	c->syndrome = e[55];
	memcpy(&v, e + 24, 4);
	c->flags_rqpn = be32toh(v);
	memcpy(&v, e + 32, 4);
	c->uidx = be32toh(v);
	memcpy(&v, e + 36, 4);
	c->imm = be32toh(v);
	memcpy(&v, e + 44, 4);
	c->byte_cnt = be32toh(v);
}

static bool poll_cq(struct hca_cq *cq, uint32_t *ci, struct sim_cqe *c)
{
	const uint8_t *e = cq->buf + (size_t)(*ci & ((1u << cq->log_size) - 1)) * 64;
	/* Acquire: pairs with the release of the CQE's last word. */
	uint64_t tail = __atomic_load_n((const uint64_t *)(const void *)(e + 56), __ATOMIC_ACQUIRE);
	uint8_t op_own = (uint8_t)(tail >> 56);

	if (op_own >> 4 == 0xf || (op_own & 1) != ((*ci >> cq->log_size) & 1))
		return false;
	decode(e, tail, c);
	++*ci;
	__atomic_store_n(&cq->dbrec[0], htobe32(*ci & 0xffffff), __ATOMIC_RELEASE);
	return true;
}

static bool wait_cq(struct hca_cq *cq, uint32_t *ci, struct sim_cqe *c, unsigned ms)
{
	uint64_t end = 0;

	for (unsigned spins = 0;; spins++) {
		if (poll_cq(cq, ci, c))
			return true;
		if (spins % 256)
			continue;
		if (!end)
			end = sim_now() + ms * 1000000ull;
		else if (sim_now() > end)
			return false;
		if (spins > 20000) {
			struct timespec t = { .tv_nsec = 20000 };

			nanosleep(&t, NULL);
		}
	}
}

bool sim_look(struct sim_qp *q, struct sim_cqe *c)
{
	return poll_cq(&q->scq, &q->ci, c);
}

bool sim_poll(struct sim_qp *q, struct sim_cqe *c, unsigned ms)
{
	return wait_cq(&q->scq, &q->ci, c, ms);
}

bool sim_poll_recv(struct sim_qp *q, struct sim_cqe *c, unsigned ms)
{
	return wait_cq(&q->rcq, &q->rcq_ci, c, ms);
}

bool sim_wait_counter(struct sim_qp *q, uint16_t counter, struct sim_cqe *c, unsigned ms)
{
	uint64_t end = sim_now() + ms * 1000000ull;

	while (sim_now() < end) {
		uint64_t tail = __atomic_load_n((uint64_t *)(void *)(q->scq.buf + 56),
						__ATOMIC_ACQUIRE); /* as in poll_cq */

		memset(c, 0, sizeof(*c));
		c->type = (uint8_t)(tail >> 60);
		c->counter = be16toh((uint16_t)(tail >> 32));
		if (c->type != 0xf && c->counter == counter)
			return true;
	}
	return false;
}

unsigned sim_async_events(void)
{
	return __atomic_load_n(&async_events, __ATOMIC_RELAXED);
}

unsigned sim_port_events(bool down)
{
	return __atomic_load_n(&port_events[down], __ATOMIC_RELAXED);
}
