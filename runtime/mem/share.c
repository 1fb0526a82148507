// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* accept4, struct ucred */
#include "runtime/mem/share.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"

#define SHARE_MAGIC 0x31726873u
#define STRANGERS 16 /* accepted connections beyond those of the peers */

/* What a visitor sends: who it is, and the token of the host. */
struct request {
	uint32_t magic;
	int32_t pe;
	uint8_t token[GDRI_SHARE_TOKEN];
};

/* One end of a connection in progress. */
struct link {
	int fd;	   /* -1: none */
	bool done; /* outgoing: the answer is here, or will not come */
};

struct exchange {
	struct gdri_share *s;
	struct gdri_share_peer *peers;
	struct link *out;    /* [n] own visits, in the order of peers */
	bool *served;	     /* [n] the peer has visited us and got our descriptor */
	int *in;	     /* [n_in] accepted, nothing heard yet */
	struct pollfd *pfds; /* [1 + n + n_in] */
	int n, n_in, pe;
	int own[2], n_own;
	int full; /* errno: the process may have no more descriptors */
};

/* Whether err says that the process, or the machine, may have no more descriptors: notes it. */
static bool is_full(struct exchange *t, int err)
{
	if (err != EMFILE && err != ENFILE)
		return false;
	t->full = err;
	return true;
}

static bool same_user(int fd, char *why, size_t room)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len)) {
		snprintf(why, room, "SO_PEERCRED: %s", strerror(errno));
		return false;
	}
	if (cred.uid != geteuid()) {
		snprintf(why, room, "it runs as user %u, this PE as %u", (unsigned int)cred.uid,
			 (unsigned int)geteuid());
		return false;
	}
	return true;
}

/* The abstract name "\0gdr-" and 32 hex digits: no file that could be left behind. */
static socklen_t unix_address(struct sockaddr_un *sa, const uint8_t *name)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	memcpy(sa->sun_path, "\0gdr-", 5);
	for (int i = 0; i < GDRI_SHARE_NAME; i++)
		snprintf(sa->sun_path + 5 + 2 * i, 3, "%02x", name[i]);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 5 + 2 * GDRI_SHARE_NAME);
}

int gdri_share_open(struct gdri_share *s)
{
	struct sockaddr_un sa;
	socklen_t len;

	s->listener = -1;
	if (getrandom(&s->address, sizeof(s->address), 0) != (ssize_t)sizeof(s->address))
		return gdri_fail(-GDR_ESYSTEM, "share: getrandom: %m");
	len = unix_address(&sa, s->address.name);
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&sa, len) ||
	    listen(s->listener, 1024)) {
		gdri_error("share: cannot listen on a unix socket: %s", gdri_errno_text(errno));
		gdri_share_close(s);
		return -GDR_ESYSTEM;
	}
	return 0;
}

void gdri_share_close(struct gdri_share *s)
{
	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
}

static void close_link(struct link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->done = true;
}

static void share_no_connection(struct gdri_share_peer *p, int err)
{
	snprintf(p->why, sizeof(p->why), "no connection to its socket: %s%s", gdri_errno_text(err),
		 err != ECONNREFUSED ? "" :
		 "; has it, or this PE, a network of its own (a container)? else see its output");
}

/* Connects to peer i and asks. A full backlog (EAGAIN) is tried again later. */
static void share_visit(struct exchange *t, int i)
{
	struct gdri_share_peer *p = &t->peers[i];
	struct request req = {.magic = SHARE_MAGIC, .pe = t->pe};
	struct link *l = &t->out[i];
	struct sockaddr_un sa;
	socklen_t len = unix_address(&sa, p->address.name);
	bool failed;

	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	failed = l->fd < 0 || connect(l->fd, (struct sockaddr *)&sa, len);
	if (failed && l->fd >= 0 && errno == EAGAIN) {
		close(l->fd);
		l->fd = -1;
		return;
	}
	if (failed) {
		is_full(t, errno);
		share_no_connection(p, errno);
		close_link(l);
		return;
	}
	/* First: one that sees another user here hangs up, and says so in its own output alone. */
	memcpy(req.token, p->address.token, sizeof(req.token));
	if (!same_user(l->fd, p->why, sizeof(p->why))) {
		close_link(l);
	} else if (send(l->fd, &req, sizeof(req), MSG_NOSIGNAL) != (ssize_t)sizeof(req)) {
		share_no_connection(p, errno);
		close_link(l);
	}
}

/* Takes the answer: one byte, and descriptors: of memory, and perhaps of a page. -1: see errno; 0: it has closed. */
static int take_fds(int sock, int *page)
{
	char room[CMSG_SPACE(4 * sizeof(int))] __attribute__((aligned(8)));
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			     .msg_controllen = sizeof(room)};
	int fds[4], n = 0, keep, i;
	ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

	if (got < 0)
		return -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || n)
			continue;
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		n = n > 4 ? 4 : n;
		memcpy(fds, CMSG_DATA(c), (size_t)n * sizeof(int));
	}
	keep = msg.msg_flags & MSG_CTRUNC ? 0 : 2; /* truncated: there was no room for all of them here */
	for (i = keep; i < n; i++) /* more than agreed: not ours to keep */
		close(fds[i]);
	errno = !got ? 0 : keep ? EPROTO : EMFILE; /* for a message without a descriptor */
	n = n < keep ? n : keep;
	*page = n > 1 ? fds[1] : -1;
	return n ? fds[0] : -1;
}

static void share_collect(struct exchange *t, int i)
{
	struct gdri_share_peer *p = &t->peers[i];

	p->fd = take_fds(t->out[i].fd, &p->page);
	if (p->fd < 0 && !is_full(t, errno))
		snprintf(p->why, sizeof(p->why), "it did not hand over its memory: %s",
			 errno ? strerror(errno) : "see its own output");
	close_link(&t->out[i]);
}

static bool give_fds(int sock, const int *fds, int n)
{
	char room[CMSG_SPACE(2 * sizeof(int))] __attribute__((aligned(8))) = {0};
	char byte = 1;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			     .msg_controllen = CMSG_SPACE((size_t)n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	return sendmsg(sock, &msg, MSG_NOSIGNAL) == 1;
}

/* Index of the peer that a request proves to come from, -1: nobody's. */
static int share_visitor(const struct exchange *t, const struct request *req, ssize_t n)
{
	uint8_t differ = 0;

	if (n != (ssize_t)sizeof(*req) || req->magic != SHARE_MAGIC)
		return -1;
	for (int i = 0; i < GDRI_SHARE_TOKEN; i++)
		differ |= req->token[i] ^ t->s->address.token[i];
	if (differ)
		return -1;
	for (int i = 0; i < t->n; i++) {
		if (t->peers[i].pe == req->pe && !t->served[i])
			return i;
	}
	return -1;
}

/* Answers the accepted connection k, once: strangers are dropped without a word. */
static void share_serve(struct exchange *t, int k)
{
	struct request req;
	ssize_t n = recv(t->in[k], &req, sizeof(req), MSG_TRUNC);
	char why[96];
	int i;

	if (n < 0 && errno == EAGAIN)
		return;
	i = share_visitor(t, &req, n);
	if (i >= 0 && same_user(t->in[k], why, sizeof(why)) && give_fds(t->in[k], t->own, t->n_own))
		t->served[i] = true;
	else
		gdri_debug("share: refused a connection that did not prove to be a PE of this job");
	close(t->in[k]);
	t->in[k] = -1;
}

static void accept_all(struct exchange *t)
{
	char why[96];
	int k, fd;

	for (;;) {
		fd = accept4(t->s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			is_full(t, errno);
			return;
		}
		for (k = 0; k < t->n_in && t->in[k] >= 0; k++)
			;
		if (k == t->n_in || !same_user(fd, why, sizeof(why))) {
			close(fd);
			continue;
		}
		t->in[k] = fd;
	}
}

/* A peer that refuses us will not come either: only those that may come are waited for. */
static bool share_finished(const struct exchange *t)
{
	for (int i = 0; i < t->n; i++) {
		if (!t->out[i].done || (t->peers[i].fd >= 0 && !t->served[i]))
			return false;
	}
	return true;
}

static void poll_once(struct exchange *t, int wait_ms)
{
	bool retry = false;
	int i;

	t->pfds[0] = (struct pollfd){.fd = t->s->listener, .events = POLLIN};
	for (i = 0; i < t->n; i++) {
		if (!t->out[i].done && t->out[i].fd < 0)
			share_visit(t, i);
		if (!t->out[i].done && t->out[i].fd < 0)
			retry = true;
		t->pfds[1 + i] = (struct pollfd){.fd = t->out[i].fd, .events = POLLIN};
	}
	if (share_finished(t)) /* all that were visited refuse: nobody would end the wait */
		return;
	for (int k = 0; k < t->n_in; k++)
		t->pfds[1 + t->n + k] = (struct pollfd){.fd = t->in[k], .events = POLLIN};
	i = poll(t->pfds, (nfds_t)(1 + t->n + t->n_in), retry && wait_ms > 2 ? 2 : wait_ms);
	if (i < 0 && errno == EINVAL) /* more entries than there may be descriptors */
		t->full = EMFILE;
	if (i <= 0)
		return;
	for (i = 0; i < t->n; i++) {
		if (t->out[i].fd >= 0 && t->pfds[1 + i].revents)
			share_collect(t, i);
	}
	for (int k = 0; k < t->n_in; k++) {
		if (t->in[k] >= 0 && t->pfds[1 + t->n + k].revents)
			share_serve(t, k);
	}
	if (t->pfds[0].revents)
		accept_all(t);
}

static bool share_prepare(struct exchange *t)
{
	t->out = calloc((unsigned int)t->n + 1, sizeof(*t->out));
	t->served = calloc((unsigned int)t->n + 1, sizeof(*t->served));
	t->in = calloc((size_t)t->n_in, sizeof(*t->in));
	t->pfds = calloc((size_t)(1 + t->n + t->n_in), sizeof(*t->pfds));
	for (int i = 0; t->out && i < t->n; i++) /* 0 would be somebody's descriptor to clean_up() */
		t->out[i].fd = -1;
	for (int i = 0; t->in && i < t->n_in; i++)
		t->in[i] = -1;
	return t->out && t->served && t->in && t->pfds;
}

static void clean_up(struct exchange *t)
{
	for (int i = 0; t->out && i < t->n; i++)
		close_link(&t->out[i]);
	for (int i = 0; t->in && i < t->n_in; i++) {
		if (t->in[i] >= 0)
			close(t->in[i]);
	}
	free(t->out);
	free(t->served);
	free(t->in);
	free(t->pfds);
}

/* Without descriptors for all peers the PE cannot go on. Those that still come here find nobody. */
static int share_give_up(struct exchange *t)
{
	gdri_share_close(t->s);
	for (int i = 0; i < t->n; i++) {
		if (t->peers[i].fd < 0)
			snprintf(t->peers[i].why, sizeof(t->peers[i].why), "%s", gdri_errno_text(t->full));
	}
	return gdri_fail(-GDR_ESYSTEM, "sharing memory with %d PEs of this node: %s", t->n, gdri_errno_text(t->full));
}

int gdri_share_exchange(struct gdri_share *s, int pe, int own_fd, int own_page,
		     struct gdri_share_peer *peers, int n, int timeout_ms)
{
	struct exchange t = {.s = s, .peers = peers, .n = n, .n_in = n + STRANGERS, .pe = pe,
			  .own = {own_fd, own_page}, .n_own = own_page < 0 ? 1 : 2};
	uint64_t end = gdri_deadline_ns(timeout_ms);
	int i, left, ret = 0;

	for (i = 0; i < n; i++) {
		peers[i].fd = -1;
		peers[i].page = -1;
		snprintf(peers[i].why, sizeof(peers[i].why), "out of memory");
	}
	if (n && share_prepare(&t)) {
		for (i = 0; i < n; i++)
			snprintf(peers[i].why, sizeof(peers[i].why),
				 "no answer from its socket within %s", gdri_boot_waited(timeout_ms, 0));
		while (!t.full && !share_finished(&t) && (left = gdri_left_ms(end)) > 0)
			poll_once(&t, left);
	}
	if (t.full)
		ret = share_give_up(&t);
	clean_up(&t);
	return ret;
}
