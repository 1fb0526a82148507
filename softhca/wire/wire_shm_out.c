/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's side of wire_shm.c: rings to other processes. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/gpu/dma.h"
#include "softhca/wire/share.h"
#include "softhca/wire/wire.h"
#include "softhca/wire/wire_shm_impl.h"

enum {
	PUBLISH_BYTES = 32 << 10, /* long messages are shown early */
	BULK_GPU = 512 << 10,	/* bytes of one whose payload GPUs copy, of one */
	BULK_REACH = 128 << 10, /* whose payload stays where it is, */
	BULK_COPY = 32 << 10, /* or is copied into the ring: while one is written, one is read */
	REACH_MIN = 16 << 10, /* bytes: below, two copies cost less than the system call */
	REACH_GPU_MIN = 1,    /* from GPU to GPU: two copies are two ways through the driver */
};

/* A receiver that takes nothing for so long is a wire that loses packets: what
 * is sent to it is dropped, and its peers' retries run out. */
#define STUCK_NS  1000000000u
#define LOOK_NS	  1000000u

static struct shm_link *dirty[SLOT_COUNT];
static unsigned n_dirty;

static int shm_dial(uint32_t slot)
{
	struct sockaddr_un a;
	socklen_t n = shm_slot_name(slot, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, n) || !shm_same_user(fd)) {
		close(fd);
		return -ECONNREFUSED;
	}
	return fd;
}

static bool say_hello(int fd, int ring_fd)
{
	struct shm_hello h = { SHM_HELLO, wire_slot(), (uintptr_t)&shm_own_word, shm_own_word };

	return message_send(fd, &h, sizeof(h), ring_fd);
}

/* What cannot be shown is read in another way; what cannot be taken back takes back all. */
static void shm_tell(void *link, const struct share_msg *m, int fd)
{
	struct shm_link *l = link;

	if (message_send(l->fd, m, sizeof(*m), fd))
		ring_count_shown(&l->ring);
	else if (m->kind == SHARE_TAKE_BACK)
		ring_hide(&l->ring);
}

void wire_shm_tell(const struct share_msg *m, int fd)
{
	for (unsigned i = 0; shm_epoll >= 0 && i < SLOT_COUNT; i++)
		if (shm_out[i].state == LINK_OPEN)
			shm_tell(&shm_out[i], m, fd);
}

static bool hung_up(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void wire_shm_connect(uint32_t slot)
{
	struct shm_link *l = &shm_out[slot % SLOT_COUNT];
	int ring_fd;

	if (shm_epoll < 0 || slot >= SLOT_COUNT)
		return;
	/* Datagrams ask each time. */
	if (l->looked_at && dp_now() - l->looked_at < LOOK_NS)
		return;
	l->looked_at = dp_now();
	if (l->state == LINK_OPEN && !hung_up(l->fd))
		return;
	if (l->state == LINK_OPEN) /* the slot has a new owner */
		shm_close_link(l);
	l->fd = shm_dial(slot);
	if (l->fd < 0)
		return;
	l->slot = slot;
	l->out = true;
	l->full_since = 0;
	if (ring_create(&l->ring, &ring_fd)) {
		close(l->fd);
		return;
	}
	l->state = LINK_OPEN;
	if (!say_hello(l->fd, ring_fd) || shm_watch(l))
		shm_close_link(l);
	else
		share_each(shm_tell, l);
	close(ring_fd);
}

static void shm_publish(struct shm_link *l)
{
	if (l->state == LINK_OPEN && ring_publish(&l->ring)) {
		STAT_INC(shm_wakes);
		/* Its end, if it comes to that, is seen by the epoll set. */
		send(l->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

unsigned wire_shm_bulk(uint32_t slot, uint32_t mtu)
{
	const struct shm_link *l = &shm_out[slot % SLOT_COUNT];
	uint32_t n;

	if (l->state != LINK_OPEN)
		return 1;
	n = ring_reach(&l->ring);
	n = (n & RING_GPU ? BULK_GPU : n ? BULK_REACH : BULK_COPY) / mtu;
	return n <= FRAME_MORE ? n : FRAME_MORE + 1;
}

static bool stays_in_place(const struct shm_link *l, const struct packet *p, const struct iovec *iov,
			   int niov)
{
	unsigned reach = ring_reach(&l->ring);

	if (niov > FRAME_PIECES || !reach)
		return false;
	if (__builtin_expect(dma_on, 0) && dma_any(iov, niov))
		return reach & RING_GPU && p->len >= REACH_GPU_MIN && packet_class(p) == BTH_RC &&
		       share_covers(iov, niov);
	return p->len >= REACH_MIN && (reach & RING_READS || share_covers(iov, niov));
}

bool wire_shm_in_place(uint32_t slot, const struct iovec *v)
{
	const struct shm_link *l = &shm_out[slot % SLOT_COUNT];

	return l->state == LINK_OPEN && ring_reach(&l->ring) & RING_GPU &&
	       v->iov_len >= REACH_GPU_MIN && share_covers(v, 1);
}

bool wire_shm_send(uint32_t slot, struct packet *p, const struct iovec *iov, int niov)
{
	struct shm_link *l = &shm_out[slot % SLOT_COUNT];
	bool reach;
	size_t n;

	if (l->state != LINK_OPEN)
		return false;
	reach = stays_in_place(l, p, iov, niov);
	n = frame_space(p->len, niov, reach);
	if (ring_room(&l->ring, n) < n) {
		STAT_INC(pkts_dropped);
		return true;
	}
	ring_push(&l->ring, frame_put(ring_at_tail(&l->ring), p, iov, niov, reach));
	STAT_ADD(pkts_shm, 1 + p->more);
	if (reach || l->ring.tail - l->ring.published >= PUBLISH_BYTES) {
		shm_publish(l);
	} else if (!l->dirty) {
		l->dirty = true;
		dirty[n_dirty++] = l;
	}
	return true;
}

void wire_shm_flush(void)
{
	while (n_dirty) {
		struct shm_link *l = dirty[--n_dirty];

		l->dirty = false;
		shm_publish(l);
	}
}

unsigned wire_shm_room(uint32_t slot, uint32_t mtu, unsigned want)
{
	struct shm_link *l = &shm_out[slot % SLOT_COUNT];
	size_t each = frame_space(mtu, 1, false), n;

	if (l->state != LINK_OPEN)
		return want;
	n = ring_room(&l->ring, each * want) / each;
	if (n) {
		l->full_since = 0;
		return n < want ? (unsigned)n : want;
	}
	/* Not dp_now(): this thread may have waited for a core since, and that time is none of the receiver's. */
	if (!l->full_since)
		l->full_since = dp_clock();
	return dp_clock() - l->full_since > STUCK_NS ? want : 0;
}

int wire_shm_unread(uint32_t slot)
{
	struct shm_link *l = &shm_out[slot % SLOT_COUNT];

	return l->state == LINK_OPEN ? ring_unread(&l->ring) : -1;
}
