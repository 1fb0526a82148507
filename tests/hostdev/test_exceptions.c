/* SPDX-License-Identifier: BSD-3-Clause */
/* A program in C, without a C++ runtime, loads a module whose kernels throw: see exceptions.hpp. tests/cpp has them in
 * a program in C++. */
#include <dlfcn.h>
#include <unistd.h>

#include "tests/hostdev/test.h"

static void test_module_in_cxx(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 3);
	int (*run)(void);
	void *module;

	(void)state;
	/* a launch before there is a C++ runtime */
	assert_int_equal(run_append(1, 1, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	module = dlopen(EXCEPTIONS_MODULE, RTLD_NOW | RTLD_LOCAL);
	if (!module)
		fail_msg("%s", dlerror());
	run = (int (*)(void))(uintptr_t)dlsym(module, "exceptions_of_module");
	assert_non_null(run);
	assert_int_equal(run(), 0);
	assert_int_equal(run(), 0);
	dlclose(module);
}

static int end(void **state)
{
	(void)state;
	return gdri_hd_shutdown(10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_module_in_cxx),
	};

	alarm(300); /* a hang is a failure */
	return cmocka_run_group_tests_name("hostdev.exceptions", tests, NULL, end);
}
