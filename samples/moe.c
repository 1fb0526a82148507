/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixture of experts: dispatch of tokens to the PEs of their experts, and
 * combination of what the experts made of them.
 *
 *	mpirun -n 4 ./moe [-t tokens] [-h hidden] [-e experts] [-k top-k] [--fp8] [--skew] [--throughput] ...
 *
 * The experts are divided among the PEs; each PE has tokens, and for each of
 * them top-k experts with weights. There are two forms: one for few tokens
 * (moe_low_latency.h), which sends a token to each of its experts, and one for
 * many (moe_throughput.h), which sends it to each of their PEs.
 *
 * Each element that an expert received, and each of the result, is compared with
 * a serial computation, bit for bit. */
#define GDR_KERNEL_THREADS 512 /* more registers for each */
#include "sample.h"

#include <gdr/host_ops.h>

#include "moe_low_latency.h"
#include "moe_picture.h"
#include "moe_throughput_check.h"

/* One of them is in use. */
struct forms {
	struct moe moe;
	struct flow flow;
};

/* Collective, behind a barrier: PE 0 asks all for what their experts got in the last round. */
static int draw_load(const uint32_t *got, const struct options *o)
{
	int n = gdr_host_n_pes(), ret = 0;
	size_t each = (size_t)(local_experts(o) * n) * sizeof(uint32_t);
	uint32_t *all = (uint32_t *)gdr_calloc((size_t)n, each), *load = (uint32_t *)malloc((size_t)n * each);

	if (!all || !load)
		ret = -GDR_ENOMEM;
	for (int pe = 0; pe < n && !ret && gdr_host_my_pe() == 0; pe++)
		ret = gdr_host_get((char *)all + (size_t)pe * each, got, each, pe);
	if (!ret)
		ret = gdr_memcpy(load, all, (size_t)n * each);
	if (!ret && gdr_host_my_pe() == 0 && moe_write_picture("moe.svg", load, (int)o->experts, n))
		ret = -GDR_EINVAL;
	free(load);
	gdr_free(all); /* a barrier */
	return ret;
}

static int begin_round(struct forms *f, const struct options *o, long round)
{
	f->moe.round = f->flow.round = (uint64_t)round;
	return o->throughput ? flow_set_routing(&f->flow, o, round) : set_routing(&f->moe, o, round);
}

static int launch(struct forms *f, const struct options *o, struct sample_mark *mark)
{
	return o->throughput ? flow_round(&f->flow, o, mark) : launch_round(&f->moe, o, mark);
}

static int end_round(const struct forms *f, const struct options *o, long round)
{
	int ret = gdr_stream_sync(NULL);

	ret = ret ? ret : sample_first_status(o->throughput ? f->flow.status : f->moe.status,
					       (int)o->blocks + f->flow.adders);
	if (ret)
		return sample_error("round", ret);
	ret = o->throughput ? flow_check(o, &f->flow, round) : check(o, &f->moe, round);
	return ret ? sample_error("check", ret) : 0;
}

/* Bytes that this PE sends to others in a round: dispatch, then combine. */
static void bytes_sent(const struct forms *f, const struct options *o, long round, double *bytes)
{
	double sent = tokens_sent(o, round, (int)o->throughput);

	bytes[0] = sent * (double)(o->throughput ? row_bytes(&f->flow) : message_bytes(&f->moe));
	bytes[1] = sent * (double)o->hidden * sizeof(uint16_t);
}

/* Each round with a routing of its own, and compared. */
static int rounds(struct forms *f, const struct options *o)
{
	struct sample_mark mark[4];
	double bytes[2], dispatch_s, combine_s;
	int ret = 0;

	memset(mark, 0, sizeof(mark));
	for (long round = 1; round <= o->rounds && !ret; round++) {
		ret = begin_round(f, o, round);
		if (!ret)
			ret = gdr_barrier_all(); /* so that times say nothing of begin_round; gdr needs none */
		if (!ret)
			ret = launch(f, o, mark);
		ret = ret ? sample_error("round", ret) : end_round(f, o, round);
		if (ret || gdr_host_my_pe() != 0)
			continue;
		dispatch_s = sample_between(&mark[0], &mark[1]);
		combine_s = sample_between(&mark[2], &mark[3]);
		bytes_sent(f, o, round, bytes);
		printf("round %ld: dispatch %.1f us, %.3f GB/s; combine %.1f us, %.3f GB/s\n", round, dispatch_s * 1e6,
		       1e-9 * bytes[0] / dispatch_s, combine_s * 1e6, 1e-9 * bytes[1] / combine_s);
	}
	return ret;
}

static int by_time(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Median, least and largest of n times. */
static void put_times(double *to, double *s, long n)
{
	qsort(s, (size_t)n, sizeof(*s), by_time);
	to[0] = (s[(n - 1) / 2] + s[n / 2]) / 2;
	to[1] = s[0];
	to[2] = s[n - 1];
}

static void print_times(const char *what, const double *s, long n, double bytes)
{
	printf("timed %s: median of %ld %.2f us, %.2f .. %.2f, to other PEs %.0f bytes, %.3f GB/s\n", what, n,
	       s[0] * 1e6, s[1] * 1e6, s[2] * 1e6, bytes, 1e-9 * bytes / s[0]);
}

/* Collective: PE 0 prints what is the mean over the PEs, since a PE that begins first waits for the others. */
static int print_means(double *dispatch, double *combine, long n, const double *bytes)
{
	double mean[8] = {0, 0, 0, 0, 0, 0, bytes[0], bytes[1]};
	double *own = (double *)gdr_malloc(sizeof(mean)), *sum = (double *)gdr_malloc(sizeof(mean));
	int ret = own && sum ? 0 : -GDR_ENOMEM;

	put_times(mean, dispatch, n);
	put_times(mean + 3, combine, n);
	ret = ret ? ret : gdr_memcpy(own, mean, sizeof(mean));
	ret = ret ? ret : gdr_host_double_sum_reduce(GDR_TEAM_WORLD, sum, own, 8);
	ret = ret ? ret : gdr_memcpy(mean, sum, sizeof(mean));
	for (int i = 0; i < 8; i++)
		mean[i] /= gdr_host_n_pes();
	if (!ret && gdr_host_my_pe() == 0) {
		print_times("dispatch", mean, n, mean[6]);
		print_times("combine", mean + 3, n, mean[7]);
	}
	gdr_free(sum);
	gdr_free(own);
	return ret;
}

/* Rounds back to back on the stream, with one routing; what the last of them made is compared. */
static int timed_rounds(struct forms *f, const struct options *o)
{
	struct sample_mark(*mark)[4] = (struct sample_mark(*)[4])calloc((size_t)o->timed, sizeof(*mark));
	double *s = (double *)malloc(2 * (size_t)o->timed * sizeof(*s)), bytes[2];
	int ret = mark && s ? begin_round(f, o, o->rounds + 1) : -GDR_ENOMEM;

	ret = ret ? ret : gdr_barrier_all();
	for (long i = 0; i < o->timed && !ret; i++) {
		f->moe.round = f->flow.round = (uint64_t)(o->rounds + 1 + i);
		ret = launch(f, o, mark[i]);
	}
	ret = ret ? sample_error("timed round", ret) : end_round(f, o, o->rounds + 1);
	for (long i = 0; i < o->timed && !ret; i++) {
		s[i] = sample_between(&mark[i][0], &mark[i][1]);
		s[o->timed + i] = sample_between(&mark[i][2], &mark[i][3]);
	}
	bytes_sent(f, o, o->rounds + 1, bytes);
	if (!ret)
		ret = print_means(s, s + o->timed, o->timed, bytes);
	free(mark);
	free(s);
	return ret;
}

static int run(struct forms *f, const struct options *o)
{
	int ret = o->throughput ? flow_set_up(&f->flow, o) : set_up(&f->moe, o);

	if (ret)
		return sample_error("set-up (GDR_HEAP_SIZE is the size of the heap)", ret);
	ret = rounds(f, o);
	if (!ret && o->timed)
		ret = timed_rounds(f, o);
	if (ret)
		return ret;
	ret = gdr_barrier_all(); /* what became of the puts */
	if (!ret && o->picture)
		ret = draw_load(o->throughput ? got_of(&f->flow, f->flow.round) : f->moe.got, o);
	if (ret)
		return sample_error("end", ret);
	if (gdr_host_my_pe() == 0 && o->rounds + o->timed == 0)
		printf("no round was asked for (-r, -n), nothing was compared\n");
	else if (gdr_host_my_pe() == 0)
		printf("all elements of all tokens, received and combined, equal the serial computation%s\n",
		       o->picture ? "; moe.svg has the experts' load" : "");
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {16, 7168, 256, 8, 3, 0, 0, 0, 0, 0, 0, 0, 96, 0, 0, 0};
	const struct sample_option options[] = {
		{"-t", "tokens of each PE", 1, 8192, &o.tokens},
		{"-h", "hidden size, a multiple of 128", GROUP, 1 << 20, &o.hidden},
		{"-e", "experts", 1, 32767, &o.experts},
		{"-k", "experts of a token", 1, MAX_TOPK, &o.topk},
		{"-r", "rounds", 0, 1000000, &o.rounds},
		{"-b", "blocks of each kernel (SMs); 0: 32 on GPUs, else 2", 0, 1024, &o.blocks},
		{"--fp8", "dispatch in FP8 (E4M3), with a scale for each 128 elements", 0, 0, &o.fp8},
		{"--skew", "the first experts get most tokens", 0, 0, &o.skew},
		{"--hook", "sending and receiving of dispatch apart", 0, 0, &o.hook},
		{"--throughput", "the form for many tokens", 0, 0, &o.throughput},
		{"-c", "tokens of its chunks; 0: by tokens and blocks", 0, 32, &o.chunk},
		{"-s", "KiB of shared memory of its blocks", 4, 224, &o.shared},
		{"-a", "blocks of a kernel behind combine that adds up; 0: combine does", 0, 1024, &o.adders},
		{"-n", "timed rounds behind the others, without pause", 0, 10000, &o.timed},
		{"--align", "PEs meet before each dispatch and combine, for times", 0, 0, &o.align},
		{"--picture", "PE 0 writes the last round's tokens of each expert to moe.svg", 0, 0, &o.picture},
	};
	int ret = sample_options(argc, argv, options, (int)(sizeof(options) / sizeof(*options)));
	struct forms f;

	if (ret)
		return ret - 1;
	if (sample_begin())
		return 1;
	o.blocks = o.blocks ? o.blocks : sample_is_cuda() ? 32 : 2;
	memset(&f, 0, sizeof(f));
	if (o.hidden % GROUP)
		ret = sample_error("hidden must be a multiple of 128", -GDR_EINVAL);
	else if (o.topk > o.experts)
		ret = sample_error("top-k must be at most the experts", -GDR_EINVAL);
	else
		ret = run(&f, &o);
	return sample_end(ret);
}
