// SPDX-License-Identifier: BSD-3-Clause
/* Memory of a GPU, which the CPU does not reach: by copies of the driver's, in the order of what is executed. */
#include "runtime/ofi/memory.h"

#include "runtime/cuda/cuda_lane.h"
#include "runtime/net/execute.h"

static void stage_wait(struct gdri_ofi_memory *m)
{
	if (m->lane && gdri_lane_has_work(m->lane) && gdri_lane_wait(m->lane))
		m->failures++;
}

uint32_t gdri_ofi_settle(struct gdri_ofi_memory *m)
{
	stage_wait(m);
	return m->failures;
}

void gdri_ofi_stage(struct gdri_ofi_memory *m, const struct gdri_ofi_row *row, void *data, bool stores)
{
	if (stores)
		gdri_lane_store(m->lane, row->at, data, row->len);
	else
		gdri_lane_load(m->lane, data, row->at, row->len);
}

void gdri_ofi_stage_before(struct gdri_ofi_memory *m)
{
	stage_wait(m);
}

bool gdri_ofi_staged(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr)
{
	struct gdri_ofi_row row;

	return m->lane && gdri_ofi_row(m, lkey, addr, &row) && row.staged;
}

bool gdri_ofi_no_rma(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint64_t len)
{
	struct gdri_ofi_row row;

	for (; gdri_ofi_row(m, lkey, addr, &row); len -= row.len, addr += row.len) {
		if (row.no_rma)
			return true;
		if (row.len >= len)
			break;
	}
	return false;
}

/* One part, of which both ends are in a row. */
static bool stage_copy(struct gdri_ofi_memory *m, uint32_t to_key, uint64_t to, struct gdri_ofi_row *dst,
		       uint32_t from_key, uint64_t from, struct gdri_ofi_row *src)
{
	uint32_t failures = m->failures;

	if (dst->staged && src->staged) {
		gdri_lane_move(m->lane, dst->at, src->at, src->len);
		return true;
	}
	if (dst->staged) {
		if (!gdri_ofi_load(m, from_key, from, m->temp, src->len))
			return false;
		gdri_lane_store(m->lane, dst->at, m->temp, src->len);
		return true;
	}
	if (src->staged) {
		gdri_lane_load(m->lane, m->temp, src->at, src->len);
		return gdri_ofi_settle(m) == failures && gdri_ofi_store(m, to_key, to, m->temp, src->len);
	}
	/* the end that may have gone is copied by the kernel's care */
	return from_key >= GDRI_OFI_KEY_BUFFER ? gdri_ofi_load(m, from_key, from, dst->at, src->len)
					       : gdri_ofi_store(m, to_key, to, src->at, src->len);
}

bool gdri_ofi_copy(struct gdri_ofi_memory *m, uint32_t to_key, uint64_t to, uint32_t from_key, uint64_t from,
		   uint64_t len)
{
	struct gdri_ofi_row dst, src;

	for (; len; len -= src.len, to += src.len, from += src.len) {
		if (!gdri_ofi_row(m, to_key, to, &dst) || !gdri_ofi_row(m, from_key, from, &src))
			return false;
		src.len = src.len < dst.len ? src.len : dst.len;
		src.len = src.len < len ? src.len : len;
		if (dst.staged != src.staged && src.len > GDRI_OFI_TEMP)
			src.len = GDRI_OFI_TEMP;
		if (!stage_copy(m, to_key, to, &dst, from_key, from, &src))
			return false;
	}
	return true;
}

/* ---- data of messages ---- */

struct gdri_ofi_source *gdri_ofi_source_take(struct gdri_ofi_memory *m)
{
	struct gdri_ofi_source *s;

	for (s = m->sources; s < m->sources + GDRI_OFI_SOURCES; s++) {
		if (s->taken || !s->lane || gdri_lane_has_work(s->lane)) /* which is overdue then */
			continue;
		s->taken = true;
		return s;
	}
	return NULL;
}

bool gdri_ofi_source_load(struct gdri_ofi_memory *m, struct gdri_ofi_source *s, uint32_t lkey, uint64_t addr,
			  void *data, uint64_t len)
{
	struct gdri_ofi_row row;
	uint8_t *to = data;

	for (; len; len -= row.len, addr += row.len, to += row.len) {
		if (!gdri_ofi_row(m, lkey, addr, &row))
			return false;
		row.len = row.len < len ? row.len : len;
		if (row.staged)
			gdri_lane_load(s->lane, to, row.at, row.len);
		else if (!gdri_ofi_load(m, lkey, addr, to, row.len))
			return false;
	}
	return true;
}

bool gdri_ofi_source_ends(struct gdri_ofi_source *s, bool wait, bool *failed)
{
	int ret = wait ? gdri_lane_wait(s->lane) : gdri_lane_test(s->lane);

	if (ret == GDRI_LANE_COPIES)
		return false;
	s->taken = false;
	*failed = ret < 0;
	return true;
}

/* ---- atomics ---- */

/* What another word's atomic follows. Several on one word in a row are one copy. */
static void words_give(struct gdri_ofi_memory *m)
{
	struct gdri_ofi_word *w = m->words.changed;

	if (w)
		gdri_lane_store(m->lane, w->at, &w->value, w->size);
	m->words.changed = NULL;
}

void gdri_ofi_words_end(struct gdri_ofi_memory *m)
{
	words_give(m);
	m->words.n = 0;
}

/* NULL: none; *meets: another one covers a part of it. */
static struct gdri_ofi_word *words_find(struct gdri_ofi_memory *m, const uint8_t *at, uint32_t size, bool *meets)
{
	struct gdri_ofi_word *w = m->words.word, *end = w + m->words.n;

	*meets = false;
	for (; w < end; w++) {
		if (w->at == at && w->size == size)
			return w;
		*meets |= w->at < at + size && at < w->at + w->size;
	}
	return NULL;
}

bool gdri_ofi_words_want(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint32_t size, bool reads)
{
	struct gdri_ofi_words *all = &m->words;
	struct gdri_ofi_row row;
	bool meets;

	if (!gdri_ofi_row(m, lkey, addr, &row) || !row.staged || row.len < size || (uintptr_t)row.at % size)
		return false;
	if (words_find(m, row.at, size, &meets))
		return true;
	if (meets || all->n == GDRI_OFI_WORDS)
		return false;
	all->word[all->n] = (struct gdri_ofi_word){row.at, 0, size, reads};
	all->coming |= reads;
	if (reads) /* else the first atomic sets it, unless its queue has failed */
		gdri_lane_load(m->lane, &all->word[all->n].value, row.at, size);
	all->n++;
	return true;
}

void gdri_ofi_words_come(struct gdri_ofi_memory *m)
{
	uint32_t failures = m->failures;

	if (m->words.coming && gdri_ofi_settle(m) != failures)
		m->words.n = 0;
	m->words.coming = false;
}

/* No other thread and no other PE changes the word by an atomic meanwhile: all go through this PE's proxies, of which
 * one has gdri_ofi_net.staged. */
static uint32_t stage_atomic(struct gdri_ofi_memory *m, uint8_t *at, const struct gdri_net_atomic *a, uint64_t *old)
{
	uint32_t failures = m->failures;
	struct gdri_ofi_word *w;
	uint64_t word = 0, was;
	bool meets;

	w = words_find(m, at, a->size, &meets);
	if (w != m->words.changed)
		words_give(m);
	if (w && (w->known || (!old && gdri_net_atomic_sets(a)))) {
		w->known = true;
		was = gdri_net_atomic_run(&w->value, a);
		m->words.changed = w;
		if (old)
			*old = was;
		return 0;
	}
	if (old || !gdri_net_atomic_sets(a)) {
		gdri_lane_load(m->lane, &word, at, a->size);
		if (gdri_ofi_settle(m) != failures)
			return GDRI_NET_REMOTE;
	}
	was = gdri_net_atomic_run(&word, a);
	gdri_lane_store(m->lane, at, &word, a->size);
	if (w) {
		w->value = word;
		w->known = true;
	}
	if (old)
		*old = was;
	return 0;
}

uint32_t gdri_ofi_atomic(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, const struct gdri_net_atomic *a,
			 uint64_t *old)
{
	struct gdri_ofi_row row;
	uint64_t was;

	if (!gdri_ofi_row(m, lkey, addr, &row) || row.len < a->size)
		return GDRI_NET_REMOTE;
	if ((uintptr_t)row.at % a->size)
		return GDRI_NET_INVALID;
	if (row.staged)
		return stage_atomic(m, row.at, a, old);
	stage_wait(m); /* what is in front of it */
	was = gdri_net_atomic_run(row.at, a);
	if (old)
		*old = was;
	return 0;
}
