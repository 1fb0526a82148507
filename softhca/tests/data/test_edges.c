/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the protocol's limits lie, one step on either side: how often it is tried again, answers
 * that nobody asked for or that are too short, requests that reach beyond what they announced, keys
 * and domains. IBTA volume 1, section 9.7. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "finish.h"

enum { BUF = 1 << 14, MTU = 256 };

static struct sim_qp *a, *b;
static uint8_t *mem_a, *mem_b;
static uint32_t key_a, key_b;

static const struct wire_dest nobody = { .kind = WIRE_LOCAL };

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static unsigned naks, rnrs;
static uint8_t last_nak;
static uint32_t last_msn;

/* Counts what is refused; nothing arrives. */
static struct fake_fate note(unsigned n, const struct packet *p)
{
	(void)n;
	if (p->opcode == BTH_ACK && (p->syndrome & AETH_KIND) == AETH_RNR)
		rnrs++;
	if (p->opcode == BTH_ACK)
		last_msn = p->msn;
	if (p->opcode == BTH_ACK && (p->syndrome & AETH_KIND) == AETH_KIND) {
		naks++;
		last_nak = p->syndrome;
	}
	return (struct fake_fate){ FAKE_DROP, 0 };
}

static void start(uint32_t psn)
{
	sim_reset(a);
	sim_reset(b);
	fake_clear();
	fake_policy = note;
	naks = rnrs = last_nak = 0;
	a->qp.mtu = b->qp.mtu = MTU;
	a->qp.sq_psn = b->qp.rq_psn = b->qp.sq_psn = a->qp.rq_psn = psn;
	a->qp.retry_cnt = a->qp.rnr_retry = 7;
	a->ci = a->scq.pi;
	b->ci = b->scq.pi;
	b->rcq_ci = b->rcq.pi;
	sim_pair(a, b);
}

static void answer(uint8_t opcode, uint32_t psn, uint8_t syndrome, uint32_t len)
{
	static uint8_t data[4096];
	struct packet p = { .opcode = opcode, .dqpn = a->qp.qpn, .psn = psn, .pkey = 0xffff,
			    .syndrome = syndrome, .len = len };
	struct iovec iov = { data, len };

	rc_receive(&a->qp, &nobody, &p, &iov, len ? 1 : 0);
	assert_true(fake_settle());
}

/* To QP b, which then answers. */
static void request(struct packet p)
{
	static uint8_t data[4096];
	struct iovec iov = { data, p.len };

	p.pkey = 0xffff;
	p.dqpn = b->qp.qpn;
	rc_receive(&b->qp, &nobody, &p, &iov, p.len ? 1 : 0);
	assert_true(fake_settle());
}

static void expect_error(struct sim_qp *q, uint8_t syndrome)
{
	struct sim_cqe c;

	assert_true(sim_poll(q, &c, 0));
	assert_int_equal(c.type, CQE_REQ_ERR);
	assert_int_equal(c.syndrome, syndrome);
	assert_int_equal(q->qp.state, HCA_QPS_ERR);
}

/* ---- how often ---- */

static void test_sequence_retries(void **state)
{
	(void)state;
	for (uint8_t limit = 0; limit < 4; limit++) {
		start(5);
		a->qp.retry_cnt = limit;
		sim_write(a, addr(mem_b), key_b, mem_a, 8, key_a, 1);
		sim_ring(a);
		assert_true(fake_settle());
		for (unsigned i = 0; i < limit; i++) {
			answer(BTH_ACK, 5, AETH_NAK_SEQ, 0);
			assert_int_equal(a->qp.state, HCA_QPS_RTS);
			assert_int_equal(fake_sent(), 2 + i);
		}
		answer(BTH_ACK, 5, AETH_NAK_SEQ, 0);
		assert_int_equal(fake_sent(), 1 + limit);
		expect_error(a, SYND_RETRY_EXC);
	}
}

static void test_not_ready_retries(void **state)
{
	(void)state;
	for (uint8_t limit = 0; limit < 8; limit++) {
		unsigned rounds = limit == 7 ? 300 : limit; /* 7: for ever */

		start(0xffffff);
		a->qp.rnr_retry = limit;
		sim_send(a, mem_a, 8, key_a, 1);
		sim_ring(a);
		assert_true(fake_settle());
		for (unsigned i = 0; i < rounds; i++) {
			answer(BTH_ACK, 0xffffff, AETH_RNR | 1, 0);
			assert_int_equal(a->qp.state, HCA_QPS_RTS);
			a->qp.rc->rnr_until = 1; /* the time has come */
			rc_timer(&a->qp, 1);
			assert_true(fake_settle());
			assert_int_equal(fake_sent(), 2 + i);
		}
		if (limit == 7)
			continue;
		answer(BTH_ACK, 0xffffff, AETH_RNR | 1, 0);
		assert_int_equal(fake_sent(), 1 + limit);
		expect_error(a, SYND_RNR_RETRY_EXC);
	}
}

/* Who is not ready says so once; what follows in flight is dropped in silence. */
static void test_not_ready_once(void **state)
{
	struct packet send = { .opcode = BTH_SEND_ONLY, .ackreq = true, .len = 8 };

	(void)state;
	start(0);
	for (send.psn = 0; send.psn < 5; send.psn++)
		request(send);
	assert_int_equal(rnrs, 1);
	assert_int_equal(naks, 0);
	send.psn = 0;
	request(send);
	assert_int_equal(rnrs, 2);
}

/* ---- answers ---- */

/* To packets that have not been sent: of an earlier life, they change nothing. */
static void test_answers_ahead(void **state)
{
	static const struct {
		uint8_t opcode, syndrome;
	} kinds[] = { { BTH_ACK, AETH_ACK }, { BTH_ACK, AETH_NAK_ACCESS }, { BTH_ACK, AETH_NAK_SEQ },
		      { BTH_ACK, AETH_RNR }, { BTH_READ_RESP_ONLY, AETH_ACK },
		      { BTH_ATOMIC_ACK, AETH_ACK } };

	(void)state;
	for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
		for (uint32_t ahead = 1; ahead < 5; ahead++) {
			start(0xfffffe);
			sim_write(a, addr(mem_b), key_b, mem_a, 8, key_a, 1);
			sim_ring(a);
			assert_true(fake_settle());
			answer(kinds[k].opcode, psn_add(0xfffffe, ahead), kinds[k].syndrome,
			       kinds[k].opcode == BTH_READ_RESP_ONLY ? 8 : 0);
			assert_int_equal(a->qp.state, HCA_QPS_RTS);
			assert_int_equal(a->qp.rc->psn_una, 0xfffffe);
			assert_int_equal(a->ci, a->scq.pi);
			assert_int_equal(fake_sent(), 1);
		}
	}
}

/* READ data that is longer or shorter than what was asked for, or more packets of it. */
static void test_answers_of_other_length(void **state)
{
	static const struct {
		uint32_t asked, psn, len;
		bool good;
	} cases[] = { { 100, 0, 100, true }, { 100, 0, 99, false }, { 100, 0, 104, false },
		      { 100, 0, 0, false },  { 0, 0, 0, true },	    { 0, 0, 4, false },
		      { 300, 0, MTU, true }, { 300, 0, MTU - 1, false }, { 300, 0, 300, false } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		start(9);
		memset(mem_a, 0x77, 512);
		sim_read(a, addr(mem_b), key_b, mem_a, cases[i].asked, key_a, 1);
		sim_ring(a);
		assert_true(fake_settle());
		answer(cases[i].asked > MTU ? BTH_READ_RESP_FIRST : BTH_READ_RESP_ONLY, 9, AETH_ACK,
		       cases[i].len);
		assert_int_equal(mem_a[0], cases[i].good && cases[i].len ? 0 : 0x77);
		if (cases[i].good)
			assert_int_equal(a->qp.state, HCA_QPS_RTS);
		else
			expect_error(a, SYND_BAD_RESP);
	}
}

/* ---- requests ---- */

/* A READ that comes again lies before what is expected as a whole, or it is none that came. */
static void test_read_again_beyond(void **state)
{
	struct packet read = { .opcode = BTH_READ_REQ, .psn = 0xfffffe, .va = addr(mem_b), .rkey = key_b,
			       .dmalen = 3 * MTU };

	(void)state;
	start(0xfffffe);
	request(read);
	assert_int_equal(fake_sent(), 3);
	request(read);
	assert_int_equal(fake_sent(), 6);
	read.dmalen++;
	request(read);
	assert_int_equal(fake_sent(), 6);
	read.psn = 0;
	read.dmalen = MTU;
	request(read);
	assert_int_equal(fake_sent(), 7);
	assert_int_equal(b->qp.state, HCA_QPS_RTS);
}

/* What goes before it is read was not carried out: the NAK counts the requests before it (9.7.7). */
static void test_read_of_what_went(void **state)
{
	uint32_t key = sim_mr(mem_b, BUF, 0xf, 1, addr(mem_b));
	struct packet read = { .opcode = BTH_READ_REQ, .psn = 1, .pkey = 0xffff, .va = addr(mem_b),
			       .rkey = key, .dmalen = 3 * MTU, .dqpn = b->qp.qpn };

	(void)state;
	start(0);
	request((struct packet){ .opcode = BTH_WRITE_ONLY });
	rc_receive(&b->qp, &nobody, &read, NULL, 0);
	sim_mr_remove(key);
	assert_true(fake_settle());
	assert_int_equal(last_nak, AETH_NAK_ACCESS);
	assert_int_equal(last_msn, 1);
	assert_int_equal(fake_sent(), 1);
}

/* A WRITE that ends before, or goes on behind, the length it has announced. */
static void test_write_of_other_length(void **state)
{
	static const struct {
		uint32_t announced, last;
		uint8_t nak;
	} cases[] = { { MTU + 10, 10, 0 }, { MTU + 10, 9, AETH_NAK_INVAL }, { MTU + 10, 11, AETH_NAK_INVAL } };

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		start(0);
		request((struct packet){ .opcode = BTH_WRITE_FIRST, .va = addr(mem_b), .rkey = key_b,
					 .dmalen = cases[i].announced, .len = MTU });
		assert_int_equal(naks, 0);
		request((struct packet){ .opcode = BTH_WRITE_LAST, .psn = 1, .len = cases[i].last });
		assert_int_equal(last_nak, cases[i].nak);
	}
}

/* A message counts once, however many packets it has (9.7.7). */
static void test_messages_counted(void **state)
{
	(void)state;
	start(0);
	request((struct packet){ .opcode = BTH_WRITE_FIRST, .va = addr(mem_b), .rkey = key_b,
				 .dmalen = 2 * MTU + 4, .len = MTU, .ackreq = true });
	assert_int_equal(last_msn, 0);
	request((struct packet){ .opcode = BTH_WRITE_MIDDLE, .psn = 1, .len = MTU, .ackreq = true });
	assert_int_equal(last_msn, 0);
	request((struct packet){ .opcode = BTH_WRITE_LAST, .psn = 2, .len = 4, .ackreq = true });
	assert_int_equal(last_msn, 1);
	sim_recv(b, mem_b, 2 * MTU, key_b);
	request((struct packet){ .opcode = BTH_SEND_FIRST, .psn = 3, .len = MTU, .ackreq = true });
	assert_int_equal(last_msn, 1);
	request((struct packet){ .opcode = BTH_SEND_LAST, .psn = 4, .len = 4, .ackreq = true });
	assert_int_equal(last_msn, 2);
	b->rcq_ci = b->rcq.pi;
}

/* Where the key says an aligned address and the memory is not. */
static void test_atomic_alignment(void **state)
{
	uint32_t odd = sim_mr(mem_b + 4, 64, 0xf, 1, 0);
	struct packet p = { .opcode = BTH_FETCH_ADD, .rkey = odd, .atomic_size = 8, .operand = 1 };

	(void)state;
	start(0);
	memset(mem_b, 0, 64);
	request(p);
	assert_int_equal(last_nak, AETH_NAK_INVAL);
	assert_int_equal(mem_b[4], 0);
	start(0);
	p.opcode = BTH_MASKED_ATOMIC;
	p.atomic_size = 4;
	p.atomic_add = true;
	request(p);
	assert_int_equal(naks, 0);
	assert_int_equal(mem_b[4], 1);
	sim_mr_remove(odd);
}

/* A receive that is too small: both sides learn of it, each in its way. */
static void test_receive_too_small(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(0);
	sim_recv(b, mem_b, 7, key_b);
	request((struct packet){ .opcode = BTH_SEND_ONLY, .len = 8 });
	assert_int_equal(last_nak, AETH_NAK_INVAL);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.type, CQE_RESP_ERR);
	assert_int_equal(c.syndrome, SYND_LOCAL_LENGTH);
	/* Where it may not be written it is the operation that failed. */
	start(0);
	sim_recv(b, mem_b, 8, key_b + 0x100);
	request((struct packet){ .opcode = BTH_SEND_ONLY, .len = 8 });
	assert_int_equal(last_nak, AETH_NAK_OP);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_PROT);
}

/* The key that ends a list does so in a segment of no length; else it is a key as any other. */
static void test_end_of_list(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(0);
	sim_recv(b, mem_b, 8, 0x100);
	request((struct packet){ .opcode = BTH_SEND_ONLY, .len = 8 });
	assert_int_equal(last_nak, AETH_NAK_OP);
	assert_true(sim_poll_recv(b, &c, 0));
	assert_int_equal(c.syndrome, SYND_LOCAL_PROT);
	assert_int_equal(c.byte_cnt, 0);
}

/* ---- work requests ---- */

/* What may not be written here is not asked for there: an atomic would have been carried out. */
static void test_answer_not_allowed(void **state)
{
	uint32_t read_only = sim_mr(mem_a, BUF, HCA_REMOTE_READ, 1, addr(mem_a));

	(void)state;
	start(0);
	sim_fetch_add(a, addr(mem_b), key_b, mem_a, read_only, 1, 1);
	sim_ring(a);
	assert_true(fake_settle());
	expect_error(a, SYND_LOCAL_PROT);
	assert_int_equal(fake_sent(), 0);
	start(0);
	sim_read(a, addr(mem_b), key_b, mem_a, 8, read_only, 1);
	sim_ring(a);
	assert_true(fake_settle());
	expect_error(a, SYND_LOCAL_PROT);
	assert_int_equal(fake_sent(), 0);
	sim_mr_remove(read_only);
}

/* A completion counts the bytes that have come, of which a WRITE has none. */
static void test_bytes_counted(void **state)
{
	struct sim_cqe c;

	(void)state;
	start(0);
	sim_write(a, addr(mem_b), key_b, mem_a, 24, key_a, 1);
	sim_read(a, addr(mem_b), key_b, mem_a, 16, key_a, 1);
	sim_ring(a);
	assert_true(fake_settle());
	answer(BTH_ACK, 0, AETH_ACK, 0);
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.opcode, WQE_WRITE);
	assert_int_equal(c.byte_cnt, 0);
	answer(BTH_READ_RESP_ONLY, 1, AETH_ACK, 16);
	assert_true(sim_poll(a, &c, 0));
	assert_int_equal(c.opcode, WQE_READ);
	assert_int_equal(c.byte_cnt, 16);
}

/* Two blocks, of which the doorbell covers one. */
static void test_half_posted(void **state)
{
	(void)state;
	start(0);
	sim_inline(a, addr(mem_b), key_b, mem_a, 60, 1);
	assert_int_equal(a->pi, 2);
	a->pi = 1;
	sim_ring(a);
	assert_true(fake_settle());
	expect_error(a, SYND_LOCAL_QP_OP);
	assert_int_equal(fake_sent(), 0);
}

/* Where payload in memory of GPUs is asked for ahead of its turn, no more is picked up than PSNs can tell
 * apart: half of them at most (9.7.2). */
static void test_psn_range(void **state)
{
	const size_t size = 1ull << 33;
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint32_t huge = sim_mr(mem, size, 0xf, 1, 0);

	(void)state;
	assert_ptr_not_equal(mem, MAP_FAILED);
	start(0xff0000);
	a->qp.max_rd_atomic = 1;
	for (unsigned i = 0; i < 8; i++)
		sim_read(a, addr(mem_b), key_b, NULL, 1u << HCA_LOG_MAX_MSG, huge, 1);
	sim_ring(a);
	dma_on = true;
	assert_true(fake_settle());
	dma_on = false;
	assert_int_equal(fake_sent(), 1);
	assert_int_equal(a->qp.rc->tail, 1);
	a->qp.max_rd_atomic = 16;
	sim_reset(a);
	sim_mr_remove(huge);
	munmap(mem, size);
}

/* ---- keys ---- */

static void test_other_domain(void **state)
{
	uint32_t other = sim_mr(mem_b, BUF, 0xf, 2, addr(mem_b)), window = sim_window(HCA_WINDOW_1, 1);
	struct hca_mr *w = hca_find_mr(window);
	struct packet p = { .opcode = BTH_WRITE_ONLY, .va = addr(mem_b), .dmalen = 8, .len = 8 };

	(void)state;
	start(0);
	sim_write(a, addr(mem_b), key_b, mem_b, 8, other, 1);
	sim_ring(a);
	assert_true(fake_settle());
	expect_error(a, SYND_LOCAL_PROT);
	p.rkey = other;
	request(p);
	assert_int_equal(last_nak, AETH_NAK_ACCESS);
	/* A window of QP b's domain, and of another. */
	*w = (struct hca_mr){ .key = w->key, .pdn = 1, .access = HCA_REMOTE_WRITE, .iova = addr(mem_b),
			      .len = 8, .window = HCA_WINDOW_1, .bound = true, .region = key_b,
			      .target = addr(mem_b) };
	p.rkey = window;
	start(0);
	request(p);
	assert_int_equal(naks, 0);
	b->qp.pdn = 2;
	start(0);
	request(p);
	assert_int_equal(last_nak, AETH_NAK_ACCESS);
	b->qp.pdn = 1;
	sim_mr_remove(window);
	sim_mr_remove(other);
}

/* An indirect key that holds less than its pieces have. */
static void test_indirect_bounds(void **state)
{
	uint32_t key = sim_window(HCA_INDIRECT, 1);
	struct wqe_umr u = { .new_free = true, .new_access = true, .new_start = true, .new_len = true, .len = 100,
			     .start = 1000, .access = HCA_REMOTE_WRITE };
	struct wqe_sge piece[2] = { { .addr = addr(mem_b), .len = 64, .lkey = key_b },
				    { .addr = addr(mem_b) + 4096, .len = 64, .lkey = key_b } };
	static const struct {
		uint64_t at;
		uint32_t len;
		uint8_t nak;
	} cases[] = { { 1000, 100, 0 }, { 1099, 1, 0 }, { 1000, 101, AETH_NAK_ACCESS },
		      { 1099, 2, AETH_NAK_ACCESS }, { 1100, 1, AETH_NAK_ACCESS },
		      { 999, 1, AETH_NAK_ACCESS }, { 1101, 0, 0 } };
	struct hca_mr *m = hca_find_mr(key);

	(void)state;
	m->max_pieces = 2;
	assert_null(mkey_update(m, &u, piece, 2));
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		start(0);
		memset(mem_b, 0x55, 8192);
		request((struct packet){ .opcode = BTH_WRITE_ONLY, .va = cases[i].at, .rkey = key,
					 .dmalen = cases[i].len, .len = cases[i].len });
		assert_int_equal(last_nak, cases[i].nak);
		assert_int_equal(mem_b[4096 + 35], !cases[i].nak && cases[i].len ? 0 : 0x55);
		assert_int_equal(mem_b[4096 + 36], 0x55);
	}
	mkey_gone(m);
	sim_mr_remove(key);
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	mem_a = sim_memory(BUF, 0xf, &key_a);
	mem_b = sim_memory(BUF, 0xf, &key_b);
	a = sim_qp(6, SIM_CQ_RING);
	b = sim_qp(6, SIM_CQ_RING);
	/* Time passes when the test says so, however slow the machine. */
	a->qp.ack_timeout = b->qp.ack_timeout = 24;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequence_retries),     cmocka_unit_test(test_not_ready_retries),
		cmocka_unit_test(test_not_ready_once),	     cmocka_unit_test(test_answers_ahead),
		cmocka_unit_test(test_answers_of_other_length),
		cmocka_unit_test(test_read_of_what_went),
		cmocka_unit_test(test_read_again_beyond),    cmocka_unit_test(test_write_of_other_length),
		cmocka_unit_test(test_atomic_alignment),     cmocka_unit_test(test_receive_too_small),
		cmocka_unit_test(test_psn_range),
		cmocka_unit_test(test_half_posted),	     cmocka_unit_test(test_other_domain),
		cmocka_unit_test(test_indirect_bounds),	     cmocka_unit_test(test_messages_counted),
		cmocka_unit_test(test_end_of_list),	     cmocka_unit_test(test_answer_not_allowed),
		cmocka_unit_test(test_bytes_counted),
	};

	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
