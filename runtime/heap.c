// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* memfd_create, seals */
#include "runtime/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/cuda.h"
#include "runtime/cuda_map.h"
#include "runtime/log.h"

#define HUGE ((size_t)2 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define COPY_MS 10000 /* a GPU zeroes its whole memory in a tenth of a second */

/* Maps size bytes of fd at a multiple of the huge page: the kernel may then use huge
 * pages, and the NIC needs fewer entries. */
static uint8_t *map_aligned(int fd, size_t size)
{
	uint8_t *room, *base;
	size_t head;

	room = mmap(NULL, size + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)room & (HUGE - 1);
	base = mmap(room + head, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE,
		    fd, 0);
	if (base == MAP_FAILED) {
		munmap(room, size + HUGE);
		return NULL;
	}
	if (head)
		munmap(room, head);
	munmap(base + size, HUGE - head);
	return base;
}

static int create_memory(struct gdri_heap *heap, uint64_t size)
{
	heap->fd = memfd_create("gdr-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (heap->fd < 0 || ftruncate(heap->fd, (off_t)size) ||
	    fcntl(heap->fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL)) {
		gdri_error("heap: cannot create %llu bytes of shared memory: %m",
			   (unsigned long long)size);
		return errno == ENOMEM ? -GDR_ENOMEM : -GDR_ESYSTEM;
	}
	heap->base = map_aligned(heap->fd, size);
	if (!heap->base) {
		gdri_error("heap: cannot map %llu bytes: %m; lower GDR_HEAP_SIZE or raise ulimit -v",
			   (unsigned long long)size);
		return -GDR_ENOMEM;
	}
	heap->size = size;
	return 0;
}

static int mark(struct gdri_heap *heap, int pe)
{
	struct gdri_ctl *ctl = (struct gdri_ctl *)heap->base;
	uint64_t head[2] = {GDRI_CTL_MAGIC, (uint64_t)pe};
	int ret;

	GDR_STATIC_ASSERT(offsetof(struct gdri_ctl, pe) == 8, "the mark of a heap");
	if (!heap->cuda) {
		ctl->pe = head[1];
		ctl->magic = head[0];
		return 0;
	}
	ret = gdri_cuda_zero(heap->cuda, heap->base, GDRI_CTL_SIZE, COPY_MS);
	return ret ? ret : gdri_cuda_copy(heap->cuda, heap->base, head, sizeof(head), COPY_MS);
}

/* Kernels use the addresses that the host uses. */
static int show_to_gpu(struct gdri_heap *heap, struct gdri_cuda *cuda)
{
	char why[256];
	void *at;
	int ret = gdri_cuda_map(cuda, heap->base, heap->size, GDRI_CUDA_MAP_MEMORY, &at, why, sizeof(why));

	if (ret) {
		gdri_error("heap: %s", why);
		return ret;
	}
	heap->seen_by = cuda;
	if (at == heap->base)
		return 0;
	gdri_error("heap: the GPU sees host memory at other addresses than the host: GDR_HEAP_KIND=host cannot "
		   "be used");
	return -GDR_ENOTSUP;
}

int gdri_heap_open(struct gdri_heap *heap, struct gdri_cuda *cuda, bool in_host, uint64_t size, int pe)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int ret;

	*heap = (struct gdri_heap){.cuda = in_host ? NULL : cuda, .fd = -1};
	if (size < 2 * GDRI_CTL_SIZE || size > INT64_MAX - HUGE) {
		gdri_error("heap: a size of %llu bytes is out of range", (unsigned long long)size);
		return -GDR_EINVAL;
	}
	size = (size + page - 1) / page * page;
	if (heap->cuda) {
		ret = gdri_cuda_heap_create(cuda, &size, &heap->base, &heap->fd);
		heap->size = size;
	} else {
		ret = create_memory(heap, size);
		if (!ret && cuda)
			ret = show_to_gpu(heap, cuda);
	}
	if (!ret)
		ret = mark(heap, pe);
	if (ret)
		gdri_heap_close(heap);
	return ret;
}

static void unmap(const struct gdri_heap *heap, uint8_t *base)
{
	if (base && heap->cuda)
		gdri_cuda_heap_unmap(heap->cuda, base, heap->size);
	else if (base)
		munmap(base, heap->size);
}

void gdri_heap_close(struct gdri_heap *heap)
{
	if (heap->seen_by)
		gdri_cuda_unmap(heap->seen_by, heap->base);
	unmap(heap, heap->base);
	if (heap->fd >= 0)
		close(heap->fd);
	*heap = (struct gdri_heap){.fd = -1};
}

static int map_host(int fd, uint64_t size, uint8_t **base, char *why, size_t room)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	/* Without the seals the peer could shrink it under us: a SIGBUS. */
	if (fstat(fd, &st) || seals < 0 || (seals & SEALS) != SEALS) {
		snprintf(why, room, "its memory is not sealed");
		return -GDR_ESYSTEM;
	}
	if ((uint64_t)st.st_size != size) {
		snprintf(why, room, "its heap has %lld bytes, expected %llu", (long long)st.st_size,
			 (unsigned long long)size);
		return -GDR_EMISMATCH;
	}
	*base = map_aligned(fd, size);
	if (!*base) {
		snprintf(why, room, "mmap: %s", strerror(errno));
		return -GDR_ENOMEM;
	}
	return 0;
}

int gdri_heap_map_peer(const struct gdri_heap *own, int fd, int pe, uint8_t **out, char *why,
		       size_t room)
{
	uint64_t head[2] = {0, 0};
	uint8_t *base = NULL;
	int ret;

	if (own->cuda)
		ret = gdri_cuda_heap_import(own->cuda, fd, own->size, &base, why, room);
	else
		ret = map_host(fd, own->size, &base, why, room);
	if (ret)
		return ret;
	if (own->cuda)
		ret = gdri_cuda_copy(own->cuda, head, base, sizeof(head), COPY_MS);
	else
		memcpy(head, base, sizeof(head));
	if (ret || head[0] != GDRI_CTL_MAGIC || head[1] != (uint64_t)pe) {
		snprintf(why, room, "its heap does not carry the mark of PE %d", pe);
		unmap(own, base);
		return -GDR_EMISMATCH;
	}
	*out = base;
	return 0;
}

void gdri_heap_unmap_peer(const struct gdri_heap *own, uint8_t *base)
{
	unmap(own, base);
}

int gdri_heap_zero(const struct gdri_heap *heap, void *at, size_t len)
{
	if (heap->cuda)
		return gdri_cuda_zero(heap->cuda, at, len, COPY_MS);
	memset(at, 0, len);
	return 0;
}
