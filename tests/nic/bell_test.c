// SPDX-License-Identifier: BSD-3-Clause
/* Doorbell registers of a host whose pages are of 64 KiB (GB200): up to 16 of the device's pages of registers lie in
 * one of the host's, which the driver maps once and whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_impl.h"
#include "runtime/nic/impl.h"

enum { HOST_PAGE = 65536, UAR = 4096, REG = 0x800, SEEN = 1 << 20, MANY = 6 };

static uint8_t registers[2 * HOST_PAGE] __attribute__((aligned(HOST_PAGE)));
static struct {
	uint8_t *at;
	size_t len;
} mapped[MANY];
static int n_mapped;
static long host_page;

long sysconf(int name) /* the host's, for what is under test */
{
	assert_int_equal(name, _SC_PAGESIZE);
	return host_page;
}

static gdri_cu_result bell_register(void *p, size_t len, unsigned int flags)
{
	assert_true(flags & GDRI_CU_HOST_IO);
	assert_true(n_mapped < MANY);
	for (int i = 0; i < n_mapped; i++) /* as the driver: what overlaps is registered already */
		if ((uint8_t *)p < mapped[i].at + mapped[i].len && mapped[i].at < (uint8_t *)p + len)
			return 712;
	mapped[n_mapped].at = p;
	mapped[n_mapped++].len = len;
	return 0;
}

static gdri_cu_result bell_unregister(void *p)
{
	for (int i = 0; i < n_mapped; i++) {
		if (mapped[i].at != p)
			continue;
		mapped[i] = mapped[--n_mapped];
		return 0;
	}
	return 713;
}

static gdri_cu_result bell_pointer(gdri_cu_ptr *at, void *p, unsigned int flags)
{
	(void)flags;
	*at = (uintptr_t)p + SEEN;
	return 0;
}

static gdri_cu_result bell_push(gdri_cu_ctx ctx)
{
	(void)ctx;
	return 0;
}

static gdri_cu_result bell_pop(gdri_cu_ctx *ctx)
{
	*ctx = NULL;
	return 0;
}

static struct gdri_cuda gpu;

/* Queue pairs with a register each, of these pages of the device. */
static void check_pages(long page, const int *uars, int n, int expected)
{
	static struct gdri_nic nic;
	static struct gdri_nic_qp qps[MANY];

	host_page = page;
	memset(&nic, 0, sizeof(nic));
	gpu.api.host_register = bell_register;
	gpu.api.host_unregister = bell_unregister;
	gpu.api.host_pointer = bell_pointer;
	gpu.api.ctx_push = bell_push;
	gpu.api.ctx_pop = bell_pop;
	nic.poster = &gpu;
	nic.qps = qps;
	nic.layout.n = (size_t)n;
	for (int i = 0; i < n; i++)
		qps[i].db = registers + uars[i] * UAR + REG + i % 2 * 0x100;
	assert_int_equal(gdri_nic_bell_create(&nic), 0);
	assert_null(nic.net.host_rings);
	assert_int_equal(n_mapped, expected);
	for (int i = 0; i < n_mapped; i++) {
		assert_int_equal(mapped[i].len, page);
		assert_int_equal((uintptr_t)mapped[i].at % (uintptr_t)page, 0);
	}
	for (int i = 0; i < n; i++)
		assert_ptr_equal(gdri_nic_bell_of(&nic, i), qps[i].db + SEEN);
	gdri_nic_bell_destroy(&nic);
	assert_int_equal(n_mapped, 0);
}

static void test_small_pages(void **state)
{
	(void)state;
	check_pages(UAR, (const int[]){0, 0, 1, 1, 7, 20}, 6, 4);
}

static void test_large_pages(void **state)
{
	(void)state;
	check_pages(HOST_PAGE, (const int[]){0, 0, 1, 1, 7, 20}, 6, 2);
	check_pages(HOST_PAGE, (const int[]){15, 3}, 2, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_pages),
		cmocka_unit_test(test_large_pages),
	};

	gdri_log_set_level(GDRI_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
