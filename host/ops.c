// SPDX-License-Identifier: BSD-3-Clause
/* The calls of gdr/host_ops.h: requests, as those of kernels' names, whose local memory may be any, and waits with a
 * limit of their own. */
#include <gdr/device.h>
#include <gdr/impl/request/submit.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host/host.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/range.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/diag/errors.h"
#include "runtime/diag/fault.h"
#include "runtime/exec/exec.h"
#include "runtime/exec/staging.h"
#include "runtime/team/join_record.h"

#define LOOKS_AWAKE 100 /* before a wait sleeps between looks */

/* Bring nothing. */
static int ops_run(struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	struct gdri_answer answer;

	return gdri_request_run(st, q, call, &answer);
}

static int ops_bring(struct gdri_state *st, const struct gdri_request *q, const char *call, void *value)
{
	struct gdri_answer answer;
	int ret = gdri_request_run(st, q, call, &answer);

	if (!ret)
		memcpy(value, answer.value, q->size);
	return ret;
}

/* Where the NIC cannot write to q->src, and where a kernel asks, the value is waited for: of a mapped PE, too, whose
 * words the NIC changes where it does those of any other PE. */
static int ops_fetch_nbi(struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	struct gdri_request waited = *q;
	void *fetch = (void *)(uintptr_t)q->src;
	struct gdri_answer answer;
	int ret;

	if (!fetch)
		return gdri_fail(-GDR_EINVAL, "%s: fetch is NULL", call);
	if (!st->cuda && gdri_staging_is_known(st->dev, fetch, q->size, false))
		return ops_run(st, q, call);
	waited.src = NULL;
	ret = gdri_request_run(st, &waited, call, &answer);
	if (ret)
		return ret;
	if (st->cuda && gdri_cuda_is_device(st->cuda, fetch))
		return gdri_cuda_poke(st->cuda, fetch, answer.value, q->size, (int)st->opt.timeout_ms);
	memcpy(fetch, answer.value, q->size);
	return 0;
}

/* Where the NIC or a kernel cannot read src, the data goes by itself, is there when that returns, and the signal goes
 * behind it. Whether it can is asked before. */
static int ops_put_signal(struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	struct gdri_request word = gdri_rq(GDRI_RQ_SIGNAL, 0, 0, 0, sizeof(uint64_t), q->pe);
	size_t len = q->n * q->size;
	int ret;

	if (!st->cuda && !gdri_staging_needed(st, q->src, len, q->pe, true))
		return ops_run(st, q, call);
	ret = st->cuda ? gdri_exec_lacks(st) : 0;
	if (!ret)
		ret = gdri_rma_move(call, GDR_CTX_DEFAULT, true, false, q->dst, q->src, len, q->pe);
	word.signal = q->signal;
	return ret ? ret : ops_run(st, &word, call);
}

/* Whether whoever executes the request, a kernel or this thread by the NIC, reaches all of its local memory. */
static bool strided_is_reached(const struct gdri_state *st, const struct gdri_request *q)
{
	bool is_put = q->what == GDRI_RQ_IPUT;
	const uint8_t *first = is_put ? q->src : q->dst, *last, *low;
	int64_t step = is_put ? q->strided.src_step : q->strided.dst_step;
	size_t piece = gdri_request_piece(q), len;

	last = first + (int64_t)(q->n - 1) * step * (int64_t)q->size;
	if (st->cuda)
		return gdri_cuda_is_device(st->cuda, first) && gdri_cuda_is_device(st->cuda, last + piece - 1);
	if (is_put && piece <= GDRI_INLINE_MAX) /* it goes within the queue's entry */
		return true;
	low = first < last ? first : last;
	len = (size_t)((first < last ? last : first) - low) + piece;
	return !gdri_staging_needed(st, low, len, q->pe, is_put);
}

static int ops_strided(struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	int64_t size = (int64_t)q->size, piece = (int64_t)gdri_request_piece(q);
	int64_t dst_step = q->strided.dst_step * size, src_step = q->strided.src_step * size;
	bool is_put = q->what == GDRI_RQ_IPUT;
	const uint8_t *src = q->src;
	uint8_t *dst = q->dst;
	int ret = 0;

	if (dst_step == piece && src_step == piece)
		return gdri_rma_move(call, GDR_CTX_DEFAULT, is_put, false, dst, src, q->n * (size_t)piece, q->pe);
	if (!q->n || strided_is_reached(st, q))
		return ops_run(st, q, call);
	for (uint64_t i = 0; i < q->n && !ret; i++, dst += dst_step, src += src_step)
		ret = gdri_rma_move(call, GDR_CTX_DEFAULT, is_put, false, dst, src, (size_t)piece, q->pe);
	return ret;
}

/* The word has come, but what a NIC wrote before may be seen later: a wait that any value ends has a kernel read behind
 * it, as each wait of a kernel does. */
static int wait_seen(struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	struct gdri_request any = *q;

	if (!(st->dev->flags & GDRI_DEV_READ_FLUSH))
		return 0;
	any.wait.cmp = GDR_CMP_GE;
	any.wait.value = 0;
	any.wait.is_signed = 0;
	return ops_run(st, &any, call);
}

static uint64_t wait_offset(const struct gdri_state *st, const struct gdri_request *q)
{
	return (uint64_t)((uintptr_t)q->wait.words - (uintptr_t)st->heap->base);
}

/* Whose word it is, and of the PEs that could have written it those that take no part any more. No kernel waits, whose
 * chain others could follow. */
static int wait_too_long(const struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	char place[96], left[64] = "";
	int pe;

	gdri_place_text(wait_offset(st, q), place, sizeof(place));
	for (pe = 0; pe < st->n_pes && !gdri_join_finalizes(st, pe); pe++)
		;
	if (pe < st->n_pes)
		snprintf(left, sizeof(left), "; PE %d has called gdr_finalize", pe);
	return gdri_fail(-GDR_ETIMEOUT, "%s: what is at %p%s did not hold within GDR_TIMEOUT, %d ms%s; "
			 "gdr_signal_wait_until_from in a kernel would name who did not signal", call, q->wait.words,
			 place, (int)st->opt.timeout_ms, left);
}

/* 0: look again. */
static int wait_gives_up(struct gdri_state *st, const struct gdri_request *q, const char *call, uint64_t end)
{
	/* relaxed: the flag carries nothing */
	if (__atomic_load_n(st->abort_word, __ATOMIC_RELAXED))
		return -GDR_EABORTED;
	return gdri_now_ns() >= end ? wait_too_long(st, q, call) : gdri_lost_any(st);
}

/* *n: as gdri_set_wait, whose status this has. Of memory of a GPU, by copies: no kernel knows a limit of the caller's,
 * nor what of the host's memory says which words count. */
static int wait_by_looks(struct gdri_state *st, const struct gdri_request *q, const char *call, uint64_t limit_ns,
			 struct gdri_set *s, size_t *n)
{
	uint64_t begin = gdri_now_ns(), most = GDRI_HOST_NO_LIMIT / 2;
	uint64_t own = begin + (limit_ns < most ? limit_ns : most), end = gdri_deadline_ns((int)st->opt.timeout_ms);
	struct timespec nap = {0, 20000};
	bool over;
	int ret;

	for (unsigned int i = 0;; i++) {
		over = gdri_now_ns() >= own; /* before the look */
		ret = gdri_cuda_peek(st->cuda, (void *)(uintptr_t)s->ptrs, q->wait.words, s->n * s->size,
				     (int)st->opt.timeout_ms);
		if (ret)
			return ret;
		*n = gdri_set_look(s);
		if (*n)
			return wait_seen(st, q, call);
		if (over)
			return GDRI_AT_LIMIT;
		ret = wait_gives_up(st, q, call, end);
		if (ret)
			return ret;
		if (i > LOOKS_AWAKE)
			nanosleep(&nap, NULL);
	}
}

/* s->ptrs becomes a copy's, which every look renews. */
static int wait_for_copies(struct gdri_state *st, const struct gdri_request *q, const char *call, uint64_t limit_ns,
			   struct gdri_set *s, size_t *n)
{
	uint8_t *copy;
	int ret;

	*n = 0;
	if (gdri_set_is_empty(s))
		return 0;
	copy = malloc(s->n * s->size);
	if (!copy)
		return gdri_fail(-GDR_ENOMEM, "%s: out of memory for a copy of %zu words", call, s->n);
	s->ptrs = copy;
	ret = wait_by_looks(st, q, call, limit_ns, s, n);
	free(copy);
	return ret;
}

/* One word is a set of one. ANY begins elsewhere in each call, or a word that always holds would hide those behind it
 * for ever. */
static struct gdri_set wait_set(const struct gdri_request *q)
{
	const struct gdri_rq_wait *w = &q->wait;
	struct gdri_set s = {
		.ptrs = w->words,
		.n = w->set ? q->n : 1,
		.status = w->skip,
		.values = w->values,
		.value = w->value,
		.size = q->size,
		.is_signed = (int)w->is_signed,
		.cmp = (int)w->cmp,
		.indices = q->dst,
		.mode = GDRI_SET_ALL,
	};

	if ((w->set & GDRI_WORDS_WHICH) == GDRI_WORDS_SOME)
		s.mode = GDRI_SET_SOME;
	if ((w->set & GDRI_WORDS_WHICH) == GDRI_WORDS_ANY) {
		s.mode = GDRI_SET_ANY;
		s.first = s.n ? gdri_hash(0, gdri_now_ns()) % s.n : 0;
	}
	return s;
}

/* found: of ANY and SOME. Returns a status, or GDRI_AT_LIMIT. */
static int wait_until(struct gdri_state *st, const struct gdri_request *q, const char *call, uint64_t limit_ns,
		      size_t *found)
{
	struct gdri_set s = wait_set(q);
	size_t n;
	int ret;

	if (!q->wait.set && limit_ns == GDRI_HOST_NO_LIMIT)
		return ops_run(st, q, call);
	ret = st->cuda ? wait_for_copies(st, q, call, limit_ns, &s, &n)
		       : gdri_set_wait(&s, s.mode, limit_ns, &n);
	if (s.mode == GDRI_SET_SOME)
		*found = ret ? 0 : n;
	else if (s.mode == GDRI_SET_ANY)
		*found = ret || !n ? GDRI_NONE_HOLDS : s.at;
	return ret < 0 ? gdri_host_failed(st, ret) : ret;
}

/* Device code waits, and its record is told by the name of the host's call. At a limit of the caller's there is none:
 * of ANY and SOME nothing was found then. */
static int ops_wait(struct gdri_state *st, const struct gdri_request *q, const char *call, uint64_t limit_ns,
		    size_t *found)
{
	struct gdri_wait_name *name = gdri_wait_name_begin(&st->host_waits, wait_offset(st, q),
							   (q->n ? q->n : 1) * q->size, call);
	int ret = wait_until(st, q, call, limit_ns, found);

	if (ret >= 0)
		gdri_wait_name_end(name, call);
	if (ret != GDRI_AT_LIMIT)
		return ret;
	return (q->wait.set & GDRI_WORDS_WHICH) > GDRI_WORDS_ALL ? 0 : -GDR_ETIMEOUT;
}

static int ops_call(struct gdri_state *st, const struct gdri_request *q, const char *call, uint64_t limit_ns,
		    void *value)
{
	bool is_put = q->what == GDRI_RQ_PUT;

	switch (q->what) {
	case GDRI_RQ_PUT:
	case GDRI_RQ_GET:
		return gdri_rma_move(call, GDR_CTX_DEFAULT, is_put, q->transfer.nbi, q->dst, q->src, q->n * q->size,
				     q->pe);
	case GDRI_RQ_P:
		return st->cuda ? gdri_cuda_put(q->dst, q->value, q->size, q->pe) : ops_run(st, q, call);
	case GDRI_RQ_G:
		return st->cuda ? gdri_cuda_get(value, q->src, q->size, q->pe) : ops_bring(st, q, call, value);
	case GDRI_RQ_FETCH_AMO:
		return value ? ops_bring(st, q, call, value) : ops_fetch_nbi(st, q, call);
	case GDRI_RQ_LOCK:
		return ops_bring(st, q, call, value);
	case GDRI_RQ_PUT_SIGNAL:
		return ops_put_signal(st, q, call);
	case GDRI_RQ_IPUT:
	case GDRI_RQ_IGET:
		return ops_strided(st, q, call);
	case GDRI_RQ_WAIT:
		return ops_wait(st, q, call, limit_ns, value);
	default:
		return ops_run(st, q, call);
	}
}

/* One value for all, or one for each; then a wait, one with a limit, a test. */
#define NAMES_OF(which)                                                                                              \
	{                                                                                                            \
		{"gdr_host_TYPE_wait_until_" which, "gdr_host_TYPE_wait_until_" which "_for",                        \
		 "gdr_host_TYPE_test_" which},                                                                       \
		{"gdr_host_TYPE_wait_until_" which "_vector", "gdr_host_TYPE_wait_until_" which "_vector_for",       \
		 "gdr_host_TYPE_test_" which "_vector"},                                                             \
	}
static const char *words_name(uint32_t set, bool has_limit)
{
	static const char *const names[][2][3] = {
		[GDRI_WORDS_ALL] = NAMES_OF("all"),
		[GDRI_WORDS_ANY] = NAMES_OF("any"),
		[GDRI_WORDS_SOME] = NAMES_OF("some"),
	};
	int form = set & GDRI_WORDS_TEST ? 2 : has_limit;

	return names[set & GDRI_WORDS_WHICH][!!(set & GDRI_WORDS_VECTOR)][form];
}

static const char *ops_name(const struct gdri_request *q, uint64_t limit_ns)
{
	if (q->what == GDRI_RQ_WAIT && q->wait.set)
		return words_name(q->wait.set, limit_ns != GDRI_HOST_NO_LIMIT);
	if (q->what != GDRI_RQ_WAIT || limit_ns == GDRI_HOST_NO_LIMIT)
		return gdri_request_call(q, GDRI_FORM_HOST);
	return q->size == 8 && !q->wait.is_signed ? "gdr_host_signal_wait_until_for or gdr_host_TYPE_wait_until_for"
						  : "gdr_host_TYPE_wait_until_for";
}

int gdri_host_call(const struct gdri_request *q, uint64_t limit_ns, void *value)
{
	const char *call = ops_name(q, limit_ns);
	struct gdri_state *st = gdri_need_state(call);
	int ret = st ? gdri_request_check(st, q, call) : -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_TRANSFER, call);

	return ret ? ret : ops_call(st, q, call, limit_ns, value);
}
