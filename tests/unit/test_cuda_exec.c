// SPDX-License-Identifier: BSD-3-Clause
/* Requests of host threads to a GPU that does not answer: a driver of a few functions, and no kernel. */
#define _GNU_SOURCE /* memfd_create */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/core/clock.h"
#include "runtime/cuda/cuda_impl.h"
#include "runtime/exec/exec.h"
#include "runtime/core/state.h"
#include "runtime/mem/window.h"
#include "runtime/cuda/prefetch.h"
#include "runtime/mem/heap.h"
#include "runtime/cuda/units.h"

#define STREAMS 8 /* of the library */

static gdri_cu_result answer_of_query, answer_of_load;
static int streams, modules, add_fails, adds_good, added, pushed, member;
static enum gdri_by planned; /* of broadcasts */

static const char images[4];

const void *gdri_exec_image(enum gdri_image which, size_t *size)
{
	*size = 1;
	return &images[which];
}

struct gdri_executor *gdri_prefetch_executor(struct gdri_state *st)
{
	(void)st;
	return NULL;
}

void gdri_exec_plan(const struct gdri_state *st, struct gdri_request *q, struct gdri_plan *p)
{
	(void)st;
	*p = (struct gdri_plan){1, 32};
	if (q->what == GDRI_RQ_BROADCAST) {
		q->by = planned;
		q->coll.stride = 1;
	}
	if (q->what == GDRI_RQ_REDUCE) {
		q->coll.keep = 1;
		q->coll.members = 2;
		q->coll.member = member;
		q->coll.stride = 1;
	}
}

uint8_t *gdri_window_at(const struct gdri_state *st, const void *ptr, int pe)
{
	uint8_t *base = st->peers[pe].base;

	return base ? base + ((const uint8_t *)ptr - st->heap->base) : NULL;
}

static const void *outside; /* of cudaMalloc */

bool gdri_window_is_outside(const struct gdri_state *st, const void *ptr)
{
	(void)st;
	return ptr && ptr == outside;
}

int gdri_module_add(struct gdri_state *st, struct CUmod_st *module)
{
	(void)st;
	(void)module;
	if (add_fails && adds_good-- <= 0)
		return add_fails;
	added++;
	return 0;
}

void gdri_module_drop(struct gdri_state *st, struct CUmod_st *module)
{
	(void)st;
	(void)module;
	added -= added > 0; /* of a module that is not there nothing goes */
}

static gdri_cu_result error_string(gdri_cu_result r, const char **text)
{
	(void)r;
	*text = "an error";
	return 0;
}

static gdri_cu_result context(gdri_cu_ctx ctx)
{
	(void)ctx;
	pushed++;
	return 0;
}

static gdri_cu_result pop(gdri_cu_ctx *ctx)
{
	*ctx = NULL;
	pushed--;
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
	*module = answer_of_load ? NULL : (struct CUmod_st *)(uintptr_t)image;
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
	static const char *const names[] = {"request", "flat", "grid", "ctas", "team"};
	size_t i = 0, which = (size_t)((const char *)module - images);

	while (strcmp(name + strlen("gdri_kernel_"), names[i]))
		i++;
	*f = (struct CUfunc_st *)(i + 1 + (which >= GDRI_IMAGE_ALL_ANY ? 10 : 0));
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

/* ---- what the driver does by itself: which function was called last, with what ---- */

static const char *called;
static uint64_t called_with;
static gdri_cu_ptr called_at;
static int capturing, copies;
static gdri_cu_ptr copied_to;
static size_t copied;

static gdri_cu_result note(const char *what, gdri_cu_ptr at, uint64_t value)
{
	called = what;
	called_at = at;
	called_with = value;
	return 0;
}

static gdri_cu_result write64(gdri_cu_stream s, gdri_cu_ptr at, uint64_t v, unsigned int flags)
{
	(void)s;
	return note("write64", at, flags ? ~0ull : v);
}

static gdri_cu_result copy_in(gdri_cu_ptr dst, const void *src, size_t len, gdri_cu_stream s)
{
	(void)s;
	assert_int_equal(*(const uint64_t *)src, 0x1122334455667788);
	return note("copy_in", dst, len);
}

static gdri_cu_result copy(gdri_cu_ptr dst, gdri_cu_ptr src, size_t len, gdri_cu_stream s)
{
	(void)src, (void)s;
	copies++;
	copied_to = dst;
	copied = len;
	return note("copy", dst, len);
}

static gdri_cu_result copy_within(gdri_cu_ptr dst, gdri_cu_ptr src, size_t len, gdri_cu_stream s)
{
	(void)src, (void)s;
	return note("copy_within", dst, len);
}

static struct CUfunc_st *kernel;
static uint32_t launched_by; /* what the last request says */

static gdri_cu_result is_capturing(gdri_cu_stream s, int *answer)
{
	(void)s;
	*answer = capturing;
	return pushed > 0 ? 0 : 201; /* CUDA_ERROR_INVALID_CONTEXT */
}

static gdri_cu_result launch(struct CUfunc_st *f, unsigned int gx, unsigned int gy, unsigned int gz,
			     unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			     gdri_cu_stream s, void **args, void **extra)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz;
	(void)shared, (void)s, (void)extra;
	kernel = f;
	launched_by = ((const struct gdri_request *)args[0])->by;
	return note("launch", 0, 0);
}

static unsigned int early;

static gdri_cu_result launch_ex(const struct gdri_cu_launch *how, struct CUfunc_st *f, void **args, void **extra)
{
	(void)args;
	early = how->n_attributes;
	kernel = f;
	return extra || !how->grid[0] || !how->block[2] ? 1 : note("launch", 0, 0);
}

static gdri_cu_result current(gdri_cu_ctx *ctx)
{
	*ctx = pushed > 0 ? NULL : (gdri_cu_ctx)&early; /* another one */
	return 0;
}

static struct gdri_cuda cuda;
static struct gdri_state st;
static struct gdri_heap its_heap;

static int setup(void **state)
{
	(void)state;
	memset(&st, 0, sizeof(st));
	st.heap = &its_heap;
	cuda.api.error_string = error_string;
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
	cuda.api.launch_ex = launch_ex;
	cuda.api.ctx_get = current;
	cuda.api.write64 = write64;
	cuda.api.copy = copy;
	cuda.api.copy_in = copy_in;
	cuda.api.copy_within = copy_within;
	cuda.api.stream_capturing = is_capturing;
	cuda.writes64 = cuda.stages = true;
	capturing = 0;
	st.cuda = &cuda;
	st.opt.timeout_ms = -4980; /* beside what a kernel is given to end in: 20 ms */
	answer_of_query = 0;
	answer_of_load = 0;
	add_fails = adds_good = added = 0;
	outside = NULL;
	return 0;
}

/* A busy one is waited for at length once, until it was idle. */
static void test_default_stream(void **state)
{
	uint64_t begin = gdri_now_ns();

	(void)state;
	gdri_cuda_default_stream(&cuda, 20000);
	assert_false(cuda.default_busy);
	answer_of_query = GDRI_CU_NOT_READY;
	gdri_cuda_default_stream(&cuda, 20000);
	assert_true(gdri_now_ns() - begin >= 20000000);
	assert_true(cuda.default_busy);
	gdri_cuda_default_stream(&cuda, INT_MAX); /* 2147 s, were it waited for again */
	assert_true(cuda.default_busy);
	answer_of_query = 0;
	gdri_cuda_default_stream(&cuda, 20000);
	assert_false(cuda.default_busy);
}

static void test_places_come_back(void **state)
{
	struct gdri_request q = {.what = GDRI_RQ_QUIET};
	struct gdri_answer a;
	uint64_t end;
	int i;

	(void)state;
	gdri_exec_up(&st);
	assert_non_null(st.executor);
	answer_of_query = GDRI_CU_NOT_READY;
	end = gdri_deadline_ns(5000);
	for (i = 0; i < STREAMS + 2; i++) /* the last ones find no place */
		assert_int_equal(gdri_exec_now(&st, &q, &a), -GDR_ETIMEOUT);
	assert_true(gdri_now_ns() < end);
	answer_of_query = 0; /* the kernels end */
	for (i = 0; i < STREAMS + 2; i++)
		assert_int_equal(gdri_exec_now(&st, &q, &a), 0);
	gdri_exec_down(&st);
	assert_int_equal(streams + modules, 0);
}

/* A process has few channels to a GPU: calls one after the other take one. */
static void test_one_stream(void **state)
{
	struct gdri_request q = {.what = GDRI_RQ_QUIET};
	struct gdri_answer a;

	(void)state;
	gdri_exec_up(&st);
	for (int i = 0; i < STREAMS; i++)
		assert_int_equal(gdri_exec_now(&st, &q, &a), 0);
	assert_int_equal(streams, 1);
	gdri_exec_down(&st);
	assert_int_equal(streams + modules, 0);
}

/* At the end of a process without gdr_finalize the driver is gone before the library's threads. */
static void test_process_ends(void **state)
{
	int own = dup(2), texts = memfd_create("texts", 0);
	char text[256] = "";

	(void)state;
	assert_true(own >= 0 && texts >= 0 && dup2(texts, 2) == 2);
	assert_int_equal(gdri_cuda_refused(&cuda, "a look", GDRI_CU_DEINITIALIZED), -GDR_ESYSTEM);
	assert_int_equal(gdri_cuda_refused(&cuda, "a change", 1), -GDR_ESYSTEM);
	assert_int_equal(dup2(own, 2), 2);
	assert_true(pread(texts, text, sizeof(text) - 1, 0) > 0);
	close(texts);
	close(own);
	assert_null(strstr(text, "a look"));
	assert_non_null(strstr(text, "a change"));
}

/* The GPU has room for the stack of what is launched later: the kernel for all requests went there with none. */
static void test_room(void **state)
{
	(void)state;
	kernel = NULL;
	gdri_exec_up(&st);
	assert_ptr_equal(kernel, (struct CUfunc_st *)1);
	assert_int_equal(launched_by, GDRI_BY_NONE);
	assert_int_equal(gdri_exec_up_any(&st), 0);
	assert_ptr_equal(kernel, (struct CUfunc_st *)11);
	assert_int_equal(launched_by, GDRI_BY_NONE);
	gdri_exec_down(&st);
}

static void test_module_refused(void **state)
{
	(void)state;
	add_fails = -GDR_ETIMEOUT;
	gdri_exec_up(&st);
	assert_null(st.executor);
	assert_int_equal(streams + modules, 0);
}

/* The first one, which is unloaded, is not left among the program's. */
static void test_second_module_refused(void **state)
{
	struct gdri_constants constants = {.direct = 1};

	(void)state;
	add_fails = -GDR_ETIMEOUT;
	adds_good = 1;
	st.constants = &constants;
	gdri_exec_up(&st);
	st.constants = NULL;
	assert_null(st.executor);
	assert_int_equal(added, 0);
	assert_int_equal(streams + modules, 0);
}

/* One value to a mapped peer needs no kernel, but where a graph is made of less than 8 bytes; what adds does. */
static void test_stores_by_driver(void **state)
{
	static uint8_t heap[64], peer[64];
	struct gdri_peer peers[2] = {{.base = heap}, {.base = peer}};
	struct gdri_request q = {.what = GDRI_RQ_P, .pe = 1, .dst = heap + 16, .value = {0x1122334455667788}};
	static const uint32_t sizes[] = {1, 2, 4, 16, 8};

	(void)state;
	gdri_exec_up(&st);
	st.heap->base = heap;
	st.peers = peers;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		q.size = sizes[i];
		assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
		assert_string_equal(called, "copy_in");
		assert_int_equal(called_with, sizes[i]);
		assert_true(called_at == (uintptr_t)peer + 16);
		capturing = 1;
		assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
		assert_string_equal(called, q.size == 8 ? "write64" : "launch");
		capturing = 0;
		cuda.stages = false; /* a GPU that reads the program's memory itself */
		assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
		assert_string_equal(called, q.size == 8 ? "write64" : "launch");
		cuda.stages = true;
	}
	q = (struct gdri_request){.what = GDRI_RQ_SIGNAL, .pe = 1, .size = 8,
				  .signal = {(uint64_t *)(void *)(heap + 24), 7, GDRI_SIGNAL_SETS, 0}};
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_string_equal(called, "write64");
	assert_int_equal(called_with, 7);
	assert_true(called_at == (uintptr_t)peer + 24);
	q.signal.op = GDRI_SIGNAL_SETS + 1;
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_string_equal(called, "launch");
	q.signal.op = GDRI_SIGNAL_SETS;
	cuda.writes64 = false;
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_string_equal(called, "launch");
	peers[1].base = NULL;
	q = (struct gdri_request){.what = GDRI_RQ_P, .pe = 1, .size = 4, .dst = heap + 16};
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_string_equal(called, "launch");
	st.peers = NULL;
	gdri_exec_down(&st);
	assert_int_equal(pushed, 0);
}

/* The driver is told what it need not find out. */
static void test_copies_by_driver(void **state)
{
	static uint8_t heap[64], peer[64], other[16];
	struct gdri_peer peers[2] = {{.base = heap}, {.base = peer}};
	struct gdri_request put = {.what = GDRI_RQ_PUT, .pe = 1, .dst = heap + 16, .src = heap + 8, .size = 8, .n = 1};
	struct gdri_request get = {.what = GDRI_RQ_GET, .pe = 1, .dst = heap + 16, .src = heap + 8, .size = 8, .n = 1};

	(void)state;
	gdri_exec_up(&st);
	st.heap->base = heap;
	st.heap->size = 32;
	st.peers = peers;
	assert_int_equal(gdri_exec_on_stream(&st, &put, NULL), 0); /* of the host: a heap there */
	assert_string_equal(called, "copy");
	st.heap->cuda = &cuda;
	assert_int_equal(gdri_exec_on_stream(&st, &put, NULL), 0);
	assert_string_equal(called, "copy_within");
	assert_true(called_at == (uintptr_t)peer + 16);
	assert_int_equal(gdri_exec_on_stream(&st, &get, NULL), 0);
	assert_string_equal(called, "copy_within");
	assert_true(called_at == (uintptr_t)heap + 16);
	put.src = get.dst = other;
	assert_int_equal(gdri_exec_on_stream(&st, &put, NULL), 0);
	assert_string_equal(called, "copy");
	assert_int_equal(gdri_exec_on_stream(&st, &get, NULL), 0);
	assert_string_equal(called, "copy");
	put.src = heap + 8;
	put.dst = heap + 40; /* a registered buffer may be memory of the host */
	assert_int_equal(gdri_exec_on_stream(&st, &put, NULL), 0);
	assert_string_equal(called, "copy");
	st.heap->cuda = NULL;
	st.heap->size = 0;
	st.peers = NULL;
	gdri_exec_down(&st);
	assert_int_equal(pushed, 0);
}

/* Barriers of mapped PEs have kernels of their own; launches overlap where nothing says that they may not. */
static void test_barriers(void **state)
{
	struct gdri_constants constants = {.direct = 1};
	struct gdri_request q = {.what = GDRI_RQ_BARRIER_ALL};
	gdr_stream_t own = (gdr_stream_t)&constants;

	(void)state;
	gdri_exec_up(&st);
	st.constants = &constants;
	st.n_pes = 2;
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_ptr_equal(kernel, (void *)2);
	assert_int_equal(early, 0);
	cuda.early = true;
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_int_equal(early, 1);
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_int_equal(early, 0);
	capturing = 1;
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_int_equal(early, 0);
	capturing = 0;
	q.what = GDRI_RQ_BARRIER; /* of a team */
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_ptr_equal(kernel, (void *)5);
	constants.direct = 0;
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_ptr_equal(kernel, (void *)1);
	constants.direct = 1;
	q.what = GDRI_RQ_SYNC_ALL;
	st.n_pes = GDRI_FLAT_MAX + 1;
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_ptr_equal(kernel, (void *)1);
	st.n_pes = 2;
	constants.direct = 0;
	assert_int_equal(gdri_exec_on_stream(&st, &q, own), 0);
	assert_ptr_equal(kernel, (void *)1);
	st.constants = NULL;
	cuda.early = false;
	gdri_exec_down(&st);
	assert_int_equal(pushed, 0);
}

/* The own piece of a sum goes to the other PE by copy, and a barrier behind it. */
static void test_copies(void **state)
{
	static uint64_t own[80], peer[80];
	struct gdri_peer peers[2] = {{.base = (uint8_t *)own}, {.base = (uint8_t *)peer}};
	struct gdri_constants constants = {.direct = 1};
	struct gdri_request q = {.what = GDRI_RQ_REDUCE, .size = 8, .n = 80, .dst = own, .src = own};

	(void)state;
	for (size_t i = 0; i < 80; i++)
		own[i] = 0x1122334455667788;
	gdri_exec_up(&st);
	st.constants = &constants;
	st.n_pes = 2;
	st.peers = peers;
	st.heap->base = (uint8_t *)own;
	kernel = NULL;
	copies = member = 0; /* 40 rows: 24 and 16 */
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_int_equal(copies, 1);
	assert_true(copied_to == (uintptr_t)peer);
	assert_int_equal(copied, 24 * 16);
	assert_string_equal(called, "launch");
	assert_ptr_equal(kernel, (void *)2); /* the barrier of all */
	peers[0].base = (uint8_t *)peer;
	member = 1;
	q.coll.team = 5;
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_int_equal(copies, 2);
	assert_true(copied_to == (uintptr_t)peer + 24 * 16);
	assert_int_equal(copied, 16 * 16);
	assert_string_equal(called, "launch");
	assert_ptr_equal(kernel, (void *)5); /* that of the team */
	st.peers = NULL;
	st.constants = NULL;
	gdri_exec_down(&st);
	assert_int_equal(pushed, 0);
}

/* What finds memory of cudaMalloc is loaded when there is some, and launched where an argument lies there. */
static void test_outside(void **state)
{
	static uint64_t heap[8], own[8];
	struct gdri_constants constants = {.direct = 1};
	struct gdri_request q = {.what = GDRI_RQ_BROADCAST, .dst = heap, .src = heap};
	struct gdri_answer a;
	static const struct {
		enum gdri_by by;
		uintptr_t plain, any;
	} seen[] = {{GDRI_BY_BLOCK, 1, 11}, {GDRI_BY_GRID, 3, 13}, {GDRI_BY_CTAS, 4, 4}};

	(void)state;
	st.constants = &constants;
	gdri_exec_up(&st);
	assert_int_equal(modules, 2);
	outside = own;
	assert_int_equal(gdri_exec_up_any(&st), 0);
	assert_int_equal(modules, 4);
	assert_int_equal(added, 4);
	assert_int_equal(gdri_exec_up_any(&st), 0); /* once */
	assert_int_equal(modules, 4);
	for (size_t i = 0; i < sizeof(seen) / sizeof(*seen); i++) {
		planned = seen[i].by;
		q.dst = heap;
		q.src = heap;
		assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
		assert_true((uintptr_t)kernel == seen[i].plain);
		q.src = own;
		assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
		assert_true((uintptr_t)kernel == seen[i].any);
		q.src = heap;
		q.dst = own;
		assert_int_equal(gdri_exec_now(&st, &q, &a), 0);
		assert_true((uintptr_t)kernel == seen[i].any);
	}
	q = (struct gdri_request){.what = GDRI_RQ_WAIT, .wait = {.words = own}};
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_true((uintptr_t)kernel == 1); /* own memory needs no looking up */
	q = (struct gdri_request){.what = GDRI_RQ_PUT_SIGNAL, .dst = heap, .src = heap, .signal = {.word = own}};
	assert_int_equal(gdri_exec_on_stream(&st, &q, NULL), 0);
	assert_true((uintptr_t)kernel == 11);
	st.constants = NULL;
	gdri_exec_down(&st);
	assert_int_equal(streams + modules, 0);
}

/* Refused: nothing of it stays. Late: it may yet land, and so stays for the next attempt. */
static void test_outside_refused(void **state)
{
	(void)state;
	assert_int_equal(gdri_exec_up_any(&st), 0); /* there are no kernels at all */
	gdri_exec_up(&st);
	answer_of_load = 2;
	assert_int_equal(gdri_exec_up_any(&st), -GDR_ENOMEM);
	assert_int_equal(modules, 2);
	answer_of_load = 0;
	add_fails = -GDR_ETIMEOUT;
	assert_int_equal(gdri_exec_up_any(&st), -GDR_ETIMEOUT);
	assert_int_equal(modules, 4);
	add_fails = 0;
	assert_int_equal(gdri_exec_up_any(&st), 0);
	assert_int_equal(modules, 4);
	assert_int_equal(added, 2); /* not those for jobs whose PEs are all mapped */
	gdri_exec_down(&st);
	assert_int_equal(streams + modules, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_default_stream, setup),
		cmocka_unit_test_setup(test_places_come_back, setup),
		cmocka_unit_test_setup(test_one_stream, setup),
		cmocka_unit_test_setup(test_room, setup),
		cmocka_unit_test_setup(test_process_ends, setup),
		cmocka_unit_test_setup(test_module_refused, setup),
		cmocka_unit_test_setup(test_second_module_refused, setup),
		cmocka_unit_test_setup(test_copies_by_driver, setup),
		cmocka_unit_test_setup(test_stores_by_driver, setup),
		cmocka_unit_test_setup(test_barriers, setup),
		cmocka_unit_test_setup(test_copies, setup),
		cmocka_unit_test_setup(test_outside, setup),
		cmocka_unit_test_setup(test_outside_refused, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
