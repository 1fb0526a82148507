/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx statuses in our codes and in words that help. */
#ifndef GDRI_BOOTSTRAP_PMIX_TEXT_H
#define GDRI_BOOTSTRAP_PMIX_TEXT_H

#include <stddef.h>

#include <pmix.h>

#include "bootstrap/call.h"

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

#endif
