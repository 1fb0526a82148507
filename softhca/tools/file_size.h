/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a file in memory: where the process may not have it, a text instead of the signal that would end it. */
#ifndef SOFTHCA_FILE_SIZE_H
#define SOFTHCA_FILE_SIZE_H

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "softhca/tools/log.h"

/* As ftruncate. */
static inline int hca_size_file(int fd, off_t size)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY || (rlim_t)size <= r.rlim_cur)
		return ftruncate(fd, size);
	hca_warn("a file in memory of %lld bytes is needed, and this process may make files of %llu (raise it: "
		 "ulimit -f)", (long long)size, (unsigned long long)r.rlim_cur);
	errno = EFBIG;
	return -1;
}

#endif
