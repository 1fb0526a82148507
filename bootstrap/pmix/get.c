// SPDX-License-Identifier: BSD-3-Clause
/* Single values of the job's description. */
#include <stdio.h>
#include <stdlib.h>

#include <gdr/status.h>

#include "bootstrap/call.h"
#include "bootstrap/pmix/job.h"
#include "bootstrap/pmix/value.h"
#include "runtime/core/log.h"

#define KEY_MAX 48

struct get {
	struct gdri_call call; /* its status is PMIx's */
	pmix_proc_t proc;
	char key[KEY_MAX];
	uint64_t max;  /* of an integer; 0: a string is wanted */
	int parsed;    /* the parser's result */
	unsigned type; /* as delivered */
	uint64_t number;
	char string[GDR_HOSTNAME_MAX];
};

/* The value belongs to PMIx and is gone after the callback. */
static void pmix_got_value(pmix_status_t status, pmix_value_t *kv, void *cbdata)
{
	struct get *g = cbdata;

	pthread_mutex_lock(&g->call.lock);
	if (!g->call.abandoned && !g->call.done && status == PMIX_SUCCESS) {
		g->type = kv ? kv->type : 0;
		g->parsed = g->max ? gdri_pmix_uint(kv, g->max, &g->number)
				   : gdri_pmix_string(kv, g->string, sizeof(g->string));
	}
	pthread_mutex_unlock(&g->call.lock);
	gdri_call_finish(status, g);
}

static struct get *new_get(const pmix_proc_t *me, pmix_rank_t rank, const char *key, uint64_t max)
{
	struct get *g = gdri_call_new(sizeof(*g));

	if (!g)
		return NULL;
	g->proc = *me;
	g->proc.rank = rank;
	g->max = max;
	snprintf(g->key, sizeof(g->key), "%s", key);
	return g;
}

static int pmix_judge_get(struct get *g, bool must, int ms)
{
	char call[64];

	snprintf(call, sizeof(call), "PMIx_Get(%s)", g->key);
	if (!g->call.done)
		return must ? gdri_pmix_expired(call, ms) : -GDR_ETIMEOUT;
	if (g->call.status != PMIX_SUCCESS)
		return must ? gdri_pmix_failed(call, g->call.status) : -GDR_EBOOTSTRAP;
	if (!g->parsed)
		return 0;
	gdri_log(must ? GDRI_LOG_ERROR : GDRI_LOG_WARN,
		 "bootstrap: the launcher's value of %s is malformed or out of range (PMIx type "
		 "%u); check that launcher and program use matching PMIx versions",
		 g->key, g->type);
	return g->parsed;
}

/* On success the caller reads the result and puts the call. */
static int pmix_ask(struct get *g, bool must, const struct timespec *deadline)
{
	int ms = gdri_limit_ms(deadline);
	pmix_status_t st;
	int rc;

	gdri_call_get(&g->call); /* the callback's */
	st = PMIx_Get_nb(&g->proc, g->key, NULL, 0, pmix_got_value, g);
	if (st != PMIX_SUCCESS) /* no callback will come, and "operation succeeded" brings no value */
		gdri_call_finish(st == PMIX_OPERATION_SUCCEEDED ? PMIX_ERR_NOT_FOUND : st, g);
	gdri_call_wait(&g->call, deadline, NULL);
	pthread_mutex_lock(&g->call.lock);
	rc = pmix_judge_get(g, must, ms);
	pthread_mutex_unlock(&g->call.lock);
	return rc;
}

int gdri_pmix_get_uint(const pmix_proc_t *me, pmix_rank_t rank, const char *key, uint64_t max,
		       bool must, uint64_t *out, const struct timespec *deadline)
{
	struct get *g = new_get(me, rank, key, max);
	int rc;

	if (!g)
		return -GDR_ENOMEM;
	rc = pmix_ask(g, must, deadline);
	if (!rc)
		*out = g->number;
	gdri_call_put(&g->call);
	return rc;
}

int gdri_pmix_get_string(const pmix_proc_t *me, pmix_rank_t rank, const char *key, char *out,
			 size_t room, const struct timespec *deadline)
{
	struct get *g = new_get(me, rank, key, 0);
	int rc;

	if (!g)
		return -GDR_ENOMEM;
	rc = pmix_ask(g, false, deadline);
	if (!rc)
		snprintf(out, room, "%s", g->string);
	gdri_call_put(&g->call);
	return rc;
}
