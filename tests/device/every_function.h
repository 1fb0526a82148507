/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls every function of the device API once, so that both compilers
 * generate code for all of it. Included by compile_all.c and compile_all.cu. */
#ifndef TESTS_DEVICE_EVERY_FUNCTION_H
#define TESTS_DEVICE_EVERY_FUNCTION_H

#include <gdr.h>

struct every_args {
	void *dst;
	const void *src;
	uint64_t *sig;
	size_t n;
	int pe;
	int *out;
};

/* A constant: the copies of many elements are compiled once, in every_untyped. */
#define EVERY_RMA_SCOPE(name, T, suffix)                                                           \
	sum += gdr_##name##_put##suffix((T *)a.dst, (const T *)a.src, 3, a.pe);                    \
	sum += gdr_##name##_put_nbi##suffix((T *)a.dst, (const T *)a.src, 3, a.pe);                \
	sum += gdr_##name##_get##suffix((T *)a.dst, (const T *)a.src, 3, a.pe);                    \
	sum += gdr_##name##_get_nbi##suffix((T *)a.dst, (const T *)a.src, 3, a.pe);

/* All types in one kernel: the compiler copies what is called out of line into each. */
#define EVERY_RMA_TYPE(name, T)                                                                    \
	EVERY_RMA_SCOPE(name, T, )                                                                 \
	EVERY_RMA_SCOPE(name, T, _warp)                                                            \
	EVERY_RMA_SCOPE(name, T, _block)                                                           \
	sum += gdr_##name##_p((T *)a.dst, (T)a.n, a.pe);                                           \
	sum += (int)gdr_##name##_g((const T *)a.src, a.pe);
GDR_KERNEL(every_rma, struct every_args, a)
{
	int sum = 0;

	GDR_RMA_TYPES(EVERY_RMA_TYPE)
	*a.out = sum;
}

#define EVERY_AMO_OP(op, kind, reduction, name)                                                    \
	sum += gdr_##name##_atomic_##op(d, v, a.pe);                                               \
	sum += (int)gdr_##name##_atomic_fetch_##op(d, v, a.pe);
#define EVERY_AMO_TYPE(name, T)                                                                    \
	{                                                                                          \
		T *d = (T *)a.dst, v = (T)a.n;                                                     \
                                                                                                   \
		sum += gdr_##name##_atomic_set(d, v, a.pe);                                        \
		sum += gdr_##name##_atomic_inc(d, a.pe);                                           \
		sum += (int)gdr_##name##_atomic_fetch(d, a.pe);                                    \
		sum += (int)gdr_##name##_atomic_fetch_inc(d, a.pe);                                \
		sum += (int)gdr_##name##_atomic_swap(d, v, a.pe);                                  \
		sum += (int)gdr_##name##_atomic_compare_swap(d, v, v, a.pe);                       \
		GDRI_AMO_NUMBER_OPS(EVERY_AMO_OP, name)                                            \
		GDRI_AMO_BIT_OPS(EVERY_AMO_OP, name)                                               \
		sum += gdr_##name##_wait_until(d, GDR_CMP_EQ, v);                                  \
		sum += gdr_##name##_test(d, GDR_CMP_EQ, v);                                        \
	}
GDR_KERNEL(every_amo, struct every_args, a)
{
	int sum = 0;

	GDR_AMO_TYPES(EVERY_AMO_TYPE)
	*a.out = sum;
}

/* One function for each kind of collective, scope and class of type. */
#define EVERY_COLL(name, T, suffix)                                                                \
	sum += gdr_##name##_broadcast##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n, 0);         \
	sum += gdr_##name##_collect##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);              \
	sum += gdr_##name##_fcollect##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);             \
	sum += gdr_##name##_alltoall##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);             \
	sum += gdr_##name##_alltoalls##suffix(a.pe, (T *)a.dst, (const T *)a.src, 1, 2, a.n);      \
	sum += gdr_##name##_sum_reduce##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);           \
	sum += gdr_##name##_max_reducescatter##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);    \
	sum += gdr_##name##_sum_inscan##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);           \
	sum += gdr_##name##_sum_exscan##suffix(a.pe, (T *)a.dst, (const T *)a.src, a.n);

#define EVERY_COLL_KERNEL(name, T)                                                                 \
	GDR_KERNEL(every_coll_##name, struct every_args, a)                                        \
	{                                                                                          \
		int sum = 0;                                                                       \
		EVERY_COLL(name, T, )                                                              \
		EVERY_COLL(name, T, _warp)                                                         \
		EVERY_COLL(name, T, _block)                                                        \
		sum += gdr_team_sync_block(a.pe) + gdr_barrier_warp(a.pe);                         \
		*a.out = sum;                                                                      \
	}
EVERY_COLL_KERNEL(int, int)
EVERY_COLL_KERNEL(double, double)

#define EVERY_BYTES(suffix)                                                                        \
	sum += gdr_put##suffix(a.dst, a.src, a.n, a.pe);                                           \
	sum += gdr_put_nbi##suffix(a.dst, a.src, a.n, a.pe);                                       \
	sum += gdr_get##suffix(a.dst, a.src, a.n, a.pe);                                           \
	sum += gdr_get_nbi##suffix(a.dst, a.src, a.n, a.pe);                                       \
	sum += gdr_put_bulk##suffix(a.dst, a.src, a.n, a.dst, a.n, a.pe);                          \
	sum += gdr_put_bulk_nbi##suffix(a.dst, a.src, a.n, a.dst, a.n, a.pe);                      \
	sum += gdr_get_bulk##suffix(a.dst, a.src, a.n, a.dst, a.n, a.pe);                          \
	sum += gdr_get_bulk_nbi##suffix(a.dst, a.src, a.n, a.dst, a.n, a.pe);                      \
	sum += gdr_put_signal##suffix(a.dst, a.src, a.n, a.sig, 1, GDR_SIGNAL_SET, a.pe);          \
	sum += gdr_put_signal_nbi##suffix(a.dst, a.src, a.n, a.sig, 1, GDR_SIGNAL_ADD, a.pe);      \
	sum += gdr_barrier_all##suffix();                                                          \
	sum += gdr_sync_all##suffix();

GDR_KERNEL(every_untyped, struct every_args, a)
{
	int sum = 0;

	EVERY_BYTES()
	EVERY_BYTES(_warp)
	EVERY_BYTES(_block)
	sum += gdr_signal_op(a.sig, 1, GDR_SIGNAL_ADD, a.pe);
	sum += (int)gdr_signal_fetch(a.sig);
	sum += gdr_signal_wait_until(a.sig, GDR_CMP_GE, 1);
	sum += gdr_signal_wait_until_from(a.sig, GDR_CMP_GE, 1, a.pe);
	sum += gdr_signal_wait_until_for(a.sig, GDR_CMP_GE, 1, 1000);
	sum += gdr_signal_wait_until_from_for(a.sig, GDR_CMP_GE, 1, a.pe, 1000);
	sum += gdr_signal_wait_until_seen(a.sig, GDR_CMP_GE, 1, a.sig + 1);
	sum += gdr_signal_wait_until_from_seen(a.sig, GDR_CMP_GE, 1, a.pe, a.sig + 1);
	sum += gdr_fence() + gdr_quiet() + gdr_quiet_pe(a.pe) + gdr_status();
	sum += gdr_my_pe() + gdr_n_pes() + (gdr_ptr(a.src, a.pe) != 0);
	*a.out = sum;
}

/* One type of each family that is a template under CUDA. */
#define EVERY_STRIDED(s)                                                                           \
	sum += gdr_int_iput##s(d, d, 2, 3, a.n, a.pe) + gdr_iget16##s(d, d, 2, 3, a.n, a.pe);      \
	sum += gdr_double_ibput##s(e, e, 2, 3, 2, a.n, a.pe);                                      \
	sum += gdr_ibget128##s(d, d, 2, 3, 2, a.n, a.pe);
#define EVERY_SIZE(s)                                                                              \
	sum += gdr_put8##s(d, d, a.n, a.pe) + gdr_get128_nbi##s(d, d, a.n, a.pe);                  \
	sum += gdr_float_put_signal##s(f, f, a.n, a.sig, 1, GDR_SIGNAL_ADD, a.pe);                 \
	sum += gdr_put64_signal_nbi##s(d, d, a.n, a.sig, 1, GDR_SIGNAL_SET, a.pe);
GDR_KERNEL(every_new, struct every_args, a)
{
	int *d = (int *)a.dst, sum = 0, status[4] = {0}, four[4] = {1, 2, 3, 4};
	double *e = (double *)a.dst;
	float *f = (float *)a.dst;
	size_t at[4];

	EVERY_STRIDED()
	EVERY_STRIDED(_warp)
	EVERY_STRIDED(_nbi_block)
	EVERY_SIZE()
	EVERY_SIZE(_warp)
	EVERY_SIZE(_block)
	sum += gdr_int_atomic_fetch_add_nbi(d, d, 1, a.pe);
	sum += gdr_long_atomic_compare_swap_nbi((long *)d, (long *)d, 1, 2, a.pe);
	sum += (int)gdr_double_atomic_fetch_add(e, 1, a.pe) + gdr_float_atomic_inc(f, a.pe);
	sum += gdr_float_atomic_fetch_inc_nbi(f, f, a.pe) + (int)gdr_float_atomic_swap(f, 1, a.pe);
	sum += gdr_ushort_wait_until((unsigned short *)d, GDR_CMP_GT, 1);
	sum += gdr_int_wait_until_for(d, GDR_CMP_EQ, 1, 1000);
	sum += gdr_int_wait_until_all(d, 4, status, GDR_CMP_EQ, 1);
	sum += (int)gdr_int_wait_until_any_vector(d, 4, status, GDR_CMP_EQ, four);
	sum += (int)gdr_int_wait_until_some_for(d, 4, at, status, GDR_CMP_EQ, 1, 1000);
	sum += gdr_int_test_all(d, 4, status, GDR_CMP_EQ, 1);
	sum += (int)gdr_int_test_any(d, 4, status, GDR_CMP_EQ, 1);
	sum += (int)gdr_int_test_some_vector(d, 4, at, status, GDR_CMP_EQ, four);
	sum += gdr_signal_set(a.sig, 1, a.pe) + gdr_signal_add(a.sig, 1, a.pe);
	sum += gdr_set_lock((long *)a.sig) + gdr_test_lock((long *)a.sig);
	*a.out = sum + gdr_clear_lock((long *)a.sig);
}

/* The forms on a context: one of each family. */
#define EVERY_ON_CTX(s)                                                                            \
	sum += gdr_ctx_put##s(c, d, d, a.n, a.pe) + gdr_ctx_get_nbi##s(c, d, d, a.n, a.pe);        \
	sum += gdr_ctx_int_put_nbi##s(c, d, d, a.n, a.pe) + gdr_ctx_get64##s(c, d, d, a.n, a.pe);  \
	sum += gdr_ctx_int_iput##s(c, d, d, 2, 3, a.n, a.pe);                                      \
	sum += gdr_ctx_ibget128_nbi##s(c, d, d, 2, 3, 2, a.n, a.pe);                               \
	sum += gdr_ctx_put_signal##s(c, d, d, a.n, a.sig, 1, GDR_SIGNAL_ADD, a.pe);                \
	sum += gdr_ctx_int_put_signal_nbi##s(c, d, d, a.n, a.sig, 1, GDR_SIGNAL_SET, a.pe);
GDR_KERNEL(every_on_ctx, struct every_args, a)
{
	int *d = (int *)a.dst, sum = 0;
	double *e = (double *)a.dst;
	gdr_ctx_t c = (gdr_ctx_t)a.n;

	EVERY_ON_CTX()
	EVERY_ON_CTX(_warp)
	EVERY_ON_CTX(_block)
	sum += gdr_ctx_int_p(c, d, 1, a.pe) + (int)gdr_ctx_double_g(c, e, a.pe);
	sum += gdr_ctx_int_atomic_set(c, d, 1, a.pe) + gdr_ctx_int_atomic_fetch_add(c, d, 1, a.pe);
	sum += gdr_ctx_int_atomic_compare_swap_nbi(c, d, d, 1, 2, a.pe);
	sum += (int)gdr_ctx_double_atomic_fetch_add(c, e, 1, a.pe);
	sum += gdr_ctx_signal_op(c, a.sig, 1, GDR_SIGNAL_ADD, a.pe);
	sum += gdr_ctx_signal_set(c, a.sig, 1, a.pe) + gdr_ctx_signal_add(c, a.sig, 1, a.pe);
	sum += gdr_ctx_fence(c) + gdr_ctx_fence_pe(c, a.pe) + gdr_fence_pe(a.pe);
	*a.out = sum + gdr_ctx_quiet(c) + gdr_ctx_quiet_pe(c, a.pe);
}

/* Keeps the kernels, which are static, from being dropped unseen. */
const void *const every_kernel[] = {
	(const void *)(uintptr_t)every_rma, (const void *)(uintptr_t)every_amo,
	(const void *)(uintptr_t)every_untyped,
	(const void *)(uintptr_t)every_coll_int, (const void *)(uintptr_t)every_coll_double,
	(const void *)(uintptr_t)every_new, (const void *)(uintptr_t)every_on_ctx};

#endif
