// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "tools/check/site.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool site_first(const char *path, char *out, size_t room)
{
	FILE *f = fopen(path, "r");
	bool got;

	if (!f)
		return false;
	got = fgets(out, (int)room, f) != NULL;
	fclose(f);
	if (got)
		out[strcspn(out, "\n")] = '\0';
	return got;
}

bool site_line(char *out, size_t room, const char *fmt, ...)
{
	char path[PATH_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return site_first(path, out, room);
}

long long site_number(const char *fmt, ...)
{
	char path[PATH_MAX], text[64], *end;
	long long n;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (!site_first(path, text, sizeof(text)))
		return -1;
	n = strtoll(text, &end, 0);
	return end == text ? -1 : n;
}

bool site_field(const char *path, const char *begin, char *out, size_t room)
{
	FILE *f = fopen(path, "r");
	size_t n = strlen(begin);
	char line[4096];
	bool found = false;

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		found = !strncmp(line, begin, n);
		line[strcspn(line, "\n")] = '\0';
	}
	fclose(f);
	if (found)
		snprintf(out, room, "%s", line + n + strspn(line + n, " \t"));
	return found;
}

int site_entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	if (!d)
		return -1;
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}
