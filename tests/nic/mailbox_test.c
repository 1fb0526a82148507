// SPDX-License-Identifier: BSD-3-Clause
/* The mailboxes that the runtime sends, read back by an independent decoder
 * that goes by the PRM's tables (byte offset of the dword, bits from..to), and
 * the parsing of capabilities. libmlx5's command functions are replaced by
 * recorders: no device is needed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"

static struct {
	uint8_t in[512];
	size_t in_bytes;
} sent[8];
static int n_sent, fail_at, fail_status;
static uint32_t ece_offered;

static int record(const void *in, size_t in_bytes, void *out)
{
	uint8_t *o = out;

	assert_true(in_bytes <= sizeof(sent[0].in) && n_sent < 8);
	memcpy(sent[n_sent].in, in, in_bytes);
	sent[n_sent++].in_bytes = in_bytes;
	if (n_sent == fail_at) {
		o[0] = (uint8_t)fail_status;
		o[4] = 0x12;
		o[7] = 0x34;
		return EREMOTEIO;
	}
	o[9] = 0xab; /* object number 0xabcdef in bytes 9..11 */
	o[10] = 0xcd;
	o[11] = 0xef;
	gdri_prm_store(o + 12, ece_offered);
	return 0;
}

struct mlx5dv_devx_obj *mlx5dv_devx_obj_create(struct ibv_context *ctx, const void *in,
					       size_t inlen, void *out, size_t outlen)
{
	(void)ctx;
	assert_true(outlen >= 16);
	errno = record(in, inlen, out);
	return errno ? NULL : (struct mlx5dv_devx_obj *)(void *)&sent;
}

int mlx5dv_devx_obj_modify(struct mlx5dv_devx_obj *obj, const void *in, size_t inlen, void *out,
			   size_t outlen)
{
	(void)obj;
	assert_true(outlen >= 16);
	return record(in, inlen, out);
}

/* Bits high..low of the big-endian dword at byte `at` of mailbox i. */
static unsigned bits(int i, size_t at, unsigned high, unsigned low)
{
	const uint8_t *p = sent[i].in + at;
	uint32_t v = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];

	assert_true(at + 4 <= sent[i].in_bytes);
	return v >> low & (uint32_t)((1ull << (high - low + 1)) - 1);
}

static struct gdri_nic nic;
static struct gdri_nic_qp qps[6];
static struct mlx5dv_devx_umem umem;
static struct mlx5dv_devx_uar uar;
static struct gdri_nic_address *remote;

static void set_up_nic(unsigned depth, unsigned cq)
{
	memset(&nic, 0, sizeof(nic));
	memset(qps, 0, sizeof(qps));
	memset(sent, 0, sizeof(sent));
	n_sent = 0;
	fail_at = 0;
	nic.opt.qp_depth = depth;
	nic.opt.cq = cq;
	nic.opt.qps_per_pe = 2;
	nic.opt.retry_count = 5;
	nic.opt.rnr_retry = 6;
	nic.opt.ack_timeout = 17;
	nic.opt.service_level = 3;
	nic.opt.traffic_class = 0x68;
	snprintf(nic.name, sizeof(nic.name), "mlx5_7");
	nic.port = 2;
	nic.link_layer = GDRI_LINK_ETHERNET;
	nic.gid_index = 9;
	nic.pkey_index = 0x123;
	nic.pdn = 0x654321;
	nic.psn = 0xfedcba;
	nic.eqn = 0x5a;
	nic.counter_set = 0x5c;
	nic.caps.log_max_msg = 30;
	nic.caps.log_initiator = 4;
	nic.caps.log_responder = 5;
	nic.caps.sport_min = 0xc000;
	nic.caps.sport_max = 0xffff;
	umem.umem_id = 0x87654321;
	uar.page_id = 0x31415;
	nic.umem = &umem;
	nic.qps = qps;
	qps[4].uar = &uar;
	gdri_net_layout(&nic.opt, 3, &nic.layout);
}

static void check_cq(unsigned cq, unsigned log_size, unsigned collapsed, uint64_t offset,
		     uint64_t dbrec)
{
	set_up_nic(256, cq);
	assert_int_equal(gdri_nic_cq_create(&nic, 4), 0);
	assert_int_equal(qps[4].cqn, 0xabcdef);
	assert_int_equal(sent[0].in_bytes, 0x110);
	assert_int_equal(bits(0, 0x00, 31, 16), 0x400);
	assert_int_equal(bits(0, 0x10, 25, 25), 1);	    /* cqc.dbr_umem_valid */
	assert_int_equal(bits(0, 0x10, 20, 20), collapsed); /* cc */
	assert_int_equal(bits(0, 0x10, 17, 17), 1);	    /* oi */
	assert_int_equal(bits(0, 0x10, 23, 21), 0);	    /* cqe_sz: 64 bytes */
	assert_int_equal(bits(0, 0x14, 31, 0), 0x87654321); /* dbr_umem_id */
	assert_int_equal(bits(0, 0x1c, 28, 24), log_size);
	assert_int_equal(bits(0, 0x1c, 23, 0), 0x31415); /* uar_page */
	assert_int_equal(bits(0, 0x24, 7, 0), 0x5a);	 /* c_eqn */
	assert_int_equal(bits(0, 0x48, 31, 0), 0);
	assert_int_equal(bits(0, 0x4c, 31, 0), dbrec); /* dbr_addr */
	assert_int_equal(bits(0, 0x50, 31, 0), 0);
	assert_int_equal(bits(0, 0x54, 31, 0), offset);	    /* cq_umem_offset */
	assert_int_equal(bits(0, 0x58, 31, 0), 0x87654321); /* cq_umem_id */
	assert_int_equal(bits(0, 0x5c, 31, 31), 1);
}

static void test_create_cq(void **state)
{
	const uint64_t sq = 6 * 256 * 64;

	(void)state;
	check_cq(GDRI_CQ_ONE, 0, 1, sq + 4 * 128, sq + 6 * 128 + 4 * 128 + 8);
	check_cq(GDRI_CQ_RING, 8, 0, sq + 4 * 256 * 64, sq + 6 * 256 * 64 + 4 * 128 + 8);
}

static void test_create_qp(void **state)
{
	(void)state;
	set_up_nic(256, GDRI_CQ_ONE);
	nic.caps.qp_ts_format = 2;
	qps[4].cqn = 0x112233;
	assert_int_equal(gdri_nic_qp_create(&nic, 4), 0);
	assert_int_equal(qps[4].qpn, 0xabcdef);
	assert_int_equal(sent[0].in_bytes, 0x110);
	assert_int_equal(bits(0, 0x00, 31, 16), 0x500);
	/* context at 0x18 */
	assert_int_equal(bits(0, 0x18, 23, 16), 0);	  /* st: RC */
	assert_int_equal(bits(0, 0x18, 12, 11), 3);	  /* pm_state */
	assert_int_equal(bits(0, 0x1c, 23, 0), 0x654321); /* pd */
	assert_int_equal(bits(0, 0x20, 15, 15), 0);	  /* no_sq */
	assert_int_equal(bits(0, 0x20, 14, 11), 8);	  /* log_sq_size */
	assert_int_equal(bits(0, 0x20, 7, 6), 1);	  /* ts_format */
	assert_int_equal(bits(0, 0x24, 23, 0), 0x31415);  /* uar_page */
	assert_int_equal(bits(0, 0x28, 23, 0), 4);	  /* user_index */
	assert_int_equal(bits(0, 0x94, 23, 0), 0x112233); /* cqn_snd */
	assert_int_equal(bits(0, 0xb4, 23, 0), 0x112233); /* cqn_rcv */
	assert_int_equal(bits(0, 0xb8, 31, 0), 0);
	assert_int_equal(bits(0, 0xbc, 31, 0), 6 * 256 * 64 + 6 * 128 + 4 * 128); /* dbr_addr */
	assert_int_equal(bits(0, 0xc4, 26, 24), 3);	    /* rq_type: zero size */
	assert_int_equal(bits(0, 0xe8, 28, 28), 1);	    /* dbr_umem_valid */
	assert_int_equal(bits(0, 0xfc, 31, 0), 0x87654321); /* dbr_umem_id */
	assert_int_equal(bits(0, 0x100, 31, 0), 0);
	assert_int_equal(bits(0, 0x104, 31, 0), 4 * 256 * 64); /* wq_umem_offset */
	assert_int_equal(bits(0, 0x108, 31, 0), 0x87654321);
	assert_int_equal(bits(0, 0x10c, 31, 31), 1);
	set_up_nic(256, GDRI_CQ_ONE);
	assert_int_equal(gdri_nic_qp_create(&nic, 4), 0);
	assert_int_equal(bits(0, 0x20, 7, 6), 0); /* devices without the capability: free-running */
}

/* Without a record, then with one, where the first command is refused, and for all behind it. */
static void test_create_qp_without_record(void **state)
{
	static uint8_t page[4096];

	(void)state;
	set_up_nic(256, GDRI_CQ_ONE);
	uar.reg_addr = page + 0x800;
	for (int i = 3; i < 6; i++) {
		qps[i].uar = &uar;
		qps[i].no_record = true;
		qps[i].db = page + 0x600;
	}
	assert_int_equal(gdri_nic_qp_create(&nic, 3), 0);
	assert_int_equal(n_sent, 1);
	assert_int_equal(bits(0, 0x98, 31, 30), 1); /* send_dbr_mode: NO_DBR_EXT */
	fail_at = 2;
	fail_status = 0x0f;
	assert_int_equal(gdri_nic_qp_create(&nic, 4), 0);
	assert_int_equal(qps[4].qpn, 0xabcdef);
	assert_int_equal(n_sent, 3);
	assert_int_equal(bits(1, 0x98, 31, 30), 1);
	assert_int_equal(bits(2, 0x98, 31, 30), 0);
	assert_int_equal(bits(2, 0x24, 23, 0), 0x31415); /* uar_page */
	assert_int_equal(gdri_nic_qp_create(&nic, 5), 0);
	assert_int_equal(n_sent, 4);
	assert_int_equal(bits(3, 0x98, 31, 30), 0);
	for (int i = 3; i < 6; i++) {
		assert_int_equal(qps[i].no_record, i == 3);
		assert_ptr_equal(qps[i].db, page + (i == 3 ? 0x600 : 0x800));
	}
	nic.opt.doorbell_mode = GDRI_BELL_NO_RECORD;
	gdri_nic_bell_mode_end(&nic);
	assert_true(nic.net.no_record && !nic.net.early);
	assert_string_equal(nic.bell_text,
			    "; 1 of 6 queue pairs without doorbell record: CREATE_QP (queue pair 0 to PE 2) refused: "
			    "status 0x0f, syndrome 0x12000034");
}

/* A thread of the host that rings would see the first of two doorbells alone. */
static void test_early(void **state)
{
	(void)state;
	for (int thread = 0; thread < 2; thread++) {
		set_up_nic(256, GDRI_CQ_ONE);
		nic.opt.doorbell_mode = GDRI_BELL_EARLY;
		nic.net.host_rings = thread;
		gdri_nic_bell_mode_end(&nic);
		assert_int_equal(nic.net.early, !thread);
		assert_false(nic.net.no_record);
		assert_int_equal(strlen(nic.bell_text) != 0, !thread);
	}
}

static struct gdri_nic_route route_to(uint16_t lid)
{
	struct gdri_nic_route r = {remote, {0x52, 0x54, 0x01, 0x02, 0x03, 0x04}, 4, false};
	int i;

	remote->psn = 0x123456;
	remote->log_responder = 3;
	remote->lid = lid;
	remote->ece = 0;
	for (i = 0; i < 16; i++)
		remote->gid[i] = (uint8_t)(0x30 + i);
	return r;
}

static void check_access(int i)
{
	assert_int_equal(bits(i, 0xa8, 19, 16), 3); /* atomic_mode: up to 8 bytes */
	assert_int_equal(bits(i, 0xa8, 15, 13), 7); /* rre rwe rae */
}

static void check_rtr(int i)
{
	assert_int_equal(bits(i, 0x00, 31, 16), 0x503);
	assert_int_equal(bits(i, 0x08, 23, 0), 0x777);
	assert_int_equal(bits(i, 0x20, 31, 29), 4);	  /* mtu */
	assert_int_equal(bits(i, 0x20, 28, 24), 30);	  /* log_msg_max */
	assert_int_equal(bits(i, 0x2c, 23, 0), 0x888);	  /* remote_qpn */
	assert_int_equal(bits(i, 0xa8, 23, 21), 5);	  /* log_rra_max */
	assert_int_equal(bits(i, 0xac, 28, 24), 12);	  /* min_rnr_nak */
	assert_int_equal(bits(i, 0xac, 23, 0), 0x123456); /* next_rcv_psn */
	check_access(i);
}

static void check_rts(int i)
{
	assert_int_equal(bits(i, 0x00, 31, 16), 0x504);
	assert_int_equal(bits(i, 0x08, 23, 0), 0x777);
	assert_int_equal(bits(i, 0x38, 31, 27), 17); /* ack_timeout */
	assert_int_equal(bits(i, 0x88, 31, 28), 8);  /* log_ack_req_freq */
	assert_int_equal(bits(i, 0x88, 23, 21), 3);  /* log_sra_max: the peer's limit */
	assert_int_equal(bits(i, 0x88, 18, 16), 5);  /* retry_count */
	assert_int_equal(bits(i, 0x88, 15, 13), 6);  /* rnr_retry */
	assert_int_equal(bits(i, 0x90, 23, 0), 0xfedcba);
}

static void test_modify_roce(void **state)
{
	struct gdri_nic_route r = route_to(0);
	unsigned sport;
	int i;

	(void)state;
	set_up_nic(256, GDRI_CQ_ONE);
	qps[4].qpn = 0x777;
	assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888), 0);
	assert_int_equal(n_sent, 3);
	assert_int_equal(bits(0, 0x00, 31, 16), 0x502);
	assert_int_equal(bits(0, 0x08, 23, 0), 0x777);
	assert_int_equal(bits(0, 0x18, 12, 11), 3);    /* pm_state */
	assert_int_equal(bits(0, 0x24, 31, 24), 0x5c); /* counter_set_id */
	assert_int_equal(bits(0, 0x30, 15, 0), 0x123); /* pkey_index */
	assert_int_equal(bits(0, 0x54, 23, 16), 2);    /* vhca_port_num */
	check_access(0);
	check_rtr(1);
	assert_int_equal(bits(1, 0x38, 23, 16), 9);    /* src_addr_index */
	assert_int_equal(bits(1, 0x38, 7, 0), 64);     /* hop_limit */
	assert_int_equal(bits(1, 0x3c, 27, 20), 0x68); /* tclass */
	for (i = 0; i < 16; i++)
		assert_int_equal(sent[1].in[0x40 + i], 0x30 + i); /* rgid */
	assert_int_equal(bits(1, 0x50, 21, 16), 0x68 >> 2);	  /* dscp */
	sport = bits(1, 0x50, 15, 0);
	assert_in_range(sport, 0xc000, 0xffff);
	assert_int_equal(bits(1, 0x54, 30, 28), 3);	/* eth_prio */
	assert_int_equal(bits(1, 0x54, 23, 16), 2);	/* port */
	assert_int_equal(bits(1, 0x54, 15, 0), 0x5254); /* mac */
	assert_int_equal(bits(1, 0x58, 31, 0), 0x01020304);
	assert_int_equal(bits(1, 0x34, 23, 23), 0); /* grh is InfiniBand's */
	check_rts(2);
	assert_int_equal(bits(0, 0x18, 27, 24), 0); /* lag_tx_port_affinity: no bond */
	assert_int_equal(bits(1, 0x30, 31, 31), 0); /* fl: another PE */
}

/* To oneself, and of a bond of three ports. */
static void test_modify_self(void **state)
{
	struct gdri_nic_route r = route_to(0);

	(void)state;
	set_up_nic(256, GDRI_CQ_ONE);
	r.self = true;
	nic.caps.loopback = true;
	nic.lag_ports = 3;
	assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888), 0);
	assert_int_equal(bits(0, 0x18, 27, 24), 1 + 4 % 3);
	assert_int_equal(bits(1, 0x30, 31, 31), 1);
	nic.caps.loopback = false;
	assert_int_equal(gdri_nic_qp_to_rts(&nic, 5, &r, 0x888), 0);
	assert_int_equal(bits(3, 0x18, 27, 24), 1 + 5 % 3);
	assert_int_equal(bits(4, 0x30, 31, 31), 0);
}

/* Order is asked of a device that takes orders, unless the option forbids; each end says what it found. */
static void test_order(void **state)
{
	static const struct {
		int option;
		bool force, ooo, relaxed_only, asks;
		int order, ret;
	} rows[] = {
		{GDRI_ORDER_AUTO, true, true, false, true, GDRI_NIC_ORDER_KEPT, 0},
		{GDRI_ORDER_STRICT, true, true, false, true, GDRI_NIC_ORDER_KEPT, 0},
		{GDRI_ORDER_RELAXED, true, true, false, false, GDRI_NIC_ORDER_RELAXED, 0},
		{GDRI_ORDER_ASSUMED, true, true, false, false, GDRI_NIC_ORDER_KEPT, 0},
		{GDRI_ORDER_AUTO, false, false, false, false, GDRI_NIC_ORDER_KEPT, 0},
		{GDRI_ORDER_STRICT, false, false, false, false, GDRI_NIC_ORDER_KEPT, 0},
		{GDRI_ORDER_AUTO, true, true, true, true, GDRI_NIC_ORDER_RELAXED, 0},
		{GDRI_ORDER_STRICT, true, true, true, true, GDRI_NIC_ORDER_RELAXED, -GDR_ENOTSUP},
	};
	struct gdri_nic_route r = route_to(0);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		set_up_nic(256, GDRI_CQ_ONE);
		qps[4].qpn = 0x777;
		nic.opt.order = rows[i].option;
		nic.caps.order_force = rows[i].force;
		nic.caps.ooo = rows[i].ooo;
		nic.caps.relaxed_only = rows[i].relaxed_only;
		assert_int_equal(gdri_nic_order_find(&nic), rows[i].ret);
		assert_int_equal(nic.order, rows[i].order);
		assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888), 0);
		assert_int_equal(bits(1, 0x1c, 25, 25), 0); /* dp_ordering_0 */
		assert_int_equal(bits(1, 0x1c, 24, 24), rows[i].asks);
		assert_int_equal(bits(1, 0xa8, 3, 3), 0); /* dp_ordering_1 */
	}
	nic.opt.order = GDRI_ORDER_AUTO;
	memset(&nic.caps, 0, sizeof(nic.caps));
}

/* All take the weaker. */
static void test_order_agree(void **state)
{
	struct gdri_nic_address all[2];

	(void)state;
	set_up_nic(256, GDRI_CQ_ONE);
	memset(all, 0, sizeof(all));
	nic.layout.n_pes = 2;
	nic.net.address_bytes = sizeof(all[0]);
	nic.opt.order = GDRI_ORDER_STRICT;
	assert_int_equal(gdri_nic_order_agree(&nic, all), 0);
	assert_false(nic.net.relaxed);
	all[1].order = GDRI_NIC_ORDER_RELAXED;
	assert_int_equal(gdri_nic_order_agree(&nic, all), -GDR_EMISMATCH);
	nic.opt.order = GDRI_ORDER_AUTO;
	assert_int_equal(gdri_nic_order_agree(&nic, all), 0);
	assert_true(nic.net.relaxed);
	assert_non_null(strstr(nic.order_text, "PE 1 says so"));
}

/* Asked for where the device has it and the option does not forbid it; told are those that all queue pairs are offered;
 * on are those that the other end is offered too, in one version. */
static void test_ece(void **state)
{
	static const struct {
		bool has;
		unsigned option;
		uint32_t theirs, own, on;
	} rows[] = {
		{true, GDRI_ECE_AUTO, 0x30000002, 0x30000006, 0x30000002},
		{true, GDRI_ECE_AUTO, 0x3000000b, 0x30000006, 0x30000002},
		{true, GDRI_ECE_AUTO, 0x10000002, 0x30000006, 0},
		{true, GDRI_ECE_AUTO, 0, 0x30000006, 0},
		{true, GDRI_ECE_OFF, 0x30000002, 0, 0},
		{false, GDRI_ECE_AUTO, 0x30000002, 0, 0},
	};
	static struct {
		struct gdri_nic_address a;
		uint32_t qpn[6];
	} block;
	struct gdri_nic_route r = route_to(0);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool asks = rows[i].has && rows[i].option == GDRI_ECE_AUTO;

		set_up_nic(256, GDRI_CQ_ONE);
		nic.caps.ece = rows[i].has;
		nic.opt.ece = rows[i].option;
		for (int k = 0; k < 6; k++)
			qps[k].uar = &uar;
		ece_offered = 0x3000000e;
		assert_int_equal(gdri_nic_qp_create(&nic, 0), 0);
		assert_int_equal(bits(0, 0x14, 31, 0), asks ? 0x10000000 : 0);
		assert_int_equal(nic.ece, asks ? ece_offered : 0);
		ece_offered = 0x30000007;
		assert_int_equal(gdri_nic_qp_create(&nic, 1), 0);
		assert_int_equal(nic.ece, rows[i].own);
		nic.net.address_bytes = sizeof(block);
		gdri_nic_address(&nic.net, &block);
		assert_int_equal(block.a.ece, rows[i].own);
		remote->ece = rows[i].theirs;
		assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888), 0);
		assert_int_equal(bits(2, 0x14, 31, 0), 0);
		assert_int_equal(bits(3, 0x00, 31, 16), 0x503);
		assert_int_equal(bits(3, 0x14, 31, 0), rows[i].on);
		assert_int_equal(bits(4, 0x14, 31, 0), 0);
	}
	ece_offered = 0;
}

static void test_modify_ib(void **state)
{
	struct gdri_nic_route r = route_to(0x4321);
	int i;

	(void)state;
	set_up_nic(256, GDRI_CQ_ONE);
	nic.link_layer = GDRI_LINK_IB;
	qps[4].qpn = 0x777;
	assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888), 0);
	check_rtr(1);
	assert_int_equal(bits(1, 0x34, 15, 0), 0x4321); /* rlid: dword 1 of the path at 0x30 */
	assert_int_equal(bits(1, 0x54, 27, 24), 3);	/* sl */
	assert_int_equal(bits(1, 0x34, 23, 23), 0);
	for (i = 0; i < 16; i++)
		assert_int_equal(sent[1].in[0x40 + i], 0);
	check_rts(2);
	set_up_nic(256, GDRI_CQ_ONE);
	nic.link_layer = GDRI_LINK_IB;
	nic.grh_required = true;
	qps[4].qpn = 0x777;
	assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888), 0);
	assert_int_equal(bits(1, 0x34, 23, 23), 1);
	assert_int_equal(sent[1].in[0x40], 0x30);
}

static void test_refused(void **state)
{
	struct gdri_nic_route r = route_to(0);
	int k;

	(void)state;
	for (k = 1; k <= 3; k++) {
		set_up_nic(256, GDRI_CQ_ONE);
		fail_at = k;
		fail_status = k == 2 ? 0x0f : 0x03;
		assert_int_equal(gdri_nic_qp_to_rts(&nic, 4, &r, 0x888),
				 k == 2 ? -GDR_ENOMEM : -GDR_ESYSTEM);
		assert_int_equal(n_sent, k); /* nothing after the refusal */
	}
	set_up_nic(256, GDRI_CQ_ONE);
	fail_at = 1;
	fail_status = 0x08;
	assert_int_equal(gdri_nic_cq_create(&nic, 4), -GDR_ENOMEM);
	assert_null(qps[4].cq);
}

static void put(uint8_t *out, size_t at, unsigned low, uint32_t value)
{
	uint32_t v;

	memcpy(&v, out + 16 + at, 4);
	v = __builtin_bswap32(__builtin_bswap32(v) | value << low);
	memcpy(out + 16 + at, &v, 4);
}

static void good_caps(uint8_t *general, uint8_t *atomic, uint8_t *roce)
{
	memset(general, 0, PRM_QUERY_HCA_CAP_OUT_BYTES);
	memset(atomic, 0, PRM_QUERY_HCA_CAP_OUT_BYTES);
	memset(roce, 0, PRM_QUERY_HCA_CAP_OUT_BYTES);
	put(general, 0x10, 16, 15);  /* log_max_qp_sz */
	put(general, 0x14, 28, 1);   /* ece_support */
	put(general, 0x18, 16, 22);  /* log_max_cq_sz */
	put(general, 0x38, 24, 30);  /* log_max_msg */
	put(general, 0x3c, 0, 1);    /* cqe_version */
	put(general, 0x40, 1, 1);    /* atomic */
	put(general, 0x50, 0, 1024); /* max_wqe_sz_sq */
	put(general, 0x20, 0, 16);   /* log_max_klm_list_size */
	put(general, 0x40, 23, 1);   /* umr_modify_atomic_disabled */
	put(general, 0x4c, 7, 1);    /* lag_tx_port_affinity */
	put(general, 0x4c, 0, 2);    /* num_lag_ports */
	put(roce, 0x00, 25, 1);	     /* fl_rc_qp_when_roce_enabled */
	put(general, 0x74, 22, 1);   /* mkc_order_write_after_write_ro_only */
	put(atomic, 0x08, 30, 1);    /* atomic_req_8B_endianness_mode */
	put(atomic, 0x10, 0, 0xf);   /* operations */
	put(atomic, 0x14, 0, 0xc);   /* size_qp */
	put(roce, 0x00, 0, 1);	     /* qp_ts_format */
	put(roce, 0x18, 16, 0xffff); /* max_src_udp_port */
	put(roce, 0x18, 0, 0xc000);  /* min_src_udp_port: second half of the dword */
}

/* Each capability in turn is taken away; the text names it. */
static void test_caps(void **state)
{
	static const struct {
		int group;
		size_t at;
		const char *name;
	} needs[] = {
		{0, 0x10, "log_max_qp_sz"},	{0, 0x18, "log_max_cq_sz"},
		{0, 0x3c, "cqe_version"},	{0, 0x40, "atomic"},
		{0, 0x50, "max_wqe_sz_sq"},	{1, 0x08, "atomic_req_8B_endianness_mode"},
		{1, 0x10, "atomic_operations"}, {1, 0x14, "atomic_size_qp"},
	};
	static uint8_t box[3][PRM_QUERY_HCA_CAP_OUT_BYTES];
	struct gdri_nic_caps caps;
	char why[256];
	size_t i;

	(void)state;
	good_caps(box[0], box[1], box[2]);
	memset(&caps, 0, sizeof(caps));
	gdri_nic_caps_parse(&caps, box[0], box[1], box[2]);
	assert_int_equal(gdri_nic_caps_check(&caps, 15, why, sizeof(why)), 0);
	assert_int_equal(caps.qp_ts_format, 1);
	assert_int_equal(caps.sport_max, 0xffff);
	assert_int_equal(caps.sport_min, 0xc000);
	assert_int_equal(caps.log_max_msg, 30);
	assert_true(caps.ece && caps.relaxed_only && caps.no_indirect_atomic);
	assert_int_equal(caps.log_max_klms, 16);
	assert_int_equal(caps.lag_ports, 2);
	assert_true(caps.loopback);
	assert_int_equal(gdri_nic_caps_check(&caps, 16, why, sizeof(why)), -GDR_ENOTSUP);
	for (i = 0; i < sizeof(needs) / sizeof(needs[0]); i++) {
		good_caps(box[0], box[1], box[2]);
		memset(box[needs[i].group] + 16 + needs[i].at, 0, 4);
		memset(&caps, 0, sizeof(caps));
		gdri_nic_caps_parse(&caps, box[0], box[1], box[2]);
		assert_int_equal(gdri_nic_caps_check(&caps, 10, why, sizeof(why)), -GDR_ENOTSUP);
		assert_non_null(strstr(why, needs[i].name));
	}
}

static void test_log2(void **state)
{
	(void)state;
	assert_int_equal(gdri_log2_floor(0), 0);
	assert_int_equal(gdri_log2_floor(1), 0);
	assert_int_equal(gdri_log2_floor(15), 3);
	assert_int_equal(gdri_log2_floor(16), 4);
	assert_int_equal(gdri_log2_floor(0xffffffff), 31);
}

/* Nothing overlaps, everything is aligned and inside. */
static void test_layout(void **state)
{
	struct gdri_net_layout l;
	struct gdri_options opt;
	unsigned depth, slots, cq;

	(void)state;
	memset(&opt, 0, sizeof(opt));
	for (depth = 128; depth <= 32768; depth *= 2) {
		for (slots = 1; slots <= 64; slots += 21) {
			for (cq = GDRI_CQ_ONE; cq <= GDRI_CQ_RING; cq++) {
				opt.qp_depth = depth;
				opt.qps_per_pe = slots;
				opt.cq = cq;
				gdri_net_layout(&opt, 5, &l);
				assert_int_equal(l.n, 5 * slots);
				assert_int_equal(l.sq, 0);
				assert_int_equal(l.sq_stride, depth * 64);
				assert_true(l.cq >= l.n * l.sq_stride);
				assert_true(l.cq_stride >= l.cq_bytes && l.cq_stride % 128 == 0);
				assert_int_equal(l.cq_bytes, (cq == GDRI_CQ_RING ? depth : 1) * 64);
				assert_true(l.dbrec >= l.cq + l.n * l.cq_stride);
				assert_true(l.dbrec % 128 == 0 && l.dbrec_stride == 128);
				assert_true(l.total >= l.dbrec + l.n * l.dbrec_stride);
				assert_int_equal(l.total % 4096, 0);
				assert_true(gdri_net_largest_page(&l) >= 4096);
				assert_int_equal((l.cq | l.cq_stride) % (gdri_net_largest_page(&l) / 64), 0);
				assert_int_equal(gdri_net_queue_bytes(&opt, 5), l.total);
			}
		}
	}
}

static int setup_remote(void **state)
{
	(void)state;
	remote = calloc(1, sizeof(*remote));
	gdri_log_set_level(GDRI_LOG_ERROR);
	return remote ? 0 : -1;
}

static int teardown_remote(void **state)
{
	(void)state;
	free(remote);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_cq),   cmocka_unit_test(test_create_qp),
		cmocka_unit_test(test_create_qp_without_record), cmocka_unit_test(test_early),
		cmocka_unit_test(test_order), cmocka_unit_test(test_order_agree), cmocka_unit_test(test_modify_self),
		cmocka_unit_test(test_ece),
		cmocka_unit_test(test_modify_roce), cmocka_unit_test(test_modify_ib),
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_caps),
		cmocka_unit_test(test_log2),	    cmocka_unit_test(test_layout),
	};

	return cmocka_run_group_tests(tests, setup_remote, teardown_remote);
}
