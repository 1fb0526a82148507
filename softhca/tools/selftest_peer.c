/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca --selftest, between two processes: the second one opens the device by
 * itself, connects, and stays until the first has written and read there. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softhca/tools/selftest.h"

enum { PATIENCE_MS = 20000 };

static pid_t peer = -1;
static int channel = -1;

static bool selftest_get(int fd, void *p, size_t n)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	return poll(&wait, 1, PATIENCE_MS) == 1 && recv(fd, p, n, MSG_WAITALL) == (ssize_t)n;
}

static bool selftest_put(int fd, const void *p, size_t n)
{
	return send(fd, p, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Addresses are exchanged, both sides connect, and each tells the other so. */
static bool selftest_join(struct st_end *e, int fd, struct st_address *other)
{
	struct st_address self;
	char ready = 1;

	return st_address(e, &self) && selftest_put(fd, &self, sizeof(self)) &&
	       selftest_get(fd, other, sizeof(*other)) && st_connect(e, &self, other) &&
	       selftest_put(fd, &ready, 1) && selftest_get(fd, &ready, 1);
}

/* The peer's exit status says how far it came. */
static int run_peer(int fd)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	const char *what = "";
	struct st_address other;
	struct st_end e;
	char over;

	if (!pd || !st_open(&e, ctx, pd, &what))
		return 2;
	strcpy((char *)e.mem + ST_HALF, "of the peer");
	if (!selftest_join(&e, fd, &other))
		return 3;
	return selftest_get(fd, &over, 1) && !strcmp((char *)e.mem + ST_HALF, "of the first") ? 0 : 4;
}

bool st_peer_start(void)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		return false;
	fflush(stdout);
	peer = fork();
	if (!peer) {
		close(fd[0]);
		_exit(run_peer(fd[1]));
	}
	close(fd[1]);
	channel = fd[0];
	return peer > 0;
}

void st_peer_test(struct st_end *e)
{
	struct st_address other;
	int status;

	if (!selftest_join(e, channel, &other)) {
		st_report(false, "second process", "it did not connect");
		return;
	}
	status = st_do(e, IBV_WR_RDMA_READ, 64, &other, 0, 0);
	st_report(!status && !strcmp((char *)e->mem, "of the peer"), "second process", "read: %s",
		  st_status(status));
	strcpy((char *)e->mem, "of the first");
	status = st_do(e, IBV_WR_RDMA_WRITE, 64, &other, 0, 0);
	st_report(!status, "second process", "write: %s", st_status(status));
	selftest_put(channel, "", 1);
}

int st_peer_stop(void)
{
	int status = -1;

	if (peer <= 0)
		return -1;
	close(channel); /* ends it wherever it waits */
	waitpid(peer, &status, 0);
	return status;
}
