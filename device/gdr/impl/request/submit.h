/* SPDX-License-Identifier: BSD-3-Clause */
/* How a host thread submits an operation to the library: on a stream, or now. Not in code that is loaded by
 * hand, which is device code alone. */
#ifndef GDRI_SUBMIT_H
#define GDRI_SUBMIT_H

#include <gdr/impl/request/request.h>
#include <gdr/launch.h>
#include <gdr/team.h>

#if defined(__CUDACC_RTC__) || (defined(__CUDACC__) && defined(GDR_MODULE))
#define GDRI_HAS_HOST 0
#else
#define GDRI_HAS_HOST 1

GDR_EXTERN_C_BEGIN
GDR_API int gdri_request_on_stream(const struct gdri_request *q, gdr_stream_t stream);
/* Waits; answer may be NULL. */
GDR_API int gdri_request_now(const struct gdri_request *q, struct gdri_answer *answer);
/* The value that the request brings; nothing, with the status latched, when it fails. */
GDR_API void gdri_request_value(const struct gdri_request *q, void *value);
/* As gdri_request_now, with the value in `to`: memory of the host or of the GPU. */
GDR_API int gdri_request_fetch(const struct gdri_request *q, void *to);
/* For calls that return a value and could not bring it: latches the status. */
GDR_API void gdri_value_failed(int status);
/* As gdri_request_value, by a transfer: 0 when it fails. At most 16 bytes. */
GDR_API void gdri_value_get(void *value, const void *src, uint32_t size, int pe);
/* What gdr/host_ops.h promises: as gdri_request_now, with local memory of any kind. A wait ends behind limit_ns with
 * -GDR_ETIMEOUT, one for any or some of several words having found none (0: it looks once); others have no limit but
 * GDR_TIMEOUT. value: where what the request brings goes,
 * memory of the host; NULL where it brings nothing. */
GDR_API int gdri_host_call(const struct gdri_request *q, uint64_t limit_ns, void *value);
GDR_EXTERN_C_END

/* Instead of a stream: executed at once, and waited for; NOW by names of kernels, HOST by those of gdr/host_ops.h. */
#define GDRI_NOW ((gdr_stream_t) ~(uintptr_t)0)
#define GDRI_HOST ((gdr_stream_t) ~(uintptr_t)1)
#define GDRI_HOST_NO_LIMIT (~0ull)

static inline int gdri_submit(const struct gdri_request *q, gdr_stream_t stream)
{
	if (stream == GDRI_HOST)
		return gdri_host_call(q, GDRI_HOST_NO_LIMIT, 0);
	return stream == GDRI_NOW ? gdri_request_now(q, 0) : gdri_request_on_stream(q, stream);
}

static inline struct gdri_request gdri_rq(uint32_t what, void *dst, const void *src, uint64_t n,
					  uint32_t size, int pe)
{
	struct gdri_request q;

	memset(&q, 0, sizeof(q));
	q.what = what;
	q.dst = dst;
	q.src = src;
	q.n = n;
	q.size = size;
	q.pe = pe;
	return q;
}

static inline int gdri_submit_rma(uint32_t what, int nbi, void *dst, const void *src, uint64_t n,
				  uint32_t size, int pe, gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(what, dst, src, n, size, pe);

	q.transfer.nbi = (uint32_t)nbi;
	return gdri_submit(&q, stream);
}

static inline int gdri_submit_signal(int nbi, void *dst, const void *src, uint64_t n, uint32_t size,
				     void *sig, uint64_t value, int op, int pe, gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_PUT_SIGNAL, dst, src, n, size, pe);

	q.signal.word = (uint64_t *)sig;
	q.signal.value = value;
	q.signal.op = (uint32_t)op;
	q.signal.nbi = (uint32_t)nbi;
	return gdri_submit(&q, stream);
}

static inline int gdri_submit_strided(uint32_t what, void *dst, const void *src, int64_t dst_step,
				      int64_t src_step, uint64_t n, uint32_t size, int pe,
				      gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(what, dst, src, n, size, pe);

	q.strided.dst_step = dst_step;
	q.strided.src_step = src_step;
	return gdri_submit(&q, stream);
}

static inline int gdri_submit_p(void *dst, const void *value, uint32_t size, int pe,
				gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_P, dst, 0, 1, size, pe);

	memcpy(q.value, value, size < 16 ? size : 16);
	return gdri_submit(&q, stream);
}

static inline void gdri_submit_g(void *value, const void *src, uint32_t size, int pe,
				 gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_G, 0, src, 1, size, pe);

	int ret = stream == GDRI_NOW ? 0 : gdr_stream_sync(stream);

	memset(value, 0, size);
	if (ret)
		gdri_value_failed(ret);
	else
		gdri_request_value(&q, value);
}

static inline int gdri_submit_wait(const void *ptrs, uint64_t n, const int *skip,
				   const void *values, uint64_t value, uint32_t size, int is_signed,
				   int cmp, gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_WAIT, 0, 0, n, size, 0);

	q.wait.words = ptrs;
	q.wait.skip = skip;
	q.wait.values = values;
	q.wait.value = value;
	q.wait.is_signed = (uint32_t)is_signed;
	q.wait.cmp = (uint32_t)cmp;
	return gdri_submit(&q, stream);
}

/* pe: who is to signal. */
static inline int gdri_submit_wait_from(const uint64_t *sig, int cmp, uint64_t value, int pe,
					gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_WAIT, 0, 0, 0, 8, pe);

	q.wait.words = sig;
	q.wait.value = value;
	q.wait.cmp = (uint32_t)cmp;
	q.wait.from_pe = 1;
	return gdri_submit(&q, stream);
}

static inline int gdri_submit_signal_op(uint64_t *sig, uint64_t value, int op, int pe,
					gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_SIGNAL, 0, 0, 0, 8, pe);

	q.signal.word = sig;
	q.signal.value = value;
	q.signal.op = (uint32_t)op;
	return gdri_submit(&q, stream);
}

static inline int gdri_submit_sync(uint32_t what, gdr_team_t team, gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(what, 0, 0, 0, 1, 0);

	q.coll.team = team;
	return gdri_submit(&q, stream);
}

/* root: of a broadcast; steps: of alltoalls; code: of a reduction. */
static inline int gdri_submit_coll(uint32_t what, gdr_team_t team, void *dst, const void *src,
				   uint64_t n, uint32_t size, int root, int64_t dst_step,
				   int64_t src_step, uint32_t code, gdr_stream_t stream)
{
	struct gdri_request q = gdri_rq(what, dst, src, n, size, 0);

	q.coll.team = team;
	q.coll.root = root;
	q.coll.dst_step = dst_step;
	q.coll.src_step = src_step;
	q.coll.code = code;
	return gdri_submit(&q, stream);
}

/* what: AMO or FETCH_AMO; a, b: bits of the operands. */
static inline struct gdri_request gdri_rq_amo(uint32_t what, int kind, uint32_t size,
					      const void *dst, uint64_t a, uint64_t b, int pe)
{
	struct gdri_request q = gdri_rq(what, (void *)(uintptr_t)dst, 0, 1, size, pe);

	q.atomic.kind = (uint32_t)kind;
	q.atomic.operand = a;
	q.atomic.compare = b;
	return q;
}

static inline int gdri_submit_amo(uint32_t what, int kind, uint32_t size, const void *dst,
				  uint64_t a, uint64_t b, int pe)
{
	struct gdri_request q = gdri_rq_amo(what, kind, size, dst, a, b, pe);

	return gdri_request_now(&q, 0);
}

/* The old value's bits; 0 on failure, with the status latched. */
static inline uint64_t gdri_submit_fetch(uint32_t what, int kind, uint32_t size, const void *dst,
					 uint64_t a, uint64_t b, int pe)
{
	struct gdri_request q = gdri_rq_amo(what, kind, size, dst, a, b, pe);
	uint64_t old = 0;

	gdri_request_value(&q, &old);
	return old;
}

static inline int gdri_submit_fetch_to(uint32_t what, int kind, uint32_t size, void *fetch,
				       const void *dst, uint64_t a, uint64_t b, int pe)
{
	struct gdri_request q = gdri_rq_amo(what, kind, size, dst, a, b, pe);

	return gdri_request_fetch(&q, fetch);
}

/* ---- of gdr/host_ops.h alone ---- */

/* The value that the request brings; 0, with the status latched, when it fails. */
static inline void gdri_host_value(const struct gdri_request *q, void *value)
{
	int ret = gdri_host_call(q, GDRI_HOST_NO_LIMIT, value);

	if (!ret)
		return;
	memset(value, 0, q->size);
	gdri_value_failed(ret);
}

static inline void gdri_host_g(void *value, const void *src, uint32_t size, int pe)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_G, 0, src, 1, size, pe);

	gdri_host_value(&q, value);
}

static inline int gdri_host_amo(int kind, uint32_t size, void *dst, uint64_t a, int pe)
{
	struct gdri_request q = gdri_rq_amo(GDRI_RQ_AMO, kind, size, dst, a, 0, pe);

	return gdri_host_call(&q, GDRI_HOST_NO_LIMIT, 0);
}

static inline void gdri_host_fetch(void *old, int kind, uint32_t size, const void *dst, uint64_t a, uint64_t b, int pe)
{
	struct gdri_request q = gdri_rq_amo(GDRI_RQ_FETCH_AMO, kind, size, dst, a, b, pe);

	gdri_host_value(&q, old);
}

static inline int gdri_host_blocks(uint32_t what, void *dst, const void *src, int64_t dst_step, int64_t src_step,
				   uint64_t block, uint64_t n, uint32_t size, int pe)
{
	struct gdri_request q = gdri_rq(what, dst, src, block ? n : 0, size, pe);

	q.strided.dst_step = dst_step;
	q.strided.src_step = src_step;
	q.strided.block = block ? block : 1;
	return gdri_host_call(&q, GDRI_HOST_NO_LIMIT, 0);
}

static inline int gdri_host_fetch_nbi(void *fetch, int kind, uint32_t size, const void *dst, uint64_t a, uint64_t b,
				      int pe)
{
	struct gdri_request q = gdri_rq_amo(GDRI_RQ_FETCH_AMO, kind, size, dst, a, b, pe);

	q.src = fetch;
	return gdri_host_call(&q, GDRI_HOST_NO_LIMIT, 0);
}

static inline int gdri_host_lock(uint32_t call, long *lock)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_LOCK, lock, 0, 1, sizeof(*lock), 0);
	uint64_t busy = 0;
	int ret;

	q.lock.call = call;
	ret = gdri_host_call(&q, GDRI_HOST_NO_LIMIT, &busy);
	return ret ? ret : (int)busy;
}

/* set: bits of enum gdri_words; 0: a wait for one word, n 0. */
static inline struct gdri_request gdri_rq_words(uint32_t set, const void *ptrs, uint64_t n, size_t *indices,
						const int *status, int cmp, const void *values, uint64_t value,
						uint32_t size, int is_signed)
{
	struct gdri_request q = gdri_rq(GDRI_RQ_WAIT, indices, 0, n, size, 0);

	q.wait.words = ptrs;
	q.wait.skip = status;
	q.wait.values = values;
	q.wait.value = value;
	q.wait.is_signed = (uint32_t)is_signed;
	q.wait.cmp = (uint32_t)cmp;
	q.wait.set = set;
	return q;
}

/* What ANY and SOME find; `none` where the call fails, with the status latched. */
static inline size_t gdri_host_found(struct gdri_request q, uint64_t limit_ns, size_t none)
{
	size_t found = none;
	int ret = gdri_host_call(&q, limit_ns, &found);

	if (ret)
		gdri_value_failed(ret);
	return ret ? none : found;
}

static inline int gdri_host_waits(struct gdri_request q, uint64_t limit_ns)
{
	return gdri_host_call(&q, limit_ns, 0);
}

/* Looks once: 1 or 0; a failure is latched. */
static inline int gdri_host_looks(struct gdri_request q)
{
	int ret = gdri_host_call(&q, 0, 0);

	if (ret && ret != -GDR_ETIMEOUT)
		gdri_value_failed(ret);
	return !ret;
}

#endif

#endif
