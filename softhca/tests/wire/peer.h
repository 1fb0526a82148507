/* SPDX-License-Identifier: BSD-3-Clause */
/* wire_peer: two processes, a connection between them over any verbs device, and operations whose
 * data both sides compare. It knows nothing of softhca, so it also runs over the kernel's driver. */
#ifndef TEST_WIRE_PEER_H
#define TEST_WIRE_PEER_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PEER_MAX = 1 << 20,  /* largest message */
	PEER_GUARD = 64,     /* bytes around a message that nobody may touch */
	PEER_OFFSET = 4096,  /* of the target in the buffer */
	PEER_BUFFER = PEER_OFFSET + PEER_MAX + 4096,
	PEER_DEPTH = 64,
	PEER_WAIT_S = 30,
	PEER_GRH = 40,	     /* in front of a datagram; here at the start of the buffer */
	PEER_QKEY = 0x11223344,
};

/* What the sides tell each other over TCP, before and after each operation. */
struct peer_info {
	uint8_t gid[16];
	uint32_t qpn, psn, rkey, bare_rkey; /* bare: without any remote access */
	uint64_t addr;
};

struct peer_step { /* client to server; the same struct comes back with status */
	uint32_t op, size, seed;
	uint32_t window; /* key, from the server */
	int32_t status;
};

struct peer {
	bool server;
	enum ibv_qp_type type;
	const char *device;
	unsigned gid_index, tclass, flow_label;
	enum ibv_mtu mtu;
	unsigned timeout, retries; /* of the QP, encoded as verbs do */
	int tcp;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr, *bare;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah; /* UD */
	struct ibv_mw *mw; /* that the other side takes back */
	struct peer_info here, there;
	uint8_t *buf; /* PEER_BUFFER bytes: target of the other side, receives */
	uint8_t *src; /* PEER_BUFFER bytes: what this side sends, reads and atomics land */
	struct ibv_mr *src_mr;
};

/* link.c, path.c; 0 or -1 with the reason on stderr */
int peer_tcp(struct peer *p, const char *host, const char *port);
int peer_open(struct peer *p);
int peer_connect(struct peer *p); /* both sides at the same time; a new QP each time */
/* QP of the peer's type, and its ways to the states; path.c */
int peer_new_qp(struct peer *p);
int peer_ready(struct peer *p);
int peer_say(struct peer *p, const void *what, size_t n);
int peer_hear(struct peer *p, void *what, size_t n);
void peer_address(const struct peer *p, struct ibv_send_wr *wr); /* of a datagram */
/* Does the header in front of a datagram name the two sides? */
bool peer_grh_ok(const struct peer *p);
int peer_post_recv(struct peer *p, uint32_t len, uint32_t lkey);
/* One completion within PEER_WAIT_S; -1 without. */
int peer_poll(struct peer *p, struct ibv_wc *wc);

/* ops.c */
int peer_client(struct peer *p, const char *ops, uint32_t max, unsigned rounds);
int peer_server(struct peer *p);

#endif
