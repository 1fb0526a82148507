// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/exec/staging.h"

#include <stdlib.h>

#include <gdr/device.h>
#include <gdr/impl/queue/named.h>

#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/core/try_copy.h"
#include "runtime/net/net.h"

#define PART ((size_t)256 << 10)

struct half {
	uint8_t *at;
	struct gdri_qp *qp; /* the NIC may use it until `target` of this queue is complete; NULL: it does not */
	uint64_t target;
};

struct gdri_staging {
	uint8_t *memory;
	gdri_be32_t lkey;
	struct half half[2];
};

bool gdri_staging_is_known(const struct gdri_dev *dev, const void *ptr, size_t len, bool to_pe)
{
	uint64_t p = (uint64_t)(uintptr_t)ptr, off = gdri_heap_offset(dev, ptr), size;
	uint32_t i, n = gdri_ld_acquire_sys_u32(&dev->n_buffers); /* pairs with host/register.c's release */

	if (off < dev->heap_size && len <= dev->heap_size - off)
		return true;
	for (i = 0; i < n; i++) {
		const struct gdri_buffer *b = &dev->buffers[i];

		size = gdri_ld_acquire_sys_u64(&b->len); /* pairs with host/register.c's release */
		if (size && p - b->addr < size && len <= size - (p - b->addr))
			return to_pe || !b->read_only;
	}
	return false;
}

bool gdri_staging_needed(const struct gdri_state *st, const void *local, size_t len, int pe, bool to_pe)
{
	if (!len || st->cuda || st->peers[pe].base || (to_pe && len <= GDRI_INLINE_MAX))
		return false;
	return !gdri_staging_is_known(st->dev, local, len, to_pe);
}

static int open_staging(struct gdri_state *st)
{
	struct gdri_staging *s = calloc(1, sizeof(*s));
	uint32_t lkey = 0;
	void *handle;
	int ret = -GDR_ENOMEM;

	if (s)
		s->memory = aligned_alloc(4096, 2 * PART);
	if (!s || !s->memory)
		gdri_error("out of memory for %zu bytes, by way of which host transfers go that are neither of the "
			   "heap nor of a registered buffer", 2 * PART);
	else
		ret = st->net->ops->register_buffer(st->net, s->memory, 2 * PART, &lkey, NULL, &handle);
	if (ret) {
		free(s ? s->memory : NULL);
		free(s);
		return ret;
	}
	s->lkey = gdri_to_be32(lkey);
	s->half[0].at = s->memory;
	s->half[1].at = s->memory + PART;
	st->staging = s;
	return 0;
}

void gdri_staging_close(struct gdri_state *st)
{
	if (!st->staging)
		return;
	free(st->staging->memory);
	free(st->staging);
	st->staging = NULL;
}

/* What became of the transfer that uses this half. One that did not end keeps it. */
static int staging_await(struct gdri_dev *dev, struct half *h, uint32_t op)
{
	int ret;

	if (!h->qp)
		return 0;
	ret = op == GDRI_GET ? gdri_read_wait(dev, h->qp, h->target, op) : gdri_qp_wait(dev, h->qp, h->target, op);
	if (!ret || gdri_qp_test(h->qp, h->target)) /* an error, behind which the NIC posts nothing for this queue */
		h->qp = NULL;
	return ret;
}

/* Both are free: what was given up before may still be under way. Its error was told to who asked for it. */
static int staging_settle(struct gdri_dev *dev, struct gdri_staging *s)
{
	int ret;

	for (int i = 0; i < 2; i++) {
		ret = staging_await(dev, &s->half[i], GDRI_PUT);
		if (s->half[i].qp)
			return ret;
	}
	return 0;
}

static int staging_post(struct gdri_state *st, struct half *h, uint32_t opcode, uint64_t offset, size_t len,
			struct gdri_qp *qp)
{
	struct gdri_local l = {(uintptr_t)h->at, st->staging->lkey};
	gdri_be32_t rkey = opcode == GDRI_OP_READ ? qp->rkey_data : gdri_put_rkey(st->dev, qp);
	int ret = gdri_post_rdma(st->dev, qp, opcode, offset, rkey, l, (uint32_t)len, &h->target);

	if (!ret)
		h->qp = qp;
	return ret;
}

/* Of both, the first error counts. */
static int staging_await_both(struct gdri_dev *dev, struct half *first, struct half *second, uint32_t op)
{
	int ret = staging_await(dev, first, op), other = staging_await(dev, second, op);

	return ret ? ret : other;
}

static size_t staging_part(size_t left)
{
	return left < PART ? left : PART;
}

static int staging_put(struct gdri_state *st, uint64_t offset, const uint8_t *src, size_t len, struct gdri_qp *qp)
{
	struct half *half = st->staging->half;
	size_t part;
	int i, ret = 0;

	for (i = 0; len && !ret; i ^= 1, src += part, offset += part, len -= part) {
		part = staging_part(len);
		ret = staging_await(st->dev, &half[i], GDRI_PUT);
		if (ret)
			break;
		if (!gdri_try_copy_from(half[i].at, src, part))
			ret = -GDR_EINVAL;
		else
			ret = staging_post(st, &half[i], GDRI_OP_WRITE, offset, part, qp);
	}
	return ret ? ret : staging_await_both(st->dev, &half[i], &half[i ^ 1], GDRI_PUT);
}

/* The read of each part is under way while the one before is copied. */
static int staging_get(struct gdri_state *st, uint8_t *dst, uint64_t offset, size_t len, struct gdri_qp *qp)
{
	struct half *half = st->staging->half;
	size_t part = staging_part(len), next;
	int i, ret = staging_post(st, &half[0], GDRI_OP_READ, offset, part, qp);

	for (i = 0; !ret && part; i ^= 1, dst += part, len -= part, part = next) {
		next = staging_part(len - part);
		offset += part;
		if (next)
			ret = staging_post(st, &half[i ^ 1], GDRI_OP_READ, offset, next, qp);
		if (!ret)
			ret = staging_await(st->dev, &half[i], GDRI_GET);
		if (!ret && !gdri_try_copy_to(dst, half[i].at, part))
			ret = -GDR_EINVAL;
	}
	return ret;
}

/* The lock is held, and returned so, where 0 is. */
static int staging_begin(struct gdri_state *st)
{
	int ret;

	gdri_lock(&st->staging_lock);
	ret = st->staging ? staging_settle(st->dev, st->staging) : open_staging(st);
	if (ret)
		pthread_mutex_unlock(&st->staging_lock);
	return ret;
}

int gdri_staging_put(struct gdri_state *st, uint64_t offset, const void *src, size_t len, int pe, uint32_t q)
{
	int ret = staging_begin(st);

	if (ret)
		return ret;
	ret = staging_put(st, offset, src, len, gdri_qp_to(st->dev, pe, q));
	pthread_mutex_unlock(&st->staging_lock);
	return ret;
}

int gdri_staging_get(struct gdri_state *st, void *dst, uint64_t offset, size_t len, int pe, uint32_t q)
{
	int ret = staging_begin(st);

	if (ret)
		return ret;
	ret = staging_get(st, dst, offset, len, gdri_qp_to(st->dev, pe, q));
	pthread_mutex_unlock(&st->staging_lock);
	return ret;
}
