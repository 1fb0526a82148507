/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer's entry points for the mailboxes. */
#include "fuzz_prm.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_prm_init();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_prm(data, n);
	return 0;
}
