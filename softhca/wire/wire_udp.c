/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in UDP datagrams, in batches, with their ICRC.
 *
 * Other hosts send to the port's address, UDP port 4791. A process that may
 * open raw sockets picks its own slot's datagrams there (wire_raw.c). Where it
 * may not, all processes of a host bind that port together, and whoever
 * receives a datagram for another slot hands it on over loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "softhca/memory/guest.h"
#include "softhca/wire/wire.h"

enum {
	TX_BATCH = 64,
	RX_BATCH = 32,
	RX_BUF = 4352,
	/* Between processes of one host, ahead of a packet that is handed on: an
	 * opcode that no packet has, the GID that it came to, two zero
	 * bytes, the sender's GID. */
	FORWARD_MARK = 0xc5,
	FORWARD_LEN = 20,
	UDP_LEN = 8,
};

struct tx {
	union wire_sockaddr to;
	struct iovec iov[2];
	uint8_t udp[UDP_LEN]; /* where the header is ours to write */
	uint8_t bytes[PKT_MAX]; /* BTH to ICRC */
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
};

struct tx_queue {
	int fd; /* of those queued */
	unsigned n;
	struct mmsghdr msg[TX_BATCH];
	struct tx tx[TX_BATCH];
};

static struct tx_queue to_host, to_port;
static uint8_t rx_buf[RX_BATCH][RX_BUF];
static union wire_sockaddr rx_from[RX_BATCH];
static struct iovec rx_iov[RX_BATCH];
static struct mmsghdr rx_msg[RX_BATCH];
static _Alignas(struct cmsghdr) uint8_t rx_control[RX_BATCH][CMSG_SPACE(sizeof(int))]; /* type of service */

void wire_udp_start(void)
{
	for (int i = 0; i < RX_BATCH; i++) {
		rx_iov[i].iov_base = rx_buf[i];
		rx_iov[i].iov_len = RX_BUF;
		rx_msg[i].msg_hdr.msg_iov = &rx_iov[i];
		rx_msg[i].msg_hdr.msg_iovlen = 1;
		rx_msg[i].msg_hdr.msg_name = &rx_from[i];
		rx_msg[i].msg_hdr.msg_control = rx_control[i];
	}
}

/* ---- sending ---- */

/* Puts the ICRC behind n bytes. */
static void append_icrc(const struct wire_dest *d, uint16_t sport, uint8_t *bytes, size_t n)
{
	struct packet_addr a = { .sport = htons(sport), .dport = htons(ROCE_PORT) };
	const struct in6_addr *source = &wire_ports[d->sgid].addr;
	struct iovec iov = { .iov_base = bytes, .iov_len = n };
	uint32_t crc;

	if (d->kind == WIRE_HOST) {
		a.saddr = wire_host.addr;
		a.daddr = d->addr;
	} else if (address_is_v4(&d->gid)) {
		a.saddr = address_v4(source);
		a.daddr = address_v4(&d->gid);
	} else {
		a.saddr6 = source;
		a.daddr6 = &d->gid;
	}
	crc = htole32(packet_icrc(&a, &iov, 1));
	memcpy(bytes + n, &crc, sizeof(crc));
}

/* A raw socket wants no port in the address. */
static socklen_t address_of(const struct wire_dest *d, bool raw, union wire_sockaddr *a)
{
	if (d->kind == WIRE_REMOTE)
		return wire_sockaddr(&d->gid, raw ? 0 : ROCE_PORT, a);
	a->v4.sin_family = AF_INET;
	a->v4.sin_port = htons(ROCE_PORT);
	a->v4.sin_addr.s_addr = d->addr;
	return sizeof(a->v4);
}

/* Other hosts are sent to by the raw socket where there is one: it alone lets
 * the source port be chosen. */
static int socket_of(const struct wire_dest *d, bool *raw)
{
	const struct wire_port *p = &wire_ports[d->sgid];

	*raw = d->kind == WIRE_REMOTE && p->raw >= 0;
	return d->kind == WIRE_HOST ? wire_host.fd : *raw ? p->raw : p->fd;
}

static void udp_flush(struct tx_queue *q)
{
	unsigned done = 0;

	while (done < q->n) {
		int r = sendmmsg(q->fd, q->msg + done, q->n - done, 0);

		if (r > 0) {
			done += (unsigned)r;
			continue;
		}
		if (r < 0 && errno == EINTR)
			continue;
		/* Buffer full, no route, peer unreachable: lost, as on a wire. */
		STAT_INC(pkts_dropped);
		done++;
	}
	q->n = 0;
}

void wire_udp_flush(void)
{
	if (to_host.n)
		udp_flush(&to_host);
	if (to_port.n)
		udp_flush(&to_port);
}

/* Type of service or traffic class, for this datagram alone. */
static void set_tos(struct msghdr *m, struct tx *t, bool v4, int tos)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)t->control;

	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(tos)),
			       .cmsg_level = v4 ? IPPROTO_IP : IPPROTO_IPV6,
			       .cmsg_type = v4 ? IP_TOS : IPV6_TCLASS };
	memcpy(CMSG_DATA(c), &tos, sizeof(tos));
	m->msg_control = c;
	m->msg_controllen = sizeof(t->control);
}

/* The header in front of a datagram that leaves by the raw socket. Checksum 0
 * is none: the ICRC covers more. */
static void set_udp(struct tx *t, uint16_t sport)
{
	put_be16(t->udp, sport);
	put_be16(t->udp + 2, ROCE_PORT);
	put_be16(t->udp + 4, (uint16_t)(UDP_LEN + t->iov[1].iov_len));
	put_be16(t->udp + 6, 0);
	t->iov[0].iov_base = t->udp;
	t->iov[0].iov_len = UDP_LEN;
}

void wire_udp_send(const struct wire_dest *d, struct packet *p, const struct iovec *iov, int niov)
{
	struct tx_queue *q = d->kind == WIRE_HOST ? &to_host : &to_port;
	bool raw;
	int fd = socket_of(d, &raw);
	uint16_t sport = raw && d->sport ? d->sport : ROCE_PORT;
	struct tx *t;
	struct msghdr *m;
	size_t n;

	if (q->n == TX_BATCH || (q->n && q->fd != fd))
		udp_flush(q);
	q->fd = fd;
	t = &q->tx[q->n];
	m = &q->msg[q->n++].msg_hdr;
	/* A copy: the program may write to its memory at any time, and the ICRC
	 * is that of the bytes sent. */
	n = packet_encode(p, t->bytes);
	n += guest_gather(t->bytes + n, iov, niov);
	memset(t->bytes + n, 0, p->pad);
	n += p->pad;
	append_icrc(d, sport, t->bytes, n);
	t->iov[1].iov_base = t->bytes;
	t->iov[1].iov_len = n + PKT_ICRC_LEN;
	memset(m, 0, sizeof(*m));
	m->msg_name = &t->to;
	m->msg_namelen = address_of(d, raw, &t->to);
	m->msg_iov = t->iov + !raw;
	m->msg_iovlen = 1 + raw;
	if (raw)
		set_udp(t, sport);
	if (d->kind == WIRE_REMOTE && d->tclass)
		set_tos(m, t, address_is_v4(&d->gid), d->tclass);
}

void wire_udp_corrupt(const struct wire_dest *d, uint8_t *bytes, size_t n, uint32_t bit)
{
	/* Inside the process no packet is bytes; to lose it there, it goes out. */
	struct wire_dest to = *d;
	union wire_sockaddr a;
	socklen_t len;
	int fd;

	if (to.kind == WIRE_LOCAL)
		to.kind = WIRE_HOST;
	fd = to.kind == WIRE_HOST ? wire_host.fd : wire_ports[to.sgid].fd;
	len = address_of(&to, false, &a);
	append_icrc(&to, ROCE_PORT, bytes, n - PKT_ICRC_LEN);
	bit %= (uint32_t)n * 8;
	/* Byte 4 changes on its way (congestion marks); the ICRC leaves it out. */
	if (bit / 8 == 4)
		bit += 8;
	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	STAT_INC(pkts_tx);
	if (sendto(fd, bytes, n, 0, &a.any, len) < 0)
		STAT_INC(pkts_dropped);
}

/* ---- receiving ---- */

static bool icrc_good(const struct packet_addr *a, uint8_t *buf, size_t n, bool id_known)
{
	struct iovec iov = { .iov_base = buf, .iov_len = n - PKT_ICRC_LEN };
	uint32_t crc;

	memcpy(&crc, buf + n - PKT_ICRC_LEN, sizeof(crc));
	crc = le32toh(crc) ^ packet_icrc(a, &iov, 1);
	/* Other hosts may number their IP packets, which no UDP socket shows. */
	return !crc || (!id_known && packet_icrc_explained_by_id(crc, n));
}

/* For another process of this host, which alone sees its loopback address. The
 * header says who sent it, and to which of our GIDs. */
static void udp_forward(uint8_t *buf, size_t n, uint32_t to_slot, const struct wire_dest *from)
{
	const struct wire_dest to = { .kind = WIRE_HOST, .addr = wire_slot_addr(to_slot) };
	uint8_t hdr[FORWARD_LEN] = { FORWARD_MARK, from->sgid };
	struct iovec iov[2] = { { hdr, sizeof(hdr) }, { buf, n } };
	union wire_sockaddr a;
	struct msghdr m = { .msg_name = &a, .msg_namelen = address_of(&to, false, &a), .msg_iov = iov,
			    .msg_iovlen = 2 };

	memcpy(hdr + 4, &from->gid, 16);
	append_icrc(&to, ROCE_PORT, buf, n - PKT_ICRC_LEN);
	if (sendmsg(wire_host.fd, &m, 0) == (ssize_t)(n + sizeof(hdr)))
		STAT_INC(pkts_forwarded);
	else
		STAT_INC(pkts_dropped);
}

enum { ECN_MASK = 3, ECN_CE = 3 }; /* RFC 3168: congestion experienced */

/* IPv4 gives a byte, IPv6 an int. */
static uint8_t tos_of(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int tclass = 0;

	if (c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS)
		return *CMSG_DATA(c);
	if (c && c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)
		memcpy(&tclass, CMSG_DATA(c), sizeof(tclass));
	return (uint8_t)tclass;
}

/* exact: all that the ICRC covers is known. */
static void udp_handle(struct wire_dest from, const struct packet_addr *a, uint8_t *buf, size_t n,
		       bool exact)
{
	bool shared = from.kind == WIRE_REMOTE && wire_ports[from.sgid].raw < 0;
	struct packet p;
	struct iovec iov;
	int off;

	if (from.kind == WIRE_HOST && n > FORWARD_LEN && buf[0] == FORWARD_MARK) {
		from.kind = WIRE_REMOTE;
		from.sgid = buf[1] % HCA_PORTS;
		memcpy(&from.gid, buf + 4, 16);
		buf += FORWARD_LEN;
		n -= FORWARD_LEN;
	}
	if (n < PKT_BTH_LEN + PKT_ICRC_LEN) {
		STAT_INC(pkts_dropped);
		return;
	}
	/* First of all: no field of a damaged packet is believed. */
	if (!icrc_good(a, buf, n, exact)) {
		STAT_INC(icrc_errors);
		return;
	}
	off = packet_decode(buf, n, &p);
	if (off < 0) {
		STAT_INC(pkts_dropped);
		return;
	}
	if (p.dqpn >> SLOT_SHIFT != wire_slot()) {
		if (shared)
			udp_forward(buf, n, p.dqpn >> SLOT_SHIFT, &from);
		else
			STAT_INC(pkts_dropped);
		return;
	}
	if ((from.tclass & ECN_MASK) == ECN_CE)
		STAT_INC(ecn_marked);
	iov.iov_base = buf + off;
	iov.iov_len = p.len;
	wire_deliver(&from, &p, &iov, p.len ? 1 : 0);
}

static void from_host(unsigned i, size_t n)
{
	const struct packet_addr a = { .saddr = rx_from[i].v4.sin_addr.s_addr,
				       .daddr = wire_host.addr,
				       .sport = rx_from[i].v4.sin_port,
				       .dport = htons(ROCE_PORT) };
	const struct wire_dest from = { .kind = WIRE_HOST,
					.addr = a.saddr,
					.tclass = tos_of(&rx_msg[i].msg_hdr),
					.slot = wire_addr_slot(a.saddr) };

	udp_handle(from, &a, rx_buf[i], n, true);
}

/* A raw socket gives the UDP header too, and for IPv4 the one before it. */
static void from_port(unsigned i, size_t n, unsigned sgid)
{
	const struct wire_port *port = &wire_ports[sgid];
	struct wire_dest from = { .kind = WIRE_REMOTE,
				  .tclass = tos_of(&rx_msg[i].msg_hdr),
				  .sgid = (uint8_t)sgid };
	struct packet_addr a = { .dport = htons(ROCE_PORT) };
	bool v4 = address_is_v4(&port->addr), ok = true;
	size_t off = 0;

	if (v4) {
		a.saddr = rx_from[i].v4.sin_addr.s_addr;
		a.daddr = address_v4(&port->addr);
		a.sport = rx_from[i].v4.sin_port;
		from.gid = port->addr;
		memcpy(&from.gid.s6_addr[12], &a.saddr, 4);
	} else {
		from.gid = rx_from[i].v6.sin6_addr;
		a.sport = rx_from[i].v6.sin6_port;
		a.saddr6 = &from.gid;
		a.daddr6 = &port->addr;
	}
	if (port->raw >= 0 && v4 && n > 1)
		from.tclass = rx_buf[i][1];
	if (port->raw >= 0)
		ok = v4 ? wire_raw_parse(rx_buf[i], n, &a, &off, &n)
			: wire_raw_parse_udp(rx_buf[i], n, &a, &off, &n);
	if (ok)
		udp_handle(from, &a, rx_buf[i] + off, n, !v4 || port->raw >= 0);
	else
		STAT_INC(pkts_dropped);
}

/* sgid: of a port, HCA_PORTS: this host. */
static unsigned receive_from(int fd, unsigned sgid)
{
	int n;

	for (int i = 0; i < RX_BATCH; i++) {
		rx_msg[i].msg_hdr.msg_namelen = sizeof(rx_from[i]);
		rx_msg[i].msg_hdr.msg_controllen = sizeof(rx_control[i]);
	}
	n = recvmmsg(fd, rx_msg, RX_BATCH, 0, NULL);
	for (int i = 0; i < n; i++) {
		if (rx_msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			STAT_INC(pkts_dropped);
		else if (sgid == HCA_PORTS)
			from_host((unsigned)i, rx_msg[i].msg_len);
		else
			from_port((unsigned)i, rx_msg[i].msg_len, sgid);
	}
	return n > 0 ? (unsigned)n : 0;
}

unsigned wire_receive_sockets(void)
{
	unsigned n = receive_from(wire_host.fd, HCA_PORTS);

	for (unsigned i = 0; i < wire_ports_end(); i++) {
		const struct wire_port *p = &wire_ports[i];

		if (wire_port_in_use(p))
			n += receive_from(p->raw >= 0 ? p->raw : p->fd, i);
	}
	return n;
}
