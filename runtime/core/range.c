// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/core/range.h"

#ifdef GDRI_NVTX /* its header is there; it loads what the profiler names in the environment, or does nothing */
#include <nvtx3/nvToolsExt.h>

bool gdri_range_built(void)
{
	return true;
}

void gdri_range_push(const char *name)
{
	nvtxRangePushA(name);
}

void gdri_range_pop(void)
{
	nvtxRangePop();
}

#else

bool gdri_range_built(void)
{
	return false;
}

void gdri_range_push(const char *name)
{
	(void)name;
}

void gdri_range_pop(void)
{
}

#endif
