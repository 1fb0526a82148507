/* SPDX-License-Identifier: BSD-3-Clause */
/* Back-off of a CPU thread, and the clock. First the processor's pause hint,
 * then a few yields, then sleeps that grow. Yields pass a token on in
 * microseconds among waiters that all yield, but hand the core for a whole time
 * slice to a thread that does not: a yield that took long ends yielding for a
 * while. Sleeps are never shorter than 20 us: of a shorter one the kernel may
 * make a spin, which starves whoever is waited for. */
#define _GNU_SOURCE
#include "runtime/hostdev_backoff.h"

#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <gdr/simt.h>
#include "runtime/hostdev_fiber.h"

#define SPIN_LOOKS 50u
#define YIELDS 30u
#define YIELD_LONG_NS 200000u /* somebody used the core up */
#define YIELD_BAN_NS 200000000u
#define SLEEP_FIRST_NS 20000u
#define SLEEP_STEP_NS 100u /* longer by this a round */
#define SLEEP_MAX_NS 200000u

static __thread uint64_t no_yield_before __attribute__((tls_model("initial-exec")));
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

/* 0: not now, sleep instead. no_yield_before is the CPU thread's, and so is touched by all fibers
 * of its block, one at a time: scheduler state, like that of hostdev_block.c. */
GDRI_HD_SCHED static int yield_once(void)
{
	uint64_t start = gdri_hd_clock_ns(), end;

	if (start < no_yield_before)
		return 0;
	sched_yield();
	end = gdri_hd_clock_ns();
	if (end - start > YIELD_LONG_NS)
		no_yield_before = end + YIELD_BAN_NS;
	return 1;
}

void gdri_hd_backoff(unsigned round, unsigned lookers)
{
	unsigned spins = SPIN_LOOKS / lookers;
	unsigned long ns;

	if (round < spins) {
		cpu_relax();
		return;
	}
	if (round < spins + YIELDS && yield_once())
		return;
	ns = SLEEP_FIRST_NS + (unsigned long)(round - spins) * SLEEP_STEP_NS;
	sleep_ns((long)(ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS));
}

uint64_t gdri_hd_clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
