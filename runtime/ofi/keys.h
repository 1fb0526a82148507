/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys of registrations, where the program chooses them: numbers, as few as 65536, that are given out again. */
#ifndef GDRI_OFI_KEYS_H
#define GDRI_OFI_KEYS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GDRI_OFI_KEYS 320 /* at a time: parts of the heap, buffers, messages */

struct gdri_ofi_keys {
	pthread_mutex_t lock; /* of all that follows: any thread registers buffers */
	uint64_t last;	      /* the largest */
	uint64_t next;	      /* to try: what came back rests until all others had a turn */
	uint32_t n;
	uint64_t used[GDRI_OFI_KEYS];
};

/* bytes: of a key. */
void gdri_ofi_keys_open(struct gdri_ofi_keys *k, size_t bytes);
/* false: all are in use. */
bool gdri_ofi_keys_take(struct gdri_ofi_keys *k, uint64_t *key);
void gdri_ofi_keys_give(struct gdri_ofi_keys *k, uint64_t key);

#endif
