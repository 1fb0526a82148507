// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs in one process, in a ping-pong whose waits make the rounds of the proxies, as if there were cores to spare:
 * a message and the reply to the one before it go as one, and a reply goes by itself where none of its PE waits or
 * posts. What need not be done before the thread that waits looks is left to the next round, or where messages land
 * (runtime/ofi/ofi.h), no call of the kernel is between the one that brings a message and the one that sends the
 * answer. And long writes with a signal each: they are under way together. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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
#define ROUNDS	100u /* in which no proxy's thread came between */
#define CONNECTED 3u /* from this round on */
#define SECONDS 30

/* Calls of the kernel by the tester, as libfabric finds these in place of the C library's; others: since the
 * last that sent or received; between: a receive and the send behind it. */
static struct calls {
	unsigned sends, receives, others, between;
} calls;
static pthread_t tester;
static unsigned n_foreign; /* by other threads; relaxed: a proxy unlocks its engine behind them */

static void sends(void)
{
	calls.sends++;
	calls.between += calls.others;
	calls.others = 0;
}

static void receives(void)
{
	calls.receives++;
	calls.others = 0;
}

static void others(void)
{
	calls.others++;
}

#define COUNTED(kind, type, name, params, ...)                         \
	__attribute__((visibility("default"))) type name params        \
	{                                                              \
		static type(*real) params; /* each finds the same */   \
		void *is = real ? NULL : dlsym(RTLD_NEXT, #name);      \
                                                                       \
		if (is)                                                \
			memcpy(&real, &is, sizeof(real));              \
		if (pthread_equal(pthread_self(), tester))             \
			kind();                                        \
		else                                                   \
			__atomic_fetch_add(&n_foreign, 1, __ATOMIC_RELAXED); \
		return real(__VA_ARGS__);                              \
	}
COUNTED(others, int, poll, (struct pollfd *fds, nfds_t n, int ms), fds, n, ms)
COUNTED(others, ssize_t, read, (int fd, void *at, size_t len), fd, at, len)
COUNTED(others, ssize_t, write, (int fd, const void *at, size_t len), fd, at, len)
COUNTED(sends, ssize_t, send, (int fd, const void *at, size_t len, int flags), fd, at, len, flags)
COUNTED(sends, ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), fd, m, flags)
COUNTED(receives, ssize_t, recv, (int fd, void *at, size_t len, int flags), fd, at, len, flags)
COUNTED(receives, ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), fd, m, flags)

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
	drive(p, !pe); /* as who waits looks until something comes */
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

/* The one that brings the message, then the one that sends the answer. */
static void expect_few_calls(const struct calls *all, unsigned hops)
{
	assert_in_range(all->sends, hops / 2, hops + hops / 4);
	assert_in_range(all->receives, hops / 2, hops + hops / 4);
	assert_in_range(all->between, 0, hops / 4);
}

/* Bytes of a message that come in two parts: the last of its mark says that all is there. */
static void expect_whole(struct pair *p)
{
	struct gdri_ofi_proxy *t = proxy(p, 1);
	uint64_t *mark = (uint64_t *)(void *)(t->landing + gdri_ofi_landing(t).place) - 1;
	uint64_t whole = OFI_IS_MARK | sizeof(struct gdri_ofi_head);

	*mark = whole & ~OFI_IS_MARK;
	drive(p, 1);
	assert_int_equal(*mark, whole & ~OFI_IS_MARK);
	*mark = whole;
	drive(p, 1);
	assert_int_equal(*mark, 0);
}

/* A ping and its pong, in all. False: a proxy's thread came between, and the round says nothing. */
static bool exchange(struct pair *p, uint64_t i, struct calls *all, unsigned *n_left)
{
	unsigned foreign, left;
	uint64_t ping, pong;
	bool alone;

	hold(p);
	foreign = __atomic_load_n(&n_foreign, __ATOMIC_RELAXED);
	memset(&calls, 0, sizeof(calls));
	ping = put(p, 0, i);
	await(p, 1, i);
	left = proxy(p, 1)->read != NULL;
	pong = put(p, 1, i);
	await(p, 0, i);
	alone = __atomic_load_n(&n_foreign, __ATOMIC_RELAXED) == foreign;
	if (alone) {
		all->sends += calls.sends;
		all->receives += calls.receives;
		all->between += calls.between;
		*n_left += left;
	}
	release(p);
	expect_done(p, 0, ping);
	expect_done(p, 1, pong); /* whose reply PE 0 has left behind */
	return alone;
}

static void test_carried(void **state)
{
	static const char *const settings[] = {"QP_DEPTH=128", "QPS_PER_PE=1", NULL};
	struct gdri_options opt;
	const char *provider = getenv("GDR_OFI_PROVIDER");
	struct calls all = {0};
	unsigned n_alone = 0, n_left = 0;
	time_t end = time(NULL) + SECONDS;
	struct pair p;
	uint64_t i;
	bool lands;

	(void)state;
	tester = pthread_self();
	pair_options(&opt, settings);
	assert_int_equal(pair_up(&p, &opt, NULL), 0);
	assert_memory_equal(p.pe[0].nic->name, provider, strlen(provider));
	lands = proxy(&p, 0)->fabric.lands;
	assert_int_equal(lands, !strncmp(p.pe[0].nic->name, "tcp;ofi_rxm", 11));
	for (i = 1; i < CONNECTED; i++)
		exchange(&p, i, &(struct calls){0}, &(unsigned){0});
	for (; n_alone < ROUNDS; i++) {
		n_alone += exchange(&p, i, &all, &n_left);
		assert_true(time(NULL) < end);
	}
	hold(&p);
	assert_true(proxy(&p, 1)->n_carried > ROUNDS / 2);
	assert_true(lands ? n_left < ROUNDS / 2 : n_left > ROUNDS / 2);
	if (lands)
		expect_few_calls(&all, 2 * ROUNDS);
	for (i = 0; i < OFI_WINDOW; i++) /* of puts that are done: no answers */
		assert_int_equal(proxy(&p, 1)->peers[0].replies[i].used, sizeof(struct gdri_ofi_head));
	if (lands)
		expect_whole(&p);
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
