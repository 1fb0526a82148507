/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of softhca: stderr, one write a line, prefix "softhca: ". Silent
 * unless something is wrong or SOFTHCA_DEBUG asks. */
#ifndef SOFTHCA_LOG_H
#define SOFTHCA_LOG_H

#include <stddef.h>
#include <sys/types.h>

/* write(2), but where the thread cannot be cancelled: the caller may be one of the program's, with
 * a lock of softhca's. */
ssize_t hca_write(int fd, const void *bytes, size_t n);

void hca_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Use hca_debug(): it skips the arguments when the level is off. */
void hca_log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
unsigned hca_debug_level(void);

#define hca_debug(level, ...)                                                                      \
	do {                                                                                       \
		if (hca_debug_level() >= (level))                                                  \
			hca_log_debug(__VA_ARGS__);                                                \
	} while (0)

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
