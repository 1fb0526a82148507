/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiver's side of wire_shm.c: who is let in, and the packets of his ring. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/gpu/dma.h"
#include "softhca/tools/log.h"
#include "softhca/wire/share.h"
#include "softhca/wire/wire.h"
#include "softhca/wire/wire_shm_impl.h"

enum {
	RX_BUDGET = 256, /* packets taken from a ring in a round */
	RELEASE_BYTES = 128 << 10,
};

#define CLOSED_NS 100000000u /* how long it does not look for connections when it cannot have them */

static int pid_of(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) ? 0 : c.pid;
}

static void listen_for(uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = &shm_listener };

	epoll_ctl(shm_epoll, EPOLL_CTL_MOD, shm_listener.fd, &e);
}

/* Who asks stays in the queue, and would wake the engine for ever. */
static void shm_cannot_accept(int err)
{
	static bool said;

	if (err == EAGAIN || err == EINTR || err == ECONNABORTED)
		return;
	listen_for(0);
	shm_listen_at = dp_now() + CLOSED_NS;
	if (said)
		return;
	said = true;
	hca_warn("another process cannot be let in, what it sends waits: %s; tried again each %u ms",
		 limits_text(err).s, CLOSED_NS / 1000000);
}

void shm_listen_again(void)
{
	shm_listen_at = 0;
	listen_for(EPOLLIN);
	shm_events_due = true;
}

/* A descriptor that is taken so that there is one for the ring. 0: none was free. */
static int put_by(void)
{
	int fd = fcntl(shm_epoll, F_DUPFD_CLOEXEC, 1);

	return fd < 0 ? 0 : fd;
}

static void release_spare(struct shm_link *l)
{
	if (l->spare)
		close(l->spare);
	l->spare = 0;
}

/* Who is let in sends his ring, and the descriptor comes only once: with none left for it he would be let
 * in for nothing. */
void shm_accept(void)
{
	struct shm_link l = { .state = LINK_NEW, .fd = -1, .spare = put_by() };
	unsigned i = 0;

	if (l.spare)
		l.fd = accept4(shm_listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (l.fd < 0) {
		int err = errno;

		release_spare(&l);
		shm_cannot_accept(err);
		return;
	}
	while (i < SLOT_COUNT && shm_in[i].state != LINK_FREE)
		i++;
	if (i == SLOT_COUNT || !shm_same_user(l.fd)) {
		close(l.fd);
		release_spare(&l);
		return;
	}
	shm_in[i] = l;
	if (shm_watch(&shm_in[i]))
		shm_close_link(&shm_in[i]);
	else if (i >= shm_n_in)
		shm_n_in = i + 1;
}

int shm_take_hello(struct shm_link *l)
{
	struct shm_hello h;
	int fd, ret = -EPROTO;
	ssize_t n;

	release_spare(l);
	n = message_receive(l->fd, &h, sizeof(h), &fd);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (fd >= 0 && n == sizeof(h) && h.magic == SHM_HELLO && h.slot < SLOT_COUNT)
		ret = ring_open(&l->ring, fd);
	if (fd >= 0)
		close(fd);
	if (ret)
		return ret;
	l->slot = h.slot;
	l->state = LINK_OPEN;
	l->memory = (struct peer_memory){ .pid = pid_of(l->fd), .at = h.at, .word = h.word };
	ring_set_reach(&l->ring, RING_MAPS | (peer_memory_probe(&l->memory) ? RING_READS : 0));
	return 0;
}

static void reach_gpu(struct shm_link *l)
{
	if (shares_gpu(l->shares))
		ring_set_reach(&l->ring, ring_reach(&l->ring) | RING_GPU);
}

/* Once, when there is memory of a GPU here: what was shown before could not be mapped. */
static void map_again(struct shm_link *l)
{
	l->gpu_tried = true;
	shares_map_gpu(l->shares);
	reach_gpu(l);
}

bool shm_read_messages(struct shm_link *l)
{
	struct share_msg m;
	ssize_t n;
	int fd;

	while ((n = message_receive(l->fd, &m, sizeof(m), &fd)) > 0) {
		if (n == sizeof(m)) {
			shares_take(&l->shares, &m, fd);
			l->told++;
			if (m.kind == SHARE_GPU)
				reach_gpu(l);
		} else if (fd >= 0) {
			close(fd);
		}
	}
	return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* Puts places of this process into f where the sender's memory is mapped here. */
static bool have_mapped(struct shm_link *l, struct frame *f)
{
	uint32_t shown = ring_shown(&l->ring);

	if (shown != l->told && !l->hidden) {
		shm_read_messages(l);
		/* It may tell more meanwhile; less means that it told nothing. */
		l->hidden = shown == RING_HIDDEN || (int32_t)(shown - l->told) > 0;
	}
	if (l->hidden)
		shares_drop(&l->shares);
	if (!shares_translate(l->shares, f->iov, f->niov))
		return false;
	STAT_INC(shm_mapped);
	return true;
}

/* How many packets it was; 0: none. */
static unsigned shm_handle(struct shm_link *l, const uint8_t *b, size_t have, size_t *space)
{
	struct wire_dest from = { .kind = WIRE_HOST };
	struct frame f;

	if (!frame_get(&f, b, have))
		return 0;
	*space = f.space;
	if (f.reach && !have_mapped(l, &f))
		f.p.peer = shares_in_gpu(l->shares, f.iov) ? &l->nowhere : &l->memory;
	from.addr = wire_slot_addr(l->slot);
	from.slot = l->slot;
	wire_deliver(&from, &f.p, f.iov, f.niov);
	if (f.p.peer == &l->nowhere) /* asked for again: then it comes here */
		ring_set_reach(&l->ring, ring_reach(&l->ring) & ~(unsigned)RING_GPU);
	else if (f.p.peer && !l->memory.readable) /* asked for again, too */
		ring_set_reach(&l->ring, ring_reach(&l->ring) & RING_READS ? RING_MAPS : 0);
	return 1 + f.p.more;
}

unsigned shm_receive_from(struct shm_link *l)
{
	const uint8_t *b;
	unsigned n = 0, got;
	size_t space;
	int64_t have;

	if (__builtin_expect(dma_on, 0) && !l->gpu_tried)
		map_again(l);
	for (; n < RX_BUDGET && (have = ring_readable(&l->ring, &b)) != 0; n += got) {
		got = have < 0 ? 0 : shm_handle(l, b, (size_t)have, &space);
		if (!got) {
			hca_warn("process of slot %u: broken packet in shared memory", l->slot);
			shm_close_link(l);
			return n;
		}
		ring_pop(&l->ring, space);
		if (l->ring.head - l->ring.published >= RELEASE_BYTES)
			ring_release(&l->ring);
	}
	ring_release(&l->ring);
	return n;
}

unsigned wire_shm_receive(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < shm_n_in; i++)
		if (shm_in[i].state == LINK_OPEN)
			n += shm_receive_from(&shm_in[i]);
	return n;
}
