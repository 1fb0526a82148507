/* SPDX-License-Identifier: BSD-3-Clause */
/* What bring-up on a GPU needs no other PE for, begun before the launcher is asked, which takes as long: memory for the
 * heap and the library's kernels, each in a thread of its own. Only where a CUDA context is current in the thread that
 * calls gdr_init: else the GPU is chosen by the PE's place on its node. */
#ifndef GDRI_PREFETCH_H
#define GDRI_PREFETCH_H

#include <pthread.h>
#include <stdbool.h>

#include "runtime/mem/heap.h"

struct gdri_state;
struct gdri_executor;

struct gdri_prefetch {
	pthread_t heap, kernels;
	bool heap_runs, kernels_run;
	struct gdri_heap made; /* nobody's yet; base NULL: none */
	struct gdri_executor *executor; /* nobody's yet; NULL: none */
};

/* Opens the GPU. 0 also where nothing can begin yet. */
int gdri_prefetch_begin(struct gdri_state *st);
/* Waits for the heap. True: st->heap is there, but for its mark; if not, it may be tried again. */
bool gdri_prefetch_heap(struct gdri_state *st);
/* Waits for the kernels, which are the caller's then. NULL: it may be tried again. */
struct gdri_executor *gdri_prefetch_executor(struct gdri_state *st);
/* Waits for both; what nobody took goes. */
void gdri_prefetch_end(struct gdri_state *st);

#endif
