/* SPDX-License-Identifier: BSD-3-Clause */
/* enclose: how crowded the machine is, by the threads that can run and do not belong to the test. */
#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "enclose.h"

#define REPORT_MOST 60

static int cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

/* Calls f for each entry of a directory whose name is a number. */
static int each_number(const char *path, int (*f)(const char *path, const char *number))
{
	DIR *d = opendir(path);
	struct dirent *e;
	int sum = 0;

	if (!d)
		return 0;
	while ((e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]))
			sum += f(path, e->d_name);
	closedir(d);
	return sum;
}

static size_t read_text(const char *path, char *text, size_t room)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, room - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return n;
}

/* The state follows the name, which may hold anything. */
static char state(const char *dir)
{
	char path[320], text[512];
	const char *end;

	snprintf(path, sizeof(path), "%.300s/stat", dir);
	read_text(path, text, sizeof(text));
	end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

static int thread_runs(const char *path, const char *number)
{
	char dir[160];

	snprintf(dir, sizeof(dir), "%.128s/%.20s", path, number);
	return state(dir) == 'R';
}

static int threads_running(const char *path, const char *number)
{
	char dir[160];

	snprintf(dir, sizeof(dir), "%.100s/%.20s/task", path, number);
	return each_number(dir, thread_runs);
}

double slow_now(bool inside)
{
	char text[128];
	double load = 0, slow;
	int running = 0, others;

	/* The count of the whole machine also in a PID namespace. */
	read_text("/proc/loadavg", text, sizeof(text));
	if (sscanf(text, "%lf %*f %*f %d/", &load, &running) < 1)
		return 1;
	others = running - (inside ? each_number("/proc", threads_running) : 1);
	/* Of the last minute where nothing of the test has run yet. */
	slow = (inside || load < others ? others : load) / cores() / SLOW_FREE;
	return slow < 1 ? 1 : slow > SLOW_MOST ? SLOW_MOST : slow;
}

static int report_one(const char *path, const char *number)
{
	static int reported;
	char name[160], words[200];
	size_t n;

	if (!strcmp(number, "1") || reported++ >= REPORT_MOST)
		return 0;
	snprintf(name, sizeof(name), "%.100s/%.20s/cmdline", path, number);
	n = read_text(name, words, sizeof(words));
	for (size_t i = 0; i + 1 < n; i++)
		if (!words[i] || words[i] == '\n')
			words[i] = ' ';
	snprintf(name, sizeof(name), "%.100s/%.20s", path, number);
	fprintf(stderr, "enclose: %7s %c %s\n", number, state(name), words);
	return 1;
}

void slow_report(void)
{
	each_number("/proc", report_one);
}
