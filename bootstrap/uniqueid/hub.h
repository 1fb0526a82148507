/* SPDX-License-Identifier: BSD-3-Clause */
/* The middle of a job by unique id, without sockets and threads: takes what arrived on a connection
 * and queues what to send. Every byte is foreign input. */
#ifndef GDRI_BOOTSTRAP_UID_HUB_H
#define GDRI_BOOTSTRAP_UID_HUB_H

#include "bootstrap/uniqueid/wire.h"

#define GDRI_UID_STRANGERS 64 /* connections that have not said who they are: one more, and the oldest goes */

struct gdri_uid_blob { /* bytes to send, the same to many */
	int refs;
	size_t len;
	unsigned char bytes[];
};

struct gdri_uid_out {
	struct gdri_uid_out *next;
	struct gdri_uid_blob *blob;
};

struct gdri_uid_conn {
	struct gdri_uid_conn *next;
	int fd;		 /* for the owner; the hub only keeps it */
	uint64_t since;	 /* for the owner, too: when it came, ns */
	uint32_t pe;	 /* NOBODY: has not said, or has left */
	bool stranger;	 /* has not said */
	bool bad;	 /* to be closed, when what is queued has been sent */
	unsigned char head[GDRI_UID_HEAD];
	size_t n_head;
	struct gdri_uid_head h; /* valid with a whole head */
	unsigned char *body;
	size_t n_body;
	struct gdri_uid_out *first, **last;
	size_t sent; /* of the first */
};

struct gdri_uid_hub {
	unsigned char token[GDRI_UID_TOKEN];
	struct gdri_uid_conn *conns; /* those that have said who they are, then strangers, the oldest first */
	uint32_t n_strangers;
	uint32_t n, n_here, n_gone; /* n 0: nobody has come yet */
	uint32_t home;		    /* PE of the hub's process, or NOBODY */
	uint32_t dead;		    /* died before all had come, and has no successor yet; or NOBODY */
	bool running, ending;	    /* ending: an ABORT is on its way to all */
	struct gdri_uid_conn **of; /* [n], NULL: not here (any more) */
	bool *came;		   /* [n] has been here, perhaps gave up */
	uint64_t round;		   /* under way, from 1 */
	uint32_t n_in, len;	   /* who has entered it, the first one's length */
	uint32_t unequal;	   /* a PE of another length, or NOBODY */
	unsigned char **in;	   /* [n] what the PEs brought, NULL: nothing yet */
};

void gdri_uid_hub_init(struct gdri_uid_hub *hub, const unsigned char token[GDRI_UID_TOKEN]);
void gdri_uid_hub_clear(struct gdri_uid_hub *hub);

/* NULL: no memory. */
struct gdri_uid_conn *gdri_uid_hub_accept(struct gdri_uid_hub *hub, int fd, uint64_t now);
/* The stranger that has waited longest, or NULL. */
struct gdri_uid_conn *gdri_uid_hub_oldest(const struct gdri_uid_hub *hub);
/* May mark any connection bad, and frees none. */
void gdri_uid_hub_feed(struct gdri_uid_hub *hub, struct gdri_uid_conn *c, const unsigned char *p,
		       size_t n);
/* The connection has ended: frees it. A PE that has not left is lost. */
void gdri_uid_hub_drop(struct gdri_uid_hub *hub, struct gdri_uid_conn *c);

/* The connection of the PE in the hub's own process, or NULL. */
struct gdri_uid_conn *gdri_uid_hub_home(const struct gdri_uid_hub *hub);
/* Nobody depends on it: not begun, and no PE is here. */
bool gdri_uid_hub_idle(const struct gdri_uid_hub *hub);

/* What to send next, and that n bytes of it were. */
const unsigned char *gdri_uid_hub_out(const struct gdri_uid_conn *c, size_t *n);
void gdri_uid_hub_sent(struct gdri_uid_conn *c, size_t n);

/* The job has begun, and all have left or are lost. */
bool gdri_uid_hub_done(const struct gdri_uid_hub *hub);

#endif
