// SPDX-License-Identifier: BSD-3-Clause
/* The GPU side of the library over a driver that hangs and fails on request:
 * every wait is bounded, nothing is used after it was given back, and what could not be
 * asked is not taken for an answer. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr.h>
#include <gdr/impl/arch/unit.h>

#include "runtime/cuda/cuda.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"
#include "tests/unit/fake_buffer.h"
#include "tests/unit/fake_cuda.h"

#define LONG 20000 /* ms: what must not be waited for */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The time of day, which is set back while the library waits. */
static int set_back;
int __real_clock_gettime(clockid_t clock, struct timespec *ts);
/* Visible: the linker takes it for the call of a sanitizer's library, too. */
__attribute__((visibility("default"))) int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
	int ret = __real_clock_gettime(clock, ts);

	if (clock == CLOCK_REALTIME && set_back)
		ts->tv_sec -= 3600;
	return ret;
}

static void set(int *word, int value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void comes_to(const int *word, int value)
{
	double end = now() + 10;

	while (__atomic_load_n(word, __ATOMIC_RELAXED) != value && now() < end)
		usleep(1000);
	assert_int_equal(__atomic_load_n(word, __ATOMIC_RELAXED), value);
}

int cuCtxSetCurrent(void *ctx); /* of the fake */
int cuCtxGetCurrent(void **ctx);
int cuDevicePrimaryCtxRetain(void **ctx, int device);
int cuDevicePrimaryCtxRelease_v2(int device);

/* No context is current, as in a program that has not used CUDA: the library retains one. */
static struct gdri_cuda *open_one(void)
{
	struct gdri_cuda *c = NULL;

	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	assert_int_equal(gdri_cuda_open(&c, 3, GDRI_HANDLE_AUTO), 0);
	assert_non_null(c);
	return c;
}

gdri_cu_result cuMemAlloc_v2(gdri_cu_ptr *at, size_t size);
gdri_cu_result cuMemFree_v2(gdri_cu_ptr at);

static void nothing_left(void)
{
	comes_to(&fake_cuda.retained, 0);
	comes_to(&fake_cuda.streams, 0);
	comes_to(&fake_cuda.memory, 0);
}

static void test_open(void **state)
{
	struct gdri_cuda *c = open_one();

	(void)state;
	assert_string_equal(gdri_cuda_text(c), "Fake 0 0000:01:00.0");
	gdri_cuda_close(c);
	gdri_cuda_close(NULL);
	nothing_left();
	set(&fake_cuda.devices, 0);
	assert_int_equal(gdri_cuda_open(&c, 0, GDRI_HANDLE_AUTO), -GDR_ENOTSUP);
	assert_null(c);
	assert_non_null(strstr(gdri_log_last_error(), "counts none"));
	set(&fake_cuda.devices, 1);
	nothing_left();
}

/* The thread has no context that has ended; one that others use stays. */
static void test_primary(void **state)
{
	struct gdri_cuda *c = open_one();
	void *ours, *now_current;

	(void)state;
	assert_int_equal(cuCtxGetCurrent(&ours), 0);
	assert_non_null(ours);
	gdri_cuda_close(c);
	assert_int_equal(cuCtxGetCurrent(&now_current), 0);
	assert_null(now_current);

	c = open_one();
	assert_int_equal(cuDevicePrimaryCtxRetain(&ours, 0), 0); /* as the runtime does */
	gdri_cuda_close(c);
	assert_int_equal(cuCtxGetCurrent(&now_current), 0);
	assert_ptr_equal(now_current, ours);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
	nothing_left();
}

/* Memory that two map, as PEs of a node do. */
static void two_map(struct gdri_cuda *c)
{
	uint64_t size = 3u << 20, max = 9u << 20, word = 77, back = 0;
	uint8_t *base = NULL, *peer = NULL;
	char why[128];
	int fd = -1;

	assert_int_equal(gdri_cuda_heap_reserve(c, true, &size, &max, &base), 0);
	assert_int_equal(size, 4u << 20);
	assert_int_equal(max, 10u << 20);
	assert_int_equal(gdri_cuda_heap_reserve(c, false, &size, &max, &peer), 0);
	assert_int_equal(gdri_cuda_heap_create(c, base, size, &fd), 0);
	assert_int_equal(gdri_cuda_heap_import(c, fd, peer, size, why, sizeof(why)), 0);
	assert_int_equal(gdri_cuda_copy(c, base + 4096, &word, sizeof(word), LONG), 0);
	assert_int_equal(gdri_cuda_copy(c, &back, peer + 4096, sizeof(back), LONG), 0);
	assert_int_equal(back, 77);
	assert_int_equal(gdri_cuda_zero(c, peer, size, LONG), 0);
	assert_int_equal(*(uint64_t *)(void *)(base + 4096), 0);
	gdri_cuda_heap_unmap(c, peer, size);
	gdri_cuda_heap_unmap(c, base, size);
	assert_int_equal(gdri_cuda_heap_import(c, -1, peer, size, why, sizeof(why)), -GDR_ESYSTEM);
	assert_non_null(strstr(why, "cannot map its memory"));
	gdri_cuda_heap_release(c, base, max);
	gdri_cuda_heap_release(c, peer, max);
	close(fd);
	gdri_cuda_close(c);
	nothing_left();
}

static void test_heap(void **state)
{
	(void)state;
	two_map(open_one());
	assert_int_equal(fake_cuda.letters, 0);
}

static int open_by(int handles)
{
	struct gdri_cuda *c = NULL;
	int ret;

	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	ret = gdri_cuda_open(&c, 0, handles);
	if (!ret)
		two_map(c);
	else
		nothing_left();
	return ret;
}

/* Asked for, and where there is nothing else; what the driver refuses is said. */
static void test_fabric(void **state)
{
	(void)state;
	assert_int_equal(open_by(GDRI_HANDLE_FABRIC), 0);
	assert_int_equal(fake_cuda.letters, 2); /* the one that was tried, and the heap's */
	set(&fake_cuda.fabric_result, 800); /* CUDA_ERROR_NOT_PERMITTED: no channel */
	assert_int_equal(open_by(GDRI_HANDLE_FABRIC), -GDR_ENOTSUP);
	assert_int_equal(open_by(GDRI_HANDLE_AUTO), 0);
	assert_int_equal(fake_cuda.letters, 2);
	set(&fake_cuda.no_fd, 1);
	assert_int_equal(open_by(GDRI_HANDLE_AUTO), -GDR_ENOTSUP);
	set(&fake_cuda.fabric_result, 0);
	assert_int_equal(open_by(GDRI_HANDLE_AUTO), 0);
	assert_int_equal(fake_cuda.letters, 4);
	assert_int_equal(open_by(GDRI_HANDLE_FD), -GDR_ENOTSUP);
	set(&fake_cuda.no_fabric, 1);
	assert_int_equal(open_by(GDRI_HANDLE_AUTO), -GDR_ENOTSUP);
	set(&fake_cuda.no_fabric, 0);
	set(&fake_cuda.no_fd, 0);
}

/* Behind a copy that is overdue all others fail at once, until it has ended. */
static void test_overdue_copy(void **state)
{
	struct gdri_cuda *c = open_one();
	uint64_t a = 1, b = 2, d = 3;
	double begin;

	(void)state;
	set(&fake_cuda.hang_copy, 1);
	assert_int_equal(gdri_cuda_copy(c, &a, &b, sizeof(a), 50), -GDR_ETIMEOUT);
	assert_non_null(strstr(gdri_log_last_error(), "a copy did not finish in 50 ms"));
	begin = now();
	assert_int_equal(gdri_cuda_copy(c, &d, &b, sizeof(a), LONG), -GDR_ETIMEOUT);
	assert_non_null(strstr(gdri_log_last_error(), "a copy cannot begin: an earlier copy"));
	assert_int_equal(gdri_cuda_zero(c, &d, sizeof(d), LONG), -GDR_ETIMEOUT);
	assert_non_null(strstr(gdri_log_last_error(), "zeroing memory cannot begin"));
	assert_true(now() - begin < 5);
	assert_int_equal(d, 3);
	assert_int_equal(gdri_cuda_settle(c, 50), -GDR_ETIMEOUT);
	assert_int_equal(a, 1);
	set(&fake_cuda.hang_copy, 0);
	assert_int_equal(gdri_cuda_settle(c, LONG), 0);
	assert_int_equal(a, 2); /* the overdue one has landed */
	assert_int_equal(gdri_cuda_copy(c, &d, &b, sizeof(a), LONG), 0);
	assert_int_equal(d, 2);
	gdri_cuda_close(c);
	nothing_left();
}

/* A thread that a wait left behind in the driver: neither a later wait that succeeds nor close
 * takes the context from under it. */
static void test_wait_left_behind(void **state)
{
	struct gdri_cuda *c = open_one();

	(void)state;
	set(&fake_cuda.elsewhere, 0);
	set(&fake_cuda.disturbed, 0);
	set(&fake_cuda.hang_sync, 1);
	assert_int_equal(gdri_cuda_wait_kernels(c, 50), -GDR_ETIMEOUT);
	comes_to(&fake_cuda.in_sync, 1);
	comes_to(&fake_cuda.elsewhere, 1);
	comes_to(&fake_cuda.disturbed, 0);
	gdri_cuda_close(c);
	assert_int_equal(__atomic_load_n(&fake_cuda.retained, __ATOMIC_RELAXED), 1);
	assert_int_equal(__atomic_load_n(&fake_cuda.streams, __ATOMIC_RELAXED), 1);
	set(&fake_cuda.hang_sync, 0);
	nothing_left();

	c = open_one();
	set(&fake_cuda.hang_sync, 1);
	assert_int_equal(gdri_cuda_wait_kernels(c, 50), -GDR_ETIMEOUT);
	comes_to(&fake_cuda.in_sync, 1);
	set(&fake_cuda.hang_sync, 0);
	assert_int_equal(gdri_cuda_wait_kernels(c, LONG), 0);
	gdri_cuda_close(c);
	nothing_left();
}

static void *end_sync(void *unused)
{
	usleep(50000);
	set(&fake_cuda.hang_sync, 0);
	return unused;
}

static void test_time_is_set(void **state)
{
	struct gdri_cuda *c = open_one();
	pthread_t t;

	(void)state;
	set_back = 1;
	set(&fake_cuda.hang_sync, 1);
	assert_int_equal(pthread_create(&t, NULL, end_sync, NULL), 0);
	assert_int_equal(gdri_cuda_wait_kernels(c, LONG), 0);
	set_back = 0;
	assert_int_equal(pthread_join(t, NULL), 0);
	gdri_cuda_close(c);
	nothing_left();
}

static void test_kernel_that_failed(void **state)
{
	struct gdri_cuda *c = open_one();

	(void)state;
	set(&fake_cuda.sync_result, 700);
	assert_int_equal(gdri_cuda_wait_kernels(c, LONG), -GDR_ESYSTEM);
	assert_non_null(strstr(gdri_log_last_error(), "kernels of this PE: an error of the fake (700)"));
	set(&fake_cuda.sync_result, 0);
	gdri_cuda_close(c);
	nothing_left();
}

/* ---- the whole library, as a program with CUDA kernels has it ---- */

static struct gdri_dev *device;

static int show(const struct gdri_constants *c)
{
	device = c ? c->dev : NULL;
	return 0;
}

static struct gdri_unit unit = {GDR_ABI_VERSION, show, NULL, 1, 0, 1};

static uint64_t *start(void)
{
	struct gdr_job_info info;
	uint64_t *p;

	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	assert_int_equal(gdr_init(), 0);
	assert_non_null(device);
	assert_int_equal(gdr_query(&info), 0);
	assert_string_equal(info.device_kind, "cuda");
	p = gdr_calloc(8, sizeof(*p));
	assert_non_null(p);
	return p;
}

static int setup(void **state)
{
	(void)state;
	setenv("GDR_TRANSPORTS", "p2p", 1);
	setenv("GDR_HEAP_SIZE", "4m", 1);
	setenv("GDR_TIMEOUT", "200ms", 1);
	setenv("GDR_INIT_TIMEOUT", "5s", 1);
	gdri_unit_add(&unit);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	set(&fake_cuda.hang_copy, 0);
	set(&fake_cuda.good_copies, 0);
	gdr_finalize(); /* where the test ended amid it */
	gdri_unit_remove(&unit);
	return 0;
}

static const struct gdri_dev *late_device;

static int show_late(const struct gdri_constants *c)
{
	late_device = c ? c->dev : NULL;
	return 0;
}

/* Kernels of a library that is loaded when the program has initialised, and then initialises, too. */
static void test_late_unit(void **state)
{
	struct gdri_unit late = {GDR_ABI_VERSION, show_late, NULL, 1, 0, 1};
	struct gdri_unit old = {GDR_ABI_VERSION - 1, show_late, NULL, 1, 0, 1};

	(void)state;
	assert_int_equal(gdri_users(1), 0);
	start();
	assert_int_equal(gdri_users(1), 2);
	gdri_unit_add(&late);
	assert_null(late_device);
	device = NULL; /* what has it is not written to again */
	assert_int_equal(gdri_users(1), 3);
	assert_non_null(late_device);
	assert_null(device);
	gdri_unit_add(&old);
	assert_int_equal(gdri_users(1), -GDR_EVERSION);
	gdri_unit_remove(&old);
	gdri_unit_remove(&late);
	assert_int_equal(gdri_users(1), 4);
	assert_null(device);
	assert_int_equal(gdri_users(-3), 1);
	assert_int_equal(gdr_finalize(), 0);
	assert_int_equal(gdri_users(-1), 0);
}

static void test_well(void **state)
{
	uint64_t *p = start(), v = 5, w = 0;

	(void)state;
	assert_int_equal(gdr_host_put(p + 1, &v, sizeof(v), 0), 0);
	assert_int_equal(gdr_host_get(&w, p + 1, sizeof(w), 0), 0);
	assert_int_equal(w, 5);
	device->latched = -GDR_ETIMEOUT; /* as a kernel would */
	assert_int_equal(gdr_host_status(), -GDR_ETIMEOUT);
	assert_int_equal(gdr_host_quiet(), -GDR_ETIMEOUT);
	assert_int_equal(device->latched, 0);
	assert_int_equal(gdr_host_quiet(), 0);
	assert_int_equal(gdr_barrier_all(), 0);
	assert_int_equal(gdr_finalize(), 0);
	assert_null(device);
	nothing_left();
}

/* A context is current: the heap is made while the launcher is asked. It goes where init fails. */
static void test_early(void **state)
{
	uint64_t *p, v = 5, w = 0;
	void *ours;

	(void)state;
	assert_int_equal(cuDevicePrimaryCtxRetain(&ours, 0), 0);
	assert_int_equal(cuCtxSetCurrent(ours), 0);
	set(&fake_cuda.elsewhere, 0);
	assert_int_equal(gdr_init(), 0);
	comes_to(&fake_cuda.elsewhere, 1);
	comes_to(&fake_cuda.disturbed, 0);
	p = gdr_calloc(8, sizeof(*p));
	assert_non_null(p);
	assert_int_equal(gdr_host_put(p + 1, &v, sizeof(v), 0), 0);
	assert_int_equal(gdr_host_get(&w, p + 1, sizeof(w), 0), 0);
	assert_int_equal(w, 5);
	assert_int_equal(gdr_finalize(), 0);
	comes_to(&fake_cuda.memory, 0);
	set(&fake_cuda.no_memory, 1);
	assert_int_equal(gdr_init(), -GDR_ENOMEM);
	set(&fake_cuda.no_memory, 0);
	comes_to(&fake_cuda.memory, 0);
	setenv("GDR_COLL_SLOT", "nonsense", 1);
	assert_int_equal(gdr_init(), -GDR_EOPTION);
	unsetenv("GDR_COLL_SLOT");
	setenv("GDR_TEAMS", "4096", 1); /* fails behind the heap */
	setenv("GDR_TRANSPORTS", "nic", 1);
	assert_int_not_equal(gdr_init(), 0);
	unsetenv("GDR_TEAMS");
	setenv("GDR_TRANSPORTS", "p2p", 1);
	comes_to(&fake_cuda.memory, 0);
	assert_int_equal(cuCtxSetCurrent(NULL), 0);
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), 0);
	nothing_left();
}

/* The state of the device cannot be read: what was read earlier is no answer. */
static void test_silent_gpu(void **state)
{
	uint64_t *p = start(), v = 5;
	static char buffer[64];
	double begin;

	(void)state;
	set(&fake_cuda.hang_copy, 1);
	begin = now();
	assert_int_equal(gdr_host_put(p, &v, sizeof(v), 0), -GDR_ETIMEOUT);
	assert_int_equal(gdr_host_status(), -GDR_ETIMEOUT);
	assert_int_equal(gdr_host_quiet(), -GDR_ETIMEOUT);
	assert_int_equal(gdr_buffer_register(buffer, sizeof(buffer)), -GDR_ETIMEOUT);
	assert_int_equal(gdr_finalize(), -GDR_ETIMEOUT);
	assert_true(now() - begin < 4);
	set(&fake_cuda.hang_copy, 0);
	nothing_left();
	start(); /* and anew */
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
}

static void test_failed_kernel_in_finalize(void **state)
{
	(void)state;
	start();
	set(&fake_cuda.sync_result, 700);
	assert_int_equal(gdr_finalize(), -GDR_ESYSTEM);
	set(&fake_cuda.sync_result, 0);
	nothing_left();
}

#define BUFFER FAKE_BUFFER

/* Memory of a GPU that the program brings: one memory under two addresses, the second one the heap's. */
static void test_memory_of_the_program(void **state)
{
	uint8_t *own, *other, *ptr, *second;
	uint64_t v = 5, w = 0;

	(void)state;
	start();
	own = fake_buffer();
	other = fake_buffer();
	assert_true(own && other);
	memset(own, 7, BUFFER);
	ptr = gdr_symmetric_register(own, BUFFER);
	assert_non_null(ptr);
	assert_ptr_not_equal(ptr, own);
	assert_int_equal(ptr[0], 7); /* the look at it left nothing behind */
	assert_int_equal(ptr[BUFFER - 1], 7);
	assert_int_equal(gdr_host_put(ptr + 8, &v, sizeof(v), 0), 0);
	assert_memory_equal(own + 8, &v, sizeof(v));
	assert_int_equal(gdr_host_get(&w, ptr + 8, sizeof(w), 0), 0);
	assert_int_equal(w, 5);
	assert_int_equal(gdr_host_put(ptr + BUFFER - 8, &v, 16, 0), -GDR_EINVAL); /* ends behind it */
	assert_ptr_equal(gdr_host_ptr(ptr + 9, 0), ptr + 9);
	assert_null(gdr_host_ptr(ptr + BUFFER, 0));

	assert_null(gdr_symmetric_register(own, BUFFER));	      /* again */
	assert_null(gdr_symmetric_register(other, BUFFER - 4096));    /* no whole pages of the GPU's */
	assert_null(gdr_symmetric_register(other + BUFFER / 2, BUFFER / 2)); /* not the begin */
	assert_null(gdr_symmetric_register(ptr, BUFFER));	      /* the heap's */
	assert_null(gdr_symmetric_register(&w, BUFFER));	      /* the host's */

	second = gdr_symmetric_register(other, BUFFER);
	assert_ptr_equal(second, ptr + BUFFER);
	assert_int_equal(gdr_symmetric_unregister(ptr), 0);
	assert_int_equal(gdr_host_put(ptr, &v, sizeof(v), 0), -GDR_EINVAL);
	assert_int_equal(gdr_symmetric_unregister(ptr), -GDR_EINVAL);
	assert_ptr_equal(gdr_symmetric_register(own, BUFFER), ptr); /* the place is free again */
	(void)gdr_host_quiet(); /* takes what was latched */
	assert_int_equal(gdr_finalize(), 0); /* with both there */
	assert_false(fake_buffer_end(own) || fake_buffer_end(other));
	nothing_left();
}

static uint8_t *cuda_malloc(void)
{
	gdri_cu_ptr p;

	assert_int_equal(cuMemAlloc_v2(&p, BUFFER), 0);
	return (uint8_t *)(uintptr_t)p;
}

static void cuda_free(uint8_t *p)
{
	assert_int_equal(cuMemFree_v2((uintptr_t)p), 0);
}

static void refused(uint8_t *p, size_t len, int status)
{
	assert_null(gdr_symmetric_register(p, len));
	assert_int_equal(gdr_host_status(), status);
}

#define MANY 101 /* as tables grow twice */

/* They are registered in another order than that of their addresses. */
static uint8_t *piece(uint8_t *own, int i)
{
	return own + ((size_t)(i * 37 % MANY) << 13);
}

/* What a kernel finds: all, by address, and that a PE is no distance from itself. */
static void table_holds(const uint8_t *own)
{
	const struct gdri_outside_table *t = (const void *)(uintptr_t)device->outside;
	const struct gdri_outside *list = (const void *)(t + 1);
	const int64_t *delta = (const void *)(list + t->n);

	assert_int_equal(t->n, MANY);
	for (int i = 0; i < MANY; i++) {
		assert_int_equal(list[i].addr, (uintptr_t)own + ((size_t)i << 13));
		assert_int_equal(list[i].len, i ? 16 : 4096);
		assert_int_equal(delta[i], 0);
	}
}

/* Its address is the symmetric one; any part of an allocation. */
static void test_memory_of_cuda_malloc(void **state)
{
	uint64_t v = 5, w = 0;
	uint8_t *all, *own;
	int i;

	(void)state;
	start();
	set(&fake_cuda.ipc, 1);
	all = cuda_malloc();
	own = all + 48;
	memset(all, 7, BUFFER);
	assert_ptr_equal(gdr_symmetric_register(own, 4096), own);
	for (i = 0; i < 4096; i++)
		assert_int_equal(own[i], 7); /* the mark is gone */
	assert_int_equal(gdr_host_put(own + 8, &v, sizeof(v), 0), 0);
	assert_memory_equal(own + 8, &v, sizeof(v));
	assert_int_equal(gdr_host_get(&w, own + 8, sizeof(w), 0), 0);
	assert_int_equal(w, 5);
	assert_int_equal(gdr_host_put(own + 4096 - 8, &v, 16, 0), -GDR_EINVAL); /* ends behind it */
	assert_int_equal(gdr_host_put(own - 8, &v, 8, 0), -GDR_EINVAL);
	assert_ptr_equal(gdr_host_ptr(own + 9, 0), own + 9);
	assert_null(gdr_host_ptr(own + 4096, 0));
	assert_true(device->outside != 0);

	refused(own + 4080, 32, -GDR_ENOTSUP);
	refused(own + 4096 + 8, 64, -GDR_ENOTSUP);
	refused(own + 4096, 72, -GDR_ENOTSUP);
	refused(all + BUFFER - 64, 128, -GDR_EINVAL);
	for (i = 1; i < MANY; i++)
		assert_ptr_equal(gdr_symmetric_register(piece(own, i), 16), piece(own, i));
	table_holds(own);
	assert_int_equal(gdr_host_put(piece(own, 1) + 8, &v, sizeof(v), 0), 0);
	assert_memory_equal(piece(own, 1) + 8, &v, sizeof(v));
	for (i = 1; i < MANY; i++)
		assert_int_equal(gdr_symmetric_unregister(piece(own, i)), 0);
	assert_int_equal(gdr_symmetric_unregister(own), 0);
	assert_int_equal(device->outside, 0);
	assert_int_equal(gdr_host_put(own, &v, sizeof(v), 0), -GDR_EINVAL);
	assert_int_equal(gdr_symmetric_unregister(own), -GDR_EINVAL);
	assert_ptr_equal(gdr_symmetric_register(own, 4096), own);
	(void)gdr_host_quiet(); /* takes what was latched */
	assert_int_equal(gdr_finalize(), 0); /* with it there */
	cuda_free(all);
	set(&fake_cuda.ipc, 0);
	nothing_left();
}

/* A module that the program loads by hand tells by itself whether its kernels find such memory. */
static void test_module_and_cuda_malloc(void **state)
{
	static struct gdri_constants c;
	struct CUmod_st *module = (struct CUmod_st *)&c;
	uint8_t *own;

	(void)state;
	fake_cuda.variable = &c;
	fake_cuda.variable_size = sizeof(c);
	start();
	set(&fake_cuda.ipc, 1);
	own = cuda_malloc();
	c.abi_version = GDR_ABI_VERSION;
	assert_int_equal(gdr_module_init(module), 0);
	refused(own, BUFFER, -GDR_ENOTSUP);
	assert_int_equal(gdr_module_finalize(module), 0);
	assert_ptr_equal(gdr_symmetric_register(own, BUFFER), own);
	assert_int_equal(gdr_module_init(module), -GDR_ENOTSUP);
	assert_null(c.dev);
	c.abi_version = GDR_ABI_VERSION | GDRI_MODULE_ANY_ADDRESS;
	assert_int_equal(gdr_module_init(module), 0);
	assert_int_equal(gdr_symmetric_unregister(own), 0);
	assert_ptr_equal(gdr_symmetric_register(own, BUFFER), own);
	assert_int_equal(gdr_module_finalize(module), 0);
	assert_true(c.abi_version == (GDR_ABI_VERSION | GDRI_MODULE_ANY_ADDRESS));
	assert_int_equal(gdr_finalize(), 0);
	cuda_free(own);
	set(&fake_cuda.ipc, 0);
	fake_cuda.variable = NULL;
	nothing_left();
}

/* So do kernels of a library that comes later (gdri_users). */
static void test_late_unit_and_cuda_malloc(void **state)
{
	static struct gdri_unit late = {GDR_ABI_VERSION, show_late, NULL, 1, 0, 0};
	uint8_t *own;

	(void)state;
	start();
	set(&fake_cuda.ipc, 1);
	own = cuda_malloc();
	assert_ptr_equal(gdr_symmetric_register(own, BUFFER), own);
	late_device = NULL;
	gdri_unit_add(&late);
	assert_int_equal(gdri_users(1), -GDR_ENOTSUP);
	assert_null(late_device);
	assert_int_equal(gdr_symmetric_unregister(own), 0);
	assert_int_equal(gdri_users(1), 2);
	assert_non_null(late_device);
	refused(own, BUFFER, -GDR_ENOTSUP);
	assert_int_equal(gdri_users(-1), 1);
	assert_int_equal(gdr_finalize(), 0);
	gdri_unit_remove(&late);
	cuda_free(own);
	set(&fake_cuda.ipc, 0);
	nothing_left();
}

/* It may have been made with handles of the fabric alone, beside a heap that is shared by descriptors; and the other
 * way round; and where there are no descriptors. */
static void test_fabric_memory_of_the_program(void **state)
{
	int handles[] = {GDRI_CU_HANDLE_FABRIC, GDRI_CU_HANDLE_FD, GDRI_CU_HANDLE_FABRIC}, i;
	uint8_t *own, *ptr;
	uint64_t v = 6;

	(void)state;
	for (i = 0; i < 3; i++) {
		set(&fake_cuda.no_fd, i == 2);
		setenv("GDR_HEAP_HANDLE", i == 2 ? "auto" : i ? "fabric" : "fd", 1);
		start();
		own = fake_buffer_by(handles[i]);
		assert_non_null(own);
		ptr = gdr_symmetric_register(own, BUFFER);
		assert_non_null(ptr);
		assert_int_equal(gdr_host_put(ptr + 8, &v, sizeof(v), 0), 0);
		assert_memory_equal(own + 8, &v, sizeof(v));
		assert_int_equal(gdr_symmetric_unregister(ptr), 0);
		assert_int_equal(gdr_finalize(), 0);
		assert_int_equal(fake_buffer_end(own), 0);
		nothing_left();
	}
	set(&fake_cuda.no_fd, 0);
	unsetenv("GDR_HEAP_HANDLE");
}

/* Does what a call that was given up left behind write to where its frames were? */
static __attribute__((noinline)) bool lands_on_the_stack(void)
{
	volatile uint8_t room[16384];
	size_t i;

	for (i = 0; i < sizeof(room); i++)
		room[i] = 0;
	(void)gdr_host_status(); /* looks at the stream */
	for (i = 0; i < sizeof(room); i++)
		if (room[i])
			return true;
	return false;
}

/* A view of it stays as long as a copy may land there, also where the registration failed. */
static void test_late_view(void **state)
{
	uint8_t *own, *ptr;
	int i;

	(void)state;
	start();
	own = fake_buffer();
	assert_non_null(own);
	set(&fake_cuda.unmapped_under, 0);
	for (i = 1; i < 4; i++) { /* copies by the view among them */
		set(&fake_cuda.good_copies, i);
		set(&fake_cuda.hang_copy, 1);
		assert_null(gdr_symmetric_register(own, BUFFER));
		assert_null(gdr_symmetric_register(own, BUFFER));
		set(&fake_cuda.hang_copy, 0);
	}
	ptr = gdr_symmetric_register(own, BUFFER);
	assert_non_null(ptr);
	set(&fake_cuda.hang_copy, 1);
	assert_int_equal(gdr_host_put(ptr, own + 4096, 64, 0), -GDR_ETIMEOUT);
	assert_int_equal(gdr_symmetric_unregister(ptr), -GDR_ETIMEOUT);
	set(&fake_cuda.hang_copy, 0);
	assert_int_equal(gdr_symmetric_unregister(ptr), 0);
	assert_int_equal(fake_cuda.unmapped_under, 0);
	(void)gdr_host_quiet(); /* takes what was latched */
	assert_int_equal(gdr_finalize(), -GDR_ETIMEOUT);
	assert_int_equal(fake_buffer_end(own), 0);
	nothing_left();
}

static void test_late_look(void **state)
{
	uint8_t *own;

	(void)state;
	start();
	own = fake_buffer();
	assert_non_null(own);
	memset(own, 0x77, BUFFER);
	set(&fake_cuda.hang_copy, 1);
	assert_null(gdr_symmetric_register(own, BUFFER)); /* looks at its first bytes */
	set(&fake_cuda.hang_copy, 0);
	assert_false(lands_on_the_stack());
	assert_non_null(gdr_symmetric_register(own, BUFFER)); /* it left time to tell the others, so all may go on */
	(void)gdr_host_quiet();
	assert_int_equal(gdr_finalize(), 0);
	assert_int_equal(fake_buffer_end(own), 0);
	nothing_left();
}

/* A transfer that was given up neither writes to the caller's memory later nor reads what is there by then. */
static void test_late_transfers(void **state)
{
	uint64_t *p = start(), v = 5, w = 3;

	(void)state;
	assert_int_equal(gdr_host_put(p, &v, sizeof(v), 0), 0);
	set(&fake_cuda.hang_copy, 1);
	assert_int_equal(gdr_host_get(&w, p, sizeof(w), 0), -GDR_ETIMEOUT);
	set(&fake_cuda.hang_copy, 0);
	assert_int_equal(gdr_host_status(), 0); /* looks at the stream */
	assert_int_equal(w, 3);
	v = 6;
	set(&fake_cuda.hang_copy, 1);
	assert_int_equal(gdr_host_put(p, &v, sizeof(v), 0), -GDR_ETIMEOUT);
	set(&fake_cuda.hang_copy, 0);
	v = 7;
	assert_int_equal(gdr_host_status(), 0);
	assert_int_equal(p[0], 6);
	assert_int_equal(gdr_finalize(), -GDR_ETIMEOUT);
	nothing_left();
}

/* More than goes at once, of memory that the driver does not know, and of memory that it does. */
static void test_long_transfers(void **state)
{
	enum { LEN = 1500003 };
	uint8_t *a = malloc(LEN), *b = malloc(LEN), *p;
	size_t i;

	(void)state;
	start();
	p = gdr_malloc(2 * LEN);
	assert_true(a && b && p);
	for (i = 0; i < LEN; i++)
		a[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(gdr_host_put(p, a, LEN, 0), 0);
	assert_memory_equal(p, a, LEN);
	assert_int_equal(gdr_host_put(p + LEN, p, LEN, 0), 0);
	assert_int_equal(gdr_host_get(b, p + LEN, LEN, 0), 0);
	assert_memory_equal(b, a, LEN);
	assert_int_equal(gdr_host_get(b, p, 0, 0), 0);
	set(&fake_cuda.good_copies, 2);
	set(&fake_cuda.hang_copy, 1);
	memset(b, 1, LEN);
	assert_int_equal(gdr_host_get(b, p, LEN, 0), -GDR_ETIMEOUT);
	set(&fake_cuda.hang_copy, 0);
	assert_int_equal(gdr_host_status(), 0);
	assert_memory_equal(b, a, 1000);
	assert_int_equal(b[LEN - 1], 1);
	assert_int_equal(gdr_finalize(), -GDR_ETIMEOUT);
	free(a);
	free(b);
	nothing_left();
}

/* Memory that is yet to be zeroed, or to get an object's contents, is nobody's. */
static void test_late_zeroing(void **state)
{
	uint8_t *p, *q;
	int objects;

	(void)state;
	start();
	set(&fake_cuda.hang_copy, 1);
	assert_null(gdr_calloc(1, 4096));
	assert_null(gdr_malloc(4096));
	set(&fake_cuda.hang_copy, 0);
	p = gdr_malloc(4096);
	assert_non_null(p);
	memset(p, 7, 4096);
	(void)gdr_host_status();
	assert_int_equal(p[0], 7);
	assert_non_null(gdr_malloc(1)); /* so that the object cannot grow where it is */
	objects = gdr_heap_list(NULL, 0);
	set(&fake_cuda.hang_copy, 1);
	assert_null(gdr_realloc(p, 8192));
	assert_int_equal(gdr_heap_list(NULL, 0), objects);
	set(&fake_cuda.hang_copy, 0);
	q = gdr_realloc(p, 8192);
	assert_non_null(q);
	assert_ptr_not_equal(q, p);
	assert_int_equal(q[4095], 7);
	assert_int_equal(gdr_heap_list(NULL, 0), objects);
	(void)gdr_host_quiet(); /* takes what was latched */
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
}

/* A module stays the library's until nothing can come to it any more. */
static void test_late_module(void **state)
{
	static struct gdri_constants c, none;
	struct CUmod_st *module = (struct CUmod_st *)&c;

	(void)state;
	none.abi_version = c.abi_version = GDR_ABI_VERSION;
	fake_cuda.variable = &c;
	fake_cuda.variable_size = sizeof(c);
	start();
	assert_int_equal(gdr_module_init(module), 0);
	assert_ptr_equal(c.dev, device);
	set(&fake_cuda.hang_copy, 1);
	assert_int_equal(gdr_module_finalize(module), -GDR_ETIMEOUT);
	assert_int_equal(gdr_module_finalize(module), -GDR_ETIMEOUT);
	set(&fake_cuda.hang_copy, 0);
	assert_false(lands_on_the_stack());
	assert_memory_equal(&c, &none, sizeof(c));
	assert_int_equal(gdr_module_finalize(module), 0);
	assert_int_equal(gdr_module_finalize(module), -GDR_EINVAL);

	set(&fake_cuda.good_copies, 1); /* the look at its version */
	set(&fake_cuda.hang_copy, 1);
	assert_int_equal(gdr_module_init(module), -GDR_ETIMEOUT);
	assert_int_equal(gdr_module_finalize(module), -GDR_ETIMEOUT);
	set(&fake_cuda.hang_copy, 0);
	assert_int_equal(gdr_module_finalize(module), 0);
	assert_memory_equal(&c, &none, sizeof(c));
	assert_int_equal(gdr_finalize(), 0);
	nothing_left();
	fake_cuda.variable = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_primary),
		cmocka_unit_test(test_heap),
		cmocka_unit_test(test_fabric),
		cmocka_unit_test(test_overdue_copy),
		cmocka_unit_test(test_wait_left_behind),
		cmocka_unit_test(test_time_is_set),
		cmocka_unit_test(test_kernel_that_failed),
		cmocka_unit_test_setup_teardown(test_well, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_unit, setup, teardown),
		cmocka_unit_test_setup_teardown(test_early, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_of_the_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memory_of_cuda_malloc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_module_and_cuda_malloc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_unit_and_cuda_malloc, setup, teardown),
		cmocka_unit_test_setup_teardown(test_fabric_memory_of_the_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_look, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_view, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_transfers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_long_transfers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_zeroing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_module, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silent_gpu, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failed_kernel_in_finalize, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
