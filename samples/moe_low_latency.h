/* SPDX-License-Identifier: BSD-3-Clause */
/* The low-latency form of moe.c: dispatch and combine are a kernel each.
 *  - dispatch puts a token (BF16, or cast to FP8 with a scale for each 128 elements)
 *    to each of its experts, into slots that belong to this PE alone; each
 *    put adds 1 to a signal of expert and PE. How many there will be is a signal
 *    of its own, since every PE counts its routing itself. The receiver waits
 *    for the number, and then for the sum.
 *  - combine adds the results of a token up, by weight, in the order of its
 *    experts. Those of a PE whose memory is mapped here are read where they were
 *    made, behind a signal of that PE: so they go over the link once, and not
 *    into memory and out again. Other PEs put each result back, as dispatch does.
 * Combine waits for a signal of each PE or expert, also of those without tokens:
 * so a PE begins its next round when all have received the last one, and no
 * buffer is written while it is read. Results are made behind the next dispatch,
 * which waits for all PEs: they have read the last ones then. With --hook
 * dispatch is two kernels, of which the first one only sends: what is launched
 * between them runs meanwhile. */
#ifndef MOE_LOW_LATENCY_H
#define MOE_LOW_LATENCY_H

#include "moe_model.h"

enum { SEND = 1, RECEIVE = 2 };

#define COUNT_DEEP 8 /* loads of a thread under way where it counts */

/* Before each token that is dispatched: where results go. What follows is aligned to 16 bytes. */
struct message {
	int32_t token;
	int16_t expert[MAX_TOPK];
};

/* Lies in device memory; the pointers are symmetric. A pair is a local expert and a source PE: expert * n_pes + PE. */
struct moe {
	uint16_t *x;	   /* [tokens][hidden], BF16: of FP8 alone, else the messages of `cast` have them */
	int32_t *expert;   /* [tokens][top-k], each of a token's once */
	float *weight;	   /* [tokens][top-k] */
	uint16_t *y;	   /* [tokens][hidden]: the result */
	char *cast;	   /* [tokens] messages: sources of puts */
	uint32_t *slot;	   /* [tokens][top-k]: of the message that was sent; of this PE alone */
	char *received;	   /* [pairs][tokens] messages */
	uint64_t *count;   /* [pairs]: round << 32 | messages of it */
	uint64_t *arrived; /* [pairs]: messages, of all rounds */
	uint64_t *taken;   /* [pairs]: of these, waited for; of this PE alone */
	uint32_t *got;	   /* [pairs]: messages of this round; of this PE alone */
	uint16_t *made;	   /* [pairs][tokens][hidden]: results of the experts */
	uint64_t *ready;   /* [PEs]: round of the results of a PE that is mapped here */
	uint16_t *back;	   /* [tokens][top-k][hidden]: results that other PEs put back */
	uint64_t *came;	   /* [experts]: of these, and one each round, of all rounds */
	uint64_t *due;	   /* [experts]: what `came` will be; of this PE alone */
	int *status;	   /* [blocks] */
	int tokens, hidden, experts, topk, fp8;
	int local;	/* experts of a PE; `experts` is that times the PEs, the last ones may not exist */
	uint64_t round; /* 1, 2, ... */
	int phases;
};

/* A message: header, elements, scales; a multiple of 16. */
GDR_BOTH size_t message_bytes(const struct moe *m)
{
	size_t n = (size_t)m->hidden, scales = (n / GROUP * sizeof(float) + 15) / 16 * 16;

	return sizeof(struct message) + (m->fp8 ? n + scales : n * sizeof(uint16_t));
}

/* The message of an own token. */
GDR_BOTH struct message *own_message(const struct moe *m, int t)
{
	return (struct message *)(void *)(m->cast + (size_t)t * message_bytes(m));
}

GDR_BOTH char *received_message(const struct moe *m, int pair, size_t slot)
{
	return m->received + ((size_t)pair * (size_t)m->tokens + slot) * message_bytes(m);
}

GDR_BOTH uint16_t *made_result(const struct moe *m, int pair, size_t slot)
{
	return m->made + ((size_t)pair * (size_t)m->tokens + slot) * (size_t)m->hidden;
}

/* A warp: how many of the first n choices are this expert. A load behind the last one reads the first again, so that no
 * load waits for the one before. */
GDR_DEVICE uint32_t count_choices(const struct moe *m, int expert, int n)
{
	uint32_t sum = 0;

	for (int first = (int)gdr_lane_id(); first - (int)gdr_lane_id() < n; first += 32 * COUNT_DEEP) {
		int32_t v[COUNT_DEEP];

		for (int i = 0; i < COUNT_DEEP; i++)
			v[i] = m->expert[first + 32 * i < n ? first + 32 * i : 0];
		for (int i = 0; i < COUNT_DEEP; i++)
			sum += first + 32 * i < n && v[i] == expert;
	}
	return warp_sum(sum);
}

/* A warp: says in a token's message where results go. */
GDR_DEVICE void address_message(const struct moe *m, int t)
{
	struct message *message = own_message(m, t);

	if (gdr_lane_id() == 0)
		message->token = t;
	if ((int)gdr_lane_id() < m->topk)
		message->expert[gdr_lane_id()] = (int16_t)m->expert[t * m->topk + (int)gdr_lane_id()];
}

/* A block: casts its tokens, one of as many as there are blocks. A load behind the last one reads the first again, so
 * that no load waits for the one before. */
GDR_DEVICE void cast_tokens(const struct moe *m)
{
	int block = (int)gdr_block_id(), grid = (int)gdr_grid_size(), groups = m->hidden / GROUP;
	int parts = (m->tokens - block + grid - 1) / grid * groups;

	for (int first = warp(); first < parts; first += DEEP * warps()) {
		uint64_t four[DEEP];

		for (int i = 0; i < DEEP; i++) {
			int part = first + i * warps() < parts ? first + i * warps() : first;
			const uint16_t *x = m->x + (size_t)(block + part / groups * grid) * (size_t)m->hidden;

			four[i] = ((const uint64_t *)(const void *)x)[part % groups * 32 + (int)gdr_lane_id()];
		}
		for (int i = 0, part = first; i < DEEP && part < parts; i++, part += warps()) {
			char *out = (char *)(own_message(m, block + part / groups * grid) + 1);

			cast_group((uint8_t *)out + part % groups * GROUP,
				   (float *)(void *)(out + m->hidden) + part % groups, four[i]);
		}
	}
}

/* A warp: puts token t to its k-th expert, into the slot behind those of the choices before it. */
GDR_DEVICE int dispatch_token(const struct moe *m, int t, int k)
{
	int e = m->expert[t * m->topk + k], pair = e % m->local * gdr_n_pes() + gdr_my_pe();
	uint32_t slot = count_choices(m, e, t * m->topk);
	size_t bytes = message_bytes(m);

	if (gdr_lane_id() == 0)
		m->slot[t * m->topk + k] = slot;
	return gdr_put_signal_nbi_warp(received_message(m, pair, slot), own_message(m, t), bytes,
				       &m->arrived[pair], 1, GDR_SIGNAL_ADD, e / m->local);
}

/* A warp: tells how many tokens an expert gets from this PE. */
GDR_DEVICE int dispatch_count(const struct moe *m, int e)
{
	uint64_t n = count_choices(m, e, m->tokens * m->topk);
	int ret = 0;

	if (gdr_lane_id() == 0) {
		m->due[e] += n + 1;
		ret = gdr_signal_set(&m->count[e % m->local * gdr_n_pes() + gdr_my_pe()], m->round << 32 | n,
				     e / m->local);
	}
	return ret;
}

/* One thread: waits for all tokens of a pair. */
GDR_DEVICE int dispatch_wait(const struct moe *m, int pair)
{
	int from = pair % gdr_n_pes(), ret;

	ret = gdr_signal_wait_until_from(&m->count[pair], GDR_CMP_GE, m->round << 32, from);
	if (ret)
		return ret;
	m->got[pair] = (uint32_t)gdr_signal_fetch(&m->count[pair]);
	m->taken[pair] += m->got[pair];
	return gdr_signal_wait_until_from(&m->arrived[pair], GDR_CMP_GE, m->taken[pair], from);
}

/* A block: its share of the tokens; of all of them at once, so that each warp has one to send. */
GDR_DEVICE int dispatch_send(const struct moe *m)
{
	int block = (int)gdr_block_id(), grid = (int)gdr_grid_size(), ret = 0, one;

	for (int e = grid_warp(); e < m->experts; e += grid_warps()) {
		one = dispatch_count(m, e);
		ret = ret ? ret : one;
	}
	for (int t = block + warp() * grid; t < m->tokens; t += warps() * grid)
		address_message(m, t);
	if (m->fp8)
		cast_tokens(m);
	gdr_sync_block();
	for (int i = warp(); block + i / m->topk * grid < m->tokens; i += warps()) {
		one = dispatch_token(m, block + i / m->topk * grid, i % m->topk);
		ret = ret ? ret : one;
	}
	return ret;
}

GDR_KERNEL(dispatch, struct moe, m)
{
	int ret = m.phases & SEND ? dispatch_send(&m) : 0;

	if (m.phases & RECEIVE && gdr_lane_id() == 0)
		for (int p = grid_warp(); p < m.local * gdr_n_pes() && !ret; p += grid_warps())
			ret = dispatch_wait(&m, p);
	if (ret)
		m.status[gdr_block_id()] = ret; /* of any of its threads */
}

/* Element i of a message as a number. */
GDR_BOTH float message_element(const struct moe *m, const char *message, int i)
{
	const char *in = message + sizeof(struct message);

	if (!m->fp8)
		return bf16_float(((const uint16_t *)in)[i]);
	return fp8_float(((const uint8_t *)in)[i]) * ((const float *)(in + m->hidden))[i / GROUP];
}

GDR_KERNEL(experts, struct moe, m)
{
	for (int p = 0; p < m.local * gdr_n_pes(); p++)
		for (uint32_t s = gdr_block_id(); s < m.got[p]; s += gdr_grid_size())
			for (int i = (int)gdr_thread_id(); i < m.hidden; i += (int)gdr_block_size())
				made_result(&m, p, s)[i] =
					expert_element(gdr_my_pe() * m.local + p / gdr_n_pes(),
						       message_element(&m, received_message(&m, p, s), i));
}

/* A warp: puts the result of a pair's message to where its token came from. */
GDR_DEVICE int combine_token(const struct moe *m, int pair, uint32_t slot)
{
	const struct message *message = (const struct message *)received_message(m, pair, slot);
	int e = gdr_my_pe() * m->local + pair / gdr_n_pes(), lane = (int)gdr_lane_id(), k = 0;
	uint32_t is = gdr_ballot(0xffffffff, lane < m->topk && message->expert[lane] == e);

	while (!(is >> k & 1) && k < m->topk - 1)
		k++;
	return gdr_put_signal_nbi_warp(m->back + (size_t)(message->token * m->topk + k) * (size_t)m->hidden,
				       made_result(m, pair, slot), (size_t)m->hidden * sizeof(uint16_t), &m->came[e], 1,
				       GDR_SIGNAL_ADD, pair % gdr_n_pes());
}

/* Whether this PE reads the results of PE pe where they were made, and PE pe those of this one. */
GDR_DEVICE int is_mapped(const struct moe *m, int pe)
{
	return gdr_ptr(m->made, pe) != NULL;
}

/* A warp: tells mapped PEs that all results were made. */
GDR_DEVICE int combine_tell(const struct moe *m)
{
	int ret = 0;

	for (int pe = (int)gdr_lane_id(); pe < gdr_n_pes() && !ret; pe += 32) {
		if (!is_mapped(m, pe))
			continue;
		ret = gdr_fence_pe(pe); /* of what the kernel before stored; pairs with the wait in combine_wait */
		ret = ret ? ret : gdr_signal_set(&m->ready[gdr_my_pe()], m->round, pe);
	}
	return ret;
}

/* Messages of PEs that are not mapped are numbered over all pairs, and the warps over the grid, blocks before warps: so
 * all of them have some to send, however few each pair has. */
GDR_DEVICE int combine_send(const struct moe *m)
{
	int pairs = m->local * gdr_n_pes(), all = grid_warps(), me = spread_warp(), ret, one;
	uint32_t next = (uint32_t)me; /* of the pair's messages, the next one of this warp */

	ret = me == 0 ? combine_tell(m) : 0;
	for (int first = 0; first < pairs; first += 32) {
		/* one load of all lanes: loads one after the other would take longer than the puts */
		int of_lane = first + (int)gdr_lane_id(), far;
		uint32_t of_all, got;

		far = of_lane < pairs && !is_mapped(m, of_lane % gdr_n_pes());
		of_all = gdr_ballot(0xffffffff, far);
		got = far ? m->got[of_lane] : 0;
		for (int p = first; of_all; p++, of_all >>= 1) {
			uint32_t n = gdr_shfl_u32(0xffffffff, got, (unsigned)(p - first));

			if (!(of_all & 1))
				continue;
			for (; next < n; next += (uint32_t)all) {
				one = combine_token(m, p, next);
				ret = ret ? ret : one;
			}
			next -= n;
			if (p % all == me && gdr_lane_id() == 0) {
				one = gdr_signal_add(&m->came[m->local * gdr_my_pe() + p / gdr_n_pes()], 1,
						     p % gdr_n_pes());
				ret = ret ? ret : one;
			}
		}
	}
	return ret;
}

/* One thread: all results of an expert are there. */
GDR_DEVICE int combine_wait(const struct moe *m, int e)
{
	int pe = e / m->local;

	if (is_mapped(m, pe))
		return gdr_signal_wait_until_from(&m->ready[pe], GDR_CMP_GE, m->round, pe);
	return gdr_signal_wait_until_from(&m->came[e], GDR_CMP_GE, m->due[e], pe);
}

/* What token t's k-th expert made of it: at the expert's PE if that is mapped, else what came back. */
GDR_DEVICE const struct piece *result_of(const struct moe *m, int t, int k)
{
	int choice = t * m->topk + k, e = m->expert[choice], pair = e % m->local * gdr_n_pes() + gdr_my_pe();
	const void *made = gdr_ptr(made_result(m, pair, m->slot[choice]), e / m->local);

	return (const struct piece *)(made ? made : m->back + (size_t)choice * (size_t)m->hidden);
}

/* A warp: waits for the results of token t, and adds up the pieces of the result from `first` on. Each lane has an
 * expert. */
GDR_DEVICE int combine_add(const struct moe *m, int t, int first)
{
	int lane = (int)gdr_lane_id(), has = lane < m->topk, choice = t * m->topk + (has ? lane : 0);
	int ret = has ? combine_wait(m, m->expert[choice]) : 0, pieces = m->hidden / 8;
	struct piece *y = (struct piece *)(void *)m->y + (size_t)t * (size_t)pieces;

	gdr_sync_warp(0xffffffff); /* what each lane acquired, for all of them */
	ret = -(int)warp_max((uint32_t)-ret);
	if (!ret)
		add_rows(y, has ? result_of(m, t, lane) : NULL, m->weight[choice], first + lane, pieces);
	return ret;
}

GDR_KERNEL(combine, struct moe, m)
{
	int ret = combine_send(&m), parts = (m.hidden / 8 + 32 * DEEP - 1) / (32 * DEEP), first = 0;

	if (ret)
		m.status[gdr_block_id()] = ret;
	for (int i = spread_warp(); i < m.tokens * parts && !first; i += grid_warps())
		first = combine_add(&m, i / parts, i % parts * 32 * DEEP);
	/* every expert is waited for, also those without tokens: the round is over then */
	for (int e = (int)(gdr_block_id() + gdr_thread_id() * gdr_grid_size()); e < m.experts && !first;
	     e += (int)(gdr_grid_size() * gdr_block_size()))
		first = combine_wait(&m, e);
	if (first)
		m.status[gdr_block_id()] = first; /* of any of its threads */
}

/* ---- the serial computation, and the comparison ---- */

/* Host copies and room for the comparison. */
struct check {
	int32_t *expert;
	float *weight, *cast;
	uint32_t *got;
	char *message;
	uint16_t *y;
};

/* What the own experts received from PE pe: which tokens, in which slots, each element. */
static int check_received(const struct options *o, const struct moe *m, int pe, long round, struct check *c)
{
	int n = gdr_host_n_pes(), ret = 0;
	size_t bytes = message_bytes(m);

	route(o, pe, round, c->expert, c->weight);
	for (int l = 0; l < m->local && !ret; l++) {
		int e = gdr_host_my_pe() * m->local + l, pair = l * n + pe;
		uint32_t slot = 0;

		for (int i = 0; i < m->tokens * m->topk && !ret; i++) {
			const struct message *head = (const struct message *)c->message;

			if (c->expert[i] != e)
				continue;
			ret = gdr_memcpy(c->message, received_message(m, pair, slot++), bytes);
			if (!ret && head->token != i / m->topk)
				return wrong("slot", e, pe, i / m->topk, 0, head->token, i / m->topk);
			serial_cast(o, pe, i / m->topk, c->cast);
			for (int h = 0; h < m->hidden && !ret; h++)
				if (message_element(m, c->message, h) != c->cast[h])
					return wrong("received", e, pe, i / m->topk, h,
						     (double)message_element(m, c->message, h), (double)c->cast[h]);
		}
		if (!ret && c->got[pair] != slot)
			return wrong("number of tokens", e, pe, 0, 0, c->got[pair], slot);
	}
	return ret;
}

/* The result of the own tokens. */
static int check_result(const struct options *o, const struct moe *m, long round, struct check *c)
{
	int me = gdr_host_my_pe();

	route(o, me, round, c->expert, c->weight);
	for (int t = 0; t < m->tokens; t++) {
		serial_cast(o, me, t, c->cast);
		for (int i = 0; i < m->hidden; i++) {
			uint16_t is = c->y[(size_t)t * (size_t)m->hidden + (size_t)i];
			float sum = 0;

			for (int k = t * m->topk; k < (t + 1) * m->topk; k++)
				sum += c->weight[k] * bf16_float(expert_element(c->expert[k], c->cast[i]));
			if (is != bf16_of(sum))
				return wrong("result", -1, me, t, i, (double)bf16_float(is), (double)sum);
		}
	}
	return 0;
}

static int check(const struct options *o, const struct moe *m, long round)
{
	size_t choices = (size_t)(o->tokens * o->topk), pairs = (size_t)(m->local * gdr_host_n_pes());
	size_t cells = (size_t)(o->tokens * o->hidden);
	struct check c;
	int ret;

	c.expert = (int32_t *)malloc(choices * sizeof(int32_t));
	c.weight = (float *)malloc(choices * sizeof(float));
	c.cast = (float *)malloc((size_t)o->hidden * sizeof(float));
	c.got = (uint32_t *)malloc(pairs * sizeof(uint32_t));
	c.message = (char *)malloc(message_bytes(m));
	c.y = (uint16_t *)malloc(cells * sizeof(uint16_t));
	ret = c.expert && c.weight && c.cast && c.got && c.message && c.y ? 0 : -GDR_ENOMEM;
	if (!ret)
		ret = gdr_memcpy(c.got, m->got, pairs * sizeof(uint32_t));
	if (!ret)
		ret = gdr_memcpy(c.y, m->y, cells * sizeof(uint16_t));
	for (int pe = 0; pe < gdr_host_n_pes() && !ret; pe++)
		ret = check_received(o, m, pe, round, &c);
	if (!ret)
		ret = check_result(o, m, round, &c);
	free(c.expert);
	free(c.weight);
	free(c.cast);
	free(c.got);
	free(c.message);
	free(c.y);
	return ret;
}

/* ---- host side ---- */

static int set_up(struct moe *m, const struct options *o)
{
	size_t tokens = (size_t)o->tokens, hidden = (size_t)o->hidden, choices = tokens * (size_t)o->topk, pairs;
	uint16_t *x = (uint16_t *)malloc(tokens * hidden * sizeof(*x));
	int ret = x ? 0 : -GDR_ENOMEM;

	memset(m, 0, sizeof(*m));
	m->tokens = (int)o->tokens;
	m->hidden = (int)o->hidden;
	m->local = local_experts(o);
	m->experts = m->local * gdr_host_n_pes();
	m->topk = (int)o->topk;
	m->fp8 = (int)o->fp8;
	pairs = (size_t)m->experts;
	m->x = m->fp8 ? (uint16_t *)symmetric(tokens * hidden, sizeof(uint16_t), &ret) : NULL;
	m->expert = (int32_t *)symmetric(choices, sizeof(int32_t), &ret);
	m->weight = (float *)symmetric(choices, sizeof(float), &ret);
	m->y = (uint16_t *)symmetric(tokens * hidden, sizeof(uint16_t), &ret);
	m->cast = (char *)symmetric(tokens, message_bytes(m), &ret);
	m->slot = (uint32_t *)symmetric(choices, sizeof(uint32_t), &ret);
	m->received = (char *)symmetric(pairs * tokens, message_bytes(m), &ret);
	m->made = (uint16_t *)symmetric(pairs * tokens * hidden, sizeof(uint16_t), &ret);
	m->ready = (uint64_t *)zeroed((size_t)gdr_host_n_pes(), sizeof(uint64_t), &ret);
	m->back = (uint16_t *)symmetric(choices * hidden, sizeof(uint16_t), &ret);
	m->count = (uint64_t *)zeroed(pairs, sizeof(uint64_t), &ret);
	m->arrived = (uint64_t *)zeroed(pairs, sizeof(uint64_t), &ret);
	m->taken = (uint64_t *)zeroed(pairs, sizeof(uint64_t), &ret);
	m->got = (uint32_t *)zeroed(pairs, sizeof(uint32_t), &ret);
	m->came = (uint64_t *)zeroed(pairs, sizeof(uint64_t), &ret);
	m->due = (uint64_t *)zeroed(pairs, sizeof(uint64_t), &ret);
	m->status = (int *)zeroed((size_t)o->blocks, sizeof(int), &ret);
	for (size_t i = 0; !ret && i < tokens * hidden; i++)
		x[i] = token_element(gdr_host_my_pe(), (int)(i / hidden), (int)(i % hidden));
	for (int t = 0; !ret && t < m->tokens; t++)
		ret = gdr_memcpy(m->fp8 ? m->x + (size_t)t * hidden : (uint16_t *)(void *)(own_message(m, t) + 1),
				 x + (size_t)t * hidden, hidden * sizeof(*x));
	free(x);
	return ret ? ret : gdr_barrier_all();
}

static int set_routing(const struct moe *m, const struct options *o, long round)
{
	size_t choices = (size_t)(o->tokens * o->topk);
	int32_t *expert = (int32_t *)malloc(choices * sizeof(*expert));
	float *weight = (float *)malloc(choices * sizeof(*weight));
	int ret = expert && weight ? 0 : -GDR_ENOMEM;

	if (!ret)
		route(o, gdr_host_my_pe(), round, expert, weight);
	if (!ret)
		ret = gdr_memcpy(m->expert, expert, choices * sizeof(*expert));
	if (!ret)
		ret = gdr_memcpy(m->weight, weight, choices * sizeof(*weight));
	free(expert);
	free(weight);
	return ret;
}

/* Puts dispatch, experts and combine on the stream, and marks around them. Blocks wait for those of other PEs: all of
 * them must run at once. */
static int launch_round(struct moe *m, const struct options *o, struct sample_mark *mark)
{
	unsigned grid = (unsigned)o->blocks, block = sample_is_cuda() ? 512 : 32;
	int ret = meet(o);

	ret = ret ? ret : sample_mark(&mark[0]);
	m->phases = o->hook ? SEND : SEND | RECEIVE;
	if (!ret)
		ret = gdr_collective_launch(dispatch, grid, block, 0, NULL, m);
	if (!ret && o->hook) { /* what needs no tokens of others would be launched here */
		m->phases = RECEIVE;
		ret = gdr_collective_launch(dispatch, grid, block, 0, NULL, m);
	}
	if (!ret)
		ret = sample_mark(&mark[1]);
	if (!ret)
		ret = gdr_launch(experts, grid, block, 0, NULL, m);
	ret = ret ? ret : meet(o);
	if (!ret)
		ret = sample_mark(&mark[2]);
	if (!ret)
		ret = gdr_collective_launch(combine, grid, block, 0, NULL, m);
	return ret ? ret : sample_mark(&mark[3]);
}

#endif
