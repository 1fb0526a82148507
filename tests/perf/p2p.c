// SPDX-License-Identifier: BSD-3-Clause
/* Latency and bandwidth between two PEs, posted from a kernel of one thread.
 *
 *   p2p lat SIZE ITERATIONS	half of a put ping-pong, median and minimum, us
 *   p2p bw SIZE ITERATIONS	streamed puts of SIZE bytes, as many on their way as the
 *				queue holds, MB/s and Mmsg/s
 *
 * As ib_write_lat and ib_write_bw measure. Prints one line
 * "size usec_median usec_min" or "size MBps Mmsgps" on PE 0. */
#include "tests/perf/help.h"

#include <gdr.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WARMUP 20

struct args {
	char *buf;   /* symmetric: two halves of `size` bytes rounded up to 64 */
	size_t size, half;
	int iterations, peer, me;
	uint64_t *samples; /* [iterations], ns: host memory of the host device */
	int *status;
};

/* The last byte of the message is the flag: it changes with every round. */
GDR_KERNEL(ping_pong, struct args, a)
{
	volatile char *mine = a.buf + a.half + a.size - 1;
	char *out = a.buf;
	uint64_t t0 = 0, deadline;
	int i, ret = 0;

	for (i = 0; i < a.iterations + WARMUP && !ret; i++) {
		char round = (char)(i % 100 + 1);

		if (a.me == 0) {
			t0 = gdr_clock_ns();
			out[a.size - 1] = round;
			ret = gdr_put_nbi(a.buf + a.half, out, a.size, a.peer);
		}
		deadline = gdr_clock_ns() + 20000000000ull;
		for (unsigned spin = 0; *mine != round && !ret; spin++) {
			gdr_pause(spin);
			if ((spin & 1023) == 1023 && gdr_clock_ns() > deadline)
				ret = -GDR_ETIMEOUT;
		}
		if (a.me == 1 && !ret) {
			out[a.size - 1] = round;
			ret = gdr_put_nbi(a.buf + a.half, out, a.size, a.peer);
		} else if (i >= WARMUP) {
			a.samples[i - WARMUP] = gdr_clock_ns() - t0;
		}
	}
	if (!ret)
		ret = gdr_quiet();
	*a.status = ret;
}

GDR_KERNEL(stream, struct args, a)
{
	uint64_t t0 = gdr_clock_ns();
	int i, ret = 0;

	for (i = 0; i < a.iterations && !ret; i++)
		ret = gdr_put_nbi(a.buf + a.half, a.buf, a.size, a.peer);
	if (!ret)
		ret = gdr_quiet();
	a.samples[0] = gdr_clock_ns() - t0;
	*a.status = ret;
}

static int by_value(const void *x, const void *y)
{
	uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;

	return a < b ? -1 : a > b;
}

static int measure(struct args *a, int latency)
{
	int ret = 0;

	gdr_barrier_all();
	if (latency)
		ret = gdr_launch(ping_pong, 1, 1, 0, NULL, a);
	else if (a->me == 0)
		ret = gdr_launch(stream, 1, 1, 0, NULL, a);
	if (!ret)
		ret = gdr_stream_sync(NULL);
	if (!ret)
		ret = *a->status;
	gdr_barrier_all();
	return ret;
}

static void print(const struct args *a, int latency)
{
	double ns = (double)a->samples[0];

	if (latency) {
		qsort(a->samples, (size_t)a->iterations, sizeof(*a->samples), by_value);
		printf("%zu %.3f %.3f\n", a->size, (double)a->samples[a->iterations / 2] / 2000.0,
		       (double)a->samples[0] / 2000.0);
	} else {
		printf("%zu %.2f %.4f\n", a->size, (double)a->size * a->iterations * 1000.0 / ns,
		       a->iterations * 1000.0 / ns);
	}
}

int main(int argc, char **argv)
{
	struct args a = {0};
	int latency, status = 0, ret = 0;

	help_if_asked(argc, argv, "p2p lat|bw SIZE ITERATIONS, on two PEs");
	if (gdr_init())
		return 1;
	if (argc != 4 || gdr_host_n_pes() != 2) {
		fprintf(stderr, "usage: p2p lat|bw SIZE ITERATIONS, on two PEs\n");
		gdr_finalize();
		return 2;
	}
	latency = !strcmp(argv[1], "lat");
	a.size = strtoul(argv[2], NULL, 10);
	a.iterations = atoi(argv[3]);
	a.half = (a.size + 63) / 64 * 64;
	a.me = gdr_host_my_pe();
	a.peer = !a.me;
	a.status = &status;
	a.samples = calloc((size_t)a.iterations, sizeof(*a.samples));
	a.buf = gdr_calloc(2, a.half);
	if (a.samples && a.buf)
		ret = measure(&a, latency);
	if (ret)
		fprintf(stderr, "p2p: %s\n", gdr_strerror(ret));
	else if (a.me == 0)
		print(&a, latency);
	gdr_free(a.buf);
	free(a.samples);
	gdr_finalize();
	return ret != 0;
}
