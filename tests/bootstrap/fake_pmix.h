/* SPDX-License-Identifier: BSD-3-Clause */
/* A PMIx library inside the test program: the same symbols, one process that
 * believes to be PE 1 of 3, and one call site that misbehaves as planned. */
#ifndef TEST_FAKE_PMIX_H
#define TEST_FAKE_PMIX_H

#include <stdbool.h>
#include <stddef.h>

#include <pmix.h>

#define FAKE_PES 3
#define FAKE_ME	 1

enum fake_site {
	FAKE_NONE,
	FAKE_INIT,
	FAKE_FINALIZE,
	FAKE_ABORT,
	FAKE_PUT,
	FAKE_COMMIT,
	FAKE_FENCE,
	FAKE_REGISTER,
	FAKE_DEREGISTER,
	FAKE_GET_SIZE,	/* PMIX_JOB_SIZE */
	FAKE_GET_NODE,	/* PMIX_NODEID */
	FAKE_GET_HOST,	/* PMIX_HOSTNAME */
	FAKE_GET_BLOB,	/* a peer's contribution: of PE 2 only */
	FAKE_GET_BLOBS, /* of both peers */
	FAKE_N_SITES
};

enum fake_how {
	FAKE_OK,
	FAKE_RETURN,   /* the call itself returns fake_plan.status */
	FAKE_CALLBACK, /* the callback brings fake_plan.status */
	FAKE_INSIDE,   /* success, the callback is called before the call returns */
	FAKE_NEVER,    /* blocks, or never calls back, until fake_release() */
	FAKE_NULL,     /* success without a value */
	FAKE_TYPE,     /* another type, garbage in the union */
	FAKE_SHORT,
	FAKE_LONG,
	FAKE_SWAPPED,
	FAKE_OLD, /* a contribution of the round before */
	FAKE_HUGE, /* numbers: out of range; strings: not terminated soon */
	FAKE_NEGATIVE
};

extern struct fake_plan {
	enum fake_site site;
	enum fake_how how;
	pmix_status_t status;
} fake_plan;

/* Lets all blocked calls return and makes all callbacks that are owed. */
void fake_release(void);
/* Calls the registered handlers as PMIx would. */
void fake_event(pmix_status_t status, const pmix_proc_t *source, const pmix_proc_t *affected);

/* How often each was called. */
extern int fake_inits, fake_finalizes, fake_aborts, fake_notifies, fake_handlers;
extern int fake_fences_without_collect;
extern int fake_keys; /* different ones put */
extern bool fake_peers_never_renew;

#endif
