// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs in one process, and posting by hand. */
#define _GNU_SOURCE /* memfd_create */
#include "tests/nic/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

void pair_options(struct gdri_options *opt, const char *const *settings)
{
	static char *const empty[] = {NULL};
	static const char *const passed[] = {"OFI_PROVIDER", "OFI_DOMAIN"}; /* by the environment of a test */
	char name[64], why[256] = "no '='";
	const char *eq;
	size_t i;

	gdri_options_read(opt, empty);
	for (i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		snprintf(name, sizeof(name), "GDR_%s", passed[i]);
		eq = getenv(name);
		if (eq && gdri_option_set(opt, passed[i], eq, why, sizeof(why)))
			abort();
	}
	for (; settings && *settings; settings++) {
		eq = strchr(*settings, '=');
		snprintf(name, sizeof(name), "%.*s", (int)(eq ? eq - *settings : 0), *settings);
		if (!eq || gdri_option_set(opt, name, eq + 1, why, sizeof(why))) {
			fprintf(stderr, "bad setting %s: %s\n", *settings, why);
			abort();
		}
	}
}

/* As heaps are: at a page of any host (softhca can have 64 KiB ones). */
void *pair_map(int fd, size_t len)
{
	size_t most = 65536;
	uint8_t *room = mmap(NULL, len + most, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (room == MAP_FAILED)
		return MAP_FAILED;
	room += (most - (uintptr_t)room % most) % most;
	return mmap(room, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
}

static int end_up(struct pair *p, struct pair_end *e, const struct gdri_options *opt)
{
	size_t n = PAIR_PES * p->opt.qps_per_pe;
	int ret;

	p->failed = 1;
	e->fd = memfd_create("pair", MFD_CLOEXEC);
	e->heap = MAP_FAILED;
	if (e->fd >= 0 && !ftruncate(e->fd, PAIR_HEAP))
		e->heap = pair_map(e->fd, PAIR_HEAP);
	e->buffer = aligned_alloc(4096, 4096);
	e->qps = aligned_alloc(GDRI_LINE, n * sizeof(*e->qps));
	if (e->heap == MAP_FAILED || !e->buffer || !e->qps)
		return -GDR_ENOMEM;
	memset(e->qps, 0, n * sizeof(*e->qps));
	p->failed = 2;
	ret = PAIR_OPS.open(&(struct gdri_net_how){.opt = opt}, &e->nic);
	if (ret)
		return ret;
	p->failed = 3;
	ret = e->nic->ops->register_heap(e->nic, e->heap, PAIR_HEAP, NULL, 0, &e->keys);
	if (ret)
		return ret;
	p->failed = 4;
	ret = e->nic->ops->register_buffer(e->nic, e->buffer, 4096, &e->buffer_lkey, NULL, &e->buffer_handle);
	if (ret)
		return ret;
	p->failed = 5;
	return e->nic->ops->create_queues(e->nic, PAIR_PES, e->qps);
}

static int connect_all(struct pair *p)
{
	size_t len = p->pe[0].nic->address_bytes;
	uint8_t *all = malloc(PAIR_PES * len);
	int i, ret = 0;

	p->failed = 6;
	if (!all)
		return -GDR_ENOMEM;
	for (i = 0; i < PAIR_PES; i++)
		p->pe[i].nic->ops->address(p->pe[i].nic, all + (size_t)i * len);
	for (i = 0; i < PAIR_PES && !ret; i++)
		ret = p->pe[i].nic->ops->connect(p->pe[i].nic, all, i, PAIR_PES, p->pe[i].qps);
	free(all);
	return ret;
}

int pair_up(struct pair *p, const struct gdri_options *opt, const struct gdri_options *other)
{
	int i, ret = 0;

	memset(p, 0, sizeof(*p));
	p->opt = *opt;
	for (i = 0; i < PAIR_PES && !ret; i++)
		ret = end_up(p, &p->pe[i], i && other ? other : opt);
	if (!ret)
		ret = connect_all(p);
	if (!ret)
		p->failed = 0;
	return ret;
}

void pair_down(struct pair *p)
{
	int i;

	for (i = 0; i < PAIR_PES; i++) {
		struct pair_end *e = &p->pe[i];

		PAIR_OPS.close(e->nic);
		if (e->heap && e->heap != MAP_FAILED)
			munmap(e->heap, PAIR_HEAP);
		if (e->heap && e->fd >= 0) /* heap NULL: never begun */
			close(e->fd);
		free(e->buffer);
		free(e->qps);
	}
	memset(p, 0, sizeof(*p));
}

static void put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

static void put64(uint8_t *p, uint64_t v)
{
	v = __builtin_bswap64(v);
	memcpy(p, &v, 8);
}

/* Operands of atomics from byte 32 on; returns the number of segments they take. */
static uint32_t put_operands(uint8_t *w, const struct pair_request *r)
{
	int i, four = r->opmod == GDRI_OPMOD_ATOMIC_4B;

	if (four) {
		for (i = 0; i < 4; i++)
			put32(w + 32 + 4 * i, (uint32_t)r->args[i]);
		return 1;
	}
	for (i = 0; i < 4; i++)
		put64(w + 32 + 8 * i, r->args[i]);
	return r->opcode == GDRI_OP_MASKED_CS ? 2 : 1;
}

static uint32_t put_wqe(uint8_t *w, const struct gdri_qp *qp, const struct pair_request *r)
{
	uint32_t ds = 2;

	memset(w, 0, 128);
	put64(w + 16, r->raddr);
	put32(w + 24, r->rkey);
	if (r->inline_data) {
		put32(w + 32, r->len | GDRI_INLINE_BIT);
		memcpy(w + 36, r->inline_data, r->len);
		ds += (4 + r->len + 15) / 16;
	} else {
		if (r->opcode != GDRI_OP_WRITE && r->opcode != GDRI_OP_READ)
			ds += put_operands(w, r);
		put32(w + 16 * ds, r->len);
		put32(w + 16 * ds + 4, r->lkey);
		put64(w + 16 * ds + 8, r->laddr);
		ds++;
	}
	put32(w, r->opmod << 24 | (uint32_t)(qp->rsvd & 0xffff) << 8 | r->opcode);
	put32(w + 4, qp->qpn << 8 | ds);
	w[11] = GDRI_CE_ALWAYS;
	return ds;
}

/* A locked instruction, which also empties write-combining buffers. Not a fence: the thread
 * sanitizer does not know fences. */
static void full_barrier(void)
{
	static int word;

	__atomic_exchange_n(&word, 0, __ATOMIC_SEQ_CST);
}

static void ring(struct gdri_qp *qp, uint64_t first_dwords)
{
	/* Release: pairs with the NIC's read of the record before that of the blocks. */
	if (qp->dbrec)
		__atomic_store_n(qp->dbrec, __builtin_bswap32((uint32_t)qp->rsvd & 0xffff),
				 __ATOMIC_RELEASE);
	else /* the doorbell itself counts blocks */
		first_dwords = (uint64_t)qp->qpn_shifted << 32 | __builtin_bswap32((uint32_t)qp->rsvd << 8 & 0xffff00);
	full_barrier();
	/* Release: pairs with the NIC's read of the register. */
	__atomic_store_n(qp->db, first_dwords, __ATOMIC_RELEASE);
	full_barrier();
}

static int is_mine(struct gdri_qp *qp, uint32_t tail, uint64_t index)
{
	uint8_t op_own = (uint8_t)(tail >> 24);

	if (op_own >> 4 == GDRI_CQE_INVALID)
		return 0;
	if (qp->cq_mask && (op_own & 1) != (qp->cq_ci / (qp->cq_mask + 1ull) & 1))
		return 0;
	return qp->cq_mask || __builtin_bswap16((uint16_t)tail) == (uint16_t)index;
}

int pair_wait(struct gdri_qp *qp, uint64_t index, const struct gdri_cqe **cqe)
{
	const struct gdri_cqe *e = &qp->cq[qp->cq_ci & qp->cq_mask];
	const uint64_t *last = (const uint64_t *)(const void *)&e->wqe_opcode_qpn;
	struct timespec pause = {0, 20000};
	uint32_t tail;
	int i;

	for (i = 0; i < 200000; i++) {
		/* Acquire: pairs with the NIC's store of the CQE's last 8 bytes, its last. All 8 are
		 * loaded, since the thread sanitizer matches stores and loads by address. */
		tail = (uint32_t)(__atomic_load_n(last, __ATOMIC_ACQUIRE) >> 32);
		if (is_mine(qp, tail, index))
			break;
		if (i > 2000)
			nanosleep(&pause, NULL);
	}
	*cqe = e;
	if (i == 200000 || __builtin_bswap16((uint16_t)tail) != (uint16_t)index)
		return -1;
	qp->cq_ci++;
	return (int)(tail >> 28);
}

uint64_t pair_post(struct gdri_qp *qp, const struct pair_request *r, int n)
{
	uint64_t index = qp->rsvd, db;
	uint32_t ds, b, blocks;
	uint8_t w[128];
	int i;

	for (i = 0; i < n; i++) {
		index = qp->rsvd;
		ds = put_wqe(w, qp, &r[i]);
		blocks = (ds + 3) / 4;
		for (b = 0; b < blocks; b++)
			memcpy(qp->sq + ((index + b) & (qp->depth - 1)) * 64, w + 64 * b, 64);
		qp->rsvd += blocks;
	}
	memcpy(&db, w, 8);
	ring(qp, db);
	return index;
}

int pair_do(struct gdri_qp *qp, const struct pair_request *r, const struct gdri_cqe **cqe)
{
	return pair_wait(qp, pair_post(qp, r, 1), cqe);
}
