// SPDX-License-Identifier: BSD-3-Clause
/* What a user sees of how the network treats the NIC's packets: PFC, DSCP, ECN, and what was lost. */
#include <stdio.h>
#include <string.h>

#include "runtime/nic/address.h"
#include "runtime/nic/impl.h"
#include "tools/check/check.h"
#include "tools/check/dcb.h"
#include "tools/check/site.h"

#define PORT "/sys/class/infiniband/%s/ports/%u/"

struct network {
	char interface[64]; /* "": not known */
	bool said;	    /* dcb holds what the interface says of its priorities */
	struct dcb dcb;
	unsigned dscp;
	int prio; /* of that DSCP, -1: not known */
};

static long long network_counter(const struct checks *c, const char *name)
{
	return site_number(PORT "hw_counters/%s", c->nic->name, (unsigned)c->nic->port, name);
}

static void network_look(struct checks *c, struct network *n)
{
	memset(n, 0, sizeof(*n));
	n->dscp = c->opt.traffic_class >> 2;
	n->prio = -1;
	if (!site_line(n->interface, sizeof(n->interface), PORT "gid_attrs/ndevs/%u", c->nic->name,
		       (unsigned)c->nic->port, (unsigned)c->nic->gid_index))
		return;
	n->said = dcb_ask(n->interface, &n->dcb) && n->dcb.has_pfc;
	if (n->said && n->dcb.n_dscp)
		n->prio = n->dcb.prio[n->dscp] < 0 ? 0 : n->dcb.prio[n->dscp];
}

static void check_pfc(struct checks *c, const struct network *n)
{
	if (!n->said)
		say(c, PFC, NONE, "%s does not say: mlnx_qos -i %s, as root, may",
		    *n->interface ? n->interface : "no interface",
		    *n->interface ? n->interface : "IF");
	else
		say(c, PFC, n->dcb.pfc ? GOOD : NOTE, "%s: lossless priorities 0x%02x; %s",
		    n->interface, n->dcb.pfc,
		    n->dcb.n_dscp ? "trusts DSCP" : "no DSCP is mapped to a priority");
}

static void check_dscp(struct checks *c, const struct network *n)
{
	bool lossless = n->prio >= 0 && n->dcb.pfc >> n->prio & 1;

	if (n->prio < 0)
		say(c, DSCP, NONE, "GDR_TRAFFIC_CLASS=%u, DSCP %u; its priority cannot be seen",
		    c->opt.traffic_class, n->dscp);
	else
		say(c, DSCP, lossless ? GOOD : NOTE,
		    "GDR_TRAFFIC_CLASS=%u, DSCP %u, priority %d, which is %slossless",
		    c->opt.traffic_class, n->dscp, n->prio, lossless ? "" : "not ");
}

static void check_ecn(struct checks *c, const struct network *n)
{
	long long marked = network_counter(c, "np_ecn_marked_roce_packets"),
		  handled = network_counter(c, "rp_cnp_handled");
	unsigned prio = n->prio < 0 ? 0 : (unsigned)n->prio;
	long long np = site_number("/sys/class/net/%s/ecn/roce_np/enable/%u", n->interface, prio);
	long long rp = site_number("/sys/class/net/%s/ecn/roce_rp/enable/%u", n->interface, prio);

	if (np >= 0 || rp >= 0)
		say(c, ECN, np > 0 && rp > 0 ? GOOD : NOTE,
		    "%s, priority %u: notifications %s, reactions %s; %lld packets came marked",
		    n->interface, prio, np > 0 ? "on" : "off", rp > 0 ? "on" : "off",
		    marked < 0 ? 0 : marked);
	else if (marked > 0 || handled > 0)
		say(c, ECN, GOOD, "%lld packets came marked, %lld notifications were heeded",
		    marked, handled);
	else
		say(c, ECN, NONE, "the setting is for root to see (debugfs, mlx5/*/cc_params); %s",
		    marked < 0 ? "the port has no counters" : "no packet came marked so far");
}

static void check_losses(struct checks *c)
{
	static const char *const names[] = {"packet_seq_err", "out_of_sequence",
					    "local_ack_timeout_err"};
	long long sum = 0, n;
	char text[256] = "";
	int seen = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		n = network_counter(c, names[i]);
		if (n < 0)
			continue;
		seen++;
		sum += n;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s %lld",
			 *text ? ", " : "", names[i], n);
	}
	say(c, LOSSES,
	    !seen ? NONE
	    : sum ? NOTE
		  : GOOD,
	    "%s", seen ? text : "the port has no counters");
}

void check_nic_network(struct checks *c)
{
	struct network n;

	if (c->nic->link_layer == GDRI_LINK_IB) {
		say(c, PFC, GOOD, "InfiniBand: credits keep packets from being lost");
		say(c, DSCP, GOOD, "InfiniBand: GDR_SERVICE_LEVEL=%u", c->opt.service_level);
		say(c, ECN, NONE, "InfiniBand: the subnet manager's to see");
	} else {
		network_look(c, &n);
		check_pfc(c, &n);
		check_dscp(c, &n);
		check_ecn(c, &n);
	}
	check_losses(c);
}
