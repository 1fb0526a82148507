/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer's entry points for the data path. */
#include "fuzz_rc.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_rc_init();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_rc(data, n);
	return 0;
}
