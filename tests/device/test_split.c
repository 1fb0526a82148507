/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of more than one message of the NIC, here of 4 KiB instead of 1 GiB
 * (GDRI_MSG_MAX): on both sides of the boundary, from heap and registered buffer,
 * in order, with the signal last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/device/fake_nic.h"

#if GDRI_MSG_MAX != 4096
#error "to be compiled with -DGDRI_MSG_MAX=4096"
#endif

#define DST 4096
#define SRC 100000

enum form { PUT, PUT_NBI, PUT_SIGNAL, PUT_SIGNAL_NBI, GET, GET_NBI, N_FORMS };

static struct fake *f;

static int transfer(enum form form, void *local, void *sym, uint64_t *sig, size_t len)
{
	switch (form) {
	case PUT:
		return gdr_put(sym, local, len, 1);
	case PUT_NBI:
		return gdr_put_nbi(sym, local, len, 1);
	case PUT_SIGNAL:
		return gdr_put_signal(sym, local, len, sig, len, GDR_SIGNAL_SET, 1);
	case PUT_SIGNAL_NBI:
		return gdr_put_signal_nbi(sym, local, len, sig, len, GDR_SIGNAL_ADD, 1);
	case GET:
		return gdr_get(local, sym, len, 1);
	default:
		return gdr_get_nbi(local, sym, len, 1);
	}
}

/* What a message of its own must not be able to do: leave bytes out, or go beyond. */
static void check(enum form form, size_t len, int buffer)
{
	uint8_t *near = buffer ? f->buffer + 64 : fake_sym(f, SRC), *far = fake_at(f, 1, DST);
	uint8_t *from = form >= GET ? far : near, *to = form >= GET ? near : far;
	uint64_t *sig = fake_at(f, 1, 0), wqes = f->n_wqe, expected = (len + 4095) / 4096;
	size_t i;

	memset(to - 64, 0xa5, len + 128);
	for (i = 0; i < len; i++)
		from[i] = (uint8_t)(i * 7 + (i >> 12) + 1);
	*sig = 0;
	assert_int_equal(transfer(form, near, fake_sym(f, DST), fake_sym(f, 0), len), 0);
	assert_int_equal(gdr_quiet(), 0);
	for (i = 0; i < len; i++)
		assert_int_equal(to[i], (uint8_t)(i * 7 + (i >> 12) + 1));
	for (i = 0; i < 64; i++) {
		assert_int_equal(to[len + i], 0xa5);
		assert_int_equal(to[-1 - (ptrdiff_t)i], 0xa5);
	}
	if (form == PUT_SIGNAL || form == PUT_SIGNAL_NBI) {
		assert_int_equal(*sig, len);
		expected++;
	}
	assert_int_equal(f->n_wqe - wqes, expected);
}

static void test_sizes(void **state)
{
	static const size_t len[] = {29, 4095, 4096, 4097, 4096 + 28, 8191, 8192, 8193, 12288, 50000};
	struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128, .buffer = 1};
	unsigned i, form;
	int ring, buffer;

	(void)state;
	for (ring = 0; ring < 2; ring++) {
		opt.ring = ring;
		f = fake_start(&opt);
		for (form = PUT; form < N_FORMS; form++)
			for (buffer = 0; buffer < 2; buffer++)
				for (i = 0; i < sizeof(len) / sizeof(len[0]); i++)
					check((enum form)form, len[i], buffer);
		assert_int_equal(f->n_bad, 0);
		fake_stop(f);
	}
}

/* An error in one of the parts is the transfer's, and nothing follows it. */
static void test_part_fails(void **state)
{
	struct fake_options opt = {.n_pes = 2, .n_slots = 1, .depth = 128};
	unsigned form;

	(void)state;
	for (form = PUT; form < N_FORMS; form++) {
		f = fake_start(&opt);
		f->qps[1].fail_at = 1;
		f->qps[1].fail_syndrome = 0x13;
		*(uint64_t *)fake_at(f, 1, 0) = 0;
		if (!transfer((enum form)form, fake_sym(f, SRC), fake_sym(f, DST), fake_sym(f, 0),
			      3 * 4096))
			assert_true(gdr_quiet_pe(1) < 0);
		assert_true(f->dev->n_errors > 0);
		assert_int_equal(*(uint64_t *)fake_at(f, 1, 0), 0);
		fake_stop(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_part_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
