/* SPDX-License-Identifier: BSD-3-Clause */
/* Names a thread of a kernel that keeps its CPU thread to itself: the others of its block cannot run, or a thread of
 * the host waits for the kernel. Whoever lets others run takes one from the block's queue: only the pauses of a thread
 * that has no others are counted for this. Names the kernel, too, for which a thread of the host waits for long. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/hostdev/hostdev.h"
#include "runtime/hostdev/hostdev_launch.h"

#define LONG_WAITS 4u /* said at most: a program may have kernels that run for so long */
#define LATE_MS 2000u /* later than GDR_TIMEOUT a wait of a kernel's may end */
#define LOOK_MOST_NS 1000000000u /* a process that was stopped between two looks was not in a spin */

/* relaxed, all of this file: what is compared is a number of one thread's, and orders nothing; pairs with the stores of
 * hostdev_block.c */
static uint64_t watch_switches(const struct gdri_hd_worker *w)
{
	return (uint64_t)__atomic_load_n(&w->block.alone, __ATOMIC_RELAXED) << 32 |
	       __atomic_load_n(&w->block.head, __ATOMIC_RELAXED);
}

/* False: nobody waits now. */
static bool watch_tell(const struct gdri_hd *hd, const struct gdri_hd_worker *w)
{
	const struct gdri_hd_kernel *k = &w->run->k;
	uintptr_t fibers = (uintptr_t)__atomic_load_n(&w->block.fibers, __ATOMIC_RELAXED);
	uintptr_t self = (uintptr_t)__atomic_load_n(w->self, __ATOMIC_RELAXED);
	size_t thread = (self - fibers) / sizeof(struct gdri_hd_fiber); /* not looked into: the block may end now */
	unsigned live = __atomic_load_n(&w->block.live, __ATOMIC_RELAXED);
	char others[48] = "a thread of the host waits";

	if (thread >= k->block || watch_switches(w) != w->seen || (live < 2 && !hd->waiting))
		return false;
	if (live > 1)
		snprintf(others, sizeof(others), "%u threads of its block wait", live - 1);
	gdri_warn("host device: kernel %s, block %u: thread %zu has run for %llu ms and let no other one run, while "
		  "%s: a loop that waits for another thread or PE has to call gdr_pause",
		  k->name, w->index, thread, (unsigned long long)(w->still_ns / 1000000), others);
	return true;
}

void gdri_hd_watch(unsigned limit_ms)
{
	struct gdri_hd *hd = gdri_hd_lock();
	uint64_t limit = (uint64_t)limit_ms * 1000000, now = gdri_now_ns(), passed;

	for (struct gdri_hd_worker *w = hd->workers; w; w = w->next) {
		passed = now - w->seen_ns < LOOK_MOST_NS ? now - w->seen_ns : LOOK_MOST_NS;
		w->seen_ns = now;
		if (!w->run || watch_switches(w) != w->seen) {
			w->seen = watch_switches(w);
			w->still_ns = 0;
			w->told = false;
			continue;
		}
		w->still_ns += passed;
		if (!w->told && w->still_ns >= limit)
			w->told = watch_tell(hd, w);
	}
	gdri_hd_unlock(hd);
}

/* The first block that runs, of that kernel (NULL: of any). */
static const struct gdri_hd_worker *watch_worker(const struct gdri_hd *hd, const struct gdri_hd_run *of)
{
	const struct gdri_hd_worker *first = NULL;

	for (const struct gdri_hd_worker *w = hd->workers; w; w = w->next)
		if (w->run && (!of || w->run == of) && (!first || w->index < first->index))
			first = w;
	return first;
}

/* False: no kernel runs, as where the stream waits for an event of another one. */
static bool watch_tell_wait(const struct gdri_hd *hd, const char *who, const struct gdri_hd_run *head, uint64_t ms)
{
	const struct gdri_hd_worker *w = watch_worker(hd, head && !head->record ? head : NULL);

	if (w)
		gdri_warn("host device: %s has waited %llu s for kernel %s, block %u: GDR_TIMEOUT bounds waits of the "
			  "library, and no loop of a kernel's own",
			  who, (unsigned long long)(ms / 1000), w->run->k.name, w->index);
	return w;
}

void gdri_hd_wait_long(struct gdri_hd *hd, struct gdri_hd_long_wait *w, gdr_stream_t s)
{
	uint64_t ended = s ? s->ended : 0, ms, at, left;
	struct timespec end;

	if (!w->since_ns || w->ended != ended)
		*w = (struct gdri_hd_long_wait){w->who, gdri_now_ns(), ended, 0};
	ms = (gdri_now_ns() - w->since_ns) / 1000000;
	at = (w->lines + 1) * (uint64_t)hd->timeout_ms + LATE_MS;
	left = at > ms ? at - ms : 0;
	end = gdri_deadline_at(left < INT_MAX ? (int)left : INT_MAX);
	if (gdri_hd_wait_done(hd, hd->timeout_ms && hd->long_waits < LONG_WAITS ? &end : NULL) != ETIMEDOUT ||
	    (s && s->ended != ended))
		return;
	w->lines++;
	hd->long_waits += watch_tell_wait(hd, w->who, s ? s->head : NULL, at);
}
