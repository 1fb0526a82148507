// SPDX-License-Identifier: BSD-3-Clause
/* The program's thread pins itself to one CPU, as runtimes of OpenMP do, and then calls gdr_init. Argument: what
 * GDR_PROXY_CPUS is. auto: the proxy may run on all others that the process had; any: where its caller does; a CPU:
 * there, or init refuses. A second one: how many threads the proxy's are, else 1. */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/host.h>

/* The thread whose name begins so, behind so many others; 0: none. */
static pid_t thread_named(const char *name, int others)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	pid_t found = 0;

	while (d && !found && (e = readdir(d))) {
		char path[300], line[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(line, sizeof(line), f) && !strncmp(line, name, strlen(name)) && !others--)
			found = (pid_t)atoi(e->d_name);
		if (f)
			fclose(f);
	}
	if (d)
		closedir(d);
	return found;
}

static int pin(const cpu_set_t *process, cpu_set_t *own)
{
	size_t cpu = 0;

	while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, process))
		cpu++;
	CPU_ZERO(own);
	CPU_SET(cpu, own);
	return sched_setaffinity(0, sizeof(*own), own);
}

/* CPUs of the process alone, and not the caller's: all others, or those of other cores. */
static int is_off(const cpu_set_t *proxy, const cpu_set_t *own, const cpu_set_t *process)
{
	cpu_set_t both;

	CPU_AND(&both, proxy, own);
	if (CPU_COUNT(&both))
		return 0;
	CPU_AND(&both, proxy, process);
	return CPU_COUNT(proxy) && CPU_EQUAL(&both, proxy);
}

static int is_there(pid_t thread, const char *where, const cpu_set_t *own, const cpu_set_t *process)
{
	cpu_set_t proxy, cpu;
	int ok;

	if (sched_getaffinity(thread, sizeof(proxy), &proxy))
		return 0;
	CPU_ZERO(&cpu);
	CPU_SET(1, &cpu);
	if (!strcmp(where, "auto"))
		ok = is_off(&proxy, own, process);
	else
		ok = CPU_EQUAL(&proxy, !strcmp(where, "any") ? own : &cpu);
	if (!ok)
		printf("the proxy may run on %d CPUs, which are not those of %s\n", CPU_COUNT(&proxy), where);
	return ok;
}

int main(int argc, char **argv)
{
	const char *where = argc > 1 ? argv[1] : "auto";
	int n, expected = argc > 2 ? atoi(argv[2]) : 1, ok = 1, ret;
	cpu_set_t process, own;
	pid_t thread;

	if (sched_getaffinity(0, sizeof(process), &process) || CPU_COUNT(&process) < 2 || !CPU_ISSET(1, &process)) {
		puts("skipped: the process has not CPU 1 and another one");
		return 77;
	}
	if (pin(&process, &own))
		return 1;
	ret = gdr_init();
	if (!strcmp(where, "1023")) {
		printf("gdr_init: %s\n", gdr_strerror(ret));
		return ret != -GDR_EOPTION;
	}
	if (ret)
		return 1;
	for (n = 0; (thread = thread_named("gdr-ofi", n)); n++)
		ok &= is_there(thread, where, &own, &process);
	if (n != expected)
		printf("%d threads gdr-ofi, not %d\n", n, expected);
	gdr_finalize();
	return !ok || n != expected;
}
