// SPDX-License-Identifier: BSD-3-Clause
/* Two PEs in one process with several proxies each: which number they agree on, that each proxy carries its queues and
 * no others, and that atomics of different proxies on one word are atomic to each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <gdr/impl/arch/arch.h>

#include "runtime/ofi/ofi.h"
#include "tests/nic/pair.h"

#define WORD	0x1000u /* offset in each heap */
#define ADDS	300u
#define QUEUES	3

static struct gdri_ofi_net *net_of(struct pair *p, int pe)
{
	return (struct gdri_ofi_net *)(void *)p->pe[pe].nic; /* its first member */
}

static struct gdri_qp *queue(struct pair *p, int from, int to, int slot)
{
	return &p->pe[from].qps[gdri_net_index(&net_of(p, from)->layout, to, slot)];
}

static uint64_t add(struct pair *p, int from, int to, int slot)
{
	struct gdri_qp *qp = queue(p, from, to, slot);
	struct pair_request r = {.opcode = GDRI_OP_ATOMIC_FA,
				 .raddr = WORD,
				 .rkey = gdri_from_be32(qp->rkey_data),
				 .lkey = p->pe[from].keys.lkey,
				 .laddr = 8u * (uint32_t)slot,
				 .len = 8,
				 .args = {1}};

	return pair_post(qp, &r, 1);
}

static void up(struct pair *p, const char *threads, const char *other, const char *queues)
{
	const char *settings[] = {"QP_DEPTH=128", queues, threads, NULL};
	const char *others[] = {"QP_DEPTH=128", queues, other, NULL};
	struct gdri_options opt[2];

	pair_options(&opt[0], settings);
	pair_options(&opt[1], others);
	assert_int_equal(pair_up(p, &opt[0], &opt[1]), 0);
}

static void expect_threads(struct pair *p, int n)
{
	for (int pe = 0; pe < PAIR_PES; pe++) {
		assert_int_equal(net_of(p, pe)->n_proxies, n);
		assert_int_equal(p->pe[pe].nic->threads, n);
	}
}

static void test_agrees(void **state)
{
	struct pair p;

	(void)state;
	up(&p, "PROXY_THREADS=3", "PROXY_THREADS=2", "QPS_PER_PE=3");
	expect_threads(&p, 2);
	assert_non_null(strstr(p.pe[0].nic->text, "; 2 threads, each with"));
	pair_down(&p);
	up(&p, "PROXY_THREADS=1", "PROXY_THREADS=8", "QPS_PER_PE=3");
	expect_threads(&p, 1);
	assert_non_null(strstr(p.pe[1].nic->text, "; a thread on"));
	pair_down(&p);
	up(&p, "PROXY_THREADS=8", "PROXY_THREADS=8", "QPS_PER_PE=3"); /* no more than queues */
	expect_threads(&p, 3);
	pair_down(&p);
}

/* Each queue of both PEs, to both. */
static void test_word(void **state)
{
	uint64_t index[PAIR_PES][PAIR_PES][QUEUES];
	const struct gdri_cqe *cqe;
	struct pair p;
	unsigned int i;

	(void)state;
	up(&p, "PROXY_THREADS=3", "PROXY_THREADS=3", "QPS_PER_PE=3");
#define EACH                                            \
	for (int from = 0; from < PAIR_PES; from++)     \
		for (int to = 0; to < PAIR_PES; to++)   \
			for (int slot = 0; slot < QUEUES; slot++)
	for (i = 0; i < ADDS; i++) {
		EACH
			index[from][to][slot] = add(&p, from, to, slot);
		EACH
			assert_int_equal(pair_wait(queue(&p, from, to, slot), index[from][to][slot], &cqe),
					 GDRI_CQE_REQ);
	}
#undef EACH
	for (int pe = 0; pe < PAIR_PES; pe++) {
		uint64_t sum;

		memcpy(&sum, p.pe[pe].heap + WORD, sizeof(sum)); /* all have completed */
		assert_int_equal(sum, ADDS * PAIR_PES * QUEUES);
		for (int t = 0; t < QUEUES; t++) {
			assert_int_equal(net_of(&p, pe)->proxies[t]->n_queues, PAIR_PES);
			for (int q = 0; q < PAIR_PES; q++)
				assert_int_equal(net_of(&p, pe)->proxies[t]->queues[q].qp->slot, t);
		}
	}
	pair_down(&p);
}

/* Registrations are at equal places at all proxies, whatever left before: a piece of RMA finds its own. */
static void expect_registered(struct pair *p, int place, size_t len, uint32_t *lkey, void **handle)
{
	struct pair_end *e = &p->pe[0];

	assert_int_equal(e->nic->ops->register_buffer(e->nic, e->buffer + place, len, lkey, NULL, handle), 0);
}

static void test_buffers(void **state)
{
	uint32_t lkey[3];
	void *handle[3];
	struct pair p;

	(void)state;
	up(&p, "PROXY_THREADS=3", "PROXY_THREADS=3", "QPS_PER_PE=3");
	for (int i = 0; i < 3; i++)
		expect_registered(&p, 1024 * i, 512, &lkey[i], &handle[i]);
	p.pe[0].nic->ops->deregister(p.pe[0].nic, handle[1]);
	expect_registered(&p, 0, 256, &lkey[1], &handle[1]);
	for (int t = 0; t < 3; t++)
		for (int i = 0; i < 3; i++)
			assert_true(gdri_ofi_has(&net_of(&p, 0)->proxies[t]->memory, lkey[i],
						 (uintptr_t)p.pe[0].buffer + (i == 1 ? 0 : 1024u * (unsigned int)i),
						 i == 1 ? 256 : 512));
	for (int i = 0; i < 3; i++)
		p.pe[0].nic->ops->deregister(p.pe[0].nic, handle[i]);
	for (int t = 0; t < 3; t++)
		assert_false(gdri_ofi_has(&net_of(&p, 0)->proxies[t]->memory, lkey[0], (uintptr_t)p.pe[0].buffer, 8));
	pair_down(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_agrees),
		cmocka_unit_test(test_word),
		cmocka_unit_test(test_buffers),
	};

	return cmocka_run_group_tests_name("ofi_threads", tests, NULL, NULL);
}
