/* SPDX-License-Identifier: BSD-3-Clause */
/* The queue that stands in for wire.c. */
#include "fakewire.h"

#include <stdlib.h>
#include <string.h>

#include "softhca/transport/rc.h"

enum { QUEUE = 8192, ROUNDS = 100000 };

struct entry {
	uint64_t due;
	uint8_t *bytes; /* exactly n of them, so that a sanitizer sees overruns */
	size_t n;
};

struct fake_fate (*fake_policy)(unsigned n, const struct packet *p);
bool fake_unread;
static struct entry queue[QUEUE];
static unsigned n_queue, n_sent;

static void enqueue(const uint8_t *bytes, size_t n, uint64_t due)
{
	unsigned i = n_queue;

	if (n_queue == QUEUE)
		return; /* lost, as on a wire */
	for (; i > 0 && queue[i - 1].due > due; i--)
		queue[i] = queue[i - 1];
	queue[i] = (struct entry){ .due = due, .bytes = malloc(n), .n = n };
	memcpy(queue[i].bytes, bytes, n);
	n_queue++;
}

void fake_clear(void)
{
	while (n_queue)
		free(queue[--n_queue].bytes);
	n_sent = 0;
}

unsigned fake_sent(void)
{
	return n_sent;
}

void fake_inject(const uint8_t *bytes, size_t n)
{
	struct hca_qp *qp;
	struct packet p;
	struct iovec iov;
	const struct wire_dest from = { .kind = WIRE_LOCAL };
	int off = packet_decode(bytes, n, &p);

	if (off < 0)
		return;
	qp = engine_find_qp(p.dqpn);
	iov.iov_base = (uint8_t *)(uintptr_t)bytes + off;
	iov.iov_len = p.len;
	if (qp && qp->rc)
		rc_receive(qp, &from, &p, &iov, p.len ? 1 : 0);
}

bool fake_settle(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		/* As the engine's thread before it sleeps. */
		if (!engine_round() && !n_queue && !doorbell_sweep_all())
			return true;
	return false;
}

/* ---- what wire.c provides ---- */

uint32_t dp_first_qpn(void)
{
	return 1 << 14;
}

uint32_t dp_qpn_count(void)
{
	return 1 << 14;
}

int wire_start(void)
{
	return 0;
}

void wire_listen(unsigned device)
{
	(void)device;
}

void wire_source_gid(const struct wire_dest *from, struct in6_addr *gid)
{
	(void)from;
	*gid = dp_gid(0);
}

bool wire_resolve(const struct in6_addr *dgid, unsigned sgid, uint32_t dqpn, struct wire_dest *d)
{
	(void)dgid;
	(void)sgid;
	(void)dqpn;
	d->kind = WIRE_LOCAL;
	return true;
}

void wire_send_to(struct hca_qp *qp, const struct wire_dest *d, struct packet *p,
		  const struct iovec *iov, int niov)
{
	uint64_t due = (uint64_t)n_sent << 1;
	struct fake_fate fate = { FAKE_PASS, 0 };
	uint8_t bytes[PKT_MAX] = { 0 };
	size_t n = packet_encode(p, bytes);

	(void)qp;
	(void)d;
	for (int i = 0; i < niov; i++) {
		memcpy(bytes + n, iov[i].iov_base, iov[i].iov_len);
		n += iov[i].iov_len;
	}
	memset(bytes + n, 0, (size_t)p->pad + PKT_ICRC_LEN);
	n += (size_t)p->pad + PKT_ICRC_LEN;
	if (fake_policy)
		fate = fake_policy(n_sent, p);
	n_sent++;
	if (fate.kind == FAKE_PASS || fate.kind == FAKE_DUP)
		enqueue(bytes, n, due);
	if (fate.kind == FAKE_LATE || fate.kind == FAKE_DUP)
		enqueue(bytes, n, due + 2 * fate.by + 1);
}

void wire_send(struct hca_qp *qp, struct packet *p, const struct iovec *iov, int niov)
{
	wire_send_to(qp, &qp->rc->dest, p, iov, niov);
}

void wire_flush(void)
{
}

unsigned wire_drain_local(void)
{
	return 0;
}

struct hca_qp *wire_own_peer(const struct hca_qp *qp)
{
	(void)qp;
	return NULL; /* tests look at packets */
}

unsigned wire_bulk(const struct wire_dest *d, uint32_t mtu)
{
	(void)mtu;
	(void)d;
	return 1;
}

bool wire_in_place(const struct hca_qp *qp, void *at, size_t n)
{
	(void)qp;
	(void)at;
	(void)n;
	return false;
}

unsigned wire_room(const struct hca_qp *qp, unsigned want)
{
	(void)qp;
	return want;
}

unsigned wire_room_to(const struct wire_dest *d, uint32_t mtu, unsigned want)
{
	(void)d;
	(void)mtu;
	return want;
}

bool wire_unread(const struct wire_dest *d)
{
	(void)d;
	return fake_unread;
}

unsigned wire_receive_sockets(void)
{
	return 0;
}

unsigned wire_receive(void)
{
	struct entry e;

	if (!n_queue)
		return 0;
	e = queue[0];
	memmove(queue, queue + 1, --n_queue * sizeof(*queue));
	fake_inject(e.bytes, e.n);
	free(e.bytes);
	return 1;
}

void wire_release_held(void)
{
}

bool wire_sleep_begin(void)
{
	return false;
}

bool wire_sleep(uint64_t ns)
{
	(void)ns;
	return true;
}

void wire_sleep_end(void)
{
}

struct in6_addr dp_gid(unsigned index)
{
	struct in6_addr gid = { 0 };

	(void)index;
	return gid;
}
