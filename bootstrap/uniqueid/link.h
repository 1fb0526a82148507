/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE's connection to the hub of its job: a thread reads it, callers write and wait. */
#ifndef GDRI_BOOTSTRAP_UID_LINK_H
#define GDRI_BOOTSTRAP_UID_LINK_H

#include <pthread.h>
#include <time.h>

#include "bootstrap/uniqueid/wire.h"

enum gdri_uid_end { GDRI_UID_ALIVE, GDRI_UID_LOST, GDRI_UID_LEFT };

struct gdri_uid_link {
	int fd;
	uint32_t pe, n;
	pthread_t reader;
	pthread_mutex_t sending; /* whole frames */
	bool torn;		 /* one was not sent to its end: none follows */

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t changed;
	bool ended;	 /* the reader has: nothing more comes */
	bool garbled;	 /* for what came was not a hub's */
	bool leaving;	 /* the end is ours */
	bool welcome;
	uint32_t home;	 /* PE whose process has the hub, or NOBODY */
	uint32_t reason, number; /* of REFUSED; 0: was not */
	uint32_t gone;	 /* the first PE that has gone, or NOBODY */
	enum gdri_uid_end how;
	uint64_t round;	 /* what the caller waits for, 0: nothing */
	size_t want;	 /* bytes of its RESULT */
	bool done;
	uint32_t unequal;      /* NOBODY: equal */
	unsigned char *result; /* the reader's gift */
	bool answered;	       /* names, n_names: of MISSING */
	uint32_t names[GDRI_UID_NAMES], n_names;

	pthread_mutex_t telling; /* while lost() runs, and of both below */
	void (*lost)(void *arg, int pe);
	void *arg;
};

/* Takes fd over, also on failure. 0 or -GDR_E*. */
int gdri_uid_link_open(struct gdri_uid_link *l, int fd, uint32_t pe, uint32_t n);
/* Says that the PE leaves, and waits for the hub's answer until the deadline, a second at most. */
void gdri_uid_link_close(struct gdri_uid_link *l, const struct timespec *deadline);

/* One frame: 0, -GDR_ETIMEOUT, or -GDR_EPEERLOST. */
int gdri_uid_link_send(struct gdri_uid_link *l, const struct gdri_uid_head *h, const void *body,
		       const struct timespec *deadline);

/* What the reader does with a frame. Its parameters are untrusted, *body may be taken (and is NULL then).
 * False: a violation. For tests. */
bool gdri_uid_link_take(struct gdri_uid_link *l, const struct gdri_uid_head *h, unsigned char **body);

/* What the reader does when the job is ended by PE pe. */
void gdri_uid_end_process(uint32_t pe, uint32_t status, const char *text);

#endif
