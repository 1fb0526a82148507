/* SPDX-License-Identifier: BSD-3-Clause */
/* GDR_CHECKED: the checks that stand before every public function (define.h). Each returns 0, or
 * -GDR_EINVAL with an error record that names file and line of the call. */
#ifndef GDRI_CHECK_H
#define GDRI_CHECK_H

#include <gdr/impl/cmp.h>
#include <gdr/impl/ctx.h>
#include <gdr/impl/error.h>
#include <gdr/impl/scope.h>

struct gdri_site {
	const char *file;
	uint32_t line;
	uint32_t op;
	int scope; /* one thread of it records */
};

GDR_DEVICE_COLD int gdri_refuse_for(const struct gdri_site *at, int pe, const void *ptr,
				    uint64_t len, uint32_t reason)
{
	if (!gdri_scope_rank(at->scope))
		gdri_error_arg(gdri_dev(), at->op, -GDR_EINVAL, pe, ptr, len, reason, at->file,
			       at->line);
	return -GDR_EINVAL;
}

GDR_DEVICE_COLD int gdri_refuse(const struct gdri_site *at, int pe, const void *ptr, uint64_t len)
{
	return gdri_refuse_for(at, pe, ptr, len, GDRI_ARG_OTHER);
}

GDR_DEVICE int gdri_check_pe(const struct gdri_site *at, int pe)
{
	struct gdri_dev *dev = gdri_dev();

	return !dev || (pe >= 0 && pe < dev->n_pes) ? 0 : gdri_refuse(at, pe, 0, 0);
}

/* Elements of 16 bytes are two words. */
GDR_DEVICE int gdri_unaligned(const void *ptr, uint64_t align)
{
	return ((uint64_t)(uintptr_t)ptr & ((align < 8 ? align : 8) - 1)) != 0;
}

/* A whole symmetric object: in the heap, behind the control area, aligned. */
GDRI_NOINLINE int gdri_check_sym(const struct gdri_site *at, const void *ptr, uint64_t len,
				 uint64_t align, int pe)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t off;

	if (!dev)
		return 0; /* the function itself says so */
	off = gdri_heap_offset(dev, ptr);
	if (pe < 0 || pe >= dev->n_pes || gdri_unaligned(ptr, align))
		return gdri_refuse(at, pe, ptr, len);
	if (len && (off < GDRI_CTL_SIZE || off >= dev->heap_size || len > dev->heap_size - off))
		return gdri_refuse(at, pe, ptr, len);
	return 0;
}

/* Local memory that the path to pe can reach. */
GDRI_NOINLINE int gdri_check_local(const struct gdri_site *at, const void *ptr, uint64_t len,
				   uint64_t align, int pe, int is_put)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t p = (uint64_t)(uintptr_t)ptr, off;
	uint32_t i;

	if (!dev || !len)
		return 0;
	off = gdri_heap_offset(dev, ptr);
	if (!ptr || p + len < p || gdri_unaligned(ptr, align))
		return gdri_refuse(at, pe, ptr, len);
	if (off < dev->heap_size)
		return len <= dev->heap_size - off ? 0 : gdri_refuse(at, pe, ptr, len);
	if (dev->peers[pe].base || (is_put && len <= GDRI_INLINE_MAX))
		return 0;
	/* acquires: pair with the host's releases of n_buffers and len (host/register.c) */
	for (i = 0; i < gdri_ld_acquire_sys_u32(&dev->n_buffers); i++) {
		uint64_t size = gdri_ld_acquire_sys_u64(&dev->buffers[i].len);

		if (size && p - dev->buffers[i].addr < size &&
		    len <= size - (p - dev->buffers[i].addr))
			return 0;
	}
	return gdri_refuse_for(at, pe, ptr, len, GDRI_ARG_LOCAL);
}

GDRI_NOINLINE int gdri_check_put(const struct gdri_site *at, const void *dst, const void *src,
				 size_t n, size_t elem, int pe)
{
	uint64_t len = (uint64_t)n * elem;
	int ret;

	if (n > (size_t)-1 / elem)
		return gdri_refuse(at, pe, dst, n);
	ret = gdri_check_sym(at, dst, len, elem, pe);
	return ret ? ret : gdri_check_local(at, src, len, elem, pe, 1);
}

GDRI_NOINLINE int gdri_check_get(const struct gdri_site *at, const void *dst, const void *src,
				 size_t n, size_t elem, int pe)
{
	uint64_t len = (uint64_t)n * elem;
	int ret;

	if (n > (size_t)-1 / elem)
		return gdri_refuse(at, pe, src, n);
	ret = gdri_check_sym(at, src, len, elem, pe);
	return ret ? ret : gdri_check_local(at, dst, len, elem, pe, 0);
}

GDRI_NOINLINE int gdri_check_signal(const struct gdri_site *at, const uint64_t *sig, int op, int pe)
{
	if (op != GDR_SIGNAL_SET && op != GDR_SIGNAL_ADD)
		return gdri_refuse(at, pe, sig, (uint64_t)op);
	return gdri_check_sym(at, sig, 8, 8, pe);
}

GDRI_NOINLINE int gdri_check_put_signal(const struct gdri_site *at, const void *dst, const void *src,
					size_t n, size_t elem, const uint64_t *sig, int op, int pe)
{
	int ret = gdri_check_put(at, dst, src, n, elem, pe);

	return ret ? ret : gdri_check_signal(at, sig, op, pe);
}

GDRI_NOINLINE int gdri_check_wait(const struct gdri_site *at, const void *ptr, uint32_t size,
				  int cmp)
{
	if (gdri_dev() && !gdri_cmp_mask(cmp))
		return gdri_refuse(at, -1, ptr, (uint64_t)cmp);
	return gdri_check_sym(at, ptr, size, size, gdri_dev() ? gdri_dev()->pe : 0);
}

/* n elements each step bytes behind the one before: the lowest address and the bytes from there. 0
 * when that is more than the heap could have. */
GDR_DEVICE int gdri_check_span(const void **ptr, int64_t step, uint64_t len, uint64_t n,
			       uint64_t limit, uint64_t *span)
{
	uint64_t size = step < 0 ? -(uint64_t)step : (uint64_t)step;

	if (n > 1 && (n > limit || len > limit || size > limit / (n - 1)))
		return 0;
	*span = n ? size * (n - 1) + len : 0;
	if (step < 0 && n)
		*ptr = (const uint8_t *)*ptr - size * (n - 1);
	return 1;
}

/* n blocks of len bytes, of elements of `elem`; steps in bytes. */
GDRI_NOINLINE int gdri_check_strided(const struct gdri_site *at, int put, const void *dst,
				     const void *src, int64_t dstep, int64_t sstep, uint64_t len,
				     uint64_t n, size_t elem, int pe)
{
	const void *to = dst, *from = src;
	uint64_t d, s, heap, far = ~0ull >> 2; /* own memory may be larger than the heap */
	int ret;

	if (!gdri_dev())
		return 0;
	heap = gdri_dev()->heap_size;
	if (!gdri_check_span(&to, dstep, len, len ? n : 0, put ? heap : far, &d) ||
	    !gdri_check_span(&from, sstep, len, len ? n : 0, put ? far : heap, &s))
		return gdri_refuse(at, pe, put ? dst : src, n);
	ret = gdri_check_sym(at, put ? to : from, put ? d : s, elem, pe);
	if (ret)
		return ret;
	/* through the NIC a put of small blocks takes them from anywhere, as a small put */
	if (put && len <= GDRI_INLINE_MAX)
		return s && (!src || gdri_unaligned(src, elem)) ? gdri_refuse(at, pe, src, s) : 0;
	return gdri_check_local(at, put ? from : to, put ? s : d, elem, pe, 0);
}

/* Where the old value goes that a non-blocking atomic brings. */
GDR_DEVICE int gdri_check_fetch(const struct gdri_site *at, const void *fetch, const void *dst,
				size_t size, int pe)
{
	int ret = gdri_check_sym(at, dst, size, size, pe);

	return ret ? ret : gdri_check_local(at, fetch, size, size, pe, 0);
}

GDRI_NOINLINE int gdri_check_waits(const struct gdri_site *at, const void *ptrs, size_t n, uint32_t size,
				   int cmp)
{
	if (gdri_dev() && (!gdri_cmp_mask(cmp) || n > gdri_dev()->heap_size))
		return gdri_refuse(at, -1, ptrs, (uint64_t)cmp);
	return gdri_check_sym(at, ptrs, n * size, size, gdri_dev() ? gdri_dev()->pe : 0);
}

GDR_DEVICE int gdri_refuse_ctx(const struct gdri_site *at, gdr_ctx_t ctx)
{
	return gdri_refuse_for(at, -1, 0, (uint64_t)ctx, GDRI_ARG_CTX);
}

/* There is such a context, with a PE of this number. */
GDR_DEVICE int gdri_check_ctx(const struct gdri_site *at, gdr_ctx_t ctx, int pe)
{
	const struct gdri_dev *dev = gdri_dev();

	if (!dev)
		return 0;
	if (ctx < 0 || ctx >= GDRI_MAX_CTXS || !gdri_ctx_at(dev, ctx)->mode)
		return gdri_refuse_ctx(at, ctx);
	return pe >= 0 && pe < gdri_ctx_at(dev, ctx)->size ? 0 : gdri_refuse(at, pe, 0, 0);
}

/* The caller is one of those who share it: until it is quiet, those are who the first one is. */
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

/* The same, then gdri_ctx_pe. */
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

GDR_DEVICE_COLD void gdri_latch_refusal(int status)
{
	if (gdri_dev())
		gdri_latch(gdri_dev(), status);
}

#endif
