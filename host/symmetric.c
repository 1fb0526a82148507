// SPDX-License-Identifier: BSD-3-Clause
/* Collective registration of the program's own memory. A failure on one PE is one on all, and leaves
 * nothing behind, but where pages cannot be given back: then no PE frees their place in the heap. */
#include "host/host.h"
#include "runtime/core/lock.h"
#include "runtime/core/log.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/outside.h"
#include "runtime/mem/symmetric.h"
#include "runtime/mem/window.h"

/* Own trouble becomes st->pending, which the next agreement tells. */
static int symmetric_enter(struct gdri_state *st, void *addr, void *ptr, size_t len)
{
	if (st->heap->cuda)
		return gdri_window_enter(st, addr, ptr, len);
	pthread_mutex_lock(&st->symmetric_lock);
	st->pending = gdri_symmetric_enter(st->heap, &st->symmetric, addr, ptr, len);
	pthread_mutex_unlock(&st->symmetric_lock);
	return 0;
}

static int symmetric_leave(struct gdri_state *st, void *ptr)
{
	int ret;

	pthread_mutex_lock(&st->symmetric_lock);
	ret = gdri_symmetric_leave(st->symmetric, ptr);
	pthread_mutex_unlock(&st->symmetric_lock);
	if (!ret && st->heap->cuda)
		gdri_outside_publish(st); /* where it cannot be, kernels still find what nobody may use any more */
	return ret;
}

static void symmetric_forget(struct gdri_state *st, void *ptr)
{
	const struct gdri_symmetric *s;
	int outside;

	pthread_mutex_lock(&st->symmetric_lock);
	s = gdri_symmetric_find(st->symmetric, ptr);
	outside = s && s->at && s->left;
	gdri_symmetric_forget(&st->symmetric, ptr);
	__atomic_sub_fetch(&st->outside->n, outside, __ATOMIC_RELAXED); /* as in window.c */
	pthread_mutex_unlock(&st->symmetric_lock);
}

static int symmetric_place(struct gdri_state *st, size_t len, void **ptr)
{
	int ret;

	if (!st->heap->cuda)
		return gdri_symmetric_alloc(st, len, (uint64_t)GDR_SYMMETRIC_PAGE, ptr);
	if (!st->pending)
		st->pending = gdri_window_prepare(st);
	ret = gdri_heap_agree(st, GDRI_CALL_SHOWN, len, 0);
	return ret ? ret : gdri_window_alloc(st, len, ptr);
}

static int symmetric_free_place(struct gdri_state *st, void *ptr)
{
	return st->heap->cuda ? gdri_window_free(st, ptr) : gdri_symmetric_free(st, ptr);
}

/* Pages that a PE still maps must not be allocated anew on any: all tell. The failure is told already. */
static void symmetric_take_back(struct gdri_state *st, void *ptr)
{
	bool in = gdri_symmetric_find(st->symmetric, ptr);

	if (st->heap->cuda && gdri_window_retire(st, ptr))
		return; /* registered still, on all PEs */
	st->pending = in ? symmetric_leave(st, ptr) : 0;
	symmetric_forget(st, ptr);
	if (!gdri_heap_agree(st, GDRI_CALL_GIVEN_BACK, (uint64_t)((uint8_t *)ptr - st->heap->base), 0))
		symmetric_free_place(st, ptr);
}

static const char *why_not(struct gdri_state *st, const void *addr, size_t len)
{
	if (st->heap->cuda)
		return gdri_window_refuse(st, addr, len);
	if (st->cuda && gdri_cuda_is_device(st->cuda, addr)) /* which nobody may copy here */
		return "it is memory of a GPU, and the heap is the host's: GDR_HEAP_KIND=gpu";
	return gdri_symmetric_refuse(st->heap, st->symmetric, addr, len);
}

static int symmetric_refuse(struct gdri_state *st, const void *addr, size_t len)
{
	int ret = st->heap->cuda ? gdri_window_settle(st, "gdr_symmetric_register") : 0;
	const char *why = ret ? NULL : why_not(st, addr, len);

	if (!why)
		return ret;
	gdri_error("gdr_symmetric_register: %p with %zu bytes: %s", addr, len, why);
	return st->heap->cuda ? -GDR_ENOTSUP : -GDR_EINVAL;
}

static int register_all(struct gdri_state *st, void *addr, size_t len, void **out)
{
	void *ptr = NULL;
	int ret;

	gdri_log_clear_error();
	st->pending = symmetric_refuse(st, addr, len);
	ret = symmetric_place(st, len, &ptr);
	if (ret || !ptr)
		return ret ? ret : -GDR_EINVAL;
	ret = symmetric_enter(st, addr, ptr, len);
	if (ret) { /* on all PEs */
		symmetric_free_place(st, ptr);
		return ret;
	}
	ret = gdri_heap_agree(st, GDRI_CALL_SHOWN, len, GDR_SYMMETRIC_PAGE);
	if (ret && !st->broken) /* all PEs know, and take it back */
		symmetric_take_back(st, ptr);
	*out = ret ? NULL : st->heap->cuda ? gdri_symmetric_name(gdri_symmetric_find(st->symmetric, ptr)) : ptr;
	return ret;
}

void *gdr_symmetric_register(void *addr, size_t len)
{
	struct gdri_state *st = gdri_need_state("gdr_symmetric_register");
	void *ptr = NULL;
	int ret;

	if (!st)
		return NULL;
	gdri_lock(&st->lock);
	gdri_call_begin(st, "gdr_symmetric_register");
	ret = register_all(st, addr, len, &ptr);
	pthread_mutex_unlock(&st->lock);
	gdri_host_refused(st, ret);
	return ptr;
}

static int unregister_all(struct gdri_state *st, void *name)
{
	const struct gdri_symmetric *s = gdri_symmetric_named(st->symmetric, name);
	uint8_t *ptr = s ? s->ptr : name;
	uint64_t offset = (uint64_t)(ptr - st->heap->base);
	int ret;

	gdri_log_clear_error();
	if (!s) {
		st->pending =
			gdri_fail(-GDR_EINVAL,
				  "gdr_symmetric_unregister: %p is not what gdr_symmetric_register returned", name);
	} else if (st->heap->cuda) {
		st->pending = gdri_window_settle(st, "gdr_symmetric_unregister");
	}
	ret = gdri_heap_agree(st, GDRI_CALL_HIDDEN, offset, 0);
	if (ret)
		return ret;
	ret = st->heap->cuda ? gdri_window_retire(st, ptr) : 0;
	if (ret)
		return ret; /* registered still, on all PEs */
	st->pending = symmetric_leave(st, ptr);
	ret = gdri_heap_agree(st, GDRI_CALL_GIVEN_BACK, offset, 0);
	if (ret)
		return ret; /* registered still, on all PEs */
	symmetric_forget(st, ptr);
	return symmetric_free_place(st, ptr);
}

int gdr_symmetric_unregister(void *ptr)
{
	struct gdri_state *st = gdri_need_state("gdr_symmetric_unregister");
	int ret;

	if (!st)
		return -GDR_ESTATE;
	gdri_lock(&st->lock);
	gdri_call_begin(st, "gdr_symmetric_unregister");
	ret = unregister_all(st, ptr);
	pthread_mutex_unlock(&st->lock);
	return ret;
}
