// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/env/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/uid/wire.h"

#define MAX_HOST 253 /* a name of the DNS */

const char *gdri_env_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

static bool get_number(char *const *env, const char *name, unsigned long max, unsigned long *out, char *why,
		       size_t room)
{
	const char *text = gdri_env_get(env, name);
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

static bool get_host(char *const *env, struct gdri_env_job *job, char *why, size_t room)
{
	size_t n;

	job->host = gdri_env_get(env, "MASTER_ADDR");
	n = job->host ? strlen(job->host) : 0;
	if (!n)
		snprintf(why, room, "MASTER_ADDR is not set; it is the name or address of PE 0's machine");
	else if (n > MAX_HOST)
		snprintf(why, room, "MASTER_ADDR has %zu characters; a host's name has at most %d", n, MAX_HOST);
	return n && n <= MAX_HOST;
}

static bool get_port(char *const *env, unsigned int port, struct gdri_env_job *job, char *why, size_t room)
{
	unsigned long master;
	size_t n;

	job->port = (uint16_t)port;
	if (port)
		return true;
	if (get_number(env, "MASTER_PORT", 65534, &master, why, room)) {
		job->port = (uint16_t)(master + 1);
		return true;
	}
	n = strlen(why);
	snprintf(why + n, room - n, ", and GDR_ENV_PORT is not set");
	return false;
}

bool gdri_env_parse(char *const *env, unsigned int port, struct gdri_env_job *job, char *why, size_t room)
{
	const char *run_id = gdri_env_get(env, "TORCHELASTIC_RUN_ID");
	unsigned long n, pe;

	memset(job, 0, sizeof(*job));
	if (!get_number(env, "WORLD_SIZE", GDRI_UID_MAX_PES, &n, why, room) ||
	    !get_number(env, "RANK", GDRI_UID_MAX_PES, &pe, why, room) || !get_host(env, job, why, room) ||
	    !get_port(env, port, job, why, room))
		return false;
	if (pe >= n) {
		snprintf(why, room, "RANK=%lu is not below WORLD_SIZE=%lu", pe, n);
		return false;
	}
	job->pe = (int)pe;
	job->n_pes = (int)n;
	job->run_id = run_id ? run_id : "";
	return true;
}
