/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation between two QPs of one process, the errors, and the state
 * of the rings past their wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim.h"
#include "softhca/transport/rc.h"
#include "softhca/wire/wire.h"

enum { BUF = 1 << 20, WAIT = 10000 };

static uint8_t *src, *dst;
static uint32_t lkey, rkey;

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static uint64_t addr(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static void pair(struct sim_qp **a, struct sim_qp **b)
{
	*a = sim_qp(6, SIM_CQ_RING);
	*b = sim_qp(6, SIM_CQ_RING);
	sim_pair(*a, *b);
}

static void unpair(struct sim_qp *a, struct sim_qp *b)
{
	sim_qp_free(a);
	sim_qp_free(b);
}

static void expect_ok(struct sim_qp *q, uint8_t opcode)
{
	struct sim_cqe c;

	assert_true(sim_poll(q, &c, WAIT));
	if (c.type != 0)
		fprintf(stderr, "syndrome 0x%x/0x%x\n", c.syndrome, c.vendor);
	assert_int_equal(c.type, 0);
	assert_int_equal(c.opcode, opcode);
	assert_int_equal(c.qpn, q->qp.qpn);
	assert_int_equal(c.uidx, 0x4242);
}

static void expect_error(struct sim_qp *q, uint8_t syndrome, uint16_t counter)
{
	struct sim_cqe c;

	assert_true(sim_poll(q, &c, WAIT));
	assert_int_equal(c.type, 13);
	assert_int_equal(c.syndrome, syndrome);
	assert_int_equal(c.counter, counter);
}

static void test_write_sizes(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 2, 7, 8, 9, 63, 1023, 1024, 1025, 4096, 65537, BUF };
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fill(src, sizes[i], i + 1);
		memset(dst, 0xee, BUF);
		sim_write(a, addr(dst), rkey, src, sizes[i], lkey, 1);
		sim_ring(a);
		expect_ok(a, WQE_WRITE);
		assert_memory_equal(src, dst, sizes[i]);
		if (sizes[i] < BUF)
			assert_int_equal(dst[sizes[i]], 0xee);
		memset(src, 0, BUF);
		sim_read(a, addr(dst), rkey, src, sizes[i], lkey, 1);
		sim_ring(a);
		expect_ok(a, WQE_READ);
		assert_memory_equal(src, dst, sizes[i]);
	}
	unpair(a, b);
}

static void test_inline(void **state)
{
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	for (uint32_t n = 1; n <= 200; n++) {
		fill(src, n, n);
		memset(dst, 0xee, 256);
		sim_inline(a, addr(dst), rkey, src, n, 1);
		sim_ring(a);
		expect_ok(a, WQE_WRITE);
		assert_memory_equal(src, dst, n);
		assert_int_equal(dst[n], 0xee);
	}
	unpair(a, b);
}

/* As UCX sends an active message: what surrounds a boundary of packets is of either kind. */
static void test_mixed(void **state)
{
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	for (uint32_t head = 1; head <= 150; head++) {
		uint32_t len = head * 31 + 1;

		fill(src, len, head);
		memset(dst, 0xee, len + 1);
		sim_mixed(a, addr(dst), rkey, src, head, len, lkey, 1);
		sim_ring(a);
		expect_ok(a, WQE_WRITE);
		assert_memory_equal(src, dst, len);
		assert_int_equal(dst[len], 0xee);
	}
	unpair(a, b);
}

/* 200 000 blocks: the 16-bit counters wrap three times. Rung through the
 * register, or found by the sweep alone. */
static void run_wrap(bool no_uar, unsigned posts)
{
	struct sim_qp *a, *b;
	struct sim_cqe c;
	uint64_t *d = (uint64_t *)(void *)dst;

	pair(&a, &b);
	a->no_uar = no_uar;
	for (uint64_t i = 0; i < posts; i += 16) {
		for (uint64_t k = 0; k < 16; k++) {
			uint64_t v = i + k;

			sim_inline(a, addr(d + k), rkey, &v, 8, k == 15);
		}
		sim_ring(a);
		assert_true(sim_poll(a, &c, WAIT));
		assert_int_equal(c.type, 0);
		assert_int_equal(c.counter, (uint16_t)(i + 15));
		for (uint64_t k = 0; k < 16; k++)
			assert_int_equal(d[k], i + k);
	}
	unpair(a, b);
}

static void test_wrap(void **state)
{
	(void)state;
	run_wrap(false, 200000);
}

static void test_sweep_finds(void **state)
{
	(void)state;
	run_wrap(true, 4096);
}

static void test_send_recv(void **state)
{
	struct sim_qp *a, *b;
	struct sim_cqe c;

	(void)state;
	pair(&a, &b);
	for (uint32_t n = 1; n < 5000; n = n * 3 + 1) {
		fill(src, n, n);
		memset(dst, 0xee, 8192);
		sim_recv(b, dst, 8192, rkey);
		sim_send(a, src, n, lkey, 1);
		sim_ring(a);
		expect_ok(a, WQE_SEND);
		assert_true(sim_poll_recv(b, &c, WAIT));
		assert_int_equal(c.type, 2);
		assert_int_equal(c.byte_cnt, n);
		assert_memory_equal(src, dst, n);
		assert_int_equal(dst[n], 0xee);
	}
	sim_recv(b, NULL, 0, 0x100);
	sim_write_imm(a, addr(dst), rkey, src, 3000, lkey, 0x12345678, 1);
	sim_ring(a);
	expect_ok(a, WQE_WRITE_IMM);
	assert_true(sim_poll_recv(b, &c, WAIT));
	assert_int_equal(c.type, 1);
	assert_int_equal(c.imm, 0x12345678);
	assert_int_equal(c.byte_cnt, 3000);
	assert_memory_equal(src, dst, 3000);
	unpair(a, b);
}

/* The receive comes 20 ms after the SEND; then a limit that is exceeded. */
static void test_rnr(void **state)
{
	struct sim_qp *a, *b;
	struct sim_cqe c;

	(void)state;
	pair(&a, &b);
	fill(src, 100, 1);
	sim_send(a, src, 100, lkey, 1);
	sim_ring(a);
	assert_false(sim_poll(a, &c, 20));
	sim_recv(b, dst, 100, rkey);
	expect_ok(a, WQE_SEND);
	assert_memory_equal(src, dst, 100);
	a->qp.rnr_retry = 2;
	sim_send(a, src, 100, lkey, 0);
	sim_ring(a);
	expect_error(a, SYND_RNR_RETRY_EXC, 1);
	unpair(a, b);
}

static void test_atomics(void **state)
{
	struct sim_qp *a, *b;
	uint64_t *t = (uint64_t *)(void *)dst, *r = (uint64_t *)(void *)src;
	uint32_t *t4 = (uint32_t *)(void *)(dst + 16), *r4 = (uint32_t *)(void *)(src + 16);

	(void)state;
	pair(&a, &b);
	*t = 40;
	sim_fetch_add(a, addr(t), rkey, r, lkey, 2, 1);
	sim_ring(a);
	expect_ok(a, WQE_FETCH_ADD);
	assert_int_equal(*r, 40);
	assert_int_equal(*t, 42);
	sim_cmp_swap(a, addr(t), rkey, r, lkey, 42, 777, 1);
	sim_cmp_swap(a, addr(t), rkey, r + 1, lkey, 42, 888, 1);
	sim_ring(a);
	expect_ok(a, WQE_CMP_SWAP);
	expect_ok(a, WQE_CMP_SWAP);
	assert_int_equal(r[0], 42);
	assert_int_equal(r[1], 777);
	assert_int_equal(*t, 777);

	*t4 = 0x00ff00ff;
	sim_masked(a, true, 4, addr(t4), rkey, r4, lkey,
		   (uint64_t[]){ 0x00010001, 0x00800080, 0, 0 }, 1);
	sim_ring(a);
	expect_ok(a, WQE_MASKED_FETCH_ADD);
	assert_int_equal(*r4, htobe32(0x00ff00ff));
	assert_int_equal(*t4, 0x00000000); /* carries are cut at bits 7 and 23 */
	*t4 = 0x11223344;
	sim_masked(a, false, 4, addr(t4), rkey, r4, lkey,
		   (uint64_t[]){ 0xaabbccdd, 0x00220044, 0xff00ff00, 0x00ff00ff }, 1);
	sim_ring(a);
	expect_ok(a, WQE_MASKED_CMP_SWAP);
	assert_int_equal(*t4, 0xaa22cc44);
	*t = 0x8000000000000001;
	sim_masked(a, true, 8, addr(t), rkey, r, lkey, (uint64_t[]){ 3, UINT64_MAX, 0, 0 }, 1);
	sim_ring(a);
	expect_ok(a, WQE_MASKED_FETCH_ADD);
	assert_int_equal(*r, 0x8000000000000001);
	assert_int_equal(*t, 0x8000000000000002); /* boundary all ones: XOR */
	sim_masked(a, false, 8, addr(t), rkey, r, lkey,
		   (uint64_t[]){ 0x55, 0, UINT64_MAX, 0 }, 1); /* compare mask 0: swap */
	sim_ring(a);
	expect_ok(a, WQE_MASKED_CMP_SWAP);
	assert_int_equal(*r, 0x8000000000000002);
	assert_int_equal(*t, 0x55);
	unpair(a, b);
}

static void test_local_ops(void **state)
{
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	sim_nop(a, 1);
	sim_dump(a, src, 8, lkey, 1);
	sim_read(a, addr(dst), rkey, src, 8, lkey, 0);
	a->fence = 0x40;
	sim_dump(a, src, 1, lkey, 1);
	sim_ring(a);
	expect_ok(a, WQE_NOP);
	expect_ok(a, WQE_DUMP);
	expect_ok(a, WQE_DUMP);
	unpair(a, b);
}

/* More than are picked up at once, by one doorbell: nothing comes back that would call for the rest. */
static void test_many_local(void **state)
{
	struct sim_qp *a = sim_qp(9, SIM_CQ_RING), *b = sim_qp(9, SIM_CQ_RING);

	(void)state;
	sim_pair(a, b);
	for (unsigned i = 0; i < 500; i++)
		sim_nop(a, i == 499);
	sim_ring(a);
	expect_ok(a, WQE_NOP);
	unpair(a, b);
}

static void test_collapsed(void **state)
{
	static const enum sim_cq_mode modes[] = { SIM_CQ_COLLAPSED, SIM_CQ_ONE };
	struct sim_cqe c;

	(void)state;
	for (int m = 0; m < 2; m++) {
		struct sim_qp *a = sim_qp(4, modes[m]), *b = sim_qp(4, SIM_CQ_RING);

		sim_pair(a, b);
		for (unsigned i = 0; i < 70000; i++) {
			sim_inline(a, addr(dst), rkey, &i, 4, 1);
			sim_ring(a);
			if (i % 8 == 7)
				assert_true(sim_wait_counter(a, (uint16_t)i, &c, WAIT));
		}
		unpair(a, b);
	}
}

/* Each error with its syndrome; then everything is flushed, unsignalled
 * WQEs and later ones too. */
static void check_error(void (*post)(struct sim_qp *a), uint8_t syndrome)
{
	struct sim_qp *a, *b;
	struct sim_cqe c;

	pair(&a, &b);
	sim_recv(a, dst, 64, lkey);
	sim_write(a, addr(dst), rkey, src, 8, lkey, 1);
	post(a);
	sim_write(a, addr(dst), rkey, src, 8, lkey, 0);
	sim_ring(a);
	expect_ok(a, WQE_WRITE);
	expect_error(a, syndrome, 1);
	assert_true(sim_poll(a, &c, WAIT));
	assert_int_equal(c.syndrome, SYND_FLUSH);
	assert_int_equal(c.vendor, 0xf9);
	assert_true(sim_poll_recv(a, &c, WAIT));
	assert_int_equal(c.type, 14);
	assert_int_equal(c.syndrome, SYND_FLUSH);
	sim_nop(a, 0);
	sim_ring(a);
	assert_true(sim_poll(a, &c, WAIT));
	assert_int_equal(c.syndrome, SYND_FLUSH);
	sim_recv(a, dst, 64, lkey);
	assert_true(sim_poll_recv(a, &c, WAIT));
	hca_lock();
	assert_int_equal(a->qp.state, HCA_QPS_ERR);
	hca_unlock();
	unpair(a, b);
}

static uint32_t other_pd_key, read_only_key;

static void post_bad_rkey(struct sim_qp *a)
{
	sim_write(a, addr(dst), rkey ^ 1, src, 8, lkey, 0);
}

static void post_out_of_bounds(struct sim_qp *a)
{
	sim_write(a, addr(dst) + BUF - 7, rkey, src, 8, lkey, 0);
}

static void post_below(struct sim_qp *a)
{
	sim_write(a, addr(dst) - 1, rkey, src, 8, lkey, 0);
}

static void post_wrap_around(struct sim_qp *a)
{
	sim_write(a, UINT64_MAX - 3, rkey, src, 8, lkey, 0);
}

static void post_other_pd(struct sim_qp *a)
{
	sim_write(a, addr(dst), other_pd_key, src, 8, lkey, 0);
}

static void post_read_only(struct sim_qp *a)
{
	sim_write(a, addr(dst), read_only_key, src, 8, lkey, 0);
}

static void post_atomic_read_only(struct sim_qp *a)
{
	sim_fetch_add(a, addr(dst), read_only_key, src, lkey, 1, 0);
}

static void post_bad_lkey(struct sim_qp *a)
{
	sim_write(a, addr(dst), rkey, src, 8, 0x77, 0);
}

static void post_lkey_bounds(struct sim_qp *a)
{
	sim_write(a, addr(dst), rkey, src + BUF - 4, 8, lkey, 0);
}

static void post_read_to_read_only(struct sim_qp *a)
{
	sim_read(a, addr(dst), rkey, dst, 8, read_only_key, 0);
}

static void post_unaligned(struct sim_qp *a)
{
	sim_fetch_add(a, addr(dst) + 4, rkey, src, lkey, 1, 0);
}

static void post_bad_opcode(struct sim_qp *a)
{
	sim_nop(a, 0);
	a->qp.sq[64 + 3] = 0x3e;
}

static void post_stale(struct sim_qp *a)
{
	sim_nop(a, 0);
	a->qp.sq[64 + 2] = 0x55;
}

static void post_zero_ds(struct sim_qp *a)
{
	sim_nop(a, 0);
	a->qp.sq[64 + 7] = 0;
}

static void test_errors(void **state)
{
	unsigned events;

	(void)state;
	other_pd_key = sim_mr(dst, BUF, 0xf, 2, addr(dst));
	read_only_key = sim_mr(dst, BUF, HCA_REMOTE_READ, 1, addr(dst));
	events = sim_async_events();
	check_error(post_bad_rkey, SYND_REMOTE_ACCESS);
	check_error(post_out_of_bounds, SYND_REMOTE_ACCESS);
	check_error(post_below, SYND_REMOTE_ACCESS);
	check_error(post_wrap_around, SYND_REMOTE_ACCESS);
	check_error(post_other_pd, SYND_REMOTE_ACCESS);
	check_error(post_read_only, SYND_REMOTE_ACCESS);
	check_error(post_atomic_read_only, SYND_REMOTE_ACCESS);
	check_error(post_unaligned, SYND_REMOTE_INVAL_REQ);
	assert_int_equal(sim_async_events() - events, 8);
	check_error(post_bad_lkey, SYND_LOCAL_PROT);
	check_error(post_lkey_bounds, SYND_LOCAL_PROT);
	check_error(post_read_to_read_only, SYND_LOCAL_PROT);
	check_error(post_bad_opcode, SYND_LOCAL_QP_OP);
	check_error(post_stale, SYND_LOCAL_QP_OP);
	check_error(post_zero_ds, SYND_LOCAL_QP_OP);
}

/* What is copied at once inside the process is judged as by packets. */
static void test_at_once(void **state)
{
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	hca_lock();
	a->qp.sig_all = true;
	hca_unlock();
	memset(dst, 0, 64);
	fill(src, 64, 9);
	sim_write(a, addr(dst), rkey, src, 64, lkey, 0);
	sim_ring(a);
	expect_ok(a, WQE_WRITE);
	assert_memory_equal(dst, src, 64);
	hca_lock();
	a->qp.sig_all = false;
	b->qp.access = HCA_REMOTE_READ | HCA_REMOTE_ATOMIC;
	hca_unlock();
	memset(dst, 0, 64);
	sim_write(a, addr(dst), rkey, src, 64, lkey, 1);
	sim_ring(a);
	expect_error(a, SYND_REMOTE_ACCESS, 1);
	assert_int_equal(dst[0] | dst[63], 0);
	unpair(a, b);
}

/* Address 0 of the region is what the key counts from. */
static void test_iova_zero(void **state)
{
	uint32_t key = sim_mr(dst, BUF, 0xf, 1, 0);
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	fill(src, 64, 5);
	sim_write(a, 128, key, src, 64, lkey, 1);
	sim_ring(a);
	expect_ok(a, WQE_WRITE);
	assert_memory_equal(dst + 128, src, 64);
	sim_write(a, BUF - 8, key, src, 9, lkey, 1);
	sim_ring(a);
	expect_error(a, SYND_REMOTE_ACCESS, 1);
	unpair(a, b);
}

/* A peer that does not exist: retries, then the error, in the time promised. */
static void test_no_peer(void **state)
{
	struct sim_qp *a = sim_qp(4, SIM_CQ_RING);
	uint64_t t = sim_now();
	struct sim_cqe c;

	(void)state;
	a->qp.ack_timeout = 10; /* 4.2 ms */
	a->qp.retry_cnt = 3;
	sim_connect(a, a->qp.qpn + 0x100);
	sim_write(a, addr(dst), rkey, src, 8, lkey, 0);
	sim_ring(a);
	assert_true(sim_poll(a, &c, WAIT));
	t = sim_now() - t;
	assert_int_equal(c.syndrome, SYND_RETRY_EXC);
	assert_int_equal(c.vendor, 0x81);
	/* Four transmissions wait 1, 1, 2, 2 times 4.2 ms. */
	assert_in_range(t, 6 * 4194304, 6 * 4194304 + 1000000000);
	sim_qp_free(a);
}

/* A connection hears its peer's address of other hosts, by its own, and nobody else. */
static void test_other_host(void **state)
{
	struct wire_dest from = { .kind = WIRE_REMOTE, .sgid = 1, .gid = { .s6_addr = { 1, 2, 3 } } };
	struct packet p = { .opcode = BTH_SEND_ONLY, .pkey = 0xffff };
	struct sim_qp *a = sim_qp(4, SIM_CQ_RING);
	uint64_t dropped;

	(void)state;
	sim_recv(a, dst, 64, rkey);
	sim_connect(a, a->qp.qpn + 0x100);
	hca_lock();
	p.dqpn = a->qp.qpn;
	p.psn = a->qp.rc->rs.epsn;
	a->qp.rc->dest = from;
	dropped = hca_stats.pkts_dropped;
	from.gid.s6_addr[15] = 1;
	wire_deliver(&from, &p, NULL, 0);
	from = a->qp.rc->dest;
	from.sgid = 0;
	wire_deliver(&from, &p, NULL, 0);
	from.kind = WIRE_HOST;
	wire_deliver(&from, &p, NULL, 0);
	assert_int_equal(hca_stats.pkts_dropped - dropped, 3);
	assert_int_equal(a->qp.rc->rs.epsn, p.psn);
	wire_deliver(&a->qp.rc->dest, &p, NULL, 0);
	assert_int_equal(a->qp.rc->rs.epsn, psn_add(p.psn, 1));
	hca_unlock();
	sim_qp_free(a);
}

/* A well-formed datagram of our making to a QP of this process. */
static void send_datagram(int fd, struct sockaddr_in me, struct packet *p, const void *data)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT),
				  .sin_addr.s_addr = htonl(0x7f400000u | p->dqpn >> 14) };
	struct packet_addr a = { .saddr = me.sin_addr.s_addr, .daddr = to.sin_addr.s_addr,
				 .sport = me.sin_port, .dport = to.sin_port };
	uint8_t bytes[PKT_MAX] = { 0 };
	size_t n = packet_encode(p, bytes);
	struct iovec iov = { bytes, n + p->len };
	uint32_t crc;

	if (p->len)
		memcpy(bytes + n, data, p->len);
	n += p->len;
	crc = htole32(packet_icrc(&a, &iov, 1));
	memcpy(bytes + n, &crc, 4);
	n += 4;
	assert_int_equal(sendto(fd, bytes, n, 0, (struct sockaddr *)&to, sizeof(to)), n);
}

/* Requests and answers with the right numbers, but from somebody else. */
static void test_stranger(void **state)
{
	struct sockaddr_in me = { .sin_family = AF_INET, .sin_port = htons(ROCE_PORT),
				  .sin_addr.s_addr = htonl(0x7f4003fe) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), df = IP_PMTUDISC_DO;
	uint32_t nobody = dp_first_qpn() + 0x3fff;
	uint64_t rx, word = 0x1122334455667788;
	struct packet write = { .opcode = BTH_WRITE_ONLY, .pkey = 0xffff, .va = addr(dst),
				.rkey = rkey, .dmalen = 8, .len = 8 };
	struct packet ack = { .opcode = BTH_ACK, .pkey = 0xffff, .syndrome = AETH_ACK };
	struct sim_qp *a, *b, *c;

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&me, sizeof(me)), 0);
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
	pair(&a, &b);
	c = sim_qp(4, SIM_CQ_RING);
	c->qp.ack_timeout = 0;
	memset(dst, 0, 64);
	write.dqpn = b->qp.qpn;
	rx = __atomic_load_n(&hca_stats.pkts_rx, __ATOMIC_RELAXED);
	send_datagram(fd, me, &write, &word);
	while (__atomic_load_n(&hca_stats.pkts_rx, __ATOMIC_RELAXED) == rx)
		;
	/* The answer to a request that goes nowhere, not from where it went. */
	sim_connect(c, nobody);
	ack.dqpn = c->qp.qpn;
	sim_write(c, addr(dst), rkey, src, 8, lkey, 1);
	sim_ring(c);
	for (bool sent = false; !sent;) {
		hca_lock();
		sent = c->qp.sq_ci == (uint16_t)c->pi;
		hca_unlock();
	}
	rx = __atomic_load_n(&hca_stats.pkts_rx, __ATOMIC_RELAXED);
	send_datagram(fd, me, &ack, NULL);
	while (__atomic_load_n(&hca_stats.pkts_rx, __ATOMIC_RELAXED) == rx)
		;
	hca_lock();
	assert_int_equal(dst[0], 0);
	assert_int_equal(b->qp.state, HCA_QPS_RTS);
	assert_int_equal(c->scq.pi, 0);
	hca_unlock();
	/* Who it is for still hears it. */
	sim_write(a, addr(dst), rkey, src, 8, lkey, 1);
	sim_ring(a);
	expect_ok(a, WQE_WRITE);
	sim_qp_free(c);
	unpair(a, b);
	close(fd);
}

static void test_cq_overrun(void **state)
{
	struct sim_qp *a, *b;

	(void)state;
	pair(&a, &b);
	for (unsigned i = 0; i < 1100; i++) {
		sim_nop(a, 1);
		sim_ring(a);
		while (i % 32 == 31 && __atomic_load_n(&hca_stats.wqes, __ATOMIC_RELAXED) == 0)
			;
		for (unsigned k = 0; k < 1000 && i % 32 == 31; k++)
			hca_lock_wanted();
		if (i % 32 == 31) {
			/* Room in the SQ, but nothing taken from the CQ. */
			for (bool idle = false; !idle;) {
				hca_lock();
				idle = a->qp.sq_ci == (uint16_t)a->pi;
				hca_unlock();
			}
		}
	}
	hca_lock();
	assert_true(a->scq.overrun);
	assert_int_equal(a->scq.pi, 1024);
	hca_unlock();
	unpair(a, b);
}

static int setup(void **state)
{
	(void)state;
	sim_init();
	src = sim_memory(BUF, HCA_LOCAL_WRITE, &lkey);
	dst = sim_memory(BUF, 0xf, &rkey);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write_sizes), cmocka_unit_test(test_inline),
		cmocka_unit_test(test_mixed),
		cmocka_unit_test(test_wrap),	    cmocka_unit_test(test_sweep_finds),
		cmocka_unit_test(test_send_recv),   cmocka_unit_test(test_rnr),
		cmocka_unit_test(test_atomics),	    cmocka_unit_test(test_local_ops),
		cmocka_unit_test(test_at_once),	    cmocka_unit_test(test_other_host),
		cmocka_unit_test(test_many_local),
		cmocka_unit_test(test_collapsed),   cmocka_unit_test(test_errors),
		cmocka_unit_test(test_iova_zero),   cmocka_unit_test(test_no_peer),
		cmocka_unit_test(test_cq_overrun),  cmocka_unit_test(test_stranger),
	};

	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
