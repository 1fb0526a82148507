/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE hears of an operation that failed on another one: one word in its control area, which
 * that PE's library writes (runtime/diag/fault.c). Waits for others end with it, quiet and barrier return it. */
#ifndef GDRI_FAULT_H
#define GDRI_FAULT_H

#include <gdr/impl/wait/error.h>

/* In a word of a collective that was given up, and in a notice: who is to blame has called gdr_finalize, and is not
 * lost. There a fault has its syndrome. */
#define GDRI_FAULT_LEFT (1ull << 48)

GDR_DEVICE uint64_t gdri_fault_word_of(int32_t pe, int32_t peer, int32_t status, uint32_t op)
{
	return (uint64_t)(uint16_t)(pe + 1) | (uint64_t)(uint16_t)(peer + 1) << 16 | (uint64_t)(uint8_t)-status << 32 |
	       (uint64_t)(uint8_t)op << 40;
}

GDR_DEVICE_COLD uint64_t gdri_fault_word(const struct gdri_fault *f)
{
	return gdri_fault_word_of(f->pe, f->peer, f->status, f->op) | (uint64_t)(uint8_t)f->syndrome << 48 |
	       (uint64_t)(uint8_t)f->vendor << 56;
}

GDR_DEVICE int32_t gdri_fault_pe(uint64_t word)
{
	return (int32_t)(word & 0xffffu) - 1;
}

GDR_DEVICE int32_t gdri_fault_peer(uint64_t word)
{
	return (int32_t)(word >> 16 & 0xffffu) - 1;
}

GDR_DEVICE int gdri_fault_status(uint64_t word)
{
	return -(int)(word >> 32 & 0xffu);
}

GDR_DEVICE int gdri_fault_left(uint64_t word)
{
	return gdri_fault_status(word) == -GDR_EPEERLOST && word & GDRI_FAULT_LEFT;
}

/* The numbers of enum gdr_status, a bit each. */
#define GDRI_STATUS_BIT(name, number, text) | 1ull << number
#define GDRI_STATUS_BITS (0ull GDR_STATUS_LIST(GDRI_STATUS_BIT))

/* Whether the status, of a word that a peer wrote, is an error that there is. */
GDR_DEVICE int gdri_fault_known(int status)
{
	return status < 0 && status > -64 && (GDRI_STATUS_BITS >> -status & 1u);
}

/* The word is a peer's to write: 1 when it says something that can be. */
GDR_DEVICE int gdri_fault_read(uint64_t word, int n_pes, struct gdri_fault *f)
{
	f->pe = gdri_fault_pe(word);
	f->peer = gdri_fault_peer(word);
	f->status = gdri_fault_status(word);
	f->op = (uint32_t)(word >> 40) & 0xffu;
	f->syndrome = (uint32_t)(word >> 48) & 0xffu;
	f->vendor = (uint32_t)(word >> 56);
	return f->pe >= 0 && f->pe < n_pes && f->peer < n_pes && gdri_fault_known(f->status);
}

/* What another PE told; 0: nothing. */
GDR_DEVICE uint64_t gdri_fault_heard(const struct gdri_dev *dev, struct gdri_fault *f)
{
	uint64_t word = gdri_ld_relaxed_sys_u64(&dev->ctl->fault); /* alone: pairs with nothing */

	return word && gdri_fault_read(word, dev->n_pes, f) && f->pe != dev->pe ? word : 0;
}

/* Who told; -1: nobody. */
GDR_DEVICE_COLD int32_t gdri_fault_from(const struct gdri_dev *dev)
{
	struct gdri_fault f;

	return gdri_fault_heard(dev, &f) ? f.pe : -1;
}

/* One record says it, however many ask. */
GDR_DEVICE_COLD int gdri_fault_record(struct gdri_dev *dev, uint64_t word, const struct gdri_fault *f)
{
	struct gdri_error *e;
	uint32_t none = 0;

	gdri_note_failure(dev, -GDR_EPEERFAILED);
	/* chooses one thread; the record is published by its state */
	if (!gdri_cas_u32(&dev->told, &none, 1))
		return -GDR_EPEERFAILED;
	e = gdri_error_take(dev, GDRI_ERROR_TOLD, -GDR_EPEERFAILED);
	if (!e)
		return -GDR_EPEERFAILED;
	e->peer = f->pe;
	e->op = f->op;
	e->local = word;
	gdri_error_complete(e);
	return -GDR_EPEERFAILED;
}

/* 0, or what quiet returns because of another PE's operation. */
GDRI_NOINLINE int gdri_fault_told(struct gdri_dev *dev)
{
	struct gdri_fault f;
	uint64_t word = gdri_fault_heard(dev, &f);

	GDRI_BY_ABI(gdri_fault_told);
	return word ? gdri_fault_record(dev, word, &f) : 0;
}

#endif
