// SPDX-License-Identifier: BSD-3-Clause
/* Options of enhanced connection establishment, as the device has them for the queue pairs of two PEs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/nic/impl.h"
#include "runtime/nic/prm.h"
#include "tests/nic/pair.h"

/* What SOFTHCA_DEVICE says. */
static uint32_t offered(void)
{
	const char *text = strstr(getenv("SOFTHCA_DEVICE"), "ece=");

	return text ? (uint32_t)strtoul(text + 4, NULL, 16) : 0; /* "no" is no number */
}

/* What is on for queue pair i of a PE, which is ready to send. */
static uint32_t on(struct pair *p, int pe, int i)
{
	uint8_t in[PRM_QUERY_QP_IN_BYTES] = {0}, out[PRM_QUERY_QP_OUT_BYTES];
	struct gdri_nic *nic = gdri_nic_of(p->pe[pe].nic);

	gdri_prm_set(in, PRM_IN_OPCODE, PRM_OP_QUERY_QP);
	gdri_prm_set(in, PRM_MODIFY_QP_QPN, nic->qps[i].qpn);
	assert_int_equal(gdri_nic_obj_query(nic, "QUERY_QP", nic->qps[i].qp, in, sizeof(in), out, sizeof(out)), 0);
	assert_int_equal(gdri_prm_get(gdri_prm_at(out, PRM_QP_IN_QPC), 0, 4), PRM_QP_STATE_RTS);
	return (uint32_t)gdri_prm_get(out, PRM_QUERY_QP_OUT_ECE);
}

static void check(const char *const *first, const char *const *second, uint32_t to_self, uint32_t to_other,
		  uint32_t other_self)
{
	struct gdri_options opt, other;
	struct pair p;
	int n;

	pair_options(&opt, first);
	pair_options(&other, second);
	assert_int_equal(pair_up(&p, &opt, &other), 0);
	n = (int)opt.qps_per_pe;
	for (int i = 0; i < n; i++) {
		assert_int_equal(on(&p, 0, i), to_self);
		assert_int_equal(on(&p, 0, n + i), to_other);
		assert_int_equal(on(&p, 1, i), to_other);
		assert_int_equal(on(&p, 1, n + i), other_self);
	}
	pair_down(&p);
}

static void test_auto(void **state)
{
	(void)state;
	check(NULL, NULL, offered(), offered(), offered());
}

static void test_off(void **state)
{
	static const char *const off[] = {"ECE=off", NULL};

	(void)state;
	check(off, off, 0, 0, 0);
	check(NULL, off, offered(), 0, 0);
	check(off, NULL, 0, 0, offered());
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_auto), cmocka_unit_test(test_off)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
