/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Contexts: queues of one's own, with an order and a completion of their own. */
#ifndef GDR_CTX_H
#define GDR_CTX_H

#include <gdr/macros.h>
#include <gdr/status.h>
#include <gdr/team.h>

/** @defgroup ctx Contexts
 * A context is a set of queues that no other context uses. gdr_ctx_quiet completes what was done on it and
 * waits for nothing else; gdr_ctx_fence orders what is done on it; gdr_quiet, gdr_fence and barriers are
 * those of GDR_CTX_DEFAULT, on which every operation is that names no context. Operations on different contexts
 * are in no order. Each function gdr_X of put, get, one value, strided, put with signal, signal words (but
 * waits) and atomics is gdr_ctx_X(ctx, ...) on a context; there PEs count as in the team of the context.
 *
 * Contexts are made by the host, each PE for itself, and used by kernels and, on the host device, by
 * threads of the host. On the PEs that are reached through the NIC they take queues of those that
 * GDR_CTX_QUEUES keeps for them at init. To mapped PEs there are no queues, and gdr_ctx_quiet and gdr_ctx_fence do for
 * the calling thread's stores what gdr_quiet and gdr_fence do.
 * @include contexts.c
 * @{ */

/** A context of this PE: a number. */
typedef int32_t gdr_ctx_t;

enum {
	GDR_CTX_INVALID = -1, /**< no context: order and completion do nothing, destroy too */
	GDR_CTX_DEFAULT = 0,  /**< that of operations without one */
};

/** Which threads share a context: one of these is an option of gdr_ctx_create. The checked build refuses
 * others; without it they break nothing but the promise that they do not wait for each other. */
enum gdr_ctx_option {
	GDR_CTX_GPU = 1,    /**< all threads (also what option 0 means) */
	GDR_CTX_BLOCK = 2,  /**< from one quiet of it to the next, the threads of one block */
	GDR_CTX_THREAD = 4, /**< from one quiet of it to the next, one thread */
};
/** Option beside GDR_CTX_GPU: queues to each PE, 1 to 255; without it 1. A block always uses the same one. */
#define GDR_CTX_N_QUEUES(n) ((long)(n) << 8)

#ifndef __CUDACC_RTC__ /* which compiles device code alone */
GDR_EXTERN_C_BEGIN

/** gdr_team_create_ctx of all PEs. */
GDR_API int gdr_ctx_create(long options, gdr_ctx_t *ctx);
/** Makes a context whose PEs are those of the team. Local: each PE makes as many as it likes, at any time, from
 * any thread. -GDR_ENOQUEUE: none is left of the queues that GDR_CTX_QUEUES keeps, or of the 127 contexts of a
 * PE; -GDR_EINVAL: the team is none of this PE's, or options contradict each other. *ctx is then
 * GDR_CTX_INVALID. */
GDR_API int gdr_team_create_ctx(gdr_team_t team, long options, gdr_ctx_t *ctx);
/** gdr_ctx_quiet, whose status it returns, then its queues are free for another context; those that failed are
 * not used again. No thread uses the context any more, no kernel either. Local. gdr_team_destroy destroys the
 * contexts of the team. A context that is made later may get the number: who destroys by the old one then destroys
 * that. */
GDR_API int gdr_ctx_destroy(gdr_ctx_t ctx);
/** The host's transfers (gdr/host.h) on a context. Where kernels run on GPUs these complete before they return, and
 * gdr_host_ctx_quiet completes what kernels did on it. A context that there is not gets -GDR_EINVAL. @{ */
GDR_API int gdr_host_ctx_put(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_ctx_get(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_ctx_put_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_ctx_get_nbi(gdr_ctx_t ctx, void *dst, const void *src, size_t len, int pe);
GDR_API int gdr_host_ctx_fence(gdr_ctx_t ctx);
GDR_API int gdr_host_ctx_quiet(gdr_ctx_t ctx);
/** @} */
/** The team that it was made of; -GDR_EINVAL and GDR_TEAM_INVALID when there is no such context. */
GDR_API int gdr_ctx_get_team(gdr_ctx_t ctx, gdr_team_t *team);
/* For gdr/gdr.hpp: tells a context from later ones of its number, and GDR_CTX_DEFAULT's, made by gdr_init, a job from
 * later ones. 0: there is no such context. */
GDR_API uint64_t gdri_ctx_serial(gdr_ctx_t ctx);

GDR_EXTERN_C_END
#endif
/** @} */

#endif
