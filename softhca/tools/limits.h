/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system lets this process have, in words. */
#ifndef SOFTHCA_LIMITS_H
#define SOFTHCA_LIMITS_H

#include <sys/types.h>

struct limits_text {
	char s[160];
};

/* As strerror(); a limit of this process with its value and the command that raises it. By value: softhca has no
 * thread-local storage, of which libraries that are loaded late could run out. */
struct limits_text limits_text(int err);

/* As ftruncate, of a file in memory: where the process may not have it, a text instead of the signal that would end
 * it. */
int hca_size_file(int fd, off_t size);

#endif
