/* SPDX-License-Identifier: BSD-3-Clause */
/* Access control services of a PCIe bridge: with redirection what a GPU and a NIC say to each other goes up to the root
 * complex and back, instead of across the switch between them. */
#ifndef TOOLS_CHECK_ACS_H
#define TOOLS_CHECK_ACS_H

#include <stddef.h>
#include <stdint.h>

enum acs { ACS_UNSEEN, ACS_NONE, ACS_OFF, ACS_REDIRECTS };

/* By a configuration space of n bytes; of one that root alone may read whole others get 64. */
enum acs acs_of(const uint8_t *config, size_t n);

#endif
