/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of algorithms of the collectives: coll.def, and before it what GDR_COLL says. */
#ifndef GDRI_COLL_TABLE_H
#define GDRI_COLL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <gdr/impl/abi.h>

/* Fills max and algo of a team whose n and mapped are set. rules: a checked GDR_COLL. */
void gdri_coll_choose(struct gdri_team *t, const char *rules);

/* Do many blocks of the library's kernels work on a call of so many bytes? The same on all members. */
bool gdri_coll_by_grid(const struct gdri_team *t, int kind, uint64_t bytes, const char *rules);

/* "reduce:two,broadcast:flat:4k": kind, algorithm, and up to how many bytes. 0, or -GDR_EOPTION with
 * `why` saying what is accepted. */
int gdri_coll_check(const char *rules, char *why, size_t room);

/* The table, or one that a team would use. */
void gdri_coll_print(FILE *f, const char *rules);

#endif
