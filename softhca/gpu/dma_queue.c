/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues in memory of a GPU. The engine reads a ring from a copy in pinned memory: of what a
 * doorbell has covered, and of nothing else. A doorbell record, too, has a copy, which is renewed
 * now and then: the doorbell register tells what is posted, the record finds a lost one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softhca/gpu/dma_impl.h"
#include "softhca/transport/rc.h"
#include "softhca/transport/wqe.h"

enum {
	RECORDS = 4096,
	RENEW_NS = 250000, /* one record each such time: it takes the engine 2 us */
};

/* Of a send ring. The copy lies at the place of hca_qp.sq. */
struct dma_ring {
	const uint8_t *device;
	uint16_t posted;   /* doorbells were seen up to here, */
	uint16_t asked;	   /* and this is on its way */
	bool busy, dropped; /* what is on its way is not wanted any more */
};

/* Copies of rings that are gone, by size: to give pinned memory back the driver would wait for
 * the device. */
static void *spare[16];
static uint32_t (*copies)[2]; /* pinned */
static uint32_t *fresh;	      /* pinned: where a record arrives */
static struct {
	const uint32_t *device;
	bool renew;
} records[RECORDS];
static unsigned n_records; /* those in use lie below */
static unsigned renew_at;
static uint64_t renewed, renewing; /* when; number of the fetch */
static bool renew_void; /* what arrives is older than what the record means now */

/* ---- doorbell records ---- */

static int dma_queue_index_of(const uint32_t *copy)
{
	return copies && copy >= copies[0] && copy < copies[RECORDS]
		       ? (int)((copy - copies[0]) / 2) : -1;
}

static void *dma_queue_pinned(size_t n)
{
	cu_ctx before = dma_enter();
	void *p = NULL;

	if (!dma_ok(dma_gpu.api->host_alloc(&p, n, CU_HOST_PORTABLE), "cuMemHostAlloc"))
		p = NULL;
	dma_leave(before);
	if (p)
		memset(p, 0, n);
	return p;
}

uint32_t *dma_record(uint32_t *record)
{
	unsigned i = 0;

	if (!dma_device(record))
		return record;
	if (!copies) {
		copies = dma_queue_pinned(RECORDS * sizeof(*copies) + 64);
		if (!copies)
			return NULL;
		fresh = copies[RECORDS];
	}
	while (i < RECORDS && records[i].device)
		i++;
	if (i == RECORDS)
		return NULL;
	if (i >= n_records)
		n_records = i + 1;
	records[i].device = record;
	records[i].renew = false;
	dma_record_refresh(copies[i]);
	return copies[i];
}

void dma_record_drop(uint32_t *copy)
{
	int i = dma_queue_index_of(copy);

	if (i < 0)
		return;
	records[i].device = NULL;
	renew_void |= (unsigned)i == renew_at;
}

static void dma_queue_take(unsigned i, const uint32_t now[2])
{
	/* Release: pairs with guest_dbrec(), which reads these words as it would the record. */
	__atomic_store_n(&copies[i][0], now[0], __ATOMIC_RELEASE);
	__atomic_store_n(&copies[i][1], now[1], __ATOMIC_RELEASE);
}

void dma_record_refresh(uint32_t *copy)
{
	int i = dma_queue_index_of(copy);
	uint32_t now[2];

	if (i < 0 || !records[i].device)
		return;
	dma_read(now, records[i].device, sizeof(now), false);
	dma_queue_take((unsigned)i, now);
}

/* One after the other, so that all together cost little. */
void dma_queue_poll(uint64_t now)
{
	if (renewing) {
		if (!dma_fetched(renewing))
			return;
		renewing = 0;
		if (records[renew_at].device && !renew_void)
			dma_queue_take(renew_at, fresh);
	}
	if (!n_records || now - renewed < RENEW_NS)
		return;
	renewed = now;
	for (unsigned i = 0; i < n_records; i++) {
		renew_at = (renew_at + 1) % n_records;
		if (records[renew_at].device && records[renew_at].renew)
			break;
	}
	renew_void = false;
	if (records[renew_at].device && records[renew_at].renew)
		renewing = dma_fetch(fresh, records[renew_at].device, 8);
}

/* ---- send rings ---- */

static int attach_ring(struct hca_qp *qp)
{
	struct dma_ring *ring = calloc(1, sizeof(*ring));
	uint8_t *copy = spare[qp->log_sq_size % 16];

	if (ring && copy)
		memcpy(&spare[qp->log_sq_size % 16], copy, sizeof(void *));
	else if (ring)
		copy = dma_queue_pinned((size_t)WQE_BLOCK << qp->log_sq_size);
	if (!ring || !copy) {
		free(ring);
		return -ENOMEM;
	}
	ring->device = qp->sq;
	qp->sq = copy;
	qp->rc->ring = ring;
	return 0;
}

int dma_qp_attach(struct hca_qp *qp)
{
	uint32_t *record;
	int ret = 0;

	if (!dma_on)
		return 0;
	if (dma_device(qp->rq))
		return -EOPNOTSUPP; /* receives are posted by the CPU */
	if (dma_device(qp->sq))
		ret = attach_ring(qp);
	if (ret || !qp->dbrec)
		return ret;
	record = dma_record(qp->dbrec);
	if (!record)
		return -ENOMEM;
	if (dma_queue_index_of(record) >= 0)
		records[dma_queue_index_of(record)].renew = true;
	qp->dbrec = record;
	return 0;
}

bool dma_qp_hidden(const struct hca_qp *qp)
{
	return qp->rc->ring || dma_queue_index_of(qp->dbrec) >= 0;
}

/* Waits for what is on its way, so that it does not meet what comes next at its place. */
static void dma_queue_drop(struct dma_ring *ring)
{
	ring->dropped = true;
	for (uint64_t start = dp_clock(); ring->busy && dp_clock() - start < DMA_LIMIT_NS;)
		dma_read_poll();
	ring->dropped = ring->busy = false;
}

void dma_qp_detach(struct hca_qp *qp)
{
	struct dma_ring *ring = qp->rc->ring;

	if (dma_on)
		dma_record_drop(qp->dbrec);
	if (!ring)
		return;
	dma_queue_drop(ring);
	memcpy(qp->sq, &spare[qp->log_sq_size % 16], sizeof(void *));
	spare[qp->log_sq_size % 16] = qp->sq;
	qp->sq = NULL;
	free(ring);
	qp->rc->ring = NULL;
}

void dma_qp_reset(struct hca_qp *qp)
{
	struct dma_ring *ring = qp->rc->ring;
	int i = dma_on ? dma_queue_index_of(qp->dbrec) : -1;

	/* What the copy says, or is about to, is of the QP's life before. */
	if (i >= 0) {
		renew_void |= (unsigned)i == renew_at;
		dma_record_refresh(qp->dbrec);
	}
	if (!ring)
		return;
	dma_queue_drop(ring);
	ring->posted = qp->sq_pi;
}

uint16_t dma_qp_known(const struct hca_qp *qp)
{
	return qp->rc->ring ? qp->rc->ring->posted : qp->sq_pi;
}

static uint64_t fetch_blocks(struct hca_qp *qp, struct dma_ring *ring, uint32_t qpn, size_t at, size_t n)
{
	return dma_fetch_as(qpn, qp->sq + at * WQE_BLOCK, ring->device + at * WQE_BLOCK, n * WQE_BLOCK);
}

/* All that is posted. A WQE may go on at the ring's beginning: both parts are here when the second
 * one is, which is fetched behind the first. */
static void dma_queue_ask(struct hca_qp *qp, struct dma_ring *ring)
{
	size_t blocks = (size_t)1 << qp->log_sq_size, at = qp->sq_pi & (blocks - 1);
	size_t n = (uint16_t)(ring->posted - qp->sq_pi);
	size_t first = n < blocks - at ? n : blocks - at;

	if (n == first)
		ring->busy = fetch_blocks(qp, ring, qp->qpn, at, n) != 0;
	else
		ring->busy = dma_fetch_room(2) && fetch_blocks(qp, ring, 0, at, first) &&
			     fetch_blocks(qp, ring, qp->qpn, 0, n - first);
	ring->asked = ring->posted;
	if (!ring->busy) /* too much is under way: the register or the record is looked at again */
		ring->posted = qp->sq_pi;
}

void dma_qp_posted(struct hca_qp *qp, uint16_t index)
{
	struct dma_ring *ring = qp->rc->ring;

	ring->posted = index;
	if (!ring->busy)
		dma_queue_ask(qp, ring);
}

void dma_queue_arrived(uint32_t qpn)
{
	struct hca_qp *qp = engine_find_qp(qpn);
	struct dma_ring *ring = qp ? qp->rc->ring : NULL;

	if (!ring || !ring->busy)
		return;
	ring->busy = false;
	if (ring->dropped)
		return;
	qp->sq_pi = ring->asked;
	engine_activate(qp);
	if (ring->posted != qp->sq_pi)
		dma_queue_ask(qp, ring);
}
