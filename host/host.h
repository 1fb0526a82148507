/* SPDX-License-Identifier: BSD-3-Clause */
/* What the public entry points share. */
#ifndef GDRI_HOST_INTERNAL_H
#define GDRI_HOST_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/ctx.h>
#include <gdr/impl/request/request.h>

#include "runtime/core/state.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/symmetric.h"

/* The library's state, or NULL after logging that `call` came before gdr_init or after
 * gdr_finalize. */
struct gdri_state *gdri_need_state(const char *call);

/* Why a call that gives memory returned NULL, for gdr_host_status() to tell once; 0: it did not. */
void gdri_host_refused(struct gdri_state *st, int status);

/* The status of a call that does not go by device code of the host device, which notes its own: gdr_finalize returns
 * the first one, but for what says that the arguments were refused. Returns it. */
int gdri_host_failed(struct gdri_state *st, int status);

/* At the end: how many calls by NVSHMEM's names failed that return nothing. */
void gdri_unseen_tell(struct gdri_state *st);

/* ---- heap.c, under st->lock ---- */

enum gdri_heap_call {
	GDRI_CALL_MALLOC = 1,
	GDRI_CALL_FREE,
	GDRI_CALL_ZEROED,
	GDRI_CALL_SHOWN,
	GDRI_CALL_HIDDEN,
	GDRI_CALL_GIVEN_BACK,
	GDRI_CALL_RESIZED, /* size: the object's offset, alignment: its bytes to be */
	GDRI_CALL_COPIED,
	GDRI_CALL_BARRIER, /* of host threads, in a job on GPUs */
};

/* Collective, behind gdri_call_begin: 0 when all make the same call and none has trouble (st->pending). */
int gdri_heap_agree(struct gdri_state *st, enum gdri_heap_call call, uint64_t size, uint64_t alignment);
/* Collective. */
int gdri_symmetric_alloc(struct gdri_state *st, uint64_t size, uint64_t alignment, void **out);
/* By all PEs alike. */
int gdri_symmetric_free(struct gdri_state *st, void *ptr);

/* Of different v, and of different h, different words (the finalizer of splitmix64). */
static inline uint64_t gdri_hash(uint64_t h, uint64_t v)
{
	h = (h ^ v) + 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 27) * 0x94d049bb133111ebu;
	return h ^ h >> 31;
}

/* ---- request.c ---- */

/* By which names the program called. */
enum gdri_request_form { GDRI_FORM_NOW, GDRI_FORM_STREAM, GDRI_FORM_HOST };
/* The call, but for its type: some have one request, and a field of it. A literal. */
const char *gdri_request_call(const struct gdri_request *q, enum gdri_request_form form);
/* n objects of size bytes: a number that was negative where the program computed it is said as that. */
int gdri_count_check(const struct gdri_state *st, const char *call, uint64_t n, uint32_t size);
/* What a call names at another PE is symmetric, and none of the library's words before the first object. */
int gdri_far_check(const struct gdri_state *st, const char *call, const char *role, const void *ptr, uint64_t len,
		   int pe);
/* What it names at this PE may be any memory but those words. */
int gdri_near_check(const struct gdri_state *st, const char *call, const char *role, const void *ptr, uint64_t len);
int gdri_request_check(const struct gdri_state *st, const struct gdri_request *q, const char *call);
/* A checked request: executed, and waited for. */
int gdri_request_run(struct gdri_state *st, const struct gdri_request *q, const char *call, struct gdri_answer *answer);

/* ---- rma.c ---- */

/* A transfer from or to any memory of the process, by the rules of gdr_host_put. */
int gdri_rma_move(const char *call, gdr_ctx_t ctx, bool is_put, bool nbi, void *dst, const void *src, size_t len,
		  int pe);

/* ---- cuda.c: calls where the device is a GPU ---- */

/* Is the library up, with a GPU? */
bool gdri_host_cuda(void);

int gdri_cuda_put(void *dst, const void *src, size_t len, int pe);
int gdri_cuda_get(void *dst, const void *src, size_t len, int pe);
int gdri_cuda_quiet(void);
int gdri_cuda_ctx_quiet(gdr_ctx_t ctx);
int gdri_cuda_barrier_all(void);

#endif
