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

#include "softhca/guest.h"
#include "softhca/wire.h"

enum {
	TX_BATCH = 64,
	RX_BATCH = 32,
	RX_BUF = 4352,
	/* Between processes of one host, ahead of a packet that is handed on: an
	 * opcode that no packet has, three zero bytes, the sender's address. */
	FORWARD_MARK = 0xc5,
	FORWARD_LEN = 8,
	UDP_LEN = 8,
};

struct tx {
	struct sockaddr_in to;
	struct iovec iov[2];
	uint8_t udp[UDP_LEN]; /* where the header is ours to write */
	uint8_t bytes[PKT_MAX]; /* BTH to ICRC */
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
};

struct tx_queue {
	unsigned n;
	struct mmsghdr msg[TX_BATCH];
	struct tx tx[TX_BATCH];
};

static struct tx_queue to_host, to_port;
static uint8_t rx_buf[RX_BATCH][RX_BUF];
static struct sockaddr_in rx_from[RX_BATCH];
static struct iovec rx_iov[RX_BATCH];
static struct mmsghdr rx_msg[RX_BATCH];
static _Alignas(struct cmsghdr) uint8_t rx_control[RX_BATCH][CMSG_SPACE(sizeof(int))]; /* type of service */

void wire_udp_start(void)
{
	const int one = 1;

	for (int i = 0; i < RX_BATCH; i++) {
		rx_iov[i].iov_base = rx_buf[i];
		rx_iov[i].iov_len = RX_BUF;
		rx_msg[i].msg_hdr.msg_iov = &rx_iov[i];
		rx_msg[i].msg_hdr.msg_iovlen = 1;
		rx_msg[i].msg_hdr.msg_name = &rx_from[i];
		rx_msg[i].msg_hdr.msg_control = rx_control[i];
	}
	if (wire_port.fd >= 0)
		setsockopt(wire_port.fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one));
}

/* ---- sending ---- */

/* Puts the ICRC behind n bytes. */
static void append_icrc(const struct wire_sock *s, uint32_t to, uint16_t sport, uint8_t *bytes,
			size_t n)
{
	struct packet_addr a = { .saddr = s->addr, .daddr = to, .sport = htons(sport),
				 .dport = htons(ROCE_PORT) };
	struct iovec iov = { .iov_base = bytes, .iov_len = n };
	uint32_t crc = htole32(packet_icrc(&a, &iov, 1));

	memcpy(bytes + n, &crc, sizeof(crc));
}

static void flush(int fd, struct tx_queue *q)
{
	unsigned done = 0;

	while (done < q->n) {
		int r = sendmmsg(fd, q->msg + done, q->n - done, 0);

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

/* Other hosts are sent to by the raw socket where there is one: it alone lets
 * the source port be chosen. */
static int port_fd(void)
{
	return wire_raw_fd >= 0 ? wire_raw_fd : wire_port.fd;
}

void wire_udp_flush(void)
{
	if (to_host.n)
		flush(wire_host.fd, &to_host);
	if (to_port.n)
		flush(port_fd(), &to_port);
}

/* Type of service, for this datagram alone. */
static void set_tos(struct msghdr *m, struct tx *t, int tos)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)t->control;

	*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(tos)), .cmsg_level = IPPROTO_IP,
			       .cmsg_type = IP_TOS };
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
	bool host = d->kind == WIRE_HOST, raw = !host && wire_raw_fd >= 0;
	uint16_t sport = raw && d->sport ? d->sport : ROCE_PORT;
	struct tx_queue *q = host ? &to_host : &to_port;
	struct tx *t;
	struct msghdr *m;
	size_t n;

	if (q->n == TX_BATCH)
		flush(host ? wire_host.fd : port_fd(), q);
	t = &q->tx[q->n];
	m = &q->msg[q->n++].msg_hdr;
	t->to.sin_family = AF_INET;
	t->to.sin_port = htons(ROCE_PORT);
	t->to.sin_addr.s_addr = d->addr;
	/* A copy: the program may write to its memory at any time, and the ICRC
	 * is that of the bytes sent. */
	n = packet_encode(p, t->bytes);
	n += guest_gather(t->bytes + n, iov, niov);
	memset(t->bytes + n, 0, p->pad);
	n += p->pad;
	append_icrc(host ? &wire_host : &wire_port, d->addr, sport, t->bytes, n);
	t->iov[1].iov_base = t->bytes;
	t->iov[1].iov_len = n + PKT_ICRC_LEN;
	memset(m, 0, sizeof(*m));
	m->msg_name = &t->to;
	m->msg_namelen = sizeof(t->to);
	m->msg_iov = t->iov + !raw;
	m->msg_iovlen = 1 + raw;
	if (raw)
		set_udp(t, sport);
	if (!host && d->tclass)
		set_tos(m, t, d->tclass);
}

void wire_udp_corrupt(enum wire_kind kind, uint32_t to, uint8_t *bytes, size_t n, uint32_t bit)
{
	const struct wire_sock *s = kind == WIRE_REMOTE ? &wire_port : &wire_host;
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(ROCE_PORT),
				 .sin_addr.s_addr = to };

	append_icrc(s, to, ROCE_PORT, bytes, n - PKT_ICRC_LEN);
	bit %= (uint32_t)n * 8;
	/* Byte 4 changes on its way (congestion marks); the ICRC leaves it out. */
	if (bit / 8 == 4)
		bit += 8;
	bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	STAT_INC(pkts_tx);
	if (sendto(s->fd, bytes, n, 0, (struct sockaddr *)&a, sizeof(a)) < 0)
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
 * header says who sent it. */
static void forward(uint8_t *buf, size_t n, uint32_t to_slot, uint32_t from)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(ROCE_PORT),
				  .sin_addr.s_addr = wire_slot_addr(to_slot) };
	uint8_t hdr[FORWARD_LEN] = { FORWARD_MARK };
	struct iovec iov[2] = { { hdr, sizeof(hdr) }, { buf, n } };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = iov,
			    .msg_iovlen = 2 };

	memcpy(hdr + 4, &from, 4);
	append_icrc(&wire_host, to.sin_addr.s_addr, ROCE_PORT, buf, n - PKT_ICRC_LEN);
	if (sendmsg(wire_host.fd, &m, 0) == (ssize_t)(n + sizeof(hdr)))
		STAT_INC(pkts_forwarded);
	else
		STAT_INC(pkts_dropped);
}

enum { ECN_MASK = 3, ECN_CE = 3 }; /* RFC 3168: congestion experienced */

static uint8_t tos_of(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);

	return c && c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS ? *CMSG_DATA(c) : 0;
}

enum source { FROM_HOST, FROM_PORT, FROM_RAW };

static void handle(enum source source, uint8_t tos, const struct packet_addr *a, uint8_t *buf,
		   size_t n)
{
	struct wire_dest from = { .kind = source == FROM_HOST ? WIRE_HOST : WIRE_REMOTE,
				  .addr = a->saddr,
				  .tclass = tos,
				  .slot = source == FROM_HOST ? wire_addr_slot(a->saddr) : 0 };
	struct packet p;
	struct iovec iov;
	int off;

	if (source == FROM_HOST && n > FORWARD_LEN && buf[0] == FORWARD_MARK) {
		from.kind = WIRE_REMOTE;
		memcpy(&from.addr, buf + 4, 4);
		buf += FORWARD_LEN;
		n -= FORWARD_LEN;
	}
	if (n < PKT_BTH_LEN + PKT_ICRC_LEN) {
		STAT_INC(pkts_dropped);
		return;
	}
	/* First of all: no field of a damaged packet is believed. */
	if (!icrc_good(a, buf, n, source != FROM_PORT)) {
		STAT_INC(icrc_errors);
		return;
	}
	off = packet_decode(buf, n, &p);
	if (off < 0) {
		STAT_INC(pkts_dropped);
		return;
	}
	if (p.dqpn >> SLOT_SHIFT != wire_slot()) {
		if (source == FROM_PORT)
			forward(buf, n, p.dqpn >> SLOT_SHIFT, from.addr);
		else
			STAT_INC(pkts_dropped);
		return;
	}
	if ((tos & ECN_MASK) == ECN_CE)
		STAT_INC(ecn_marked);
	iov.iov_base = buf + off;
	iov.iov_len = p.len;
	wire_deliver(&from, &p, &iov, p.len ? 1 : 0);
}

static void handle_raw(uint8_t *ip, size_t n)
{
	struct packet_addr a;
	size_t off, len;

	if (wire_raw_parse(ip, n, &a, &off, &len))
		handle(FROM_RAW, ip[1], &a, ip + off, len);
	else
		STAT_INC(pkts_dropped);
}

static unsigned receive_from(int fd, enum source from, uint32_t to)
{
	int n;

	for (int i = 0; i < RX_BATCH; i++) {
		rx_msg[i].msg_hdr.msg_namelen = sizeof(rx_from[i]);
		rx_msg[i].msg_hdr.msg_controllen = sizeof(rx_control[i]);
	}
	n = recvmmsg(fd, rx_msg, RX_BATCH, 0, NULL);
	for (int i = 0; i < n; i++) {
		struct packet_addr a = { .saddr = rx_from[i].sin_addr.s_addr,
					 .daddr = to,
					 .sport = rx_from[i].sin_port,
					 .dport = htons(ROCE_PORT) };

		if (rx_msg[i].msg_hdr.msg_flags & MSG_TRUNC)
			STAT_INC(pkts_dropped);
		else if (from == FROM_RAW)
			handle_raw(rx_buf[i], rx_msg[i].msg_len);
		else
			handle(from, tos_of(&rx_msg[i].msg_hdr), &a, rx_buf[i],
			       rx_msg[i].msg_len);
	}
	return n > 0 ? (unsigned)n : 0;
}

unsigned wire_udp_receive(void)
{
	unsigned n = receive_from(wire_host.fd, FROM_HOST, wire_host.addr);

	if (!wire_port_in_use())
		return n;
	if (wire_raw_fd >= 0)
		n += receive_from(wire_raw_fd, FROM_RAW, 0);
	else
		n += receive_from(wire_port.fd, FROM_PORT, wire_port.addr);
	return n;
}
