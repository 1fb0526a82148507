/* SPDX-License-Identifier: BSD-3-Clause */
/* What the dma*.c files share. */
#ifndef SOFTHCA_DMA_IMPL_H
#define SOFTHCA_DMA_IMPL_H

#include "softhca/gpu/cuda_api.h"
#include "softhca/gpu/dma.h"
#include "softhca/engine/dp.h"

enum {
	DMA_STAGE = 8 << 20,	/* pinned memory that writes are copied to first */
	DMA_SYNC = 1 << 20,	/* and for reads that wait */
	DMA_FLAGS = 4096,
};

#define DMA_LIMIT_NS 10000000000u /* a copy that takes longer has failed */
#define DMA_DOUBT_NS 20000u	  /* so long the arrived bytes alone are looked at */

enum { DMA_QUEUE = 2048 }; /* writes in a submission */

struct dma_queue {
	cu_ptr dst[DMA_QUEUE], src[DMA_QUEUE];
	size_t len[DMA_QUEUE];
	bool first[DMA_QUEUE];	 /* of a batch */
	bool relaxed[DMA_QUEUE]; /* it may pass others */
	bool device[DMA_QUEUE];	 /* its source is memory of a GPU, too */
	bool cqes[DMA_QUEUE];	 /* CQEs that follow each other; */
	bool end_only[DMA_QUEUE]; /* one, of which all but the last word lies there already */
	unsigned n;
	size_t bytes;
};

struct dma_gpu {
	const struct cuda_api *api; /* NULL: not started */
	cu_ctx ctx;
	cu_stream writes, reads;
	bool stores;	     /* streams store words (cuStreamBatchMemOp) */
	bool dead;	     /* a call has failed: copies are not made any more */
	uint8_t *stage;	     /* DMA_STAGE bytes */
	uint8_t *sync;	     /* DMA_SYNC bytes */
	volatile uint32_t *flag; /* the stream stores here: [0] writes, [16] reads that wait */
};
extern struct dma_gpu dma_gpu;

/* The call of the driver that the engine is in: see dma_watch.c. */
extern struct dma_call {
	const char *symbol;
	unsigned long number; /* of calls begun and ended: odd within one */
	uint32_t qpn;	      /* for whom, 0: nobody in particular */
} dma_call;
int dma_watch_start(void);

static inline void dma_call_begin(const char *symbol)
{
	__atomic_store_n(&dma_call.symbol, symbol, __ATOMIC_RELAXED);
	/* Release: pairs with watch(), which looks at the name behind it. */
	__atomic_store_n(&dma_call.number, dma_call.number + 1, __ATOMIC_RELEASE);
}

static inline cu_result dma_call_end(cu_result rc)
{
	__atomic_store_n(&dma_call.number, dma_call.number + 1, __ATOMIC_RELEASE); /* pairs with watch() */
	return rc;
}

/* Calls a function of the driver, with hca_lock held. */
#define DMA_CALL(fn, symbol, ...)                                                                  \
	(dma_call_begin(symbol), dma_call_end(dma_gpu.api->fn(__VA_ARGS__)))
#define DMA_DO(fn, symbol, ...) dma_ok(DMA_CALL(fn, symbol, __VA_ARGS__), symbol)

/* Makes the context current in this thread; what to give to dma_leave(). */
cu_ctx dma_enter(void);
void dma_leave(cu_ctx before);
/* The result of a call: false, and reported once, when it failed. */
bool dma_ok(cu_result rc, const char *call);
/* Is there more to do, or no telling, since the program captures a stream? */
static inline bool dma_not_ready(cu_result rc)
{
	return rc == CU_NOT_READY || rc == CU_CAPTURE_UNSUPPORTED || rc == CU_CAPTURE_IMPLICIT;
}

/* Of memory of this GPU, -1: of one that is not known. 0 or -errno. */
int dma_add_range(uint64_t start, uint64_t end, int device);
/* Are these bytes of one range, and of memory of this GPU? */
bool dma_all_on(int device, uint64_t addr, size_t n);
/* Are the byte at addr and the one before it of one range? The driver need not take a copy that goes
 * from one allocation on to its neighbour. */
bool dma_goes_on(uint64_t addr);
void dma_wake(void); /* those that wait */

unsigned dma_write_poll(void);
/* With what the stream is to store in flag[0] behind them. False: a call has failed. */
bool dma_hand_over(struct dma_queue *q, uint32_t number);
void dma_push(void); /* all that is posted to the driver, at once */
void dma_push_settle(void); /* so that all that has not arrived is in the stream */
/* What dma_atomic() remembers of these bytes is void. */
void dma_atomic_forget(uint64_t addr, size_t n);
unsigned dma_read_poll(void);
bool dma_writing(void);
bool dma_reading(void);
void dma_queue_poll(uint64_t now);
/* As dma_fetch(), of a ring; 0: too many are under way. */
uint64_t dma_fetch_as(uint32_t qpn, void *buffer, const void *src, size_t n);
bool dma_fetch_room(unsigned n); /* can so many be begun? */
/* They are there. */
void dma_queue_arrived(uint32_t qpn);
void dma_read_settle(void); /* waits for all that are under way */

/* ---- dma_kernel.c ---- */

void dma_kernel_start(const struct cuda_api *api);
bool dma_kernel_ready(uint64_t reads); /* for so many */
bool dma_kernel_takes(const struct dma_queue *q);
bool dma_kernel_writes(void); /* does it have some? */
bool dma_kernel_written(uint32_t number);
uint64_t dma_kernel_read(void *to, cu_ptr from, size_t n);
int dma_kernel_item(uint64_t number);
void dma_kernel_read_over(void);

int dma_read_start(const struct cuda_api *api); /* buffers; 0 or -errno */

#endif
