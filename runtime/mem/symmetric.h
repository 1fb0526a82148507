/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program that is part of the heap: its pages are replaced by pages of the heap's memory
 * that hold the same, so that both addresses name one memory. */
#ifndef GDRI_SYMMETRIC_H
#define GDRI_SYMMETRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_cuda;
struct gdri_heap;

struct gdri_symmetric { /* one registration */
	struct gdri_symmetric *next;
	uint8_t *addr; /* the program's */
	uint8_t *ptr;  /* in the heap, or behind it */
	size_t len;
	bool left;     /* the pages are the program's again */
	bool late;     /* and there are views still, for a copy that may yet land in one */
	struct gdri_cuda *cuda; /* memory of a GPU (window.h), NULL: of the host; */
	uint8_t **views;	/* where it is mapped, here and behind the peers' heaps */
	int n_views;
	/* Memory of cudaMalloc (outside.h), else NULL: [n_pes] where it is at each, NULL: by queue. ptr is a place
	 * without memory then, and views are allocations of the peers. */
	uint8_t **at;
};

/* NULL, or why the pages [addr, addr + len) cannot be part of this heap. */
const char *gdri_symmetric_refuse(const struct gdri_heap *heap, const struct gdri_symmetric *all, const void *addr,
				  size_t len);

/* Contents move with the memory. 0 or -GDR_E*, logged. Nobody may write there meanwhile. */
int gdri_symmetric_enter(const struct gdri_heap *heap, struct gdri_symmetric **all, void *addr, void *ptr,
			 size_t len);
/* The program's memory is its own again, with what it holds. An error leaves it in the heap's. The
 * registration stays until it is forgotten: so PEs of which one failed can try again. */
int gdri_symmetric_leave(struct gdri_symmetric *all, void *ptr);
/* Nothing where there is none, or has not left: its pages are the heap's still. */
void gdri_symmetric_forget(struct gdri_symmetric **all, void *ptr);
void gdri_symmetric_leave_all(struct gdri_symmetric **all);

const struct gdri_symmetric *gdri_symmetric_find(const struct gdri_symmetric *all, const void *ptr);
/* By its symmetric address, which is ptr, or of memory of cudaMalloc its own. */
const struct gdri_symmetric *gdri_symmetric_named(const struct gdri_symmetric *all, const void *name);
void *gdri_symmetric_name(const struct gdri_symmetric *s);
/* Of one that is in no list. */
void gdri_symmetric_end(struct gdri_symmetric *s);

struct gdri_mapped {
	bool writable; /* all of it */
	bool shared;   /* some of it, by MAP_SHARED: with a file, another mapping or another process */
};

/* Which bytes of [addr, addr + len), which does not wrap, cannot be read: the first such address, or 0: all can.
 * Where /proc is not mounted nobody knows, and nothing is refused. */
uintptr_t gdri_mapped_hole(const void *addr, size_t len, struct gdri_mapped *is);

#endif
