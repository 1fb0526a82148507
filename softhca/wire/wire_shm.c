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
#include <unistd.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/wire/share.h"
#include "softhca/wire/wire_shm_impl.h"

enum { EVENTS = 16 };

#define EVENTS_NS 100000u /* how often a busy engine looks for connections */

struct shm_link shm_listener, shm_out[SLOT_COUNT], shm_in[SLOT_COUNT];
unsigned shm_n_in;
int shm_epoll = -1;
bool shm_events_due;
uint64_t shm_listen_at;
uint64_t shm_own_word;
static uint64_t events_at; /* when it was last known whether there are any */

socklen_t shm_slot_name(uint32_t slot, struct sockaddr_un *a)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
					    "softhca-slot-%u", slot));
}

bool shm_same_user(int fd)
{
	struct ucred c;
	socklen_t n = sizeof(c);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &n) && c.uid == geteuid();
}

int shm_watch(struct shm_link *l)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = l };

	return epoll_ctl(shm_epoll, EPOLL_CTL_ADD, l->fd, &e) ? -errno : 0;
}

void shm_close_link(struct shm_link *l)
{
	close(l->fd); /* leaves the epoll set with it */
	if (l->spare)
		close(l->spare);
	l->spare = 0;
	ring_close(&l->ring);
	shares_drop(&l->shares);
	l->state = LINK_FREE;
}

bool wire_shm_on(void)
{
	return shm_epoll >= 0;
}

static void shm_event(struct shm_link *l)
{
	if (l == &shm_listener) {
		shm_accept();
		return;
	}
	if (l->state == LINK_FREE) /* an event ahead of this one, of the same look, closed it */
		return;
	if (l->state == LINK_NEW) {
		if (shm_take_hello(l))
			shm_close_link(l);
		return;
	}
	if (shm_read_messages(l))
		return;
	if (!l->out)
		shm_receive_from(l); /* what it wrote before it went */
	if (l->state != LINK_FREE)
		shm_close_link(l);
}

void wire_shm_events(void)
{
	struct epoll_event e[EVENTS];
	int n;

	if (shm_epoll >= 0 && __builtin_expect(shm_listen_at != 0, 0) && dp_now() >= shm_listen_at)
		shm_listen_again();
	if (shm_epoll < 0 || (!shm_events_due && dp_now() - events_at < EVENTS_NS))
		return;
	n = epoll_wait(shm_epoll, e, EVENTS, 0);
	for (int i = 0; i < n; i++)
		shm_event(e[i].data.ptr);
	shm_events_due = n == EVENTS;
	events_at = dp_now();
}

int wire_shm_fd(void)
{
	return shm_epoll;
}

bool wire_shm_sleep(void)
{
	const uint8_t *b;
	bool work = false;

	for (unsigned i = 0; i < shm_n_in; i++)
		if (shm_in[i].state == LINK_OPEN)
			ring_sleep(&shm_in[i].ring);
	for (unsigned i = 0; i < shm_n_in; i++)
		if (shm_in[i].state == LINK_OPEN)
			work |= ring_readable(&shm_in[i].ring, &b) != 0;
	return !work;
}

void wire_shm_awake(bool events)
{
	for (unsigned i = 0; i < shm_n_in; i++)
		if (shm_in[i].state == LINK_OPEN)
			ring_awake(&shm_in[i].ring);
	shm_events_due |= events;
	if (!events)
		events_at = dp_clock();
}

void wire_shm_forked(void)
{
	if (shm_epoll < 0)
		return;
	for (unsigned i = 0; i < SLOT_COUNT; i++) {
		if (shm_out[i].state != LINK_FREE)
			close(shm_out[i].fd);
		if (shm_in[i].state != LINK_FREE)
			close(shm_in[i].fd);
		if (shm_in[i].spare)
			close(shm_in[i].spare);
		shares_forked(shm_in[i].shares);
	}
	close(shm_listener.fd);
	close(shm_epoll);
	shm_epoll = -1;
	share_forked();
}

void wire_shm_start(void)
{
	struct sockaddr_un a;
	socklen_t n = shm_slot_name(wire_slot(), &a);

	if (!hca_options()->shm)
		return;
	if (getrandom(&shm_own_word, sizeof(shm_own_word), GRND_NONBLOCK) != sizeof(shm_own_word))
		shm_own_word = dp_clock() << 20 ^ (uint64_t)getpid();
	shm_listener.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	shm_epoll = epoll_create1(EPOLL_CLOEXEC);
	if (shm_listener.fd >= 0 && shm_epoll >= 0 && !bind(shm_listener.fd, (struct sockaddr *)&a, n) &&
	    !listen(shm_listener.fd, SLOT_COUNT) && !shm_watch(&shm_listener))
		return;
	hca_warn("no shared memory with other processes: socket \"@%s\": %s", a.sun_path + 1,
		 limits_text(errno).s);
	if (shm_listener.fd >= 0)
		close(shm_listener.fd);
	if (shm_epoll >= 0)
		close(shm_epoll);
	shm_epoll = -1;
}
