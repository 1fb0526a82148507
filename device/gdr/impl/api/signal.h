/* SPDX-License-Identifier: BSD-3-Clause */
/* put_signal and the operations on signal words: bodies and rows (define.h). */
#ifndef GDRI_SIGNAL_H
#define GDRI_SIGNAL_H

#include <gdr/impl/api/wait.h>
#include <gdr/impl/path/slow.h>

#if !GDRI_LINKED
GDR_DEVICE_COLD int gdri_signal_op_refuse(struct gdri_dev *dev, uint32_t op, const uint64_t *sig,
					  int sig_op, int pe)
{
	GDRI_BY_ABI(gdri_signal_op_refuse);
	return dev ? gdri_error_arg(dev, op, pe, sig, (uint64_t)(int64_t)sig_op, GDRI_ARG_SIGNAL_OP) : -GDR_ESTATE;
}

GDR_DEVICE_COLD uint32_t gdri_signal_call(int peer, uint64_t limit_ns, const uint64_t *seen)
{
	return gdri_wait_call(GDRI_SIGNAL_WAIT, peer) | (limit_ns == GDRI_NO_LIMIT ? 0 : GDRI_CALL_FOR) |
	       (seen ? GDRI_CALL_SEEN : 0);
}

/* A wait with a limit of the caller's (GDRI_NO_LIMIT: none), which says what held (seen NULL: need not); peer: who
 * will send it, -1 unknown. */
GDRI_NOINLINE int gdri_signal_wait(const uint64_t *sig, int cmp, uint64_t value, int peer, uint64_t limit_ns,
				   uint64_t *seen)
{
	struct gdri_dev *dev = gdri_dev();
	struct gdri_waiter w;
	uint64_t deadline, v;
	int over = 0, ret;

	GDRI_BY_ABI(gdri_signal_wait);
	if (gdri_unlikely(!dev))
		return -GDR_ESTATE;
	if (gdri_unlikely(!gdri_cmp_mask(cmp)))
		return gdri_error_arg(dev, gdri_signal_call(peer, limit_ns, seen), peer, sig, (uint64_t)(int64_t)cmp,
				      GDRI_ARG_CMP);
	if (gdri_unlikely(gdri_wait_misnamed(dev, peer)))
		return gdri_wait_no_pe(dev, gdri_signal_call(peer, limit_ns, seen), peer);
	deadline = gdri_wait_deadline(limit_ns);
	gdri_wait_begin(&w, GDRI_SIGNAL_WAIT, peer, gdri_heap_offset(dev, sig));
	w.team = GDRI_WAITS_FOR_WORD;
	/* the acquire pairs with the release of the signal */
	while (v = gdri_ld_acquire_sys_u64(sig), !gdri_cmp_holds(v, 8, 0, cmp, value)) {
		if (over) { /* and nothing came between the look and the clock's */
			gdri_wait_leave(dev, &w);
			return -GDR_ETIMEOUT;
		}
		over = gdri_wait_past(deadline);
		ret = over ? 0 : gdri_wait_step(dev, &w);
		if (gdri_unlikely(ret))
			return gdri_wait_record_word(dev, &w, sig, gdri_wait_form(8, 0, cmp), value);
	}
	gdri_wait_end(dev, &w);
	if (seen)
		*seen = v;
	return gdri_wait_flush(dev, GDRI_SIGNAL_WAIT);
}
#endif

GDR_DEVICE int gdri_signal_op_known(int op)
{
	return gdri_likely(op == GDR_SIGNAL_SET || op == GDR_SIGNAL_ADD);
}

GDR_DEVICE int gdri_signal_kind(int op)
{
	return op == GDR_SIGNAL_ADD ? GDRI_AMO_ADD : GDRI_AMO_SET;
}

#if GDRI_LINKED
GDR_DEVICE int gdri_put_signal(int scope, int nbi, void *dst, const void *src, size_t len, uint64_t *sig,
			       uint64_t value, int op, int pe, uint32_t q)
{
	uint32_t form = GDRI_FORM(GDRI_PUT_SIGNAL, scope, nbi);

	if (scope != GDRI_THREAD && gdri_direct() && gdri_signal_op_known(op) &&
	    gdri_group_copy(scope, gdri_direct_at(dst, pe), src, len, 0)) {
		if (!gdri_scope_rank(scope))
			gdri_p2p_signal((uint64_t *)gdri_direct_at(sig, pe), value, op == GDR_SIGNAL_ADD);
		return 0;
	}
	return scope == GDRI_THREAD ? gdri_lib_put_signal(form, dst, src, len, sig, value, op, pe, q)
				    : gdri_lib_group_put_signal(form, dst, src, len, sig, value, op, pe, q);
}
#else
GDR_DEVICE int gdri_direct_put_signal(int scope, void *dst, const void *src, size_t len, uint64_t *sig, uint64_t value,
				      int op, int pe)
{
	if (scope != GDRI_THREAD && len == 8 && !(((uint64_t)dst | (uint64_t)src) & 7))
		gdri_p2p_put_word(scope, dst, src, pe);
	else
		gdri_p2p_copy(scope, gdri_direct_at(dst, pe), src, len);
	if (!gdri_scope_rank(scope))
		gdri_p2p_signal((uint64_t *)gdri_direct_at(sig, pe), value, op == GDR_SIGNAL_ADD);
	return 0;
}

GDR_DEVICE int gdri_put_signal(int scope, int nbi, void *dst, const void *src, size_t len,
			       uint64_t *sig, uint64_t value, int op, int pe, uint32_t q)
{
	if (!gdri_signal_op_known(op))
		return gdri_signal_op_refuse(gdri_dev(), GDRI_PUT_SIGNAL, sig, op, pe);
	return GDRI_DIRECT_OR(gdri_direct_put_signal(scope, dst, src, len, sig, value, op, pe),
			      gdri_slow_put_signal(GDRI_FORM(GDRI_PUT, scope, nbi), dst, src, len, sig, value,
						   gdri_signal_kind(op), pe, q));
}
#endif

/* The acquire pairs with the release of the signal. */
GDR_DEVICE uint64_t gdri_signal_fetch(const uint64_t *sig)
{
	struct gdri_dev *dev = gdri_dev();
	uint64_t v = gdri_ld_acquire_sys_u64(sig);
	int ret = gdri_likely(dev) ? gdri_wait_flush(dev, GDRI_SIGNAL) : 0;

	if (gdri_unlikely(ret))
		gdri_latch(dev, ret);
	return v;
}

GDR_DEVICE int gdri_signal_op(uint64_t *sig, uint64_t value, int op, int pe, uint32_t q)
{
	if (!gdri_signal_op_known(op))
		return gdri_signal_op_refuse(gdri_dev(), GDRI_SIGNAL, sig, op, pe);
	return GDRI_DIRECT_OR((gdri_p2p_signal_op((uint64_t *)gdri_direct_at(sig, pe), value, op == GDR_SIGNAL_ADD), 0),
			      gdri_slow_word(GDRI_FORM(GDRI_SIGNAL, 8, gdri_signal_kind(op)), sig, value, pe, q));
}

/* ---- rows ---- */

#define GDRI_PUT_SIGNAL_ROW(pre, T, E, z, s, scope, nbi)                                           \
	GDRI_FN_CTX(scope, int, GDRI_NAMES(pre, put, z, _signal##s),                               \
		(T * dst, const T *src, size_t n, uint64_t *sig, uint64_t value, int op, int pe),  \
		(GDRI_PUT_SIGNAL, scope),                                                          \
		gdri_check_put_signal(&at, dst, src, n, E, sig, op, pe),                           \
		gdri_put_signal(scope, nbi, dst, src, n * (E), sig, value, op, pe, q),             \
		gdri_submit_signal(nbi, dst, src, n, E, sig, value, op, pe, GDRI_NOW))
#define GDRI_PUT_SIGNAL_ROWS(pre, T, E, z, s, scope)                                               \
	GDRI_PUT_SIGNAL_ROW(pre, T, E, z, s, scope, 0)                                             \
	GDRI_PUT_SIGNAL_ROW(pre, T, E, z, _nbi##s, scope, 1)
#define GDRI_PUT_SIGNAL_ALL(pre, T, E, z) GDRI_SCOPES(GDRI_PUT_SIGNAL_ROWS, pre, T, E, z)

GDRI_TEMPLATE(gdri_t_signal, GDRI_PUT_SIGNAL_ALL)

#if !defined(__CUDACC__) || defined(GDRI_PRINT_NAMES)
#define GDRI_PUT_SIGNAL_TYPE(name, T)                                                              \
	GDRI_OF(gdri_t_signal, T, sizeof(T))                                                       \
	GDRI_PUT_SIGNAL_ALL(name##_, T, sizeof(T), )
GDR_RMA_TYPES(GDRI_PUT_SIGNAL_TYPE)
GDR_RMA_TYPES_MORE(GDRI_PUT_SIGNAL_TYPE)

#define GDRI_PUT_SIGNAL_SIZE(bits, bytes)                                                          \
	GDRI_OF(gdri_t_signal, void, bytes)                                                        \
	GDRI_PUT_SIGNAL_ALL(, void, bytes, bits)
GDR_RMA_SIZES(GDRI_PUT_SIGNAL_SIZE)
GDRI_OF(gdri_t_signal, void, 1)
GDRI_PUT_SIGNAL_ALL(, void, 1, )
#endif

GDRI_SINGLE
GDRI_FN_CTX(GDRI_THREAD, int, GDRI_PLAINS(signal_op), (uint64_t * sig, uint64_t value, int op, int pe),
	(GDRI_SIGNAL, GDRI_THREAD), gdri_check_signal(&at, sig, op, pe),
	gdri_signal_op(sig, value, op, pe, q), gdri_submit_signal_op(sig, value, op, pe, GDRI_NOW))
GDRI_FN_CTX(GDRI_THREAD, int, GDRI_PLAINS(signal_set), (uint64_t * sig, uint64_t value, int pe),
	(GDRI_CALLED(GDRI_SIGNAL, SIGNAL_SET), GDRI_THREAD), gdri_check_signal(&at, sig, GDR_SIGNAL_SET, pe),
	gdri_signal_op(sig, value, GDR_SIGNAL_SET, pe, q),
	gdri_submit_signal_op(sig, value, GDR_SIGNAL_SET, pe, GDRI_NOW))
GDRI_FN_CTX(GDRI_THREAD, int, GDRI_PLAINS(signal_add), (uint64_t * sig, uint64_t value, int pe),
	(GDRI_CALLED(GDRI_SIGNAL, SIGNAL_ADD), GDRI_THREAD), gdri_check_signal(&at, sig, GDR_SIGNAL_ADD, pe),
	gdri_signal_op(sig, value, GDR_SIGNAL_ADD, pe, q),
	gdri_submit_signal_op(sig, value, GDR_SIGNAL_ADD, pe, GDRI_NOW))
GDRI_FN_VALUE_BOTH(uint64_t, GDRI_PLAIN(signal_fetch), (const uint64_t *sig),
		   (GDRI_CALLED(GDRI_SIGNAL, SIGNAL_FETCH), GDRI_THREAD),
		   gdri_check_wait(&at, GDRI_SIG, sig, 8, GDR_CMP_EQ),
		   out = gdri_signal_fetch(sig),
		   gdri_value_get(&out, sig, sizeof(out), gdr_host_my_pe()))
GDRI_FN_BOTH(GDRI_THREAD, int, GDRI_PLAIN(signal_wait_until), (const uint64_t *sig, int cmp, uint64_t value),
	(GDRI_SIGNAL_WAIT, GDRI_THREAD), gdri_check_wait(&at, GDRI_SIG, sig, 8, cmp),
	gdri_wait_until(sig, 8, 0, cmp, value, -1, GDRI_SIGNAL_WAIT),
	gdri_submit_wait(sig, 0, 0, 0, value, 8, 0, cmp, GDRI_NOW))
GDRI_FN_BOTH(GDRI_THREAD, int, GDRI_PLAIN(signal_wait_until_from),
	(const uint64_t *sig, int cmp, uint64_t value, int pe), (GDRI_SIGNAL_WAIT | GDRI_CALL_FROM, GDRI_THREAD),
	gdri_check_wait(&at, GDRI_SIG, sig, 8, cmp) || gdri_check_pe(&at, pe) ? -GDR_EINVAL : 0,
	gdri_wait_until(sig, 8, 0, cmp, value, gdri_wait_named(pe), GDRI_SIGNAL_WAIT),
	gdri_submit_wait_from(sig, cmp, value, pe, GDRI_NOW))
GDRI_FN(int, GDRI_PLAIN(signal_wait_until_for), (const uint64_t *sig, int cmp, uint64_t value, uint64_t limit_ns),
	(GDRI_SIGNAL_WAIT | GDRI_CALL_FOR, GDRI_THREAD), gdri_check_wait(&at, GDRI_SIG, sig, 8, cmp),
	gdri_signal_wait(sig, cmp, value, -1, limit_ns, 0))
GDRI_FN(int, GDRI_PLAIN(signal_wait_until_from_for),
	(const uint64_t *sig, int cmp, uint64_t value, int pe, uint64_t limit_ns),
	(GDRI_SIGNAL_WAIT | GDRI_CALL_FROM | GDRI_CALL_FOR, GDRI_THREAD),
	gdri_check_wait(&at, GDRI_SIG, sig, 8, cmp) || gdri_check_pe(&at, pe) ? -GDR_EINVAL : 0,
	gdri_signal_wait(sig, cmp, value, gdri_wait_named(pe), limit_ns, 0))
GDRI_FN(int, GDRI_PLAIN(signal_wait_until_seen), (const uint64_t *sig, int cmp, uint64_t value, uint64_t *seen),
	(GDRI_SIGNAL_WAIT | GDRI_CALL_SEEN, GDRI_THREAD), gdri_check_wait(&at, GDRI_SIG, sig, 8, cmp),
	gdri_signal_wait(sig, cmp, value, -1, GDRI_NO_LIMIT, seen))
GDRI_FN(int, GDRI_PLAIN(signal_wait_until_from_seen),
	(const uint64_t *sig, int cmp, uint64_t value, int pe, uint64_t *seen),
	(GDRI_SIGNAL_WAIT | GDRI_CALL_FROM | GDRI_CALL_SEEN, GDRI_THREAD),
	gdri_check_wait(&at, GDRI_SIG, sig, 8, cmp) || gdri_check_pe(&at, pe) ? -GDR_EINVAL : 0,
	gdri_signal_wait(sig, cmp, value, gdri_wait_named(pe), GDRI_NO_LIMIT, seen))

#endif
