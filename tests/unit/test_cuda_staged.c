// SPDX-License-Identifier: BSD-3-Clause
/* Jobs on GPUs whose heaps libfabric's proxies reach by copies of a fake driver alone: a heap there is out of the
 * processor's reach (fake_cuda.guarded), and what touches it otherwise ends by SIGSEGV. A kernel is a process that has
 * it mapped. With the argument "p2p,ofi" PEs of one node reach each other directly, but for atomics. A second argument
 * says what the provider does: "moves" memory of the GPU by itself, which then is no copy of the driver's, or "copies",
 * for it cannot. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr.h>
#include <gdr/bootstrap.h>
#include <gdr/impl/arch/unit.h>

#include "tests/unit/fake_cuda.h"
#include "tests/unit/job.h"

#define LONG 700001u /* bytes: more than what is copied at once, and odd */

static const char *transports = "ofi", *provider = "copies";
static struct gdri_dev *device;

static int show(const struct gdri_constants *c)
{
	device = c ? c->dev : NULL;
	return 0;
}

static struct gdri_unit unit = {GDR_ABI_VERSION, show, NULL, 1, 0, 1};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	attr.heap_size = 8 << 20;
	attr.transports = transports;
	attr.bootstrap = job_bootstrap();
	return gdr_init_attr(&attr);
}

/* What kernels of all PEs work on, at the same places. */
static struct work {
	uint64_t *words, *signal, *sums;
	uint8_t *from, *to, *back, *own; /* own: no symmetric object */
	int turn; /* of the kernel: each has other bytes */
} work;

static int make_work(int pe)
{
	JOB_CHECK(!init());
	work.words = gdr_calloc(64, sizeof(*work.words));
	work.signal = gdr_calloc(8, sizeof(*work.signal));
	work.sums = gdr_calloc(1024, sizeof(*work.sums));
	work.from = gdr_malloc(LONG);
	work.to = gdr_calloc(1, 2 * LONG);
	work.back = gdr_calloc(1, LONG);
	JOB_CHECK(work.words && work.signal && work.sums && work.from && work.to && work.back && device);
	JOB_CHECK(!gdr_barrier_all());
	return 0;
}

static int in_gpu(void *arg)
{
	int (*kernel)(int pe, int n) = (int (*)(int, int))(uintptr_t)arg;

	gdri_dev_state = device;
	return kernel(gdr_my_pe(), gdr_n_pes());
}

static int launch(int (*kernel)(int pe, int n), int *pid)
{
	return fake_gpu(in_gpu, (void *)(uintptr_t)kernel, pid);
}

static int ended(int pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) != pid || status ? status : 0;
}

static int run_kernel(int (*kernel)(int pe, int n))
{
	int pid;

	return launch(kernel, &pid) ? -1 : ended(pid);
}

static uint8_t byte(int pe, int turn, size_t i)
{
	return (uint8_t)(pe * 31 + turn * 7 + (int)i + (int)(i >> 8) * 3);
}

static void fill(uint8_t *to, int pe, int turn, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = byte(pe, turn, i);
}

static int is_filled(const uint8_t *at, int pe, int turn, size_t len)
{
	size_t i;

	for (i = 0; i < len && at[i] == byte(pe, turn, i); i++)
		;
	return i == len;
}

static const size_t lens[] = {1, 7, 8, 64, 500, 2048, 2049, 4097, 65536, LONG};
#define LENS (sizeof(lens) / sizeof(lens[0]))

/* To the next PE: data, then a signal of it; what comes from the PE before is whole when its signal is there. */
static int kernel_put_signal(int pe, int n)
{
	int to = (pe + 1) % n, from = (pe + n - 1) % n, round;
	uint64_t seen = 0;

	for (round = 0; round < 3 * (int)LENS; round++) {
		size_t len = lens[round % (int)LENS];

		fill(work.from, pe, round, len);
		JOB_CHECK(!gdr_put_signal(work.to + round % 5, work.from, len, work.signal, (uint64_t)round + 1,
					  GDR_SIGNAL_SET, to));
		JOB_CHECK(!gdr_signal_wait_until(work.signal, GDR_CMP_EQ, (uint64_t)round + 1));
		JOB_CHECK(is_filled(work.to + round % 5, from, round, len));
		JOB_CHECK(!gdr_put_signal_nbi(work.to, work.from, 0, work.signal + 1, 1, GDR_SIGNAL_ADD, from));
		seen = (uint64_t)round + 1;
		JOB_CHECK(!gdr_signal_wait_until(work.signal + 1, GDR_CMP_EQ, seen));
	}
	JOB_CHECK(!gdr_quiet());
	return 0;
}

#define BEHIND 600 /* words that a flag follows */
#define PIECE 6

/* A flag that lies behind the data, by a fence and as a word of the copy's own kind. */
static int kernel_flag_behind(int pe, int n)
{
	uint64_t *data = (uint64_t *)(void *)(work.to - (uintptr_t)work.to % 8 + 8), *flag = data + BEHIND;
	uint64_t *mine = (uint64_t *)(void *)(work.from - (uintptr_t)work.from % 8 + 8), round;
	int to = (pe + 1) % n, i;

	for (round = 1; round <= 100; round++) {
		for (i = 0; i < BEHIND; i++)
			mine[i] = round;
		for (i = 0; i < BEHIND; i += PIECE) /* so many that several are in a message */
			JOB_CHECK(!gdr_put_nbi(data + i, mine + i, PIECE * sizeof(*data), to));
		JOB_CHECK(!gdr_fence());
		JOB_CHECK(!gdr_uint64_p(flag, round, to));
		JOB_CHECK(!gdr_uint64_wait_until(flag, GDR_CMP_EQ, round));
		for (i = BEHIND - 1; i >= 0; i--) /* what lies beside the flag first */
			JOB_CHECK(gdri_ld_acquire_sys_u64(data + i) == round);
		JOB_CHECK(!gdri_thread_barrier_all());
	}
	return 0;
}

static int body_put_signal(int pe, int n)
{
	(void)n;
	JOB_CHECK(!make_work(pe));
	JOB_CHECK(!run_kernel(kernel_put_signal));
	JOB_CHECK(!gdr_barrier_all());
	JOB_CHECK(!run_kernel(kernel_flag_behind));
	JOB_CHECK(!gdr_barrier_all());
	return gdr_finalize();
}

static int kernel_rma(int pe, int n)
{
	int to = (pe + 1) % n, from = (pe + n - 1) % n, i;
	uint64_t v;

	for (i = 0; i < (int)LENS; i++) {
		fill(work.from, pe, i, lens[i]);
		JOB_CHECK(!gdr_put_nbi(work.to + i, work.from, lens[i], to));
		JOB_CHECK(!gdri_thread_barrier_all());
		JOB_CHECK(is_filled(work.to + i, from, i, lens[i]));
		JOB_CHECK(!gdr_get(work.back + 3, work.to + i, lens[i] > 3 ? lens[i] - 3 : 1, to));
		JOB_CHECK(is_filled(work.back + 3, pe, i, lens[i] > 3 ? lens[i] - 3 : 1));
		JOB_CHECK(!gdri_thread_barrier_all());
	}
	JOB_CHECK(!gdr_uint64_p(work.words + pe, 100u + (uint64_t)pe, to));
	JOB_CHECK(!gdr_quiet());
	JOB_CHECK(gdr_uint64_g(work.words + pe, to) == 100u + (uint64_t)pe);
	/* to the own memory by queue */
	v = 77;
	JOB_CHECK(!gdr_put(work.words + 20, &v, 8, pe) || 1);
	JOB_CHECK(!gdr_put(work.back, work.from, 5000, pe) && is_filled(work.back, pe, (int)LENS - 1, 5000));
	for (i = 0; i < 100; i++)
		((uint16_t *)(void *)work.from)[i] = (uint16_t)(pe * 1000 + i);
	JOB_CHECK(!gdr_uint16_iput((uint16_t *)(void *)work.to, (uint16_t *)(void *)work.from, 3, 1, 100, to));
	JOB_CHECK(!gdri_thread_barrier_all());
	for (i = 0; i < 100; i++)
		JOB_CHECK(((uint16_t *)(void *)work.to)[3 * i] == from * 1000 + i);
	JOB_CHECK(!gdr_uint16_iget((uint16_t *)(void *)work.back, (uint16_t *)(void *)work.to, 2, 3, 100, to));
	for (i = 0; i < 100; i++)
		JOB_CHECK(((uint16_t *)(void *)work.back)[2 * i] == pe * 1000 + i);
	return gdri_thread_barrier_all();
}

static int kernel_amo(int pe, int n)
{
	uint64_t old, sum = 0;
	int i, to;

	for (i = 0; i < 50; i++)
		for (to = 0; to < n; to++) {
			JOB_CHECK(!gdr_uint64_atomic_add(work.words, 1, to));
			JOB_CHECK(!gdr_uint32_atomic_add((uint32_t *)(void *)(work.words + 1), 3, to));
			JOB_CHECK(!gdr_double_atomic_max((double *)(void *)(work.words + 2), i * n + pe, to));
			old = gdr_uint64_atomic_fetch_add(work.words + 3 + pe, 2, to);
			JOB_CHECK(old == 2u * (uint64_t)i);
			old = gdr_uint64_atomic_compare_swap(work.words + 10 + pe, (uint64_t)i, (uint64_t)i + 1, to);
			JOB_CHECK(old == (uint64_t)i);
		}
	JOB_CHECK(!gdri_thread_barrier_all());
	JOB_CHECK(gdri_ld_acquire_sys_u64(work.words) == 50u * (unsigned)n);
	JOB_CHECK(*(uint32_t *)(void *)(work.words + 1) == 150u * (unsigned)n);
	JOB_CHECK(*(double *)(void *)(work.words + 2) == 49 * n + n - 1);
	for (i = 0; i < n; i++)
		JOB_CHECK(work.words[3 + i] == 100 && work.words[10 + i] == 50);
	for (i = 0; i < 1000; i++)
		work.sums[i] = (uint64_t)(i * (pe + 1));
	for (i = 1; i <= n; i++)
		sum += (uint64_t)i;
	JOB_CHECK(!gdr_uint64_sum_reduce(GDR_TEAM_WORLD, (uint64_t *)(void *)work.to, work.sums, 1000));
	for (i = 0; i < 1000; i++)
		JOB_CHECK(((uint64_t *)(void *)work.to)[i] == (uint64_t)i * sum);
	fill(work.from, pe, 1, 3000);
	JOB_CHECK(!gdr_fcollectmem(GDR_TEAM_WORLD, work.to, work.from, 3000));
	for (i = 0; i < n; i++)
		JOB_CHECK(is_filled(work.to + 3000 * i, i, 1, 3000));
	JOB_CHECK(!gdri_thread_barrier_all());
	JOB_CHECK(!gdr_broadcastmem(GDR_TEAM_WORLD, work.to, work.from, 3000, n - 1));
	JOB_CHECK(is_filled(work.to, n - 1, 1, 3000));
	return gdri_thread_barrier_all();
}

/* Many under way: several in a message, on words of two sizes that meet, and sets between them. */
static int kernel_many_amo(int pe, int n)
{
	uint32_t *half = (uint32_t *)(void *)(work.words + 20);
	int i, to = (pe + 1) % n, from = (pe + n - 1) % n;
	uint64_t v;

	for (i = 0; i < 400; i++) {
		JOB_CHECK(!gdr_uint64_atomic_add(work.sums + i % 7, 1, to));
		JOB_CHECK(!gdr_uint32_atomic_add(half + i % 4, 2, to));
		JOB_CHECK(!gdr_uint64_atomic_set(work.sums + 10 + i % 3, (uint64_t)(pe * 1000 + i), to));
		if (i % 5 == 0)
			JOB_CHECK(!gdr_uint64_atomic_add(work.words + 20, 1ull << 40, to));
		if (i % 50 == 0)
			JOB_CHECK(!gdr_put_nbi(work.to, work.from, 5000, to));
	}
	v = gdr_uint64_atomic_swap(work.sums + 12, 5, to);
	JOB_CHECK(v == (uint64_t)(pe * 1000 + 398));
	JOB_CHECK(!gdri_thread_barrier_all());
	for (i = 0; i < 7; i++)
		JOB_CHECK(work.sums[i] == 57u + (i < 1));
	for (i = 0; i < 4; i++)
		JOB_CHECK(half[i] == 200 + (i == 1 ? 80u << 8 : 0));
	JOB_CHECK(work.sums[10] == (uint64_t)(from * 1000 + 399) && work.sums[11] == (uint64_t)(from * 1000 + 397));
	JOB_CHECK(work.sums[12] == 5);
	return gdri_thread_barrier_all();
}

/* Host calls beside a kernel that runs. */
static int kernel_waits(int pe, int n)
{
	(void)n;
	JOB_CHECK(!gdr_signal_wait_until(work.signal + 2, GDR_CMP_EQ, 9));
	return 0;
}

/* What is long goes by the provider, if that can, and is otherwise copied; a word is copied in any case. */
static int kernel_long(int pe, int n)
{
	uint64_t round;

	for (round = 1; round <= 5; round++) {
		JOB_CHECK(!gdr_put_signal(work.to, work.own, LONG, work.signal, round, GDR_SIGNAL_SET, (pe + 1) % n));
		JOB_CHECK(!gdr_signal_wait_until(work.signal, GDR_CMP_EQ, round));
		JOB_CHECK(is_filled(work.to, (pe + n - 1) % n, 0, LONG));
		JOB_CHECK(!gdr_get(work.back, work.to, LONG, (pe + 1) % n));
		JOB_CHECK(is_filled(work.back, pe, 0, LONG));
		JOB_CHECK(!gdri_thread_barrier_all());
	}
	return gdr_get(work.own, work.to + 1, LONG - 1, (pe + 1) % n);
}

static int body_long(int pe, int n)
{
	unsigned long before, copied;

	(void)n;
	JOB_CHECK(!make_work(pe));
	work.own = gdr_device_malloc(LONG);
	JOB_CHECK(work.own && !gdr_buffer_register(work.own, LONG));
	fill(work.own, pe, 0, LONG); /* what a kernel's process stored there, nobody else would see */
	before = fake_cuda.copied;
	JOB_CHECK(!run_kernel(kernel_long));
	copied = fake_cuda.copied - before;
	JOB_CHECK(strcmp(provider, "moves") ? copied > 10 * LONG : copied > 0 && copied < LONG);
	JOB_CHECK(work.own[0] == byte(pe, 0, 1) && work.own[LONG - 2] == byte(pe, 0, LONG - 1));
	JOB_CHECK(!gdr_buffer_unregister(work.own));
	gdr_device_free(work.own);
	JOB_CHECK(!gdr_barrier_all());
	return gdr_finalize();
}

/* PE 0's message waits for its data from the GPU until another PE's has come: the proxy must not wait for either. */
static int kernel_beside(int pe, int n)
{
	(void)n;
	if (pe == 1)
		return gdr_put_signal(work.to, work.from, 3000, work.signal, 9, GDR_SIGNAL_SET, 0);
	JOB_CHECK(!gdr_put_nbi(work.to, work.from, 5000, 1));
	JOB_CHECK(!gdr_signal_wait_until(work.signal, GDR_CMP_EQ, 9));
	JOB_CHECK(is_filled(work.to, 1, 3, 3000));
	return 0;
}

static int kernel_fill(int pe, int n)
{
	(void)n;
	fill(work.from, pe, 3, LONG);
	return 0;
}

static int kernel_quiet(int pe, int n)
{
	(void)pe, (void)n;
	return gdr_quiet();
}

static int kernel_came(int pe, int n)
{
	return is_filled(work.to, (pe + n - 1) % n, 3, pe ? 5000 : 3000) ? 0 : 1;
}

static volatile int *told; /* all PEs have it, apart from the library */

/* What is told, within 20 s. */
static int comes(const volatile int *what)
{
	double end = now() + 20;

	while (!__atomic_load_n(what, __ATOMIC_RELAXED) && now() < end)
		usleep(1000);
	return __atomic_load_n(what, __ATOMIC_RELAXED);
}

static int body_beside(int pe, int n)
{
	int pid;

	(void)n;
	JOB_CHECK(!make_work(pe) && !run_kernel(kernel_fill) && !gdr_barrier_all());
	if (pe == 0) {
		__atomic_store_n(&fake_cuda.held_at, (unsigned long)work.from, __ATOMIC_RELAXED);
		__atomic_store_n(&fake_cuda.held_len, 5000, __ATOMIC_RELAXED);
		JOB_CHECK(!launch(kernel_beside, &pid) && comes(&fake_cuda.held));
		__atomic_store_n(told, 1, __ATOMIC_RELAXED);
		JOB_CHECK(!ended(pid));
		__atomic_store_n(&fake_cuda.held_len, 0, __ATOMIC_RELAXED);
	} else {
		JOB_CHECK(comes(told) && !run_kernel(kernel_beside));
	}
	JOB_CHECK(!run_kernel(kernel_quiet) && !gdr_barrier_all() && !run_kernel(kernel_came));
	JOB_CHECK(!gdr_barrier_all());
	return gdr_finalize();
}

/* Its data does not come at all: who posted is told, and what follows goes. */
static int kernel_fails(int pe, int n)
{
	(void)n;
	if (pe)
		return 0;
	JOB_CHECK(!gdr_put_nbi(work.to, work.from, 5000, 1));
	return gdr_quiet() < 0 ? 0 : 1;
}

static int is_said(const char *text)
{
	double end = now() + 20;

	while (!strstr(job_stderr(), text) && now() < end)
		usleep(10000);
	return strstr(job_stderr(), text) != NULL;
}

static int body_overdue(int pe, int n)
{
	(void)n;
	setenv("GDR_TIMEOUT", "4s", 1);
	JOB_CHECK(!make_work(pe) && !run_kernel(kernel_fill) && !gdr_barrier_all());
	if (pe == 0) {
		__atomic_store_n(&fake_cuda.held_at, (unsigned long)work.from, __ATOMIC_RELAXED);
		__atomic_store_n(&fake_cuda.held_len, 5000, __ATOMIC_RELAXED);
		/* the wait may end first */
		JOB_CHECK(!run_kernel(kernel_fails) && is_said("did not finish in 4000 ms"));
		__atomic_store_n(&fake_cuda.held_len, 0, __ATOMIC_RELAXED);
	}
	gdr_finalize();
	return 0;
}

/* A peer that is gone: what a kernel has under way to it ends, within the limit. */
static int kernel_lonely(int pe, int n)
{
	(void)n;
	JOB_CHECK(!gdr_put_nbi(work.to, work.from, 300000, 1));
	JOB_CHECK(gdr_quiet() < 0 || strcmp(transports, "ofi")); /* mapped memory takes it */
	JOB_CHECK(gdri_thread_barrier_all() < 0);
	return 0;
}

static int body_killed(int pe, int n)
{
	double begin;
	int pid;

	setenv("GDR_TIMEOUT", "3s", 1);
	setenv("GDR_INIT_TIMEOUT", "20s", 1);
	JOB_CHECK(!make_work(pe));
	if (pe == 1) {
		JOB_CHECK(!launch(kernel_waits, &pid));
		usleep(300000);
		kill(pid, SIGKILL);
		_exit(ended(pid) == SIGKILL ? 0 : 1);
	}
	begin = now();
	usleep(500000);
	JOB_CHECK(pe || !run_kernel(kernel_lonely));
	JOB_CHECK(gdr_barrier_all() < 0);
	JOB_CHECK(gdr_finalize() < 0 && now() - begin < 60);
	JOB_CHECK(strstr(job_stderr(), "PE 1"));
	(void)n;
	return 0;
}

/* That the processor does not reach what it must not is none of the test's wishes. */
static int touches(void *arg)
{
	signal(SIGSEGV, SIG_DFL); /* providers of libfabric have a handler */
	return *(volatile int *)arg;
}

static int body_guarded(int pe, int n)
{
	int status = 0;
	pid_t pid;

	(void)n;
	JOB_CHECK(!make_work(pe));
	pid = fork();
	if (!pid)
		_exit(touches(work.words));
	JOB_CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	return gdr_finalize();
}

static int body_rma(int pe, int n)
{
	uint64_t v = 9, w = 0;
	uint8_t *own;
	int pid;

	JOB_CHECK(!make_work(pe));
	JOB_CHECK(!run_kernel(kernel_rma));
	JOB_CHECK(!gdr_host_quiet() && !gdr_barrier_all());
	own = malloc(LONG);
	JOB_CHECK(own && !launch(kernel_waits, &pid));
	fill(own, pe, 50, LONG);
	JOB_CHECK(!gdr_host_put(work.to, own, LONG, (pe + 1) % n));
	JOB_CHECK(!gdr_barrier_all());
	JOB_CHECK(!gdr_host_get(own, work.to, LONG, pe) && is_filled(own, (pe + n - 1) % n, 50, LONG));
	JOB_CHECK(!gdr_host_get(own, work.to, LONG, (pe + 1) % n) && is_filled(own, pe, 50, LONG));
	JOB_CHECK(!gdr_host_put(work.back, work.to, 9000, (pe + 1) % n) && !gdr_barrier_all());
	JOB_CHECK(!gdr_host_get(own, work.back, 9000, pe) && is_filled(own, (pe + 2 * n - 2) % n, 50, 9000));
	JOB_CHECK(!gdr_host_put(work.signal + 2, &v, 8, (pe + 1) % n) && !ended(pid));
	JOB_CHECK(!gdr_host_get(&w, work.signal + 2, 8, pe) && w == 9);
	JOB_CHECK(!fake_cuda.pageable); /* such a copy would wait for kernels, without limit */
	free(own);
	JOB_CHECK(!gdr_barrier_all());
	return gdr_finalize();
}

static int body_amo(int pe, int n)
{
	(void)n;
	JOB_CHECK(!make_work(pe));
	JOB_CHECK(!run_kernel(kernel_amo));
	JOB_CHECK(!gdr_barrier_all());
	work.sums = gdr_calloc(64, sizeof(*work.sums));
	JOB_CHECK(work.sums && !run_kernel(kernel_many_amo));
	JOB_CHECK(!gdr_barrier_all());
	return gdr_finalize();
}

static void test_guarded(void **state)
{
	(void)state;
	assert_int_equal(job_run(1, 60, body_guarded), 0);
}

static void run(int n, int (*body)(int pe, int n))
{
	assert_int_equal(job_run(n, 120, body), 0);
}

static void test_put_signal(void **state)
{
	(void)state;
	run(2, body_put_signal);
	run(3, body_put_signal);
}

static void test_rma(void **state)
{
	(void)state;
	run(2, body_rma);
	run(3, body_rma);
}

static void test_amo(void **state)
{
	(void)state;
	run(2, body_amo);
	run(3, body_amo);
}

static void test_long(void **state)
{
	(void)state;
	if (strcmp(transports, "ofi")) /* mapped memory takes it */
		skip();
	run(2, body_long);
	run(3, body_long);
}

static void test_beside(void **state)
{
	(void)state;
	if (strcmp(transports, "ofi") || strcmp(provider, "copies"))
		skip();
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	run(2, body_beside);
	run(2, body_overdue);
}

static void test_killed(void **state)
{
	(void)state;
	run(2, body_killed);
	run(3, body_killed);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_guarded),
		cmocka_unit_test(test_put_signal),
		cmocka_unit_test(test_rma),
		cmocka_unit_test(test_amo),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_beside),
		cmocka_unit_test(test_killed),
	};

	fake_cuda.devices = 1; /* also, that it is linked */
	fake_cuda.guarded = 1;
	fake_cuda.ordered = 1;
	if (argc > 1)
		transports = argv[1];
	if (argc > 2)
		provider = argv[2];
	gdri_unit_add(&unit);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
