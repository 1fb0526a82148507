// SPDX-License-Identifier: BSD-3-Clause
// What device operations between two PEs cost, over the path that the job has.
//
//	gdr_perf [--plot FILE [--beside [LABEL=]LINES]] [short] [NAME...]
//				raw put get latency signal rate barrier; default: all these
//				short: a twentieth of the rounds, and no more than 1 MiB by 8 blocks
//				--plot: figures by size as curves (.svg, .png), by tools/plot, above the
//				program or in the current folder; --beside: what a peer printed, dashed
//				bulk, many, one_mib, post: not by default
//
//	raw		CUDA alone, without a library: what the link allows
//	put, get	GB/s of block operations back to back, then one quiet, by size and blocks
//	latency		of one thread: put and quiet, get, g, p and quiet
//	signal		half of a ping-pong: signal, put_signal of 8 B by thread and by block
//	rate		operations of one thread back to back
//	barrier		barrier_all and sync_all of one thread
//	bulk		put and get by way of shared memory, and without: of one thread, and GB/s by blocks of two
//			warps. NVSHMEM: 3.7 and later, with NVSHMEM_TMA_POLICY=ENABLE
//	many		millions of 8-byte puts a second by all threads of some blocks, to words that
//			follow each other and to words 64 bytes apart
//	one_mib		put with 1 MiB alone, shared by the blocks
//	mib_each	put of 1 MiB by each block
//	p_quiet		that of latency alone
//	post		posting to queues: bursts that fit into the rings, by blocks, of threads and whole warps;
//			SM cycles of a call and posts per second. PERF_ROOM: posts that fit into all the
//			rings of a PE together; PERF_RING: into one. With SOFTHCA_NULL
//			(docs/softhca.md) nothing is moved
//	count		kernels of 0 and of 200 posts by one block, for a profiler that counts (gpu_count.sh)
//
// Runs on any even number of PEs as pairs (PE i with i ^ 1); PE 0 prints, each figure as a line
// RESULT name value unit [least..most]: the median of 7 launches after a warm-up. The same source
// measures NVSHMEM: tests/perf/as_nvshmem.h.
#define GDR_KERNEL_THREADS 1024
#ifdef AS_NVSHMEM
#include "tests/perf/as_nvshmem.h"
#else
#include <gdr.h>
#endif

#include "tests/perf/help.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPEATS 7
#define BLOCKS_MAX 132u
#define ROUND ((size_t)48 << 20) /* more than the first-level caches of a GPU, less than the second */
#define WORDS 4096 /* places that loops go round in */
#define FAR(p) ((p) + 16 * at) /* a cache line each, more than a cache holds */
#ifdef __CUDACC__
#define AREA ((size_t)256 << 20)
#else
#define AREA ((size_t)16 << 20)
#endif

struct work {
	int peer, me, n;
	size_t size; /* of one block's piece, or of an operation */
	int step;    /* latency: words from one place to the next */
	size_t span; /* bandwidth: of all blocks' pieces; the loop goes round in `turns` spans, or */
	int turns;   /* what was moved before would lie in first-level caches */
	char *src, *dst;
	uint64_t *sig;	/* [SIGS] lines */
	uint64_t *far;	/* raw: the peer's sig */
	uint64_t base;	/* of the signal's values */
	size_t stage;	/* bulk: bytes of shared memory */
	uint64_t *time; /* [BLOCKS_MAX][2] begin and end of the loop */
	uint64_t *cycles; /* [BLOCKS_MAX] of the loop */
	int *status;	/* [BLOCKS_MAX] */
};

/* ---- bandwidth ---- */

/* The call comes last: it may be a macro whose words hold commas. */
#define STREAM(name, ...) STREAM_OF(name, , , __VA_ARGS__)
#define STREAM_OF(name, before, behind, ...)                                                       \
	GDR_KERNEL(name, struct work, w)                                                           \
	{                                                                                          \
		before;                                                                            \
		uint64_t start = gdr_thread_id() ? 0 : gdr_clock_ns();                             \
		size_t first = w.size * gdr_block_id(), at = first, end = w.span * (size_t)w.turns;\
		int i, ret = 0;                                                                    \
                                                                                                   \
		for (i = 0; i < w.n && !ret; i++) {                                                \
			ret = __VA_ARGS__;                                                         \
			at += w.span;                                                              \
			at = at < end ? at : first;                                                \
		}                                                                                  \
		behind;                                                                            \
		gdr_sync_block();                                                                  \
		if (gdr_thread_id())                                                               \
			return;                                                                    \
		if (!ret)                                                                          \
			ret = gdr_quiet();                                                         \
		w.time[2 * gdr_block_id()] = start;                                                \
		w.time[2 * gdr_block_id() + 1] = gdr_clock_ns();                                   \
		w.status[gdr_block_id()] = ret;                                                    \
	}
STREAM(stream_put, gdr_put_nbi_block(w.dst + at, w.src + at, w.size, w.peer))
STREAM(stream_get, gdr_get_nbi_block(w.dst + at, w.src + at, w.size, w.peer))

/* ---- one thread; `at` walks through WORDS places; take: what becomes of the calls' own ---- */

#define LOOP(name, take, ...) LOOP_OF(name, , , take, __VA_ARGS__)
#define LOOP_OF(name, before, behind, take, ...)                                                   \
	GDR_KERNEL(name, struct work, w)                                                           \
	{                                                                                          \
		before;                                                                            \
		__attribute__((unused)) uint64_t *src = (uint64_t *)w.src;                         \
		__attribute__((unused)) uint64_t *dst = (uint64_t *)w.dst;                         \
		uint64_t start = gdr_clock_ns(), at = 0, sum = 0;                                  \
		uint64_t step = (uint64_t)w.step;                                                  \
		int i, ret = 0;                                                                    \
                                                                                                   \
		for (i = 0; i < w.n; i++, at = (at + step) % WORDS)                                \
			take __VA_ARGS__;                                                          \
		w.time[0] = start;                                                                 \
		w.time[1] = gdr_clock_ns();                                                        \
		behind;                                                                            \
		if (!ret)                                                                          \
			ret = gdr_quiet();                                                         \
		w.status[0] = sum ? -1 : ret; /* what is read is zero */                           \
	}
#define AND_QUIET(...) ((__VA_ARGS__), gdr_quiet())
/* The source is zero; each address depends on the value before. */
#define NEXT(value) (sum += (value), (int)((at += sum) & 0))
LOOP(put_quiet, ret |=, AND_QUIET(gdr_put_nbi(dst + at, src + at, w.size, w.peer)))
LOOP(p_quiet, ret |=, AND_QUIET(gdr_uint64_p(dst + at, at, w.peer)))
LOOP(p_call, (void), gdr_uint64_p(dst + at, at, w.peer))
LOOP(put_call, (void), gdr_put_nbi(dst + at, src, 8, w.peer))
LOOP(inc_call, (void), gdr_uint64_atomic_inc(dst + at, w.peer))
LOOP(barrier_call, ret |=, gdr_barrier_all())
LOOP(sync_call, ret |=, gdr_sync_all())

/* ---- by way of shared memory, which NVSHMEM is given for a kernel, gdr for a call ---- */

#ifndef BULK_BEGIN
#define HAS_BULK 1
#define BULK_BEGIN
#define BULK_END
#endif
#if HAS_BULK
STREAM_OF(bulk_put, BULK_BEGIN, BULK_END,
	  gdr_put_bulk_nbi_block(w.dst + at, w.src + at, w.size, gdr_shared(), w.stage, w.peer))
STREAM_OF(bulk_get, BULK_BEGIN, BULK_END,
	  gdr_get_bulk_nbi_block(w.dst + at, w.src + at, w.size, gdr_shared(), w.stage, w.peer))
LOOP_OF(bulk_put_quiet, BULK_BEGIN, BULK_END, ret |=,
	AND_QUIET(gdr_put_bulk_nbi(dst + at, src + at, w.size, gdr_shared(), w.stage, w.peer)))
LOOP_OF(bulk_get_one, BULK_BEGIN, BULK_END, ret |=,
	(gdr_get_bulk(dst, FAR(src), w.size, gdr_shared(), w.stage, w.peer), NEXT(*dst)))
#endif

/* 8-byte puts of all threads, step words apart. */
GDR_KERNEL(put_many, struct work, w)
{
	uint64_t *src = (uint64_t *)w.src, *dst = (uint64_t *)w.dst;
	uint64_t start = gdr_clock_ns(), threads = (uint64_t)gdr_block_size() * gdr_grid_size();
	uint64_t at = gdr_block_id() * (uint64_t)gdr_block_size() + gdr_thread_id();
	int i, ret = 0;

	for (i = 0; i < w.n && !ret; i++, at += threads)
		ret = gdr_put_nbi(dst + at * (uint64_t)w.step, src + at * (uint64_t)w.step, 8, w.peer);
	gdr_sync_block();
	if (!ret)
		ret = gdr_quiet();
	gdr_sync_block();
	if (gdr_thread_id() && !ret)
		return;
	w.time[2 * gdr_block_id()] = start;
	w.time[2 * gdr_block_id() + 1] = gdr_clock_ns();
	w.status[gdr_block_id()] = ret;
}

LOOP(get_one, ret |=, (gdr_get_nbi(dst, FAR(src), w.size, w.peer), gdr_quiet(), NEXT(*dst)))
LOOP(get_blocking, ret |=, (gdr_get(dst, FAR(src), w.size, w.peer), NEXT(*dst)))
LOOP(g_one, ret |=, NEXT(gdr_uint64_g(FAR(src), w.peer)))
LOOP(fetch_add_one, ret |=, NEXT(gdr_uint64_atomic_fetch_add(FAR(src), 0, w.peer)))

/* ---- ping-pong ----
 *
 * The words take turns: how near one lies to who waits differs from line to line by 0.1 us. */
#define SIGS 64
#define SIG(words) ((words) + 16 * (i % SIGS))

#define PING_PONG(name, send, wait)                                                                \
	GDR_KERNEL(name, struct work, w)                                                           \
	{                                                                                          \
		uint64_t start = gdr_thread_id() ? 0 : gdr_clock_ns(), value;                      \
		int i, ret = 0;                                                                    \
                                                                                                   \
		for (i = 1; i <= w.n && !ret; i++) {                                               \
			value = w.base + (uint64_t)i;                                              \
			if (!(w.me & 1))                                                           \
				ret = send;                                                        \
			if (gdr_thread_id() == 0 && !ret)                                          \
				ret = wait;                                                        \
			if (gdr_block_size() > 1)                                                  \
				gdr_sync_block();                                                  \
			if (w.me & 1)                                                              \
				ret = send;                                                        \
		}                                                                                  \
		if (gdr_thread_id())                                                               \
			return;                                                                    \
		w.time[0] = start;                                                                 \
		w.time[1] = gdr_clock_ns();                                                        \
		w.status[0] = ret;                                                                 \
	}
#define SIGNAL_WAIT gdr_signal_wait_until_from(SIG(w.sig), GDR_CMP_EQ, value, w.peer)
PING_PONG(signal_only, gdr_signal_op(SIG(w.sig), value, GDR_SIGNAL_SET, w.peer), SIGNAL_WAIT)
PING_PONG(put_signal, gdr_put_signal_nbi(w.dst, w.src, w.size, SIG(w.sig), value, GDR_SIGNAL_SET, w.peer),
	  SIGNAL_WAIT)
PING_PONG(put_signal_block,
	  gdr_put_signal_nbi_block(w.dst, w.src, w.size, SIG(w.sig), value, GDR_SIGNAL_SET, w.peer),
	  SIGNAL_WAIT)

/* ---- what the link allows ---- */

#ifdef __CUDACC__

GDR_DEVICE int raw_store(volatile uint64_t *p, uint64_t v)
{
	*p = v;
	return 0;
}

GDR_DEVICE int raw_fence(void)
{
	asm volatile("fence.acq_rel.sys;" ::: "memory");
	return 0;
}

GDR_DEVICE int raw_release(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("fence.release.sys;" ::: "memory");
	return 0;
#else
	return raw_fence();
#endif
}

/* 1 KiB, as one thread's plain loads and stores do it. */
GDR_DEVICE int raw_copy(uint64_t *to, const uint64_t *from)
{
	const uint4 *s = (const uint4 *)from;
	uint4 *d = (uint4 *)to, v[8];
	int i, k;

#pragma unroll
	for (i = 0; i < 64; i += 8) {
#pragma unroll
		for (k = 0; k < 8; k++)
			v[k] = s[i + k];
#pragma unroll
		for (k = 0; k < 8; k++)
			d[i + k] = v[k];
	}
	return 0;
}

GDR_DEVICE int raw_wait_least(volatile uint64_t *p, uint64_t v)
{
	uint32_t i;

	for (i = 0; *p < v; i++)
		if (i > 100000000u)
			return -1;
	return 0;
}

GDR_DEVICE int raw_wait(volatile uint64_t *p, uint64_t v)
{
	uint32_t i;

	for (i = 0; *p != v; i++)
		if (i > 100000000u)
			return -1;
	return 0;
}

/* src, dst: the peer's memory as it is mapped here; sig[0] is one's own, far the peer's. */
LOOP(raw_store_call, ret |=, raw_store(dst + at, at))
LOOP(raw_store_fence, ret |=, (raw_store(dst + at, at), raw_fence()))
LOOP(raw_load, ret |=, NEXT(*(volatile uint64_t *)FAR(src)))
LOOP(raw_copy_fence, ret |=, (raw_copy(dst + at, w.sig), raw_fence()))
PING_PONG(raw_fence_flag, (raw_release(), raw_store(SIG(w.far), value)), raw_wait(SIG(w.sig), value))
PING_PONG(raw_flag, raw_store(SIG(w.far), value), raw_wait(SIG(w.sig), value))
PING_PONG(raw_data_flag,
	  (raw_store((uint64_t *)w.dst, value), raw_fence(), raw_store(SIG(w.far), value)),
	  raw_wait(SIG(w.sig), value))
/* A block's, with the meetings that it cannot do without: who gave the data has to be through before, and none goes on
 * before it is sent. */
PING_PONG(raw_data_flag_block,
	  (__syncthreads(), gdr_thread_id() ? 0 : raw_store((uint64_t *)w.dst, value),
	   __syncthreads(), gdr_thread_id() ? 0 : (raw_release(), raw_store(SIG(w.far), value))),
	  raw_wait(SIG(w.sig), value))

/* Both tell each other, and hear: what a barrier of two is at least. */
GDR_KERNEL(raw_meet, struct work, w)
{
	uint64_t start = gdr_clock_ns(), value;
	int i, ret = 0;

	for (i = 1; i <= w.n && !ret; i++) {
		value = w.base + (uint64_t)i;
		raw_release();
		raw_store(SIG(w.far), value);
		ret = raw_wait_least(SIG(w.sig), value);
	}
	w.time[0] = start;
	w.time[1] = gdr_clock_ns();
	w.status[0] = ret;
}
#endif

/* ---- posting ----
 *
 * All rings are empty when a burst begins, and have room for it: nothing is waited for but what posting
 * itself waits for. What is posted is completed by a kernel of its own. */
#ifdef __CUDACC__
#define POST(name, size)                                                                           \
	GDR_KERNEL(name, struct work, w)                                                           \
	{                                                                                          \
		size_t at = ((size_t)gdr_block_id() * gdr_block_size() + gdr_thread_id()) * 128;   \
		uint64_t begin, end;                                                               \
		long long from;                                                                    \
		int i, ret = 0;                                                                    \
                                                                                                   \
		gdr_sync_block();                                                                  \
		begin = gdr_clock_ns();                                                            \
		from = clock64();                                                                  \
		for (i = 0; i < w.n; i++)                                                          \
			ret |= gdr_put_nbi(w.dst + at, w.src + at, size, w.peer);                  \
		from = clock64() - from;                                                           \
		end = gdr_clock_ns();                                                              \
		gdr_sync_block();                                                                  \
		if (gdr_thread_id())                                                               \
			return;                                                                    \
		w.time[2 * gdr_block_id()] = begin;                                                \
		w.time[2 * gdr_block_id() + 1] = end;                                              \
		w.cycles[gdr_block_id()] = (uint64_t)from;                                         \
		w.status[gdr_block_id()] = ret;                                                    \
	}
POST(post_8, 8)
POST(post_64, 64)
GDR_KERNEL(complete, struct work, w)
{
	w.status[0] = gdr_quiet();
}
#endif

/* ---- host ---- */

static struct work base;
static int fewer = 1; /* rounds are divided by it */

struct timing {
	double median, least, most; /* ns */
};

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static void must(int status, const char *what)
{
	if (!status)
		return;
	fprintf(stderr, "gdr_perf: PE %d: %s: %s\n", gdr_host_my_pe(), what, gdr_strerror(status));
	exit(1);
}

/* Nanoseconds from the first block's begin to the last one's end. */
static double take(unsigned blocks)
{
	uint64_t time[2 * BLOCKS_MAX], begin = UINT64_MAX, end = 0;
	int status[BLOCKS_MAX];
	unsigned b;

	must(gdr_memcpy(time, base.time, blocks * 2 * sizeof(*time)), "copying times");
	must(gdr_memcpy(status, base.status, blocks * sizeof(*status)), "copying a status");
	for (b = 0; b < blocks; b++) {
		must(status[b], "in a kernel");
		begin = time[2 * b] < begin ? time[2 * b] : begin;
		end = time[2 * b + 1] > end ? time[2 * b + 1] : end;
	}
	return (double)(end - begin);
}

#define MEASURE(kernel, blocks, threads, both, w, out)                                             \
	do {                                                                                       \
		double t_[REPEATS + 1];                                                            \
		int r_;                                                                            \
                                                                                                   \
		for (r_ = 0; r_ <= REPEATS; r_++) {                                                \
			must(gdr_barrier_all(), "barrier");                                        \
			if (both || !((w)->me & 1)) {                                              \
				must(gdr_launch(kernel, blocks, threads, (w)->stage, NULL, w), "launch"); \
				must(gdr_stream_sync(NULL), "kernel");                             \
			}                                                                          \
			t_[r_] = both || !((w)->me & 1) ? take(blocks) : 0;                        \
			(w)->base += (uint64_t)(w)->n;                                             \
		}                                                                                  \
		must(gdr_barrier_all(), "barrier");                                                \
		base.base = (w)->base;                                                             \
		qsort(t_ + 1, REPEATS, sizeof(*t_), by_value);                                     \
		(out)->median = t_[1 + REPEATS / 2];                                               \
		(out)->least = t_[1];                                                              \
		(out)->most = t_[REPEATS];                                                         \
	} while (0)

static const unsigned some_blocks[] = {1, 2, 4, 8, 16, 32, 64, 132};
static const size_t some_sizes[] = {4096, 65536, 1 << 20, 16 << 20, 256 << 20};

/* only: the one of some_sizes; 5: all. */
static void bandwidth(int get, unsigned only)
{
	const char *name = get ? "get" : "put";
	struct work w = base;
	struct timing t;
	unsigned b, s;

	for (b = 0; b < (fewer > 1 ? 4 : 8); b++) {
		for (s = 0; s < (fewer > 1 ? 3 : 5) && some_sizes[s] <= AREA; s++) {
			double bytes;

			if (only < 5 && s != only)
				continue;
			w.size = some_sizes[s] / some_blocks[b] & ~(size_t)127;
			w.n = (s == 4 ? 4 : s == 3 ? 40 : 400) / fewer;
			if (!w.size)
				continue;
			w.span = some_sizes[s];
			w.turns = w.span < ROUND ? (int)(ROUND / w.span) : 1;
			bytes = (double)w.size * some_blocks[b] * w.n;
			if (get)
				MEASURE(stream_get, some_blocks[b], 1024, 0, &w, &t);
			else
				MEASURE(stream_put, some_blocks[b], 1024, 0, &w, &t);
			if (!w.me)
				printf("RESULT %s_block_%u_%zuKiB %.2f GB/s [%.2f..%.2f]\n", name,
				       some_blocks[b], some_sizes[s] >> 10, bytes / t.median,
				       bytes / t.most, bytes / t.least);
		}
	}
}

/* Puts of one MiB by each block. */
static void run_mib_each(void)
{
	struct work w = base;
	struct timing t;
	unsigned b;

	for (b = 0; b < 8; b++) {
		w.size = 1 << 20;
		w.span = w.size * some_blocks[b];
		if (w.span > AREA)
			break;
		w.turns = (int)(ROUND / w.span ? ROUND / w.span : 1);
		w.n = (int)(some_blocks[b] < 8 ? 100 : 800 / some_blocks[b]);
		MEASURE(stream_put, some_blocks[b], 1024, 0, &w, &t);
		if (!w.me)
			printf("RESULT put_1MiB_each_of_%u_blocks %.2f GB/s [%.2f..%.2f]\n",
			       some_blocks[b], (double)w.span * w.n / t.median,
			       (double)w.span * w.n / t.most, (double)w.span * w.n / t.least);
	}
}

/* both: the peer runs it too. div: rounds of a figure. */
#define FIGURE(name, kernel, bytes, threads, both, div, rounds)                                    \
	FIGURE_AT(name, kernel, bytes, (bytes) < 16 ? 1 : 2, threads, both, div, rounds)
/* words: from one place to the next; even where all shall be aligned to 16 bytes. */
#define FIGURE_AT(name, kernel, bytes, words, threads, both, div, rounds)                          \
	do {                                                                                       \
		struct work w_ = base;                                                             \
		struct timing f_;                                                                  \
                                                                                                   \
		w_.size = (bytes);                                                                 \
		w_.step = words;                                                                   \
		w_.n = rounds;                                                                     \
		MEASURE(kernel, 1, threads, both, &w_, &f_);                                       \
		if (!w_.me)                                                                        \
			printf("RESULT %s %.1f ns [%.1f..%.1f]\n", name,                           \
			       f_.median / (rounds) / (div), f_.least / (rounds) / (div),          \
			       f_.most / (rounds) / (div));                                        \
	} while (0)

#if HAS_BULK
/* Blocks of two warps, since the engine's work is that of one thread: by the engine, and without. */
static void bulk_stream(int get, unsigned blocks, size_t size)
{
	struct work w = base;
	struct timing t;
	int plain;

	w.span = size;
	w.size = size / blocks & ~(size_t)127;
	w.n = size >> 28 ? 4 : size >> 24 ? 40 : 400;
	w.turns = size < ROUND ? (int)(ROUND / size) : 1;
	for (plain = 0; plain < 2; plain++) {
		double bytes = (double)w.size * blocks * w.n;

		w.stage = plain ? 0 : 131072 + 4096;
		if (plain && get)
			MEASURE(stream_get, blocks, 64, 0, &w, &t);
		else if (plain)
			MEASURE(stream_put, blocks, 64, 0, &w, &t);
		else if (get)
			MEASURE(bulk_get, blocks, 64, 0, &w, &t);
		else
			MEASURE(bulk_put, blocks, 64, 0, &w, &t);
		if (!w.me)
			printf("RESULT %s%s_64_threads_%u_%zuKiB %.2f GB/s [%.2f..%.2f]\n", plain ? "" : "bulk_",
			       get ? "get" : "put", blocks, size >> 10, bytes / t.median, bytes / t.most,
			       bytes / t.least);
	}
}
#endif

static void run_bulk(int n)
{
#if HAS_BULK
	static const unsigned blocks[] = {1, 8, 32, 132};
	static const size_t sizes[] = {8192, 16384, 32768, 65536, 1 << 20, 16 << 20, 256 << 20};
	static const size_t len[] = {256, 512, 1024, 2048, 4096, 16384};
	unsigned b, s, get;
	char name[64];

	for (get = 0; get < 2; get++)
		for (s = 0; s < 7 && sizes[s] <= AREA; s++)
			for (b = 0; b < (s < 4 ? 1u : 4u); b++)
				bulk_stream((int)get, blocks[b], sizes[s]);
	base.stage = 32768;
	for (s = 0; s < 6; s++) {
		snprintf(name, sizeof(name), "bulk_put_quiet_%zuB_thread", len[s]);
		FIGURE(name, bulk_put_quiet, len[s], 1, 0, 1, n);
		snprintf(name, sizeof(name), "put_quiet_%zuB_thread", len[s]);
		FIGURE(name, put_quiet, len[s], 1, 0, 1, n);
		snprintf(name, sizeof(name), "bulk_get_%zuB_thread", len[s]);
		FIGURE(name, bulk_get_one, len[s], 1, 0, 1, n);
		snprintf(name, sizeof(name), "get_%zuB_thread", len[s]);
		FIGURE(name, get_blocking, len[s], 1, 0, 1, n);
	}
	base.stage = 0;
#else
	(void)n;
#endif
}

#ifdef __CUDACC__
/* Median over the launches of the mean over the blocks. */
static double cycles_of(unsigned blocks)
{
	uint64_t cycles[BLOCKS_MAX], sum = 0;
	unsigned b;

	must(gdr_memcpy(cycles, base.cycles, blocks * sizeof(*cycles)), "copying cycles");
	for (b = 0; b < blocks; b++)
		sum += cycles[b];
	return (double)sum / blocks;
}

static void post(int size, unsigned blocks, unsigned lanes, unsigned room, unsigned ring)
{
	double cycles[REPEATS + 1], time[REPEATS + 1], posts;
	struct work w = base;
	int r;

	w.n = (int)(room / 2 / blocks / lanes); /* blocks are not spread evenly */
	w.n = w.n > (int)(ring / 2 / lanes) ? (int)(ring / 2 / lanes) : w.n; /* one block has one ring */
	w.n = w.n > 400 ? 400 : w.n;
	if (w.n < 2)
		return;
	for (r = 0; r <= REPEATS; r++) {
		must(gdr_barrier_all(), "barrier");
		if (w.me)
			continue;
		if (size == 8)
			must(gdr_launch(post_8, blocks, lanes, 0, NULL, &w), "launch");
		else
			must(gdr_launch(post_64, blocks, lanes, 0, NULL, &w), "launch");
		must(gdr_stream_sync(NULL), "kernel");
		time[r] = take(blocks);
		cycles[r] = cycles_of(blocks);
		must(gdr_launch(complete, 1, 1, 0, NULL, &w), "launch");
		must(gdr_stream_sync(NULL), "kernel");
		take(1);
	}
	if (w.me)
		return;
	qsort(cycles + 1, REPEATS, sizeof(*cycles), by_value);
	qsort(time + 1, REPEATS, sizeof(*time), by_value);
	posts = (double)w.n * blocks * lanes;
	printf("RESULT post_%dB_%s_%u_call %.1f cycles [%.1f..%.1f]\n", size,
	       lanes == 1 ? "thread" : "warp", blocks, cycles[1 + REPEATS / 2] / w.n, cycles[1] / w.n,
	       cycles[REPEATS] / w.n);
	printf("RESULT post_%dB_%s_%u_rate %.2f M/s [%.2f..%.2f]\n", size,
	       lanes == 1 ? "thread" : "warp", blocks, posts * 1000 / time[1 + REPEATS / 2],
	       posts * 1000 / time[REPEATS], posts * 1000 / time[1]);
}
#endif

static void run_post(void)
{
#ifdef __CUDACC__
	const char *all = getenv("PERF_ROOM"), *one = getenv("PERF_RING");
	unsigned room = all ? (unsigned)atoi(all) : 1500, ring = one ? (unsigned)atoi(one) : room, b;
	static const unsigned blocks[] = {1, 8, 32, 132};

	for (b = 0; b < 4; b++) {
		post(8, blocks[b], 1, room, ring);
		post(8, blocks[b], 32, room, ring);
		post(64, blocks[b], 1, room, ring);
		post(64, blocks[b], 32, room, ring);
	}
#endif
}

/* In pairs without and with posts: 8 B, 64 B by a thread, 8 B, 64 B by a warp. */
static void run_count(void)
{
#ifdef __CUDACC__
	unsigned i;

	for (i = 0; i < 8; i++) {
		struct work w = base;
		unsigned lanes = i < 4 ? 1 : 32;

		w.n = i % 2 ? 200 : 0;
		must(gdr_barrier_all(), "barrier");
		if (w.me)
			continue;
		if (i % 4 < 2)
			must(gdr_launch(post_8, 1, lanes, 0, NULL, &w), "launch");
		else
			must(gdr_launch(post_64, 1, lanes, 0, NULL, &w), "launch");
		must(gdr_stream_sync(NULL), "kernel");
		take(1);
		must(gdr_launch(complete, 1, 1, 0, NULL, &w), "launch");
		must(gdr_stream_sync(NULL), "kernel");
		take(1);
		printf("COUNT %s %d\n", i % 4 < 2 ? "post_8" : "post_64", w.n);
	}
#endif
}

static int wanted(int argc, char **argv, const char *name)
{
	int i;

	for (i = 1; i < argc && strcmp(argv[i], name); i++)
		;
	return argc == 1 || i < argc;
}

/* The name that is none, or NULL. */
static const char *unknown(int argc, char **argv)
{
	static const char *const names[] = {"raw", "latency", "signal", "rate", "barrier", "post", "count", "put",
					    "get", "bulk", "many", "one_mib", "p_quiet", "mib_each"};
	size_t k;
	int i;

	for (i = 1; i < argc; i++) {
		for (k = 0; k < sizeof(names) / sizeof(*names) && strcmp(argv[i], names[k]); k++)
			;
		if (k == sizeof(names) / sizeof(*names))
			return argv[i];
	}
	return NULL;
}

static void run_raw(int n)
{
#ifdef __CUDACC__
	struct work ours = base;

	base.src = (char *)gdr_host_ptr(base.src, base.peer);
	base.dst = (char *)gdr_host_ptr(base.dst, base.peer);
	base.far = (uint64_t *)gdr_host_ptr(base.sig, base.peer);
	if (!base.src || !base.far)
		return;
	FIGURE("raw_store_call", raw_store_call, 8, 1, 0, 1, n * 10);
	FIGURE("raw_store_fence", raw_store_fence, 8, 1, 0, 1, n);
	FIGURE("raw_copy_1KiB_fence", raw_copy_fence, 1024, 1, 0, 1, n);
	FIGURE("raw_load", raw_load, 8, 1, 0, 1, n);
	FIGURE("raw_flag_one_way", raw_flag, 8, 1, 1, 2, n);
	FIGURE("raw_data_fence_flag_one_way", raw_data_flag, 8, 1, 1, 2, n);
	FIGURE("raw_data_fence_flag_one_way_block", raw_data_flag_block, 8, 1024, 1, 2, n);
	FIGURE("raw_fence_flag_one_way", raw_fence_flag, 8, 1, 1, 2, n);
	FIGURE("raw_fence_flag_both", raw_meet, 8, 1, 1, 1, n);
	ours.base = base.base;
	base = ours;
#else
	(void)n;
#endif
}

static void run_latency(int n)
{
	FIGURE("put_quiet_8B_thread", put_quiet, 8, 1, 0, 1, n);
	FIGURE("put_quiet_64B_thread", put_quiet, 64, 1, 0, 1, n);
	FIGURE("put_quiet_1KiB_thread", put_quiet, 1024, 1, 0, 1, n);
	FIGURE("put_quiet_4KiB_thread", put_quiet, 4096, 1, 0, 1, n);
	FIGURE_AT("put_quiet_1KiB_thread_8B_aligned", put_quiet, 1024, 1, 1, 0, 1, n);
	FIGURE("p_quiet_thread", p_quiet, 8, 1, 0, 1, n);
	FIGURE("get_8B_thread", get_blocking, 8, 1, 0, 1, n);
	FIGURE("get_1KiB_thread", get_blocking, 1024, 1, 0, 1, n);
	FIGURE("get_quiet_8B_thread", get_one, 8, 1, 0, 1, n);
	FIGURE("g_thread", g_one, 8, 1, 0, 1, n);
	FIGURE("fetch_add_thread", fetch_add_one, 8, 1, 0, 1, n);
}

static void run_many(void)
{
	static const unsigned blocks[] = {1, 4, 16};
	static const int step[] = {1, 8};
	const unsigned threads = 256;
	unsigned b, s;

	for (b = 0; b < 3; b++)
		for (s = 0; s < 2; s++) {
			struct work w = base;
			struct timing t;
			double n;

			w.n = 32;
			w.step = step[s];
			n = (double)w.n * threads * blocks[b];
			MEASURE(put_many, blocks[b], threads, 0, &w, &t);
			if (!w.me)
				printf("RESULT put_nbi_8B_%ux%u_step_%d %.3f Mops [%.3f..%.3f]\n",
				       blocks[b], threads, 8 * step[s], 1e3 * n / t.median,
				       1e3 * n / t.most, 1e3 * n / t.least);
		}
}

static void run(int argc, char **argv, int n)
{
	if (wanted(argc, argv, "raw"))
		run_raw(n);
	if (wanted(argc, argv, "latency"))
		run_latency(n);
	if (wanted(argc, argv, "signal")) {
		FIGURE("signal_one_way", signal_only, 8, 1, 1, 2, n);
		FIGURE("put_signal_8B_one_way_thread", put_signal, 8, 1, 1, 2, n);
		FIGURE("put_signal_8B_one_way_block", put_signal_block, 8, 1024, 1, 2, n);
	}
	if (wanted(argc, argv, "rate")) {
		FIGURE("p_call", p_call, 8, 1, 0, 1, n * 10);
		FIGURE("put_nbi_8B_call", put_call, 8, 1, 0, 1, n * 10);
		FIGURE("atomic_inc_call", inc_call, 8, 1, 0, 1, n * 10);
	}
	if (wanted(argc, argv, "barrier")) {
		FIGURE("barrier_thread", barrier_call, 0, 1, 1, 1, n);
		FIGURE("sync_thread", sync_call, 0, 1, 1, 1, n);
	}
	if (argc > 1 && wanted(argc, argv, "post"))
		run_post();
	if (argc > 1 && wanted(argc, argv, "count"))
		run_count();
	if (wanted(argc, argv, "put"))
		bandwidth(0, 5);
	if (wanted(argc, argv, "get"))
		bandwidth(1, 5);
	if (argc > 1 && wanted(argc, argv, "bulk"))
		run_bulk(n);
	if (argc > 1 && wanted(argc, argv, "many"))
		run_many();
	if (argc > 1 && wanted(argc, argv, "one_mib"))
		bandwidth(0, 2);
	if (argc > 1 && wanted(argc, argv, "p_quiet"))
		FIGURE("p_quiet_thread", p_quiet, 8, 1, 0, 1, n);
	if (argc > 1 && wanted(argc, argv, "mib_each"))
		run_mib_each();
}

int main(int argc, char **argv)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	struct gdr_job_info info;
	int n = 2000, bad;

	help_if_asked(argc, argv, "gdr_perf [--plot FILE [--beside [LABEL=]LINES]] [short] [NAME..]\n"
				  "  on an even number of PEs; --plot: figures as curves by size, an .svg or .png;\n"
				  "  --beside: with those of a peer's run\n"
				  "  raw put get latency signal rate barrier: these by default\n"
				  "  bulk many one_mib post count p_quiet mib_each: only when named");
	if (plot_options(&argc, &argv))
		return 2;
	if (argc > 1 && !strcmp(argv[1], "short")) {
		fewer = 20;
		argv++;
		argc--;
	}
	if (unknown(argc, argv)) {
		fprintf(stderr, "gdr_perf: %s is no figure: see --help\n", unknown(argc, argv));
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0); /* a run that is cut off keeps its lines */
	attr.heap_size = 3 * AREA; /* the library's part is an eighth at most */
	if (gdr_init_attr(&attr))
		return 1;
	must(gdr_query(&info), "query");
	if (gdr_host_n_pes() % 2) {
		fprintf(stderr, "gdr_perf: run on an even number of PEs\n");
		gdr_finalize();
		return 2;
	}
	base.me = gdr_host_my_pe();
	base.peer = base.me ^ 1;
	base.src = (char *)gdr_calloc(1, AREA);
	base.dst = (char *)gdr_calloc(1, AREA);
	base.sig = (uint64_t *)gdr_calloc(16 * SIGS, sizeof(uint64_t));
	base.time = (uint64_t *)gdr_calloc(2 * BLOCKS_MAX, sizeof(uint64_t));
	base.cycles = (uint64_t *)gdr_calloc(BLOCKS_MAX, sizeof(uint64_t));
	base.status = (int *)gdr_calloc(BLOCKS_MAX, sizeof(int));
	if (!base.src || !base.dst || !base.sig || !base.time || !base.status || !base.cycles) {
		fprintf(stderr, "gdr_perf: a heap of %zu bytes has no room for two areas of %zu\n", attr.heap_size,
			(size_t)AREA);
		return 1;
	}
	if (!base.me && plot_begin())
		return 1;
	if (!base.me)
		printf("%d PEs, %s, %d by mapped memory, %d by queues\n", gdr_host_n_pes(),
		       info.device_kind, info.n_p2p, info.n_nic);
	run(argc, argv, n / fewer);
	must(gdr_barrier_all(), "barrier");
	bad = plot_end();
	return gdr_finalize() || bad;
}
