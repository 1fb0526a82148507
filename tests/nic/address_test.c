// SPDX-License-Identifier: BSD-3-Clause
/* Received addresses are hostile: every field that is wrong is refused with a
 * text that names the PE, and random bytes are never more than refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>
#include <gdr/version.h>

#include "runtime/nic/address.h"

#define PES   3
#define SLOTS 2
#define BYTES (sizeof(struct gdri_nic_address) + PES * SLOTS * sizeof(uint32_t))
#define OWN   1

static uint8_t *blocks; /* exactly PES * BYTES: a sanitizer sees any step beyond */
static struct gdri_nic_address *own;
static char why[320], abi_text[64];

static struct gdri_nic_address *block(int pe)
{
	return (struct gdri_nic_address *)(void *)(blocks + (size_t)pe * BYTES);
}

static void fill(int pe, struct gdri_nic_address *a)
{
	uint32_t i;

	memset(a, 0, BYTES);
	a->magic = GDRI_NIC_ADDRESS_MAGIC;
	a->abi = GDR_ABI_VERSION;
	a->bytes = BYTES;
	a->n_pes = PES;
	a->n_slots = SLOTS;
	a->psn = 0xffffff;
	a->rkey_data = 0xdeadbeef;
	a->pkey = 0xffff;
	a->link_layer = GDRI_LINK_ETHERNET;
	a->mtu = (uint8_t)(1 + pe);
	a->log_responder = 4;
	memset(a->gid, pe + 1, sizeof(a->gid));
	strcpy(a->device, "mlx5_0");
	for (i = 0; i < PES * SLOTS; i++)
		a->qpn[i] = 0x100 * (uint32_t)(pe + 1) + i;
}

static int setup(void **state)
{
	int pe;

	(void)state;
	blocks = malloc(PES * BYTES);
	own = malloc(BYTES);
	if (!blocks || !own)
		return -1;
	for (pe = 0; pe < PES; pe++)
		fill(pe, block(pe));
	fill(OWN, own);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(blocks);
	free(own);
	return 0;
}

static int check(void)
{
	memset(why, 0, sizeof(why));
	return gdri_nic_address_check(blocks, own, OWN, why, sizeof(why));
}

static void test_good(void **state)
{
	(void)state;
	assert_int_equal(check(), 0);
}

static void expect(int code, const char *text)
{
	assert_int_equal(check(), -code);
	assert_non_null(strstr(why, "PE 2"));
	assert_non_null(strstr(why, text));
	fill(2, block(2));
	assert_int_equal(check(), 0);
}

/* A wrong value in the address of PE 2 and what check says of it. */
#define FIELD(name) offsetof(struct gdri_nic_address, name), sizeof(((struct gdri_nic_address *)0)->name)
#define QPN(i)      offsetof(struct gdri_nic_address, qpn) + (i) * sizeof(uint32_t), sizeof(uint32_t)
static const struct wrong {
	size_t at, size;
	uint64_t value;
	int code;
	const char *text;
} wrongs[] = {
	{FIELD(magic), GDRI_NIC_ADDRESS_MAGIC ^ 1, GDR_EVERSION, "no network address"},
	{FIELD(abi), GDR_ABI_VERSION + 6, GDR_EVERSION, abi_text},
	{FIELD(bytes), BYTES - 1, GDR_EMISMATCH, "expected"},
	{FIELD(n_pes), 0x40000000, GDR_EMISMATCH, "expected"},
	{FIELD(n_slots), 4, GDR_EMISMATCH, "has 4 queue pairs to each PE"},
	{FIELD(psn), 0x1000000, GDR_EMISMATCH, "24 bits"},
	{FIELD(link_layer), 0, GDR_EMISMATCH, "link layer"},
	{FIELD(link_layer), 200, GDR_EMISMATCH, "link layer"},
	{FIELD(link_layer), GDRI_LINK_IB, GDR_ELINK, "InfiniBand"},
	{FIELD(mtu), 0, GDR_EMISMATCH, "MTU"},
	{FIELD(mtu), 6, GDR_EMISMATCH, "MTU"},
	{FIELD(log_responder), 8, GDR_EMISMATCH, "in flight"},
	{FIELD(order), 2, GDR_EMISMATCH, "order of WRITEs"},
	{FIELD(pkey), 0x8001, GDR_ELINK, "P_Key 0x8001"},
	{QPN(PES * SLOTS - 1), 1, GDR_EMISMATCH, "queue pair"},
	{QPN(0), 0xffffff, GDR_EMISMATCH, "queue pair"},
	{QPN(3), 0x80000100, GDR_EMISMATCH, "queue pair"},
};

static void test_each_field(void **state)
{
	size_t i;

	(void)state;
	snprintf(abi_text, sizeof(abi_text), "ABI version %d, this PE 1 has %d", GDR_ABI_VERSION + 6,
		 GDR_ABI_VERSION);
	for (i = 0; i < sizeof(wrongs) / sizeof(wrongs[0]); i++) {
		/* little-endian, as the library is */
		memcpy((uint8_t *)block(2) + wrongs[i].at, &wrongs[i].value, wrongs[i].size);
		expect(wrongs[i].code, wrongs[i].text);
	}
}

/* A name without an end is cut in the message. */
static void test_unterminated_name(void **state)
{
	struct gdri_nic_address *a = block(2);

	(void)state;
	memset(a->device, 'x', sizeof(a->device));
	a->link_layer = GDRI_LINK_IB;
	expect(GDR_ELINK, "xxxxxxxxxxxxxxx");
}

static void test_own_changed(void **state)
{
	(void)state;
	block(OWN)->rkey_sync ^= 1;
	assert_int_equal(check(), -GDR_EMISMATCH);
	assert_non_null(strstr(why, "own network address"));
}

static void set_ib(struct gdri_nic_address *a, uint16_t lid)
{
	a->link_layer = GDRI_LINK_IB;
	a->lid = lid;
	memcpy(a->gid, "\xfe\x80\0\0\0\0\0\0", 8);
}

static void test_infiniband(void **state)
{
	int pe;

	(void)state;
	for (pe = 0; pe < PES; pe++)
		set_ib(block(pe), (uint16_t)(pe + 1));
	set_ib(own, OWN + 1);
	assert_int_equal(check(), 0);
	block(2)->lid = 0;
	assert_int_equal(check(), -GDR_ELINK);
	assert_non_null(strstr(why, "subnet manager"));
	block(2)->lid = 0xc000;
	assert_int_equal(check(), -GDR_ELINK);
	block(2)->lid = 0xbfff;
	assert_int_equal(check(), 0);
	block(2)->gid[7] = 1;
	assert_int_equal(check(), -GDR_ELINK);
	assert_non_null(strstr(why, "subnet"));
}

/* Two limited members cannot talk, a full and a limited one can (IBTA 10.9.1.1). */
static void test_membership(void **state)
{
	int pe;

	(void)state;
	block(2)->pkey = 0x7fff;
	assert_int_equal(check(), 0);
	for (pe = 0; pe < PES; pe++)
		block(pe)->pkey = 0x7fff;
	own->pkey = 0x7fff;
	assert_int_equal(check(), -GDR_ELINK);
}

static void test_random(void **state)
{
	unsigned i, k, n;

	(void)state;
	srandom(20);
	for (i = 0; i < 200000; i++) {
		setup(NULL);
		n = 1 + (unsigned)random() % 8;
		for (k = 0; k < n; k++)
			blocks[(size_t)random() % (PES * BYTES)] = (uint8_t)random();
		check();
		assert_int_equal(why[sizeof(why) - 1], 0);
		teardown(NULL);
	}
	setup(NULL);
	memset(blocks, 0xff, PES * BYTES);
	assert_int_equal(check(), -GDR_EVERSION);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_good),
		TEST(test_each_field),
		TEST(test_unterminated_name),
		TEST(test_own_changed),
		TEST(test_infiniband),
		TEST(test_membership),
		cmocka_unit_test_setup_teardown(test_random, NULL, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
