// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/coll.h"

#include <string.h>

#include <gdr/status.h>

#include "runtime/parse.h"

enum path { QUEUE, MAPPED, ANY };

struct rule {
	int kind, path, max_pes;
	uint64_t max_bytes; /* 0: no limit */
	int algo;
};

static const struct rule table[] = {
#define GDRI_COLL_RULE(kind, path, max_pes, max_bytes, algo)                                       \
	{GDRI_K_##kind, path, max_pes, max_bytes, GDRI_A_##algo},
#include "runtime/coll.def"
#undef GDRI_COLL_RULE
};
#define N_RULES (sizeof(table) / sizeof(table[0]))

static const char *const kinds[GDRI_N_KINDS] = {"broadcast", "collect", "alltoall", "reduce",
						"scan"};
static const char *const algos[GDRI_N_ALGOS] = {"flat", "tree", "ring",
						 "direct", "two", "grid"};

/* What there is code for. */
static bool exists(int kind, int algo)
{
	static const unsigned int have[GDRI_N_KINDS] = {
		[GDRI_K_BROADCAST] = 1u << GDRI_A_FLAT | 1u << GDRI_A_TREE | 1u << GDRI_A_DIRECT |
				     1u << GDRI_A_TWO,
		[GDRI_K_COLLECT] = 1u << GDRI_A_FLAT | 1u << GDRI_A_RING | 1u << GDRI_A_DIRECT,
		[GDRI_K_ALLTOALL] = 1u << GDRI_A_FLAT | 1u << GDRI_A_DIRECT,
		[GDRI_K_REDUCE] = 1u << GDRI_A_FLAT | 1u << GDRI_A_TREE | 1u << GDRI_A_RING |
				  1u << GDRI_A_TWO,
		[GDRI_K_SCAN] = 1u << GDRI_A_FLAT | 1u << GDRI_A_RING,
	};

	return algo == GDRI_A_GRID || have[kind] >> algo & 1u;
}

static int find(const char *const *names, int n, const char *word, size_t len)
{
	while (n-- > 0 && (strlen(names[n]) != len || strncmp(names[n], word, len)))
		;
	return n;
}

/* One rule of GDR_COLL, up to the comma or the end; the next one, or NULL when it is wrong. */
static const char *parse(const char *s, struct rule *r)
{
	size_t whole = strcspn(s, ","), a = strcspn(s, ":,"), b;
	char number[32];

	r->path = ANY;
	r->max_pes = 0;
	r->max_bytes = 0;
	r->kind = find(kinds, GDRI_N_KINDS, s, a);
	if (r->kind < 0 || s[a] != ':')
		return NULL;
	b = strcspn(s + a + 1, ":,");
	r->algo = find(algos, GDRI_N_ALGOS, s + a + 1, b);
	if (r->algo < 0 || !exists(r->kind, r->algo))
		return NULL;
	b += a + 1;
	if (b < whole) {
		if (whole - b - 1 >= sizeof(number))
			return NULL;
		memcpy(number, s + b + 1, whole - b - 1);
		number[whole - b - 1] = 0;
		if (!gdri_parse_size(number, &r->max_bytes) || !r->max_bytes)
			return NULL;
	}
	return s[whole] ? s + whole + 1 : s + whole;
}

int gdri_coll_check(const char *rules, char *why, size_t room)
{
	struct rule r;

	while (*rules) {
		rules = parse(rules, &r);
		if (rules)
			continue;
		snprintf(why, room, "KIND:ALGORITHM[:BYTES],... of broadcast: flat tree direct two, "
			 "collect: flat ring direct, alltoall: flat direct, reduce: flat tree ring "
			 "two, scan: flat ring; grid of all");
		return -GDR_EOPTION;
	}
	return 0;
}

static bool fits(const struct rule *r, int kind, const struct gdri_team *t)
{
	return r->kind == kind && (r->path == ANY || (r->path == MAPPED) == (t->mapped != 0)) &&
	       (!r->max_pes || t->n <= r->max_pes);
}

struct filling {
	struct gdri_team *t;
	int kind, n;
	uint64_t covered; /* sizes up to here have their algorithm */
	bool done;
};

/* Calls of device code never take GRID: they are one block's. */
static void add(struct filling *f, const struct rule *r)
{
	if (f->done || r->algo == GDRI_A_GRID || !fits(r, f->kind, f->t) ||
	    (r->max_bytes && r->max_bytes <= f->covered))
		return;
	f->covered = r->max_bytes && f->n < GDRI_CHOICES - 1 ? r->max_bytes : UINT64_MAX;
	f->done = f->covered == UINT64_MAX;
	f->t->max[f->kind][f->n] = f->covered;
	f->t->algo[f->kind][f->n++] = (uint8_t)r->algo;
}

void gdri_coll_choose(struct gdri_team *t, const char *rules)
{
	int kind;

	for (kind = 0; kind < GDRI_N_KINDS; kind++) {
		struct filling f = {.t = t, .kind = kind};
		const char *s = rules;
		struct rule r;
		size_t i;

		while (s && *s && (s = parse(s, &r)))
			add(&f, &r);
		for (i = 0; i < N_RULES; i++)
			add(&f, &table[i]);
	}
}

static bool decides(const struct rule *r, int kind, const struct gdri_team *t, uint64_t bytes)
{
	return fits(r, kind, t) && (!r->max_bytes || bytes <= r->max_bytes);
}

bool gdri_coll_by_grid(const struct gdri_team *t, int kind, uint64_t bytes, const char *rules)
{
	const char *s = rules;
	struct rule r;
	size_t i;

	if (!t->grid_blocks)
		return false;
	while (s && *s && (s = parse(s, &r))) {
		if (decides(&r, kind, t, bytes))
			return r.algo == GDRI_A_GRID;
	}
	for (i = 0; i < N_RULES && !decides(&table[i], kind, t, bytes); i++)
		;
	return i < N_RULES && table[i].algo == GDRI_A_GRID;
}

static void print_rule(FILE *f, const struct rule *r)
{
	fprintf(f, "%-10s %-7s %8d %12llu  %s\n", kinds[r->kind],
		r->path == ANY ? "any" : r->path == MAPPED ? "mapped" : "queue", r->max_pes,
		(unsigned long long)r->max_bytes, algos[r->algo]);
}

void gdri_coll_print(FILE *f, const char *rules)
{
	struct rule r;
	size_t i;

	fprintf(f, "%-10s %-7s %8s %12s  %s\n", "collective", "path", "max PEs", "max bytes",
		"algorithm");
	while (rules && *rules && (rules = parse(rules, &r)))
		print_rule(f, &r);
	for (i = 0; i < N_RULES; i++)
		print_rule(f, &table[i]);
}
