/* SPDX-License-Identifier: BSD-3-Clause */
/* Which processes of this host leave datagrams lying? The kernel shows how full the
 * sockets of this network namespace are: proc(5), /proc/net/udp, rx_queue. Only
 * asked when an answer is overdue. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/wire/wire.h"

#define LOOK_NS 1000000u /* what was seen holds so long */

static bool unread[SLOT_COUNT];

/* The line of a slot's socket names its address in network order. */
static void take_line(const char *line)
{
	unsigned addr, port, queued;
	uint32_t slot;

	if (sscanf(line, " %*d: %x:%x %*x:%*x %*x %*x:%x", &addr, &port, &queued) != 3)
		return;
	slot = wire_addr_slot(addr);
	if (port == ROCE_PORT && addr == wire_slot_addr(slot))
		unread[slot] = queued != 0;
}

static void wire_queue_look(void)
{
	/* Not by open(), which is ours in a program on softhca. */
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/thread-self/net/udp", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[256];

	memset(unread, 0, sizeof(unread));
	while (f && fgets(line, sizeof(line), f))
		take_line(line);
	if (f)
		fclose(f);
	else if (fd >= 0)
		close(fd);
}

bool wire_queue_unread(uint32_t slot)
{
	static uint64_t looked_at;

	if (!looked_at || dp_now() - looked_at >= LOOK_NS) {
		looked_at = dp_now();
		wire_queue_look();
	}
	return slot < SLOT_COUNT && unread[slot];
}
