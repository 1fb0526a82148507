/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches, streams, limits, and start and end of the host device. */
#include <gdr/impl/arch/arch.h>
#include <gdr/local.h>

#include "runtime/core/log.h"
#include "tests/hostdev/test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void limit_blocks(unsigned n)
{
	struct gdri_hd_params p = {n, GDRI_HD_DEFAULT_STACK, 0};

	assert_int_equal(gdri_hd_shutdown(10000), 0);
	assert_int_equal(gdri_hd_init(&p), 0);
}

/* 200 blocks, 4 at a time. */
static void test_more_blocks_than_threads(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	(void)state;
	limit_blocks(4);
	assert_int_equal(run_crowd(200, 3, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[2], 200);
	assert_int_equal(r.out[0], 0);
	assert_in_range(r.out[1], 1, 4);
	limit_blocks(GDRI_HD_DEFAULT_BLOCKS);
}

static void test_blocks_that_wait_for_each_other(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 20);

	(void)state;
	limit_blocks(16);
	assert_int_equal(run_grid_barrier(16, 40, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[0], 16 * 20);
	limit_blocks(GDRI_HD_DEFAULT_BLOCKS);
}

/* What the kernel waits for: nobody else brings it. It takes more stack than a thread of a kernel has. */
static bool bring(void *word, bool spare)
{
	volatile char room[1 << 20];

	(void)spare;
	for (size_t i = 0; i < sizeof(room); i += 4096)
		room[i] = 1;
	/* release: pairs with the kernel's acquire */
	return __atomic_fetch_add((uint32_t *)word, 1, __ATOMIC_RELEASE) != 0;
}

GDR_KERNEL(awaits, struct kernel_args, a)
{
	for (unsigned round = 0; gdri_ld_acquire_gpu_u32(a.out) < 20; round++)
		gdr_pause(round);
	gdri_add_u32(a.out + 1, 1);
}

/* One thread, many, and the program's own; none behind the end. */
static void test_who_waits_drives(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	(void)state;
	gdri_hd_backoff_drives(bring, r.out, 1);
	assert_int_equal(gdr_collective_launch(awaits, 1, 1, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[1], 1);
	r.out[0] = 0;
	assert_int_equal(gdr_collective_launch(awaits, 3, 40, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[1], 121);
	r.out[0] = 0;
	for (unsigned round = 0; __atomic_load_n(r.out, __ATOMIC_ACQUIRE) < 20; round++) /* pairs with bring */
		gdr_pause(round);
	gdri_hd_backoff_drives(NULL, NULL, 0);
	r.out[0] = 0;
	gdr_pause(1);
	assert_int_equal(r.out[0], 0);
}

GDR_KERNEL(meets, struct kernel_args, a)
{
	if (gdr_thread_id())
		return;
	gdri_add_u32(a.out, 1);
	for (unsigned round = 0; gdri_ld_acquire_gpu_u32(a.out) < gdr_grid_size(); round++)
		gdr_pause(round);
}

/* As many as run at once, or not at all. */
static void test_collective_launch(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);
	int most = 0;

	(void)state;
	limit_blocks(6);
	assert_int_equal(gdr_collective_launch_query_gridsize(meets, 3, 0, &most), 0);
	assert_int_equal(most, 6);
	assert_int_equal(gdr_collective_launch(meets, 0, 3, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[0], 6);
	assert_int_equal(gdr_collective_launch(meets, 7, 3, 0, NULL, &a), -GDR_EINVAL);
	assert_int_equal(gdr_collective_launch_query_gridsize(meets, 2000, 0, &most), -GDR_EINVAL);
	assert_int_equal(gdr_collective_launch_query_gridsize(meets, 1, 0, NULL), -GDR_EINVAL);
	assert_non_null(strstr(gdri_log_last_error(), "gridp is NULL"));
	limit_blocks(GDRI_HD_DEFAULT_BLOCKS);
}

/* The log names the extent. */
static void expect_refused(struct gdr_dim3 grid, struct gdr_dim3 block, const char *text)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	assert_int_equal(gdr_launch_3d(meets, grid, block, 0, NULL, &a), -GDR_EINVAL);
	assert_string_equal(gdri_log_last_error(), text);
}

static void test_extents(void **state)
{
	const struct gdr_dim3 one = gdr_make_dim3(1, 1, 1);
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	(void)state;
	expect_refused(gdr_make_dim3(3, 0, 1), one,
		       "gdr_launch_3d of meets: extent y of the grid is 0: allowed are 1 to 65535");
	expect_refused(gdr_make_dim3(1u << 31, 1, 1), one,
		       "gdr_launch_3d of meets: extent x of the grid is 2147483648: allowed are 1 to 2147483647");
	expect_refused(one, gdr_make_dim3(1, 1, 65),
		       "gdr_launch_3d of meets: extent z of the block is 65: allowed are 1 to 64");
	expect_refused(one, gdr_make_dim3(32, 33, 1),
		       "gdr_launch_3d of meets: extents 32 x 33 x 1 of the block: allowed are products up to 1024");
	expect_refused(gdr_make_dim3(65536, 256, 256), one,
		       "gdr_launch_3d of meets: extents 65536 x 256 x 256 of the grid: allowed are products up to "
		       "2147483647");
	limit_blocks(6);
	assert_int_equal(gdr_collective_launch_3d(meets, gdr_make_dim3(0, 1, 1), one, 0, NULL, &a), -GDR_EINVAL);
	assert_int_equal(gdr_collective_launch_3d(meets, gdr_make_dim3(2, 2, 2), one, 0, NULL, &a), -GDR_EINVAL);
	assert_string_equal(gdri_log_last_error(), "gdr_collective_launch_3d of meets: 8 blocks do not run at once, "
						   "6 do (GDR_HOST_DEVICE_BLOCKS)");
	assert_int_equal(gdr_collective_launch_3d(meets, gdr_make_dim3(1, 3, 2), gdr_make_dim3(2, 2, 2), 0, NULL, &a),
			 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[0], 6);
	limit_blocks(GDRI_HD_DEFAULT_BLOCKS);
}

static void test_stream_order(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);
	gdr_stream_t s;

	(void)state;
	assert_int_equal(gdr_stream_create(&s), 0);
	for (a.id = 1; a.id <= 9; a.id++) {
		a.n = 40 - 4 * a.id; /* later ones are quicker */
		assert_int_equal(run_append(1, 1 + a.id % 2 * 40, 0, s, &a), 0);
	}
	assert_int_equal(gdr_stream_sync(s), 0);
	assert_int_equal(r.sum[0], 123456789);
	assert_int_equal(gdr_stream_destroy(s), 0);
}

/* A kernel that waits for one that was launched later on another stream, and both for the
 * host. */
static void test_streams_run_together(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 7), b;
	gdr_stream_t s, t;

	(void)state;
	assert_int_equal(gdr_stream_create(&s), 0);
	assert_int_equal(gdr_stream_create(&t), 0);
	b = a;
	b.out = &r.out[1];
	assert_int_equal(run_wait_flag(2, 40, 0, s, &a), 0);
	assert_int_equal(run_wait_flag(1, 1, 0, t, &b), 0);
	assert_int_equal(run_set_flag(1, 1, 0, t, &a), 0);
	__atomic_store_n(b.out, b.n, __ATOMIC_RELEASE); /* pairs with wait_flag */
	assert_int_equal(gdr_stream_sync(s), 0);
	assert_int_equal(gdr_stream_sync(t), 0);
	assert_int_equal(gdr_stream_destroy(s), 0);
	assert_int_equal(gdr_stream_destroy(t), 0);
}

static void *launch_many(void *arg)
{
	struct results r;
	gdr_stream_t s;
	long bad = 0;

	(void)arg;
	if (gdr_stream_create(&s))
		return (void *)1;
	for (unsigned i = 0; i < 50; i++) {
		struct kernel_args a = args_for(&r, 0);

		bad += run_reduce(2, 48, 256, s, &a) != 0;
		bad += gdr_stream_sync(s) != 0;
		bad += r.sum[0] != 48 * 49 / 2 || r.sum[1] != r.sum[0];
	}
	bad += gdr_stream_destroy(s) != 0;
	return (void *)bad;
}

static void test_host_threads(void **state)
{
	pthread_t threads[4];
	void *bad;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
}

static void test_bad_arguments(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);
	struct gdri_hd_params p = {0, GDRI_HD_DEFAULT_STACK, 0};

	(void)state;
	assert_int_equal(run_reduce(0, 1, 0, NULL, &a), -GDR_EINVAL);
	assert_int_equal(run_reduce(1, 0, 0, NULL, &a), -GDR_EINVAL);
	assert_int_equal(run_reduce(1, GDR_MAX_BLOCK + 1, 0, NULL, &a), -GDR_EINVAL);
	assert_non_null(strstr(gdri_log_last_error(), ": extent x of the block is 1025: allowed are 1 to 1024"));
	assert_int_equal(run_reduce(1, 1, GDR_MAX_SHARED + 1, NULL, &a), -GDR_EINVAL);
	assert_int_equal(run_reduce(1, 1, 0, (gdr_stream_t)&r, &a), -GDR_EINVAL);
	assert_int_equal(run_reduce(1, 1, 0, NULL, NULL), -GDR_EINVAL);
	assert_non_null(strstr(gdri_log_last_error(), ": argp is NULL"));
	assert_int_equal(gdr_stream_sync((gdr_stream_t)&r), -GDR_EINVAL);
	assert_int_equal(gdr_stream_destroy((gdr_stream_t)&r), -GDR_EINVAL);
	assert_int_equal(gdr_stream_destroy(NULL), -GDR_EINVAL);
	assert_int_equal(gdr_stream_create(NULL), -GDR_EINVAL);
	assert_int_equal(gdri_hd_init(&p), -GDR_EINVAL);
	assert_int_equal(gdr_memcpy(NULL, &r, 1), -GDR_EINVAL);
	assert_int_equal(gdr_memcpy(NULL, NULL, 0), 0);
}

/* Misuse ends the kernel with an error, once, and what follows runs. */
static void test_misuse_is_reported(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);

	(void)state;
	assert_int_equal(run_lost_barrier(1, 64, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), -GDR_EINVAL);
	assert_int_equal(run_lost_lane(1, 2, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), -GDR_EINVAL);
	assert_int_equal(r.out[0], 0);
	assert_int_equal(run_own_lane(1, 32, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), -GDR_EINVAL);
	assert_int_equal(run_one_fails(4, 5, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), -GDR_EINVAL);
	assert_int_equal(run_reduce(4, 64, 256, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.sum[3], 64 * 65 / 2);
}

struct exits_args {
	uint32_t *out; /* out[0]: blocks that have come */
};

/* Wrong: thread 2 of block 0 ends the CPU thread; all others wait for what does not come. */
GDR_KERNEL(exits, struct exits_args, a)
{
	for (unsigned round = 0; gdr_thread_id() == 2 && gdr_block_id() == 0; round++) {
		/* relaxed: the number alone is of interest; pairs with the addition below */
		if (__atomic_load_n(a.out, __ATOMIC_RELAXED) == gdr_grid_size() - 1)
			pthread_exit(NULL);
		gdr_pause(round);
	}
	if (gdr_thread_id() == 0 && gdr_block_id())
		__atomic_fetch_add(a.out, 1, __ATOMIC_RELAXED);
	for (unsigned round = 0;; round++)
		gdr_pause(round);
}

/* The kernel ends, says why, and its CPU threads are made anew. */
static void test_exit_of_a_thread_ends_the_kernel(void **state)
{
	struct results r;
	struct kernel_args k = args_for(&r, 0);
	struct exits_args a = {r.out};
	char text[4096] = "";
	FILE *log = tmpfile();
	int was = dup(2);

	(void)state;
#if defined(GDRI_HD_ASAN) || defined(GDRI_HD_TSAN)
	skip(); /* they take the fiber for the thread's own stack */
#endif
	assert_true(was >= 0 && log && dup2(fileno(log), 2) == 2);
	for (unsigned grid = 1; grid <= 3; grid++) {
		r.out[0] = 0;
		assert_int_equal(gdr_launch(exits, grid, 5, 0, NULL, &a), 0);
		assert_int_equal(gdr_stream_sync(NULL), -GDR_EINVAL);
		assert_int_equal(run_reduce(4, 64, 256, NULL, &k), 0);
		assert_int_equal(gdr_stream_sync(NULL), 0);
		assert_int_equal(r.sum[3], 64 * 65 / 2);
	}
	assert_int_equal(dup2(was, 2), 2);
	assert_true(pread(fileno(log), text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "kernel exits, block 0: thread 2 has ended the CPU thread of its block"));
	fclose(log);
	close(was);
}

static void test_shutdown_is_bounded(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);
	uint64_t start = gdr_clock_ns();

	(void)state;
	assert_int_equal(run_wait_flag(1, 2, 0, NULL, &a), 0);
	assert_int_equal(gdri_hd_shutdown(100), -GDR_ETIMEOUT);
	assert_true(gdr_clock_ns() - start >= 100000000u);
	__atomic_store_n(a.out, a.n, __ATOMIC_RELEASE); /* pairs with wait_flag */
	assert_int_equal(gdri_hd_shutdown(10000), 0);
	assert_int_equal(gdri_hd_shutdown(0), 0);
	assert_int_equal(run_set_flag(1, 1, 0, NULL, &a), 0); /* starts anew */
	assert_int_equal(gdr_stream_sync(NULL), 0);
}

/* What was left is waited for no more, and the same streams go on; that it ends later matters to nobody. */
static void test_left_kernels_are_nobodys(void **state)
{
	static struct results r, q;
	struct kernel_args a = args_for(&r, 1), b = args_for(&q, 0);
	struct gdri_hd_params p = {4, GDRI_HD_DEFAULT_STACK, 0};
	gdr_stream_t s, t;
	gdr_event_t e;

	(void)state;
	r.out[0] = q.out[0] = 0;
	assert_int_equal(gdr_stream_create(&s), 0);
	assert_int_equal(gdr_stream_create(&t), 0);
	assert_int_equal(gdr_event_create(&e), 0);
	assert_int_equal(gdri_hd_init(&p), 0);
	assert_int_equal(run_wait_flag(6, 40, 0, s, &a), 0); /* of its blocks two do not begin */
	assert_int_equal(gdr_event_record(e, s), 0);
	assert_int_equal(gdr_stream_wait_event(NULL, e), 0);
	assert_int_equal(run_crowd(1, 1, 0, NULL, &b), 0);
	assert_int_equal(gdri_hd_shutdown(100), -GDR_ETIMEOUT);
	gdri_hd_leave();
	assert_int_equal(gdr_event_sync(e), 0);
	assert_int_equal(gdr_stream_sync(s), -GDR_EABORTED);
	assert_int_equal(gdr_stream_sync(s), 0);
	assert_int_equal(gdri_hd_shutdown(0), 0);
	assert_int_equal(gdri_hd_init(&p), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(run_crowd(9, 1, 0, NULL, &b), 0);
	assert_int_equal(run_crowd(9, 1, 0, s, &b), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(gdr_stream_sync(s), 0);
	assert_int_equal(q.out[2], 18);
	__atomic_store_n(a.out, a.n, __ATOMIC_RELEASE); /* pairs with wait_flag */
	assert_int_equal(run_crowd(9, 1, 0, t, &b), 0);
	assert_int_equal(gdr_stream_destroy(s), 0);
	assert_int_equal(gdr_stream_destroy(t), 0);
	assert_int_equal(gdr_event_destroy(e), 0);
	assert_int_equal(gdri_hd_shutdown(10000), 0);
	assert_int_equal(q.out[2], 27);
}

static void test_memcpy_waits(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 60);
	uint64_t copy = 0;

	(void)state;
	a.id = 5;
	assert_int_equal(run_append(1, 1, 0, NULL, &a), 0);
	assert_int_equal(gdr_memcpy(&copy, r.sum, sizeof(copy)), 0);
	assert_int_equal(copy, 5);
}

static int in_child(void)
{
	struct results r;
	struct kernel_args a = args_for(&r, 0);

	if (gdr_stream_sync(NULL) != -GDR_ESTATE) /* the parent's kernel */
		return 2;
	if (run_reduce(2, 40, 256, NULL, &a) || gdr_stream_sync(NULL))
		return 3;
	return r.sum[1] != 40 * 41 / 2;
}

/* The last of 1024 threads leaves its stack: the guard page ends the program, and no other
 * thread's stack is written to. */
static uint32_t descend(uint32_t n)
{
	volatile uint32_t frame[64]; /* volatile: must really be on the stack */

	frame[n % 64] = n;
	return n ? descend(n - 1) + frame[n % 64] : 0;
}

GDR_KERNEL(overflow, struct kernel_args, a)
{
	gdr_sync_block();
	if (gdr_thread_id() == gdr_block_size() - 1)
		a.out[0] = descend(a.n);
	gdr_sync_block();
}

#ifndef GDRI_HD_ASAN /* whose stacks are larger */
/* Its lowest bytes alone, by one thread: what lies above is not touched. */
GDR_KERNEL(overflow_by_array, struct kernel_args, a)
{
	volatile char array[112 << 10]; /* volatile: must really be on the stack */

	gdr_sync_block();
	if (gdr_thread_id() == a.n)
		array[0] = 1, a.out[0] = (uint32_t)array[0];
	gdr_sync_block();
}
#endif

static void overflows(void (*launch)(struct kernel_args *a), uint32_t n)
{
	struct results r;
	struct kernel_args a = args_for(&r, n);
	int status, err[2];
	pid_t pid;

	assert_int_equal(pipe(err), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		dup2(err[1], STDERR_FILENO);
		signal(SIGSEGV, SIG_DFL); /* in place of cmocka's */
		launch(&a);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(err[1]);
#ifdef GDRI_HD_ASAN /* which may report it, and exits then */
	if (WIFEXITED(status)) {
		assert_int_not_equal(WEXITSTATUS(status), 0);
		assert_int_not_equal(WEXITSTATUS(status), 2);
		close(err[0]);
		return;
	}
#endif
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
#ifndef GDRI_HD_ASAN
	char told[1000] = "";

	assert_true(read(err[0], told, sizeof(told) - 1) > 0);
	assert_non_null(strstr(told, "raise GDR_HOST_DEVICE_STACK"));
#endif
	close(err[0]);
}

static void launch_overflow(struct kernel_args *a)
{
	if (gdr_launch(overflow, 1, GDR_MAX_BLOCK, 0, NULL, a) || gdr_stream_sync(NULL))
		_exit(2);
}

#ifndef GDRI_HD_ASAN
static void launch_by_array(struct kernel_args *a)
{
	if (gdr_launch(overflow_by_array, 1, 16, 0, NULL, a) || gdr_stream_sync(NULL))
		_exit(2);
}
#endif

static void test_stack_overflow(void **state)
{
	(void)state;
#ifdef GDRI_HD_TSAN
	print_message("ThreadSanitizer supports no new threads after a fork\n");
	skip();
#endif
	overflows(launch_overflow, 100000);
#ifndef GDRI_HD_ASAN
	overflows(launch_by_array, 0); /* the lowest stack */
	overflows(launch_by_array, 15);
#endif
}

/* A child that forks while kernels run ends, and can launch its own. */
static void test_fork(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);
	int status;
	pid_t pid;

	(void)state;
#ifdef GDRI_HD_TSAN
	print_message("ThreadSanitizer supports no new threads after a fork\n");
	skip();
#endif
	assert_int_equal(run_wait_flag(3, 40, 0, NULL, &a), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		exit(in_child()); /* exit handlers must not hang either */
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	__atomic_store_n(a.out, a.n, __ATOMIC_RELEASE); /* pairs with wait_flag */
	assert_int_equal(gdr_stream_sync(NULL), 0);
}

/* Looks until the log names the thread. */
static void expect_named(int log, const char *what)
{
	char text[4096] = "";

	while (!strstr(text, what)) {
		ssize_t n;

		gdri_hd_watch(1);
		usleep(1000);
		n = pread(log, text, sizeof(text) - 1, 0);
		assert_true(n >= 0);
		text[n] = 0;
	}
}

static char host_came;

static void *sync_default(void *arg)
{
	(void)arg;
	return gdr_stream_sync(NULL) ? NULL : &host_came;
}

/* A thread that spins without a pause is named, once, where others wait for it: of its block, or of the host. */
static void test_hog_is_named(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);
	FILE *file = tmpfile();
	int was = dup(2), log = file ? fileno(file) : -1;
	pthread_t host;
	void *synced;

	(void)state;
	assert_true(was >= 0 && log >= 0 && dup2(log, 2) == 2);
	assert_int_equal(run_hogs(1, 3, 0, NULL, &a), 0);
	expect_named(log, "kernel hogs, block 0: thread 1 has run for ");
	expect_named(log, "let no other one run, while 2 threads of its block wait: ");
	assert_int_equal(ftruncate(log, 0), 0);
	for (int i = 0; i < 20; i++) {
		gdri_hd_watch(1);
		usleep(1000);
	}
	assert_int_equal(lseek(log, 0, SEEK_END), 0);
	__atomic_store_n(a.out, a.n, __ATOMIC_RELEASE); /* pairs with hogs */
	assert_int_equal(gdr_stream_sync(NULL), 0);

	__atomic_store_n(a.out, 0, __ATOMIC_RELEASE);
	assert_int_equal(run_hogs(1, 1, 0, NULL, &a), 0);
	for (int i = 0; i < 20; i++) { /* nobody waits */
		gdri_hd_watch(1);
		usleep(1000);
	}
	assert_int_equal(lseek(log, 0, SEEK_END), 0);
	assert_int_equal(pthread_create(&host, NULL, sync_default, NULL), 0);
	expect_named(log, "block 0: thread 0 has run for ");
	expect_named(log, "while a thread of the host waits: ");
	__atomic_store_n(a.out, a.n, __ATOMIC_RELEASE);
	assert_int_equal(pthread_join(host, &synced), 0);
	assert_non_null(synced);
	assert_int_equal(dup2(was, 2), 2);
	fclose(file);
	close(was);
}

static int end(void **state)
{
	(void)state;
	return gdri_hd_shutdown(10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_more_blocks_than_threads),
		cmocka_unit_test(test_blocks_that_wait_for_each_other),
		cmocka_unit_test(test_collective_launch),
		cmocka_unit_test(test_extents),
		cmocka_unit_test(test_stream_order),
		cmocka_unit_test(test_streams_run_together),
		cmocka_unit_test(test_host_threads),
		cmocka_unit_test(test_bad_arguments),
		cmocka_unit_test(test_misuse_is_reported),
		cmocka_unit_test(test_exit_of_a_thread_ends_the_kernel),
		cmocka_unit_test(test_shutdown_is_bounded),
		cmocka_unit_test(test_left_kernels_are_nobodys),
		cmocka_unit_test(test_memcpy_waits),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_stack_overflow),
		cmocka_unit_test(test_who_waits_drives),
		cmocka_unit_test(test_hog_is_named),
	};

	alarm(300); /* a hang is a failure */
	return cmocka_run_group_tests_name("hostdev.launch", tests, NULL, end);
}
