/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of every WQE builder against vectors written down from the PRM's
 * tables (send WQE control, remote address, data, inline and atomic segments,
 * extended atomics). The ring is filled with 0x5a before: bytes that a builder
 * leaves alone show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

static uint8_t ring[128 * 64] __attribute__((aligned(64)));
static struct gdri_qp qp;
static gdri_be32_t rkey, lkey;

#define OFF 0x0102030405060708ull
#define LADDR 0x1112131415161718ull

/* Blocks from index 0x1ab7f on: index bytes ab 7f, place 127, the ring's last. */
#define INDEX 0x1ab7full

static void check(const char *hex, unsigned segments)
{
	uint8_t want[128], got[128];
	unsigned n = 0, v, i;

	for (; *hex; hex++) {
		if (*hex == ' ')
			continue;
		v = (unsigned)(*hex <= '9' ? *hex - '0' : *hex - 'a' + 10);
		if (n & 1)
			want[n / 2] = (uint8_t)(want[n / 2] | v);
		else
			want[n / 2] = (uint8_t)(v << 4);
		n++;
	}
	assert_int_equal(n, segments * 32);
	memcpy(got, ring + 127 * 64, 64);
	memcpy(got + 64, ring, 64);
	assert_memory_equal(got, want, segments * 16);
	for (i = segments * 16; i < 128; i++) /* nothing behind it */
		assert_int_equal(got[i], 0x5a);
	memset(ring, 0x5a, sizeof(ring));
}

static int setup(void **state)
{
	(void)state;
	memset(ring, 0x5a, sizeof(ring));
	qp.sq = ring;
	qp.depth = 128;
	qp.qpn = 0x123456;
	qp.qpn_shifted = __builtin_bswap32(0x123456u << 8);
	rkey.be = __builtin_bswap32(0xaabbccdd);
	lkey.be = __builtin_bswap32(0x21222324);
	return 0;
}

#define RADDR "0102030405060708 aabbccdd 00000000 "
#define DATA(len) len " 21222324 1112131415161718"

static void test_rdma(void **state)
{
	(void)state;
	gdri_wqe_nop(&qp, INDEX, GDRI_CE_ALWAYS);
	check("00ab7f00 12345601 00000008 00000000", 1);
	gdri_wqe_dump(&qp, INDEX, GDRI_CE_ALWAYS | GDRI_FM_FENCE, LADDR, lkey, 1);
	check("00ab7f23 12345602 00000048 00000000 " DATA("00000001"), 2);
	gdri_wqe_rdma(&qp, INDEX, GDRI_OP_WRITE, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, 0x40000000);
	check("00ab7f08 12345603 00000008 00000000 " RADDR DATA("40000000"), 3);
	gdri_wqe_rdma(&qp, INDEX, GDRI_OP_READ, GDRI_CE_ERROR_ONLY, OFF, rkey, LADDR, lkey, 0x1234);
	check("00ab7f10 12345603 00000000 00000000 " RADDR DATA("00001234"), 3);
}

static void test_inline(void **state)
{
	uint32_t v[7] = {0};

	(void)state;
	memcpy(v, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	gdri_wqe_write_inline(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, v, 8);
	check("00ab7f08 12345603 00000008 00000000 " RADDR "80000008 0102030405060708 00000000", 3);
	memcpy(v, "\xff\0\0\0\0\0\0\0", 8);
	gdri_wqe_write_inline(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, v, 1);
	check("00ab7f08 12345603 00000008 00000000 " RADDR "80000001 ff00000000000000 00000000", 3);
	memcpy(v, "abcdefghijklmnopqrstuvwxyz01", 28);
	gdri_wqe_write_inline(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, v, 28);
	check("00ab7f08 12345604 00000008 00000000 " RADDR
	      "8000001c 6162636465666768696a6b6c 6d6e6f707172737475767778797a3031", 4);
	memcpy(v, "abcdefghijkl\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 28);
	gdri_wqe_write_inline(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, v, 12);
	check("00ab7f08 12345603 00000008 00000000 " RADDR "8000000c 6162636465666768696a6b6c", 3);
}

static void test_atomics(void **state)
{
	struct gdri_masked_cs m = {0x0a0b0c0d, 0x1a1b1c1d, 0x2a2b2c2d, 0x3a3b3c3d};

	(void)state;
	gdri_wqe_fa(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, 0x3132333435363738ull);
	check("00ab7f12 12345604 00000008 00000000 " RADDR "3132333435363738 0000000000000000 "
	      DATA("00000008"), 4);
	gdri_wqe_cs(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, 1, 0x4142434445464748ull);
	check("00ab7f11 12345604 00000008 00000000 " RADDR "0000000000000001 4142434445464748 "
	      DATA("00000008"), 4);
	gdri_wqe_masked_fa8(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, 2, ~0ull);
	check("09ab7f15 12345604 00000008 00000000 " RADDR "0000000000000002 ffffffffffffffff "
	      DATA("00000008"), 4);
	gdri_wqe_masked_fa4(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, 0x51525354, 0x80000000);
	check("08ab7f15 12345604 00000008 00000000 " RADDR "51525354 80000000 0000000000000000 "
	      DATA("00000004"), 4);
	gdri_wqe_masked_cs4(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, &m);
	check("08ab7f14 12345604 00000008 00000000 " RADDR "0a0b0c0d 1a1b1c1d 2a2b2c2d 3a3b3c3d "
	      DATA("00000004"), 4);
}

/* Five segments: the fifth stands in the ring's first block. */
static void test_two_blocks(void **state)
{
	struct gdri_masked_cs m = {0x0101010101010101ull, 0x0202020202020202ull,
				   0x0303030303030303ull, 0x0404040404040404ull};

	(void)state;
	gdri_wqe_masked_cs8(&qp, INDEX, GDRI_CE_ALWAYS, OFF, rkey, LADDR, lkey, &m);
	check("09ab7f14 12345605 00000008 00000000 " RADDR
	      "0101010101010101 0202020202020202 0303030303030303 0404040404040404 "
	      DATA("00000008"), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_rdma, setup),
		cmocka_unit_test_setup(test_inline, setup),
		cmocka_unit_test_setup(test_atomics, setup),
		cmocka_unit_test_setup(test_two_blocks, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
