/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine goes on while the program waits in the CUDA driver for a kernel that waits for the
 * engine, and while a thread that registers memory waits for the driver; and says so when it cannot
 * go on. Driver: fake_cuda.c. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softhca/tests/control/common.h"
#include "softhca/tests/cuda/wqe_bytes.h"

enum { AREA = 1 << 16, FULL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static struct {
	int (*alloc)(uint64_t *, size_t);
	void *(*view)(uint64_t);
	void (*kernel)(bool);
	unsigned (*waiting)(void);
	void (*hold)(bool);
	int (*to_host)(void *, uint64_t, size_t);
	int (*to_device)(uint64_t, const void *, size_t);
	int (*set)(uint64_t, unsigned char, size_t);
	int (*free)(uint64_t);
	int (*free_host)(void *);
	unsigned (*ctx_waits)(void);
	int (*begin)(void *, int);
	int (*end[2])(void *, void **); /* the second one: of the default stream of each thread */
	int (*get)(const char *, void **, int, uint64_t, int *);
} cuda;

static struct world {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct dq q[2];
	struct ibv_mr *host_mr, *gpu_mr;
	uint8_t *host;
	uint64_t gpu;
	uint16_t index;
} w;

static void find(void *lib, void *to, const char *symbol)
{
	*(void **)to = dlsym(lib, symbol);
	if (!*(void **)to) {
		printf("no %s: no fake libcuda.so.1 in LD_LIBRARY_PATH\n", symbol);
		exit(77);
	}
}

static void load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	find(lib, &cuda.view, "fake_cuda_view");
	find(lib, &cuda.kernel, "fake_cuda_kernel");
	find(lib, &cuda.waiting, "fake_cuda_waiting");
	find(lib, &cuda.hold, "fake_cuda_hold");
	find(lib, &cuda.alloc, "cuMemAlloc_v2");
	find(lib, &cuda.to_host, "cuMemcpyDtoH_v2");
	find(lib, &cuda.set, "cuMemsetD8_v2");
	find(lib, &cuda.free, "cuMemFree_v2");
	find(lib, &cuda.free_host, "cuMemFreeHost");
	find(lib, &cuda.ctx_waits, "fake_cuda_ctx_waits");
	find(lib, &cuda.begin, "cuStreamBeginCapture_v2");
	find(lib, &cuda.end[0], "cuStreamEndCapture");
	find(lib, &cuda.get, "cuGetProcAddress_v2");
}

/* ---- queues in memory of the host ---- */

static void setup(void)
{
	w.ctx = open_device();
	w.pd = ibv_alloc_pd(w.ctx);
	assert_non_null(w.pd);
	for (int i = 0; i < 2; i++)
		dq_create(&w.q[i], w.ctx, pd_number(w.pd), 0, true);
	dq_connect(&w.q[0], w.q[1].qpn);
	dq_connect(&w.q[1], w.q[0].qpn);
	w.host = aligned_alloc(4096, AREA);
	memset(w.host, 0, AREA);
	w.host_mr = ibv_reg_mr(w.pd, w.host, AREA, FULL);
	assert_non_null(w.host_mr);
	assert_int_equal(cuda.alloc(&w.gpu, AREA), 0);
}

/* Eight bytes inline. */
static void post(uint64_t to, uint32_t rkey, uint64_t value)
{
	uint8_t b[64] = { 0 };

	put32(b, 0, (uint32_t)w.index << 8 | 0x08);
	put32(b, 4, w.q[0].qpn << 8 | 3);
	b[11] = 8;
	put64(b, 16, to);
	put32(b, 24, rkey);
	put32(b, 32, 0x80000000u | 8);
	memcpy(b + 36, &value, 8);
	dq_post(&w.q[0], w.index++, b);
}

static bool completed(double seconds)
{
	const uint8_t *cqe = w.q[0].mem + DQ_CQ;
	struct timespec t;
	double end;

	clock_gettime(CLOCK_MONOTONIC, &t);
	end = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec + seconds;
	for (;;) {
		/* Acquire: pairs with the engine's store of the entry's end. */
		uint64_t tail = __atomic_load_n((const uint64_t *)(const void *)(cqe + 56),
						__ATOMIC_ACQUIRE);
		uint8_t b[8];

		memcpy(b, &tail, 8);
		if (b[7] >> 4 == 0 && (uint16_t)((b[4] << 8 | b[5]) + 1) == w.index)
			return true;
		clock_gettime(CLOCK_MONOTONIC, &t);
		if ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec > end)
			return false;
		sched_yield();
	}
}

/* ---- tests ---- */

/* Registering asks the driver, which another thread holds: the others' queues go on. First, since
 * from then on the engine itself calls the driver. */
static void *registers(void *arg)
{
	(void)arg;
	w.gpu_mr = ibv_reg_mr(w.pd, (void *)(uintptr_t)w.gpu, AREA, FULL);
	return NULL;
}

static void test_registration(void **state)
{
	pthread_t t;
	bool ok;

	(void)state;
	cuda.hold(true);
	assert_int_equal(pthread_create(&t, NULL, registers, NULL), 0);
	usleep(50000);
	post((uintptr_t)w.host, w.host_mr->rkey, 77);
	ok = completed(5);
	cuda.hold(false);
	assert_true(ok);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_non_null(w.gpu_mr);
	assert_memory_equal(w.host, &(uint64_t){ 77 }, 8);
}

static uint64_t buffer;
static uint64_t spare[3];

static void *copies(void *arg)
{
	switch (*(int *)arg) {
	case 0: cuda.to_host(&buffer, w.gpu + 8, 8); break;
	case 1: cuda.to_device(w.gpu + 64, &buffer, 8); break;
	case 2: cuda.set(w.gpu + 64, 1, 8); break;
	case 3: cuda.free(spare[0]); break;
	default: cuda.free_host(&buffer);
	}
	return NULL;
}

/* A kernel waits for a put, the program in the driver for the kernel. */
static void test_waits(void **state)
{
	(void)state;
	assert_int_equal(cuda.alloc(&spare[0], AREA), 0);
	assert_int_equal(cuda.get("cuMemcpyHtoD", (void **)&cuda.to_device, 13000, 0, NULL), 0);
	for (int how = 0; how < 5; how++) {
		uint64_t value = 1000 + (uint64_t)how;
		pthread_t t;
		bool ok;

		cuda.kernel(true);
		assert_int_equal(pthread_create(&t, NULL, copies, &how), 0);
		while (!cuda.waiting())
			usleep(100);
		post(w.gpu + 8, w.gpu_mr->rkey, value);
		ok = completed(5);
		cuda.kernel(false);
		assert_int_equal(pthread_join(t, NULL), 0);
		if (!ok)
			fail_msg("the engine stands while the program is in call %d", how);
		assert_memory_equal((uint8_t *)cuda.view(w.gpu) + 8, &value, 8);
		if (!how)
			assert_int_equal(buffer, value);
	}
}

/* To wait for the context would spoil what the program captures. */
static void test_captures(void **state)
{
	unsigned before = cuda.ctx_waits();
	void *graph;

	(void)state;
	assert_int_equal(cuda.get("cuStreamEndCapture", (void **)&cuda.end[1], 13000, 2, NULL), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(cuda.begin(&w, 0), 0);
		assert_int_equal(cuda.begin(&w, 9), 1); /* begins none */
		cuda.free_host(&buffer);
		assert_int_equal(cuda.ctx_waits(), before);
		assert_int_equal(cuda.end[i](&w, &graph), 0);
		cuda.free_host(NULL);
		assert_int_equal(cuda.ctx_waits(), before);
		cuda.free_host(&buffer);
		assert_int_equal(cuda.ctx_waits(), ++before);
	}
}

/* A child of fork has no engine, and who knows who held its lock. */
static void test_fork(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		unsigned before = cuda.ctx_waits();

		cuda.free_host(&buffer);
		_exit(cuda.ctx_waits() != before);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* Where nothing helps, softhca says what it is. */
static void test_watch(void **state)
{
	int fd = memfd_create("stderr", 0), before = dup(2);
	char text[4096] = "";
	bool ok;

	(void)state;
	assert_true(dup2(fd, 2) == 2);
	cuda.hold(true);
	post(w.gpu + 8, w.gpu_mr->rkey, 5);
	ok = completed(1.6);
	cuda.hold(false);
	assert_false(ok);
	assert_true(completed(5));
	usleep(600000);
	dup2(before, 2);
	close(before);
	assert_true(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	fputs(text, stderr);
	assert_non_null(strstr(text, "does not return (for QP 0x"));
	assert_non_null(strstr(text, "has returned after"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_registration),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_captures),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_watch),
	};

	load();
	setup();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
