// SPDX-License-Identifier: BSD-3-Clause
/* See fake_pmix.h. Callbacks come from threads of their own, as from the
 * progress thread of the real library. */
#include "fake_pmix.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bootstrap/pmix/value.h"

struct fake_plan fake_plan;
int fake_inits, fake_finalizes, fake_aborts, fake_notifies, fake_handlers;
int fake_fences_without_collect;
int fake_keys;
bool fake_peers_never_renew;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool released;
static size_t put_size; /* of the last blob */
static unsigned char put_head[GDRI_BLOB_HEAD];
static char put_keys[64][16];
static const char nspace[] = "fake@1";

static pmix_notification_fn_t handlers[16];

/* A callback to be made: exactly one of the functions is set. */
struct owed {
	struct owed *next;
	pmix_op_cbfunc_t op;
	pmix_hdlr_reg_cbfunc_t reg;
	pmix_value_cbfunc_t value;
	pmix_status_t status;
	size_t ref;
	pmix_value_t v;
	pmix_value_t *vp;
	void *owned; /* what v points to */
	void *cbdata;
};
static struct owed *debts;

static bool planned(enum fake_site site)
{
	return fake_plan.site == site;
}

static void pay(struct owed *o)
{
	if (o->op)
		o->op(o->status, o->cbdata);
	else if (o->reg)
		o->reg(o->status, o->ref, o->cbdata);
	else
		o->value(o->status, o->vp, o->cbdata);
	free(o->owned); /* the receiver must not keep pointers into it */
	free(o);
}

static void *pay_main(void *arg)
{
	pay(arg);
	return NULL;
}

static pmix_status_t dispatch(enum fake_site site, struct owed *o)
{
	enum fake_how how = planned(site) ? fake_plan.how : FAKE_OK;
	pthread_t t;

	if (how == FAKE_RETURN) {
		free(o->owned);
		free(o);
		return fake_plan.status;
	}
	if (how == FAKE_CALLBACK)
		o->status = fake_plan.status;
	if (how == FAKE_INSIDE) {
		pay(o);
		return PMIX_SUCCESS;
	}
	if (how == FAKE_NEVER) {
		pthread_mutex_lock(&lock);
		o->next = debts;
		debts = o;
		pthread_mutex_unlock(&lock);
		return PMIX_SUCCESS;
	}
	if (pthread_create(&t, NULL, pay_main, o))
		abort();
	pthread_detach(t);
	return PMIX_SUCCESS;
}

static pmix_status_t blocking(enum fake_site site)
{
	if (!planned(site))
		return PMIX_SUCCESS;
	if (fake_plan.how == FAKE_NEVER) {
		pthread_mutex_lock(&lock);
		while (!released)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		return PMIX_SUCCESS;
	}
	return fake_plan.status;
}

void fake_release(void)
{
	struct owed *o;

	pthread_mutex_lock(&lock);
	released = true;
	pthread_cond_broadcast(&changed);
	o = debts;
	debts = NULL;
	pthread_mutex_unlock(&lock);
	while (o) {
		struct owed *next = o->next;

		pay(o);
		o = next;
	}
}

static struct owed *new_owed(void *cbdata)
{
	struct owed *o = calloc(1, sizeof(*o));

	if (!o)
		abort();
	o->cbdata = cbdata;
	return o;
}

pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
	pmix_status_t st;

	(void)info;
	(void)ninfo;
	memset(proc, 0, sizeof(*proc));
	snprintf(proc->nspace, sizeof(proc->nspace), "%s", nspace);
	proc->rank = FAKE_ME;
	st = blocking(FAKE_INIT);
	__atomic_fetch_add(&fake_inits, st == PMIX_SUCCESS || st == PMIX_ERR_UNREACH,
			   __ATOMIC_SEQ_CST); /* with the reads in main */
	return st;
}

int PMIx_Initialized(void)
{
	return __atomic_load_n(&fake_inits, __ATOMIC_SEQ_CST) > 0;
}

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
	(void)info;
	(void)ninfo;
	__atomic_fetch_add(&fake_finalizes, 1, __ATOMIC_SEQ_CST); /* with the reads in main */
	return blocking(FAKE_FINALIZE);
}

pmix_status_t PMIx_Abort(int status, const char msg[], pmix_proc_t procs[], size_t nprocs)
{
	(void)status;
	(void)msg;
	(void)procs;
	(void)nprocs;
	__atomic_fetch_add(&fake_aborts, 1, __ATOMIC_SEQ_CST); /* with the reads in main */
	return blocking(FAKE_ABORT);
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
	(void)scope;
	int i = 0;

	pthread_mutex_lock(&lock);
	put_size = val->data.bo.size;
	memcpy(put_head, val->data.bo.bytes, sizeof(put_head));
	while (i < fake_keys && strcmp(put_keys[i], key))
		i++;
	if (i == fake_keys && i < 64)
		snprintf(put_keys[fake_keys++], sizeof(put_keys[0]), "%s", key);
	pthread_mutex_unlock(&lock);
	return blocking(FAKE_PUT);
}

pmix_status_t PMIx_Commit(void)
{
	return blocking(FAKE_COMMIT);
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
			    size_t ninfo, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
	struct owed *o = new_owed(cbdata);

	(void)procs;
	(void)nprocs;
	if (ninfo != 1 || strcmp(info[0].key, PMIX_COLLECT_DATA) || !info[0].value.data.flag)
		fake_fences_without_collect++;
	o->op = cbfunc;
	return dispatch(FAKE_FENCE, o);
}

/* A peer's contribution: as long as ours, each byte the PE's number. */
static void make_blob(struct owed *o, const char *key, pmix_rank_t pe)
{
	struct gdri_blob_id id = {.round = strtoull(key + 4, NULL, 16), .pe = pe};
	size_t size;
	unsigned char *b;

	pthread_mutex_lock(&lock);
	size = put_size - GDRI_BLOB_HEAD;
	id.len = (uint32_t)size;
	if (gdri_blob_is_renewed(put_head + GDRI_BLOB_HEAD)) {
		memcpy(&id.round, put_head + 8, 8); /* little-endian, as the machines that this runs on */
		memcpy(&id.len, put_head + 20, 4);
		id.renewed = !fake_peers_never_renew;
		size = id.renewed ? GDRI_BLOB_ROOM : id.len;
	}
	pthread_mutex_unlock(&lock);
	b = malloc(GDRI_BLOB_HEAD + size + 1);
	if (!b)
		abort();
	gdri_blob_write_head(b, &id);
	memset(b + GDRI_BLOB_HEAD, (int)pe, size + 1);
	o->v.type = PMIX_BYTE_OBJECT;
	o->v.data.bo.bytes = (char *)b;
	o->v.data.bo.size = GDRI_BLOB_HEAD + size;
	o->owned = b;
}

static void spoil_blob(struct owed *o)
{
	unsigned char *b = o->owned;

	if (fake_plan.how == FAKE_SHORT)
		o->v.data.bo.size = 3;
	else if (fake_plan.how == FAKE_LONG)
		o->v.data.bo.size++;
	else if (fake_plan.how == FAKE_SWAPPED)
		memcpy(b, "Brdg", 4);
	else if (fake_plan.how == FAKE_OLD)
		b[8]--;
	else if (fake_plan.how == FAKE_HUGE)
		memset(b + 20, 0xff, 4);
}

static void spoil(struct owed *o, enum fake_site site)
{
	static char endless[1024];

	if (fake_plan.how == FAKE_NULL) {
		o->vp = NULL;
	} else if (fake_plan.how == FAKE_TYPE) {
		memset(&o->v.data, 0x41, sizeof(o->v.data));
		o->v.type = PMIX_POINTER;
	} else if (site == FAKE_GET_BLOB || site == FAKE_GET_BLOBS) {
		spoil_blob(o);
	} else if (fake_plan.how == FAKE_NEGATIVE) {
		o->v.type = PMIX_INT32;
		o->v.data.int32 = -3;
	} else if (fake_plan.how == FAKE_HUGE && site == FAKE_GET_HOST) {
		memset(endless, 'x', sizeof(endless) - 1);
		o->v.data.string = endless;
	} else if (fake_plan.how == FAKE_HUGE) {
		o->v.type = PMIX_UINT64;
		o->v.data.uint64 = UINT64_MAX;
	} else if (fake_plan.how == FAKE_SHORT && site == FAKE_GET_SIZE) {
		o->v.data.uint32 = FAKE_ME; /* fewer than our own rank allows */
	}
}

static enum fake_site fill(struct owed *o, const pmix_proc_t *proc, const char *key)
{
	o->vp = &o->v;
	o->v.type = PMIX_UINT32;
	if (!strcmp(key, PMIX_JOB_SIZE)) {
		o->v.data.uint32 = FAKE_PES;
		return FAKE_GET_SIZE;
	}
	if (!strcmp(key, PMIX_NODEID))
		return FAKE_GET_NODE;
	if (!strcmp(key, PMIX_HOSTNAME)) {
		o->v.type = PMIX_STRING;
		o->v.data.string = (char *)"fakehost";
		return FAKE_GET_HOST;
	}
	make_blob(o, key, proc->rank);
	if (planned(FAKE_GET_BLOB) && proc->rank == 2)
		return FAKE_GET_BLOB;
	return FAKE_GET_BLOBS;
}

pmix_status_t PMIx_Get_nb(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
			  size_t ninfo, pmix_value_cbfunc_t cbfunc, void *cbdata)
{
	struct owed *o = new_owed(cbdata);
	enum fake_site site = fill(o, proc, key);

	(void)info;
	(void)ninfo;
	o->value = cbfunc;
	if (planned(site)) {
		spoil(o, site);
		if (fake_plan.how == FAKE_CALLBACK)
			o->vp = NULL;
	}
	return dispatch(site, o);
}

pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes, pmix_info_t info[],
					  size_t ninfo, pmix_notification_fn_t evhdlr,
					  pmix_hdlr_reg_cbfunc_t cbfunc, void *cbdata)
{
	struct owed *o = new_owed(cbdata);

	(void)codes;
	(void)ncodes;
	(void)info;
	(void)ninfo;
	pthread_mutex_lock(&lock);
	handlers[fake_handlers % 16] = evhdlr;
	o->ref = (size_t)fake_handlers++;
	pthread_mutex_unlock(&lock);
	o->reg = cbfunc;
	return dispatch(FAKE_REGISTER, o);
}

pmix_status_t PMIx_Deregister_event_handler(size_t ref, pmix_op_cbfunc_t cbfunc, void *cbdata)
{
	struct owed *o = new_owed(cbdata);

	pthread_mutex_lock(&lock);
	handlers[ref % 16] = NULL;
	pthread_mutex_unlock(&lock);
	o->op = cbfunc;
	return dispatch(FAKE_DEREGISTER, o);
}

pmix_status_t PMIx_Notify_event(pmix_status_t status, const pmix_proc_t *source,
				pmix_data_range_t range, const pmix_info_t info[], size_t ninfo,
				pmix_op_cbfunc_t cbfunc, void *cbdata)
{
	(void)status;
	(void)source;
	(void)range;
	(void)info;
	(void)ninfo;
	(void)cbfunc;
	(void)cbdata;
	fake_notifies++;
	return PMIX_ERR_NOT_SUPPORTED;
}

const char *PMIx_Error_string(pmix_status_t status)
{
	return status == PMIX_SUCCESS ? "SUCCESS" : "FAKE-ERROR";
}

void fake_event(pmix_status_t status, const pmix_proc_t *source, const pmix_proc_t *affected)
{
	pmix_notification_fn_t now[16];
	pmix_proc_t who;
	pmix_info_t info;
	size_t i;

	pthread_mutex_lock(&lock);
	memcpy(now, handlers, sizeof(now));
	pthread_mutex_unlock(&lock);
	memset(&info, 0, sizeof(info));
	snprintf(info.key, sizeof(info.key), "%s", PMIX_EVENT_AFFECTED_PROC);
	info.value.type = PMIX_PROC;
	if (affected) {
		who = *affected;
		info.value.data.proc = &who;
	}
	for (i = 0; i < 16; i++)
		if (now[i])
			now[i](i, status, source, &info, affected ? 1 : 0, NULL, 0, NULL, NULL);
}
