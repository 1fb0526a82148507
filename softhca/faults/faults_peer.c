/* SPDX-License-Identifier: BSD-3-Clause */
/* Which rank has which slot of this host. Each process with a schedule binds a
 * socket name that says so; the list of names is /proc/net/unix, and the kernel
 * takes a name away with its process. Nothing is ever sent. */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "softhca/faults/faults_plan.h"
#include "softhca/tools/log.h"

#define NAME "softhca/%u/%u" /* slot, rank */

static int name_fd = -1;

/* A forked child is no peer, and must not keep the name. */
static void faults_close_in_child(void)
{
	if (name_fd >= 0)
		close(name_fd);
	name_fd = -1;
}

void faults_peer_publish(uint32_t slot, uint32_t rank)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, NAME, slot, rank);
	socklen_t len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);

	name_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (name_fd < 0 || bind(name_fd, (struct sockaddr *)&a, len)) {
		hca_warn("cannot say that this is rank %u: %s; \"peer %u\" means nobody", rank,
			 strerror(errno), rank);
		faults_close_in_child();
		return;
	}
	pthread_atfork(NULL, NULL, faults_close_in_child);
}

int64_t faults_peer_rank(uint32_t slot)
{
	FILE *f = fopen("/proc/net/unix", "re");
	unsigned at, rank;
	int64_t found = -1;
	char line[256];

	if (!f)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), f)) {
		const char *name = strchr(line, '@');

		if (name && sscanf(name + 1, NAME, &at, &rank) == 2 && at == slot)
			found = rank;
	}
	fclose(f);
	return found;
}
