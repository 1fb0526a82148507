/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of host threads as ranges of NVTX, which profilers show (GDR_NVTX). Nothing where the library was built
 * without NVTX's header. */
#ifndef GDRI_RANGE_H
#define GDRI_RANGE_H

#include <stdbool.h>

#include "runtime/core/state.h"

/* Whether there are ranges in this build. */
bool gdri_range_built(void);
void gdri_range_push(const char *name); /* stays, as literals do */
void gdri_range_pop(void);

static inline int gdri_range_begin(const struct gdri_state *st, unsigned int kind, const char *name)
{
	if (!st || !(st->opt.nvtx & kind))
		return 0;
	gdri_range_push(name);
	return 1;
}

static inline void gdri_range_end(const int *begun)
{
	if (*begun)
		gdri_range_pop();
}

/* From here to the end of the block. */
#define GDRI_RANGE(st, kind, name)                                                                 \
	__attribute__((cleanup(gdri_range_end), unused)) int gdri_range_here = gdri_range_begin(st, kind, name)

#endif
