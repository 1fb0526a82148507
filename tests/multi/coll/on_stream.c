/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation on a stream, of every type: put there one behind the other, looked at when the stream
 * has come to its end. Operations of a PE have areas of their own, filled before. */
#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif

#include "tests/multi/coll/coll.h"

#define AREA 4096u
#define AREAS 10u
#define MORE_TYPES(X) MULTI_RMA_TYPES(X) GDR_RMA_TYPES_MORE(X)

static uint8_t *src, *dst, *image;
static uint64_t *sig;
static gdr_stream_t stream;
static uint64_t seed;
static int next, prev;

/* Bytes of PE pe's source: of no type a NaN. */
static uint8_t byte_of(int pe, size_t i)
{
	return multi_byte(seed * 64 + (uint64_t)pe, i) & 0x3f;
}

static void begin(void)
{
	seed++;
	for (size_t i = 0; i < AREA; i++)
		image[i] = byte_of(multi_pe, i);
	CHECK_OK(gdr_memcpy(src, image, AREA));
	memset(image, MULTI_POISON, AREA * AREAS);
	CHECK_OK(gdr_memcpy(dst, image, AREA * AREAS));
	multi_set_u64(sig, 0);
	multi_set_u64(sig + 1, 0);
	CHECK_OK(gdr_barrier_all());
}

static void expect(unsigned area, size_t at, int pe, size_t from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		image[area * AREA + at + i] = byte_of(pe, from + i);
}

static void end(const char *what, size_t size)
{
	static uint8_t *got;

	if (!got)
		got = (uint8_t *)malloc(AREA * AREAS);
	CHECK_OK(gdr_barrier_all_on_stream(stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK_EQ(gdr_host_status(), 0);
	CHECK_OK(gdr_memcpy(got, dst, AREA * AREAS));
	for (size_t i = 0; i < AREA * AREAS; i++)
		/* of a long double some bytes are nobody's */
		if (got[i] != image[i] && (size != 16 || i % 16 < 10))
			multi_fail(__FILE__, __LINE__, "%s: byte %zu of area %zu is %02x, not %02x", what,
				   i % AREA, i / AREA, got[i], image[i]);
}

/* ---- transfers ---- */

#define MOVES(pre, T, z, E)                                                                        \
	do {                                                                                       \
		size_t e = (E);                                                                    \
                                                                                                   \
		begin();                                                                           \
		CHECK_OK(gdr_##pre##put##z##_on_stream((T *)dst, (const T *)src, 5, next, stream)); \
		CHECK_OK(gdr_##pre##put##z##_nbi_on_stream((T *)(dst + AREA), (const T *)src, 7,   \
							   next, stream));                         \
		CHECK_OK(gdr_##pre##put##z##_signal_on_stream((T *)(dst + 2 * AREA), (const T *)src, 3, \
							      sig, 5, GDR_SIGNAL_SET, next,        \
							      stream));                            \
		CHECK_OK(gdr_##pre##put##z##_signal_nbi_on_stream((T *)(dst + 3 * AREA),           \
								  (const T *)src, 2, sig + 1, 7,   \
								  GDR_SIGNAL_ADD, next, stream));  \
		CHECK_OK(gdr_signal_wait_until_on_stream(sig, GDR_CMP_EQ, 5, stream));             \
		CHECK_OK(gdr_signal_wait_until_on_stream(sig + 1, GDR_CMP_GE, 7, stream));         \
		CHECK_OK(gdr_quiet_on_stream(stream));                                             \
		CHECK_OK(gdr_##pre##get##z##_on_stream((T *)(dst + 4 * AREA), (const T *)src, 5,   \
						       next, stream));                             \
		CHECK_OK(gdr_##pre##get##z##_nbi_on_stream((T *)(dst + 5 * AREA), (const T *)src,  \
							   4, prev, stream));                      \
		CHECK_OK(gdr_quiet_on_stream(stream));                                             \
		expect(0, 0, prev, 0, 5 * e);                                                      \
		expect(1, 0, prev, 0, 7 * e);                                                      \
		expect(2, 0, prev, 0, 3 * e);                                                      \
		expect(3, 0, prev, 0, 2 * e);                                                      \
		expect(4, 0, next, 0, 5 * e);                                                      \
		expect(5, 0, prev, 0, 4 * e);                                                      \
		end(#pre "put" #z, 0);                                                             \
	} while (0)

#define STRIDES(pre, T, z, E)                                                                      \
	do {                                                                                       \
		size_t e = (E);                                                                    \
                                                                                                   \
		begin();                                                                           \
		CHECK_OK(gdr_##pre##iput##z##_on_stream((T *)dst, (const T *)src, 2, 3, 4, next,   \
							stream));                                  \
		CHECK_OK(gdr_##pre##iget##z##_on_stream((T *)(dst + AREA + 8 * e), (const T *)src, \
							-2, 1, 4, next, stream));                  \
		for (size_t k = 0; k < 4; k++) {                                                   \
			expect(0, 2 * k * e, prev, 3 * k * e, e);                                  \
			expect(1, (8 - 2 * k) * e, next, k * e, e);                                \
		}                                                                                  \
		end(#pre "iput" #z, 0);                                                            \
	} while (0)

#define TYPE_MOVES(name, T)                                                                        \
	static void moves_##name(void)                                                             \
	{                                                                                          \
		T v;                                                                               \
                                                                                                   \
		MOVES(name##_, T, , sizeof(T));                                                    \
		STRIDES(name##_, T, , sizeof(T));                                                  \
		begin();                                                                           \
		for (size_t i = 0; i < sizeof(T); i++)                                             \
			((uint8_t *)&v)[i] = byte_of(multi_pe, i);                                 \
		CHECK_OK(gdr_##name##_p_on_stream((T *)dst, v, next, stream));                     \
		expect(0, 0, prev, 0, sizeof(T));                                                  \
		v = gdr_##name##_g_on_stream((const T *)src, next, stream);                        \
		for (size_t i = 0; i < (sizeof(T) < 16 ? sizeof(T) : 10); i++)                     \
			CHECK_EQ(((uint8_t *)&v)[i], byte_of(next, i));                            \
		end(#name " p", sizeof(T));                                                        \
	}
MORE_TYPES(TYPE_MOVES)
#define CALL_MOVES(name, T) moves_##name();
#define SIZE_MOVES(bits, bytes)                                                                    \
	MOVES(, void, bits, bytes);                                                                \
	STRIDES(, void, bits, bytes);

/* ---- waits ---- */

#define WAITS(name, T)                                                                             \
	static void waits_##name(void)                                                             \
	{                                                                                          \
		T v[3] = {(T)-3, 4, 5};                                                            \
		T *at = (T *)dst, *from = (T *)(src + AREA / 2);                                   \
                                                                                                   \
		begin();                                                                           \
		CHECK_OK(gdr_memcpy(from, v, sizeof(v)));                                          \
		CHECK_OK(gdr_put_on_stream(at, from, sizeof(v), next, stream));                    \
		CHECK_OK(gdr_##name##_wait_until_on_stream(at, GDR_CMP_EQ, (T)-3, stream));        \
		CHECK_OK(gdr_##name##_wait_until_all_on_stream(at + 1, 2, NULL, GDR_CMP_GE, 4,     \
							       stream));                           \
		CHECK_OK(gdr_##name##_wait_until_all_vector_on_stream(at, 3, NULL, GDR_CMP_EQ,     \
								      from, stream));              \
		memcpy(image, v, sizeof(v));                                                       \
		end(#name " wait", 0);                                                             \
	}
MULTI_WAIT_TYPES(WAITS)

/* What ends a wait for words [first, last) comes late, a word at a time: copies behind it would be of what was there
 * before. */
#define LATE_WAIT(first, last, ...)                                                                \
	do {                                                                                       \
		begin();                                                                           \
		CHECK_OK(gdr_memcpy(from, v, sizeof(v)));                                          \
		CHECK_OK(__VA_ARGS__);                                                             \
		for (int k = (first); k < (last); k++)                                             \
			CHECK_OK(gdr_put_on_stream(at + AREA / sizeof(*at) + k, at + k, sizeof(*at), multi_pe, \
						   stream));                                       \
		multi_sleep_us(1000);                                                              \
		for (int k = (first); k < (last); k++) {                                           \
			CHECK_OK(gdr_host_put(at + k, from + k, sizeof(*at), multi_pe));           \
			memcpy(image + (size_t)k * sizeof(*at), v + k, sizeof(*at));               \
			memcpy(image + AREA + (size_t)k * sizeof(*at), v + k, sizeof(*at));        \
		}                                                                                  \
		end(what, 0);                                                                      \
	} while (0)
#define LATE_WAITS(name, T)                                                                        \
	static void late_waits_##name(void)                                                        \
	{                                                                                          \
		const char *what = #name " wait that waits";                                       \
		T v[3] = {(T)-3, 4, 5};                                                            \
		T *at = (T *)dst, *from = (T *)(src + AREA / 2);                                   \
                                                                                                   \
		LATE_WAIT(0, 1, gdr_##name##_wait_until_on_stream(at, GDR_CMP_EQ, (T)-3, stream)); \
		LATE_WAIT(2, 3, gdr_##name##_wait_until_all_on_stream(at + 2, 1, NULL, GDR_CMP_EQ, 5,  \
								      stream));                    \
		LATE_WAIT(0, 3, gdr_##name##_wait_until_all_vector_on_stream(at, 3, NULL, GDR_CMP_EQ, from, \
									     stream));             \
	}
#ifndef __CUDACC__
MULTI_WAIT_TYPES(LATE_WAITS)
#define CALL_WAITS(name, T) waits_##name(), late_waits_##name();
#else
#define CALL_WAITS(name, T) waits_##name();
#endif

/* ---- collectives that move ---- */

static gdr_team_t team;
static int me, n_team, pes[COLL_MAX_PES];

#define COLLS(pre, T, z, E)                                                                        \
	do {                                                                                       \
		size_t e = (E), at = 0;                                                            \
                                                                                                   \
		begin();                                                                           \
		CHECK_OK(gdr_##pre##broadcast##z##_on_stream(team, (T *)dst, (const T *)src, 5,    \
							     1 % n_team, stream));                 \
		CHECK_OK(gdr_##pre##collect##z##_on_stream(team, (T *)(dst + AREA), (const T *)src, \
							   (size_t)(me + 1) % 3, stream));         \
		CHECK_OK(gdr_##pre##fcollect##z##_on_stream(team, (T *)(dst + 2 * AREA),           \
							    (const T *)src, 4, stream));           \
		CHECK_OK(gdr_##pre##alltoall##z##_on_stream(team, (T *)(dst + 3 * AREA),           \
							    (const T *)src, 3, stream));           \
		CHECK_OK(gdr_##pre##alltoalls##z##_on_stream(team, (T *)(dst + 4 * AREA),          \
							     (const T *)src, 3, 2, 2, stream));    \
		CHECK_OK(gdr_team_sync_on_stream(team, stream));                                   \
		CHECK_OK(gdr_barrier_on_stream(team, stream));                                     \
		CHECK_OK(gdr_sync_all_on_stream(stream));                                          \
		expect(0, 0, pes[1 % n_team], 0, 5 * e);                                           \
		for (int i = 0; i < n_team; i++) {                                                 \
			size_t b = (size_t)i, m = (size_t)me;                                      \
                                                                                                   \
			expect(1, at, pes[i], 0, (b + 1) % 3 * e);                                 \
			at += (b + 1) % 3 * e;                                                     \
			expect(2, 4 * b * e, pes[i], 0, 4 * e);                                    \
			expect(3, 3 * b * e, pes[i], 3 * m * e, 3 * e);                            \
			expect(4, 6 * b * e, pes[i], 4 * m * e, e);                                \
			expect(4, (6 * b + 3) * e, pes[i], (4 * m + 2) * e, e);                    \
		}                                                                                  \
		end(#pre "collectives" #z, 0);                                                     \
	} while (0)
#define TYPE_COLLS(name, T)                                                                        \
	static void colls_##name(void)                                                             \
	{                                                                                          \
		COLLS(name##_, T, , sizeof(T));                                                    \
	}
MORE_TYPES(TYPE_COLLS)
#define CALL_COLLS(name, T) colls_##name();
#define SIZE_COLLS(bits, bytes) COLLS(, void, bits, bytes);

/* ---- reductions ---- */

#define N 6 /* elements */
#define FOLD(T, op, lo, hi, k, out)                                                                \
	do {                                                                                       \
		for (int i_ = (lo); i_ < (hi); i_++) {                                             \
			T x_ = COLL_VALUE(T, multi_hash(seed * 977 + (uint64_t)pes[i_] * 61 +      \
							(uint64_t)(k)));                           \
			(out) = i_ == (lo) ? x_ : COLL_OP(T, op, (out), x_);                       \
		}                                                                                  \
	} while (0)

#define ONE_OP(name, T, OP, op, area)                                                              \
	do {                                                                                       \
		T want[N];                                                                         \
                                                                                                   \
		CHECK_OK(gdr_##name##_##op##_reduce_on_stream(team, (T *)(dst + (area) * AREA),    \
							      (const T *)src, N, stream));         \
		CHECK_OK(gdr_##name##_##op##_reducescatter_on_stream(                              \
			team, (T *)(dst + (area) * AREA + AREA / 2), (const T *)src, 2, stream));  \
		for (int k = 0; k < N; k++)                                                        \
			FOLD(T, OP, 0, n_team, k, want[k]);                                        \
		memcpy(image + (area) * AREA, want, sizeof(want));                                 \
		for (int k = 0; k < 2; k++)                                                        \
			FOLD(T, OP, 0, n_team, 2 * me + k, want[k]);                               \
		memcpy(image + (area) * AREA + AREA / 2, want, 2 * sizeof(T));                     \
	} while (0)

#define FILL(T)                                                                                    \
	do {                                                                                       \
		T v[2 * COLL_MAX_PES];                                                             \
                                                                                                   \
		begin();                                                                           \
		for (int k = 0; k < 2 * COLL_MAX_PES; k++)                                         \
			v[k] = COLL_VALUE(T, multi_hash(seed * 977 + (uint64_t)pes[me] * 61 +      \
							(uint64_t)k));                             \
		CHECK_OK(gdr_memcpy(src, v, sizeof(v)));                                           \
	} while (0)

#define REDUCES(name, T)                                                                           \
	static void reduces_##name(void)                                                           \
	{                                                                                          \
		T sum = 0;                                                                         \
                                                                                                   \
		FILL(T);                                                                           \
		ONE_OP(name, T, SUM, sum, 0);                                                      \
		ONE_OP(name, T, PROD, prod, 1);                                                    \
		ONE_OP(name, T, MIN, min, 2);                                                      \
		ONE_OP(name, T, MAX, max, 3);                                                      \
		CHECK_OK(gdr_##name##_sum_inscan_on_stream(team, (T *)(dst + 4 * AREA),            \
							   (const T *)src, N, stream));            \
		CHECK_OK(gdr_##name##_sum_exscan_on_stream(team, (T *)(dst + 5 * AREA),            \
							   (const T *)src, N, stream));            \
		for (int k = 0; k < N; k++) {                                                      \
			FOLD(T, SUM, 0, me + 1, k, sum);                                           \
			memcpy(image + 4 * AREA + (size_t)k * sizeof(T), &sum, sizeof(T));         \
			sum = 0;                                                                   \
			FOLD(T, SUM, 0, me, k, sum);                                               \
			memcpy(image + 5 * AREA + (size_t)k * sizeof(T), &sum, sizeof(T));         \
		}                                                                                  \
		end(#name " reductions", 0);                                                       \
	}
MULTI_RMA_TYPES(REDUCES)
#define CALL_REDUCES(name, T) reduces_##name();

#define BITS(name, T)                                                                              \
	static void bits_##name(void)                                                              \
	{                                                                                          \
		FILL(T);                                                                           \
		ONE_OP(name, T, AND, and, 0);                                                      \
		ONE_OP(name, T, OR, or, 1);                                                        \
		ONE_OP(name, T, XOR, xor, 2);                                                      \
		end(#name " bits", 0);                                                             \
	}
#ifdef MULTI_FEW_TYPES
#define BIT_TYPES(X) MULTI_AMO_TYPES(X) X(int16, int16_t) X(uint8, uint8_t)
#else
#define BIT_TYPES(X) GDR_INTEGER_TYPES(X)
#endif
BIT_TYPES(BITS)
#define CALL_BITS(name, T) bits_##name();

/* ---- much at a time: many blocks where that pays; in place ---- */

#define LONG (96u * 1024u) /* elements */

static void set_team(gdr_team_t t)
{
	team = t;
	me = gdr_host_team_my_pe(t);
	n_team = gdr_host_team_n_pes(t);
	for (int i = 0; i < n_team; i++)
		pes[i] = gdr_host_team_translate_pe(t, i, GDR_TEAM_WORLD);
}

/* Element k of PE pe. */
static uint32_t element(int pe, size_t k)
{
	return (uint32_t)multi_hash(seed * 4096 + (uint64_t)pe * 16 + (k << 20));
}

static uint32_t *host;

static void fill_long(uint32_t *at, size_t n)
{
	for (size_t k = 0; k < n; k++)
		host[k] = element(multi_pe, k);
	CHECK_OK(gdr_memcpy(at, host, n * sizeof(*host)));
}

static void look_long(const uint32_t *at, size_t n, uint32_t (*want)(size_t k), const char *what)
{
	CHECK_OK(gdr_barrier_on_stream(team, stream));
	CHECK_OK(gdr_stream_sync(stream));
	CHECK_EQ(gdr_host_status(), 0);
	CHECK_OK(gdr_memcpy(host, at, n * sizeof(*host)));
	for (size_t k = 0; k < n; k++)
		if (host[k] != want(k))
			multi_fail(__FILE__, __LINE__, "%s: element %zu is %u, not %u", what, k,
				   host[k], want(k));
}

static size_t block;

static uint32_t want_root(size_t k)
{
	return element(pes[n_team - 1], k);
}

static uint32_t want_collected(size_t k)
{
	return element(pes[k / block], k % block);
}

static uint32_t want_all(size_t k)
{
	return element(pes[k / block], (size_t)me * block + k % block);
}

static uint32_t want_sum(size_t k)
{
	uint32_t sum = 0;

	for (int i = 0; i < n_team; i++)
		sum += element(pes[i], k);
	return sum;
}

static uint32_t want_scattered(size_t k)
{
	return want_sum((size_t)me * block + k);
}

static uint32_t want_before(size_t k)
{
	uint32_t sum = 0;

	for (int i = 0; i < me; i++)
		sum += element(pes[i], k);
	return sum;
}

static void much(uint32_t *d, uint32_t *s, size_t n)
{
	block = n / (size_t)n_team;
	seed++;
	fill_long(s, LONG);
	CHECK_OK(gdr_uint32_broadcast_on_stream(team, d, s, n, n_team - 1, stream));
	look_long(d, n, want_root, "broadcast");
	CHECK_OK(gdr_uint32_fcollect_on_stream(team, d, s, block, stream));
	look_long(d, block * (size_t)n_team, want_collected, "fcollect");
	CHECK_OK(gdr_uint32_alltoall_on_stream(team, d, s, block, stream));
	look_long(d, block * (size_t)n_team, want_all, "alltoall");
	CHECK_OK(gdr_uint32_sum_reducescatter_on_stream(team, d, s, block, stream));
	look_long(d, block, want_scattered, "reducescatter");
	CHECK_OK(gdr_uint32_sum_exscan_on_stream(team, d, s, n, stream));
	look_long(d, n, want_before, "exscan");
	CHECK_OK(gdr_uint32_sum_reduce_on_stream(team, d, s, n, stream));
	look_long(d, n, want_sum, "reduce");
	fill_long(s, LONG);
	CHECK_OK(gdr_uint32_sum_reducescatter_on_stream(team, s + (size_t)me * block, s, block,
							 stream));
	look_long(s + (size_t)me * block, block, want_scattered, "reducescatter in place");
	fill_long(s, LONG);
	CHECK_OK(gdr_uint32_sum_reducescatter_on_stream(team, s, s, block, stream));
	look_long(s, block, want_scattered, "reducescatter to the beginning");
	fill_long(s, LONG);
	CHECK_OK(gdr_uint32_sum_exscan_on_stream(team, s, s, n, stream));
	look_long(s, n, want_before, "exscan in place");
	fill_long(s, LONG);
	CHECK_OK(gdr_uint32_sum_reduce_on_stream(team, s, s, n, stream));
	look_long(s, n, want_sum, "reduce in place");
}

static void nothing(void)
{
	begin();
	CHECK_OK(gdr_put_on_stream(dst, src, 0, next, stream));
	CHECK_OK(gdr_int_sum_reduce_on_stream(team, (int *)dst, (int *)src, 0, stream));
	CHECK_OK(gdr_int_collect_on_stream(team, (int *)dst, (int *)src, 0, stream));
	CHECK_OK(gdr_int_wait_until_all_on_stream((int *)dst, 0, NULL, GDR_CMP_EQ, 0, stream));
	end("nothing", 0);
}

/* Refused at once, with the reason on stderr. */
static void refused(void)
{
	int *d = (int *)dst, *s = (int *)src, own;

	CHECK_EQ(gdr_int_put_on_stream(d, s, 1, multi_n, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_put_on_stream(&own, s, 1, 0, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_put_on_stream(d, s, (size_t)-1 / 2, 0, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_get_on_stream(d, &own, 1, 0, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_iput_on_stream(d, s, -(1 << 30), 1, 2, 0, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_p_on_stream((int *)(dst + 1), 1, 0, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_signal_op_on_stream(sig, 1, 7, 0, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_signal_wait_until_on_stream(sig, 6, 1, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_barrier_on_stream(63, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_broadcast_on_stream(team, d, s, 1, n_team, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_sum_reduce_on_stream(team, d, &own, 1, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_sum_reduce_on_stream(team, d + 1, d, 2, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_alltoall_on_stream(team, d, d, 1, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_alltoalls_on_stream(team, d, s, 0, 1, 1, stream), -GDR_EINVAL);
	CHECK_EQ(gdr_int_fcollect_on_stream(team, d, s, (size_t)1 << 40, stream), -GDR_EINVAL);
}

static void all_types(void)
{
	MORE_TYPES(CALL_MOVES)
	GDR_RMA_SIZES(SIZE_MOVES)
	MOVES(, void, , 1);
	MULTI_WAIT_TYPES(CALL_WAITS)
	MORE_TYPES(CALL_COLLS)
	GDR_RMA_SIZES(SIZE_COLLS)
	COLLS(, void, mem, 1);
	MULTI_RMA_TYPES(CALL_REDUCES)
	BIT_TYPES(CALL_BITS)
	begin();
	CHECK_OK(gdr_signal_op_on_stream(sig, 3, GDR_SIGNAL_ADD, next, stream));
	CHECK_OK(gdr_signal_wait_until_on_stream(sig, GDR_CMP_EQ, 3, stream));
	end("signal_op", 0);
}

#ifdef __CUDACC__
#define set_pushes() CHECK(!"on a GPU")
#else
/* The numbers of parts begin anew with the second part, and the units hold some of those that come then. */
static void set_pushes(void)
{
	struct gdri_team *t = &gdri_dev_state->teams[team];
	uint64_t units = (uint64_t)t->n * t->ctas_size / 4, *count = t->ctas;

	CHECK(t->n == 1 || t->ctas_size);
	for (uint32_t b = 0; b < t->ctas_blocks; b++) {
		*count = 0xfffffffe;
		count += GDRI_CTAS_HEAD;
		for (uint64_t k = 0; k < units; k++, count += 2)
			count[0] = count[1] = (k % 32 + 1) << 32 | 0xdead;
	}
	CHECK_OK(gdr_barrier_all());
}
#endif

int main(int argc, char **argv)
{
	int wrap = argc > 1 && !strcmp(argv[1], "wrap");
	uint32_t *longs[2];
	int list[COLL_MAX_PES];
	gdr_team_t some;

	multi_begin();
	CHECK(multi_n <= COLL_MAX_PES);
	next = (multi_pe + 1) % multi_n;
	prev = (multi_pe + multi_n - 1) % multi_n;
	src = (uint8_t *)gdr_malloc(AREA);
	dst = (uint8_t *)gdr_malloc(AREA * AREAS);
	sig = (uint64_t *)gdr_calloc(2, sizeof(*sig));
	image = (uint8_t *)malloc(AREA * AREAS);
	host = (uint32_t *)malloc(LONG * sizeof(*host));
	for (int i = 0; i < 2; i++)
		longs[i] = (uint32_t *)gdr_malloc(LONG * sizeof(uint32_t));
	CHECK(src && dst && sig && image && host && longs[0] && longs[1]);
	CHECK_OK(gdr_stream_create(&stream));
	set_team(GDR_TEAM_WORLD);
	all_types();
	nothing();
	refused();
	if (wrap)
		set_pushes();
	much(longs[0], longs[1], LONG);
	if (wrap)
		set_pushes();
	much(longs[0], longs[1], LONG / 3 - 5);
	coll_choose(3, list, multi_n, multi_n);
	CHECK_OK(gdr_team_create(GDR_TEAM_WORLD, list, (multi_n + 1) / 2, NULL, 0, &some));
	if (some != GDR_TEAM_INVALID) {
		set_team(some);
		much(longs[0], longs[1], LONG);
		CHECK_OK(gdr_team_destroy(some));
	}
	CHECK_OK(gdr_stream_destroy(stream));
	free(image);
	free(host);
	return multi_end("on_stream");
}
