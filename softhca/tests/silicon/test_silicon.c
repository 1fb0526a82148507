/* SPDX-License-Identifier: BSD-3-Clause */
/* What devices differ in (SOFTHCA_DEVICE): a group of tests for each capability, named on the command line. */
#include <errno.h>
#include <string.h>

#include "softhca/tests/control/common.h"

#define PAGES 8192u

static uint8_t memory[PAGES] __attribute__((aligned(4096)));

static uint64_t cap(struct ibv_context *ctx, unsigned group, unsigned bit, unsigned width)
{
	static uint8_t out[0x1010];
	uint8_t in[16] = {0};

	put_bits(in, 0, 16, 0x100);
	put_bits(in, 0x30, 16, group << 1 | 1);
	assert_int_equal(mlx5dv_devx_general_cmd(ctx, in, sizeof(in), out, sizeof(out)), 0);
	return get_bits(out + 16, bit, width);
}

static void test_relaxed_only(void **state)
{
	struct ibv_context *ctx = *state;
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_mr *mr;

	assert_int_equal(cap(ctx, 0, 0x3a9, 1), 1); /* mkc_order_write_after_write_ro_only */
	errno = 0;
	assert_null(ibv_reg_mr(pd, memory, PAGES, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EINVAL);
	mr = ibv_reg_mr(pd, memory, PAGES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	ibv_dealloc_pd(pd);
}

static int group_setup(void **state)
{
	*state = open_device();
	return 0;
}

static int group_teardown(void **state)
{
	return ibv_close_device(*state);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *group;
		struct CMUnitTest test;
	} all[] = {
		{"relaxed-only", cmocka_unit_test(test_relaxed_only)},
	};
	int bad = -1;

	for (size_t i = 0; argc == 2 && i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i].group, argv[1]))
			continue;
		bad = bad < 0 ? 0 : bad;
		bad += _cmocka_run_group_tests(all[i].test.name, &all[i].test, 1, group_setup, group_teardown);
	}
	return bad;
}
