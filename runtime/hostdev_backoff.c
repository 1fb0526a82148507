/* SPDX-License-Identifier: BSD-3-Clause */
/* Back-off of a CPU thread and the clock. First the processor's pause hint,
 * then sleeps that start at 20 us and grow in proportion to the time waited.
 * Never a sleep of a few microseconds (the kernel keeps the core spinning) and
 * never sched_yield alone: both starve whoever is waited for when there are more
 * spinning threads than cores. */
#define _GNU_SOURCE
#include "runtime/hostdev_backoff.h"

#include <sys/prctl.h>
#include <time.h>

#include <gdr/simt.h>

#define SPIN_POLLS 200u
#define SLEEP_FIRST_NS 20000u
#define SLEEP_STEP_NS 100u /* longer by this a round */
#define SLEEP_MAX_NS 200000u

static __thread int own_thread __attribute__((tls_model("initial-exec")));

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory");
#else
	__asm__ volatile("" ::: "memory");
#endif
}

void gdri_hd_backoff_own_thread(void)
{
	(void)prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
	own_thread = 1;
}

static void sleep_ns(long ns)
{
	struct timespec ts = {0, ns};
	int slack;

	if (own_thread) {
		nanosleep(&ts, NULL);
		return;
	}
	/* A thread of the program: its timer slack is put back as it was. */
	slack = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	(void)prctl(PR_SET_TIMERSLACK, 1ul, 0, 0, 0);
	nanosleep(&ts, NULL);
	if (slack > 0)
		(void)prctl(PR_SET_TIMERSLACK, (unsigned long)slack, 0, 0, 0);
}

void gdri_hd_backoff(unsigned polls, unsigned round)
{
	unsigned long ns;

	if (polls < SPIN_POLLS) {
		cpu_relax();
		return;
	}
	ns = SLEEP_FIRST_NS + (unsigned long)round * SLEEP_STEP_NS;
	sleep_ns((long)(ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS));
}

uint64_t gdri_hd_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
