/* SPDX-License-Identifier: BSD-3-Clause */
/* CPU threads that run blocks, one block each at a time. They are made when
 * there are blocks for them, up to the limit, and wait for more. */
#define _GNU_SOURCE

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/hostdev/hostdev.h"
#include "runtime/hostdev/hostdev_launch.h"

#define TRIM_AFTER_MS 1000u /* idle this long: stacks of large blocks are given back */
#define TRIM_STACKS 64u

/* Takes the next block, first launched first; NULL when there is none or the limit is
 * reached. */
static struct gdri_hd_run *take_block(struct gdri_hd *hd, unsigned *index)
{
	struct gdri_hd_run *run = hd->ready_head;

	if (!run || hd->running >= hd->max_blocks)
		return NULL;
	*index = run->next_block++;
	if (run->next_block == run->k.grid) {
		hd->ready_head = run->next_ready;
		if (!hd->ready_head)
			hd->ready_tail = NULL;
	}
	hd->unstarted--;
	hd->running++;
	return run;
}

/* With the lock held. */
static void block_ended(struct gdri_hd *hd, struct gdri_hd_run *run)
{
	hd->running--;
	if (++run->ended_blocks == run->k.grid)
		gdri_hd_run_ended(hd, run);
}

static void run_one(struct gdri_hd_worker *w, struct gdri_hd_run *run, unsigned index)
{
	struct gdri_hd *hd = w->hd;
	size_t stack_size = hd->stack_size;

	/* Relaxed: after an error the other blocks need not be started. */
	if (!__atomic_load_n(&run->k.status, __ATOMIC_RELAXED)) {
		w->run = run;
		w->index = index;
		w->still_ns = 0;
		w->told = false;
		pthread_mutex_unlock(&hd->lock);
		gdri_hd_backoff_blocks(1);
		gdri_hd_block_run(&w->block, &run->k, index, stack_size);
		gdri_hd_backoff_blocks(-1);
		pthread_mutex_lock(&hd->lock);
		w->run = NULL;
		if (w->left)
			return;
	}
	block_ended(hd, run);
}

static void wait_for_work(struct gdri_hd_worker *w)
{
	struct gdri_hd *hd = w->hd;
	struct timespec end;
	int ret = 0;

	hd->n_idle++;
	if (w->block.stacks.count > TRIM_STACKS) {
		end = gdri_deadline_at(TRIM_AFTER_MS);
		ret = pthread_cond_timedwait(&hd->work, &hd->lock, &end);
	} else {
		pthread_cond_wait(&hd->work, &hd->lock);
	}
	hd->n_idle--;
	if (ret == ETIMEDOUT)
		gdri_hd_block_free(&w->block);
}

/* A thread of a kernel ended this CPU thread, which nobody joins any more; the blocks that are left need another. */
static void worker_exited(void *arg)
{
	struct gdri_hd_worker *w = arg, **link;
	struct gdri_hd *hd = w->hd;

	if (!gdri_hd_self->in_kernel)
		return;
	gdri_hd_backoff_blocks(-1);
	gdri_hd_block_exited(&w->block);
	gdri_hd_block_free(&w->block);
	gdri_hd_overflow_disarm();
	pthread_mutex_lock(&hd->lock);
	if (w->left) { /* stays in the list of those */
		pthread_mutex_unlock(&hd->lock);
		return;
	}
	for (link = &hd->workers; *link != w; link = &(*link)->next)
		;
	*link = w->next;
	hd->n_workers--;
	pthread_detach(w->thread);
	block_ended(hd, w->run);
	(void)gdri_hd_workers_wake(hd); /* says so where there can be none */
	free(w);
	pthread_mutex_unlock(&hd->lock);
}

static pthread_key_t worker_key; /* its value: the worker */
static bool worker_has_key;

static void worker_make_key(void)
{
	worker_has_key = !pthread_key_create(&worker_key, worker_exited);
}

static void worker_mark(struct gdri_hd_worker *w)
{
	static pthread_once_t made = PTHREAD_ONCE_INIT;

	pthread_once(&made, worker_make_key);
	if (worker_has_key)
		(void)pthread_setspecific(worker_key, w);
}

static void *worker_main(void *arg)
{
	struct gdri_hd_worker *w = arg;
	struct gdri_hd *hd = w->hd;
	struct gdri_hd_run *run;
	unsigned index;

	/* by the thread itself: named by another, a thread of a forked child left an entry below /proc that some
	 * kernels looked for without end when the child was reaped */
	(void)pthread_setname_np(pthread_self(), "gdr-block");
	gdri_hd_overflow_arm(&w->block.stacks, w->overflow_room);
	gdri_hd_backoff_own_thread();
	worker_mark(w);
	pthread_mutex_lock(&hd->lock);
	w->self = &gdri_hd_self;
	hd->n_idle--; /* counted idle from its creation on */
	while (!w->left && !hd->stop) {
		run = take_block(hd, &index);
		if (run)
			run_one(w, run, index);
		else
			wait_for_work(w);
	}
	pthread_mutex_unlock(&hd->lock);
	worker_mark(NULL);
	gdri_hd_block_free(&w->block);
	gdri_hd_overflow_disarm();
	return NULL;
}

/* The program's signal handlers must not run on a fiber's stack: only what a thread raises
 * itself gets through. */
static int create_thread(struct gdri_hd_worker *w)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	sigset_t blocked, old;
	int ret;

	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&blocked, own[i]);
	pthread_sigmask(SIG_SETMASK, &blocked, &old);
	ret = gdri_thread_create(&w->thread, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

static int add_worker(struct gdri_hd *hd)
{
	struct gdri_hd_worker *w = calloc(1, sizeof(*w));
	int ret = w ? 0 : ENOMEM;

	if (w) {
		w->hd = hd;
		ret = create_thread(w);
	}
	if (ret) {
		free(w);
		if (hd->n_workers) {
			gdri_warn("host device: CPU thread %u cannot be started (%s): blocks of "
				  "kernels that wait for each other may not fit",
				  hd->n_workers + 1, gdri_thread_text(ret));
			return GDR_OK;
		}
		return gdri_fail(-GDR_ESYSTEM, "host device: no CPU thread can be started: %s", gdri_thread_text(ret));
	}
	w->next = hd->workers;
	hd->workers = w;
	hd->n_workers++;
	hd->n_idle++;
	return GDR_OK;
}

int gdri_hd_workers_wake(struct gdri_hd *hd)
{
	uint64_t room = hd->max_blocks > hd->running ? hd->max_blocks - hd->running : 0;
	uint64_t want = hd->unstarted < room ? hd->unstarted : room;
	unsigned before;
	int ret;

	for (uint64_t i = 0; i < want && i < hd->n_idle; i++)
		pthread_cond_signal(&hd->work);
	/* n_idle counts workers that were signalled but have not taken their block yet; so does
	 * unstarted. */
	while (hd->n_idle < want) {
		before = hd->n_workers;
		ret = add_worker(hd);
		if (ret || hd->n_workers == before)
			return ret;
	}
	return GDR_OK;
}

void gdri_hd_workers_stop(struct gdri_hd *hd)
{
	struct gdri_hd_worker *w, *list = hd->workers;

	if (!list)
		return;
	hd->workers = NULL;
	hd->stop = 1;
	pthread_cond_broadcast(&hd->work);
	pthread_mutex_unlock(&hd->lock);
	for (w = list; w; w = w->next)
		pthread_join(w->thread, NULL);
	pthread_mutex_lock(&hd->lock);
	while ((w = list)) {
		list = w->next;
		free(w);
	}
	hd->stop = 0;
	hd->n_workers = 0;
	hd->n_idle = 0;
}

void gdri_hd_workers_leave(struct gdri_hd *hd)
{
	struct gdri_hd_worker **link = &hd->workers, *w;

	while ((w = *link)) {
		if (!w->run) {
			link = &w->next;
			continue;
		}
		*link = w->next;
		w->next = hd->left_workers;
		hd->left_workers = w;
		w->left = true;
		pthread_detach(w->thread);
		hd->n_workers--;
		hd->running--;
	}
}

void gdri_hd_workers_forget(struct gdri_hd *hd)
{
	struct gdri_hd_worker *w;

	worker_mark(NULL); /* one of them may have forked */
	while ((w = hd->workers)) {
		hd->workers = w->next;
#ifndef GDRI_HD_TSAN /* to it the fibers still run */
		free(w->block.shared);
		gdri_hd_block_free(&w->block);
		free(w);
#endif
	}
	hd->n_workers = 0;
	hd->n_idle = 0;
	hd->stop = 0;
}
