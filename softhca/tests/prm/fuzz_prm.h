/* SPDX-License-Identifier: BSD-3-Clause */
/* Hostile mailboxes for the PRM half, driven without libibverbs: an input is a
 * sequence of commands on objects that live side by side. */
#ifndef TEST_SOFTHCA_FUZZ_PRM_H
#define TEST_SOFTHCA_FUZZ_PRM_H

#include <stddef.h>
#include <stdint.h>

void fuzz_prm_init(void);
/* Runs one input; aborts where an answer breaks the rules or something is left behind. */
void fuzz_prm(const uint8_t *data, size_t n);

#endif
