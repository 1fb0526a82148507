/* SPDX-License-Identifier: BSD-3-Clause */
/* InfiniBand transport packets as RoCEv2 carries them in UDP: BTH, extended
 * headers, payload, pad, ICRC (IBTA volume 1, chapter 9; annex A17). Encoding
 * and decoding are pure functions over bytes and never read past them. */
#ifndef SOFTHCA_PACKET_H
#define SOFTHCA_PACKET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define ROCE_PORT 4791
#define PSN_MASK 0xffffffu
#define PKEY_DEFAULT 0xffff /* the one entry of the P_Key table: full member */

enum {
	PKT_BTH_LEN = 12,
	PKT_ICRC_LEN = 4,
	PKT_DC_LEN = 16,
	PKT_MAX_HDR = PKT_BTH_LEN + PKT_DC_LEN + 48, /* BTH and the longest extensions */
	PKT_MAX_MTU = 4096,
	PKT_MAX = PKT_MAX_HDR + PKT_MAX_MTU + 3 + PKT_ICRC_LEN,
	PKT_MAX_IOV = 64,
	/* Beside a full payload: IPv6 (or a GRH), UDP, BTH, ICRC and the most that headers add, DC's with
	 * those of a WRITE with immediate. */
	PKT_HEADROOM = 40 + 8 + PKT_BTH_LEN + PKT_DC_LEN + 16 + 4 + PKT_ICRC_LEN,
};

enum { /* the transport in the upper three bits of an opcode, IBTA table 38 */
	BTH_RC = 0x00,
	BTH_UC = 0x20,
	BTH_UD = 0x60,
	BTH_MANUFACTURER = 0xc0, /* and 0xe0 */
	BTH_DC = 0xe0,
	BTH_CLASS = 0xe0,
};

/* RC opcodes. Those of UC and DC are the same in the lower five bits. */
enum bth_opcode {
	BTH_SEND_FIRST = 0x00,
	BTH_SEND_MIDDLE = 0x01,
	BTH_SEND_LAST = 0x02,
	BTH_SEND_LAST_IMM = 0x03,
	BTH_SEND_ONLY = 0x04,
	BTH_SEND_ONLY_IMM = 0x05,
	BTH_WRITE_FIRST = 0x06,
	BTH_WRITE_MIDDLE = 0x07,
	BTH_WRITE_LAST = 0x08,
	BTH_WRITE_LAST_IMM = 0x09,
	BTH_WRITE_ONLY = 0x0a,
	BTH_WRITE_ONLY_IMM = 0x0b,
	BTH_READ_REQ = 0x0c,
	BTH_READ_RESP_FIRST = 0x0d,
	BTH_READ_RESP_MIDDLE = 0x0e,
	BTH_READ_RESP_LAST = 0x0f,
	BTH_READ_RESP_ONLY = 0x10,
	BTH_ACK = 0x11,
	BTH_ATOMIC_ACK = 0x12,
	BTH_CMP_SWAP = 0x13,
	BTH_FETCH_ADD = 0x14,
	BTH_SEND_LAST_INV = 0x16,
	BTH_SEND_ONLY_INV = 0x17,
	/* IBTA leaves 0xc0..0xff to the manufacturer. Masked atomics, which no
	 * standard opcode carries: the header below, answered by ATOMIC_ACK.
	 *   be64 va, be32 rkey, u8 operation (0 add, 1 compare and swap),
	 *   u8 size (4, 8), u16 0, be64 operand, be64 compare,
	 *   be64 operand mask or boundary, be64 compare mask */
	BTH_MASKED_ATOMIC = 0xc4,
	/* No standard says how DC looks on the wire. Here requests of a DCI have the
	 * opcodes of RC and this header behind the BTH; answers have none.
	 *   be64 access key, u8 life, be24 QPN of the DCI, u8 0, be24 first PSN */
	BTH_DC_MASKED_ATOMIC = BTH_DC | 0x1c,
	BTH_UD_SEND_ONLY = BTH_UD | BTH_SEND_ONLY,
	BTH_UD_SEND_ONLY_IMM = BTH_UD | BTH_SEND_ONLY_IMM,
};

enum { /* AETH syndrome, IBTA table 45 */
	AETH_ACK = 0x1f, /* credit count invalid: no end-to-end flow control */
	AETH_RNR = 0x20, /* | timer code */
	AETH_NAK_SEQ = 0x60,
	AETH_NAK_INVAL = 0x61,
	AETH_NAK_ACCESS = 0x62,
	AETH_NAK_OP = 0x63,
	/* Of the codes that the standard reserves, and inside a host alone: payload that stays
	 * in its place could not be read there. */
	AETH_NAK_UNREAD = 0x7f,
	AETH_KIND = 0x60,
};

enum { /* which extended headers an opcode carries */
	PKT_HAS_RETH = 1,
	PKT_HAS_AETH = 2,
	PKT_HAS_ATOMIC = 4,
	PKT_HAS_ATOMIC_ACK = 8,
	PKT_HAS_IMM = 16, /* or IETH: as long, at the same place */
	PKT_HAS_MASKED = 32,
	PKT_HAS_PAYLOAD = 64,
	PKT_KNOWN = 128,
	PKT_HAS_DETH = 256,
	PKT_HAS_DC = 512,
};

struct peer_memory; /* dp.h */

struct packet {
	uint8_t opcode;
	uint8_t pad;
	bool ackreq, solicited;
	uint16_t pkey;
	uint32_t dqpn, psn;

	uint64_t va; /* RETH, AtomicETH */
	uint32_t rkey;
	uint32_t dmalen; /* RETH */
	uint8_t syndrome; /* AETH */
	uint32_t msn;
	uint32_t imm; /* network order; of the _INV opcodes the key in the IETH */
	uint64_t operand, compare, operand_mask, compare_mask;
	uint8_t atomic_size;
	bool atomic_add;
	uint64_t orig; /* AtomicAckETH */
	uint32_t qkey, sqpn; /* DETH; sqpn also DC */
	uint64_t dc_key;
	uint32_t first_psn; /* of the DC connection */
	uint8_t life;

	uint32_t len; /* payload bytes without pad */

	/* Inside a host one packet may stand for several: so many PSNs beyond its own, a
	 * payload of so many MTUs more. Its pieces may lie in another process. */
	uint32_t more;
	struct peer_memory *peer; /* NULL: in this one */
};

/* The opcode that an RC packet of the same meaning has. */
static inline uint8_t packet_op(const struct packet *p)
{
	if (p->opcode == BTH_MASKED_ATOMIC || p->opcode == BTH_DC_MASKED_ATOMIC)
		return BTH_MASKED_ATOMIC;
	return p->opcode & (uint8_t)~BTH_CLASS;
}

/* The transport of a packet, and the opcode that an RC opcode has there. */
static inline uint8_t packet_class(const struct packet *p)
{
	return p->opcode == BTH_MASKED_ATOMIC ? BTH_RC : p->opcode & BTH_CLASS;
}

static inline uint8_t packet_opcode(uint8_t class, uint8_t op)
{
	if (op == BTH_MASKED_ATOMIC)
		return class == BTH_DC ? BTH_DC_MASKED_ATOMIC : op;
	return class | op;
}

/* PKT_HAS_* bits of an opcode; 0 when it is not known. */
unsigned packet_headers(uint8_t opcode);

/* BTH and extended headers of an opcode. */
size_t packet_header_len(uint8_t opcode);

/* Writes BTH and extended headers; buf has room for PKT_MAX_HDR. Sets the pad
 * count from p->len. Returns the header length. */
size_t packet_encode(struct packet *p, uint8_t *buf);

/* Decodes n bytes (BTH up to and with ICRC). Returns the offset of the
 * payload, or -1 when the bytes are no packet that softhca knows. */
int packet_decode(const uint8_t *buf, size_t n, struct packet *p);

struct packet_addr { /* what the ICRC covers of IP and UDP; network order */
	uint32_t saddr, daddr;
	const struct in6_addr *saddr6, *daddr6; /* NULL: IPv4 */
	uint16_t sport, dport;
	uint16_t id; /* IP identification; 0 as Linux sends it with DF, see below */
};

/* ICRC of the packet that consists of these pieces (BTH first, which must be
 * wholly in the first piece, up to and with the pad). An IPv4 header is one
 * of 20 bytes with DF; the identification is 0 where Linux sends from an
 * unconnected UDP socket with IP_PMTUDISC_DO. */
uint32_t packet_icrc(const struct packet_addr *a, const struct iovec *iov, int n);

/* True when a difference between computed and received ICRC of an n-byte
 * packet (BTH up to and with ICRC) comes from the IP identification alone. A
 * UDP socket does not see that field; this leaves one wrong packet in 65536. */
bool packet_icrc_explained_by_id(uint32_t difference, size_t n);

/* CRC-32 (IEEE 802.3) continued from crc, as zlib's crc32. */
uint32_t crc32_ieee(uint32_t crc, const void *buf, size_t n);

static inline int32_t psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t psn_add(uint32_t a, uint32_t n)
{
	return (a + n) & PSN_MASK;
}

#endif
