/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs that share a receive queue, receives that come late, a wire that loses, doubles and
 * delays, all by a clock that the test sets: everything completes, in order and without error, and each
 * atomic is carried out once. test_storm [SEEDS [FIRST]]. */
#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fakewire.h"
#include "softhca/memory/guest.h"
#include "softhca/transport/rc.h"

enum {
	QPS = 4, OPS = 60, SIZE = 20000, MTU = 256, BUF = 1 << 16,
	LOG_SQ = 6, DEPTH = 32, SRQ = 256, SRQ_SHIFT = 6,
};

#define PATIENCE 10000000000ull /* ns without a completion */

struct side {
	struct sim_qp *qp[QPS];
	struct hca_srq srq;
	uint32_t srq_dbrec[2];
	unsigned posted[QPS], done[QPS];
	unsigned receives, expected, received;
	uint8_t *mem;
	uint32_t key;
	unsigned adds;
	uint8_t opcode[QPS][OPS];
};

static uint64_t now = 1000000000;
static struct side side[2];
static uint32_t rng;
static unsigned n_seeds = 4, first_seed = 1;

/* Stands before that of the C library. A look takes time: waits end. */
int clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	now++;
	t->tv_sec = (time_t)(now / 1000000000);
	t->tv_nsec = (long)(now % 1000000000);
	return 0;
}

static unsigned draw(unsigned n)
{
	rng = rng * 1664525u + 1013904223u;
	return (unsigned)((uint64_t)(rng >> 8) * n >> 24);
}

static struct fake_fate fate(unsigned n, const struct packet *p)
{
	unsigned r = draw(1000);

	(void)n;
	(void)p;
	if (r < 10)
		return (struct fake_fate){ FAKE_DROP, 0 };
	if (r < 30)
		return (struct fake_fate){ FAKE_DUP, draw(100) };
	if (r < 50)
		return (struct fake_fate){ FAKE_LATE, draw(100) };
	return (struct fake_fate){ FAKE_PASS, 0 };
}

/* ---- posting ---- */

/* Entries are used in turn here: each leads to the next. */
static void post_receive(struct side *s)
{
	uint8_t *e = s->srq.buf + ((size_t)(s->receives % SRQ) << SRQ_SHIFT);
	uint64_t at = (uint64_t)(uintptr_t)s->mem;

	memset(e, 0, 1 << SRQ_SHIFT);
	put_be16(e + 2, (uint16_t)((s->receives + 1) % SRQ));
	put_be32(e + 16, SIZE);
	put_be32(e + 20, s->key);
	put_be64(e + 24, at);
	put_be32(e + 36, 0x100);
	s->receives++;
	s->srq_dbrec[0] = htobe32(s->receives & 0xffff);
}

static void post_one(struct side *s, struct side *to, unsigned q)
{
	struct sim_qp *qp = s->qp[q];
	uint64_t there = (uint64_t)(uintptr_t)to->mem;
	uint32_t len = draw(2) ? 1 + draw(200) : 1 + draw(SIZE);

	qp->fence = draw(8) ? 0 : 0x40;
	switch (draw(6)) {
	case 0:
		sim_write(qp, there, to->key, s->mem, len, s->key, 1);
		break;
	case 1:
		sim_write_imm(qp, there, to->key, s->mem, len, s->key, 1, 1);
		to->expected++;
		break;
	case 2:
	case 3:
		sim_send(qp, s->mem, len, s->key, 1);
		to->expected++;
		break;
	case 4:
		sim_read(qp, there, to->key, s->mem, len, s->key, 1);
		break;
	default:
		sim_fetch_add(qp, there + BUF - 8, to->key, s->mem + SIZE, s->key, 1, 1);
		s->adds++;
	}
	s->posted[q]++;
}

static void post(struct side *s, struct side *to)
{
	unsigned q = draw(QPS), n = 1 + draw(4);

	for (; n && s->posted[q] < OPS && s->posted[q] - s->done[q] < DEPTH; n--)
		post_one(s, to, q);
	sim_ring(s->qp[q]);
	if (!draw(4) && s->receives - s->received < SRQ - 1 && s->receives < s->expected)
		post_receive(s);
}

static bool poll_all(struct side *s)
{
	struct sim_cqe c;
	bool any = false;

	for (unsigned q = 0; q < QPS; q++) {
		for (; sim_poll(s->qp[q], &c, 0); any = true) {
			assert_int_equal(c.type, CQE_REQ);
			assert_int_equal(c.counter, s->done[q] & 0xffff);
			s->done[q]++;
		}
		for (; sim_poll_recv(s->qp[q], &c, 0); any = true) {
			assert_int_not_equal(c.type, CQE_RESP_ERR);
			s->received++;
		}
	}
	return any;
}

static bool finished(const struct side *s)
{
	for (unsigned q = 0; q < QPS; q++)
		if (s->done[q] < OPS)
			return false;
	return s->received == s->expected;
}

/* ---- a storm ---- */

static void begin(struct side *s)
{
	for (unsigned q = 0; q < QPS; q++) {
		sim_reset(s->qp[q]);
		s->posted[q] = s->done[q] = 0;
	}
	memset(s->srq_dbrec, 0, sizeof(s->srq_dbrec));
	s->srq.head = s->srq.consumed = 0;
	s->receives = s->expected = s->received = s->adds = 0;
	memset(s->mem, 0, BUF);
}

static void show(void)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct side *s = &side[i];

		printf("side %u: %u of %u received, %u posted\n", i, s->received, s->expected,
		       s->receives);
		for (unsigned q = 0; q < QPS; q++) {
			const struct hca_rc *rc = s->qp[q]->qp.rc;

			printf("  QP 0x%x: %u of %u done, una %x next %x window %u rnr %d retries %u "
			       "deadline %lld; expects %x nak_sent %d\n",
			       s->qp[q]->qp.qpn, s->done[q], s->posted[q], rc->psn_una, rc->psn_next,
			       rc->window, rc->rnr_until != 0, rc->retries,
			       (long long)(rc->deadline - now), rc->rs.epsn, rc->rs.nak_sent);
		}
	}
}

static void storm(uint32_t seed)
{
	uint64_t last, begun, longest = 0, timeouts = hca_stats.ack_timeouts;

	rng = seed * 2654435761u;
	fake_policy = NULL;
	fake_clear();
	begin(&side[0]);
	begin(&side[1]);
	for (unsigned q = 0; q < QPS; q++)
		sim_pair(side[0].qp[q], side[1].qp[q]);
	fake_policy = fate;
	begun = last = now;
	while (!finished(&side[0]) || !finished(&side[1])) {
		now += draw(300) ? 100 + draw(3000) : draw(60000000);
		engine_round();
		for (unsigned i = 0; i < 2; i++) {
			post(&side[i], &side[!i]);
			if (!poll_all(&side[i]))
				continue;
			if (now - last > longest)
				longest = now - last;
			last = now;
		}
		if (now - last > PATIENCE) {
			show();
			fail_msg("seed %u: no completion for %llu s", seed, PATIENCE / 1000000000);
		}
	}
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(*(uint64_t *)(void *)(side[i].mem + BUF - 8), side[!i].adds);
	if (getenv("STORM_TIMES"))
		printf("seed %u: %llu ms, longest pause %llu ms, %u packets, %llu timeouts\n", seed,
		       (unsigned long long)(now - begun) / 1000000,
		       (unsigned long long)longest / 1000000, fake_sent(),
		       (unsigned long long)(hca_stats.ack_timeouts - timeouts));
}

static void test_storms(void **state)
{
	(void)state;
	for (unsigned i = 0; i < n_seeds; i++)
		storm(first_seed + i);
}

static int setup(void **state)
{
	(void)state;
	sim_init_idle();
	for (unsigned i = 0; i < 2; i++) {
		struct side *s = &side[i];

		s->mem = aligned_alloc(4096, BUF);
		s->srq.buf = aligned_alloc(4096, SRQ << SRQ_SHIFT);
		if (!s->mem || !s->srq.buf)
			return -1;
		s->key = sim_mr(s->mem, BUF, 0xf, 1, (uint64_t)(uintptr_t)s->mem);
		s->srq.pdn = 1;
		s->srq.wqe_cnt = SRQ;
		s->srq.wqe_shift = SRQ_SHIFT;
		s->srq.dbrec = s->srq_dbrec;
		for (unsigned q = 0; q < QPS; q++) {
			s->qp[q] = sim_qp(LOG_SQ, SIM_CQ_RING);
			s->qp[q]->qp.srq = &s->srq;
			s->qp[q]->qp.mtu = MTU;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_storms) };

	if (argc > 1)
		n_seeds = (unsigned)atoi(argv[1]);
	if (argc > 2)
		first_seed = (unsigned)atoi(argv[2]);
	return cmocka_run_group_tests(tests, setup, NULL) ? 1 : 0;
}
