// SPDX-License-Identifier: BSD-3-Clause
/* Signals are the program's: what was set before gdr_init is there after it and after gdr_finalize, and who has no
 * handler ends by the signal. Argument "chained": the provider's own handler may stand in front. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gdr/host.h>

static volatile sig_atomic_t came;

static void on_signal(int sig)
{
	came = sig;
}

static int n_changed(const struct sigaction *was)
{
	struct sigaction now;
	int i, n = 0;

	for (i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &now) && now.sa_sigaction != was[i].sa_sigaction) {
			printf("signal %d is handled otherwise\n", i);
			n++;
		}
	return n;
}

static int ends_by(int sig)
{
	struct rlimit none = {0, 0};
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_CORE, &none);
		if (!gdr_init())
			raise(sig);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	printf("signal %d: status 0x%x\n", sig, (unsigned int)status);
	return WIFSIGNALED(status) && WTERMSIG(status) == sig;
}

int main(int argc, char **argv)
{
	struct sigaction was[NSIG], mine = {.sa_handler = on_signal};
	int chained = argc > 1 && !strcmp(argv[1], "chained"), i, changed;

	if (!ends_by(SIGSEGV) || !ends_by(SIGTERM) || !ends_by(SIGABRT))
		return 1;
	memset(was, 0, sizeof(was));
	sigaction(SIGTERM, &mine, NULL);
	signal(SIGINT, SIG_IGN);
	for (i = 1; i < NSIG; i++)
		sigaction(i, NULL, &was[i]);
	if (gdr_init())
		return 1;
	changed = chained ? 0 : n_changed(was);
	raise(SIGINT);
	raise(SIGTERM);
	if (gdr_finalize())
		return 1;
	changed += chained ? 0 : n_changed(was);
	printf("the program's handler of SIGTERM ran: %d\n", came == SIGTERM);
	return changed || came != SIGTERM;
}
