// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* mremap */
#include "runtime/mem/symmetric.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/window.h"

static bool symmetric_overlap(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

const char *gdri_symmetric_refuse(const struct gdri_heap *heap, const struct gdri_symmetric *all, const void *addr,
				  size_t len)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct gdri_mapped is;

	if (!addr || !len || (uintptr_t)addr + len < (uintptr_t)addr)
		return "this is no memory";
	if ((uintptr_t)addr % page || len % page)
		return "address and length have to be multiples of the page (GDR_SYMMETRIC for static data)";
	if (symmetric_overlap(addr, len, heap->base, heap->max))
		return "it is in the symmetric heap already";
	for (; all; all = all->next) {
		if (symmetric_overlap(addr, len, all->addr, all->len))
			return "a part of it is registered already";
	}
	if (gdri_mapped_hole(addr, len, &is))
		return "a part of it is no memory of this process that can be read";
	if (is.shared)
		return "a part of it is shared (MAP_SHARED) with a file, another mapping or another process, which "
		       "would not see what is written from now on; register private memory";
	return is.writable ? NULL : "a part of it cannot be written";
}

/* Mapped elsewhere and moved into place: a mapping that fails in place may have taken the old pages. */
static int put_in_place(const struct gdri_heap *heap, void *addr, const uint8_t *ptr, size_t len)
{
	uint64_t offset = (uint64_t)(ptr - heap->base);
	const struct gdri_heap_part *p = gdri_heap_part_at(heap, offset);
	void *view = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, (off_t)(offset - p->offset));

	if (view != MAP_FAILED) {
		if (mremap(view, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, addr) != MAP_FAILED)
			return 0;
		munmap(view, len);
	}
	return gdri_fail(-GDR_ESYSTEM, "gdr_symmetric_register: %p with %zu bytes: %s", addr, len,
			 gdri_errno_text(errno));
}

int gdri_symmetric_enter(const struct gdri_heap *heap, struct gdri_symmetric **all, void *addr, void *ptr,
			 size_t len)
{
	struct gdri_symmetric *s = malloc(sizeof(*s));
	int ret;

	if (!s)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	memcpy(ptr, addr, len);
	ret = put_in_place(heap, addr, ptr, len);
	if (ret) {
		free(s);
		return ret;
	}
	*s = (struct gdri_symmetric){.next = *all, .addr = addr, .ptr = ptr, .len = len};
	*all = s;
	return 0;
}

/* Filled elsewhere and moved into place at once: no thread sees it half done. */
static int symmetric_give_back(const struct gdri_symmetric *s)
{
	void *own = mmap(NULL, s->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (own != MAP_FAILED) {
		memcpy(own, s->ptr, s->len);
		if (mremap(own, s->len, s->len, MREMAP_MAYMOVE | MREMAP_FIXED, s->addr) != MAP_FAILED)
			return 0;
		munmap(own, s->len);
	}
	return gdri_fail(-GDR_ESYSTEM, "gdr_symmetric_unregister: %p with %zu bytes: %s", (void *)s->addr, s->len,
			 gdri_errno_text(errno));
}

int gdri_symmetric_leave(struct gdri_symmetric *all, void *ptr)
{
	int ret;

	while (all && all->ptr != ptr)
		all = all->next;
	if (!all)
		return -GDR_EINVAL;
	if (all->cuda)
		gdri_window_leave(all);
	ret = all->left || all->cuda ? 0 : symmetric_give_back(all);
	all->left = !ret;
	return ret;
}

void gdri_symmetric_end(struct gdri_symmetric *s)
{
	free(s->views);
	free(s->at);
	free(s);
}

void gdri_symmetric_forget(struct gdri_symmetric **all, void *ptr)
{
	struct gdri_symmetric *s;

	while (*all && (*all)->ptr != ptr)
		all = &(*all)->next;
	s = *all;
	if (!s || !s->left)
		return;
	*all = s->next;
	gdri_symmetric_end(s);
}

/* Pages that cannot be given back keep the heap's memory, which nobody else gets any more. */
void gdri_symmetric_leave_all(struct gdri_symmetric **all)
{
	struct gdri_symmetric *s;

	while ((s = *all)) {
		gdri_symmetric_leave(s, s->ptr);
		*all = s->next;
		gdri_symmetric_end(s);
	}
}

const struct gdri_symmetric *gdri_symmetric_find(const struct gdri_symmetric *all, const void *ptr)
{
	while (all && (all->ptr != ptr || all->late))
		all = all->next;
	return all;
}

void *gdri_symmetric_name(const struct gdri_symmetric *s)
{
	return s->at ? s->addr : s->ptr;
}

const struct gdri_symmetric *gdri_symmetric_named(const struct gdri_symmetric *all, const void *name)
{
	while (all && (gdri_symmetric_name(all) != name || all->late))
		all = all->next;
	return all;
}

uintptr_t gdri_mapped_hole(const void *addr, size_t len, struct gdri_mapped *is)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char may[5];

	*is = (struct gdri_mapped){.writable = true};
	/* in the order of addresses; what follows on the line is a name */
	while (f && at < end && fscanf(f, "%lx-%lx %4s%*[^\n]", &from, &to, may) == 3) {
		if (to <= at)
			continue;
		if (from > at || may[0] != 'r')
			break;
		is->writable &= may[1] == 'w';
		is->shared |= may[3] == 's';
		at = to;
	}
	if (!f)
		return 0;
	fclose(f);
	return at < end ? at : 0;
}
