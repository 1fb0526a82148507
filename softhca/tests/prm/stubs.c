/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the mailbox fuzzer's control half calls a data half: objects exist, nothing
 * moves. */
#include "softhca/driver/control.h"
#include "softhca/gpu/dma.h"
#include "softhca/engine/dp.h"
#include "softhca/faults/faults.h"
#include "softhca/engine/poll_round.h"
#include "softhca/strict/strict.h"

struct hca_stats hca_stats;
bool strict_on;

bool faults_on;

struct hca_qp *engine_find_qp(uint32_t qpn)
{
	return hca_find_qp(qpn);
}

void engine_activate(struct hca_qp *qp)
{
	(void)qp;
}

void cq_waited(struct hca_cq *cq)
{
	(void)cq;
}

uint8_t *mr_translate(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access)
{
	(void)key;
	(void)pdn;
	(void)addr;
	(void)len;
	(void)access;
	return NULL;
}

void strict_command(enum strict_rule rule, const char *fmt, ...)
{
	(void)rule;
	(void)fmt;
}

uint64_t dp_clock(void)
{
	return 0;
}

int dp_qp_create(struct hca_qp *qp)
{
	(void)qp;
	return 0;
}

void dp_qp_modified(struct hca_qp *qp, enum hca_qp_state from)
{
	(void)qp;
	(void)from;
}

void dp_qp_destroy(struct hca_qp *qp)
{
	(void)qp;
}

void dp_cq_destroy(struct hca_cq *cq)
{
	(void)cq;
}

uint32_t dp_first_qpn(void)
{
	return 1 << 14;
}

uint32_t dp_qpn_count(void)
{
	return 1 << 14;
}

unsigned dp_gid_count(unsigned device)
{
	(void)device;
	return 2;
}

struct in6_addr dp_gid(unsigned index)
{
	return (struct in6_addr){.s6_addr = {[10] = 0xff, 0xff, 192, 0, 2, (uint8_t)(1 + index)}};
}

uint32_t dp_mtu(unsigned device)
{
	(void)device;
	return 4096;
}

uint32_t faults_first(enum fault_counter of, uint32_t unset)
{
	(void)of;
	return unset;
}

bool faults_refuse(enum fault_object what)
{
	(void)what;
	return false;
}

bool faults_gids_shuffled(void)
{
	return false;
}

bool faults_link_down(void)
{
	return false;
}

void strict_cq_full(struct hca_cq *cq, uint32_t consumed)
{
	(void)cq;
	(void)consumed;
}

void strict_path(struct hca_qp *qp, const uint8_t mac[6])
{
	(void)qp;
	(void)mac;
}

void strict_srq_destroy(struct hca_srq *srq)
{
	(void)srq;
}

void poll_forbid(void)
{
}

void trap_wake(void)
{
}
/* Memory of GPUs: there is none. */
bool dma_on;

bool dma_lookup(const void *p)
{
	(void)p;
	return false;
}

void dma_ask(struct dma_answer *a, uint64_t addr, uint64_t len)
{
	(void)a;
	(void)addr;
	(void)len;
}

void dma_show(struct dma_answer *a)
{
	(void)a;
}

void dma_show_not(struct dma_answer *a)
{
	(void)a;
}

int dma_register(const struct dma_answer *a, uint64_t addr, uint64_t len)
{
	(void)a;
	(void)addr;
	(void)len;
	return 0;
}

void dma_forget(uint64_t addr, uint64_t len)
{
	(void)addr;
	(void)len;
}

void dma_post(void *dst, const void *src, size_t n, bool relaxed)
{
	(void)dst;
	(void)src;
	(void)n;
	(void)relaxed;
}

void dma_post_cqe(void *dst, const void *src, bool end_only)
{
	(void)dst;
	(void)src;
	(void)end_only;
}

void dma_read(void *dst, const void *src, size_t n, bool ordered)
{
	(void)dst;
	(void)src;
	(void)n;
	(void)ordered;
}

uint32_t *dma_record(uint32_t *record)
{
	return record;
}

void dma_record_refresh(uint32_t *copy)
{
	(void)copy;
}

bool cuda_dmabuf_by_pcie(int fd)
{
	(void)fd;
	return false;
}

uint64_t cuda_dmabuf_address(int fd, uint64_t offset, uint64_t len)
{
	(void)fd;
	(void)offset;
	(void)len;
	return 0;
}

void dp_mr_gone(const struct hca_mr *mr)
{
	(void)mr;
}

void trap_release(void)
{
}

void doorbell_qp_changed(const struct hca_qp *qp)
{
	(void)qp;
}

void engine_deadline(uint64_t ns)
{
	(void)ns;
}

uint64_t dp_now(void)
{
	return 0;
}
