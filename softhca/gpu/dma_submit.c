/* SPDX-License-Identifier: BSD-3-Clause */
/* How a queue of writes is handed to the driver, in as few calls as their order allows. Single words
 * are stores that the stream itself makes (cuStreamBatchMemOp), in order and quicker than a copy;
 * the last of them is the number of the submission. */
#include <string.h>

#include "softhca/gpu/dma_impl.h"

enum {
	OPS = 128,	 /* stores in a call */
	OP_BYTES = 16, /* a write of no more is made of stores: each takes the stream 1.3 us */
	OP_WRITES = 2, /* nor is a batch of more */
	MERGE_FROM = 2, /* copies: of more it is looked whether they lie side by side */
	CQE_END = 56,
};

static struct {
	struct cu_mem_op op[OPS];
	unsigned n;
} ops;

static bool dma_submit_flush(void)
{
	unsigned n = ops.n;

	ops.n = 0;
	return !n || DMA_DO(mem_ops, "cuStreamBatchMemOp", dma_gpu.writes, n, ops.op, 0);
}

static bool dma_submit_store(uint64_t addr, uint64_t value, unsigned bytes)
{
	ops.op[ops.n++] = (struct cu_mem_op){
		.operation = bytes == 8 ? CU_WRITE_VALUE_64 : CU_WRITE_VALUE_32,
		.address = addr, .value = value,
	};
	return ops.n < OPS || dma_submit_flush();
}

/* Words whose order within the write is that of their addresses. */
static bool is_words(const struct dma_queue *q, unsigned i)
{
	return q->end_only[i] || (!q->device[i] && q->len[i] <= OP_BYTES && !(q->len[i] % 4) &&
				  !(q->dst[i] % 4));
}

static bool are_words(const struct dma_queue *q, unsigned from, unsigned n)
{
	bool words = dma_gpu.stores && n <= OP_WRITES;

	for (unsigned i = from; words && i < from + n; i++)
		words = is_words(q, i);
	return words;
}

static bool store_words(const struct dma_queue *q, unsigned i)
{
	const uint8_t *from = (const uint8_t *)(uintptr_t)q->src[i];

	for (size_t at = q->end_only[i] ? CQE_END : 0; at < q->len[i];) {
		unsigned n = (q->dst[i] + at) % 8 || q->len[i] - at < 8 ? 4 : 8;
		uint64_t value = 0;

		memcpy(&value, from + at, n);
		if (!dma_submit_store(q->dst[i] + at, value, n))
			return false;
		at += n;
	}
	return true;
}

static bool copy_one(const struct dma_queue *q, unsigned i)
{
	if (q->device[i])
		return DMA_DO(between, "cuMemcpyDtoDAsync", q->dst[i], q->src[i], q->len[i],
			      dma_gpu.writes);
	return DMA_DO(to_device, "cuMemcpyHtoDAsync", q->dst[i],
		      (const void *)(uintptr_t)q->src[i], q->len[i], dma_gpu.writes);
}

struct copy {
	cu_ptr dst, src;
	size_t len;
	bool device;
};

static struct copy copy_at(const struct dma_queue *q, unsigned i)
{
	return (struct copy){ q->dst[i], q->src[i], q->len[i], q->device[i] };
}

static void set_copy(struct dma_queue *q, unsigned i, const struct copy *c)
{
	q->dst[i] = c->dst;
	q->src[i] = c->src;
	q->len[i] = c->len;
	q->device[i] = c->device;
}

/* By destination; Shell's way, for up to DMA_QUEUE of them, nearly in order as they often are. */
static void sort_copies(struct dma_queue *q, unsigned from, unsigned n)
{
	for (unsigned gap = n / 2; gap; gap = gap == 2 ? 1 : gap * 5 / 11)
		for (unsigned i = from + gap; i < from + n; i++) {
			struct copy c = copy_at(q, i), other;
			unsigned k = i;

			for (; k >= from + gap && q->dst[k - gap] > c.dst; k -= gap) {
				other = copy_at(q, k - gap);
				set_copy(q, k, &other);
			}
			set_copy(q, k, &c);
		}
}

/* What lies side by side in both GPUs becomes one copy: each takes the driver 0.7 us, however short. Blocks of
 * a kernel that share an array put such pieces, in any order. How many are left. */
static unsigned merge_copies(struct dma_queue *q, unsigned from, unsigned n)
{
	unsigned last = from;

	sort_copies(q, from, n);
	for (unsigned i = from + 1; i < from + n; i++) {
		struct copy c = copy_at(q, i);

		if (c.device && q->device[last] && q->dst[last] + q->len[last] == c.dst &&
		    q->src[last] + q->len[last] == c.src && dma_goes_on(c.dst) && dma_goes_on(c.src))
			q->len[last] += c.len;
		else
			set_copy(q, ++last, &c);
	}
	STAT_ADD(dma_merged, n - (last - from + 1));
	return last - from + 1;
}

/* No order among them. */
static bool copy_batch(struct dma_queue *q, unsigned from, unsigned n)
{
	struct cu_copy_attr attr = { .src_order = CU_SRC_ORDER_STREAM };
	size_t index = 0, fail = 0;

	STAT_INC(dma_batches);
	if (n > MERGE_FROM && q->device[from + 1])
		n = merge_copies(q, from, n);
	if (n > 1 && dma_gpu.api->batch)
		return DMA_DO(batch, "cuMemcpyBatchAsync", q->dst + from, q->src + from,
			      q->len + from, n, &attr, &index, 1, dma_gpu.writes);
	if (n > 1 && dma_gpu.api->batch_1)
		return DMA_DO(batch_1, "cuMemcpyBatchAsync", q->dst + from, q->src + from,
			      q->len + from, n, &attr, &index, 1, &fail, dma_gpu.writes);
	for (unsigned i = from; i < from + n; i++)
		if (!copy_one(q, i))
			return false;
	return true;
}

bool dma_hand_over(struct dma_queue *q, uint32_t number)
{
	unsigned from = 0;

	for (unsigned i = 1; i <= q->n; i++) {
		if (i < q->n && !q->first[i])
			continue;
		if (are_words(q, from, i - from)) {
			for (unsigned k = from; k < i; k++)
				if (!store_words(q, k))
					return false;
		} else if (!dma_submit_flush() || !copy_batch(q, from, i - from)) {
			return false;
		}
		from = i;
	}
	if (!dma_gpu.stores)
		return DMA_DO(write32, "cuStreamWriteValue32", dma_gpu.writes,
			      (uintptr_t)&dma_gpu.flag[0], number, 0);
	return dma_submit_store((uintptr_t)&dma_gpu.flag[0], number, 4) && dma_submit_flush();
}
