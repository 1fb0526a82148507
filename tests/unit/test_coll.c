// SPDX-License-Identifier: BSD-3-Clause
/* The table of algorithms of the collectives: what is chosen for which team, what a file may say, and that a
 * table that was printed is the same one when it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "runtime/team/coll.h"
#include "runtime/core/log.h"

static char name[] = "/tmp/gdr-coll-XXXXXX";

static const char *file_of_bytes(const char *text, size_t len)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	fclose(f);
	return name;
}

static const char *file_of(const char *text)
{
	return file_of_bytes(text, strlen(text));
}

/* Freed by the caller. */
static char *printed(const struct gdri_coll_rules *r)
{
	char *buf = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&buf, &len);

	gdri_coll_print(f, r);
	fclose(f);
	return buf;
}

static int algo_of(const struct gdri_team *t, int kind, uint64_t len)
{
	int k = 0;

	while (len > t->max[kind][k])
		k++;
	return t->algo[kind][k];
}

#define MOST 32

/* Of `nodes` nodes the members follow each other, or are dealt out in turn. */
static struct gdri_team dealt(int n, int mapped, int nodes, bool in_turn,
			      const struct gdri_coll_rules *r)
{
	static int16_t order[MOST];
	struct gdri_team t;
	int i;

	assert_true(n <= MOST);
	for (i = 0; i < n; i++)
		order[i] = (int16_t)(in_turn ? i * nodes % n + i * nodes / n : i);
	memset(&t, 0, sizeof(t));
	t.levels = order;
	t.n = n;
	t.mapped = (uint32_t)mapped;
	t.nodes = nodes;
	gdri_coll_choose(&t, r);
	t.levels = NULL;
	return t;
}

static struct gdri_team team_of(int n, int mapped, int nodes, const struct gdri_coll_rules *r)
{
	return dealt(n, mapped, nodes, false, r);
}

static void paths_have_their_algorithms(void **state)
{
	struct gdri_coll_rules r;
	struct gdri_team t;
	int kind;

	(void)state;
	assert_int_equal(gdri_coll_load(&r, "", ""), 0);
	t = team_of(4, 1, 0, &r);
	assert_int_equal(algo_of(&t, GDRI_K_SYNC, 0), GDRI_A_ONE_SHOT);
	t = team_of(17, 1, 0, &r);
	assert_int_equal(algo_of(&t, GDRI_K_SYNC, 0), GDRI_A_TREE);
	t = team_of(4, 0, 0, &r);
	for (kind = 0; kind < GDRI_N_KINDS; kind++) {
		assert_int_not_equal(algo_of(&t, kind, 64), GDRI_A_SINGLE_LEADER);
		assert_int_not_equal(algo_of(&t, kind, 1 << 24), GDRI_A_MULTI_RAIL);
	}
	t = team_of(4, 0, 2, &r);
	assert_int_equal(algo_of(&t, GDRI_K_SYNC, 0), GDRI_A_SINGLE_LEADER);
	assert_int_equal(algo_of(&t, GDRI_K_BROADCAST, 64), GDRI_A_SINGLE_LEADER);
	assert_int_equal(algo_of(&t, GDRI_K_BROADCAST, 1 << 24), GDRI_A_MULTI_RAIL);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 64), GDRI_A_SINGLE_LEADER);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 1 << 24), GDRI_A_MULTI_RAIL);
	assert_int_equal(algo_of(&t, GDRI_K_COLLECT, 1 << 24), GDRI_A_MULTI_RAIL);
	assert_int_equal(algo_of(&t, GDRI_K_ALLTOALL, 64), GDRI_A_SINGLE_LEADER);
	assert_int_equal(algo_of(&t, GDRI_K_ALLTOALL, 4096), GDRI_A_MULTI_RAIL);
	assert_int_equal(algo_of(&t, GDRI_K_ALLTOALL, 1 << 24), GDRI_A_DIRECT);
	gdri_coll_unload(&r);
}

/* A sum in the order of the members goes node by node only where that is the same order. */
static void scans_keep_the_order(void **state)
{
	struct gdri_coll_rules r;
	struct gdri_team t;

	(void)state;
	assert_int_equal(gdri_coll_load(&r, "", ""), 0);
	t = dealt(8, 0, 2, false, &r);
	assert_int_equal(algo_of(&t, GDRI_K_SCAN, 64), GDRI_A_SINGLE_LEADER);
	assert_int_equal(algo_of(&t, GDRI_K_SCAN, 1 << 20), GDRI_A_RING);
	t = dealt(8, 0, 2, true, &r);
	assert_int_equal(algo_of(&t, GDRI_K_SCAN, 64), GDRI_A_ONE_SHOT);
	assert_int_equal(algo_of(&t, GDRI_K_ALLTOALL, 64), GDRI_A_SINGLE_LEADER);
	gdri_coll_unload(&r);
	assert_int_equal(gdri_coll_load(&r, "scan:leader", ""), 0);
	t = dealt(8, 0, 2, true, &r);
	assert_int_equal(algo_of(&t, GDRI_K_SCAN, 64), GDRI_A_ONE_SHOT);
	gdri_coll_unload(&r);
}

static void overrides_come_first(void **state)
{
	const char *own = "reduce:two:4k,reduce:lanes,sync:tree,broadcast:flat";
	struct gdri_coll_rules r;
	struct gdri_team t;

	(void)state;
	assert_int_equal(gdri_coll_load(&r, own, ""), 0);
	t = team_of(4, 0, 2, &r);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 4096), GDRI_A_TWO_SHOT);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 4097), GDRI_A_MULTI_RAIL);
	assert_int_equal(algo_of(&t, GDRI_K_SYNC, 0), GDRI_A_TREE);
	assert_int_equal(algo_of(&t, GDRI_K_BROADCAST, 1 << 30), GDRI_A_ONE_SHOT);
	t = team_of(4, 0, 0, &r); /* no levels: the rule for them is passed over */
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 1 << 20), GDRI_A_TWO_SHOT);
	gdri_coll_unload(&r);
}

static void streams_have_their_own(void **state)
{
	struct gdri_coll_rules r;
	struct gdri_team t = {.n = 4, .mapped = 1, .grid_blocks = 64, .ll_size = 8192, .ctas_size = 4096};

	(void)state;
	assert_int_equal(gdri_coll_load(&r, "reduce:push:64k,reduce:grid", ""), 0);
	gdri_coll_choose(&t, &r);
	assert_int_equal(t.algo[GDRI_K_REDUCE][0], GDRI_A_GRID); /* one line: device code knows no pushes */
	assert_true(t.max[GDRI_K_REDUCE][0] == UINT64_MAX);
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_REDUCE, 65536, &r), GDRI_A_LL_CTAS);
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_REDUCE, 65537, &r), GDRI_A_GRID);
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_COLLECT, 64, &r), GDRI_A_LL);
	t.ctas_size = 0;
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_REDUCE, 64, &r), GDRI_A_GRID);
	gdri_coll_unload(&r);
	t.ctas_size = 4096;
	assert_int_equal(gdri_coll_load(&r, "reduce:push:64k,reduce:copies,scan:flat", ""), 0);
	gdri_coll_choose(&t, &r);
	assert_int_equal(t.algo[GDRI_K_REDUCE][0], GDRI_A_LL); /* of the table behind them */
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_REDUCE, 65536, &r), GDRI_A_LL_CTAS);
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_REDUCE, 65537, &r), GDRI_A_COPIES);
	t.grid_blocks = 0;
	assert_int_equal(gdri_coll_on_stream(&t, GDRI_K_REDUCE, 1 << 20, &r), GDRI_A_TWO_SHOT);
	gdri_coll_unload(&r);
}

static void printed_tables_read_back(void **state)
{
	struct gdri_coll_rules a, b;
	char *first, *second;

	(void)state;
	assert_int_equal(gdri_coll_load(&a, "reduce:lanes:64k,scan:ring", ""), 0);
	first = printed(&a);
	assert_int_equal(gdri_coll_load(&b, "", file_of(first)), 0);
	second = printed(&b);
	assert_string_equal(first, second);
	assert_int_equal(b.shown, a.shown);
	gdri_coll_unload(&b);
	/* rules of GDR_COLL stand before those of a file, and are printed, too */
	assert_int_equal(gdri_coll_load(&b, "sync:tree", name), 0);
	assert_int_equal(b.shown, a.shown + 1);
	assert_int_not_equal(gdri_coll_hash(&a), gdri_coll_hash(&b));
	gdri_coll_unload(&a);
	gdri_coll_unload(&b);
	free(first);
	free(second);
}

static void the_wrong_rule_is_named(void **state)
{
	static const struct {
		const char *rules, *wrong;
	} cases[] = {
		{"sync:ring", "not \"sync:ring\"; it takes KIND"},
		{"broadcast:multi-rail:4k,sync:ring", "not \"sync:ring\"; "},
		{"reduce:ring,broadcast:tree:4x,scan:ring", "not \"broadcast:tree:4x\"; "},
		{"reduce:ring,,sync:tree", "not \"\"; "},
		{"nonsense", "not \"nonsense\"; "},
	};
	char why[512];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(gdri_coll_check(cases[i].rules, why, sizeof(why)), -GDR_EOPTION);
		assert_ptr_equal(strstr(why, cases[i].wrong), why);
		assert_non_null(strstr(why, "all but sync")); /* to its end */
	}
	assert_int_equal(gdri_coll_check("broadcast:multi-rail:4k,sync:tree", why, sizeof(why)), 0);
}

static void old_words_are_read(void **state)
{
	struct gdri_coll_rules a, b;

	(void)state;
	assert_int_equal(gdri_coll_load(&a, "reduce:flat:1k,reduce:two:4k,reduce:leader:8k,reduce:lanes:16k,"
				  "reduce:words:32k,reduce:push", ""), 0);
	assert_int_equal(gdri_coll_load(&b, "reduce:one-shot:1k,reduce:two-shot:4k,reduce:single-leader:8k,"
				  "reduce:multi-rail:16k,reduce:ll:32k,reduce:ll-ctas", ""), 0);
	assert_int_equal(b.rule[5].algo, GDRI_A_LL_CTAS);
	assert_true(gdri_coll_hash(&a) == gdri_coll_hash(&b));
	gdri_coll_unload(&a);
	gdri_coll_unload(&b);
	assert_int_equal(gdri_coll_load(&a, "", file_of("reduce any 0 4k words\nreduce any 0 0 two\n")), 0);
	assert_int_equal(gdri_coll_load(&b, "", file_of("reduce any 0 4k ll\nreduce any 0 0 two-shot\n")), 0);
	assert_true(gdri_coll_hash(&a) == gdri_coll_hash(&b));
	gdri_coll_unload(&a);
	gdri_coll_unload(&b);
}

static void a_file_takes_the_tables_place(void **state)
{
	struct gdri_coll_rules r;
	struct gdri_team t;

	(void)state;
	file_of("# tuned\n\n  reduce nodes 8 4k leader # small\nreduce any 0 0 ring\n");
	assert_int_equal(gdri_coll_load(&r, "", name), 0);
	assert_int_equal(r.shown, 2);
	t = team_of(8, 0, 2, &r);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 4096), GDRI_A_SINGLE_LEADER);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 4097), GDRI_A_RING);
	/* of what the file leaves open the built-in one has an opinion */
	assert_int_equal(algo_of(&t, GDRI_K_SYNC, 0), GDRI_A_SINGLE_LEADER);
	t = team_of(9, 0, 2, &r);
	assert_int_equal(algo_of(&t, GDRI_K_REDUCE, 8), GDRI_A_RING);
	gdri_coll_unload(&r);
}

static void nonsense_in_files_is_refused(void **state)
{
	static const char *const wrong[] = {
		"reduce nodes 0 0\n", "reduce nodes 0 0 lanes more\n", "reduction nodes 0 0 lanes\n",
		"reduce road 0 0 lanes\n", "reduce nodes -1 0 lanes\n", "reduce nodes 0 4x lanes\n",
		"reduce nodes 9999 0 lanes\n", "scan any 0 0 lanes\n", "sync any 0 0 grid\n",
		"sync any 0 0 tree\nsync\n",
	};
	struct gdri_coll_rules r;
	char text[400];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(gdri_coll_load(&r, "", file_of(wrong[i])), -GDR_EOPTION);
		gdri_coll_unload(&r);
	}
	memset(text, ' ', sizeof(text));
	strcpy(text + 300, "reduce any 0 0 ring\n");
	assert_int_equal(gdri_coll_load(&r, "", file_of(text)), -GDR_EOPTION);
	gdri_coll_unload(&r);
	file_of_bytes("reduce any 0 0 ring\0 more\n", 26); /* nothing is hidden */
	assert_int_equal(gdri_coll_load(&r, "", name), -GDR_EOPTION);
	gdri_coll_unload(&r);
	assert_int_equal(gdri_coll_load(&r, "", "/dev/zero"), -GDR_EOPTION); /* it has no end */
	gdri_coll_unload(&r);
	assert_int_equal(gdri_coll_load(&r, "", "/no/such/file"), -GDR_EOPTION);
	gdri_coll_unload(&r);
	assert_int_equal(gdri_coll_load(&r, "", "/tmp"), -GDR_EOPTION);
	gdri_coll_unload(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_have_their_algorithms),
		cmocka_unit_test(scans_keep_the_order),
		cmocka_unit_test(overrides_come_first),
		cmocka_unit_test(streams_have_their_own),
		cmocka_unit_test(printed_tables_read_back),
		cmocka_unit_test(the_wrong_rule_is_named),
		cmocka_unit_test(old_words_are_read),
		cmocka_unit_test(a_file_takes_the_tables_place),
		cmocka_unit_test(nonsense_in_files_is_refused),
	};
	int fd = mkstemp(name), ret;

	if (fd < 0)
		return 1;
	close(fd);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(name);
	return ret;
}
