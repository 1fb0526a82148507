// SPDX-License-Identifier: BSD-3-Clause
/* What tools/hardware_kit has a NIC do, from the threads of a kernel:
 *
 *	gdr_kit_ops every	one PE: each kind of queue entry, results compared
 *	gdr_kit_ops rate	one PE: posts a second, the time of one put and quiet
 *	gdr_kit_ops bad-key	one PE: a put behind the heap has to fail, by name
 *	gdr_kit_ops killed	two PEs, of which the second is killed: the first has to be told
 *
 * Exit status 0: as it should be. */
#include <gdr.h>

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BYTES ((size_t)65536)
#define POSTS 20000
#define ROUNDS 5 /* the quickest counts: ways are compared */

struct ops {
	uint8_t *from, *to; /* BYTES each */
	uint64_t *words;    /* 16 */
	uint64_t *out;	    /* results of the kernel */
	int peer;
	size_t size;
	size_t beyond;
};

GDR_KERNEL(every, struct ops, o)
{
	uint64_t *w = o.words;
	int ret = gdr_put(o.to, o.from, 16, o.peer);

	ret = ret ? ret : gdr_put(o.to + 4096, o.from + 4096, 8192, o.peer);
	ret = ret ? ret : gdr_get(o.to + 16384, o.from, 4096, o.peer);
	ret = ret ? ret : gdr_uint64_p(w, 7, o.peer);
	ret = ret ? ret : gdr_signal_op(w + 1, 8, GDR_SIGNAL_SET, o.peer);
	ret = ret ? ret : gdr_signal_op(w + 2, 9, GDR_SIGNAL_ADD, o.peer);
	ret = ret ? ret
		  : gdr_put_signal(o.to + 32768, o.from, 64, w + 3, 1, GDR_SIGNAL_SET, o.peer);
	ret = ret ? ret : gdr_fence();
	ret = ret ? ret : gdr_uint64_atomic_add(w + 4, 5, o.peer);
	o.out[1] = gdr_uint64_atomic_fetch_add(w + 4, 6, o.peer);
	o.out[2] = gdr_uint64_atomic_compare_swap(w + 5, 0, 11, o.peer);
	o.out[3] = gdr_uint64_atomic_swap(w + 5, 12, o.peer);
	o.out[4] = gdr_uint32_atomic_fetch_add((uint32_t *)(w + 6), 3, o.peer);
	o.out[5] = gdr_uint32_atomic_compare_swap((uint32_t *)(w + 6), 3, 4, o.peer);
	ret = ret ? ret : gdr_uint64_atomic_or(w + 7, 0xf0, o.peer);
	o.out[6] = gdr_uint64_g(w + 7, o.peer);
	o.out[0] = (uint64_t)(int64_t)(ret ? ret : gdr_quiet());
}

GDR_KERNEL(rate, struct ops, o)
{
	uint64_t start = gdr_clock_ns(), one;
	int ret = 0;

	for (int i = 0; !ret && i < POSTS; i++)
		ret = gdr_put_nbi(o.to + (size_t)(i % 64) * 64, o.from, o.size, o.peer);
	ret = ret ? ret : gdr_quiet();
	one = gdr_clock_ns();
	for (int i = 0; !ret && i < 1000; i++) {
		ret = gdr_put_nbi(o.to, o.from, o.size, o.peer);
		ret = ret ? ret : gdr_quiet();
	}
	o.out[0] = (uint64_t)(int64_t)ret;
	o.out[1] = one - start;
	o.out[2] = gdr_clock_ns() - one;
}

GDR_KERNEL(bad_key, struct ops, o)
{
	int ret = gdr_put_nbi(o.to + o.beyond, o.from, 64, o.peer);

	o.out[0] = (uint64_t)(int64_t)(ret ? ret : gdr_quiet());
}

/* The kernel's results, by way of host memory; the first one is its status. */
static int ops_end(struct ops *o, uint64_t out[8])
{
	int ret = gdr_stream_sync(NULL);

	ret = ret ? ret : gdr_memcpy(out, o->out, 8 * sizeof(*out));
	return ret ? ret : (int)(int64_t)out[0];
}

static int ops_begin(struct ops *o)
{
	uint8_t bytes[4096];
	int ret = 0;

	memset(o, 0, sizeof(*o));
	o->from = gdr_calloc(1, BYTES);
	o->to = gdr_calloc(1, BYTES);
	o->words = gdr_calloc(16, 8);
	o->out = gdr_calloc(8, 8);
	if (!o->from || !o->to || !o->words || !o->out)
		return -GDR_ENOMEM;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + 1);
	for (size_t at = 0; !ret && at < BYTES; at += sizeof(bytes))
		ret = gdr_memcpy(o->from + at, bytes, sizeof(bytes));
	return ret;
}

/* Each value that the words hold in the end, and what the atomics returned. */
static int ops_compare(struct ops *o, const uint64_t out[8])
{
	static const uint64_t words[] = {7, 8, 9, 1, 11, 12, 4, 0xf0},
			      results[] = {0, 5, 0, 11, 0, 3, 0xf0};
	static const struct {
		size_t at, from, n;
	} pieces[] = {{0, 0, 16}, {4096, 4096, 4096}, {16384, 0, 4096}, {32768, 0, 64}};
	uint8_t got[4096], want[4096];
	uint64_t have[8];
	int bad = gdr_memcpy(have, o->words, sizeof(have)) != 0;

	for (int i = 0; i < 8; i++)
		if (have[i] != words[i])
			bad = printf("word %d is %llu, not %llu\n", i, (unsigned long long)have[i],
				     (unsigned long long)words[i]);
	for (int i = 1; i < 7; i++)
		if (out[i] != results[i])
			bad = printf("atomic %d returned %llu, not %llu\n", i,
				     (unsigned long long)out[i], (unsigned long long)results[i]);
	for (int i = 0; i < 4; i++)
		if (gdr_memcpy(got, o->to + pieces[i].at, pieces[i].n) ||
		    gdr_memcpy(want, o->from + pieces[i].from, pieces[i].n) ||
		    memcmp(got, want, pieces[i].n))
			bad = printf("the %zu bytes at %zu are wrong\n", pieces[i].n, pieces[i].at);
	return bad;
}

static int run_every(struct ops *o)
{
	uint64_t out[8];
	int ret = gdr_launch(every, 1, 1, 0, NULL, o);

	ret = ret ? ret : ops_end(o, out);
	if (ret)
		printf("every: %s\n", gdr_strerror(ret));
	return ret || ops_compare(o, out);
}

static int run_rate(struct ops *o)
{
	uint64_t out[8], many, one;
	int ret;

	for (o->size = 8; o->size <= 4096; o->size *= 8) {
		many = one = UINT64_MAX;
		for (int i = 0; i < ROUNDS; i++) {
			ret = gdr_launch(rate, 1, 1, 0, NULL, o);
			ret = ret ? ret : ops_end(o, out);
			if (ret)
				return printf("rate: %s\n", gdr_strerror(ret));
			many = out[1] < many ? out[1] : many;
			one = out[2] < one ? out[2] : one;
		}
		printf("RESULT put.rate.%zu %.4g posts/s\nRESULT put.time.%zu %.4g us\n", o->size,
		       POSTS / (1e-9 * (double)many), o->size, 1e-6 * (double)one);
	}
	return 0;
}

static int run_bad_key(struct ops *o)
{
	struct gdr_heap_info info;
	uint64_t out[8];
	int ret = gdr_heap_query(&info);

	o->beyond = info.size + (1u << 20);
	ret = ret ? ret : gdr_launch(bad_key, 1, 1, 0, NULL, o);
	ret = ret ? ret : ops_end(o, out);
	printf("a put behind the heap: %s\n", gdr_strerror(ret));
	return ret != -GDR_EREMOTEACCESS;
}

static int run_killed(void)
{
	int ret = gdr_barrier_all();

	if (ret || gdr_host_n_pes() != 2)
		return 1;
	if (gdr_host_my_pe() == 1) {
		usleep(300000); /* what the barrier sent is behind the NIC */
		kill(getpid(), SIGKILL);
	}
	ret = gdr_barrier_all();
	printf("a barrier with a PE that was killed: %s\n", gdr_strerror(ret));
	return ret >= 0;
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";
	int fails = !strcmp(what, "bad-key") || !strcmp(what, "killed"), bad;
	struct ops o;

	if (strcmp(what, "every") && strcmp(what, "rate") && !fails) {
		fprintf(strcmp(what, "--help") ? stderr : stdout,
			"usage: %s every|rate|bad-key|killed\n", argv[0]);
		return strcmp(what, "--help") ? 2 : 0;
	}
	if (gdr_init() || ops_begin(&o))
		return 1; /* the reason is on stderr */
	if (!strcmp(what, "every"))
		bad = run_every(&o);
	else if (!strcmp(what, "rate"))
		bad = run_rate(&o);
	else if (!strcmp(what, "bad-key"))
		bad = run_bad_key(&o);
	else
		bad = run_killed();
	fflush(stdout);
	return (gdr_finalize() && !fails) || bad;
}
