// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap of processes that a launcher gave their number, how many they are, and the machine of PE 0: the hub is
 * in PE 0, at a port that all know. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/env/boot.h"
#include "bootstrap/call.h"
#include "bootstrap/detect.h"
#include "bootstrap/uniqueid/join.h"
#include "bootstrap/uniqueid/net.h"
#include "bootstrap/uniqueid/wire.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"

#define ADDRESSES  8	/* of one name, that are tried */
#define AGAIN_MS   50	/* between two attempts to reach PE 0 */
#define ADDRESS_MS 2000 /* for one address that does not answer, where there are others */

struct by_env {
	struct gdri_uid_meeting meeting; /* first: connect casts */
	const struct gdri_env_job *job;
	char last[200]; /* why an attempt failed */
};

/* ---- PE 0 ---- */

/* All PEs of one machine: nobody else needs to reach it. */
static bool env_is_loopback(const char *host)
{
	return !strcmp(host, "localhost") || !strncmp(host, "127.", 4) || !strcmp(host, "::1");
}

static void env_set_address(struct gdri_uid *at, const char *text)
{
	at->family = strchr(text, ':') ? 6 : 4;
	if (inet_pton(at->family == 6 ? AF_INET6 : AF_INET, text, at->addr) != 1)
		inet_pton(AF_INET, "127.0.0.1", at->addr); /* "localhost" */
}

static int env_cannot_listen(const struct gdri_env_job *job, int err)
{
	if (err == EADDRINUSE)
		gdri_error("bootstrap: PE 0 cannot listen at port %u: another process has it: one with RANK=0, too "
			   "(give each its own), or another job or program (set GDR_ENV_PORT to a free one, the same "
			   "for all PEs; default: MASTER_PORT + 1)", job->port);
	else
		gdri_error("bootstrap: PE 0 cannot listen at port %u (GDR_ENV_PORT, default: MASTER_PORT + 1): %s",
			   job->port, gdri_errno_text(err));
	return -GDR_EBOOTSTRAP;
}

/* At all addresses, as nobody here knows by which one the others come. Without IPv6, at those of IPv4. */
static int env_serve(const struct by_env *e)
{
	static const char *const any[] = {"::", "0.0.0.0"};
	bool here = env_is_loopback(e->job->host);
	struct gdri_uid at;
	int err = 0, rc = 1;

	for (int i = 0; i < 2 && rc > 0 && err != EADDRINUSE; i++) {
		at = (struct gdri_uid){.port = e->job->port};
		memcpy(at.token, e->meeting.token, sizeof(at.token));
		env_set_address(&at, here ? e->job->host : any[i]);
		rc = gdri_uid_serve(&at, &err);
	}
	return rc > 0 ? env_cannot_listen(e->job, err) : rc;
}

/* ---- where PE 0 is ---- */

/* getaddrinfo knows no limit of time: a helper thread's. */
struct lookup {
	struct gdri_call call; /* first: run casts, and free gets it */
	char host[256];
	int n;
	struct gdri_uid at[ADDRESSES];
};

static int lookup_run(struct gdri_call *c)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct lookup *l = (struct lookup *)c;
	struct addrinfo *all, *i;
	int rc = getaddrinfo(l->host, NULL, &hints, &all);

	if (rc)
		return rc;
	for (i = all; i && l->n < ADDRESSES; i = i->ai_next) {
		struct gdri_uid *at = &l->at[l->n];

		at->family = i->ai_family == AF_INET6 ? 6 : 4;
		if (i->ai_family == AF_INET6)
			memcpy(at->addr, &((const struct sockaddr_in6 *)(const void *)i->ai_addr)->sin6_addr, 16);
		else if (i->ai_family == AF_INET)
			memcpy(at->addr, &((const struct sockaddr_in *)(const void *)i->ai_addr)->sin_addr, 4);
		else
			continue;
		l->n++;
	}
	freeaddrinfo(all);
	return 0;
}

/* That the time is over says less than what was before. */
static void env_note_failure(struct by_env *e, const char *text, bool expired)
{
	if (!expired || !*e->last)
		snprintf(e->last, sizeof(e->last), "%s", text);
}

/* How many addresses the name has, or -GDR_E*; 0: e->last says why. */
static int env_look_up(struct by_env *e, struct gdri_uid *at, const struct timespec *deadline)
{
	struct lookup *l = gdri_call_new(sizeof(*l));
	int rc;

	if (!l)
		return -GDR_ENOMEM;
	snprintf(l->host, sizeof(l->host), "%s", e->job->host);
	l->call.run = lookup_run;
	rc = gdri_call_run(&l->call, deadline);
	if (rc == -GDR_ETIMEOUT) {
		env_note_failure(e, "no server answers who that is", true);
		rc = 0;
	} else if (!rc && l->call.status) {
		env_note_failure(e, gai_strerror(l->call.status), false);
	} else if (!rc) {
		rc = l->n;
		memcpy(at, l->at, sizeof(l->at));
	}
	gdri_call_put(&l->call);
	return rc;
}

/* One attempt at each address: a connection, or 0: none (e->last), or -GDR_E*. */
static int env_reach(struct by_env *e, const struct timespec *deadline)
{
	struct gdri_uid at[ADDRESSES];
	int n = env_look_up(e, at, deadline), fd;

	for (int i = 0; i < n; i++) {
		struct timespec until;

		gdri_deadline_in(&until, i + 1 < n ? ADDRESS_MS : gdri_limit_ms(deadline));
		gdri_deadline_min(&until, deadline);
		at[i].port = e->job->port;
		fd = gdri_uid_connect(&at[i], &until);
		if (fd >= 0)
			return fd;
		env_note_failure(e, gdri_errno_text(-fd), fd == -ETIMEDOUT);
	}
	return n < 0 ? n : 0;
}

/* PE 0 may come later, and its name may be known later. */
static int env_connect_others(struct by_env *e, const struct timespec *deadline)
{
	static const struct timespec pause = {0, AGAIN_MS * 1000000L};
	int begin = gdri_limit_ms(deadline), fd;

	while (!(fd = env_reach(e, deadline)) && gdri_limit_ms(deadline) > AGAIN_MS)
		nanosleep(&pause, NULL);
	if (fd)
		return fd;
	return gdri_fail(-GDR_ETIMEOUT,
			 "bootstrap: PE 0 does not answer at %s, port %u, within %s: %s; check MASTER_ADDR, that PE 0 "
			 "runs and has GDR_BOOTSTRAP=env, too, and that the port (GDR_ENV_PORT, default: MASTER_PORT + "
			 "1) is open between the machines",
			 e->job->host, e->job->port, gdri_boot_waited(begin, gdri_limit_ms(deadline)), e->last);
}

static int env_connect(struct gdri_uid_meeting *m, bool again, const struct timespec *deadline)
{
	struct by_env *e = (struct by_env *)m;
	struct gdri_uid own = {.port = e->job->port};
	int rc;

	(void)again;
	if (e->job->pe)
		return env_connect_others(e, deadline);
	rc = gdri_uid_served_here(m->token) ? 0 : env_serve(e);
	if (rc)
		return rc;
	env_set_address(&own, env_is_loopback(e->job->host) ? e->job->host : "127.0.0.1");
	rc = gdri_uid_connect(&own, deadline);
	if (rc >= 0)
		return rc;
	return gdri_fail(-GDR_EBOOTSTRAP,
			 "bootstrap: PE 0 does not reach its own port, %u: %s; is the loopback interface up (ip "
			 "link set lo up), and does no firewall drop what is for it?",
			 e->job->port, gdri_errno_text(-rc));
}

/* ---- opening ---- */

/* FNV-1a of 128 bits: who reads the network has the token itself, so a stronger one would protect nothing. */
static void env_make_token(unsigned char token[GDRI_UID_TOKEN], const char *secret)
{
	__extension__ typedef unsigned __int128 u128;
	const u128 prime = (u128)1 << 88 | 0x13b;
	u128 h = (u128)0x6c62272e07bb0142u << 64 | 0x62b821756295c58du;

	for (; *secret; secret++)
		h = (h ^ (unsigned char)*secret) * prime;
	for (int i = 0; i < GDRI_UID_TOKEN; i++)
		token[i] = (unsigned char)(h >> 8 * i);
}

int gdri_boot_env_join(struct gdr_bootstrap **out, const struct gdri_env_job *job, const char *secret, int timeout_ms)
{
	struct by_env e = {.job = job, .meeting = {
		.name = "env",
		.number = "a RANK",
		.size = "WORLD_SIZE",
		.hub = "PE 0",
		.stranger = "PE 0 has another secret than this PE: give all PEs of a job the same GDR_ENV_SECRET "
			    "(without it TORCHELASTIC_RUN_ID counts), and each job of a machine a GDR_ENV_PORT of "
			    "its own",
		.in_turn = true,
		.connect = env_connect,
	}};

	if (!*secret)
		secret = job->run_id;
	if (!*secret && !job->pe)
		gdri_info("bootstrap: no GDR_ENV_SECRET and no TORCHELASTIC_RUN_ID: what reaches port %u can join the "
			  "job", job->port);
	env_make_token(e.meeting.token, secret);
	return gdri_uid_join(out, &e.meeting, job->pe, job->n_pes, timeout_ms);
}

/* By name alone: RANK and WORLD_SIZE prove nothing, anybody sets such names. */
bool gdri_boot_env_detect(const struct gdri_boot_how *how, const struct gdri_launcher *launcher)
{
	(void)how;
	(void)launcher;
	return false;
}

int gdri_boot_env_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how,
		       const struct gdri_launcher *launcher, int timeout_ms)
{
	struct gdri_env_job job;
	char why[200];

	if (!gdri_env_parse(launcher->env, how->opt->env_port, &job, why, sizeof(why)))
		return gdri_fail(-GDR_EBOOTSTRAP,
				 "bootstrap: GDR_BOOTSTRAP=env needs RANK, WORLD_SIZE, MASTER_ADDR, and MASTER_PORT or "
				 "GDR_ENV_PORT, as torchrun sets them: %s",
				 why);
	if (job.n_pes == 1)
		return gdri_boot_single_open(out, how, launcher, timeout_ms);
	return gdri_boot_env_join(out, &job, how->opt->env_secret, timeout_ms);
}

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
	if (!gdri_environ_pes(env, GDRI_BOOT_MAX_PES, &job->pe, &job->n_pes, why, room) ||
	    !job_get_host(env, job, why, room) || !job_get_port(env, port, job, why, room))
		return false;
	job->run_id = run_id ? run_id : "";
	return true;
}
