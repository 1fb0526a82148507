/* SPDX-License-Identifier: BSD-3-Clause */
/* The comparison of moe's throughput form with a serial computation: lists, rows, results. */
#ifndef MOE_THROUGHPUT_CHECK_H
#define MOE_THROUGHPUT_CHECK_H

#include "moe_throughput.h"

/* Host copies and room for it. */
struct flow_check {
	int32_t *expert, *list;
	float *weight, *cast;
	uint32_t *got;
	char *row;
	uint16_t *y;
};

static int by_row(const void *x, const void *y)
{
	int32_t a = *(const int32_t *)x, b = *(const int32_t *)y;

	return a < b ? -1 : a > b;
}

/* The list of each own expert's rows of PE pe's tokens. */
static int check_lists(const struct flow *f, int pe, struct flow_check *c)
{
	int n = gdr_host_n_pes(), ret = 0;

	for (int l = 0; l < f->local && !ret; l++) {
		int e = gdr_host_my_pe() * f->local + l, pair = l * n + pe;
		uint32_t slot = 0;

		ret = gdr_memcpy(c->list, f->list + (size_t)pair * (size_t)f->tokens,
				 (size_t)f->tokens * sizeof(int32_t));
		if (c->got[pair] <= (uint32_t)f->tokens)
			qsort(c->list, c->got[pair], sizeof(*c->list), by_row);
		for (int i = 0; i < f->tokens * f->topk && !ret; i++)
			if (c->expert[i] == e && c->list[slot++] != row_of(f, pe, i / f->topk))
				return wrong("list", e, pe, i / f->topk, 0, c->list[slot - 1],
					     row_of(f, pe, i / f->topk));
		if (!ret && c->got[pair] != slot)
			return wrong("number of tokens", e, pe, 0, 0, c->got[pair], slot);
	}
	return ret;
}

/* The rows that the lists name. */
static int check_rows(const struct options *o, const struct flow *f, int pe, struct flow_check *c)
{
	int me = gdr_host_my_pe(), ret = 0;

	for (int t = 0; t < f->tokens && !ret; t++) {
		int e = -1;

		for (int k = t * f->topk; k < (t + 1) * f->topk; k++)
			e = c->expert[k] / f->local == me ? c->expert[k] : e;
		if (e < 0)
			continue;
		ret = gdr_memcpy(c->row, row(f, row_of(f, pe, t)), row_bytes(f));
		serial_cast(o, pe, t, c->cast);
		for (int i = 0; i < f->hidden && !ret; i++)
			if (row_element(f, c->row, i) != c->cast[i])
				return wrong("received", e, pe, t, i, (double)row_element(f, c->row, i),
					     (double)c->cast[i]);
	}
	return ret;
}

/* What token t's PE makes of the partial sums: those of the experts of one PE first, each rounded. */
static float serial_sum(const struct flow *f, const int32_t *expert, const float *weight, float x)
{
	float sum = 0;

	for (int k = 0; k < f->topk; k++) {
		float part = 0;
		int j = 0;

		while (expert[j] / f->local != expert[k] / f->local)
			j++;
		if (j < k)
			continue; /* has been added with that one */
		for (; j < f->topk; j++)
			if (expert[j] / f->local == expert[k] / f->local)
				part += weight[j] * bf16_float(expert_element(expert[j], x));
		sum += bf16_float(bf16_of(part));
	}
	return sum;
}

/* The result of the own tokens. */
static int check_sums(const struct options *o, const struct flow *f, struct flow_check *c)
{
	int me = gdr_host_my_pe();

	for (int t = 0; t < f->tokens; t++) {
		const int k = t * f->topk;

		serial_cast(o, me, t, c->cast);
		for (int i = 0; i < f->hidden; i++) {
			uint16_t is = c->y[(size_t)t * (size_t)f->hidden + (size_t)i];
			float sum = serial_sum(f, c->expert + k, c->weight + k, c->cast[i]);

			if (is != bf16_of(sum))
				return wrong("result", -1, me, t, i, (double)bf16_float(is), (double)sum);
		}
	}
	return 0;
}

static int flow_check_all(const struct options *o, const struct flow *f, long round, struct flow_check *c)
{
	int ret = gdr_memcpy(c->got, got_of(f, (uint64_t)f->round), (size_t)f->experts * sizeof(uint32_t));

	if (!ret)
		ret = gdr_memcpy(c->y, f->y, (size_t)f->tokens * sum_bytes(f));
	for (int pe = 0; pe < gdr_host_n_pes() && !ret; pe++) {
		route(o, pe, round, c->expert, c->weight);
		ret = check_lists(f, pe, c);
		if (!ret)
			ret = check_rows(o, f, pe, c);
	}
	route(o, gdr_host_my_pe(), round, c->expert, c->weight);
	return ret ? ret : check_sums(o, f, c);
}

static int flow_check(const struct options *o, const struct flow *f, long round)
{
	size_t choices = (size_t)(o->tokens * o->topk);
	struct flow_check c;
	int ret;

	c.expert = (int32_t *)malloc(choices * sizeof(int32_t));
	c.list = (int32_t *)malloc((size_t)o->tokens * sizeof(int32_t));
	c.weight = (float *)malloc(choices * sizeof(float));
	c.cast = (float *)malloc((size_t)o->hidden * sizeof(float));
	c.got = (uint32_t *)malloc((size_t)f->experts * sizeof(uint32_t));
	c.row = (char *)malloc(row_bytes(f));
	c.y = (uint16_t *)malloc((size_t)o->tokens * sum_bytes(f));
	ret = c.expert && c.list && c.weight && c.cast && c.got && c.row && c.y ? 0 : -GDR_ENOMEM;
	if (!ret)
		ret = flow_check_all(o, f, round, &c);
	free(c.expert);
	free(c.list);
	free(c.weight);
	free(c.cast);
	free(c.got);
	free(c.row);
	free(c.y);
	return ret;
}

#endif
