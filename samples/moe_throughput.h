/* SPDX-License-Identifier: BSD-3-Clause */
/* The throughput form of moe.c, for many tokens: a token goes to a PE once, however many of its experts are there.
 *
 * Each array has a part for each PE, equally long on all. A PE fills the part that is its own, and puts what another
 * PE needs of it to where it lies here: so no PE asks for room, nothing is packed or counted before it is sent, and the
 * experts of a PE find the tokens of all in one array, the PE's own among them without a copy.
 *  - dispatch puts the PE's rows, tokens as they are dispatched, to the PEs that need them. A chunk is some tokens
 *    that follow each other; those of it that a PE needs go there by a put for each run of neighbours, and behind them
 *    a signal of the PE and chunk. Meanwhile other warps put the PE's choices, in parts, to all PEs, list, for each
 *    expert, the rows of its tokens, and wait for the rows.
 *  - an expert PE adds up, by weight, what its experts made of a token, and combine puts these partial sums back in
 *    the same way. As many bytes go back as a token has PEs, not experts: with 8 experts on 2 PEs a quarter. What it
 *    costs is that each partial sum is rounded to BF16. The token's PE adds the partial sums up, in the order in which
 *    the PEs first appear among the token's experts, chunk by chunk while later ones are under way, or in a kernel
 *    behind combine's, which may have more blocks.
 * Over nodes (as many PEs on each) a token goes once to each node that needs it, to the PE that stands there as its own
 * does here, which forwards it to the other PEs of its node; partial sums go back straight.
 *
 * Every chunk has its signal each round, also where no token of it was needed, and who adds up ends when all have come.
 * So a PE begins its next round when all are done with its rows, and no buffer is written while it is read.
 *
 * Some warps of each block send, through shared memory by the bulk copy engine of a GPU that has one; the others work
 * and wait. */
#ifndef MOE_THROUGHPUT_H
#define MOE_THROUGHPUT_H

#include "moe_model.h"

enum {
	SENDERS = 4, /* warps of a block that send, at most */
	PART = 128   /* tokens whose choices a warp puts at once, or a few more */
};

struct choice {
	int32_t expert; /* each of a token's once */
	float weight;
};

/* Lies in device memory; the pointers are symmetric. A row is a PE and its token: PE * tokens + token. A pair is a
 * local expert and a PE that has tokens for it: expert * n_pes + PE. */
struct flow {
	struct choice *choice; /* [rows][top-k] */
	char *rows;	       /* [rows] of row_bytes: elements, scales */
	uint16_t *made;	       /* [rows][hidden]: partial sums of this PE's experts, for the row's PE */
	uint16_t *back;	       /* [rows][hidden]: partial sums of a PE for this PE's token */
	uint16_t *x;	       /* [tokens][hidden], BF16: without FP8 the own rows */
	uint16_t *y;	       /* [tokens][hidden]: the result */
	int32_t *list;	       /* [pairs][tokens]: rows of an expert, in any order; of this PE alone */
	uint32_t *got;	       /* [2][pairs]: how many, by turns of the rounds; of this PE alone */
	uint64_t *known;       /* [PEs][parts]: round of the choices that are here */
	uint64_t *arrived;     /* [PEs][chunks]: round of the rows that are here */
	uint64_t *came;	       /* [PEs][chunks of sums]: round of the partial sums that are here */
	int *status;	       /* [blocks], those of flow_add last */
	int tokens, hidden, experts, topk, fp8;
	int local;	     /* experts of a PE; `experts` is that times the PEs, the last ones may not exist */
	int node;	     /* PEs of a node, which follow each other; all PEs where nodes do not count */
	int chunk, chunks;   /* tokens of a chunk; how many there are of a PE */
	int part, parts;     /* chunks of a part of the choices; how many there are of a PE */
	int sums, sum_chunks; /* tokens of a chunk of partial sums; chunks of a PE */
	int adders;	     /* blocks of flow_add; 0: flow_combine adds up */
	uint32_t shared;     /* bytes of a block */
	uint64_t round;	     /* 1, 2, ... */
};

/* A multiple of 16. */
GDR_BOTH size_t row_bytes(const struct flow *f)
{
	size_t n = (size_t)f->hidden;

	return f->fp8 ? n + (n / GROUP * sizeof(float) + 15) / 16 * 16 : n * sizeof(uint16_t);
}

GDR_BOTH size_t sum_bytes(const struct flow *f)
{
	return (size_t)f->hidden * sizeof(uint16_t);
}

GDR_BOTH int row_of(const struct flow *f, int pe, int t)
{
	return pe * f->tokens + t;
}

GDR_BOTH char *row(const struct flow *f, int r)
{
	return f->rows + (size_t)r * row_bytes(f);
}

/* Element i of a row as a number. */
GDR_BOTH float row_element(const struct flow *f, const char *r, int i)
{
	if (!f->fp8)
		return bf16_float(((const uint16_t *)(const void *)r)[i]);
	return fp8_float(((const uint8_t *)r)[i]) * ((const float *)(const void *)(r + f->hidden))[i / GROUP];
}

/* Whether one of n PEs, from pe on, has an expert of a row. */
GDR_DEVICE int needs(const struct flow *f, int r, int pe, int n)
{
	const struct choice *c = f->choice + (size_t)r * (size_t)f->topk;
	int found = 0;

	for (int k = 0; k < f->topk; k++)
		found |= (unsigned)(c[k].expert / f->local - pe) < (unsigned)n;
	return found;
}

/* A warp: a bit for each token of `owner`'s, of `count` from `first` on, of which one of n PEs, from pe on, has an
 * expert. */
GDR_DEVICE uint32_t needed(const struct flow *f, int owner, int first, int count, int pe, int n)
{
	int lane = (int)gdr_lane_id(), t = first + lane;

	return gdr_ballot(0xffffffff, lane < count && t < f->tokens && needs(f, row_of(f, owner, t), pe, n));
}

GDR_BOTH int bits_of(uint32_t mask)
{
	int n = 0;

	for (; mask; mask &= mask - 1)
		n++;
	return n;
}

/* ---- communication ---- */

GDR_DEVICE int senders(void)
{
	return warps() / 4 > SENDERS ? SENDERS : warps() / 4 > 0 ? warps() / 4 : 1;
}

/* A sender: src to where dst lies at PE pe, through its part of the block's shared memory. */
GDR_DEVICE int send(const struct flow *f, void *dst, const void *src, size_t bytes, int pe)
{
	uint32_t stage = f->shared / (uint32_t)senders() & ~127u;

	return gdr_put_bulk_nbi_warp(dst, src, bytes, (char *)gdr_shared() + (uint32_t)warp() * stage, stage, pe);
}

/* The signal of a part of PE pe's choices. */
GDR_DEVICE uint64_t *known(const struct flow *f, int pe, int part)
{
	return &f->known[pe * f->parts + part];
}

/* A sender: says that what it sent to PE pe is there. */
GDR_DEVICE int send_signal(const struct flow *f, uint64_t *signal, int pe)
{
	int ret = 0;

	gdr_sync_warp(0xffffffff);
	if (gdr_lane_id() == 0) {
		ret = gdr_fence_pe(pe);
		ret = ret ? ret : gdr_signal_set(signal, f->round, pe);
	}
	return (int)gdr_shfl_u32(0xffffffff, (uint32_t)ret, 0); /* all lanes go on, or none */
}

/* A sender: rows of a chunk, the first of which lies at src, of `each` bytes; those that have a bit in `mask`. */
GDR_DEVICE int send_runs(const struct flow *f, char *dst, const char *src, size_t each, uint32_t mask, int pe)
{
	int ret = 0, first = 0, n;

	while (mask && !ret) {
		for (; !(mask & 1); mask >>= 1)
			first++;
		for (n = 0; mask & 1; mask >>= 1)
			n++;
		ret = send(f, dst + (size_t)first * each, src + (size_t)first * each, (size_t)n * each, pe);
		first += n;
	}
	return ret;
}

/* The i-th PE that dispatch of this PE puts to: those of its node, then on each other node the one that stands there as
 * this one does here. */
GDR_DEVICE int target(const struct flow *f, int i)
{
	int me = gdr_my_pe(), node = f->node;

	if (i < node - 1)
		return me / node * node + (me + 1 + i) % node;
	return (me + (i - node + 2) * node) % gdr_n_pes();
}

/* A sender: those of a chunk of `owner`'s tokens that PE pe needs, or, if pe is on another node, any PE there. */
GDR_DEVICE int dispatch_chunk(const struct flow *f, int owner, int chunk, int pe)
{
	int near = pe / f->node == gdr_my_pe() / f->node, t = chunk * f->chunk;
	uint32_t mask = needed(f, owner, t, f->chunk, near ? pe : pe / f->node * f->node, near ? 1 : f->node);
	char *first = row(f, row_of(f, owner, t));
	int ret = send_runs(f, first, first, row_bytes(f), mask, pe);

	return ret ? ret : send_signal(f, &f->arrived[owner * f->chunks + chunk], pe);
}

/* A sender: the partial sums for a chunk of PE pe's tokens. */
GDR_DEVICE int combine_chunk(const struct flow *f, int chunk, int pe)
{
	int me = gdr_my_pe(), t = chunk * f->sums;
	char *to = (char *)f->back + (size_t)row_of(f, me, t) * sum_bytes(f);
	char *from = (char *)f->made + (size_t)row_of(f, pe, t) * sum_bytes(f);
	int ret = send_runs(f, to, from, sum_bytes(f), needed(f, pe, t, f->sums, me, 1), pe);

	return ret ? ret : send_signal(f, &f->came[me * f->sum_chunks + chunk], pe);
}

/* A warp: waits until a signal that PE pe sets has come to this round. */
GDR_DEVICE int await(const struct flow *f, const uint64_t *signal, int pe)
{
	int ret = 0;

	if (gdr_lane_id() == 0 && pe != gdr_my_pe())
		ret = gdr_signal_wait_until_from(signal, GDR_CMP_GE, f->round, pe);
	gdr_sync_warp(0xffffffff); /* what lane 0 acquired, for all of them */
	return (int)gdr_shfl_u32(0xffffffff, (uint32_t)ret, 0);
}

/* A warp: waits for the rows of a chunk of PE pe's, which one of this node forwards if pe is on another one. */
GDR_DEVICE int await_rows(const struct flow *f, int pe, int chunk)
{
	int here = gdr_my_pe() / f->node * f->node + pe % f->node;

	return await(f, &f->arrived[pe * f->chunks + chunk], here == gdr_my_pe() ? pe : here);
}

GDR_DEVICE int all_senders(void)
{
	return (int)gdr_grid_size() * senders();
}

/* A sender: its share of own tokens; chunks in their order, for each of them all targets in turn. */
GDR_DEVICE int dispatch_own(const struct flow *f)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), targets = f->node - 1 + n / f->node - 1, ret = 0;

	for (int i = spread_warp(); i < f->chunks * targets && !ret; i += all_senders())
		ret = dispatch_chunk(f, me, i / targets, target(f, i % targets));
	return ret;
}

/* A sender: its share of what came from other nodes for the PEs of this one. It is waited for behind own chunks: no
 * chunk waits for one that waits. */
GDR_DEVICE int dispatch_forward(const struct flow *f)
{
	int near = f->node - 1, each = near * (gdr_n_pes() / f->node - 1), ret = 0;

	for (int i = spread_warp(); i < f->chunks * each && !ret; i += all_senders()) {
		int owner = target(f, near + i % each / near), chunk = i / each;

		ret = await(f, known(f, owner, chunk / f->part), owner);
		ret = ret ? ret : await_rows(f, owner, chunk);
		ret = ret ? ret : dispatch_chunk(f, owner, chunk, target(f, i % near));
	}
	return ret;
}

/* A sender: its share of the partial sums for tokens of other PEs. */
GDR_DEVICE int combine_sums(const struct flow *f)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), ret = 0;

	for (int i = spread_warp(); i < f->sum_chunks * (n - 1) && !ret; i += all_senders())
		ret = combine_chunk(f, i / (n - 1), (me + 1 + i % (n - 1)) % n);
	return ret;
}

/* ---- kernels ---- */

/* Of a round, how many rows each pair has. */
GDR_BOTH uint32_t *got_of(const struct flow *f, uint64_t round)
{
	return f->got + (round & 1) * (size_t)f->experts;
}

/* Choices of a part; the last one may have fewer. */
GDR_BOTH int part_choices(const struct flow *f)
{
	return f->part * f->chunk * f->topk;
}

/* The choices of PE pe's from the first of a part on, and how many follow to the part's end. */
GDR_DEVICE struct choice *choices_of(const struct flow *f, int pe, int part, int *n)
{
	int first = part * part_choices(f), left = f->tokens * f->topk - first;

	*n = left < part_choices(f) ? left : part_choices(f);
	return f->choice + (size_t)row_of(f, pe, 0) * (size_t)f->topk + first;
}

/* A warp: a part of the own choices, for PE pe. */
GDR_DEVICE int put_choices(const struct flow *f, int part, int pe)
{
	int n, me = gdr_my_pe();
	struct choice *own = choices_of(f, me, part, &n);

	return gdr_put_signal_nbi_warp(own, own, (size_t)n * sizeof(*own), known(f, me, part), f->round,
				       GDR_SIGNAL_SET, pe);
}

/* A warp: lists 32 rows of PE pe's tokens by expert, from the i-th choice of a part on, a choice a lane. */
GDR_DEVICE int list_rows(const struct flow *f, int pe, int part, int i)
{
	int n, ret = await(f, known(f, pe, part), pe);
	const struct choice *c = choices_of(f, pe, part, &n);
	unsigned expert;
	uint32_t pair, at;

	i += (int)gdr_lane_id();
	if (ret || i >= n)
		return ret;
	expert = (unsigned)(c[i].expert - gdr_my_pe() * f->local);
	pair = expert * (uint32_t)gdr_n_pes() + (uint32_t)pe;
	if (expert < (unsigned)f->local) {
		at = gdr_grid_fetch_add_u32(&got_of(f, f->round)[pair], 1); /* a number: orders nothing */
		f->list[(size_t)pair * (size_t)f->tokens + at] = row_of(f, pe, (part * part_choices(f) + i) / f->topk);
	}
	return 0;
}

/* A warp: which PE each of its lanes, k, adds a partial sum of: that of token t's k-th expert where none before is of
 * it; else -1. */
GDR_DEVICE int pe_of_lane(const struct flow *f, int t)
{
	const struct choice *c = f->choice + (size_t)row_of(f, gdr_my_pe(), t) * (size_t)f->topk;
	int lane = (int)gdr_lane_id(), pe = c[lane < f->topk ? lane : 0].expert / f->local, first = lane < f->topk;

	for (int k = 0; k < f->topk; k++) {
		int before = (int)gdr_shfl_u32(0xffffffff, (uint32_t)pe, (unsigned)k);

		first &= k >= lane || before != pe;
	}
	return first ? pe : -1;
}

/* The partial sum that PE pe made for token t. */
GDR_DEVICE const struct piece *partial(const struct flow *f, int t, int pe)
{
	const uint16_t *of = pe == gdr_my_pe() ? f->made : f->back;

	return (const struct piece *)(const void *)(of + (size_t)row_of(f, pe, t) * (size_t)f->hidden);
}

/* A warp, one `of` so many that share this: waits for the partial sums of token t, and adds them up. */
GDR_DEVICE int combine_token_sums(const struct flow *f, int t, int number, int of)
{
	struct piece *y = (struct piece *)(void *)(f->y + (size_t)t * (size_t)f->hidden);
	int pe = pe_of_lane(f, t), lane = (int)gdr_lane_id(), pieces = f->hidden / 8, ret = 0;

	if (pe >= 0 && pe != gdr_my_pe())
		ret = gdr_signal_wait_until_from(&f->came[pe * f->sum_chunks + t / f->sums], GDR_CMP_GE, f->round, pe);
	gdr_sync_warp(0xffffffff); /* what each lane acquired, for all of them */
	ret = -(int)warp_max((uint32_t)-ret);
	for (int first = 32 * DEEP * number; first < pieces && !ret; first += 32 * DEEP * of)
		add_rows(y, pe < 0 ? NULL : partial(f, t, pe), 1.0f, first + lane, pieces);
	return ret;
}

/* Own tokens as they are dispatched. As in a model, where the layer before does it, it is no part of dispatch. */
GDR_KERNEL(flow_cast, struct flow, f)
{
	int groups = f.hidden / GROUP;

	for (int i = grid_warp(); i < f.tokens * groups; i += grid_warps()) {
		char *r = row(&f, row_of(&f, gdr_my_pe(), i / groups));
		int g = i % groups;

		const uint16_t *x = f.x + (size_t)(i / groups) * (size_t)f.hidden + g * GROUP;

		cast_group((uint8_t *)r + g * GROUP, (float *)(void *)(r + f.hidden) + g,
			   ((const uint64_t *)(const void *)x)[gdr_lane_id()]);
	}
}

/* The warps that do not send, numbered over the grid. */
GDR_DEVICE int worker(void)
{
	return (warp() - senders()) * (int)gdr_grid_size() + (int)gdr_block_id();
}

GDR_DEVICE int workers(void)
{
	return (warps() - senders()) * (int)gdr_grid_size();
}

GDR_KERNEL(flow_dispatch, struct flow, f)
{
	int n = gdr_n_pes(), slices = (part_choices(&f) + 31) / 32, ret = 0;

	if (warp() < senders()) {
		ret = dispatch_own(&f);
		ret = ret ? ret : dispatch_forward(&f);
	}
	for (int i = worker(); warp() >= senders() && i < f.parts * (n - 1) && !ret; i += workers())
		ret = put_choices(&f, i / (n - 1), (gdr_my_pe() + 1 + i % (n - 1)) % n);
	for (int i = worker(); warp() >= senders() && i < f.parts * slices * n && !ret; i += workers())
		ret = list_rows(&f, i % n, i / n / slices, i / n % slices * 32);
	for (int i = worker() * 32 + (int)gdr_lane_id(); warp() >= senders() && i < f.experts; i += workers() * 32)
		got_of(&f, f.round + 1)[i] = 0; /* nobody reads the round before's any more */
	for (int i = worker(); warp() >= senders() && i < f.chunks * gdr_n_pes() && !ret; i += workers())
		ret = await_rows(&f, i / f.chunks, i % f.chunks);
	if (ret)
		f.status[gdr_block_id()] = ret; /* of any of its threads */
}

/* One thread: element i of the partial sum of this PE's experts for a row. */
GDR_DEVICE float partial_sum(const struct flow *f, int r, int i)
{
	const struct choice *c = f->choice + (size_t)r * (size_t)f->topk;
	float x = row_element(f, row(f, r), i), sum = 0;

	for (int k = 0; k < f->topk; k++)
		if (c[k].expert / f->local == gdr_my_pe())
			sum += c[k].weight * bf16_float(expert_element(c[k].expert, x));
	return sum;
}

/* Stands for multiplications of the rows of each expert's list, and the sum of what they make of a row. */
GDR_KERNEL(flow_experts, struct flow, f)
{
	for (int r = (int)gdr_block_id(); r < f.tokens * gdr_n_pes(); r += (int)gdr_grid_size()) {
		if (!needs(&f, r, gdr_my_pe(), 1))
			continue;
		for (int i = (int)gdr_thread_id(); i < f.hidden; i += (int)gdr_block_size())
			f.made[(size_t)r * (size_t)f.hidden + (size_t)i] = bf16_of(partial_sum(&f, r, i));
	}
}

/* A warp, one of so many: adds up what came, several of them a token if there are as many, and waits for every chunk,
 * also those without tokens: the round is over then. */
GDR_DEVICE int add_tokens(const struct flow *f, int number, int all)
{
	int most = (f->hidden / 8 + 32 * DEEP - 1) / (32 * DEEP), of = all / f->tokens, ret = 0;

	of = of < 1 ? 1 : of > most ? most : of;
	for (int i = number; i < f->tokens * of && !ret; i += all)
		ret = combine_token_sums(f, i / of, i % of, of);
	for (int i = number; i < f->sum_chunks * gdr_n_pes() && !ret; i += all)
		ret = await(f, &f->came[i], i / f->sum_chunks);
	return ret;
}

GDR_KERNEL(flow_combine, struct flow, f)
{
	int ret = 0;

	if (warp() < senders())
		ret = combine_sums(&f);
	else if (!f.adders)
		ret = add_tokens(&f, worker(), workers());
	if (ret)
		f.status[gdr_block_id()] = ret;
}

/* Behind flow_combine, so that few blocks send, and as many as the GPU holds add up. */
GDR_KERNEL(flow_add, struct flow, f)
{
	int ret = add_tokens(&f, spread_warp(), grid_warps());

	if (ret)
		f.status[gdr_block_id()] = ret;
}

/* ---- host side ---- */

/* The tokens that a sender puts. */
static long flow_share(const struct options *o)
{
	long all = SENDERS * o->blocks;

	return (o->tokens * (gdr_host_n_pes() - 1) + all - 1) / all;
}

/* A sender's fence waits for all that its multiprocessor has under way, so chunks are as large as may be; smaller where
 * somebody goes on with one while the next is under way: a PE that forwards to its node. */
static int flow_chunk(const struct options *o, int forwards)
{
	long share = flow_share(o), chunk = o->chunk ? o->chunk : forwards ? share / 8 : share;

	return chunk < 1 ? 1 : chunk > 32 ? 32 : (int)chunk;
}

/* Partial sums are added up while others come, unless that is a kernel of its own. */
static int flow_sums(const struct options *o)
{
	long share = flow_share(o), chunk = share < 2 ? 1 : share / 8 < 2 ? 2 : share / 8 > 4 ? 4 : share / 8;

	return o->adders || o->chunk ? flow_chunk(o, 0) : (int)chunk;
}

/* PEs of this PE's node where they follow each other, as many on each node; else 0. */
static int own_node(void)
{
	int here = gdr_host_team_n_pes(GDR_TEAM_NODE), n = gdr_host_n_pes(), first = gdr_host_my_pe() / here * here;

	if (n % here || gdr_host_team_translate_pe(GDR_TEAM_NODE, 0, GDR_TEAM_WORLD) != first ||
	    gdr_host_team_translate_pe(GDR_TEAM_NODE, here - 1, GDR_TEAM_WORLD) != first + here - 1)
		return 0;
	return here;
}

/* Collective: what own_node is on all PEs, or, where they differ, the number of PEs. */
static int flow_node(int *node)
{
	int n = gdr_host_n_pes(), own = own_node(), one, ret;
	int *all = (int *)gdr_calloc((size_t)n + 1, sizeof(int)); /* the last one is the own */

	if (!all)
		return -GDR_ENOMEM;
	ret = gdr_memcpy(all + n, &own, sizeof(own));
	ret = ret ? ret : gdr_barrier_all();
	*node = own ? own : n;
	for (int pe = 0; pe < n && !ret; pe++) {
		ret = gdr_host_get(all + pe, all + n, sizeof(own), pe);
		ret = ret ? ret : gdr_memcpy(&one, all + pe, sizeof(one));
		if (!ret && one != own)
			*node = n;
	}
	gdr_free(all); /* a barrier */
	return ret;
}

static int flow_set_up(struct flow *f, const struct options *o)
{
	size_t pes = (size_t)gdr_host_n_pes(), tokens = (size_t)o->tokens, hidden = (size_t)o->hidden;
	size_t rows = pes * tokens;
	uint16_t *x = (uint16_t *)malloc(tokens * hidden * sizeof(*x));
	int ret = x ? 0 : -GDR_ENOMEM;

	memset(f, 0, sizeof(*f));
	ret = ret ? ret : flow_node(&f->node);
	f->tokens = (int)o->tokens;
	f->hidden = (int)o->hidden;
	f->topk = (int)o->topk;
	f->fp8 = (int)o->fp8;
	f->local = local_experts(o);
	f->experts = f->local * (int)pes;
	f->chunk = flow_chunk(o, f->node > 1 && f->node < (int)pes);
	f->chunks = (f->tokens + f->chunk - 1) / f->chunk;
	f->part = (PART + f->chunk - 1) / f->chunk;
	f->part = f->part < f->chunks ? f->part : f->chunks;
	f->parts = (f->chunks + f->part - 1) / f->part;
	f->sums = flow_sums(o);
	f->sum_chunks = (f->tokens + f->sums - 1) / f->sums;
	f->adders = (int)o->adders;
	f->shared = (uint32_t)o->shared << 10;
	f->choice = (struct choice *)symmetric(rows * (size_t)o->topk, sizeof(struct choice), &ret);
	f->rows = (char *)symmetric(rows, row_bytes(f), &ret);
	f->made = (uint16_t *)symmetric(rows, sum_bytes(f), &ret);
	f->back = (uint16_t *)symmetric(rows, sum_bytes(f), &ret);
	f->y = (uint16_t *)symmetric(tokens, sum_bytes(f), &ret);
	f->list = (int32_t *)symmetric((size_t)f->experts * tokens, sizeof(int32_t), &ret);
	f->got = (uint32_t *)zeroed(2 * (size_t)f->experts, sizeof(uint32_t), &ret);
	f->known = (uint64_t *)zeroed(pes * (size_t)f->parts, sizeof(uint64_t), &ret);
	f->arrived = (uint64_t *)zeroed(pes * (size_t)f->chunks, sizeof(uint64_t), &ret);
	f->came = (uint64_t *)zeroed(pes * (size_t)f->sum_chunks, sizeof(uint64_t), &ret);
	f->status = (int *)zeroed((size_t)(o->blocks + o->adders), sizeof(int), &ret);
	f->x = f->fp8 ? (uint16_t *)symmetric(tokens, sum_bytes(f), &ret) : NULL;
	if (!ret && !f->fp8)
		f->x = (uint16_t *)(void *)row(f, row_of(f, gdr_host_my_pe(), 0));
	for (size_t i = 0; !ret && i < tokens * hidden; i++)
		x[i] = token_element(gdr_host_my_pe(), (int)(i / hidden), (int)(i % hidden));
	if (!ret)
		ret = gdr_memcpy(f->x, x, tokens * hidden * sizeof(*x));
	free(x);
	return ret;
}

static int flow_set_routing(const struct flow *f, const struct options *o, long round)
{
	size_t n = (size_t)(o->tokens * o->topk);
	int32_t *expert = (int32_t *)malloc(n * sizeof(*expert));
	float *weight = (float *)malloc(n * sizeof(*weight));
	struct choice *choice = (struct choice *)malloc(n * sizeof(*choice));
	int ret = expert && weight && choice ? 0 : -GDR_ENOMEM;

	if (!ret)
		route(o, gdr_host_my_pe(), round, expert, weight);
	for (size_t i = 0; i < n && !ret; i++) {
		choice[i].expert = expert[i];
		choice[i].weight = weight[i];
	}
	if (!ret)
		ret = gdr_memcpy(f->choice + (size_t)gdr_host_my_pe() * n, choice, n * sizeof(*choice));
	free(expert);
	free(weight);
	free(choice);
	return ret;
}

/* Puts dispatch, experts and combine on the stream, and marks around them. Blocks wait for those of other PEs: all of
 * them must run at once. */
static int flow_round(struct flow *f, const struct options *o, struct sample_mark *mark)
{
	unsigned grid = (unsigned)o->blocks, block = sample_is_cuda() ? 512 : 64;
	struct flow add = *f; /* with a status of its own */
	int ret = f->fp8 ? gdr_launch(flow_cast, grid, block, 0, NULL, f) : 0;

	ret = ret ? ret : meet(o);
	if (!ret)
		ret = sample_mark(&mark[0]);
	if (!ret)
		ret = gdr_collective_launch(flow_dispatch, grid, block, f->shared, NULL, f);
	if (!ret)
		ret = sample_mark(&mark[1]);
	if (!ret)
		ret = gdr_launch(flow_experts, sample_is_cuda() ? 1024 : grid, block, 0, NULL, f);
	ret = ret ? ret : meet(o);
	if (!ret)
		ret = sample_mark(&mark[2]);
	if (!ret)
		ret = gdr_collective_launch(flow_combine, grid, block, f->shared, NULL, f);
	add.status = f->status + o->blocks;
	if (!ret && f->adders)
		ret = gdr_launch(flow_add, (unsigned)f->adders, block, 0, NULL, &add);
	return ret ? ret : sample_mark(&mark[3]);
}

#endif
