// SPDX-License-Identifier: BSD-3-Clause
/* usage: late_finalize handler | destructor | library | never
 * When gdr is finalized: in an exit handler that was registered before main, as those of C++ objects of
 * static storage are; in a destructor of the program, of a library; never. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gdr.h>

#include "late_finalize.h"

static const char *where = "";

static void finalize(void)
{
	if (gdr_finalize())
		_exit(1);
}

static void handler(void)
{
	if (!strcmp(where, "handler"))
		finalize();
}

__attribute__((constructor)) static void before_main(void)
{
	if (atexit(handler))
		_exit(1);
}

__attribute__((destructor)) static void at_the_end(void)
{
	if (!strcmp(where, "destructor"))
		finalize();
}

int main(int argc, char **argv)
{
	where = argc > 1 ? argv[1] : "";
	if (!strcmp(where, "library"))
		late_finalize_in_library();
	if (gdr_init() || gdr_barrier_all()) {
		fprintf(stderr, "late_finalize: no job\n");
		return 1;
	}
	return 0;
}
