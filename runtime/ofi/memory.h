/* SPDX-License-Identifier: BSD-3-Clause */
/* Which memory requests and RMA may reach: the parts of this PE's heap, of which the others have a list, and buffers.
 * Ranges are checked for each access; a part that left cannot be reached, whatever key names it. */
#ifndef GDRI_OFI_MEMORY_H
#define GDRI_OFI_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/ofi/lib.h"

#define GDRI_OFI_PARTS	 128
#define GDRI_OFI_BUFFERS 128
#define GDRI_OFI_TEMP	 ((size_t)64 << 10)
#define GDRI_OFI_SOURCES 4 /* messages at a time whose data comes from a GPU while the proxy does other things */

/* Keys of entries: the local one of the heap, those of buffers, and remote ones, which are the number of the list
 * of parts that has what they cover. The page, in which host threads meet, has one for both ends. */
enum { GDRI_OFI_KEY_HEAP = 0x100, GDRI_OFI_KEY_PAGE, GDRI_OFI_KEY_BUFFER = 0x10000, GDRI_OFI_KEY_LIST = 0x100000 };

/* A part of a heap as other PEs know it. */
struct gdri_ofi_part {
	uint64_t offset, len; /* in the heap */
	uint64_t addr, key;   /* for RMA */
	uint64_t no_rma;      /* it is memory of a GPU that the provider does not reach: by requests alone */
	uint8_t raw[GDRI_OFI_RAW]; /* of FI_MR_RAW: the key is its length until the PE that uses it maps it */
};

/* A part in a list, and most of a heap: a list has to fit into a message. */
static inline uint32_t gdri_ofi_part_bytes(const struct gdri_ofi_fabric *f)
{
	return (uint32_t)(f->mr_raw ? sizeof(struct gdri_ofi_part) : offsetof(struct gdri_ofi_part, raw));
}
static inline int gdri_ofi_most_parts(const struct gdri_ofi_fabric *f)
{
	return f->mr_raw ? GDRI_OFI_PARTS / 2 : GDRI_OFI_PARTS;
}

struct gdri_ofi_region {
	struct gdri_ofi_part part;
	uint8_t *own; /* NULL: it has left */
	bool staged;  /* memory of a GPU: the CPU copies */
	struct fid_mr *mr;
	enum gdri_ofi_change { OFI_STAYS, OFI_COMES, OFI_GOES } change; /* by the last call */
};

struct gdri_ofi_buffer {
	uint64_t addr, len; /* len 0: free */
	struct fid_mr *mr;  /* NULL: the provider needs none, or reaches no memory of a GPU */
	bool staged;	    /* memory of a GPU: the CPU copies */
};

struct gdri_lane;
struct gdri_net_atomic;

#define GDRI_OFI_WORDS 128

/* Words in memory of a GPU that atomics in a row change: copied here together, and back one by one. */
struct gdri_ofi_words {
	uint32_t n;
	bool coming; /* values */
	struct gdri_ofi_word {
		uint8_t *at;
		uint64_t value;
		uint32_t size;
		bool known; /* the value */
	} word[GDRI_OFI_WORDS];
	struct gdri_ofi_word *changed; /* the last one that was, which the GPU has not got yet; NULL: none */
};

struct gdri_ofi_memory {
	struct gdri_ofi_fabric *fabric;
	struct gdri_cuda *cuda; /* whose memory may be among it; NULL: none */
	struct gdri_lane *lane; /* for that, of the thread that makes the proxy's round */
	uint32_t failures;	/* of copies by it: also of what was under way with one that failed */
	struct gdri_ofi_source { /* a lane for the data of a message alone */
		struct gdri_lane *lane;
		bool taken;
	} sources[GDRI_OFI_SOURCES];
	bool refused;		/* the provider refused memory of a GPU: said once */
	struct gdri_ofi_words words;
	uint8_t *temp;		/* GDRI_OFI_TEMP bytes, between memory of a GPU and of the host */
	pthread_mutex_t
		lock;  /* of all that follows: the proxy reads what the program's threads change */
	uint32_t list; /* number of the list: changes come with a higher one */
	int n;	       /* regions, those between that have left, too */
	struct gdri_ofi_region regions[GDRI_OFI_PARTS];
	struct gdri_ofi_page { /* reached by requests alone: no RMA */
		uint8_t *at;
		size_t len; /* 0: there is none */
	} page;
	struct gdri_ofi_buffer buffers[GDRI_OFI_BUFFERS];
};

/* A row of memory of this process. */
struct gdri_ofi_row {
	uint8_t *at;
	uint64_t len;
	void *desc; /* for the provider */
	bool staged, no_rma;
};

/* cuda: may be NULL; copy_ms: how long copies from and to its memory may take. */
int gdri_ofi_memory_open(struct gdri_ofi_memory *m, struct gdri_ofi_fabric *fabric, struct gdri_cuda *cuda,
			 int copy_ms);
void gdri_ofi_memory_close(struct gdri_ofi_memory *m);
int gdri_ofi_memory_add(struct gdri_ofi_memory *m, void *addr, size_t len, uint64_t offset);
void gdri_ofi_memory_begin(struct gdri_ofi_memory *m);
void gdri_ofi_memory_leave(struct gdri_ofi_memory *m, uint64_t offset, size_t len);
void gdri_ofi_memory_drop(struct gdri_ofi_memory *m, enum gdri_ofi_change what);
/* Copies the list of parts; returns its number. */
uint32_t gdri_ofi_memory_list(struct gdri_ofi_memory *m, struct gdri_ofi_part *parts, uint32_t *n);

int gdri_ofi_buffer_add(struct gdri_ofi_memory *m, void *addr, size_t len, uint32_t *lkey,
			bool *read_only, struct gdri_ofi_buffer **out);
void gdri_ofi_buffer_drop(struct gdri_ofi_memory *m, struct gdri_ofi_buffer *b);

/* What is there in a row from the place on; false: nothing. */
bool gdri_ofi_row(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr,
		  struct gdri_ofi_row *out);
bool gdri_ofi_has(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint64_t len);
/* Whether what is there is memory of a GPU. */
bool gdri_ofi_staged(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr);
/* Whether RMA does not reach all of it. */
bool gdri_ofi_no_rma(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint64_t len);
/* Copies between data and the place; false: not all of it is there any more. Where the place is in memory of a GPU they
 * begin, in their order, and are complete, data of load there, when gdri_ofi_settle has returned. */
bool gdri_ofi_store(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, const void *data,
		    uint64_t len);
bool gdri_ofi_load(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, void *data,
		   uint64_t len);

/* stage.c */
void gdri_ofi_stage(struct gdri_ofi_memory *m, const struct gdri_ofi_row *row, void *data, bool stores);
/* What began is complete before what the CPU stores next. */
void gdri_ofi_stage_before(struct gdri_ofi_memory *m);
/* An atomic on this word comes soon, behind others like it; false: not together with them. Nothing else may come before
 * gdri_ofi_words_end. reads: its value is of use. */
bool gdri_ofi_words_want(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, uint32_t size, bool reads);
/* All that were wanted are here, or none. */
void gdri_ofi_words_come(struct gdri_ofi_memory *m);
void gdri_ofi_words_end(struct gdri_ofi_memory *m);
/* Between two places; false: not all of both is there. */
bool gdri_ofi_copy(struct gdri_ofi_memory *m, uint32_t to_key, uint64_t to, uint32_t from_key, uint64_t from,
		       uint64_t len);
/* 0 or a syndrome. old: as gdri_net_atomic_run() returns it; NULL: it is not wanted. */
uint32_t gdri_ofi_atomic(struct gdri_ofi_memory *m, uint32_t lkey, uint64_t addr, const struct gdri_net_atomic *a,
			 uint64_t *old);
/* All copies from and to memory of GPUs have ended. Returns `failures`: where it was lower when they began, they
 * failed, which was logged. */
uint32_t gdri_ofi_settle(struct gdri_ofi_memory *m);

/* For the data of a message; NULL: all are taken. */
struct gdri_ofi_source *gdri_ofi_source_take(struct gdri_ofi_memory *m);
/* As gdri_ofi_load; memory of a GPU by this lane. */
bool gdri_ofi_source_load(struct gdri_ofi_memory *m, struct gdri_ofi_source *s, uint32_t lkey, uint64_t addr,
			  void *data, uint64_t len);
/* Whether all that was asked of it is there, or has failed; then it is given back. wait: it is. */
bool gdri_ofi_source_ends(struct gdri_ofi_source *s, bool wait, bool *failed);

/* In a list of parts: what covers the offset, and how much of it is there in a row. NULL: nothing. */
const struct gdri_ofi_part *gdri_ofi_find(const struct gdri_ofi_part *parts, uint32_t n,
					  uint64_t offset, uint64_t *row);
bool gdri_ofi_covers(const struct gdri_ofi_part *parts, uint32_t n, uint64_t offset, uint64_t len);

#endif
