/* SPDX-License-Identifier: BSD-3-Clause */
/* The one kernel that the driver of fake_cuda.c can launch: what softhca's own (dma_kernel.c) does, by a
 * thread. It comes late, reads an item and carries it out word by word in any order where a GPU may, and now and then
 * ends early, with items before it. FAKE_CUDA_BLOCKING: launches wait for its end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "softhca/tests/cuda/fake_cuda.h"

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define EXPORT __attribute__((visibility("default")))

enum { SLOTS = 64, HALVES = 32, LAST = 3, FIRST = 4 };

struct mail {
	uint64_t alive, pad0[7], done, pad1[7], quit, pad2[15], slot[SLOTS][HALVES];
};

struct launch {
	struct mail *mail;
	uint64_t number, idle, life, random;
};

static unsigned items, launches;

EXPORT unsigned fake_cuda_kernel_launches(void)
{
	return __atomic_load_n(&launches, __ATOMIC_RELAXED); /* as below */
}

EXPORT unsigned fake_cuda_kernel_items(void)
{
	return __atomic_load_n(&items, __ATOMIC_RELAXED); /* a count alone */
}

static unsigned draw(struct launch *l, unsigned n)
{
	l->random = l->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(l->random >> 33) % n;
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void dawdle(struct launch *l)
{
	struct timespec t = { 0, draw(l, 200000) };

	if (draw(l, 4) == 0)
		nanosleep(&t, NULL);
	else
		sched_yield();
}

static uint64_t load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE); /* pairs with the engine's stores of numbers */
}

static void set(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE); /* pairs with who polls on it */
}

static uint64_t *place(uint64_t p)
{
	uint64_t *view = fake_cuda_view(p);

	return view ? view : (uint64_t *)(uintptr_t)p;
}

/* Its halves, one load each, in an order of this moment; false: not all are of this item. */
static bool take(struct launch *l, uint32_t item[HALVES])
{
	const uint64_t *slot = l->mail->slot[l->number % SLOTS];
	unsigned start = draw(l, HALVES), step = 2 * draw(l, HALVES / 2) + 1;
	bool all = true;

	for (unsigned i = 0; i < HALVES; i++) {
		unsigned at = (start + i * step) % HALVES;
		uint64_t half = load(&slot[at]);

		item[at] = (uint32_t)half;
		all &= half >> 32 == (uint32_t)l->number;
		if (draw(l, 200) == 0)
			sched_yield();
	}
	return all;
}

static void carry_out(struct launch *l, const uint32_t item[HALVES])
{
	uint64_t slot[HALVES / 2], n, *at, start;

	memcpy(slot, item, sizeof(slot)); /* little-endian */
	n = slot[1] & 0xffffffff;
	at = place(slot[0]);
	start = n ? draw(l, (unsigned)n) : 0;
	if (slot[1] >> 32) {
		for (uint64_t i = 0; i < n; i++)
			set(place(slot[2]) + (start + i) % n, load(at + (start + i) % n));
		return;
	}
	for (uint64_t i = 0; i + 1 < n; i++)
		set(at + (start + i) % (n - 1), slot[FIRST + (start + i) % (n - 1)]);
	if (draw(l, 8) == 0)
		dawdle(l);
	if (n)
		set(at + n - 1, slot[LAST]);
	else
		__atomic_store_n((uint32_t *)(void *)at, (uint32_t)slot[LAST], __ATOMIC_RELEASE); /* as set() */
}

static void *run(void *arg)
{
	struct launch *l = arg;
	struct mail *m = l->mail;
	uint64_t begin, last;

	if (l->life && draw(l, 4))
		dawdle(l);
	begin = last = now();
	set(&m->alive, l->number);
	for (;;) {
		uint32_t item[HALVES];

		if (!take(l, item)) {
			if (now() - last > l->idle || now() - begin > l->life)
				break;
			sched_yield();
			continue;
		}
		if (draw(l, 50) == 0)
			break;
		carry_out(l, item);
		__atomic_fetch_add(&items, 1, __ATOMIC_RELAXED); /* as above */
		set(&m->done, l->number++);
		last = now();
	}
	set(&m->quit, l->number);
	free(l);
	return NULL;
}

EXPORT int cuModuleLoadData(void **module, const void *image)
{
	static int it;

	*module = &it;
	return strstr(image, ".entry softhca_kernel(") ? 0 : 218; /* invalid PTX */
}

EXPORT int cuModuleGetFunction(void **function, void *module, const char *name)
{
	*function = module;
	return strcmp(name, "softhca_kernel") ? 500 : 0; /* not found */
}

EXPORT int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
			  unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
	const char *seed = getenv("FAKE_CUDA_SEED");
	struct launch *l = malloc(sizeof(*l));
	pthread_t t;

	(void)f, (void)shared, (void)stream, (void)extra;
	if (gx * gy * gz != 1 || bx != 32 || by * bz != 1 || !l) {
		free(l);
		return 1;
	}
	fake_driver_enter();
	fake_driver_leave();
	memcpy(&l->mail, args[0], 8);
	memcpy(&l->number, args[1], 8);
	memcpy(&l->idle, args[2], 8);
	memcpy(&l->life, args[3], 8);
	l->random = ((seed ? strtoull(seed, NULL, 0) : 1) +
		     1000 * __atomic_add_fetch(&launches, 1, __ATOMIC_RELAXED)) * 0x9e3779b97f4a7c15u;
	if (!l->life || getenv("FAKE_CUDA_BLOCKING")) { /* who asks for so little waits for it */
		run(l);
		return 0;
	}
	if (pthread_create(&t, NULL, run, l)) {
		free(l);
		return 2;
	}
	pthread_detach(t);
	return 0;
}
