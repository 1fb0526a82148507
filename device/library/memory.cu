// SPDX-License-Identifier: BSD-3-Clause
/* Puts and gets of one thread. */
#include "device/library/part.h"

__device__ int gdri_lib_memory(uint32_t form, void *remote, void *local, size_t len, int pe, uint32_t q)
{
	return GDRI_FORM_OP(form) == GDRI_PUT ? gdri_put(GDRI_THREAD, (int)GDRI_FORM_B(form), remote, local, len, pe, q)
					      : gdri_get(GDRI_THREAD, (int)GDRI_FORM_B(form), local, remote, len, pe, q);
}
