/* SPDX-License-Identifier: BSD-3-Clause */
/* GDR_CHECKED: every public function behind a check of its arguments. A call
 * gdr_f(...) becomes gdri_checked_f(file, line, ...) by checked_names.h, which is
 * included last; the functions themselves are the same as ever. */
#ifndef GDRI_CHECKED_H
#define GDRI_CHECKED_H

#include <gdr/impl/amo.h>
#include <gdr/impl/barrier.h>
#include <gdr/impl/order.h>
#include <gdr/impl/rma.h>
#include <gdr/impl/signal.h>
#include <gdr/impl/wait.h>

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

/* A whole symmetric object: in the heap, behind the control area, aligned. */
GDRI_NOINLINE int gdri_check_sym(const struct gdri_site *at, const void *ptr, uint64_t len,
				 uint64_t align, int pe)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t off;

	if (!dev)
		return 0; /* the function itself says so */
	off = gdri_heap_offset(dev, ptr);
	if (pe < 0 || pe >= dev->n_pes || ((uint64_t)(uintptr_t)ptr & (align - 1)))
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
	if (!ptr || p + len < p || (p & (align - 1)))
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

GDRI_NOINLINE int gdri_check_wait(const struct gdri_site *at, const void *ptr, uint32_t size,
				  int cmp)
{
	if (gdri_dev() && !gdri_cmp_mask(cmp))
		return gdri_refuse(at, -1, ptr, (uint64_t)cmp);
	return gdri_check_sym(at, ptr, size, size, gdri_dev() ? gdri_dev()->pe : 0);
}

GDR_DEVICE_COLD void gdri_latch_refusal(int status)
{
	if (gdri_dev())
		gdri_latch(gdri_dev(), status);
}

#define GDRI_SITE(op, scope)                                                                       \
	struct gdri_site at = {file, line, op, scope};                                             \
	int bad;

/* ---- put, get, p, g ---- */

#define GDRI_CHECKED_RMA(name, V, elem, suffix, scope)                                             \
	GDR_DEVICE int gdri_checked_##name##put##suffix(const char *file, uint32_t line, V *dst,   \
							const V *src, size_t n, int pe)            \
	{                                                                                          \
		GDRI_SITE(GDRI_PUT, scope)                                                         \
		bad = gdri_check_put(&at, dst, src, n, elem, pe);                                  \
		return bad ? bad : gdr_##name##put##suffix(dst, src, n, pe);                       \
	}                                                                                          \
	GDR_DEVICE int gdri_checked_##name##put_nbi##suffix(                                       \
		const char *file, uint32_t line, V *dst, const V *src, size_t n, int pe)           \
	{                                                                                          \
		GDRI_SITE(GDRI_PUT, scope)                                                         \
		bad = gdri_check_put(&at, dst, src, n, elem, pe);                                  \
		return bad ? bad : gdr_##name##put_nbi##suffix(dst, src, n, pe);                   \
	}                                                                                          \
	GDR_DEVICE int gdri_checked_##name##get##suffix(const char *file, uint32_t line, V *dst,   \
							const V *src, size_t n, int pe)            \
	{                                                                                          \
		GDRI_SITE(GDRI_GET, scope)                                                         \
		bad = gdri_check_get(&at, dst, src, n, elem, pe);                                  \
		return bad ? bad : gdr_##name##get##suffix(dst, src, n, pe);                       \
	}                                                                                          \
	GDR_DEVICE int gdri_checked_##name##get_nbi##suffix(                                       \
		const char *file, uint32_t line, V *dst, const V *src, size_t n, int pe)           \
	{                                                                                          \
		GDRI_SITE(GDRI_GET, scope)                                                         \
		bad = gdri_check_get(&at, dst, src, n, elem, pe);                                  \
		return bad ? bad : gdr_##name##get_nbi##suffix(dst, src, n, pe);                   \
	}
GDRI_CHECKED_RMA(, void, 1, , GDRI_THREAD)
GDRI_CHECKED_RMA(, void, 1, _warp, GDRI_WARP)
GDRI_CHECKED_RMA(, void, 1, _block, GDRI_BLOCK)

#define GDRI_CHECKED_RMA_TYPE(name, T)                                                             \
	GDRI_CHECKED_RMA(name##_, T, sizeof(T), , GDRI_THREAD)                                     \
	GDRI_CHECKED_RMA(name##_, T, sizeof(T), _warp, GDRI_WARP)                                  \
	GDRI_CHECKED_RMA(name##_, T, sizeof(T), _block, GDRI_BLOCK)                                \
	GDR_DEVICE int gdri_checked_##name##_p(const char *file, uint32_t line, T *dst, T value,   \
					       int pe)                                             \
	{                                                                                          \
		GDRI_SITE(GDRI_P, GDRI_THREAD)                                                     \
		bad = gdri_check_sym(&at, dst, sizeof(T), sizeof(T), pe);                          \
		return bad ? bad : gdr_##name##_p(dst, value, pe);                                 \
	}                                                                                          \
	GDR_DEVICE T gdri_checked_##name##_g(const char *file, uint32_t line, const T *src,        \
					     int pe)                                               \
	{                                                                                          \
		GDRI_SITE(GDRI_G, GDRI_THREAD)                                                     \
		bad = gdri_check_sym(&at, src, sizeof(T), sizeof(T), pe);                          \
		if (!bad)                                                                          \
			return gdr_##name##_g(src, pe);                                            \
		gdri_latch_refusal(bad);                                                           \
		return 0;                                                                          \
	}
GDR_RMA_TYPES(GDRI_CHECKED_RMA_TYPE)

/* ---- atomics and waits ---- */

#define GDRI_CHECKED_AMO(name, T, fn, params, args)                                                \
	GDR_DEVICE int gdri_checked_##name##_atomic_##fn params                                    \
	{                                                                                          \
		GDRI_SITE(GDRI_AMO, GDRI_THREAD)                                                   \
		bad = gdri_check_sym(&at, dst, sizeof(T), sizeof(T), pe);                          \
		return bad ? bad : gdr_##name##_atomic_##fn args;                                  \
	}
#define GDRI_CHECKED_FETCH(name, T, fn, params, args)                                              \
	GDR_DEVICE T gdri_checked_##name##_atomic_##fn params                                      \
	{                                                                                          \
		GDRI_SITE(GDRI_FETCH_AMO, GDRI_THREAD)                                             \
		bad = gdri_check_sym(&at, dst, sizeof(T), sizeof(T), pe);                          \
		if (!bad)                                                                          \
			return gdr_##name##_atomic_##fn args;                                      \
		gdri_latch_refusal(bad);                                                           \
		return 0;                                                                          \
	}
#define GDRI_P0(T) (const char *file, uint32_t line, T *dst, int pe)
#define GDRI_P1(T) (const char *file, uint32_t line, T *dst, T value, int pe)
#define GDRI_P2(T) (const char *file, uint32_t line, T *dst, T cond, T value, int pe)

#define GDRI_CHECKED_AMO_TYPE(name, T)                                                             \
	GDRI_CHECKED_AMO(name, T, set, GDRI_P1(T), (dst, value, pe))                               \
	GDRI_CHECKED_AMO(name, T, inc, GDRI_P0(T), (dst, pe))                                      \
	GDRI_CHECKED_AMO(name, T, add, GDRI_P1(T), (dst, value, pe))                               \
	GDRI_CHECKED_AMO(name, T, and, GDRI_P1(T), (dst, value, pe))                               \
	GDRI_CHECKED_AMO(name, T, or, GDRI_P1(T), (dst, value, pe))                                \
	GDRI_CHECKED_AMO(name, T, xor, GDRI_P1(T), (dst, value, pe))                               \
	GDRI_CHECKED_FETCH(name, T, fetch, GDRI_P0(const T), (dst, pe))                            \
	GDRI_CHECKED_FETCH(name, T, fetch_inc, GDRI_P0(T), (dst, pe))                              \
	GDRI_CHECKED_FETCH(name, T, fetch_add, GDRI_P1(T), (dst, value, pe))                       \
	GDRI_CHECKED_FETCH(name, T, fetch_and, GDRI_P1(T), (dst, value, pe))                       \
	GDRI_CHECKED_FETCH(name, T, fetch_or, GDRI_P1(T), (dst, value, pe))                        \
	GDRI_CHECKED_FETCH(name, T, fetch_xor, GDRI_P1(T), (dst, value, pe))                       \
	GDRI_CHECKED_FETCH(name, T, swap, GDRI_P1(T), (dst, value, pe))                            \
	GDRI_CHECKED_FETCH(name, T, compare_swap, GDRI_P2(T), (dst, cond, value, pe))              \
	GDR_DEVICE int gdri_checked_##name##_wait_until(const char *file, uint32_t line,           \
							const T *ptr, int cmp, T value)            \
	{                                                                                          \
		GDRI_SITE(GDRI_WAIT_UNTIL, GDRI_THREAD)                                            \
		bad = gdri_check_wait(&at, ptr, sizeof(T), cmp);                                   \
		return bad ? bad : gdr_##name##_wait_until(ptr, cmp, value);                       \
	}                                                                                          \
	GDR_DEVICE int gdri_checked_##name##_test(const char *file, uint32_t line, const T *ptr,   \
						  int cmp, T value)                                \
	{                                                                                          \
		GDRI_SITE(GDRI_WAIT_UNTIL, GDRI_THREAD)                                            \
		bad = gdri_check_wait(&at, ptr, sizeof(T), cmp);                                   \
		if (!bad)                                                                          \
			return gdr_##name##_test(ptr, cmp, value);                                 \
		gdri_latch_refusal(bad);                                                           \
		return 0;                                                                          \
	}
GDR_AMO_TYPES(GDRI_CHECKED_AMO_TYPE)

/* ---- signals ---- */

#define GDRI_CHECKED_PUT_SIGNAL(suffix, scope)                                                     \
	GDR_DEVICE int gdri_checked_put_signal##suffix(const char *file, uint32_t line, void *dst, \
						       const void *src, size_t len, uint64_t *sig, \
						       uint64_t value, int op, int pe)             \
	{                                                                                          \
		GDRI_SITE(GDRI_PUT_SIGNAL, scope)                                                  \
		bad = gdri_check_put(&at, dst, src, len, 1, pe);                                   \
		if (!bad)                                                                          \
			bad = gdri_check_signal(&at, sig, op, pe);                                 \
		return bad ? bad : gdr_put_signal##suffix(dst, src, len, sig, value, op, pe);      \
	}
GDRI_CHECKED_PUT_SIGNAL(, GDRI_THREAD)
GDRI_CHECKED_PUT_SIGNAL(_warp, GDRI_WARP)
GDRI_CHECKED_PUT_SIGNAL(_block, GDRI_BLOCK)
GDRI_CHECKED_PUT_SIGNAL(_nbi, GDRI_THREAD)
GDRI_CHECKED_PUT_SIGNAL(_nbi_warp, GDRI_WARP)
GDRI_CHECKED_PUT_SIGNAL(_nbi_block, GDRI_BLOCK)

GDR_DEVICE int gdri_checked_signal_op(const char *file, uint32_t line, uint64_t *sig,
				      uint64_t value, int op, int pe)
{
	GDRI_SITE(GDRI_SIGNAL, GDRI_THREAD)

	bad = gdri_check_signal(&at, sig, op, pe);
	return bad ? bad : gdr_signal_op(sig, value, op, pe);
}

GDR_DEVICE uint64_t gdri_checked_signal_fetch(const char *file, uint32_t line, const uint64_t *sig)
{
	GDRI_SITE(GDRI_SIGNAL, GDRI_THREAD)

	bad = gdri_check_wait(&at, sig, 8, GDR_CMP_EQ);
	if (!bad)
		return gdr_signal_fetch(sig);
	gdri_latch_refusal(bad);
	return 0;
}

GDR_DEVICE int gdri_checked_signal_wait_until(const char *file, uint32_t line, const uint64_t *sig,
					      int cmp, uint64_t value)
{
	GDRI_SITE(GDRI_SIGNAL_WAIT, GDRI_THREAD)

	bad = gdri_check_wait(&at, sig, 8, cmp);
	return bad ? bad : gdr_signal_wait_until(sig, cmp, value);
}

GDR_DEVICE int gdri_checked_signal_wait_until_from(const char *file, uint32_t line,
						   const uint64_t *sig, int cmp, uint64_t value,
						   int pe)
{
	GDRI_SITE(GDRI_SIGNAL_WAIT, GDRI_THREAD)

	bad = gdri_check_wait(&at, sig, 8, cmp);
	if (!bad)
		bad = gdri_check_pe(&at, pe);
	return bad ? bad : gdr_signal_wait_until_from(sig, cmp, value, pe);
}

GDR_DEVICE int gdri_checked_quiet_pe(const char *file, uint32_t line, int pe)
{
	GDRI_SITE(GDRI_QUIET, GDRI_THREAD)

	bad = gdri_check_pe(&at, pe);
	return bad ? bad : gdr_quiet_pe(pe);
}

#include <gdr/impl/checked_names.h>

#endif
