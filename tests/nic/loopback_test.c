// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs connected to each other and to themselves, over whatever RDMA device
 * there is, or another transport: both kinds of completion queue, two depths, one and four slots.
 * Every operation that device code uses is posted by hand on every queue pair
 * and its effect checked in memory. */
#define _GNU_SOURCE /* memfd_create */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gdr/impl/coll/reduce_code.h>
#include <gdr/status.h>

#include "runtime/core/log.h"
#include "tests/nic/pair.h"

#define SRC    0x1000u /* offsets in the heap */
#define DST    0x40000u
#define VAR    0x80000u
#define RESULT 0x90000u
#define LEN    9000u /* several packets at any MTU, and not a multiple of one */

struct config {
	const char *settings[5];
};

static uint8_t pattern(uint32_t i, uint32_t seed)
{
	return (uint8_t)((i * 2654435761u + seed * 40503u) >> 13);
}

static uint64_t load64(const uint8_t *p)
{
	/* Pairs with the NIC's store, which is complete: its CQE was seen. */
	return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_ACQUIRE);
}

static void store64(uint8_t *p, uint64_t v)
{
	/* Pairs with the NIC's reads after the doorbell. */
	__atomic_store_n((uint64_t *)(void *)p, v, __ATOMIC_RELEASE);
}

static void expect_done(struct gdri_qp *qp, const struct pair_request *r)
{
	const struct gdri_cqe *cqe = NULL;
	uint32_t word;

	assert_int_equal(pair_do(qp, r, &cqe), GDRI_CQE_REQ);
	word = gdri_from_be32(cqe->wqe_opcode_qpn);
	assert_int_equal(word & 0xffffff, qp->qpn);
	assert_int_equal(word >> 24, r->opcode);
}

struct link { /* one queue pair and both ends of it */
	struct gdri_qp *qp;
	struct pair_end *here, *there;
	uint32_t seed;
};

static struct pair_request request(const struct link *l, uint32_t opcode, uint64_t raddr,
				   uint64_t laddr, uint32_t len)
{
	struct pair_request r = {0};

	r.opcode = opcode;
	r.raddr = raddr;
	r.rkey = opcode == GDRI_OP_WRITE || opcode == GDRI_OP_READ
			 ? gdri_from_be32(l->qp->rkey_data)
			 : gdri_from_be32(l->qp->rkey_sync);
	r.lkey = l->here->keys.lkey;
	r.laddr = laddr;
	r.len = len;
	return r;
}

static void check_write(const struct link *l)
{
	struct pair_request r = request(l, GDRI_OP_WRITE, DST + 3, SRC, LEN);
	static const char text[] = "twenty-five bytes inline";
	uint32_t i;

	for (i = 0; i < LEN; i++)
		l->here->heap[SRC + i] = pattern(i, l->seed);
	memset(l->there->heap + DST, 0xa5, LEN + 16);
	expect_done(l->qp, &r);
	for (i = 0; i < LEN; i++)
		assert_int_equal(l->there->heap[DST + 3 + i], pattern(i, l->seed));
	assert_int_equal(l->there->heap[DST + 2], 0xa5);
	assert_int_equal(l->there->heap[DST + 3 + LEN], 0xa5);

	r = request(l, GDRI_OP_WRITE, DST, 0, sizeof(text));
	r.inline_data = text;
	expect_done(l->qp, &r);
	assert_memory_equal(l->there->heap + DST, text, sizeof(text));

	r = request(l, GDRI_OP_WRITE, DST, (uintptr_t)l->here->buffer + 5, 999);
	r.lkey = l->here->buffer_lkey;
	for (i = 0; i < 999; i++)
		l->here->buffer[5 + i] = pattern(i, l->seed + 1);
	expect_done(l->qp, &r);
	assert_memory_equal(l->there->heap + DST, l->here->buffer + 5, 999);
}

static void check_read(const struct link *l)
{
	struct pair_request r = request(l, GDRI_OP_READ, SRC, DST + 1, LEN);
	uint32_t i;

	for (i = 0; i < LEN; i++)
		l->there->heap[SRC + i] = pattern(i, l->seed + 2);
	memset(l->here->heap + DST, 0xa5, LEN + 16);
	expect_done(l->qp, &r);
	for (i = 0; i < LEN; i++)
		assert_int_equal(l->here->heap[DST + 1 + i], pattern(i, l->seed + 2));
	assert_int_equal(l->here->heap[DST], 0xa5);
	assert_int_equal(l->here->heap[DST + 1 + LEN], 0xa5);
}

static void check_atomics_8(const struct link *l)
{
	struct pair_request r = request(l, GDRI_OP_ATOMIC_FA, VAR, RESULT, 8);
	uint8_t *var = l->there->heap + VAR, *result = l->here->heap + RESULT;

	store64(var, 0xfffffffffffffff0u);
	r.args[0] = 0x25;
	expect_done(l->qp, &r);
	assert_true(load64(var) == 0x15);
	assert_true(load64(result) == 0xfffffffffffffff0u);

	r = request(l, GDRI_OP_ATOMIC_CS, VAR, RESULT, 8);
	r.args[0] = 77;
	r.args[1] = 0x15;
	expect_done(l->qp, &r);
	assert_true(load64(var) == 77 && load64(result) == 0x15);

	/* Two blocks. Compares the low half only, swaps the high half only. */
	r = request(l, GDRI_OP_MASKED_CS, VAR, RESULT, 8);
	r.opmod = GDRI_OPMOD_ATOMIC_8B;
	r.args[0] = 0x1122334455667788;
	r.args[1] = 0x99999999u * (1ull << 32) | 77;
	r.args[2] = 0xffffffff00000000;
	r.args[3] = 0x00000000ffffffff;
	expect_done(l->qp, &r);
	assert_true(load64(var) == (0x1122334400000000 | 77) && load64(result) == 77);

	/* A carry that the boundary cuts: two 32-bit counters in one word. */
	store64(var, 0x00000001ffffffff);
	r = request(l, GDRI_OP_MASKED_FA, VAR, RESULT, 8);
	r.opmod = GDRI_OPMOD_ATOMIC_8B;
	r.args[0] = 0x0000000200000001;
	r.args[1] = 0x0000000080000000;
	expect_done(l->qp, &r);
	assert_true(load64(var) == 0x0000000300000000);
}

static void check_atomics_4(const struct link *l)
{
	struct pair_request r = request(l, GDRI_OP_MASKED_FA, VAR + 4, RESULT + 8, 4);
	uint8_t *var = l->there->heap + VAR, *result = l->here->heap + RESULT + 8;
	uint32_t old;

	store64(var, 0x00000007aaaaaaaa);
	r.opmod = GDRI_OPMOD_ATOMIC_4B;
	r.args[0] = 5;
	expect_done(l->qp, &r);
	assert_true(load64(var) == 0x0000000caaaaaaaa);
	memcpy(&old, result, 4);
	assert_int_equal(old, __builtin_bswap32(7)); /* results of 4 bytes are big-endian */

	r = request(l, GDRI_OP_MASKED_CS, VAR, RESULT + 8, 4);
	r.opmod = GDRI_OPMOD_ATOMIC_4B;
	r.args[0] = 0x12345678;
	r.args[1] = 0; /* compare mask 0: always swaps */
	r.args[2] = 0x0000ffff;
	expect_done(l->qp, &r);
	assert_true(load64(var) == 0x0000000caaaa5678);
	memcpy(&old, result, 4);
	assert_int_equal(old, __builtin_bswap32(0xaaaaaaaa));
}

/* What a NIC does not have: only where the transport says so. */
static void check_combine(const struct link *l)
{
	struct pair_request r = request(l, GDRI_OP_MASKED_FA, VAR, RESULT, 8);
	uint8_t *var = l->there->heap + VAR, *result = l->here->heap + RESULT;
	const double half = 0.5, more = 2.25;
	const int32_t word[2] = {-7, -7};
	double sum;
	int32_t got[2];

	if (!l->here->nic->combines)
		return;
	r.opmod = GDRI_OPMOD_COMBINE;
	memcpy(var, &half, 8);
	memcpy(&r.args[0], &more, 8);
	r.args[1] = GDRI_REDUCE_CODE(double, GDRI_SUM);
	expect_done(l->qp, &r);
	memcpy(&sum, var, 8);
	assert_true(sum == half + more);
	memcpy(&sum, result, 8);
	assert_true(sum == half);

	r = request(l, GDRI_OP_MASKED_FA, VAR + 4, RESULT, 4);
	r.opmod = GDRI_OPMOD_COMBINE;
	memcpy(var, word, 8);
	r.args[0] = 3;
	r.args[1] = GDRI_REDUCE_CODE(int32_t, GDRI_MAX);
	expect_done(l->qp, &r);
	memcpy(got, var, 8);
	assert_true(got[0] == word[0] && got[1] == 3);
	memcpy(got, result, 4);
	assert_int_equal((int32_t)__builtin_bswap32((uint32_t)got[0]), word[1]);
	r.args[0] = 5; /* of another sign, as unsigned numbers */
	r.args[1] = GDRI_REDUCE_CODE(uint32_t, GDRI_MIN);
	r.raddr -= 4;
	expect_done(l->qp, &r);
	memcpy(got, var, 8);
	assert_true(got[0] == 5 && got[1] == 3);
}

static void for_each_link(struct pair *p, void (*fn)(const struct link *l))
{
	int n = PAIR_PES * (int)p->opt.qps_per_pe, pe, i;

	for (pe = 0; pe < PAIR_PES; pe++) {
		for (i = 0; i < n; i++) {
			struct gdri_qp *qp = &p->pe[pe].qps[i];
			struct link l = {qp, &p->pe[pe], &p->pe[qp->peer],
					 (uint32_t)(pe * 100 + i)};

			fn(&l);
		}
	}
}

static void check_all(const struct link *l)
{
	check_write(l);
	check_read(l);
	check_atomics_8(l);
	check_atomics_4(l);
	check_combine(l);
}

/* More blocks than the ring has, in both block sizes, so that both wrap. */
static void check_wrap(const struct link *l)
{
	uint8_t *var = l->there->heap + VAR;
	uint64_t i, n = l->qp->depth + 10;
	struct pair_request r;

	store64(var, 0);
	for (i = 0; i < n; i++) {
		if (i % 3) {
			r = request(l, GDRI_OP_ATOMIC_FA, VAR, RESULT, 8);
			r.args[0] = 1;
		} else {
			r = request(l, GDRI_OP_MASKED_CS, VAR, RESULT, 8);
			r.opmod = GDRI_OPMOD_ATOMIC_8B;
			r.args[0] = i + 1;
			r.args[1] = i;
			r.args[2] = r.args[3] = UINT64_MAX;
		}
		expect_done(l->qp, &r);
		assert_true(load64(var) == i + 1);
	}
}

/* The device has fewer pages of doorbell registers than queue pairs want (SOFTHCA_DEVICE=uar-limit). */
static bool few_registers;

#ifdef PAIR_IS_NIC
static int most_without = INT32_MAX; /* record, of all PEs together (SOFTHCA_DEVICE=norecord-limit) */

/* Who has no record has a page of doorbell registers, and all that can be had have none. Who has to have one behind
 * those (each PE asks until it is refused) works beside them, and it is said why. */
static void check_records(struct pair *p)
{
	int n = PAIR_PES * (int)p->opt.qps_per_pe, pe, i, j, without, all = 0;
	char said[64];

	for (pe = 0; pe < PAIR_PES; pe++) {
		struct gdri_qp *q = p->pe[pe].qps;

		for (i = without = 0; i < n; i++) {
			without += !q[i].dbrec;
			assert_int_equal((uintptr_t)q[i].db % 4096 == 0x600, !q[i].dbrec);
			for (j = 0; j < n && !q[i].dbrec; j++)
				assert_true(i == j || (uintptr_t)q[i].db / 4096 != (uintptr_t)q[j].db / 4096);
		}
		assert_int_equal(p->pe[pe].nic->no_record, without > 0);
		if (p->opt.doorbell_mode == GDRI_BELL_NO_RECORD) {
			snprintf(said, sizeof(said), "; %d of %d queue pairs without doorbell record%s", without, n,
				 without < n ? ": " : "");
			assert_non_null(strstr(p->pe[pe].nic->bell_text, said));
		}
		all += without;
	}
	if (p->opt.doorbell_mode != GDRI_BELL_NO_RECORD)
		assert_int_equal(all, 0);
	else if (few_registers)
		assert_in_range(all, 1, n > 2 ? PAIR_PES * n - 1 : PAIR_PES * n);
	else
		assert_int_equal(all, most_without < PAIR_PES * n ? most_without : PAIR_PES * n);
}
#endif

static void check_description(struct pair *p)
{
	int n = PAIR_PES * (int)p->opt.qps_per_pe, pe, i, j;

	for (pe = 0; pe < PAIR_PES; pe++) {
		struct gdri_qp *q = p->pe[pe].qps;

		for (i = 0; i < n; i++) {
			assert_int_equal(q[i].peer, i / (int)p->opt.qps_per_pe);
			assert_int_equal(q[i].slot, i % (int)p->opt.qps_per_pe);
			assert_int_equal(q[i].depth, p->opt.qp_depth);
			assert_int_equal(q[i].cq_mask,
					 p->opt.cq == GDRI_CQ_RING ? p->opt.qp_depth - 1 : 0);
			assert_int_equal(__builtin_bswap32(q[i].qpn_shifted), q[i].qpn << 8);
			assert_int_equal((uintptr_t)q[i].sq % 4096, 0);
			assert_int_equal((uintptr_t)q[i].db % 8, 0);
			for (j = 0; j < i; j++) {
				if (!few_registers)
					assert_ptr_not_equal(q[i].db, q[j].db);
				assert_true(!q[i].dbrec || q[i].dbrec != q[j].dbrec);
				assert_int_not_equal(q[i].qpn, q[j].qpn);
			}
		}
	}
}

static void test_config(void **state)
{
	const struct config *c = *state;
	struct gdri_options opt;
	struct pair p;

	pair_options(&opt, c->settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	check_description(&p);
#ifdef PAIR_IS_NIC
	check_records(&p);
#endif
	for_each_link(&p, check_all);
	if (opt.qp_depth == 128)
		for_each_link(&p, check_wrap);
	pair_down(&p);
}

/* Both ends use the smaller MTU: were one of them to send more than the other accepts, nothing
 * would arrive. */
static void test_two_mtus(void **state)
{
	static const char *const small[] = {"MTU=256", NULL};
	struct gdri_options opt, other;
	struct pair p;

	(void)state;
	pair_options(&opt, NULL);
	pair_options(&other, small);
	assert_int_equal(pair_up(&p, &opt, &other), 0);
	for_each_link(&p, check_all);
	pair_down(&p);
}

/* A key or a range that is wrong: the error is reported with the syndrome, nothing is changed, the queue is dead. */
static void check_refused(const struct config *c, uint32_t xor_key, uint64_t raddr, uint64_t laddr, int syndrome)
{
	const struct gdri_cqe *cqe = NULL;
	struct gdri_options opt;
	struct pair_request r;
	struct link l;
	struct pair p;

	pair_options(&opt, c->settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	l.qp = &p.pe[0].qps[opt.qps_per_pe];
	l.here = &p.pe[0];
	l.there = &p.pe[1];
	store64(l.here->heap + SRC, 1);
	r = request(&l, GDRI_OP_WRITE, raddr, laddr, 8);
	r.rkey ^= xor_key;
	assert_int_equal(pair_do(l.qp, &r, &cqe), GDRI_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, syndrome);
	r = request(&l, GDRI_OP_WRITE, DST, SRC, 8);
	assert_int_equal(pair_do(l.qp, &r, &cqe), GDRI_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, GDRI_SYND_FLUSH);
	assert_true(load64(l.there->heap + DST) == 0 && load64(l.there->heap + PAIR_HEAP - 8) == 0);
	pair_down(&p);
}

static void test_refused(void **state)
{
	check_refused(*state, 0x7f00, DST, SRC, 0x13);
	check_refused(*state, 0, PAIR_HEAP - 4, SRC, 0x13);
	check_refused(*state, 0, UINT64_MAX - 3, SRC, 0x13);
#ifndef PAIR_IS_NIC /* softhca's strict mode would end the process, which is a test of its own */
	check_refused(*state, 0, DST, PAIR_HEAP - 4, 0x04);
#endif
}

/* ---- a heap that changes ---- */

#define PART 0x10000u
#ifndef PAIR_TURNS /* parts that come and leave: more than there are keys, or what takes no time */
#define PAIR_TURNS 100u
#endif

/* Memory that the heap of PE 1 gets behind its other bytes. */
static uint8_t *part_map(int *fd)
{
	uint8_t *p;

	*fd = memfd_create("part", MFD_CLOEXEC);
	assert_true(*fd >= 0 && !ftruncate(*fd, 2 * PART));
	p = pair_map(*fd, 2 * PART);
	assert_true(p != MAP_FAILED);
	return p;
}

static void expect_written(const struct link *l, uint32_t rkey, uint64_t raddr, uint64_t value)
{
	struct pair_request r = request(l, GDRI_OP_WRITE, raddr, 0, 8);

	r.rkey = rkey;
	r.inline_data = &value;
	expect_done(l->qp, &r);
}

static void expect_refused(const struct link *l, uint32_t rkey, uint64_t raddr)
{
	struct pair_request r = request(l, GDRI_OP_WRITE, raddr, SRC, 8);
	const struct gdri_cqe *cqe = NULL;

	r.rkey = rkey;
	assert_int_equal(pair_do(l->qp, &r, &cqe), GDRI_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, 0x13);
}

/* An atomic behind a write that fails at the target only, under way with it, does not take effect: it may be the signal
 * that tells of the bytes. */
static void check_behind_refused(const struct link *l, uint32_t rkey, uint64_t raddr)
{
	struct pair_request r[2] = {request(l, GDRI_OP_WRITE, raddr, SRC, 8),
				    request(l, GDRI_OP_ATOMIC_FA, VAR, RESULT, 8)};
	const struct gdri_cqe *cqe = NULL;
	uint64_t first = l->qp->rsvd, last;

	r[0].rkey = rkey;
	r[1].args[0] = 1;
	store64(l->there->heap + VAR, 100);
	last = pair_post(l->qp, r, 2);
	if (l->qp->cq_mask) { /* else the second overwrites it */
		assert_int_equal(pair_wait(l->qp, first, &cqe), GDRI_CQE_REQ_ERR);
		assert_int_equal(cqe->syndrome, 0x13);
	}
	assert_int_equal(pair_wait(l->qp, last, &cqe), GDRI_CQE_REQ_ERR);
	assert_int_equal(cqe->syndrome, GDRI_SYND_FLUSH);
	assert_true(load64(l->there->heap + VAR) == 100);
}

/* New keys cover what was added, also where an access lies in two parts, and not what was taken back or has left; old
 * ones go on covering what they did. */
static void check_change(const struct link *l, uint8_t *part)
{
	struct link next = {l->qp + 1, l->here, l->there, l->seed};
	struct link third = {l->qp + 2, l->here, l->there, l->seed};
	struct gdri_net *net = l->there->nic;
	struct gdri_mr_keys grown, more, left, holed;

	assert_int_equal(net->ops->grow(net, part, PART, PAIR_HEAP, &grown), 0);
	expect_written(l, grown.rkey_data, PAIR_HEAP + 8, 21);
	expect_written(l, grown.rkey_sync, PAIR_HEAP + PART - 8, 22);
	assert_true(load64(part + 8) == 21 && load64(part + PART - 8) == 22);
	expect_written(l, grown.rkey_data, PAIR_HEAP - 4, 0x0000000500000006);
	assert_true(load64(l->there->heap + PAIR_HEAP - 8) == 0x0000000600000000 && load64(part) == 5);
	expect_written(l, gdri_from_be32(l->qp->rkey_data), DST, 23);

	assert_int_equal(net->ops->grow(net, part + PART, PART, PAIR_HEAP + PART, &more), 0);
	net->ops->undo(net);
	assert_int_equal(net->ops->leave(net, PAIR_HEAP, PART, &left), 0);
	net->ops->undo(net);
	expect_written(l, grown.rkey_data, PAIR_HEAP + 8, 24);
	assert_int_equal(net->ops->leave(net, PAIR_HEAP, PART, &left), 0);
	expect_written(l, grown.rkey_data, PAIR_HEAP + 8, 25);
	expect_written(l, left.rkey_data, DST, 26);
	assert_true(load64(part + 8) == 25 && load64(l->there->heap + DST) == 26);
	net->ops->drop_left(net);
	net->ops->drop_keys(net, 1);
	expect_written(l, left.rkey_sync, DST, 27);
	assert_true(load64(l->there->heap + DST) == 27);
	check_behind_refused(&third, left.rkey_data, PAIR_HEAP + 8);
	assert_int_equal(net->ops->grow(net, part + PART, PART, PAIR_HEAP + PART, &holed), 0);
	expect_written(l, holed.rkey_data, PAIR_HEAP + PART + 8, 28);
	assert_true(load64(part + PART + 8) == 28);
	expect_refused(l, left.rkey_data, PAIR_HEAP + 8);
	expect_refused(&next, holed.rkey_sync, PAIR_HEAP + 8); /* there is nothing between heap and part */
	assert_true(load64(part + 8) == 25 && load64(part + PART) == 0);
}

/* Two PEs, and a part that their heaps may grow by. */
static void with_part(void **state, void (*check)(const struct link *l, uint8_t *part))
{
	const struct config *c = *state;
	struct gdri_options opt;
	struct pair p;
	uint8_t *part;
	int fd;

	pair_options(&opt, c->settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	part = part_map(&fd);
	check(&(struct link){&p.pe[0].qps[opt.qps_per_pe], &p.pe[0], &p.pe[1], 1}, part);
	pair_down(&p);
	munmap(part, 2 * PART);
	close(fd);
}

static void test_change(void **state)
{
	with_part(state, check_change);
}

/* What has left makes room: parts, and keys, of which some devices have 65536. */
static void check_turns(const struct link *l, uint8_t *part)
{
	struct gdri_net *net = l->there->nic;
	struct gdri_mr_keys keys;

	for (unsigned int i = 0; i < PAIR_TURNS; i++) {
		assert_int_equal(net->ops->grow(net, part, PART, PAIR_HEAP, &keys), 0);
		net->ops->drop_keys(net, 1);
		assert_int_equal(net->ops->leave(net, PAIR_HEAP, PART, &keys), 0);
		net->ops->drop_left(net);
		net->ops->drop_keys(net, 1);
	}
	assert_int_equal(net->ops->grow(net, part, PART, PAIR_HEAP, &keys), 0);
	expect_written(l, keys.rkey_data, PAIR_HEAP + 8, 31);
	assert_true(load64(part + 8) == 31);
}

static void test_turns(void **state)
{
	with_part(state, check_turns);
}

#ifndef PAIR_IS_NIC
/* A PE that leaves says so: who needs it does not wait for the limit. */
static void test_closed(void **state)
{
	const struct config *c = *state;
	const struct gdri_cqe *cqe = NULL;
	struct pair_request r;
	struct gdri_options opt;
	struct link l;
	struct pair p;

	pair_options(&opt, c->settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	l = (struct link){&p.pe[0].qps[opt.qps_per_pe], &p.pe[0], &p.pe[1], 1};
	r = request(&l, GDRI_OP_WRITE, DST, SRC, 8);
	expect_done(l.qp, &r);
	PAIR_OPS.close(p.pe[1].nic);
	p.pe[1].nic = NULL;
	assert_int_not_equal(pair_do(l.qp, &r, &cqe), -1); /* mapped memory may still be there */
	pair_down(&p);
}
#endif

#ifdef PAIR_IS_NIC
/* Wrong use is refused and leaves the object usable. */
static void test_misuse(void **state)
{
	static const char *const settings[] = {"MAX_PES=2", NULL};
	struct gdri_options opt;
	struct gdri_net_how how = {.opt = &opt};
	struct gdri_qp *qps;
	struct gdri_net *nic;
	int other;

	(void)state;
	pair_options(&opt, settings);
	qps = aligned_alloc(GDRI_LINE, 2 * opt.qps_per_pe * sizeof(*qps));
	assert_non_null(qps);
	memset(qps, 0, 2 * opt.qps_per_pe * sizeof(*qps));
	assert_int_equal(gdri_nic_ops.open(&how, &nic), 0);
	assert_int_equal(gdri_nic_ops.create_queues(nic, 3, qps), -GDR_ENOTSUP);
	/* 3 * 2 * (2 * 64 * 1024 + 128) bytes, in whole pages */
	assert_non_null(strstr(gdri_log_last_error(), "3 PEs"));
	assert_non_null(strstr(gdri_log_last_error(), sysconf(_SC_PAGESIZE) == 4096 ? " 772 KiB " : " 832 KiB "));
	assert_non_null(strstr(gdri_log_last_error(), "GDR_MAX_PES=2"));
	assert_int_equal(gdri_nic_ops.create_queues(nic, 0, qps), -GDR_EINVAL);
	assert_int_equal(gdri_nic_ops.connect(nic, &other, 0, 1, qps), -GDR_EINVAL);
	assert_int_equal(gdri_nic_ops.deregister(nic, &other), -GDR_EINVAL);
	assert_int_equal(gdri_nic_ops.create_queues(nic, 2, qps), 0);
	assert_int_equal(gdri_nic_ops.create_queues(nic, 2, qps), -GDR_ESTATE);
	gdri_nic_ops.close(nic);
	gdri_nic_ops.close(NULL);
	free(qps);

	snprintf(opt.nic, sizeof(opt.nic), "no_such_device");
	assert_int_equal(gdri_nic_ops.open(&how, &nic), -GDR_ENODEV);
	assert_null(nic);
	pair_options(&opt, settings);
	opt.mtu = 1000;
	assert_int_equal(gdri_nic_ops.open(&how, &nic), -GDR_EOPTION);
	pair_options(&opt, settings);
	opt.gid_index = 200;
	other = gdri_nic_ops.open(&how, &nic); /* an InfiniBand port ignores the option */
	assert_true(other == -GDR_EOPTION || other == 0);
	gdri_nic_ops.close(nic);
	pair_options(&opt, settings);
	opt.qp_depth = 1000;
	assert_int_equal(gdri_nic_ops.open(&how, &nic), 0);
	qps = aligned_alloc(GDRI_LINE, 2 * opt.qps_per_pe * sizeof(*qps));
	assert_int_equal(gdri_nic_ops.create_queues(nic, 2, qps), -GDR_EOPTION);
	free(qps);
	gdri_nic_ops.close(nic);
	opt.qp_depth = 1024;
	opt.pkey = 0x1234;
	assert_int_equal(gdri_nic_ops.open(&how, &nic), -GDR_EOPTION);
}

/* RoCE has the three bits of a VLAN priority, InfiniBand four. */
static void test_service_level(void **state)
{
	static const char *const settings[] = {"SERVICE_LEVEL=8", NULL};
	struct gdri_options opt;
	struct gdri_net_how how = {.opt = &opt};
	struct gdri_net *nic;
	bool roce;

	(void)state;
	pair_options(&opt, settings);
	opt.service_level = 7;
	assert_int_equal(gdri_nic_ops.open(&how, &nic), 0);
	roce = strstr(nic->text, "RoCE") != NULL;
	gdri_nic_ops.close(nic);
	opt.service_level = 8;
	assert_int_equal(gdri_nic_ops.open(&how, &nic), roce ? -GDR_EOPTION : 0);
	if (roce)
		assert_non_null(strstr(gdri_log_last_error(), "GDR_SERVICE_LEVEL=8"));
	gdri_nic_ops.close(nic);
}

#endif /* PAIR_IS_NIC */

#define CONFIG_BELL(cq, depth, slots, mode)                                                           \
	{                                                                                             \
		{                                                                                     \
			"CQ=" cq, "QP_DEPTH=" depth, "QPS_PER_PE=" slots, "DOORBELL_MODE=" mode, NULL \
		}                                                                                     \
	}
#define CONFIG(cq, depth, slots) CONFIG_BELL(cq, depth, slots, "record")
#define TEST(fn, i)                                             \
	{                                                       \
#fn " " #i, fn, NULL, NULL, (void *)&configs[i] \
	}

int main(void)
{
	static const struct config configs[] = {
		CONFIG("one", "128", "1"),   CONFIG("one", "128", "4"),
		CONFIG("one", "1024", "1"),  CONFIG("one", "1024", "4"),
		CONFIG("ring", "128", "1"),  CONFIG("ring", "128", "4"),
		CONFIG("ring", "1024", "1"), CONFIG("ring", "1024", "4"),
		CONFIG_BELL("one", "128", "4", "norecord"), CONFIG_BELL("ring", "128", "1", "norecord"),
	};
	const struct CMUnitTest tests[] = {
		TEST(test_config, 0),
		TEST(test_config, 1),
		TEST(test_config, 2),
		TEST(test_config, 3),
		TEST(test_config, 4),
		TEST(test_config, 5),
		TEST(test_config, 6),
		TEST(test_config, 7),
#ifndef __SANITIZE_THREAD__ /* goes by addresses: softhca's mapping of the page is another than the program's */
		TEST(test_config, 8),
		TEST(test_config, 9),
#endif
		TEST(test_refused, 0),
		TEST(test_refused, 4),
		TEST(test_change, 1),
		TEST(test_change, 5),
		TEST(test_turns, 4),
		cmocka_unit_test(test_two_mtus),
#ifdef PAIR_IS_NIC
		cmocka_unit_test(test_misuse),
		cmocka_unit_test(test_service_level),
#else
		TEST(test_closed, 4),
#endif
	};

	const char *device = getenv("SOFTHCA_DEVICE") ? getenv("SOFTHCA_DEVICE") : "";

	few_registers = strstr(device, "uar-limit") != NULL;
#ifdef PAIR_IS_NIC
	if (strstr(device, "norecord-limit="))
		most_without = atoi(strstr(device, "norecord-limit=") + strlen("norecord-limit="));
#endif
	gdri_log_set_level(getenv("GDR_LOG") ? GDRI_LOG_DEBUG : GDRI_LOG_WARN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
