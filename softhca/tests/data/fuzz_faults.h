/* SPDX-License-Identifier: BSD-3-Clause */
/* One fuzz input for the fault language: a schedule is read, and if it is taken
 * every question is asked of it. Ends the process when what is promised does
 * not hold: refused with a place inside the text, taken by all ranks or none,
 * delays that end. */
#ifndef SOFTHCA_TEST_FUZZ_FAULTS_H
#define SOFTHCA_TEST_FUZZ_FAULTS_H

#include <stddef.h>
#include <stdint.h>

/* True when the text was taken. */
int fuzz_faults(const uint8_t *data, size_t n);

#endif
