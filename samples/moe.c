/* SPDX-License-Identifier: BSD-3-Clause */
/* Mixture of experts: dispatch of tokens to the PEs of their experts, and
 * combination of what the experts made of them.
 *
 *	mpirun -n 4 ./moe [-t tokens] [-h hidden] [-e experts] [-k top-k] [--fp8] [--skew] [--hook] [--picture] ...
 *
 * The experts are divided among the PEs; each PE has tokens, and for each of
 * them top-k experts with weights.
 *
 * Each element that an expert received, and each of the result, is compared with
 * a serial computation, bit for bit. */
#define GDR_KERNEL_THREADS 512 /* more registers for each */
#include "sample.h"

#include "moe_low_latency.h"
#include "moe_picture.h"

/* Collective, behind a barrier: PE 0 asks all for what their experts got in the last round. */
static int draw_load(const struct moe *m, const struct options *o)
{
	int n = gdr_host_n_pes(), ret = 0;
	size_t each = (size_t)(m->local * n) * sizeof(uint32_t);
	uint32_t *all = (uint32_t *)gdr_calloc((size_t)n, each), *load = (uint32_t *)malloc((size_t)n * each);

	if (!all || !load)
		ret = -GDR_ENOMEM;
	for (int pe = 0; pe < n && !ret && gdr_host_my_pe() == 0; pe++)
		ret = gdr_host_get(all + pe * m->local * n, m->got, each, pe);
	if (!ret)
		ret = gdr_memcpy(load, all, (size_t)n * each);
	if (!ret && gdr_host_my_pe() == 0 && moe_write_picture("moe.svg", load, (int)o->experts, n))
		ret = -GDR_EINVAL;
	free(load);
	gdr_free(all); /* a barrier */
	return ret;
}

static int run(struct moe *m, const struct options *o)
{
	double bytes = (double)o->tokens * (double)o->topk, dispatch_s, combine_s;
	int ret = set_up(m, o);

	if (ret)
		return sample_error("set-up (GDR_HEAP_SIZE is the size of the heap)", ret);
	for (long round = 1; round <= o->rounds && !ret; round++) {
		m->round = (uint64_t)round;
		ret = set_routing(m, o, round);
		if (!ret)
			ret = gdr_barrier_all(); /* so that times say nothing of set_routing; gdr needs none */
		if (!ret)
			ret = one_round(m, o, &dispatch_s, &combine_s);
		if (ret)
			return sample_error("round", ret);
		if (gdr_host_my_pe() == 0)
			printf("round %ld: dispatch %.1f us, %.3f GB/s; combine %.1f us, %.3f GB/s\n", round,
			       dispatch_s * 1e6, 1e-9 * bytes * (double)message_bytes(m) / dispatch_s, combine_s * 1e6,
			       1e-9 * bytes * (double)o->hidden * sizeof(uint16_t) / combine_s);
		ret = check(o, m, round);
	}
	if (!ret)
		ret = gdr_barrier_all(); /* what became of the puts */
	if (!ret && o->picture)
		ret = draw_load(m, o);
	if (ret)
		return sample_error("check", ret);
	if (gdr_host_my_pe() == 0)
		printf("all elements of all tokens, received and combined, equal the serial computation%s\n",
		       o->picture ? "; moe.svg has the experts' load" : "");
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {16, 7168, 256, 8, 3, 0, 0, 0, 0, 0};
	const struct sample_option options[] = {
		{"-t", "tokens of each PE", 1, 8192, &o.tokens},
		{"-h", "hidden size, a multiple of 128", GROUP, 1 << 20, &o.hidden},
		{"-e", "experts", 1, 32767, &o.experts},
		{"-k", "experts of a token", 1, MAX_TOPK, &o.topk},
		{"-r", "rounds", 1, 1000000, &o.rounds},
		{"-b", "blocks of each kernel (SMs); 0: 32 on GPUs, else 2", 0, 1024, &o.blocks},
		{"--fp8", "dispatch in FP8 (E4M3), with a scale for each 128 elements", 0, 0, &o.fp8},
		{"--skew", "the first experts get most tokens", 0, 0, &o.skew},
		{"--hook", "sending and receiving of dispatch apart", 0, 0, &o.hook},
		{"--picture", "PE 0 writes the last round's tokens of each expert to moe.svg", 0, 0, &o.picture},
	};
	int ret = sample_options(argc, argv, options, (int)(sizeof(options) / sizeof(*options)));
	struct moe m;

	if (ret)
		return ret - 1;
	if (sample_begin())
		return 1;
	o.blocks = o.blocks ? o.blocks : sample_is_cuda() ? 32 : 2;
	memset(&m, 0, sizeof(m));
	m.tokens = (int)o.tokens;
	m.hidden = (int)o.hidden;
	m.local = (int)(o.experts + gdr_host_n_pes() - 1) / gdr_host_n_pes();
	m.experts = m.local * gdr_host_n_pes();
	m.topk = (int)o.topk;
	m.fp8 = (int)o.fp8;
	if (o.hidden % GROUP || o.topk > o.experts)
		ret = sample_error("hidden must be a multiple of 128, top-k at most the experts", -GDR_EINVAL);
	else
		ret = run(&m, &o);
	return sample_end(ret);
}
