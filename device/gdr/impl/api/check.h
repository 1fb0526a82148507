/* SPDX-License-Identifier: BSD-3-Clause */
/* GDR_CHECKED: the checks that stand before every public function (define.h). Each returns 0, or
 * -GDR_EINVAL with an error record that says which argument is wrong, its value, what it may be, and file and
 * line of the call. */
#ifndef GDRI_CHECK_H
#define GDRI_CHECK_H

#include <gdr/impl/api/cmp.h>
#include <gdr/impl/path/ctx.h>
#include <gdr/impl/request/request.h>
#include <gdr/impl/wait/error.h>
#include <gdr/impl/arch/scope.h>

/* Beside the operation and GDRI_CALL_...: which of its functions, and that it is the one on a context. The highest byte
 * of gdri_error.reason has both, as runtime/diag/errors.c reads it. */
#define GDRI_CALLED_NUMBER(function, number, name, nvshmem) GDRI_CALLED_##function = (number) << 16,
enum gdri_called { GDRI_CALLED_AS(GDRI_CALLED_NUMBER) GDRI_CALLED_CTX = 128 << 16 };
#define GDRI_CALLED(op, function) ((uint32_t)(op) | (uint32_t)GDRI_CALLED_##function)
#define GDRI_SITE_CTX(op, scope) GDRI_CALLED(op, CTX), scope

struct gdri_site {
	const char *file;
	uint32_t line;
	uint32_t op; /* enum gdri_op, and in higher bits which call of it */
	int scope; /* one thread of it records */
};

/* The tail of the name, where it is longer than there is room. */
GDR_DEVICE_COLD void gdri_error_at(struct gdri_error *e, const struct gdri_site *at)
{
	const char *file = at->file;
	uint32_t i, n = 0;

	e->line = at->line;
	while (file[n])
		n++;
	if (n > sizeof(e->file) - 1)
		file += n - (sizeof(e->file) - 1);
	for (i = 0; file[i] && i < sizeof(e->file) - 1; i++)
		e->file[i] = file[i];
}

/* The next quiet says so: in the plain build it says what a NIC refused, and that there is no such PE. Not of what the
 * plain build refuses by the call's status alone, and a quiet would take its own away at once. */
GDR_DEVICE int gdri_refusal_stays(uint32_t op, uint32_t reason)
{
	reason &= 0xffu;
	if (reason == GDRI_ARG_PE)
		return op != GDRI_QUIET;
	return op <= GDRI_FETCH_AMO && reason != GDRI_ARG_LOCAL && reason != GDRI_ARG_NULL &&
	       reason != GDRI_ARG_SIGNAL_OP;
}

/* reason: enum gdri_arg_reason, which says what ptr, len, low and high are. */
GDR_DEVICE_COLD int gdri_refuse(const struct gdri_site *at, int pe, uint32_t reason, const void *ptr, uint64_t len,
				uint64_t low, uint64_t high)
{
	struct gdri_error *e;

	if (gdri_scope_rank(at->scope))
		return -GDR_EINVAL;
	if (gdri_refusal_stays(at->op & 0xffu, reason))
		gdri_latch(gdri_dev(), -GDR_EINVAL);
	e = gdri_error_arg_take(gdri_dev(), at->op, pe, ptr, len, reason);
	if (!e)
		return -GDR_EINVAL;
	e->local = low;
	e->waited_ns = high;
	gdri_error_at(e, at);
	gdri_error_complete(e);
	return -GDR_EINVAL;
}

#ifndef __CUDACC__
/* How many threads of the scope make the first one's call; *says: 1 for that one. Neither orders memory. */
GDR_DEVICE unsigned gdri_callers(int scope, uint64_t call, int *says)
{
	uint32_t mask, first;

	if (scope == GDRI_BLOCK)
		return gdri_hd_callers(call, says);
	mask = gdri_warp_mask();
	first = gdri_ffs_u32(gdr_ballot(mask, 1)); /* lanes that have returned have no vote */
	*says = gdr_lane_id() == first;
	return gdri_popc(gdr_ballot(mask, gdr_shfl_u64(mask, call, first) == call));
}

GDRI_NOINLINE int gdri_check_group(const struct gdri_site *at, uint64_t call)
{
	uint64_t warp = at->scope == GDRI_WARP ? gdr_thread_id() / 32 + 1 : 0;
	unsigned n, all = gdri_scope_size(at->scope);
	struct gdri_site one = *at;
	int says;

	n = all == 1 ? 1 : gdri_callers(at->scope, call, &says);
	if (n == all || !gdri_dev())
		return 0;
	one.scope = GDRI_THREAD; /* the scope's first thread may not be there */
	if (says)
		gdri_refuse(&one, -1, GDRI_ARG_THREADS, (const void *)(uintptr_t)warp, n, gdr_block_id(), all);
	return -GDR_EINVAL;
}
#endif

/* All threads of the scope make the call with equal arguments, for each has its share of the work. Only the host device
 * counts them: a GPU's threads would meet once more for each call. */
GDR_DEVICE int gdri_check_threads(const struct gdri_site *at, const void *dst, const void *src, uint64_t n, int pe)
{
#ifndef __CUDACC__
	const uint64_t mix = 0x9e3779b97f4a7c15ull;
	uint64_t call = ((uintptr_t)dst * mix ^ (uintptr_t)src) * mix ^ n;

	if (at->scope != GDRI_THREAD)
		return gdri_check_group(at, (call * mix ^ (uint32_t)pe) * mix ^ at->op);
#endif
	(void)at, (void)dst, (void)src, (void)n, (void)pe;
	return 0;
}

GDR_DEVICE_COLD int gdri_refuse_pe(const struct gdri_site *at, int pe, int n)
{
	return gdri_refuse(at, -1, GDRI_ARG_PE, 0, (uint64_t)(int64_t)pe, 0, (uint64_t)n);
}

GDR_DEVICE int gdri_check_pe(const struct gdri_site *at, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return !dev || (pe >= 0 && pe < dev->n_pes) ? 0 : gdri_refuse_pe(at, pe, dev->n_pes);
}

/* Elements of 16 bytes are two words. */
GDR_DEVICE int gdri_check_align(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t align, int pe)
{
	align = align < 8 ? align : 8;
	return (uint64_t)(uintptr_t)ptr & (align - 1) ? gdri_refuse(at, pe, arg | GDRI_ARG_ALIGN, ptr, 0, 0, align) : 0;
}

/* Within one object of this PE's, whose objects are those of all. */
GDR_DEVICE int gdri_check_object(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t len, int pe)
{
#ifndef __CUDACC__
	uint64_t heap = (uint64_t)(uintptr_t)gdri_dev()->heap, begin, end;

	if (!gdri_hd_object((uint64_t)(uintptr_t)ptr - heap, len, &begin, &end)) {
		heap = end ? heap : 0;
		return gdri_refuse(at, pe, arg | GDRI_ARG_OBJECT, ptr, len, heap + begin, heap + end);
	}
#endif
	(void)at, (void)arg, (void)ptr, (void)len, (void)pe;
	return 0;
}

/* Memory of the heap that is the program's: not the library's own, in front of the first object. */
GDR_DEVICE int gdri_check_heap(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t len, int pe)
{
	const struct gdri_dev *dev = gdri_dev();
	uint64_t off = gdri_heap_offset(dev, ptr), heap = (uint64_t)(uintptr_t)dev->heap;

	if (off >= dev->heap_size || len > dev->heap_size - off)
		return gdri_refuse(at, pe, arg | GDRI_ARG_HEAP, ptr, len, heap, heap + dev->heap_size);
	if (off < dev->own_size)
		return gdri_refuse(at, pe, arg | GDRI_ARG_OWN, ptr, len, heap, heap + dev->own_size);
	return gdri_check_object(at, arg, ptr, len, pe);
}

/* Memory outside the heap that this PE may name as its own: none for programs of gdr, any for those of NVSHMEM. As the
 * local side it may be out of the NIC's reach all the same, which posting says. */
GDR_DEVICE int gdri_check_own_outside(const void *ptr, int pe)
{
#ifdef GDRI_OWN_OUTSIDE
	return pe == gdri_dev()->pe && gdri_heap_offset(gdri_dev(), ptr) >= gdri_dev()->heap_size;
#else
	(void)ptr, (void)pe;
	return 0;
#endif
}

/* A whole symmetric object. */
GDRI_NOINLINE int gdri_check_sym(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t len,
				 uint64_t align, int pe)
{
	int ret;

	if (!gdri_dev())
		return 0; /* the function itself says so */
	ret = gdri_check_pe(at, pe);
	if (!ret)
		ret = gdri_check_align(at, arg, ptr, align, pe);
	return ret || !len || gdri_check_own_outside(ptr, pe) ? ret : gdri_check_heap(at, arg, ptr, len, pe);
}

#define GDRI_NULL_PAGE 4096

/* Memory of this PE's program, wherever it lies. The first page of addresses has none: what points there is NULL, a
 * field of a struct at NULL, or a number. */
GDR_DEVICE int gdri_check_null(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t len, int pe)
{
	if (!gdri_dev() || !len || (uint64_t)(uintptr_t)ptr >= GDRI_NULL_PAGE)
		return 0;
	return gdri_refuse(at, pe, arg | GDRI_ARG_NULL, ptr, len, 0, 0);
}

/* Local memory that the path to pe, which is one, can reach. */
GDRI_NOINLINE int gdri_check_local(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t len,
				   uint64_t align, int pe, int is_put)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t p = (uint64_t)(uintptr_t)ptr;
	int ret;

	if (!dev || !len)
		return 0;
	ret = gdri_check_null(at, arg, ptr, len, pe);
	if (ret)
		return ret;
	if (p + len < p)
		return gdri_refuse(at, pe, arg | GDRI_ARG_SIZE, ptr, len, 1, ~0ull - p);
	ret = gdri_check_align(at, arg, ptr, align, pe);
	if (ret || gdri_heap_offset(dev, ptr) < dev->heap_size)
		return ret ? ret : gdri_check_heap(at, arg, ptr, len, pe);
	if (dev->peers[pe].base || (is_put && len <= GDRI_INLINE_MAX) || gdri_check_own_outside(ptr, pe))
		return 0;
	/* acquires: pair with the host's releases of n_buffers and len (host/register.c) */
	for (uint32_t i = 0; i < gdri_ld_acquire_sys_u32(&dev->n_buffers); i++) {
		uint64_t size = gdri_ld_acquire_sys_u64(&dev->buffers[i].len);

		if (size && (arg == GDRI_SOURCE || !dev->buffers[i].read_only) && p - dev->buffers[i].addr < size &&
		    len <= size - (p - dev->buffers[i].addr))
			return 0;
	}
	return gdri_refuse(at, pe, arg | GDRI_ARG_LOCAL, ptr, len, 0, 0);
}

/* n elements: a number of bytes that the heap could have. *len: how many these are. */
GDR_DEVICE int gdri_check_size(const struct gdri_site *at, uint32_t arg, uint64_t n, uint64_t elem, int pe,
			       uint64_t *len)
{
	*len = n * elem;
	if (!gdri_dev() || n <= gdri_dev()->heap_size / elem)
		return 0;
	return gdri_refuse(at, pe, arg | GDRI_ARG_SIZE, 0, n, elem, gdri_dev()->heap_size);
}

/* To or from this PE itself, a put or get of len bytes has a source and a dest that lie apart, or are one. */
GDR_DEVICE int gdri_check_apart(const struct gdri_site *at, const void *dst, const void *src, uint64_t len, int pe)
{
	if (!gdri_dev() || pe != gdri_dev()->pe || gdri_request_apart(dst, src, len))
		return 0;
	return gdri_refuse(at, pe, GDRI_ARG_OVERLAP, dst, len, (uint64_t)(uintptr_t)src, len);
}

GDRI_NOINLINE int gdri_check_put(const struct gdri_site *at, const void *dst, const void *src,
				 size_t n, size_t elem, int pe)
{
	uint64_t len;
	int ret = gdri_check_threads(at, dst, src, n * elem, pe);

	if (!ret)
		ret = gdri_check_size(at, GDRI_DEST, n, elem, pe, &len);
	if (!ret)
		ret = gdri_check_sym(at, GDRI_DEST, dst, len, elem, pe);
	if (!ret)
		ret = gdri_check_local(at, GDRI_SOURCE, src, len, elem, pe, 1);
	return ret ? ret : gdri_check_apart(at, dst, src, len, pe);
}

GDRI_NOINLINE int gdri_check_get(const struct gdri_site *at, const void *dst, const void *src,
				 size_t n, size_t elem, int pe)
{
	uint64_t len;
	int ret = gdri_check_threads(at, dst, src, n * elem, pe);

	if (!ret)
		ret = gdri_check_size(at, GDRI_SOURCE, n, elem, pe, &len);
	if (!ret)
		ret = gdri_check_sym(at, GDRI_SOURCE, src, len, elem, pe);
	if (!ret)
		ret = gdri_check_local(at, GDRI_DEST, dst, len, elem, pe, 0);
	return ret ? ret : gdri_check_apart(at, dst, src, len, pe);
}

GDRI_NOINLINE int gdri_check_signal(const struct gdri_site *at, const uint64_t *sig, int op, int pe)
{
	if (gdri_dev() && op != GDR_SIGNAL_SET && op != GDR_SIGNAL_ADD)
		return gdri_refuse(at, pe, GDRI_ARG_SIGNAL_OP, sig, (uint64_t)(int64_t)op, 0, 0);
	return gdri_check_sym(at, GDRI_SIG, sig, 8, 8, pe);
}

GDRI_NOINLINE int gdri_check_put_signal(const struct gdri_site *at, const void *dst, const void *src,
					size_t n, size_t elem, const uint64_t *sig, int op, int pe)
{
	int ret = gdri_check_put(at, dst, src, n, elem, pe);

	return ret ? ret : gdri_check_signal(at, sig, op, pe);
}

GDR_DEVICE int gdri_check_cmp(const struct gdri_site *at, const void *ptr, int cmp)
{
	if (!gdri_dev() || gdri_cmp_mask(cmp))
		return 0;
	return gdri_refuse(at, -1, GDRI_ARG_CMP, ptr, (uint64_t)(int64_t)cmp, 0, 0);
}

GDR_DEVICE int gdri_check_own(const struct gdri_site *at, uint32_t arg, const void *ptr, uint64_t len, uint64_t align)
{
	int ret = gdri_dev() ? gdri_check_align(at, arg, ptr, align, -1) : 0;

	return ret || !len || !gdri_dev() ? ret : gdri_check_heap(at, arg, ptr, len, -1);
}

GDRI_NOINLINE int gdri_check_wait(const struct gdri_site *at, uint32_t arg, const void *ptr, uint32_t size,
				  int cmp)
{
	int ret = gdri_check_cmp(at, ptr, cmp);

	return ret ? ret : gdri_check_own(at, arg, ptr, size, size);
}

/* Arrays beside the words of a wait or a test, which this PE alone reads or writes. */
GDRI_NOINLINE int gdri_check_array(const struct gdri_site *at, uint32_t arg, const void *ptr, size_t n, uint32_t size)
{
	int ret = gdri_check_null(at, arg, ptr, n * size, -1);

	return ret || !gdri_dev() || !n ? ret : gdri_check_align(at, arg, ptr, size, -1);
}

/* status: NULL where all words count. n_values: of the size of words. */
GDRI_NOINLINE int gdri_check_waits(const struct gdri_site *at, const void *ptrs, size_t n, uint32_t size,
				   const int *status, int cmp, const void *values, size_t n_values)
{
	uint64_t len;
	int ret = gdri_check_cmp(at, ptrs, cmp);

	if (!ret)
		ret = gdri_check_size(at, GDRI_WORD, n, size, -1, &len);
	if (!ret)
		ret = gdri_check_own(at, GDRI_WORD, ptrs, len, size);
	if (!ret && status)
		ret = gdri_check_array(at, GDRI_STATUS, status, n, sizeof(*status));
	return ret ? ret : gdri_check_array(at, GDRI_VALUES, values, n_values, size);
}

/* indices: where the numbers go of the words that hold. */
GDRI_NOINLINE int gdri_check_waits_some(const struct gdri_site *at, const void *ptrs, size_t n, uint32_t size,
					const size_t *indices, const int *status, int cmp, const void *values,
					size_t n_values)
{
	int ret = gdri_check_waits(at, ptrs, n, size, status, cmp, values, n_values);

	return ret ? ret : gdri_check_array(at, GDRI_INDICES, indices, n, sizeof(*indices));
}

/* n blocks of len bytes, each `step` elements behind the one before: the lowest address, and the bytes from there.
 * 0 when that is more than `most`. */
GDR_DEVICE int gdri_check_span(const void **ptr, int64_t step, uint64_t elem, uint64_t len, uint64_t n,
			       uint64_t most, uint64_t *span)
{
	uint64_t size = step < 0 ? -(uint64_t)step : (uint64_t)step;

	*span = n ? len : 0;
	if (n < 2)
		return 1;
	if (n > most || size > most / elem / (n - 1))
		return 0;
	size *= elem * (n - 1);
	*span += size;
	if (step < 0)
		*ptr = (const uint8_t *)*ptr - size;
	return *span <= most;
}

/* n blocks of bsize elements; steps in elements. */
GDRI_NOINLINE int gdri_check_strided(const struct gdri_site *at, int put, const void *dest, const void *source,
				     int64_t dst, int64_t sst, uint64_t bsize, uint64_t n, size_t elem, int pe)
{
	uint32_t far_arg = put ? GDRI_DEST : GDRI_SOURCE;
	uint64_t d, s, len, heap, far = ~0ull >> 2; /* own memory may be larger than the heap */
	const void *to = dest, *from = source;
	int ret;

	if (!gdri_dev())
		return 0;
	heap = gdri_dev()->heap_size;
	ret = gdri_check_threads(at, dest, source, bsize * n * elem, pe);
	if (!ret)
		ret = gdri_check_size(at, far_arg, bsize, elem, pe, &len);
	if (ret)
		return ret;
	n = len ? n : 0;
	if (!gdri_check_span(&to, dst, elem, len, n, put ? heap : far, &d))
		return gdri_refuse(at, pe, GDRI_DEST | GDRI_ARG_STRIDE, dest, (uint64_t)dst, n, heap);
	if (!gdri_check_span(&from, sst, elem, len, n, put ? far : heap, &s))
		return gdri_refuse(at, pe, GDRI_SOURCE | GDRI_ARG_STRIDE, source, (uint64_t)sst, n, heap);
	ret = gdri_check_sym(at, far_arg, put ? to : from, put ? d : s, elem, pe);
	if (ret)
		return ret;
	if (!put)
		return gdri_check_local(at, GDRI_DEST, to, d, elem, pe, 0);
	/* through the NIC a put of small blocks takes them from anywhere, as a small put */
	if (len > GDRI_INLINE_MAX)
		return gdri_check_local(at, GDRI_SOURCE, from, s, elem, pe, 0);
	ret = gdri_check_null(at, GDRI_SOURCE, source, s, pe);
	return ret || !s ? ret : gdri_check_align(at, GDRI_SOURCE, source, elem, pe);
}

/* Where the old value goes that a non-blocking atomic brings. */
GDR_DEVICE int gdri_check_fetch(const struct gdri_site *at, const void *fetch, const void *dst,
				size_t size, int pe)
{
	int ret = gdri_check_sym(at, GDRI_DEST, dst, size, size, pe);

	return ret ? ret : gdri_check_local(at, GDRI_FETCH_TO, fetch, size, size, pe, 0);
}

GDR_DEVICE int gdri_refuse_ctx(const struct gdri_site *at, gdr_ctx_t ctx)
{
	return gdri_refuse(at, -1, GDRI_ARG_CTX, 0, (uint64_t)(int64_t)ctx, 0, 0);
}

/* There is such a context, with a PE of this number. */
GDR_DEVICE int gdri_check_ctx(const struct gdri_site *at, gdr_ctx_t ctx, int pe)
{
	const struct gdri_dev *dev = gdri_dev();
	int n;

	if (!dev)
		return 0;
	if (ctx < 0 || ctx >= GDRI_MAX_CTXS || !gdri_ctx_at(dev, ctx)->mode)
		return gdri_refuse_ctx(at, ctx);
	n = gdri_ctx_at(dev, ctx)->size;
	return pe >= 0 && pe < n ? 0 : gdri_refuse_pe(at, pe, n);
}

/* The caller may use the context: until its next quiet it belongs to whoever used it first (thread, warp or block). */
GDRI_NOINLINE int gdri_check_ctx_use(const struct gdri_site *at, gdr_ctx_t ctx, int pe)
{
	int ret = gdri_check_ctx(at, ctx, pe);
	uint64_t who, owner = 0;
	struct gdri_ctx *c;

	if (ret || !gdri_dev())
		return ret;
	c = gdri_ctx_at(gdri_dev(), ctx);
	if (c->mode == GDR_CTX_GPU)
		return 0;
	who = gdri_ctx_caller(c->mode);
	if (c->mode == GDR_CTX_THREAD && at->scope != GDRI_THREAD)
		return gdri_refuse_ctx(at, ctx);
	/* carries no data: pairs with nothing */
	return gdri_cas_u64(&c->owner, &owner, who) || owner == who ? 0 : gdri_refuse_ctx(at, ctx);
}

/* gdri_check_ctx_use, then gdri_ctx_pe. */
GDR_DEVICE int gdri_ctx_enter(const struct gdri_site *at, gdr_ctx_t ctx, int *pe, uint32_t *q)
{
	int ret = gdri_check_ctx_use(at, ctx, *pe);

	if (!ret)
		*pe = gdri_ctx_pe(ctx, *pe, q);
	return ret;
}

/* Fence and quiet do nothing on no context. */
GDR_DEVICE int gdri_check_fence(const struct gdri_site *at, gdr_ctx_t ctx, int pe)
{
	return ctx == GDR_CTX_INVALID ? 0 : gdri_check_ctx_use(at, ctx, pe);
}

/* Anybody may complete what others did, as the host behind a kernel. */
GDR_DEVICE int gdri_check_quiet(const struct gdri_site *at, gdr_ctx_t ctx, int pe)
{
	return ctx == GDR_CTX_INVALID ? 0 : gdri_check_ctx(at, ctx, pe);
}

/* ---- calls that a PE makes one at a time, by one thread, warp or block ---- */

#define GDRI_CALL_UNDER_WAY (1ull << 32)

/* A second one would be out of step with the other PEs. The first that is refused says so for all. */
GDR_DEVICE_COLD int gdri_refuse_second(const struct gdri_site *at, uint64_t before)
{
	gdri_latch(gdri_dev(), -GDR_EINVAL);
	return before > 1 ? -GDR_EINVAL
			  : gdri_refuse(at, -1, GDRI_ARG_OTHER, 0, before + 1, gdr_block_id(), gdr_thread_id());
}

/* By all threads of the scope. *calls: its upper half counts those under way, and who was refused with them. */
GDRI_NOINLINE int gdri_check_alone(const struct gdri_site *at, uint64_t *calls)
{
	uint64_t before;
	int ret = 0;

	if (!gdri_scope_rank(at->scope)) {
		before = gdri_ld_relaxed_gpu_u64(calls); /* carries no data, as what follows: pairs with nothing */
		while (!gdri_cas_u64(calls, &before, before + GDRI_CALL_UNDER_WAY))
			;
		if (before >> 32)
			ret = gdri_refuse_second(at, before >> 32);
	}
	return gdri_scope_bcast(at->scope, ret);
}

/* Before any thread of the scope goes on, who may make the next one. */
GDRI_NOINLINE void gdri_alone_over(const struct gdri_site *at, uint64_t *calls)
{
	if (!gdri_scope_rank(at->scope)) /* nobody else writes the lower half; carries no data: pairs with nothing */
		gdri_st_relaxed_gpu_u64(calls, (uint32_t)gdri_ld_relaxed_gpu_u64(calls));
	gdri_scope_sync(at->scope);
}

GDR_DEVICE_COLD void gdri_latch_refusal(int status)
{
	if (gdri_dev())
		gdri_latch(gdri_dev(), status);
}

#endif
