/* SPDX-License-Identifier: BSD-3-Clause */
/* Unreliable datagrams: every WQE names its destination, every packet its
 * sender. The first 40 bytes of a receive are for the network header, of which
 * RoCEv2 fills in the IP header: IPv4 in the last 20 bytes, IPv6 in all 40.
 * IBTA volume 1, section 9.8.3, and annex A17.4.5. */
#include <string.h>

#include "softhca/memory/guest.h"
#include "softhca/tools/options.h"
#include "softhca/transport/rc.h"

enum {
	GRH_LEN = 40,
	IPV4_LEN = 20,
	UDP_LEN = 8,
	IPPROTO_UDP_ = 17,
	/* flags_rqpn of a CQE: GRH present at bit 28; RoCE: L3 type at bit 24 */
	CQE_GRH = 1 << 28,
	CQE_L3_IPV6 = 1 << 24,
	CQE_L3_IPV4 = 2 << 24,
};

#define RESOLVE_NS 10000000u

/* ---- sending ---- */

/* The way to the destination, looked for anew when it is another one, and now
 * and then: a process there may be another one, too. */
void ud_aim(struct hca_qp *qp, const struct wqe_av *av)
{
	struct hca_rc *rc = qp->rc;
	struct in6_addr gid = { 0 };

	if (av->has_grh && hca_options()->link != HCA_LINK_IB)
		memcpy(&gid, av->rgid, sizeof(gid));
	if (dp_now() >= rc->ud_until || av->dqpn != rc->ud_dqpn ||
	    av->sgid_index != rc->ud_sgid || memcmp(&gid, &rc->ud_gid, sizeof(gid))) {
		wire_resolve(&gid, av->sgid_index < HCA_GIDS ? HCA_GIDS * qp->device + av->sgid_index
							      : HCA_PORTS, av->dqpn, &rc->dest);
		rc->ud_sgid = av->sgid_index;
		rc->ud_gid = gid;
		rc->ud_dqpn = av->dqpn;
		rc->ud_until = dp_now() + RESOLVE_NS;
	}
	rc->dest.tclass = av->tclass;
	rc->dest.sport = av->rlid ? av->rlid : rc_sport(qp->qpn, av->dqpn);
}

bool ud_send(struct hca_qp *qp, struct rc_req *r)
{
	struct hca_rc *rc = qp->rc;
	struct packet p = {
		.opcode = r->has_imm ? BTH_UD_SEND_ONLY_IMM : BTH_UD_SEND_ONLY,
		.dqpn = r->av.dqpn,
		.psn = rc->psn_next,
		.solicited = r->solicited,
		.pkey = PKEY_DEFAULT,
		.imm = r->imm,
		.sqpn = qp->qpn,
		.len = r->len,
	};
	struct iovec iov[PKT_MAX_IOV];
	int n = rc_payload(qp, r, 0, r->len, iov);

	if (n < 0)
		return false;
	/* Bit 31 asks for the QP's own key (10.2.5). */
	p.qkey = (uint32_t)(r->av.key >> 32);
	if (p.qkey >> 31)
		p.qkey = qp->qkey;
	/* No way there: lost, and no error (9.8.3). */
	ud_aim(qp, &r->av);
	wire_send(qp, &p, iov, n);
	return true;
}

/* ---- receiving ---- */

static uint16_t ip_checksum(const uint8_t *h)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < IPV4_LEN; i += 2)
		sum += get_be16(h + i);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static bool is_ipv4(const struct in6_addr *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* The header as it was in front of the packet; which kind, as CQE bits. */
static uint32_t build_grh(const struct hca_qp *qp, const struct wire_dest *from,
			  const struct packet *p, uint8_t *grh)
{
	struct in6_addr src, dst = dp_gid(from->kind == WIRE_REMOTE ? from->sgid : HCA_GIDS * qp->device);
	uint16_t udp = (uint16_t)(UDP_LEN + packet_header_len(p->opcode) + p->len + p->pad +
				  PKT_ICRC_LEN);
	uint8_t *ip = grh + GRH_LEN - IPV4_LEN;

	memset(grh, 0, GRH_LEN);
	if (hca_options()->link == HCA_LINK_IB)
		return 0;
	wire_source_gid(from, &src);
	if (!is_ipv4(&src)) {
		put_be32(grh, 6u << 28 | (uint32_t)from->tclass << 20);
		put_be16(grh + 4, udp);
		grh[6] = IPPROTO_UDP_;
		grh[7] = 64;
		memcpy(grh + 8, &src, 16);
		memcpy(grh + 24, &dst, 16);
		return CQE_GRH | CQE_L3_IPV6;
	}
	ip[0] = 0x45;
	ip[1] = from->tclass;
	put_be16(ip + 2, (uint16_t)(IPV4_LEN + udp));
	put_be16(ip + 6, 0x4000); /* DF */
	ip[8] = 64;
	ip[9] = IPPROTO_UDP_;
	memcpy(ip + 12, src.s6_addr + 12, 4);
	memcpy(ip + 16, dst.s6_addr + 12, 4);
	put_be16(ip + 10, ip_checksum(ip));
	return CQE_GRH | CQE_L3_IPV4;
}

static void receive_failed(struct hca_qp *qp, const struct hca_recv *r, uint8_t syndrome)
{
	qp->state = HCA_QPS_ERR;
	recv_error(qp, r, syndrome,
		   syndrome == SYND_LOCAL_LENGTH ? VEND_LOCAL_LEN : VEND_LOCAL_PROT);
	rc_to_error(qp);
}

void ud_receive(struct hca_qp *qp, const struct wire_dest *from, const struct packet *p,
		const struct iovec *pl, int npl)
{
	struct hca_recv *r = &qp->rc->rs.rx;
	struct iovec iov[PKT_MAX_IOV + 1];
	uint8_t grh[GRH_LEN], bad;
	struct cqe c = {
		.type = packet_op(p) == BTH_SEND_ONLY ? CQE_RESP_SEND : CQE_RESP_SEND_IMM,
		.have_imm = packet_op(p) != BTH_SEND_ONLY,
		.imm = p->imm,
		.solicited = p->solicited,
	};

	if (p->qkey != qp->qkey) {
		STAT_INC(qkey_violations);
		return;
	}
	if (p->len > qp->mtu || npl > PKT_MAX_IOV || !recv_take(qp, r)) {
		STAT_INC(msg_parts_dropped);
		return;
	}
	c.flags_rqpn = build_grh(qp, from, p, grh) | p->sqpn;
	c.slid = hca_options()->link == HCA_LINK_IB; /* the LID of every softhca port is 1 */
	iov[0].iov_base = grh;
	iov[0].iov_len = GRH_LEN;
	for (int i = 0; i < npl; i++)
		iov[i + 1] = pl[i];
	/* Without a GRH its place stays as it is. */
	if (!(c.flags_rqpn & CQE_GRH)) {
		r->off = GRH_LEN;
		bad = recv_place(qp, r, p, pl, npl, p->len);
	} else {
		bad = recv_place(qp, r, p, iov, npl + 1, GRH_LEN + p->len);
	}
	if (bad)
		receive_failed(qp, r, bad);
	else
		recv_cqe(qp, r, c);
}
