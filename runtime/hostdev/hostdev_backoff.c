/* SPDX-License-Identifier: BSD-3-Clause */
/* Back-off of a CPU thread, and the clock. First the processor's pause hint,
 * then yields, then sleeps that grow. Yields pass a token on in microseconds
 * among waiters that all yield, but hand the core for a whole time slice to a
 * thread that does not: a yield that took long ends yielding for a while. Where
 * every waiter of the node has a core, yields go on for long, and one may take as
 * long as whoever is waited for works; elsewhere they are few, and a slow one
 * says that there are too many threads for them. Sleeps are never shorter than
 * 20 us: of a shorter one the kernel may make a spin, which starves whoever is
 * waited for. */
#define _GNU_SOURCE
#include "runtime/hostdev/hostdev.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <gdr/simt.h>
#include "runtime/core/clock.h"
#include "runtime/hostdev/hostdev_fiber.h"

#define SPIN_LOOKS 50u

/* With a core for each waiter: */
#define WIDE_FOR_NS 20000000u
#define WIDE_SLOW_NS 1000000u
#define WIDE_BAN_NS 5000000u
/* without: */
#define TIGHT_YIELDS 30u
#define TIGHT_SLOW_NS 200000u
#define TIGHT_BAN_NS 200000000u

#define SLEEP_FIRST_NS 20000u
#define SLEEP_STEP_NS 100u /* longer by this a round */
#define SLEEP_MAX_NS 200000u

/* What a CPU thread knows of its present wait and of its core. */
struct wait {
	unsigned round;	 /* of the last step; a smaller one starts a new wait */
	unsigned asleep; /* the round after which it sleeps */
	uint64_t start;
	uint64_t no_yield_before;
};

static __thread struct wait wait_here __attribute__((tls_model("initial-exec")));
static __thread int own_thread __attribute__((tls_model("initial-exec")));
/* PEs that share this process's cores, and blocks that run in this process. Relaxed: hints that pair with nothing. */
static int pes_here = 1, blocks_here;

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

uint64_t gdri_hd_backoff_cores(void)
{
	uint64_t name = 0, words[sizeof(cpu_set_t) / 8];
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return 0;
	memcpy(words, &set, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		name = (name ^ words[i]) * 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio */
	return name;
}

void gdri_hd_backoff_pes(int n)
{
	__atomic_store_n(&pes_here, n, __ATOMIC_RELAXED);
}

void gdri_hd_backoff_blocks(int more)
{
	__atomic_fetch_add(&blocks_here, more, __ATOMIC_RELAXED);
}

/* ---- who waits carries what it waits for ---- */

static struct {
	int taken; /* by who calls fn, or changes it */
	bool (*fn)(void *of, bool spare); /* also read without: NULL, and nobody has to take it */
	void *of;
	int threads; /* of each PE, which do that otherwise; also read without */
} driven;

/* acquire, release: each holder sees what the one before left of `driven`, and of what fn works on */
static bool driven_take(void)
{
	return !__atomic_exchange_n(&driven.taken, 1, __ATOMIC_ACQUIRE);
}

static void driven_give(void)
{
	__atomic_store_n(&driven.taken, 0, __ATOMIC_RELEASE);
}

void gdri_hd_backoff_drives(bool (*fn)(void *of, bool spare), void *of, int threads)
{
	while (!driven_take())
		sched_yield();
	driven.of = of;
	/* relaxed, both: hints for who has not taken it */
	__atomic_store_n(&driven.threads, threads, __ATOMIC_RELAXED);
	__atomic_store_n(&driven.fn, fn, __ATOMIC_RELAXED);
	driven_give();
}

void gdri_hd_backoff_forget(void)
{
	driven.fn = NULL; /* plain: a forked child has one thread. Who took it may not be here. */
	driven.taken = 0;
}

/* Does every thread that may be waiting on this process's cores have one, and `more` threads of each PE? PEs are taken
 * to be alike. */
GDRI_HD_SCHED static int cores_suffice(int more)
{
	static int cores; /* relaxed: whoever reads 0 asks again */
	int n = __atomic_load_n(&cores, __ATOMIC_RELAXED), blocks;
	cpu_set_t set;

	if (!n) {
		n = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
		__atomic_store_n(&cores, n, __ATOMIC_RELAXED);
	}
	blocks = __atomic_load_n(&blocks_here, __ATOMIC_RELAXED);
	return __atomic_load_n(&pes_here, __ATOMIC_RELAXED) * ((blocks > 1 ? blocks : 1) + more) <= n;
}

/* One yield, unless yields are banned; a slow one bans them. */
GDRI_HD_SCHED static int yield_once(struct wait *w, uint64_t now, uint64_t slow, uint64_t ban)
{
	uint64_t end;

	if (now < w->no_yield_before)
		return 0;
	sched_yield();
	end = gdri_hd_clock_ns();
	if (end - now > slow)
		w->no_yield_before = end + ban;
	return 1;
}

/* wait_here is the CPU thread's, and so is touched by all fibers of its block, one at a time:
 * scheduler state, like that of hostdev_block.c. 0: sleep. */
GDRI_HD_SCHED static int backoff_yields(unsigned round, unsigned yielded)
{
	struct wait *w = &wait_here;
	uint64_t now = gdri_hd_clock_ns();

	if (round <= w->round || !w->round) {
		w->start = now;
		w->asleep = 0;
	}
	w->round = round;
	if (w->asleep)
		return 0;
	if (cores_suffice(0))
		return now - w->start < WIDE_FOR_NS &&
		       yield_once(w, now, WIDE_SLOW_NS, WIDE_BAN_NS);
	return yielded < TIGHT_YIELDS && yield_once(w, now, TIGHT_SLOW_NS, TIGHT_BAN_NS);
}

GDRI_HD_SCHED void gdri_hd_backoff(unsigned round, unsigned lookers)
{
	unsigned spins = SPIN_LOOKS / lookers, asleep;
	unsigned long ns;

	if (round < spins) {
		cpu_relax();
		return;
	}
	if (backoff_yields(round, round - spins))
		return;
	if (!wait_here.asleep)
		wait_here.asleep = round;
	asleep = round - wait_here.asleep;
	ns = SLEEP_FIRST_NS + (unsigned long)asleep * SLEEP_STEP_NS;
	sleep_ns((long)(ns < SLEEP_MAX_NS ? ns : SLEEP_MAX_NS));
}

GDRI_HD_SCHED bool gdri_hd_backoff_is_driven(void)
{
	return __atomic_load_n(&driven.fn, __ATOMIC_RELAXED) != NULL; /* a hint, pairs with nothing */
}

/* A call takes as long as the spins, which it stands for: where there is a core to spare the next one follows, else
 * others may need this one. */
GDRI_HD_SCHED void gdri_hd_backoff_drive(unsigned round, unsigned lookers)
{
	bool spare = cores_suffice(__atomic_load_n(&driven.threads, __ATOMIC_RELAXED)), any; /* a hint, as above */

	if (!gdri_hd_backoff_is_driven() || !driven_take()) {
		gdri_hd_backoff(round, lookers);
		return;
	}
	any = driven.fn && driven.fn(driven.of, spare);
	driven_give();
	if (!any && (!spare || round >= SPIN_LOOKS / lookers))
		gdri_hd_backoff(spare ? round : round + SPIN_LOOKS / lookers, lookers);
}

uint64_t gdri_hd_clock_ns(void)
{
	return gdri_now_ns();
}
