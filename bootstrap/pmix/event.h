/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports of dead peers from the launcher, where it sends any. The state is
 * the process's, not a bootstrap's: PMIx may call a handler for as long as
 * anybody in the process keeps the library initialised. */
#ifndef GDRI_BOOTSTRAP_PMIX_EVENT_H
#define GDRI_BOOTSTRAP_PMIX_EVENT_H

#include <time.h>

#include <pmix.h>

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
