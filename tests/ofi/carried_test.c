// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs in one process, in a ping-pong whose waits make the rounds of the proxies, as if there were cores to spare:
 * a message and the reply to the one before it go as one, and a reply goes by itself where none of its PE waits or
 * posts. What need not be done before the thread that waits looks is left to the next round. */
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
#define ROUNDS	100u
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

static struct gdri_ofi_proxy *proxy(struct pair *p, int pe)
{
	return ((struct gdri_ofi_net *)(void *)p->pe[pe].nic)->proxies[0]; /* its first member */
}

/* The proxies' threads make no round until release(), and are there to send what others leave behind. */
static void hold(struct pair *p)
{
	for (int pe = 0; pe < PAIR_PES; pe++) {
		pthread_mutex_lock(&proxy(p, pe)->engine);
		proxy(p, pe)->watched = true;
	}
}

static void release(struct pair *p)
{
	for (int pe = 0; pe < PAIR_PES; pe++)
		pthread_mutex_unlock(&proxy(p, pe)->engine);
}

/* Where the thread comes between, the next round is made as if it had not. */
static void drive(struct pair *p, int pe)
{
	pthread_mutex_unlock(&proxy(p, pe)->engine);
	p->pe[pe].nic->ops->drive(p->pe[pe].nic, true);
	pthread_mutex_lock(&proxy(p, pe)->engine);
	proxy(p, pe)->watched = true;
}

/* As kernels do of which one waits for the value, which the other one has just posted. */
static void await(struct pair *p, int pe, uint64_t value)
{
	const uint64_t *word = (const uint64_t *)(const void *)(p->pe[pe].heap + WORD);
	time_t end = time(NULL) + SECONDS;

	drive(p, !pe);
	for (;;) {
		drive(p, pe);
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) /* pairs with the fence behind a command */
			return;
		assert_true(time(NULL) < end);
		drive(p, !pe); /* the connection may not stand */
	}
}

static void expect_done(struct pair *p, int from, uint64_t index)
{
	const struct gdri_cqe *cqe;

	assert_int_equal(pair_wait(&p->pe[from].qps[!from], index, &cqe), GDRI_CQE_REQ);
}

static void test_carried(void **state)
{
	static const char *const settings[] = {"QP_DEPTH=128", "QPS_PER_PE=1", NULL};
	struct gdri_options opt;
	uint64_t ping, pong, i, n_left = 0;
	struct pair p;

	(void)state;
	pair_options(&opt, settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	for (i = 1; i <= ROUNDS; i++) {
		hold(&p);
		ping = put(&p, 0, i);
		await(&p, 1, i);
		n_left += proxy(&p, 1)->read != NULL;
		pong = put(&p, 1, i);
		await(&p, 0, i);
		release(&p);
		expect_done(&p, 0, ping);
		expect_done(&p, 1, pong); /* whose reply PE 0 has left behind */
	}
	hold(&p);
	assert_true(proxy(&p, 1)->n_carried > ROUNDS / 2); /* all, but where a thread came between */
	assert_true(n_left > ROUNDS / 2);
	for (i = 0; i < OFI_WINDOW; i++) /* of puts that are done: no answers */
		assert_int_equal(proxy(&p, 1)->peers[0].replies[i].used, sizeof(struct gdri_ofi_head));
	release(&p);
	pair_down(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_carried),
	};

	return cmocka_run_group_tests_name("ofi_carried", tests, NULL, NULL);
}
