/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child of fork has of the device: nothing but device memory that it
 * allocates itself (uverbs_dm.c). Its files answer EIO else, its sockets are
 * closed (the wire), and its UAR pages are taken away here: they are shared
 * memory, and a doorbell that the child rings would be one in the parent, for a
 * queue whose entries the parent never wrote. The kernel's driver does not let
 * UAR pages be inherited either. */
#include <pthread.h>
#include <sys/mman.h>

#include "softhca/driver/control.h"
#include "softhca/gpu/dma.h"
#include "softhca/engine/poll_round.h"
#include "softhca/driver/shim.h"

static bool take_away(void *arg, const struct maps_line *m)
{
	(void)arg;
	if (m->ino && shim_file_kind(m->dev, m->ino) != SHIM_NONE)
		mmap((void *)(uintptr_t)m->start, m->end - m->start, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	return true;
}

/* Only system calls and what needs no lock: other threads may have held any at
 * the fork. Replacing a mapping while the file is read skips and doubles nothing
 * that is ours: no mapping grows. */
static void fork_in_child(void)
{
	/* Relaxed: pairs with cuda_wait.c's look, in this thread, the only one. */
	__atomic_store_n(&dma_on, false, __ATOMIC_RELAXED);
	poll_forbid();
	maps_each(take_away, NULL);
}

static void fork_install(void)
{
	pthread_atfork(NULL, NULL, fork_in_child);
}

void fork_prepare(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fork_install);
}
