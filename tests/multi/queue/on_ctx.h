/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by multi.h where MULTI_ON_CTX is defined: every operation that has a form on contexts is that
 * form, so that what a program tests it tests of contexts. MULTI_ON_CTX is the file of their names, which the build
 * writes from the rows (CMakeLists.txt). */
#ifndef TESTS_MULTI_ON_CTX_H
#define TESTS_MULTI_ON_CTX_H

/* The first one that a PE makes. A constant: kernels see no variables of the host. */
#define multi_ctx ((gdr_ctx_t)1)

/* A barrier completes what was done on the default context. */
GDR_BOTH int multi_ctx_barrier(void)
{
#if defined(__CUDACC__) && !defined(__CUDA_ARCH__) /* what kernels did on it */
	int ret = gdr_host_ctx_quiet(multi_ctx), rc = gdr_barrier_all();
#else
	int ret = gdr_ctx_quiet(multi_ctx), rc = gdr_barrier_all();
#endif

	return ret ? ret : rc;
}

#undef gdr_barrier_all
#define gdr_barrier_all() multi_ctx_barrier()
#define gdr_fence() gdr_ctx_fence(multi_ctx)
#define gdr_quiet() gdr_ctx_quiet(multi_ctx)
#include MULTI_ON_CTX

#endif
