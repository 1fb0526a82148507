/* SPDX-License-Identifier: BSD-3-Clause */
/* A program in the words of NVSHMEM: every family that compat/ covers, from kernels and from the host. */
#include <nvshmem.h>
#include <nvshmemx.h>
#ifdef __CUDACC__
#include <cuda.h>
#endif

#include "tests/multi/multi.h"

struct words {
	int *ints, *back;
	double *sums;
	gdr_complexd_t *pairs; /* value and place */
	uint64_t *sig;
	uint64_t *own; /* outside the heap */
	struct multi_report *report;
};

GDR_KERNEL(moves, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n, prev = (me + n - 1) % n;
	int t = (int)gdr_thread_id();

	if (t == 0) {
		nvshmem_int_p(a.ints, me + 1, next);
		nvshmem_int_put(a.ints + 1, a.back, 2, next);
		nvshmem_putmem_nbi(a.ints + 3, a.back + 2, 4, next);
		nvshmem_int_iput(a.ints + 4, a.back, 2, 1, 2, next); /* 4 and 6 */
		nvshmem_fence();
		nvshmem_put32_signal(a.ints + 7, a.back + 3, 1, a.sig, 5, NVSHMEM_SIGNAL_SET, next);
		EXPECT_EQ(r, nvshmem_signal_wait_until(a.sig, NVSHMEM_CMP_EQ, 5), 5);
		EXPECT_EQ(r, nvshmem_signal_fetch(a.sig), 5);
		EXPECT_EQ(r, a.ints[0], prev + 1);
		EXPECT_EQ(r, a.ints[1], 100 * prev);
		EXPECT_EQ(r, a.ints[2], 100 * prev + 1);
		EXPECT_EQ(r, a.ints[3], 100 * prev + 2);
		EXPECT_EQ(r, a.ints[4], 100 * prev);
		EXPECT_EQ(r, a.ints[6], 100 * prev + 1);
		EXPECT_EQ(r, a.ints[7], 100 * prev + 3);
		EXPECT_EQ(r, nvshmem_int_g(a.ints + 7, me), 100 * prev + 3);
		nvshmem_quiet();
		nvshmem_sync_all();
		nvshmem_int_get(a.ints + 8, a.back, 3, next);
		EXPECT_EQ(r, a.ints[10], 100 * next + 2);
		nvshmem_int_iget(a.ints + 8, a.back, 1, 3, 2, next);
		EXPECT_EQ(r, a.ints[9], 100 * next + 3);
	}
	gdr_sync_block();
	nvshmemx_int_put_nbi_warp(a.ints + 16 + 8 * (t / 32), a.back + 4, 4, next);
	nvshmemx_int_put_signal_block(a.ints + 12, a.back, 4, a.sig + 1, 2, NVSHMEM_SIGNAL_ADD, next);
	if (t == 0) {
		(void)nvshmem_signal_wait_until(a.sig + 1, NVSHMEM_CMP_GE, 2);
		EXPECT_EQ(r, a.ints[15], 100 * prev + 3);
	}
	nvshmemx_barrier_all_block();
	EXPECT_EQ(r, a.ints[16 + 8 * (t / 32) + 3], 100 * prev + 7);
}

GDR_KERNEL(words, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes(), last = n - 1;
	uint64_t *count = a.sig + 2;
	size_t at[4];

	nvshmem_uint64_atomic_inc(count, last);
	nvshmem_uint64_atomic_add(count, 2, last);
	EXPECT_EQ(r, nvshmem_uint64_atomic_fetch_add(count + 1, 1, last) < (uint64_t)n, 1);
	nvshmem_uint64_atomic_or(count + 2, 1ull << me, last);
	nvshmem_quiet();
	nvshmem_barrier_all();
	EXPECT_EQ(r, nvshmem_uint64_atomic_fetch(count, last), 3 * n);
	EXPECT_EQ(r, nvshmem_uint64_atomic_compare_swap(count + 3, 77, 1, last), 0);
	EXPECT_EQ(r, nvshmem_uint64_g(count + 2, last), (1ull << n) - 1);
	nvshmem_double_atomic_set(a.sums + 4, 2.5, me);
	nvshmem_quiet();
	EXPECT_EQ(r, nvshmem_double_atomic_swap(a.sums + 4, 1, me) * 2, 5);
	if (me == last) {
		nvshmem_uint64_wait_until(count, NVSHMEM_CMP_EQ, 3 * (uint64_t)n);
		EXPECT_EQ(r, nvshmem_uint64_test(count, NVSHMEM_CMP_GT, 3 * (uint64_t)n), 0);
		EXPECT_EQ(r, nvshmem_uint64_wait_until_any(count, 3, NULL, NVSHMEM_CMP_EQ, (uint64_t)n) < 3,
			  1);
		nvshmem_uint64_wait_until_all(count, 3, NULL, NVSHMEM_CMP_GE, 1);
		EXPECT_EQ(r, nvshmem_uint64_test_some(count, 3, at, NULL, NVSHMEM_CMP_GE, 1), 3);
	}
	nvshmem_barrier_all();
	if (me == last)
		a.sums[5] = 0;
	nvshmem_barrier_all();
	nvshmemx_double_atomic_add(a.sums + 5, 0.5, last);
	EXPECT_EQ(r, nvshmemx_double_atomic_fetch_add(a.sums + 5, 0.5, last) < n, 1);
	nvshmemx_flush();
	nvshmem_barrier_all();
	EXPECT_EQ(r, nvshmem_double_g(a.sums + 5, last), n);
}

/* To oneself memory need not be symmetric. */
GDR_KERNEL(to_oneself, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_my_pe();

	nvshmem_uint64_p(a.own, 3, me);
	nvshmem_uint64_put(a.own + 1, a.own, 1, me);
	nvshmemx_uint64_put_nbi_block(a.own + 2, a.own + 1, 1, me);
	nvshmem_uint64_put_signal(a.own + 3, a.own, 1, a.own + 4, 7, NVSHMEM_SIGNAL_SET, me);
	nvshmemx_signal_op(a.own + 4, 1, NVSHMEM_SIGNAL_ADD, me);
	nvshmem_quiet();
	EXPECT_EQ(r, nvshmem_uint64_atomic_fetch_add(a.own, 1, me), 3);
	nvshmem_uint64_atomic_add(a.own, 1, me);
	nvshmem_quiet();
	EXPECT_EQ(r, nvshmem_uint64_g(a.own, me), 5);
	nvshmem_uint64_get(a.own + 5, a.own + 2, 2, me);
	EXPECT_EQ(r, a.own[5], 3);
	EXPECT_EQ(r, a.own[6], 3);
	EXPECT_EQ(r, a.own[4], 8);
	EXPECT_OK(r, gdr_status());
}

/* Of releases after 3.4.5. */
GDR_KERNEL(later, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n, prev = (me + n - 1) % n;

	nvshmemx_give_smem(gdr_shared(), 256);
	if (gdr_thread_id() == 0)
		a.back[8] = me + 5000;
	gdr_sync_block();
	nvshmemx_int_put_nbi_block(a.ints + 40, a.back + 8, 1, next);
	nvshmemx_flush_block();
	if (gdr_thread_id() == 0)
		a.back[8] = 0; /* it may be reused */
	if (gdr_thread_id() < 32)
		nvshmemx_flush_warp();
	nvshmemx_release_smem();
	nvshmemx_barrier_all_block();
	EXPECT_EQ(r, a.ints[40], prev + 5000);
}

GDR_KERNEL(collectives, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_team_my_pe(NVSHMEM_TEAM_WORLD), n = nvshmem_team_n_pes(NVSHMEM_TEAM_WORLD);

	EXPECT_EQ(r, nvshmem_team_translate_pe(NVSHMEM_TEAM_WORLD, me, NVSHMEM_TEAM_WORLD), me);
	a.sums[0] = me + 1;
	EXPECT_OK(r, nvshmem_team_sync(NVSHMEM_TEAM_WORLD));
	EXPECT_OK(r, nvshmem_double_sum_reduce(NVSHMEM_TEAM_WORLD, a.sums + 1, a.sums, 1));
	EXPECT_EQ(r, a.sums[1], n * (n + 1) / 2);
	EXPECT_OK(r, nvshmem_double_max_reduce(NVSHMEM_TEAM_WORLD, a.sums + 1, a.sums, 1));
	EXPECT_EQ(r, a.sums[1], n);
	EXPECT_OK(r, nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, a.ints, a.back + 1, 2, n - 1));
	EXPECT_EQ(r, a.ints[1], 100 * (n - 1) + 2);
	EXPECT_OK(r, nvshmem_int_fcollect(NVSHMEM_TEAM_WORLD, a.ints, a.back, 1));
	EXPECT_EQ(r, a.ints[n - 1], 100 * (n - 1));
	EXPECT_OK(r, nvshmem_int_alltoall(NVSHMEM_TEAM_WORLD, a.ints, a.back, 1));
	EXPECT_EQ(r, a.ints[n - 1], 100 * (n - 1) + me);
	EXPECT_OK(r, nvshmem_int_sum_reducescatter(NVSHMEM_TEAM_WORLD, a.ints, a.back, 1));
	EXPECT_EQ(r, a.ints[0], 100 * n * (n - 1) / 2 + n * me);
	EXPECT_OK(r, nvshmem_barrier(NVSHMEM_TEAM_WORLD));
}

/* Pair 0: the greatest value is the last PE's; pair 1: that of all. */
GDR_KERNEL(greatest, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes(), t = (int)gdr_thread_id();
	double *in = (double *)a.pairs, *out = in + 4;

	if (t == 0) {
		in[0] = me - 3.5;
		in[1] = in[3] = me + 100;
		in[2] = 7;
	}
	gdr_sync_block();
	EXPECT_OK(r, nvshmemx_double2_maxloc_reduce_block(NVSHMEM_TEAM_WORLD, a.pairs + 2, a.pairs, 2));
	EXPECT_EQ(r, out[0] * 2, 2 * n - 9);
	EXPECT_EQ(r, out[1], n + 99);
	EXPECT_EQ(r, out[2], 7);
	EXPECT_EQ(r, out[3], 100);
}

#ifdef __CUDACC__
/* The first warp group of the block; the other ones have no part in it. */
GDR_KERNEL(warp_group, struct words, a)
{
	struct multi_report *r = a.report;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes(), t = (int)gdr_thread_id();

	if (t >= 128)
		return;
	if (t == 100)
		nvshmem_int_p(a.ints, 7000 + me, (me + 1) % n);
	EXPECT_OK(r, nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD));
	EXPECT_EQ(r, a.ints[0], 7000 + (me + n - 1) % n);
}
#endif

static void teams(void)
{
	int me = nvshmem_my_pe(), n = nvshmem_n_pes();
	nvshmem_team_t even = NVSHMEM_TEAM_INVALID;

	CHECK_OK(nvshmem_team_split_strided(NVSHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &even));
	CHECK_EQ(even == NVSHMEM_TEAM_INVALID, me & 1);
	if (even != NVSHMEM_TEAM_INVALID) {
		CHECK_EQ(nvshmem_team_my_pe(even), me / 2);
		CHECK_EQ(nvshmem_team_n_pes(even), (n + 1) / 2);
	}
	nvshmem_team_destroy(even);
}

/* Members alone know its id, which the first of them makes: here all PEs, in reverse. */
static void team_by_id(void)
{
	nvshmem_team_config_t config = NVSHMEM_TEAM_CONFIG_INITIALIZER;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes();
	uint64_t *shared = (uint64_t *)nvshmem_calloc(1, sizeof(*shared));
	nvshmem_team_t team = NVSHMEM_TEAM_WORLD;

	CHECK(shared);
	CHECK(nvshmemx_team_init(&team, NULL, 0, n, me));
	CHECK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID, n, me)); /* no id */
	CHECK_EQ(team, NVSHMEM_TEAM_INVALID);
	if (me == 0)
		CHECK_OK(nvshmemx_team_get_uniqueid(&config.uniqueid));
	for (int pe = 0; me == 0 && pe < n; pe++)
		CHECK_OK(gdr_host_put(shared, &config.uniqueid, sizeof(*shared), pe));
	nvshmem_barrier_all();
	CHECK_OK(gdr_memcpy(&config.uniqueid, shared, sizeof(*shared)));
	config.num_contexts = 2;
	CHECK_OK(nvshmemx_team_init(&team, &config, NVSHMEM_TEAM_CONFIG_MASK_UNIQUEID |
				    NVSHMEM_TEAM_CONFIG_MASK_NUM_CONTEXTS, n, n - 1 - me));
	CHECK_EQ(nvshmem_team_my_pe(team), n - 1 - me);
	CHECK_EQ(nvshmem_team_n_pes(team), n);
	CHECK_EQ(nvshmem_team_translate_pe(team, 0, NVSHMEM_TEAM_WORLD), n - 1);
	config.num_contexts = 0;
	CHECK_OK(nvshmem_team_get_config(team, &config));
	CHECK_EQ(config.num_contexts, 2);
	nvshmem_team_destroy(team);
	nvshmem_free(shared);
}

/* The job of the launcher carries the id of the next one, in which the PEs are reversed. */
static void by_id(void)
{
	nvshmemx_init_attr_t attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
	nvshmemx_uniqueid_t id = NVSHMEMX_UNIQUEID_INITIALIZER, *shared;
	int me = nvshmem_my_pe(), n = nvshmem_n_pes();

	shared = (nvshmemx_uniqueid_t *)nvshmem_calloc(1, sizeof(*shared));
	CHECK(shared);
	if (me == 0) {
		CHECK_OK(nvshmemx_get_uniqueid(&id));
		CHECK_OK(gdr_memcpy(shared, &id, sizeof(id)));
	}
	for (int pe = 1; me == 0 && pe < n; pe++)
		CHECK_OK(gdr_host_put(shared, shared, sizeof(id), pe));
	nvshmem_barrier_all();
	CHECK_OK(gdr_memcpy(&id, shared, sizeof(id)));
	nvshmem_finalize();
	CHECK_OK(nvshmemx_set_attr_uniqueid_args(n - 1 - me, n, &id, &attr));
	CHECK_OK(nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &attr));
	CHECK_EQ(nvshmem_my_pe(), n - 1 - me);
	CHECK_EQ(nvshmem_n_pes(), n);
	nvshmem_barrier_all();
}

/* Programs choose by the version of the headers, and compare the library's with it. */
static void versions(void)
{
	int major, minor, patch;

	nvshmemx_vendor_get_version_info(&major, &minor, &patch);
	CHECK_EQ(NVSHMEM_VENDOR_VERSION, major * 10000 + minor * 100 + patch);
#if NVSHMEM_VENDOR_MAJOR_VERSION < 3
	CHECK(!"the names are those of NVSHMEM 3");
#endif
	switch ((nvshmemx_init_status_t)nvshmemx_init_status()) {
	case NVSHMEM_STATUS_IS_INITIALIZED:
	case NVSHMEM_STATUS_LIMITED_MPG:
	case NVSHMEM_STATUS_FULL_MPG:
		break;
	default:
		CHECK(!"it is initialized");
	}
}

/* Static data as symmetric memory, where the heap lies in memory of the host. */
static void own_memory(void)
{
	static GDR_SYMMETRIC(int, field, 100);
	int next = (nvshmem_my_pe() + 1) % nvshmem_n_pes();
	int *ptr = (int *)nvshmemx_buffer_register_symmetric(field, sizeof(field), 0);

	if (!ptr) {
		CHECK_EQ(gdr_host_status(), -GDR_ENOTSUP);
		return;
	}
	/* no such flag */
	CHECK(!nvshmemx_buffer_register_symmetric_at_preferred_address(field, sizeof(field), field, 1));
	nvshmem_int_p(ptr, 5, next);
	nvshmem_barrier_all();
	CHECK_EQ(field[0], 5);
	CHECK_OK(nvshmemx_buffer_unregister_symmetric(ptr, sizeof(field)));
	nvshmemx_buffer_unregister_all();
}

int main(void)
{
	struct words a;
	int given, major, minor, back[16];
	char name[NVSHMEM_MAX_NAME_LEN];

	CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_NOT_INITIALIZED);
	CHECK_OK(nvshmem_init_thread(NVSHMEM_THREAD_MULTIPLE, &given));
	CHECK_EQ(given, NVSHMEM_THREAD_MULTIPLE);
	nvshmem_init(); /* as a library of the program does, which then goes again: see below */
	CHECK_EQ(nvshmemx_init_status(), NVSHMEM_STATUS_IS_INITIALIZED);
	nvshmem_info_get_version(&major, &minor);
	nvshmem_info_get_name(name);
	CHECK(major == NVSHMEM_MAJOR_VERSION && !strncmp(name, "gdr", 3));
	multi_pe = nvshmem_my_pe();
	multi_n = nvshmem_n_pes();
	a.report = multi_report_new();
	a.ints = (int *)nvshmem_malloc(64 * sizeof(int));
	a.back = (int *)nvshmem_align(64, 16 * sizeof(int));
	a.sums = (double *)nvshmem_calloc(8, sizeof(double));
	a.pairs = (gdr_complexd_t *)nvshmem_calloc(4, sizeof(*a.pairs));
	a.sig = (uint64_t *)nvshmem_calloc(8, sizeof(uint64_t));
	a.own = (uint64_t *)multi_shared_new(8 * sizeof(uint64_t));
	CHECK(a.ints && a.back && a.sums && a.pairs && a.sig);
	CHECK(nvshmem_ptr(a.ints, multi_pe) == a.ints);
	CHECK(!nvshmemx_mc_ptr(NVSHMEM_TEAM_WORLD, a.ints));
	for (int i = 0; i < 16; i++)
		back[i] = 100 * multi_pe + i;
	CHECK_OK(gdr_memcpy(a.back, back, sizeof(back)));
	nvshmem_finalize(); /* the library's: it waits for all */
	RUN(moves, 1, 64, &a);
	RUN(words, 1, 1, &a);
	RUN(to_oneself, 1, 1, &a);
	RUN(collectives, 1, 1, &a);
	RUN(later, 1, 64, &a);
	CHECK(nvshmemx_ask_smem(NVSHMEMX_SMEM_MINIMUM) <= nvshmemx_ask_smem(NVSHMEMX_SMEM_RECOMMENDED));
	CHECK(!strcmp(nvshmemx_status_string(NVSHMEMX_ERROR_SYMMETRY), "NVSHMEMX_ERROR_SYMMETRY"));
	CHECK(!strcmp(nvshmemx_status_string(-1), "NVSHMEMX_ERROR_<unknown>"));
	RUN(greatest, 1, 64, &a);
#ifdef __CUDACC__
	RUN(warp_group, 1, 256, &a);
	nvshmem_barrier_all(); /* everybody has looked */
	CHECK(nvshmemx_culibrary_init(NULL) && nvshmemx_culibrary_finalize(NULL)); /* module.c loads one */
#endif
	nvshmem_int_p(a.ints, 7, (multi_pe + 1) % multi_n); /* from the host */
	nvshmem_barrier_all();
	CHECK_EQ(multi_u32((const uint32_t *)a.ints), 7);
	teams();
	team_by_id();
	CHECK_EQ(gdr_host_status(), 0);
	nvshmem_free(a.ints);
	multi_shared_free(a.report);
	CHECK_EQ(gdr_errors(NULL, 0), 0);
	by_id();
	versions();
	own_memory();
	CHECK_EQ(gdr_errors(NULL, 0), 0);
	nvshmem_finalize();
	if (multi_pe == 0)
		printf("nvshmem: all right on %d PEs\n", multi_n);
	return 0;
}
