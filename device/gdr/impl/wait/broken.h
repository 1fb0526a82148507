/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives of all PEs (barriers, syncs, meetings of host threads) are broken on all of them as soon as one PE
 * gave one up: that PE tells none of its words any more, so nobody can succeed without it, and writes who is to blame
 * into every PE's control area (gdri_ctl.broken). Whoever enters such a call looks there, and whoever waits in one;
 * from then on all its calls have that status. Argument: docs/memory-model.md, "Barriers that break". */
#ifndef GDRI_BROKEN_H
#define GDRI_BROKEN_H

#include <gdr/impl/wait/fault.h>
#include <gdr/impl/wait/tell.h>

GDR_DEVICE int gdri_waits_for_all(uint32_t op)
{
	return op == GDRI_BARRIER || op == GDRI_SYNC || op == GDRI_MEET;
}

/* This PE gives up a collective of all PEs; culprit -1: that of the wait that it gave up before. The first word
 * stays. */
GDR_DEVICE_COLD void gdri_broken_set(struct gdri_dev *dev, uint32_t op, int status, int32_t culprit)
{
	struct gdri_fault f = {dev->pe, culprit, status, op, 0, 0};
	uint64_t none = 0, word;
	uint32_t unset = 0;
	int pe;

	gdri_note_failure(dev, status);
	if (culprit < 0)
		f.peer = (int32_t)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->failed) - 2;
	if (f.peer < 0 && status == -GDR_EPEERLOST)
		f.peer = (int32_t)gdri_ld_relaxed_gpu_u32((const uint32_t *)&dev->lost) - 1;
	if (f.peer < 0)
		f.peer = dev->pe;
	if (!gdri_cas_u32(&dev->broken, &unset, 1)) /* chooses one thread, pairs with nothing */
		return;
	word = gdri_fault_word(&f);
	gdri_cas_u64(&dev->ctl->broken, &none, word); /* what a peer stores over it says no less */
	for (pe = 0; pe < dev->n_pes; pe++)
		if (pe != dev->pe)
			gdri_watch_tell_word(dev, pe, offsetof(struct gdri_ctl, broken), word);
}

/* What another PE told. */
GDR_DEVICE_COLD void gdri_broken_record(struct gdri_dev *dev, uint64_t word, const struct gdri_fault *f,
					uint32_t op)
{
	uint32_t unset = 0, well = 0;
	struct gdri_error *e;

	if (!gdri_cas_u32(&dev->broken, &unset, 1)) /* chooses one thread, pairs with nothing */
		return;
	gdri_note_failure(dev, f->status);
	if (gdri_cas_u32((uint32_t *)&dev->failed, &well, (uint32_t)(f->peer + 2)))
		gdri_wait_publish_failed(dev, op, 0, 0, f->peer); /* leads past this PE, which waits no more */
	e = gdri_error_take(dev, GDRI_ERROR_BROKEN, f->status);
	if (e) {
		e->op = op;
		e->peer = f->peer;
		e->local = word;
		gdri_error_complete(e);
	}
}

/* The status of collectives of all PEs; 0: they are in step. The word is a peer's to write. */
GDRI_NOINLINE int gdri_broken(struct gdri_dev *dev, uint32_t op)
{
	uint64_t word = gdri_ld_relaxed_sys_u64(&dev->ctl->broken); /* alone: pairs with nothing */
	struct gdri_fault f;

	GDRI_BY_ABI(gdri_broken);
	if (gdri_likely(!word) || !gdri_fault_read(word, dev->n_pes, &f) || f.peer < 0)
		return 0;
	gdri_broken_record(dev, word, &f, op);
	return f.status;
}

#endif
