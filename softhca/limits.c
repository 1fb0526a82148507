/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of this process (limits.h). */
#include "softhca/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

const char *limits_text(int err)
{
	static _Thread_local char text[160];
	struct rlimit r;

	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &r))
		snprintf(text, sizeof(text), "%s: this process may have %llu (raise it: ulimit -n)", strerror(err),
			 (unsigned long long)r.rlim_cur);
	else
		snprintf(text, sizeof(text), "%s", strerror(err));
	return text;
}
