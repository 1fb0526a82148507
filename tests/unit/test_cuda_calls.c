// SPDX-License-Identifier: BSD-3-Clause
/* Calls of host threads, waited for and on streams, with memory of cudaMalloc: jobs of forked PEs over a fake driver,
 * whose kernels are run by the host. Which image they are of decides whether they find such memory. With the argument
 * "nic", below softhca, the same where all PEs are reached by queue. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <gdr.h>
#include <gdr/impl/request/submit.h>
#include <gdr/impl/request/exec.h>
#include <gdr/impl/arch/unit.h>

#include "runtime/cuda/cuda_api.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/fake_kernel.h"
#include "tests/unit/job.h"

gdri_cu_result cuMemAlloc_v2(gdri_cu_ptr *p, size_t size);
gdri_cu_result cuMemFree_v2(gdri_cu_ptr p);
gdri_cu_result cuStreamCreate(gdri_cu_stream *s, unsigned int flags);
gdri_cu_result cuStreamQuery(gdri_cu_stream s);
gdri_cu_result cuStreamDestroy_v2(gdri_cu_stream s);
gdri_cu_result cuCtxGetDevice(gdri_cu_device *d);

#define PLAIN ((size_t)1 << 20)
#define WORDS 4096 /* of an object */
#define SUM   GDRI_REDUCE_CODE(uint64_t, GDRI_SUM)

static const char *transports = "p2p";
static struct gdri_dev *device;
static struct gdri_constants constants[5]; /* of modules: 1 and 2 are loaded by init */
static int launches[2];			   /* of kernels that know the heap, that know any address */
static gdri_cu_stream stream;
static bool may_push;

static int show(const struct gdri_constants *c)
{
	device = c ? c->dev : NULL;
	return 0;
}

static struct gdri_unit unit = {GDR_ABI_VERSION, show, NULL, 1, 0, 1};

static bool is_p2p(void)
{
	return !strcmp(transports, "p2p");
}

static void *constants_of(int module)
{
	return &constants[module];
}

static void launched(int module, const char *name, unsigned int blocks, const void *arg)
{
	bool any = module > 2;

	launches[any]++;
	gdri_dev_state = constants[module].dev; /* what is not shown to it does not find the library */
	if (any)
		fake_kernel_any(name, blocks, arg);
	else
		fake_kernel(name, blocks, arg);
	gdri_dev_state = NULL;
}

static int init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	int i;

	for (i = 1; i < 5; i++)
		constants[i].abi_version = GDR_ABI_VERSION | (i % 2 ? 0 : GDRI_MODULE_NO_QUEUES) |
					   (i > 2 ? GDRI_MODULE_ANY_ADDRESS : 0);
	fake_cuda.kernel = launched;
	fake_cuda.constants = constants_of;
	fake_cuda.variable_size = sizeof(*constants);
	fake_cuda.ipc = 1;
	setenv("GDR_TIMEOUT", "20s", 1);
	attr.heap_size = 4 << 20;
	attr.transports = transports;
	attr.bootstrap = job_bootstrap();
	return gdr_init_attr(&attr);
}

static uint8_t *cuda_malloc(void)
{
	gdri_cu_ptr p = 0;

	return cuMemAlloc_v2(&p, PLAIN) ? NULL : (uint8_t *)(uintptr_t)p;
}

/* What a call works on, of WORDS each: in the heap or outside. */
struct objects {
	uint64_t *dst, *src;
	bool any; /* one of the two is outside */
	gdr_stream_t on; /* or GDRI_NOW */
};

static uint64_t sent(int pe, int i)
{
	return 10000u * (uint64_t)pe + (uint64_t)i;
}

static void fill(const struct objects *o, int pe)
{
	int i;

	for (i = 0; i < WORDS; i++) {
		o->src[i] = sent(pe, i);
		o->dst[i] = 7;
	}
}

/* What was put on the stream has ended, on all PEs. */
static int finish(const struct objects *o, int ret, int pe)
{
	JOB_CHECK(!ret);
	JOB_CHECK(o->on == GDRI_NOW || !cuStreamQuery(stream));
	JOB_CHECK(!gdr_host_quiet() && !gdr_barrier_all());
	return 0;
}

static int call(const struct objects *o, uint32_t what, int k, int pe)
{
	int before = launches[1], ret;

	fill(o, pe);
	JOB_CHECK(!gdr_barrier_all());
	ret = gdri_submit_coll(what, GDR_TEAM_WORLD, o->dst, o->src, (uint64_t)k, 8, 1, 3, 2, SUM, o->on);
	JOB_CHECK(!finish(o, ret, pe));
	if (o->any && !may_push) /* a push needs none of the other kind */
		JOB_CHECK(launches[1] == before + 1);
	else
		JOB_CHECK(launches[1] <= before + o->any);
	JOB_CHECK(o->src[0] == sent(pe, 0) && o->src[WORDS - 1] == sent(pe, WORDS - 1));
	return 0;
}

static uint64_t sum_below(int n, int i)
{
	uint64_t sum = 0;
	int j;

	for (j = 0; j < n; j++)
		sum += sent(j, i);
	return sum;
}

/* k words of each PE. */
static int collectives(const struct objects *o, int k, int pe, int n)
{
	int i, j, at, left = n * k;

	JOB_CHECK(!call(o, GDRI_RQ_REDUCE, k, pe));
	for (i = 0; i < k; i++)
		JOB_CHECK(o->dst[i] == sum_below(n, i));
	JOB_CHECK(o->dst[k] == 7);
	JOB_CHECK(!call(o, GDRI_RQ_BROADCAST, k, pe));
	for (i = 0; i < k; i++)
		JOB_CHECK(o->dst[i] == sent(1, i));
	JOB_CHECK(o->dst[k] == 7);
	JOB_CHECK(!call(o, GDRI_RQ_FCOLLECT, k, pe));
	for (i = 0; i < left; i++)
		JOB_CHECK(o->dst[i] == sent(i / k, i % k));
	JOB_CHECK(o->dst[left] == 7);
	JOB_CHECK(!call(o, GDRI_RQ_COLLECT, k + pe, pe));
	for (j = at = 0; j < n; at += k + j++)
		for (i = 0; i < k + j; i++)
			JOB_CHECK(o->dst[at + i] == sent(j, i));
	JOB_CHECK(o->dst[at] == 7);
	JOB_CHECK(!call(o, GDRI_RQ_ALLTOALL, k, pe));
	for (i = 0; i < left; i++)
		JOB_CHECK(o->dst[i] == sent(i / k, pe * k + i % k));
	JOB_CHECK(o->dst[left] == 7);
	if (3 * left <= WORDS) { /* steps of 3 and 2 words */
		JOB_CHECK(!call(o, GDRI_RQ_ALLTOALLS, k, pe));
		for (i = 0; i < left; i++)
			JOB_CHECK(o->dst[3 * i] == sent(i / k, 2 * (pe * k + i % k)) && o->dst[3 * i + 1] == 7);
	}
	JOB_CHECK(!call(o, GDRI_RQ_REDUCESCATTER, k, pe));
	for (i = 0; i < k; i++)
		JOB_CHECK(o->dst[i] == sum_below(n, pe * k + i));
	JOB_CHECK(o->dst[k] == 7);
	JOB_CHECK(!call(o, GDRI_RQ_INSCAN, k, pe));
	for (i = 0; i < k; i++)
		JOB_CHECK(o->dst[i] == sum_below(pe + 1, i));
	JOB_CHECK(!call(o, GDRI_RQ_EXSCAN, k, pe));
	for (i = 0; i < k; i++)
		JOB_CHECK(o->dst[i] == sum_below(pe, i));
	JOB_CHECK(o->dst[k] == 7);
	return 0;
}

/* src is local in these, dst at the next PE. */
static int transfers(const struct objects *o, int pe, int n)
{
	int next = (pe + 1) % n, prev = (pe + n - 1) % n, i;
	uint64_t *sig = o->dst + 2048, wide[2] = {sent(pe, 1), sent(pe, 2)};

	fill(o, pe);
	sig[0] = sig[1] = sig[2] = 0;
	JOB_CHECK(!gdr_barrier_all());
	JOB_CHECK(!gdri_submit_rma(GDRI_RQ_PUT, 0, o->dst, o->src, 100, 8, next, o->on));
	JOB_CHECK(!gdri_submit_strided(GDRI_RQ_IPUT, o->dst + 1000, o->src, -3, 2, 100, 8, next, o->on));
	JOB_CHECK(!gdri_submit_p(o->dst + 200, &wide[0], 8, next, o->on));
	JOB_CHECK(!gdri_submit_p(o->dst + 202, wide, 16, next, o->on));
	JOB_CHECK(!gdri_submit_p(o->dst + 204, wide, 4, next, o->on));
	JOB_CHECK(!gdri_submit_signal(0, o->dst + 300, o->src + 300, 50, 8, sig, 5, GDR_SIGNAL_SET, next, o->on));
	JOB_CHECK(!gdri_submit_signal(0, o->dst + 400, o->src + 400, 50, 8, sig + 1, 6, GDR_SIGNAL_ADD, next, o->on));
	JOB_CHECK(!gdri_submit_signal_op(sig + 2, 7, GDR_SIGNAL_ADD, next, o->on));
	JOB_CHECK(!gdri_submit_signal_op(sig + 2, 8, GDR_SIGNAL_ADD, next, o->on));
	JOB_CHECK(!gdri_submit_wait_from(sig, GDR_CMP_EQ, 5, prev, o->on));
	JOB_CHECK(!gdri_submit_wait(sig + 1, 2, NULL, NULL, 6, 8, 0, GDR_CMP_GE, o->on));
	JOB_CHECK(!gdri_submit_sync(GDRI_RQ_BARRIER_ALL, 0, o->on));
	JOB_CHECK(!finish(o, 0, pe));
	for (i = 0; i < 100; i++)
		JOB_CHECK(o->dst[i] == sent(prev, i) && o->dst[1000 - 3 * i] == sent(prev, 2 * i));
	JOB_CHECK(o->dst[100] == 7 && o->dst[200] == sent(prev, 1) && o->dst[202] == sent(prev, 1));
	JOB_CHECK(o->dst[203] == sent(prev, 2) && (uint32_t)o->dst[204] == (uint32_t)sent(prev, 1));
	for (i = 0; i < 50; i++)
		JOB_CHECK(o->dst[300 + i] == sent(prev, 300 + i) && o->dst[400 + i] == sent(prev, 400 + i));
	JOB_CHECK(sig[0] == 5 && sig[1] == 6 && sig[2] == 15);
	return 0;
}

/* dst is local in these, src at the next PE. */
static int fetches(const struct objects *o, int pe, int n)
{
	int next = (pe + 1) % n, i;
	uint64_t got[2] = {0, 0};

	fill(o, pe);
	JOB_CHECK(!gdr_barrier_all());
	JOB_CHECK(!gdri_submit_rma(GDRI_RQ_GET, 0, o->dst, o->src, 100, 8, next, o->on));
	JOB_CHECK(!gdri_submit_strided(GDRI_RQ_IGET, o->dst + 1000, o->src + 500, 2, -3, 100, 8, next, o->on));
	JOB_CHECK(!finish(o, 0, pe));
	for (i = 0; i < 100; i++)
		JOB_CHECK(o->dst[i] == sent(next, i) && o->dst[1000 + 2 * i] == sent(next, 500 - 3 * i));
	JOB_CHECK(o->dst[100] == 7);
	gdri_submit_g(got, o->src + 9, 16, next, GDRI_NOW);
	JOB_CHECK(got[0] == sent(next, 9) && got[1] == sent(next, 10));
	return 0;
}

static int atomics(uint64_t *word, int pe, int n)
{
	int next = (pe + 1) % n;
	double one = 1.5, most = 2.5;
	uint64_t bits, higher;

	memcpy(&bits, &one, sizeof(bits));
	memcpy(&higher, &most, sizeof(higher));
	word[0] = 40;
	word[1] = word[2] = 0;
	JOB_CHECK(!gdr_barrier_all());
	JOB_CHECK(gdri_submit_fetch(GDRI_RQ_FETCH_AMO, GDRI_AMO_ADD, 8, word, 2, 0, next) == 40);
	JOB_CHECK(gdri_submit_fetch(GDRI_RQ_FETCH_AMO, GDRI_AMO_FETCH, 8, word, 0, 0, next) == 42);
	JOB_CHECK(gdri_submit_fetch(GDRI_RQ_FETCH_AMO, GDRI_AMO_CSWAP, 8, word, 50, 42, next) == 42);
	JOB_CHECK(!gdri_submit_amo(GDRI_RQ_AMO, GDRI_AMO_ADD, 8, word + 1, 9, 0, next));
	JOB_CHECK(!gdri_submit_amo(GDRI_RQ_AMO, GDRI_AMO_KIND(GDRI_AMO_ADD, GDRI_SUM, double), 8, word + 2, bits, 0,
				   next));
	JOB_CHECK(gdri_submit_fetch(GDRI_RQ_FETCH_AMO, GDRI_AMO_KIND(GDRI_AMO_COMBINE, GDRI_MAX, double), 8, word + 2,
				    higher, 0, next) == bits);
	JOB_CHECK(!gdr_host_quiet() && !gdr_barrier_all());
	JOB_CHECK(word[0] == 50 && word[1] == 9 && !memcmp(word + 2, &most, sizeof(most)));
	return 0;
}

/* Sizes that go by words, and by all that GDR_COLL says. */
static int all_calls(struct objects *o, int pe, int n)
{
	gdr_stream_t on[2] = {GDRI_NOW, (gdr_stream_t)stream};
	int i;

	for (i = 0; i < 2; i++) {
		o->on = on[i];
		JOB_CHECK(!transfers(o, pe, n));
		JOB_CHECK(!fetches(o, pe, n));
		JOB_CHECK(!collectives(o, 1, pe, n) && !collectives(o, 333, pe, n) && !collectives(o, 1000, pe, n));
	}
	return 0;
}

/* Pieces on both sides of [a, end), more than the first tables have room for. */
static bool crowd(uint8_t *a, uint8_t *end, bool there)
{
	for (int i = 0; i < 20; i++) {
		uint8_t *at[] = {end + 32 * i, end + 32 * (39 - i)};

		for (int k = 0; k < 2; k++)
			if (there ? gdr_symmetric_register(at[k], 16) != at[k] : gdr_symmetric_unregister(at[k]) != 0)
				return false;
	}
	return there ? gdr_symmetric_register(a - 16, 16) == a - 16 : !gdr_symmetric_unregister(a - 16);
}

static int body_calls(int pe, int n)
{
	struct objects o = {0};
	uint8_t *own, *a;
	uint64_t *heap;

	JOB_CHECK(!init());
	JOB_CHECK(fake_cuda.modules == 2); /* nothing is loaded that nobody has asked for */
	own = cuda_malloc();
	heap = gdr_calloc(2 * WORDS, 8);
	a = own + 16 + 4112 * pe;
	JOB_CHECK(own && heap && gdr_symmetric_register(a, 2 * WORDS * 8) == a && fake_cuda.modules == 4);
	JOB_CHECK(crowd(a, a + 2 * WORDS * 8, true));
	JOB_CHECK(!cuStreamCreate(&stream, 0));
	o = (struct objects){(uint64_t *)(void *)a, (uint64_t *)(void *)a + WORDS, true, GDRI_NOW};
	JOB_CHECK(!all_calls(&o, pe, n) && !atomics(o.dst, pe, n));
	o.src = heap;
	JOB_CHECK(!all_calls(&o, pe, n));
	o.src = o.dst;
	o.dst = heap;
	JOB_CHECK(!all_calls(&o, pe, n));
	launches[1] = 0;
	o = (struct objects){heap, heap + WORDS, false, GDRI_NOW}; /* what never was outside goes as ever */
	JOB_CHECK(!is_p2p() || (!collectives(&o, 1000, pe, n) && !launches[1]));
	JOB_CHECK(crowd(a, a + 2 * WORDS * 8, false));
	JOB_CHECK(!gdr_symmetric_unregister(a) && gdr_symmetric_register(a, 16) == a && fake_cuda.modules == 4);
	JOB_CHECK(!cuStreamDestroy_v2(stream));
	JOB_CHECK(!gdr_finalize() && !fake_cuda.modules);
	JOB_CHECK(!cuMemFree_v2((uintptr_t)own) && !fake_cuda.freed_open);
	return 0;
}

/* In place, and teams of some: numbers of members are not those of PEs. */
static int body_team(int pe, int n)
{
	uint64_t *a, i;
	gdr_team_t odd;
	uint8_t *own;

	JOB_CHECK(!init());
	own = cuda_malloc();
	a = (uint64_t *)(void *)(own + 48 * (pe + 1));
	JOB_CHECK(own && gdr_symmetric_register(a, WORDS * 8) == a);
	JOB_CHECK(!gdr_team_split_strided(GDR_TEAM_WORLD, 1, 2, n / 2, NULL, 0, &odd));
	for (i = 0; i < WORDS; i++)
		a[i] = sent(pe, (int)i);
	JOB_CHECK(!gdr_barrier_all());
	if (pe % 2) {
		JOB_CHECK(!gdri_submit_coll(GDRI_RQ_REDUCE, odd, a, a, 1000, 8, 0, 1, 1, SUM, GDRI_NOW));
		for (i = 0; i < 1000; i++)
			JOB_CHECK(a[i] == sent(1, (int)i) + sent(3, (int)i));
		JOB_CHECK(!gdri_submit_coll(GDRI_RQ_EXSCAN, odd, a, a, 1000, 8, 0, 1, 1, SUM, GDRI_NOW));
		for (i = 0; i < 1000; i++)
			JOB_CHECK(a[i] == (pe == 1 ? 0 : sent(1, (int)i) + sent(3, (int)i)));
	}
	JOB_CHECK(a[1000] == sent(pe, 1000) && !gdr_team_destroy(odd));
	return gdr_finalize();
}

/* A GPU without room for the kernels: no PE has the memory, and the next attempt has them. */
static int body_no_room(int pe, int n)
{
	uint64_t sum = 0;
	uint8_t *own;

	JOB_CHECK(!init());
	own = cuda_malloc();
	fake_cuda.load_result = pe == 1 ? 2 : 0;
	JOB_CHECK(own && !gdr_symmetric_register(own, PLAIN) && gdr_host_status() == -GDR_ENOMEM);
	JOB_CHECK(strstr(job_stderr(), pe == 1 ? "loading the kernels that reach memory of cudaMalloc" :
						 "PE 1 failed"));
	JOB_CHECK(!fake_cuda.opened && fake_cuda.modules == (pe == 1 ? 2 : 4));
	fake_cuda.load_result = 0;
	JOB_CHECK(gdr_symmetric_register(own, PLAIN) == own && fake_cuda.modules == 4);
	memcpy(own, &(uint64_t){3}, 8);
	JOB_CHECK(!gdri_submit_coll(GDRI_RQ_REDUCE, GDR_TEAM_WORLD, own + 512, own, 1, 8, 0, 1, 1, SUM, GDRI_NOW));
	memcpy(&sum, own + 512, 8);
	JOB_CHECK(sum == 3u * (uint64_t)n);
	return gdr_finalize();
}

static void run(int n, const char *algorithms, int (*body)(int pe, int n))
{
	setenv("GDR_COLL", algorithms, 1);
	may_push = is_p2p() && !*algorithms;
	assert_int_equal(job_run(n, 120, body), 0);
	unsetenv("GDR_COLL");
}

static void test_calls(void **state)
{
	(void)state;
	run(3, "", body_calls);
	if (is_p2p())
		run(3, "reduce:grid,broadcast:grid,collect:grid,alltoall:grid,scan:grid", body_calls);
	run(2, "reduce:ring,broadcast:two,collect:ring,alltoall:direct,scan:ring", body_calls);
	run(3, "reduce:two,broadcast:direct,collect:direct,alltoall:flat,scan:flat", body_calls);
}

static void test_team(void **state)
{
	(void)state;
	run(4, "", body_team);
	if (is_p2p())
		run(4, "reduce:grid,scan:grid", body_team);
}

static void test_no_room(void **state)
{
	(void)state;
	run(2, "", body_no_room);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_team),
		cmocka_unit_test(test_no_room),
	};

	fake_cuda.devices = 1; /* also, that it is linked */
	if (argc > 1 && !strcmp(argv[1], "nic"))
		transports = "nic";
	gdri_unit_add(&unit);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
