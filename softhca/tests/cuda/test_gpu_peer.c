/* SPDX-License-Identifier: BSD-3-Clause */
/* From memory of a GPU to memory of a GPU between two processes: each maps what the other shows and
 * has its own GPU copy, nothing goes through memory of the host. Driver: fake_cuda.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "softhca/tests/control/common.h"
#include "softhca/tests/cuda/wqe_bytes.h"

enum { RING = 16, HOST = 2 << 20 };
enum { AREA = 4 << 20, FULL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

static int (*gpu_alloc)(uint64_t *, size_t);
static int (*gpu_free)(uint64_t);
static uint8_t *(*gpu_view)(uint64_t);

struct card { /* what the processes tell each other */
	uint32_t qpn, rkey;
	uint64_t gpu;
};

static struct world {
	int sock;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct dq q;
	struct ibv_mr *mr, *host_mr;
	uint64_t gpu;
	uint8_t *view, *host;
	struct card other;
	uint16_t index;
} w;

static void tell(const void *p, size_t n)
{
	assert_int_equal(send(w.sock, p, n, 0), (ssize_t)n);
}

static void hear(void *p, size_t n)
{
	assert_int_equal(recv(w.sock, p, n, MSG_WAITALL), (ssize_t)n);
}

static void area(int access)
{
	struct card mine;

	assert_int_equal(gpu_alloc(&w.gpu, AREA), 0);
	w.view = gpu_view(w.gpu);
	w.mr = ibv_reg_mr(w.pd, (void *)(uintptr_t)w.gpu, AREA, access);
	assert_non_null(w.mr);
	mine = (struct card){ w.q.qpn, w.mr->rkey, w.gpu };
	tell(&mine, sizeof(mine));
	hear(&w.other, sizeof(w.other));
}

static void drop(void)
{
	assert_int_equal(ibv_dereg_mr(w.mr), 0);
	assert_int_equal(gpu_free(w.gpu), 0);
}

static uint8_t byte_of(size_t i, unsigned salt)
{
	uint32_t v = (uint32_t)i * 2654435761u + salt * 7919u;

	return (uint8_t)(v >> 24 ^ v >> 11);
}

static void post_from(uint64_t here, uint32_t lkey, uint8_t opcode, size_t there, uint32_t len)
{
	uint8_t b[64] = { 0 };

	put32(b, 0, (uint32_t)w.index << 8 | opcode);
	put32(b, 4, w.q.qpn << 8 | 3);
	b[11] = 8;
	put64(b, 16, w.other.gpu + there);
	put32(b, 24, w.other.rkey);
	put32(b, 32, len);
	put32(b, 36, lkey);
	put64(b, 40, here);
	dq_post(&w.q, w.index++, b);
}

static void post(uint8_t opcode, size_t here, size_t there, uint32_t len)
{
	post_from(w.gpu + here, w.mr->lkey, opcode, there, len);
}

static void quiet(void)
{
	const uint8_t *cqe = w.q.mem + DQ_CQ;
	time_t end = time(NULL) + 20;

	for (;;) {
		/* Acquire: pairs with the engine's store of the entry's end. */
		uint64_t tail = __atomic_load_n((const uint64_t *)(const void *)(cqe + 56),
						__ATOMIC_ACQUIRE);
		uint8_t b[8];

		memcpy(b, &tail, 8);
		if (b[7] >> 4 == 13)
			fail_msg("error completion, syndrome 0x%02x", cqe[55]);
		if (b[7] >> 4 == 0 && (uint16_t)((b[4] << 8 | b[5]) + 1) == w.index)
			return;
		if (time(NULL) > end)
			fail_msg("no completion of WQE %u", w.index - 1);
		sched_yield();
	}
}

static const uint32_t sizes[] = { 1, 8, 24, 100, 4096, 16384, 70001, 1 << 20, (1 << 20) + 8 };
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* One after the other, and all of it at once. */
static void write_all(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		for (size_t k = 0; k < sizes[i]; k++)
			w.view[k + 3] = byte_of(k, i);
		post(0x08, 3, 64, sizes[i]);
		quiet();
		tell("w", 1);
		hear(&(char){ 0 }, 1);
	}
	for (size_t k = 0; k < AREA; k++)
		w.view[k] = byte_of(k, 99);
	for (unsigned i = 0; i < 64; i++) { /* pieces side by side, not in their order */
		size_t at = (i / RING * RING + i * 5 % RING) * 16384;

		post(0x08, at, at, 16384);
		if (i % RING == RING - 1)
			quiet();
	}
	tell("w", 1);
	hear(&(char){ 0 }, 1);
	for (size_t k = 0; k < HOST; k++) /* from memory of the host, for other memory of the GPU */
		w.host[k] = byte_of(k, 55);
	post_from((uintptr_t)w.host, w.host_mr->lkey, 0x08, 64, HOST);
	quiet();
	tell("w", 1);
	hear(&(char){ 0 }, 1);
	for (size_t k = 0; k < AREA; k++) /* the other one reads this */
		w.view[k] = byte_of(k, 77);
	tell("r", 1);
	hear(&(char){ 0 }, 1);
}

static void check(size_t at, size_t n, size_t first, unsigned salt)
{
	for (size_t k = 0; k < n; k++)
		if (w.view[at + k] != byte_of(first + k, salt))
			fail_msg("byte %zu of %zu (salt %u) is wrong", k, n, salt);
}

static void check_all(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		memset(w.view + 64 + sizes[i], 0x5a, 1);
		hear(&(char){ 0 }, 1);
		check(64, sizes[i], 0, i);
		assert_int_equal(w.view[64 + sizes[i]], 0x5a);
		memset(w.view, 0, AREA);
		tell("k", 1);
	}
	hear(&(char){ 0 }, 1);
	check(0, 64 * 16384, 0, 99);
	tell("k", 1);
	hear(&(char){ 0 }, 1);
	check(64, HOST, 0, 55);
	tell("k", 1);
	hear(&(char){ 0 }, 1);
	post(0x10, 0, 8192, 1 << 20);
	quiet();
	check(0, 1 << 20, 8192, 77);
	tell("k", 1);
}

static void start(int sock)
{
	struct ibv_port_attr port;

	w.sock = sock;
	w.ctx = open_device();
	w.pd = ibv_alloc_pd(w.ctx);
	assert_non_null(w.pd);
	dq_create(&w.q, w.ctx, pd_number(w.pd), 0, true);
	assert_int_equal(ibv_query_port(w.ctx, 1, &port), 0);
	w.q.mtu = port.active_mtu;
	w.host = aligned_alloc(4096, HOST);
	w.host_mr = ibv_reg_mr(w.pd, w.host, HOST, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(w.host_mr);
}

/* Both roles, with a key of each kind; the second area takes the place of the first. */
static void play(bool first)
{
	for (int round = 0; round < 4; round++) {
		area(FULL | (round & 1 ? 0 : IBV_ACCESS_RELAXED_ORDERING));
		if (!round)
			dq_connect(&w.q, w.other.qpn);
		tell("c", 1);
		hear(&(char){ 0 }, 1);
		usleep(20000); /* what was shown is mapped */
		if (first == (round < 2))
			write_all();
		else
			check_all();
		drop();
	}
	dq_destroy(&w.q);
	assert_int_equal(ibv_dereg_mr(w.host_mr), 0);
	free(w.host);
	ibv_dealloc_pd(w.pd);
	ibv_close_device(w.ctx);
}

/* A counter of all the processes that have ended. */
static unsigned long long counted(const char *path, const char *name)
{
	unsigned long long n = 0, one;
	char line[8192], *at;
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		at = strstr(line, name);
		if (at && sscanf(at + strlen(name), " %llu", &one) == 1)
			n += one;
	}
	fclose(f);
	return n;
}

static int other_process(int sock)
{
	start(sock);
	play(false);
	return 0;
}

static int one_process(int sock, const char *stats)
{
	unsigned long long sum = 1 << 20, between; /* 64 of 16 KiB */
	int status = -1;

	start(sock);
	play(true);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	for (unsigned i = 0; i < SIZES; i++)
		sum += sizes[i];
	/* What this process wrote in two rounds; the first packets may take the other way. */
	between = counted(stats, "dma_bytes_between");
	/* How many were waiting together depends on the machine. */
	printf("%llu bytes from GPU to GPU, %llu written, %llu NAKs, %llu copies became part of others\n",
	       between, 2 * sum, counted(stats, "naks_tx"), counted(stats, "dma_merged"));
	return between < 2 * sum * 9 / 10 || counted(stats, "naks_tx");
}

int main(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	const char *stats = getenv("SOFTHCA_STATS");
	int s[2];

	if (lib)
		*(void **)&gpu_view = dlsym(lib, "fake_cuda_view");
	if (!gpu_view || !stats) {
		puts("no fake libcuda.so.1 in LD_LIBRARY_PATH, or no SOFTHCA_STATS");
		return 77;
	}
	*(void **)&gpu_alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&gpu_free = dlsym(lib, "cuMemFree_v2");
	unlink(stats);
	alarm(90);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		return 1;
	return fork() ? one_process(s[0], stats) : other_process(s[1]);
}
