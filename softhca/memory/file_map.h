/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of files mapped shared, from any byte to any other, whatever the size of their pages: of
 * hugetlbfs both ends of a mapping are at its own. */
#ifndef SOFTHCA_FILE_MAP_H
#define SOFTHCA_FILE_MAP_H

#include <stdint.h>

/* Where the byte at offset lies now, or NULL with errno. flags: MAP_SHARED and more. */
uint8_t *file_map(int fd, uint64_t offset, uint64_t len, int prot, int flags);
/* at and len: as they were for that. */
void file_unmap(uint8_t *at, uint64_t len);

#endif
