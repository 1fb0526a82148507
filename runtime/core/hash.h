/* SPDX-License-Identifier: BSD-3-Clause */
/* Words of a call's arguments, made into one that PEs compare. */
#ifndef GDRI_HASH_H
#define GDRI_HASH_H

#include <stdint.h>

/* Of different v, and of different h, different words (the finalizer of splitmix64). */
static inline uint64_t gdri_hash(uint64_t h, uint64_t v)
{
	h = (h ^ v) + 0x9e3779b97f4a7c15u;
	h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9u;
	h = (h ^ h >> 27) * 0x94d049bb133111ebu;
	return h ^ h >> 31;
}

#endif
