// SPDX-License-Identifier: BSD-3-Clause
/* Requests of host threads: arguments checked, then to a stream, or executed at once. */
#include <gdr/stream.h>

#include <string.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/core/range.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/diag/fault.h"
#include "runtime/exec/exec.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/window.h"
#include "runtime/path/devstate.h"
#include "runtime/team/team.h"

GDR_STATIC_ASSERT((int)GDRI_SIGNAL_SETS == (int)GDR_SIGNAL_SET, "request.h");

#define REQUEST_NAME(request, number, prefix, rest, operation) [GDRI_RQ_##request] = prefix rest,
static const char *const names[GDRI_RQ_END] = {GDRI_REQUESTS(REQUEST_NAME)};

/* The bytes are in the heap, behind what the library keeps there, and the object is aligned. */
static int in_heap(const struct gdri_state *st, const struct gdri_request *q, const void *ptr,
		   uint64_t len)
{
	uint64_t begin = GDRI_CTL_SIZE + st->teams->bytes;
	uint64_t at = (uint64_t)((uintptr_t)ptr - (uintptr_t)st->heap->base);
	uint64_t align = q->size < 8 ? q->size : 8;

	if (!len)
		return 0;
	if (at < begin || !gdri_window_has(st, ptr, len))
		return gdri_fail(-GDR_EINVAL, "%s: %p with %llu bytes is not in the symmetric heap", names[q->what],
				 ptr, (unsigned long long)len);
	if ((uintptr_t)ptr % align)
		return gdri_fail(-GDR_EINVAL, "%s: %p is not aligned to %llu bytes", names[q->what], ptr,
				 (unsigned long long)align);
	return 0;
}

static int check_collective(const struct gdri_state *st, const struct gdri_request *q)
{
	const struct gdri_team *t = gdri_team_find(st, q->coll.team);
	uint64_t d, s;
	int ret;

	if (!t)
		return gdri_fail(-GDR_EINVAL, "%s: this PE is in no team %d", names[q->what], q->coll.team);
	if (q->what < GDRI_RQ_COLLECTIVE)
		return 0;
	if (q->what == GDRI_RQ_BROADCAST && (q->coll.root < 0 || q->coll.root >= t->n))
		return gdri_fail(-GDR_EINVAL, "broadcast: root %d of a team of %d", q->coll.root, t->n);
	if (!gdri_request_extent(q, (uint64_t)t->n, &d, &s))
		return gdri_fail(-GDR_EINVAL, "%s: %llu elements, steps %lld and %lld", names[q->what],
				 (unsigned long long)q->n, (long long)q->coll.dst_step, (long long)q->coll.src_step);
	ret = in_heap(st, q, q->dst, d);
	if (!ret)
		ret = in_heap(st, q, q->src, s);
	if (!ret && q->n && !gdri_request_overlap(q, (uint64_t)t->me, d, s))
		ret = gdri_fail(-GDR_EINVAL, "%s: dest %p and source %p overlap", names[q->what], q->dst, q->src);
	return ret;
}

/* n elements `step` apart: the lowest address and the bytes from there, 0 bytes when that is more
 * than the heap could have. */
static uint64_t request_span(const struct gdri_state *st, const struct gdri_request *q, const void **ptr,
			     int64_t step)
{
	uint64_t apart = (step < 0 ? -(uint64_t)step : (uint64_t)step), gaps = q->n - 1;
	uint64_t most = gdri_window_reach(st);

	if (gaps && (gaps > most || apart > most / q->size / gaps))
		return ~0ull;
	if (step < 0)
		*ptr = (const uint8_t *)*ptr - gaps * apart * q->size;
	return (gaps * apart + 1) * q->size;
}

static int check_transfer(const struct gdri_state *st, const struct gdri_request *q)
{
	bool remote_is_src = q->what == GDRI_RQ_GET || q->what == GDRI_RQ_IGET || q->what == GDRI_RQ_G;
	const void *remote = q->what == GDRI_RQ_SIGNAL ? q->signal.word : remote_is_src ? q->src : q->dst;
	uint64_t len = q->size;
	int ret;

	if (q->pe < 0 || q->pe >= st->n_pes)
		return gdri_fail(-GDR_EINVAL, "%s: there is no PE %d, the job has %d", names[q->what], q->pe,
				 st->n_pes);
	if (q->what == GDRI_RQ_IPUT || q->what == GDRI_RQ_IGET)
		len = q->n ? request_span(st, q, &remote,
					  q->what == GDRI_RQ_IPUT ? q->strided.dst_step : q->strided.src_step) : 0;
	else if (q->what >= GDRI_RQ_BY_BLOCK)
		len = q->n > gdri_window_reach(st) / q->size ? ~0ull : q->n * q->size;
	ret = in_heap(st, q, remote, len);
	if (!ret && len && q->what >= GDRI_RQ_BY_BLOCK && !(remote_is_src ? (const void *)q->dst : q->src))
		ret = gdri_fail(-GDR_EINVAL, "%s: %s is NULL, with %llu elements of %u bytes %s PE %d", names[q->what],
				remote_is_src ? "dest" : "source", (unsigned long long)q->n, q->size,
				remote_is_src ? "from" : "to", q->pe);
	if (!ret)
		ret = gdri_lost_peer(st, q->pe);
	if (ret || (q->what != GDRI_RQ_PUT_SIGNAL && q->what != GDRI_RQ_SIGNAL))
		return ret;
	if (q->signal.op != GDR_SIGNAL_SET && q->signal.op != GDR_SIGNAL_ADD)
		return gdri_fail(-GDR_EINVAL, "%s: there is no signal operation %u", names[q->what], q->signal.op);
	return q->what == GDRI_RQ_SIGNAL ? 0 : in_heap(st, q, q->signal.word, sizeof(uint64_t));
}

static int check_wait(const struct gdri_state *st, const struct gdri_request *q)
{
	const struct gdri_rq_wait *w = &q->wait;

	if (w->cmp > GDR_CMP_LE)
		return gdri_fail(-GDR_EINVAL, "wait_until: there is no comparison %u", w->cmp);
	if (w->from_pe && (q->pe < 0 || q->pe >= st->n_pes))
		return gdri_fail(-GDR_EINVAL, "wait_until: there is no PE %d, the job has %d", q->pe, st->n_pes);
	return in_heap(st, q, w->words, q->n > gdri_window_reach(st) ? ~0ull : (q->n ? q->n : 1) * q->size);
}

static int request_check(const struct gdri_state *st, const struct gdri_request *q)
{
	if (q->what >= GDRI_RQ_COLLECTIVE || q->what == GDRI_RQ_BARRIER || q->what == GDRI_RQ_SYNC)
		return check_collective(st, q);
	if (q->what == GDRI_RQ_WAIT)
		return check_wait(st, q);
	if (q->what < GDRI_RQ_P)
		return 0;
	return check_transfer(st, q);
}

/* Nothing to do on any PE that may be asked: not even a wait. A quiet has a PE that is lost to tell of, and the first
 * one brings the kernel to the GPU, before one of the program's waits for what a stream brings (gdr/stream.h). */
static int is_nothing(const struct gdri_state *st, const struct gdri_request *q)
{
	if (q->what == GDRI_RQ_QUIET) /* mapped memory: the end of what was on the stream before */
		return st->cuda && !st->dev->n_slots && !gdri_lost_any(st) && gdri_exec_is_ready(st);
	if (q->what == GDRI_RQ_PUT_SIGNAL || q->what == GDRI_RQ_COLLECT)
		return 0;
	return q->what >= GDRI_RQ_BY_BLOCK && !q->n;
}

/* On the host device, whose streams hold CPU threads. */
static int on_host_stream(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream)
{
	struct gdri_request mine = *q;
	struct gdri_plan p;

	gdri_exec_plan(st, &mine, &p);
	return gdri_hd_launch(gdri_exec_kernel, names[q->what], p.grid, p.block, 0, stream, &mine,
			      sizeof(mine));
}

int gdri_request_on_stream(const struct gdri_request *q, gdr_stream_t stream)
{
	struct gdri_state *st = gdri_need_state(names[q->what]);
	int ret = st ? request_check(st, q) : -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_STREAM, names[q->what]);

	if (ret || is_nothing(st, q))
		return ret;
	return gdri_host_failed(st, st->cuda ? gdri_exec_on_stream(st, q, stream) : on_host_stream(st, q, stream));
}

/* Beside a GPU a kernel makes the collective calls of host threads, but for the barrier and those of the symmetric
 * heap. It would succeed where these are out of step. */
static int hosts_broken(struct gdri_state *st, const struct gdri_request *q)
{
	int broken = __atomic_load_n(&st->broken, __ATOMIC_RELAXED);

	if (!st->cuda || !broken || (q->what < GDRI_RQ_COLLECTIVE && q->what != GDRI_RQ_SYNC_ALL &&
				     q->what != GDRI_RQ_BARRIER && q->what != GDRI_RQ_SYNC))
		return 0;
	return gdri_fail(broken, "%s: an earlier collective call failed: %s; finalize and start anew", names[q->what],
			 gdr_strerror(broken));
}

int gdri_request_now(const struct gdri_request *q, struct gdri_answer *answer)
{
	struct gdri_state *st = gdri_need_state(names[q->what]);
	struct gdri_answer own;
	int ret = st ? request_check(st, q) : -GDR_ESTATE;
	GDRI_RANGE(st, GDRI_RANGE_TRANSFER, names[q->what]);

	if (!answer)
		answer = &own;
	if (!ret)
		ret = hosts_broken(st, q);
	*answer = (struct gdri_answer){.status = ret};
	if (ret || is_nothing(st, q))
		return ret;
	answer->status = st->cuda ? gdri_exec_now(st, q, answer) : gdri_exec_here(q, answer->value);
	return gdri_host_failed(st, answer->status);
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
