// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/team/coll.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/parse.h"

enum path { QUEUE, MAPPED, NODES, ANY, N_PATHS };

static const struct gdri_coll_rule builtin[] = {
#define GDRI_COLL_RULE(kind, path, max_pes, max_bytes, algo)                                       \
	{GDRI_K_##kind, path, max_pes, max_bytes, GDRI_A_##algo},
#include "runtime/team/coll.def"
#undef GDRI_COLL_RULE
};
#define N_BUILTIN (sizeof(builtin) / sizeof(builtin[0]))

static const char *const kinds[GDRI_N_KINDS] = {"sync", "broadcast", "collect", "alltoall",
						"reduce", "scan"};
static const char *const algos[GDRI_N_ALGOS] = {"one-shot", "tree", "ring", "direct", "two-shot", "grid",
						 "single-leader", "multi-rail", "ll", "ll-ctas", "copies"};
/* Names of earlier versions, which are read still. */
static const char *const old_algos[GDRI_N_ALGOS] = {"flat", "tree", "ring", "direct", "two", "grid",
						     "leader", "lanes", "words", "push", "copies"};
static const char *const paths[N_PATHS] = {"queue", "mapped", "nodes", "any"};

/* What there is code for. */
static bool coll_exists(int kind, int algo)
{
#define A(name) (1u << GDRI_A_##name)
	static const unsigned int have[GDRI_N_KINDS] = {
		[GDRI_K_SYNC] = A(ONE_SHOT) | A(TREE) | A(SINGLE_LEADER),
		[GDRI_K_BROADCAST] = A(ONE_SHOT) | A(TREE) | A(DIRECT) | A(TWO_SHOT) | A(GRID) | A(SINGLE_LEADER) |
				     A(MULTI_RAIL) | A(LL) | A(LL_CTAS),
		[GDRI_K_COLLECT] = A(ONE_SHOT) | A(RING) | A(DIRECT) | A(GRID) | A(MULTI_RAIL) | A(LL) |
				   A(LL_CTAS),
		[GDRI_K_ALLTOALL] = A(ONE_SHOT) | A(DIRECT) | A(GRID) | A(SINGLE_LEADER) | A(MULTI_RAIL) | A(LL) |
				    A(LL_CTAS),
		[GDRI_K_REDUCE] = A(ONE_SHOT) | A(TREE) | A(RING) | A(TWO_SHOT) | A(GRID) | A(SINGLE_LEADER) |
				  A(MULTI_RAIL) | A(LL) | A(LL_CTAS) | A(COPIES),
		[GDRI_K_SCAN] = A(ONE_SHOT) | A(RING) | A(GRID) | A(SINGLE_LEADER) | A(LL) | A(LL_CTAS),
	};
#undef A

	return have[kind] >> algo & 1u;
}

static int coll_find_word(const char *const *names, int n, const char *word, size_t len)
{
	while (n-- > 0 && (strlen(names[n]) != len || strncmp(names[n], word, len)))
		;
	return n;
}

static int coll_find_algo(const char *word, size_t len)
{
	int algo = coll_find_word(algos, GDRI_N_ALGOS, word, len);

	return algo < 0 ? coll_find_word(old_algos, GDRI_N_ALGOS, word, len) : algo;
}

/* One rule of GDR_COLL, up to the comma or the end; the next one, or NULL when it is wrong. */
static const char *coll_parse_rule(const char *s, struct gdri_coll_rule *r)
{
	size_t whole = strcspn(s, ","), a = strcspn(s, ":,"), b;
	char number[32];

	r->path = ANY;
	r->max_pes = 0;
	r->max_bytes = 0;
	r->kind = coll_find_word(kinds, GDRI_N_KINDS, s, a);
	if (r->kind < 0 || s[a] != ':')
		return NULL;
	b = strcspn(s + a + 1, ":,");
	r->algo = coll_find_algo(s + a + 1, b);
	if (r->algo < 0 || !coll_exists(r->kind, r->algo))
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
	struct gdri_coll_rule r;
	const char *next;
	size_t n;

	for (; *rules; rules = next) {
		next = coll_parse_rule(rules, &r);
		if (next)
			continue;
		n = strcspn(rules, ",");
		snprintf(why, room, "not \"%.*s\"; it takes KIND:ALGORITHM[:BYTES],... of sync: one-shot tree "
			 "single-leader, broadcast: one-shot tree direct two-shot single-leader multi-rail, collect: "
			 "one-shot ring direct multi-rail, alltoall: one-shot direct single-leader multi-rail, reduce: "
			 "one-shot tree ring two-shot single-leader multi-rail copies, scan: one-shot ring "
			 "single-leader; grid, ll and ll-ctas of all but sync", (int)(n < 60 ? n : 60), rules);
		return -GDR_EOPTION;
	}
	return 0;
}

/* ---- all rules, in their order ---- */

static int coll_append(struct gdri_coll_rules *out, const struct gdri_coll_rule *r)
{
	struct gdri_coll_rule *more;

	if (!(out->n & (out->n - 1))) { /* room for the next power of two */
		more = realloc(out->rule, (out->n ? 2 * out->n : 1) * sizeof(*more));
		if (!more)
			return gdri_fail(-GDR_ENOMEM, "out of memory for the algorithms of collectives");
		out->rule = more;
	}
	out->rule[out->n++] = *r;
	return 0;
}

/* A line that gdri_coll_print writes. */
static bool parse_line(char *line, struct gdri_coll_rule *r)
{
	char *save, *word[6];
	uint64_t pes;
	int i;

	for (i = 0; i < 6; i++) {
		word[i] = strtok_r(i ? NULL : line, " \t\r\n", &save);
		if (!word[i])
			break;
	}
	if (i != 5)
		return false;
	r->kind = coll_find_word(kinds, GDRI_N_KINDS, word[0], strlen(word[0]));
	r->path = coll_find_word(paths, N_PATHS, word[1], strlen(word[1]));
	r->algo = coll_find_algo(word[4], strlen(word[4]));
	if (r->kind < 0 || r->path < 0 || r->algo < 0 || !coll_exists(r->kind, r->algo) ||
	    !gdri_parse_u64(word[2], &pes) || pes > GDRI_MAX_PES)
		return false;
	r->max_pes = (int)pes;
	return gdri_parse_size(word[3], &r->max_bytes);
}

#define TABLE_MAX 65536u
#define LINE_LONGEST 158u

/* One line of several, up to its end. */
static int load_line(struct gdri_coll_rules *out, char *line, const char *name, int number)
{
	struct gdri_coll_rule r;

	if (strcspn(line, "\n") > LINE_LONGEST)
		return gdri_fail(-GDR_EOPTION, "GDR_COLL_TABLE=%s: line %d is too long", name, number);
	line[strcspn(line, "#\n")] = 0;
	if (!line[strspn(line, " \t\r")])
		return 0;
	if (parse_line(line, &r))
		return coll_append(out, &r);
	return gdri_fail(-GDR_EOPTION,
			 "GDR_COLL_TABLE=%s: line %d is not a rule: collective, path, PEs, bytes, algorithm, as "
			 "gdr_info --coll prints them",
			 name, number);
}

/* Foreign text, whole: NULL, or what is wrong. A zero byte would hide the rest of its line. */
static const char *read_text(const char *name, char text[TABLE_MAX + 2])
{
	FILE *f = fopen(name, "re");
	const char *why = NULL;
	size_t n;

	if (!f)
		return gdri_errno_text(errno);
	n = fread(text, 1, TABLE_MAX + 1, f);
	if (ferror(f))
		why = gdri_errno_text(errno);
	else if (n > TABLE_MAX)
		why = "longer than 64 KiB";
	else if (memchr(text, 0, n))
		why = "zero bytes in it";
	text[n] = 0;
	fclose(f);
	return why;
}

static int load_file(struct gdri_coll_rules *out, const char *name)
{
	char *text = malloc(TABLE_MAX + 2), *line, *next;
	const char *why = text ? read_text(name, text) : "out of memory";
	int number = 0, ret = 0;

	if (why) {
		gdri_error("GDR_COLL_TABLE=%s cannot be read: %s", name, why);
		ret = text ? -GDR_EOPTION : -GDR_ENOMEM;
	}
	for (line = text; !ret && *line; line = next) {
		next = line + strcspn(line, "\n");
		next += *next == '\n';
		ret = load_line(out, line, name, ++number);
	}
	free(text);
	return ret;
}

int gdri_coll_load(struct gdri_coll_rules *out, const char *first, const char *file)
{
	struct gdri_coll_rule r;
	int ret = 0;

	memset(out, 0, sizeof(*out));
	while (!ret && *first) {
		first = coll_parse_rule(first, &r);
		if (!first)
			return -GDR_EOPTION; /* gdri_coll_check says so */
		ret = coll_append(out, &r);
	}
	if (!ret && *file)
		ret = load_file(out, file);
	out->shown = out->n;
	for (size_t i = 0; i < N_BUILTIN && !ret; i++)
		ret = coll_append(out, &builtin[i]);
	if (!*file)
		out->shown = out->n;
	return ret;
}

void gdri_coll_unload(struct gdri_coll_rules *r)
{
	free(r->rule);
	memset(r, 0, sizeof(*r));
}

uint64_t gdri_coll_hash(const struct gdri_coll_rules *r)
{
	uint64_t h = 0xcbf29ce484222325u, v[5]; /* FNV-1a, by words */

	for (size_t i = 0; i < r->n; i++) {
		v[0] = (uint64_t)r->rule[i].kind;
		v[1] = (uint64_t)r->rule[i].path;
		v[2] = (uint64_t)r->rule[i].max_pes;
		v[3] = r->rule[i].max_bytes;
		v[4] = (uint64_t)r->rule[i].algo;
		for (size_t k = 0; k < 5; k++)
			h = (h ^ v[k]) * 0x100000001b3u;
	}
	return h;
}

/* ---- choice ---- */

/* The members of each node follow each other. */
static bool in_order(const struct gdri_team *t)
{
	int i;

	for (i = 0; i < t->n && t->levels[i] == i; i++)
		;
	return i == t->n;
}

static bool on_path(const struct gdri_coll_rule *r, const struct gdri_team *t)
{
	if (r->kind == GDRI_K_SCAN && r->algo == GDRI_A_SINGLE_LEADER && t->nodes && !in_order(t))
		return false;
	if (r->path == NODES || r->algo == GDRI_A_SINGLE_LEADER || r->algo == GDRI_A_MULTI_RAIL)
		return t->nodes != 0 && (r->path == NODES || r->path == ANY);
	if (((r->algo == GDRI_A_GRID || r->algo == GDRI_A_COPIES) && !t->grid_blocks) ||
	    (r->algo == GDRI_A_LL && !t->ll_size) || (r->algo == GDRI_A_LL_CTAS && !t->ctas_size))
		return false;
	return r->path == ANY || (r->path == MAPPED) == (t->mapped != 0);
}

static bool coll_rule_fits(const struct gdri_coll_rule *r, int kind, const struct gdri_team *t)
{
	return r->kind == kind && on_path(r, t) && (!r->max_pes || t->n <= r->max_pes);
}

struct filling {
	struct gdri_team *t;
	int kind, n;
	uint64_t covered; /* sizes up to here have their algorithm */
	bool done;
};

/* Device code knows no calls by many CTAs and their like: what is for others comes behind them. */
static void coll_add_rule(struct filling *f, const struct gdri_coll_rule *r)
{
	uint8_t algo = (uint8_t)r->algo;

	if (gdri_coll_streams_only(r->algo) || f->done || !coll_rule_fits(r, f->kind, f->t) ||
	    (r->max_bytes && r->max_bytes <= f->covered))
		return;
	if (f->n && f->t->algo[f->kind][f->n - 1] == algo)
		f->n--; /* goes on */
	f->covered = r->max_bytes && f->n < GDRI_CHOICES - 1 ? r->max_bytes : UINT64_MAX;
	f->done = f->covered == UINT64_MAX;
	f->t->max[f->kind][f->n] = f->covered;
	f->t->algo[f->kind][f->n++] = algo;
}

/* Bytes up to which a call is LL, whoever makes it. */
static uint32_t ll_step_most(const struct gdri_team *t, int kind)
{
	if (t->algo[kind][0] != GDRI_A_LL)
		return 0;
	return t->max[kind][0] < UINT32_MAX ? (uint32_t)t->max[kind][0] : UINT32_MAX;
}

void gdri_coll_choose(struct gdri_team *t, const struct gdri_coll_rules *rules)
{
	for (int kind = 0; kind < GDRI_N_KINDS; kind++) {
		struct filling f = {.t = t, .kind = kind};

		for (size_t i = 0; i < rules->n; i++)
			coll_add_rule(&f, &rules->rule[i]);
		t->ll_max[kind] = ll_step_most(t, kind);
	}
}

int gdri_coll_on_stream(const struct gdri_team *t, int kind, uint64_t bytes,
			const struct gdri_coll_rules *rules)
{
	const struct gdri_coll_rule *r;

	for (size_t i = 0; i < rules->n; i++) {
		r = &rules->rule[i];
		if (coll_rule_fits(r, kind, t) && (!r->max_bytes || bytes <= r->max_bytes))
			return r->algo;
	}
	return GDRI_A_ONE_SHOT;
}

void gdri_coll_print(FILE *f, const struct gdri_coll_rules *rules)
{
	const struct gdri_coll_rule *r;

	fprintf(f, "# %-8s %-7s %8s %12s  %s\n", "kind", "path", "PEs", "bytes", "algorithm");
	for (size_t i = 0; i < rules->shown; i++) {
		r = &rules->rule[i];
		fprintf(f, "%-10s %-7s %8d %12llu  %s\n", kinds[r->kind], paths[r->path], r->max_pes,
			(unsigned long long)r->max_bytes, algos[r->algo]);
	}
}
