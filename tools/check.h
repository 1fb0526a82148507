/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr_info --check: what stands between this machine and kernels that post to the NIC by themselves, line by
 * line, each with what to do about it. */
#ifndef TOOLS_CHECK_H
#define TOOLS_CHECK_H

/* 0: nothing is in the way; 1: something is. */
int check_machine(void);

#endif
