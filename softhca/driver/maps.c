/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads /proc/self/maps line by line. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "softhca/driver/shim.h"

/* "start-end perms offset major:minor inode   path" */
static bool maps_parse_line(char *line, struct maps_line *m)
{
	unsigned maj, min;
	char *p;

	m->start = strtoull(line, &p, 16);
	if (*p != '-')
		return false;
	m->end = strtoull(p + 1, &p, 16);
	if (*p != ' ' || strnlen(p, 6) < 6)
		return false;
	m->perms = p + 1;
	m->offset = strtoull(p + 5, &p, 16);
	maj = (unsigned)strtoul(p, &p, 16);
	if (*p != ':')
		return false;
	min = (unsigned)strtoul(p + 1, &p, 16);
	m->dev = makedev(maj, min);
	m->ino = (ino_t)strtoull(p, &p, 10);
	m->path = p + strspn(p, " ");
	return true;
}

bool maps_each(bool (*fn)(void *arg, const struct maps_line *m), void *arg)
{
	int fd = real_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	char buf[8192];
	size_t have = 0;
	bool more = true;
	ssize_t n;

	if (fd < 0)
		return false;
	while (more && (n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf, *nl;

		have += (size_t)n;
		buf[have] = '\0';
		for (; more && (nl = strchr(line, '\n')); line = nl + 1) {
			struct maps_line m;

			*nl = '\0';
			if (maps_parse_line(line, &m))
				more = fn(arg, &m);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* longer than any path: no mapping line */
	}
	real_close(fd);
	return true;
}
