/* SPDX-License-Identifier: BSD-3-Clause */
/* The short way between two processes of one user on one host: rings in shared
 * memory (wire_ring.c), one for each direction, made by the sender.
 *
 * Who owns a slot listens on the abstract socket "softhca-slot-N"; names are
 * of the network namespace, as the slot's address is. The sender connects,
 * compares the listener's user with its own, and passes the ring's memory as a
 * file descriptor; from then on it writes packets, the receiver accepting when
 * it comes to it. So a QP's packets take one way from the first to the last.
 * The connection stays: a byte on it wakes the receiver, its end says that the
 * other process is gone. Nothing has a name that outlives the two processes.
 *
 * Packets here may stand for several of a message. Long payload stays where it
 * is, if the kernel lets the receiver read it there (peer_memory.c): the packet
 * says where, and until it is acknowledged the work request keeps it there.
 *
 * A slot that nobody of this user listens for is reached by UDP. Packets here
 * have no ICRC: no wire changes them, and their payload is a copy, or the
 * program's own. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "softhca/dma.h"
#include "softhca/log.h"
#include "softhca/message.h"
#include "softhca/options.h"
#include "softhca/share.h"
#include "softhca/wire.h"
#include "softhca/wire_frame.h"
#include "softhca/wire_ring.h"

enum {
	HELLO_MAGIC = 0x50fca106,
	RX_BUDGET = 256,	  /* packets taken from a ring in a round */
	PUBLISH_BYTES = 32 << 10, /* long messages are shown early */
	RELEASE_BYTES = 128 << 10,
	EVENTS = 16,
	BULK_GPU = 512 << 10,	/* bytes of one whose payload GPUs copy, of one */
	BULK_REACH = 128 << 10, /* whose payload stays where it is, */
	BULK_COPY = 32 << 10, /* or is copied into the ring: while one is written, one is read */
	REACH_MIN = 16 << 10, /* bytes: below, two copies cost less than the system call */
	REACH_GPU_MIN = 1,    /* from GPU to GPU: two copies are two ways through the driver */
};

#define EVENTS_NS 100000u     /* how often a busy engine looks for connections */
#define CLOSED_NS 100000000u  /* and how long it does not look when it cannot have them */
/* A receiver that takes nothing for so long is a wire that loses packets: what
 * is sent to it is dropped, and its peers' retries run out. */
#define STUCK_NS  1000000000u
#define LOOK_NS	  1000000u

struct hello {
	uint32_t magic, slot;
	uint64_t at, word; /* peer_memory.c */
};

struct link {
	enum { LINK_FREE, LINK_NEW, LINK_OPEN } state;
	int fd;
	uint32_t slot;
	bool out, dirty;
	uint64_t looked_at;  /* wire_shm_connect() */
	uint64_t full_since; /* 0: there was room */
	struct ring ring;
	struct peer_memory memory; /* of the sender */
	struct peer_memory nowhere; /* what cannot be read */
	struct shares *shares;	   /* what of it is mapped here */
	uint32_t told;		   /* messages about it that were read */
	bool gpu_tried;		   /* to map what was shown before dma_on */
	bool hidden;		   /* there will be none any more */
};

static struct link listener, out_links[SLOT_COUNT], in_links[SLOT_COUNT];
static unsigned n_in; /* links in use lie below */
static struct link *dirty[SLOT_COUNT];
static unsigned n_dirty;
static int epoll_fd = -1;
static bool events_due;
static uint64_t events_at; /* when it was last known whether there are any */
static uint64_t listen_at; /* not before, since the last who asked could not be let in; 0: now */
static uint64_t own_word; /* by which other processes know this one's memory */

static socklen_t slot_name(uint32_t slot, struct sockaddr_un *a)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
					    "softhca-slot-%u", slot));
}

static int pid_of(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) ? 0 : c.pid;
}

static bool same_user(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.uid == geteuid();
}

static int watch(struct link *l)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, l->fd, &e) ? -errno : 0;
}

static void close_link(struct link *l)
{
	close(l->fd); /* leaves the epoll set with it */
	ring_close(&l->ring);
	shares_drop(&l->shares);
	l->state = LINK_FREE;
}

/* ---- sender ---- */

static int dial(uint32_t slot)
{
	struct sockaddr_un a;
	socklen_t n = slot_name(slot, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&a, n) || !same_user(fd)) {
		close(fd);
		return -ECONNREFUSED;
	}
	return fd;
}

static bool say_hello(int fd, int ring_fd)
{
	struct hello h = { HELLO_MAGIC, wire_slot(), (uintptr_t)&own_word, own_word };

	return message_send(fd, &h, sizeof(h), ring_fd);
}

/* What cannot be shown is read in another way; what cannot be taken back takes back all. */
static void tell(void *link, const struct share_msg *m, int fd)
{
	struct link *l = link;

	if (message_send(l->fd, m, sizeof(*m), fd))
		ring_count_shown(&l->ring);
	else if (m->kind == SHARE_TAKE_BACK)
		ring_hide(&l->ring);
}

void wire_shm_tell(const struct share_msg *m, int fd)
{
	for (unsigned i = 0; epoll_fd >= 0 && i < SLOT_COUNT; i++)
		if (out_links[i].state == LINK_OPEN)
			tell(&out_links[i], m, fd);
}

bool wire_shm_on(void)
{
	return epoll_fd >= 0;
}

static bool hung_up(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void wire_shm_connect(uint32_t slot)
{
	struct link *l = &out_links[slot % SLOT_COUNT];
	int ring_fd;

	if (epoll_fd < 0 || slot >= SLOT_COUNT)
		return;
	/* Datagrams ask each time. */
	if (l->looked_at && dp_now() - l->looked_at < LOOK_NS)
		return;
	l->looked_at = dp_now();
	if (l->state == LINK_OPEN && !hung_up(l->fd))
		return;
	if (l->state == LINK_OPEN) /* the slot has a new owner */
		close_link(l);
	l->fd = dial(slot);
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
	if (!say_hello(l->fd, ring_fd) || watch(l))
		close_link(l);
	else
		share_each(tell, l);
	close(ring_fd);
}

static void publish(struct link *l)
{
	if (l->state == LINK_OPEN && ring_publish(&l->ring)) {
		STAT_INC(shm_wakes);
		/* Its end, if it comes to that, is seen by the epoll set. */
		send(l->fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
}

unsigned wire_shm_bulk(uint32_t slot, uint32_t mtu)
{
	const struct link *l = &out_links[slot % SLOT_COUNT];
	uint32_t n;

	if (l->state != LINK_OPEN)
		return 1;
	n = ring_reach(&l->ring);
	n = (n & RING_GPU ? BULK_GPU : n ? BULK_REACH : BULK_COPY) / mtu;
	return n <= FRAME_MORE ? n : FRAME_MORE + 1;
}

static bool stays_in_place(const struct link *l, const struct packet *p, const struct iovec *iov,
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
	const struct link *l = &out_links[slot % SLOT_COUNT];

	return l->state == LINK_OPEN && ring_reach(&l->ring) & RING_GPU &&
	       v->iov_len >= REACH_GPU_MIN && share_covers(v, 1);
}

bool wire_shm_send(uint32_t slot, struct packet *p, const struct iovec *iov, int niov)
{
	struct link *l = &out_links[slot % SLOT_COUNT];
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
		publish(l);
	} else if (!l->dirty) {
		l->dirty = true;
		dirty[n_dirty++] = l;
	}
	return true;
}

void wire_shm_flush(void)
{
	while (n_dirty) {
		struct link *l = dirty[--n_dirty];

		l->dirty = false;
		publish(l);
	}
}

unsigned wire_shm_room(uint32_t slot, uint32_t mtu, unsigned want)
{
	struct link *l = &out_links[slot % SLOT_COUNT];
	size_t each = frame_space(mtu, 1, false), n;

	if (l->state != LINK_OPEN)
		return want;
	n = ring_room(&l->ring, each * want) / each;
	if (n) {
		l->full_since = 0;
		return n < want ? (unsigned)n : want;
	}
	if (!l->full_since)
		l->full_since = dp_now();
	return dp_now() - l->full_since > STUCK_NS ? want : 0;
}

int wire_shm_unread(uint32_t slot)
{
	struct link *l = &out_links[slot % SLOT_COUNT];

	return l->state == LINK_OPEN ? ring_unread(&l->ring) : -1;
}

/* ---- receiver ---- */

static void listen_for(uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = &listener };

	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, listener.fd, &e);
}

/* Who asks stays in the queue, and would wake the engine for ever. */
static void cannot_accept(int err)
{
	static bool said;

	if (err == EAGAIN || err == EINTR || err == ECONNABORTED)
		return;
	listen_for(0);
	listen_at = dp_now() + CLOSED_NS;
	if (said)
		return;
	said = true;
	hca_warn("another process cannot be let in, what it sends waits: %s; tried again each %u ms%s",
		 strerror(err), CLOSED_NS / 1000000,
		 err == EMFILE ? "; the limit is this process's (ulimit -n)" : "");
}

static void listen_again(void)
{
	listen_at = 0;
	listen_for(EPOLLIN);
	events_due = true;
}

static void accept_link(void)
{
	int fd = accept4(listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	unsigned i = 0;

	if (fd < 0) {
		cannot_accept(errno);
		return;
	}
	while (i < SLOT_COUNT && in_links[i].state != LINK_FREE)
		i++;
	if (i == SLOT_COUNT || !same_user(fd)) {
		close(fd);
		return;
	}
	in_links[i] = (struct link){ .state = LINK_NEW, .fd = fd };
	if (watch(&in_links[i]))
		close_link(&in_links[i]);
	else if (i >= n_in)
		n_in = i + 1;
}

static int take_hello(struct link *l)
{
	struct hello h;
	int fd, ret = -EPROTO;
	ssize_t n = message_receive(l->fd, &h, sizeof(h), &fd);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (fd >= 0 && n == sizeof(h) && h.magic == HELLO_MAGIC && h.slot < SLOT_COUNT)
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

static void reach_gpu(struct link *l)
{
	if (shares_gpu(l->shares))
		ring_set_reach(&l->ring, ring_reach(&l->ring) | RING_GPU);
}

/* Once, when there is memory of a GPU here: what was shown before could not be mapped. */
static void map_again(struct link *l)
{
	l->gpu_tried = true;
	shares_map_gpu(l->shares);
	reach_gpu(l);
}

/* Wake-up bytes, which have done their work, and messages about memory. False: the end. */
static bool read_messages(struct link *l)
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
static bool have_mapped(struct link *l, struct frame *f)
{
	uint32_t shown = ring_shown(&l->ring);

	if (shown != l->told && !l->hidden) {
		read_messages(l);
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
static unsigned handle(struct link *l, const uint8_t *b, size_t have, size_t *space)
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
	else if (f.p.peer && !l->memory.readable) /* the same */
		ring_set_reach(&l->ring, ring_reach(&l->ring) & RING_READS ? RING_MAPS : 0);
	return 1 + f.p.more;
}

static unsigned receive_from(struct link *l)
{
	const uint8_t *b;
	unsigned n = 0, got;
	size_t space;
	int64_t have;

	if (__builtin_expect(dma_on, 0) && !l->gpu_tried)
		map_again(l);
	for (; n < RX_BUDGET && (have = ring_readable(&l->ring, &b)) != 0; n += got) {
		got = have < 0 ? 0 : handle(l, b, (size_t)have, &space);
		if (!got) {
			hca_warn("process of slot %u: broken packet in shared memory", l->slot);
			close_link(l);
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

	for (unsigned i = 0; i < n_in; i++)
		if (in_links[i].state == LINK_OPEN)
			n += receive_from(&in_links[i]);
	return n;
}

/* ---- both ---- */

static void event(struct link *l)
{
	if (l == &listener) {
		accept_link();
		return;
	}
	if (l->state == LINK_FREE) /* an event ahead of this one, of the same look, closed it */
		return;
	if (l->state == LINK_NEW) {
		if (take_hello(l))
			close_link(l);
		return;
	}
	if (read_messages(l))
		return;
	if (!l->out)
		receive_from(l); /* what it wrote before it went */
	if (l->state != LINK_FREE)
		close_link(l);
}

void wire_shm_events(void)
{
	struct epoll_event e[EVENTS];
	int n;

	if (epoll_fd >= 0 && __builtin_expect(listen_at != 0, 0) && dp_now() >= listen_at)
		listen_again();
	if (epoll_fd < 0 || (!events_due && dp_now() - events_at < EVENTS_NS))
		return;
	n = epoll_wait(epoll_fd, e, EVENTS, 0);
	for (int i = 0; i < n; i++)
		event(e[i].data.ptr);
	events_due = n == EVENTS;
	events_at = dp_now();
}

int wire_shm_fd(void)
{
	return epoll_fd;
}

bool wire_shm_sleep(void)
{
	const uint8_t *b;
	bool work = false;

	for (unsigned i = 0; i < n_in; i++)
		if (in_links[i].state == LINK_OPEN)
			ring_sleep(&in_links[i].ring);
	for (unsigned i = 0; i < n_in; i++)
		if (in_links[i].state == LINK_OPEN)
			work |= ring_readable(&in_links[i].ring, &b) != 0;
	return !work;
}

void wire_shm_awake(bool events)
{
	for (unsigned i = 0; i < n_in; i++)
		if (in_links[i].state == LINK_OPEN)
			ring_awake(&in_links[i].ring);
	events_due |= events;
	if (!events)
		events_at = dp_clock();
}

void wire_shm_forked(void)
{
	if (epoll_fd < 0)
		return;
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		if (out_links[i].state != LINK_FREE)
			close(out_links[i].fd);
		if (in_links[i].state != LINK_FREE)
			close(in_links[i].fd);
		shares_forked(in_links[i].shares);
	}
	close(listener.fd);
	close(epoll_fd);
	epoll_fd = -1;
	share_forked();
}

void wire_shm_start(void)
{
	struct sockaddr_un a;
	socklen_t n = slot_name(wire_slot(), &a);

	if (!hca_options()->shm)
		return;
	if (getrandom(&own_word, sizeof(own_word), GRND_NONBLOCK) != sizeof(own_word))
		own_word = dp_clock() << 20 ^ (uint64_t)getpid();
	listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (listener.fd >= 0 && epoll_fd >= 0 && !bind(listener.fd, (struct sockaddr *)&a, n) &&
	    !listen(listener.fd, SLOT_COUNT) && !watch(&listener))
		return;
	hca_warn("no shared memory with other processes: socket \"@%s\": %s", a.sun_path + 1,
		 strerror(errno));
	if (listener.fd >= 0)
		close(listener.fd);
	if (epoll_fd >= 0)
		close(epoll_fd);
	epoll_fd = -1;
}
