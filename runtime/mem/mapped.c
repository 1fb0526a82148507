// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/mem/mapped.h"

#include <stdio.h>

uintptr_t gdri_mapped_hole(const void *addr, size_t len, bool *writable)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned long from, to;
	char may[5];

	*writable = true;
	/* in the order of addresses; what follows on the line is a name */
	while (f && at < end && fscanf(f, "%lx-%lx %4s%*[^\n]", &from, &to, may) == 3) {
		if (to <= at)
			continue;
		if (from > at || may[0] != 'r')
			break;
		*writable &= may[1] == 'w';
		at = to;
	}
	if (!f)
		return 0;
	fclose(f);
	return at < end ? at : 0;
}
