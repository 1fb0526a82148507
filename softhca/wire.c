/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries packets: inside the process, between processes of one host, between
 * hosts. Every process owns one slot, which is the loopback address
 * 127.64.hi.lo with port 4791 that it has bound, and the QPNs slot << 14 up to
 * (slot + 1) << 14. So the QPN names the process, no registry is needed, and
 * the kernel gives the slot back when the process dies, however it dies.
 *
 * Other hosts send to the port's address, UDP port 4791. A process that may
 * open raw sockets picks its own slot's datagrams there (wire_raw.c). Where it
 * may not, all processes of a host bind that port together, and whoever
 * receives a datagram for another slot hands it on over loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "softhca/guest.h"
#include "softhca/log.h"
#include "softhca/rc.h"

enum {
	SLOT_SHIFT = 14,
	SLOT_FIRST = 1, /* QPNs 0 and 1 are special in InfiniBand */
	SLOT_COUNT = 1024,
	TX_BATCH = 64,
	RX_BATCH = 32,
	RX_BUF = 4352,
	LOCAL_QUEUE = 512,
	SOCK_BUFFER = 32 << 20,
	/* Between processes of one host, ahead of a packet that is handed on: an
	 * opcode that no packet has, three zero bytes, the sender's address. */
	FORWARD_MARK = 0xc5,
	FORWARD_LEN = 8,
};

struct tx {
	struct sockaddr_in to;
	uint8_t hdr[PKT_MAX_HDR];
	uint8_t trailer[3 + PKT_ICRC_LEN]; /* pad and ICRC */
	struct iovec iov[PKT_MAX_IOV + 2];
};

struct sock {
	int fd;
	uint32_t addr; /* bound to, network order */
	unsigned n;
	struct mmsghdr msg[TX_BATCH];
	struct tx tx[TX_BATCH];
};

struct local_pkt {
	struct packet p;
	uint32_t sqpn;
	int niov;
	struct iovec iov[PKT_MAX_IOV];
};

struct held { /* a packet that the fault schedule delays; bytes without ICRC */
	struct held *next;
	uint64_t until;
	struct wire_dest dest;
	uint32_t sqpn;
	size_t len;
	uint8_t bytes[];
};

static struct sock host_sock = { .fd = -1 }, port_sock = { .fd = -1 };
static int raw_fd = -1;
static bool remote_peers; /* a QP of this process was connected to another host */
static uint32_t slot;
static struct local_pkt local[LOCAL_QUEUE];
static unsigned local_head, local_tail;
static struct held *held_list;
static uint8_t rx_buf[RX_BATCH][RX_BUF];
static struct sockaddr_in rx_from[RX_BATCH];
static struct iovec rx_iov[RX_BATCH];
static struct mmsghdr rx_msg[RX_BATCH];

/* ---- addresses ---- */

static uint32_t slot_addr(uint32_t s)
{
	return htonl(0x7f400000u | s);
}

uint32_t dp_first_qpn(void)
{
	return slot << SLOT_SHIFT;
}

uint32_t dp_qpn_count(void)
{
	return 1u << SLOT_SHIFT;
}

uint32_t wire_slot(void)
{
	return slot;
}

void wire_resolve(const struct hca_qp *qp, struct wire_dest *d)
{
	const uint8_t *g = qp->path.dgid.s6_addr;
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff }, zero[16];
	uint32_t to = qp->dest_qpn >> SLOT_SHIFT;

	memcpy(&d->addr, g + 12, 4);
	if (!memcmp(g, zero, 16) || (!memcmp(g, mapped, 12) && address_is_own(d->addr))) {
		/* No GID at all (link layer InfiniBand without GRH): this host. */
		d->kind = to == slot ? WIRE_LOCAL : WIRE_HOST;
		d->addr = slot_addr(to);
	} else if (!memcmp(g, mapped, 12) && port_sock.fd >= 0) {
		d->kind = WIRE_REMOTE;
		/* Relaxed: read by the engine before it sleeps, without the lock; seen
		 * late it costs one sleep. */
		__atomic_store_n(&remote_peers, true, __ATOMIC_RELAXED);
	} else {
		d->kind = WIRE_NONE;
		hca_warn("QP 0x%x: no route to the GID of QP 0x%x (IPv4-mapped GIDs only%s)",
			 qp->qpn, qp->dest_qpn,
			 port_sock.fd < 0 ? "; this process has no socket on the network" : "");
	}
}

/* ---- sockets ---- */

static int open_socket(uint32_t addr, bool shared)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_port = htons(ROCE_PORT),
				 .sin_addr.s_addr = addr };
	int size = SOCK_BUFFER, one = 1, df = IP_PMTUDISC_DO;

	if (fd < 0)
		return -errno;
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	/* With DF on an unconnected socket Linux sends identification 0, which
	 * the ICRC has to know. */
	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &df, sizeof(df));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a))) {
		int err = errno;

		close(fd);
		return -err;
	}
	return fd;
}

static void close_in_child(void)
{
	/* A forked child has no engine; were it to keep the sockets, the slot
	 * would outlive the process and packets would go to nobody. */
	if (host_sock.fd >= 0)
		close(host_sock.fd);
	if (port_sock.fd >= 0)
		close(port_sock.fd);
	if (raw_fd >= 0)
		close(raw_fd);
	host_sock.fd = port_sock.fd = raw_fd = -1;
}

static int take_slot(void)
{
	int fd = -EADDRINUSE;

	for (uint32_t s = SLOT_FIRST; s < SLOT_COUNT; s++) {
		fd = open_socket(slot_addr(s), false);
		if (fd >= 0) {
			slot = s;
			host_sock.fd = fd;
			host_sock.addr = slot_addr(s);
			return 0;
		}
		if (fd != -EADDRINUSE)
			break;
	}
	hca_warn("no UDP socket on 127.64.0.0/16 port %d: %s (is the loopback interface up?)",
		 ROCE_PORT, strerror(-fd));
	return fd;
}

/* The way to other hosts, where there is a network interface. */
static void open_port(void)
{
	static const struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog drop = { .len = 1, .filter = (struct sock_filter *)&nothing };
	uint32_t port_addr = address_port();
	int fd;

	if (ntohl(port_addr) >> 24 == 127)
		return;
	fd = open_socket(port_addr, true);
	if (fd < 0) {
		hca_warn("UDP port %d of %s: %s; peers on other hosts are out of reach", ROCE_PORT,
			 inet_ntoa((struct in_addr){ port_addr }), strerror(-fd));
		return;
	}
	port_sock.fd = fd;
	port_sock.addr = port_addr;
	raw_fd = wire_raw_open(port_addr, slot);
	if (raw_fd < 0)
		return;
	/* Datagrams come by the raw socket; this one sends, and by being there
	 * keeps the kernel from answering them with "port unreachable". */
	setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &drop, sizeof(drop));
}

int wire_start(void)
{
	int ret;

	ret = take_slot();
	if (ret)
		return ret;
	open_port();
	for (int i = 0; i < RX_BATCH; i++) {
		rx_iov[i].iov_base = rx_buf[i];
		rx_iov[i].iov_len = RX_BUF;
		rx_msg[i].msg_hdr.msg_iov = &rx_iov[i];
		rx_msg[i].msg_hdr.msg_iovlen = 1;
		rx_msg[i].msg_hdr.msg_name = &rx_from[i];
	}
	pthread_atfork(NULL, NULL, close_in_child);
	return 0;
}

/* The raw socket brings only what is for this process, so nothing as long as
 * no QP has a peer outside; asking it would double the calls. The shared one
 * also brings what is for others. */
static bool port_in_use(void)
{
	/* Relaxed: pairs with wire_resolve(). */
	return raw_fd >= 0 ? __atomic_load_n(&remote_peers, __ATOMIC_RELAXED)
			   : port_sock.fd >= 0;
}

void wire_wait(uint64_t ns)
{
	struct pollfd p[2] = { { .fd = host_sock.fd, .events = POLLIN },
			       { .fd = raw_fd >= 0 ? raw_fd : port_sock.fd, .events = POLLIN } };
	struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
			      .tv_nsec = (long)(ns % 1000000000u) };

	ppoll(p, port_in_use() ? 2 : 1, &t, NULL);
}

/* ---- sending ---- */

static void append_icrc(struct sock *s, uint32_t to, struct iovec *iov, int n, uint8_t *out)
{
	struct packet_addr a = { .saddr = s->addr, .daddr = to, .sport = htons(ROCE_PORT),
				 .dport = htons(ROCE_PORT) };
	uint32_t crc;

	guest_dma_begin();
	crc = htole32(packet_icrc(&a, iov, n));
	guest_dma_end();
	memcpy(out, &crc, sizeof(crc));
}

static void flush_sock(struct sock *s)
{
	unsigned done = 0;

	while (done < s->n) {
		int r;

		guest_dma_begin();
		r = sendmmsg(s->fd, s->msg + done, s->n - done, 0);
		guest_dma_end();
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
	s->n = 0;
}

void wire_flush(void)
{
	if (host_sock.n)
		flush_sock(&host_sock);
	if (port_sock.n)
		flush_sock(&port_sock);
}

static void send_udp(struct sock *s, uint32_t to, struct packet *p, const struct iovec *iov,
		     int niov)
{
	struct tx *t;
	struct msghdr *m;
	int n = 1;

	if (s->n == TX_BATCH)
		flush_sock(s);
	t = &s->tx[s->n];
	m = &s->msg[s->n++].msg_hdr;
	t->to.sin_family = AF_INET;
	t->to.sin_port = htons(ROCE_PORT);
	t->to.sin_addr.s_addr = to;
	t->iov[0].iov_base = t->hdr;
	t->iov[0].iov_len = packet_encode(p, t->hdr);
	for (int i = 0; i < niov; i++)
		t->iov[n++] = iov[i];
	memset(t->trailer, 0, sizeof(t->trailer));
	t->iov[n].iov_base = t->trailer;
	t->iov[n].iov_len = p->pad;
	append_icrc(s, to, t->iov, n + 1, t->trailer + p->pad);
	t->iov[n++].iov_len = p->pad + PKT_ICRC_LEN;
	memset(m, 0, sizeof(*m));
	m->msg_name = &t->to;
	m->msg_namelen = sizeof(t->to);
	m->msg_iov = t->iov;
	m->msg_iovlen = (size_t)n;
}

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

static void send_to(const struct wire_dest *d, uint32_t sqpn, struct packet *p,
		    const struct iovec *iov, int niov)
{
	STAT_INC(pkts_tx);
	switch (d->kind) {
	case WIRE_LOCAL:
		send_local(sqpn, p, iov, niov);
		break;
	case WIRE_HOST:
		send_udp(&host_sock, d->addr, p, iov, niov);
		break;
	case WIRE_REMOTE:
		send_udp(&port_sock, d->addr, p, iov, niov);
		break;
	case WIRE_NONE:
		STAT_INC(pkts_dropped);
		break;
	}
}

/* Keeps a copy until its time; in order of time, equal times in order sent. */
static void hold(const struct wire_dest *d, uint32_t sqpn, struct packet *p,
		 const struct iovec *iov, int niov, uint64_t until)
{
	struct held **at = &held_list, *h = malloc(sizeof(*h) + PKT_MAX);

	if (!h)
		return; /* lost, as on a wire */
	h->dest = *d;
	h->sqpn = sqpn;
	h->until = until;
	h->len = packet_encode(p, h->bytes);
	for (int i = 0; i < niov; i++) {
		memcpy(h->bytes + h->len, iov[i].iov_base, iov[i].iov_len);
		h->len += iov[i].iov_len;
	}
	memset(h->bytes + h->len, 0, (size_t)p->pad + PKT_ICRC_LEN);
	h->len += (size_t)p->pad + PKT_ICRC_LEN;
	while (*at && (*at)->until <= until)
		at = &(*at)->next;
	h->next = *at;
	*at = h;
	engine_deadline(until);
}

void wire_send(struct hca_qp *qp, struct packet *p, const struct iovec *iov, int niov)
{
	const struct wire_dest *d = &qp->rc->dest;
	uint64_t until = 0;

	if (faults_active()) {
		switch (faults_tx(qp->qpn, dp_now(), &until)) {
		case FAULT_DROP:
			STAT_INC(pkts_dropped);
			return;
		case FAULT_HOLD:
			hold(d, qp->qpn, p, iov, niov, until);
			return;
		case FAULT_DUP:
			send_to(d, qp->qpn, p, iov, niov);
			break;
		case FAULT_PASS:
			break;
		}
	}
	send_to(d, qp->qpn, p, iov, niov);
}

/* ---- receiving ---- */

/* A connection hears only its peer: requests of a process that had this slot's
 * number in mind, or answers to who was here before, are dropped. Packets do
 * not carry the sender's QPN; its address is what can be compared, and inside
 * the process the QPN. */
static bool from_peer(const struct hca_qp *qp, enum wire_kind kind, uint32_t from)
{
	const struct wire_dest *d = &qp->rc->dest;

	return d->kind == kind && (kind == WIRE_LOCAL ? qp->dest_qpn : d->addr) == from;
}

/* from: the sender's address, inside the process its QPN. */
static void deliver(enum wire_kind kind, uint32_t from, const struct packet *p,
		    const struct iovec *iov, int niov)
{
	struct hca_qp *qp = engine_find_qp(p->dqpn);

	STAT_INC(pkts_rx);
	if (!qp || !qp->rc || !from_peer(qp, kind, from) || (faults_active() && faults_rx_drop(p->dqpn, dp_now()))) {
		STAT_INC(pkts_dropped);
		return;
	}
	rc_receive(qp, p, iov, niov);
}

unsigned wire_drain_local(void)
{
	unsigned n = 0;

	/* Receiving never sends (answers wait for rc_run), so this ends. */
	for (; local_head != local_tail; local_head++, n++) {
		struct local_pkt *l = &local[local_head];

		deliver(WIRE_LOCAL, l->sqpn, &l->p, l->iov, l->niov);
	}
	local_head = local_tail = 0;
	return n;
}

void wire_release_held(void)
{
	uint64_t now = dp_now();

	while (held_list && held_list->until <= now) {
		struct held *h = held_list;
		struct packet p;
		struct iovec iov;
		int off = packet_decode(h->bytes, h->len, &p);

		held_list = h->next;
		if (off >= 0) {
			iov.iov_base = h->bytes + off;
			iov.iov_len = p.len;
			send_to(&h->dest, h->sqpn, &p, &iov, p.len ? 1 : 0);
			/* The bytes go away now. */
			wire_flush();
			wire_drain_local();
		}
		free(h);
	}
	if (held_list)
		engine_deadline(held_list->until);
}

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
				  .sin_addr.s_addr = slot_addr(to_slot) };
	uint8_t hdr[FORWARD_LEN] = { FORWARD_MARK };
	struct iovec iov[2] = { { hdr, sizeof(hdr) }, { buf, n - PKT_ICRC_LEN } };
	struct msghdr m = { .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = iov,
			    .msg_iovlen = 2 };

	memcpy(hdr + 4, &from, 4);
	append_icrc(&host_sock, to.sin_addr.s_addr, iov + 1, 1, buf + n - PKT_ICRC_LEN);
	iov[1].iov_len = n;
	if (sendmsg(host_sock.fd, &m, 0) == (ssize_t)(n + sizeof(hdr)))
		STAT_INC(pkts_forwarded);
	else
		STAT_INC(pkts_dropped);
}

enum source { FROM_HOST, FROM_PORT, FROM_RAW };

static void handle(enum source source, const struct packet_addr *a, uint8_t *buf, size_t n)
{
	enum wire_kind kind = source == FROM_HOST ? WIRE_HOST : WIRE_REMOTE;
	uint32_t from = a->saddr;
	struct packet p;
	struct iovec iov;
	int off;

	if (source == FROM_HOST && n > FORWARD_LEN && buf[0] == FORWARD_MARK) {
		kind = WIRE_REMOTE;
		memcpy(&from, buf + 4, 4);
		buf += FORWARD_LEN;
		n -= FORWARD_LEN;
	}
	off = packet_decode(buf, n, &p);
	if (off < 0) {
		STAT_INC(pkts_dropped);
		return;
	}
	if (!icrc_good(a, buf, n, source != FROM_PORT)) {
		STAT_INC(icrc_errors);
		return;
	}
	if (p.dqpn >> SLOT_SHIFT != slot) {
		if (source == FROM_PORT)
			forward(buf, n, p.dqpn >> SLOT_SHIFT, from);
		else
			STAT_INC(pkts_dropped);
		return;
	}
	iov.iov_base = buf + off;
	iov.iov_len = p.len;
	deliver(kind, from, &p, &iov, p.len ? 1 : 0);
}

static void handle_raw(uint8_t *ip, size_t n)
{
	struct packet_addr a;
	size_t off, len;

	if (wire_raw_parse(ip, n, &a, &off, &len))
		handle(FROM_RAW, &a, ip + off, len);
	else
		STAT_INC(pkts_dropped);
}

static unsigned receive_from(int fd, enum source from, uint32_t to)
{
	int n;

	for (int i = 0; i < RX_BATCH; i++)
		rx_msg[i].msg_hdr.msg_namelen = sizeof(rx_from[i]);
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
			handle(from, &a, rx_buf[i], rx_msg[i].msg_len);
	}
	return n > 0 ? (unsigned)n : 0;
}

unsigned wire_receive(void)
{
	unsigned n = receive_from(host_sock.fd, FROM_HOST, host_sock.addr);

	if (!port_in_use())
		return n;
	if (raw_fd >= 0)
		n += receive_from(raw_fd, FROM_RAW, 0);
	else
		n += receive_from(port_sock.fd, FROM_PORT, port_sock.addr);
	return n;
}
