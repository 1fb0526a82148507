// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uniqueid/join.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/call.h"
#include "bootstrap/uniqueid/hub.h"
#include "bootstrap/uniqueid/net.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"

#define MAX_HUBS   16
#define HELLO_NS   1000000000u /* a connection that has not said who it is by then is closed */
#define FAREWELL_NS 2000000000u /* one that was refused, and does not read that */
#define AGAIN_MS   100
#define AGAIN_NS   100000000u
#define EVICT_MS   1000

struct hub {
	struct gdri_uid_hub core; /* the thread's; the token does not change */
	int listener;
	int wake;	      /* eventfd: look at `evicted` */
	uint64_t number;      /* of those that this process had, from 1 */
	uint64_t made;	      /* ns */
	bool evicted;	      /* under hubs_lock: another id wants the place, if no PE has come */
	uint64_t deaf;	      /* ns: no more descriptors, the listener waits until then */
	uint64_t ending;      /* ns: since an ABORT is on its way, 0: none is */
	struct pollfd *polls; /* room of them: the listener, wake, then core.conns in order */
	size_t room;
};

static pthread_mutex_t hubs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hubs_changed;
static struct hub *hubs[MAX_HUBS]; /* under hubs_lock */

/* The threads stay behind in the parent, and so must the connections: a child that holds them hides the
 * parent's death from the PEs. Under the lock, taken before the fork: no connection comes or goes. */
static void serve_before_fork(void)
{
	pthread_mutex_lock(&hubs_lock);
}

static void serve_in_parent(void)
{
	pthread_mutex_unlock(&hubs_lock);
}

static void serve_in_child(void)
{
	for (int i = 0; i < MAX_HUBS; i++) {
		if (!hubs[i])
			continue;
		close(hubs[i]->listener);
		close(hubs[i]->wake);
		for (struct gdri_uid_conn *c = hubs[i]->core.conns; c; c = c->next)
			close(c->fd);
		hubs[i] = NULL;
	}
	pthread_mutex_unlock(&hubs_lock);
}

static void serve_register_fork(void)
{
	gdri_cond_init(&hubs_changed);
	if (pthread_atfork(serve_before_fork, serve_in_parent, serve_in_child))
		gdri_warn("pthread_atfork failed: the death of a PE that has forked may go unseen");
}

/* ---- the thread ---- */

/* False: the connection has ended. */
static bool serve_receive(struct hub *h, struct gdri_uid_conn *c, uint64_t now)
{
	unsigned char bytes[16384];
	ssize_t n = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!c->bad) /* else read and thrown away: a close with unread bytes would cut off what was said */
		gdri_uid_hub_feed(&h->core, c, bytes, (size_t)n);
	if (c->bad)
		c->since = now;
	return n > 0;
}

static bool serve_transmit(struct gdri_uid_conn *c)
{
	const unsigned char *p;
	ssize_t done;
	size_t n;

	while ((p = gdri_uid_hub_out(c, &n))) {
		done = send(c->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (done < 0)
			return errno == EAGAIN || errno == EINTR;
		gdri_uid_hub_sent(c, (size_t)done);
	}
	return true;
}

static bool serve_overdue(const struct gdri_uid_conn *c, uint64_t now)
{
	size_t n;

	if (c->bad)
		return !gdri_uid_hub_out(c, &n) || now - c->since > FAREWELL_NS;
	return c->stranger && now - c->since > HELLO_NS;
}

/* Under hubs_lock. */
static void serve_drop(struct hub *h, struct gdri_uid_conn *c)
{
	close(c->fd);
	gdri_uid_hub_drop(&h->core, c);
}

/* A newcomer for whom there is no place or no descriptor takes that of the oldest stranger. False: there is none. */
static bool make_way(struct hub *h)
{
	struct gdri_uid_conn *oldest = gdri_uid_hub_oldest(&h->core);

	if (oldest)
		serve_drop(h, oldest);
	return oldest;
}

/* A failure that lasts must not keep the thread busy. */
static void serve_cannot_accept(struct hub *h, uint64_t now, int err)
{
	static bool said; /* under hubs_lock */

	h->deaf = now + AGAIN_NS;
	if (!said)
		gdri_warn("bootstrap: PEs wait to be let in, for this process cannot take their connections: %s",
			  gdri_errno_text(err));
	said = true;
}

/* A PE says who it is as soon as it is connected, and is no stranger then. */
static void take_newcomers(struct hub *h, uint64_t now)
{
	struct gdri_uid_conn *c;
	int fd;

	for (int i = 0; i < GDRI_UID_STRANGERS; i++) { /* then those that are known have their turn */
		fd = accept4(h->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED)
				return;
			if (make_way(h))
				continue;
			serve_cannot_accept(h, now, errno);
			return;
		}
		gdri_uid_tune(fd);
		if (h->core.n_strangers >= GDRI_UID_STRANGERS)
			make_way(h);
		c = gdri_uid_hub_accept(&h->core, fd, now);
		if (!c)
			close(fd);
		else if (!serve_receive(h, c, now))
			serve_drop(h, c);
	}
}

/* The process of the home PE ends as soon as that reads ABORT, and the hub with it: the others first. */
static bool held_back(const struct hub *h, const struct gdri_uid_conn *home, uint64_t now)
{
	size_t n;

	if (!home || !h->ending || now - h->ending > FAREWELL_NS)
		return false;
	for (const struct gdri_uid_conn *c = h->core.conns; c; c = c->next) {
		if (c != home && gdri_uid_hub_out(c, &n))
			return true;
	}
	return false;
}

static void send_all(struct hub *h, uint64_t now)
{
	struct gdri_uid_conn *c, *next, *home = gdri_uid_hub_home(&h->core);

	for (c = h->core.conns; c; c = next) {
		next = c->next;
		if (c != home && (!serve_transmit(c) || serve_overdue(c, now)))
			serve_drop(h, c);
	}
	if (home && !held_back(h, home, now) && (!serve_transmit(home) || serve_overdue(home, now)))
		serve_drop(h, home);
}

static int fill_polls(struct hub *h, nfds_t *n)
{
	struct pollfd *p;
	const struct gdri_uid_conn *home = gdri_uid_hub_home(&h->core);
	size_t want = 2;
	uint64_t now = gdri_now_ns();
	bool held = held_back(h, home, now), deaf = now < h->deaf, fleeting = held || deaf;

	for (struct gdri_uid_conn *c = h->core.conns; c; c = c->next)
		want++;
	if (want > h->room) {
		p = realloc(h->polls, 2 * want * sizeof(*p));
		if (!p)
			return -1;
		h->polls = p;
		h->room = 2 * want;
	}
	h->polls[0] = (struct pollfd){deaf ? -1 : h->listener, POLLIN, 0};
	h->polls[1] = (struct pollfd){h->wake, POLLIN, 0};
	*n = 2;
	for (struct gdri_uid_conn *c = h->core.conns; c; c = c->next) {
		size_t left;
		bool out = gdri_uid_hub_out(c, &left) && !(held && c == home);

		fleeting |= c->bad || c->stranger;
		h->polls[(*n)++] = (struct pollfd){c->fd, (short)(POLLIN | (out ? POLLOUT : 0)), 0};
	}
	return fleeting ? AGAIN_MS : -1;
}

/* Under hubs_lock. */
static void receive_all(struct hub *h, uint64_t now)
{
	struct gdri_uid_conn *c, *next;
	nfds_t i = 2;

	for (c = h->core.conns; c; c = next, i++) {
		next = c->next; /* dropping c touches no other */
		if ((h->polls[i].revents & (POLLIN | POLLHUP | POLLERR)) && !serve_receive(h, c, now))
			serve_drop(h, c);
	}
}

/* A PE that has come meanwhile keeps the hub. Under hubs_lock. */
static bool leave_place(struct hub *h)
{
	uint64_t n;

	if (h->polls[1].revents && read(h->wake, &n, sizeof(n)) < 0)
		gdri_warn("bootstrap: eventfd: %m");
	h->evicted &= gdri_uid_hub_idle(&h->core);
	return h->evicted;
}

/* False: that was all. */
static bool serve_once(struct hub *h)
{
	nfds_t n = 0;
	int ms = fill_polls(h, &n);
	uint64_t now;
	bool more;

	if (!n) {
		poll(NULL, 0, AGAIN_MS); /* no memory now */
		return true;
	}
	poll(h->polls, n, ms);
	pthread_mutex_lock(&hubs_lock);
	now = gdri_now_ns();
	receive_all(h, now);
	if (h->core.ending && !h->ending)
		h->ending = now;
	send_all(h, now);
	if (h->polls[0].revents)
		take_newcomers(h, now);
	more = !leave_place(h) && !gdri_uid_hub_done(&h->core);
	pthread_mutex_unlock(&hubs_lock);
	return more;
}

static void *serve_main(void *arg)
{
	struct hub *h = arg;

	while (serve_once(h))
		;
	pthread_mutex_lock(&hubs_lock);
	while (h->core.conns)
		serve_drop(h, h->core.conns);
	for (int i = 0; i < MAX_HUBS; i++) {
		if (hubs[i] == h)
			hubs[i] = NULL;
	}
	pthread_cond_broadcast(&hubs_changed);
	close(h->listener);
	close(h->wake);
	gdri_uid_hub_clear(&h->core);
	pthread_mutex_unlock(&hubs_lock);
	free(h->polls);
	free(h);
	return NULL;
}

/* ---- from outside ---- */

static int serve_start(struct hub *h)
{
	int rc = gdri_thread_start_detached(serve_main, h);

	if (rc)
		gdri_error("bootstrap: cannot start a thread: %s", gdri_thread_text(rc));
	return rc ? -GDR_ESYSTEM : 0;
}

/* -1: none. Under hubs_lock. */
static int serve_free_place(void)
{
	for (int i = 0; i < MAX_HUBS; i++) {
		if (!hubs[i])
			return i;
	}
	return -1;
}

/* The oldest id that no PE has come with ends. False: there is none. Under hubs_lock. */
static bool evict_one(void)
{
	static const uint64_t one = 1;
	struct hub *old = NULL;

	for (int i = 0; i < MAX_HUBS; i++) {
		if (hubs[i]->evicted)
			return true; /* is about to */
		if (gdri_uid_hub_idle(&hubs[i]->core) && (!old || hubs[i]->made < old->made))
			old = hubs[i];
	}
	if (!old)
		return false;
	gdri_warn("bootstrap: %d unique ids of this process wait for PEs: the oldest is no longer valid",
		  MAX_HUBS);
	old->evicted = true;
	return write(old->wake, &one, sizeof(one)) == sizeof(one);
}

/* -1: none. Under hubs_lock. */
static int make_place(void)
{
	struct timespec deadline;
	int i;

	gdri_deadline_in(&deadline, EVICT_MS);
	while ((i = serve_free_place()) < 0) {
		if (!evict_one() ||
		    pthread_cond_timedwait(&hubs_changed, &hubs_lock, &deadline) == ETIMEDOUT)
			return serve_free_place();
	}
	return i;
}

static int serve_enter(struct hub *h)
{
	static uint64_t n_hubs; /* under hubs_lock */
	int rc = -GDR_ENOMEM, i;

	pthread_mutex_lock(&hubs_lock);
	i = make_place();
	if (i >= 0) {
		h->number = ++n_hubs;
		rc = serve_start(h);
		hubs[i] = rc ? NULL : h;
	} else {
		gdri_error("bootstrap: %d unique ids of this process are in use: finalize their jobs "
			   "first", MAX_HUBS);
	}
	pthread_mutex_unlock(&hubs_lock);
	return rc;
}

/* What the hub needs of the system; as gdri_uid_serve. */
static int serve_prepare(struct hub *h, struct gdri_uid *u, int *err)
{
	h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (h->wake < 0)
		return gdri_fail(-GDR_ESYSTEM, "bootstrap: eventfd: %s", gdri_errno_text(errno));
	h->listener = gdri_uid_listen(u);
	if (h->listener < 0) {
		*err = -h->listener;
		close(h->wake);
		return 1;
	}
	h->made = gdri_now_ns();
	gdri_uid_hub_init(&h->core, u->token);
	return 0;
}

int gdri_uid_serve(struct gdri_uid *u, int *err)
{
	static pthread_once_t first = PTHREAD_ONCE_INIT;
	struct hub *h = calloc(1, sizeof(*h));
	int rc;

	pthread_once(&first, serve_register_fork);
	if (!h)
		return gdri_fail(-GDR_ENOMEM, "bootstrap: no memory for %zu bytes", sizeof(*h));
	rc = serve_prepare(h, u, err);
	if (!rc) {
		rc = serve_enter(h);
		if (rc) {
			close(h->listener);
			close(h->wake);
		}
	}
	if (rc)
		free(h);
	return rc;
}

int gdri_boot_uniqueid_create(unsigned char id[GDRI_UID_BYTES], const char *interface)
{
	struct gdri_uid u = {0};
	char text[64];
	int rc, err;

	memset(id, 0, GDRI_UID_BYTES);
	rc = gdri_uid_choose_address(interface, &u);
	if (rc)
		return rc;
	if (getrandom(u.token, sizeof(u.token), 0) != sizeof(u.token))
		return gdri_fail(-GDR_ESYSTEM, "bootstrap: no random bytes: %m");
	rc = gdri_uid_serve(&u, &err);
	if (rc > 0) {
		gdri_uid_address_text(&u, text, sizeof(text));
		rc = gdri_fail(-GDR_ESYSTEM, "bootstrap: cannot listen at %s: %s", text, gdri_errno_text(err));
	}
	if (!rc)
		gdri_uid_write(id, &u);
	return rc;
}

uint64_t gdri_uid_served_here(const unsigned char token[GDRI_UID_TOKEN])
{
	uint64_t found = 0;

	pthread_mutex_lock(&hubs_lock);
	for (int i = 0; i < MAX_HUBS; i++) {
		if (hubs[i] && gdri_uid_same_token(hubs[i]->core.token, token))
			found = hubs[i]->number;
	}
	pthread_mutex_unlock(&hubs_lock);
	return found;
}

/* Under hubs_lock. */
static bool serve_lives(uint64_t number)
{
	bool yes = false;

	for (int i = 0; i < MAX_HUBS; i++)
		yes |= hubs[i] && hubs[i]->number == number;
	return yes;
}

bool gdri_uid_await_end(uint64_t hub, const struct timespec *deadline)
{
	bool yes;

	pthread_mutex_lock(&hubs_lock);
	while ((yes = serve_lives(hub)) && pthread_cond_timedwait(&hubs_changed, &hubs_lock, deadline) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&hubs_lock);
	return !yes;
}
