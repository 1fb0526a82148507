/* SPDX-License-Identifier: BSD-3-Clause */
/* How each kernel of the library begins. */
#ifndef GDRI_EXEC_BEGIN_H
#define GDRI_EXEC_BEGIN_H

#include <gdr/macros.h>

/* Launched while what stands before it on the stream still runs (cuda_exec.c): from here on that has ended, and is
 * seen. What is launched so behind this one may be loaded then, and waits here, too: were it let in before the
 * wait, all that stands on a stream behind a long one could fill the GPU. Both are nothing for kernels launched
 * as usual. */
#ifdef __CUDACC__
GDR_DEVICE void exec_begin(void)
{
#if __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
#else
#define exec_begin() ((void)0)
#endif

#endif
