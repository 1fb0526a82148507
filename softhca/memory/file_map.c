/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared mappings of files: see file_map.h. */
#include "softhca/memory/file_map.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "softhca/tools/options.h"

/* A mapping of this file begins at a multiple of this. */
static uint64_t file_map_page_size(int fd)
{
	struct statfs s;

	if (fstatfs(fd, &s) || s.f_type != HUGETLBFS_MAGIC)
		return host_page();
	return (uint64_t)s.f_bsize;
}

uint8_t *file_map(int fd, uint64_t offset, uint64_t len, int prot, int flags)
{
	uint64_t skip = offset % file_map_page_size(fd);
	uint8_t *base = MAP_FAILED;

	errno = EINVAL;
	if (len && len + skip >= len && offset + len >= offset)
		base = mmap(NULL, len + skip, prot, flags, fd, (off_t)(offset - skip));
	return base == MAP_FAILED ? NULL : base + skip;
}

/* munmap(2) refuses to cut a huge page (EINVAL). So the first size of page that it takes is the
 * right one or a smaller one whose multiples the ends are, and nothing beside the mapping goes. */
void file_unmap(uint8_t *at, uint64_t len)
{
	uint64_t start = (uintptr_t)at, end = start + len;

	for (uint64_t page = host_page(); page && page <= 1ull << 34; page *= 2) {
		uint64_t from = start & ~(page - 1), to = (end + page - 1) & ~(page - 1);

		if (!munmap((void *)(uintptr_t)from, to - from) || errno != EINVAL)
			return;
	}
}
