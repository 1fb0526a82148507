/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing many times, closing with everything still alive, fork,
 * SIGKILL: no descriptor, mapping or file is left. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "common.h"

static unsigned mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned n = 0;
	int c;

	assert_non_null(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

/* Entries that carry softhca's name. */
static unsigned litter(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		n += strstr(e->d_name, "softhca") != NULL || strstr(e->d_name, "uverbs") != NULL;
	closedir(dir);
	return n;
}

static void use(bool tidy)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_comp_channel *ch = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, ch, 0);
	struct dq q;

	assert_non_null(cq);
	dq_create(&q, ctx, pd_number(pd), 4, false);
	if (tidy) {
		dq_destroy(&q);
		assert_int_equal(ibv_destroy_cq(cq), 0);
		assert_int_equal(ibv_destroy_comp_channel(ch), 0);
		assert_int_equal(ibv_dealloc_pd(pd), 0);
		assert_int_equal(ibv_close_device(ctx), 0);
		return;
	}
	/* A crash of the program's own bookkeeping: only the files are closed. */
	close(ch->fd);
	close(ctx->async_fd);
	close(ctx->cmd_fd);
}

static void test_open_close(void **state)
{
	unsigned fds, maps;

	(void)state;
	use(true);
	fds = open_fds();
	maps = mappings();
	for (int i = 0; i < 100; i++)
		use(true);
	assert_int_equal(open_fds(), fds);
	assert_in_range(mappings(), 0, maps + 8);
	/* What libmlx5 keeps for these is lost on purpose. */
#ifdef __SANITIZE_ADDRESS__
	__lsan_disable();
#endif
	for (int i = 0; i < 20; i++)
		use(false);
#ifdef __SANITIZE_ADDRESS__
	__lsan_enable();
#endif
	assert_int_equal(open_fds(), fds);
	use(true);
}

static void test_dup(void **state)
{
	struct ibv_context *ctx = open_device();
	struct ibv_pd *pd;
	int copy = dup(ctx->cmd_fd);

	(void)state;
	/* The context outlives one of two descriptors. */
	assert_int_equal(close(copy), 0);
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void test_fork(void **state)
{
	struct ibv_context *ctx = open_device();
	struct ibv_device **list;
	struct ibv_pd *pd;
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		/* The parent's device answers nothing here; the child's close
		 * must not take it away; a second open is refused. */
		if (ibv_alloc_pd(ctx) || errno != EIO)
			_exit(2);
		close(ctx->cmd_fd);
		list = ibv_get_device_list(NULL);
		_exit(list && list[0] && !ibv_open_device(list[0]) ? 0 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* A program started from here closes its copies and has a device of its own. */
	assert_int_equal(system("ibv_devinfo >/dev/null"), 0);
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void test_killed(void **state)
{
	unsigned shm = litter("/dev/shm"), tmp = litter("/tmp");
	int status, ready[2];
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ready), 0);
	/* A process of its own: this one has the device open already. */
	pid = fork();
	if (!pid) {
		char fd[16];

		snprintf(fd, sizeof(fd), "%d", ready[1]);
		execl("/proc/self/exe", "test_lifetime", "--hold", fd, (char *)NULL);
		_exit(127);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	close(ready[0]);
	assert_int_equal(litter("/dev/shm"), shm);
	assert_int_equal(litter("/tmp"), tmp);
}

static uint64_t slice_of(pid_t tid)
{
	uint64_t a[6] = { 0 }; /* sched_getattr(2); the fourth: what SCHED_OTHER has as slice, since Linux 6.12 */

	return syscall(SYS_sched_getattr, tid, a, sizeof(a), 0) ? 0 : a[3];
}

static bool is_engine(const char *tid)
{
	char path[64], name[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = 0;
	fclose(f);
	return !strcmp(name, "softhca\n");
}

/* The engine's turns are short, so that they begin amid those of threads that spin; the program's are as they were. */
static void test_short_turns(void **state)
{
	struct ibv_context *ctx = open_device();
	DIR *dir = opendir("/proc/self/task");
	uint64_t own = slice_of(getpid());
	unsigned engines = 0;
	struct dirent *e;

	(void)state;
	assert_non_null(dir);
	for (int i = 0; i < 500 && !engines; i++, usleep(10000), rewinddir(dir)) /* it may not have begun */
		while ((e = readdir(dir)))
			engines += is_engine(e->d_name) && (!own || slice_of((pid_t)atoi(e->d_name)) == 100000);
	closedir(dir);
	assert_int_equal(engines, 1);
	assert_true(!own || own > 100000);
	assert_int_equal(ibv_close_device(ctx), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open_close),
		cmocka_unit_test(test_short_turns),
		cmocka_unit_test(test_dup),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_killed),
	};

	if (argc == 3 && !strcmp(argv[1], "--hold")) {
		open_device();
		if (write(atoi(argv[2]), "x", 1) != 1)
			return 1;
		pause();
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
