/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer's entry point for the fault language; the corpus is corpus/faults. */
#include "fuzz_faults.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_faults(data, n);
	return 0;
}
