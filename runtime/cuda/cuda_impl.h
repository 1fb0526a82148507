/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of struct gdri_cuda, shared by the cuda*.c files that call the driver. */
#ifndef GDRI_CUDA_IMPL_H
#define GDRI_CUDA_IMPL_H

#include <pthread.h>
#include <stdbool.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_api.h"

#define GDRI_CUDA_BOUNCE ((size_t)256 << 10)

struct gdri_cuda {
	struct gdri_cuda_api api;
	gdri_cu_device device;
	gdri_cu_ctx ctx;
	bool primary; /* retained by us */
	int handles;  /* GDRI_CU_HANDLE_..: what peers map its memory by */
	gdri_cu_stream stream;
	pthread_mutex_t lock; /* of the stream: one copy at a time */
	bool writes64;	      /* streams can store 8 bytes */
	bool stages;	      /* copies from pageable memory have it read when they return */
	bool early;	      /* kernels can be launched before the one in front has ended (sm_90) */
	bool stuck;	      /* guarded by lock: a copy is overdue, nothing goes behind it */
	uint8_t *bounce[2]; /* guarded by lock: of gdri_cuda_peek and _poke, an overdue copy's, too */
	bool default_busy;    /* atomic: the default stream outlasted a wait, see gdri_cuda_default_stream */
	struct gdri_cuda_opened *opened; /* cuda_ipc.c */
	uint64_t room;	      /* bytes of addresses behind each heap: cuda_map.h */
	unsigned int refs;    /* the owner's, and one of each thread in the driver's wait */
	char text[128];
	char pci[32]; /* "0000:1b:00.0" */
};

static inline const char *gdri_cuda_error_text(const struct gdri_cuda *c, gdri_cu_result r)
{
	const char *s = NULL;

	if (!c->api.error_string || c->api.error_string(r, &s) || !s)
		s = "unknown CUDA error";
	return s;
}

/* A program that ends without gdr_finalize takes the driver from the library's threads: that is no error of theirs. */
static inline int gdri_cuda_refused(const struct gdri_cuda *c, const char *what, gdri_cu_result r)
{
	gdri_log(r == GDRI_CU_DEINITIALIZED ? GDRI_LOG_INFO : GDRI_LOG_ERROR, "CUDA: %s: %s (%d)", what,
		 gdri_cuda_error_text(c, r), r);
	return r == 2 ? -GDR_ENOMEM : -GDR_ESYSTEM; /* 2: CUDA_ERROR_OUT_OF_MEMORY */
}

/* GDRI_CU_POINTER_.. of p; 0: the driver does not know it. cuda_map.c */
uint64_t gdri_cuda_about(struct gdri_cuda *c, int what, const void *p);

static inline void gdri_cuda_enter(struct gdri_cuda *c)
{
	c->api.ctx_push(c->ctx);
}

/* gdri_cuda_enter for who is called often, mostly where the context is current: false, nothing to leave. */
static inline bool gdri_cuda_enter_another(struct gdri_cuda *c)
{
	gdri_cu_ctx now = NULL;

	if (!c->api.ctx_get(&now) && now == c->ctx)
		return false;
	c->api.ctx_push(c->ctx);
	return true;
}

static inline void gdri_cuda_leave(struct gdri_cuda *c)
{
	gdri_cu_ctx was;

	c->api.ctx_pop(&was);
}

/* cuda_handle.c: in the context of c. wanted: GDRI_HANDLE_..; -GDR_ENOTSUP, logged. */
int gdri_cuda_choose_handles(struct gdri_cuda *c, int wanted);
/* What is passed to peers is a descriptor in any case; the caller's to close. */
gdri_cu_result gdri_cuda_export(struct gdri_cuda *c, gdri_cu_mem mem, int *fd);
/* Of memory that the program made, with the handles that it asked for: those of the heap, or the other kind. */
gdri_cu_result gdri_cuda_export_foreign(struct gdri_cuda *c, gdri_cu_mem mem, int *fd);
gdri_cu_result gdri_cuda_import(struct gdri_cuda *c, int fd, gdri_cu_mem *mem);

#endif
