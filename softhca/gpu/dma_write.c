/* SPDX-License-Identifier: BSD-3-Clause */
/* Posted writes to memory of GPUs.
 *
 * A queue collects them; dma_submit() hands it to the driver, cut into batches: copies of one
 * batch have no order among themselves, batches have. A strict write therefore begins a batch,
 * relaxed ones behind it share it (PCI Express: a relaxed write may pass earlier ones). Behind all
 * of them the stream stores the number of the submission into a word that is polled. While one
 * submission is under way the next is collected, so that batches grow with the load. */
#include <string.h>

#include "softhca/engine/cpu.h"
#include "softhca/gpu/dma_impl.h"
#include "softhca/memory/guest.h"
#include "softhca/tools/log.h"
#include "softhca/wire/wire.h"

enum {
	PUSH_AT = 512,	/* that many do not wait for the one before, */
	PUSH_BYTES = 1 << 20, /* nor do so many bytes, up to */
	LONG_FLIGHTS = 3, /* submissions under way: the copying goes on while they are made */
	FLIGHTS = 64,	/* of all kinds */
	PIECE = 512 << 10, /* staged at once */
	ONE_PIECE = 64, /* bytes of a strict write that arrive as one */
	MERGED = 64 << 10, /* bytes of relaxed writes that follow each other and go as one */
	NEAR = 32,	/* CQEs that are looked at for one to go on, and that may be in a batch, */
	NEAR_COPIES = 4, /* and copies from GPU to GPU: dma_submit.c finds the rest */
	CQE = 64,
	CQES = 16 * CQE, /* that may follow each other in a write */
};

static struct dma_queue queue;

static struct {
	uint64_t number, stage_end;
} flights[FLIGHTS];

static uint64_t stage_begin, stage_end; /* bytes ever given back, and taken */
static uint64_t submitted, completed;	/* numbers of submissions */
static unsigned flight_head, flight_tail;
static uint64_t last_news; /* when a submission was made or ended */
static bool relaxed_copies;
static bool long_flight; /* the last submission: another may follow */

uint64_t dma_posted(void)
{
	return submitted + (queue.n != 0);
}

bool dma_done(uint64_t number)
{
	return number <= completed;
}

bool dma_streams(void)
{
	return queue.bytes >= PUSH_BYTES || (long_flight && submitted != completed);
}

void dma_relax(bool relaxed)
{
	relaxed_copies = relaxed;
}

/* ---- progress ---- */

/* Takes note of what the stream has stored. */
static bool dma_write_look(void)
{
	/* Acquire: pairs with the store of the stream behind its copies. */
	uint32_t seen = __atomic_load_n(&dma_gpu.flag[0], __ATOMIC_ACQUIRE);
	uint64_t now = completed + (uint32_t)(seen - (uint32_t)completed);

	if (dma_kernel_writes()) { /* alone under way */
		if (!dma_kernel_written((uint32_t)submitted) && !dma_gpu.dead)
			return false;
		now = submitted;
	}
	if (dma_gpu.dead)
		now = submitted;
	if (now == completed || now > submitted)
		return false;
	completed = now;
	while (flight_head != flight_tail && flights[flight_head % FLIGHTS].number <= completed)
		stage_begin = flights[flight_head++ % FLIGHTS].stage_end;
	last_news = dp_now();
	dma_wake();
	return true;
}

/* Nothing has come for long: asks the driver whether it has an error to tell. */
static void dma_write_doubt(uint64_t now)
{
	/* last_news may be younger than the round's clock. */
	if (now < last_news + DMA_LIMIT_NS / 100)
		return;
	if (now - last_news > DMA_LIMIT_NS) {
		hca_warn("a copy to memory of a GPU has not ended within 10 s");
		dma_gpu.dead = true;
	} else {
		cu_result rc = DMA_CALL(stream_query, "cuStreamQuery", dma_gpu.writes);

		if (!dma_not_ready(rc))
			dma_ok(rc, "cuStreamQuery");
	}
}

static void dma_write_wait_for(uint64_t number)
{
	while (completed < number && !dma_gpu.dead) {
		if (!dma_write_look()) {
			hca_cpu_relax();
			dma_write_doubt(dp_clock());
		}
	}
	dma_write_look();
}

void dma_push(void)
{
	cu_ctx before;

	if (!queue.n)
		return;
	if (dma_kernel_writes())
		dma_write_wait_for(submitted);
	if (flight_tail - flight_head == FLIGHTS)
		dma_write_wait_for(flights[flight_head % FLIGHTS].number);
	before = dma_enter();
	if (!dma_gpu.dead && (submitted != completed || !dma_kernel_takes(&queue)))
		dma_hand_over(&queue, (uint32_t)(submitted + 1));
	dma_leave(before);
	submitted++;
	flights[flight_tail % FLIGHTS].number = submitted;
	flights[flight_tail++ % FLIGHTS].stage_end = stage_end;
	STAT_ADD(dma_writes, queue.n);
	STAT_INC(dma_submissions);
	long_flight = queue.bytes >= PUSH_BYTES;
	queue.n = 0;
	queue.bytes = 0;
	last_news = dp_clock();
}

void dma_submit(void)
{
	if (queue.n && (submitted == completed || queue.n >= PUSH_AT ||
			(queue.bytes >= PUSH_BYTES && submitted - completed < LONG_FLIGHTS)))
		dma_push();
}

void dma_push_settle(void)
{
	dma_push();
	if (dma_kernel_writes())
		dma_write_wait_for(submitted);
}

void dma_settle(void)
{
	if (!dma_gpu.api)
		return;
	dma_push();
	dma_write_wait_for(submitted);
}

unsigned dma_write_poll(void)
{
	bool news = submitted != completed && dma_write_look();

	if (submitted != completed && !news)
		dma_write_doubt(dp_now());
	dma_submit();
	return news;
}

bool dma_writing(void)
{
	return queue.n || submitted != completed;
}

/* ---- posting ---- */

/* n bytes of staging memory in one piece. */
static uint8_t *dma_write_stage(size_t n)
{
	size_t at = stage_end % DMA_STAGE;

	if (at + n > DMA_STAGE)
		stage_end += DMA_STAGE - at;
	while (stage_end + n - stage_begin > DMA_STAGE) {
		dma_push();
		dma_write_wait_for(flight_head != flight_tail ? flights[flight_head % FLIGHTS].number
						    : submitted);
		if (flight_head == flight_tail) /* all is free, also when copies fail */
			stage_begin = stage_end;
	}
	at = stage_end % DMA_STAGE;
	stage_end += n;
	return dma_gpu.stage + at;
}

static void dma_write_add(uint64_t dst, uint64_t src, size_t n, bool relaxed, bool device)
{
	unsigned i;

	if (queue.n == DMA_QUEUE)
		dma_push();
	i = queue.n++;
	queue.dst[i] = dst;
	queue.src[i] = src;
	queue.len[i] = n;
	queue.bytes += n;
	queue.first[i] = !i || !relaxed;
	queue.relaxed[i] = relaxed;
	queue.device[i] = device;
	queue.cqes[i] = queue.end_only[i] = false;
}

/* What is overwritten before it has gone, as a collapsed CQ's entry is, is not worth two copies. */
static bool replace_last(uint64_t dst, const void *src, size_t n, bool relaxed)
{
	unsigned i = queue.n - 1;

	if (!queue.n || queue.dst[i] != dst || queue.len[i] != n || queue.device[i] ||
	    (!relaxed && !queue.first[i]))
		return false;
	memcpy((void *)(uintptr_t)queue.src[i], src, n);
	/* What was a good CQE may be an error now: all of it is new, and those behind it keep behind. */
	queue.cqes[i] = queue.end_only[i] = false;
	return true;
}

/* Bytes that follow the last ones, if no order holds between the two. */
static bool extend_last(uint64_t dst, const void *src, size_t n)
{
	unsigned i = queue.n - 1;
	size_t len, room;

	if (!queue.n || queue.device[i] || !queue.relaxed[i] || queue.dst[i] + queue.len[i] != dst ||
	    queue.len[i] + n > MERGED || !dma_goes_on(dst))
		return false;
	len = queue.len[i];
	room = -len & 63; /* left of what was staged */
	if (n > room) {
		size_t more = (n - room + 63) & ~(size_t)63;

		/* It has to lie behind, and to be there without waiting. */
		if ((uintptr_t)dma_gpu.stage + stage_end % DMA_STAGE != queue.src[i] + len + room ||
		    stage_end % DMA_STAGE + more > DMA_STAGE ||
		    stage_end + more - stage_begin > DMA_STAGE)
			return false;
		stage_end += more;
	}
	memcpy((uint8_t *)(uintptr_t)queue.src[i] + len, src, n);
	queue.len[i] += n;
	queue.bytes += n;
	return true;
}

static bool dma_write_follows(uint64_t dst, uint64_t src, size_t n, uint64_t next_dst, uint64_t next_src)
{
	return dst + n == next_dst && src + n == next_src && dma_goes_on(next_dst) &&
	       dma_goes_on(next_src);
}

/* To a copy of the same batch that this one follows or precedes: streams of several queue pairs, and
 * of blocks of a kernel that work side by side, come in turn. */
static bool extend_copy(uint64_t dst, uint64_t src, size_t n)
{
	unsigned looks = queue.n < NEAR_COPIES ? queue.n : NEAR_COPIES;

	for (unsigned i = queue.n; looks--;) {
		bool same;

		i--;
		same = queue.device[i] && queue.relaxed[i];
		if (same && (dma_write_follows(queue.dst[i], queue.src[i], queue.len[i], dst, src) ||
			     dma_write_follows(dst, src, n, queue.dst[i], queue.src[i]))) {
			if (dst < queue.dst[i]) {
				queue.dst[i] = dst;
				queue.src[i] = src;
			}
			queue.len[i] += n;
			queue.bytes += n;
			return true;
		}
		if (queue.first[i])
			return false;
	}
	return false;
}

static void post_piece(uint64_t dst, const uint8_t *src, size_t n, bool relaxed)
{
	uint8_t *s;

	if (n <= ONE_PIECE && replace_last(dst, src, n, relaxed))
		return;
	if (relaxed && extend_last(dst, src, n))
		return;
	if (queue.n == DMA_QUEUE)
		dma_push(); /* ahead of dma_write_stage(): a submission gives back all that is staged by then */
	s = dma_write_stage((n + 63) & ~(size_t)63);
	memcpy(s, src, n);
	dma_write_add(dst, (uintptr_t)s, n, relaxed, false);
}

/* Bytes of the last aligned word of a strict write, which goes behind the rest: a kernel that
 * polls on the end of a message finds the rest placed. 0: it goes as one. */
static size_t tail_of(uint64_t dst, size_t n, bool relaxed)
{
	size_t t = (dst + n) & 7;

	return relaxed || n <= ONE_PIECE ? 0 : t ? t : 8;
}

void dma_post(void *to, const void *from, size_t n, bool relaxed)
{
	uint64_t dst = (uintptr_t)to;
	const uint8_t *src = from;
	size_t tail = tail_of(dst, n, relaxed), left = n - tail;

	if (dma_gpu.dead)
		return;
	dma_atomic_forget(dst, n);
	while (left) {
		size_t piece = left < PIECE ? left : PIECE;

		post_piece(dst, src, piece, relaxed);
		dst += piece;
		src += piece;
		left -= piece;
	}
	if (tail)
		post_piece(dst, src, tail, false);
}

void dma_post_copy(void *to, const void *from, size_t n, bool relaxed)
{
	uint64_t dst = (uintptr_t)to, src = (uintptr_t)from;
	size_t tail = tail_of(dst, n, relaxed);

	if (dma_gpu.dead || !n)
		return;
	dma_atomic_forget(dst, n);
	STAT_ADD(dma_bytes_between, n);
	if (!relaxed || !extend_copy(dst, src, n))
		dma_write_add(dst, src, n - tail, relaxed, true);
	if (tail)
		dma_write_add(dst + n - tail, src + n - tail, tail, false, true);
}

/* ---- CQEs ---- */

/* To the batch that is being collected, if it is one of CQEs: all that they tell of lies before it.
 * The newer one counts where they have one place (a collapsed CQ). *beside: none of the batch has
 * this place, so it may become one more there. */
static bool join_cqes(uint64_t dst, const void *src, bool end_only, bool *beside)
{
	unsigned looks = queue.n < NEAR ? queue.n : NEAR;

	for (unsigned i = queue.n; looks-- && queue.cqes[--i];) {
		uint64_t off = dst - queue.dst[i];

		if (off < queue.len[i] || (off == queue.len[i] && off < CQES && dma_goes_on(dst))) {
			memcpy((uint8_t *)(uintptr_t)queue.src[i] + off, src, CQE);
			queue.end_only[i] &= end_only && off == 0;
			if (off == queue.len[i]) {
				queue.len[i] += CQE;
				queue.bytes += CQE;
			}
			return true;
		}
		if (queue.first[i]) {
			*beside = true;
			return false;
		}
	}
	return false;
}

void dma_post_cqe(void *to, const void *src, bool end_only)
{
	uint64_t dst = (uintptr_t)to;
	bool beside = false;
	uint8_t *s;

	if (dma_gpu.dead)
		return;
	dma_atomic_forget(dst, CQE);
	if (join_cqes(dst, src, end_only, &beside))
		return;
	if (queue.n == DMA_QUEUE)
		dma_push(); /* as in post_piece() */
	s = dma_write_stage(CQES);
	memcpy(s, src, CQE);
	dma_write_add(dst, (uintptr_t)s, CQE, beside, false);
	queue.relaxed[queue.n - 1] = false;
	queue.cqes[queue.n - 1] = true;
	queue.end_only[queue.n - 1] = end_only;
}

/* ---- pieces ---- */

static void copy_piece(uint8_t *dst, const uint8_t *src, size_t n)
{
	bool to = dma_device(dst), from = dma_device(src);

	if (to && from)
		dma_post_copy(dst, src, n, relaxed_copies);
	else if (to)
		dma_post(dst, src, n, relaxed_copies);
	else if (from)
		dma_read(dst, src, n, true);
	else
		guest_copy(dst, src, n);
}

void dma_iov_copy(const struct iovec *dst, int ndst, const struct iovec *src, int nsrc)
{
	guest_iov_copy(dst, ndst, src, nsrc, copy_piece);
}

bool dma_peer_read(const struct packet *p, const struct iovec *dst, int ndst,
		   const struct iovec *src, int nsrc)
{
	static uint8_t copy[(FRAME_MORE + 1) * PKT_MAX_MTU]; /* the longest packet */
	struct iovec iov = { copy, p->len };

	if (p->len > sizeof(copy) || !peer_memory_read(p->peer, &iov, 1, src, nsrc))
		return false;
	dma_iov_copy(dst, ndst, &iov, 1);
	return true;
}
