/* SPDX-License-Identifier: BSD-3-Clause */
/* put, get, by the bulk copy engine too, p, g, iput, iget, ibput, ibget: bodies and rows (define.h). */
#ifndef GDRI_RMA_H
#define GDRI_RMA_H

#include <gdr/impl/api/define.h>
#include <gdr/impl/path/slow.h>
#if !GDRI_LINKED
#include <gdr/impl/path/strided.h>

GDR_DEVICE int gdri_put(int scope, int nbi, void *dst, const void *src, size_t len, int pe, uint32_t q)
{
	return GDRI_DIRECT_OR((gdri_p2p_copy(scope, gdri_direct_at(dst, pe), src, len), 0),
			      gdri_slow_memory(GDRI_FORM(GDRI_PUT, scope, nbi), dst, src, len, pe, q));
}

GDR_DEVICE int gdri_get(int scope, int nbi, void *dst, const void *src, size_t len, int pe, uint32_t q)
{
	return GDRI_DIRECT_OR((gdri_p2p_fetch(scope, dst, gdri_direct_at(src, pe), len), 0),
			      gdri_slow_memory(GDRI_FORM(GDRI_GET, scope, nbi), src, dst, len, pe, q));
}

GDR_DEVICE int gdri_put_bulk(int scope, int nbi, void *dst, const void *src, size_t len, void *stage,
			     size_t bytes, int pe, uint32_t q)
{
	return GDRI_DIRECT_OR((gdri_p2p_bulk(scope, 0, gdri_direct_at(dst, pe), src, len, stage, bytes), 0),
			      gdri_slow_bulk(GDRI_FORM(GDRI_PUT, scope, nbi), dst, src, len, stage, bytes, pe, q));
}

GDR_DEVICE int gdri_get_bulk(int scope, int nbi, void *dst, const void *src, size_t len, void *stage,
			     size_t bytes, int pe, uint32_t q)
{
	return GDRI_DIRECT_OR((gdri_p2p_bulk(scope, 1, dst, gdri_direct_at(src, pe), len, stage, bytes), 0),
			      gdri_slow_bulk(GDRI_FORM(GDRI_GET, scope, nbi), src, dst, len, stage, bytes, pe, q));
}

#endif

GDR_DEVICE int gdri_p(void *dst, uint64_t value, uint32_t size, int pe, uint32_t q)
{
	return GDRI_DIRECT_OR((gdri_p2p_store(gdri_direct_at(dst, pe), value, size), 0),
			      gdri_slow_word(GDRI_FORM(GDRI_P, size, 0), dst, value, pe, q));
}

/* 0 on failure, with the status latched. */
GDR_DEVICE uint64_t gdri_g(const void *src, uint32_t size, int pe, uint32_t q)
{
	uint64_t value = 0;

	(void)GDRI_DIRECT_OR((value = gdri_p2p_load(gdri_direct_at(src, pe), size), 0),
			     (value = gdri_slow_value(GDRI_FORM(GDRI_G, size, 0), src, 0, 0, pe, q), 0));
	return value;
}

/* p and g of 16 bytes are a put, and two words: out of line, where no compiler takes them for those
 * of a smaller type. */
GDRI_NOINLINE int gdri_p_16(void *dst, const void *value, int pe, uint32_t q)
{
	GDRI_BY_ABI(gdri_p_16);
	return gdri_put(GDRI_THREAD, 0, dst, value, 16, pe, q);
}

GDRI_NOINLINE void gdri_g_16(void *value, const void *src, int pe, uint32_t q)
{
	uint64_t v[2];

	GDRI_BY_ABI(gdri_g_16);
	v[0] = gdri_g(src, 8, pe, q);
	v[1] = gdri_g((const uint64_t *)src + 1, 8, pe, q);
	memcpy(value, v, 16);
}

GDR_DEVICE int gdri_p_of(void *dst, const void *value, uint32_t size, int pe, uint32_t q)
{
	return size > 8 ? gdri_p_16(dst, value, pe, q)
			: gdri_p(dst, gdri_bits(value, size), size, pe, q);
}

GDR_DEVICE void gdri_g_of(void *value, const void *src, uint32_t size, int pe, uint32_t q)
{
	if (size > 8)
		gdri_g_16(value, src, pe, q);
	else
		gdri_unbits(value, gdri_g(src, size, pe, q), size);
}

/* ---- rows ---- */

#define GDRI_RMA_ROWS(pre, T, E, z, s, scope)                                                      \
	GDRI_FN_CTX(scope, int, GDRI_NAMES(pre, put, z, s), (T * dst, const T *src, size_t n, int pe), \
		(GDRI_PUT, scope), gdri_check_put(&at, dst, src, n, E, pe),                        \
		gdri_put(scope, 0, dst, src, n * (E), pe, q),                                      \
		gdr_host_put(dst, src, n * (E), pe))                                               \
	GDRI_FN_CTX(scope, int, GDRI_NAMES(pre, put, z, _nbi##s),                                  \
		(T * dst, const T *src, size_t n, int pe),                                         \
		(GDRI_PUT, scope), gdri_check_put(&at, dst, src, n, E, pe),                        \
		gdri_put(scope, 1, dst, src, n * (E), pe, q),                                      \
		gdr_host_put_nbi(dst, src, n * (E), pe))                                           \
	GDRI_FN_CTX(scope, int, GDRI_NAMES(pre, get, z, s), (T * dst, const T *src, size_t n, int pe), \
		(GDRI_GET, scope), gdri_check_get(&at, dst, src, n, E, pe),                        \
		gdri_get(scope, 0, dst, src, n * (E), pe, q),                                      \
		gdr_host_get(dst, src, n * (E), pe))                                               \
	GDRI_FN_CTX(scope, int, GDRI_NAMES(pre, get, z, _nbi##s),                                  \
		(T * dst, const T *src, size_t n, int pe),                                         \
		(GDRI_GET, scope), gdri_check_get(&at, dst, src, n, E, pe),                        \
		gdri_get(scope, 1, dst, src, n * (E), pe, q),                                      \
		gdr_host_get_nbi(dst, src, n * (E), pe))

/* op, OP: put or get; for kernels, whose shared memory it is. */
#define GDRI_BULK_ROW(op, OP, pre, T, E, z, nb, s, scope, nbi)                                     \
	GDRI_FN_CTX(GDRI_KERNEL, int, GDRI_NAMES(pre, op##_bulk, z, nb##s),                        \
		(T * dst, const T *src, size_t n, void *stage, size_t bytes, int pe),              \
		(GDRI_CALLED(GDRI_##OP, OP##_BULK), scope), gdri_check_##op(&at, dst, src, n, E, pe), \
		gdri_##op##_bulk(scope, nbi, dst, src, n * (E), stage, bytes, pe, q), 0)
#define GDRI_BULK_ROWS(pre, T, E, z, s, scope)                                                     \
	GDRI_BULK_ROW(put, PUT, pre, T, E, z, , s, scope, 0)                                       \
	GDRI_BULK_ROW(put, PUT, pre, T, E, z, _nbi, s, scope, 1)                                   \
	GDRI_BULK_ROW(get, GET, pre, T, E, z, , s, scope, 0)                                       \
	GDRI_BULK_ROW(get, GET, pre, T, E, z, _nbi, s, scope, 1)

/* In bytes; it may wrap where there is one block, which has no next. */
#define GDRI_STEP(step, E) ((ptrdiff_t)((size_t)(step) * (E)))

/* dst and sst: from one element, or block, to the next, in elements. */
#define GDRI_STRIDED_ROW(op, put, pre, T, E, z, form, s, scope, nbi)                               \
	GDRI_FN_CTX(scope, int, GDRI_NAMES(pre, i##op, z, form##s),                                \
		(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t n, int pe),       \
		(GDRI_CALLED(GDRI_##put, I##put), scope),                                          \
		gdri_check_strided(&at, GDRI_##put == GDRI_PUT, dest, source, dst, sst, 1, n, E, pe), \
		gdri_strided(GDRI_##put, scope, nbi, dest, source, GDRI_STEP(dst, E),              \
			     GDRI_STEP(sst, E), E, n, pe, q),                                      \
		gdri_submit_strided(GDRI_RQ_I##put, dest, source, dst, sst, n, E, pe, GDRI_NOW))      \
	GDRI_FN_CTX(GDRI_KERNEL, int, GDRI_NAMES(pre, ib##op, z, form##s),                         \
		(T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,            \
		 size_t nblocks, int pe),                                                          \
		(GDRI_CALLED(GDRI_##put, IB##put), scope),                                         \
		gdri_check_strided(&at, GDRI_##put == GDRI_PUT, dest, source, dst, sst, bsize,     \
				   nblocks, E, pe),                                                \
		gdri_strided(GDRI_##put, scope, nbi, dest, source, GDRI_STEP(dst, E),              \
			     GDRI_STEP(sst, E), bsize * (E), nblocks, pe, q), 0)

#define GDRI_STRIDED_ROWS(pre, T, E, z, s, scope)                                                  \
	GDRI_STRIDED_ROW(put, PUT, pre, T, E, z, , s, scope, 0)                                    \
	GDRI_STRIDED_ROW(put, PUT, pre, T, E, z, _nbi, s, scope, 1)                                \
	GDRI_STRIDED_ROW(get, GET, pre, T, E, z, , s, scope, 0)                                    \
	GDRI_STRIDED_ROW(get, GET, pre, T, E, z, _nbi, s, scope, 1)

#define GDRI_SCALAR_ROWS(pre, T, E, z)                                                             \
	GDRI_FN_CTX(GDRI_THREAD, int, GDRI_NAMES(pre, p, z, ), (T * dst, T value, int pe),         \
		     (GDRI_P, GDRI_THREAD), gdri_check_sym(&at, GDRI_DEST, dst, E, E, pe),                    \
		     gdri_p_of(dst, &value, E, pe, q), gdr_host_put(dst, &value, E, pe))           \
	GDRI_FN_VALUE_CTX(T, GDRI_NAMES(pre, g, z, ), (const T *src, int pe),                      \
			   (GDRI_G, GDRI_THREAD), gdri_check_sym(&at, GDRI_SOURCE, src, E, E, pe),              \
			   gdri_g_of(&out, src, E, pe, q), gdri_value_get(&out, src, E, pe))

#define GDRI_RMA_ALL(pre, T, E, z)                                                                 \
	GDRI_SCOPES(GDRI_RMA_ROWS, pre, T, E, z)                                                   \
	GDRI_SCOPES(GDRI_STRIDED_ROWS, pre, T, E, z)
#define GDRI_BULK_ALL(pre, T, E, z) GDRI_SCOPES(GDRI_BULK_ROWS, pre, T, E, z)
GDRI_TEMPLATE(gdri_t_rma, GDRI_RMA_ALL)
GDRI_TEMPLATE(gdri_t_bulk, GDRI_BULK_ALL)
GDRI_TEMPLATE(gdri_t_scalar, GDRI_SCALAR_ROWS)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_RMA_TYPE(name, T)                                                                     \
	GDRI_OF(gdri_t_rma, T, sizeof(T))                                                          \
	GDRI_RMA_ALL(name##_, T, sizeof(T), )                                                      \
	GDRI_OF(gdri_t_scalar, T, sizeof(T))                                                       \
	GDRI_SCALAR_ROWS(name##_, T, sizeof(T), )
GDR_RMA_TYPES(GDRI_RMA_TYPE)
GDR_RMA_TYPES_MORE(GDRI_RMA_TYPE)

#define GDRI_RMA_SIZE(bits, bytes)                                                                 \
	GDRI_OF(gdri_t_rma, void, bytes)                                                           \
	GDRI_RMA_ALL(, void, bytes, bits)
GDR_RMA_SIZES(GDRI_RMA_SIZE)
GDRI_OF(gdri_t_rma, void, 1)
GDRI_SCOPES(GDRI_RMA_ROWS, , void, 1, )
GDRI_OF(gdri_t_bulk, void, 1)
GDRI_BULK_ALL(, void, 1, )
#endif

#endif
