// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* memfd_create, seals */
#include "runtime/mem/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* ---- ranges of addresses, and what is mapped there ---- */

/* At a multiple of the huge page, too: the kernel may then use huge pages, and the NIC needs fewer entries. */
static uint8_t *reserve_host(uint64_t size)
{
	uint8_t *room, *base;
	size_t head;

	room = mmap(NULL, size + GDRI_HEAP_ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)room & (GDRI_HEAP_ALIGN - 1);
	base = room + head;
	if (head)
		munmap(room, head);
	munmap(base + size, GDRI_HEAP_ALIGN - head);
	return base;
}

static bool map_host(int fd, uint8_t *at, uint64_t size)
{
	return mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) !=
	       MAP_FAILED;
}

static void heap_unmap_part(const struct gdri_heap *heap, uint8_t *base, const struct gdri_heap_part *p)
{
	if (heap->cuda)
		gdri_cuda_heap_unmap(heap->cuda, base + p->offset, p->size);
	else /* the addresses stay reserved */
		mmap(base + p->offset, p->size, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

static void heap_release(const struct gdri_heap *heap, uint8_t *base)
{
	if (heap->cuda)
		gdri_cuda_heap_release(heap->cuda, base, heap->max);
	else
		munmap(base, heap->max);
}

/* ---- the own heap ---- */

/* Where it may not, a signal would end the process. */
static bool may_have(uint64_t size)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY || size <= r.rlim_cur)
		return true;
	errno = EFBIG;
	return false;
}

static int create_memory(uint64_t size, uint8_t *at, int *out)
{
	int fd = memfd_create("gdr-heap", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	*out = fd;
	if (fd < 0 || !may_have(size) || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL)) {
		err = errno;
		gdri_error("heap: cannot create %llu bytes of shared memory: %s",
			   (unsigned long long)size, gdri_errno_text(err));
	} else if (map_host(fd, at, size)) {
		return 0;
	} else {
		gdri_error("heap: cannot map %llu bytes: %s", (unsigned long long)size, gdri_errno_text(errno));
		err = ENOMEM;
	}
	if (fd >= 0)
		close(fd);
	return err == ENOMEM ? -GDR_ENOMEM : -GDR_ESYSTEM;
}

/* Kernels use the addresses that the host uses. */
static int show_to_gpu(struct gdri_cuda *cuda, uint8_t *p, uint64_t size)
{
	char why[256];
	void *at;
	int ret = gdri_cuda_map(cuda, p, size, GDRI_CUDA_MAP_MEMORY, &at, why, sizeof(why));

	if (ret) {
		gdri_error("heap: %s", why);
		return ret;
	}
	if (at == p)
		return 0;
	gdri_cuda_unmap(cuda, p);
	return gdri_fail(-GDR_ENOTSUP, "heap: the GPU sees host memory at other addresses than the host: "
				       "GDR_HEAP_KIND=host cannot be used");
}

/* Other threads look addresses up meanwhile. */
static void set_size(struct gdri_heap *heap, uint64_t size)
{
	__atomic_store_n(&heap->size, size, __ATOMIC_RELAXED); /* pairs as gdri_heap_size() */
}

int gdri_heap_grow(struct gdri_heap *heap, uint64_t size)
{
	struct gdri_heap_part *p = &heap->parts[heap->n];
	uint8_t *at = heap->base + heap->size;
	int ret;

	if (heap->n == GDRI_HEAP_PARTS || size > heap->max - heap->size)
		return gdri_fail(-GDR_ENOMEM,
				 "heap: %llu bytes more than %llu in %d parts: there is room for %llu in %d parts",
				 (unsigned long long)size, (unsigned long long)heap->size, heap->n,
				 (unsigned long long)heap->max, GDRI_HEAP_PARTS);
	*p = (struct gdri_heap_part){heap->size, size, -1};
	ret = heap->cuda ? gdri_cuda_heap_create(heap->cuda, at, size, &p->fd)
			 : create_memory(size, at, &p->fd);
	if (ret)
		return ret;
	if (heap->seen_by)
		ret = show_to_gpu(heap->seen_by, at, size);
	if (ret) {
		heap_unmap_part(heap, heap->base, p);
		close(p->fd);
		return ret;
	}
	heap->n++;
	set_size(heap, heap->size + size);
	return 0;
}

void gdri_heap_shrink(struct gdri_heap *heap)
{
	struct gdri_heap_part *p = &heap->parts[--heap->n];

	set_size(heap, p->offset);
	if (heap->seen_by)
		gdri_cuda_unmap(heap->seen_by, heap->base + p->offset);
	heap_unmap_part(heap, heap->base, p);
	close(p->fd);
}

static int heap_reserve_range(struct gdri_heap *heap, uint64_t *size, uint64_t max)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int ret;

	heap->max = (max + page - 1) / page * page;
	*size = (*size + page - 1) / page * page;
	if (heap->cuda) {
		ret = gdri_cuda_heap_reserve(heap->cuda, true, size, &heap->max, &heap->base);
		if (ret)
			return ret;
	} else {
		heap->base = reserve_host(heap->max);
	}
	if (heap->base)
		return 0;
	return gdri_fail(-GDR_ENOMEM,
			 "heap: cannot reserve %llu bytes of addresses: %s; lower GDR_HEAP_SIZE or GDR_HEAP_MAX",
			 (unsigned long long)heap->max, gdri_errno_text(errno));
}

int gdri_heap_mark(struct gdri_heap *heap, int pe)
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
	ret = gdri_cuda_zero(heap->cuda, heap->base, GDRI_CTL_SIZE, GDRI_COPY_MS);
	return ret ? ret : gdri_cuda_poke(heap->cuda, heap->base, head, sizeof(head), GDRI_COPY_MS);
}

int gdri_heap_make(struct gdri_heap *heap, struct gdri_cuda *cuda, bool in_host, uint64_t size, uint64_t max)
{
	int ret;

	*heap = (struct gdri_heap){.cuda = in_host ? NULL : cuda, .seen_by = in_host ? cuda : NULL};
	max = max < size ? size : max;
	if (size < 2 * GDRI_CTL_SIZE || max > INT64_MAX / 2)
		return gdri_fail(-GDR_EINVAL, "heap: a size of %llu bytes is out of range", (unsigned long long)max);
	ret = heap_reserve_range(heap, &size, max);
	if (!ret)
		ret = gdri_heap_grow(heap, size);
	if (ret)
		gdri_heap_close(heap);
	return ret;
}

int gdri_heap_open(struct gdri_heap *heap, struct gdri_cuda *cuda, bool in_host, uint64_t size, uint64_t max,
		   int pe)
{
	int ret = gdri_heap_make(heap, cuda, in_host, size, max);

	if (ret)
		return ret;
	ret = gdri_heap_mark(heap, pe);
	if (ret)
		gdri_heap_close(heap);
	return ret;
}

void gdri_heap_close(struct gdri_heap *heap)
{
	while (heap->n)
		gdri_heap_shrink(heap);
	if (heap->base)
		heap_release(heap, heap->base);
	*heap = (struct gdri_heap){0};
}

const struct gdri_heap_part *gdri_heap_part_at(const struct gdri_heap *heap, uint64_t offset)
{
	int i = 0;

	while (i + 1 < heap->n && offset >= heap->parts[i + 1].offset)
		i++;
	return &heap->parts[i];
}

/* ---- those of peers ---- */

static int check_host(int fd, uint64_t size, char *why, size_t room)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	/* Without the seals the peer could shrink it under us: a SIGBUS. */
	if (fstat(fd, &st) || seals < 0 || (seals & SEALS) != SEALS) {
		snprintf(why, room, "its memory is not sealed");
		return -GDR_ESYSTEM;
	}
	if ((uint64_t)st.st_size == size)
		return 0;
	snprintf(why, room, "its heap has %lld bytes, expected %llu", (long long)st.st_size,
		 (unsigned long long)size);
	return -GDR_EMISMATCH;
}

static int map_part(const struct gdri_heap *own, const struct gdri_heap_part *p, int fd, uint8_t *base,
		    char *why, size_t room)
{
	int ret;

	if (own->cuda)
		return gdri_cuda_heap_import(own->cuda, fd, base + p->offset, p->size, why, room);
	ret = check_host(fd, p->size, why, room);
	if (ret || map_host(fd, base + p->offset, p->size))
		return ret;
	snprintf(why, room, "mmap: %s", strerror(errno));
	return -GDR_ENOMEM;
}

int gdri_heap_map_part(const struct gdri_heap *own, int fd, uint8_t *base, char *why, size_t room)
{
	return map_part(own, &own->parts[own->n - 1], fd, base, why, room);
}

void gdri_heap_unmap_part(const struct gdri_heap *own, uint8_t *base)
{
	heap_unmap_part(own, base, &own->parts[own->n - 1]);
}

static int check_mark(const struct gdri_heap *own, const uint8_t *base, int pe, char *why, size_t room)
{
	uint64_t head[2] = {0, 0};
	int ret = 0;

	if (own->cuda)
		ret = gdri_cuda_peek(own->cuda, head, base, sizeof(head), GDRI_COPY_MS);
	else
		memcpy(head, base, sizeof(head));
	if (!ret && head[0] == GDRI_CTL_MAGIC && head[1] == (uint64_t)pe)
		return 0;
	snprintf(why, room, "its heap does not carry the mark of PE %d", pe);
	return -GDR_EMISMATCH;
}

int gdri_heap_map_peer(const struct gdri_heap *own, int fd, int pe, uint8_t **out, char *why,
		       size_t room)
{
	uint64_t size = own->parts[0].size, max = own->max;
	uint8_t *base = NULL;
	int ret;

	if (own->cuda)
		ret = gdri_cuda_heap_reserve(own->cuda, false, &size, &max, &base);
	else
		ret = (base = reserve_host(max)) ? 0 : -GDR_ENOMEM;
	if (ret) {
		snprintf(why, room, "no %llu bytes of addresses for it", (unsigned long long)max);
		return ret;
	}
	ret = map_part(own, &own->parts[0], fd, base, why, room);
	if (!ret) {
		ret = check_mark(own, base, pe, why, room);
		if (ret)
			heap_unmap_part(own, base, &own->parts[0]);
	}
	if (ret)
		heap_release(own, base);
	else
		*out = base;
	return ret;
}

void gdri_heap_unmap_peer(const struct gdri_heap *own, uint8_t *base)
{
	for (int i = 0; base && i < own->n; i++)
		heap_unmap_part(own, base, &own->parts[i]);
	if (base)
		heap_release(own, base);
}

int gdri_heap_zero(const struct gdri_heap *heap, void *at, size_t len, int timeout_ms)
{
	if (heap->cuda)
		return gdri_cuda_zero(heap->cuda, at, len, timeout_ms);
	memset(at, 0, len);
	return 0;
}

int gdri_heap_copy(const struct gdri_heap *heap, void *to, const void *from, size_t len, int timeout_ms)
{
	if (heap->cuda)
		return gdri_cuda_copy(heap->cuda, to, from, len, timeout_ms);
	memcpy(to, from, len);
	return 0;
}
