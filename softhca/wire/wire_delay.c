/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that the fault schedule delays or spoils. */
#include <stdlib.h>
#include <string.h>

#include "softhca/memory/guest.h"
#include "softhca/wire/wire.h"

struct held { /* bytes without ICRC */
	struct held *next;
	uint64_t until;
	struct wire_dest dest;
	uint32_t sqpn, after;
	bool fresh;
	size_t len;
	uint8_t bytes[];
};

enum { FULL_NS = 20000 }; /* until a way without room is tried again */

static struct held *list, *spent; /* spent: sent, bytes still in use */

/* The packet's bytes with room for the ICRC. */
static size_t to_bytes(struct packet *p, const struct iovec *iov, int niov, uint8_t *bytes)
{
	size_t n = packet_encode(p, bytes);

	n += guest_gather(bytes + n, iov, niov);
	memset(bytes + n, 0, (size_t)p->pad + PKT_ICRC_LEN);
	return n + p->pad + PKT_ICRC_LEN;
}

/* In order of time, equal times in order sent. */
void wire_delay(const struct wire_dest *d, uint32_t sqpn, struct packet *p, const struct iovec *iov,
	       int niov, const struct fault_fate *fate)
{
	struct held **at = &list, *h = malloc(sizeof(*h) + PKT_MAX);

	if (!h)
		return; /* lost, as on a wire */
	h->dest = *d;
	h->sqpn = sqpn;
	h->until = fate->until;
	h->after = fate->after;
	h->fresh = true;
	h->len = to_bytes(p, iov, niov, h->bytes);
	while (*at && (*at)->until <= h->until)
		at = &(*at)->next;
	h->next = *at;
	*at = h;
	engine_deadline(h->until);
}

/* The bytes have to stay until they are flushed or drained. */
static void delay_release(struct held **at)
{
	struct held *h = *at;
	struct packet p;
	struct iovec iov;
	int off = packet_decode(h->bytes, h->len, &p);

	*at = h->next;
	if (off >= 0) {
		iov.iov_base = h->bytes + off;
		iov.iov_len = p.len;
		wire_send_now(&h->dest, h->sqpn, &p, &iov, p.len ? 1 : 0);
	}
	h->next = spent;
	spent = h;
}

/* Called in the middle of a QP's turn: nothing may be delivered from here. */
void wire_delay_overtaken(uint32_t sqpn)
{
	struct held **at = &list;

	while (*at) {
		struct held *h = *at;

		/* The packet that has just been put there overtook none. */
		if (h->sqpn == sqpn && h->after && !h->fresh && --h->after == 0) {
			delay_release(at);
			engine_deadline(dp_now());
			continue;
		}
		h->fresh = false;
		at = &h->next;
	}
}

void wire_release_held(void)
{
	struct held **at = &list;
	uint64_t now = dp_now();

	while (*at && (*at)->until <= now) {
		if (wire_room_to(&(*at)->dest, PKT_MAX_MTU, 1)) {
			delay_release(at);
			continue;
		}
		engine_deadline(now + FULL_NS);
		at = &(*at)->next; /* and all others that go there */
	}
	if (*at)
		engine_deadline((*at)->until);
	if (spent) {
		wire_flush();
		wire_drain_local();
	}
	while (spent) {
		struct held *h = spent;

		spent = h->next;
		free(h);
	}
}

/* By a socket in any case: there it meets the check that it is made for. */
void wire_delay_corrupt(const struct wire_dest *d, struct packet *p, const struct iovec *iov,
		       int niov, uint32_t bit)
{
	uint8_t bytes[PKT_MAX];
	size_t n = to_bytes(p, iov, niov, bytes);

	if (d->kind != WIRE_NONE)
		wire_udp_corrupt(d, bytes, n, bit);
}
