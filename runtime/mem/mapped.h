/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel knows of a range of this process's addresses. */
#ifndef GDRI_MAPPED_H
#define GDRI_MAPPED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Which bytes of [addr, addr + len), which does not wrap, cannot be read: the first such address, or 0: all can.
 * *writable: they can be written, too. Where /proc is not mounted nobody knows, and nothing is refused. */
uintptr_t gdri_mapped_hole(const void *addr, size_t len, bool *writable);

#endif
