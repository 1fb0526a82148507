/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches, start and end of the host device, and what fork() leaves of it. */
#include "runtime/hostdev/hostdev_launch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/hostdev/hostdev.h"

#define MAX_ARG 4096u /* as under CUDA */

static struct gdri_hd hd;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_locks(void)
{
	pthread_mutex_init(&hd.lock, NULL);
	gdri_cond_init(&hd.work);
	gdri_cond_init(&hd.done);
}

static void hostdev_before_fork(void)
{
	pthread_mutex_lock(&hd.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&hd.lock);
}

/* The child has the forking thread only: kernels of the parent end there, and the child
 * may launch its own. */
static void after_fork_child(void)
{
	init_locks();
	gdri_hd_workers_forget(&hd);
	hd.waiting = 0; /* of the parent's threads */
	gdri_hd_streams_forget(&hd);
}

static void init_once(void)
{
	init_locks();
	hd.max_blocks = GDRI_HD_DEFAULT_BLOCKS;
	hd.stack_size = GDRI_HD_DEFAULT_STACK;
	pthread_atfork(hostdev_before_fork, after_fork_parent, after_fork_child);
}

struct gdri_hd *gdri_hd_lock(void)
{
	pthread_once(&once, init_once);
	pthread_mutex_lock(&hd.lock);
	return &hd;
}

void gdri_hd_unlock(struct gdri_hd *h)
{
	pthread_mutex_unlock(&h->lock);
}

int gdri_hd_wait_done(struct gdri_hd *h, const struct timespec *end)
{
	int ret;

	h->waiting++;
	ret = end ? pthread_cond_timedwait(&h->done, &h->lock, end) : pthread_cond_wait(&h->done, &h->lock);
	h->waiting--;
	return ret;
}

/* ---------------------------------------------------------- start and end */

int gdri_hd_init(const struct gdri_hd_params *params)
{
	static const struct gdri_hd_params defaults = {GDRI_HD_DEFAULT_BLOCKS,
						       GDRI_HD_DEFAULT_STACK, 0};
	const struct gdri_hd_params *p = params ? params : &defaults;
	struct gdri_hd *h;

	if (p->max_blocks < 1 || p->max_blocks > GDRI_HD_MAX_BLOCKS ||
	    p->stack_size < GDRI_HD_MIN_STACK)
		return gdri_fail(-GDR_EINVAL,
				 "host device: %u blocks at a time with stacks of %zu bytes: allowed are 1 to %u "
				 "blocks and at least %u bytes",
				 p->max_blocks, p->stack_size, GDRI_HD_MAX_BLOCKS, GDRI_HD_MIN_STACK);
	h = gdri_hd_lock();
	h->max_blocks = p->max_blocks;
	h->stack_size = p->stack_size;
	h->timeout_ms = p->timeout_ms;
	h->long_waits = 0;
	gdri_hd_streams_begin(h);
	(void)gdri_hd_workers_wake(h); /* the limit may have been raised */
	gdri_hd_unlock(h);
	return GDR_OK;
}

/* Name of one that runs; there is one. */
static const char *some_kernel(const struct gdri_hd *h)
{
	gdr_stream_t s = h->streams;

	if (h->default_stream.head)
		return h->default_stream.head->k.name;
	while (s && !s->head)
		s = s->next;
	return s ? s->head->k.name : "?";
}

static void back_to_defaults(struct gdri_hd *h)
{
	gdri_hd_workers_stop(h);
	h->max_blocks = GDRI_HD_DEFAULT_BLOCKS;
	h->stack_size = GDRI_HD_DEFAULT_STACK;
	h->timeout_ms = 0;
}

int gdri_hd_shutdown(unsigned timeout_ms)
{
	struct gdri_hd *h = gdri_hd_lock();
	const struct timespec end = gdri_deadline_at((int)timeout_ms);
	int ret = 0;

	while (h->runs && ret != ETIMEDOUT)
		ret = gdri_hd_wait_done(h, &end);
	ret = h->runs ? -GDR_ETIMEOUT : GDR_OK;
	if (!ret)
		back_to_defaults(h);
	gdri_hd_unlock(h);
	return ret;
}

void gdri_hd_tell_runs(unsigned after_ms)
{
	struct gdri_hd *h = gdri_hd_lock();

	if (h->runs)
		gdri_error("host device: %llu kernels still run or are queued after %u ms (one is %s): their waits are "
			   "told to end",
			   (unsigned long long)h->runs, after_ms, some_kernel(h));
	gdri_hd_unlock(h);
}

void gdri_hd_leave(void)
{
	struct gdri_hd *h = gdri_hd_lock();

	gdri_hd_streams_leave(h);
	gdri_hd_workers_leave(h);
	back_to_defaults(h);
	gdri_hd_unlock(h);
}

/* ----------------------------------------------------------------- launches */

struct launch_name {
	char text[128];
};

/* "gdr_launch of KERNEL", or the call of the library's that launches. */
static struct launch_name launch_name(const struct gdri_hd_kernel *k)
{
	struct launch_name n;

	snprintf(n.text, sizeof(n.text), "%s%s%s", k->call ? k->call : "", k->call ? " of " : "",
		 k->name ? k->name : "(null)");
	return n;
}

static int check_launch(const struct gdri_hd_kernel *k, size_t arg_size)
{
	if (gdri_hd_self->in_kernel)
		return gdri_fail(-GDR_ENOTSUP, "%s from inside a kernel is not supported", launch_name(k).text);
	if (!k->arg)
		return gdri_fail(-GDR_EINVAL, "%s: argp is NULL", launch_name(k).text);
	if (k->fn && k->shared <= GDR_MAX_SHARED && arg_size <= MAX_ARG)
		return GDR_OK;
	return gdri_fail(-GDR_EINVAL,
			 "%s: %zu bytes of shared memory and %zu of arguments: allowed are up to %u and %u",
			 launch_name(k).text, k->shared, arg_size, GDR_MAX_SHARED, MAX_ARG);
}

static struct gdri_hd_run *make_run(const struct gdri_hd_kernel *k, size_t arg_size)
{
	size_t size = (sizeof(struct gdri_hd_run) + arg_size + 63) & ~(size_t)63;
	struct gdri_hd_run *run = aligned_alloc(64, size);

	if (!run)
		return gdri_fail(NULL, "%s: no memory for %zu bytes", launch_name(k).text, size);
	memset(run, 0, sizeof(*run));
	run->k = *k;
	memcpy(run->arg, k->arg, arg_size);
	run->k.arg = run->arg;
	return run;
}

static int push_kernel(const struct gdri_hd_kernel *k, gdr_stream_t stream, size_t arg_size)
{
	struct gdri_hd_run *run;
	struct gdri_hd *h;
	int ret;

	ret = check_launch(k, arg_size);
	if (ret)
		return ret;
	run = make_run(k, arg_size);
	if (!run)
		return -GDR_ENOMEM;
	gdri_hd_cxx_look();
	h = gdri_hd_lock();
	stream = gdri_hd_stream_find(h, stream);
	if (stream)
		ret = gdri_hd_stream_push(h, stream, run);
	gdri_hd_unlock(h);
	if (!stream)
		ret = gdri_fail(-GDR_EINVAL, "%s: no such stream", launch_name(k).text);
	if (ret)
		free(run);
	return ret;
}

static int set_extents(struct gdri_hd_kernel *k, struct gdr_dim3 grid, struct gdr_dim3 block)
{
	k->grid = grid.x * grid.y * grid.z;
	k->block = block.x * block.y * block.z;
	k->of.grid = grid;
	k->of.block = block;
	return gdri_launch_extents(k->call, k->name, grid, block);
}

int gdri_hd_launch_3d(void (*kernel)(const void *arg), const char *name, struct gdr_dim3 grid, struct gdr_dim3 block,
		      size_t shared, gdr_stream_t stream, const void *arg, size_t arg_size)
{
	struct gdri_hd_kernel k = {.fn = kernel, .name = name, .arg = arg, .shared = shared, .call = "gdr_launch_3d"};
	int ret = set_extents(&k, grid, block);

	return ret ? ret : push_kernel(&k, stream, arg_size);
}

int gdri_hd_launch(void (*kernel)(const void *arg), const char *name, unsigned grid, unsigned block, size_t shared,
		   gdr_stream_t stream, const void *arg, size_t arg_size)
{
	struct gdri_hd_kernel k = {.fn = kernel, .name = name, .arg = arg, .shared = shared, .call = "gdr_launch"};
	int ret = set_extents(&k, gdr_make_dim3(grid, 1, 1), gdr_make_dim3(block, 1, 1));

	return ret ? ret : push_kernel(&k, stream, arg_size);
}

int gdri_hd_request(void (*kernel)(const void *arg), const char *call, unsigned grid, unsigned block,
		    gdr_stream_t stream, const void *arg, size_t arg_size)
{
	struct gdri_hd_kernel k = {.fn = kernel, .name = call, .arg = arg, .grid = grid, .block = block,
				   .of = {{grid, 1, 1}, {block, 1, 1}}};

	return push_kernel(&k, stream, arg_size);
}

/* ---- all blocks at once ---- */

static unsigned hd_at_once(void)
{
	struct gdri_hd *h = gdri_hd_lock();
	unsigned most = h->max_blocks;

	gdri_hd_unlock(h);
	return most;
}

int gdri_hd_collective_grid(void (*kernel)(const void *arg), unsigned block, size_t shared, int *grid)
{
	if (!grid)
		return gdri_fail(-GDR_EINVAL, "gdr_collective_launch_query_gridsize: gridp is NULL");
	if (!kernel || block < 1 || block > GDR_MAX_BLOCK || shared > GDR_MAX_SHARED)
		return gdri_fail(-GDR_EINVAL,
				 "gdr_collective_launch_query_gridsize: blocks of %u threads with %zu bytes of shared "
				 "memory: at most %u and %u",
				 block, shared, GDR_MAX_BLOCK, GDR_MAX_SHARED);
	*grid = (int)hd_at_once();
	return GDR_OK;
}

static int push_at_once(struct gdri_hd_kernel *k, gdr_stream_t stream, size_t arg_size)
{
	unsigned most = hd_at_once();

	if (k->grid > most)
		return gdri_fail(-GDR_EINVAL, "%s: %u blocks do not run at once, %u do (GDR_HOST_DEVICE_BLOCKS)",
				 launch_name(k).text, k->grid, most);
	k->at_once = 1;
	return push_kernel(k, stream, arg_size);
}

int gdri_hd_collective_launch(void (*kernel)(const void *arg), const char *name, unsigned grid,
			      unsigned block, size_t shared, gdr_stream_t stream, const void *arg,
			      size_t arg_size)
{
	struct gdri_hd_kernel k = {.fn = kernel, .name = name, .arg = arg, .shared = shared,
				   .call = "gdr_collective_launch"};
	int ret = set_extents(&k, gdr_make_dim3(grid ? grid : hd_at_once(), 1, 1), gdr_make_dim3(block, 1, 1));

	return ret ? ret : push_at_once(&k, stream, arg_size);
}

int gdri_hd_collective_launch_3d(void (*kernel)(const void *arg), const char *name, struct gdr_dim3 grid,
				 struct gdr_dim3 block, size_t shared, gdr_stream_t stream, const void *arg,
				 size_t arg_size)
{
	struct gdri_hd_kernel k = {.fn = kernel, .name = name, .arg = arg, .shared = shared,
				   .call = "gdr_collective_launch_3d"};
	int ret = set_extents(&k, grid, block);

	return ret ? ret : push_at_once(&k, stream, arg_size);
}
