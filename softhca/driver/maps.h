/* SPDX-License-Identifier: BSD-3-Clause */
/* The mappings of this process, as /proc/self/maps has them. */
#ifndef SOFTHCA_MAPS_H
#define SOFTHCA_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct maps_line {
	uint64_t start, end;
	const char *perms; /* four characters: "rw-s" */
	uint64_t offset;   /* in the file */
	dev_t dev;
	ino_t ino;	  /* 0: no file */
	const char *path; /* "" when there is none */
};

/* Calls fn for one after the other, in ascending order, until it returns false. False: there
 * is no /proc. Allocates nothing. */
bool maps_each(bool (*fn)(void *arg, const struct maps_line *m), void *arg);

#endif
