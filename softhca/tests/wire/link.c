/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of wire_peer: TCP for the exchange, the device, completions. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "softhca/tests/wire/peer.h"

static int failed(const char *what)
{
	fprintf(stderr, "wire_peer: %s: %s\n", what, strerror(errno));
	return -1;
}

/* ---- TCP ---- */

static int dial(const struct addrinfo *a)
{
	for (int i = 0; i < 200; i++) { /* the server may start later */
		int fd = socket(a->ai_family, SOCK_STREAM, 0);

		if (fd < 0)
			return -1;
		if (!connect(fd, a->ai_addr, a->ai_addrlen))
			return fd;
		close(fd);
		usleep(50000);
	}
	return -1;
}

static int answer(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM, 0), one = 1, c = -1;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, 1))
		c = accept(fd, NULL, NULL);
	close(fd);
	return c;
}

int peer_tcp(struct peer *p, const char *host, const char *port)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM,
				 .ai_family = host ? AF_UNSPEC : AF_INET6,
				 .ai_flags = host ? 0 : AI_PASSIVE };
	struct timeval limit = { .tv_sec = 2 * PEER_WAIT_S };
	struct addrinfo *a = NULL;

	if (getaddrinfo(host, port, &hint, &a) || !a)
		return failed(host ? host : port);
	p->tcp = host ? dial(a) : answer(a);
	freeaddrinfo(a);
	if (p->tcp < 0)
		return failed("TCP");
	setsockopt(p->tcp, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return 0;
}

int peer_say(struct peer *p, const void *what, size_t n)
{
	return send(p->tcp, what, n, MSG_NOSIGNAL) == (ssize_t)n ? 0 : failed("send");
}

int peer_hear(struct peer *p, void *what, size_t n)
{
	return recv(p->tcp, what, n, MSG_WAITALL) == (ssize_t)n ? 0 : failed("the other side");
}

/* ---- verbs ---- */

static struct ibv_context *open_named(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *c = NULL;

	for (int i = 0; list && list[i] && !c; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			c = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return c;
}

int peer_open(struct peer *p)
{
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

	p->buf = aligned_alloc(4096, PEER_BUFFER);
	p->src = aligned_alloc(4096, PEER_BUFFER);
	p->ctx = open_named(p->device);
	if (!p->ctx || !p->buf || !p->src)
		return failed("open");
	p->pd = ibv_alloc_pd(p->ctx);
	if (!p->pd)
		return failed("PD");
	p->mr = ibv_reg_mr(p->pd, p->buf, PEER_BUFFER, all);
	p->bare = ibv_reg_mr(p->pd, p->buf, PEER_BUFFER, IBV_ACCESS_LOCAL_WRITE);
	p->src_mr = ibv_reg_mr(p->pd, p->src, PEER_BUFFER, IBV_ACCESS_LOCAL_WRITE);
	p->cq = ibv_create_cq(p->ctx, 4 * PEER_DEPTH, NULL, NULL, 0);
	return p->mr && p->bare && p->src_mr && p->cq ? 0 : failed("MR or CQ");
}

int peer_connect(struct peer *p)
{
	struct timespec t;
	union ibv_gid gid;
	struct ibv_wc wc;
	char go = 1;

	if (peer_new_qp(p))
		return -1;
	while (ibv_poll_cq(p->cq, 1, &wc) > 0)
		; /* flushed by the QP before */
	if (ibv_query_gid(p->ctx, 1, (int)p->gid_index, &gid))
		return failed("GID");
	clock_gettime(CLOCK_MONOTONIC, &t);
	memcpy(p->here.gid, &gid, 16);
	p->here.qpn = p->qp->qp_num;
	/* Close to the end, so that PSNs wrap in the middle of things. */
	p->here.psn = 0xffff00u + ((uint32_t)t.tv_nsec >> 10) % 200;
	p->here.rkey = p->mr->rkey;
	p->here.bare_rkey = p->bare->rkey;
	p->here.addr = (uintptr_t)p->buf;
	if (peer_say(p, &p->here, sizeof(p->here)) || peer_hear(p, &p->there, sizeof(p->there)))
		return -1;
	if (peer_ready(p))
		return -1;
	/* Neither sends before both are ready. */
	return peer_say(p, &go, 1) || peer_hear(p, &go, 1) ? -1 : 0;
}

int peer_poll(struct peer *p, struct ibv_wc *wc)
{
	struct timespec a, b;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &a);
	do {
		n = ibv_poll_cq(p->cq, 1, wc);
		clock_gettime(CLOCK_MONOTONIC, &b);
	} while (!n && b.tv_sec - a.tv_sec < PEER_WAIT_S);
	if (n != 1)
		fprintf(stderr, "wire_peer: no completion\n");
	return n == 1 ? 0 : -1;
}
