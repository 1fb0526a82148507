/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on memory of a GPU: read, computed here, written back. Atomic among the
 * operations of the network, not against those of the GPU's own threads on the same word: a
 * device behind PCI Express promises no more. */
#include <string.h>

#include "softhca/gpu/dma_impl.h"

enum { RECENT = 256 };

/* Words that are on their way: the next operation on one need not wait and read. */
static struct recent {
	uint64_t addr, value, number;
	unsigned size; /* 0: nothing */
} recent[RECENT];

static struct recent *dma_atomic_slot_of(uint64_t addr)
{
	return &recent[(addr >> 3) % RECENT];
}

void dma_atomic_forget(uint64_t addr, size_t n)
{
	uint64_t first = addr >> 3, last = (addr + n - 1) >> 3;

	if (last - first >= RECENT - 1) {
		memset(recent, 0, sizeof(recent));
		return;
	}
	for (uint64_t i = first; i <= last; i++)
		dma_atomic_slot_of(i << 3)->size = 0;
}

uint64_t dma_atomic(uint8_t *mem, unsigned size, uint64_t (*next)(uint64_t old, const void *arg),
		    const void *arg)
{
	uint64_t addr = (uintptr_t)mem, old = 0, new;
	struct recent *r = dma_atomic_slot_of(addr);

	if (r->addr == addr && r->size == size && !dma_done(r->number))
		old = r->value;
	else
		dma_read(&old, mem, size, true);
	new = next(old, arg);
	if (size == 4)
		new = (uint32_t)new;
	if (new == old) /* remembered no longer than before: the GPU's own store is to be seen */
		return old;
	dma_post(mem, &new, size, false); /* little-endian: its lower bytes */
	if (dma_done(dma_posted()))
		return old;
	r->addr = addr;
	r->size = size;
	r->value = new;
	r->number = dma_posted();
	return old;
}
