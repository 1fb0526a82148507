/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums over PEs whose memory can be loaded and stored (gdr_ptr): GPUs joined by
 * NVLink, or the PEs of a node on the host device. Short vectors in one shot: each
 * element travels in one word together with the number of the call, so its arrival
 * is its own signal. Long ones in two: each PE adds up its part of all vectors and
 * stores it into all results, the second shot beginning while the first goes on. */
#ifndef ALLREDUCE_MAPPED_H
#define ALLREDUCE_MAPPED_H

#include <gdr.h>
#include <string.h>

#define MAPPED_UNROLL 4
#ifdef __CUDACC__
#define MAPPED_UNROLLED _Pragma("unroll")
#else
#define MAPPED_UNROLLED _Pragma("GCC unroll 4")
#endif

struct mapped {
	float *in, *out;
	uint32_t count;
	uint64_t *words; /* one shot: [2][n][count] */
	uint64_t *met;	 /* two shots: [block][n] */
};


/* Two areas of words in turn: who writes area a in call k + 2 has ended call k + 1, so it has had all
 * words of that, and each was sent by who had read area a in call k. */
GDR_DEVICE int reduce_one_shot(const struct mapped *m, uint64_t call)
{
	uint32_t first = gdr_block_id() * gdr_block_size() + gdr_thread_id();
	uint32_t all = gdr_grid_size() * gdr_block_size(), bits;
	int me = gdr_my_pe(), n = gdr_n_pes(), ret = 0;
	uint64_t *words = m->words + (call & 1) * (uint64_t)n * m->count, *word;

	for (uint32_t k = first; k < m->count; k += all) {
		memcpy(&bits, &m->in[k], sizeof(bits));
		for (int i = 1; i < n; i++)
			ret |= gdr_uint64_p(words + (uint64_t)me * m->count + k, call << 32 | bits,
					    (me + i) % n);
	}
	for (uint32_t k = first; k < m->count && !ret; k += all) {
		float sum = m->in[k], part;

		for (int i = 1; i < n && !ret; i++) {
			word = words + (uint64_t)((me + i) % n) * m->count + k;
			ret = gdr_uint64_wait_until(word, GDR_CMP_GE, call << 32);
			bits = (uint32_t)gdr_signal_fetch(word);
			memcpy(&part, &bits, sizeof(part));
			sum += part;
		}
		m->out[k] = sum;
	}
	return ret;
}

/* The same block of all PEs: what each did before is seen by all. Every thread gets the status. */
GDR_DEVICE int mapped_meet(const struct mapped *m, uint64_t value)
{
	int *bad = (int *)gdr_shared(), t = (int)gdr_thread_id(), me = gdr_my_pe(), ret = 0, n;
	uint64_t *met = m->met + (uint64_t)gdr_block_id() * (uint32_t)gdr_n_pes();

	n = gdr_n_pes();
	if (t == 0)
		*bad = 0;
	gdr_sync_block();
	for (int pe = t; pe < n; pe += (int)gdr_block_size()) {
		if (pe == me)
			continue;
		ret = gdr_fence(); /* for what the other threads of the block did */
		if (!ret)
			ret = gdr_signal_op(met + me, value, GDR_SIGNAL_SET, pe);
		if (!ret)
			ret = gdr_signal_wait_until_from(met + pe, GDR_CMP_GE, value, pe);
		if (ret)
			*bad = ret;
	}
	gdr_sync_block();
	ret = *bad;
	gdr_sync_block();
	return ret;
}

struct four {
	float v[4];
} __attribute__((aligned(16)));

/* UNROLL groups of four elements, `step` groups apart. */
GDR_DEVICE void mapped_sum(const struct mapped *m, uint32_t at, uint32_t step, int groups)
{
	int me = gdr_my_pe(), n = gdr_n_pes();
	struct four sum[MAPPED_UNROLL], part[MAPPED_UNROLL];

	for (int i = 0; i < n; i++) {
		const struct four *in = (const struct four *)gdr_ptr(m->in, (me + i) % n);

		MAPPED_UNROLLED
		for (int u = 0; u < MAPPED_UNROLL; u++)
			if (u < groups)
				part[u] = in[at + (uint32_t)u * step];
		MAPPED_UNROLLED
		for (int u = 0; u < MAPPED_UNROLL; u++)
			for (int j = 0; j < 4 && u < groups; j++)
				sum[u].v[j] = i ? sum[u].v[j] + part[u].v[j] : part[u].v[j];
	}
	for (int i = 0; i < n; i++) {
		struct four *out = (struct four *)gdr_ptr(m->out, (me + i) % n);

		MAPPED_UNROLLED
		for (int u = 0; u < MAPPED_UNROLL; u++)
			if (u < groups)
				out[at + (uint32_t)u * step] = sum[u];
	}
}

/* What is left over behind the last group of four: PE 0, block 0. */
GDR_DEVICE void mapped_rest(const struct mapped *m)
{
	uint32_t k = m->count / 4 * 4 + gdr_thread_id();
	float sum = 0;

	if (k >= m->count)
		return;
	for (int pe = 0; pe < gdr_n_pes(); pe++)
		sum += ((const float *)gdr_ptr(m->in, pe))[k];
	for (int pe = 0; pe < gdr_n_pes(); pe++)
		((float *)gdr_ptr(m->out, pe))[k] = sum;
}

/* Blocks are independent: block b of each PE reads and writes a share of its own of all vectors. In
 * the first meeting all have their vectors ready and may be written to; in the second all that
 * is written has arrived, and nobody reads any more. */
GDR_DEVICE int reduce_two_shots(const struct mapped *m, uint64_t call)
{
	uint32_t fours = m->count / 4, n = (uint32_t)gdr_n_pes(), me = (uint32_t)gdr_my_pe();
	uint32_t begin = (uint32_t)((uint64_t)fours * me / n);
	uint32_t end = (uint32_t)((uint64_t)fours * (me + 1) / n);
	uint32_t step = gdr_grid_size() * gdr_block_size(), at;
	int ret = mapped_meet(m, 2 * call - 1);

	if (ret)
		return ret;
	at = begin + gdr_block_id() * gdr_block_size() + gdr_thread_id();
	for (; at < end; at += MAPPED_UNROLL * step) {
		if (at + (MAPPED_UNROLL - 1) * step < end)
			mapped_sum(m, at, step, MAPPED_UNROLL);
		else
			for (int u = 0; u < MAPPED_UNROLL && at + (uint32_t)u * step < end; u++)
				mapped_sum(m, at + (uint32_t)u * step, step, 1);
	}
	if (me == 0 && gdr_block_id() == 0)
		mapped_rest(m);
	return mapped_meet(m, 2 * call);
}

#endif
