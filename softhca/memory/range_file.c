/* SPDX-License-Identifier: BSD-3-Clause */
/* The file behind registered memory, if it is a file that another process can map and see the
 * same bytes: memfd, /dev/shm, any other that is mapped shared. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "softhca/driver/control.h"
#include "softhca/driver/shim.h"

struct backing {
	uint64_t at, end; /* [at, end) is not looked at yet */
	uint64_t offset;  /* of at */
	uint64_t map_start, map_end; /* the first mapping */
	dev_t dev;
	ino_t ino;
	bool found, bad;
};

static bool range_file_in_one_mapping(void *arg, const struct maps_line *m)
{
	struct backing *b = arg;
	uint64_t offset = m->offset + (b->at - m->start);

	if (m->end <= b->at)
		return true;
	if (m->start > b->at || m->perms[3] != 's' || !m->ino ||
	    (b->found && (m->dev != b->dev || m->ino != b->ino || offset != b->offset))) {
		b->bad = true;
		return false;
	}
	if (!b->found) {
		b->found = true;
		b->dev = m->dev;
		b->ino = m->ino;
		b->map_start = m->start;
		b->map_end = m->end;
	}
	b->offset = offset + (m->end - b->at);
	b->at = m->end;
	return b->at < b->end;
}

static bool is_file(int fd, const struct backing *b)
{
	struct stat st;

	return !real_fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_dev == b->dev &&
	       st.st_ino == b->ino;
}

/* The program has it open still. */
static int among_open_files(const struct backing *b)
{
	DIR *dir = real_opendir("/proc/self/fd");
	struct dirent *e;
	int found = -1;

	while (dir && found < 0 && (e = readdir(dir)))
		if (e->d_name[0] != '.' && is_file(atoi(e->d_name), b))
			found = fcntl(atoi(e->d_name), F_DUPFD_CLOEXEC, 0);
	if (dir)
		closedir(dir);
	return found;
}

/* Privileged processes can open what has been closed, or never had a name. */
static int by_mapping(const struct backing *b)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx",
		 (unsigned long long)b->map_start, (unsigned long long)b->map_end);
	fd = real_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd >= 0 && !is_file(fd, b)) {
		real_close(fd);
		fd = -1;
	}
	return fd;
}

int range_file(uint64_t addr, uint64_t len, uint64_t *offset)
{
	struct backing b = { .at = addr, .end = addr + len };
	int fd;

	if (!maps_each(range_file_in_one_mapping, &b) || b.bad || b.at < b.end)
		return -1;
	*offset = b.offset - (b.at - addr);
	fd = among_open_files(&b);
	return fd >= 0 ? fd : by_mapping(&b);
}
