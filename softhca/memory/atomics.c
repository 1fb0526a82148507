/* SPDX-License-Identifier: BSD-3-Clause */
/* Atomic operations on guest memory. The operands are numbers in host order
 * here; memory holds them in host order too ("8-byte endianness mode 1" of the
 * PRM). CPU atomics, since the program and other processes that map the same
 * memory update it concurrently. */
#include "softhca/gpu/dma.h"
#include "softhca/engine/dp.h"

/* Adds fields of any width: a boundary bit ends a field, the carry out of it
 * is cut. Boundary 0 is one field, all ones is exclusive or. */
uint64_t atomic_field_add(uint64_t a, uint64_t b, uint64_t boundary)
{
	return ((a & ~boundary) + (b & ~boundary)) ^ ((a ^ b) & boundary);
}

/* arg: the packet. */
static uint64_t next_value(uint64_t old, const void *arg)
{
	const struct packet *p = arg;

	if (p->atomic_add)
		return atomic_field_add(old, p->operand, p->operand_mask);
	if ((old ^ p->compare) & p->compare_mask)
		return old;
	return (old & ~p->operand_mask) | (p->operand & p->operand_mask);
}

uint64_t atomic_execute(uint8_t *mem, const struct packet *p)
{
	if (dma_device(mem))
		return dma_atomic(mem, p->atomic_size, next_value, p);
	/* Sequentially consistent: pairs with atomics of the program on the
	 * same word and orders all that this QP placed before. */
	if (p->atomic_size == 4) {
		uint32_t *m = (uint32_t *)(void *)mem;
		uint32_t old = __atomic_load_n(m, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(m, &old, (uint32_t)next_value(old, p), false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return old;
	} else {
		uint64_t *m = (uint64_t *)(void *)mem;
		uint64_t old = __atomic_load_n(m, __ATOMIC_RELAXED);

		while (!__atomic_compare_exchange_n(m, &old, next_value(old, p), false,
						    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			;
		return old;
	}
}
