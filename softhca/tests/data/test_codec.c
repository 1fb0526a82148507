/* SPDX-License-Identifier: BSD-3-Clause */
/* Pure functions: packet codec and ICRC, PSN arithmetic, WQE decode, atomic
 * arithmetic. Malformed input of every length. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <zlib.h>

#include "softhca/engine/dp.h"
#include "softhca/memory/guest.h"
#include "softhca/transport/wqe.h"

static unsigned seed = 42;

static uint8_t rnd(void)
{
	return (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
}

static void test_crc(void **state)
{
	uint8_t b[2048];

	(void)state;
	for (size_t i = 0; i < sizeof(b); i++)
		b[i] = rnd();
	assert_int_equal(crc32_ieee(0, "123456789", 9), 0xcbf43926); /* the check value */
	for (size_t off = 0; off < 9; off++)
		for (size_t n = 0; n < 1200; n += 1 + n / 100)
			assert_int_equal(crc32_ieee(7, b + off, n), crc32(7, b + off, (uInt)n));
}

static void test_icrc_rule(void **state)
{
	/* Built by the letter of annex A17: pseudo packet in one buffer. */
	uint8_t pkt[PKT_BTH_LEN + 4], all[8 + 28 + sizeof(pkt)];
	struct packet p = { .opcode = BTH_ACK, .dqpn = 0x123456, .psn = 0xabcdef, .pkey = 0xffff,
			    .syndrome = AETH_ACK, .msn = 5 };
	struct packet_addr a = { .saddr = inet_addr("10.0.0.1"), .daddr = inet_addr("10.0.0.2"),
				 .sport = htons(4791), .dport = htons(4791) };
	struct iovec iov[2] = { { pkt, 14 }, { pkt + 14, 2 } };

	(void)state;
	assert_int_equal(packet_encode(&p, pkt), sizeof(pkt));
	memset(all, 0xff, sizeof(all));
	memcpy(all + 8, "\x45\xff\x00\x30\x00\x00\x40\x00\xff\x11\xff\xff"
			"\x0a\x00\x00\x01\x0a\x00\x00\x02"
			"\x12\xb7\x12\xb7\x00\x1c\xff\xff", 28);
	memcpy(all + 36, pkt, sizeof(pkt));
	all[36 + 4] = 0xff;
	assert_int_equal(packet_icrc(&a, iov, 2), crc32(0, all, sizeof(all)));
	/* Another identification is recognised, any other change is not. */
	for (unsigned id = 1; id < 65536; id += 251) {
		uint32_t crc;

		put_be16(all + 12, (uint16_t)id);
		crc = (uint32_t)crc32(0, all, sizeof(all));
		assert_true(packet_icrc_explained_by_id(crc ^ packet_icrc(&a, iov, 2),
							sizeof(pkt) + 4));
	}
	put_be16(all + 12, 0);
	for (size_t i = 36 + 5; i < sizeof(all); i++) {
		uint32_t crc;

		all[i] ^= 0x10;
		crc = (uint32_t)crc32(0, all, sizeof(all));
		all[i] ^= 0x10;
		assert_false(packet_icrc_explained_by_id(crc ^ packet_icrc(&a, iov, 2),
							 sizeof(pkt) + 4));
	}
}

static void test_bth_bytes(void **state)
{
	static const uint8_t want[] = {
		0x0b, 0xf0, 0xff, 0xff, 0x00, 0x01, 0x02, 0x03, 0x80, 0xfe, 0xdc, 0xba, /* BTH */
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,				/* va */
		0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x00, 0x00, 0x01, /* rkey, length */
		0xde, 0xad, 0xbe, 0xef,				/* immediate */
	};
	struct packet p = { .opcode = BTH_WRITE_ONLY_IMM, .solicited = true, .ackreq = true,
			    .pkey = 0xffff, .dqpn = 0x10203, .psn = 0xfedcba,
			    .va = 0x1122334455667788, .rkey = 0xaabbccdd, .dmalen = 1, .len = 1,
			    .imm = htonl(0xdeadbeef) };
	uint8_t b[PKT_MAX_HDR];

	(void)state;
	assert_int_equal(packet_encode(&p, b), sizeof(want));
	assert_memory_equal(b, want, sizeof(want));
}

/* The DC header, which is softhca's own. */
static void test_dc_bytes(void **state)
{
	static const uint8_t want[] = {
		0xea, 0x40, 0xff, 0xff, 0x00, 0x01, 0x02, 0x03, 0x00, 0xfe, 0xdc, 0xba, /* BTH */
		0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,				/* key */
		0x5a, 0x0a, 0x0b, 0x0c, 0x00, 0xfe, 0xdc, 0xb0, /* life, DCI; first PSN */
		0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x10, 0x00,				/* va */
		0xaa, 0xbb, 0xcc, 0xdd, 0x00, 0x00, 0x00, 0x04, /* rkey, length */
	};
	struct packet q, p = { .opcode = BTH_DC | BTH_WRITE_ONLY, .pkey = 0xffff, .dqpn = 0x10203,
			       .psn = 0xfedcba, .dc_key = 0x1122334455667788, .life = 0x5a,
			       .sqpn = 0xa0b0c, .first_psn = 0xfedcb0, .va = 0x1000,
			       .rkey = 0xaabbccdd, .dmalen = 4, .len = 4 };
	uint8_t b[PKT_MAX_HDR + 8] = { 0 };

	(void)state;
	assert_int_equal(packet_encode(&p, b), sizeof(want));
	assert_memory_equal(b, want, sizeof(want));
	assert_int_equal(packet_decode(b, sizeof(want) + 8, &q), sizeof(want));
	assert_int_equal(q.dc_key, p.dc_key);
	assert_int_equal(q.life, p.life);
	assert_int_equal(q.sqpn, p.sqpn);
	assert_int_equal(q.first_psn, p.first_psn);
	p.opcode = BTH_DC | BTH_ACK; /* answers have none */
	assert_int_equal(packet_encode(&p, b), PKT_BTH_LEN + 4);
}

static void test_round_trip(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		uint8_t b[PKT_MAX] = { 0 };
		struct packet p, q;
		size_t n;

		if (!packet_headers((uint8_t)op))
			continue;
		memset(&p, 0, sizeof(p));
		p.opcode = (uint8_t)op;
		p.dqpn = 0x654321;
		p.psn = 0xfffffe;
		p.pkey = 0x8001;
		p.len = packet_headers(p.opcode) & PKT_HAS_PAYLOAD ? 13 : 0;
		p.ackreq = true;
		n = packet_encode(&p, b);
		assert_int_equal(packet_decode(b, n + p.len + p.pad + 4, &q), n);
		assert_int_equal(q.opcode, op);
		assert_int_equal(q.dqpn, p.dqpn);
		assert_int_equal(q.psn, p.psn);
		assert_int_equal(q.len, p.len);
		assert_true(q.ackreq);
		/* Every shorter packet is refused or still within its bytes. */
		for (size_t k = 0; k < n + p.pad + 4; k++) {
			uint8_t *exact = malloc(k ? k : 1); /* ASan watches its end */
			int off;

			memcpy(exact, b, k);
			off = packet_decode(exact, k, &q);
			assert_true(off < 0 || (size_t)off + q.len + q.pad + 4 <= k);
			free(exact);
		}
	}
}

/* With a full payload, over IPv6. */
static void test_headroom(void **state)
{
	uint8_t bytes[PKT_MAX];
	size_t most = 0;

	(void)state;
	for (unsigned op = 0; op < 256; op++) {
		struct packet p = { .opcode = (uint8_t)op, .len = PKT_MAX_MTU };
		size_t n = 40 + 8 + PKT_ICRC_LEN;

		if (!(packet_headers(p.opcode) & PKT_HAS_PAYLOAD))
			continue;
		n += packet_encode(&p, bytes);
		most = n > most ? n : most;
	}
	assert_int_equal(most, PKT_HEADROOM);
}

static void test_packet_noise(void **state)
{
	(void)state;
	for (int i = 0; i < 200000; i++) {
		size_t n = rnd() % 80u;
		uint8_t *b = malloc(n ? n : 1);
		struct packet p;
		int off;

		for (size_t k = 0; k < n; k++)
			b[k] = rnd();
		if (n)
			b[0] &= 0x1f;
		if (n > 1)
			b[1] &= 0xf0;
		off = packet_decode(b, n, &p);
		assert_true(off < 0 || (size_t)off + p.len + p.pad + 4 <= n);
		free(b);
	}
}

static void test_psn(void **state)
{
	(void)state;
	assert_int_equal(psn_diff(0, 0xffffff), 1);
	assert_int_equal(psn_diff(0xffffff, 0), -1);
	assert_int_equal(psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(psn_diff(5, 5), 0);
	assert_int_equal(psn_add(0xffffff, 1), 0);
	assert_int_equal(psn_add(5, PSN_MASK), 4); /* one back */
}

static void test_wqe_write(void **state)
{
	/* WRITE, index 3, QP 0x106, ds 3, CQE wanted, fence 4; bytes as libmlx5
	 * lays them out. */
	static const uint8_t b[64] = {
		0, 0, 3, 8, 0, 1, 6, 3, 0xff, 0xff, 0xff, 0x88, 1, 2, 3, 4,
		0, 0, 0x7f, 0xc4, 0x58, 0x28, 0x60, 0, 0, 0, 1, 0x5a, 0, 0, 0, 0,
		0, 0, 0x10, 0, 0, 0, 2, 0x5a, 0, 0, 0x7f, 0xc4, 0x58, 0x27, 0x60, 0,
	};
	const char *why = NULL;
	struct wqe w;

	(void)state;
	assert_int_equal(wqe_decode(b, sizeof(b), &w, &why), 0);
	assert_int_equal(w.opcode, WQE_WRITE);
	assert_int_equal(w.index, 3);
	assert_int_equal(w.qpn, 0x106);
	assert_int_equal(w.blocks, 1);
	assert_int_equal(w.ce, 2);
	assert_int_equal(w.fence, 4);
	assert_int_equal(w.raddr, 0x7fc458286000);
	assert_int_equal(w.rkey, 0x15a);
	assert_int_equal(w.nsge, 1);
	assert_int_equal(w.sge[0].len, 4096);
	assert_int_equal(w.sge[0].lkey, 0x25a);
	assert_int_equal(w.sge[0].addr, 0x7fc458276000);
}

static void decode_one(const uint8_t *head, size_t n, uint8_t syndrome, struct wqe *w)
{
	uint8_t *b = calloc(1, 64);
	const char *why = NULL;

	memcpy(b, head, n);
	assert_int_equal(wqe_decode(b, 64, w, &why), syndrome);
	assert_true(!syndrome || why);
	free(b);
}

static void test_wqe_rules(void **state)
{
	uint8_t b[64] = { 0 };
	struct wqe w;

	(void)state;
	put_be32(b, 8);
	put_be32(b + 4, 0x100 << 8 | 3);
	decode_one(b, 64, 0, &w);
	assert_int_equal(w.len, 0x80000000u); /* byte count 0 is 2 GiB */
	put_be32(b + 4, 0x100 << 8 | 1);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w); /* no address segment */
	put_be32(b + 4, 0x100 << 8 | 3);
	put_be32(b + 32, 0x80000000u | 12);
	decode_one(b, 64, 0, &w);
	assert_true(w.has_inline);
	assert_int_equal(w.len, 12);
	assert_int_equal(w.nsge, 1);
	assert_int_equal(w.sge[0].addr, 36);
	put_be32(b + 32, 0x80000000u | 13);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w); /* inline past the end */
	put_be32(b + 32, 0x80000000u | 0x7fffffff);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w);
	put_be32(b, 0x11);
	put_be32(b + 32, 0);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w); /* atomic with ds 3 */
	put_be32(b, 0x07000014);
	put_be32(b + 4, 0x100 << 8 | 4);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w); /* opmod 7 */
	put_be32(b, 0x09000014);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w); /* 8-byte masked needs ds 5 */
	put_be32(b, 0x3e);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w);
	put_be32(b + 4, 0x100 << 8 | 5);
	put_be32(b, 8);
	decode_one(b, 64, SYND_LOCAL_QP_OP, &w); /* ds beyond the bytes given */
}

/* A header inline, the data behind it by address, and once more. */
static void test_wqe_mixed(void **state)
{
	uint8_t b[96] = { 0 };
	const char *why;
	struct wqe w;

	(void)state;
	put_be32(b, 0x0a);
	put_be32(b + 4, 0x100 << 8 | 6);
	put_be32(b + 16, 0x80000000u | 14);
	put_be32(b + 48, 100);
	put_be32(b + 52, 0x1234);
	put_be32(b + 60, 0x5000);
	put_be32(b + 64, 0x80000000u); /* nothing */
	put_be32(b + 80, 0x80000000u | 5);
	assert_int_equal(wqe_decode(b, 96, &w, &why), 0);
	assert_true(w.has_inline);
	assert_int_equal(w.len, 119);
	assert_int_equal(w.nsge, 3);
	assert_true(w.sge[0].inlined && w.sge[0].addr == 20 && w.sge[0].len == 14);
	assert_true(!w.sge[1].inlined && w.sge[1].addr == 0x5000 && w.sge[1].len == 100);
	assert_int_equal(w.sge[1].lkey, 0x1234);
	assert_true(w.sge[2].inlined && w.sge[2].addr == 84 && w.sge[2].len == 5);
	put_be32(b + 80, 0x80000000u | 13);
	assert_int_equal(wqe_decode(b, 96, &w, &why), SYND_LOCAL_QP_OP);
}

static void test_wqe_noise(void **state)
{
	static const uint8_t ops[] = { 0, 8, 9, 10, 11, 0x10, 0x11, 0x12, 0x14, 0x15, 0x23 };
	struct wqe_sge sge[WQE_MAX_SGE];

	(void)state;
	for (int i = 0; i < 200000; i++) {
		size_t n = 16 * (1 + rnd() % 64u);
		uint8_t *b = malloc(n);
		const char *why;
		struct wqe w;

		for (size_t k = 0; k < n; k++)
			b[k] = rnd();
		if (i % 4)
			b[3] = ops[rnd() % sizeof(ops)];
		if (i % 3)
			b[7] = (uint8_t)(n / 16);
		if (!wqe_decode(b, n, &w, &why)) {
			assert_true(w.nsge <= WQE_MAX_SGE);
			for (unsigned k = 0; k < w.nsge; k++)
				assert_true(!w.sge[k].inlined || w.sge[k].addr + w.sge[k].len <= n);
		}
		assert_true(rwqe_decode(b, n, sge, WQE_MAX_SGE) <= WQE_MAX_SGE);
		free(b);
	}
}

/* Field by field, against addition with a modulus. */
static void test_field_add(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 64; a++) {
		for (unsigned b = 0; b < 64; b++) {
			for (unsigned m = 0; m < 64; m++) {
				unsigned want = 0, low = 0;

				for (unsigned bit = 0; bit < 6; bit++) {
					unsigned mask;

					if (!(m >> bit & 1) && bit != 5)
						continue;
					mask = (2u << bit) - (1u << low);
					want |= ((a & mask) + (b & mask)) & mask;
					low = bit + 1;
				}
				assert_int_equal(atomic_field_add(a, b, m) & 63, want);
			}
		}
	}
}

static void test_atomic_execute(void **state)
{
	uint64_t v = 0x1111222233334444;
	struct packet p = { .atomic_size = 8, .operand = 0xaaaabbbbccccdddd,
			    .compare = 0x0000222200004444, .operand_mask = 0xffff0000ffff0000,
			    .compare_mask = 0x0000ffff0000ffff };

	(void)state;
	assert_int_equal(atomic_execute((uint8_t *)&v, &p), 0x1111222233334444);
	assert_int_equal(v, 0xaaaa2222cccc4444);
	p.compare ^= 1;
	assert_int_equal(atomic_execute((uint8_t *)&v, &p), 0xaaaa2222cccc4444);
	assert_int_equal(v, 0xaaaa2222cccc4444);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crc),	   cmocka_unit_test(test_icrc_rule),
		cmocka_unit_test(test_bth_bytes),  cmocka_unit_test(test_dc_bytes),
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_headroom),
		cmocka_unit_test(test_packet_noise), cmocka_unit_test(test_psn),
		cmocka_unit_test(test_wqe_write),  cmocka_unit_test(test_wqe_rules),
		cmocka_unit_test(test_wqe_mixed),  cmocka_unit_test(test_wqe_noise),
		cmocka_unit_test(test_field_add),
		cmocka_unit_test(test_atomic_execute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
