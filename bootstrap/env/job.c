// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/env/boot.h"

#include <stdio.h>
#include <string.h>

#include "bootstrap/detect.h"
#include "bootstrap/uniqueid/wire.h"

#define MAX_HOST 253 /* a name of the DNS */

static bool job_get_host(char *const *env, struct gdri_env_job *job, char *why, size_t room)
{
	size_t n;

	job->host = gdri_environ_get(env, "MASTER_ADDR");
	n = job->host ? strlen(job->host) : 0;
	if (!n)
		snprintf(why, room, "MASTER_ADDR is not set; it is the name or address of PE 0's machine");
	else if (n > MAX_HOST)
		snprintf(why, room, "MASTER_ADDR has %zu characters; a host's name has at most %d", n, MAX_HOST);
	return n && n <= MAX_HOST;
}

static bool job_get_port(char *const *env, unsigned int port, struct gdri_env_job *job, char *why, size_t room)
{
	unsigned long master;
	size_t n;

	job->port = (uint16_t)port;
	if (port)
		return true;
	if (gdri_environ_number(env, "MASTER_PORT", 65534, &master, why, room)) {
		job->port = (uint16_t)(master + 1);
		return true;
	}
	n = strlen(why);
	snprintf(why + n, room - n, ", and GDR_ENV_PORT is not set");
	return false;
}

bool gdri_env_parse(char *const *env, unsigned int port, struct gdri_env_job *job, char *why, size_t room)
{
	const char *run_id = gdri_environ_get(env, "TORCHELASTIC_RUN_ID");

	memset(job, 0, sizeof(*job));
	if (!gdri_environ_pes(env, GDRI_UID_MAX_PES, &job->pe, &job->n_pes, why, room) ||
	    !job_get_host(env, job, why, room) || !job_get_port(env, port, job, why, room))
		return false;
	job->run_id = run_id ? run_id : "";
	return true;
}
