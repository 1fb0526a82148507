/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue protocol of device/gdr/impl as it stands, under the memory model of C11: threads that post and wait and a
 * NIC run under Relacy, which chooses who goes on and which of the stores that a load may see it sees. Checked:
 *
 *  - a block that the NIC reads was written before, for the NIC      (race, or read before it was written)
 *  - a block is written again when the NIC has read it, by count,
 *    and where `reuse` says so in the order of memory                (assert in weak_st_ring; race)
 *  - the record is as young as the doorbell                          (assert in weak_nic::look)
 *  - `done` is never raised too far                                  (assert in weak_max)
 *  - who has waited sees what the NIC brought                        (race in weak_complete)
 *  - who waits for what was complete before an error is not told of it (assert in weak_wait)
 *  - nobody is left at the gate, also of those who gave up       (assert in weak_queue::after)
 *  - between posts around a fence stands a block with the fence bit  (assert in weak_queue::after)
 *  - all ends: no lost doorbell, no turn that nobody takes          (livelock)
 *
 * rows.hpp names each acquire, release and fence, the scenario that must fail without it, or why none does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <relacy/relacy.hpp>
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert
#undef errno

#define GDRI_WORLD "tests/weak/world_relacy.hpp"
static int weak_spins;
static uint32_t weak_relay;
#define GDRI_SPINS weak_spins
#define GDRI_RELAY_AHEAD weak_relay
#define GDRI_TIMEOUT_H /* the waits that other PEs may be to blame for are below */

#include <gdr/impl/arch/dev.h>
/* From here on each use is a site of its own. */
#define gdri_fence_nic() WEAK_FENCE("fence_nic", rl::mo_acq_rel)
#define gdri_fence_release_nic() WEAK_FENCE("fence_release_nic", rl::mo_release)
#include <gdr/impl/queue/publish.h>
int gdri_wait_step(struct gdri_dev *dev, struct gdri_waiter *w);
void gdri_wait_end(struct gdri_dev *dev, struct gdri_waiter *w);
void gdri_wait_leave(struct gdri_dev *dev, struct gdri_waiter *w);
void gdri_wait_lost(struct gdri_dev *dev, struct gdri_waiter *w, int status);
#include <gdr/impl/api/order.h>

#define WEAK_POSTERS 5
#define WEAK_NIC WEAK_POSTERS
#define WEAK_THREADS (WEAK_POSTERS + 1)
#define WEAK_BLOCKS 160 /* that one run posts at most */
#define WEAK_DEPTH 128
#define WEAK_CQES 8
#define WEAK_START 62 /* the window of marks wraps and a batch ends on the way */
#define WEAK_STEPS 20000

enum { WEAK_ONE = 1, WEAK_TWO = 2, WEAK_GROUP = 4 }; /* what is posted: a WQE, one of two blocks, several WQEs */

struct weak_scenario {
	const char *name;
	int posters, posts, kinds, depth;
	int ring, spins, relay; /* cq_mask, GDRI_SPINS, GDRI_RELAY_AHEAD */
	int waits;   /* posts are waited for */
	int reuse;   /* races of the NIC's reading with the writing behind it; else blocks are new ones each time */
	int fails;   /* this block ends the queue, -1: none */
	int flushes; /* those behind it tell so */
	int fences;  /* between posts */
	unsigned flags;
	int expires; /* waits for room, at any time */
	int far;     /* cq_far */
};

static const struct weak_scenario weak_scenarios[] = {
	{"relay", 3, 2, WEAK_ONE | WEAK_TWO | WEAK_GROUP, 8, 0, 1, 4, 0, 0, -1, 0, 0, 0, 0, 0},
	{"marks", 3, 2, WEAK_ONE | WEAK_GROUP, 8, 0, 1, 0, 0, 0, -1, 0, 0, 0, 0, 0},
	{"window", 5, 2, WEAK_GROUP, 128, 0, 8, 0, 0, 0, -1, 0, 0, 0, 0, 0},
	{"host", 3, 2, WEAK_ONE | WEAK_TWO, 8, 0, 0, 0, 0, 0, -1, 0, 0, 0, 0, 0},
	{"four", 4, 1, WEAK_ONE | WEAK_TWO, 8, 1, 1, 2, 0, 0, -1, 0, 0, 0, 0, 0},
	{"wait", 2, 3, WEAK_ONE | WEAK_TWO, 8, 0, 1, 4, 1, 0, -1, 0, 0, 0, 0, 0},
	{"ring", 3, 3, WEAK_ONE, 4, 1, 1, 4, 1, 0, -1, 0, 0, 0, 0, 0},
	{"reuse", 3, 3, WEAK_ONE, 4, 1, 1, 4, 1, 1, -1, 0, 0, 0, 0, 0},
	{"laps", 5, 8, WEAK_ONE, 4, 1, 0, 4, 1, 0, -1, 0, 0, 0, 0, 0}, /* entries as of two laps before */
	{"far", 3, 3, WEAK_ONE, 4, 1, 1, 4, 1, 1, -1, 0, 0, 0, 0, 1},
	{"turns", 4, 3, WEAK_ONE | WEAK_GROUP, 8, 0, 1, 4, 0, 1, -1, 0, 0, 0, 0, 0},
	{"groups", 4, 3, WEAK_GROUP, 8, 0, 1, 4, 0, 1, -1, 0, 0, 0, 0, 0},
	{"expires", 4, 3, WEAK_ONE | WEAK_GROUP, 8, 0, 1, 4, 0, 1, -1, 0, 0, 0, 1, 0},
	{"error", 3, 2, WEAK_ONE, 8, 1, 1, 4, 1, 0, 2, 0, 0, 0, 0, 0},
	{"error1", 3, 2, WEAK_ONE, 8, 0, 1, 4, 1, 0, 2, 0, 0, 0, 0, 0},
	{"last", 2, 1, WEAK_GROUP, 8, 0, 1, 4, 1, 0, 3, 0, 0, 0, 0, 0}, /* of two groups, the second one's last block */
	{"flush", 3, 3, WEAK_ONE, 8, 0, 1, 4, 0, 0, 1, 1, 0, 0, 0, 0},
	{"fence", 3, 2, WEAK_ONE, 8, 1, 1, 4, 0, 0, -1, 0, 1, 0, 0, 0},
	{"rings", 2, 3, WEAK_ONE, 8, 0, 1, 0, 0, 0, -1, 0, 0, GDRI_DEV_HOST_RINGS, 0, 0},
	{"early", 3, 2, WEAK_ONE | WEAK_GROUP, 8, 0, 1, 0, 0, 0, -1, 0, 0, GDRI_DEV_EARLY, 0, 0},
	{"direct", 3, 2, WEAK_ONE | WEAK_TWO | WEAK_GROUP, 8, 0, 1, 4, 0, 0, -1, 0, 0, GDRI_DEV_NO_RECORD, 0, 0},
};
static const struct weak_scenario *scen;

#include "tests/weak/sites.hpp"
#include "tests/weak/memory.hpp"
#include "tests/weak/library.hpp"
#include "tests/weak/poster.hpp"
#include "tests/weak/nic.hpp"

struct weak_queue : rl::test_suite<weak_queue, WEAK_THREADS> {
	struct weak_objects objects;

	static void clear_memory()
	{
		struct gdri_qp *qp = &weak_mem.qp;

		memset((void *)&weak_mem, 0, sizeof(weak_mem));
		memset(&truth, 0, sizeof(truth));
		qp->sq = weak_mem.sq;
		qp->db = &weak_mem.db;
		qp->dbrec = scen->flags & GDRI_DEV_NO_RECORD ? NULL : &weak_mem.dbrec;
		qp->cq = weak_mem.cq;
		qp->depth = (uint32_t)scen->depth;
		qp->cq_mask = scen->ring ? qp->depth - 1 : 0;
		qp->cq_far = (uint32_t)scen->far;
		weak_mem.dev.qps = qp;
		weak_mem.dev.used = &weak_mem.used;
		weak_mem.dev.errors = weak_mem.errors;
		weak_mem.dev.abort = &weak_mem.abort;
		weak_mem.dev.timeout_ns = 8 * GDRI_TURN_NS; /* its clock stands still */
		weak_mem.dev.n_pes = 1;
		weak_mem.dev.n_slots = 1;
		weak_mem.dev.flags = scen->flags;
	}

	void start_word(int which, uint64_t v)
	{
		objects.word[which].store(v, rl::mo_relaxed, $);
	}

	void before()
	{
		uint64_t room = rl::rand(2) ? (uint64_t)scen->depth - 1 : 0; /* a queue that was used, or not */
		uint64_t i;

		obj = &objects;
		clear_memory();
		for (i = 0; i < W_WORDS; i++)
			start_word((int)i, 0);
		start_word(W_RSVD, WEAK_START);
		start_word(W_READY, WEAK_START << 1);
		start_word(W_DONE, WEAK_START);
		start_word(W_LIMIT, WEAK_START + room);
		start_word(W_ROOM, room);
		start_word(W_DBREC, gdri_bswap32(WEAK_START));
		start_word(W_DB, gdri_bswap32(WEAK_START) >> 8);
		for (i = 0; i < WEAK_CQES; i++) /* no completion yet; of one entry, the last one before */
			start_word(W_TAIL + (int)i, scen->ring ? (uint64_t)GDRI_CQE_INVALID << 28
							       : gdri_bswap16(WEAK_START - 1));
		truth.taken = truth.executed = WEAK_START;
		truth.failed = scen->fails < 0 ? ~0ull : WEAK_START + (uint64_t)scen->fails;
		for (i = 0; i < (uint64_t)scen->depth; i++)
			truth.next[(WEAK_START + i) % (uint64_t)scen->depth] = WEAK_START + i;
		for (i = 0; i < WEAK_BLOCKS; i++) /* the NIC reads both parts of any entry */
			objects.block[i][1]($) = 0;
	}

	void thread(unsigned index)
	{
		if (index == WEAK_NIC) {
			weak_nic nic;
			nic.run();
		} else if ((int)index < scen->posters) {
			weak_poster((int)index);
		}
	}

	/* Posts of one thread, around a fence. */
	static void check_fences(int thread)
	{
		int i, k, found;

		for (i = 1; i < truth.n_posted[thread]; i++) {
			found = 0;
			for (k = truth.posted[thread][i - 1] + 1; k <= truth.posted[thread][i]; k++)
				found |= truth.block[k].fm;
			RL_ASSERT(found);
		}
	}

	uint64_t now(int which)
	{
		return objects.word[which].load(rl::mo_relaxed, $);
	}

	void after()
	{
		int i;

		RL_ASSERT(!gdri_gate_count(now(W_GATE), 0) && !gdri_gate_count(now(W_GATE), 1));
		if (scen->fails < 0) {
			RL_ASSERT(!now(W_MARKS) && now(W_READY) >> 1 == now(W_RSVD));
			RL_ASSERT(now(W_ROOM) + now(W_RSVD) == now(W_LIMIT));
		}
		for (i = 0; scen->fences && i < scen->posters; i++)
			check_fences(i);
	}
};

/* In a process of its own: Relacy replaces malloc, and a run that fails leaves its objects behind. */
static void weak_child(const struct weak_scenario *s, const struct weak_site *out, unsigned long first,
		       unsigned long runs, int tell)
{
	std::ostream none(NULL);
	rl::test_params params;

	scen = s;
	weak_out = out;
	weak_spins = s->spins;
	weak_relay = (uint32_t)s->relay;
	params.initial_state = std::to_string(first);
	params.iteration_count = first + runs - 1; /* the number of the last one */
	params.execution_depth_limit = WEAK_STEPS;
	params.output_stream = tell ? &std::cout : &none;
	params.progress_stream = &none;
	weak_told->result = rl::test_result_success;
	rl::simulate<weak_queue>(params);
	weak_told->result = params.test_result;
	weak_told->runs = params.stop_iteration - first + 1;
	std::cout.flush();
	_exit(0);
}

/* Returns NULL, or what went wrong; *runs: how many there were. first: the number of the first run, which is the seed
 * of its schedule. tell: prints the run that failed. */
static const char *weak_run(const struct weak_scenario *s, const struct weak_site *out, unsigned long first,
			    unsigned long *runs, int tell)
{
	int status;
	pid_t child;

	weak_told->runs = 0;
	fflush(stdout);
	child = fork();
	if (!child)
		weak_child(s, out, first, *runs, tell);
	waitpid(child, &status, 0);
	*runs = weak_told->runs;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return "it crashed";
	return weak_told->result == rl::test_result_success ? NULL : rl::test_result_str(weak_told->result);
}

#include "tests/weak/rows.hpp"

static const struct weak_scenario *weak_find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(weak_scenarios) / sizeof(*weak_scenarios); i++)
		if (!strcmp(weak_scenarios[i].name, name))
			return &weak_scenarios[i];
	fprintf(stderr, "no scenario %s\n", name);
	exit(2);
}

static const struct weak_site *weak_find_site(const std::string &name)
{
	const struct weak_site *s;

	for (s = __start_weak_sites; s < __stop_weak_sites; s++)
		if (weak_name(s) == name)
			return s;
	return NULL;
}

static const struct weak_row *weak_find_row(const std::string &name)
{
	size_t i;

	for (i = 0; i < sizeof(weak_rows) / sizeof(*weak_rows); i++)
		if (name == weak_rows[i].site)
			return &weak_rows[i];
	return NULL;
}

/* As it stands. */
static int weak_holds(const struct weak_scenario *s, unsigned long runs)
{
	const char *wrong = weak_run(s, NULL, 1, &runs, 1);

	if (wrong)
		printf("FAIL %s: %s in run %lu\n", s->name, wrong, runs);
	else
		printf("ok   %s: holds, %lu runs\n", s->name, runs);
	fflush(stdout);
	return wrong != NULL;
}

/* Runs that are far from each other: a row that fails by chance does not from all of them. */
#define WEAK_STARTS 8

/* Without one, from each start: the most runs that it took to fail. *wrong: how; NULL where it holds from a start. */
static unsigned long weak_runs_without(const struct weak_site *site, const struct weak_scenario *s, unsigned long most,
				       const char **wrong)
{
	unsigned long slowest = 0, runs, i;

	for (i = 0; i < WEAK_STARTS; i++) {
		runs = most;
		*wrong = weak_run(s, site, 1 + i * 1000000, &runs, 0);
		slowest = runs > slowest ? runs : slowest;
		if (!*wrong)
			break;
	}
	return slowest;
}

/* 0: as the row says. */
static int weak_row_fails(const struct weak_row *row, unsigned long most)
{
	const struct weak_site *site = weak_find_site(row->site);
	const char *wrong;
	unsigned long runs;

	if (!site) {
		printf("FAIL %s: there is no such acquire, release or fence (any more)\n", row->site);
		return 1;
	}
	if (!row->scenario) {
		printf("none without %s: %s\n", row->site, row->why);
		return 0;
	}
	runs = weak_runs_without(site, weak_find(row->scenario), most, &wrong);
	if (wrong)
		printf("ok   without %s: %s fails as it must, %s within %lu runs\n", row->site, row->scenario, wrong,
		       runs);
	else
		printf("FAIL without %s: %s holds for %lu runs\n", row->site, row->scenario, runs);
	fflush(stdout);
	return !wrong;
}

/* Who has no row. */
static int weak_rows_missing(void)
{
	const struct weak_site *s;
	int failed = 0;

	for (s = __start_weak_sites; s < __stop_weak_sites; s++)
		if (weak_told->reached[s - __start_weak_sites] && !weak_find_row(weak_name(s))) {
			printf("FAIL %s (line %u): is reached and has no row in rows.hpp\n", weak_name(s).c_str(),
			       s->line);
			failed = 1;
		}
	return failed;
}

static int weak_all(unsigned long runs, unsigned long most)
{
	int failed = 0;
	size_t i;

	for (i = 0; i < sizeof(weak_scenarios) / sizeof(*weak_scenarios); i++)
		failed |= weak_holds(&weak_scenarios[i], runs);
	failed |= weak_rows_missing();
	for (i = 0; i < sizeof(weak_rows) / sizeof(*weak_rows); i++)
		failed |= weak_row_fails(&weak_rows[i], most);
	return failed;
}

/* To write rows: each site that is reached, and the runs that each scenario takes to fail without it. */
static int weak_explore(unsigned long most)
{
	size_t i, n = (size_t)(__stop_weak_sites - __start_weak_sites), k;
	unsigned long runs;
	const char *wrong;

	for (k = 0; k < sizeof(weak_scenarios) / sizeof(*weak_scenarios); k++) {
		runs = most / 10;
		weak_run(&weak_scenarios[k], NULL, 1, &runs, 0);
	}
	std::vector<unsigned char> reached(weak_told->reached, weak_told->reached + WEAK_SITES);
	for (i = 0; i < n; i++) {
		if (!reached[i])
			continue;
		printf("%s:", weak_name(&__start_weak_sites[i]).c_str());
		for (k = 0; k < sizeof(weak_scenarios) / sizeof(*weak_scenarios); k++) {
			runs = most;
			wrong = weak_run(&weak_scenarios[k], &__start_weak_sites[i], 1, &runs, 0);
			if (wrong)
				printf(" %s %lu (%s)", weak_scenarios[k].name, runs, wrong);
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}

/* queue RUNS MOST: each scenario so often, each row at most so often from each start
 * queue explore MOST
 * queue scenario NAME RUNS
 * queue without SITE NAME RUNS */
int main(int argc, char **argv)
{
	weak_told = (struct weak_told *)mmap(NULL, sizeof(*weak_told), PROT_READ | PROT_WRITE,
					     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (weak_told == MAP_FAILED || __stop_weak_sites - __start_weak_sites > WEAK_SITES)
		return 2;
	weak_map_words();
	if (argc == 3 && !strcmp(argv[1], "explore"))
		return weak_explore(strtoul(argv[2], NULL, 10));
	if (argc == 4 && !strcmp(argv[1], "scenario"))
		return weak_holds(weak_find(argv[2]), strtoul(argv[3], NULL, 10));
	if (argc == 5 && !strcmp(argv[1], "without")) {
		const struct weak_row row = {argv[2], argv[3], NULL};

		return weak_row_fails(&row, strtoul(argv[4], NULL, 10));
	}
	if (argc == 3)
		return weak_all(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10));
	fprintf(stderr, "usage: queue RUNS MOST | explore MOST | scenario NAME RUNS | without SITE NAME RUNS\n");
	return 2;
}
