/* SPDX-License-Identifier: BSD-3-Clause */
/* Sum over all PEs of a vector of floats, by device code.
 *
 *	mpirun -n 4 ./allreduce [-m bytes] [-r repetitions] [-a direct|ring|one|two]
 *
 * Where all memory is mapped the algorithms of allreduce_mapped.h are used. By
 * queue short vectors go directly: everybody puts its vector to everybody and adds
 * up. Long ones go round a ring, first reduced and scattered, then gathered,
 * so that each PE sends 2 (n-1)/n of the vector whatever n is. Checks every
 * element; prints a table of size, time and bandwidth.
 *
 * Each receive area has a signal of its own that holds the number of the call,
 * so a signal always says which data arrived. Why an area may be written
 * again in the next call is said at each algorithm. */
#include "allreduce_mapped.h"
#include "sample.h"

#include <getopt.h>
#include <stdlib.h>

#define DIRECT_MAX 4096u /* bytes up to which the direct algorithm is used */
#define ONE_SHOT_MAX 528384u /* bytes up to which one shot is used */
#define BLOCKS_MAX 128u
#define BATCHES 7

enum how { AUTO, DIRECT, RING, ONE_SHOT, TWO_SHOTS };
static const char *const how_names[] = {"auto", "direct", "ring", "one", "two"};

/* Lies in device memory; the pointers are symmetric. */
struct reduce {
	float *in, *out;
	uint32_t count;	   /* elements */
	uint32_t repeat;   /* calls one after the other */
	uint64_t call;	   /* number of the first, counted from 1 over all launches */
	float *slots;	   /* direct: [2][n] vectors. ring: [n - 1] chunks for each block */
	uint64_t *arrived; /* direct: [2][n]. ring: [block][2 (n - 1)] */
	int *status;	   /* [block] */
	uint64_t *time_ns; /* of all calls, by block 0 */
	int how;
	uint64_t *words, *met; /* see struct mapped */
};

/* Thread 0 waits, the block gets the result. */
GDR_DEVICE int reduce_wait(const uint64_t *signal, uint64_t value, int from)
{
	int *result = (int *)gdr_shared(), ret;

	if (gdr_thread_id() == 0)
		*result = gdr_signal_wait_until_from((uint64_t *)signal, GDR_CMP_GE, value, from);
	gdr_sync_block();
	ret = *result;
	gdr_sync_block();
	return ret;
}

/* One block. Slots alternate between two areas: a PE that writes area a in call
 * k + 2 has finished call k + 1, so it has had everybody's data of call k + 1,
 * and everybody sent that after reading area a in call k. */
GDR_DEVICE int reduce_direct(const struct reduce *r, uint64_t call)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), ret = 0;
	float *slots = r->slots + (call & 1) * (uint64_t)n * r->count;
	uint64_t *arrived = r->arrived + (call & 1) * (uint64_t)n;

	for (int i = 1; i < n && !ret; i++)
		ret = gdr_put_signal_nbi_block(slots + (uint64_t)me * r->count, r->in,
					       r->count * sizeof(float), arrived + me, call,
					       GDR_SIGNAL_SET, (me + i) % n);
	for (int i = 1; i < n && !ret; i++)
		ret = reduce_wait(arrived + (me + i) % n, call, (me + i) % n);
	if (ret)
		return ret;
	for (uint32_t k = gdr_thread_id(); k < r->count; k += gdr_block_size()) {
		float sum = r->in[k];

		for (int i = 1; i < n; i++)
			sum += slots[(uint64_t)((me + i) % n) * r->count + k];
		r->out[k] = sum;
	}
	gdr_sync_block();
	return 0;
}

/* What one block of threads sees of a ring call: its share of the vector, in
 * n chunks. */
struct ring {
	uint32_t first, count; /* share */
	uint32_t chunk_max;    /* elements of the largest chunk of any block: pitch of the slots */
	float *slots;	       /* [n - 1] chunks */
	uint64_t *arrived;     /* [2 (n - 1)] */
	int me, n, next, prev;
};

GDR_DEVICE uint32_t ring_begin(const struct ring *g, int chunk)
{
	return g->first + (uint32_t)((uint64_t)g->count * (uint32_t)chunk / (uint32_t)g->n);
}

GDR_DEVICE struct ring ring_of(const struct reduce *r)
{
	uint32_t blocks = gdr_grid_size(), b = gdr_block_id();
	struct ring g;

	g.me = gdr_my_pe();
	g.n = gdr_n_pes();
	g.next = (g.me + 1) % g.n;
	g.prev = (g.me + g.n - 1) % g.n;
	g.first = (uint32_t)((uint64_t)r->count * b / blocks);
	g.count = (uint32_t)((uint64_t)r->count * (b + 1) / blocks) - g.first;
	g.chunk_max = r->count / (blocks * (uint32_t)g.n) + 2;
	g.slots = r->slots + (uint64_t)b * (uint32_t)(g.n - 1) * g.chunk_max;
	g.arrived = r->arrived + (uint64_t)b * 2 * (uint32_t)(g.n - 1);
	return g;
}

/* Step s sends chunk me - s, received and added to in step s - 1 (in place, in
 * the slot), and receives chunk me - s - 1. Afterwards chunk me + 1 is complete. */
GDR_DEVICE int ring_reduce_scatter(const struct reduce *r, const struct ring *g, uint64_t call)
{
	const float *src = r->in + ring_begin(g, g->me);
	int chunk = g->me;

	for (int s = 0; s < g->n - 1; s++) {
		float *slot = g->slots + (uint32_t)s * g->chunk_max, *sum = slot;
		uint32_t len = ring_begin(g, chunk + 1) - ring_begin(g, chunk), begin;
		int ret = gdr_put_signal_nbi_block(slot, src, len * sizeof(float), g->arrived + s,
						   call, GDR_SIGNAL_SET, g->next);

		if (!ret)
			ret = reduce_wait(g->arrived + s, call, g->prev);
		if (ret)
			return ret;
		chunk = (chunk + g->n - 1) % g->n;
		begin = ring_begin(g, chunk);
		len = ring_begin(g, chunk + 1) - begin;
		if (s == g->n - 2)
			sum = r->out + begin;
		for (uint32_t k = gdr_thread_id(); k < len; k += gdr_block_size())
			sum[k] = slot[k] + r->in[begin + k];
		gdr_sync_block();
		src = slot;
	}
	return 0;
}

/* Step s sends chunk me + 1 - s, straight into the neighbour's result. */
GDR_DEVICE int ring_allgather(const struct reduce *r, const struct ring *g, uint64_t call)
{
	for (int s = 0; s < g->n - 1; s++) {
		int chunk = (g->me + 1 - s + g->n) % g->n;
		uint64_t *arrived = g->arrived + g->n - 1 + s;
		uint32_t begin = ring_begin(g, chunk), len = ring_begin(g, chunk + 1) - begin;
		int ret = gdr_put_signal_nbi_block(r->out + begin, r->out + begin,
						   len * sizeof(float), arrived, call,
						   GDR_SIGNAL_SET, g->next);

		if (!ret)
			ret = reduce_wait(arrived, call, g->prev);
		if (ret)
			return ret;
	}
	return 0;
}

/* Blocks are independent of each other. The chunk that the next PE completes comes
 * to this one in the last step of the gathering: whoever ends a call knows that the
 * next PE has read all its slots, and that every chunk this PE sent has arrived. The
 * next PE's result is written only with sums in which its own vector takes part, so
 * it has entered that call. */
GDR_DEVICE int reduce_ring(const struct reduce *r, uint64_t call)
{
	struct ring g = ring_of(r);
	int ret = ring_reduce_scatter(r, &g, call);

	return ret ? ret : ring_allgather(r, &g, call);
}

GDR_KERNEL(allreduce, struct reduce, r)
{
	int first = gdr_block_id() == 0 && gdr_thread_id() == 0;
	uint64_t start = first ? gdr_clock_ns() : 0;
	struct mapped m = {r.in, r.out, r.count, r.words, r.met};
	int ret = 0;

	for (uint32_t i = 0; i < r.repeat && !ret; i++)
		ret = r.how == DIRECT	  ? reduce_direct(&r, r.call + i)
		      : r.how == ONE_SHOT ? reduce_one_shot(&m, r.call + i)
		      : r.how == TWO_SHOTS ? reduce_two_shots(&m, r.call + i)
					   : reduce_ring(&r, r.call + i);
	if (!ret && gdr_thread_id() == 0 && (r.how == DIRECT || r.how == RING))
		ret = gdr_quiet(); /* errors of the puts themselves come out here */
	if (ret)
		r.status[gdr_block_id()] = ret;
	if (first)
		*r.time_ns = gdr_clock_ns() - start;
}

struct options {
	uint32_t max_bytes, repeat;
	int how;
};

struct job {
	struct reduce r;
	uint32_t blocks, threads;
	int how, mapped, cuda;
	uint64_t calls;
	float *vector; /* host copy */
};

/* Element k of PE pe: random whole numbers, whose sums are exact in any order. */
static float element(int pe, uint32_t k, uint64_t call)
{
	uint64_t x = ((uint64_t)(uint32_t)pe << 40) ^ k ^ call << 20;

	x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (float)((int)((x >> 33) % 2001) - 1000);
}

static int check(const struct job *j, int n, uint64_t call)
{
	for (uint32_t k = 0; k < j->r.count; k++) {
		float sum = 0;

		for (int pe = 0; pe < n; pe++)
			sum += element(pe, k, call);
		if (sum == j->vector[k])
			continue;
		fprintf(stderr, "PE %d: WRONG: element %u of %u is %g, not %g\n", gdr_host_my_pe(),
			k, j->r.count, (double)j->vector[k], (double)sum);
		return -1;
	}
	return 0;
}

/* The algorithm for a vector, and the blocks that suit it. */
static uint32_t choose(struct job *j, uint32_t bytes)
{
	uint32_t small = bytes / (uint32_t)sizeof(float) / j->threads + 1;
	uint32_t fours = bytes / 16 / (uint32_t)gdr_host_n_pes() / j->threads + 1;

	j->r.how = j->how;
	if (j->how == AUTO && j->mapped)
		j->r.how = bytes <= ONE_SHOT_MAX ? ONE_SHOT : TWO_SHOTS;
	else if (j->how == AUTO)
		j->r.how = bytes <= DIRECT_MAX || gdr_host_n_pes() == 1 ? DIRECT : RING;
	if (j->r.how == RING && gdr_host_n_pes() == 1)
		j->r.how = DIRECT; /* there is nobody to pass on to */
	switch (j->r.how) {
	case DIRECT:
		return 1;
	case ONE_SHOT:
		return small < j->blocks ? small : j->blocks;
	case TWO_SHOTS:
		return fours < j->blocks ? fours : j->blocks;
	default:
		return j->blocks;
	}
}

/* On a GPU a launch for each call, as a program would; else they follow each other in one kernel,
 * whose launch costs more than a call. */
static int launch(struct job *j, uint32_t blocks, uint32_t repeat, double *ns)
{
	uint32_t launches = j->cuda ? repeat : 1;
	uint64_t time_ns = 0;
	double start = sample_seconds();
	int ret = 0;

	j->r.repeat = repeat / launches;
	for (uint32_t i = 0; i < launches && !ret; i++) {
		j->r.call = j->calls + 1;
		j->calls += j->r.repeat;
		ret = gdr_launch(allreduce, blocks, j->threads, sizeof(int), NULL, &j->r);
	}
	if (!ret)
		ret = gdr_stream_sync(NULL);
	*ns = (sample_seconds() - start) * 1e9 / repeat;
	if (!ret && !j->cuda) {
		ret = gdr_memcpy(&time_ns, j->r.time_ns, sizeof(time_ns));
		*ns = (double)time_ns / repeat;
	}
	return ret;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

/* Runs `repeat` calls on a vector of `bytes`; *ns is the time of one (on a GPU: median of batches). */
static int measure(struct job *j, uint32_t bytes, uint32_t repeat, double *ns)
{
	int n = gdr_host_n_pes(), status[BLOCKS_MAX], ret;
	uint32_t blocks = choose(j, bytes);
	double batch[BATCHES];
	uint64_t seed = j->calls + 1;

	j->r.count = bytes / (uint32_t)sizeof(float);
	for (uint32_t k = 0; k < j->r.count; k++)
		j->vector[k] = element(gdr_host_my_pe(), k, seed);
	ret = gdr_memcpy(j->r.in, j->vector, bytes);
	if (!ret)
		ret = gdr_barrier_all(); /* the areas are free whatever was measured before */
	if (!ret && j->cuda)
		ret = launch(j, blocks, 5, ns); /* warm */
	for (int i = 0; i < (j->cuda ? BATCHES : 1) && !ret; i++)
		ret = launch(j, blocks, repeat, &batch[i]);
	if (j->cuda)
		qsort(batch, BATCHES, sizeof(*batch), by_value);
	*ns = batch[j->cuda ? BATCHES / 2 : 0];
	if (!ret)
		ret = gdr_memcpy(status, j->r.status, blocks * sizeof(int));
	for (uint32_t b = 0; b < blocks && !ret; b++)
		ret = status[b];
	if (!ret)
		ret = gdr_memcpy(j->vector, j->r.out, bytes);
	if (ret)
		return sample_error("allreduce", ret);
	return check(j, n, seed);
}

static int table(struct job *j, const struct options *o)
{
	int root = gdr_host_my_pe() == 0, n = gdr_host_n_pes(), ret = 0;

	if (root)
		printf("%10s %-7s %12s %12s %12s\n", "bytes", "by", "us", "MB/s", "bus MB/s");
	for (uint64_t bytes = 4; !ret && bytes <= o->max_bytes; bytes *= 4) {
		/* an odd number of elements: chunks of unequal size */
		uint32_t odd = (uint32_t)(bytes > 16 ? bytes + 4 : bytes);
		double ns = 0;

		ret = measure(j, odd, o->repeat, &ns);
		if (root && !ret)
			printf("%10u %-7s %12.1f %12.1f %12.1f\n", odd,
			       how_names[j->r.how], ns * 1e-3, odd * 1e3 / ns,
			       odd * 1e3 / ns * 2 * (n - 1) / n);
		fflush(stdout);
	}
	if (root && !ret)
		printf("all elements of all sizes are right\n");
	return ret;
}

static int mapped_peers(void)
{
	struct gdr_job_info job;

	return gdr_query(&job) ? 0 : job.n_nic ? 0 : job.n_p2p;
}

static int set_up(struct job *j, const struct options *o)
{
	uint64_t n = (uint64_t)gdr_host_n_pes(), words;
	uint64_t one = o->how == ONE_SHOT ? o->max_bytes + 4 : ONE_SHOT_MAX + 4;
	uint64_t direct = 2 * n * (o->how == DIRECT ? o->max_bytes + 4 : DIRECT_MAX);
	uint64_t ring = o->max_bytes + 4 + n * BLOCKS_MAX * 2 * sizeof(float);

	memset(j, 0, sizeof(*j));
	j->cuda = sample_is_cuda();
	j->how = o->how;
	j->mapped = mapped_peers() == gdr_host_n_pes();
	if (!j->mapped && (j->how == ONE_SHOT || j->how == TWO_SHOTS))
		return sample_error("one and two shots need mapped memory", -GDR_ENOTSUP);
	j->blocks = j->cuda ? j->how == RING || !j->mapped ? 16 : 128 : 2;
	j->threads = j->cuda ? 512 : 32;
	words = 2 * n * BLOCKS_MAX;
	j->r.in = (float *)gdr_malloc(o->max_bytes + 4);
	j->r.out = (float *)gdr_malloc(o->max_bytes + 4);
	j->r.slots = (float *)gdr_malloc(ring + direct);
	j->r.arrived = (uint64_t *)gdr_calloc(words, sizeof(uint64_t));
	j->r.status = (int *)gdr_calloc(BLOCKS_MAX, sizeof(int));
	j->r.time_ns = (uint64_t *)gdr_calloc(1, sizeof(uint64_t));
	j->r.met = (uint64_t *)gdr_calloc(n * BLOCKS_MAX, sizeof(uint64_t));
	j->r.words = (uint64_t *)gdr_calloc(2 * n, (one / 4 + 1) * sizeof(uint64_t));
	j->vector = (float *)malloc(o->max_bytes + 4);
	if (!j->r.in || !j->r.out || !j->r.slots || !j->r.arrived || !j->r.status ||
	    !j->r.time_ns || !j->r.met || !j->r.words || !j->vector)
		return sample_error("set-up", -GDR_ENOMEM);
	return 0;
}

static int usage(FILE *f, const char *name, int status)
{
	fprintf(f,
		"usage: %s [-m bytes] [-r repetitions] [-a algorithm]\n"
		"  -m  largest vector, 4..1073741824 (4194304)\n"
		"  -r  calls for each size, 1..1000000 (20)\n"
		"  -a  direct, ring, one (shot), two (shots); default: what suits\n",
		name);
	return status;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	long max = 4 << 20, repeat = 20;
	const struct sample_option bytes = {"-m", NULL, 4, 1 << 30, &max}, calls = {"-r", NULL, 1, 1000000, &repeat};
	int c, bad = 0;

	o->how = AUTO;
	while ((c = getopt(argc, argv, "m:r:a:")) != -1) {
		if (c == 'a') {
			for (o->how = TWO_SHOTS; o->how && strcmp(optarg, how_names[o->how]); o->how--)
				;
			if (o->how == AUTO)
				fprintf(stderr, "-a takes direct, ring, one or two, and not \"%s\"\n", optarg);
			bad |= o->how == AUTO;
		} else if (c == '?') { /* getopt has named it */
			bad = 1;
		} else {
			bad |= sample_option_value(c == 'm' ? &bytes : &calls, optarg);
		}
	}
	if (!bad && optind < argc)
		bad = sample_option_unknown(argv[optind]);
	o->max_bytes = (uint32_t)max;
	o->repeat = (uint32_t)repeat;
	return bad ? -1 : 0;
}

int main(int argc, char **argv)
{
	struct options o;
	struct job j;
	int ret;

	if (sample_asks_help(argc, argv))
		return usage(stdout, argv[0], 0);
	if (parse_options(argc, argv, &o))
		return usage(stderr, argv[0], 2);
	if (sample_begin())
		return 1;
	ret = set_up(&j, &o);
	if (!ret)
		ret = table(&j, &o);
	free(j.vector);
	return sample_end(ret);
}
