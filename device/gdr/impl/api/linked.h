/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of programs that are linked with libgdr_device.a: what is quick on mapped memory, and calls. */
#ifndef GDRI_LINKED_H
#define GDRI_LINKED_H

#include <gdr/impl/arch/copy_word_cuda.h>
#include <gdr/impl/arch/library.h>
#include <gdr/impl/coll/reduce_code.h>
#include <gdr/impl/path/ctx.h>
#include <gdr/impl/path/p2p.h>
#include <gdr/impl/path/slow.h>

GDR_DEVICE uint8_t *gdri_mapped(const struct gdri_dev *dev, const void *ptr, int pe)
{
	uint8_t *base = gdri_peer_base(dev, pe);

	return base ? gdri_mapped_at(dev, base, ptr, pe) : 0;
}

/* By all threads of a warp or block, what they copy without a call: 1; else nothing: 0. */
GDR_DEVICE int gdri_group_copy(int scope, void *dst, const void *src, size_t len, int get)
{
	uint32_t n = gdri_scope_size(scope), rows = GDRI_COPY_ROWS(get);

	if (!gdri_copy_is_rows(dst, src, len, n, rows))
		return 0; /* nobody has met: the library's call does */
	gdri_scope_sync(scope); /* what other threads wrote to src */
	gdri_copy_if_rows(dst, src, len, gdri_scope_rank(scope), n, rows);
	gdri_scope_sync(scope); /* src may be reused, dst may be signalled */
	return 1;
}

GDR_DEVICE int gdri_lib_transfer(uint32_t op, int scope, int nbi, void *remote, void *local, size_t len, int pe,
				 uint32_t q)
{
	return scope == GDRI_THREAD ? gdri_lib_memory(GDRI_FORM(op, scope, nbi), remote, local, len, pe, q)
				    : gdri_lib_group_memory(GDRI_FORM(op, scope, nbi), remote, local, len, pe, q);
}

GDR_DEVICE int gdri_put(int scope, int nbi, void *dst, const void *src, size_t len, int pe, uint32_t q)
{
	if (gdri_direct() && (scope == GDRI_THREAD ? gdri_copy_if_word(gdri_direct_at(dst, pe), src, len)
						   : gdri_group_copy(scope, gdri_direct_at(dst, pe), src, len, 0)))
		return 0;
	return gdri_lib_transfer(GDRI_PUT, scope, nbi, dst, (void *)(uintptr_t)src, len, pe, q);
}

GDR_DEVICE int gdri_get(int scope, int nbi, void *dst, const void *src, size_t len, int pe, uint32_t q)
{
	if (scope != GDRI_THREAD && gdri_direct() && gdri_group_copy(scope, dst, gdri_direct_at(src, pe), len, 1))
		return 0;
	return gdri_lib_transfer(GDRI_GET, scope, nbi, (void *)(uintptr_t)src, dst, len, pe, q);
}

GDR_DEVICE int gdri_put_bulk(int scope, int nbi, void *dst, const void *src, size_t len, void *stage,
			     size_t bytes, int pe, uint32_t q)
{
	return gdri_lib_bulk(GDRI_FORM(GDRI_PUT, scope, nbi), dst, (void *)(uintptr_t)src, len, stage, bytes, pe, q);
}

GDR_DEVICE int gdri_get_bulk(int scope, int nbi, void *dst, const void *src, size_t len, void *stage,
			     size_t bytes, int pe, uint32_t q)
{
	return gdri_lib_bulk(GDRI_FORM(GDRI_GET, scope, nbi), (void *)(uintptr_t)src, dst, len, stage, bytes, pe, q);
}

GDR_DEVICE int gdri_strided(uint32_t op, int scope, int nbi, void *dst, const void *src, int64_t dstep, int64_t sstep,
			    size_t len, size_t n, int pe, uint32_t q)
{
	return gdri_lib_strided(GDRI_FORM(op, scope, nbi), dst, src, dstep, sstep, len, n, pe, q);
}

/* A sum of floats, which mapped memory has, is quick, too. */
GDR_DEVICE int gdri_amo_fetch_combine(uint32_t code, void *dst, uint64_t operand, int pe, uint32_t q, uint64_t *old)
{
	if (code >> 8 != GDRI_SUM || (code >> 4 & 15u) != GDRI_C_FLOAT || !gdri_direct())
		return gdri_lib_combine(code, dst, operand, pe, q, old);
	*old = gdri_amo_float_add(1u << (code & 15u), gdri_direct_at(dst, pe), operand);
	return 0;
}

#endif
