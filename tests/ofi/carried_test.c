// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs in one process, in a ping-pong whose waits make the rounds of the proxies, as if there were cores to spare:
 * a message and the reply to the one before it go as one, and a reply goes by itself where none of its PE waits or
 * posts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <gdr/impl/arch/arch.h>

#include "runtime/ofi/ofi.h"
#include "tests/nic/pair.h"

#define WORD	0x1000u /* offset in each heap */
#define ROUNDS	500u
#define SECONDS 30

static uint64_t put(struct pair *p, int from, uint64_t value)
{
	struct gdri_qp *qp = &p->pe[from].qps[!from];
	struct pair_request r = {.opcode = GDRI_OP_WRITE,
				 .raddr = WORD,
				 .rkey = gdri_from_be32(qp->rkey_data),
				 .len = sizeof(value),
				 .inline_data = &value};

	return pair_post(qp, &r, 1);
}

static void drive(struct pair *p, int pe)
{
	p->pe[pe].nic->ops->drive(p->pe[pe].nic, true);
}

/* As a kernel of the PE does that waits for the value, which the other one has just posted. */
static void await(struct pair *p, int pe, uint64_t value)
{
	const uint64_t *word = (const uint64_t *)(const void *)(p->pe[pe].heap + WORD);
	time_t end = time(NULL) + SECONDS;

	drive(p, !pe);
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) { /* pairs with the fence behind a command */
		assert_true(time(NULL) < end);
		drive(p, pe);
	}
}

static void expect_done(struct pair *p, int from, uint64_t index)
{
	const struct gdri_cqe *cqe;

	assert_int_equal(pair_wait(&p->pe[from].qps[!from], index, &cqe), GDRI_CQE_REQ);
}

static uint64_t carried(struct pair *p, int pe)
{
	struct gdri_ofi_proxy *t = ((struct gdri_ofi_net *)(void *)p->pe[pe].nic)->proxies[0]; /* its first member */
	uint64_t n;

	pthread_mutex_lock(&t->engine);
	n = t->n_carried;
	pthread_mutex_unlock(&t->engine);
	return n;
}

static void test_carried(void **state)
{
	static const char *const settings[] = {"QP_DEPTH=128", "QPS_PER_PE=1", NULL};
	time_t end = time(NULL) + SECONDS;
	struct gdri_options opt;
	uint64_t ping, pong, i;
	struct pair p;

	(void)state;
	pair_options(&opt, settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	for (i = 1; i <= ROUNDS || (!carried(&p, 1) && time(NULL) < end); i++) {
		ping = put(&p, 0, i);
		await(&p, 1, i);
		pong = put(&p, 1, i);
		await(&p, 0, i);
		expect_done(&p, 0, ping);
		expect_done(&p, 1, pong); /* whose reply PE 0 has left behind, or its thread has not */
	}
	assert_true(carried(&p, 1));
	pair_down(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carried),
	};

	return cmocka_run_group_tests_name("ofi_carried", tests, NULL, NULL);
}
