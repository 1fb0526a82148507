/* SPDX-License-Identifier: BSD-3-Clause */
/* Encoding and decoding of RoCEv2 packets, and the invariant CRC. */
#include "softhca/transport/packet.h"

#include "softhca/memory/guest.h"

enum { RETH_LEN = 16, AETH_LEN = 4, ATOMIC_LEN = 28, ATOMIC_ACK_LEN = 8, MASKED_LEN = 48,
       DETH_LEN = 8, UDP_LEN = 8 };

static const uint8_t headers[] = {
	[BTH_SEND_FIRST] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_SEND_MIDDLE] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_SEND_LAST] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_SEND_LAST_IMM] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_IMM,
	[BTH_SEND_ONLY] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_SEND_ONLY_IMM] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_IMM,
	[BTH_WRITE_FIRST] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_RETH,
	[BTH_WRITE_MIDDLE] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_WRITE_LAST] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_WRITE_LAST_IMM] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_IMM,
	[BTH_WRITE_ONLY] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_RETH,
	[BTH_WRITE_ONLY_IMM] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_RETH | PKT_HAS_IMM,
	[BTH_READ_REQ] = PKT_KNOWN | PKT_HAS_RETH,
	[BTH_READ_RESP_FIRST] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_AETH,
	[BTH_READ_RESP_MIDDLE] = PKT_KNOWN | PKT_HAS_PAYLOAD,
	[BTH_READ_RESP_LAST] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_AETH,
	[BTH_READ_RESP_ONLY] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_AETH,
	[BTH_ACK] = PKT_KNOWN | PKT_HAS_AETH,
	[BTH_ATOMIC_ACK] = PKT_KNOWN | PKT_HAS_AETH | PKT_HAS_ATOMIC_ACK,
	[BTH_CMP_SWAP] = PKT_KNOWN | PKT_HAS_ATOMIC,
	[BTH_FETCH_ADD] = PKT_KNOWN | PKT_HAS_ATOMIC,
	[BTH_SEND_LAST_INV] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_IMM,
	[BTH_SEND_ONLY_INV] = PKT_KNOWN | PKT_HAS_PAYLOAD | PKT_HAS_IMM,
};

unsigned packet_headers(uint8_t opcode)
{
	uint8_t op = opcode & (uint8_t)~BTH_CLASS;

	if (opcode == BTH_MASKED_ATOMIC)
		return PKT_KNOWN | PKT_HAS_MASKED;
	if (opcode == BTH_DC_MASKED_ATOMIC)
		return PKT_KNOWN | PKT_HAS_MASKED | PKT_HAS_DC;
	switch (opcode & BTH_CLASS) {
	case BTH_RC:
		return op < sizeof(headers) ? headers[op] : 0;
	case BTH_UC:
		return op <= BTH_WRITE_ONLY_IMM ? headers[op] : 0;
	case BTH_UD:
		return op == BTH_SEND_ONLY || op == BTH_SEND_ONLY_IMM ? headers[op] | PKT_HAS_DETH
								      : 0;
	case BTH_DC:
		if (op >= sizeof(headers) || !headers[op])
			return 0;
		return headers[op] | (op >= BTH_READ_RESP_FIRST && op <= BTH_ATOMIC_ACK ? 0 : PKT_HAS_DC);
	default:
		return 0;
	}
}

static size_t encode_atomic(const struct packet *p, uint8_t *b, unsigned h)
{
	put_be64(b, p->va);
	put_be32(b + 8, p->rkey);
	if (h & PKT_HAS_ATOMIC) {
		put_be64(b + 12, p->operand);
		put_be64(b + 20, p->compare);
		return ATOMIC_LEN;
	}
	b[12] = !p->atomic_add;
	b[13] = p->atomic_size;
	put_be16(b + 14, 0);
	put_be64(b + 16, p->operand);
	put_be64(b + 24, p->compare);
	put_be64(b + 32, p->operand_mask);
	put_be64(b + 40, p->compare_mask);
	return MASKED_LEN;
}

size_t packet_encode(struct packet *p, uint8_t *buf)
{
	unsigned h = packet_headers(p->opcode);
	uint8_t *b = buf + PKT_BTH_LEN;

	p->pad = (uint8_t)(-p->len & 3);
	buf[0] = p->opcode;
	buf[1] = (uint8_t)((p->solicited ? 0x80 : 0) | 0x40 | p->pad << 4);
	put_be16(buf + 2, p->pkey);
	put_be32(buf + 4, p->dqpn & 0xffffff);
	put_be32(buf + 8, (p->ackreq ? 0x80000000u : 0) | (p->psn & PSN_MASK));
	if (h & PKT_HAS_DC) {
		put_be64(b, p->dc_key);
		put_be32(b + 8, (uint32_t)p->life << 24 | (p->sqpn & 0xffffff));
		put_be32(b + 12, p->first_psn & PSN_MASK);
		b += PKT_DC_LEN;
	}
	if (h & PKT_HAS_DETH) {
		put_be32(b, p->qkey);
		put_be32(b + 4, p->sqpn & 0xffffff);
		b += DETH_LEN;
	}
	if (h & PKT_HAS_RETH) {
		put_be64(b, p->va);
		put_be32(b + 8, p->rkey);
		put_be32(b + 12, p->dmalen);
		b += RETH_LEN;
	}
	if (h & (PKT_HAS_ATOMIC | PKT_HAS_MASKED))
		b += encode_atomic(p, b, h);
	if (h & PKT_HAS_AETH) {
		put_be32(b, (uint32_t)p->syndrome << 24 | (p->msn & 0xffffff));
		b += AETH_LEN;
	}
	if (h & PKT_HAS_ATOMIC_ACK) {
		put_be64(b, p->orig);
		b += ATOMIC_ACK_LEN;
	}
	if (h & PKT_HAS_IMM) {
		memcpy(b, &p->imm, 4);
		b += 4;
	}
	return (size_t)(b - buf);
}

static size_t header_len(unsigned h)
{
	size_t n = PKT_BTH_LEN;

	n += h & PKT_HAS_DC ? PKT_DC_LEN : 0;
	n += h & PKT_HAS_DETH ? DETH_LEN : 0;
	n += h & PKT_HAS_RETH ? RETH_LEN : 0;
	n += h & PKT_HAS_ATOMIC ? ATOMIC_LEN : 0;
	n += h & PKT_HAS_MASKED ? MASKED_LEN : 0;
	n += h & PKT_HAS_AETH ? AETH_LEN : 0;
	n += h & PKT_HAS_ATOMIC_ACK ? ATOMIC_ACK_LEN : 0;
	n += h & PKT_HAS_IMM ? 4 : 0;
	return n;
}

static void packet_decode_atomic(const uint8_t *b, unsigned h, struct packet *p)
{
	p->va = get_be64(b);
	p->rkey = get_be32(b + 8);
	if (h & PKT_HAS_ATOMIC) {
		p->operand = get_be64(b + 12);
		p->compare = get_be64(b + 20);
		p->atomic_size = 8;
		p->atomic_add = packet_op(p) == BTH_FETCH_ADD;
		return;
	}
	p->atomic_add = b[12] == 0;
	p->atomic_size = b[13];
	p->operand = get_be64(b + 16);
	p->compare = get_be64(b + 24);
	p->operand_mask = get_be64(b + 32);
	p->compare_mask = get_be64(b + 40);
}

size_t packet_header_len(uint8_t opcode)
{
	return header_len(packet_headers(opcode));
}

int packet_decode(const uint8_t *buf, size_t n, struct packet *p)
{
	const uint8_t *b = buf + PKT_BTH_LEN;
	unsigned h;
	size_t hl;

	memset(p, 0, sizeof(*p));
	if (n < PKT_BTH_LEN + PKT_ICRC_LEN || n > PKT_MAX)
		return -1;
	p->opcode = buf[0];
	h = packet_headers(p->opcode);
	hl = header_len(h);
	p->pad = (buf[1] >> 4) & 3;
	if (!h || (buf[1] & 0x0f) || n < hl + p->pad + PKT_ICRC_LEN)
		return -1;
	p->solicited = buf[1] >> 7;
	p->pkey = get_be16(buf + 2);
	p->dqpn = get_be32(buf + 4) & 0xffffff;
	p->ackreq = buf[8] >> 7;
	p->psn = get_be32(buf + 8) & PSN_MASK;
	p->len = (uint32_t)(n - hl - p->pad - PKT_ICRC_LEN);
	if (p->len > PKT_MAX_MTU || (p->len && !(h & PKT_HAS_PAYLOAD)))
		return -1;
	if (h & PKT_HAS_DC) {
		p->dc_key = get_be64(b);
		p->life = b[8];
		p->sqpn = get_be32(b + 8) & 0xffffff;
		p->first_psn = get_be32(b + 12) & PSN_MASK;
		b += PKT_DC_LEN;
	}
	if (h & PKT_HAS_DETH) {
		p->qkey = get_be32(b);
		p->sqpn = get_be32(b + 4) & 0xffffff;
		b += DETH_LEN;
	}
	if (h & PKT_HAS_RETH) {
		p->va = get_be64(b);
		p->rkey = get_be32(b + 8);
		p->dmalen = get_be32(b + 12);
		b += RETH_LEN;
	}
	if (h & (PKT_HAS_ATOMIC | PKT_HAS_MASKED)) {
		packet_decode_atomic(b, h, p);
		b += h & PKT_HAS_ATOMIC ? ATOMIC_LEN : MASKED_LEN;
	}
	if (h & PKT_HAS_AETH) {
		p->syndrome = b[0];
		p->msn = get_be32(b) & 0xffffff;
		b += AETH_LEN;
	}
	if (h & PKT_HAS_ATOMIC_ACK) {
		p->orig = get_be64(b);
		b += ATOMIC_ACK_LEN;
	}
	if (h & PKT_HAS_IMM)
		memcpy(&p->imm, b, 4);
	return (int)hl;
}

/* The IP header with the fields that may change on the way set to ones (annex
 * A17.3.3); payload: UDP header to ICRC. */
static size_t masked_ip(const struct packet_addr *a, size_t payload, uint8_t *h)
{
	if (a->saddr6) {
		put_be32(h, 0x6fffffff); /* traffic class, flow label */
		put_be16(h + 4, (uint16_t)payload);
		h[6] = IPPROTO_UDP;
		h[7] = 0xff; /* hop limit */
		memcpy(h + 8, a->saddr6, 16);
		memcpy(h + 24, a->daddr6, 16);
		return 40;
	}
	h[0] = 0x45;
	h[1] = 0xff; /* type of service */
	put_be16(h + 2, (uint16_t)(20 + payload));
	memcpy(h + 4, &a->id, 2);
	put_be16(h + 6, 0x4000); /* DF */
	h[8] = 0xff;		 /* time to live */
	h[9] = IPPROTO_UDP;
	put_be16(h + 10, 0xffff); /* header checksum */
	memcpy(h + 12, &a->saddr, 4);
	memcpy(h + 16, &a->daddr, 4);
	return 20;
}

uint32_t packet_icrc(const struct packet_addr *a, const struct iovec *iov, int n)
{
	/* Eight bytes of ones in place of the LRH, then IP, UDP and BTH. */
	uint8_t h[8 + 40 + UDP_LEN + PKT_BTH_LEN];
	size_t len = UDP_LEN + PKT_ICRC_LEN, at = 8;
	uint32_t crc;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	memset(h, 0xff, 8);
	at += masked_ip(a, len, h + at);
	memcpy(h + at, &a->sport, 2);
	memcpy(h + at + 2, &a->dport, 2);
	put_be16(h + at + 4, (uint16_t)len);
	put_be16(h + at + 6, 0xffff); /* UDP checksum */
	at += UDP_LEN;
	memcpy(h + at, iov[0].iov_base, PKT_BTH_LEN);
	h[at + 4] = 0xff; /* resv8a */
	crc = crc32_ieee(0, h, at + PKT_BTH_LEN);
	crc = crc32_ieee(crc, (const uint8_t *)iov[0].iov_base + PKT_BTH_LEN,
			 iov[0].iov_len - PKT_BTH_LEN);
	for (int i = 1; i < n; i++)
		crc = crc32_ieee(crc, iov[i].iov_base, iov[i].iov_len);
	return crc;
}

bool packet_icrc_explained_by_id(uint32_t difference, size_t n)
{
	/* The CRC is linear: a changed identification changes it by a value
	 * that the bytes behind only shift. Shift back over those, that is the
	 * IP header from byte 6, UDP, and the packet without ICRC, and over the
	 * field itself: what is left must be 16 bits wide. */
	size_t steps = 2 + 14 + 8 + n - PKT_ICRC_LEN;

	for (size_t i = 0; i < steps * 8; i++)
		difference = difference & 0x80000000u ? (difference ^ 0xedb88320u) << 1 | 1
						      : difference << 1;
	return difference >> 16 == 0;
}
