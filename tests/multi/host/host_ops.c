/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of host threads by type (gdr/host_ops.h), but for collectives, of every type and size, from local memory
 * that is neither in the heap nor registered. All looks at own memory are transfers: it may be a GPU's. C and C++. */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#include <gdr/host_ops.h>

#define MS 1000000ull
#define SEED(pe) ((uint64_t)(pe) * 7 + 3)

static int next, prev;
static uint8_t *heap; /* AREA bytes of it are an operation's */
static uint64_t *word; /* the last 64 bytes */
enum { AREA = 1024, N = 8 };

static void zero_all(void)
{
	CHECK_OK(gdr_barrier_all());
	multi_fill(heap, 0, AREA);
	CHECK_OK(gdr_barrier_all());
}

static void zero_word(void)
{
	CHECK_OK(gdr_barrier_all());
	multi_fill(word, 0, 64);
	CHECK_OK(gdr_barrier_all());
}

/* N elements that PE pe sends: numbers in any floating format, of which none is a NaN. */
static void make(uint8_t *v, size_t size, int pe)
{
	for (size_t i = 0; i < N * size; i++)
		v[i] = (uint8_t)((multi_byte(SEED(pe), i) & 0x3f) | 1);
}

/* The own objects' element at. */
static void own_is(size_t at, const uint8_t *v, size_t size, size_t n)
{
	uint8_t got[N * 16];

	CHECK_OK(gdr_host_get(got, heap + at * size, n * size, multi_pe));
	CHECK(!multi_differ(got, v, n * size));
}

#define AT(i, T, E) ((T *)(void *)(heap + (i) * (E)))
/* pre and z: of the name; T void or the type, E its bytes. */
#define MOVE(name, pre, z, T, E)                                                                   \
	static void move_##name(void)                                                              \
	{                                                                                          \
		uint8_t v[N * 16], from[N * 16], got[N * 16];                                      \
		T *o = (T *)(void *)heap;                                                          \
                                                                                                   \
		make(v, E, multi_pe);                                                              \
		make(from, E, prev);                                                               \
		zero_all();                                                                        \
		CHECK_OK(gdr_host_##pre##put##z(o, (T *)(void *)v, 2, next));                      \
		CHECK_OK(gdr_host_##pre##put##z##_nbi(AT(2, T, E), (T *)(void *)(v + 2 * (E)), 3, next)); \
		CHECK_OK(gdr_host_##pre##iput##z(AT(16, T, E), (T *)(void *)v, 2, 3, 3, next));    \
		CHECK_OK(gdr_host_##pre##put##z##_signal(AT(24, T, E), (T *)(void *)v, N, word, 2, \
							 GDR_SIGNAL_ADD, next));                   \
		CHECK_OK(gdr_host_##pre##put##z##_signal_nbi(AT(32, T, E), (T *)(void *)v, N, word, 3, \
							     GDR_SIGNAL_ADD, next));               \
		CHECK_OK(gdr_host_signal_wait_until(word, GDR_CMP_EQ, 5));                         \
		own_is(24, from, E, N);                                                            \
		own_is(32, from, E, N);                                                            \
		CHECK_OK(gdr_barrier_all());                                                       \
		own_is(0, from, E, 5);                                                             \
		for (size_t i = 0; i < 3; i++)                                                     \
			own_is(16 + 2 * i, from + 3 * i * (E), E, 1);                              \
		memset(got, 0, sizeof(got));                                                       \
		CHECK_OK(gdr_host_##pre##get##z((T *)(void *)got, o, 2, next));                    \
		CHECK_OK(gdr_host_##pre##get##z##_nbi((T *)(void *)(got + 2 * (E)), AT(2, T, E), 3, next)); \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK(!multi_differ(got, v, 5 * (E)));                                             \
		memset(got, 0, sizeof(got));                                                       \
		CHECK_OK(gdr_host_##pre##iget##z((T *)(void *)got, AT(16, T, E), 3, 2, 3, next));  \
		for (size_t i = 0; i < 3; i++)                                                     \
			CHECK(!multi_differ(got + 3 * i * (E), v + 3 * i * (E), E));               \
		zero_word();                                                                       \
	}

/* Blocks of 2 elements, 3 of them; the last ones first. */
#define BLOCKS(name, pre, z, T, E)                                                                 \
	static void blocks_##name(void)                                                            \
	{                                                                                          \
		uint8_t v[N * 16], from[N * 16], got[N * 16];                                      \
		T *o = (T *)(void *)heap;                                                          \
                                                                                                   \
		make(v, E, multi_pe);                                                              \
		make(from, E, prev);                                                               \
		zero_all();                                                                        \
		CHECK_OK(gdr_host_##pre##ibput##z(o, (T *)(void *)v, 4, 3, 2, 3, next));           \
		CHECK_OK(gdr_host_##pre##ibput##z(AT(20, T, E), (T *)(void *)v, -2, 2, 2, 3, next)); \
		CHECK_OK(gdr_host_##pre##ibput##z(AT(30, T, E), (T *)(void *)v, 2, 2, 2, 3, next)); \
		CHECK_OK(gdr_barrier_all());                                                       \
		for (size_t i = 0; i < 3; i++) {                                                   \
			own_is(4 * i, from + 3 * i * (E), E, 2);                                   \
			own_is(20 - 2 * i, from + 2 * i * (E), E, 2);                              \
		}                                                                                  \
		own_is(30, from, E, 6);                                                            \
		memset(got, 0, sizeof(got));                                                       \
		own_is(2, got, E, 2);                                                              \
		CHECK_OK(gdr_host_##pre##ibget##z((T *)(void *)got, o, 3, 4, 2, 3, next));         \
		for (size_t i = 0; i < 3; i++)                                                     \
			CHECK(!multi_differ(got + 3 * i * (E), v + 3 * i * (E), 2 * (E)));         \
		CHECK(got[2 * (E)] == 0);                                                          \
	}

#define BLOCKS_TYPE(name, T) BLOCKS(name, name##_, , T, sizeof(T))
#define BLOCKS_SIZE(bits, bytes) BLOCKS(bits, , bits, void, bytes)
GDRI_HOST_RMA_TYPES(BLOCKS_TYPE)
GDR_RMA_SIZES(BLOCKS_SIZE)

/* Blocks that no queue's entry holds, from memory that a NIC does not know, and within the heap. */
static void long_blocks(void)
{
	enum { B = 8, BLOCKS = 3 };
	uint64_t v[2 * B * BLOCKS], got[2 * B * BLOCKS] = {0}, *o = (uint64_t *)(void *)heap, *back = o + B * BLOCKS;

	for (uint64_t i = 0; i < 2 * B * BLOCKS; i++)
		v[i] = SEED(multi_pe) + i;
	zero_all();
	CHECK_OK(gdr_host_uint64_ibput(o, v, B, 2 * B, B, BLOCKS, next));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_host_uint64_ibget(got, o, 2 * B, B, B, BLOCKS, next));
	CHECK_OK(gdr_host_uint64_ibget(back, o, 2 * B, B, B, BLOCKS, next));
	for (uint64_t i = 0; i < 2 * B * BLOCKS; i++)
		CHECK_EQ(got[i], i / B % 2 ? 0 : v[i]);
	CHECK_OK(gdr_host_uint64_get(got, back, 2 * B * BLOCKS - B, multi_pe));
	for (uint64_t i = 0; i < 2 * B * BLOCKS - B; i++)
		CHECK_EQ(got[i], i / B % 2 ? 0 : v[i]);
	CHECK_OK(gdr_host_uint64_ibput(NULL, NULL, 5, 5, 0, 3, 0));
	CHECK_OK(gdr_host_uint64_ibput(NULL, NULL, 5, 5, 3, 0, 0));
	CHECK_EQ(gdr_host_uint64_ibput(o, v, 1, 1, SIZE_MAX / 4, 1, 0), -GDR_EINVAL);
	said_begin();
	CHECK_EQ(gdr_host_uint64_ibget(v, o, 1, 1ll << 40, 2, 3, 0), -GDR_EINVAL);
	said_expect("gdr_host_TYPE_ibget: source", NULL);
	CHECK(strstr(said_buf, ", 3 blocks of 2 elements of 8 bytes with a stride of 1099511627776, is not in"));
}

#define MOVE_TYPE(name, T) MOVE(name, name##_, , T, sizeof(T))
#define MOVE_SIZE(bits, bytes) MOVE(bits, , bits, void, bytes)
GDRI_HOST_RMA_TYPES(MOVE_TYPE)
GDR_RMA_SIZES(MOVE_SIZE)

/* Bytes: what gdr/host.h has not. */
static void move_bytes(void)
{
	uint8_t v[N], from[N];

	make(v, 1, multi_pe);
	make(from, 1, prev);
	zero_all();
	CHECK_OK(gdr_host_put_signal(heap + 3, v, N, word, 1, GDR_SIGNAL_SET, next));
	CHECK_OK(gdr_host_signal_wait_until(word, GDR_CMP_EQ, 1));
	own_is(3, from, 1, N);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_host_put_signal_nbi(heap + 13, v, N, word, 1, GDR_SIGNAL_ADD, next));
	CHECK_OK(gdr_host_signal_wait_until_for(word, GDR_CMP_EQ, 2, 5000 * MS));
	own_is(13, from, 1, N);
	zero_word();
}

/* Long ones, over the buffers of the library. */
static void moved_in_parts(void)
{
	enum { LONG = 300000 };
	uint64_t *o = (uint64_t *)gdr_calloc(LONG, 8), *v = (uint64_t *)malloc(LONG * 8);

	CHECK(o && v);
	for (uint64_t i = 0; i < LONG; i++)
		v[i] = multi_hash(i + SEED(multi_pe));
	CHECK_OK(gdr_host_uint64_put_signal(o, v, LONG, word, 1, GDR_SIGNAL_SET, next));
	CHECK_OK(gdr_host_uint64_wait_until(word, GDR_CMP_EQ, 1));
	CHECK_OK(gdr_host_uint64_get(v, o, LONG, multi_pe));
	for (uint64_t i = 0; i < LONG; i++)
		CHECK(v[i] == multi_hash(i + SEED(prev)));
	free(v);
	zero_word();
	CHECK_OK(gdr_free(o));
}

#define SCALAR(name, T)                                                                            \
	static void scalar_##name(void)                                                            \
	{                                                                                          \
		uint8_t v[N * 16], from[N * 16];                                                   \
		size_t bytes = strcmp(#name, "longdouble") ? sizeof(T) : 10;                       \
		T *o = (T *)(void *)heap, one;                                                     \
                                                                                                   \
		make(v, sizeof(T), multi_pe);                                                      \
		make(from, sizeof(T), prev);                                                       \
		if (bytes == 10) /* a normal number */                                             \
			v[7] = from[7] = 0x80;                                                     \
		memcpy((void *)&one, v, sizeof(T));                                                \
		zero_all();                                                                        \
		CHECK_OK(gdr_host_##name##_p(o + 1, one, next));                                   \
		CHECK_OK(gdr_barrier_all());                                                       \
		memset((void *)&one, 0, sizeof(T));                                                \
		one = gdr_host_##name##_g(o + 1, multi_pe);                                        \
		CHECK(!multi_differ(&one, from, bytes));                                           \
		one = gdr_host_##name##_g(o + 1, next);                                            \
		CHECK(!multi_differ(&one, v, bytes));                                              \
	}
GDRI_HOST_RMA_TYPES(SCALAR)

/* Each PE has a word that the previous one alone works on. */
#define AMO_NUMBER(name, T)                                                                        \
	static void amo_##name(T *o)                                                               \
	{                                                                                          \
		CHECK_OK(gdr_host_##name##_atomic_set(o, (T)5, next));                             \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch(o, next), 5);                              \
		CHECK_OK(gdr_host_##name##_atomic_add(o, (T)3, next));                             \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_add(o, (T)2, next), 8);                    \
		CHECK_OK(gdr_host_##name##_atomic_inc(o, next));                                   \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_inc(o, next), 11);                         \
		CHECK_EQ(gdr_host_##name##_atomic_swap(o, (T)7, next), 12);                        \
		CHECK_EQ(gdr_host_##name##_atomic_compare_swap(o, (T)7, (T)9, next), 7);           \
		CHECK_EQ(gdr_host_##name##_atomic_compare_swap(o, (T)7, (T)1, next), 9);           \
		CHECK_OK(gdr_host_##name##_atomic_max(o, (T)11, next));                            \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_max(o, (T)6, next), 11);                   \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_max(o, (T)12, next), 11);                  \
		CHECK_OK(gdr_host_##name##_atomic_min(o, (T)4, next));                             \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_min(o, (T)3, next), 4);                    \
		CHECK_EQ(gdr_host_##name##_atomic_fetch(o, next), 3);                              \
	}
#define AMO_BITS(name, T)                                                                          \
	static void bits_##name(T *o)                                                              \
	{                                                                                          \
		CHECK_OK(gdr_host_##name##_atomic_or(o, (T)4, next));                              \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_or(o, (T)8, next), 7);                     \
		CHECK_OK(gdr_host_##name##_atomic_and(o, (T)13, next));                            \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_and(o, (T)6, next), 13);                   \
		CHECK_OK(gdr_host_##name##_atomic_xor(o, (T)6, next));                             \
		CHECK_OK(gdr_host_quiet());                                                        \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_xor(o, (T)1, next), 2);                    \
		CHECK_EQ(gdr_host_##name##_atomic_fetch(o, next), 3);                              \
	}
/* The old values go to `to`, which a NIC knows (of the heap) or not. */
#define NBI(name, ...)                                                                             \
	CHECK_OK(gdr_host_##name##_atomic_##__VA_ARGS__);                                          \
	CHECK_OK(gdr_host_quiet())
#define NBI_NUMBER(name, T)                                                                        \
	static void nbi_##name(T *o, T *to)                                                        \
	{                                                                                          \
		T old[9];                                                                          \
                                                                                                   \
		CHECK_OK(gdr_host_##name##_atomic_set(o, (T)5, next));                             \
		CHECK_OK(gdr_host_quiet());                                                        \
		memset(old, 0, sizeof(old));                                                       \
		NBI(name, fetch_nbi(to, o, next));                                                 \
		NBI(name, fetch_add_nbi(to + 1, o, (T)2, next));                                   \
		NBI(name, fetch_inc_nbi(to + 2, o, next));                                         \
		NBI(name, swap_nbi(to + 3, o, (T)6, next));                                        \
		NBI(name, compare_swap_nbi(to + 4, o, (T)6, (T)9, next));                          \
		NBI(name, compare_swap_nbi(to + 5, o, (T)6, (T)1, next));                          \
		NBI(name, fetch_max_nbi(to + 6, o, (T)11, next));                                  \
		NBI(name, fetch_min_nbi(to + 7, o, (T)3, next));                                   \
		NBI(name, fetch_nbi(to + 8, o, next));                                             \
		CHECK_OK(gdr_memcpy(old, to, sizeof(old)));                                        \
		CHECK(old[0] == 5 && old[1] == 5 && old[2] == 7 && old[3] == 8 && old[4] == 6);    \
		CHECK(old[5] == 9 && old[6] == 9 && old[7] == 11 && old[8] == 3);                  \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_add_nbi(NULL, o, (T)1, next), -GDR_EINVAL); \
		CHECK_EQ(gdr_host_##name##_atomic_fetch_add_nbi(to, o, (T)1, multi_n), -GDR_EINVAL); \
		CHECK_EQ(gdr_host_##name##_atomic_fetch(o, next), 3);                              \
	}
#define NBI_BITS(name, T)                                                                          \
	static void nbi_bits_##name(T *o, T *to)                                                   \
	{                                                                                          \
		T old[3];                                                                          \
                                                                                                   \
		memset(old, 0, sizeof(old));                                                       \
		NBI(name, fetch_or_nbi(to, o, (T)8, next));                                        \
		NBI(name, fetch_and_nbi(to + 1, o, (T)10, next));                                  \
		NBI(name, fetch_xor_nbi(to + 2, o, (T)3, next));                                   \
		CHECK_OK(gdr_memcpy(old, to, sizeof(old)));                                        \
		CHECK(old[0] == 3 && old[1] == 11 && old[2] == 10);                                \
		CHECK_EQ(gdr_host_##name##_atomic_fetch(o, next), 9);                              \
	}
GDR_AMO_TYPES(AMO_NUMBER)
GDR_FLOAT_TYPES(AMO_NUMBER)
GDR_AMO_TYPES(AMO_BITS)
GDR_AMO_TYPES(NBI_NUMBER)
GDR_FLOAT_TYPES(NBI_NUMBER)
GDR_AMO_TYPES(NBI_BITS)

/* A word with 0: what is put comes, and waits tell a number below 0 from a great one. */
#define WAIT(name, T)                                                                              \
	static void wait_##name(void)                                                              \
	{                                                                                          \
		T *o = (T *)(void *)heap;                                                          \
		const int is_signed = GDRI_CLASS(T) == (unsigned)GDRI_C_SIGNED;                    \
                                                                                                   \
		zero_all();                                                                        \
		CHECK_EQ(gdr_host_##name##_test(o, GDR_CMP_EQ, 9), 0);                             \
		CHECK_EQ(gdr_host_##name##_wait_until_for(o, GDR_CMP_GT, 0, MS), -GDR_ETIMEOUT);   \
		CHECK_OK(gdr_barrier_all());                                                       \
		CHECK_OK(gdr_host_##name##_p(o + 1, (T)-3, next));                                 \
		CHECK_OK(gdr_host_fence());                                                        \
		CHECK_OK(gdr_host_##name##_p(o, 9, next));                                         \
		CHECK_OK(gdr_host_##name##_wait_until(o, GDR_CMP_EQ, 9));                          \
		CHECK_EQ(gdr_host_##name##_test(o, GDR_CMP_EQ, 9), 1);                             \
		CHECK_EQ(gdr_host_##name##_test(o, GDR_CMP_LE, 8), 0);                             \
		CHECK_EQ(gdr_host_##name##_test(o + 1, GDR_CMP_LT, 5), is_signed);                 \
		CHECK_EQ(gdr_host_##name##_test(o + 1, GDR_CMP_GT, (T)-4), 1);                     \
		CHECK_OK(gdr_host_##name##_wait_until_for(o, GDR_CMP_EQ, 9, 0));                   \
		CHECK_EQ(gdr_host_##name##_wait_until(o, 6, 9), -GDR_EINVAL);                      \
	}
GDR_WAIT_TYPES(WAIT)

static void signals(void)
{
	zero_word();
	CHECK_OK(gdr_host_signal_set(word, 5, next));
	CHECK_OK(gdr_host_fence());
	CHECK_OK(gdr_host_signal_add(word, 6, next));
	CHECK_OK(gdr_host_fence());
	CHECK_OK(gdr_host_signal_op(word, 7, GDR_SIGNAL_ADD, next));
	CHECK_OK(gdr_host_signal_wait_until(word, GDR_CMP_EQ, 18));
	CHECK_OK(gdr_host_signal_wait_until_for(word, GDR_CMP_GE, 18, MS));
	CHECK_EQ(gdr_host_signal_wait_until_for(word, GDR_CMP_GT, 18, MS), -GDR_ETIMEOUT);
	CHECK_EQ(gdr_host_signal_wait_until(word, -1, 18), -GDR_EINVAL);
	zero_word();
}

struct beside_args {
	uint64_t *counter;
	struct multi_report *report;
};

GDR_KERNEL(beside, struct beside_args, a)
{
	for (int i = 0; i < 50; i++)
		EXPECT_OK(a.report, gdr_uint64_atomic_add(a.counter, 1, 0));
	EXPECT_OK(a.report, gdr_quiet());
}

/* Atomics of host threads are atomic to those of kernels, by every path to PE 0. */
static void together(void)
{
	struct beside_args a = {word, multi_report_new()};

	zero_word();
	CHECK_OK(gdr_launch(beside, 2, 32, 0, NULL, &a));
	for (int i = 0; i < 50; i++) {
		CHECK_OK(gdr_host_uint64_atomic_add(word, 1, 0));
		gdr_host_uint64_atomic_fetch_add(word, 1, 0);
	}
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(a.report->line, 0);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(gdr_host_uint64_atomic_fetch(word, 0), (uint64_t)multi_n * (64 * 50 + 100));
	multi_shared_free(a.report);
	zero_word();
}

/* Elements of 8 bytes that are aligned to 4, as a complex of floats is: what is moved lies anywhere. */
static void moved_anywhere(void)
{
	uint8_t v[N * 8], want[N * 8], got[N * 8];
	gdr_complexf_t *o = (gdr_complexf_t *)(void *)(heap + 4), *mine = (gdr_complexf_t *)(void *)v;

	make(v, 8, multi_pe);
	make(want, 8, prev);
	zero_all();
	CHECK_OK(gdr_host_complexf_put(o, mine, 1, next));
	CHECK_OK(gdr_host_complexf_put_nbi(o + 1, mine + 1, 1, next));
	CHECK_OK(gdr_host_complexf_iput(o + 2, mine + 2, 2, 2, 2, next));
	CHECK_OK(gdr_host_complexf_ibput(o + 3, mine + 3, 2, 2, 1, 2, next));
	CHECK_OK(gdr_host_complexf_put_signal(o + 6, mine + 6, 2, word, 1, GDR_SIGNAL_SET, next));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_host_complexf_get((gdr_complexf_t *)(void *)got, o, N, multi_pe));
	CHECK(!memcmp(got, want, sizeof(want)));
	CHECK_OK(gdr_host_complexf_broadcast(GDR_TEAM_WORLD, o + N, o, N, 0));
	CHECK_OK(gdr_host_complexf_iget((gdr_complexf_t *)(void *)got, o + N, 1, 1, N, multi_pe));
	make(want, 8, multi_n - 1); /* what PE 0 has */
	CHECK(!memcmp(got, want, sizeof(want)));
	zero_word();
}

/* In every build: arguments are checked, and nothing is touched. */
static void refused(void)
{
	const int pes[] = {-1, multi_n, INT32_MIN, INT32_MAX};
	int v = 1, *o = (int *)(void *)heap;
	char *odd = (char *)heap + 1;

	zero_all();
	for (size_t i = 0; i < sizeof(pes) / sizeof(pes[0]); i++) {
		CHECK_EQ(gdr_host_int_p(o, 1, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_int_put_nbi(o, &v, 1, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_int_iget(&v, o, 1, 1, 1, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_int_atomic_add(o, 1, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_put_signal(o, &v, 4, word, 1, GDR_SIGNAL_SET, pes[i]), -GDR_EINVAL);
		CHECK_EQ(gdr_host_signal_set(word, 1, pes[i]), -GDR_EINVAL);
	}
	CHECK_EQ(gdr_host_int_p(&v, 1, 0), -GDR_EINVAL); /* not in the heap */
	CHECK_EQ(gdr_host_int_atomic_inc((int *)(void *)odd, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_put_signal(o, &v, 1, (uint64_t *)(void *)odd, 1, GDR_SIGNAL_SET, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_put(o, NULL, 1, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_put(o, &v, SIZE_MAX / 2, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_iput(o, &v, PTRDIFF_MAX / 4, 1, 3, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_put_signal(o, &v, 1, word, 1, 2, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_signal_op(word, 1, 5, 0), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_wait_until_for(&v, GDR_CMP_EQ, 1, 0), -GDR_EINVAL);
	CHECK_OK(gdr_host_quiet());
	CHECK_EQ(gdr_host_int_g(o, multi_n), 0); /* latched, as what fetches and tests */
	CHECK_EQ(gdr_host_quiet(), -GDR_EINVAL);
	CHECK_EQ(gdr_host_long_atomic_fetch_inc((long *)(void *)&v, 0), 0);
	CHECK_EQ(gdr_host_quiet(), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_test(o, 9, 0), 0);
	CHECK_EQ(gdr_host_quiet(), -GDR_EINVAL);
	CHECK_OK(gdr_host_int_put(NULL, NULL, 0, 0));
	CHECK_OK(gdr_host_int_iput(NULL, NULL, 5, 5, 0, 0));
	zero_word();
}

/* Strided objects that are not in the heap, by as much as wraps: what the caller gave is said. */
static void refused_strides(void)
{
	const ptrdiff_t strides[] = {PTRDIFF_MAX, PTRDIFF_MIN, 1ll << 40, -1};
	int v = 1, *o = (int *)(void *)heap;
	char text[128];

	if (multi_pe != 0)
		return;
	for (size_t i = 0; i < sizeof(strides) / sizeof(strides[0]); i++) {
		size_t n = strides[i] == -1 ? SIZE_MAX / 2 : 3;

		snprintf(text, sizeof(text),
			 ", %zu elements of 4 bytes with a stride of %td, is not in the symmetric heap", n, strides[i]);
		said_begin();
		CHECK_EQ(gdr_host_int_iput(o, &v, strides[i], 1, n, 0), -GDR_EINVAL);
		said_expect(text, NULL);
		said_begin();
		CHECK_EQ(gdr_host_int_iget(&v, o, 1, strides[i], n, 0), -GDR_EINVAL);
		said_expect(text, NULL);
		said_begin();
		CHECK_EQ(gdr_int_iput_on_stream(o, o, strides[i], 1, n, 0, NULL), -GDR_EINVAL);
		said_expect(text, NULL);
	}
	said_begin();
	CHECK_EQ(gdr_host_int_put_signal(o, &v, SIZE_MAX / 2, word, 1, GDR_SIGNAL_SET, 0), -GDR_EINVAL);
	said_expect(" of PE 0 with 9223372036854775807 elements of 4 bytes is not in the symmetric heap, 0x", NULL);
	said_begin();
	CHECK_EQ(gdr_host_int_put_signal(o, &v, 1, NULL, 1, GDR_SIGNAL_SET, 0), -GDR_EINVAL);
	said_expect("signal (nil) of PE 0 with 8 bytes is not in the symmetric heap, 0x", NULL);
	said_begin();
	CHECK_EQ(gdr_host_int_wait_until_for((int *)(void *)word, 99, 1, 0), -GDR_EINVAL);
	said_expect("there is no comparison 99: GDR_CMP_EQ to GDR_CMP_LE are 0 to 5", NULL);
}

/* Numbers that were negative until they became a size_t. */
static void refused_counts(void)
{
	int v = 1, *o = (int *)(void *)heap;
	const size_t n = (size_t)-3;
	uint64_t *w = word;
	gdr_stream_t s = NULL;

	if (multi_pe != 0)
		return;
#define REFUSED_COUNT(call, size)                                                                                    \
	do {                                                                                                         \
		said_begin();                                                                                        \
		CHECK_EQ((call), -GDR_EINVAL);                                                                       \
		said_expect(": a count of -3 (18446744073709551613 without a sign): of " #size                       \
			    " bytes each there can be 0 to ", NULL);                                                 \
	} while (0)
	REFUSED_COUNT(gdr_host_put(o, &v, n, 0), 1);
	REFUSED_COUNT(gdr_host_get_nbi(&v, o, n, 0), 1);
	REFUSED_COUNT(gdr_host_ctx_put(GDR_CTX_DEFAULT, o, &v, n, 0), 1);
	REFUSED_COUNT(gdr_host_int_put(o, &v, n, 0), 4);
	REFUSED_COUNT(gdr_host_int_get_nbi(&v, o, n, 0), 4);
	REFUSED_COUNT(gdr_host_int_iput(o, &v, 1, 1, n, 0), 4);
	REFUSED_COUNT(gdr_host_int_iget(&v, o, 1, 1, n, 0), 4);
	REFUSED_COUNT(gdr_host_int_put_signal(o, &v, n, w, 1, GDR_SIGNAL_SET, 0), 4);
	REFUSED_COUNT(gdr_host_int_wait_until_all(o, n, NULL, GDR_CMP_EQ, 0), 4);
	REFUSED_COUNT(gdr_host_long_sum_reduce(GDR_TEAM_WORLD, (long *)(void *)w, (long *)(void *)w, n), 8);
	REFUSED_COUNT(gdr_host_short_max_reducescatter(GDR_TEAM_WORLD, (short *)(void *)o, (short *)(void *)o, n), 2);
	REFUSED_COUNT(gdr_host_int_broadcast(GDR_TEAM_WORLD, o, o, n, 0), 4);
	REFUSED_COUNT(gdr_host_int_fcollect(GDR_TEAM_WORLD, o, o, n), 4);
	REFUSED_COUNT(gdr_host_int_collect(GDR_TEAM_WORLD, o, o, n), 4);
	REFUSED_COUNT(gdr_host_int_alltoall(GDR_TEAM_WORLD, o, o, n), 4);
	REFUSED_COUNT(gdr_host_int_alltoalls(GDR_TEAM_WORLD, o, o, 1, 1, n), 4);
	REFUSED_COUNT(gdr_int_put_on_stream(o, o, n, 0, s), 4);
	REFUSED_COUNT(gdr_int_sum_reduce_on_stream(GDR_TEAM_WORLD, o, o, n, s), 4);
#undef REFUSED_COUNT
}

/* Within an object of this PE, where the paths would differ. */
static void refused_overlaps(void)
{
	int *o = (int *)(void *)heap;

	CHECK_EQ(gdr_host_int_put(o + 1, o, 2, multi_pe), -GDR_EINVAL);
	CHECK_EQ(gdr_host_put_nbi(o, o + 1, 5, multi_pe), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_get(o, o + 1, 2, multi_pe), -GDR_EINVAL);
	CHECK_EQ(gdr_host_get_nbi(o + 1, o, 5, multi_pe), -GDR_EINVAL);
	CHECK_EQ(gdr_host_int_put_signal(o + 1, o, 2, word, 1, GDR_SIGNAL_SET, multi_pe), -GDR_EINVAL);
	CHECK_EQ(gdr_int_put_on_stream(o + 1, o, 2, multi_pe, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_int_get_on_stream(o, o + 1, 2, multi_pe, NULL), -GDR_EINVAL);
	CHECK_OK(gdr_host_int_put(o, o, 2, multi_pe));
	CHECK_OK(gdr_host_int_get(o + 1, o, 1, multi_pe));
	CHECK_OK(gdr_host_int_iput(o + 1, o, 2, 2, 4, multi_pe)); /* no element lies over one */
	CHECK_OK(gdr_host_quiet());
	zero_all();
}

/* The library's words, before the first object, are no memory of the program's, at either end. A call that is taken
 * all the same copies them onto themselves, or out. */
static void refused_own_words(void)
{
	int v = 0, *o = (int *)(void *)heap, *own = (int *)(void *)(heap - 64);
	char text[128];

	if (multi_pe != 0)
		return;
#define REFUSED(what, call)                                                                                          \
	do {                                                                                                         \
		snprintf(text, sizeof(text), what " bytes is not in the symmetric heap, %p to 0x", (void *)own,      \
			 (void *)heap);                                                                              \
		said_begin();                                                                                        \
		CHECK_EQ((call), -GDR_EINVAL);                                                                       \
		said_expect(text, NULL);                                                                             \
	} while (0)
	REFUSED("gdr_host_put: dst %p of PE 0 with 4", gdr_host_put(own, own, 4, 0));
	REFUSED("gdr_host_get: src %p of PE 0 with 4", gdr_host_get(&v, own, 4, 0));
	REFUSED("gdr_host_put_nbi: dst %p of PE 0 with 64", gdr_host_put_nbi(own, own, 64, 0));
	REFUSED("gdr_host_get_nbi: src %p of PE 0 with 4", gdr_host_get_nbi(&v, own, 4, 0));
	REFUSED("gdr_host_ctx_get: src %p of PE 0 with 4", gdr_host_ctx_get(GDR_CTX_DEFAULT, &v, own, 4, 0));
	REFUSED(": dest %p of PE 0 with 8", gdr_host_int_put(own, own, 2, 0));
	REFUSED(": dest %p of PE 0 with 4", gdr_host_int_p(own, 0, 0));
	REFUSED(": source %p of PE 0 with 4", gdr_int_get_on_stream(o, own, 1, 0, NULL));
	REFUSED(": dest %p of PE 0 with 4", gdr_host_put_signal(own, own, 4, word, 0, GDR_SIGNAL_ADD, 0));
	REFUSED("gdr_host_put: src %p with 4", gdr_host_put(o, own, 4, 0));
	REFUSED("gdr_host_get: dst %p with 4", gdr_host_get(own, o, 4, 0));
	REFUSED(": source %p with 4", gdr_int_put_on_stream(o, own, 1, 0, NULL));
	REFUSED(": source %p with 12", gdr_host_int_iput(o, own, 1, 2, 2, 0));
	REFUSED(": source %p with 4", gdr_host_put_signal(o, own, 4, word, 0, GDR_SIGNAL_ADD, 0));
#undef REFUSED
}

static void outside(void)
{
	int v = 0;

	CHECK_EQ(gdr_host_int_p(&v, 1, 0), -GDR_ESTATE);
	CHECK_EQ(gdr_host_int_g(&v, 0), 0);
	CHECK_EQ(gdr_host_int_wait_until_for(&v, GDR_CMP_EQ, 1, 0), -GDR_ESTATE);
}

#define DO_MOVE(name, T) move_##name();
#define DO_BLOCKS(name, T) blocks_##name();
#define DO_SCALAR(name, T) scalar_##name();
#define DO_WAIT(name, T) wait_##name();
#define DO_AMO(name, T)                                                                            \
	amo_##name((T *)(void *)heap);                                                             \
	nbi_##name((T *)(void *)heap, (T *)(void *)own);                                           \
	nbi_##name((T *)(void *)heap, (T *)(void *)(heap + 64));
#define DO_BITS(name, T)                                                                           \
	DO_AMO(name, T)                                                                            \
	bits_##name((T *)(void *)heap);                                                            \
	nbi_bits_##name((T *)(void *)heap, (T *)(void *)own);

int main(void)
{
	uint64_t own[9];

	outside();
	multi_begin();
	next = (multi_pe + 1) % multi_n;
	prev = (multi_pe + multi_n - 1) % multi_n;
	heap = (uint8_t *)gdr_calloc(1, AREA + 64);
	CHECK(heap);
	word = (uint64_t *)(void *)(heap + AREA);
	GDRI_HOST_RMA_TYPES(DO_MOVE)
	GDR_RMA_SIZES(DO_MOVE)
	GDRI_HOST_RMA_TYPES(DO_BLOCKS)
	GDR_RMA_SIZES(DO_BLOCKS)
	long_blocks();
	move_bytes();
	moved_in_parts();
	moved_anywhere();
	GDRI_HOST_RMA_TYPES(DO_SCALAR)
	GDR_AMO_TYPES(DO_BITS)
	GDR_FLOAT_TYPES(DO_AMO)
	GDR_WAIT_TYPES(DO_WAIT)
	signals();
	together();
	refused();
	refused_strides();
	refused_counts();
	refused_overlaps();
	refused_own_words();
	CHECK_OK(gdr_free(heap));
	return multi_end("host_ops");
}
