/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of host threads (device/gdr/impl/request/request.h) to the kernels of the library. */
#ifndef GDRI_RUNTIME_EXEC_H
#define GDRI_RUNTIME_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include <gdr/impl/request/request.h>
#include <gdr/launch.h>

struct gdri_state;

typedef void gdri_exec_fn(const void *arg);
extern gdri_exec_fn *const gdri_exec_kernel; /* of the host device */

/* In the calling host thread; the host device. */
int gdri_exec_here(const struct gdri_request *q, uint64_t value[2]);

/* How a request is executed: sets q->by. */
struct gdri_plan {
	unsigned int grid, block;
};
void gdri_exec_plan(const struct gdri_state *st, struct gdri_request *q, struct gdri_plan *p);

/* The kernels as a module for GPUs: all of them, or those for jobs whose PEs are all mapped (_DIRECT); _ANY also finds
 * memory of cudaMalloc (outside.h). size 0: the library was built without nvcc. */
enum gdri_image { GDRI_IMAGE_ALL, GDRI_IMAGE_DIRECT, GDRI_IMAGE_ALL_ANY, GDRI_IMAGE_DIRECT_ANY };
const void *gdri_exec_image(enum gdri_image which, size_t *size);

/* The kernels alone, for gdri_exec_up; NULL: there are none. _drop: NULL is a no-op. */
struct gdri_cuda;
struct gdri_executor *gdri_exec_load(struct gdri_cuda *c);
void gdri_exec_drop(struct gdri_cuda *c, struct gdri_executor *p);
/* With st->constants there. A GPU for which there is no code is no error until a request comes. */
void gdri_exec_up(struct gdri_state *st);
void gdri_exec_down(struct gdri_state *st);
/* Before memory of cudaMalloc is symmetric here: what finds it is loaded, once. -GDR_E*, logged. Where there are no
 * kernels at all it is nothing: requests are refused then. */
int gdri_exec_up_any(struct gdri_state *st);

/* 0, or the status, logged, of requests that need a kernel where there is none. */
int gdri_exec_lacks(const struct gdri_state *st);

/* Puts a checked request on the stream. No allocation, no wait: streams that are captured too. */
int gdri_exec_on_stream(struct gdri_state *st, const struct gdri_request *q, gdr_stream_t stream);
/* On a stream of the library's own, and waits: answer is filled. At most GDR_TIMEOUT and
 * a little, and as much again when all streams are in use. */
int gdri_exec_now(struct gdri_state *st, const struct gdri_request *q,
		     struct gdri_answer *answer);

#endif
