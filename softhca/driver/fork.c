/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child of fork has of the device: nothing. Its files answer EIO (the
 * shim), its sockets are closed (the wire), and its UAR pages are taken away
 * here: they are shared memory, and a doorbell that the child rings would be one
 * in the parent, for a queue whose entries the parent never wrote. The kernel's
 * driver does not let UAR pages be inherited either. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "softhca/driver/control.h"
#include "softhca/gpu/dma.h"
#include "softhca/engine/poll_round.h"
#include "softhca/driver/shim.h"

/* "start-end perms offset major:minor inode path" */
static void take_away(const char *line)
{
	uint64_t start, end, inode;
	unsigned long maj, min;
	char *p;

	start = strtoull(line, &p, 16);
	if (*p != '-')
		return;
	end = strtoull(p + 1, &p, 16);
	for (int field = 0; field < 2 && *p; field++) /* perms and offset */
		p += strcspn(p + 1, " ") + 1;
	maj = strtoul(p, &p, 16);
	if (*p != ':')
		return;
	min = strtoul(p + 1, &p, 16);
	inode = strtoull(p, NULL, 10);
	if (!inode || shim_file_kind(makedev(maj, min), (ino_t)inode) == SHIM_NONE)
		return;
	mmap((void *)(uintptr_t)start, end - start, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* The driver is of no use here, and hca_lock may be held for ever. */
static void forget_gpu(void)
{
	/* Relaxed: pairs with cuda_wait.c's look, in this thread, the only one. */
	__atomic_store_n(&dma_on, false, __ATOMIC_RELAXED);
}

/* Only system calls and what needs no lock: other threads may have held any at
 * the fork. Replacing a mapping while the file is read skips and doubles nothing
 * that is ours: no mapping grows. */
static void fork_in_child(void)
{
	static char buf[8192];
	size_t have = 0;
	ssize_t n;
	int fd = real_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);

	forget_gpu();
	poll_forbid();
	if (fd < 0)
		return;
	while ((n = read(fd, buf + have, sizeof(buf) - 1 - have)) > 0) {
		char *line = buf, *nl;

		have += (size_t)n;
		buf[have] = '\0';
		for (; (nl = strchr(line, '\n')); line = nl + 1) {
			*nl = '\0';
			take_away(line);
		}
		have -= (size_t)(line - buf);
		memmove(buf, line, have);
		if (have == sizeof(buf) - 1)
			have = 0; /* longer than any path: no line */
	}
	real_close(fd);
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
