/* SPDX-License-Identifier: BSD-3-Clause */
/* Each fault of the schedule is really produced, in a process of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <endian.h>

#include "sim.h"
#include "softhca/transport/rc.h"

enum { WAIT = 20000, POSTS = 8 };

struct scenario {
	const char *faults, *rank;
	unsigned good;	   /* completions before the error */
	uint8_t syndrome, vendor;
};

static const struct scenario scenarios[] = {
	{ "qp * wqe 5: error 0x13/0x88", NULL, 5, 0x13, 0x88 },
	{ "qp 5 wqe 2: error 0x4/7; qp * wqe 6: error 1/1", NULL, 6, 1, 1 },
	{ "drop all", NULL, 0, 0x15, 0x81 },
	{ "qp * wqe 3: drop", NULL, 3, 0x15, 0x81 },
	{ "mute at 0s", NULL, 0, 0x15, 0x81 },
	{ "pe 1: drop all", "0", POSTS, 0, 0 },
	{ "pe 1: drop all", "1", 0, 0x15, 0x81 },
	{ "pe 1: drop all", NULL, POSTS, 0, 0 },
	{ "drop=0.1,dup=0.2,reorder=0.1,delay=20us,seed=4", NULL, POSTS, 0, 0 },
	{ "qp * mute at wqe 3 for 30ms", NULL, POSTS, 0, 0 },
	{ "mute at wqe 3", NULL, 3, 0x15, 0x81 },
	{ "peer 2: drop=1", "2", 0, 0x15, 0x81 }, /* it is its own peer */
	{ "peer 3: drop=1", "2", POSTS, 0, 0 },
	{ "corrupt=1", NULL, 0, 0x15, 0x81 },
	{ "drop=1; drop=0", NULL, POSTS, 0, 0 },
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

/* ---- faults that leave traces of their own ---- */

/* Relaxed: counters are written by the engine, whatever else it does. */
#define STAT(field) __atomic_load_n(&hca_stats.field, __ATOMIC_RELAXED)

static struct sim_qp *one, *two;
static uint32_t mem_key;

static void connect_two(const char *faults, unsigned mtu)
{
	setenv("SOFTHCA_FAULTS", faults, 1);
	sim_init();
	mem_key = sim_mr(mem, sizeof(mem), 0xf, 1, (uint64_t)(uintptr_t)mem);
	one = sim_qp(6, SIM_CQ_RING);
	two = sim_qp(6, SIM_CQ_RING);
	one->qp.mtu = two->qp.mtu = mtu;
	one->qp.ack_timeout = two->qp.ack_timeout = 10;
	sim_pair(one, two);
}

/* Posts n writes of len bytes at once; how many complete well. */
static unsigned writes(unsigned n, uint32_t len)
{
	struct sim_cqe c;
	unsigned good = 0;

	for (unsigned i = 0; i < n; i++)
		sim_write(one, (uint64_t)(uintptr_t)mem + sizeof(mem) / 2, mem_key, mem, len, mem_key, 1);
	sim_ring(one);
	while (good < n && sim_poll(one, &c, WAIT) && !c.type)
		good++;
	return good;
}

static uint64_t took_ms(uint64_t since)
{
	return (sim_now() - since) / 1000000;
}

static int expect(bool ok, const char *what)
{
	if (!ok)
		fprintf(stderr, "%s\n", what);
	return !ok;
}

static int corrupt(void)
{
	connect_two("corrupt=0.1,seed=2", 256);
	for (unsigned i = 0; i < sizeof(mem) / 2; i++)
		mem[i] = (uint8_t)(i * 7);
	return expect(writes(32, 2048) == 32, "corrupt: a write failed") |
	       expect(STAT(icrc_errors) > 10, "corrupt: the ICRC caught nothing") |
	       expect(!memcmp(mem, mem + 2048, 2048), "corrupt: wrong data");
}

static int reorder(void)
{
	connect_two("reorder=5,seed=2", 256);
	return expect(writes(32, 2048) == 32, "reorder: a write failed") |
	       expect(STAT(naks_tx) > 0, "reorder: nothing came out of order");
}

static int slow(void)
{
	uint64_t start;

	connect_two("slow=5ms", 1024);
	start = sim_now();
	return expect(writes(8, 64) == 8, "slow: a write failed") |
	       expect(took_ms(start) >= 35, "slow: it was not");
}

static int doorbell(void)
{
	uint64_t start;

	connect_two("doorbell=20ms", 1024);
	start = sim_now();
	return expect(writes(1, 64) == 1 && took_ms(start) >= 20, "doorbell: the first not late") |
	       expect(writes(4, 64) == 4 && took_ms(start) >= 40, "doorbell: the second not late");
}

/* Two queues, one CQ, posted in turn: each in order, together not. */
static int disorder(void)
{
	unsigned last[2] = { 0 }, latest = 0, swapped = 0;
	struct sim_cqe c;

	connect_two("cqe=3ms,seed=5", 1024);
	hca_lock();
	two->qp.scq = &one->scq;
	hca_unlock();
	for (unsigned i = 0; i < 32; i++) {
		for (unsigned k = 0; k < 2; k++) {
			struct sim_qp *q = k ? two : one;

			sim_write(q, (uint64_t)(uintptr_t)mem + 64, mem_key, mem, 8, mem_key, 1);
			sim_ring(q);
		}
	}
	for (unsigned i = 0; i < 64; i++) {
		unsigned k;

		if (!sim_poll(one, &c, WAIT) || c.type)
			return expect(false, "cqe: a write failed");
		k = c.qpn == two->qp.qpn;
		if (c.counter != last[k]++)
			return expect(false, "cqe: out of order in a queue");
		swapped += c.counter * 2 + k < latest;
		latest = c.counter * 2 + k > latest ? c.counter * 2 + k : latest;
	}
	return expect(swapped > 0, "cqe: all in the order posted");
}

static int link_down(void)
{
	connect_two("link down at wqe 4 for 40ms", 1024);
	return expect(writes(8, 64) == 8, "link: a write failed") |
	       expect(STAT(retransmits) > 0, "link: it was not down") |
	       expect(sim_port_events(true) == 1 && sim_port_events(false) == 1, "link: events") |
	       expect(!faults_link_down(), "link: still down");
}

/* 4 packets each: the PSN passes 2^24. */
static int wrap_psn(void)
{
	uint32_t una;
	bool good;

	connect_two("first_psn=0xffffe0,drop=0.05,reorder=0.05,seed=3", 256);
	for (unsigned i = 0; i < sizeof(mem) / 2; i++)
		mem[i] = (uint8_t)(i * 5);
	good = writes(32, 1024) == 32;
	hca_lock();
	una = one->qp.rc->psn_una;
	hca_unlock();
	return expect(good, "first_psn: a write failed") |
	       expect(una == 96, "first_psn: not where 128 packets lead") |
	       expect(!memcmp(mem, mem + 2048, 1024), "first_psn: wrong data");
}

/* WQE index and CQE count pass 2^16 and 2^32, as a control half with first_wqe
 * and first_cqe sets them. */
static int wrap_index(void)
{
	const uint32_t first = 0xffffffe0;
	uint16_t ci;

	connect_two("drop=0.05,seed=3", 256);
	hca_lock();
	one->qp.sq_first = one->qp.sq_ci = one->qp.sq_pi = (uint16_t)first;
	one->scq.pi = one->ci = one->pi = first;
	one->dbrec[1] = htobe32(first & 0xffff);
	one->dbrec[2] = htobe32(first & 0xffffff);
	hca_unlock();
	for (unsigned i = 0; i < 4; i++)
		if (writes(32, 512) != 32)
			return expect(false, "first_wqe: a write failed");
	hca_lock();
	ci = one->qp.sq_ci;
	hca_unlock();
	return expect(one->ci == first + 128 && ci == 96, "first_wqe: not the index");
}

static int (*const tests[])(void) = { corrupt, reorder, slow, doorbell, disorder,
				      link_down, wrap_psn, wrap_index };

/* A schedule that cannot be read must not start a run without faults. */
static int refuse(void)
{
	setenv("SOFTHCA_FAULTS", "dorp=1", 1);
	return engine_start() == 0;
}

static int in_child(const struct scenario *s, int (*test)(void))
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(s ? play(s) : test());
	return waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status);
}

int main(void)
{
	int bad = in_child(NULL, refuse);

	if (bad)
		fprintf(stderr, "a malformed schedule was taken\n");
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(*scenarios); i++)
		bad |= in_child(&scenarios[i], NULL);
	for (size_t i = 0; i < sizeof(tests) / sizeof(*tests); i++)
		bad |= in_child(NULL, tests[i]);
	return bad;
}
