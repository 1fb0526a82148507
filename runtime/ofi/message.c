// SPDX-License-Identifier: BSD-3-Clause
/* Messages between proxies. For each PE there is room for all that may be under way: its requests here and the replies
 * to ours are received, our requests and the replies to its are sent, and a word beside them. */
#include "runtime/ofi/ofi.h"

#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

#define OF_PEER (2 * OFI_WINDOW + 1) /* to be received, to be sent */

static uint8_t *message_place(struct gdri_ofi_message *m, uint8_t *at, uint32_t bytes, int peer,
			      enum gdri_ofi_what what)
{
	m->ctx.what = what;
	m->ctx.peer = peer;
	m->head = (struct gdri_ofi_head *)(void *)at;
	gdri_ofi_clear(m);
	return at + bytes;
}

int gdri_ofi_messages_open(struct gdri_ofi_proxy *t)
{
	size_t n = (size_t)t->net->n_pes * OF_PEER, i;
	uint8_t *at;
	int pe, rc;

	t->n_received = (uint32_t)n + 64; /* probes */
	t->peers = calloc((size_t)t->net->n_pes, sizeof(*t->peers));
	t->received = calloc(t->n_received, sizeof(*t->received));
	t->space = aligned_alloc(4096, (n + t->n_received) * t->net->message);
	if (!t->peers || !t->received || !t->space)
		return gdri_fail(-GDR_ENOMEM, "ofi: out of memory for the messages of %d PEs",
				 t->net->n_pes);
	if (t->fabric.mr_local) {
		rc = gdri_ofi_mr_open(&t->fabric, t->space, (n + t->n_received) * t->net->message, GDRI_OFI_HOST,
				      FI_SEND | FI_RECV, &t->space_mr);
		if (rc)
			return gdri_fail(-GDR_ENOTSUP, "ofi: memory of messages: %s",
					 t->fabric.lib.strerror(-rc));
	}
	at = t->space;
	for (pe = 0; pe < t->net->n_pes; pe++) {
		for (i = 0; i < OFI_WINDOW; i++) {
			at = message_place(&t->peers[pe].requests[i].out, at, t->net->message, pe, OFI_SENDS);
			at = message_place(&t->peers[pe].replies[i], at, t->net->message, pe, OFI_SENDS);
		}
		at = message_place(&t->peers[pe].word, at, t->net->message, pe, OFI_SENDS);
	}
	for (i = 0; i < t->n_received; i++)
		at = message_place(&t->received[i], at, t->net->message, -1, OFI_RECEIVES);
	return 0;
}

void gdri_ofi_messages_close(struct gdri_ofi_proxy *t)
{
	gdri_ofi_mr_close(&t->fabric, &t->space_mr);
	free(t->received);
	free(t->space);
}

void gdri_ofi_read(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m)
{
	m->next = t->read;
	t->read = m;
}

void gdri_ofi_receive(struct gdri_ofi_proxy *t)
{
	void *desc = t->space_mr ? fi_mr_desc(t->space_mr) : NULL;
	struct gdri_ofi_message *m;
	ssize_t rc;

	while ((m = t->read)) {
		rc = fi_recv(t->fabric.ep, m->head, t->net->message, desc, FI_ADDR_UNSPEC, &m->ctx.fi);
		if (rc == -FI_EAGAIN)
			return;
		t->read = m->next;
		if (rc)
			gdri_error("ofi: fi_recv: %s", t->fabric.lib.strerror((int)-rc));
	}
}

void gdri_ofi_clear(struct gdri_ofi_message *m)
{
	memset(m->head, 0, sizeof(*m->head));
	m->used = sizeof(*m->head);
}

void *gdri_ofi_append(struct gdri_ofi_message *m, size_t len)
{
	void *at = (uint8_t *)m->head + m->used;

	m->used += (uint32_t)len;
	return at;
}

void gdri_ofi_seal(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m, enum gdri_ofi_kind kind, uint32_t seq)
{
	m->head->token = t->peers[m->ctx.peer].token;
	m->head->seq = seq;
	m->head->bytes = m->used - (uint32_t)sizeof(*m->head);
	m->head->pe = (uint16_t)t->net->pe;
	m->head->kind = (uint16_t)kind;
}

void gdri_ofi_send(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m)
{
	struct gdri_ofi_peer *p = &t->peers[m->ctx.peer];
	void *desc = t->space_mr ? fi_mr_desc(t->space_mr) : NULL;
	bool inject = m->used <= t->fabric.info->tx_attr->inject_size;
	ssize_t rc;

	if (inject)
		rc = fi_inject(t->fabric.ep, m->head, m->used, p->addr);
	else
		rc = fi_send(t->fabric.ep, m->head, m->used, desc, p->addr, &m->ctx.fi);
	t->n_unsent -= m->ready;
	m->ready = rc == -FI_EAGAIN;
	t->n_unsent += m->ready;
	m->sent = !rc && !inject;
	if (rc && !m->ready)
		gdri_ofi_lost(t, m->ctx.peer, t->fabric.lib.strerror((int)-rc));
}

void gdri_ofi_tell(struct gdri_ofi_proxy *t, int pe, enum gdri_ofi_kind kind)
{
	struct gdri_ofi_message *m = &t->peers[pe].word;

	if (m->ready || m->sent)
		return;
	gdri_ofi_clear(m);
	gdri_ofi_seal(t, m, kind, 0);
	gdri_ofi_send(t, m);
}
