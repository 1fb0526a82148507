// SPDX-License-Identifier: BSD-3-Clause
/* Values of varying size, derived from allgather: the lengths first, then the
 * bytes in rounds that all PEs pad to the same length. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/call.h"
#include "runtime/core/log.h"

struct gatherv {
	struct gdr_bootstrap *b;
	struct gdri_gathered *out;
	const unsigned char *send;
	size_t len, longest;
	unsigned char *padded; /* one round's contribution */
	unsigned char *round;  /* one round of all PEs */
	struct timespec deadline;
};

/* Lengths come from peers: each is bounded before any sum is formed. */
static int take_lengths(struct gatherv *v, const uint64_t *lens, uint64_t max)
{
	size_t sum = 0;
	int i;

	for (i = 0; i < v->b->n_pes; i++) {
		if (lens[i] > max)
			return gdri_fail(-GDR_EINVAL,
					 "bootstrap: PE %d contributes %llu bytes, at most %llu are allowed", i,
					 (unsigned long long)lens[i], (unsigned long long)max);
		v->out->offset[i] = sum;
		sum += (size_t)lens[i];
		if (lens[i] > v->longest)
			v->longest = (size_t)lens[i];
	}
	v->out->offset[i] = sum;
	return 0;
}

static int exchange_lengths(struct gatherv *v, uint64_t max)
{
	uint64_t mine = v->len;
	size_t n = (size_t)v->b->n_pes;
	uint64_t *lens = calloc(n, sizeof(*lens));
	int rc;

	if (!lens || max > SIZE_MAX / 2 / n) {
		gdri_error("bootstrap: no memory for values of up to %llu bytes from %zu PEs",
			   (unsigned long long)max, n);
		free(lens);
		return -GDR_ENOMEM;
	}
	rc = v->b->allgather(v->b, &mine, lens, sizeof(mine), gdri_limit_ms(&v->deadline));
	if (!rc)
		rc = take_lengths(v, lens, max);
	free(lens);
	return rc;
}

static size_t allgatherv_part(size_t len, size_t at, size_t chunk)
{
	if (at >= len)
		return 0;
	return len - at < chunk ? len - at : chunk;
}

static int exchange_chunk(struct gatherv *v, size_t at, size_t chunk)
{
	const size_t *off = v->out->offset;
	size_t part = allgatherv_part(v->len, at, chunk);
	int rc;

	memset(v->padded, 0, chunk);
	if (part)
		memcpy(v->padded, v->send + at, part);
	rc = v->b->allgather(v->b, v->padded, v->round, chunk, gdri_limit_ms(&v->deadline));
	if (rc)
		return rc;
	for (int i = 0; i < v->b->n_pes; i++) {
		part = allgatherv_part(off[i + 1] - off[i], at, chunk);
		if (part)
			memcpy(v->out->data + off[i] + at, v->round + (size_t)i * chunk, part);
	}
	return 0;
}

static int exchange_data(struct gatherv *v)
{
	size_t chunk = v->longest < GDRI_ALLGATHER_MAX ? v->longest : GDRI_ALLGATHER_MAX;
	int rc = 0;

	v->out->data = malloc(v->out->offset[v->b->n_pes] + 1);
	v->padded = malloc(chunk + 1);
	v->round = malloc(chunk * (size_t)v->b->n_pes + 1);
	if (!v->out->data || !v->padded || !v->round)
		rc = gdri_fail(-GDR_ENOMEM, "bootstrap: no memory to gather %zu bytes", v->out->offset[v->b->n_pes]);
	for (size_t at = 0; !rc && at < v->longest; at += chunk) {
		if (chunk > v->longest - at)
			chunk = v->longest - at;
		rc = exchange_chunk(v, at, chunk);
	}
	free(v->padded);
	free(v->round);
	return rc;
}

int gdri_bootstrap_allgatherv(struct gdr_bootstrap *b, const void *send, size_t len, size_t max,
			      struct gdri_gathered *out, int timeout_ms)
{
	struct gatherv v = {.b = b, .out = out, .send = send, .len = len};
	int rc;

	memset(out, 0, sizeof(*out));
	out->offset = calloc((size_t)b->n_pes + 1, sizeof(*out->offset));
	if (!out->offset)
		return gdri_fail(-GDR_ENOMEM, "bootstrap: no memory for the offsets of %d PEs", b->n_pes);
	gdri_deadline_in(&v.deadline, timeout_ms);
	rc = exchange_lengths(&v, max);
	if (!rc)
		rc = exchange_data(&v);
	if (rc)
		gdri_gathered_free(out);
	return rc;
}

void gdri_gathered_free(struct gdri_gathered *g)
{
	free(g->offset);
	free(g->data);
	memset(g, 0, sizeof(*g));
}
