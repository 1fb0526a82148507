/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr/gdr.hpp: each function by each type does what that of C does; owners end what they own, once. `refused`: the
 * checked build says which line of the program was refused. */
#include "tests/multi/multi.h"
#include <gdr/gdr.hpp>
#include <type_traits>
#include <utility>

static_assert(!std::is_copy_constructible_v<gdr::job> && !std::is_copy_constructible_v<gdr::team> &&
	      !std::is_copy_constructible_v<gdr::object<int>>, "each has one owner");
static_assert(std::is_nothrow_move_constructible_v<gdr::object<int>> && std::is_nothrow_move_assignable_v<gdr::team>,
	      "which may change");
static_assert(!std::is_move_constructible_v<gdr::job>, "but that of the job");

struct triple {
	float x;
	short y;
	char z[5];
};

struct cpp {
	unsigned char *words; /* two slots of 16 bytes, of which this PE's neighbour writes the first */
	struct triple *triples; /* [2] */
	uint64_t *sig;
	struct multi_report *report;
	int next, prev;
};

/* The slot of this PE at the next one has one writer: what was put there, atomics find. */
template <typename T> GDR_DEVICE void move(const struct cpp *a, unsigned lane)
{
	T *w = (T *)a->words, *mine = w + 16 / sizeof(T), *dst = mine, v = (T)(gdr_my_pe() + 3);

	*mine = v;
	gdr_sync_warp(0xffffffffu);
	EXPECT_OK(a->report, gdr::put_warp(w, mine, 1, a->next));
	if (lane == 0) {
		EXPECT_OK(a->report, gdr_barrier_all());
		EXPECT_EQ(a->report, *w, (T)(a->prev + 3));
		EXPECT_OK(a->report, gdr_barrier_all());
		EXPECT_OK(a->report, gdr::p(w, (T)(gdr_my_pe() + 5), a->next));
		EXPECT_OK(a->report, gdr_quiet());
		EXPECT_EQ(a->report, gdr::g(w, a->next), (T)(gdr_my_pe() + 5));
		EXPECT_OK(a->report, gdr::put_nbi(w, dst, 1, a->next));
		EXPECT_OK(a->report, gdr_quiet());
		EXPECT_OK(a->report, gdr::get(mine, w, 1, a->next));
		EXPECT_EQ(a->report, *mine, v);
		EXPECT_OK(a->report, gdr_barrier_all());
	}
	gdr_sync_warp(0xffffffffu);
}

template <typename T> GDR_DEVICE void count(const struct cpp *a)
{
	T *w = (T *)a->words, *old = w + 16 / sizeof(T);
	int pe = a->next;

	EXPECT_OK(a->report, gdr::atomic_set(w, 5, pe));
	EXPECT_EQ(a->report, gdr::atomic_fetch_add(w, 3, pe), 5);
	EXPECT_OK(a->report, gdr::atomic_add(w, 1, pe));
	EXPECT_OK(a->report, gdr::atomic_inc(w, pe));
	EXPECT_EQ(a->report, gdr::atomic_fetch_inc(w, pe), 10);
	EXPECT_EQ(a->report, gdr::atomic_fetch(w, pe), 11);
	EXPECT_EQ(a->report, gdr::atomic_fetch_max(w, 20, pe), 11);
	EXPECT_OK(a->report, gdr::atomic_min(w, 7, pe));
	EXPECT_EQ(a->report, gdr::atomic_swap(w, 30, pe), 7);
	EXPECT_EQ(a->report, gdr::atomic_compare_swap(w, 30, 31, pe), 30);
	EXPECT_OK(a->report, gdr::atomic_fetch_add_nbi(old, w, 1, pe));
	EXPECT_OK(a->report, gdr_quiet());
	EXPECT_EQ(a->report, *old, 31);
	EXPECT_EQ(a->report, gdr::g(w, pe), 32);
}

template <typename T> GDR_DEVICE void bits(const struct cpp *a)
{
	T *w = (T *)a->words;
	int pe = a->next;

	EXPECT_OK(a->report, gdr::atomic_set(w, 12, pe));
	EXPECT_EQ(a->report, gdr::atomic_fetch_or(w, 3, pe), 12);
	EXPECT_EQ(a->report, gdr::atomic_fetch_and(w, 6, pe), 15);
	EXPECT_EQ(a->report, gdr::atomic_fetch_xor(w, 3, pe), 6);
	EXPECT_EQ(a->report, gdr::atomic_fetch(w, pe), 5);
}

/* The one before puts 9 behind a barrier. */
template <typename T> GDR_DEVICE void wait(const struct cpp *a)
{
	T *w = (T *)a->words;

	EXPECT_OK(a->report, gdr::p(w, (T)4, a->next));
	EXPECT_OK(a->report, gdr_barrier_all());
	EXPECT_EQ(a->report, gdr::test(w, GDR_CMP_EQ, 4), 1);
	EXPECT_EQ(a->report, gdr::wait_until_for(w, GDR_CMP_GT, 4, 1000000), -GDR_ETIMEOUT);
	EXPECT_OK(a->report, gdr_barrier_all());
	EXPECT_OK(a->report, gdr::p(w, (T)9, a->next));
	EXPECT_OK(a->report, gdr::wait_until(w, GDR_CMP_GT, 4));
	EXPECT_EQ(a->report, gdr::test(w, GDR_CMP_EQ, 9), 1);
	EXPECT_OK(a->report, gdr_barrier_all());
}

/* What has no name of C: a struct, with its signal. */
GDR_DEVICE void send(const struct cpp *a)
{
	struct triple t = {(float)gdr_my_pe(), 2, {1, 2, 3, 4, 5}}, back = {0, 0, {0}};

	a->triples[1] = t;
	EXPECT_OK(a->report, gdr::put_signal(a->triples, a->triples + 1, 1, a->sig, 1, GDR_SIGNAL_ADD, a->next));
	EXPECT_OK(a->report, gdr_signal_wait_until_from(a->sig, GDR_CMP_GE, 1, a->prev));
	EXPECT_EQ(a->report, a->triples->x, a->prev);
	EXPECT_EQ(a->report, a->triples->z[4], 5);
	EXPECT_OK(a->report, gdr::get(a->triples + 1, a->triples, 1, a->next));
	back = a->triples[1];
	EXPECT_EQ(a->report, back.x, gdr_my_pe());
	EXPECT_OK(a->report, gdr_barrier_all());
}

#define MOVE(name, T) move<T>(&a, gdr_thread_id());
#define COUNT(name, T) count<T>(&a);
#define BITS(name, T) bits<T>(&a);
#define WAIT(name, T) wait<T>(&a);
GDR_KERNEL(by_type, struct cpp, a)
{
	GDRI_CPP_TYPES(MOVE)
	if (gdr_thread_id())
		return;
	GDR_LANGUAGE_TYPES(COUNT)
	GDR_FLOAT_TYPES(COUNT)
	GDR_LANGUAGE_TYPES(BITS)
	EXPECT_OK(a.report, gdr_barrier_all());
	GDRI_CPP_WAIT_TYPES(WAIT)
	send(&a);
}

#ifdef GDR_CHECKED
enum { REFUSED_LINE = __LINE__ + 3 };
GDR_KERNEL(refuse, struct cpp, a)
{
	EXPECT_EQ(a.report, gdr::put(a.triples, a.triples + 1, 1, 99), -GDR_EINVAL);
}

/* So many elements that their bytes, beyond 64 bits, would be those of one or two. */
GDR_KERNEL(too_many, struct cpp, a)
{
	size_t n = SIZE_MAX / sizeof(*a.sig) + 2;

	EXPECT_EQ(a.report, gdr::put(a.sig, a.sig, n, 0), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr::get_nbi(a.sig, a.sig, n, 0), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr::put_signal(a.sig, a.sig, n, a.sig, 1, GDR_SIGNAL_SET, 0), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr::broadcast(GDR_TEAM_WORLD, a.sig, a.sig, n, 0), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr::fcollect(GDR_TEAM_WORLD, a.sig, a.sig, n), -GDR_EINVAL);
	EXPECT_EQ(a.report, gdr::alltoall(GDR_TEAM_WORLD, a.sig, a.sig, n), -GDR_EINVAL);
}
#endif

static void owners(void)
{
	int before = gdr_heap_list(NULL, 0);
	{
		gdr::object<double> first(10), second, none(0);
		double *at = first.get();

		CHECK(first && first.size() == 10 && !second && !none && none.status() == 0);
		CHECK_EQ(gdr_heap_list(NULL, 0), before + 1);
		second = std::move(first);
		CHECK(!first && second.get() == at && second.size() == 10 && first.size() == 0);
		gdr::object<double> third(std::move(second));
		CHECK(third.get() == at);
		second = gdr::object<double>(5);
		CHECK_EQ(gdr_heap_list(NULL, 0), before + 2);
		second = std::move(third);
		CHECK_EQ(gdr_heap_list(NULL, 0), before + 1);
		CHECK_OK(second.reset());
		CHECK_OK(second.reset());
		CHECK_EQ(gdr_heap_list(NULL, 0), before);
		third = gdr::object<double>(5);
		CHECK_EQ(gdr_heap_list(NULL, 0), before + 1);
	}
	CHECK_EQ(gdr_heap_list(NULL, 0), before);
	for (int i = 0; i < 100; i++) { /* more than there may be at a time */
		gdr::team even = gdr::team::split_strided(GDR_TEAM_WORLD, 0, 1, (multi_n + 1) / 2);

		CHECK_OK(even.status());
		CHECK_EQ((bool)even, multi_pe < (multi_n + 1) / 2);
		CHECK_EQ(even.my_pe(), even ? multi_pe : -1);
	}
	for (int i = 0; i < 200; i++) {
		gdr::context c(GDR_CTX_GPU);

		CHECK_OK(c.status());
		CHECK(c && c.id() != GDR_CTX_DEFAULT);
	}
}

struct alignas(1024) page {
	char c[1024];
};

/* Wherever objects that need less lie between, and whatever was there before. */
static void aligned(void)
{
	gdr::object<char> between[4];
	gdr::object<page> pages[4];
	page seen;

	{
		gdr::object<page> before(16);

		multi_fill(before.get(), 1, before.size() * sizeof(page));
	}
	for (int i = 0; i < 4; i++) {
		between[i] = gdr::object<char>(1);
		pages[i] = gdr::object<page>(1);
		CHECK(between[i] && pages[i]);
		CHECK_EQ((uintptr_t)pages[i].get() % alignof(page), 0);
		CHECK_OK(gdr_memcpy(&seen, pages[i].get(), sizeof(seen)));
		for (char c : seen.c)
			CHECK_EQ(c, 0);
	}
}

/* gdr_team_destroy ends the team's contexts, whose numbers are given out again. */
static void context_of_team(void)
{
	gdr::team all = gdr::team::split_strided(GDR_TEAM_WORLD, 0, 1, multi_n);
	gdr::context first(GDR_CTX_GPU, all.id()), second(GDR_CTX_GPU, all.id());
	gdr_team_t of;

	CHECK(first && second);
	CHECK_OK(all.reset());
	gdr::context later(GDR_CTX_GPU), last(GDR_CTX_GPU);
	CHECK_EQ(later.id(), first.id());
	CHECK_EQ(last.id(), second.id());
	CHECK_OK(first.reset());
	gdr::context moved(std::move(second));
	CHECK_OK(moved.reset());
	CHECK_OK(gdr_ctx_get_team(later.id(), &of));
	CHECK_OK(gdr_ctx_get_team(last.id(), &of));
	moved = std::move(last);
	CHECK_OK(moved.reset());
}

/* What C's gdr_finalize ended, the next job does not have. */
static void ended_by_c(void)
{
	gdr::job ended;
	gdr::object<long> object(8);
	gdr::context context(GDR_CTX_GPU);

	CHECK(ended && object && context);
	CHECK_OK(gdr_finalize());
	gdr::job next;
	gdr::object<long> own(8);
	gdr::context own_context(GDR_CTX_GPU);
	gdr_team_t of;

	CHECK(next && own && own_context);
	CHECK_OK(object.reset());
	CHECK_OK(context.reset());
	CHECK_EQ(gdr_heap_list(NULL, 0), 1);
	CHECK_OK(gdr_ctx_get_team(own_context.id(), &of));
	CHECK_OK(ended.finalize());
	CHECK_EQ(gdr_host_my_pe(), multi_pe);
}

int main(int argc, char **argv)
{
	gdr::job job;
	struct cpp a;

	CHECK_OK(job.status());
	multi_pe = job.my_pe();
	multi_n = job.n_pes();
	{
		gdr::object<unsigned char> words(32);
		gdr::object<struct triple> triples(2);
		gdr::object<uint64_t> sig(1);

		CHECK(words && triples && sig);
		a = {words.get(), triples.get(), sig.get(), multi_report_new(), (multi_pe + 1) % multi_n,
		     (multi_pe + multi_n - 1) % multi_n};
#ifdef GDR_CHECKED
		if (argc == 2 && !strcmp(argv[1], "refused")) {
			struct gdr_error e;
			char where[64];

			snprintf(where, sizeof(where), "cpp_by_type.cpp:%d", REFUSED_LINE);
			RUN(refuse, 1, 1, &a);
			CHECK(gdr_errors(&e, 1) == 1 && strstr(e.text, where));
			return 0;
		}
		if (argc == 2 && !strcmp(argv[1], "too_many")) {
			RUN(too_many, 1, 1, &a);
			return 0;
		}
#else
		(void)argc;
		(void)argv;
#endif
		RUN(by_type, 1, 32, &a);
		owners();
		aligned();
		context_of_team();
		multi_shared_free(a.report);
	}
	CHECK_EQ(gdr_errors(NULL, 0), 0);
	gdr::object<long> left(8); /* which gdr_finalize ends, with the heap */
	gdr::team all = gdr::team::split_strided(GDR_TEAM_WORLD, 0, 1, multi_n);
	gdr::context ctx(0, GDR_TEAM_WORLD);
	CHECK(left && all && ctx);
	CHECK_OK(job.finalize());
	CHECK_OK(job.finalize());
	CHECK_OK(all.reset());
	CHECK_OK(ctx.reset());
	gdr::object<long> moved = std::move(left);
	{
		gdr::job next;
		gdr::object<long> own(8);

		CHECK(next && own);
		CHECK_OK(moved.reset()); /* not `own`, which has its address */
		CHECK_OK(own.reset());
	}
	ended_by_c();
	if (multi_pe == 0)
		printf("cpp_by_type: all right on %d PEs\n", multi_n);
	return 0;
}
