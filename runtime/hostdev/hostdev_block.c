/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduler of the fibers of one block: one queue, first in first out (or
 * random, for tests). A fiber runs until it blocks in a collective, pauses or
 * returns; then the next one is switched to directly. */
#include "runtime/hostdev/hostdev_block.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/hostdev/hostdev.h"

static const struct gdri_hd_extents one = {{1, 1, 1}, {1, 1, 1}};
static const struct gdri_hd_thread outside = {0, 1, 0, 1, NULL, 0, 0, &one};

__thread const struct gdri_hd_thread *gdri_hd_self __attribute__((tls_model("initial-exec"))) =
	&outside;

/* Relaxed: read when a block starts, pairs with nothing. */
static uint64_t shake_seed;

void gdri_hd_shake(uint64_t seed)
{
	__atomic_store_n(&shake_seed, seed, __ATOMIC_RELAXED);
}

GDRI_HD_SCHED uint32_t gdri_hd_random(struct gdri_hd_block *b)
{
	b->shake ^= b->shake << 13; /* xorshift64 */
	b->shake ^= b->shake >> 7;
	b->shake ^= b->shake << 17;
	return (uint32_t)(b->shake >> 16);
}

GDRI_HD_SCHED struct gdri_hd_fiber *gdri_hd_running(void)
{
	return (struct gdri_hd_fiber *)(uintptr_t)gdri_hd_self;
}

/* ------------------------------------------------------------------ queue */

GDRI_HD_SCHED static void block_push(struct gdri_hd_block *b, struct gdri_hd_fiber *f)
{
	b->queue[b->tail++ % GDR_MAX_BLOCK] = f;
}

GDRI_HD_SCHED static unsigned block_take(struct gdri_hd_block *b)
{
	unsigned at = b->head;

	/* relaxed: a number that the watch compares; pairs with its load there */
	__atomic_store_n(&b->head, at + 1, __ATOMIC_RELAXED);
	return at % GDR_MAX_BLOCK;
}

GDRI_HD_SCHED static struct gdri_hd_fiber *block_pop(struct gdri_hd_block *b)
{
	struct gdri_hd_fiber *f;

	if (b->head == b->tail)
		return NULL;
	if (b->shake) {
		unsigned i = b->head + gdri_hd_random(b) % (b->tail - b->head);

		f = b->queue[i % GDR_MAX_BLOCK];
		b->queue[i % GDR_MAX_BLOCK] = b->queue[block_take(b)];
		return f;
	}
	return b->queue[block_take(b)];
}

/* ----------------------------------------------------------- state changes */

/* relaxed, here and of b->live: the watch looks who runs, and how many there are; pairs with its loads */
GDRI_HD_SCHED static void block_runs(const struct gdri_hd_thread *self)
{
	__atomic_store_n(&gdri_hd_self, self, __ATOMIC_RELAXED);
}

GDRI_HD_SCHED static void block_deactivate(struct gdri_hd_fiber *f)
{
	if (--f->warp->active == 0 && f->warp->group)
		gdri_hd_release_groups(f->block, f->warp);
}

GDRI_HD_SCHED void gdri_hd_block_fiber(struct gdri_hd_fiber *f)
{
	struct gdri_hd_block *b = f->block;

	b->blocked++;
	if (f->idle_pass != b->pass)
		b->blocked_unspun++;
	block_deactivate(f);
}

GDRI_HD_SCHED void gdri_hd_ready_fiber(struct gdri_hd_fiber *f)
{
	struct gdri_hd_block *b = f->block;

	b->blocked--;
	if (f->idle_pass != b->pass)
		b->blocked_unspun--;
	f->op = GDRI_HD_RUNNABLE;
	f->warp->active++;
	block_push(b, f);
}

GDRI_HD_SCHED static void set_status(struct gdri_hd_kernel *k, int status)
{
	int none = 0;

	__atomic_compare_exchange_n(&k->status, &none, status, 0, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED); /* first one wins; pairs with nothing */
}

GDRI_HD_SCHED static _Noreturn void block_abandon(struct gdri_hd_fiber *f)
{
	struct gdri_hd_block *b = f->block;

	b->tainted = 1;
	gdri_hd_ctx_exit(&f->ctx, &b->main);
}

GDRI_HD_SCHED _Noreturn void gdri_hd_fail(struct gdri_hd_fiber *f, enum gdri_hd_failure failure)
{
	f->block->failure = failure;
	f->block->failed_thread = f->self.thread;
	set_status(f->block->kernel, -GDR_EINVAL);
	block_abandon(f);
}

/* Another block of the kernel failed, and may be the one that is waited for here. */
GDRI_HD_SCHED static void check_cancelled(struct gdri_hd_fiber *f)
{
	/* relaxed: whether to give up is all that it says */
	if (__builtin_expect(__atomic_load_n(&f->block->kernel->status, __ATOMIC_RELAXED), 0))
		block_abandon(f);
}

GDRI_HD_SCHED void gdri_hd_reschedule(struct gdri_hd_fiber *f)
{
	struct gdri_hd_fiber *next;

	check_cancelled(f);
	next = block_pop(f->block);
	if (next == f)
		return;
	if (!next)
		gdri_hd_fail(f, GDRI_HD_STUCK);
	block_runs(&next->self);
	gdri_hd_ctx_switch(&f->ctx, &next->ctx);
}

/* ------------------------------------------------------------------ pauses */

/* What is driven may be a library that nobody knows: it runs on the CPU thread's own stack (run_fibers). */
GDRI_HD_SCHED static void pause_backoff(struct gdri_hd_fiber *f, unsigned round, unsigned lookers)
{
	struct gdri_hd_block *b;

	if (!f->self.in_kernel) { /* then f is no fiber: it has no block */
		gdri_hd_backoff_drive(round, lookers);
	} else if (!gdri_hd_backoff_is_driven()) {
		gdri_hd_backoff(round, lookers);
	} else {
		b = f->block;
		b->pauses = f;
		b->pause_round = round;
		b->pause_lookers = lookers;
		gdri_hd_ctx_switch(&f->ctx, &b->main);
	}
}

/* round 0 starts a spin: its fiber has got on since the last one. */
GDRI_HD_SCHED static void count_pause(struct gdri_hd_fiber *f, unsigned round)
{
	struct gdri_hd_block *b = f->block;
	unsigned lookers;

	if (round == 0)
		return;
	if (round < b->min_round)
		b->min_round = round;
	if (f->idle_pass != b->pass) {
		f->idle_pass = b->pass;
		b->spun++;
	}
	if (b->spun + b->blocked_unspun < b->live)
		return;
	round = b->min_round;
	lookers = b->spun ? b->spun : 1;
	b->pass++;
	b->spun = 0;
	b->blocked_unspun = b->blocked;
	b->min_round = UINT32_MAX;
	pause_backoff(f, round, lookers);
}

GDRI_HD_SCHED void gdri_hd_pause(unsigned round)
{
	struct gdri_hd_fiber *f = gdri_hd_running();

	if (!f->self.in_kernel || f->block->live == 1) {
		if (f->self.in_kernel) {
			/* relaxed: as the head of the queue */
			__atomic_store_n(&f->block->alone, f->block->alone + 1, __ATOMIC_RELAXED);
			check_cancelled(f);
		}
		pause_backoff(f, round, 1);
		return;
	}
	block_deactivate(f);
	count_pause(f, round);
	block_push(f->block, f);
	gdri_hd_reschedule(f);
	f->warp->active++;
}

/* ------------------------------------------------------------ a fiber's life */

GDRI_HD_SCHED static _Noreturn void fiber_end(struct gdri_hd_fiber *f)
{
	struct gdri_hd_block *b = f->block;
	struct gdri_hd_fiber *next;

	__atomic_store_n(&b->live, b->live - 1, __ATOMIC_RELAXED); /* as in block_runs */
	if (f->idle_pass == b->pass)
		b->spun--;
	f->warp->live &= ~(1u << (f->self.thread % GDRI_HD_WARP));
	gdri_hd_fiber_gone(f);
	block_deactivate(f);
	if (b->live == 0)
		gdri_hd_ctx_exit(&f->ctx, &b->main);
	next = block_pop(b);
	if (!next)
		gdri_hd_fail(f, GDRI_HD_STUCK);
	block_runs(&next->self);
	gdri_hd_ctx_exit(&f->ctx, &next->ctx);
}

GDRI_HD_SCHED static void fiber_main(void)
{
	struct gdri_hd_fiber *f = gdri_hd_running();
	struct gdri_hd_block *b = f->block;

	gdri_hd_ctx_arrive(&b->main);
	gdri_hd_acquire(&b->kernel); /* released in run_fibers */
	b->kernel->fn(b->kernel->arg);
	gdri_hd_release(&b->main); /* acquired in run_fibers */
	fiber_end(f);
}

/* ----------------------------------------------------------- a block's life */

static int ensure_fibers(struct gdri_hd_block *b, unsigned count, size_t stack_size)
{
	int ret;

	if (b->stacks.count >= count && b->stack_size == stack_size)
		return GDR_OK;
	gdri_hd_block_free(b);
	ret = gdri_hd_stacks_alloc(&b->stacks, count, stack_size);
	if (ret)
		return ret;
	b->stack_size = stack_size;
	/* relaxed, here and below: the watch reckons with the address alone; pairs with its load */
	__atomic_store_n(&b->fibers, calloc(count, sizeof(*b->fibers)), __ATOMIC_RELAXED);
	if (!b->fibers) {
		gdri_error("host device: no memory for %u threads", count);
		gdri_hd_block_free(b);
		return -GDR_ENOMEM;
	}
	for (unsigned i = 0; i < count; i++)
		gdri_hd_stacks_assign(&b->stacks, i, &b->fibers[i].ctx);
	return GDR_OK;
}

void gdri_hd_block_free(struct gdri_hd_block *b)
{
	for (unsigned i = 0; b->fibers && i < b->stacks.count; i++)
		gdri_hd_ctx_free(&b->fibers[i].ctx);
	free(b->fibers);
	__atomic_store_n(&b->fibers, NULL, __ATOMIC_RELAXED);
	gdri_hd_stacks_free(&b->stacks);
	b->tainted = 0;
}

GDRI_HD_SCHED static void start_fiber(struct gdri_hd_block *b, unsigned i)
{
	struct gdri_hd_fiber *f = &b->fibers[i];
	struct gdri_hd_warp *w = &b->warps[i / GDRI_HD_WARP];

	f->self.thread = i;
	f->self.block_size = b->kernel->block;
	f->self.block = b->index;
	f->self.grid_size = b->kernel->grid;
	f->self.shared = b->shared;
	f->self.in_kernel = 1;
	f->self.of = &b->kernel->of;
	f->block = b;
	f->warp = w;
	f->op = GDRI_HD_RUNNABLE;
	f->idle_pass = 0;
	if (i % GDRI_HD_WARP == 0) {
		w->lanes = f;
		w->live = 0;
		w->active = 0;
		w->group = 0;
		w->n_pending = 0;
	}
	w->live |= 1u << (i % GDRI_HD_WARP);
	w->active++;
	gdri_hd_ctx_make(&f->ctx, &b->main, fiber_main, b->tainted);
	block_push(b, f);
}

GDRI_HD_SCHED static void start_block(struct gdri_hd_block *b, struct gdri_hd_kernel *k,
				      unsigned index)
{
	uint64_t seed = __atomic_load_n(&shake_seed, __ATOMIC_RELAXED); /* pairs with nothing */

	b->kernel = k;
	b->index = index;
	__atomic_store_n(&b->live, k->block, __ATOMIC_RELAXED); /* as in block_runs */
	b->in_barrier = b->in_count = 0;
	__atomic_store_n(&b->head, 0, __ATOMIC_RELAXED); /* as in block_take */
	b->tail = 0;
	b->pass = 1;
	b->spun = b->blocked = b->blocked_unspun = 0;
	b->min_round = UINT32_MAX;
	b->failure = GDRI_HD_NO_FAILURE;
	b->shake = seed ? (seed ^ (index + 1) * 0x9e3779b97f4a7c15ull) | 1 : 0;
	gdri_hd_ctx_init_thread(&b->main);
	for (unsigned i = 0; i < k->block; i++)
		start_fiber(b, i);
	b->tainted = 0;
}

GDRI_HD_SCHED static void run_fibers(struct gdri_hd_block *b)
{
	const struct gdri_hd_thread *caller = gdri_hd_self;
	struct gdri_hd_fiber *next = block_pop(b);

	gdri_hd_release(&b->kernel);
	while (next) {
		block_runs(&next->self);
		gdri_hd_ctx_switch(&b->main, &next->ctx);
		block_runs(caller);
		next = b->pauses;
		b->pauses = NULL;
		if (next)
			gdri_hd_backoff_drive(b->pause_round, b->pause_lookers);
	}
	gdri_hd_acquire(&b->main);
	for (unsigned i = 0; b->tainted && i < b->kernel->block; i++)
		gdri_hd_ctx_settle(&b->main, &b->fibers[i].ctx);
}

static void block_end(struct gdri_hd_block *b)
{
	if (b->failure)
		gdri_hd_report(b);
	free(b->shared);
	b->shared = NULL;
}

void gdri_hd_block_exited(struct gdri_hd_block *b)
{
	b->failure = GDRI_HD_EXITED;
	b->failed_thread = gdri_hd_running()->self.thread;
	set_status(b->kernel, -GDR_EINVAL);
	block_runs(&outside);
	block_end(b);
}

void gdri_hd_block_run(struct gdri_hd_block *b, struct gdri_hd_kernel *k, unsigned index,
		       size_t stack_size)
{
	int ret = ensure_fibers(b, k->block, stack_size);

	b->shared = NULL;
	/* Exactly as large as asked for and not cleared, so that tools see misuse. */
	if (!ret && k->shared && posix_memalign(&b->shared, 128, k->shared))
		ret = gdri_fail(-GDR_ENOMEM, "host device: no memory for %zu bytes shared by block %u of kernel %s",
				k->shared, index, k->name);
	if (ret) {
		set_status(k, ret);
		return;
	}
	start_block(b, k, index);
	run_fibers(b);
	block_end(b);
}
