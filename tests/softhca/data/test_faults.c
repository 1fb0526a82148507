/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault of the schedule is really produced, in a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"

enum { WAIT = 20000, POSTS = 8 };

struct scenario {
	const char *faults, *rank;
	unsigned good;	   /* completions before the error */
	unsigned sleep_ms; /* before the second half of the posts */
	uint8_t syndrome, vendor;
};

static const struct scenario scenarios[] = {
	{ "qp * wqe 5: error 0x13/0x88", NULL, 5, 0, 0x13, 0x88 },
	{ "qp 5 wqe 2: error 0x4/7; qp * wqe 6: error 1/1", NULL, 6, 0, 1, 1 },
	{ "drop all", NULL, 0, 0, 0x15, 0x81 },
	{ "qp * wqe 3: drop", NULL, 3, 0, 0x15, 0x81 },
	{ "mute at 300ms", NULL, 4, 600, 0x15, 0x81 },
	{ "pe 1: drop all", "0", POSTS, 0, 0, 0 },
	{ "pe 1: drop all", "1", 0, 0, 0x15, 0x81 },
	{ "pe 1: drop all", NULL, POSTS, 0, 0, 0 },
	{ "drop=0.2,dup=0.2,reorder=0.1,delay=20us,seed=4", NULL, POSTS, 0, 0, 0 },
};

static uint8_t mem[4096];

static int fail(const struct scenario *s, unsigned i, const struct sim_cqe *c)
{
	fprintf(stderr, "\"%s\" rank %s: completion %u is type %u syndrome 0x%x/0x%x\n", s->faults,
		s->rank ? s->rank : "none", i, c->type, c->syndrome, c->vendor);
	return 1;
}

static int play(const struct scenario *s)
{
	uint64_t at = (uint64_t)(uintptr_t)mem;
	struct sim_cqe c = { 0 };
	struct sim_qp *a, *b;
	uint32_t key;

	setenv("SOFTHCA_FAULTS", s->faults, 1);
	unsetenv("PMIX_RANK");
	if (s->rank)
		setenv("PMIX_RANK", s->rank, 1);
	sim_init();
	key = sim_mr(mem, sizeof(mem), 0xf, 1, at);
	a = sim_qp(6, SIM_CQ_RING);
	b = sim_qp(6, SIM_CQ_RING);
	a->qp.ack_timeout = b->qp.ack_timeout = 10;
	sim_pair(a, b);
	for (unsigned i = 0; i < POSTS; i++) {
		struct timespec t = { .tv_nsec = (long)s->sleep_ms * 1000000 };

		if (i == POSTS / 2)
			nanosleep(&t, NULL);
		sim_write(a, at + 64, key, mem, 64, key, 1);
		sim_ring(a);
		if (!sim_poll(a, &c, WAIT))
			return fail(s, i, &c);
		if (i < s->good && c.type)
			return fail(s, i, &c);
		if (i == s->good && (c.syndrome != s->syndrome || c.vendor != s->vendor))
			return fail(s, i, &c);
		if (i > s->good && c.syndrome != SYND_FLUSH)
			return fail(s, i, &c);
	}
	return 0;
}

/* A schedule that cannot be read must not start a run without faults. */
static int refuse(void)
{
	setenv("SOFTHCA_FAULTS", "dorp=1", 1);
	return engine_start() == 0;
}

static int in_child(const struct scenario *s)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(s ? play(s) : refuse());
	return waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status);
}

int main(void)
{
	int bad = in_child(NULL);

	if (bad)
		fprintf(stderr, "a malformed schedule was taken\n");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		bad |= in_child(&scenarios[i]);
	return bad;
}
