// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/cuda/prefetch.h"

#include <gdr/status.h>

#include "runtime/core/state.h"
#include "runtime/core/thread.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/units.h"
#include "runtime/exec/exec.h"
#include "runtime/mem/heap.h"

static void *make_heap(void *arg)
{
	struct gdri_state *st = arg;

	gdri_heap_make(&st->prefetch->made, st->cuda, false, st->opt.heap_size, st->opt.heap_max);
	return NULL;
}

static void *load_kernels(void *arg)
{
	struct gdri_state *st = arg;

	st->prefetch->executor = gdri_exec_load(st->cuda);
	return NULL;
}

int gdri_prefetch_begin(struct gdri_state *st)
{
	struct gdri_prefetch *e = st->prefetch;
	int ret;

	if (st->pending || !gdri_units_exist())
		return 0;
	ret = gdri_cuda_open(&st->cuda, GDRI_CUDA_CURRENT, st->opt.heap_handle);
	if (ret)
		return ret == -GDR_ESTATE ? 0 : ret;
	e->kernels_run = !gdri_thread_start(&e->kernels, load_kernels, st);
	if (st->opt.heap_kind != GDRI_MEMORY_HOST)
		e->heap_runs = !gdri_thread_start(&e->heap, make_heap, st);
	return 0;
}

static void wait_for_heap(struct gdri_prefetch *e)
{
	if (e->heap_runs)
		pthread_join(e->heap, NULL);
	e->heap_runs = false;
}

bool gdri_prefetch_heap(struct gdri_state *st)
{
	struct gdri_prefetch *e = st->prefetch;

	wait_for_heap(e);
	if (!e->made.base)
		return false;
	*st->heap = e->made;
	e->made = (struct gdri_heap){0};
	return true;
}

struct gdri_executor *gdri_prefetch_executor(struct gdri_state *st)
{
	struct gdri_prefetch *e = st->prefetch;
	struct gdri_executor *p;

	if (e->kernels_run)
		pthread_join(e->kernels, NULL);
	e->kernels_run = false;
	p = e->executor;
	e->executor = NULL;
	return p;
}

void gdri_prefetch_end(struct gdri_state *st)
{
	wait_for_heap(st->prefetch);
	if (st->prefetch->made.base)
		gdri_heap_close(&st->prefetch->made);
	gdri_exec_drop(st->cuda, gdri_prefetch_executor(st));
}
