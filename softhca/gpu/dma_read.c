/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads of memory of GPUs, into pinned memory. Short ones are polled at their destination: each
 * word of it is set to a value before that nothing else has, and what differs has arrived. The
 * driver is asked only when that takes too long: the data might have that value. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "softhca/engine/cpu.h"
#include "softhca/gpu/dma_impl.h"
#include "softhca/tools/log.h"

enum {
	POLLED = 8192,	 /* bytes of a waiting read that are polled */
	FETCHES = 1024,	 /* under way */
	SMALL = 512,	 /* bytes of a buffer */
	SMALLS = 2048,
	LARGE = 32 << 10,
	LARGES = 128,
};

struct fetch {
	uint64_t *words;
	size_t n, seen, len; /* words, of them arrived; bytes */
	cu_ptr from;
	uint64_t mark, since;
	uint64_t item; /* of dma_kernel.c, 0: in the stream */
	uint32_t qpn; /* of a ring, 0: a payload */
};

static struct fetch fetches[FETCHES];
static uint64_t fetch_head = 1, fetch_tail = 1, fetch_given = 1; /* given to the driver below */
static uint64_t mark;
static unsigned collecting;
static uint8_t *buffers; /* SMALLS of SMALL bytes, LARGES of LARGE bytes */
static uint16_t free_small[SMALLS], free_large[LARGES];
static unsigned n_small, n_large;

/* ---- buffers ---- */

int dma_read_start(const struct cuda_api *api)
{
	void *p;

	if (!dma_ok(api->host_alloc(&p, SMALLS * SMALL + LARGES * LARGE,
					    CU_HOST_PORTABLE), "cuMemHostAlloc"))
		return -ENOMEM;
	buffers = p;
	for (n_small = 0; n_small < SMALLS; n_small++)
		free_small[n_small] = (uint16_t)(SMALLS - 1 - n_small);
	for (n_large = 0; n_large < LARGES; n_large++)
		free_large[n_large] = (uint16_t)(LARGES - 1 - n_large);
	if (getrandom(&mark, sizeof(mark), GRND_NONBLOCK) != sizeof(mark))
		mark = dp_clock() * 0x9e3779b97f4a7c15u;
	return 0;
}

void *dma_buffer(size_t n)
{
	if (!buffers || n > LARGE || fetch_tail - fetch_head >= FETCHES - 1)
		return NULL;
	if (n <= SMALL && n_small)
		return buffers + (size_t)free_small[--n_small] * SMALL;
	if (n_large)
		return buffers + SMALLS * SMALL + (size_t)free_large[--n_large] * LARGE;
	return NULL;
}

bool dma_buffer_free(void *buffer)
{
	size_t at = (size_t)((uint8_t *)buffer - buffers);

	if (!buffers || (uint8_t *)buffer < buffers || at >= SMALLS * SMALL + LARGES * LARGE)
		return false;
	if (at < SMALLS * SMALL)
		free_small[n_small++] = (uint16_t)(at / SMALL);
	else
		free_large[n_large++] = (uint16_t)((at - SMALLS * SMALL) / LARGE);
	return true;
}

/* ---- marks ---- */

/* Room is a multiple of eight bytes: of a last word that is not full all of it is marked, and
 * stays so in part. */
static uint64_t set_marks(uint64_t *words, size_t n)
{
	mark = mark * 6364136223846793005u + 1442695040888963407u;
	for (size_t i = 0; i < n; i++)
		/* Relaxed: the copy is asked for behind it, by way of the driver's locks. */
		__atomic_store_n(&words[i], mark, __ATOMIC_RELAXED);
	return mark;
}

/* How many words from seen on are there: all in front of the result. */
static size_t dma_read_arrived(const uint64_t *words, size_t n, size_t seen, uint64_t m)
{
	/* Acquire: pairs with the copy, which writes words whole. */
	while (seen < n && __atomic_load_n(&words[seen], __ATOMIC_ACQUIRE) != m)
		seen++;
	return seen;
}

/* Has the stream nothing left to do? */
static bool stream_idle(cu_stream s)
{
	cu_result rc = DMA_CALL(stream_query, "cuStreamQuery", s);

	return !dma_not_ready(rc) && (dma_ok(rc, "cuStreamQuery") || true);
}

/* ---- reads that wait ---- */

static bool dma_read_late(uint64_t start, cu_stream s)
{
	uint64_t waited = dp_clock() - start;

	if (waited > DMA_LIMIT_NS) {
		hca_warn("a copy from memory of a GPU has not ended within 10 s");
		dma_gpu.dead = true;
	}
	return dma_gpu.dead || (waited > DMA_DOUBT_NS && stream_idle(s));
}

static void wait_words(uint64_t *words, size_t n, uint64_t m, cu_stream s)
{
	uint64_t start = dp_clock();
	size_t seen = 0;

	for (unsigned i = 1; (seen = dma_read_arrived(words, n, seen, m)) < n; i++) {
		hca_cpu_relax();
		if (i % 64 == 0 && dma_read_late(start, s))
			return;
	}
}

static void wait_flag(uint32_t want, cu_stream s)
{
	uint64_t start = dp_clock();

	/* Acquire: pairs with the store of the stream behind its copies. */
	for (unsigned i = 1; __atomic_load_n(&dma_gpu.flag[16], __ATOMIC_ACQUIRE) != want; i++) {
		hca_cpu_relax();
		if (i % 1024 == 0 && dma_read_late(start, s))
			return;
	}
}

static bool read_piece(void *dst, cu_ptr src, size_t n, cu_stream s)
{
	static uint32_t flag;
	uint64_t *words = (uint64_t *)(void *)dma_gpu.sync, m = 0;
	size_t n_words = (n + 7) / 8;

	if (n <= POLLED)
		m = set_marks(words, n_words);
	if (!DMA_DO(to_host, "cuMemcpyDtoHAsync", words, src, n, s))
		return false;
	if (n > POLLED && !DMA_DO(write32, "cuStreamWriteValue32", s,
				  (uintptr_t)&dma_gpu.flag[16], ++flag, 0))
		return false;
	if (n <= POLLED)
		wait_words(words, n_words, m, s);
	else
		wait_flag(flag, s);
	memcpy(dst, words, n);
	STAT_INC(dma_reads);
	return !dma_gpu.dead;
}

void dma_read(void *dst, const void *src, size_t n, bool ordered)
{
	bool behind = ordered && !dma_done(dma_posted());
	cu_stream s = behind ? dma_gpu.writes : dma_gpu.reads;
	cu_ctx before;

	if (behind)
		dma_push_settle();
	before = dma_enter();
	for (size_t off = 0; off < n; off += DMA_SYNC) {
		size_t piece = n - off < DMA_SYNC ? n - off : DMA_SYNC;

		if (dma_gpu.dead || !read_piece((uint8_t *)dst + off, (uintptr_t)src + off, piece, s)) {
			memset((uint8_t *)dst + off, 0, n - off);
			break;
		}
	}
	dma_leave(before);
}

/* ---- reads under way ---- */

static bool dma_read_give(struct fetch *f, bool kernel)
{
	bool ok = true;

	f->mark = set_marks(f->words, f->n);
	f->item = kernel ? dma_kernel_read(f->words, f->from, f->len) : 0;
	if (!f->item)
		ok = DMA_DO(to_host, "cuMemcpyDtoHAsync", f->words, f->from, f->len, dma_gpu.reads);
	f->since = dp_clock(); /* the driver may have held up the call for long */
	return ok;
}

static void give_batch(void)
{
	static cu_ptr dst[FETCHES], src[FETCHES];
	static size_t len[FETCHES];
	struct cu_copy_attr attr = { .src_order = CU_SRC_ORDER_STREAM };
	size_t index = 0, fail = 0, n = 0;

	uint64_t first = fetch_given, now;

	for (; fetch_given != fetch_tail; fetch_given++) {
		struct fetch *f = &fetches[fetch_given % FETCHES];

		f->item = 0;
		f->mark = set_marks(f->words, f->n);
		dst[n] = (uintptr_t)f->words;
		src[n] = f->from;
		len[n++] = f->len;
	}
	if (dma_gpu.api->batch)
		DMA_DO(batch, "cuMemcpyBatchAsync", dst, src, len, n, &attr, &index, 1,
		       dma_gpu.reads);
	else
		DMA_DO(batch_1, "cuMemcpyBatchAsync", dst, src, len, n, &attr, &index, 1, &fail,
		       dma_gpu.reads);
	now = dp_clock(); /* as in dma_read_give() */
	for (; first != fetch_given; first++)
		fetches[first % FETCHES].since = now;
	STAT_INC(dma_batches);
}

static void give_all(void)
{
	cu_ctx before;

	if (fetch_given == fetch_tail || collecting)
		return;
	before = dma_enter();
	if (fetch_tail - fetch_given > 1 && (dma_gpu.api->batch || dma_gpu.api->batch_1) &&
	    !dma_kernel_ready(fetch_tail - fetch_given))
		give_batch();
	for (; fetch_given != fetch_tail; fetch_given++)
		dma_read_give(&fetches[fetch_given % FETCHES], true);
	dma_leave(before);
}

void dma_fetch_begin(void)
{
	collecting++;
}

void dma_fetch_end(void)
{
	if (!--collecting)
		give_all();
}

bool dma_fetch_room(unsigned n)
{
	return fetch_tail - fetch_head + n <= FETCHES;
}

uint64_t dma_fetch_as(uint32_t qpn, void *buffer, const void *src, size_t n)
{
	if (fetch_tail - fetch_head == FETCHES)
		return 0;
	fetches[fetch_tail % FETCHES] = (struct fetch){
		.words = buffer, .n = (n + 7) / 8, .len = n, .from = (uintptr_t)src, .qpn = qpn
	};
	fetch_tail++;
	STAT_INC(dma_reads);
	if (!qpn) /* those of rings that are found in one round go together: dma_read_poll() */
		give_all();
	return fetch_tail - 1;
}

uint64_t dma_fetch(void *buffer, const void *src, size_t n)
{
	return dma_fetch_as(0, buffer, src, n);
}

bool dma_fetched(uint64_t number)
{
	return number < fetch_head;
}

static bool here_by_kernel(struct fetch *f)
{
	int end = f->seen == f->n ? 1 : dma_kernel_item(f->item);
	cu_ctx before;

	if (!end && !dma_gpu.dead && dp_clock() - f->since <= DMA_LIMIT_NS)
		return false;
	dma_kernel_read_over();
	if (end > 0 || dma_gpu.dead)
		return true;
	before = dma_enter();
	dma_read_give(f, false);
	dma_leave(before);
	return false;
}

static bool dma_read_here(struct fetch *f)
{
	f->seen = dma_read_arrived(f->words, f->n, f->seen, f->mark);
	if (f->item)
		return here_by_kernel(f);
	return f->seen == f->n || dma_read_late(f->since, dma_gpu.reads);
}

void dma_read_settle(void)
{
	uint64_t last = fetch_tail, start = dp_clock();

	give_all();
	while (fetch_head < last && fetch_given >= last && dp_clock() - start < DMA_LIMIT_NS)
		dma_read_poll();
}

void dma_fetch_end_of(uint64_t number, void *buffer)
{
	if (!dma_fetched(number))
		dma_read_settle();
	dma_buffer_free(buffer);
}

unsigned dma_read_poll(void)
{
	bool any = false;

	give_all();
	while (fetch_head != fetch_given && dma_read_here(&fetches[fetch_head % FETCHES])) {
		uint32_t qpn = fetches[fetch_head++ % FETCHES].qpn;

		any = true;
		if (qpn)
			dma_queue_arrived(qpn);
	}
	if (any)
		dma_wake();
	return any;
}

bool dma_reading(void)
{
	return fetch_head != fetch_tail;
}
