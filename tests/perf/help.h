/* SPDX-License-Identifier: BSD-3-Clause */
/* --help of the benchmarks: told before anything is started. */
#ifndef PERF_HELP_H
#define PERF_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void help_if_asked(int argc, char **argv, const char *text)
{
	if (argc < 2 || (strcmp(argv[1], "-h") && strcmp(argv[1], "--help")))
		return;
	printf("usage: %s\n", text);
	exit(0);
}

#endif
