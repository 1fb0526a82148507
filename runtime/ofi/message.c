// SPDX-License-Identifier: BSD-3-Clause
/* Messages between proxies. For each PE there is room for all that may be under way: its requests here and the replies
 * to ours are received, our requests and the replies to its are sent, and a word beside them. */
#include "runtime/ofi/ofi.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

#define OF_PEER (OFI_LANDING + 1) /* to be received, to be sent */

static size_t message_place_bytes(const struct gdri_ofi_proxy *t)
{
	return t->net->message + OFI_MARK;
}

/* Places of the other PEs, in their order. */
static uint32_t landing_places(const struct gdri_ofi_proxy *t)
{
	return ((uint32_t)t->net->n_pes - 1) * OFI_LANDING;
}

static int landing_open(struct gdri_ofi_proxy *t)
{
	size_t n = landing_places(t), i;

	t->landing = calloc(n, message_place_bytes(t));
	t->landed = calloc(n, sizeof(*t->landed));
	if (!t->landing || !t->landed)
		return -FI_ENOMEM;
	for (i = 0; i < n; i++)
		t->landed[i].ctx.what = OFI_LANDS;
	return gdri_ofi_mr_open(&t->fabric, t->landing, n * message_place_bytes(t), GDRI_OFI_HOST, FI_REMOTE_WRITE,
				&t->landing_mr);
}

static uint8_t *message_place(struct gdri_ofi_message *m, uint8_t *at, size_t bytes, int peer, enum gdri_ofi_what what)
{
	m->ctx.what = what;
	m->ctx.peer = peer;
	m->head = (struct gdri_ofi_head *)(void *)at;
	gdri_ofi_clear(m);
	return at + bytes;
}

static void messages_place(struct gdri_ofi_proxy *t)
{
	size_t bytes = message_place_bytes(t);
	uint8_t *at = t->space;
	uint32_t i;
	int pe;

	for (pe = 0; pe < t->net->n_pes; pe++) {
		for (i = 0; i < OFI_WINDOW; i++) {
			at = message_place(&t->peers[pe].requests[i].out, at, bytes, pe, OFI_SENDS);
			at = message_place(&t->peers[pe].replies[i], at, bytes, pe, OFI_SENDS);
		}
		at = message_place(&t->peers[pe].word, at, bytes, pe, OFI_SENDS);
	}
	for (i = 0; i < t->n_received; i++)
		at = message_place(&t->received[i], at, bytes, -1, OFI_RECEIVES);
}

int gdri_ofi_messages_open(struct gdri_ofi_proxy *t)
{
	size_t n = (size_t)t->net->n_pes * OF_PEER, bytes = message_place_bytes(t);
	int rc = 0;

	t->n_received = (uint32_t)(t->fabric.lands ? (size_t)t->net->n_pes : n) + 64; /* probes */
	t->peers = calloc((size_t)t->net->n_pes, sizeof(*t->peers));
	t->received = calloc(t->n_received, sizeof(*t->received));
	t->space = aligned_alloc(4096, ((n + t->n_received) * bytes + 4095) / 4096 * 4096);
	if (!t->peers || !t->received || !t->space)
		return gdri_fail(-GDR_ENOMEM, "ofi: out of memory for the messages of %d PEs",
				 t->net->n_pes);
	if (t->fabric.mr_local)
		rc = gdri_ofi_mr_open(&t->fabric, t->space, (n + t->n_received) * bytes, GDRI_OFI_HOST,
				      FI_SEND | FI_RECV, &t->space_mr);
	if (!rc && t->fabric.lands && t->net->n_pes > 1)
		rc = landing_open(t);
	if (rc)
		return gdri_fail(-GDR_ENOTSUP, "ofi: memory of messages: %s", t->fabric.lib.strerror(-rc));
	messages_place(t);
	return 0;
}

void gdri_ofi_messages_close(struct gdri_ofi_proxy *t)
{
	gdri_ofi_mr_close(&t->fabric, &t->space_mr);
	gdri_ofi_mr_close(&t->fabric, &t->landing_mr);
	free(t->received);
	free(t->landed);
	free(t->landing);
	free(t->space);
}

/* ---- landing ---- */

struct gdri_ofi_landing gdri_ofi_landing(const struct gdri_ofi_proxy *t)
{
	struct gdri_ofi_landing l = {0};

	if (t->landing_mr) {
		l.addr = t->fabric.mr_virt ? (uintptr_t)t->landing : 0;
		l.key = fi_mr_key(t->landing_mr);
		l.place = (uint32_t)message_place_bytes(t);
	}
	return l;
}

struct gdri_ofi_landing gdri_ofi_landing_of(const struct gdri_ofi_proxy *t, int pe, struct gdri_ofi_landing told)
{
	int others = t->net->pe - (t->net->pe > pe); /* it has none for itself */

	told.addr += (uint64_t)others * OFI_LANDING * told.place;
	return told;
}

struct gdri_ofi_message *gdri_ofi_landed(struct gdri_ofi_proxy *t, uint32_t *from, size_t *len)
{
	uint32_t i = *from, n = landing_places(t);
	size_t bytes = message_place_bytes(t);
	uint64_t *mark = (uint64_t *)(void *)(t->landing + (i + 1) * bytes) - 1;
	struct gdri_ofi_message *m;

	/* relaxed: pairs with nothing, this thread's call of the provider has stored it, behind the message */
	for (; i < n && !(__atomic_load_n(mark, __ATOMIC_RELAXED) & OFI_IS_MARK); i++)
		mark += bytes / sizeof(*mark);
	if (i == n)
		return NULL;
	*from = i + 1;
	*len = *mark & ~OFI_IS_MARK;
	if (*len % 8 || *len > t->net->message)
		*len = 0; /* it is none */
	*mark = 0;
	m = &t->landed[i];
	m->head = (struct gdri_ofi_head *)(void *)((uint8_t *)mark - *len);
	return m;
}

/* A request or reply, to its place at the peer. 0 or a negative number of the provider's. No fi_inject_write: where a
 * connection fails tcp of 1.17 tells of it without a context, and ofi_rxm looks into that. */
static ssize_t message_lands(struct gdri_ofi_proxy *t, struct gdri_ofi_message *m)
{
	const struct gdri_ofi_peer *p = &t->peers[m->ctx.peer];
	uint32_t len = m->used + (uint32_t)sizeof(uint64_t);
	uint32_t i = (m->head->kind == OFI_REPLY) * OFI_WINDOW + m->head->seq % OFI_WINDOW;
	struct iovec local = {m->head, len};
	struct fi_rma_iov remote = {p->landing.addr + (uint64_t)(i + 1) * p->landing.place - len, len, p->landing.key};
	void *desc = t->space_mr ? fi_mr_desc(t->space_mr) : NULL;
	struct fi_msg_rma msg = {.msg_iov = &local,
				 .desc = &desc,
				 .iov_count = 1,
				 .addr = p->addr,
				 .rma_iov = &remote,
				 .rma_iov_count = 1,
				 .context = &m->ctx.fi};

	*(uint64_t *)(void *)((uint8_t *)m->head + m->used) = OFI_IS_MARK | m->used;
	return fi_writemsg(t->fabric.ep, &msg, FI_COMPLETION);
}

/* ---- receiving and sending ---- */

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
	bool lands = p->landing.place && m->head->kind <= OFI_REPLY;
	bool inject = !lands && m->used <= t->fabric.info->tx_attr->inject_size;
	ssize_t rc;

	if (lands)
		rc = message_lands(t, m);
	else if (inject)
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
