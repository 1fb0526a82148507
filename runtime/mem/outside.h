/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of cudaMalloc as symmetric memory. The driver chose its address, and chooses where peers map it, so it has no
 * place behind the heaps: its own address is the symmetric one. Host threads find the way in the list of
 * registrations, kernels that were compiled with GDR_ANY_ADDRESS in a table of them. By queue it is reached as all
 * that the program brings (window.h): at an offset behind the heap, which is the same on all PEs. */
#ifndef GDRI_OUTSIDE_RUNTIME_H
#define GDRI_OUTSIDE_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_rkeys;
struct gdri_state;
struct gdri_symmetric;

#define GDRI_OUTSIDE_MARK 16

#define GDRI_OUTSIDE_GROWN 24 /* each has room for twice as many registrations as the one before */

struct gdri_outsides {
	uint8_t *gpu[GDRI_OUTSIDE_GROWN]; /* tables, used in turn: the last one's, of the others for who still reads */
	int grown;			  /* of gpu; 0: there was never need of one */
	unsigned int turn;
	int n; /* atomic: registrations that the list has, or that are under way; 0: nobody has to look */
};

/* What was in the place of the mark by which peers see that their mapping leads here. */
struct gdri_outside_kept {
	uint8_t begin[GDRI_OUTSIDE_MARK], end[GDRI_OUTSIDE_MARK];
	bool is_marked;
	bool is_counted; /* in outside.n */
};

/* NULL, or why memory of cudaMalloc cannot be symmetric here. */
const char *gdri_outside_refuse(const void *addr, size_t len);

/* s->at is there. The handle, and a mark in the memory; no kernel that would miss it comes from now on. -GDR_E*,
 * logged. */
int gdri_outside_send(struct gdri_state *st, struct gdri_symmetric *s, struct gdri_rkeys *mine,
		       struct gdri_outside_kept *kept);
/* After an exchange of keys, with the same result on all PEs: either all bring memory of cudaMalloc or none does. */
int gdri_outside_alike(const struct gdri_state *st, const struct gdri_symmetric *s, const struct gdri_rkeys *all);
/* Maps that of the peers of the node, and looks for their marks. -GDR_E*, logged with the PE. */
int gdri_outside_open(struct gdri_state *st, struct gdri_symmetric *s, const struct gdri_rkeys *all);
/* Collective, where a PE could not: returns when none has anything open any more, so that owners may free. */
void gdri_outside_give_up(struct gdri_state *st, struct gdri_symmetric *s);
/* The memory is as it was; nobody looks for the mark any more, or writes yet. */
void gdri_outside_unmark(struct gdri_state *st, const struct gdri_symmetric *s, struct gdri_outside_kept *kept);

/* Kernels find what the list has now. -GDR_E*, logged: they find what they found before. */
int gdri_outside_publish(struct gdri_state *st);
/* Closes what is mapped of all registrations. The owners may free behind the next exchange. */
void gdri_outside_close(struct gdri_state *st);
void gdri_outside_down(struct gdri_state *st);

#endif
