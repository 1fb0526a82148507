// SPDX-License-Identifier: BSD-3-Clause
/* Requests of host threads: arguments checked, then to a stream, or executed at once. */
#include <gdr/stream.h>

#include <stdio.h>
#include <string.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/core/range.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/diag/fault.h"
#include "runtime/exec/exec.h"
#include "runtime/hostdev/hostdev.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/window.h"
#include "runtime/path/devstate.h"
#include "runtime/team/team.h"

GDR_STATIC_ASSERT((int)GDRI_SIGNAL_SETS == (int)GDR_SIGNAL_SET, "request.h");

#define NAME_NOW(request, number, prefix, rest, operation) [GDRI_RQ_##request] = "gdr_" prefix rest,
#define NAME_STREAM(request, number, prefix, rest, operation) [GDRI_RQ_##request] = "gdr_" prefix rest "_on_stream",
#define NAME_HOST(request, number, prefix, rest, operation) [GDRI_RQ_##request] = "gdr_host_" prefix rest,
static const char *const names[][GDRI_RQ_END] = {
	[GDRI_FORM_NOW] = {GDRI_REQUESTS(NAME_NOW)},
	[GDRI_FORM_STREAM] = {GDRI_REQUESTS(NAME_STREAM)},
	[GDRI_FORM_HOST] = {GDRI_REQUESTS(NAME_HOST)},
};

/* What is not of a table: a literal, too. */
#define CALL(name)                                     \
	(form == GDRI_FORM_STREAM ? "gdr_" name "_on_stream" \
	 : form == GDRI_FORM_HOST ? "gdr_host_" name        \
				  : "gdr_" name)
const char *gdri_request_call(const struct gdri_request *q, enum gdri_request_form form)
{
	const char *call = names[form][q->what];
	bool word = q->size == 8 && !q->wait.is_signed;

	switch (q->what) {
	case GDRI_RQ_PUT:
		return q->transfer.nbi ? CALL("put_nbi") : call;
	case GDRI_RQ_GET:
		return q->transfer.nbi ? CALL("get_nbi") : call;
	case GDRI_RQ_G: /* where it waits for a stream, it then asks at once */
		return form == GDRI_FORM_NOW ? names[GDRI_FORM_STREAM][q->what] : call;
	case GDRI_RQ_IPUT:
		return q->strided.block ? CALL("TYPE_ibput") : call;
	case GDRI_RQ_IGET:
		return q->strided.block ? CALL("TYPE_ibget") : call;
	case GDRI_RQ_FETCH_AMO:
		return q->src ? CALL("TYPE_atomic_fetch_OP_nbi") : call;
	case GDRI_RQ_LOCK:
		return q->lock.call == GDRI_LOCK_CALL_SET    ? call
		       : q->lock.call == GDRI_LOCK_CALL_TEST ? CALL("test_lock")
							     : CALL("clear_lock");
	case GDRI_RQ_PUT_SIGNAL:
		return q->signal.nbi ? CALL("put_signal_nbi") : call;
	case GDRI_RQ_WAIT:
		if (q->wait.from_pe)
			return CALL("signal_wait_until_from");
		if (q->n && q->wait.values)
			return CALL("TYPE_wait_until_all_vector");
		if (q->n)
			return CALL("TYPE_wait_until_all");
		if (!word)
			return call;
		return form == GDRI_FORM_STREAM ? "gdr_signal_wait_until_on_stream or gdr_TYPE_wait_until_on_stream"
		       : form == GDRI_FORM_HOST ? "gdr_host_signal_wait_until or gdr_host_TYPE_wait_until"
						: "gdr_signal_wait_until or gdr_TYPE_wait_until";
	default:
		return call;
	}
}

#define TOO_MANY (~0ull) /* bytes: more than the heap could have */

/* Behind what the library keeps in the heap. */
static const uint8_t *heap_begin(const struct gdri_state *st)
{
	return (const uint8_t *)st->heap->base + GDRI_CTL_SIZE + st->teams->bytes;
}

/* The bytes are symmetric and no word of the library's. Memory that the user registered may lie below the heap: only
 * what lies in it is compared with its begin. */
static bool heap_has(const struct gdri_state *st, const void *ptr, uint64_t len)
{
	uintptr_t base = (uintptr_t)st->heap->base;

	return (uintptr_t)ptr - base >= (uintptr_t)heap_begin(st) - base && gdri_window_has(st, ptr, len);
}

#define OF_LEN 24
/* An object's PE, in a text; pe -1: of none in particular. */
static const char *of_pe(char of[OF_LEN], int pe)
{
	of[0] = 0;
	if (pe >= 0)
		snprintf(of, OF_LEN, " of PE %d", pe);
	return of;
}

/* much: how many bytes that would be. */
static int not_in_heap(const struct gdri_state *st, const char *call, const char *role, const void *ptr, int pe,
		       const char *much)
{
	const uint8_t *end = (const uint8_t *)st->heap->base + gdri_heap_size(st->heap);
	char of[OF_LEN];

	return gdri_fail(-GDR_EINVAL, "%s: %s %p%s with %s is not in the symmetric heap, %p to %p", call, role, ptr,
			 of_pe(of, pe), much, heap_begin(st), end);
}

static int bytes_not_in_heap(const struct gdri_state *st, const char *call, const char *role, const void *ptr,
			     uint64_t len, int pe)
{
	char much[32];

	snprintf(much, sizeof(much), "%llu bytes", (unsigned long long)len);
	return not_in_heap(st, call, role, ptr, pe, much);
}

int gdri_far_check(const struct gdri_state *st, const char *call, const char *role, const void *ptr, uint64_t len,
		   int pe)
{
	return !len || heap_has(st, ptr, len) ? 0 : bytes_not_in_heap(st, call, role, ptr, len, pe);
}

int gdri_near_check(const struct gdri_state *st, const char *call, const char *role, const void *ptr, uint64_t len)
{
	uintptr_t at = (uintptr_t)ptr;

	if (!len || at >= (uintptr_t)heap_begin(st) || at + len <= (uintptr_t)st->heap->base)
		return 0;
	return bytes_not_in_heap(st, call, role, ptr, len, -1);
}

/* Data is moved by bytes, from and to any address. Else an element is one access (16 bytes: two). */
static uint64_t request_align(const struct gdri_request *q)
{
	bool is_moved = q->what >= GDRI_RQ_BY_BLOCK && q->what < GDRI_RQ_REDUCE;

	return is_moved ? 1 : q->size < 8 ? q->size : 8;
}

/* A symmetric object. */
static int in_heap(const struct gdri_state *st, const struct gdri_request *q, const char *call, const char *role,
		   const void *ptr, uint64_t len, uint64_t align)
{
	bool is_far = q->what >= GDRI_RQ_P && q->what < GDRI_RQ_COLLECTIVE && q->what != GDRI_RQ_WAIT &&
		      q->what != GDRI_RQ_LOCK;
	int ret, pe = is_far ? q->pe : -1;
	char of[OF_LEN], much[64];

	snprintf(much, sizeof(much), "%llu elements of %u bytes", (unsigned long long)q->n, q->size);
	ret = len == TOO_MANY ? not_in_heap(st, call, role, ptr, pe, much)
			      : gdri_far_check(st, call, role, ptr, len, pe);
	if (!ret && len && (uintptr_t)ptr % align)
		ret = gdri_fail(-GDR_EINVAL, "%s: %s %p%s is not aligned to %llu bytes", call, role, ptr, of_pe(of, pe),
				(unsigned long long)align);
	return ret;
}

static int check_collective(const struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	const struct gdri_team *t = gdri_team_find(st, q->coll.team);
	uint64_t d, s;
	int ret;

	if (!t)
		return gdri_fail(-GDR_EINVAL, "%s: this PE is in no team %d", call, q->coll.team);
	if (q->what < GDRI_RQ_COLLECTIVE)
		return 0;
	if (q->what == GDRI_RQ_BROADCAST && (q->coll.root < 0 || q->coll.root >= t->n))
		return gdri_fail(-GDR_EINVAL, "%s: root %d of a team of %d", call, q->coll.root, t->n);
	if (!gdri_request_extent(q, (uint64_t)t->n, &d, &s))
		return gdri_fail(-GDR_EINVAL, "%s: %llu elements, steps %lld and %lld", call,
				 (unsigned long long)q->n, (long long)q->coll.dst_step, (long long)q->coll.src_step);
	ret = in_heap(st, q, call, "dest", q->dst, d, request_align(q));
	if (!ret)
		ret = in_heap(st, q, call, "source", q->src, s, request_align(q));
	if (!ret && q->n && !gdri_request_overlap(q, (uint64_t)t->me, d, s))
		ret = gdri_fail(-GDR_EINVAL, "%s: dest %p and source %p overlap", call, q->dst, q->src);
	return ret;
}

/* n elements, or blocks, `step` elements apart: the lowest address and the bytes from there, or TOO_MANY. */
static uint64_t request_span(const struct gdri_state *st, const struct gdri_request *q, const void **ptr,
			     int64_t step)
{
	uint64_t apart = (step < 0 ? -(uint64_t)step : (uint64_t)step), gaps = q->n - 1;
	uint64_t most = gdri_window_reach(st);

	if (q->strided.block > most / q->size)
		return TOO_MANY;
	if (gaps && (gaps > most || apart > most / q->size / gaps))
		return TOO_MANY;
	if (step < 0)
		*ptr = (const uint8_t *)*ptr - gaps * apart * q->size;
	return gaps * apart * q->size + gdri_request_piece(q);
}

/* The remote side of a strided transfer. *lowest, *len: of all of it. */
static int check_strided(const struct gdri_state *st, const struct gdri_request *q, const char *call,
			 const void **lowest, uint64_t *len)
{
	bool is_put = q->what == GDRI_RQ_IPUT;
	int64_t step = is_put ? q->strided.dst_step : q->strided.src_step;
	const void *first = *lowest;
	char of[40] = "";

	*len = q->n ? request_span(st, q, lowest, step) : 0;
	if (!*len || (*len != TOO_MANY && heap_has(st, *lowest, *len)))
		return 0;
	if (q->strided.block)
		snprintf(of, sizeof(of), "blocks of %llu ", (unsigned long long)q->strided.block);
	return gdri_fail(-GDR_EINVAL, "%s: %s %p, %llu %selements of %u bytes with a stride of %lld, is not in the "
			 "symmetric heap", call, is_put ? "dest" : "source", first, (unsigned long long)q->n, of,
			 q->size, (long long)step);
}

static bool is_contiguous(const struct gdri_request *q)
{
	return q->what == GDRI_RQ_PUT || q->what == GDRI_RQ_GET || q->what == GDRI_RQ_PUT_SIGNAL;
}

/* The local side of what has one, len bytes where it is contiguous. */
static int check_near(const struct gdri_state *st, const struct gdri_request *q, const char *call, bool is_dst,
		      uint64_t len)
{
	const char *role = is_dst ? "dest" : "source";
	const void *near = is_dst ? q->dst : q->src;

	if (!near)
		return gdri_fail(-GDR_EINVAL, "%s: %s is NULL, with %llu elements of %u bytes %s PE %d", call, role,
				 (unsigned long long)q->n, q->size, is_dst ? "from" : "to", q->pe);
	if (!is_contiguous(q))
		len = request_span(st, q, &near, is_dst ? q->strided.dst_step : q->strided.src_step);
	/* more than the heap could have: any memory may be that far apart */
	return len == TOO_MANY ? 0 : gdri_near_check(st, call, role, near, len);
}

static int check_transfer(const struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	bool remote_is_src = q->what == GDRI_RQ_GET || q->what == GDRI_RQ_IGET || q->what == GDRI_RQ_G;
	const void *remote = q->what == GDRI_RQ_SIGNAL ? q->signal.word : remote_is_src ? q->src : q->dst;
	const char *role = q->what == GDRI_RQ_SIGNAL ? "signal" : remote_is_src ? "source" : "dest";
	uint64_t len = q->size;
	int ret = 0;

	if (q->pe < 0 || q->pe >= st->n_pes)
		return gdri_fail(-GDR_EINVAL, "%s: there is no PE %d, the job has %d", call, q->pe,
				 st->n_pes);
	if (q->what == GDRI_RQ_IPUT || q->what == GDRI_RQ_IGET)
		ret = check_strided(st, q, call, &remote, &len);
	else if (q->what >= GDRI_RQ_BY_BLOCK)
		len = q->n > gdri_window_reach(st) / q->size ? TOO_MANY : q->n * q->size;
	if (!ret)
		ret = in_heap(st, q, call, role, remote, len, request_align(q));
	if (!ret && len && q->what >= GDRI_RQ_BY_BLOCK)
		ret = check_near(st, q, call, remote_is_src, len);
	if (!ret && q->pe == st->pe && is_contiguous(q) && !gdri_request_apart(q->dst, q->src, len))
		ret = gdri_fail(-GDR_EINVAL, "%s: dest %p and source %p, %llu bytes %s this PE, overlap", call, q->dst,
				q->src, (unsigned long long)len, remote_is_src ? "from" : "to");
	if (!ret)
		ret = gdri_lost_peer(st, q->pe);
	if (ret || (q->what != GDRI_RQ_PUT_SIGNAL && q->what != GDRI_RQ_SIGNAL))
		return ret;
	if (q->signal.op != GDR_SIGNAL_SET && q->signal.op != GDR_SIGNAL_ADD)
		return gdri_fail(-GDR_EINVAL, "%s: there is no signal operation %u", call, q->signal.op);
	return q->what == GDRI_RQ_SIGNAL
		       ? 0 : in_heap(st, q, call, "signal", q->signal.word, sizeof(uint64_t), sizeof(uint64_t));
}

static int check_wait(const struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	const struct gdri_rq_wait *w = &q->wait;
	bool no_values;

	if (w->cmp > GDR_CMP_LE)
		return gdri_fail(-GDR_EINVAL, "%s: there is no comparison %u: GDR_CMP_EQ to GDR_CMP_LE are 0 to %d",
				 call, w->cmp, GDR_CMP_LE);
	if (w->from_pe && (q->pe < 0 || q->pe >= st->n_pes))
		return gdri_fail(-GDR_EINVAL, "%s: there is no PE %d, the job has %d", call, q->pe, st->n_pes);
	if (w->set && !q->n)
		return 0;
	no_values = w->set & GDRI_WORDS_VECTOR && !w->values;
	if (no_values || ((w->set & GDRI_WORDS_WHICH) == GDRI_WORDS_SOME && !q->dst))
		return gdri_fail(-GDR_EINVAL, "%s: %s is NULL, with %llu words", call, no_values ? "values" : "indices",
				 (unsigned long long)q->n);
	return in_heap(st, q, call, "word", w->words,
		       q->n > gdri_window_reach(st) ? TOO_MANY : (q->n ? q->n : 1) * q->size, request_align(q));
}

int gdri_count_check(const struct gdri_state *st, const char *call, uint64_t n, uint32_t size)
{
	if ((int64_t)n >= 0)
		return 0;
	return gdri_fail(-GDR_EINVAL,
			 "%s: a count of %lld (%llu without a sign): of %u bytes each there can be 0 to %llu", call,
			 (long long)n, (unsigned long long)n, size,
			 (unsigned long long)(gdri_window_reach(st) / size));
}

int gdri_request_check(const struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	int ret = gdri_count_check(st, call, q->n, q->size);

	if (ret)
		return ret;
	if (q->what >= GDRI_RQ_COLLECTIVE || q->what == GDRI_RQ_BARRIER || q->what == GDRI_RQ_SYNC)
		return check_collective(st, q, call);
	if (q->what == GDRI_RQ_WAIT)
		return check_wait(st, q, call);
	if (q->what == GDRI_RQ_LOCK)
		return in_heap(st, q, call, "lock", q->dst, q->size, request_align(q));
	if (q->what < GDRI_RQ_P)
		return 0;
	return check_transfer(st, q, call);
}

/* Nothing to do on any PE that may be asked: not even a wait. A quiet has a PE that is lost to tell of. */
static int is_nothing(const struct gdri_state *st, const struct gdri_request *q)
{
	if (q->what == GDRI_RQ_QUIET) /* mapped memory: the end of what was on the stream before */
		return st->cuda && !st->dev->n_slots && !gdri_lost_any(st);
	if (q->what == GDRI_RQ_PUT_SIGNAL || q->what == GDRI_RQ_COLLECT)
		return 0;
	return q->what >= GDRI_RQ_BY_BLOCK && !q->n;
}

/* On the host device, whose streams hold CPU threads. */
static int on_host_stream(struct gdri_state *st, const struct gdri_request *q, const char *call, gdr_stream_t stream)
{
	struct gdri_request mine = *q;
	struct gdri_plan p;

	gdri_exec_plan(st, &mine, &p);
	return gdri_hd_request(gdri_exec_kernel, call, p.grid, p.block, stream, &mine, sizeof(mine));
}

int gdri_request_on_stream(const struct gdri_request *q, gdr_stream_t stream)
{
	const char *call = gdri_request_call(q, GDRI_FORM_STREAM);
	struct gdri_state *st = gdri_need_state(call);
	int ret = st ? gdri_request_check(st, q, call) : -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_STREAM, call);

	if (ret || is_nothing(st, q))
		return ret;
	if (q->what == GDRI_RQ_WAIT)
		gdri_wait_name_begin(&st->stream_waits,
				     (uint64_t)((uintptr_t)q->wait.words - (uintptr_t)st->heap->base),
				     (q->n ? q->n : 1) * q->size, call);
	return gdri_host_failed(st, st->cuda ? gdri_exec_on_stream(st, q, stream)
					     : on_host_stream(st, q, call, stream));
}

/* Beside a GPU a kernel makes the collective calls of host threads, but for the barrier and those of the symmetric
 * heap. It would succeed where these are out of step. */
static int hosts_broken(struct gdri_state *st, const struct gdri_request *q, const char *call)
{
	int broken = __atomic_load_n(&st->broken, __ATOMIC_RELAXED);

	if (!st->cuda || !broken || (q->what < GDRI_RQ_COLLECTIVE && q->what != GDRI_RQ_SYNC_ALL &&
				     q->what != GDRI_RQ_BARRIER && q->what != GDRI_RQ_SYNC))
		return 0;
	return gdri_fail(broken, "%s: an earlier collective call failed: %s; finalize and start anew", call,
			 gdr_strerror(broken));
}

int gdri_request_run(struct gdri_state *st, const struct gdri_request *q, const char *call,
		     struct gdri_answer *answer)
{
	int ret = hosts_broken(st, q, call);

	*answer = (struct gdri_answer){.status = ret};
	if (ret || is_nothing(st, q))
		return ret;
	answer->status = st->cuda ? gdri_exec_now(st, q, answer) : gdri_exec_here(q, answer->value);
	return gdri_host_failed(st, answer->status);
}

int gdri_request_now(const struct gdri_request *q, struct gdri_answer *answer)
{
	const char *call = gdri_request_call(q, GDRI_FORM_NOW);
	struct gdri_state *st = gdri_need_state(call);
	struct gdri_answer own;
	int ret = st ? gdri_request_check(st, q, call) : -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_TRANSFER, call);

	if (!answer)
		answer = &own;
	*answer = (struct gdri_answer){.status = ret};
	return ret ? ret : gdri_request_run(st, q, call, answer);
}

/* For calls that return the value. */
void gdri_request_value(const struct gdri_request *q, void *value)
{
	struct gdri_answer answer;
	int ret = gdri_request_now(q, &answer);

	if (ret)
		gdri_value_failed(ret);
	else
		memcpy(value, answer.value, q->size);
}

int gdri_request_fetch(const struct gdri_request *q, void *to)
{
	struct gdri_answer answer;
	int ret = gdri_request_now(q, &answer);
	struct gdri_state *st = gdri_state_get();

	if (ret)
		return ret;
	if (st->cuda && gdri_cuda_is_device(st->cuda, to))
		return gdri_cuda_poke(st->cuda, to, answer.value, q->size, (int)st->opt.timeout_ms);
	memcpy(to, answer.value, q->size);
	return 0;
}

void gdri_value_failed(int status)
{
	if (gdri_state_get())
		gdri_devstate_latch(gdri_state_get(), status);
}

void gdri_value_get(void *value, const void *src, uint32_t size, int pe)
{
	int ret = gdr_host_get(value, src, size, pe);

	if (!ret)
		return;
	memset(value, 0, size);
	gdri_value_failed(ret);
}
