/* SPDX-License-Identifier: BSD-3-Clause */
/* Grids and blocks of two and three dimensions: each thread's coordinates and extents, the operations of blocks and
 * warps and the barrier of a grid in such blocks, and extents that are refused. */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#define WARP 0xffffffffu

struct place {
	struct gdr_dim3 block, thread;
};

struct dims {
	struct gdr_dim3 grid, block; /* what each thread has to find */
	struct place *places;	     /* by the number of the thread in the grid */
	struct multi_report *report;
};

GDR_DEVICE void expect_extents(struct multi_report *r, struct gdr_dim3 is, struct gdr_dim3 want, unsigned all)
{
	EXPECT_EQ(r, is.x, want.x);
	EXPECT_EQ(r, is.y, want.y);
	EXPECT_EQ(r, is.z, want.z);
	EXPECT_EQ(r, all, want.x * want.y * want.z);
}

GDR_KERNEL(where, struct dims, a)
{
	struct place *p = a.places + gdr_block_id() * gdr_block_size() + gdr_thread_id();
	unsigned whole = gdr_block_size() & ~31u;

	expect_extents(a.report, gdr_grid_size_3d(), a.grid, gdr_grid_size());
	expect_extents(a.report, gdr_block_size_3d(), a.block, gdr_block_size());
	EXPECT_EQ(a.report, gdr_lane_id(), gdr_thread_id() % 32);
	p->block = gdr_block_id_3d();
	p->thread = gdr_thread_id_3d();
	if (gdr_thread_id() < whole)
		EXPECT_EQ(a.report, gdr_shfl_u32(WARP, gdr_thread_id(), 5), gdr_thread_id() / 32 * 32 + 5);
	gdr_sync_block();
}

static void expect_at(struct gdr_dim3 is, size_t i, struct gdr_dim3 of)
{
	CHECK_EQ(is.x, i % of.x);
	CHECK_EQ(is.y, i / of.x % of.y);
	CHECK_EQ(is.z, i / of.x / of.y);
}

static void check_places(struct dims *a)
{
	size_t threads = a->block.x * a->block.y * a->block.z, all = a->grid.x * a->grid.y * a->grid.z * threads;
	struct place *is = (struct place *)multi_copy(a->places, all * sizeof(*is));

	for (size_t i = 0; i < all; i++) {
		expect_at(is[i].block, i / threads, a->grid);
		expect_at(is[i].thread, i % threads, a->block);
	}
	free(is);
	gdr_free(a->places);
}

static struct place *places_new(struct gdr_dim3 grid, struct gdr_dim3 block)
{
	struct place *p =
		(struct place *)gdr_calloc(grid.x * grid.y * grid.z * block.x * block.y * block.z, sizeof(*p));

	CHECK(p);
	multi_fill(p, 0xff, grid.x * grid.y * grid.z * block.x * block.y * block.z * sizeof(*p));
	return p;
}

#define IN_SHAPE(grid_, block_, launch)                                                            \
	do {                                                                                       \
		a->grid = grid_;                                                                   \
		a->block = block_;                                                                 \
		a->places = places_new(a->grid, a->block);                                         \
		CHECK_OK(launch);                                                                  \
		CHECK_OK(gdr_stream_sync(NULL));                                                   \
		check_report(a->report);                                                           \
		check_places(a);                                                                   \
	} while (0)

static void check_report(const struct multi_report *r)
{
	if (r->line)
		multi_fail(__FILE__, r->line, "in kernel: %lld, not %lld", r->got, r->want);
}

static void shapes(struct dims *a)
{
	static const struct place all[] = { /* grid, block */
		{{1, 1, 1}, {1, 1, 1}},	  {{3, 2, 1}, {8, 8, 1}},   {{2, 3, 4}, {4, 8, 2}}, {{1, 5, 2}, {5, 3, 2}},
		{{1, 1, 3}, {1, 1, 64}},  {{2, 1, 1}, {32, 32, 1}}, {{1, 2, 1}, {1, 64, 1}}, {{7, 1, 2}, {96, 1, 1}},
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		IN_SHAPE(all[i].block, all[i].thread, gdr_launch_3d(where, a->grid, a->block, 0, NULL, a));
	IN_SHAPE(gdr_make_dim3(3, 2, 2), gdr_make_dim3(4, 2, 4),
		 gdr_collective_launch_3d(where, a->grid, a->block, 0, NULL, a));
	IN_SHAPE(gdr_make_dim3(3, 1, 1), gdr_make_dim3(40, 1, 1), gdr_launch(where, 3, 40, 0, NULL, a));
	IN_SHAPE(gdr_make_dim3(2, 1, 1), gdr_make_dim3(33, 1, 1), gdr_collective_launch(where, 2, 33, 0, NULL, a));
#ifndef __CUDACC__ /* a thread of the host is one, too */
	expect_at(gdr_thread_id_3d(), 0, gdr_block_size_3d());
	expect_at(gdr_block_id_3d(), 0, gdr_grid_size_3d());
	CHECK_EQ(gdr_block_size_3d().x * gdr_block_size_3d().y * gdr_block_size_3d().z, 1);
	CHECK_EQ(gdr_grid_size_3d().x * gdr_grid_size_3d().y * gdr_grid_size_3d().z, 1);
#endif
}

#define REFUSED(call, words)                                                                       \
	do {                                                                                       \
		said_begin();                                                                      \
		CHECK_EQ(call, -GDR_EINVAL);                                                       \
		said_expect(words, NULL);                                                          \
	} while (0)

static void refusals(struct dims *a)
{
	static const struct place bad[] = { /* grid, block */
		{{0, 1, 1}, {1, 1, 1}},	    {{1, 0, 1}, {1, 1, 1}},	 {{1, 1, 0}, {1, 1, 1}},
		{{1, 1, 1}, {0, 1, 1}},	    {{1, 1, 1}, {1, 0, 1}},	 {{1, 1, 1}, {1, 1, 0}},
		{{1, 65536, 1}, {1, 1, 1}}, {{1, 1, 65536}, {1, 1, 1}},	 {{1u << 31, 1, 1}, {1, 1, 1}},
		{{1, 1, 1}, {1025, 1, 1}},  {{1, 1, 1}, {1, 1025, 1}},	 {{1, 1, 1}, {1, 1, 65}},
		{{1, 1, 1}, {33, 32, 1}},   {{65536, 256, 256}, {1, 1, 1}}, /* a product of 0 in 32 bits */
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_EQ(gdr_launch_3d(where, bad[i].block, bad[i].thread, 0, NULL, a), -GDR_EINVAL);
		CHECK_EQ(gdr_collective_launch_3d(where, bad[i].block, bad[i].thread, 0, NULL, a), -GDR_EINVAL);
	}
	REFUSED(gdr_launch(where, 0, 1, 0, NULL, a), "gdr_launch of where: extent x of the grid is 0");
	REFUSED(gdr_launch(where, 1u << 31, 1, 0, NULL, a), "extent x of the grid is 2147483648: allowed are 1 to");
	REFUSED(gdr_launch(where, 1, 0, 0, NULL, a), "extent x of the block is 0");
	REFUSED(gdr_launch(where, 1, 1025, 0, NULL, a), "extent x of the block is 1025: allowed are 1 to 1024");
	REFUSED(gdr_collective_launch(where, 0, 1025, 0, NULL, a), "gdr_collective_launch of where: extent x");
	REFUSED(gdr_collective_launch(where, 1, 0, 0, NULL, a), "extent x of the block is 0");
	CHECK_OK(gdr_stream_sync(NULL)); /* the driver was not asked */
}

/* ---- a stencil of five points; each PE has rows of a ring, and a ghost row above and below them ---- */

enum { NX = 40, NY = 12, STEPS = 5, TILE_X = 16, TILE_Y = 4 };

struct plate {
	uint32_t *field[2]; /* [NY + 2][NX] */
	struct multi_report *report;
};

GDRI_INLINE uint32_t cell(uint32_t own, uint32_t up, uint32_t down, uint32_t left, uint32_t right)
{
	return own * 3 + up * 5 + down * 7 + left * 11 + right * 13;
}

/* Row y of the block's columns, which its threads computed, to a ghost row of another PE: all threads. */
GDR_DEVICE void send_row(const struct plate *a, uint32_t *now, unsigned y)
{
	int n = gdr_n_pes(), me = gdr_my_pe();
	unsigned x = gdr_block_id_3d().x * TILE_X, many = NX - x < TILE_X ? NX - x : TILE_X;

	if (y == 1)
		EXPECT_OK(a->report, gdr_put_block(now + (NY + 1) * NX + x, now + NX + x, many * 4, (me + n - 1) % n));
	else
		EXPECT_OK(a->report, gdr_uint32_put_nbi_block(now + x, now + NY * NX + x, many, (me + 1) % n));
}

GDR_KERNEL(stencil, struct plate, a)
{
	struct gdr_dim3 b = gdr_block_id_3d(), t = gdr_thread_id_3d();
	unsigned x = b.x * TILE_X + t.x, y = 1 + b.y * TILE_Y + t.y;

	for (int k = 0; k < STEPS; k++) {
		const uint32_t *old = a.field[k & 1] + y * NX + x;
		uint32_t *now = a.field[(k + 1) & 1];

		if (x < NX)
			now[y * NX + x] = cell(*old, old[-NX], old[NX], x ? old[-1] : 0, x < NX - 1 ? old[1] : 0);
		gdr_sync_block(); /* a put reads what all threads of the block stored */
		if (b.y == 0)
			send_row(&a, now, 1);
		if (b.y == gdr_grid_size_3d().y - 1)
			send_row(&a, now, NY);
		EXPECT_OK(a.report, gdr_grid_sync());
		if (!gdr_block_id() && !gdr_thread_id())
			EXPECT_OK(a.report, gdr_barrier_all());
		EXPECT_OK(a.report, gdr_grid_sync());
	}
}

static uint32_t start_of(int row, int x)
{
	return (uint32_t)multi_hash((uint64_t)row * NX + (uint64_t)x);
}

/* The rows of all PEs after the steps. */
static uint32_t *serial(int rows)
{
	size_t bytes = (size_t)rows * NX * sizeof(uint32_t);
	uint32_t *was = (uint32_t *)malloc(bytes), *is = (uint32_t *)malloc(bytes), *swap;

	CHECK(was && is);
	for (int i = 0; i < rows * NX; i++)
		was[i] = start_of(i / NX, i % NX);
	for (int k = 0; k < STEPS; k++) {
		for (int i = 0; i < rows * NX; i++)
			is[i] = cell(was[i], was[(i + (rows - 1) * NX) % (rows * NX)], was[(i + NX) % (rows * NX)],
				     i % NX ? was[i - 1] : 0, i % NX < NX - 1 ? was[i + 1] : 0);
		swap = was;
		was = is;
		is = swap;
	}
	free(is);
	return was;
}

static void halo(struct multi_report *report)
{
	const size_t bytes = (NY + 2) * NX * sizeof(uint32_t);
	int rows = multi_n * NY;
	uint32_t start[(NY + 2) * NX], *want = serial(rows), *got;
	struct plate a;

	a.report = report;
	for (int i = 0; i < (NY + 2) * NX; i++)
		start[i] = start_of((multi_pe * NY + i / NX - 1 + rows) % rows, i % NX);
	for (int i = 0; i < 2; i++)
		CHECK((a.field[i] = (uint32_t *)gdr_calloc(1, bytes)) != NULL);
	CHECK_OK(gdr_memcpy(a.field[0], start, bytes));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_collective_launch_3d(stencil, gdr_make_dim3((NX + TILE_X - 1) / TILE_X, NY / TILE_Y, 1),
					  gdr_make_dim3(TILE_X, TILE_Y, 1), 0, NULL, &a));
	CHECK_OK(gdr_stream_sync(NULL));
	check_report(report);
	got = (uint32_t *)multi_copy(a.field[STEPS & 1], bytes);
	for (int i = 0; i < (NY + 2) * NX; i++)
		CHECK_EQ(got[i], want[(multi_pe * NY + i / NX - 1 + rows) % rows * NX + i % NX]);
	free(got);
	free(want);
	for (int i = 0; i < 2; i++)
		gdr_free(a.field[i]);
}

int main(void)
{
	struct dims a;

	multi_begin();
	a.report = multi_report_new();
	shapes(&a);
	refusals(&a);
	halo(a.report);
	multi_shared_free(a.report);
	return multi_end("dims");
}
