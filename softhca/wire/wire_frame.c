/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in a ring. */
#include "softhca/wire/wire.h"

#include "softhca/memory/guest.h"

enum { ALIGN = 64 };

_Static_assert(sizeof(struct frame_head) == 16, "what both sides of a ring agree on");
_Static_assert(sizeof(struct frame_piece) == 16, "what both sides of a ring agree on");

static size_t payload_at(size_t hdr)
{
	return (sizeof(struct frame_head) + hdr + 7) & ~(size_t)7;
}

static size_t frame_space_for(size_t hdr, size_t payload)
{
	return (payload_at(hdr) + payload + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

static size_t payload_space(uint32_t len, size_t niov, bool reach)
{
	return reach ? niov * sizeof(struct frame_piece) : len;
}

size_t frame_space(uint32_t len, int niov, bool reach)
{
	return frame_space_for(PKT_MAX_HDR, payload_space(len, (size_t)niov, reach));
}

static void frame_put_pieces(uint8_t *to, const struct iovec *iov, int niov)
{
	for (int i = 0; i < niov; i++) {
		struct frame_piece r = { (uintptr_t)iov[i].iov_base, iov[i].iov_len };

		memcpy(to + (size_t)i * sizeof(r), &r, sizeof(r));
	}
}

size_t frame_put(uint8_t *b, struct packet *p, const struct iovec *iov, int niov, bool reach)
{
	struct frame_head head = { .len = p->len, .more = p->more,
				   .pieces = reach ? (uint32_t)niov : 0 };

	head.hdr_len = (uint32_t)packet_encode(p, b + sizeof(head));
	b[sizeof(head) + 1] &= (uint8_t)~0x30; /* no pad */
	memcpy(b, &head, sizeof(head));
	if (reach)
		frame_put_pieces(b + payload_at(head.hdr_len), iov, niov);
	else
		guest_gather(b + payload_at(head.hdr_len), iov, niov);
	return frame_space_for(head.hdr_len, payload_space(p->len, (size_t)niov, reach));
}

static bool head_ok(const struct frame_head *h)
{
	return h->hdr_len <= PKT_MAX_HDR && h->more <= FRAME_MORE &&
	       h->len <= PKT_MAX_MTU * (1 + h->more) && h->pieces <= FRAME_PIECES;
}

/* Payload only where there is payload; and RC alone counts in such steps. */
static bool payload_ok(const struct frame_head *h, uint8_t opcode)
{
	if (!(packet_headers(opcode) & PKT_HAS_PAYLOAD))
		return !h->len && !h->more && !h->pieces;
	return (!h->more && !h->pieces) || (opcode & BTH_CLASS) == BTH_RC;
}

/* The sender's word for its own memory. */
static void get_pieces(struct frame *f, const uint8_t *b, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct frame_piece r;

		memcpy(&r, b + i * sizeof(r), sizeof(r));
		f->iov[i] = (struct iovec){ (void *)(uintptr_t)r.at, r.len };
	}
	f->niov = (int)n;
}

bool frame_get(struct frame *f, const uint8_t *b, size_t have)
{
	uint8_t hdr[PKT_MAX_HDR + PKT_ICRC_LEN] = { 0 };
	struct frame_head head;

	if (have < sizeof(head))
		return false;
	memcpy(&head, b, sizeof(head));
	if (!head_ok(&head))
		return false;
	f->reach = head.pieces != 0;
	f->space = frame_space_for(head.hdr_len, payload_space(head.len, head.pieces, f->reach));
	if (f->space > have)
		return false;
	memcpy(hdr, b + sizeof(head), head.hdr_len);
	if (packet_decode(hdr, (size_t)head.hdr_len + PKT_ICRC_LEN, &f->p) != (int)head.hdr_len ||
	    !payload_ok(&head, f->p.opcode))
		return false;
	f->p.len = head.len;
	f->p.more = head.more;
	b += payload_at(head.hdr_len);
	if (f->reach) {
		get_pieces(f, b, head.pieces);
	} else {
		f->iov[0] = (struct iovec){ (uint8_t *)(uintptr_t)b, head.len };
		f->niov = head.len != 0;
	}
	return true;
}
