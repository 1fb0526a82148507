// SPDX-License-Identifier: BSD-3-Clause
/* Requests of host threads to a GPU that does not answer: a driver of a few functions, and no kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/clock.h"
#include "runtime/cuda_impl.h"
#include "runtime/perform.h"
#include "runtime/state.h"

#define STREAMS 8 /* of the library */

static gdri_cu_result answer_of_query, answer_of_load;
static int streams, modules, add_fails;

const void *gdri_perform_image(size_t *size)
{
	*size = 1;
	return "";
}

void gdri_perform_plan(const struct gdri_state *st, struct gdri_request *q, struct gdri_plan *p)
{
	(void)st;
	(void)q;
	*p = (struct gdri_plan){1, 32};
}

int gdri_module_add(struct gdri_state *st, struct CUmod_st *module)
{
	(void)st;
	(void)module;
	return add_fails;
}

static gdri_cu_result context(gdri_cu_ctx ctx)
{
	(void)ctx;
	return 0;
}

static gdri_cu_result pop(gdri_cu_ctx *ctx)
{
	*ctx = NULL;
	return 0;
}

static gdri_cu_result create(gdri_cu_stream *s, unsigned int flags)
{
	(void)flags;
	*s = (gdri_cu_stream)(uintptr_t)++streams;
	return 0;
}

static gdri_cu_result destroy(gdri_cu_stream s)
{
	(void)s;
	streams--;
	return 0;
}

static gdri_cu_result query(gdri_cu_stream s)
{
	(void)s;
	return answer_of_query;
}

static gdri_cu_result load(struct CUmod_st **module, const void *image)
{
	(void)image;
	*module = (struct CUmod_st *)&modules;
	modules += !answer_of_load;
	return answer_of_load;
}

static gdri_cu_result unload(struct CUmod_st *module)
{
	(void)module;
	modules--;
	return 0;
}

static gdri_cu_result function(struct CUfunc_st **f, struct CUmod_st *module, const char *name)
{
	(void)module;
	(void)name;
	*f = NULL;
	return 0;
}

static gdri_cu_result host_alloc(void **p, size_t size, unsigned int flags)
{
	(void)flags;
	*p = calloc(1, size);
	return 0;
}

static gdri_cu_result host_free(void *p)
{
	free(p);
	return 0;
}

static gdri_cu_result launch(struct CUfunc_st *f, unsigned int gx, unsigned int gy, unsigned int gz,
			     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			     gdri_cu_stream s, void **args, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared, (void)s, (void)args, (void)extra;
	return 0;
}

static struct gdri_cuda cuda;
static struct gdri_state st;

static int setup(void **state)
{
	(void)state;
	memset(&st, 0, sizeof(st));
	cuda.api.ctx_push = context;
	cuda.api.ctx_pop = pop;
	cuda.api.stream_create = create;
	cuda.api.stream_destroy = destroy;
	cuda.api.stream_query = query;
	cuda.api.module_load = load;
	cuda.api.module_unload = unload;
	cuda.api.module_function = function;
	cuda.api.host_alloc = host_alloc;
	cuda.api.host_free = host_free;
	cuda.api.launch = launch;
	st.cuda = &cuda;
	st.opt.timeout_ms = -4980; /* beside what a kernel is given to end in: 20 ms */
	answer_of_query = 0;
	add_fails = 0;
	return 0;
}

static void test_places_come_back(void **state)
{
	struct gdri_request q = {.what = GDRI_RQ_QUIET};
	struct gdri_answer a;
	uint64_t end;
	int i;

	(void)state;
	gdri_perform_up(&st);
	assert_non_null(st.performer);
	answer_of_query = GDRI_CU_NOT_READY;
	end = gdri_deadline_ns(5000);
	for (i = 0; i < STREAMS + 2; i++) /* the last ones find no place */
		assert_int_equal(gdri_perform_now(&st, &q, &a), -GDR_ETIMEOUT);
	assert_true(gdri_now_ns() < end);
	answer_of_query = 0; /* the kernels end */
	for (i = 0; i < STREAMS + 2; i++)
		assert_int_equal(gdri_perform_now(&st, &q, &a), 0);
	gdri_perform_down(&st);
	assert_int_equal(streams + modules, 0);
}

static void test_module_refused(void **state)
{
	(void)state;
	add_fails = -GDR_ETIMEOUT;
	gdri_perform_up(&st);
	assert_null(st.performer);
	assert_int_equal(streams + modules, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_places_come_back, setup),
		cmocka_unit_test_setup(test_module_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
