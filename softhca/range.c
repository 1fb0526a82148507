/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks on memory that the program registers. The kernel pins pages and fails
 * with EFAULT where there are none; here /proc/self/maps is asked, so that a
 * bad range is refused at registration instead of faulting in the engine. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "softhca/control.h"
#include "softhca/shim.h"

struct cover {
	uint64_t at, end; /* [at, end) is not covered yet */
	bool write;
	bool bad;
};

/* "start-end perms ..."; mappings come in ascending order. */
static void one_mapping(struct cover *c, const char *line)
{
	uint64_t start, end;
	char *p;

	start = strtoull(line, &p, 16);
	if (*p != '-')
		return;
	end = strtoull(p + 1, &p, 16);
	if (*p != ' ' || end <= c->at || c->at >= c->end || c->bad)
		return;
	/* A mapping without read permission can be a UAR page: that is no memory. */
	if (start > c->at || p[1] != 'r' || (c->write && p[2] != 'w'))
		c->bad = true;
	else
		c->at = end;
}

int range_check(uint64_t addr, uint64_t len, bool write)
{
	struct cover c = {.at = addr, .end = addr + len, .write = write};
	char buf[8192];
	size_t have = 0;
	ssize_t n;
	int fd;

	if (!len)
		return 0;
	if (!addr || addr + len < addr)
		return EFAULT;
	fd = real_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0; /* no /proc: as if all were well */
	while (!c.bad && c.at < c.end && (n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf, *nl;

		have += (size_t)n;
		buf[have] = '\0';
		for (; (nl = strchr(line, '\n')); line = nl + 1) {
			*nl = '\0';
			one_mapping(&c, line);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* longer than any path: no mapping line */
	}
	real_close(fd);
	return c.bad || c.at < c.end ? EFAULT : 0;
}

int range_map_fd(int fd, uint64_t offset, uint64_t len, bool write, uint8_t **va)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t skip = offset % page;
	struct stat st;
	void *map;

	if (!len || offset + len < offset || len + skip < len)
		return EINVAL;
	if (real_fstat(fd, &st))
		return EBADF;
	/* Beyond the end of the file the engine would get SIGBUS. */
	if (S_ISREG(st.st_mode) && offset + len > (uint64_t)st.st_size)
		return EINVAL;
	map = mmap(NULL, len + skip, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd,
		   (off_t)(offset - skip));
	if (map == MAP_FAILED)
		return errno;
	*va = (uint8_t *)map + skip;
	return 0;
}

void range_unmap(uint8_t *va, uint64_t len)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t skip = (uint64_t)(uintptr_t)va % page;

	munmap(va - skip, len + skip);
}
