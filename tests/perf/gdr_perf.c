// SPDX-License-Identifier: BSD-3-Clause
/* What device operations between two PEs cost, over the path that the job has.
 *
 *	gdr_perf [NAME...]	put get latency signal rate barrier; default: all
 *
 *	put, get	bytes per second of a block operation and quiet, by size and number of blocks
 *	latency		of one thread: put and quiet, get, g, p and quiet
 *	signal		half of a ping-pong: signal, put_signal of 8 B by thread and by block
 *	rate		operations of one thread back to back
 *	barrier		barrier_all and sync_all of one thread
 *
 * Runs on any even number of PEs as pairs (PE i with i ^ 1); PE 0 prints, each figure as a line
 * RESULT name value unit. Medians of 5 launches after a warm-up. */
#define GDR_KERNEL_THREADS 1024
#include <gdr.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPEATS 5
#define AREA ((size_t)16 << 20)

enum op { PUT, GET, PUT_QUIET, GET_ONE, G, P_QUIET, SIGNAL, PUT_SIGNAL, PUT_SIGNAL_BLOCK,
	  P_RATE, PUT_RATE, ADD_RATE, BARRIER, SYNC };

struct work {
	int op, peer, me, n;
	size_t size; /* of one block's piece */
	char *src, *dst;
	uint64_t *sig; /* two: one's own, and one that nobody waits for */
	uint64_t base; /* of the signal's values */
	uint64_t *ns;  /* [2] time of the loop, latched status */
};

GDR_DEVICE int transfer(const struct work *w)
{
	size_t at = w->size * gdr_block_id();
	int ret;

	if (w->op == PUT)
		ret = gdr_put_nbi_block(w->dst + at, w->src + at, w->size, w->peer);
	else
		ret = gdr_get_nbi_block(w->dst + at, w->src + at, w->size, w->peer);
	gdr_sync_block();
	if (!ret && gdr_thread_id() == 0)
		ret = gdr_quiet();
	gdr_sync_block();
	return ret;
}

GDR_KERNEL(stream, struct work, w)
{
	int i, ret = 0;

	for (i = 0; i < w.n && !ret; i++)
		ret = transfer(&w);
	if (ret && gdr_thread_id() == 0)
		w.ns[1] = (uint64_t)-ret;
}

GDR_DEVICE int one(const struct work *w)
{
	uint64_t *sig = w->sig + 1;

	switch (w->op) {
	case PUT_QUIET:
		gdr_put_nbi(w->dst, w->src, w->size, w->peer);
		return gdr_quiet();
	case GET_ONE:
		return gdr_get(w->dst, w->src, w->size, w->peer);
	case G:
		return gdr_uint64_g((uint64_t *)w->src, w->peer) == 1; /* used */
	case P_QUIET:
		gdr_uint64_p((uint64_t *)w->dst, 2, w->peer);
		return gdr_quiet();
	case P_RATE:
		gdr_uint64_p((uint64_t *)w->dst, 2, w->peer);
		return 0;
	case PUT_RATE:
		return gdr_put_nbi(w->dst, w->src, w->size, w->peer);
	case ADD_RATE:
		gdr_uint64_atomic_inc(sig, w->peer);
		return 0;
	case BARRIER:
		return gdr_barrier_all();
	default:
		return gdr_sync_all();
	}
}

GDR_KERNEL(alone, struct work, w)
{
	uint64_t start = gdr_clock_ns();
	int i, ret = 0;

	for (i = 0; i < w.n && !ret; i++)
		ret = one(&w);
	w.ns[0] = gdr_clock_ns() - start;
	if (!ret)
		ret = gdr_quiet();
	w.ns[1] = (uint64_t)-ret;
}

GDR_DEVICE int send_signal(const struct work *w, uint64_t value)
{
	if (w->op == PUT_SIGNAL_BLOCK)
		return gdr_put_signal_nbi_block(w->dst, w->src, w->size, w->sig, value,
						GDR_SIGNAL_SET, w->peer);
	if (w->op == PUT_SIGNAL)
		return gdr_put_signal_nbi(w->dst, w->src, w->size, w->sig, value, GDR_SIGNAL_SET,
					  w->peer);
	return gdr_signal_op(w->sig, value, GDR_SIGNAL_SET, w->peer);
}

GDR_KERNEL(ping_pong, struct work, w)
{
	uint64_t start = gdr_clock_ns();
	int i, ret = 0;

	for (i = 1; i <= w.n && !ret; i++) {
		if (!(w.me & 1))
			ret = send_signal(&w, w.base + i);
		if (gdr_thread_id() == 0 && !ret)
			ret = gdr_signal_wait_until_from(w.sig, GDR_CMP_EQ, w.base + i, w.peer);
		gdr_sync_block();
		if (w.me & 1)
			ret = send_signal(&w, w.base + i);
	}
	if (gdr_thread_id() == 0) {
		w.ns[0] = gdr_clock_ns() - start;
		w.ns[1] = (uint64_t)-ret;
	}
}

static struct work base;

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static void must(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "gdr_perf: PE %d: %s: %s\n", gdr_host_my_pe(), what, gdr_strerror(status));
	exit(1);
}

/* What the kernel left. */
static uint64_t take_ns(void)
{
	uint64_t ns[2];

	must(gdr_memcpy(ns, base.ns, sizeof(ns)), "copying a result");
	must(-(int)ns[1], "in a kernel");
	return ns[0];
}

/* Microseconds of one of w->n rounds; only even PEs run it where `half`. */
static double stream_us(struct work *w, unsigned blocks, unsigned threads)
{
	double t[REPEATS + 1], start;
	int i;

	for (i = 0; i <= REPEATS; i++) {
		must(gdr_barrier_all(), "barrier");
		start = now_us();
		if (!(w->me & 1)) {
			must(gdr_launch(stream, blocks, threads, 0, NULL, w), "launch");
			must(gdr_stream_sync(NULL), "kernel");
		}
		t[i] = (now_us() - start) / w->n;
		take_ns();
	}
	qsort(t + 1, REPEATS, sizeof(*t), by_value);
	return t[1 + REPEATS / 2];
}

static void bandwidth(int op, const char *name)
{
	static const unsigned blocks[] = {1, 2, 4, 8, 16, 32, 64, 132};
	static const size_t total[] = {4096, 65536, 1 << 20, 4 << 20, 16 << 20};
	struct work w = base;
	double us;
	unsigned b, s;

	w.op = op;
	if (!w.me)
		printf("%s, GB/s by bytes (across) and blocks (down)\n%8s", name, "");
	for (s = 0; s < 5 && !w.me; s++)
		printf(" %9zu", total[s]);
	for (b = 0; b < 8; b++) {
		if (!w.me)
			printf("\n%8u", blocks[b]);
		for (s = 0; s < 5; s++) {
			w.size = total[s] / blocks[b] & ~(size_t)15;
			w.n = w.size * blocks[b] > (1 << 20) ? 40 : 400;
			us = stream_us(&w, blocks[b], 1024);
			if (!w.me)
				printf(" %9.2f", (double)(w.size * blocks[b]) / us / 1e3);
			if (!w.me && s == 4)
				printf("\nRESULT %s_block_%u_16MiB %.2f GB/s", name, blocks[b],
				       (double)(w.size * blocks[b]) / us / 1e3);
		}
	}
	if (!w.me)
		printf("\n");
}

/* both: the peer runs it too. div: rounds of a figure. */
static void figure(const char *name, int op, size_t size, unsigned threads, int both, double div,
		   int n)
{
	struct work w = base;
	double t[REPEATS + 1];
	int i;

	w.op = op;
	w.size = size;
	w.n = n;
	for (i = 0; i <= REPEATS; i++) {
		must(gdr_barrier_all(), "barrier");
		if (both || !(w.me & 1)) {
			if (op == SIGNAL || op == PUT_SIGNAL || op == PUT_SIGNAL_BLOCK)
				must(gdr_launch(ping_pong, 1, threads, 0, NULL, &w), "launch");
			else
				must(gdr_launch(alone, 1, threads, 0, NULL, &w), "launch");
			must(gdr_stream_sync(NULL), "kernel");
		}
		t[i] = (double)take_ns() / n / div;
		w.base += (uint64_t)n;
	}
	base.base = w.base;
	qsort(t + 1, REPEATS, sizeof(*t), by_value);
	if (!w.me)
		printf("RESULT %s %.3f us [%.3f..%.3f]\n", name, t[1 + REPEATS / 2] / 1e3, t[1] / 1e3,
		       t[REPEATS] / 1e3);
}

static int wanted(int argc, char **argv, const char *name)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], name); i++)
		;
	return argc == 1 || i < argc;
}

static void run(int argc, char **argv, int n)
{
	if (wanted(argc, argv, "put"))
		bandwidth(PUT, "put");
	if (wanted(argc, argv, "get"))
		bandwidth(GET, "get");
	if (wanted(argc, argv, "latency")) {
		figure("put_quiet_8B_thread", PUT_QUIET, 8, 1, 0, 1, n);
		figure("put_quiet_1KiB_thread", PUT_QUIET, 1024, 1, 0, 1, n);
		figure("p_quiet_thread", P_QUIET, 8, 1, 0, 1, n);
		figure("get_8B_thread", GET_ONE, 8, 1, 0, 1, n);
		figure("g_thread", G, 8, 1, 0, 1, n);
	}
	if (wanted(argc, argv, "signal")) {
		figure("signal_one_way", SIGNAL, 8, 1, 1, 2, n);
		figure("put_signal_8B_one_way_thread", PUT_SIGNAL, 8, 1, 1, 2, n);
		figure("put_signal_8B_one_way_block", PUT_SIGNAL_BLOCK, 8, 1024, 1, 2, n);
	}
	if (wanted(argc, argv, "rate")) {
		figure("p_call", P_RATE, 8, 1, 0, 1, n * 10);
		figure("put_nbi_8B_call", PUT_RATE, 8, 1, 0, 1, n * 10);
		figure("atomic_inc_call", ADD_RATE, 8, 1, 0, 1, n * 10);
	}
	if (wanted(argc, argv, "barrier")) {
		figure("barrier_thread", BARRIER, 0, 1, 1, 1, n);
		figure("sync_thread", SYNC, 0, 1, 1, 1, n);
	}
}

int main(int argc, char **argv)
{
	struct gdr_job_info info;
	int n = 2000;

	if (gdr_init())
		return 1;
	must(gdr_query(&info), "query");
	if (gdr_host_n_pes() % 2) {
		fprintf(stderr, "gdr_perf: run on an even number of PEs\n");
		gdr_finalize();
		return 2;
	}
	base.me = gdr_host_my_pe();
	base.peer = base.me ^ 1;
	base.src = (char *)gdr_calloc(1, AREA);
	base.dst = (char *)gdr_calloc(1, AREA);
	base.sig = (uint64_t *)gdr_calloc(2, sizeof(uint64_t));
	base.ns = (uint64_t *)gdr_calloc(2, sizeof(uint64_t));
	if (!base.src || !base.dst || !base.sig || !base.ns)
		return 1;
	if (!base.me)
		printf("%d PEs, %s, %d by mapped memory, %d by queues\n", gdr_host_n_pes(),
		       info.device_kind, info.n_p2p, info.n_nic);
	run(argc, argv, n);
	must(gdr_barrier_all(), "barrier");
	return gdr_finalize() != 0;
}
