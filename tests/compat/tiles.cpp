/* SPDX-License-Identifier: BSD-3-Clause */
/* The collectives of tiles (compat/nvshmemx_tile.h): each against what the elements of all members come to, by thread,
 * warp and block, in both directions, with and without a boundary; what lies around a tile stays as it was. */
#include <nvshmem.h>
#include <nvshmemx.h>

#include "tests/multi/multi.h"

enum { ROWS = 24, COLS = 64, AT = 4 * COLS + 8, BEFORE = -1 };

struct tiles {
	void *from, *to;
	nvshmem_team_t team;
	struct multi_report *report;
};

/* What 16 bits hold exactly, also added up. */
GDR_DEVICE int at_place(int pe, int place)
{
	return (pe + 1) * (place * 5 % 16);
}

GDR_DEVICE int all_of(int op, const struct tiles *a, int place)
{
	int n = nvshmem_team_n_pes(a->team), all = 0;

	for (int i = 0; i < n; i++) {
		int v = at_place(nvshmem_team_translate_pe(a->team, i, NVSHMEM_TEAM_WORLD), place);

		all = !i ? v : op == '+' ? all + v : op == '<' ? (v < all ? v : all) : (v > all ? v : all);
	}
	return all;
}

template <class T> GDR_DEVICE void bring(const struct tiles *a)
{
	nvshmemx_barrier_block(a->team); /* nobody reads any more */
	for (int i = (int)gdr_thread_id(); i < ROWS * COLS; i += (int)gdr_block_size()) {
		((T *)a->from)[i] = (T)(float)at_place(nvshmem_my_pe(), i);
		((T *)a->to)[i] = (T)(float)BEFORE;
	}
	nvshmemx_barrier_block(a->team);
}

/* The tile of rows times cols at AT holds what op makes of all; the rest is untouched. */
template <class T> GDR_DEVICE void look(const struct tiles *a, int op, int rows, int cols)
{
	gdr_sync_block();
	for (int i = (int)gdr_thread_id(); i < ROWS * COLS; i += (int)gdr_block_size()) {
		int row = (i - AT) / COLS, col = (i - AT) % COLS;
		bool in = i >= AT && row < rows && col < cols;

		EXPECT_EQ(a->report, (float)((T *)a->to)[i], in ? all_of(op, a, i) : BEFORE);
	}
}

template <class T, class Rows, class Cols> GDR_DEVICE auto tile(void *data, Rows rows, Cols cols)
{
	auto layout = nvshmemx::make_layout(nvshmemx::make_shape(rows, cols), nvshmemx::make_stride(COLS, ConstInt<1>()));

	return nvshmemx::Tensor((T *)data + AT, layout);
}

/* The same elements, columns first. */
template <class T> GDR_DEVICE auto turned(void *data, int rows, int cols)
{
	auto layout = nvshmemx::make_layout(nvshmemx::make_shape(cols, rows), nvshmemx::make_stride(ConstInt<1>(), COLS));

	return nvshmemx::Tensor((T *)data + AT, layout);
}

using nvshmemx::make_shape;
constexpr auto PULL = nvshmemx::NVLS_ONE_SHOT_PULL_NBI;
constexpr auto PUSH = nvshmemx::NVLS_ONE_SHOT_PUSH_NBI;
constexpr auto TWO = nvshmemx::NVLS_TWO_SHOT_PUSH_NBI;
#define CALL(algo, name, Src, Dst, Coord, ...) nvshmemx::name<Src, Dst, Coord, algo>(a->team, __VA_ARGS__)

/* One call by `lead` threads, and its wait. */
#define MEET(lead, suffix, algo, name, src, dst, start, end, ...)                                  \
	do {                                                                                       \
		auto s = src, d = dst;                                                             \
		auto first = start, last = end;                                                    \
                                                                                                   \
		bring<T>(a);                                                                       \
		if (lead) {                                                                        \
			EXPECT_OK(r, CALL(algo, name##suffix, decltype(s), decltype(d), decltype(first), s, d, first, \
					  last, __VA_ARGS__));                                     \
			EXPECT_OK(r, nvshmemx::tile_collective_wait##suffix<algo>(a->team, 0));    \
		}                                                                                  \
	} while (0)
#define REDUCES(suffix, lead)                                                                      \
	MEET(lead, suffix, PULL, tile_sum_reduce, tile<T>(a->from, 6, 32), tile<T>(a->to, 6, 32), none, none, root, 0); \
	look<T>(a, '+', me == root ? 6 : 0, 32);                                                   \
	MEET(lead, suffix, TWO, tile_max_allreduce, tile<T>(a->from, 5, 17), tile<T>(a->to, 5, 17), none, none, root, 0); \
	look<T>(a, '>', 5, 17)

template <class T> MULTI_BODY void reduces(const struct tiles *a)
{
	struct multi_report *r = a->report;
	int me = nvshmem_team_my_pe(a->team), root = nvshmem_team_n_pes(a->team) - 1;
	auto none = make_shape();

	REDUCES(, gdr_thread_id() == 0);
	REDUCES(_warp, gdr_thread_id() < 32);
	REDUCES(_block, true);
	MEET(true, _block, PULL, tile_min_allreduce, turned<T>(a->from, 7, 13), turned<T>(a->to, 7, 13), none, none, 0);
	look<T>(a, '<', 7, 13);
	/* all but what lies behind the boundary, and a part that begins behind it */
	MEET(true, _block, PULL, tile_sum_allreduce, tile<T>(a->from, 8, 32), tile<T>(a->to, 8, 32), make_shape(4, 8),
	     make_shape(9, 11), 0);
	look<T>(a, '+', 5, 3);
	MEET(true, _block, PULL, tile_sum_allreduce, tile<T>(a->from, -2, 16), tile<T>(a->to, -2, 16), make_shape(4, 8),
	     make_shape(9, 4), 0);
	look<T>(a, '+', 0, 0);
}

/* Two tiles in a row of the destination. */
template <class T> MULTI_BODY void gathers(const struct tiles *a)
{
	struct multi_report *r = a->report;
	int n = nvshmem_team_n_pes(a->team);
	auto none = make_shape();

	MEET(true, _block, PUSH, tile_allgather, tile<T>(a->from, 2, 16), tile<T>(a->to, n + 1, 32), none, none, 0);
	gdr_sync_block();
	for (int i = 0; i < n; i++) {
		int pe = nvshmem_team_translate_pe(a->team, i, NVSHMEM_TEAM_WORLD);
		const T *mine = (const T *)a->to + AT + i / 2 * 2 * COLS + i % 2 * 16;

		for (int k = (int)gdr_thread_id(); k < 32; k += (int)gdr_block_size())
			EXPECT_EQ(r, (float)mine[k / 16 * COLS + k % 16], at_place(pe, AT + k / 16 * COLS + k % 16));
	}
}

GDR_KERNEL(calls, struct tiles, a)
{
	reduces<float>(&a);
	gathers<float>(&a);
#ifdef __CUDACC__
	reduces<__half>(&a);
	gathers<__nv_bfloat16>(&a);
#else
	reduces<double>(&a);
#endif
}

int main(void)
{
	nvshmem_team_t others = NVSHMEM_TEAM_INVALID;
	struct tiles a;

	nvshmem_init();
	multi_pe = nvshmem_my_pe();
	multi_n = nvshmem_n_pes();
	a.report = multi_report_new();
	a.from = nvshmem_malloc(ROWS * COLS * sizeof(double));
	a.to = nvshmem_malloc(ROWS * COLS * sizeof(double));
	a.team = NVSHMEM_TEAM_WORLD;
	CHECK(a.from && a.to);
	RUN(calls, 1, 64, &a);
	if (multi_n > 1)
		CHECK_OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 1, 1, multi_n - 1, NULL, 0, &others));
	a.team = others;
	if (others != NVSHMEM_TEAM_INVALID)
		RUN(calls, 1, 64, &a);
	nvshmem_barrier_all();
	multi_shared_free(a.report);
	CHECK_EQ(gdr_errors(NULL, 0), 0);
	nvshmem_finalize();
	if (multi_pe == 0)
		printf("tiles: all right on %d PEs\n", multi_n);
	return 0;
}
