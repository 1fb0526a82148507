/* SPDX-License-Identifier: BSD-3-Clause */
/* What the system lets this process have, in words. */
#ifndef SOFTHCA_LIMITS_H
#define SOFTHCA_LIMITS_H

struct limits_text {
	char s[160];
};

/* As strerror(); a limit of this process with its value and the command that raises it. By value: softhca has no
 * thread-local storage, of which libraries that are loaded late could run out. */
struct limits_text limits_text(int err);

#endif
