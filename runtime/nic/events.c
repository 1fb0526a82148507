// SPDX-License-Identifier: BSD-3-Clause
/* What the device says by itself. Nobody would know else why operations stand still: queue pairs of DEVX report none of
 * it, and their paths keep the index of a GID, which may be another's after the link was down. */
#include <poll.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/nic/address.h"
#include "runtime/nic/gid.h"
#include "runtime/nic/impl.h"

static void look_at_gid(const struct gdri_nic *nic)
{
	char was[64], is[64];
	union ibv_gid gid;

	if (nic->link_layer != GDRI_LINK_ETHERNET)
		return;
	memset(&gid, 0, sizeof(gid));
	if (!ibv_query_gid(nic->ctx, nic->port, nic->gid_index, &gid) && !memcmp(gid.raw, nic->gid, 16))
		return;
	gdri_gid_text(nic->gid, was, sizeof(was));
	gdri_gid_text(gid.raw, is, sizeof(is));
	gdri_error("%s port %u: GID %u, from which all queues send, was %s and is %s now: other PEs may no longer be "
		   "reached. Was the address of the network interface changed, or did its link go down? Start the job "
		   "anew", nic->name, nic->port, nic->gid_index, was, is);
}

static void say_event(const struct gdri_nic *nic, const struct ibv_async_event *e)
{
	unsigned int n;

	switch (e->event_type) {
	case IBV_EVENT_PORT_ERR:
		n = gdri_ack_timeout(&nic->opt);
		gdri_warn("%s port %u: the link is down. Operations wait for it, %.3g s at most (GDR_ACK_TIMEOUT=%u, "
			  "GDR_RETRY_COUNT=%u)", nic->name, nic->port, gdri_patience(&nic->opt, n), n,
			  nic->opt.retry_count);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		gdri_warn("%s port %u: the link is up again", nic->name, nic->port);
		break;
	case IBV_EVENT_GID_CHANGE:
		look_at_gid(nic);
		break;
	case IBV_EVENT_LID_CHANGE:
		gdri_error("%s port %u: its LID has changed: other PEs may no longer be reached. Start the job anew",
			   nic->name, nic->port);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		gdri_error("%s has failed, and so will all that it was to do: see the kernel log (dmesg)", nic->name);
		break;
	default:
		gdri_debug("%s: event: %s", nic->name, ibv_event_type_str(e->event_type));
	}
}

static bool of_port(const struct gdri_nic *nic, const struct ibv_async_event *e)
{
	bool port = e->event_type == IBV_EVENT_PORT_ERR || e->event_type == IBV_EVENT_PORT_ACTIVE ||
		    e->event_type == IBV_EVENT_GID_CHANGE || e->event_type == IBV_EVENT_LID_CHANGE;

	return !port || e->element.port_num == nic->port;
}

void gdri_nic_look(struct gdri_net *net)
{
	const struct gdri_nic *nic = gdri_nic_of(net);
	struct pollfd fd = {.fd = nic->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event e;

	while (poll(&fd, 1, 0) == 1 && fd.revents & POLLIN && !ibv_get_async_event(nic->ctx, &e)) {
		if (of_port(nic, &e))
			say_event(nic, &e);
		ibv_ack_async_event(&e);
	}
}
