// SPDX-License-Identifier: BSD-3-Clause
/* Local buffers outside the heap: a table that device code searches while
 * entries come and go. */
#include "host/host.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/symmetric.h"
#include "runtime/net/net.h"

/* First byte behind; ranges that wrap are refused before. */
static bool register_overlap(uint64_t a, uint64_t a_len, uint64_t b, uint64_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

static int find_slot(const struct gdri_state *st, uint64_t addr, uint64_t len, unsigned int *slot)
{
	const struct gdri_buffer *b = st->dev->buffers;
	unsigned int i, room = GDRI_MAX_BUFFERS;

	if (register_overlap(addr, len, (uintptr_t)st->heap->base, gdri_heap_size(st->heap)))
		return gdri_fail(-GDR_EINVAL,
				 "gdr_buffer_register: 0x%llx with %llu bytes overlaps the symmetric heap at 0x%llx "
				 "with %llu, which needs no registration",
				 (unsigned long long)addr, (unsigned long long)len,
				 (unsigned long long)(uintptr_t)st->heap->base,
				 (unsigned long long)gdri_heap_size(st->heap));
	for (i = 0; i < GDRI_MAX_BUFFERS; i++) {
		if (!b[i].len) {
			room = i < room ? i : room;
		} else if (register_overlap(addr, len, b[i].addr, b[i].len)) {
			return gdri_fail(-GDR_EINVAL,
					 "gdr_buffer_register: 0x%llx with %llu bytes overlaps the buffer at 0x%llx "
					 "with %llu",
					 (unsigned long long)addr, (unsigned long long)len,
					 (unsigned long long)b[i].addr, (unsigned long long)b[i].len);
		}
	}
	if (room == GDRI_MAX_BUFFERS)
		return gdri_fail(-GDR_ENOMEM, "gdr_buffer_register: all %u entries are in use", GDRI_MAX_BUFFERS);
	*slot = room;
	return 0;
}

/* What no path can read: the NIC would refuse it, a copy end the process. Memory of a GPU is the driver's to judge. */
static int register_check_mapped(const struct gdri_state *st, const void *addr, size_t len, bool *read_only)
{
	struct gdri_mapped is = {.writable = true};
	uintptr_t hole = st->cuda && gdri_cuda_is_device(st->cuda, addr) ? 0 : gdri_mapped_hole(addr, len, &is);

	*read_only = !is.writable;
	if (!hole)
		return 0;
	return gdri_fail(-GDR_EINVAL,
			 "gdr_buffer_register: %p with %zu bytes: at 0x%llx there is no memory of this process that "
			 "can be read; register memory that is mapped",
			 addr, len, (unsigned long long)hole);
}

static int register_enter(struct gdri_state *st, void *addr, size_t len)
{
	struct gdri_dev *d = st->dev;
	struct gdri_buffer *b;
	bool read_only = false, nic_only_reads = false;
	uint32_t lkey = 0;
	unsigned int slot;
	int ret = find_slot(st, (uintptr_t)addr, len, &slot);

	if (!ret)
		ret = register_check_mapped(st, addr, len, &read_only);
	if (!ret && st->net)
		ret = st->net->ops->register_buffer(st->net, addr, len, &lkey, &nic_only_reads,
						     &st->regs[slot].handle);
	if (ret)
		return ret;
	read_only |= nic_only_reads;
	b = &d->buffers[slot];
	/* relaxed: a look-up that still sees the entry's former life is a use of a buffer
	 * that is being unregistered, which the contract rules out */
	__atomic_store_n(&b->addr, (uintptr_t)addr, __ATOMIC_RELAXED);
	__atomic_store_n(&b->lkey.be, gdri_to_be32(lkey).be, __ATOMIC_RELAXED);
	__atomic_store_n(&b->read_only, read_only, __ATOMIC_RELAXED);
	/* release: pairs with the acquire of len in the look-up */
	__atomic_store_n(&b->len, len, __ATOMIC_RELEASE);
	if (slot >= d->n_buffers) /* release: pairs with the acquire of n_buffers there */
		__atomic_store_n(&d->n_buffers, slot + 1, __ATOMIC_RELEASE);
	ret = gdri_cuda_state_push(st, &d->n_buffers);
	if (!ret)
		return 0;
	__atomic_store_n(&b->len, 0, __ATOMIC_RELEASE); /* kernels would not find it; pairs with the look-up */
	if (st->regs[slot].handle)
		st->net->ops->deregister(st->net, st->regs[slot].handle);
	st->regs[slot].handle = NULL;
	return ret;
}

int gdr_buffer_register(void *addr, size_t len)
{
	struct gdri_state *st = gdri_need_state("gdr_buffer_register");
	int ret;

	if (!st)
		return -GDR_ESTATE;
	if (!addr || !len || (uintptr_t)addr + len < (uintptr_t)addr)
		return gdri_fail(-GDR_EINVAL, "gdr_buffer_register: %p with %zu bytes is no buffer", addr, len);
	gdri_lock(&st->local_lock);
	ret = register_enter(st, addr, len);
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

static int leave_slot(struct gdri_state *st, unsigned int i)
{
	void *handle = st->regs[i].handle;

	__atomic_store_n(&st->dev->buffers[i].len, 0, __ATOMIC_RELEASE); /* pairs with the look-up */
	st->regs[i].handle = NULL;
	return handle ? st->net->ops->deregister(st->net, handle) : 0;
}

static int register_leave(struct gdri_state *st, const void *addr)
{
	const struct gdri_buffer *b = st->dev->buffers;

	for (unsigned int i = 0; i < GDRI_MAX_BUFFERS; i++) {
		if (b[i].len && b[i].addr == (uintptr_t)addr)
			return leave_slot(st, i);
	}
	return gdri_fail(-GDR_EINVAL, "gdr_buffer_unregister: no buffer was registered at %p", addr);
}

int gdr_buffer_unregister(void *addr)
{
	struct gdri_state *st = gdri_need_state("gdr_buffer_unregister");
	int ret;

	if (!st)
		return -GDR_ESTATE;
	gdri_lock(&st->local_lock);
	ret = register_leave(st, addr);
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}

int gdr_buffer_unregister_all(void)
{
	struct gdri_state *st = gdri_need_state("gdr_buffer_unregister_all");
	int ret = 0, one;

	if (!st)
		return -GDR_ESTATE;
	gdri_lock(&st->local_lock);
	for (unsigned int i = 0; i < GDRI_MAX_BUFFERS; i++) {
		one = st->dev->buffers[i].len ? leave_slot(st, i) : 0;
		ret = ret ? ret : one;
	}
	pthread_mutex_unlock(&st->local_lock);
	return ret;
}
