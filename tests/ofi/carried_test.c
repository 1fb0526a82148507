// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs in one process, in a ping-pong whose waits make the rounds of the proxies, as if there were cores to spare:
 * a message and the reply to the one before it go as one, and a reply goes by itself where none of its PE waits or
 * posts. What need not be done before the thread that waits looks is left to the next round. And long writes with a
 * signal each: they are under way together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <gdr/impl/arch/arch.h>

#include "runtime/ofi/ofi.h"
#include "tests/nic/pair.h"

#define WORD	0x1000u /* offset in each heap */
#define SIGNAL	0x2000u /* and of more words, */
#define PAGES	0x10000u /* pages, */
#define SOURCE	0x40000u /* and where they come from */
#define PAGE	8192u
#define N_PAGES 4u
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
	const char *provider = getenv("GDR_OFI_PROVIDER");
	uint64_t ping, pong, i, n_left = 0;
	struct pair p;

	(void)state;
	pair_options(&opt, settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	assert_memory_equal(p.pe[0].nic->name, provider, strlen(provider));
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

/* A page and its signal behind it. */
static void page_requests(struct pair *p, const struct gdri_qp *qp, uint64_t i, struct pair_request *r)
{
	r[0] = (struct pair_request){.opcode = GDRI_OP_WRITE,
				     .raddr = PAGES + i * PAGE,
				     .rkey = gdri_from_be32(qp->rkey_data),
				     .laddr = SOURCE + i * PAGE,
				     .lkey = p->pe[0].keys.lkey,
				     .len = PAGE};
	r[1] = (struct pair_request){.opcode = GDRI_OP_ATOMIC_FA,
				     .raddr = SIGNAL + i * 8,
				     .rkey = gdri_from_be32(qp->rkey_sync),
				     .laddr = SIGNAL,
				     .lkey = p->pe[0].keys.lkey,
				     .len = 8,
				     .args[0] = i + 1};
	memset(p->pe[0].heap + SOURCE + i * PAGE, (int)i + 1, PAGE);
}

/* PE 0 alone makes rounds until all pages are on their way, past signals that wait; then both, and a signal never comes
 * before its page. */
static void test_pages(void **state)
{
	static const char *const settings[] = {"QP_DEPTH=128", "QPS_PER_PE=1", NULL};
	struct pair_request r[2 * N_PAGES];
	struct gdri_options opt;
	struct pair p;
	struct gdri_qp *qp;
	uint64_t first, i;

	(void)state;
	pair_options(&opt, settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	qp = &p.pe[0].qps[1];
	for (i = 0; i < N_PAGES; i++)
		page_requests(&p, qp, i, &r[2 * i]);
	expect_done(&p, 0, put(&p, 0, 1)); /* they are connected */
	hold(&p);
	first = pair_post(qp, r, 2 * N_PAGES) - 2 * N_PAGES + 1;
	for (i = 0; i < ROUNDS; i++)
		drive(&p, 0);
	assert_true(!proxy(&p, 0)->fabric.delivers || proxy(&p, 0)->n_ahead > 0);
	for (i = 0; i < N_PAGES; i++) {
		const uint64_t *signal = (const uint64_t *)(const void *)(p.pe[1].heap + SIGNAL + i * 8);
		time_t end = time(NULL) + SECONDS;

		while (__atomic_load_n(signal, __ATOMIC_ACQUIRE) != i + 1) { /* pairs with the fence behind a command */
			assert_true(time(NULL) < end);
			drive(&p, 0);
			drive(&p, 1);
		}
		for (uint32_t k = 0; k < PAGE; k++)
			assert_int_equal(p.pe[1].heap[PAGES + i * PAGE + k], i + 1);
	}
	release(&p);
	for (i = 0; i < 2 * N_PAGES; i++)
		if (qp->cq_mask || i == 2 * N_PAGES - 1)
			expect_done(&p, 0, first + i);
	pair_down(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),
		cmocka_unit_test(test_carried),
	};

	return cmocka_run_group_tests_name("ofi_carried", tests, NULL, NULL);
}
