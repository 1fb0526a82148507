/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wire_*.c files share: slots, sockets, and the two ends of the way
 * of a packet. Called with hca_lock held. */
#ifndef SOFTHCA_WIRE_H
#define SOFTHCA_WIRE_H

#include <poll.h>
#include <sys/socket.h>

#include "softhca/engine/dp.h"
#include "softhca/transport/packet.h"

enum {
	SLOT_SHIFT = 14,
	SLOT_FIRST = 1, /* QPNs 0 and 1 are special in InfiniBand */
	SLOT_COUNT = 1024,
};

struct wire_sock {
	int fd;	       /* -1: not open */
	uint32_t addr; /* bound to, network order */
};

/* ---- wire_sock.c ---- */

extern struct wire_sock wire_host;

union wire_sockaddr {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

/* Fills in the socket address of an IPv4-mapped or IPv6 address; its length. */
socklen_t wire_sockaddr(const struct in6_addr *addr, uint16_t port, union wire_sockaddr *a);

int wire_sock_start(void);
uint32_t wire_slot_addr(uint32_t slot); /* loopback address, network order */
uint32_t wire_addr_slot(uint32_t addr);
/* UDP port 4791 of this address, or -errno. */
int wire_sock_open(const struct in6_addr *addr, bool shared);

/* ---- wire_port.c ---- */

struct wire_port {
	struct in6_addr addr; /* IPv4-mapped or IPv6 */
	int fd, raw;	      /* -1: not open; without raw, datagrams come by fd */
	bool no_raw;	      /* CAP_NET_RAW is missing */
	bool in_use;
};

extern struct wire_port wire_ports[HCA_PORTS]; /* as dp_gid counts */

void wire_port_start(void);
/* A QP of this process talks to other hosts from this GID; false: it cannot. */
bool wire_port_use(unsigned sgid);
unsigned wire_ports_end(void); /* those in use lie below */
/* Does its socket bring something for this process? */
bool wire_port_in_use(const struct wire_port *p);
/* Fills in what to sleep on, at most HCA_PORTS; how many. */
unsigned wire_port_poll(struct pollfd *fds);
void wire_port_close(void); /* in a forked child */

/* ---- wire_udp.c ---- */

void wire_udp_start(void);
void wire_udp_send(const struct wire_dest *d, struct packet *p, const struct iovec *iov, int niov);
/* Sends n bytes of a packet, ICRC included, at once with one bit changed. */
void wire_udp_corrupt(const struct wire_dest *d, uint8_t *bytes, size_t n, uint32_t bit);
void wire_udp_flush(void);

/* ---- wire_queue.c ---- */

/* Are there datagrams that the process of that slot has not taken? */
bool wire_queue_unread(uint32_t slot);

/* ---- wire_shm.c ---- */

void wire_shm_start(void);
void wire_shm_forked(void); /* in the child */
bool wire_shm_on(void);
/* Does payload in memory of a GPU stay there, on this way? */
bool wire_shm_in_place(uint32_t slot, const struct iovec *v);
/* Tells every process that is sent to of memory that it may map, or may not any more. */
struct share_msg;
void wire_shm_tell(const struct share_msg *m, int fd);
/* A QP of this process has a peer in that slot: opens the way, if there is one. */
void wire_shm_connect(uint32_t slot);
/* False when there is none. */
bool wire_shm_send(uint32_t slot, struct packet *p, const struct iovec *iov, int niov);
void wire_shm_flush(void);
/* How many packets of that length one may stand for. */
unsigned wire_shm_bulk(uint32_t slot, uint32_t mtu);
/* How many of this many packets the way takes now. */
unsigned wire_shm_room(uint32_t slot, uint32_t mtu, unsigned want);
/* Are there packets that the process of that slot has not taken? -1: no such way. */
int wire_shm_unread(uint32_t slot);
unsigned wire_shm_receive(void);
void wire_shm_events(void); /* connections that come and go */
/* Before and after sleeping on wire_shm_fd(), which may be -1. False: there is
 * something to do. */
bool wire_shm_sleep(void);
void wire_shm_awake(bool events);
int wire_shm_fd(void);

/* ---- wire_delay.c ---- */

/* Keeps a copy of the packet until its time, or until fate->after later packets
 * of the QP have gone. */
void wire_delay(const struct wire_dest *d, uint32_t sqpn, struct packet *p, const struct iovec *iov,
	       int niov, const struct fault_fate *fate);
/* A packet of the QP has gone: counts for those held back. */
void wire_delay_overtaken(uint32_t sqpn);
/* Sends the packet with one bit changed behind its ICRC's back. */
void wire_delay_corrupt(const struct wire_dest *d, struct packet *p, const struct iovec *iov,
		       int niov, uint32_t bit);

/* ---- wire.c ---- */

/* On its way now, whatever the fault schedule says. */
void wire_send_now(const struct wire_dest *d, uint32_t sqpn, struct packet *p,
		   const struct iovec *iov, int niov);
/* A packet for this process. */
void wire_deliver(const struct wire_dest *from, const struct packet *p, const struct iovec *iov,
		  int niov);

/* How packets lie in a ring between two processes of one host (wire_ring.h): a
 * few words in host order, BTH and extended headers as on the wire without ICRC,
 * and at the next multiple of 8 the payload or where the sender has it. Frames
 * begin at multiples of 64. Decoding trusts nothing and reads each byte once:
 * the other side can still write there. */

enum {
	FRAME_MORE = 127,  /* packets that one stands for beyond itself */
	FRAME_PIECES = 16, /* of payload that stays where it is */
};

struct frame_head {
	uint32_t len;	  /* bytes of payload */
	uint32_t hdr_len; /* BTH and extended headers */
	uint32_t more;	  /* packets that it stands for beyond itself */
	uint32_t pieces;  /* not 0: so many frame_piece in place of the payload */
};

struct frame_piece { /* in the sender's memory */
	uint64_t at, len;
};

struct frame { /* decoded */
	struct packet p;
	struct iovec iov[FRAME_PIECES];
	int niov;
	bool reach; /* the pieces are addresses in the sender's memory */
	size_t space;
};

/* Bytes that a packet takes at most. */
size_t frame_space(uint32_t len, int niov, bool reach);
/* Writes it; the bytes that it takes. */
size_t frame_put(uint8_t *b, struct packet *p, const struct iovec *iov, int niov, bool reach);
/* False when the bytes are no frame. */
bool frame_get(struct frame *f, const uint8_t *b, size_t have);

#endif
