/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries packets: which way each one goes, and who hears it. Inside the
 * process they go through a queue here; between processes of one host through
 * shared memory (wire_shm.c) or sockets, between hosts through sockets
 * (wire_sock.c, wire_udp.c). Every process owns one slot, and the upper bits of
 * a QPN are its process's slot. */
#include <string.h>

#include "softhca/transport/rc.h"
#include "softhca/wire/wire.h"

enum {
	LOCAL_QUEUE = 512,
	LOCAL_BULK = 128 << 10, /* bytes of one: other queue pairs wait for so much copying */
};

struct local_pkt {
	struct packet p;
	uint32_t sqpn;
	int niov;
	struct iovec iov[PKT_MAX_IOV];
};

static struct local_pkt local[LOCAL_QUEUE];
static unsigned local_head, local_tail;

int wire_start(void)
{
	int ret = wire_sock_start();

	if (ret)
		return ret;
	wire_udp_start();
	faults_wire_ready(wire_slot());
	wire_shm_start();
	return 0;
}

void wire_listen(unsigned device)
{
	for (unsigned i = 0; i < dp_gid_count(device); i++)
		wire_port_use(HCA_GIDS * device + i);
}

void wire_source_gid(const struct wire_dest *from, struct in6_addr *gid)
{
	*gid = from->kind == WIRE_REMOTE ? from->gid : dp_gid(0);
}

bool wire_resolve(const struct in6_addr *dgid, unsigned sgid, uint32_t dqpn, struct wire_dest *d)
{
	uint32_t to = dqpn >> SLOT_SHIFT;
	struct in6_addr source = dp_gid(sgid);

	memset(d, 0, sizeof(*d));
	if (IN6_IS_ADDR_UNSPECIFIED(dgid) || address_is_own(dgid)) {
		/* No GID at all (link layer InfiniBand without GRH): this host. */
		d->kind = to == wire_slot() ? WIRE_LOCAL : WIRE_HOST;
		d->addr = wire_slot_addr(to);
		d->slot = to;
		if (d->kind == WIRE_HOST)
			wire_shm_connect(to);
	} else if (address_is_v4(dgid) == address_is_v4(&source) && wire_port_use(sgid)) {
		d->kind = WIRE_REMOTE;
		d->sgid = (uint8_t)sgid;
		d->gid = *dgid;
	}
	return d->kind != WIRE_NONE;
}

/* ---- sending ---- */

static void send_local(uint32_t sqpn, const struct packet *p, const struct iovec *iov, int niov)
{
	struct local_pkt *l;

	if (local_tail == LOCAL_QUEUE) {
		STAT_INC(pkts_dropped);
		return;
	}
	l = &local[local_tail++];
	l->p = *p;
	l->sqpn = sqpn;
	l->niov = niov;
	for (int i = 0; i < niov; i++)
		l->iov[i] = iov[i];
}

void wire_send_now(const struct wire_dest *d, uint32_t sqpn, struct packet *p,
		   const struct iovec *iov, int niov)
{
	STAT_ADD(pkts_tx, 1 + p->more);
	switch (d->kind) {
	case WIRE_LOCAL:
		send_local(sqpn, p, iov, niov);
		break;
	case WIRE_HOST:
		if (wire_shm_send(d->slot, p, iov, niov))
			break;
		/* fall through */
	case WIRE_REMOTE:
		if (p->more) /* no datagram is so long */
			STAT_INC(pkts_dropped);
		else
			wire_udp_send(d, p, iov, niov);
		break;
	case WIRE_NONE:
		STAT_INC(pkts_dropped);
		break;
	}
}

/* What the fault schedule makes of a packet. */
static void send_faulty(struct hca_qp *qp, const struct wire_dest *d, struct packet *p,
			const struct iovec *iov, int niov)
{
	struct fault_fate fate;

	faults_tx(qp, dp_now(), &fate);
	if (fate.drop)
		STAT_INC(pkts_dropped);
	else if (fate.corrupt)
		wire_delay_corrupt(d, p, iov, niov, fate.bit);
	for (int i = 0; i < (fate.drop || fate.corrupt ? 0 : 1 + fate.dup); i++) {
		if (fate.until)
			wire_delay(d, qp->qpn, p, iov, niov, &fate);
		else
			wire_send_now(d, qp->qpn, p, iov, niov);
	}
	wire_delay_overtaken(qp->qpn);
}

void wire_send_to(struct hca_qp *qp, const struct wire_dest *d, struct packet *p,
		  const struct iovec *iov, int niov)
{
	if (faults_on)
		send_faulty(qp, d, p, iov, niov);
	else
		wire_send_now(d, qp->qpn, p, iov, niov);
}

void wire_send(struct hca_qp *qp, struct packet *p, const struct iovec *iov, int niov)
{
	wire_send_to(qp, &qp->rc->dest, p, iov, niov);
}

void wire_flush(void)
{
	wire_shm_flush();
	wire_udp_flush();
}

unsigned wire_bulk(const struct wire_dest *d, uint32_t mtu)
{
	if (faults_on || !mtu)
		return 1;
	if (d->kind == WIRE_LOCAL)
		return LOCAL_BULK / mtu;
	return d->kind == WIRE_HOST ? wire_shm_bulk(d->slot, mtu) : 1;
}

bool wire_in_place(const struct hca_qp *qp, void *at, size_t n)
{
	const struct iovec v = { at, n };

	return qp->type == HCA_QP_RC && qp->rc->dest.kind == WIRE_HOST && !faults_on &&
	       wire_shm_in_place(qp->rc->dest.slot, &v);
}

unsigned wire_room_to(const struct wire_dest *d, uint32_t mtu, unsigned want)
{
	return d->kind == WIRE_HOST ? wire_shm_room(d->slot, mtu, want) : want;
}

unsigned wire_room(const struct hca_qp *qp, unsigned want)
{
	unsigned bulk = qp->type == HCA_QP_RC ? 2 * wire_bulk(&qp->rc->dest, qp->mtu) : 0;

	want = want > bulk ? want : bulk;
	return wire_room_to(&qp->rc->dest, qp->mtu, want);
}

bool wire_unread(const struct wire_dest *d)
{
	int shm = d->kind == WIRE_HOST ? wire_shm_unread(d->slot) : 0;

	return shm < 0 ? wire_queue_unread(d->slot) : shm > 0;
}

/* ---- receiving ---- */

/* A connection hears only its peer: requests of a process that had this slot's
 * number in mind, or answers to who was here before, are dropped. Packets do
 * not carry the sender's QPN; its address is what can be compared, and inside
 * the process the QPN. A DC target tells its requesters apart itself. */
static bool from_peer(const struct hca_qp *qp, const struct wire_dest *from)
{
	const struct wire_dest *d = &qp->rc->dest;

	if (qp->type == HCA_QP_UD || qp->type == HCA_QP_DCT)
		return true;
	if (d->kind != from->kind)
		return false;
	if (d->kind == WIRE_REMOTE)
		return d->sgid == from->sgid && IN6_ARE_ADDR_EQUAL(&d->gid, &from->gid);
	return (d->kind == WIRE_LOCAL ? qp->dest_qpn : d->addr) == from->addr;
}

struct hca_qp *wire_own_peer(const struct hca_qp *qp)
{
	struct hca_qp *peer;

	if (qp->rc->dest.kind != WIRE_LOCAL || faults_on)
		return NULL;
	peer = engine_find_qp(qp->dest_qpn);
	/* from_peer() of this QP, if that one is connected */
	return peer && peer->rc && peer->rc->dest.kind == WIRE_LOCAL && peer->dest_qpn == qp->qpn ?
		       peer : NULL;
}

void wire_deliver(const struct wire_dest *from, const struct packet *p, const struct iovec *iov,
		  int niov)
{
	struct hca_qp *qp = engine_find_qp(p->dqpn);

	STAT_ADD(pkts_rx, 1 + p->more);
	if (!qp || !qp->rc || !from_peer(qp, from) ||
	    (faults_on && faults_rx_drop(qp, dp_now()))) {
		STAT_INC(pkts_dropped);
		return;
	}
	rc_receive(qp, from, p, iov, niov);
}

unsigned wire_drain_local(void)
{
	unsigned n = 0;

	/* Receiving never sends (answers wait for rc_run), so this ends. */
	for (; local_head != local_tail; local_head++, n++) {
		struct local_pkt *l = &local[local_head];

		const struct wire_dest from = { .kind = WIRE_LOCAL, .addr = l->sqpn };

		wire_deliver(&from, &l->p, l->iov, l->niov);
	}
	local_head = local_tail = 0;
	return n;
}

unsigned wire_receive(void)
{
	wire_shm_events();
	return wire_shm_receive();
}
