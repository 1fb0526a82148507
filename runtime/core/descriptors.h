/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GDRI_DESCRIPTORS_H
#define GDRI_DESCRIPTORS_H

/* Opens those of the descriptors 0 to 2 that are closed to /dev/null, for good. Called before the library, or one below
 * it, opens anything: it would get their numbers, and what the program prints would go into a heap or a socket. */
void gdri_descriptors_fill(void);

#endif
