/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr/host_ops.hpp: each function by each type does what that of C does. All looks at own memory are transfers: it may
 * be a GPU's. */
#include "tests/multi/multi.h"
#include <gdr/host_ops.hpp>
#include <vector>

#define W GDR_TEAM_WORLD
#define SEC 1000000000ull

enum { N = 64 }; /* elements of each area */
static unsigned char *area; /* what others write, and behind it what they read */
static uint64_t *sig;
static int me, n, next, prev;

struct pair { /* as std::complex<float>: of 8 bytes, but aligned to 4 */
	float re, im;
};

struct triple { /* has no name of C, nor a size of one */
	float x;
	short y, z[3];
};

/* Whether what lies in the own memory is what was said, from the element `at` on. */
template <typename T> static void own_is(const T *at, std::vector<T> want)
{
	std::vector<T> got(want.size());

	CHECK_OK(gdr::host_get(got.data(), at, got.size(), me));
	CHECK(!memcmp((void *)got.data(), (void *)want.data(), got.size() * sizeof(T)));
	CHECK_OK(gdr_barrier_all());
}

template <typename T> static T of(int pe, int i)
{
	T v;

	memset((void *)&v, (3 * pe + i) % 100 + 1, sizeof(v));
	return v;
}

template <typename T> static void move()
{
	T *o = (T *)area, v[6], got[6];
	auto from = [](int i) { return of<T>(prev, i); };

	for (int i = 0; i < 6; i++)
		v[i] = of<T>(me, i);
	CHECK_OK(gdr::host_put(o, v, 1, next));
	CHECK_OK(gdr::host_put_nbi(o + 1, v + 1, 1, next));
	CHECK_OK(gdr::host_put_signal(o + 2, v + 2, 1, sig, 1, GDR_SIGNAL_ADD, next));
	CHECK_OK(gdr::host_put_signal_nbi(o + 3, v + 3, 1, sig, 1, GDR_SIGNAL_ADD, next));
	CHECK_OK(gdr_host_signal_wait_until(sig, GDR_CMP_EQ, 2));
	CHECK_OK(gdr_barrier_all());
	own_is(o, {from(0), from(1), from(2), from(3)});
	CHECK_OK(gdr_host_signal_set(sig, 0, me));
	CHECK_OK(gdr::host_iput(o, v, 2, 1, 3, next));
	CHECK_OK(gdr::host_ibput(o + 8, v, 4, 2, 2, 2, next));
	CHECK_OK(gdr_barrier_all());
	own_is(o, {from(0), from(1), from(1), from(3), from(2)});
	own_is(o + 8, {from(0), from(1)});
	own_is(o + 12, {from(2), from(3)});
	CHECK_OK(gdr::host_get_nbi(got, o + 8, 1, next));
	CHECK_OK(gdr::host_iget(got + 1, o, 1, 4, 2, next));
	CHECK_OK(gdr::host_ibget(got + 3, o + 9, 1, 3, 1, 2, next));
	CHECK_OK(gdr_host_quiet());
	T want[] = {v[0], v[0], v[2], v[1], v[2]};
	CHECK(!memcmp((void *)got, (void *)want, sizeof(want)));
	CHECK_OK(gdr_barrier_all());
}

/* Each member brings v[0..2n-1], of which it has made what it is to say. */
template <typename T> static void gather()
{
	T *d = (T *)area, *s = d + N;
	std::vector<T> v, all;

	for (int i = 0; i < 2 * n; i++)
		v.push_back(of<T>(me, i));
	CHECK_OK(gdr::host_put(s, v.data(), v.size(), me));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr::host_broadcast(W, d, s, 2, n - 1));
	own_is(d, {of<T>(n - 1, 0), of<T>(n - 1, 1)});
	for (int pe = 0; pe < n; pe++)
		all.push_back(of<T>(pe, 0));
	CHECK_OK(gdr::host_fcollect(W, d, s, 1));
	own_is(d, all);
	CHECK_OK(gdr::host_collect(W, d + N / 2, s, 1));
	own_is(d + N / 2, all);
	for (int pe = 0; pe < n; pe++)
		all[(size_t)pe] = of<T>(pe, me);
	CHECK_OK(gdr::host_alltoall(W, d, s, 1));
	own_is(d, all);
	CHECK_OK(gdr::host_alltoalls(W, d + N / 2, s, 1, 2, 1));
	for (int pe = 0; pe < n; pe++)
		all[(size_t)pe] = of<T>(pe, 2 * me);
	own_is(d + N / 2, all);
}

/* Those of one operation: v is this PE's, `all` and `part` what the reductions of 2 elements, and of 1 for each, give. */
#define REDUCE(op, all)                                                                            \
	CHECK_OK(gdr::host_##op##_reduce(W, d, s, 2));                                             \
	own_is(d, {(T)(all), (T)(all)});                                                           \
	CHECK_OK(gdr::host_##op##_reducescatter(W, d, s, 1));                                      \
	own_is(d, {(T)(all)})
template <typename T> static void bring(T *s, int value)
{
	std::vector<T> v((size_t)(n > 2 ? n : 2), (T)value);

	CHECK_OK(gdr::host_put(s, v.data(), v.size(), me));
	CHECK_OK(gdr_barrier_all());
}

template <typename T> static void number()
{
	T *d = (T *)area, *s = d + N;

	bring(s, me + 1);
	REDUCE(sum, n * (n + 1) / 2);
	REDUCE(prod, n == 1 ? 1 : n == 2 ? 2 : 6);
	REDUCE(min, 1);
	REDUCE(max, n);
	CHECK_OK(gdr::host_sum_inscan(W, d, s, 1));
	own_is(d, {(T)((me + 1) * (me + 2) / 2)});
	CHECK_OK(gdr::host_sum_exscan(W, d, s, 1));
	own_is(d, {(T)(me * (me + 1) / 2)});
	CHECK_OK(gdr::host_p(d, 40 + me, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_EQ(gdr::host_g(d, next), (T)(40 + me));
	CHECK_OK(gdr_barrier_all());
}

template <typename T> static void integer()
{
	T *d = (T *)area, *s = d + N;

	bring(s, me ? 6 : 12);
	REDUCE(and, n > 1 ? 4 : 12);
	REDUCE(or, n > 1 ? 14 : 12);
	REDUCE(xor, n == 1 ? 12 : n == 2 ? 10 : 12);
}

/* Of this PE alone at the next one. */
template <typename T> static void count()
{
	T *w = (T *)area, old[10];

	CHECK_OK(gdr::host_atomic_set(w, 5, next));
	CHECK_OK(gdr::host_atomic_add(w, 3, next));
	CHECK_OK(gdr::host_atomic_inc(w, next));
	CHECK_OK(gdr::host_atomic_max(w, 20, next));
	CHECK_OK(gdr::host_atomic_min(w, 7, next));
	CHECK_EQ(gdr::host_atomic_fetch(w, next), 7);
	CHECK_EQ(gdr::host_atomic_fetch_add(w, 2, next), 7);
	CHECK_EQ(gdr::host_atomic_fetch_inc(w, next), 9);
	CHECK_EQ(gdr::host_atomic_fetch_max(w, 20, next), 10);
	CHECK_EQ(gdr::host_atomic_fetch_min(w, 8, next), 20);
	CHECK_EQ(gdr::host_atomic_swap(w, 30, next), 8);
	CHECK_EQ(gdr::host_atomic_compare_swap(w, 30, 31, next), 30);
	CHECK_OK(gdr::host_atomic_fetch_nbi(old, w, next));
	CHECK_OK(gdr::host_atomic_fetch_add_nbi(old + 1, w, 2, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_fetch_inc_nbi(old + 2, w, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_fetch_max_nbi(old + 3, w, 50, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_fetch_min_nbi(old + 4, w, 40, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_swap_nbi(old + 5, w, 12, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_compare_swap_nbi(old + 6, w, 12, 13, next));
	CHECK_OK(gdr_host_quiet());
	const T want[] = {31, 31, 33, 34, 50, 40, 12};
	for (int i = 0; i < 7; i++)
		CHECK_EQ(old[i], want[i]);
	CHECK_EQ(gdr::host_g(w, next), 13);
	CHECK_OK(gdr_barrier_all());
}

template <typename T> static void bits()
{
	T *w = (T *)area, old[3];

	CHECK_OK(gdr::host_atomic_set(w, 12, next));
	CHECK_OK(gdr::host_atomic_or(w, 3, next));
	CHECK_OK(gdr::host_atomic_and(w, 6, next));
	CHECK_OK(gdr::host_atomic_xor(w, 3, next));
	CHECK_EQ(gdr::host_atomic_fetch_or(w, 8, next), 5);
	CHECK_EQ(gdr::host_atomic_fetch_and(w, 9, next), 13);
	CHECK_EQ(gdr::host_atomic_fetch_xor(w, 1, next), 9);
	CHECK_OK(gdr::host_atomic_fetch_or_nbi(old, w, 4, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_fetch_and_nbi(old + 1, w, 4, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_atomic_fetch_xor_nbi(old + 2, w, 1, next));
	CHECK_OK(gdr_host_quiet());
	CHECK_EQ(old[0], 8);
	CHECK_EQ(old[1], 12);
	CHECK_EQ(old[2], 4);
	CHECK_EQ(gdr::host_g(w, next), 5);
	CHECK_OK(gdr_barrier_all());
}

/* Of 3 words the one before makes the last 9, and the first 4; the middle one does not count. */
template <typename T> static void wait()
{
	static const int status[] = {0, 1, 0};
	T *w = (T *)area, values[] = {4, 1, 9};
	size_t which[3];

	CHECK_OK(gdr::host_p(w, 4, next));
	CHECK_OK(gdr::host_p(w + 1, 0, next));
	CHECK_OK(gdr::host_p(w + 2, 4, next));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr::host_test(w, GDR_CMP_EQ, 4), 1);
	CHECK_EQ(gdr::host_test(w, GDR_CMP_EQ, 5), 0);
	CHECK_OK(gdr::host_wait_until(w, GDR_CMP_LT, 5));
	CHECK_EQ(gdr::host_wait_until_for(w, GDR_CMP_GT, 4, 1000), -GDR_ETIMEOUT);
	CHECK_EQ(gdr::host_test_all(w, 3, status, GDR_CMP_EQ, 4), 1);
	CHECK_EQ(gdr::host_test_all_vector(w, 3, status, GDR_CMP_EQ, values), 0);
	CHECK_EQ(gdr::host_wait_until_all_for(w, 3, nullptr, GDR_CMP_EQ, 4, 1000), -GDR_ETIMEOUT);
	CHECK_EQ(gdr::host_wait_until_any_for(w, 3, nullptr, GDR_CMP_EQ, 9, 1000), (size_t)-1);
	CHECK_EQ(gdr::host_wait_until_some_for(w, 3, which, nullptr, GDR_CMP_EQ, 9, 1000), 0);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr::host_p(w + 2, 9, next));
	CHECK_EQ(gdr::host_wait_until_any(w, 3, status, GDR_CMP_EQ, 9), 2);
	CHECK_EQ(gdr::host_wait_until_some(w, 3, which, status, GDR_CMP_GE, 9), 1);
	CHECK_EQ(which[0], 2);
	CHECK_OK(gdr::host_wait_until_all(w, 3, status, GDR_CMP_GE, 4));
	CHECK_OK(gdr::host_wait_until_all_vector(w, 3, status, GDR_CMP_EQ, values));
	CHECK_OK(gdr::host_wait_until_all_vector_for(w, 3, status, GDR_CMP_EQ, values, SEC));
	values[0] = 5;
	CHECK_EQ(gdr::host_wait_until_any_vector(w, 3, status, GDR_CMP_EQ, values), 2);
	CHECK_EQ(gdr::host_wait_until_any_vector_for(w, 3, status, GDR_CMP_EQ, values, SEC), 2);
	CHECK_EQ(gdr::host_wait_until_some_vector(w, 3, which, status, GDR_CMP_EQ, values), 1);
	CHECK_EQ(gdr::host_wait_until_some_vector_for(w, 3, which, status, GDR_CMP_EQ, values, SEC), 1);
	CHECK_EQ(gdr::host_test_any(w, 3, status, GDR_CMP_EQ, 9), 2);
	CHECK_EQ(gdr::host_test_any_vector(w, 3, status, GDR_CMP_EQ, values), 2);
	CHECK_EQ(gdr::host_test_some(w, 3, which, status, GDR_CMP_EQ, 9), 1);
	CHECK_EQ(gdr::host_test_some_vector(w, 3, which, status, GDR_CMP_EQ, values), 1);
	CHECK_OK(gdr_barrier_all());
}

/* Of 16 bits: what is 1 everywhere is 1. */
template <typename T> static void half(T one)
{
	T *d = (T *)area, *s = d + N;

	CHECK_OK(gdr::host_put(s, &one, 1, me));
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr::host_max_reduce(W, d, s, 1));
	own_is(d, std::vector<T>{one});
}

/* A pair lies behind any float; of nothing there may be no source. */
static void anywhere(void)
{
	struct pair *o = (struct pair *)(area + 4), v = {me + 1.0f, 2}, got;

	CHECK_OK(gdr::host_put(o, &v, 1, next));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr::host_get(&got, o, 1, me));
	CHECK(got.re == (float)(prev + 1) && got.im == 2);
	CHECK_OK(gdr::host_put(o, nullptr, 0, me));
	CHECK_OK(gdr::host_iget(o, nullptr, 1, 1, 0, me));
	CHECK_OK(gdr::host_fcollect(W, o, nullptr, 0));
}

#define EACH(name, T)                                                                              \
	move<T>();                                                                                 \
	gather<T>();                                                                               \
	number<T>();
#define INTEGER(name, T) integer<T>();
#define COUNT(name, T) count<T>();
#define BITS(name, T) bits<T>();
#define WAIT(name, T) wait<T>();
int main(void)
{
	multi_begin();
	me = multi_pe;
	n = multi_n;
	next = (me + 1) % n;
	prev = (me + n - 1) % n;
	area = (unsigned char *)gdr_calloc(2 * N, 16);
	sig = (uint64_t *)gdr_calloc(1, 8);
	CHECK(area && sig && n <= 3);
	GDRI_CPP_TYPES(EACH)
	GDRI_CPP_INTEGERS(INTEGER)
	GDR_LANGUAGE_TYPES(COUNT)
	GDR_FLOAT_TYPES(COUNT)
	GDR_LANGUAGE_TYPES(BITS)
	GDRI_CPP_WAIT_TYPES(WAIT)
	move<struct triple>();
	gather<struct triple>();
	anywhere();
#ifndef __CUDACC__
	half(gdr_half_t{0x3c00});
	half(gdr_bfloat16_t{0x3f80});
#endif
	CHECK_OK(gdr_free(sig));
	CHECK_OK(gdr_free(area));
	return multi_end("cpp_host");
}
