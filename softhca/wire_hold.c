/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that the fault schedule delays. */
#include <stdlib.h>
#include <string.h>

#include "softhca/guest.h"
#include "softhca/wire.h"

struct held { /* bytes without ICRC */
	struct held *next;
	uint64_t until;
	struct wire_dest dest;
	uint32_t sqpn;
	size_t len;
	uint8_t bytes[];
};

static struct held *list;

/* Keeps a copy until its time; in order of time, equal times in order sent. */
void wire_hold(const struct wire_dest *d, uint32_t sqpn, struct packet *p, const struct iovec *iov,
	       int niov, uint64_t until)
{
	struct held **at = &list, *h = malloc(sizeof(*h) + PKT_MAX);

	if (!h)
		return; /* lost, as on a wire */
	h->dest = *d;
	h->sqpn = sqpn;
	h->until = until;
	h->len = packet_encode(p, h->bytes);
	h->len += guest_gather(h->bytes + h->len, iov, niov);
	memset(h->bytes + h->len, 0, (size_t)p->pad + PKT_ICRC_LEN);
	h->len += (size_t)p->pad + PKT_ICRC_LEN;
	while (*at && (*at)->until <= until)
		at = &(*at)->next;
	h->next = *at;
	*at = h;
	engine_deadline(until);
}

void wire_release_held(void)
{
	uint64_t now = dp_now();

	while (list && list->until <= now) {
		struct held *h = list;
		struct packet p;
		struct iovec iov;
		int off = packet_decode(h->bytes, h->len, &p);

		list = h->next;
		if (off >= 0) {
			iov.iov_base = h->bytes + off;
			iov.iov_len = p.len;
			wire_send_now(&h->dest, h->sqpn, &p, &iov, p.len ? 1 : 0);
			/* The bytes go away now. */
			wire_flush();
			wire_drain_local();
		}
		free(h);
	}
	if (list)
		engine_deadline(list->until);
}
