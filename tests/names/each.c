/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into a program that is one PE: for each name of TEST_EACH a process that runs the program with that name
 * empty (`header`), forked before the program has threads, which is cheaper than to start it. The names with
 * which it failed go to standard output, as `name TEST_RUN`. The first one is of no function: with it the program
 * has to pass, within TEST_LIMIT seconds as with the others, or what it says of those counts for nothing. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIPPED 77

static void run_without(const char *name)
{
	const char *limit = getenv("TEST_LIMIT");
	int null = open("/dev/null", O_WRONLY);

	setenv("TEST_EMPTY", name, 1);
	dup2(null, 1);
	dup2(null, 2);
	alarm(limit ? (unsigned)atoi(limit) : 10); /* then SIGALRM ends it */
}

__attribute__((constructor)) static void each(void)
{
	char *names = getenv("TEST_EACH"), *rest, *run = getenv("TEST_RUN");
	int first = 1;

	if (!names || !run)
		return;
	unsetenv("LD_PRELOAD");
	names = strdup(names);
	for (char *name = strtok_r(names, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
		int status = 0;
		pid_t pid = fork();

		if (!pid) {
			run_without(name);
			return;
		}
		waitpid(pid, &status, 0);
		status = status && !(WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED);
		if (first && status) {
			dprintf(2, "%s fails with no name empty, or takes too long\n", run);
			_exit(1);
		}
		if (status)
			dprintf(1, "%s %s\n", name, run);
		first = 0;
	}
	_exit(0);
}
