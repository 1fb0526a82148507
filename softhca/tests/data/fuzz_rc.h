/* SPDX-License-Identifier: BSD-3-Clause */
/* One fuzz input for the data path: a byte string is read as a list of steps
 * on four connected QPs (post, change ring bytes, write doorbell registers and
 * records, receive a packet, let time pass). No result is checked here but
 * that it ends; sanitizers judge the rest. */
#ifndef SOFTHCA_TEST_FUZZ_RC_H
#define SOFTHCA_TEST_FUZZ_RC_H

#include <stddef.h>
#include <stdint.h>

void fuzz_rc_init(void);
void fuzz_rc(const uint8_t *data, size_t n);

#endif
