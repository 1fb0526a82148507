/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of sysfs and procfs. */
#ifndef TOOLS_CHECK_SITE_H
#define TOOLS_CHECK_SITE_H

#include <stdbool.h>
#include <stddef.h>

/* The first line of a file, without its end; false: it cannot be read. */
__attribute__((format(printf, 3, 4))) bool site_line(char *out, size_t room, const char *fmt, ...);
/* The number in a file; -1: there is none. */
__attribute__((format(printf, 1, 2))) long long site_number(const char *fmt, ...);
/* Whether a line of the file begins so; the rest of it goes to out. */
bool site_field(const char *path, const char *begin, char *out, size_t room);
/* Entries of a directory; -1: it cannot be read. */
int site_entries(const char *path);

#endif
