// SPDX-License-Identifier: BSD-3-Clause
/* Jobs on GPUs, of forked PEs over a fake driver: their host threads meet in memory of the host, without the launcher.
 * With the argument "nic", below softhca, the same where all PEs are reached by queue; with "ofi" and
 * GDR_HEAP_KIND=host where libfabric carries the queues. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define GDR_ANY_ADDRESS
#include <gdr.h>
#include <gdr/bootstrap.h>
#include <gdr/host_ops.h>
#include <gdr/impl/arch/unit.h>

#include "tests/unit/fake_buffer.h"
#include "tests/unit/fake_cuda.h"
#include "tests/unit/job.h"

static const char *transports = "p2p";
static struct gdri_dev *device;

static int show(const struct gdri_constants *c)
{
	device = c ? c->dev : NULL;
	return 0;
}

static struct gdri_unit unit = {GDR_ABI_VERSION, show, NULL, 1, 0, 1};

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	attr.heap_size = 4 << 20;
	attr.transports = transports;
	attr.bootstrap = job_bootstrap();
	return gdr_init_attr(&attr);
}

/* Neither malloc, free nor the barrier asks the launcher, and the barrier is one. */
static int body_cheap(int pe, int n)
{
	uint64_t *words, v, seen;
	int i, j, calls;
	void *p;

	job_lie = job_note_call;
	JOB_CHECK(!init());
	calls = job_last_call;
	words = gdr_calloc((size_t)n, sizeof(*words));
	JOB_CHECK(words);
	for (i = 0; i < 300; i++) { /* what counts the meetings goes round */
		p = gdr_malloc(64);
		JOB_CHECK(p && !gdr_free(p));
	}
	for (i = 0; i < 20; i++) {
		v = (uint64_t)i + 1;
		for (j = 0; j < n; j++)
			JOB_CHECK(!gdr_host_put(words + pe, &v, sizeof(v), j));
		JOB_CHECK(!gdr_barrier_all());
		for (j = 0; j < n; j++)
			JOB_CHECK(!gdr_host_get(&seen, words + j, sizeof(seen), pe) && seen == v);
		JOB_CHECK(!gdr_barrier_all());
	}
	JOB_CHECK(job_last_call == calls);
	JOB_CHECK(!gdr_free(words));
	return gdr_finalize();
}

static int body_disagree(int pe, int n)
{
	void *p;

	(void)n;
	JOB_CHECK(!init());
	JOB_CHECK(!gdr_malloc(pe == 1 ? 4096 : 8192));
	JOB_CHECK(gdr_host_status() == -GDR_EMISMATCH && !gdr_host_status());
	JOB_CHECK(strstr(job_stderr(), "PE 0 allocates 8192") && strstr(job_stderr(), "PE 1 allocates 4096"));
	if (pe == 1)
		JOB_CHECK(!gdr_malloc(8) && gdr_host_status() == -GDR_EMISMATCH);
	else
		JOB_CHECK(gdr_barrier_all() == -GDR_EMISMATCH);
	JOB_CHECK(strstr(job_stderr(), "PE 0 is in a barrier, PE 1 allocates 8 bytes"));
	p = gdr_malloc(100); /* and goes on as if nothing had been */
	JOB_CHECK(p && !gdr_barrier_all());
	JOB_CHECK(gdr_free(pe == 1 ? (void *)&p : p) == -GDR_EINVAL); /* one PE's mistake is everybody's */
	JOB_CHECK(!gdr_free(p));
	return gdr_finalize();
}

/* A heap of GPU memory that grows, and then a PE whose GPU has no more: the heaps stay as they are. */
static int body_grow(int pe, int n)
{
	struct gdr_heap_info info;
	uint64_t *p, v = 70u + (uint64_t)pe, seen;
	size_t words = (3u << 20) / 8;
	int i, round;

	setenv("GDR_HEAP_MAX", "64m", 1);
	setenv("GDR_HEAP_CHUNK", "4m", 1);
	JOB_CHECK(!init());
	for (round = 0; round < 4; round++) {
		p = gdr_malloc(words * 8);
		JOB_CHECK(p);
		for (i = 0; i < n; i++)
			JOB_CHECK(!gdr_host_put(p + words - 8 + pe, &v, sizeof(v), i));
		JOB_CHECK(!gdr_barrier_all());
		for (i = 0; i < n; i++)
			JOB_CHECK(!gdr_host_get(&seen, p + words - 8 + i, 8, pe) && seen == 70u + (uint64_t)i);
	}
	JOB_CHECK(!gdr_heap_query(&info) && info.objects == 4);
	fake_cuda.no_memory = pe == 1 ? 1 : 0;
	JOB_CHECK(!gdr_malloc(9u << 20) && gdr_host_status() == -GDR_ENOMEM);
	JOB_CHECK(strstr(job_stderr(), pe == 1 ? "out of memory" : "heap growth: PE 1 failed"));
	fake_cuda.no_memory = 0;
	v = info.size;
	JOB_CHECK(!gdr_heap_query(&info) && info.size == v);
	JOB_CHECK(gdr_malloc(9u << 20) && !gdr_barrier_all()); /* and goes on */
	return gdr_finalize();
}

/* A GPU that does not take the keys of a heap that has grown: no PE goes on with it. */
static int body_no_keys(int pe, int n)
{
	(void)n;
	setenv("GDR_HEAP_MAX", "64m", 1);
	setenv("GDR_TIMEOUT", "6s", 1);
	JOB_CHECK(!init());
	fake_cuda.hang_copy = pe == 1;
	JOB_CHECK(!gdr_malloc(9u << 20));
	JOB_CHECK(strstr(job_stderr(), pe == 1 ? "did not finish" : "heap growth: PE 1 failed"));
	JOB_CHECK(!gdr_malloc(64));
	fake_cuda.hang_copy = 0;
	gdr_finalize();
	return 0;
}

/* Of the host, which CUDA does not know: constant data, of the heap of C, longer than what copies go by way of. */
static int body_any_memory(int pe, int n)
{
	static const uint64_t constant[500] = {7, 8, [499] = 9};
	size_t len = ((size_t)2 << 20) + 8, words = len / 8, i;
	uint64_t *mine = malloc(len), *back = malloc(len), *object;
	int to = (pe + 1) % n;

	JOB_CHECK(!init());
	object = gdr_malloc(len);
	JOB_CHECK(object && mine && back);
	for (i = 0; i < words; i++)
		mine[i] = 1000u * (uint64_t)pe + i;
	JOB_CHECK(!gdr_host_put(object, mine, len, to) && !gdr_host_quiet());
	JOB_CHECK(!gdr_host_get(back, object, len, to) && !memcmp(back, mine, len));
	JOB_CHECK(!gdr_host_put_nbi(object, constant, sizeof(constant), to) && !gdr_host_quiet());
	JOB_CHECK(!gdr_host_get_nbi(back, object, sizeof(constant), to) && !gdr_host_quiet());
	JOB_CHECK(!memcmp(back, constant, sizeof(constant)));
	for (i = 1; i <= len; i *= 16) {
		JOB_CHECK(gdr_host_put(object, NULL, i, to) == -GDR_EINVAL);
		JOB_CHECK(gdr_host_get_nbi(NULL, object, i, to) == -GDR_EINVAL);
		JOB_CHECK(gdr_host_ctx_put(GDR_CTX_DEFAULT, object, NULL, i, to) == -GDR_EINVAL);
		JOB_CHECK(gdr_put_on_stream(object, NULL, i, to, NULL) == -GDR_EINVAL);
	}
	JOB_CHECK(gdr_host_put(object, mine, 8, n) == -GDR_EINVAL && gdr_host_get(back, object, 8, -1) == -GDR_EINVAL);
	JOB_CHECK(!gdr_host_put(object, NULL, 0, to) && !gdr_barrier_all());
	free(mine);
	free(back);
	return gdr_finalize();
}

/* Where the library has no kernels, what needs one is refused, and nothing of it is done. */
static int typed_refused(uint64_t *object, const uint64_t *mine, int pe, int to)
{
	uint64_t *sig = object + 40;

	if (gdr_host_uint64_atomic_inc(sig, to) != -GDR_ENOTSUP)
		return 0;
	JOB_CHECK(gdr_host_uint64_put_signal(object + 41, mine, 3, sig, 1, GDR_SIGNAL_SET, to) == -GDR_ENOTSUP);
	JOB_CHECK(gdr_host_signal_set(sig, 1, to) == -GDR_ENOTSUP && gdr_host_barrier(0) == -GDR_ENOTSUP);
	JOB_CHECK(!gdr_host_uint64_atomic_fetch_add(sig, 1, to) && gdr_host_status() == -GDR_ENOTSUP);
	JOB_CHECK(gdr_host_quiet() == -GDR_ENOTSUP && !gdr_host_quiet());
	JOB_CHECK(!gdr_host_uint64_g(sig, to) && !gdr_host_uint64_g(object + 41, to));
	return 0;
}

/* An own word, of which the host looks at copies. Behind a queue whose data may be late it takes a kernel, too. */
static int typed_waits(uint64_t *object, int pe, int n, int from)
{
	const int skip[2] = {1, 0}, values[2] = {-3, 0};
	size_t at[2];
	int i, *less = (int *)(void *)(object + 30), ret = gdr_host_uint64_wait_until_for(object, GDR_CMP_GE, 7, 0);

	if (ret == -GDR_ENOTSUP)
		return 0;
	JOB_CHECK(!ret && !gdr_host_uint64_wait_until_for(object, GDR_CMP_EQ, 7 + (uint64_t)from, 1000));
	JOB_CHECK(gdr_host_uint64_test(object, GDR_CMP_EQ, 7 + (uint64_t)from) == 1);
	JOB_CHECK(gdr_host_uint64_test(object, GDR_CMP_LT, 7) == 0);
	JOB_CHECK(gdr_host_uint64_wait_until_for(object, GDR_CMP_LT, 7, 5000000) == -GDR_ETIMEOUT);
	JOB_CHECK(gdr_host_int_test(less, GDR_CMP_LT, 0) == 1 && gdr_host_int_test(less, GDR_CMP_GE, 0) == 0);
	JOB_CHECK(!gdr_host_status());
	JOB_CHECK(gdr_host_int_test_any(less, 2, NULL, GDR_CMP_EQ, -3) == 0 && !gdr_host_status());
	JOB_CHECK(gdr_host_int_test_any(less, 2, skip, GDR_CMP_EQ, -3) == (size_t)-1);
	JOB_CHECK(gdr_host_int_wait_until_some_vector(less, 2, at, NULL, GDR_CMP_EQ, values) == 2 && at[1] == 1);
	JOB_CHECK(gdr_host_int_wait_until_some_for(less, 2, at, NULL, GDR_CMP_EQ, 1, 1000) == 0);
	JOB_CHECK(!gdr_host_int_wait_until_all_vector(less, 2, skip, GDR_CMP_EQ, values));
	JOB_CHECK(gdr_host_int_wait_until_all_for(less, 2, NULL, GDR_CMP_LT, 0, 1000) == -GDR_ETIMEOUT);
	JOB_CHECK(!gdr_host_status());
	for (i = 0; !pe && i < n; i++) {
		usleep(30000);
		JOB_CHECK(!gdr_host_uint64_p(object + 20, 5, i));
	}
	JOB_CHECK(!gdr_host_signal_wait_until_for(object + 20, GDR_CMP_EQ, 5, 10000000000));
	return 0;
}

/* Calls of gdr/host_ops.h, between memory of the GPU and of the heap of C. */
static int body_typed(int pe, int n)
{
	uint64_t mine[9], back[9] = {0}, *object;
	int to = (pe + 1) % n, from = (pe + n - 1) % n, i;

	JOB_CHECK(!init());
	object = gdr_calloc(64, 8);
	JOB_CHECK(object);
	for (i = 0; i < 9; i++)
		mine[i] = 100u * (uint64_t)pe + (uint64_t)i;
	JOB_CHECK(!gdr_host_uint64_p(object, 7 + (uint64_t)pe, to));
	JOB_CHECK(!gdr_host_uint64_put(object + 1, mine, 3, to));
	JOB_CHECK(!gdr_host_uint64_iput(object + 8, mine, 2, 3, 3, to));
	JOB_CHECK(!gdr_host_int_p((int *)(void *)(object + 30), -3, to));
	JOB_CHECK(!gdr_host_quiet() && !gdr_barrier_all());
	JOB_CHECK(gdr_host_uint64_g(object, to) == 7 + (uint64_t)pe && !gdr_host_uint64_get(back, object, 4, pe));
	JOB_CHECK(back[0] == 7 + (uint64_t)from && back[1] == 100u * (uint64_t)from && back[3] == back[1] + 2);
	JOB_CHECK(!gdr_host_uint64_iget(back, object + 8, 3, 2, 3, to));
	JOB_CHECK(back[0] == mine[0] && back[3] == mine[3] && back[6] == mine[6]);
	JOB_CHECK(gdr_host_uint64_p(object, 1, n) == -GDR_EINVAL && gdr_host_uint64_p(mine, 1, 0) == -GDR_EINVAL);
	JOB_CHECK(!typed_waits(object, pe, n, from) && !typed_refused(object, mine, pe, to));
	return gdr_barrier_all() ? 1 : gdr_finalize();
}

/* GDR_TIMEOUT ends a wait whose own limit is longer, and is an error. */
static int body_typed_late(int pe, int n)
{
	uint64_t *word;

	(void)pe, (void)n;
	setenv("GDR_TIMEOUT", "200ms", 1);
	JOB_CHECK(!init());
	word = gdr_calloc(1, 8);
	JOB_CHECK(word && gdr_host_uint64_wait_until_for(word, GDR_CMP_EQ, 1, 60000000000) == -GDR_ETIMEOUT);
	JOB_CHECK(gdr_finalize() == -GDR_ETIMEOUT);
	return 0;
}

static int late_at; /* of the calls of the launcher from now on */

static void come_late(int call, void *send, size_t len)
{
	static int calls;

	(void)call;
	(void)send;
	(void)len;
	if (++calls == late_at)
		usleep(4500000);
}

/* PE 1 hears alone of what the others gave up waiting for: it reaches them by the keys that it was told. */
static int reached(uint64_t *word, int pe, int n)
{
	uint64_t v = 1, seen = 0;
	int i;

	for (i = 0; i < n && pe == 1; i++)
		JOB_CHECK(!gdr_host_put(word, &v, sizeof(v), i));
	for (v = 2, i = 0; i < n && pe == 1; i++) /* may be gone then */
		gdr_host_put(word, &v, sizeof(v), i);
	for (i = 0; i < 1000 && seen != 2 && pe != 1; i++) {
		JOB_CHECK(!gdr_host_get(&seen, word, sizeof(seen), pe));
		usleep(10000);
	}
	JOB_CHECK(pe == 1 || seen == 2);
	return 0; /* no finalize: they are out of step */
}

static int body_half_grown(int pe, int n)
{
	uint64_t *word;

	setenv("GDR_HEAP_MAX", "64m", 1);
	setenv("GDR_TIMEOUT", "3s", 1);
	JOB_CHECK(!init());
	word = gdr_calloc(1, sizeof(*word));
	JOB_CHECK(word);
	late_at = 2; /* all have mapped what the heap grows by */
	job_lie = pe == 1 ? come_late : NULL;
	JOB_CHECK(!gdr_malloc(9u << 20));
	return reached(word, pe, n);
}

/* Memory of the program: all have mapped it, */
static int body_half_shown(int pe, int n)
{
	uint8_t *own = fake_buffer();
	uint64_t *word;

	setenv("GDR_TIMEOUT", "3s", 1);
	JOB_CHECK(own && !init());
	word = gdr_calloc(1, sizeof(*word));
	JOB_CHECK(word);
	late_at = 2;
	job_lie = pe == 1 ? come_late : NULL;
	JOB_CHECK(!gdr_symmetric_register(own, FAKE_BUFFER));
	return reached(word, pe, n);
}

/* or all have keys without it. */
static int body_half_hidden(int pe, int n)
{
	uint8_t *own = fake_buffer();
	uint64_t *word;
	void *shown;

	setenv("GDR_TIMEOUT", "3s", 1);
	JOB_CHECK(own && !init());
	word = gdr_calloc(1, sizeof(*word));
	shown = gdr_symmetric_register(own, FAKE_BUFFER);
	JOB_CHECK(word && shown);
	late_at = 1;
	job_lie = pe == 1 ? come_late : NULL;
	JOB_CHECK(gdr_symmetric_unregister(shown));
	return reached(word, pe, n);
}

/* Memory of the program at all PEs, beside a heap that grows before and behind it. */
static int body_window(int pe, int n)
{
	uint64_t *word, *grown, v = 70u + (uint64_t)pe, seen;
	uint8_t *own = fake_buffer();
	int i, round;

	setenv("GDR_HEAP_MAX", "64m", 1);
	setenv("GDR_HEAP_CHUNK", "4m", 1);
	JOB_CHECK(own && !init());
	JOB_CHECK(gdr_malloc(3u << 20));
	for (round = 0; round < 3; round++) {
		word = gdr_symmetric_register(own, FAKE_BUFFER);
		JOB_CHECK(word);
		grown = gdr_malloc(3u << 20);
		JOB_CHECK(grown);
		for (i = 0; i < n; i++) {
			JOB_CHECK(!gdr_host_put(word + FAKE_BUFFER / 8 - 8 + pe, &v, sizeof(v), i));
			JOB_CHECK(!gdr_host_put(grown + pe, &v, sizeof(v), i));
		}
		JOB_CHECK(!gdr_barrier_all());
		for (i = 0; i < n; i++) {
			JOB_CHECK(!gdr_host_get(&seen, word + FAKE_BUFFER / 8 - 8 + i, 8, pe));
			JOB_CHECK(seen == 70u + (uint64_t)i);
			JOB_CHECK(((uint64_t *)(void *)own)[FAKE_BUFFER / 8 - 8 + i] == seen);
			JOB_CHECK(!gdr_host_get(&seen, grown + i, 8, (pe + 1) % n) && seen == 70u + (uint64_t)i);
		}
		JOB_CHECK(!gdr_symmetric_unregister(word));
	}
	JOB_CHECK(gdr_symmetric_register(own, FAKE_BUFFER)); /* and is left to the end */
	return gdr_finalize();
}

/* A GPU that takes no more copies while its memory is looked at: that is told as what it is. */
static int body_window_late(int pe, int n)
{
	uint8_t *own = fake_buffer();

	(void)n;
	setenv("GDR_TIMEOUT", "6s", 1);
	JOB_CHECK(own && !init());
	__atomic_store_n(&fake_cuda.good_copies, 2, __ATOMIC_RELAXED);
	__atomic_store_n(&fake_cuda.hang_copy, pe == 1, __ATOMIC_RELAXED);
	JOB_CHECK(!gdr_symmetric_register(own, FAKE_BUFFER) && gdr_host_status() == -GDR_ETIMEOUT);
	if (pe == 1)
		JOB_CHECK(strstr(job_stderr(), "could not be seen") && strstr(job_stderr(), "may hold a mark"));
	else
		JOB_CHECK(strstr(job_stderr(), "PE 1"));
	__atomic_store_n(&fake_cuda.hang_copy, 0, __ATOMIC_RELAXED);
	JOB_CHECK(gdr_symmetric_register(own, FAKE_BUFFER) && !gdr_barrier_all()); /* and goes on */
	return gdr_finalize();
}

/* Registered again and again, memory of the program leaves no keys behind. */
static int body_keys(int pe, int n)
{
	const char *gone = "sets of old keys are gone", *at;
	uint64_t *word, *own = (uint64_t *)(void *)fake_buffer(), *shown, v, seen;
	int i, round, times = 0;

	setenv("GDR_LOG", "info", 1);
	JOB_CHECK(own && !init());
	word = gdr_calloc((size_t)n, sizeof(*word));
	JOB_CHECK(word);
	for (round = 1; round <= 30; round++) { /* two sets each */
		shown = gdr_symmetric_register(own, FAKE_BUFFER);
		JOB_CHECK(shown);
		v = (uint64_t)round;
		for (i = 0; i < n; i++)
			JOB_CHECK(!gdr_host_put(word + pe, &v, 8, i) && !gdr_host_put(shown + pe, &v, 8, i));
		JOB_CHECK(!gdr_barrier_all());
		for (i = 0; i < n; i++) {
			JOB_CHECK(!gdr_host_get(&seen, word + i, 8, (pe + 1) % n) && seen == v);
			JOB_CHECK(own[i] == v);
		}
		JOB_CHECK(!gdr_barrier_all() && !gdr_symmetric_unregister(shown));
	}
	for (at = strstr(job_stderr(), gone); at; at = strstr(at + 1, gone))
		times++;
	JOB_CHECK(times == (!strcmp(transports, "p2p") ? 0 : 5));
	return gdr_finalize();
}

gdri_cu_result cuMemAlloc_v2(gdri_cu_ptr *p, size_t size);
gdri_cu_result cuMemFree_v2(gdri_cu_ptr p);

#define PLAIN ((size_t)1 << 20)

static uint8_t *cuda_malloc(int pe)
{
	gdri_cu_ptr p = 0;

	fake_cuda.ipc = 1;
	if (cuMemAlloc_v2(&p, PLAIN))
		return NULL;
	memset((void *)(uintptr_t)p, 0x40 + pe, PLAIN);
	return (uint8_t *)(uintptr_t)p;
}

static bool is_p2p(void)
{
	return !strcmp(transports, "p2p");
}

/* As a kernel of PE `pe` would, with what is 64 words of each PE. */
static int kernel_on(uint64_t *words, int pe, int n)
{
	int next = (pe + 1) % n, i;

	gdri_dev_state = device;
	JOB_CHECK(!gdr_uint64_p(words, 100u + (uint64_t)pe, next));
	JOB_CHECK(!gdr_uint64_atomic_add(words + 1, 3, next));
	for (i = 8; i < 64; i++)
		words[i] = (uint64_t)(1000 * pe + i);
	JOB_CHECK(!gdr_put_nbi(words + 64, words, 64 * sizeof(*words), next)); /* from there, too */
	JOB_CHECK(!gdr_quiet());
	JOB_CHECK(gdr_uint64_atomic_fetch_add(words + 1, 1, next) >= 3);
	JOB_CHECK((gdr_ptr(words, next) != NULL) == is_p2p() && gdr_ptr(words, pe) == (is_p2p() ? words : NULL));
	gdri_dev_state = NULL;
	JOB_CHECK(!gdr_barrier_all());
	JOB_CHECK(words[0] == 100u + (uint64_t)(pe + n - 1) % (uint64_t)n && words[1] == 4);
	for (i = 8; i < 64; i++)
		JOB_CHECK(words[64 + i] == (uint64_t)(1000 * ((pe + n - 1) % n) + i));
	gdri_dev_state = device;
	JOB_CHECK(!gdr_get(words + 128, words + 8, 56 * sizeof(*words), next) && !gdr_quiet());
	gdri_dev_state = NULL;
	JOB_CHECK(words[128] == (uint64_t)(1000 * next + 8) && words[128 + 55] == (uint64_t)(1000 * next + 63));
	return 0;
}

static int refused(int pe, uint8_t *p, const char *text)
{
	JOB_CHECK(p && !gdr_symmetric_register(p, PLAIN) && gdr_host_status() == -GDR_ENOTSUP);
	JOB_CHECK(strstr(job_stderr(), text));
	JOB_CHECK(!cuMemFree_v2((uintptr_t)p));
	return 0;
}

static int body_plain_refused(int pe, int n)
{
	gdri_cu_ptr p;

	(void)n;
	JOB_CHECK(!init());
	JOB_CHECK(!cuMemAlloc_v2(&p, PLAIN) && !refused(pe, (uint8_t *)(uintptr_t)p, "cuIpcGetMemHandle"));
	fake_cuda.pooled = 1;
	JOB_CHECK(!refused(pe, cuda_malloc(pe), "memory pool (cudaMallocAsync)"));
	fake_cuda.pooled = 0;
	unit.any_address = pe != 1; /* on one is on all */
	JOB_CHECK(!refused(pe, cuda_malloc(pe), "compiled with -DGDR_ANY_ADDRESS"));
	return gdr_finalize();
}

/* Pieces of one allocation, that lie elsewhere in it at each PE; then it is freed, as soon as the calls return. */
static int body_plain(int pe, int n)
{
	uint8_t *own, *a, *b;
	uint64_t v = 70u + (uint64_t)pe, seen;
	int i, round, opened;

	setenv("GDR_TIMEOUT", "20s", 1);
	JOB_CHECK(!init());
	opened = is_p2p() ? n - 1 : 0;
	for (round = 0; round < 3; round++) {
		own = cuda_malloc(pe);
		a = own + 16 + 4112 * pe;
		b = own + (PLAIN / 2) + 4096 * pe;
		JOB_CHECK(gdr_symmetric_register(a, 65536) == a && fake_cuda.opened == opened);
		JOB_CHECK(gdr_symmetric_register(b, 8192) == b && fake_cuda.opened == opened); /* one mapping */
		JOB_CHECK(a[0] == 0x40 + pe && a[65535] == 0x40 + pe && b[0] == 0x40 + pe);
		memset(a, 0, 65536);
		JOB_CHECK(!gdr_barrier_all());
		for (i = 0; i < n; i++) {
			JOB_CHECK(!gdr_host_put(a + 65536 - 64 + 8 * pe, &v, sizeof(v), i));
			JOB_CHECK(!gdr_host_put(b + 8 * pe, &v, sizeof(v), i));
			JOB_CHECK((gdr_host_ptr(a, i) != NULL) == (is_p2p() || i == pe));
		}
		JOB_CHECK(!gdr_barrier_all());
		for (i = 0; i < n; i++) {
			JOB_CHECK(!memcmp(b + 8 * i, a + 65536 - 64 + 8 * i, 8));
			JOB_CHECK(!gdr_host_get(&seen, b + 8 * i, 8, (pe + 1) % n) && seen == 70u + (uint64_t)i);
		}
		JOB_CHECK(a[65535] == 0 && b[8 * n] == 0x40 + pe); /* no other byte */
		JOB_CHECK(!kernel_on((uint64_t *)(void *)a, pe, n));
		JOB_CHECK(!gdr_symmetric_unregister(a) && fake_cuda.opened == opened);
		JOB_CHECK(!gdr_host_get(&seen, b + 8 * pe, 8, (pe + 1) % n) && seen == v);
		if (round < 2) {
			JOB_CHECK(!gdr_symmetric_unregister(b) && !fake_cuda.opened);
			JOB_CHECK(!cuMemFree_v2((uintptr_t)own) && !fake_cuda.freed_open);
		}
	}
	JOB_CHECK(!gdr_finalize()); /* with one left */
	JOB_CHECK(!fake_cuda.opened && !cuMemFree_v2((uintptr_t)own) && !fake_cuda.freed_open);
	return 0;
}

/* One PE cannot map that of another one: no PE has anything open when the call returns. */
static int body_plain_fails(int pe, int n)
{
	uint8_t *own, *view;
	int i;

	(void)n;
	setenv("GDR_TIMEOUT", "20s", 1);
	JOB_CHECK(!init());
	own = cuda_malloc(pe);
	fake_cuda.ipc_result = pe == 1 ? 205 : 0;
	JOB_CHECK(!gdr_symmetric_register(own, PLAIN) && gdr_host_status() == -GDR_ESYSTEM);
	JOB_CHECK(strstr(job_stderr(), pe == 1 ? "the memory of PE 0: " : "PE 1 failed: "));
	JOB_CHECK(strstr(job_stderr(), "cuIpcOpenMemHandle"));
	fake_cuda.ipc_result = 0;
	for (i = 0; i < (int)PLAIN; i++)
		JOB_CHECK(own[i] == 0x40 + pe);
	JOB_CHECK(!fake_cuda.opened && !cuMemFree_v2((uintptr_t)own) && !fake_cuda.freed_open);

	own = cuda_malloc(pe);
	view = fake_buffer();
	JOB_CHECK(own && view && !gdr_symmetric_register(pe == 2 ? view : own, PLAIN)); /* too short for its kind */
	JOB_CHECK(gdr_host_status() < 0 && !fake_cuda.opened);
	JOB_CHECK(gdr_symmetric_register(own, PLAIN) == own && !gdr_barrier_all()); /* and goes on */
	return gdr_finalize();
}

/* Some bring this kind of memory, some the other one. */
static int body_plain_mixed(int pe, int n)
{
	gdri_cu_ptr own = 0;
	uint8_t *view;

	(void)n;
	JOB_CHECK(!init());
	fake_cuda.ipc = 1;
	view = fake_buffer();
	JOB_CHECK(view && !cuMemAlloc_v2(&own, FAKE_BUFFER));
	JOB_CHECK(!gdr_symmetric_register(pe == 1 ? view : (uint8_t *)(uintptr_t)own, FAKE_BUFFER));
	JOB_CHECK(gdr_host_status() == -GDR_EMISMATCH && !fake_cuda.opened);
	JOB_CHECK(strstr(job_stderr(), "PE 1 brings memory of cuMemCreate, PE 0 of cudaMalloc"));
	JOB_CHECK(gdr_symmetric_register(view, FAKE_BUFFER) && !gdr_barrier_all()); /* and goes on */
	return gdr_finalize();
}

static void hang_here(int call, void *send, size_t len)
{
	(void)call;
	(void)send;
	(void)len;
	if (++late_at == 2) /* as in end_here */
		__atomic_store_n(&fake_cuda.hang_copy, 1, __ATOMIC_RELAXED);
}

/* A GPU that does not take what its kernels are to find: no PE keeps the memory. */
static int body_plain_hangs(int pe, int n)
{
	uint8_t *own;

	(void)n;
	setenv("GDR_TIMEOUT", "6s", 1);
	JOB_CHECK(!init());
	own = cuda_malloc(pe);
	late_at = 0;
	job_lie = pe == 1 ? hang_here : NULL;
	JOB_CHECK(!gdr_symmetric_register(own, PLAIN) && !fake_cuda.opened);
	JOB_CHECK(strstr(job_stderr(), pe == 1 ? "did not finish" : "PE 1"));
	__atomic_store_n(&fake_cuda.hang_copy, 0, __ATOMIC_RELAXED);
	JOB_CHECK(gdr_host_status() < 0 && !device->outside);
	JOB_CHECK(gdr_symmetric_register(own, PLAIN) == own && !gdr_barrier_all()); /* and goes on */
	return gdr_finalize();
}

static void hang_at_once(int call, void *send, size_t len)
{
	late_at++; /* the call behind the first one hangs */
	hang_here(call, send, len);
}

/* A look at the memory of PE 0 does not end: that stays open under it, which the others hear. */
static int body_plain_late(int pe, int n)
{
	uint8_t *own;

	(void)n;
	setenv("GDR_TIMEOUT", "6s", 1);
	JOB_CHECK(!init());
	own = cuda_malloc(pe);
	late_at = 0;
	job_lie = pe == 1 ? hang_at_once : NULL;
	JOB_CHECK(!gdr_symmetric_register(own, PLAIN) && gdr_host_status() < 0);
	JOB_CHECK(!fake_cuda.unmapped_under && fake_cuda.opened == (pe == 1));
	JOB_CHECK(strstr(job_stderr(), "memory of another PE stays mapped"));
	job_lie = NULL;
	__atomic_store_n(&fake_cuda.hang_copy, 0, __ATOMIC_RELAXED);
	JOB_CHECK(gdr_symmetric_register(own, PLAIN) == own && fake_cuda.opened == n - 1 && !gdr_barrier_all());
	JOB_CHECK(!gdr_symmetric_unregister(own) && !fake_cuda.opened);
	JOB_CHECK(!cuMemFree_v2((uintptr_t)own) && !fake_cuda.freed_open);
	return gdr_finalize();
}

static void end_here(int call, void *send, size_t len)
{
	(void)call;
	(void)send;
	(void)len;
	if (++late_at == 2) /* all have offered theirs, and mapped that of the others */
		_exit(0);
}

static struct gdri_constants module = {.abi_version = GDR_ABI_VERSION};
static int module_result;

static void load_here(int call, void *send, size_t len)
{
	(void)call;
	(void)send;
	(void)len;
	if (!late_at++)
		module_result = gdr_module_init((struct CUmod_st *)(void *)&module);
}

/* A module that would miss the memory is loaded amid of it: refused, as behind it. Where the memory is refused, it may
 * come. */
static int body_plain_module(int pe, int n)
{
	uint8_t *own;

	(void)n;
	JOB_CHECK(!init());
	own = cuda_malloc(pe);
	fake_cuda.variable = &module;
	fake_cuda.variable_size = sizeof(module);
	late_at = 0;
	job_lie = load_here;
	JOB_CHECK(gdr_symmetric_register(own, PLAIN) == own && module_result == -GDR_ENOTSUP);
	JOB_CHECK(strstr(job_stderr(), "without GDR_ANY_ADDRESS"));
	JOB_CHECK(!gdr_symmetric_unregister(own));
	fake_cuda.ipc_result = pe == 1 ? 205 : 0;
	JOB_CHECK(!gdr_symmetric_register(own, PLAIN));
	fake_cuda.ipc_result = 0;
	(void)gdr_host_quiet(); /* tells of it once */
	JOB_CHECK(!gdr_module_init((struct CUmod_st *)(void *)&module));
	JOB_CHECK(!gdr_symmetric_register(own, PLAIN) && gdr_host_status() == -GDR_ENOTSUP);
	JOB_CHECK(!gdr_module_finalize((struct CUmod_st *)(void *)&module));
	JOB_CHECK(gdr_symmetric_register(own, PLAIN) == own && !gdr_barrier_all());
	return gdr_finalize();
}

/* A PE dies amid of it: the others have nothing open when they are gone from the library. */
static int body_plain_dies(int pe, int n)
{
	uint8_t *own;

	(void)n;
	setenv("GDR_TIMEOUT", "2s", 1);
	setenv("GDR_INIT_TIMEOUT", "10s", 1);
	JOB_CHECK(!init());
	own = cuda_malloc(pe);
	late_at = 0;
	job_lie = pe == 1 ? end_here : NULL;
	JOB_CHECK(!gdr_symmetric_register(own, PLAIN));
	gdr_finalize();
	JOB_CHECK(!fake_cuda.opened);
	return 0;
}

static int *heard; /* shared by all PEs */

static void *in_put(void *arg)
{
	uint64_t v = 3;

	gdr_host_put(arg, &v, sizeof(v), 0);
	return NULL;
}

/* An operation of PE 1's kernel fails while a copy of its host threads hangs: PE 0's kernels hear of it all the
 * same. */
static int body_hung_copy(int pe, int n)
{
	uint64_t *p, i;
	pthread_t t;

	(void)n;
	unit.queues = 1;
	setenv("GDR_TIMEOUT", "30s", 1);
	JOB_CHECK(!init());
	p = gdr_calloc(64, sizeof(*p));
	JOB_CHECK(p && device && !gdr_barrier_all());
	if (pe == 1) {
		__atomic_store_n(&fake_cuda.hang_copy, 1, __ATOMIC_RELAXED);
		JOB_CHECK(!pthread_create(&t, NULL, in_put, p + 1));
		usleep(200000);
		for (i = 0; i < device->n_slots; i++) /* those to PE 0 */
			device->qps[i].rkey_data.be ^= gdri_bswap32(0x5a); /* no number with its bytes swapped */
		gdri_dev_state = device; /* a kernel */
		JOB_CHECK(!gdr_put_nbi(p + 8, p, 64, 0) && gdr_quiet() < 0);
		gdri_dev_state = NULL;
	}
	for (i = 0; i < 900 && !__atomic_load_n(heard, __ATOMIC_RELAXED); i++) {
		if (pe == 0 && __atomic_load_n(&device->ctl->fault, __ATOMIC_RELAXED))
			__atomic_store_n(heard, 1, __ATOMIC_RELAXED);
		usleep(10000);
	}
	JOB_CHECK(i < 900);
	if (pe == 1) {
		__atomic_store_n(&fake_cuda.hang_copy, 0, __ATOMIC_RELAXED);
		pthread_join(t, NULL);
	}
	JOB_CHECK(gdr_finalize() < 0);
	return 0;
}

static void *in_barrier(void *arg)
{
	*(int *)arg = gdr_barrier_all();
	return NULL;
}

/* An address behind the heap, and a context, are looked up, while another thread is in a barrier. */
static int body_look_up(int pe, int n)
{
	uint64_t *word, v = 1, seen = 0;
	gdr_ctx_t ctx;
	pthread_t t;
	int ret = 0;

	(void)n;
	setenv("GDR_HEAP_MAX", "64m", 1);
	setenv("GDR_TIMEOUT", "20s", 1);
	setenv("GDR_CTX_QUEUES", "1", 1);
	JOB_CHECK(!init());
	word = gdr_calloc(1, sizeof(*word));
	JOB_CHECK(word && !gdr_ctx_create(0, &ctx));
	if (pe == 0) {
		JOB_CHECK(!pthread_create(&t, NULL, in_barrier, &ret));
		usleep(300000);
		JOB_CHECK(!gdr_host_ptr((uint8_t *)word + (32u << 20), 0));
		JOB_CHECK(!gdr_host_ctx_put(ctx, word, &v, sizeof(v), 1) && !gdr_host_ctx_quiet(ctx));
		pthread_join(t, NULL);
	} else { /* comes when it has been told so */
		while (!seen)
			JOB_CHECK(!gdr_host_get(&seen, word, sizeof(seen), 1));
		ret = gdr_barrier_all();
	}
	JOB_CHECK(!ret);
	return gdr_finalize();
}

/* A PE that does not come is named, within the limit. */
static int body_absent(int pe, int n)
{
	const struct gdri_request sync = {.what = GDRI_RQ_SYNC_ALL, .size = 1};
	double begin;
	int ret;

	(void)n;
	setenv("GDR_TIMEOUT", "1s", 1);
	setenv("GDR_INIT_TIMEOUT", "10s", 1);
	JOB_CHECK(!init());
	if (pe == 0) {
		sleep(10);
		_exit(0);
	}
	begin = now();
	ret = gdr_barrier_all();
	JOB_CHECK(ret < 0 && now() - begin < 9);
	JOB_CHECK(gdr_barrier_all() == ret); /* out of step: says so at once */
	JOB_CHECK(gdri_request_now(&sync, NULL) == ret); /* gdr_sync_all of a host thread */
	/* or the other one was faster, and has told it */
	JOB_CHECK(strstr(job_stderr(), "gdr_barrier_all: waiting for PE 0: ") ||
		  strstr(job_stderr(), "because of PE 0"));
	gdr_finalize();
	return 0;
}

/* PE 1 leaves because of an error of its GPU: nobody waits for it. */
static int leave(int pe, int kernel_runs)
{
	double begin;

	setenv("GDR_TIMEOUT", "60s", 1);
	JOB_CHECK(!init());
	begin = now();
	if (pe == 1) {
		usleep(300000);
		JOB_CHECK(!gdr_abort_waits());
		__atomic_store_n(&fake_cuda.hang_sync, kernel_runs, __ATOMIC_RELAXED);
	} else {
		JOB_CHECK(gdr_barrier_all() == -GDR_EPEERLOST);
		/* by queue the loss of its queues may be seen before its word */
		JOB_CHECK(strstr(job_stderr(), "gdr_barrier_all: PE 1 has left after an error") ||
			  (strcmp(transports, "p2p") &&
			   strstr(job_stderr(), "gdr_barrier_all: waiting for PE 1: a peer is lost")));
	}
	gdr_finalize();
	JOB_CHECK(now() - begin < 20);
	__atomic_store_n(&fake_cuda.hang_sync, 0, __ATOMIC_RELAXED);
	return 0;
}

static int body_leaves(int pe, int n)
{
	(void)n;
	return leave(pe, 0);
}

static int body_leaves_busy(int pe, int n)
{
	(void)n;
	return leave(pe, 1);
}

static void run(int n, int (*body)(int pe, int n))
{
	assert_int_equal(job_run(n, 120, body), 0);
}

void *gdri_torch_alloc(size_t size, int device, void *stream); /* host/torch.c */

/* A pool of PyTorch's: memory of the job's GPU, which is 0, and of no other one. */
static int body_pool(int pe, int n)
{
	void *p;

	(void)pe, (void)n;
	JOB_CHECK(!init());
	JOB_CHECK(!gdri_torch_alloc(1 << 20, 1, NULL));
	p = gdri_torch_alloc(1 << 20, 0, NULL);
	JOB_CHECK(p && !gdr_free(p));
	JOB_CHECK(!gdr_finalize());
	return 0;
}

static void test_pool(void **state)
{
	(void)state;
	run(2, body_pool);
}

static void test_cheap(void **state)
{
	(void)state;
	run(2, body_cheap);
	run(3, body_cheap);
}

static void test_disagree(void **state)
{
	(void)state;
	run(3, body_disagree);
}

static void test_grow(void **state)
{
	(void)state;
	run(3, body_grow);
}

static void test_no_keys(void **state)
{
	(void)state;
	if (strcmp(transports, "p2p"))
		run(3, body_no_keys);
}

static void test_half_grown(void **state)
{
	(void)state;
	if (strcmp(transports, "p2p"))
		run(3, body_half_grown);
}

static void test_half_shown(void **state)
{
	(void)state;
	if (!strcmp(transports, "p2p"))
		return;
	run(3, body_half_shown);
	run(3, body_half_hidden);
}

static void test_window(void **state)
{
	(void)state;
	run(3, body_window);
	run(2, body_window_late);
}

static void test_keys(void **state)
{
	(void)state;
	run(3, body_keys);
}

static void test_plain(void **state)
{
	(void)state;
	run(3, body_plain);
	run(2, body_plain_refused);
	run(2, body_plain_mixed);
	if (!is_p2p())
		return;
	run(3, body_plain_fails);
	run(3, body_plain_hangs);
	run(2, body_plain_late);
	run(2, body_plain_module);
	run(3, body_plain_dies);
}

static void test_hung_copy(void **state)
{
	(void)state;
	if (!strcmp(transports, "p2p"))
		return;
	heard = mmap(NULL, sizeof(*heard), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(heard != MAP_FAILED);
	run(2, body_hung_copy);
	munmap(heard, sizeof(*heard));
}

static void test_any_memory(void **state)
{
	(void)state;
	run(2, body_any_memory);
	run(3, body_typed);
	run(1, body_typed_late);
}

static void test_look_up(void **state)
{
	(void)state;
	run(2, body_look_up);
}

static void test_absent(void **state)
{
	(void)state;
	run(3, body_absent);
}

static void test_leaves(void **state)
{
	(void)state;
	run(2, body_leaves);
	run(2, body_leaves_busy);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cheap),
		cmocka_unit_test(test_disagree),
		cmocka_unit_test(test_grow),
		cmocka_unit_test(test_no_keys),
		cmocka_unit_test(test_half_grown),
		cmocka_unit_test(test_half_shown),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_hung_copy),
		cmocka_unit_test(test_any_memory),
		cmocka_unit_test(test_look_up),
		cmocka_unit_test(test_absent),
		cmocka_unit_test(test_leaves),
		cmocka_unit_test(test_pool),
	};

	/* the heap in memory of the host, which the fake driver has nothing to do with */
	const struct CMUnitTest carried[] = {
		cmocka_unit_test(test_cheap),	  cmocka_unit_test(test_disagree),
		cmocka_unit_test(test_no_keys),	  cmocka_unit_test(test_half_grown),
		cmocka_unit_test(test_hung_copy), cmocka_unit_test(test_any_memory),
		cmocka_unit_test(test_look_up),	  cmocka_unit_test(test_absent),
		cmocka_unit_test(test_leaves),
	};

	fake_cuda.devices = 1; /* also, that it is linked */
	if (argc > 1)
		transports = argv[1];
	gdri_unit_add(&unit);
	if (!strcmp(transports, "ofi"))
		return cmocka_run_group_tests(carried, NULL, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
