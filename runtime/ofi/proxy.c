// SPDX-License-Identifier: BSD-3-Clause
/* The thread: looks at the doorbells of its queues and at the provider's completions, in turns, and sleeps where both
 * are quiet. */
#define _GNU_SOURCE /* pthread_setname_np */
#include "runtime/ofi/ofi.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_errno.h>

#include <gdr/impl/arch/arch.h>
#include <gdr/status.h>

#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/thread.h"

#define READ_MOST     32	  /* completions at a time */
#define PROBE_NS      250000000u  /* a PE that is silent so long is probed, */
#define LOOK_NS	      10000000u	  /* which is looked at so often */
#define STOP_NS	      200000000u  /* for what is under way when the job ends */
#define BUSY_NS	      1000000u	  /* without work: goes on looking, */
#define SHORT_NAP_NS  50000u	  /* then sleeps so long, */
#define LONG_AFTER_NS 1000000000u /* and then longer */
#define LONG_NAP_NS   2000000u
#define LONG_NAPS     128u	/* or so many times what the processor spent since the last one, */
#define LONGEST_NAP_NS 20000000u /* but no longer: below 1 % of a core, if a round is shorter than a hundredth of it */
#define DRIVEN_NS     20000u /* so long after a round of a thread that waits the next one is its, too */
#define OWING_NS      2000u  /* so long it may leave replies behind */

/* ---- lost peers ---- */

/* Whether an entry waits for the PE, also one of which nothing has gone out. */
static bool lost_matters(const struct gdri_ofi_proxy *t, int pe)
{
	size_t i;

	for (i = 0; i < t->n_queues; i++)
		if (t->queues[i].qp->peer == pe && t->queues[i].first != t->queues[i].next)
			return true;
	return false;
}

void gdri_ofi_lost(struct gdri_ofi_proxy *t, int pe, const char *why)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint32_t i;

	if (p->lost)
		return;
	p->lost = true;
	/* where this PE stops, the other one left, too; relaxed: says who warns, and pairs with nothing */
	if (lost_matters(t, pe) && !__atomic_load_n(&t->net->stop, __ATOMIC_RELAXED) &&
	    !__atomic_exchange_n(&t->net->warned[pe], true, __ATOMIC_RELAXED))
		gdri_warn("ofi: PE %d cannot be reached by %s: %s", pe, t->net->name, why);
	for (i = 0; i < OFI_XFERS; i++)
		if (t->xfers[i].ctx.peer == pe)
			t->xfers[i].op = NULL;
	gdri_ofi_drop(t, pe);
	gdri_ofi_owe_nothing(t, pe);
	p->under_way = 0;
	for (i = 0; i < t->n_queues; i++)
		if (t->queues[i].qp->peer == pe)
			gdri_ofi_give_up(&t->queues[i], GDRI_NET_LOST);
}

/* Waits end first, after GDR_TIMEOUT, and say who stands still: a PE that goes on after that is none that is lost. */
static void proxy_watch(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint64_t now = t->now;
	char why[96];

	if (p->lost || !p->under_way || now < p->progress + PROBE_NS)
		return;
	if (now > p->progress + 2u * (uint64_t)t->net->opt.timeout_ms * 1000000u) {
		snprintf(why, sizeof(why), "nothing came within %u ms, twice GDR_TIMEOUT",
			 2 * (unsigned int)t->net->opt.timeout_ms);
		gdri_ofi_lost(t, pe, why);
	} else if (now > p->probed + PROBE_NS) {
		p->probed = now;
		gdri_ofi_tell(t, pe, OFI_PROBE);
	}
}

/* Time in which this PE itself stood still counts for nobody. */
static void proxy_look(struct gdri_ofi_proxy *t)
{
	bool slept = t->looked && t->now > t->looked + PROBE_NS;
	int pe;

	if (t->now < t->looked + LOOK_NS)
		return;
	for (pe = 0; pe < t->net->n_pes; pe++) {
		if (slept)
			t->peers[pe].progress += t->now - t->looked;
		proxy_watch(t, pe);
	}
	t->looked = t->now;
}

/* ---- completions of the provider ---- */

/* Who sent it is not known before its token is right. */
static bool proxy_is_head(const struct gdri_ofi_proxy *t, const struct gdri_ofi_head *h, size_t len)
{
	return len >= sizeof(*h) && h->token == t->token && h->pe < t->net->n_pes && h->bytes <= len - sizeof(*h);
}

/* The replies behind a request. Nobody waits for them as the request's target may for it, so they are read by the next
 * round. */
static void proxy_carried(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m)
{
	const struct gdri_ofi_head *h = m->head;
	const struct gdri_ofi_carried *c;
	const uint8_t *at;
	uint32_t left;

	if (!m->used)
		return;
	left = m->used - (uint32_t)sizeof(*h) - h->bytes;
	at = (const uint8_t *)(h + 1) + h->bytes;
	for (; left >= sizeof(*c) && !t->peers[h->pe].lost; at += c->bytes, left -= c->bytes) {
		c = (const void *)at;
		at += sizeof(*c);
		left -= (uint32_t)sizeof(*c);
		if (c->bytes % 8 || c->bytes > left)
			break;
		gdri_ofi_replied(t, h->pe, c->seq, c->n, at, c->bytes);
	}
	m->used = 0;
}

static void proxy_receive(struct gdri_ofi_proxy *t)
{
	struct gdri_ofi_message *m;

	for (m = t->read; m; m = m->next)
		proxy_carried(t, m);
	gdri_ofi_receive(t);
}

static void proxy_received(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m, size_t len)
{
	const struct gdri_ofi_head *h = m->head;
	struct gdri_ofi_peer *p;
	uint32_t slot;

	m->used = 0;
	if (!proxy_is_head(t, h, len)) {
		gdri_ofi_read(t, m);
		return;
	}
	p = &t->peers[h->pe];
	p->progress = t->now;
	slot = h->seq % OFI_WINDOW;
	if (h->kind == OFI_REQUEST)
		m->used = (uint32_t)len;
	if (h->kind == OFI_REQUEST && h->seq - p->due < OFI_WINDOW && !p->held[slot] && !p->lost) {
		p->held[slot] = m;
		gdri_ofi_serve(t, h->pe);
		return;
	}
	if (h->kind == OFI_REPLY && !p->lost)
		gdri_ofi_replied(t, h->pe, h->seq, h->n, (const uint8_t *)(h + 1), h->bytes);
	if (h->kind == OFI_LEAVES)
		gdri_ofi_lost(t, h->pe, "it has left the job");
	gdri_ofi_read(t, m);
}

/* What is behind a request is read at once: the next one may come to its place when the reply has gone. */
static bool proxy_landed(struct gdri_ofi_proxy *t)
{
	struct gdri_ofi_message *m;
	bool any = false;
	uint32_t i = 0;
	size_t len;

	for (; (m = gdri_ofi_landed(t, &i, &len)); any = true) {
		proxy_received(t, m, len);
		proxy_carried(t, m);
	}
	return any;
}

static void proxy_done(struct gdri_ofi_proxy *t, struct gdri_ofi_ctx *c, size_t len)
{
	if (c->what == OFI_RECEIVES)
		proxy_received(t, (struct gdri_ofi_message *)(void *)c, len);
	else if (c->what == OFI_SENDS)
		((struct gdri_ofi_message *)(void *)c)->sent = false;
	else
		gdri_ofi_moved(t, (struct gdri_ofi_xfer *)(void *)c, 0);
}

static bool error_is_access(int err)
{
	return err == FI_EACCES || err == FI_EKEYREJECTED || err == FI_ENOKEY || err == FI_EINVAL ||
	       err == FI_EFAULT || err == FI_EPERM;
}

static void proxy_failed(struct gdri_ofi_proxy *t, const struct fi_cq_err_entry *e)
{
	struct gdri_ofi_ctx *c = e->op_context;
	char text[160] = "", why[240];

	if (!c)
		return;
	fi_cq_strerror(t->fabric.cq, e->prov_errno, e->err_data, text, sizeof(text));
	snprintf(why, sizeof(why), "%s%s%s%s", t->fabric.lib.strerror(e->err), *text ? " (" : "", text,
		 *text ? ")" : "");
	if (c->what == OFI_RECEIVES) {
		if (!__atomic_load_n(&t->net->stop, __ATOMIC_RELAXED) && e->err != FI_ECANCELED)
			gdri_debug("ofi: a message was not received: %s", why);
		gdri_ofi_read(t, (struct gdri_ofi_message *)(void *)c);
		return;
	}
	if (c->what == OFI_MOVES && error_is_access(e->err)) {
		gdri_warn("ofi: PE %d: RMA was refused: %s", c->peer, why);
		gdri_ofi_moved(t, (struct gdri_ofi_xfer *)(void *)c,
			       e->err == FI_EFAULT ? GDRI_NET_LOCAL : GDRI_NET_REMOTE);
		return;
	}
	gdri_ofi_lost(t, c->peer, why);
	proxy_done(t, c, 0);
}

static bool proxy_poll(struct gdri_ofi_proxy *t)
{
	struct fi_cq_msg_entry got[READ_MOST];
	struct fi_cq_err_entry e = {0};
	ssize_t n = fi_cq_read(t->fabric.cq, got, READ_MOST), i;
	bool any = t->landing && proxy_landed(t); /* before a word that the PE leaves, or that it is lost */

	for (i = 0; i < n; i++)
		proxy_done(t, got[i].op_context, got[i].len);
	if (n == -FI_EAVAIL && fi_cq_readerr(t->fabric.cq, &e, 0) > 0)
		proxy_failed(t, &e);
	return any || n > 0 || n == -FI_EAVAIL;
}

/* ---- rounds ---- */

static bool proxy_queues(struct gdri_ofi_proxy *t)
{
	struct gdri_ofi_queue *q;
	bool any = false;
	uint64_t bell;
	size_t i;

	for (i = 0; i < t->n_queues; i++) {
		q = &t->queues[i];
		/* acquire: pairs with fence F2 of device code, the record before the bell */
		bell = __atomic_load_n(q->bell, __ATOMIC_ACQUIRE);
		if (bell != q->rung) {
			q->rung = bell;
			q->end = gdri_net_posted(q->qp);
		}
		if (q->ci != q->end || q->n_held)
			any |= gdri_ofi_run(t, q);
	}
	return any;
}

static void proxy_send_again(struct gdri_ofi_proxy *t, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	uint32_t i;

	for (i = 0; i < OFI_WINDOW && !p->lost; i++) {
		if (p->requests[i].out.ready)
			gdri_ofi_send(t, &p->requests[i].out);
		if (p->replies[i].ready)
			gdri_ofi_send(t, &p->replies[i]);
	}
	if (p->word.ready && !p->lost)
		gdri_ofi_send(t, &p->word);
}

static void proxy_send(struct gdri_ofi_proxy *t, int pe)
{
	if (t->n_unsent)
		proxy_send_again(t, pe);
	if (t->memory.lane)
		gdri_ofi_land(t, pe);
	gdri_ofi_flush(t, pe);
	gdri_ofi_reply(t, pe);
	gdri_ofi_serve(t, pe);
}

/* What was posted meanwhile goes first, and takes the replies along. */
static bool proxy_replies(struct gdri_ofi_proxy *t)
{
	bool any = proxy_queues(t);
	int pe;

	for (pe = 0; pe < t->net->n_pes; pe++) {
		gdri_ofi_flush(t, pe);
		gdri_ofi_reply(t, pe);
	}
	return any;
}

/* What is posted goes before all else. leaves: who makes the round may wait for what a request brought, and answer it:
 * it leaves the replies to its next round, or to the proxy's thread. */
static bool proxy_round(struct gdri_ofi_proxy *t, bool leaves)
{
	bool any;
	int pe;

	__atomic_store_n(&t->now, gdri_now_ns(), __ATOMIC_RELAXED); /* pairs with nothing: gdri_ofi_proxy_watch */
	any = proxy_queues(t);
	if (t->news || t->n_owed || t->n_unsent || t->memory.lane) {
		t->news = false;
		for (pe = 0; pe < t->net->n_pes; pe++)
			proxy_send(t, pe);
	}
	proxy_look(t);
	if (t->read)
		proxy_receive(t);
	any |= proxy_poll(t);
	if (t->n_owed && !leaves)
		any |= proxy_replies(t);
	return any;
}

/* A round looks at all queues, PEs and buffers, and asks the provider: what it costs is the job's and the provider's.
 * *spent: CPU time of this thread when the last long nap began; 0: there was none since it worked. */
static uint64_t proxy_long_nap(uint64_t *spent)
{
	struct timespec cpu;
	uint64_t now, nap = LONG_NAP_NS;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
	now = (uint64_t)cpu.tv_sec * 1000000000u + (uint64_t)cpu.tv_nsec;
	if (*spent && (now - *spent) * LONG_NAPS > nap)
		nap = (now - *spent) * LONG_NAPS;
	*spent = now;
	return nap < LONGEST_NAP_NS ? nap : LONGEST_NAP_NS;
}

/* relaxed, all three of how the threads take turns: hints, which pair with nothing */
static uint64_t proxy_idle(const struct gdri_ofi_proxy *t, uint64_t worked, uint64_t now)
{
	uint64_t driven = __atomic_load_n(&t->driven, __ATOMIC_RELAXED), last = driven > worked ? driven : worked;

	return now > last ? now - last : 0;
}

static bool proxy_is_driven(const struct gdri_ofi_proxy *t, uint64_t now)
{
	return now < __atomic_load_n(&t->driven, __ATOMIC_RELAXED) + DRIVEN_NS;
}

/* Whether a thread that waits makes the rounds, and has not stayed away from replies that it left. Of several proxies
 * it makes one's at a time: none waits for its turn. */
static bool proxy_is_spared(const struct gdri_ofi_proxy *t)
{
	uint64_t now = gdri_now_ns(), owing = __atomic_load_n(&t->owing, __ATOMIC_RELAXED);

	return t->net->n_proxies == 1 && t->watched && proxy_is_driven(t, now) && !(owing && now > owing + OWING_NS);
}

/* While a thread that waits makes the rounds this one stays off its core, if there are too few: not where several were
 * asked for, since only one thread at a time makes them. */
static void proxy_rest(const struct gdri_ofi_proxy *t, uint64_t worked, uint64_t *spent)
{
	uint64_t now = gdri_now_ns(), idle = proxy_idle(t, worked, now);
	bool one = t->net->n_proxies == 1;
	bool stays_off = one && proxy_is_driven(t, now) && !__atomic_load_n(&t->spare, __ATOMIC_RELAXED);
	struct timespec nap = {0, SHORT_NAP_NS};
	uint64_t until = proxy_is_spared(t) ? now + OWING_NS : now;

	if (idle > LONG_AFTER_NS)
		nap.tv_nsec = (long)proxy_long_nap(spent);
	else
		*spent = 0;
	if (!t->watched && (stays_off || idle > BUSY_NS))
		nanosleep(&nap, NULL);
	else
		do
			sched_yield();
		while (gdri_now_ns() < until);
}

/* The proxy's thread, which looks at these on another core, is told only what it does not know. */
static void proxy_tell(uint64_t *what, uint64_t ns)
{
	if (*what != ns)
		__atomic_store_n(what, ns, __ATOMIC_RELAXED);
}

bool gdri_ofi_proxy_drive(struct gdri_ofi_proxy *t, bool spare)
{
	bool any;

	if (pthread_mutex_trylock(&t->engine)) /* pairs with its unlock: the state that the last round left */
		return false;
	if (t->spare != spare)
		__atomic_store_n(&t->spare, spare, __ATOMIC_RELAXED);
	any = proxy_round(t, t->watched && t->net->n_proxies == 1);
	proxy_tell(&t->owing, t->n_owed ? t->now : 0);
	if (t->now > t->driven + DRIVEN_NS / 4)
		__atomic_store_n(&t->driven, t->now, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&t->engine);
	return any;
}

static bool proxy_sends(const struct gdri_ofi_message *m)
{
	return m->ready || m->sent;
}

static bool proxy_has_work(const struct gdri_ofi_proxy *t)
{
	const struct gdri_ofi_peer *p;
	size_t i;
	int pe;

	for (i = 0; i < t->n_queues; i++)
		if (t->queues[i].first != t->queues[i].next || t->queues[i].ci != t->queues[i].end)
			return true;
	for (pe = 0; pe < t->net->n_pes; pe++) {
		p = &t->peers[pe];
		for (i = 0; i < OFI_WINDOW && !p->lost; i++)
			if (proxy_sends(&p->replies[i]) || proxy_sends(&p->word))
				return true;
	}
	return false;
}

/* A round of the proxy's thread, which has the engine, and gives it back. */
static bool proxy_turn(struct gdri_ofi_proxy *t, uint64_t *worked)
{
	bool any = proxy_round(t, false);

	if (any)
		*worked = t->now;
	t->watched = __atomic_load_n(&t->spare, __ATOMIC_RELAXED) && proxy_idle(t, *worked, t->now) <= BUSY_NS;
	__atomic_store_n(&t->owing, 0, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&t->engine);
	return any;
}

static void *proxy_main(void *arg)
{
	struct gdri_ofi_proxy *t = arg;
	uint64_t worked = gdri_now_ns(), spent = 0, end;
	bool any;
	int pe;

	while (!__atomic_load_n(&t->net->stop, __ATOMIC_RELAXED)) { /* joined: needs no more order */
		/* see gdri_ofi_proxy_drive */
		any = !proxy_is_spared(t) && !pthread_mutex_trylock(&t->engine) && proxy_turn(t, &worked);
		if (!any)
			proxy_rest(t, worked, &spent);
	}
	pthread_mutex_lock(&t->engine);
	end = gdri_now_ns() + STOP_NS;
	do
		proxy_round(t, false);
	while (proxy_has_work(t) && gdri_now_ns() < end);
	for (pe = 0; pe < t->net->n_pes; pe++)
		if (pe != t->net->pe && !t->peers[pe].lost)
			gdri_ofi_tell(t, pe, OFI_LEAVES);
	do
		proxy_round(t, false);
	while (proxy_has_work(t) && gdri_now_ns() < end);
	pthread_mutex_unlock(&t->engine);
	return NULL;
}

/* The mask may have changed since it was looked at: only what the user demands has to hold. */
static int proxy_place(struct gdri_ofi_proxy *t)
{
	const struct gdri_ofi_place *p = &t->net->place;
	char name[16] = "gdr-ofi";
	int rc;

	if (t->index)
		snprintf(name, sizeof(name), "gdr-ofi-%d", t->index);
	pthread_setname_np(t->thread, name);
	rc = p->set ? pthread_setaffinity_np(t->thread, sizeof(p->cpus), &p->cpus) : 0;
	if (!rc)
		gdri_info("ofi: the thread that carries entries (%s) is on %s", name, p->text);
	else if (p->demanded)
		return gdri_fail(-GDR_EOPTION, "ofi: the thread that carries entries cannot be on %s: %s", p->text,
				 gdri_errno_text(rc));
	else
		gdri_info("ofi: the thread that carries entries (%s) is not on %s: %s", name, p->text,
			  gdri_errno_text(rc));
	return 0;
}

int gdri_ofi_proxy_start(struct gdri_ofi_proxy *t)
{
	uint32_t i;
	int rc;

	for (i = 0; i < t->n_received; i++)
		gdri_ofi_read(t, &t->received[i]);
	gdri_ofi_receive(t);
	for (i = 0; i < OFI_XFERS; i++) {
		t->xfers[i].ctx.what = OFI_MOVES;
		t->xfers[i].ctx.peer = -1;
		t->xfers[i].next = t->free_xfers;
		t->free_xfers = &t->xfers[i];
	}
	rc = gdri_thread_start(&t->thread, proxy_main, t);
	t->runs = !rc;
	return rc ? gdri_fail(-GDR_ESYSTEM, "ofi: the proxy's thread does not start: %s",
			      gdri_thread_text(rc))
		  : proxy_place(t);
}

/* ---- a provider whose call does not return ---- */

static unsigned int stuck_ms(const struct gdri_ofi_proxy *t)
{
	return 2 * (unsigned int)t->net->opt.timeout_ms;
}

static void stuck_say(struct gdri_ofi_proxy *t)
{
	if (__atomic_exchange_n(&t->seen.said, true, __ATOMIC_RELAXED)) /* says who logs it, and pairs with nothing */
		return;
	gdri_error("ofi: a call of provider %s has not returned for %u ms, twice GDR_TIMEOUT%s: nothing goes on by it; "
		   "waits end at their limits, but not a thread that is in that call: end the job",
		   t->fabric.info->fabric_attr->prov_name, stuck_ms(t),
		   !gdri_ofi_is_shm(t) ? ""
				       : ", as where a process died or stands still that held a lock of shm's "
					 "(GDR_OFI_PROVIDER=tcp, or memory mapped by p2p, has none)");
}

/* Someone begins a round at least every LONGEST_NAP_NS. Time in which this PE itself stood still counts for nothing.
 * All accesses relaxed: hints, which pair with nothing. */
void gdri_ofi_proxy_watch(struct gdri_ofi_proxy *t)
{
	struct gdri_ofi_watched *w = &t->seen;
	uint64_t round = __atomic_load_n(&t->now, __ATOMIC_RELAXED), now = gdri_now_ns();
	bool stuck;

	if (round != w->round)
		w->since = now;
	else if (now > w->looked + PROBE_NS)
		w->since += now - w->looked;
	w->round = round;
	w->looked = now;
	stuck = __atomic_load_n(&t->runs, __ATOMIC_RELAXED) && now > w->since + (uint64_t)stuck_ms(t) * 1000000u;
	__atomic_store_n(&t->stuck, stuck, __ATOMIC_RELAXED);
	if (stuck)
		stuck_say(t);
}

bool gdri_ofi_proxy_stop(struct gdri_ofi_proxy *t)
{
	struct timespec nap = {0, SHORT_NAP_NS};
	uint64_t end;
	int rc;

	if (!t->runs)
		return true;
	end = gdri_deadline_ns(__atomic_load_n(&t->stuck, __ATOMIC_RELAXED) ? 0 : (int)stuck_ms(t));
	/* not pthread_clockjoin_np: ThreadSanitizer does not know that it orders */
	while ((rc = pthread_tryjoin_np(t->thread, NULL)) == EBUSY && gdri_left_ms(end) > 0)
		nanosleep(&nap, NULL);
	if (rc) {
		__atomic_store_n(&t->stuck, true, __ATOMIC_RELAXED);
		stuck_say(t);
		return false;
	}
	__atomic_store_n(&t->runs, false, __ATOMIC_RELAXED);
	gdri_debug("ofi: %llu replies went with requests, %llu writes past a signal that waited",
		   (unsigned long long)t->n_carried, (unsigned long long)t->n_ahead);
	return true;
}
