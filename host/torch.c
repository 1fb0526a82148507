// SPDX-License-Identifier: BSD-3-Clause
/* What gdr.torch has of the library alone: the limit of a process group, and what a torch.cuda.MemPool allocates by.
 * PyTorch calls these with its allocator's lock held. gdr_free is collective, and when PyTorch gives a segment back a
 * PE's garbage collector decides: such a call only notes it, and gdr.torch.release() frees what all PEs have given
 * back. */
#include <pthread.h>
#include <stdlib.h>

#include <gdr/host.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/cuda/cuda_map.h"

/* Their types are those of torch's CUDAPluggableAllocator; stream: a cudaStream_t. */
GDR_API void *gdri_torch_alloc(size_t size, int device, void *stream);
GDR_API void gdri_torch_free(void *ptr, size_t size, int device, void *stream);
/* One that was given back, and is the caller's to free; NULL: there is none. */
GDR_API void *gdri_torch_freed(void);
/* From now on waits of this PE's host threads, and on the host device of its kernels, end after ns, and not after
 * GDR_TIMEOUT. Returns the limit before; 0: there is no job. */
GDR_API uint64_t gdri_torch_limit(uint64_t ns);

struct torch_segment {
	struct torch_segment *next;
	void *ptr;
};
static pthread_mutex_t torch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct torch_segment *torch_given_back;

void *gdri_torch_alloc(size_t size, int device, void *stream)
{
	struct gdri_state *st = gdri_need_state("a pool's allocation");
	int own = device;

	(void)stream;
	if (st && st->heap->cuda)
		own = gdri_cuda_ordinal(st->cuda, st->heap->base);
	if (own == device)
		return gdr_malloc(size);
	/* PyTorch would take the memory for the other GPU's, and run kernels there */
	gdri_error("a pool of gdr.torch.mem_pool() was asked for memory of cuda:%d, and the heap is memory of cuda:%d: "
		   "torch.cuda.use_mem_pool(pool, device=%d), behind torch.cuda.set_device(%d)",
		   device, own, own, own);
	return NULL;
}

void gdri_torch_free(void *ptr, size_t size, int device, void *stream)
{
	struct torch_segment *s = malloc(sizeof(*s));

	(void)device;
	(void)stream;
	if (!s) {
		gdri_error("out of memory: %zu bytes at %p stay in use until gdr_finalize", size, ptr);
		return;
	}
	s->ptr = ptr;
	pthread_mutex_lock(&torch_lock);
	s->next = torch_given_back;
	torch_given_back = s;
	pthread_mutex_unlock(&torch_lock);
}

void *gdri_torch_freed(void)
{
	struct torch_segment *s;
	void *ptr;

	pthread_mutex_lock(&torch_lock);
	s = torch_given_back;
	if (s)
		torch_given_back = s->next;
	pthread_mutex_unlock(&torch_lock);
	ptr = s ? s->ptr : NULL;
	free(s);
	return ptr;
}

uint64_t gdri_torch_limit(uint64_t ns)
{
	struct gdri_state *st = gdri_need_state("timeout=");
	uint64_t before;

	if (!st)
		return 0;
	pthread_mutex_lock(&st->lock);
	before = gdri_host_dev(st)->timeout_ns;
	/* relaxed: threads that wait meanwhile may take either; the number carries nothing */
	__atomic_store_n(&gdri_host_dev(st)->timeout_ns, ns, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&st->lock);
	return before;
}
