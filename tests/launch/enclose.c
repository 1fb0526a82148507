/* SPDX-License-Identifier: BSD-3-Clause */
/* enclose SECONDS [NAME=SECONDS]... COMMAND... : runs a test such that nothing of it outlives it, in bounded time.
 *
 * COMMAND is in a PID and mount namespace with /proc, /dev/shm, /run/netns and TMPDIR of its own, which the kernel
 * ends with it, and with this process, however that ends. Where the user may make none (or TEST_ENCLOSE=reaper), two
 * processes, each a subreaper, stand in: whichever of them is left kills all others.
 *
 * The times NAME, environment variables that are not set yet, are multiplied by TEST_SLOW, which COMMAND has in its
 * environment for limits of its own: a whole number of 1 to 16, how crowded the machine is at the start (slow.c),
 * unless the caller sets it. SECONDS pass slower while the machine is crowded; they are looked at every two.
 *
 * Exit status: COMMAND's; 128 + the number of the signal that ended it; 124: ended by the limit. All but 0 and 77
 * are explained in a line. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "enclose.h"

#define LIMIT_STATUS 124
#define TICK_S 2
#define GRACE_S 5 /* from SIGTERM to SIGKILL */

struct test {
	double limit, slow; /* slow: at the start */
	char **command;
	bool apart;	     /* in namespaces of its own */
	int outer;	     /* the end of a pipe whose other end the outer process holds */
	pid_t pid;	     /* of the command, and of its process group */
	int status;	     /* of the command: -1 while it runs */
	sigset_t own, users; /* signals that are waited for; the mask that the command gets */
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int code_of(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void start(struct test *t)
{
	t->status = -1;
	t->pid = fork();
	if (t->pid)
		return;
	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigprocmask(SIG_SETMASK, &t->users, NULL);
	execvp(t->command[0], t->command);
	fprintf(stderr, "enclose: %s: %s\n", t->command[0], strerror(errno));
	_exit(127);
}

static bool outer_is_alive(const struct test *t)
{
	struct pollfd p = { .fd = t->outer, .events = POLLIN };

	return poll(&p, 1, 0) == 0;
}

static void reap(struct test *t)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == t->pid)
			t->status = code_of(status);
}

/* Waits for a signal or the next tick. Returns false when it says that all has to end. */
static bool pass_on(struct test *t)
{
	int sig = sigtimedwait(&t->own, NULL, &(struct timespec){ .tv_sec = TICK_S });

	reap(t);
	if (!outer_is_alive(t))
		return false;
	if (sig > 0 && sig != SIGCHLD)
		kill(-t->pid, sig);
	return true;
}

/* What passed since `*before`, in seconds of a machine that nobody else uses; from tick to tick. */
static double passed(const struct test *t, double *before)
{
	double then = *before, at = now();

	if (at - then < TICK_S)
		return 0;
	*before = at;
	return (at - then) / slow_now(t->apart);
}

/* The test, until it has ended, at its limit or by itself. Returns the status. */
static int supervise(struct test *t)
{
	double spent = 0, at = now(), term = 0;

	start(t);
	while (t->status < 0) {
		if (!pass_on(t))
			return 128 + SIGHUP;
		spent += passed(t, &at);
		if (t->status >= 0 || spent < t->limit)
			continue;
		if (!term) {
			fprintf(stderr, "enclose: %s did not end within its limit, %g s on a quiet machine%s\n",
				t->command[0], t->limit, t->apart ? ":" : "");
			if (t->apart)
				slow_report();
			term = at;
			kill(-t->pid, SIGCONT);
			kill(-t->pid, SIGTERM);
		} else if (at - term > GRACE_S * t->slow) {
			break;
		}
	}
	return term ? LIMIT_STATUS : t->status;
}

/* The process around the command: the first of the PID namespace, or a subreaper. `ready` tells the outer process
 * that the namespaces are there. */
static _Noreturn void inner(struct test *t, volatile bool *ready)
{
	int status;

	prctl(PR_SET_PDEATHSIG, t->apart ? SIGKILL : SIGHUP);
	if (t->apart && !enclosure_mounts())
		_exit(1);
	*ready = true; /* read after waitpid has returned */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	status = outer_is_alive(t) ? supervise(t) : 128 + SIGHUP;
	if (!t->apart) { /* the kernel does it where this is the first process */
		enclosure_sweep();
		enclosure_dir_remove();
	}
	_exit(status);
}

/* Starts the inner process and waits for it. Returns its status, -1 where there are no namespaces to be had. */
static int outer(struct test *t)
{
	volatile bool *ready = mmap(NULL, sizeof(*ready), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2], status, sig;
	pid_t pid;

	if (ready == MAP_FAILED || pipe2(ends, O_CLOEXEC))
		return -1;
	fflush(NULL);
	pid = (pid_t)syscall(SYS_clone, (t->apart ? CLONE_NEWPID | CLONE_NEWNS : 0) | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		close(ends[1]);
		t->outer = ends[0];
		inner(t, ready);
	}
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, WNOHANG) != pid) {
		sig = sigwaitinfo(&t->own, NULL);
		if (sig > 0 && sig != SIGCHLD)
			kill(pid, sig);
	}
	close(ends[1]);
	return pid > 0 && *ready ? code_of(status) : -1;
}

/* The times that the test has as environment variables, and its own limit. Returns the words used. */
static int set_limits(struct test *t, char **words)
{
	const char *given = getenv("TEST_SLOW");
	char text[64], *eq;
	int n = 1;

	t->slow = given ? atof(given) : slow_now(false);
	t->slow = t->slow < 1 ? 1 : (int)(t->slow + 0.99);
	snprintf(text, sizeof(text), "%d", (int)t->slow);
	setenv("TEST_SLOW", text, 1);
	t->limit = atof(words[0]);
	for (; words[n] && (eq = strchr(words[n], '=')); n++) {
		*eq = 0;
		snprintf(text, sizeof(text), "%ds", (int)(atof(eq + 1) * t->slow));
		setenv(words[n], text, 0);
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *how = getenv("TEST_ENCLOSE");
	struct test t = { .apart = !how || strcmp(how, "reaper") };
	int status;

	if (argc > 1)
		t.command = argv + 1 + set_limits(&t, argv + 1);
	if (argc < 3 || !*t.command || t.limit <= 0) {
		fprintf(stderr, "usage: enclose SECONDS [NAME=SECONDS]... COMMAND...\n");
		return 2;
	}
	sigemptyset(&t.own);
	for (const int *s = (const int[]){ SIGCHLD, SIGTERM, SIGINT, SIGHUP, 0 }; *s; s++)
		sigaddset(&t.own, *s);
	sigprocmask(SIG_BLOCK, &t.own, &t.users);
	signal(SIGCHLD, SIG_DFL); /* ignored, it would not come */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	status = t.apart ? outer(&t) : -1;
	if (status < 0) {
		t.apart = false;
		enclosure_dir();
		status = outer(&t);
		enclosure_sweep();
		enclosure_dir_remove();
	}
	if (status < 0)
		fprintf(stderr, "enclose: cannot start: %s\n", strerror(errno));
	else if (status > 128)
		fprintf(stderr, "enclose: %s ended by signal %d (%s)\n", *t.command, status - 128,
			strsignal(status - 128));
	else if (status && status != 77)
		fprintf(stderr, "enclose: %s ended with status %d\n", *t.command, status);
	return status < 0 ? 125 : status;
}
