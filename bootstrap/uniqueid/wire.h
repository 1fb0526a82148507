/* SPDX-License-Identifier: BSD-3-Clause */
/* What the bootstrap by unique id puts on the wire: the id itself, and the frames between a PE and the
 * hub. Pure functions over untrusted bytes; all numbers little-endian. */
#ifndef GDRI_BOOTSTRAP_UID_WIRE_H
#define GDRI_BOOTSTRAP_UID_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/boot.h"

/* ---- the id ---- */

#define GDRI_UID_TOKEN 16

struct gdri_uid {
	uint16_t family; /* 4 or 6 */
	uint16_t port;
	unsigned char addr[16]; /* network order, an IPv4 address in the first four */
	unsigned char token[GDRI_UID_TOKEN];
};

void gdri_uid_write(unsigned char out[GDRI_UID_BYTES], const struct gdri_uid *id);
/* NULL and *id, or what is wrong with the bytes. */
const char *gdri_uid_parse(const unsigned char in[GDRI_UID_BYTES], struct gdri_uid *id);

/* ---- frames: a head, then len bytes ---- */

#define GDRI_UID_HEAD	  24
#define GDRI_UID_NAMES	  64 /* PEs that one MISSING names at most */
#define GDRI_UID_TEXT	  256
#define GDRI_UID_NOBODY	  UINT32_MAX

enum gdri_uid_type {
	/* to the hub; pe: the sender */
	GDRI_UID_HELLO = 1, /* token, u32 number of PEs, u32 1: the hub is in this process */
	GDRI_UID_GATHER,    /* this round's bytes */
	GDRI_UID_WHO,	    /* asks for MISSING */
	GDRI_UID_LEAVE,
	/* from the hub */
	GDRI_UID_WELCOME, /* all have come. pe: the one whose process has the hub, or NOBODY */
	GDRI_UID_REFUSED, /* u32 reason, u32 number that goes with it */
	GDRI_UID_RESULT,  /* this round's bytes of all PEs */
	GDRI_UID_UNEQUAL, /* PE `pe` called with another length */
	GDRI_UID_GONE,	  /* pe; u32 1: has left, 0: is lost */
	GDRI_UID_MISSING, /* u32 each: PEs that have not come, or not entered the round */
	/* both ways; pe: the one that asks for it */
	GDRI_UID_ABORT, /* u32 exit status, text */
};

enum gdri_uid_refusal {
	GDRI_UID_STRANGER = 1, /* another token */
	GDRI_UID_N_PES,	       /* another number of PEs than the first one said: that number */
	GDRI_UID_TWICE,	       /* a PE of this number is there */
	GDRI_UID_RUNNING,      /* the job has begun */
	GDRI_UID_FULL,	       /* no memory */
	GDRI_UID_DEAD,	       /* a PE died before all had come: its number */
};

struct gdri_uid_head {
	uint32_t type, pe, len;
	uint64_t round;
};

void gdri_uid_head_write(unsigned char out[GDRI_UID_HEAD], const struct gdri_uid_head *h);
/* False: not a head that this side may get. Its len then is what the type allows; that of a RESULT is
 * at most n_pes contributions. */
bool gdri_uid_head_parse(const unsigned char in[GDRI_UID_HEAD], bool to_hub, uint32_t n_pes,
			 struct gdri_uid_head *h);

void gdri_uid_put32(unsigned char *p, uint32_t v);
uint32_t gdri_uid_get32(const unsigned char *p);

/* Takes as long for tokens that differ as for equal ones. */
bool gdri_uid_same_token(const unsigned char *a, const unsigned char *b);

#endif
