/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of algorithms of the collectives: first what GDR_COLL says, then the file GDR_COLL_TABLE or else
 * coll.def. The first rule that fits counts. */
#ifndef GDRI_COLL_TABLE_H
#define GDRI_COLL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <gdr/impl/arch/abi.h>

struct gdri_coll_rule {
	int kind, path, max_pes;
	uint64_t max_bytes; /* 0: no limit */
	int algo;
};

struct gdri_coll_rules {
	struct gdri_coll_rule *rule;
	size_t n, shown; /* behind those shown: coll.def, for what a file leaves open */
};

/* `first`: a GDR_COLL, `file`: a GDR_COLL_TABLE, either may be empty. Logs what is wrong. */
int gdri_coll_load(struct gdri_coll_rules *out, const char *first, const char *file);
void gdri_coll_unload(struct gdri_coll_rules *r);

/* Calls on streams know it, others pass over it. */
static inline bool gdri_coll_streams_only(int algo)
{
	return algo == GDRI_A_LL_CTAS || algo == GDRI_A_COPIES;
}

/* Equal on all PEs that choose alike. */
uint64_t gdri_coll_hash(const struct gdri_coll_rules *r);

/* Fills max and algo of a team whose n, mapped and nodes are set. */
void gdri_coll_choose(struct gdri_team *t, const struct gdri_coll_rules *r);

/* How the library's kernels do a call of so many bytes: the same on all members. */
int gdri_coll_on_stream(const struct gdri_team *t, int kind, uint64_t bytes,
			const struct gdri_coll_rules *r);

/* "reduce:two,broadcast:flat:4k": kind, algorithm, and up to how many bytes. 0, or -GDR_EOPTION with
 * `why` saying which of them is not, and what is accepted. */
int gdri_coll_check(const char *rules, char *why, size_t room);

/* As GDR_COLL_TABLE takes it. */
void gdri_coll_print(FILE *f, const struct gdri_coll_rules *r);

#endif
