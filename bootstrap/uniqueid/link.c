// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uniqueid/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <poll.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/call.h"
#include "bootstrap/uniqueid/net.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"

#define CLOSE_MS 1000

/* ---- frames from the hub ---- */

static void take_result(struct gdri_uid_link *l, const struct gdri_uid_head *h, unsigned char **body)
{
	if (!l->round || h->round != l->round || l->done)
		return; /* the caller has given up */
	if (h->len != l->want) {
		l->unequal = l->pe; /* the hub would have said so: it is not one of ours */
	} else {
		l->result = *body;
		*body = NULL;
	}
	l->done = true;
}

static bool take_names(struct gdri_uid_link *l, const struct gdri_uid_head *h, const unsigned char *body)
{
	if (h->round != l->round)
		return true; /* of one that has ended */
	l->n_names = h->len / 4;
	for (uint32_t i = 0; i < l->n_names; i++) {
		l->names[i] = gdri_uid_get32(body + 4 * i);
		if (l->names[i] >= l->n)
			return false;
	}
	l->answered = true;
	return true;
}

static void take_gone(struct gdri_uid_link *l, uint32_t pe, enum gdri_uid_end how)
{
	if (l->gone == GDRI_UID_NOBODY) {
		l->gone = pe;
		l->how = how;
	}
}

/* Under l->lock. */
static bool take_locked(struct gdri_uid_link *l, const struct gdri_uid_head *h, unsigned char **body)
{
	switch (h->type) {
	case GDRI_UID_WELCOME:
		if (l->welcome)
			return false;
		l->welcome = true;
		l->home = h->pe;
		return true;
	case GDRI_UID_REFUSED:
		l->reason = gdri_uid_get32(*body);
		l->number = gdri_uid_get32(*body + 4);
		return l->reason != 0 && !l->welcome;
	case GDRI_UID_RESULT:
		take_result(l, h, body);
		return true;
	case GDRI_UID_UNEQUAL:
		if (h->round == l->round && !l->done) {
			l->unequal = h->pe;
			l->done = true;
		}
		return true;
	case GDRI_UID_GONE:
		take_gone(l, h->pe, gdri_uid_get32(*body) ? GDRI_UID_LEFT : GDRI_UID_LOST);
		return true;
	default:
		return take_names(l, h, *body);
	}
}

static void tell_lost(struct gdri_uid_link *l, int pe)
{
	pthread_mutex_lock(&l->telling);
	if (l->lost)
		l->lost(l->arg, pe);
	pthread_mutex_unlock(&l->telling);
}

static void take_abort(const struct gdri_uid_head *h, const unsigned char *body)
{
	char text[GDRI_UID_TEXT] = "";
	uint32_t n = h->len - 4;

	for (uint32_t i = 0; i < n; i++)
		text[i] = body[4 + i] >= ' ' && body[4 + i] <= '~' ? (char)body[4 + i] : '?';
	gdri_uid_end_process(h->pe, gdri_uid_get32(body), text);
}

bool gdri_uid_link_take(struct gdri_uid_link *l, const struct gdri_uid_head *h, unsigned char **body)
{
	bool ok;

	if (h->type == GDRI_UID_ABORT) {
		take_abort(h, *body);
		return true;
	}
	pthread_mutex_lock(&l->lock);
	ok = take_locked(l, h, body);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (ok && h->type == GDRI_UID_GONE && !gdri_uid_get32(*body)) {
		gdri_warn("bootstrap: the connection of PE %u has ended without a farewell: it is dead or "
			  "cut off", h->pe);
		tell_lost(l, (int)h->pe);
	}
	return ok;
}

/* ---- the thread ---- */

/* False: the connection has ended. Waits as long as it lasts: shutdown ends it. */
static bool link_read_all(int fd, unsigned char *p, size_t n)
{
	struct pollfd wait = {fd, POLLIN, 0};
	ssize_t got;

	while (n) {
		got = recv(fd, p, n, 0);
		if (got > 0) {
			p += got;
			n -= (size_t)got;
		} else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
			return false;
		} else {
			poll(&wait, 1, -1);
		}
	}
	return true;
}

/* False: no more. */
static bool read_frame(struct gdri_uid_link *l)
{
	unsigned char head[GDRI_UID_HEAD], *body = NULL;
	struct gdri_uid_head h;
	bool ok;

	if (!link_read_all(l->fd, head, sizeof(head)))
		return false;
	if (!gdri_uid_head_parse(head, false, l->n, &h)) {
		gdri_error("bootstrap: what comes over the connection to the job's hub is not gdr's: another program "
			   "has its port");
		pthread_mutex_lock(&l->lock);
		l->garbled = true;
		pthread_mutex_unlock(&l->lock);
		return false;
	}
	body = malloc(h.len + 1u);
	if (!body)
		gdri_error("bootstrap: no memory for %u bytes from the job's hub: this PE leaves it", h.len);
	ok = body && link_read_all(l->fd, body, h.len) && gdri_uid_link_take(l, &h, &body);
	free(body);
	return ok;
}

static void *reader_main(void *arg)
{
	struct gdri_uid_link *l = arg;
	uint32_t home;
	bool unexpected;

	pthread_setname_np(pthread_self(), "gdr-uid");
	while (read_frame(l))
		;
	pthread_mutex_lock(&l->lock);
	l->ended = true;
	unexpected = l->welcome && !l->leaving;
	home = l->home;
	if (unexpected)
		take_gone(l, home, GDRI_UID_LOST);
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	if (unexpected)
		tell_lost(l, home == GDRI_UID_NOBODY || home == l->pe ? -1 : (int)home);
	return NULL;
}

/* ---- open, send, close ---- */

static void link_destroy(struct gdri_uid_link *l)
{
	if (l->fd >= 0)
		close(l->fd);
	pthread_cond_destroy(&l->changed);
	pthread_mutex_destroy(&l->telling);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->sending);
	free(l->result);
}

int gdri_uid_link_open(struct gdri_uid_link *l, int fd, uint32_t pe, uint32_t n)
{
	int rc;

	memset(l, 0, sizeof(*l));
	l->fd = fd;
	l->pe = pe;
	l->n = n;
	l->home = l->gone = l->unequal = GDRI_UID_NOBODY;
	pthread_mutex_init(&l->sending, NULL);
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->telling, NULL);
	gdri_cond_init(&l->changed);
	rc = gdri_thread_start(&l->reader, reader_main, l);
	if (!rc)
		return 0;
	gdri_error("bootstrap: cannot start a thread: %s", gdri_thread_text(rc));
	link_destroy(l);
	return -GDR_ESYSTEM;
}

int gdri_uid_link_send(struct gdri_uid_link *l, const struct gdri_uid_head *h, const void *body,
		       const struct timespec *deadline)
{
	unsigned char head[GDRI_UID_HEAD];
	int rc;

	gdri_uid_head_write(head, h);
	pthread_mutex_lock(&l->sending);
	rc = l->torn ? -GDR_EPEERLOST : gdri_uid_send(l->fd, head, sizeof(head), deadline);
	if (!rc)
		rc = gdri_uid_send(l->fd, body, h->len, deadline);
	l->torn |= rc != 0;
	pthread_mutex_unlock(&l->sending);
	return rc;
}

/* The hub closes what has said farewell, which ends the reader; a hub that stands still does not. */
void gdri_uid_link_close(struct gdri_uid_link *l, const struct timespec *limit)
{
	struct gdri_uid_head leave = {GDRI_UID_LEAVE, l->pe, 0, 0};
	struct timespec deadline;
	int ms = gdri_limit_ms(limit);

	gdri_deadline_in(&deadline, ms < CLOSE_MS ? ms : CLOSE_MS);
	pthread_mutex_lock(&l->lock);
	l->leaving = true;
	pthread_mutex_unlock(&l->lock);
	gdri_uid_link_send(l, &leave, NULL, &deadline);
	shutdown(l->fd, SHUT_WR);
	pthread_mutex_lock(&l->lock);
	while (!l->ended && pthread_cond_timedwait(&l->changed, &l->lock, &deadline) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&l->lock);
	shutdown(l->fd, SHUT_RDWR);
	pthread_join(l->reader, NULL);
	link_destroy(l);
}
