// SPDX-License-Identifier: BSD-3-Clause
/* A PE whose proxy has nothing to do: how often the thread sleeps, and so looks, in a second from the third one on, by
 * the kernel's count. Argument: the most. Naps have a least length, so a busy machine makes it fewer. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gdr/host.h>

/* -1: there is no such file. */
static long number_in(const char *thread, const char *file, const char *before)
{
	char path[300], line[200];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%s/%s", thread, file);
	f = fopen(path, "r");
	while (f && n < 0 && fgets(line, sizeof(line), f))
		if (!strncmp(line, before, strlen(before)))
			n = atol(line + strlen(before));
	if (f)
		fclose(f);
	return n;
}

static long proxy_slept(void)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;
	long n = -1;

	while (d && n < 0 && (e = readdir(d)))
		if (number_in(e->d_name, "comm", "gdr-ofi") >= 0)
			n = number_in(e->d_name, "status", "voluntary_ctxt_switches:");
	if (d)
		closedir(d);
	return n;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	long most = argc > 1 ? atol(argv[1]) : 0, from, to;
	double begin, took;

	if (gdr_init())
		return 1;
	sleep(2);
	begin = seconds();
	from = proxy_slept();
	sleep(1);
	to = proxy_slept();
	took = seconds() - begin;
	gdr_finalize();
	printf("the proxy slept %ld times in %.2f s, at most %ld a second expected\n", to - from, took, most);
	return from < 0 || to <= from || (double)(to - from) > took * (double)most + 1;
}
