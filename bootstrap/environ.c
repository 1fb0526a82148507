// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/detect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *gdri_environ_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

bool gdri_environ_number(char *const *env, const char *name, unsigned long max, unsigned long *out, char *why,
			 size_t room)
{
	const char *text = gdri_environ_get(env, name);
	char *end;

	if (!text) {
		snprintf(why, room, "%s is not set", name);
		return false;
	}
	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out <= max)
		return true;
	snprintf(why, room, "%s=%.40s is no number from 0 to %lu", name, text, max);
	return false;
}

bool gdri_environ_pes(char *const *env, unsigned int max, int *pe, int *n_pes, char *why, size_t room)
{
	unsigned long n, rank;

	if (!gdri_environ_number(env, "WORLD_SIZE", max, &n, why, room) ||
	    !gdri_environ_number(env, "RANK", max, &rank, why, room))
		return false;
	if (rank >= n) {
		snprintf(why, room, "RANK=%lu is not below WORLD_SIZE=%lu", rank, n);
		return false;
	}
	*pe = (int)rank;
	*n_pes = (int)n;
	return true;
}
