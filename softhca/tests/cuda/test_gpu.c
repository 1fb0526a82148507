/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of a GPU under softhca: registered, as rings, completion queues and doorbell records, as
 * what is written, read and counted. The driver is fake_cuda.c, whose memory the CPU must not touch
 * and whose copies take their time in any order that a real one's may. This program plays the
 * kernels: it builds WQEs, rings and polls through the driver's view. */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "softhca/tests/control/common.h"
#include "softhca/tests/cuda/wqe_bytes.h"

enum { AREA = 1 << 20, HALF = AREA / 2, LOG_CQ = 5, RING = 16 };

static struct {
	int (*init)(unsigned);
	int (*alloc)(uint64_t *, size_t);
	int (*free)(uint64_t);
	int (*host_register)(void *, size_t, unsigned);
	int (*host_unregister)(void *);
	int (*range_handle)(void *, uint64_t, size_t, int, unsigned long long);
	void *(*view)(uint64_t);
	unsigned (*copies)(void);
	unsigned (*kernel_items)(void), (*kernel_launches)(void);
} cuda;

struct area {
	uint64_t gpu;	/* address that the device is given */
	uint8_t *view;	/* where kernels see it */
	struct ibv_mr *mr;
};

struct world {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct dq q[2];
	uint64_t ring[2];
	struct area from, to, host, strict;
	uint16_t index[2];
	uint64_t random;
};

static unsigned draw(struct world *w, unsigned n)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(w->random >> 33) % n;
}

static void load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	if (lib)
		*(void **)&cuda.view = dlsym(lib, "fake_cuda_view");
	if (!cuda.view) {
		puts("no fake libcuda.so.1 in LD_LIBRARY_PATH");
		exit(77);
	}
	*(void **)&cuda.copies = dlsym(lib, "fake_cuda_copies");
	*(void **)&cuda.kernel_items = dlsym(lib, "fake_cuda_kernel_items");
	*(void **)&cuda.kernel_launches = dlsym(lib, "fake_cuda_kernel_launches");
	*(void **)&cuda.init = dlsym(lib, "cuInit");
	*(void **)&cuda.alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&cuda.free = dlsym(lib, "cuMemFree_v2");
	*(void **)&cuda.host_register = dlsym(lib, "cuMemHostRegister_v2");
	*(void **)&cuda.host_unregister = dlsym(lib, "cuMemHostUnregister");
	*(void **)&cuda.range_handle = dlsym(lib, "cuMemGetHandleForAddressRange");
	assert_int_equal(cuda.init(0), 0);
}

/* ---- setting up ---- */

enum { FULL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
	      IBV_ACCESS_REMOTE_ATOMIC };

static void area(struct world *w, struct area *a, bool gpu, int access)
{
	if (gpu) {
		assert_int_equal(cuda.alloc(&a->gpu, AREA), 0);
		a->view = cuda.view(a->gpu);
	} else {
		a->view = aligned_alloc(4096, AREA);
		a->gpu = (uintptr_t)a->view;
	}
	memset(a->view, 0, AREA);
	a->mr = ibv_reg_mr(w->pd, (void *)(uintptr_t)a->gpu, AREA, access);
	assert_non_null(a->mr);
}

/* As dq_create(), with rings, CQ and doorbell records in memory of the GPU. */
static void queue(struct world *w, int i, bool collapsed)
{
	struct dq *q = &w->q[i];
	uint8_t in[MBOX], out[16] = { 0 };

	memset(q, 0, sizeof(*q));
	q->ctx = w->ctx;
	assert_int_equal(cuda.alloc(&w->ring[i], 65536), 0);
	q->mem = cuda.view(w->ring[i]);
	memset(q->mem, 0, DQ_SIZE);
	memset(q->mem + DQ_CQ, 0xff, 4096);
	q->umem = mlx5dv_devx_umem_reg(w->ctx, (void *)(uintptr_t)w->ring[i], 65536,
				       IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(q->umem);
	q->uar = mlx5dv_devx_alloc_uar(w->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
	assert_non_null(q->uar);
	q->collapsed = collapsed;
	dq_cq_mailbox(q, in, collapsed ? 0 : LOG_CQ, collapsed, true);
	q->cq = mlx5dv_devx_obj_create(w->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->cq);
	q->cqn = (uint32_t)get_bits(out, 0x48, 24);
	memset(out, 0, sizeof(out));
	dq_qp_mailbox(q, in, pd_number(w->pd));
	q->qp = mlx5dv_devx_obj_create(w->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->qp);
	q->qpn = (uint32_t)get_bits(out, 0x48, 24);
}

static int set_up(void **state, bool collapsed)
{
	static struct world w;
	const char *seed = getenv("FAKE_CUDA_SEED");

	memset(&w, 0, sizeof(w));
	w.random = seed ? strtoull(seed, NULL, 0) : 1;
	w.ctx = open_device();
	w.pd = ibv_alloc_pd(w.ctx);
	assert_non_null(w.pd);
	area(&w, &w.from, true, FULL);
	area(&w, &w.to, true, FULL | IBV_ACCESS_RELAXED_ORDERING);
	area(&w, &w.strict, true, FULL);
	area(&w, &w.host, false, FULL);
	for (int i = 0; i < 2; i++)
		queue(&w, i, collapsed);
	dq_connect(&w.q[0], w.q[1].qpn);
	dq_connect(&w.q[1], w.q[0].qpn);
	*state = &w;
	return 0;
}

static int setup(void **state)
{
	return set_up(state, true);
}

static int setup_cq_rings(void **state)
{
	return set_up(state, false);
}

static int teardown(void **state)
{
	struct world *w = *state;
	struct area *a[] = { &w->from, &w->to, &w->strict, &w->host };

	for (int i = 0; i < 2; i++) {
		struct dq *q = &w->q[i];

		assert_int_equal(mlx5dv_devx_obj_destroy(q->qp), 0);
		assert_int_equal(mlx5dv_devx_obj_destroy(q->cq), 0);
		mlx5dv_devx_free_uar(q->uar);
		assert_int_equal(mlx5dv_devx_umem_dereg(q->umem), 0);
		assert_int_equal(cuda.free(w->ring[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		assert_int_equal(ibv_dereg_mr(a[i]->mr), 0);
		if (a[i] == &w->host)
			free(a[i]->view);
		else
			assert_int_equal(cuda.free(a[i]->gpu), 0);
	}
	ibv_dealloc_pd(w->pd);
	ibv_close_device(w->ctx);
	return 0;
}

/* ---- a kernel's part ---- */

static void control(struct world *w, int i, uint8_t b[64], uint8_t opcode, unsigned ds, uint64_t raddr,
		    uint32_t rkey)
{
	memset(b, 0, 64);
	put32(b, 0, (uint32_t)w->index[i] << 8 | opcode);
	put32(b, 4, w->q[i].qpn << 8 | ds);
	b[11] = 8;
	put64(b, 16, raddr);
	put32(b, 24, rkey);
}

static void post(struct world *w, int i, const uint8_t b[64])
{
	dq_post(&w->q[i], w->index[i]++, b);
}

static void build_rw(struct world *w, int i, uint8_t b[64], uint8_t opcode, const struct area *l, size_t lat,
		     const struct area *r, size_t rat, uint32_t len)
{
	control(w, i, b, opcode, 3, r->gpu + rat, r->mr->rkey);
	put32(b, 32, len);
	put32(b, 36, l->mr->lkey);
	put64(b, 40, l->gpu + lat);
}

static void post_rw(struct world *w, int i, uint8_t opcode, const struct area *l, size_t lat,
		    const struct area *r, size_t rat, uint32_t len)
{
	uint8_t b[64];

	build_rw(w, i, b, opcode, l, lat, r, rat, len);
	post(w, i, b);
}

static void build_inline(struct world *w, int i, uint8_t b[64], const struct area *r, size_t rat, const void *data,
			 uint32_t len)
{
	control(w, i, b, 0x08, len <= 12 ? 3 : 4, r->gpu + rat, r->mr->rkey);
	put32(b, 32, 0x80000000u | len);
	memcpy(b + 36, data, len);
}

static void post_inline(struct world *w, int i, const struct area *r, size_t rat, const void *data,
			uint32_t len)
{
	uint8_t b[64];

	build_inline(w, i, b, r, rat, data, len);
	post(w, i, b);
}

static void post_add(struct world *w, int i, const struct area *l, size_t lat, const struct area *r,
		     size_t rat, uint64_t add)
{
	uint8_t b[64];

	control(w, i, b, 0x12, 4, r->gpu + rat, r->mr->rkey);
	put64(b, 32, add);
	put32(b, 48, 8);
	put32(b, 52, l->mr->lkey);
	put64(b, 56, l->gpu + lat);
	post(w, i, b);
}

/* Until the other queue has had this many completions. */
static void post_wait(struct world *w, int i, uint32_t completions)
{
	uint8_t b[64];

	control(w, i, b, 0x0f, 2, 0, 0);
	put32(b, 24, completions - 1);
	put32(b, 28, w->q[!i].cqn);
	post(w, i, b);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Polls the collapsed entry until it names the last WQE posted. */
static void quiet(struct world *w, int i)
{
	const uint8_t *cqe = w->q[i].mem + DQ_CQ;
	double end = now() + 20;

	for (;;) {
		/* Acquire: pairs with the copy that brings the entry. */
		uint64_t tail = __atomic_load_n((const uint64_t *)(const void *)(cqe + 56),
						__ATOMIC_ACQUIRE);
		uint8_t b[8];

		memcpy(b, &tail, 8);
		if (b[7] >> 4 == 13)
			fail_msg("error completion, syndrome 0x%02x vendor 0x%02x", cqe[55], cqe[54]);
		if (b[7] >> 4 == 0 && (uint16_t)((b[4] << 8 | b[5]) + 1) == w->index[i])
			return;
		if (now() > end)
			fail_msg("no completion of WQE %u", w->index[i] - 1);
		sched_yield();
	}
}

static void scramble(struct world *w, struct area *a)
{
	for (size_t i = 0; i < AREA; i += 4) {
		uint32_t v = draw(w, 0x7fffffff);

		memcpy(a->view + i, &v, 4);
	}
}

/* ---- tests ---- */

static void test_write(void **state)
{
	static const uint32_t len[] = { 1, 4, 7, 8, 12, 64, 65, 100, 1024, 4096, 5000, 65536, 300001 };
	struct world *w = *state;
	struct area *pairs[][2] = { { &w->from, &w->to }, { &w->from, &w->host },
				    { &w->host, &w->to }, { &w->from, &w->strict } };

	for (size_t p = 0; p < 4; p++)
		for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			size_t at = draw(w, 64), to = draw(w, 64);

			scramble(w, pairs[p][0]);
			memset(pairs[p][1]->view, 0x5a, AREA);
			post_rw(w, 0, 0x08, pairs[p][0], at, pairs[p][1], to + 64, len[i]);
			quiet(w, 0);
			assert_memory_equal(pairs[p][1]->view + to + 64, pairs[p][0]->view + at, len[i]);
			assert_int_equal(pairs[p][1]->view[to + 63], 0x5a);
			assert_int_equal(pairs[p][1]->view[to + 64 + len[i]], 0x5a);
		}
}

static void test_read(void **state)
{
	static const uint32_t len[] = { 1, 8, 100, 4096, 70001, 300000 };
	struct world *w = *state;
	struct area *pairs[][2] = { { &w->from, &w->to }, { &w->from, &w->host },
				    { &w->host, &w->to } };

	for (size_t p = 0; p < 3; p++)
		for (size_t i = 0; i < sizeof(len) / sizeof(len[0]); i++) {
			scramble(w, pairs[p][0]);
			memset(pairs[p][1]->view, 0, AREA);
			post_rw(w, 1, 0x10, pairs[p][1], 128, pairs[p][0], 3, len[i]);
			quiet(w, 1);
			/* The completion is there: so is all of the data. */
			assert_memory_equal(pairs[p][1]->view + 128, pairs[p][0]->view + 3, len[i]);
		}
}

static void test_inline(void **state)
{
	struct world *w = *state;

	for (unsigned i = 0; i < 200; i++) {
		uint8_t data[28];
		uint32_t len = 1 + draw(w, 28);

		for (unsigned k = 0; k < len; k++)
			data[k] = (uint8_t)draw(w, 256);
		post_inline(w, 0, &w->strict, i * 32, data, len);
		if (i % 8 == 7)
			quiet(w, 0);
		if (i % 8 == 7)
			assert_memory_equal(w->strict.view + i * 32, data, len);
	}
}

static void test_atomics(void **state)
{
	struct world *w = *state;
	struct area *at[] = { &w->strict, &w->host };
	uint64_t sum = 0, v;

	for (int a = 0; a < 2; a++, sum = 0) {
		memset(at[a]->view, 0, 64);
		for (unsigned i = 0; i < 40; i++) {
			uint64_t add = draw(w, 1000);

			post_add(w, 0, &w->from, 256 + 8 * i, at[a], 16, add);
			if (i % 4 == 3) {
				quiet(w, 0);
				memcpy(&v, w->from.view + 256 + 8 * i, 8);
				assert_int_equal(v, sum);
			}
			sum += add;
		}
		memcpy(&v, at[a]->view + 16, 8);
		assert_int_equal(v, sum);
	}
}

/* Data by a relaxed key, then a flag by a strict one: who sees the flag sees the data. The peer
 * checks without waiting for a completion of the writer's. */
static void test_signal(void **state)
{
	struct world *w = *state;
	const unsigned n = 64 << 10;
	unsigned wrong = 0;

	for (uint64_t round = 1; round <= 60; round++) {
		const uint64_t *flag = (const uint64_t *)(const void *)(w->strict.view + 4096);
		uint32_t len = 64 + draw(w, n);
		double end = now() + 20;

		memset(w->from.view, (int)(round & 0xff), len);
		post_rw(w, 0, 0x08, &w->from, 0, &w->to, 0, len / 2);
		post_rw(w, 0, 0x08, &w->from, len / 2, &w->to, len / 2, len - len / 2);
		post_inline(w, 0, &w->strict, 4096, &round, 8);
		/* Acquire: pairs with the copy that brings the flag. */
		while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round)
			if (now() > end)
				fail_msg("no signal");
		for (uint32_t i = 0; i < len; i++)
			wrong += w->to.view[i] != (round & 0xff);
		quiet(w, 0);
	}
	assert_int_equal(wrong, 0);
}

/* An indirect key over two areas, one behind the other, from address 0 on (PRM, "Memory Key", access mode KLM). */
static struct mlx5dv_devx_obj *join(struct world *w, bool relaxed, struct ibv_mr *key)
{
	const struct ibv_mr *parts[] = {w->to.mr, w->strict.mr};
	uint8_t in[0x110 + 64] = {0}, out[16] = {0}, *mkc = in + 0x10;
	struct mlx5dv_devx_obj *obj;

	put_bits(in, 0x00, 16, 0x200); /* CREATE_MKEY */
	put_bits(in, 0x300, 32, 4);    /* entries */
	put_bits(mkc, 0x0d, 1, relaxed);
	put_bits(mkc, 0x12, 4, 0xf); /* both ways for both sides */
	put_bits(mkc, 0x16, 2, 2);
	put_bits(mkc, 0x20, 24, 0xffffff);
	put_bits(mkc, 0x68, 24, pd_number(w->pd));
	put_bits(mkc, 0xc0, 64, 2 * AREA);
	put_bits(mkc, 0x1a0, 32, 4);
	for (unsigned i = 0; i < 2; i++) {
		put32(in, 0x110 + 16 * i, AREA);
		put32(in, 0x110 + 16 * i + 4, parts[i]->lkey);
		put64(in, 0x110 + 16 * i + 8, (uintptr_t)parts[i]->addr);
	}
	obj = mlx5dv_devx_obj_create(w->ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(obj);
	key->lkey = key->rkey = (uint32_t)get_bits(out, 0x48, 24) << 8;
	return obj;
}

/* Rounds in which who sees the flag does not see the data that was written before it. One doorbell rings for both, so
 * that their copies share a batch where they may. */
static unsigned overtaken(struct world *w, const struct area *data, const struct area *flag_at, uint64_t *round)
{
	const uint64_t *flag = (const uint64_t *)(const void *)(w->strict.view + 4096);
	unsigned wrong = 0;

	for (int i = 0; i < 60; i++) {
		uint32_t len = 64 + draw(w, 4096);
		double end = now() + 20;
		uint16_t first = w->index[0];
		uint8_t b[2 * 64];

		++*round;
		memset(w->from.view, (int)(*round & 0xff), len);
		build_rw(w, 0, b, 0x08, &w->from, 0, data, 0, len);
		w->index[0]++;
		build_inline(w, 0, b + 64, flag_at, AREA + 4096, round, 8);
		w->index[0]++;
		dq_post_blocks(&w->q[0], first, b, 2);
		/* Acquire: pairs with the copy that brings the flag. */
		while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != *round)
			if (now() > end)
				fail_msg("no flag");
		for (uint32_t k = 0; k < len; k++) {
			if (w->to.view[k] != (*round & 0xff)) {
				wrong++;
				break;
			}
		}
		quiet(w, 0);
	}
	return wrong;
}

/* An indirect key says for itself whether writes may overtake others, whatever its regions say. */
static void test_indirect(void **state)
{
	struct world *w = *state;
	struct ibv_mr strict_key = {0}, relaxed_key = {0};
	struct area strict = {.mr = &strict_key}, relaxed = {.mr = &relaxed_key};
	struct mlx5dv_devx_obj *s = join(w, false, &strict_key), *r = join(w, true, &relaxed_key);
	uint64_t round = 0;
	unsigned seen = 0;

	assert_int_equal(overtaken(w, &relaxed, &strict, &round), 0);
	assert_int_equal(overtaken(w, &strict, &strict, &round), 0);
	for (int i = 0; i < 50 && !seen; i++) /* a matter of the order that the driver draws */
		seen = overtaken(w, &relaxed, &relaxed, &round);
	assert_true(seen > 0);
	assert_int_equal(mlx5dv_devx_obj_destroy(s), 0);
	assert_int_equal(mlx5dv_devx_obj_destroy(r), 0);
}

/* Both directions at once, all in memory of the GPU, compared with what it should be. */
static void test_both_ways(void **state)
{
	struct world *w = *state;
	static uint8_t want[AREA];

	scramble(w, &w->from);
	memset(w->to.view, 0, AREA);
	memset(want, 0, sizeof(want));
	for (unsigned i = 0; i < 300; i++) {
		int q = (int)(i & 1);
		uint32_t len = 1 + draw(w, draw(w, 4) ? 200 : 3000);
		size_t src = draw(w, HALF), dst = (size_t)q * HALF + (i / 2) * 3008;

		if (dst + len > (size_t)(q + 1) * HALF)
			continue;
		if (draw(w, 2))
			post_rw(w, q, 0x08, &w->from, src, &w->to, dst, len);
		else
			post_rw(w, q, 0x10, &w->to, dst, &w->from, src, len);
		memcpy(want + dst, w->from.view + src, len);
		if (w->index[q] % 8 == 7)
			quiet(w, q);
	}
	quiet(w, 0);
	quiet(w, 1);
	assert_memory_equal(w->to.view, want, AREA);
}

/* What a READ brings is sent on by the other queue, posted before it and waiting for it. */
static void test_wait(void **state)
{
	struct world *w = *state;

	scramble(w, &w->from);
	for (unsigned i = 0; i < 20; i++) {
		const struct area *to = draw(w, 2) ? &w->to : &w->strict;
		uint32_t len = 1 + draw(w, draw(w, 4) ? 200 : 60000);
		size_t src = draw(w, HALF), via = draw(w, HALF - 60000), dst = HALF + draw(w, HALF - 60000);

		post_wait(w, 1, (uint32_t)w->index[0] + 1);
		post_rw(w, 1, 0x08, to, via, &w->strict, dst, len);
		post_rw(w, 0, 0x10, to, via, &w->from, src, len);
		quiet(w, 1);
		assert_memory_equal(w->strict.view + dst, w->from.view + src, len);
	}
}

/* Some writes with one doorbell: the index of each to a place of its own. */
static void post_burst(struct world *w, int i, unsigned n)
{
	uint16_t first = w->index[i];
	uint8_t b[RING * 64];

	for (unsigned k = 0; k < n; k++) {
		uint64_t value = w->index[i];

		control(w, i, b + 64 * k, 0x08, 3, w->strict.gpu + (size_t)(i * RING + value % RING) * 8,
			w->strict.mr->rkey);
		put32(b + 64 * k, 32, 0x80000008u);
		memcpy(b + 64 * k + 36, &value, 8);
		w->index[i]++;
	}
	dq_post_blocks(&w->q[i], first, b, n);
}

/* Entry number index of the ring comes, whole, behind what it tells of. */
static void completed(struct world *w, int i, uint16_t index)
{
	const uint8_t *cqe = w->q[i].mem + DQ_CQ + index % (1u << LOG_CQ) * 64;
	uint8_t lap = index >> LOG_CQ & 1, end[8];
	double limit = now() + 20;
	uint64_t tail, value;

	do { /* acquire: pairs with the copy or store that brings the entry */
		tail = __atomic_load_n((const uint64_t *)(const void *)(cqe + 56), __ATOMIC_ACQUIRE);
		memcpy(end, &tail, 8);
		if (now() > limit)
			fail_msg("no completion of WQE %u", index);
	} while (end[7] >> 4 == 15 || (end[7] & 1) != lap);
	assert_int_equal(end[7] >> 4, 0);
	assert_int_equal((uint16_t)(end[4] << 8 | end[5]), index);
	assert_int_equal(cqe[54] | cqe[55], 0);
	memcpy(&value, w->strict.view + (size_t)(i * RING + index % RING) * 8, 8);
	assert_int_equal(value, index);
}

/* Completion queues that are rings: entries of both come in turn. */
static void test_cq_rings(void **state)
{
	struct world *w = *state;
	unsigned fewest = UINT32_MAX;

	for (unsigned round = 0; round < 200; round++) {
		unsigned n[2] = { round < 20 ? RING : draw(w, RING + 1), round < 20 ? 0 : draw(w, RING + 1) };
		unsigned copies = cuda.copies();

		for (int i = 0; i < 2; i++)
			if (n[i])
				post_burst(w, i, n[i]);
		for (int i = 0; i < 2; i++)
			for (unsigned k = n[i]; k; k--)
				completed(w, i, (uint16_t)(w->index[i] - k));
		copies = cuda.copies() - copies;
		if (round < 20 && copies < fewest)
			fewest = copies;
	}
	/* Of the work requests, and of all their completions: how many wait together depends on the
	 * machine (test_dma_write.c demands it). */
	printf("%u work requests: %u copies at least\n", (unsigned)RING, fewest);
	assert_int_not_equal(fewest, 0);
}

/* A doorbell that is lost: the record finds it. */
static void test_lost_doorbell(void **state)
{
	struct world *w = *state;
	struct dq *q = &w->q[0];
	uint32_t *dbr = (uint32_t *)(void *)(q->mem + DQ_DBR);
	uint64_t value = 0x1122334455667788;
	uint8_t b[64];

	control(w, 0, b, 0x08, 3, w->strict.gpu + 8192, w->strict.mr->rkey);
	put32(b, 32, 0x80000008u);
	memcpy(b + 36, &value, 8);
	memcpy(q->mem + DQ_SQ + w->index[0] % 16 * 64u, b, 64);
	w->index[0]++;
	/* Release: the record comes behind the WQE. */
	__atomic_store_n(dbr + 1, htobe32(w->index[0]), __ATOMIC_RELEASE);
	quiet(w, 0);
	assert_memory_equal(w->strict.view + 8192, &value, 8);
}

/* A WQE of two blocks, one at the end of the ring and one at its beginning. */
static void test_wrap(void **state)
{
	struct world *w = *state;
	uint8_t b[128] = { 0 };

	for (unsigned lap = 1; lap <= 4; lap++) {
		while (w->index[0] % 16 != 15)
			post_inline(w, 0, &w->strict, 0, &lap, 4);
		quiet(w, 0);
		control(w, 0, b, 0x08, 6, w->strict.gpu + 4096, w->strict.mr->rkey);
		put32(b, 32, 0x80000000u | 60);
		memset(b + 36, (int)lap, 60);
		dq_post_blocks(&w->q[0], w->index[0], b, 2);
		w->index[0] = (uint16_t)(w->index[0] + 2);
		post_inline(w, 0, &w->strict, 0, &lap, 4);
		quiet(w, 0);
		assert_memory_equal(w->strict.view + 4096, b + 36, 60);
	}
}

/* Destroyed with its last WQEs on their way from the ring: that takes no longer than they do. */
static void test_destroy(void **state)
{
	struct world *w = *state;
	struct dq *q = &w->q[0];
	uint8_t in[MBOX], out[16];

	for (int k = 0; k < 200; k++) {
		double start;

		post_rw(w, 0, 0x08, &w->from, 0, &w->to, 0, 64);
		for (start = now(); now() - start < 1e-6 * draw(w, 30);)
			;
		start = now();
		assert_int_equal(mlx5dv_devx_obj_destroy(q->qp), 0);
		assert_true(now() - start < 5);
		memset(q->mem + DQ_DBR, 0, 8);
		memset(out, 0, sizeof(out));
		dq_qp_mailbox(q, in, pd_number(w->pd));
		q->qp = mlx5dv_devx_obj_create(w->ctx, in, sizeof(in), out, sizeof(out));
		assert_non_null(q->qp);
		q->qpn = (uint32_t)get_bits(out, 0x48, 24);
		dq_connect(q, w->q[1].qpn);
		w->index[0] = 0;
	}
}

/* What was posted before RST does not run again behind it. */
static void test_reset(void **state)
{
	struct world *w = *state;
	uint64_t value = 7, none = 0;
	uint8_t in[MBOX];

	for (int k = 0; k < 30; k++) {
		for (int n = 0; n < 3; n++)
			post_inline(w, 0, &w->strict, 64, &value, 8);
		quiet(w, 0);
		for (int i = 0; i < 2; i++) {
			memset(in, 0, sizeof(in));
			put_bits(in, 0, 16, 0x50a); /* 2RST_QP */
			put_bits(in, 0x48, 24, w->q[i].qpn);
			assert_int_equal(dq_modify(&w->q[i], in), 0);
		}
		memcpy(w->strict.view + 64, &none, 8);
		memset(w->q[0].mem + DQ_DBR, 0, 8);
		memset(w->q[0].mem + DQ_CQ, 0xff, 64);
		dq_connect(&w->q[1], w->q[0].qpn);
		dq_connect(&w->q[0], w->q[1].qpn);
		w->index[0] = 0;
		usleep(1000);
		assert_memory_equal(w->strict.view + 64, &none, 8);
	}
}

static void test_error(void **state)
{
	struct world *w = *state;
	const uint8_t *cqe = w->q[0].mem + DQ_CQ;
	double end = now() + 20;
	uint8_t b[64];

	control(w, 0, b, 0x08, 3, w->to.gpu + AREA, w->to.mr->rkey); /* beyond its end */
	put32(b, 32, 8);
	put32(b, 36, w->from.mr->lkey);
	put64(b, 40, w->from.gpu);
	post(w, 0, b);
	while (cqe[63] >> 4 != 13 && now() < end)
		usleep(100);
	assert_int_equal(cqe[63] >> 4, 13);
	assert_int_equal(cqe[55], 0x13);
}

static void test_registration(void **state)
{
	struct world *w = *state;
	struct mlx5dv_devx_umem_in in = { 0 };
	struct mlx5dv_devx_umem *umem;
	struct ibv_mr *mr;
	uint64_t gpu;
	int fd;

	assert_int_equal(cuda.alloc(&gpu, 1 << 16), 0);
	/* As for hardware, more than there is cannot be registered. */
	assert_null(ibv_reg_mr(w->pd, (void *)(uintptr_t)gpu, 1ul << 40, FULL));
	assert_int_equal(cuda.range_handle(&fd, gpu, 1 << 16, 1, 0), 0);
	mr = ibv_reg_dmabuf_mr(w->pd, 4096, 8192, gpu + 4096, fd, FULL);
	assert_non_null(mr);
	assert_null(ibv_reg_dmabuf_mr(w->pd, 4096, 1 << 16, gpu + 4096, fd, FULL));
	in.addr = NULL;
	in.size = 1 << 16;
	in.access = IBV_ACCESS_LOCAL_WRITE;
	in.pgsz_bitmap = 4096;
	in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
	in.dmabuf_fd = fd;
	umem = mlx5dv_devx_umem_reg_ex(w->ctx, &in);
	assert_non_null(umem);
	close(fd);
	((uint8_t *)cuda.view(gpu))[4096 + 100] = 1;
	post_rw(w, 0, 0x08, &(struct area){ .gpu = gpu + 4096, .mr = mr }, 100, &w->to, 17, 1);
	quiet(w, 0);
	assert_int_equal(w->to.view[17], 1);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(mlx5dv_devx_umem_dereg(umem), 0);
	assert_int_equal(cuda.free(gpu), 0);
}

/* A device that reaches the GPU by PCIe alone takes a dma-buf of the other way, and ends in retries when it is used. */
static void test_way(void **state)
{
	struct world *w = *state;
	const uint8_t *cqe = w->q[0].mem + DQ_CQ;
	const char *device = getenv("SOFTHCA_DEVICE") ? getenv("SOFTHCA_DEVICE") : "";
	int wrong = strstr(device, "dmabuf=pcie") ? 0 : strstr(device, "dmabuf=host") ? 1 : -1;
	double end = now() + 20;
	uint8_t b[64];
	uint64_t gpu;
	int fd;

	assert_int_equal(cuda.alloc(&gpu, 1 << 16), 0);
	for (int i = 0; i < 2; i++) { /* the wrong one comes last */
		int pcie = wrong == 1 ? i : !i;
		struct ibv_mr *mr;

		assert_int_equal(cuda.range_handle(&fd, gpu, 1 << 16, 1, (unsigned)pcie), 0);
		mr = ibv_reg_dmabuf_mr(w->pd, 0, 8192, gpu, fd, FULL);
		assert_non_null(mr);
		close(fd);
		if (pcie != wrong) {
			post_rw(w, 0, 0x08, &w->to, 17, &(struct area){ .gpu = gpu, .mr = mr }, 100, 1);
			quiet(w, 0);
			assert_int_equal(ibv_dereg_mr(mr), 0);
			continue;
		}
		control(w, 0, b, 0x08, 3, gpu, mr->rkey);
		put32(b, 32, 8);
		put32(b, 36, w->from.mr->lkey);
		put64(b, 40, w->from.gpu);
		post(w, 0, b);
		while (cqe[63] >> 4 != 13 && now() < end)
			usleep(100);
		assert_int_equal(cqe[63] >> 4, 13);
		assert_int_equal(cqe[55], 0x15); /* retries exceeded */
	}
}

/* What drivers for GPUs ask for; the fake driver, as the real one, refuses it. */
static void test_io_memory(void **state)
{
	struct world *w = *state;
	uint8_t *reg = w->q[0].uar->reg_addr, *reg2 = reg + 0x100;
	static uint8_t own[4096];

	assert_int_equal(cuda.host_register(own, 8, 7), 1);
	assert_int_equal(cuda.host_register(reg, 8, 7), 0);
	assert_int_equal(cuda.host_register(reg2, 8, 7), 0);
	assert_int_equal(cuda.host_unregister(reg), 0);
	assert_int_equal(cuda.host_unregister(reg2), 0);
	assert_int_not_equal(cuda.host_unregister(reg2), 0);
	assert_int_equal(access("/sys/kernel/mm/memory_peers/nv_mem/version", F_OK), 0);
}

/* dlsym of softhca's makes no difference to who looks for what comes next. */
static void test_dlsym(void **state)
{
	(void)state;
	assert_ptr_equal(dlsym(RTLD_DEFAULT, "main_of_nobody"), NULL);
	assert_non_null(dlerror());
	assert_non_null(dlsym(RTLD_NEXT, "malloc"));
	assert_null(dlsym(dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW), "cuNothingOfThatName"));
}

/* Softhca's own kernel had its part in the above, where it was to have one: not in another GPU's memory, and
 * not where launches wait for their kernels, which softhca is told (no launch at all) or finds out. */
static void test_kernel(void **state)
{
	const char *wanted = getenv("SOFTHCA_GPU_KERNEL");
	bool may = wanted && *wanted == '1', told = getenv("CUDA_LAUNCH_BLOCKING");

	(void)state;
	if (may && !told && !getenv("FAKE_CUDA_OTHER") && !getenv("FAKE_CUDA_BLOCKING"))
		assert_in_range(cuda.kernel_items(), 1, UINT32_MAX);
	else
		assert_int_equal(cuda.kernel_items(), 0);
	if (!may || told)
		assert_int_equal(cuda.kernel_launches(), 0);
	else if (getenv("FAKE_CUDA_BLOCKING"))
		assert_in_range(cuda.kernel_launches(), 4, 4); /* the first one is to load it */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_inline, setup, teardown),
		cmocka_unit_test_setup_teardown(test_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_read, setup, teardown),
		cmocka_unit_test_setup_teardown(test_atomics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(test_indirect, setup, teardown),
		cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wait, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cq_rings, setup_cq_rings, teardown),
		cmocka_unit_test_setup_teardown(test_lost_doorbell, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wrap, setup, teardown),
		cmocka_unit_test_setup_teardown(test_destroy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_way, setup, teardown),
		cmocka_unit_test_setup_teardown(test_registration, setup, teardown),
		cmocka_unit_test_setup_teardown(test_io_memory, setup, teardown),
		cmocka_unit_test(test_dlsym),
		cmocka_unit_test(test_kernel),
	};

	load();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
