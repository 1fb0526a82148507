/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of this process (limits.h). */
#include "softhca/tools/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

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
