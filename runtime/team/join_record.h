/* SPDX-License-Identifier: BSD-3-Clause */
/* What the members of a team to be know of each other (team_join.c): each PE has a record at every PE, which it alone
 * writes. A PE tells its own to all and looks at those of all in memory of its own, so that no other PE holds it up:
 * nothing here waits. Records stand behind the teams' areas of the heap, on GPUs behind the control area of the host's
 * page (host_view.h). */
#ifndef GDRI_JOIN_RECORD_H
#define GDRI_JOIN_RECORD_H

#include <stdbool.h>
#include <stdint.h>

struct gdri_state;

struct gdri_join {
	uint64_t id;   /* told last: the rest holds for it; 0: none */
	/* 1 to 3, GDRI_JOIN_GONE | status << 8 | mapped << 16 | GDRI_JOIN_FINALIZES, _FAILED | own number << 19 |
	 * from step 2 on, a hash of who the members are << 32: one store */
	uint64_t step;
	uint64_t hash, free;
	uint64_t calls; /* with GDRI_JOIN_FINALIZES: barriers of host threads that it made before */
};

/* Whichever id is shown, or none: the PE comes to no call any more; it waits for nobody either. */
#define GDRI_JOIN_FINALIZES (1ull << 17)
#define GDRI_JOIN_FAILED (1ull << 18)
#define GDRI_JOIN_GONE (1ull << 7) /* beside GDRI_JOIN_FINALIZES: it waits there for nobody any more */

/* What one PE has been told. */
struct gdri_join_told {
	uint64_t step;
	int words;  /* of a record that is new, in their order */
	int status; /* < 0: the queue to it takes no more */
};

/* Where they are, from the beginning of the heap or the page; bytes of those of so many PEs. */
#define GDRI_JOIN_IN_PAGE GDRI_CTL_SIZE
#define GDRI_JOIN_BYTES(n_pes) ((n_pes) * sizeof(struct gdri_join))

/* Goes on telling all PEs what they have not been told, as far as queues have room. told: [n_pes], zeroes for a record
 * that is new; NULL: tells once. */
void gdri_join_tell(struct gdri_state *st, const struct gdri_join *mine, struct gdri_join_told *told);
/* No more of it: the id may come again. */
void gdri_join_hide(struct gdri_state *st);

/* Whether pe shows a record; then that, no word of which is older than the id. */
bool gdri_join_look(const struct gdri_state *st, int pe, struct gdri_join *out);

/* Tells all PEs that this one has called gdr_finalize; failed: it waits for nobody in it. Its operations are complete;
 * returns when this one is, too, but within 1 s. */
void gdri_join_finalize(struct gdri_state *st, bool failed);
/* Tells those that are not gone, too, that this PE waits for nobody any more in gdr_finalize. */
void gdri_join_gone(struct gdri_state *st);
/* Whether pe has told that: 2 where it waits for nobody. What it told before it is seen by a look behind this one. */
int gdri_join_finalizes(const struct gdri_state *st, int pe);
/* A PE that has called gdr_finalize, waits there for the others, and does not come to this PE's barrier of host threads
 * (host_barriers); -1: none. What it told before is seen by a look behind this one. */
int gdri_join_absent(const struct gdri_state *st);
/* Whether pe hears of nothing any more: it waits for nobody in gdr_finalize. */
bool gdri_join_is_gone(const struct gdri_state *st, int pe);

#endif
