// SPDX-License-Identifier: BSD-3-Clause
/* Doorbell registers over a model of what libmlx5 hands out in its old and new
 * versions, with and without failures: every queue pair gets its own while
 * there are enough, and nothing stays allocated after a failure. Also which
 * device names GDR_NIC stands for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/find.h"
#include "runtime/nic/impl.h"

#define PAGE	  4096
#define MANY	  40
#define DEDICATED (1u << 31)

static struct {
	int knows_dedicated;	     /* rdma-core 45 and later */
	int left_dedicated, left_bf; /* registers until the device has no more */
	int no_nc;
	int nc_seen, needs_nc_first; /* what BF took is not given back before the context ends */
} model;
static uint8_t pages[MANY][PAGE] __attribute__((aligned(PAGE))), nc_page[PAGE];
static struct mlx5dv_devx_uar nc_uar;
static int n_live, n_handed;

struct mlx5dv_devx_uar *mlx5dv_devx_alloc_uar(struct ibv_context *ctx, uint32_t flags)
{
	int per_page = flags == DEDICATED ? 4 : 2, *left;
	struct mlx5dv_devx_uar *u;

	(void)ctx;
	if (flags == 1) { /* NC: one object for ever */
		errno = EOPNOTSUPP;
		nc_uar.base_addr = nc_page;
		nc_uar.reg_addr = nc_page + 0x800;
		if (model.no_nc || (model.needs_nc_first && !model.nc_seen && n_handed))
			return NULL;
		model.nc_seen = 1;
		return &nc_uar;
	}
	if (flags == DEDICATED && !model.knows_dedicated) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	left = flags == DEDICATED ? &model.left_dedicated : &model.left_bf;
	u = *left > 0 ? calloc(1, sizeof(*u)) : NULL;
	if (!u) {
		errno = ENOMEM;
		return NULL;
	}
	(*left)--;
	u->base_addr = pages[n_handed / per_page];
	u->reg_addr = (uint8_t *)u->base_addr + 0x800 + n_handed % per_page * (0x400 / per_page);
	u->page_id = (uint32_t)(100 + n_handed / per_page);
	n_handed++;
	n_live++;
	return u;
}

void mlx5dv_devx_free_uar(struct mlx5dv_devx_uar *u)
{
	if (u == &nc_uar)
		return;
	n_live--;
	free(u);
}

static struct gdri_nic_qp qps[MANY];

static int create(int knows, int dedicated, int bf, int no_nc, int n)
{
	static struct gdri_nic nic;

	memset(qps, 0, sizeof(qps));
	strcpy(nic.name, "mlx5_0");
	model.knows_dedicated = knows;
	model.left_dedicated = dedicated;
	model.left_bf = bf;
	model.no_nc = no_nc;
	model.nc_seen = 0;
	n_handed = 0;
	return gdri_nic_uar_create(&nic, qps, n);
}

static int n_distinct(int n)
{
	int i, j, found = 0;

	for (i = 0; i < n; i++) {
		assert_non_null(qps[i].uar);
		assert_non_null(qps[i].db);
		assert_int_equal((uintptr_t)qps[i].db % 0x100,
				 (uintptr_t)qps[i].uar->base_addr % 0x100);
		for (j = 0; j < i && qps[i].db != qps[j].db; j++)
			;
		found += j == i;
	}
	return found;
}

static void done(int n)
{
	int i;

	gdri_nic_uar_destroy(qps, n);
	assert_int_equal(n_live, 0);
	for (i = 0; i < n; i++)
		assert_true(!qps[i].uar && !qps[i].db);
	gdri_nic_uar_destroy(qps, n); /* idempotent */
}

static void test_dedicated(void **state)
{
	(void)state;
	assert_int_equal(create(1, MANY, MANY, 0, MANY), 0);
	assert_int_equal(n_distinct(MANY), MANY);
	assert_int_equal(model.left_bf, MANY);
	done(MANY);
}

static void test_old_library(void **state)
{
	int n;

	(void)state;
	for (n = 1; n <= 4; n++) { /* from the context's page */
		assert_int_equal(create(0, 0, MANY, 0, n), 0);
		assert_int_equal(n_distinct(n), n);
		assert_ptr_equal(qps[0].uar, &nc_uar);
		done(n);
	}
	assert_int_equal(create(0, 0, MANY, 0, 5), 0);
	assert_int_equal(n_distinct(5), 5);
	assert_ptr_not_equal(qps[0].uar, &nc_uar);
	done(5);
	assert_int_equal(create(0, 0, MANY, 1, 3), 0); /* no NC page at all */
	assert_int_equal(n_distinct(3), 3);
	done(3);
}

static void test_used_up(void **state)
{
	(void)state;
	/* In the middle of one kind: what was taken is given back, the next kind serves all. */
	assert_int_equal(create(1, 7, MANY, 0, 20), 0);
	assert_int_equal(n_distinct(20), 20);
	assert_int_equal(n_live, 20);
	done(20);
	assert_int_equal(create(1, 7, 9, 0, 20), 0); /* shared in the end */
	assert_int_equal(n_distinct(20), 4);
	assert_int_equal(n_live, 0);
	done(20);
	model.needs_nc_first = 1;
	assert_int_equal(create(0, 0, 9, 0, 20), 0);
	assert_int_equal(n_distinct(20), 4);
	done(20);
	model.needs_nc_first = 0;
	assert_int_equal(create(1, 7, 9, 1, 20), -GDR_ENOTSUP);
	assert_int_equal(n_live, 0);
	done(20);
}

/* Of n queue pairs without a record; left: registers beside those that all have; a page has four, of old libraries two,
 * which have all in one page first. */
static void check_own(int knows, int n, int left, int expected)
{
	static struct gdri_nic nic;
	int i, j, without = 0;

	assert_int_equal(create(knows, knows ? n + left : 0, knows ? MANY : left, 0, n), 0);
	memset(&nic, 0, sizeof(nic));
	nic.layout.n = (size_t)n;
	nic.qps = qps;
	nic.opt.doorbell_mode = GDRI_BELL_NO_RECORD;
	nic.caps.no_record = true;
	gdri_nic_bell_mode_begin(&nic);
	for (i = 0; i < n; i++) {
		if (qps[i].no_record)
			assert_ptr_equal(qps[i].db, (uint8_t *)qps[i].uar->base_addr + 0x600);
		else
			assert_ptr_not_equal(qps[i].db, (uint8_t *)qps[i].uar->base_addr + 0x600);
		for (j = 0; j < n && qps[i].no_record; j++)
			assert_true(j == i || qps[j].uar->page_id != qps[i].uar->page_id);
		without += qps[i].no_record;
	}
	assert_int_equal(without, expected);
	assert_int_equal(*nic.bell_why != 0, expected < n);
	gdri_nic_uar_destroy(qps, n);
	gdri_nic_bell_mode_destroy(&nic);
	assert_int_equal(n_live, 0);
}

static void test_own(void **state)
{
	(void)state;
	check_own(1, 8, MANY - 8, 8);
	check_own(1, 5, MANY - 5, 5);
	check_own(1, 8, 7, 2); /* the first registers of two pages */
	check_own(1, 5, 3, 0); /* all in the page of the fifth */
	check_own(1, 5, 4, 1);
	check_own(1, 8, 0, 0);
	check_own(0, 4, MANY, 4);
	check_own(0, 4, 3, 2);
}

static void test_wanted(void **state)
{
	(void)state;
	assert_true(gdri_nic_wanted("", "mlx5_0", 1));
	assert_true(gdri_nic_wanted("mlx5_0", "mlx5_0", 2));
	assert_true(gdri_nic_wanted("mlx5_0:2", "mlx5_0", 2));
	assert_true(gdri_nic_wanted("mlx5_0:2", "mlx5_0", 0));
	assert_false(gdri_nic_wanted("mlx5_0:2", "mlx5_0", 1));
	assert_false(gdri_nic_wanted("mlx5_1", "mlx5_10", 1));
	assert_false(gdri_nic_wanted("mlx5_10", "mlx5_1", 1));
	assert_false(gdri_nic_wanted("mlx5_0:", "mlx5_0", 0));
	assert_false(gdri_nic_wanted("mlx5_0:x", "mlx5_0", 0));
	assert_false(gdri_nic_wanted("mlx5_0:1x", "mlx5_0", 1));
	assert_false(gdri_nic_wanted("mlx5_0:-1", "mlx5_0", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dedicated),
		cmocka_unit_test(test_old_library),
		cmocka_unit_test(test_used_up),
		cmocka_unit_test(test_own),
		cmocka_unit_test(test_wanted),
	};

	gdri_log_set_level(GDRI_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
