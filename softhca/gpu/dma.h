/* SPDX-License-Identifier: BSD-3-Clause */
/* Access of the engine to memory of GPUs, which the CPU cannot touch: by copies on streams of the
 * CUDA driver. Where no such memory is registered, dma_on is false and all this costs a branch.
 *
 * Addresses of GPU memory are those of the driver's unified address space, so a pointer tells by
 * itself what it points to (dma_device).
 *
 * Writes are posted: they are carried out in the order of the calls, but those marked as relaxed
 * may pass others. A posted write has a number; dma_done() says whether it has arrived. Reads
 * either wait (dma_read), or have a number of their own (dma_fetch). Called with hca_lock held, but for dma_ask(). */
#ifndef SOFTHCA_DMA_H
#define SOFTHCA_DMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "softhca/gpu/cuda_api.h"

extern bool dma_on; /* memory of a GPU is, or was, registered */

/* ---- what is memory of a GPU (dma.c) ---- */

/* What the driver says of a range. Asked by the thread that registers it, without hca_lock: a call
 * of the driver may take as long as one of another thread. */
enum { DMA_SHOWN = 4 };

struct dma_shown {	  /* an allocation, for other processes */
	uint64_t at, len; /* in the owner's memory */
	struct cu_ipc ipc;
	int fd; /* -1: by the IPC handle */
};

struct dma_answer {
	uint64_t addr, len;
	int is; /* 1: it is; 0: it is not; -errno */
	int device; /* the GPU that all of it is of, -1: not known, or several */
	unsigned n_shown; /* of its allocations, as far as they can be */
	struct dma_shown shown[DMA_SHOWN];
};
void dma_ask(struct dma_answer *a, uint64_t addr, uint64_t len);
/* The answer, of the range that was asked about; what is memory of a GPU is remembered until
 * dma_forget(). */
int dma_register(const struct dma_answer *a, uint64_t addr, uint64_t len);
void dma_forget(uint64_t addr, uint64_t len);
/* Shows what was asked about, if it is memory of a GPU; without hca_lock. What is left in the answer
 * is the caller's to close. */
void dma_show(struct dma_answer *a);
void dma_show_not(struct dma_answer *a);
/* Maps another process's; NULL: that is not possible, or not yet. */
uint8_t *dma_import(const struct dma_shown *x);
void dma_unimport(const struct dma_shown *x, uint8_t *at);
bool dma_lookup(const void *p);

static inline bool dma_device(const void *p)
{
	return __builtin_expect(dma_on, 0) && dma_lookup(p);
}

bool dma_any(const struct iovec *iov, int n);

/* ---- writes (dma_write.c) ---- */

/* Copies n bytes from memory of the host, which can be used again at once, or, with
 * dma_post_copy, from memory of a GPU, which must stay until the write has arrived. */
void dma_post(void *dst, const void *src, size_t n, bool relaxed);
void dma_post_copy(void *dst, const void *src, size_t n, bool relaxed);
/* The 64 bytes of a good CQE: strict, but that CQEs with nothing between them have no order. end_only:
 * all but the last word lies there already, or is on its way. */
void dma_post_cqe(void *dst, const void *src, bool end_only);
/* From piece to piece, where either may be memory of a GPU. */
void dma_iov_copy(const struct iovec *dst, int ndst, const struct iovec *src, int nsrc);
/* Payload that lies in another process, to memory of which some is a GPU's; as
 * peer_memory_read(). */
struct packet;
bool dma_peer_read(const struct packet *p, const struct iovec *dst, int ndst,
		   const struct iovec *src, int nsrc);
/* Writes of dma_iov_copy() are relaxed from now on, or not. */
void dma_relax(bool relaxed);
uint64_t dma_posted(void); /* number of the last write */
bool dma_done(uint64_t number);
bool dma_streams(void); /* long ones are under way, which others follow meanwhile */
void dma_settle(void); /* waits until all writes have arrived */
void dma_submit(void); /* hands what is posted to the driver */

/* ---- reads (dma_read.c) ---- */

/* Waits. ordered: behind all writes posted before. */
void dma_read(void *dst, const void *src, size_t n, bool ordered);
uint64_t dma_atomic(uint8_t *mem, unsigned size, uint64_t (*next)(uint64_t old, const void *arg),
		    const void *arg);
/* Starts to read into a buffer of dma_buffer(); a number for dma_fetched(), never 0. */
uint64_t dma_fetch(void *buffer, const void *src, size_t n);
bool dma_fetched(uint64_t number);
/* A buffer that the driver can copy to; NULL: none is free, or n is too much. */
void *dma_buffer(size_t n);
bool dma_buffer_free(void *buffer); /* false: it is none of these */
/* The buffer of this read is not wanted any more; waits for what is on its way to it. */
void dma_fetch_end_of(uint64_t number, void *buffer);
/* Reads of the next calls of dma_fetch() are handed to the driver together. */
void dma_fetch_begin(void);
void dma_fetch_end(void);

/* ---- queues in memory of a GPU (dma_queue.c) ---- */

struct hca_qp;

/* The engine reads rings and records from copies of its own, which these make; 0 or -errno. */
int dma_qp_attach(struct hca_qp *qp);
void dma_qp_detach(struct hca_qp *qp);
bool dma_qp_hidden(const struct hca_qp *qp); /* is a part of it in memory of a GPU? */
/* Blocks up to index are posted to a ring in GPU memory: sq_pi follows when they are here. */
void dma_qp_posted(struct hca_qp *qp, uint16_t index);
void dma_qp_reset(struct hca_qp *qp);
uint16_t dma_qp_known(const struct hca_qp *qp); /* up to where doorbells were seen */
/* A doorbell record: the copy of one in GPU memory, else itself; NULL: no room. */
uint32_t *dma_record(uint32_t *record);
void dma_record_drop(uint32_t *copy);
void dma_record_refresh(uint32_t *copy); /* waits */

/* ---- in each round (dma.c) ---- */

/* For whom the engine works, in case the driver does not come back. */
void dma_works_for(uint32_t qpn);

/* What has arrived; hands over what was posted. How much there was to do. */
unsigned dma_poll(void);
/* This thread has no context of its own: the driver's stays current. */
void dma_keep(void);
bool dma_busy(void); /* something is under way: the engine must not sleep */
/* The QP is to be activated when something has arrived. */
void dma_wait(struct hca_qp *qp);

#endif
