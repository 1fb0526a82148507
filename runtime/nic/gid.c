// SPDX-License-Identifier: BSD-3-Clause
/* Choice of the RoCE GID. A port has one GID per (IP address, RoCE version), in
 * an order that depends on when addresses were configured, so an index alone
 * means nothing across machines. Only RoCE v2 is used (v1 is not routable, and
 * the source port, DSCP and hop limit of the queues have no meaning in it). */
#include "runtime/nic/gid.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <gdr/status.h>

enum rank {	       /* best first */
	    RANK_IPV4, /* ::ffff:a.b.c.d */
	    RANK_IPV6,
	    RANK_IPV4_LOCAL, /* 169.254/16: configured by nobody, often not the same net */
	    RANK_IPV6_LOCAL, /* fe80::/10: derived from the MAC, does not leave the link */
	    RANK_NONE,
};

static const char *const rank_text[] = {
	"an IPv4 address",
	"a routable IPv6 address",
	"only a link-local IPv4 address",
	"only a link-local IPv6 address",
};

static int is_zero(const uint8_t raw[16])
{
	static const uint8_t zero[16];

	return !memcmp(raw, zero, sizeof(zero));
}

static enum rank gid_rank_of(const struct gdri_gid *gid)
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	const uint8_t *r = gid->raw;

	if (gid->type != GDRI_GID_ROCE_V2 || is_zero(r))
		return RANK_NONE;
	if (!memcmp(r, mapped, sizeof(mapped)))
		return r[12] == 169 && r[13] == 254 ? RANK_IPV4_LOCAL : RANK_IPV4;
	return r[0] == 0xfe && (r[1] & 0xc0) == 0x80 ? RANK_IPV6_LOCAL : RANK_IPV6;
}

void gdri_gid_text(const uint8_t raw[16], char *buf, size_t room)
{
	if (!inet_ntop(AF_INET6, raw, buf, (socklen_t)room))
		snprintf(buf, room, "?");
}

static int check_wanted(const struct gdri_gid *gids, int n, int wanted, char *why, size_t room)
{
	static const char *const types[] = {"InfiniBand", "RoCE v1", "RoCE v2"};
	char text[INET6_ADDRSTRLEN];
	int i;

	for (i = 0; i < n && gids[i].index != wanted; i++)
		;
	if (i == n || is_zero(gids[i].raw)) {
		snprintf(why, room,
			 "GDR_GID_INDEX=%d: the port has no GID at that index "
			 "(see /sys/class/infiniband/*/ports/*/gids)",
			 wanted);
		return -GDR_EOPTION;
	}
	gdri_gid_text(gids[i].raw, text, sizeof(text));
	if (gids[i].type != GDRI_GID_ROCE_V2) {
		snprintf(why, room,
			 "GDR_GID_INDEX=%d: GID %s is of type %s; only RoCE v2 can be "
			 "used (see .../gid_attrs/types)",
			 wanted, text, types[gids[i].type]);
		return -GDR_EOPTION;
	}
	snprintf(why, room, "GID %d (%s): asked for by GDR_GID_INDEX", wanted, text);
	return i;
}

int gdri_gid_choose(const struct gdri_gid *gids, int n, int wanted, char *why, size_t room)
{
	char text[INET6_ADDRSTRLEN];
	enum rank best = RANK_NONE;
	int i, at = -1;

	if (wanted >= 0)
		return check_wanted(gids, n, wanted, why, room);
	for (i = 0; i < n; i++) {
		if (gid_rank_of(&gids[i]) < best) {
			best = gid_rank_of(&gids[i]);
			at = i;
		}
	}
	if (at < 0) {
		snprintf(why, room,
			 "none of its %d GIDs is of type RoCE v2: give the network "
			 "interface an IP address",
			 n);
		return -GDR_ENODEV;
	}
	gdri_gid_text(gids[at].raw, text, sizeof(text));
	snprintf(why, room, "GID %d (%s): the first RoCE v2 GID from %s", gids[at].index, text,
		 rank_text[best]);
	return at;
}

int gdri_pkey_index(const uint16_t *table, int n, uint16_t pkey, char *why, size_t room)
{
	int i, len, partition = -1;

	for (i = 0; i < n; i++) {
		if (table[i] == pkey)
			return i;
		/* Bit 15 is full membership (IBTA 10.9.1.1). */
		if (partition < 0 && table[i] && ((table[i] ^ pkey) & 0x7fff) == 0)
			partition = i;
	}
	if (partition >= 0)
		return partition;
	len = snprintf(why, room, "GDR_PKEY=0x%04x is not in the port's table, which has", pkey);
	for (i = 0; i < n && len > 0 && (size_t)len < room; i++) {
		if (table[i])
			len += snprintf(why + len, room - (size_t)len, " 0x%04x", table[i]);
	}
	return -GDR_EOPTION;
}
