/* SPDX-License-Identifier: BSD-3-Clause */
/* memcpy between memory of the library and memory that a caller named, which may be anything: false where its pages do
 * not allow that, and a memcpy would end the process. One system call; the first and the last byte are looked at, not
 * pages in between. True also where that call is not permitted: then it is a memcpy. */
#ifndef GDRI_TRY_COPY_H
#define GDRI_TRY_COPY_H

#include <stdbool.h>
#include <stddef.h>

bool gdri_try_copy_to(void *theirs, const void *own, size_t len);
bool gdri_try_copy_from(void *own, const void *theirs, size_t len);

#endif
