// SPDX-License-Identifier: BSD-3-Clause
/* Who rings. Either device code stores to the doorbell registers themselves, for which the pages of a real NIC have
 * to be mapped for the GPU, or it stores the same 8 bytes to a word in host memory, and a thread here carries
 * them to the register: slower, but without any privilege. */
#define _GNU_SOURCE /* pthread_setname_np */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gdr/impl/arch/arch.h>
#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/thread.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/nic/impl.h"

struct page { /* of doorbell registers, mapped for the GPU */
	uint8_t *here, *seen;
};

struct gdri_nic_bell {
	struct gdri_nic *nic;
	int n;
	struct page *pages; /* no thread: [n_pages] */
	int n_pages;
	uint64_t *words; /* thread: [n], written by device code */
	uint64_t *rung;	 /* thread: [n], what was carried over last */
	pthread_t thread;
	bool runs, stop;
};

/* ---- the thread ---- */

static bool bell_carry(struct gdri_nic_bell *b)
{
	bool any = false;
	uint64_t v;

	for (int i = 0; i < b->n; i++) {
		/* acquire: pairs with fence F2 of device code, without a record with F1: queue entries and record
		 * before the bell */
		v = __atomic_load_n(&b->words[i], __ATOMIC_ACQUIRE);
		if (v == b->rung[i])
			continue;
		b->rung[i] = v;
		/* as F2 of who rings: a NIC may be outside of the processors' shareable domain, within which an
		 * acquire orders what other threads stored before the register's store (arm64) */
		gdri_fence_sys();
		gdri_st_mmio_u64((uint64_t *)(void *)b->nic->qps[i].db, v);
		any = true;
	}
	return any;
}

static void bell_rest(unsigned int round)
{
	struct timespec nap = {0, 50000};

	if (round < 64)
		return;
	if (round < 4096)
		sched_yield();
	else
		nanosleep(&nap, NULL);
}

static void *bell_main(void *arg)
{
	struct gdri_nic_bell *b = arg;
	unsigned int round = 0;

	pthread_setname_np(pthread_self(), "gdr-doorbell");
	while (!__atomic_load_n(&b->stop, __ATOMIC_RELAXED)) { /* joined: needs no more order */
		round = bell_carry(b) ? 0 : round + 1;
		bell_rest(round);
	}
	bell_carry(b);
	return NULL;
}

static int bell_start(struct gdri_nic_bell *b)
{
	int rc = gdri_thread_start(&b->thread, bell_main, b);

	b->runs = !rc;
	if (rc)
		gdri_error("cannot start the doorbell thread: %s", gdri_thread_text(rc));
	return rc ? -GDR_ESYSTEM : 0;
}

static int use_thread(struct gdri_nic_bell *b)
{
	size_t bytes = ((size_t)b->n * sizeof(*b->words) + 127) / 128 * 128;

	b->rung = calloc((size_t)b->n, sizeof(*b->rung));
	if (b->nic->poster)
		b->words = gdri_cuda_alloc_host(b->nic->poster, bytes);
	else
		b->words = aligned_alloc(128, bytes);
	if (!b->rung || !b->words)
		return gdri_nic_memory_failed(b->nic->name, "the doorbell words", bytes, ENOMEM);
	memset(b->words, 0, bytes);
	return bell_start(b);
}

/* ---- registers for the GPU ---- */

static const struct page *find_page(const struct gdri_nic_bell *b, const uint8_t *here)
{
	for (int i = 0; i < b->n_pages; i++) {
		if (b->pages[i].here == here)
			return &b->pages[i];
	}
	return NULL;
}

/* What the kernel maps is a page of the host; of 64 KiB it has the registers of 16 of the device's. */
static size_t bell_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static uint8_t *bell_page_of(const uint8_t *reg)
{
	return (uint8_t *)((uintptr_t)reg & ~(uintptr_t)(bell_page() - 1));
}

static void unmap_pages(struct gdri_nic_bell *b)
{
	while (b->n_pages)
		gdri_cuda_unmap(b->nic->poster, b->pages[--b->n_pages].here);
	free(b->pages);
	b->pages = NULL;
}

static int map_pages(struct gdri_nic_bell *b, char *why, size_t room)
{
	struct page *p;
	int i, ret = 0;

	b->pages = calloc((size_t)b->n, sizeof(*b->pages));
	if (!b->pages) {
		snprintf(why, room, "out of memory");
		return -GDR_ENOMEM;
	}
	for (i = 0; i < b->n && !ret; i++) {
		p = &b->pages[b->n_pages];
		p->here = bell_page_of(b->nic->qps[i].db);
		if (find_page(b, p->here))
			continue;
		ret = gdri_cuda_map(b->nic->poster, p->here, bell_page(), GDRI_CUDA_MAP_IO, (void **)&p->seen, why,
				    room);
		b->n_pages += !ret;
	}
	if (ret)
		unmap_pages(b);
	return ret;
}

/* ---- the choice ---- */

static int bell_choose(struct gdri_nic *nic, struct gdri_nic_bell *b)
{
	char why[512] = "asked for by GDR_DOORBELL=cpu";
	int ret = 0;

	if (nic->opt.doorbell != GDRI_DOORBELL_CPU) {
		snprintf(nic->bell_text, sizeof(nic->bell_text), "rung by the threads that post");
		if (!nic->poster)
			return 0;
		ret = map_pages(b, why, sizeof(why));
		if (!ret)
			return 0;
		if (nic->opt.doorbell == GDRI_DOORBELL_GPU) {
			gdri_error("%s: GDR_DOORBELL=gpu: %s", nic->name, why);
			return ret;
		}
		gdri_warn("%s: a host thread rings the doorbells for the GPU, which is slower: %s", nic->name,
			  why);
	}
	snprintf(nic->bell_text, sizeof(nic->bell_text), "rung by a host thread: %s", why);
	return use_thread(b);
}

int gdri_nic_bell_create(struct gdri_nic *nic)
{
	struct gdri_nic_bell *b = calloc(1, sizeof(*b));
	int ret;

	if (!b)
		return gdri_nic_memory_failed(nic->name, "the doorbells", sizeof(*b), ENOMEM);
	b->nic = nic;
	b->n = (int)nic->layout.n;
	nic->bell = b;
	ret = bell_choose(nic, b);
	nic->net.host_rings = b->words;
	nic->net.queues_on_gpu = nic->ring_gpu && b->n_pages;
	return ret;
}

uint64_t *gdri_nic_bell_of(const struct gdri_nic *nic, int i)
{
	const struct gdri_nic_bell *b = nic->bell;
	uint8_t *reg = nic->qps[i].db;

	if (b->words)
		return &b->words[i];
	if (b->n_pages)
		reg = find_page(b, bell_page_of(reg))->seen + (reg - bell_page_of(reg));
	return (uint64_t *)(void *)reg;
}

void gdri_nic_bell_destroy(struct gdri_nic *nic)
{
	struct gdri_nic_bell *b = nic->bell;

	if (!b)
		return;
	if (b->runs) {
		__atomic_store_n(&b->stop, true, __ATOMIC_RELAXED); /* see bell_main */
		pthread_join(b->thread, NULL);
	}
	unmap_pages(b);
	if (nic->poster)
		gdri_cuda_free_host(nic->poster, b->words);
	else
		free(b->words);
	free(b->rung);
	free(b);
	nic->bell = NULL;
}
