// SPDX-License-Identifier: BSD-3-Clause
/* What is said of a PE that does not answer. Providers over TCP try to connect again and again and say nothing, so a
 * connection of this PE's own finds out what is in the way. */
#define _GNU_SOURCE /* SOCK_NONBLOCK */
#include "runtime/ofi/ofi.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/core/log.h"
#include "runtime/core/text.h"

#define WAY_TRY_MS 500

union way_address {
	struct sockaddr any;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
	uint8_t raw[GDRI_OFI_NAME];
};

/* NULL: it is taken. */
static const char *way_connects(int s, const union way_address *to)
{
	socklen_t len = to->any.sa_family == AF_INET6 ? sizeof(to->in6) : sizeof(to->in4);
	struct pollfd p = {.fd = s, .events = POLLOUT};
	int err = connect(s, &to->any, len) ? errno : 0;
	socklen_t err_len = sizeof(err);

	if (err == EINPROGRESS && poll(&p, 1, WAY_TRY_MS) == 1)
		getsockopt(s, SOL_SOCKET, SO_ERROR, &err, &err_len);
	return err == EINPROGRESS ? "no answer to a connection" : err ? gdri_errno_text(err) : NULL;
}

/* From the address that the provider uses. */
static const char *way_try(struct gdri_ofi_proxy *t, const union way_address *to)
{
	int s = socket(to->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	union way_address own = {0};
	size_t len = sizeof(own.raw);
	const char *why;

	if (s < 0)
		return gdri_errno_text(errno);
	if (!fi_getname(&t->fabric.ep->fid, own.raw, &len) && len <= sizeof(own.raw)) {
		own.in4.sin_port = 0; /* at the same place in both */
		(void)bind(s, &own.any, (socklen_t)len);
	}
	why = way_connects(s, to);
	close(s);
	return why ? why : "a connection is taken, the one from there to this PE may be blocked";
}

/* The PE is on this node, or, as with container engines, another machine has the address as well. */
static bool way_is_own(struct gdri_ofi_proxy *t, const union way_address *to)
{
	union way_address own = {0};
	size_t len = sizeof(own.raw);

	if (fi_getname(&t->fabric.ep->fid, own.raw, &len) || own.any.sa_family != to->any.sa_family)
		return false;
	if (to->any.sa_family == AF_INET)
		return own.in4.sin_addr.s_addr == to->in4.sin_addr.s_addr;
	return to->any.sa_family == AF_INET6 &&
	       !memcmp(&own.in6.sin6_addr, &to->in6.sin6_addr, sizeof(own.in6.sin6_addr));
}

/* " (Connection refused)" */
static void way_tried(struct gdri_ofi_proxy *t, int pe, const union way_address *to, struct text *text)
{
	bool is_tcp = gdri_ofi_ports(t->fabric.info) &&
		      (to->any.sa_family == AF_INET || to->any.sa_family == AF_INET6);

	if (is_tcp && !*t->tried.what) {
		snprintf(t->tried.what, sizeof(t->tried.what), "%s", way_try(t, to));
		t->tried.pe = pe;
	}
	if (*t->tried.what && t->tried.pe == pe)
		text_add(text, " (%s)", t->tried.what);
}

/* Where the other nodes' providers listen, if they have the options of this one. */
static void way_ports(const struct gdri_ofi_proxy *t, struct text *text)
{
	const char *ports = gdri_ofi_ports(t->fabric.info), *set;
	unsigned int low = 0, high = 0;
	char name[2][48];
	FILE *f;

	if (!ports)
		return;
	snprintf(name[0], sizeof(name[0]), "%s_LOW_RANGE", ports);
	snprintf(name[1], sizeof(name[1]), "%s_HIGH_RANGE", ports);
	set = gdri_options_libfabric(name[0]);
	low = set ? (unsigned int)strtoul(set, NULL, 0) : 0;
	set = gdri_options_libfabric(name[1]);
	high = set ? (unsigned int)strtoul(set, NULL, 0) : 0;
	if (!high) { /* the kernel chooses */
		f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
		if (!f || fscanf(f, "%u %u", &low, &high) != 2)
			low = 1024, high = 65535;
		if (f)
			fclose(f);
	}
	text_add(text,
		 "let TCP between the nodes through to ports %u-%u (%s and %s set them; a node needs one for each "
		 "thread of each PE), or ",
		 low, high, name[0], name[1]);
}

void gdri_ofi_way(struct gdri_ofi_proxy *t, int pe, char *text, size_t room)
{
	const struct fi_info *i = t->fabric.info;
	union way_address to = {0};
	size_t raw_len = sizeof(to.raw), len;
	struct text out = {text, room, 0};
	char at[128] = "unknown"; /* as the provider writes it: "fi_sockaddr_in://127.0.0.1:4711" */

	len = sizeof(at);
	if (!fi_av_lookup(t->fabric.av, t->peers[pe].addr, to.raw, &raw_len))
		fi_av_straddr(t->fabric.av, to.raw, at, &len);
	at[sizeof(at) - 1] = 0;
	text_add(&out, "provider %s at domain %s does not reach its address %s", i->fabric_attr->prov_name,
		 i->domain_attr->name, at);
	way_tried(t, pe, &to, &out);
	text_add(&out, ": ");
	if (gdri_ofi_ports(i) && way_is_own(t, &to))
		text_add(&out,
			 "this machine has that address itself; if the PE is on another one, domain %s leads to none: ",
			 i->domain_attr->name);
	else
		way_ports(t, &out);
	text_add(&out,
		 "set GDR_OFI_DOMAIN, or GDR_OFI_PROVIDER, on all PEs to what leads there (fi_info -t FI_EP_RDM lists "
		 "those of a node)");
}
