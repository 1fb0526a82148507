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

#define EVERY_RMA_KERNEL(name, T)                                                                  \
	GDR_KERNEL(every_rma_##name, struct every_args, a)                                         \
	{                                                                                          \
		int sum = 0;                                                                       \
		EVERY_RMA_SCOPE(name, T, )                                                         \
		EVERY_RMA_SCOPE(name, T, _warp)                                                    \
		EVERY_RMA_SCOPE(name, T, _block)                                                   \
		sum += gdr_##name##_p((T *)a.dst, (T)a.n, a.pe);                                   \
		sum += (int)gdr_##name##_g((const T *)a.src, a.pe);                                \
		*a.out = sum;                                                                      \
	}
GDR_RMA_TYPES(EVERY_RMA_KERNEL)

#define EVERY_AMO_KERNEL(name, T)                                                                  \
	GDR_KERNEL(every_amo_##name, struct every_args, a)                                         \
	{                                                                                          \
		T *d = (T *)a.dst, v = (T)a.n;                                                     \
		int sum = 0;                                                                       \
                                                                                                   \
		sum += gdr_##name##_atomic_set(d, v, a.pe);                                        \
		sum += gdr_##name##_atomic_inc(d, a.pe);                                           \
		sum += gdr_##name##_atomic_add(d, v, a.pe);                                        \
		sum += gdr_##name##_atomic_and(d, v, a.pe);                                        \
		sum += gdr_##name##_atomic_or(d, v, a.pe);                                         \
		sum += gdr_##name##_atomic_xor(d, v, a.pe);                                        \
		sum += (int)gdr_##name##_atomic_fetch(d, a.pe);                                    \
		sum += (int)gdr_##name##_atomic_fetch_inc(d, a.pe);                                \
		sum += (int)gdr_##name##_atomic_fetch_add(d, v, a.pe);                             \
		sum += (int)gdr_##name##_atomic_fetch_and(d, v, a.pe);                             \
		sum += (int)gdr_##name##_atomic_fetch_or(d, v, a.pe);                              \
		sum += (int)gdr_##name##_atomic_fetch_xor(d, v, a.pe);                             \
		sum += (int)gdr_##name##_atomic_swap(d, v, a.pe);                                  \
		sum += (int)gdr_##name##_atomic_compare_swap(d, v, v, a.pe);                       \
		sum += gdr_##name##_wait_until(d, GDR_CMP_EQ, v);                                  \
		sum += gdr_##name##_test(d, GDR_CMP_EQ, v);                                        \
		*a.out = sum;                                                                      \
	}
GDR_AMO_TYPES(EVERY_AMO_KERNEL)

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
	sum += gdr_fence() + gdr_quiet() + gdr_quiet_pe(a.pe) + gdr_status();
	sum += gdr_my_pe() + gdr_n_pes() + (gdr_ptr(a.src, a.pe) != 0);
	*a.out = sum;
}

/* Keeps the kernels, which are static, from being dropped unseen. */
#define EVERY_RMA_ENTRY(name, T) (const void *)(uintptr_t)every_rma_##name,
#define EVERY_AMO_ENTRY(name, T) (const void *)(uintptr_t)every_amo_##name,
const void *const every_kernel[] = {
	GDR_RMA_TYPES(EVERY_RMA_ENTRY) GDR_AMO_TYPES(EVERY_AMO_ENTRY)(
		const void *)(uintptr_t)every_untyped,
	(const void *)(uintptr_t)every_coll_int, (const void *)(uintptr_t)every_coll_double};

#endif
