/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that ends at once behind a call that failed still says why: by exit, from main, by gdr_global_exit, and by _exit
 * and abort, which run nothing of the library; also where a kernel made the call. Calls behind gdr_finalize say that
 * the library is not there. And gdr_finalize behind an operation that failed says what failed once, and nothing in
 * front of it. */
#include <gdr.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT, GLOBAL_EXIT, RETURN, AT_ONCE, ABORT, KERNEL, BEHIND, FINALIZE, WAYS };

struct words {
	uint64_t *w;
};

GDR_KERNEL(put_to_nobody, struct words, a)
{
	uint64_t v = 1;

	(void)gdr_put(a.w, &v, 8, 99);
}

/* X(name, arguments): what refuses a call by its status. */
#define CALLS(X)                                                                                   \
	X(gdr_uint64_p, (w, 1, 0))                                                                 \
	X(gdr_uint64_atomic_add, (w, 1, 0))                                                        \
	X(gdr_put, (w, &old, 8, 0))                                                                \
	X(gdr_put_block, (w, &old, 8, 0))                                                          \
	X(gdr_put_signal_block, (w, &old, 8, w, 1, GDR_SIGNAL_SET, 0))                             \
	X(gdr_uint64_get, (&old, w, 1, 0))                                                         \
	X(gdr_fence, ())                                                                           \
	X(gdr_quiet, ())                                                                           \
	X(gdr_fence_pe, (0))                                                                       \
	X(gdr_quiet_pe, (0))                                                                       \
	X(gdr_ctx_fence, (0))                                                                      \
	X(gdr_ctx_quiet, (0))                                                                      \
	X(gdr_barrier_all, ())                                                                     \
	X(gdr_barrier_all_warp, ())                                                                \
	X(gdr_barrier_all_block, ())                                                               \
	X(gdr_sync_all, ())                                                                        \
	X(gdr_sync_all_warp, ())                                                                   \
	X(gdr_sync_all_block, ())                                                                  \
	X(gdr_barrier, (GDR_TEAM_WORLD))                                                           \
	X(gdr_barrier_block, (GDR_TEAM_WORLD))                                                     \
	X(gdr_team_sync_block, (GDR_TEAM_WORLD))                                                   \
	X(gdr_uint64_broadcast_block, (GDR_TEAM_WORLD, w, &old, 1, 0))                             \
	X(gdr_uint64_sum_reduce_block, (GDR_TEAM_WORLD, w, &old, 1))                               \
	X(gdr_signal_op, (w, 1, GDR_SIGNAL_SET, 0))                                                \
	X(gdr_signal_wait_until_from, (w, GDR_CMP_EQ, 1, 0))                                       \
	X(gdr_uint64_wait_until, (w, GDR_CMP_EQ, 1))                                               \
	X(gdr_set_lock, ((long *)w))

static int call_behind(uint64_t *w)
{
	uint64_t old = 1;

	if (gdr_finalize() || gdr_uint64_g(w, 0) || gdr_uint64_atomic_fetch_add(w, 1, 0))
		return 6;
#define REFUSED(name, arguments)                                                                   \
	if (name arguments != -GDR_ESTATE)                                                         \
		return 7;
	CALLS(REFUSED)
	return 1;
}

static int fail_and_leave(int way)
{
	uint64_t *w, v = 1;

	if (gdr_init() || !(w = gdr_malloc(8)))
		return 2;
	if (way == FINALIZE) /* by queue: told by a completion that nobody waited for */
		return gdr_put((char *)w - ((size_t)1 << 30), &v, 8, 0) || gdr_finalize() != -GDR_EREMOTEACCESS ? 4 : 1;
	if (way == BEHIND)
		return call_behind(w);
	if (way == KERNEL) {
		struct words a = {w};

		if (gdr_launch(put_to_nobody, 1, 64, 0, NULL, &a) || gdr_stream_sync(NULL))
			return 5;
		_exit(1);
	}
	if (gdr_put(w, &v, 8, 99) != -GDR_EINVAL)
		return 3;
	if (way == AT_ONCE)
		_exit(1);
	if (way == ABORT)
		abort();
	if (way == EXIT)
		exit(1);
	if (way == GLOBAL_EXIT)
		gdr_global_exit(1);
	return 1;
}

/* What a child of this program writes on stderr, in text; its exit status. */
static int child(int way, char *text, size_t room)
{
	size_t at = 0;
	ssize_t n;
	int end[2], status;
	pid_t pid;

	if (pipe(end) || (pid = fork()) < 0)
		return -1;
	if (!pid) {
		dup2(end[1], 2);
		close(end[0]);
		close(end[1]);
		setenv("GDR_BOOTSTRAP", "single", 1); /* its parent is the launcher's process */
		exit(fail_and_leave(way));
	}
	close(end[1]);
	while (at < room - 1 && (n = read(end[0], text + at, room - 1 - at)) > 0)
		at += (size_t)n;
	text[at] = 0;
	close(end[0]);
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : way == ABORT && WTERMSIG(status) == SIGABRT ? 1 : -1;
}

static int says_calls(const char *text)
{
#define NAME(name, arguments) #name,
	static const char *const calls[] = {"gdr_uint64_g", "gdr_uint64_atomic_fetch_add", CALLS(NAME)};
	char line[100];
	int all = 1;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		snprintf(line, sizeof(line), "error: %s: the library is not initialised", calls[i]);
		if (strstr(text, line))
			continue;
		printf("%s did not say so\n", calls[i]);
		all = 0;
	}
	return all;
}

static int is_right(int way, const char *text)
{
	const char *first = strstr(text, "error: ");

	if (way == BEHIND)
		return says_calls(text);
	if (way != FINALIZE)
		return strstr(text, "gdr_put refused") && strstr(text, "99");
	return first && strstr(first, "gdr_put to PE 0 failed") == first + 7 && strstr(first, "bytes below the heap") &&
	       !strstr(first + 7, "error: ");
}

int main(void)
{
	const char *paths = getenv("GDR_TRANSPORTS");
	int ways = paths && !strcmp(paths, "nic") ? WAYS : FINALIZE, bad = 0;
	static char text[65536];

	for (int way = 0; way < ways; way++) {
		int status = child(way, text, sizeof(text));

		if (status == 1 && is_right(way, text))
			continue;
		printf("way %d: status %d, said:\n%s\n", way, status, text);
		bad = 1;
	}
	return bad;
}
