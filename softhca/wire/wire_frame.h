/* SPDX-License-Identifier: BSD-3-Clause */
/* How packets lie in a ring between two processes of one host (wire_ring.h): a
 * few words in host order, BTH and extended headers as on the wire without ICRC,
 * and at the next multiple of 8 the payload or where the sender has it. Frames
 * begin at multiples of 64. Decoding trusts nothing and reads each byte once:
 * the other side can still write there. */
#ifndef SOFTHCA_WIRE_FRAME_H
#define SOFTHCA_WIRE_FRAME_H

#include "softhca/transport/packet.h"

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
