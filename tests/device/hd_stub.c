/* SPDX-License-Identifier: BSD-3-Clause */
/* What device code needs of libgdr, for tests whose callers are plain threads
 * (blocks of one) and that link no library: those of warps and blocks are in
 * tests/hostdev and tests/multi. */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "tests/device/fake_nic.h"

struct gdri_dev *gdri_dev_state;
void (*fake_on_pause)(unsigned round);
void (*fake_on_clock)(void);
uint64_t fake_clock_least, fake_clock_most;
static const struct gdri_hd_thread outside = {0, 1, 0, 1, NULL, 0, 0, NULL};
__thread const struct gdri_hd_thread *gdri_hd_self
	__attribute__((tls_model("initial-exec"))) = &outside;

void gdri_hd_pause(unsigned round)
{
	if (fake_on_pause)
		fake_on_pause(round);
	else if (round & 1)
		sched_yield();
}

static uint64_t real_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static uint64_t bounded_clock(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t last, ns = 1;
	uint64_t now, step, ret;

	pthread_mutex_lock(&lock);
	now = real_clock();
	step = now - last < fake_clock_most ? now - last : fake_clock_most;
	ns += step > fake_clock_least ? step : fake_clock_least;
	last = now;
	ret = ns;
	pthread_mutex_unlock(&lock);
	return ret;
}

uint64_t gdri_hd_clock_ns(void)
{
	if (fake_on_clock)
		fake_on_clock();
	return fake_clock_most ? bounded_clock() : real_clock();
}

void gdri_hd_say_errors(void)
{
}

int gdri_hd_no_library(const char *call)
{
	(void)call;
	return -GDR_ESTATE;
}

void gdri_hd_sync_block(void)
{
	abort();
}

void gdri_hd_sync_warp(uint32_t mask)
{
	(void)mask;
	abort();
}

uint64_t gdri_hd_shfl(uint32_t mask, uint64_t v, unsigned lane)
{
	(void)mask;
	(void)v;
	(void)lane;
	abort();
}

uint32_t gdri_hd_ballot(uint32_t mask, int pred)
{
	(void)mask;
	(void)pred;
	abort();
}

uint32_t gdri_hd_group(uint64_t key)
{
	(void)key;
	abort();
}

int gdri_hd_object(uint64_t offset, uint64_t len, uint64_t *begin, uint64_t *end)
{
	(void)offset, (void)len, (void)begin, (void)end;
	return 1;
}

unsigned gdri_hd_callers(uint64_t call, int *first)
{
	(void)call;
	(void)first;
	abort();
}

int gdr_barrier_all(void)
{
	return gdri_thread_barrier_all();
}
