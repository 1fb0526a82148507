/* SPDX-License-Identifier: BSD-3-Clause */
/* See fake_nic.h. Synchronisation: the doorbell is loaded with acquire (pairs
 * with the doorbell's store), the last word of a CQE is stored with release. */
#include "tests/device/fake_nic.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LKEY_HEAP 0x11223300u
#define LKEY_BUFFER 0x55667700u
#define RKEY_DATA(pe) (0xda000000u | (unsigned)(pe) << 8)
#define RKEY_SYNC(pe) (0x5c000000u | (unsigned)(pe) << 8)

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint64_t be64(const uint8_t *p)
{
	return (uint64_t)be32(p) << 32 | be32(p + 4);
}

static void *xalloc(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (!p) {
		fprintf(stderr, "out of memory\n");
		abort();
	}
	memset(p, 0, size);
	return p;
}

/* ---- execution ---- */

struct wqe {
	uint8_t raw[256]; /* linear copy */
	unsigned opcode, opmod, ds, ce, fm, blocks;
	uint64_t raddr;
	uint32_t rkey;
};

static uint8_t *block_at(const struct gdri_qp *qp, uint64_t i)
{
	return qp->sq + (i % qp->depth) * 64;
}

static int fetch(struct fake *f, struct fake_qp *q, struct wqe *w)
{
	const struct gdri_qp *qp = q->qp;
	unsigned i;

	memcpy(w->raw, block_at(qp, q->next), 64);
	w->ds = w->raw[7] & 0x3f;
	w->blocks = (w->ds + 3) / 4;
	if (!w->ds || w->blocks > 4 || be32(w->raw + 4) >> 8 != qp->qpn ||
	    (be32(w->raw) >> 8 & 0xffff) != (q->next & 0xffff)) {
		__atomic_fetch_add(&f->n_bad, 1, __ATOMIC_RELAXED);
		fprintf(stderr, "qp %x block %llu: not written: %08x %08x\n", qp->qpn,
			(unsigned long long)q->next, be32(w->raw), be32(w->raw + 4));
		return -1;
	}
	for (i = 1; i < w->blocks; i++)
		memcpy(w->raw + 64 * i, block_at(qp, q->next + i), 64);
	w->opmod = w->raw[0];
	w->opcode = w->raw[3];
	w->ce = w->raw[11] >> 2 & 3;
	w->fm = w->raw[11] >> 5;
	w->raddr = be64(w->raw + 16);
	w->rkey = be32(w->raw + 24);
	return 0;
}

/* Local memory of PE 0; NULL: protection error. */
static uint8_t *local_mem(struct fake *f, const uint8_t *seg, uint32_t *len)
{
	uint32_t lkey = be32(seg + 4);
	uint64_t addr = be64(seg + 8);

	*len = be32(seg);
	if (lkey == LKEY_HEAP && addr <= FAKE_HEAP && *len <= FAKE_HEAP - addr)
		return f->heap[0] + addr;
	if (lkey == LKEY_BUFFER && addr >= (uintptr_t)f->buffer &&
	    addr + *len <= (uintptr_t)f->buffer + 65536)
		return (uint8_t *)(uintptr_t)addr;
	return NULL;
}

static uint8_t *remote_mem(struct fake *f, int pe, const struct wqe *w, uint32_t len)
{
	if (w->rkey != RKEY_DATA(pe) && w->rkey != RKEY_SYNC(pe))
		return NULL;
	if (w->raddr > FAKE_HEAP || len > FAKE_HEAP - w->raddr)
		return NULL;
	return f->heap[pe] + w->raddr;
}

static void *copy_words(void *dst, const void *src, size_t len)
{
	/* single stores of 1, 2, 4 and 8 bytes, as flags are waited for */
	if (len == 8 && !((uintptr_t)dst & 7)) {
		uint64_t v;

		memcpy(&v, src, 8);
		__atomic_store_n((uint64_t *)dst, v, __ATOMIC_RELEASE);
	} else if (len == 4 && !((uintptr_t)dst & 3)) {
		uint32_t v;

		memcpy(&v, src, 4);
		__atomic_store_n((uint32_t *)dst, v, __ATOMIC_RELEASE);
	} else if (len == sizeof(((struct gdri_ctl *)0)->waits)) {
		size_t i; /* records of waits are read while their owner writes them */

		for (i = 0; i < len / 4; i++)
			__atomic_store_n((uint32_t *)dst + i,
					 __atomic_load_n((const uint32_t *)src + i, __ATOMIC_ACQUIRE),
					 __ATOMIC_RELEASE);
	} else {
		memcpy(dst, src, len);
	}
	return dst;
}

static int do_rdma(struct fake *f, int pe, const struct wqe *w)
{
	const uint8_t *seg = w->raw + 32;
	const uint8_t *src = seg + 4;
	uint32_t len = be32(seg);
	uint8_t *local, *remote;

	if (len & 0x80000000u) {
		len &= 0x7fffffffu;
		if (w->opcode != 0x08 || 32 + 4 + len > w->ds * 16)
			return 0x02;
	} else {
		local = local_mem(f, seg, &len);
		if (!local)
			return 0x04;
		src = local;
		if (w->opcode == 0x10) {
			remote = remote_mem(f, pe, w, len);
			if (!remote)
				return 0x13;
			copy_words(local, remote, len);
			return 0;
		}
	}
	remote = remote_mem(f, pe, w, len);
	if (!remote)
		return 0x13;
	copy_words(remote, src, len);
	return 0;
}

static uint64_t add_with_boundary(uint64_t a, uint64_t b, uint64_t boundary, unsigned bits)
{
	uint64_t r = 0, carry = 0, x, y;
	unsigned i;

	for (i = 0; i < bits; i++) {
		x = a >> i & 1;
		y = b >> i & 1;
		r |= (x ^ y ^ carry) << i;
		carry = (x & y) | (x & carry) | (y & carry);
		if (boundary >> i & 1)
			carry = 0;
	}
	return r;
}

static uint64_t new_value(const struct wqe *w, uint64_t old, unsigned size)
{
	const uint8_t *s = w->raw + 32;

	switch (w->opcode) {
	case 0x12:
		return old + be64(s);
	case 0x11:
		return old == be64(s + 8) ? be64(s) : old;
	case 0x15:
		if (size == 8)
			return add_with_boundary(old, be64(s), be64(s + 8), 64);
		return add_with_boundary(old, be32(s), be32(s + 4), 32);
	default:
		if (size == 8) {
			uint64_t swap = be64(s), cmp = be64(s + 8), sm = be64(s + 16),
				 cm = be64(s + 24);

			return ((old ^ cmp) & cm) ? old : (old & ~sm) | (swap & sm);
		} else {
			uint64_t swap = be32(s), cmp = be32(s + 4), sm = be32(s + 8),
				 cm = be32(s + 12);

			return ((old ^ cmp) & cm) ? old : (old & ~sm) | (swap & sm);
		}
	}
}

static int do_atomic(struct fake *f, int pe, const struct wqe *w)
{
	int masked = w->opcode == 0x14 || w->opcode == 0x15;
	unsigned size = masked && w->opmod == 0x08 ? 4 : 8;
	const uint8_t *seg = w->raw + (w->ds == 5 ? 64 : 48);
	uint64_t old, val;
	uint32_t len;
	uint8_t *local = local_mem(f, seg, &len), *remote;

	if ((masked && w->opmod != 0x08 && w->opmod != 0x09) || (!masked && w->opmod))
		return 0x02;
	if (len != size)
		return 0x01;
	if (!local)
		return 0x04;
	remote = remote_mem(f, pe, w, size);
	if (!remote)
		return 0x13;
	if (w->raddr % size)
		return 0x12;
	if (size == 8) {
		old = __atomic_load_n((uint64_t *)remote, __ATOMIC_RELAXED);
		while (!__atomic_compare_exchange_n((uint64_t *)remote, &old, new_value(w, old, 8),
						    0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			;
		val = old;
		if (be64(seg + 8) != offsetof(struct gdri_ctl, sink))
			__atomic_store_n((uint64_t *)local, val, __ATOMIC_RELAXED);
	} else {
		uint32_t o = __atomic_load_n((uint32_t *)remote, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n((uint32_t *)remote, &o,
						    (uint32_t)new_value(w, o, 4), 0,
						    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			;
		if (be64(seg + 8) != offsetof(struct gdri_ctl, sink)) /* 4-byte results: big-endian */
			__atomic_store_n((uint32_t *)local, __builtin_bswap32(o), __ATOMIC_RELAXED);
	}
	return 0;
}

static int execute(struct fake *f, int pe, const struct wqe *w)
{
	uint32_t len;

	switch (w->opcode) {
	case 0x00:
		return w->ds == 1 ? 0 : 0x02;
	case 0x08:
	case 0x10:
		return w->ds == 3 || w->ds == 4 ? do_rdma(f, pe, w) : 0x02;
	case 0x11:
	case 0x12:
	case 0x14:
	case 0x15:
		return do_atomic(f, pe, w);
	case 0x23:
		return w->ds == 2 && local_mem(f, w->raw + 16, &len) ? 0 : 0x04;
	default:
		return 0x02;
	}
}

/* ---- completion ---- */

static void put_word(void *p, uint32_t v, int order)
{
	if (order)
		__atomic_store_n((uint32_t *)p, v, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)p, v, __ATOMIC_RELAXED);
}

static void complete(struct fake_qp *q, const struct wqe *w, uint64_t index, unsigned syndrome,
		     unsigned vendor)
{
	struct gdri_qp *qp = q->qp;
	uint64_t n = qp->cq_mask ? (uint64_t)qp->cq_mask + 1 : 1;
	uint8_t *cqe = (uint8_t *)qp->cq + (qp->cq_mask ? q->n_cqe % n : 0) * 64;
	unsigned owner = qp->cq_mask ? q->n_cqe / n & 1 : 0;
	uint32_t idx = (uint32_t)index & 0xffff;

	put_word(cqe + 52, vendor << 16 | syndrome << 24, 0);
	put_word(cqe + 56, __builtin_bswap32(w->opcode << 24 | qp->qpn), 0);
	put_word(cqe + 60, idx >> 8 | (idx & 0xff) << 8 |
				   ((syndrome ? 13u : 0u) << 4 | owner) << 24, 1);
	q->n_cqe++;
}

struct fake_late {
	struct wqe w;
	uint64_t index, since;
	int pe;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void do_late(struct fake *f, struct fake_qp *q)
{
	struct fake_late *late = q->late;
	unsigned syndrome;

	if (!late)
		return;
	syndrome = (unsigned)execute(f, late->pe, &late->w);
	if (late->w.ce == 2 || syndrome)
		complete(q, &late->w, late->index, syndrome, 0);
	q->late = NULL;
	free(late);
}

/* 1: its effect and its CQE come later. */
static int put_off(struct fake *f, struct fake_qp *q, int pe, const struct wqe *w)
{
	if (!f->opt.late_atomics || q->late || (w->opcode != 0x12 && w->opcode != 0x14))
		return 0;
	q->late = xalloc(sizeof(*q->late));
	q->late->w = *w;
	q->late->index = q->next;
	q->late->since = now_ns();
	q->late->pe = pe;
	return 1;
}

static void step(struct fake *f, struct fake_qp *q, int pe)
{
	unsigned syndrome = 0, vendor = 0, each_us;
	struct wqe w;
	unsigned i;

	if (fetch(f, q, &w)) {
		q->next++;
		return;
	}
	if (q->failed) {
		syndrome = 0x05;
		vendor = 0xf9;
	} else if (q->fail_syndrome && q->next == q->fail_at) {
		syndrome = q->fail_syndrome;
		vendor = q->fail_vendor;
	} else {
		if (q->late && (w.fm || w.opcode != 0x08))
			do_late(f, q);
		if (put_off(f, q, pe, &w)) {
			__atomic_fetch_add(&f->n_wqe, 1, __ATOMIC_RELAXED);
			q->next += w.blocks;
			return;
		}
		syndrome = (unsigned)execute(f, pe, &w);
		if (q->late) {
			usleep(20); /* who waits for this one may look at the other */
			do_late(f, q);
		}
	}
	if (syndrome)
		q->failed = 1;
	else
		__atomic_fetch_add(&f->n_wqe, 1, __ATOMIC_RELAXED);
	/* who fetches these again before they are written anew shall be found out */
	for (i = 0; !syndrome && i < w.blocks; i++)
		memset(block_at(q->qp, q->next + i), 0xee, 64);
	if (f->opt.slow_us && rand_r(&f->rng) % 4 == 0)
		usleep((unsigned)rand_r(&f->rng) % f->opt.slow_us);
	each_us = __atomic_load_n(&f->opt.each_us, __ATOMIC_RELAXED); /* alone: pairs with nothing */
	if (each_us)
		usleep(each_us);
	if (w.ce == 2 || syndrome)
		complete(q, &w, q->next, syndrome, vendor);
	q->next += w.blocks;
}

static int serve(struct fake *f, struct fake_qp *q, int pe)
{
	struct gdri_qp *qp = q->qp;
	uint64_t db = __atomic_load_n(qp->db, __ATOMIC_ACQUIRE);
	uint32_t pi, rec, dist;

	if (q->late && now_ns() - q->late->since > 200000)
		do_late(f, q);
	if (!db)
		return 0;
	pi = __builtin_bswap32((uint32_t)db) >> 8 & 0xffff;
	rec = __builtin_bswap32(__atomic_load_n(qp->dbrec, __ATOMIC_ACQUIRE));
	dist = (pi - (uint32_t)q->next) & 0xffff;
	if (!dist || dist > qp->depth)
		return 0;
	/* the record is written before the doorbell: never behind it */
	if (((rec - pi) & 0xffff) > qp->depth || rec > 0xffff ||
	    __builtin_bswap32((uint32_t)(db >> 32)) >> 8 != qp->qpn)
		__atomic_fetch_add(&f->n_bad, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&f->n_rings, 1, __ATOMIC_RELAXED);
	while (((pi - (uint32_t)q->next) & 0xffff) != 0 &&
	       ((pi - (uint32_t)q->next) & 0xffff) <= qp->depth)
		step(f, q, pe);
	return 1;
}

static void *run(void *arg)
{
	struct fake *f = arg;
	unsigned i, n = (unsigned)f->opt.n_pes * f->opt.n_slots;
	int busy;

	while (!__atomic_load_n(&f->stop, __ATOMIC_ACQUIRE)) {
		busy = 0;
		if (!__atomic_load_n(&f->hold, __ATOMIC_ACQUIRE))
			for (i = 0; i < n; i++)
				busy |= serve(f, &f->qps[i], (int)(i / f->opt.n_slots));
		if (busy)
			continue;
		__atomic_fetch_add(&f->n_idle, 1, __ATOMIC_RELEASE); /* pairs with fake_settle */
		sched_yield();
	}
	return NULL;
}

/* ---- set-up ---- */

static void set_up_qp(struct fake *f, unsigned i)
{
	struct gdri_qp *qp = &f->dev->qps[i];
	unsigned n_cqe = f->opt.ring ? f->opt.depth : 1;
	int pe = (int)(i / f->opt.n_slots);

	f->qps[i].qp = qp;
	f->qps[i].next = f->opt.start;
	qp->sq = xalloc((size_t)f->opt.depth * 64);
	memset(qp->sq, 0xee, (size_t)f->opt.depth * 64);
	qp->cq = xalloc((size_t)n_cqe * 64);
	memset(qp->cq, 0xff, (size_t)n_cqe * 64);
	qp->db = xalloc(64);
	qp->dbrec = xalloc(64);
	qp->dbrec++;
	qp->qpn = 0x4200 + i;
	qp->qpn_shifted = __builtin_bswap32(qp->qpn << 8);
	qp->depth = f->opt.depth;
	qp->cq_mask = f->opt.ring ? f->opt.depth - 1 : 0;
	qp->peer = pe;
	qp->slot = i % f->opt.n_slots;
	qp->rkey_data.be = __builtin_bswap32(RKEY_DATA(pe));
	qp->rkey_sync.be = __builtin_bswap32(RKEY_SYNC(pe));
	qp->rsvd = qp->done = qp->limit = f->opt.start;
	qp->ready = f->opt.start << 1;
}

static void set_up_dev(struct fake *f)
{
	unsigned n = (unsigned)f->opt.n_pes * f->opt.n_slots;
	struct gdri_dev *dev = f->dev;
	int i;

	dev->abi_version = GDR_ABI_VERSION;
	dev->struct_size = sizeof(*dev);
	dev->n_pes = f->opt.n_pes;
	dev->n_slots = f->opt.n_slots;
	dev->flags = f->opt.flags;
	dev->heap = f->heap[0];
	dev->heap_size = FAKE_HEAP;
	dev->own_size = FAKE_USER;
	dev->ctl = (struct gdri_ctl *)f->heap[0];
	dev->peers = (struct gdri_peer *)xalloc(sizeof(*dev->peers) * (GDRI_MAX_PES + 2)) + 1;
	for (i = 0; f->opt.mapped && i < f->opt.n_pes; i++)
		dev->peers[i].base = f->heap[i];
	dev->qps = xalloc(sizeof(*dev->qps) * n);
	dev->n_queues = n;
	dev->used = xalloc((n + 63) / 64 * 8);
	dev->lkey.be = __builtin_bswap32(LKEY_HEAP);
	dev->timeout_ns = (f->opt.timeout_ms ? f->opt.timeout_ms : 20000) * 1000000ull;
	dev->errors = xalloc(sizeof(*dev->errors) * GDRI_MAX_ERRORS);
	dev->buffers = xalloc(sizeof(*dev->buffers) * GDRI_MAX_BUFFERS);
	dev->abort = xalloc(sizeof(*dev->abort));
	if (f->opt.buffer) {
		dev->buffers[0].addr = (uintptr_t)f->buffer;
		dev->buffers[0].len = 65536;
		dev->buffers[0].lkey.be = __builtin_bswap32(LKEY_BUFFER);
		dev->n_buffers = 1;
	}
}

struct fake *fake_start(const struct fake_options *opt)
{
	struct fake *f = xalloc(sizeof(*f));
	unsigned i;

	f->opt = *opt;
	f->rng = 12345;
	f->dev = xalloc(sizeof(*f->dev));
	f->buffer = xalloc(65536);
	f->heap = xalloc(sizeof(*f->heap) * (size_t)opt->n_pes);
	for (i = 0; i < (unsigned)opt->n_pes; i++)
		f->heap[i] = xalloc(FAKE_HEAP);
	set_up_dev(f);
	f->qps = xalloc(sizeof(*f->qps) * (unsigned)opt->n_pes * opt->n_slots + 1);
	for (i = 0; i < (unsigned)opt->n_pes * opt->n_slots; i++)
		set_up_qp(f, i);
	gdri_dev_state = f->dev;
	if (pthread_create(&f->thread, NULL, run, f)) {
		fprintf(stderr, "pthread_create failed\n");
		abort();
	}
	return f;
}

void fake_hold(struct fake *f, int hold)
{
	__atomic_store_n(&f->hold, hold, __ATOMIC_RELEASE);
}

/* The round of now may have passed the queue that was rung; the next one has not. */
void fake_settle(struct fake *f)
{
	uint64_t n = __atomic_load_n(&f->n_idle, __ATOMIC_ACQUIRE);

	/* pairs with the release in run() */
	while (__atomic_load_n(&f->n_idle, __ATOMIC_ACQUIRE) < n + 2 && !__atomic_load_n(&f->hold, __ATOMIC_RELAXED))
		sched_yield();
}

void fake_stop(struct fake *f)
{
	unsigned i;

	__atomic_store_n(&f->stop, 1, __ATOMIC_RELEASE);
	pthread_join(f->thread, NULL);
	gdri_dev_state = NULL;
	for (i = 0; i < (unsigned)f->opt.n_pes * f->opt.n_slots; i++) {
		free(f->qps[i].late);
		free(f->dev->qps[i].sq);
		free(f->dev->qps[i].cq);
		free(f->dev->qps[i].db);
		free(f->dev->qps[i].dbrec - 1);
	}
	for (i = 0; i < (unsigned)f->opt.n_pes; i++)
		free(f->heap[i]);
	free(f->dev->peers - 1);
	free(f->dev->qps);
	free(f->dev->used);
	free(f->dev->errors);
	free(f->dev->buffers);
	free(f->dev->abort);
	free(f->dev);
	free(f->buffer);
	free(f->heap);
	free(f->qps);
	free(f);
}
