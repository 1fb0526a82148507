// SPDX-License-Identifier: BSD-3-Clause
/* Looks through the RDMA devices: opens those that may be used, keeps their
 * active ports, takes the nearest one and closes the others. Why a device was
 * passed over is collected, and said only if none is left. */
#include "runtime/nic/find.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/options.h"

#define MAX_PORTS 64

struct port {
	struct ibv_context *ctx;
	uint8_t number;
	struct ibv_port_attr attr;
};

struct search {
	const char *wanted;
	int n, n_devices;
	struct port ports[MAX_PORTS];
	struct gdri_topo_place places[MAX_PORTS];
	char passed[640]; /* "mlx5_0 port 1: state DOWN; ..." */
	size_t passed_len;
};

bool gdri_nic_present(const struct gdri_net_how *how)
{
	int n = 0, i;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool is = *how->opt->nic;

	for (i = 0; list && i < n; i++)
		is |= mlx5dv_is_supported(list[i]);
	if (list)
		ibv_free_device_list(list);
	return is;
}

bool gdri_nic_wanted(const char *wanted, const char *device, unsigned port)
{
	size_t len = strlen(device);
	char *end;
	unsigned long number;

	if (!wanted[0])
		return true;
	if (strncmp(wanted, device, len))
		return false;
	if (!wanted[len])
		return true;
	if (wanted[len] != ':' || wanted[len + 1] < '0' || wanted[len + 1] > '9')
		return false;
	number = strtoul(wanted + len + 1, &end, 10);
	return !*end && (port == 0 || number == port);
}

static void __attribute__((format(printf, 2, 3))) pass_over(struct search *s, const char *fmt, ...)
{
	size_t room = sizeof(s->passed) - s->passed_len;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(s->passed + s->passed_len, room, fmt, ap);
	va_end(ap);
	if (len > 0 && (size_t)len < room)
		s->passed_len += (size_t)len;
}

static bool usable_port(struct search *s, const char *name, struct ibv_context *ctx, uint8_t number,
			struct ibv_port_attr *attr)
{
	int err = ibv_query_port(ctx, number, attr);

	if (err) {
		pass_over(s, "; %s port %u: ibv_query_port: %s", name, number, gdri_errno_text(err));
		return false;
	}
	if (attr->state != IBV_PORT_ACTIVE) {
		pass_over(s, "; %s port %u is %s", name, number, ibv_port_state_str(attr->state));
		return false;
	}
	if (attr->link_layer != IBV_LINK_LAYER_INFINIBAND &&
	    attr->link_layer != IBV_LINK_LAYER_ETHERNET) {
		pass_over(s, "; %s port %u has the unknown link layer %u", name, number,
			  attr->link_layer);
		return false;
	}
	return true;
}

/* Returns the number of ports of the device that can be used. */
static int look_at_ports(struct search *s, const char *name, struct ibv_context *ctx)
{
	char link[128];
	struct ibv_device_attr dev;
	int before = s->n, err = ibv_query_device(ctx, &dev);

	if (err) {
		pass_over(s, "; %s: ibv_query_device: %s", name, gdri_errno_text(err));
		return 0;
	}
	snprintf(link, sizeof(link), "/sys/class/infiniband/%s/device", name);
	for (unsigned i = 1; i <= dev.phys_port_cnt && s->n < MAX_PORTS; i++) {
		struct port *p = &s->ports[s->n];

		if (!gdri_nic_wanted(s->wanted, name, i) ||
		    !usable_port(s, name, ctx, (uint8_t)i, &p->attr))
			continue;
		p->ctx = ctx;
		p->number = (uint8_t)i;
		gdri_topo_locate("", link, &s->places[s->n]);
		s->n++;
	}
	return s->n - before;
}

static void look_at_device(struct search *s, struct ibv_device *dev)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	const char *name = ibv_get_device_name(dev);
	struct ibv_context *ctx;

	if (!gdri_nic_wanted(s->wanted, name, 0) || s->n == MAX_PORTS)
		return;
	s->n_devices++;
	if (!mlx5dv_is_supported(dev)) {
		pass_over(s, "; %s is not an mlx5 device", name);
		return;
	}
	ctx = mlx5dv_open_device(dev, &attr);
	if (!ctx) {
		pass_over(s,
			  "; %s: opening it with DEVX failed: %s (may this user open "
			  "/dev/infiniband/uverbs*, and does the kernel support DEVX?)",
			  name, gdri_errno_text(errno));
		return;
	}
	if (look_at_ports(s, name, ctx) == 0)
		ibv_close_device(ctx);
}

/* libibverbs finds nothing where it cannot open what it looks at, and does not say so. 0: it can. */
static int cannot_open(void)
{
	int fd[8], n = 0, err = 0;

	while (n < 8 && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
		n++;
	if (n < 8)
		err = errno;
	while (n)
		close(fd[--n]);
	return err;
}

static int none_found(const struct search *s)
{
	int err = s->n_devices ? 0 : cannot_open();

	if (err)
		return gdri_fail(-GDR_ESYSTEM, "RDMA devices cannot be looked for: %s", gdri_errno_text(err));
	if (s->wanted[0] && s->n_devices == 0)
		gdri_error("GDR_NIC=%s: there is no such RDMA device (ibv_devices lists them)",
			   s->wanted);
	else if (s->n_devices == 0)
		gdri_error("no RDMA device found: is the driver loaded (mlx5_ib), and is "
			   "/dev/infiniband visible here? On a machine without one, start the "
			   "program under softhca, or use GDR_TRANSPORTS=p2p, on several nodes "
			   "p2p,ofi with libfabric");
	else
		gdri_error("no usable RDMA port%s%s: %s", s->wanted[0] ? " for GDR_NIC=" : "",
			   s->wanted, s->passed_len ? s->passed + 2 : "no such port");
	return -GDR_ENODEV;
}

static int search_devices(struct search *s)
{
	struct ibv_device **list;
	int i, n = 0;

	list = ibv_get_device_list(&n);
	if (!list && errno != ENOSYS)
		return gdri_fail(-GDR_ESYSTEM, "ibv_get_device_list failed: %s; is the ib_uverbs module loaded?",
				 gdri_errno_text(errno));
	for (i = 0; list && i < n; i++)
		look_at_device(s, list[i]);
	if (list)
		ibv_free_device_list(list);
	return s->n ? 0 : none_found(s);
}

int gdri_nic_find(const char *wanted, const char *near, unsigned turn, struct gdri_nic_found *out)
{
	struct search *s = calloc(1, sizeof(*s));
	struct gdri_topo_place gpu;
	int ret, at;

	if (!s)
		return gdri_fail(-GDR_ENOMEM, "out of memory for the search for a NIC");
	s->wanted = wanted;
	ret = search_devices(s);
	if (!ret) {
		if (near)
			gdri_topo_locate("", near, &gpu);
		if (near && !gpu.path[0])
			gdri_warn("%s is no PCI device: its distance to the NICs is not known",
				  near);
		at = gdri_topo_choose(near ? &gpu : NULL, s->places, s->n, turn, &out->distance);
		out->ctx = s->ports[at].ctx;
		out->port = s->ports[at].number;
		out->attr = s->ports[at].attr;
		out->n_ports = s->n;
		snprintf(out->name, sizeof(out->name), "%s", ibv_get_device_name(out->ctx->device));
		for (int i = 0; i < s->n; i++) {
			if (s->ports[i].ctx != out->ctx && (i == 0 || s->ports[i].ctx != s->ports[i - 1].ctx))
				ibv_close_device(s->ports[i].ctx);
		}
	}
	free(s);
	return ret;
}
