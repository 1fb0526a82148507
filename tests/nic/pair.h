/* SPDX-License-Identifier: BSD-3-Clause */
/* Two PEs in one process: each opens the transport PAIR_OPS, registers a heap, creates its
 * queues; addresses are exchanged by memcpy. Work requests are put together
 * here by hand from the layout structs, without the device headers' code. */
#ifndef TESTS_NIC_PAIR_H
#define TESTS_NIC_PAIR_H

#include <stdint.h>

#include "runtime/core/options.h"
#include "runtime/net/net.h"

#ifndef PAIR_OPS /* another transport */
#define PAIR_OPS gdri_nic_ops
#define PAIR_IS_NIC
#endif
#define PAIR_PES  2
#define PAIR_HEAP (1u << 20)

struct pair_end {
	struct gdri_net *nic;
	int fd; /* of the heap */
	uint8_t *heap;
	struct gdri_mr_keys keys;
	struct gdri_qp *qps; /* [PAIR_PES * slots] */
	uint8_t *buffer;     /* registered buffer outside the heap */
	uint32_t buffer_lkey;
	void *buffer_handle;
};

struct pair {
	struct gdri_options opt; /* PE 0's */
	struct pair_end pe[PAIR_PES];
	int failed; /* number of the step that failed first, 0: none */
};

/* Default options from the table and the provider of the environment, then "NAME=value" strings, NULL at the end. */
void pair_options(struct gdri_options *opt, const char *const *settings);

/* `other`: the options of PE 1 if they differ (not in the shape of the queues), else NULL. 0 or the
 * first error. pair_down is called in either case. */
void *pair_map(int fd, size_t len);
int pair_up(struct pair *p, const struct gdri_options *opt, const struct gdri_options *other);
void pair_down(struct pair *p);

/* One work request at a time: writes blocks, rings, waits. */
struct pair_request {
	uint32_t opcode, opmod; /* opmod as in the control segment's top byte */
	uint64_t raddr;
	uint32_t rkey, lkey; /* host order */
	uint64_t laddr;
	uint32_t len;
	const void *inline_data; /* WRITE: instead of laddr */
	uint64_t args[4];	 /* atomics: FA {add, boundary}; CS {swap, compare, their masks} */
};

/* Posts n at qp->rsvd and rings once; returns the index of the last. */
uint64_t pair_post(struct gdri_qp *qp, const struct pair_request *r, int n);
/* Waits for the CQE at most 10 s. Returns its opcode (enum gdri_cqe_opcode), or -1 when none came or it names another
 * request. */
int pair_wait(struct gdri_qp *qp, uint64_t index, const struct gdri_cqe **cqe);
/* One of them, and its CQE. */
int pair_do(struct gdri_qp *qp, const struct pair_request *r, const struct gdri_cqe **cqe);

#endif
