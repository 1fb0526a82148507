/* SPDX-License-Identifier: BSD-3-Clause */
/* What moe.c computes, in whatever form it communicates: tokens, their routing, the cast to FP8, and what stands for
 * the experts; for kernels, and serially for the comparison. */
#ifndef MOE_MODEL_H
#define MOE_MODEL_H

#include <gdr/stream.h>
#include <gdr/threads.h>

#include "sample.h"

#include "moe_numbers.h"

#define GROUP 128   /* elements that have a scale in common: four of each lane */
#define MAX_TOPK 14 /* experts of a token */
#define DEEP 4	    /* loads of a thread under way */

/* ---- in kernels ---- */

GDR_DEVICE int warp(void)
{
	return (int)(gdr_thread_id() / 32);
}

GDR_DEVICE int warps(void)
{
	return (int)(gdr_block_size() / 32);
}

GDR_DEVICE int grid_warp(void)
{
	return (int)gdr_block_id() * warps() + warp();
}

GDR_DEVICE int grid_warps(void)
{
	return (int)gdr_grid_size() * warps();
}

/* The number of this warp in the grid, blocks before warps: so few units of work spread over the blocks. */
GDR_DEVICE int spread_warp(void)
{
	return warp() * (int)gdr_grid_size() + (int)gdr_block_id();
}

/* Of all lanes of the warp, for all. */
GDR_DEVICE uint32_t warp_sum(uint32_t v)
{
	for (unsigned i = 16; i; i /= 2)
		v += gdr_shfl_u32(0xffffffff, v, gdr_lane_id() ^ i);
	return v;
}

GDR_DEVICE uint32_t warp_max(uint32_t v)
{
	for (unsigned i = 16; i; i /= 2) {
		uint32_t other = gdr_shfl_u32(0xffffffff, v, gdr_lane_id() ^ i);

		v = other > v ? other : v;
	}
	return v;
}

/* A warp: 128 elements, from q on, and their scale; of each lane four, as BF16. */
GDR_DEVICE void cast_group(uint8_t *q, float *scale, uint64_t four)
{
	uint32_t largest = 0, out = 0; /* the bits of floats that are not negative are in their order */
	float s;

	for (int i = 0; i < 4; i++) {
		uint32_t bits = float_bits(bf16_float((uint16_t)(four >> 16 * i))) & 0x7fffffff;

		largest = bits > largest ? bits : largest;
	}
	largest = warp_max(largest);
	s = fp8_factor(bits_float(largest));
	for (int i = 0; i < 4; i++)
		out |= (uint32_t)fp8_of(bf16_float((uint16_t)(four >> 16 * i)) * s) << 8 * i;
	((uint32_t *)(void *)q)[gdr_lane_id()] = out;
	if (gdr_lane_id() == 0)
		*scale = fp8_scale(bits_float(largest));
}

/* What has 16 bytes: 8 elements. */
struct piece {
	uint32_t w[4];
} __attribute__((aligned(16)));

/* DEEP pieces, 32 apart from `at` on, of which there are `pieces`: a load behind the last one reads that again, so that
 * no load waits for the one before. */
GDR_DEVICE void load_pieces(struct piece *v, const struct piece *p, int at, int pieces)
{
	for (int i = 0; i < DEEP; i++)
		v[i] = p[at + 32 * i < pieces ? at + 32 * i : pieces - 1];
}

/* Adds a piece by its weight. */
GDR_DEVICE void add_piece(float *sum, const struct piece *p, float weight)
{
	for (int i = 0; i < 4; i++) {
		sum[2 * i] += weight * bits_float(p->w[i] << 16);
		sum[2 * i + 1] += weight * bits_float(p->w[i] & 0xffff0000);
	}
}

GDR_DEVICE void store_piece(struct piece *p, const float *sum)
{
	struct piece v;

	for (int i = 0; i < 4; i++)
		v.w[i] = bf16_of(sum[2 * i]) | (uint32_t)bf16_of(sum[2 * i + 1]) << 16;
	*p = v;
}

/* A warp: lane's row, for all. */
GDR_DEVICE const struct piece *row_of_lane(const struct piece *row, int lane)
{
	return (const struct piece *)(uintptr_t)gdr_shfl_u64(0xffffffff, (uintptr_t)row, (unsigned)lane);
}

/* A warp: DEEP times 32 pieces of y, from `at` of this lane on. They are the sum of the rows that lanes have, lane 0 in
 * any case, in their order and each by its lane's weight. While the pieces of one row are added, those of the next are
 * under way. */
GDR_DEVICE void add_rows(struct piece *y, const struct piece *row, float weight, int at, int pieces)
{
	uint32_t left = gdr_ballot(0xffffffff, row != NULL);
	struct piece v[DEEP], next[DEEP];
	float sum[DEEP][8] = {{0}};
	int k = 0;

	load_pieces(v, row_of_lane(row, 0), at, pieces);
	for (left &= ~1u; left; left &= ~(1u << k)) {
		float by = gdr_shfl_f32(0xffffffff, weight, (unsigned)k);

		while (!(left >> k & 1))
			k++;
		load_pieces(next, row_of_lane(row, k), at, pieces);
		for (int i = 0; i < DEEP; i++) {
			add_piece(sum[i], &v[i], by);
			v[i] = next[i];
		}
	}
	weight = gdr_shfl_f32(0xffffffff, weight, (unsigned)k);
	for (int i = 0; i < DEEP; i++) {
		add_piece(sum[i], &v[i], weight);
		if (at + 32 * i < pieces)
			store_piece(y + at + 32 * i, sum[i]);
	}
}

/* What an expert makes of an element; stands for its matrices. */
GDR_BOTH uint16_t expert_element(int expert, float x)
{
	return bf16_of(x * (1.0f + 0.125f * (float)(expert % 61)) + 0.0625f * (float)(expert / 61 + 1));
}

/* ---- on the host ---- */

struct options {
	long tokens, hidden, experts, topk, rounds, blocks, fp8, skew, hook, picture;
	long throughput, chunk, shared, adders, timed, align;
};

static uint16_t token_element(int pe, int t, int i)
{
	uint64_t r = sample_mix(((uint64_t)pe << 48) ^ ((uint64_t)t << 24) ^ (uint64_t)i);

	/* of very different sizes, group by group */
	return bf16_of(((float)(r >> 40) / 8388608.0f - 1.0f) * (float)(1 << ((i / GROUP + t) % 11)));
}

/* The k-th choice of a token, before those that were made already are left out. */
static int drawn_expert(const struct options *o, int pe, int t, int k, long round)
{
	uint64_t r = sample_mix(((uint64_t)round << 56) ^ ((uint64_t)pe << 40) ^ ((uint64_t)t << 8) ^ (uint64_t)k);
	double u = (double)(r >> 11) / 9007199254740992.0;

	return (int)((o->skew ? u * u * u * u : u) * (double)o->experts);
}

/* Whom the tokens of a PE go to, and how much that counts. */
static void route(const struct options *o, int pe, long round, int32_t *expert, float *weight)
{
	for (int t = 0; t < (int)o->tokens; t++)
		for (int k = 0; k < (int)o->topk; k++) {
			int32_t *of = expert + t * o->topk, e = drawn_expert(o, pe, t, k, round);

			for (int before = 0; before < k; before++)
				if (of[before] == e) {
					e = (e + 1) % (int32_t)o->experts;
					before = -1;
				}
			of[k] = e;
			weight[t * o->topk + k] =
				(float)(1 + sample_mix((uint64_t)(pe + t * 64 + k)) % 1000) / 1024.0f;
		}
}

/* One thread's form of what cast_token makes of a token: element i as the expert sees it. */
static void serial_cast(const struct options *o, int pe, int t, float *out)
{
	for (int g = 0; g < (int)o->hidden; g += GROUP) {
		float largest = 0;

		for (int i = g; i < g + GROUP; i++) {
			out[i] = bf16_float(token_element(pe, t, i));
			largest = out[i] > largest ? out[i] : -out[i] > largest ? -out[i] : largest;
		}
		for (int i = g; i < g + GROUP && o->fp8; i++)
			out[i] = fp8_float(fp8_of(out[i] * fp8_factor(largest))) * fp8_scale(largest);
	}
}

static int wrong(const char *what, int e, int pe, int t, int i, double is, double should)
{
	fprintf(stderr, "PE %d: WRONG: %s, expert %d, token %d of PE %d, element %d: %g, not %g\n", gdr_host_my_pe(),
		what, e, t, pe, i, is, should);
	return -1;
}

/* Experts of a PE, of which the last ones may not exist. */
static int local_experts(const struct options *o)
{
	return (int)(o->experts + gdr_host_n_pes() - 1) / gdr_host_n_pes();
}

/* What this PE sends to others in a round: tokens, each for each of its experts, or, once, for each of their PEs. */
static double tokens_sent(const struct options *o, long round, int once)
{
	int n = (int)(o->tokens * o->topk), local = local_experts(o);
	int32_t *expert = (int32_t *)malloc((size_t)n * sizeof(*expert));
	float *weight = (float *)malloc((size_t)n * sizeof(*weight));
	double sent = 0;

	if (expert && weight)
		route(o, gdr_host_my_pe(), round, expert, weight);
	for (int i = 0; i < n && expert && weight; i++) {
		int pe = expert[i] / local, skip = pe == gdr_host_my_pe();

		for (int j = i - i % (int)o->topk; j < i && once; j++)
			skip |= expert[j] / local == pe;
		sent += !skip;
	}
	free(expert);
	free(weight);
	return sent;
}

/* Before kernels that are timed: so that none waits for one of another PE that begins late. */
static int meet(const struct options *o)
{
	return o->align ? gdr_barrier_all_on_stream(NULL) : 0;
}

static void *symmetric(size_t count, size_t size, int *ret)
{
	void *p = *ret ? NULL : gdr_malloc(count * size);

	*ret = p ? *ret : -GDR_ENOMEM;
	return p;
}

static void *zeroed(size_t count, size_t size, int *ret)
{
	void *p = *ret ? NULL : gdr_calloc(count, size);

	*ret = p ? *ret : -GDR_ENOMEM;
	return p;
}

#endif
