// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "tools/check/dcb.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#define DCB_ROOM (NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct dcbmsg)))

struct dcb_piece {
	unsigned type;
	const uint8_t *at;
	size_t n;
};

/* The next attribute of a list, which shrinks by it. */
static bool dcb_next(struct dcb_piece *list, struct dcb_piece *out)
{
	struct nlattr a;
	size_t step;

	if (list->n < sizeof(a))
		return false;
	memcpy(&a, list->at, sizeof(a));
	if (a.nla_len < sizeof(a) || a.nla_len > list->n)
		return false;
	*out = (struct dcb_piece){a.nla_type & NLA_TYPE_MASK, list->at + NLA_HDRLEN,
				  a.nla_len - sizeof(a)};
	step = NLA_ALIGN(a.nla_len);
	step = step < list->n ? step : list->n;
	list->at += step;
	list->n -= step;
	return true;
}

static void dcb_apps(struct dcb_piece list, struct dcb *out)
{
	struct dcb_piece p;
	struct dcb_app app;

	while (dcb_next(&list, &p)) {
		if (p.type != DCB_ATTR_IEEE_APP || p.n < sizeof(app))
			continue;
		memcpy(&app, p.at, sizeof(app));
		if (app.selector != IEEE_8021QAZ_APP_SEL_DSCP || app.protocol >= 64 ||
		    app.priority >= 8)
			continue;
		out->prio[app.protocol] = (int8_t)app.priority;
		out->n_dscp++;
	}
}

static void dcb_ieee(struct dcb_piece list, struct dcb *out)
{
	struct dcb_piece p;
	struct ieee_pfc pfc;

	while (dcb_next(&list, &p)) {
		if (p.type == DCB_ATTR_IEEE_PFC && p.n >= sizeof(pfc)) {
			memcpy(&pfc, p.at, sizeof(pfc));
			out->has_pfc = true;
			out->pfc = pfc.pfc_en;
		} else if (p.type == DCB_ATTR_IEEE_APP_TABLE) {
			dcb_apps(p, out);
		}
	}
}

bool dcb_parse(const void *answer, size_t n, struct dcb *out)
{
	struct dcb_piece list, p;
	struct nlmsghdr h;
	bool found = false;

	memset(out, 0, sizeof(*out));
	memset(out->prio, -1, sizeof(out->prio));
	if (n < DCB_ROOM)
		return false;
	memcpy(&h, answer, sizeof(h));
	if (h.nlmsg_type == NLMSG_ERROR || h.nlmsg_len < DCB_ROOM || h.nlmsg_len > n)
		return false;
	list = (struct dcb_piece){0, (const uint8_t *)answer + DCB_ROOM, h.nlmsg_len - DCB_ROOM};
	while (dcb_next(&list, &p))
		if (p.type == DCB_ATTR_IEEE) {
			dcb_ieee(p, out);
			found = true;
		}
	return found;
}

bool dcb_ask(const char *interface, struct dcb *out)
{
	struct {
		struct nlmsghdr h;
		struct dcbmsg d;
		struct nlattr a;
		char name[16];
	} ask = {.h = {.nlmsg_type = RTM_GETDCB,
		       .nlmsg_flags = NLM_F_REQUEST,
		       .nlmsg_len = sizeof(ask)},
		 .d = {.cmd = DCB_CMD_IEEE_GET},
		 .a = {.nla_type = DCB_ATTR_IFNAME, .nla_len = NLA_HDRLEN + sizeof(ask.name)}};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	struct timeval limit = {.tv_sec = 1};
	char answer[16384];
	ssize_t n = -1;

	if (fd < 0)
		return false;
	strncpy(ask.name, interface, sizeof(ask.name) - 1);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask))
		n = recv(fd, answer, sizeof(answer), 0);
	close(fd);
	return n > 0 && dcb_parse(answer, (size_t)n, out);
}
