/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces have few sizes, and one that was given back is used again for its size. Sanitizers
 * get to see each piece by itself. */
#include "softhca/engine/dp.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	LINE = 64,
	FIRST = 64 << 10, /* bytes: a process with a handful of queue pairs needs no more */
	LARGE = 2 << 20,  /* a large page */
	SIZES = 4,
};

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

struct piece {
	struct piece *next;
};

static struct {
	size_t size;
	struct piece *free;
} kept[SIZES];
static uint8_t *at, *end; /* of the last chunk, what is left */

/* An odd number of lines: the first ones of all pieces are of all cache sets. */
static size_t dense_stride(size_t size)
{
	return ((size + LINE - 1) / LINE | 1) * LINE;
}

static struct piece **free_of(size_t size)
{
	for (unsigned i = 0; i < SIZES; i++) {
		if (!kept[i].size)
			kept[i].size = size;
		if (kept[i].size == size)
			return &kept[i].free;
	}
	return NULL;
}

/* At a large page's begin: the rest is given back. */
static uint8_t *large_page(void)
{
	uint8_t *p = mmap(NULL, 2 * LARGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t ahead;

	if (p == MAP_FAILED)
		return NULL;
	ahead = -(uintptr_t)p % LARGE;
	if (ahead)
		munmap(p, ahead);
	munmap(p + ahead + LARGE, LARGE - ahead);
	madvise(p + ahead, LARGE, MADV_HUGEPAGE); /* refused, it is slower */
	return p + ahead;
}

static int next_chunk(void)
{
	size_t n = end ? LARGE : FIRST;
	uint8_t *p = end ? large_page() : aligned_alloc(LINE, n);

	if (!p)
		return -1;
	at = p;
	end = p + n;
	return 0;
}

void *id_table_get(size_t size)
{
	size_t n = dense_stride(size);
	struct piece **list = free_of(n), *p = list ? *list : NULL;

	if (p) {
		*list = p->next;
	} else {
		if ((size_t)(end - at) < n && next_chunk())
			return NULL;
		p = (void *)at;
		at += n;
	}
	return memset(p, 0, size);
}

void id_table_put(void *piece, size_t size)
{
	struct piece **list = free_of(dense_stride(size)), *p = piece;

	if (!p || !list)
		return;
	p->next = *list;
	*list = p;
}

#else

void *id_table_get(size_t size)
{
	size_t n = (size + LINE - 1) / LINE * LINE;
	void *p = aligned_alloc(LINE, n);

	return p ? memset(p, 0, n) : NULL;
}

void id_table_put(void *piece, size_t size)
{
	(void)size;
	free(piece);
}

#endif
