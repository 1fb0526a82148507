/* SPDX-License-Identifier: BSD-3-Clause */
/* A WQE as libmlx5 wrote it, with the arguments that it was asked for. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stdint.h>

enum golden_op { GOLDEN_WRITE, GOLDEN_WRITE_INLINE, GOLDEN_READ, GOLDEN_FA, GOLDEN_CS };

struct golden {
	enum golden_op op;
	uint32_t qpn, index, lkey, rkey;
	uint64_t raddr, laddr;
	uint32_t len;
	uint64_t swap_add, compare;
	uint8_t fm_ce_se; /* as posted: signalled, fenced or not */
	uint8_t bytes[64];
};

#endif
