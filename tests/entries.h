/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_ENTRIES_H
#define TESTS_ENTRIES_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

/* /proc/self/fd: open files, and one more; /proc/self/task: threads. */
static inline int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	if (!d) {
		perror(path);
		abort();
	}
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#endif
