// SPDX-License-Identifier: BSD-3-Clause
/* Calls of host threads as ranges of NVTX: those that GDR_NVTX names, each ended. The "profiler" is
 * fake_nvtx.c, which NVTX loads by NVTX_INJECTION64_PATH. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr.h>

static void all_calls(void)
{
	uint64_t v = 1, *p;

	assert_int_equal(gdr_init(), 0);
	p = gdr_malloc(64);
	assert_non_null(p);
	assert_int_equal(gdr_host_put(p, &v, sizeof(v), 0), 0);
	assert_int_equal(gdr_host_quiet(), 0);
	assert_int_equal(gdr_uint64_p_on_stream(p, 2, 0, NULL), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(gdr_free(p), 0);
	assert_int_equal(gdr_finalize(), 0);
}

static void test_ranges(void **state)
{
	void *lib = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
	const int *open;
	char *names;

	(void)state;
	assert_non_null(lib);
	names = dlsym(lib, "fake_nvtx_names");
	open = dlsym(lib, "fake_nvtx_open");
	assert_true(names && open);
	setenv("GDR_TRANSPORTS", "p2p", 1);
	all_calls(); /* none is asked for */
	assert_string_equal(names, "");
	setenv("GDR_NVTX", "init,heap,transfer,order,stream", 1);
	all_calls();
	assert_string_equal(names, "gdr_init gdr_malloc gdr_host_put gdr_host_quiet gdr_TYPE_p_on_stream gdr_free "
				   "gdr_finalize gdr_host_quiet ");
	assert_int_equal(*open, 0);
	names[0] = 0;
	setenv("GDR_NVTX", "heap", 1);
	all_calls();
	assert_string_equal(names, "gdr_malloc gdr_free ");
	assert_int_equal(*open, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
