/* SPDX-License-Identifier: BSD-3-Clause */
/* A message that is put together piece by piece; what has no room is cut off. */
#ifndef GDRI_TEXT_H
#define GDRI_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

struct text {
	char *buf;
	size_t room, len;
};

__attribute__((format(printf, 2, 3))) static inline void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, t->room - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n < t->room - t->len ? (size_t)n : t->room - t->len - 1;
}

#endif
