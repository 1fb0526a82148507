/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of this process. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "softhca/tools/log.h"

struct limits_text limits_text(int err)
{
	struct limits_text text;
	struct rlimit r;

	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &r))
		snprintf(text.s, sizeof(text.s), "%s: this process may have %llu (raise it: ulimit -n)", strerror(err),
			 (unsigned long long)r.rlim_cur);
	else
		snprintf(text.s, sizeof(text.s), "%s", strerror(err));
	return text;
}

int hca_size_file(int fd, off_t size)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY || (rlim_t)size <= r.rlim_cur)
		return ftruncate(fd, size);
	hca_warn("a file in memory of %lld bytes is needed, and this process may make files of %llu (raise it: "
		 "ulimit -f)", (long long)size, (unsigned long long)r.rlim_cur);
	errno = EFBIG;
	return -1;
}
