// SPDX-License-Identifier: BSD-3-Clause
/* Functions of the table that fake_cuda.c does not define: not supported. */
#include "runtime/cuda/cuda_api.h"

#define NOT_SUPPORTED 801

#define STUB(name, symbol, args)                                                                   \
	gdri_cu_result fake_##name args __asm__(symbol) __attribute__((weak));                     \
	gdri_cu_result fake_##name args                                                            \
	{                                                                                          \
		return NOT_SUPPORTED;                                                              \
	}
GDRI_CUDA_FUNCTIONS(STUB)
GDRI_CUDA_FUNCTIONS_OF_LATE(STUB)
