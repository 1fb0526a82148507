/* SPDX-License-Identifier: BSD-3-Clause */
/* What a loop that spins says to the processor. */
#ifndef HCA_CPU_H
#define HCA_CPU_H

/* isb: yield does nothing on most arm64 processors, and isb takes as long as x86's pause. */
static inline void hca_cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif
