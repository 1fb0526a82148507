/* SPDX-License-Identifier: BSD-3-Clause */
/* The fault language: what it takes and means, and what it refuses, where, and
 * with which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "softhca/faults/faults_plan.h"

static struct fault_plan plan;

static void test_taken(void **state)
{
	static const char *good[] = {
		"", " ", "drop=1e-3", "drop=1e-3,seed=7,dup=0.5,reorder=0,delay=50us", "drop all",
		"qp * wqe 5: error 0x13/0x88", "qp 0x106 wqe 70000: drop", "mute at 1s",
		"pe 3: mute at 500ms; pe 1 : drop all", "drop=1; ", " delay = 1.5ms ",
		"drop=1e-3,reorder=5,dup=1e-4,delay=50us; qp 0x106 wqe 70000: error 0x15/0x81; "
		"link down at 2s for 500ms; peer 3 mute at 1s",
		"mute", "mute for 1s", "link down", "link down at wqe 100 for 20ms",
		"gid shuffle", "gid shuffle at 1s for 1s",
		"corrupt=.01 at 1s for 2s", "qp 5: drop=0.5,delay=1us", "qp * peer 2 dup=1",
		"peer 10.0.0.2: drop=1", "peer [fe80::1] mute", "pe 0: peer 1: qp 7: mute at wqe 3",
		"slow=1us", "rate=10MB/s", "rate=1.5GB/s,slow=0s", "doorbell=1ms,cqe=20us",
		"first_wqe=0xfffffff0,first_cqe=4294967295,first_psn=0xfffff0",
		"drop=0e999", "refuse mr 1", "refuse qp after 4", "refuse umem 18446744073709551615",
		"pe 2: refuse cq after 0", "reorder=1000", "reorder=1", "drop=1\n;\tdup=0",
	};
	char err[400];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
		if (faults_check(good[i], err, sizeof(err)))
			fail_msg("\"%s\": %s", good[i], err);
}

/* The text, the character at which it is wrong, a part of what is said. */
static const struct {
	const char *text;
	unsigned at;
	const char *says;
} refused[] = {
	{"drop", 5, "'='"},
	{"drop=", 6, "a number"},
	{"drop=2", 6, "0 to 1"},
	{"drop=1e999", 6, "0 to 1"},
	{"drop=-1", 6, "a number"},
	{"drop=1e-3x", 10, "';'"},
	{"drop=nan", 6, "a number"},
	{"drop=0x1", 7, "';'"},
	{"dropp=1", 1, "expected drop, dup, reorder, corrupt, delay"},
	{"moot", 1, "mute, link, gid, refuse"},
	{"drop=1,drop=1", 8, "twice"},
	{"reorder=1.5", 9, "depth from 2 to 1000"},
	{"reorder=1001", 9, "depth from 2 to 1000"},
	{"delay=5", 8, "ns, us, ms or s"},
	{"delay=5m", 8, "ns, us, ms or s"},
	{"delay=5 parsecs", 9, "ns, us, ms or s"},
	{"delay=1e9s", 7, "too large"},
	{"rate=10", 8, "MB/s"},
	{"rate=0B/s", 6, "at least 1 B/s"},
	{"seed=", 6, "a number"},
	{"seed=1.5", 6, "whole number"},
	{"seed=0x", 6, "a number"},
	{"seed=99999999999999999999999", 6, "from 0 to"},
	{"qp 5: seed=1", 7, "neither qp nor peer"},
	{"seed=1 at 2s", 8, "at all times"},
	{"first_psn=0x1000000", 11, "from 0 to 16777215"},
	{"peer 1: first_psn=0", 9, "neither qp nor peer"},
	{"qp wqe 5: drop", 4, "a number"},
	{"qp * wqe: drop", 9, "a number"},
	{"qp * wqe 5 drop", 12, "':'"},
	{"qp * wqe 5: vanish", 13, "error or drop"},
	{"qp * wqe 5: error 0x13", 23, "'/'"},
	{"qp * wqe 5: error 0x13/", 24, "a number"},
	{"qp * wqe 5: error 0x100/0", 19, "from 1 to 255"},
	{"qp * wqe 5: error 0/0", 19, "from 1 to 255"},
	{"qp 0x1000000 wqe 1: drop", 4, "from 0 to 16777215"},
	{"qp 1 qp 2 mute", 9, "a second qp"},
	{"peer 1 peer 2 mute", 13, "a second peer"},
	{"peer 300.0.0.1 mute", 6, "whole number"},
	{"peer [::1 mute", 6, "a number"},
	{"pe 1: pe 2: mute", 10, "a second pe"},
	{"wqe 5: drop", 1, "qp N or qp *"},
	{"mute at", 8, "a number"},
	{"mute at soon", 9, "a number"},
	{"mute at wqe", 12, "a number"},
	{"mute for 0s", 12, "no time"},
	{"link", 5, "'down'"},
	{"link up", 6, "'down'"},
	{"qp 5 link down", 6, "neither qp nor peer"},
	{"refuse", 7, "pd, mr, umem, cq, qp, srq, ah or uar"},
	{"refuse mr", 10, "a number"},
	{"refuse mr 0", 11, "from 1 to"},
	{"peer 1: refuse mr 1", 9, "neither qp nor peer"},
	{"pe : drop all", 4, "a number"},
	{"pe 1 drop all", 6, "':'"},
	{"drop all drop all", 10, "';'"},
	{"drop=1,", 8, "expected drop"},
	{";;", 1, "expected drop"},
	{"drop=1 2", 8, "';'"},
	/* Clauses for other ranks are read as strictly. */
	{"pe 77: drop", 12, "'='"},
};

static void test_refused(void **state)
{
	char err[400], place[40];

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (!faults_check(refused[i].text, err, sizeof(err)))
			fail_msg("\"%s\" was taken", refused[i].text);
		snprintf(place, sizeof(place), "at character %u:", refused[i].at);
		if (!strstr(err, place) || !strstr(err, refused[i].says))
			fail_msg("\"%s\": expected \"%s\" %s, got: %s", refused[i].text,
				 refused[i].says, place, err);
	}
	assert_int_not_equal(faults_check("drop=", NULL, 0), 0);
}

static const struct fault_clause *only(const char *text)
{
	char err[400];
	uint32_t rank = 2;

	if (faults_parse(text, &rank, &plan, err, sizeof(err)) || plan.n != 1)
		fail_msg("\"%s\": %u clauses, %s", text, plan.n, err);
	return &plan.clause[0];
}

static void test_meaning(void **state)
{
	const struct fault_clause *c;

	(void)state;
	c = only("pe 2: qp 0x106 peer 7: drop=0.25,delay=1.5us at wqe 9 for 2ms");
	assert_true(c->of_qp && c->qpn == 0x106 && c->of_peer == PEER_RANK && c->rank == 7);
	assert_int_equal(c->value[SET_DROP], FAULT_ONE / 4);
	assert_int_equal(c->value[SET_DELAY], 1500);
	assert_true(c->at_wqe && !c->at_time && c->at == 9 && c->lasts == 2000000);
	assert_int_equal(c->set, 1u << SET_DROP | 1u << SET_DELAY);
	c = only("qp * wqe 70000: error 0x15/0x81");
	assert_true(c->kind == FAULT_ERROR && c->qpn == FAULT_ANY_QP && c->wqe == 70000);
	assert_true(c->syndrome == 0x15 && c->vendor == 0x81);
	c = only("qp 3 wqe 60: drop");
	assert_true(c->kind == FAULT_MUTE && c->at_wqe && c->at == 60 && c->qpn == 3);
	c = only("link down at 2s for 500ms");
	assert_true(c->kind == FAULT_LINK && c->at_time && c->at == 2000000000 &&
		    c->lasts == 500000000);
	c = only("peer 10.1.2.3 mute");
	assert_int_equal(c->of_peer, PEER_ADDRESS);
	assert_memory_equal(c->addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\1\2\3", 16);
	c = only("reorder=5");
	assert_true(c->value[SET_REORDER_DEPTH] == 5 && c->value[SET_REORDER] == 0);
	c = only("reorder=1");
	assert_true(c->value[SET_REORDER_DEPTH] == 0 && c->value[SET_REORDER] == FAULT_ONE);
	c = only("rate=1.5MB/s");
	assert_int_equal(c->value[SET_RATE], 1500000);
	c = only("pe 1: drop all; refuse qp after 3"); /* the first is another's */
	assert_true(c->kind == FAULT_REFUSE && c->object == FAULT_QP && c->after && c->n == 3);
}

/* 64 clauses are room enough for a rank; one for each of many ranks is no matter. */
static void test_many(void **state)
{
	char text[8192] = "", err[400];
	uint32_t rank = 5;

	(void)state;
	for (unsigned i = 0; i < 200; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "pe %u: drop=1;", i);
	assert_int_equal(faults_parse(text, &rank, &plan, err, sizeof(err)), 0);
	assert_int_equal(plan.n, 1);
	text[0] = 0;
	for (unsigned i = 0; i < 65; i++)
		strcat(text, "mute;");
	assert_int_not_equal(faults_check(text, err, sizeof(err)), 0);
	assert_non_null(strstr(err, "more than 64 clauses at character 321"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_taken),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_meaning),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
