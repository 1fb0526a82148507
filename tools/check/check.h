/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr_info --check: what stands between this machine and kernels that post to the NIC by themselves, line by
 * line, each with what to do about it. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

#include <stdbool.h>

#include "runtime/core/options.h"
#include "tools/check/report.h"

struct gdri_cuda;
struct gdri_nic;

#define CHECK_BYTES ((size_t)2 << 20) /* that are registered */

struct checks {
	struct report report;
	struct gdri_options opt;
	struct gdri_cuda *cuda; /* NULL: no GPU can be used */
	struct gdri_nic *nic;	/* NULL: no NIC can be used */
	bool ofi_carries;	/* libfabric is what a job of such machines takes */
};

#define say(c, id, ...) report_say(&(c)->report, CHECK_##id, __VA_ARGS__)

/* 0: nothing is in the way; 1: something is. */
int check_machine(bool json);

/* What the library says goes into our lines, not to stderr, between these two. */
int check_hush(void);
void check_unhush(int old);

/* Each file's part of the checks; those of the NIC after it was opened. */
void check_host(struct checks *c);
void check_gpu(struct checks *c);
void check_libfabric(struct checks *c);
void check_nic_open(struct checks *c);
void check_nic_place(struct checks *c);
void check_nic_network(struct checks *c);
void check_nic_memory(struct checks *c);
void check_nic_queues(struct checks *c);

#endif
