/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the PMIx bootstrap share: the job as the launcher
 * describes it, single values from it, and a round of exchange. */
#ifndef GDRI_BOOTSTRAP_PMIX_JOB_H
#define GDRI_BOOTSTRAP_PMIX_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <gdr/bootstrap.h>
#include <pmix.h>

#include "bootstrap/call.h"

#define GDRI_JOB_MAX_PES (1 << 20) /* a larger number is taken for garbage */

struct gdri_pmix_boot {
	struct gdr_bootstrap pub; /* first: the library casts */
	pmix_proc_t me;
	bool renews; /* keys can be put again: peers read what the servers hold now */
	bool broken; /* a collective failed here: the PEs may no longer be in step */
};

/* Single values; `rank` may be PMIX_RANK_WILDCARD for those of the whole job.
 * `must` says whether absence is an error (logged) or just -GDR_EBOOTSTRAP. */
int gdri_pmix_get_uint(const pmix_proc_t *me, pmix_rank_t rank, const char *key, uint64_t max,
		       bool must, uint64_t *out, const struct timespec *deadline);
int gdri_pmix_get_string(const pmix_proc_t *me, pmix_rank_t rank, const char *key, char *out,
			 size_t room, const struct timespec *deadline);

/* One round: every PE's `len` bytes to all. recv may be NULL when len is 0. */
int gdri_pmix_round(struct gdri_pmix_boot *b, const void *send, void *recv, size_t len,
		    int timeout_ms);

/* PMIx statuses in our codes and in words that help. */

/* 0 for success, else the -GDR_E* closest in meaning. */
int gdri_pmix_code(pmix_status_t status);

/* Logs "PMIX_CALL failed: ..., check ..." and returns gdri_pmix_code(). */
int gdri_pmix_failed(const char *call, pmix_status_t status);

/* gdri_call_run, and what has failed is logged as `what`: 0 or -GDR_E*. */
int gdri_pmix_run(struct gdri_call *c, const char *what, const struct timespec *deadline);
/* Logs that `call` did not return in time; returns -GDR_ETIMEOUT. */
int gdri_pmix_expired(const char *call, int timeout_ms);

/* What to look at when `status` is met; never NULL. */
const char *gdri_pmix_advice(pmix_status_t status);

/* Reports of dead peers from the launcher, where it sends any. The state is
 * the process's, not a bootstrap's: PMIx may call a handler for as long as
 * anybody in the process keeps the library initialised. */

/* Starts listening for the n_pes processes of me->nspace. A launcher that
 * refuses the registration only costs the reports. 0 or -GDR_ENOMEM. */
int gdri_pmix_events_open(const pmix_proc_t *me, int n_pes, const struct timespec *deadline);
void gdri_pmix_events_close(const struct timespec *deadline);

/* Contract of gdr_bootstrap.on_peer_lost. */
int gdri_pmix_events_notify(void (*fn)(void *arg, int pe), void *arg);

/* 0, -GDR_EPEERLOST or -GDR_EBOOTSTRAP (launcher lost); for waits. */
int gdri_pmix_events_lost(void);
/* The PE lost first, or -1. */
int gdri_pmix_events_lost_pe(void);

/* What PMIx calls; visible for tests. */
void gdri_pmix_event_handler(size_t id, pmix_status_t status, const pmix_proc_t *source,
			     pmix_info_t info[], size_t ninfo, pmix_info_t *results,
			     size_t nresults, pmix_event_notification_cbfunc_fn_t cbfunc,
			     void *cbdata);

#endif
