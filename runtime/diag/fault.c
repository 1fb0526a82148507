// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/diag/fault.h"

#include <gdr/device.h>

#include "runtime/core/clock.h"
#include "runtime/core/host_barrier.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/diag/errors.h"
#include "runtime/path/devstate.h"
#include "runtime/path/hostq.h"

#define OFFSET offsetof(struct gdri_ctl, fault)
#define TELL_MS 1000 /* all others, in one attempt */
#define ATTEMPTS 50 /* of the monitor: queues without room */
#define SETTLE_MS 50 /* for what this PE posted before */

/* Every record, those of queues that the host looked at (CUDA) last. */
static const struct gdri_error *fault_record(const struct gdri_state *st, unsigned int i)
{
	if (i < GDRI_MAX_ERRORS)
		return &st->dev->errors[i];
	i -= GDRI_MAX_ERRORS;
	return st->host_view && i < GDRI_MAX_ERRORS ? &st->host_view->errors[i] : NULL;
}

static bool is_completion(const struct gdri_error *e)
{
	/* acquire: pairs with the release of the device code that filled the record */
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == 2 && e->kind == GDRI_ERROR_CQE;
}

bool gdri_fault_first(const struct gdri_state *st, struct gdr_error *e)
{
	const struct gdri_error *r;

	for (unsigned int i = 0; (r = fault_record(st, i)); i++) {
		if (!is_completion(r))
			continue;
		if (e)
			gdri_error_describe(r, e);
		return true;
	}
	return false;
}

/* The word for the others; 0: nothing to tell. */
static uint64_t own_word(const struct gdri_state *st)
{
	const struct gdri_error *r;
	struct gdri_fault f;

	for (unsigned int i = 0; (r = fault_record(st, i)); i++) {
		if (!is_completion(r) || !r->is_cause || r->status == -GDR_ERETRY ||
		    r->status == -GDR_ERNR || r->status == -GDR_EFLUSHED)
			continue;
		f = (struct gdri_fault){st->pe, r->peer, r->status, r->op, r->syndrome, r->vendor_syndrome};
		return gdri_fault_word(&f);
	}
	return 0;
}

/* Over each queue to it that works, since one may be about to fail. */
static bool tell_by_queues(struct gdri_dev *dev, int pe, uint64_t word)
{
	struct gdri_qp *qp = &dev->qps[(uint32_t)pe * dev->n_slots];
	bool told = false;

	for (uint32_t i = 0; i < dev->n_slots; i++, qp++) {
		if (qp->sq && gdri_tell_queue(dev, qp, OFFSET, word))
			told = true;
	}
	return told;
}

/* Those who look in memory of the host: host threads, and the host device's kernels. Waits for nothing. */
static bool tell_hosts(struct gdri_state *st, int but)
{
	struct gdri_dev *dev = gdri_host_dev(st);
	bool all = true;
	int pe;

	for (int i = 1; i < st->n_pes; i++) {
		pe = (st->pe + i) % st->n_pes;
		if (pe == but)
			continue;
		if (dev->peers[pe].base)
			gdri_p2p_store(dev->peers[pe].base + OFFSET, st->fault_told, sizeof(st->fault_told));
		else
			all = tell_by_queues(dev, pe, st->fault_told) && all;
	}
	return all;
}

/* Kernels of GPUs that are reached by queue. What is posted first waits for nothing, no copy either. */
static bool fault_tell_queues(struct gdri_state *st, int but, uint64_t deadline)
{
	bool all = true;

	for (int pe = 0; pe < st->n_pes; pe++)
		if (pe != st->pe && pe != but && !st->peers[pe].base)
			all = !gdri_hostq_tell(st, OFFSET, st->fault_told, pe) && all;
	for (int pe = 0; pe < st->n_pes && st->hostq; pe++)
		if (pe != st->pe && pe != but && !st->peers[pe].base)
			all = !gdri_hostq_told(st, pe, deadline) && all;
	return all;
}

/* Those that are mapped. A copy that hangs stops all copies behind it. */
static bool fault_tell_mapped(struct gdri_state *st, int but, uint64_t deadline)
{
	int i, pe, ret = 0;
	uint8_t *base;

	for (i = 1; i < st->n_pes && !ret; i++) {
		pe = (st->pe + i) % st->n_pes;
		base = st->peers[pe].base;
		if (base && pe != but)
			ret = gdri_cuda_poke(st->cuda, base + OFFSET, &st->fault_told, sizeof(st->fault_told),
					     gdri_left_ms(deadline) / 2);
	}
	return !ret;
}

static bool fault_tell_gpus(struct gdri_state *st, int but)
{
	uint64_t deadline = gdri_deadline_ns(TELL_MS);
	bool all = fault_tell_queues(st, but, gdri_deadline_ns(TELL_MS / 2));

	return fault_tell_mapped(st, but, deadline) && all;
}

/* All others but `but`. What this PE told them before the error arrives first, whichever queue it went by: a wait that
 * hears of the error looks for that once more. */
static bool fault_tell_all(struct gdri_state *st, int but)
{
	bool hosts;

	gdri_host_barrier_settle(st, SETTLE_MS);
	gdri_fence_release_sys(); /* as a queue's order; pairs with the acquire fence in gdri_wait_step */
	hosts = tell_hosts(st, but);

	return (!st->cuda || fault_tell_gpus(st, but)) && hosts;
}

void gdri_fault_tell(struct gdri_state *st)
{
	struct gdri_fault f = {-1, 0, 0, 0, 0, 0};
	uint64_t word;

	if (!st->dev->n_slots)
		return;
	word = own_word(st);
	if (!word && !st->cuda) /* who told may not have reached all: each PE tells once more */
		word = gdri_fault_heard(st->dev, &f);
	if (!word)
		return;
	pthread_mutex_lock(&st->fault_lock);
	if (st->fault_attempts < ATTEMPTS) {
		st->fault_told = word;
		st->fault_attempts = fault_tell_all(st, f.pe) ? ATTEMPTS : st->fault_attempts + 1;
	}
	pthread_mutex_unlock(&st->fault_lock);
}

int gdri_fault_heard_of(struct gdri_state *st)
{
	return st->dev->n_slots ? gdri_fault_told(gdri_host_dev(st)) : 0;
}

void gdri_fault_leave(struct gdri_state *st)
{
	struct gdri_dev *dev = gdri_host_dev(st);
	int32_t lost = __atomic_load_n(&dev->lost, __ATOMIC_RELAXED) - 1; /* carries no data: pairs with nothing */
	uint32_t none = 0;

	/* chooses one thread, as in gdri_wait_first */
	if (lost >= 0 && gdri_cas_u32((uint32_t *)&dev->failed, &none, (uint32_t)(lost + 2)))
		gdri_wait_publish_failed(dev, GDRI_NONE, 0, 0, lost, GDR_EPEERLOST);
	if (__atomic_load_n(&dev->failed, __ATOMIC_RELAXED)) /* alone: pairs with nothing */
		gdri_tell_each(dev, GDRI_TELL_NOTICE);
	gdri_host_barrier_settle(st, SETTLE_MS);
}

/* With a GPU a host thread keeps its own word: the GPU's is copied over that of st->dev. */
void gdri_failed(struct gdri_state *st, int status)
{
	if (status && st->dev)
		gdri_note_failure(gdri_host_dev(st), status);
}

int gdri_first_failure(const struct gdri_state *st)
{
	/* relaxed: a status carries no data with it */
	int first = __atomic_load_n(&st->dev->first, __ATOMIC_RELAXED);

	return first || !st->host_view ? first : __atomic_load_n(&st->host_view->first, __ATOMIC_RELAXED);
}

/* For gdr_errors. The monitor passes it over: it is said here. */
static void lost_record(struct gdri_state *st, int pe)
{
	struct gdri_error *e = gdri_error_take(gdri_host_dev(st), GDRI_ERROR_LOST, -GDR_EPEERLOST);

	if (!e)
		return;
	e->peer = pe;
	gdri_error_complete(e);
}

void gdri_lost_note(struct gdri_state *st, int pe)
{
	char text[160];
	int32_t none = 0;

	gdri_absent_look(st); /* what it told last, which the text depends on */
	gdri_place_lost(pe, text, sizeof(text));
	gdri_error("%s", text);
	lost_record(st, pe);
	/* relaxed: device code and host threads read nothing else through them */
	__atomic_store_n(&st->peers[pe].lost, 1, __ATOMIC_RELAXED);
	gdri_cuda_state_push_lost(st, pe);
	__atomic_compare_exchange_n(&st->dev->lost, &none, pe + 1, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (st->host_view) {
		__atomic_store_n(&st->page_peers[pe].lost, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&st->host_view->lost, st->dev->lost, __ATOMIC_RELAXED);
	}
	gdri_cuda_state_push(st, &st->dev->lost);
	/* `lost` before `latched`: pairs with the fence in gdri_take_latched, where it is the other way round */
	gdri_fence_sys();
	gdri_devstate_latch(st, -GDR_EPEERLOST);
}
