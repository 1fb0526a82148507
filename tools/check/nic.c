// SPDX-License-Identifier: BSD-3-Clause
/* The NIC, its memory and its queues, by the library's own code. */
#define _GNU_SOURCE /* aligned_alloc under C11 */
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/nic/address.h"
#include "runtime/nic/gid.h"
#include "runtime/nic/impl.h"
#include "tools/check/check.h"

static void check_address(struct checks *c)
{
	char gid[64];

	gdri_gid_text(c->nic->gid, gid, sizeof(gid));
	if (c->nic->link_layer == GDRI_LINK_IB)
		say(c, ADDRESS, GOOD, "InfiniBand, LID 0x%04x", c->nic->lid);
	else
		say(c, ADDRESS, GOOD, "RoCE v2, GID index %u (%s)", c->nic->gid_index, gid);
}

void check_nic_open(struct checks *c)
{
	struct gdri_net_how how = {.opt = &c->opt, .cuda = c->cuda};
	struct gdri_net *net = NULL;
	char near[64];
	int old = check_hush(), ret;

	how.near = c->cuda ? gdri_cuda_sysfs(c->cuda, near, sizeof(near)) : NULL;
	ret = gdri_nic_open(&how, &net);
	c->nic = gdri_nic_of(net);
	check_unhush(old);
	if (ret) {
		say(c, NIC, c->ofi_carries ? NOTE : BAD, "%s%s",
		    c->ofi_carries ? "libfabric carries the queues instead; " : "", gdri_log_last_error());
		return;
	}
	say(c, NIC, GOOD, "%s", c->nic->text);
	check_address(c);
	/* without all of them it would not have been opened */
	say(c, ATOMICS, GOOD,
	    "operations 0x%x of 4 and 8 bytes (atomic_size_qp 0x%x), results of 8 bytes in host "
	    "order",
	    c->nic->caps.operations, c->nic->caps.size_qp);
}

static void check_host_memory(struct checks *c)
{
	void *p = aligned_alloc(4096, CHECK_BYTES);
	struct gdri_mr_keys keys;
	int old = check_hush();
	int ret = p ? gdri_nic_register_heap(&c->nic->net, p, CHECK_BYTES, NULL, 0, &keys)
		    : -GDR_ENOMEM;

	check_unhush(old);
	say(c, HOST_MEMORY, ret ? BAD : GOOD, "%s",
	    ret ? gdri_log_last_error() : "can be registered");
	gdri_nic_mr_destroy(c->nic);
	free(p);
}

static int one_way(struct checks *c, enum check_id id, enum gdri_nic_way way, void *p, int control)
{
	struct mlx5dv_devx_umem *umem = NULL;
	struct ibv_mr *mr = NULL;
	char why[256] = "";

	if (control)
		umem = gdri_nic_umem_by(c->nic, way, p, CHECK_BYTES, why, sizeof(why));
	else
		mr = gdri_nic_mr_by(c->nic, way, p, CHECK_BYTES, 0,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_RELAXED_ORDERING,
				    why, sizeof(why));
	report_say(&c->report, id, umem || mr ? GOOD : NONE, "%s", umem || mr ? "works" : why);
	if (umem)
		mlx5dv_devx_umem_dereg(umem);
	if (mr)
		ibv_dereg_mr(mr);
	return umem || mr;
}

static void check_gpu_memory(struct checks *c)
{
	uint8_t *p = NULL, *whole;
	int data = 0, control = 0;

	whole = gdri_cuda_alloc(c->cuda, CHECK_BYTES + (64u << 10));
	if (!whole) {
		say(c, GPU_HEAP, BAD, "%s", gdri_log_last_error());
		return;
	}
	p = (uint8_t *)(((uintptr_t)whole + 0xffff) & ~(uintptr_t)0xffff);
	data |= one_way(c, CHECK_DATA_DIRECT, GDRI_NIC_DATA_DIRECT, p, 0);
	data |= one_way(c, CHECK_DMABUF_DATA, GDRI_NIC_DMA_BUF, p, 0);
	control |= one_way(c, CHECK_DMABUF_QUEUES, GDRI_NIC_DMA_BUF, p, 1);
	data |= one_way(c, CHECK_PEERMEM_DATA, GDRI_NIC_PEERMEM, p, 0);
	control |= one_way(c, CHECK_PEERMEM_QUEUES, GDRI_NIC_PEERMEM, p, 1);
	say(c, GPU_HEAP, data ? GOOD : BAD, "%s", data ? "yes" : "no: neither way above works");
	say(c, GPU_QUEUES, control ? GOOD : NOTE, "%s",
	    control ? "yes" : "no: neither way above works");
	gdri_cuda_free(c->cuda, whole);
}

void check_nic_memory(struct checks *c)
{
	check_host_memory(c);
	if (c->cuda)
		check_gpu_memory(c);
}

/* Queues to one PE: also where they lie, who rings, and what the device makes of their order. */
void check_nic_queues(struct checks *c)
{
	size_t n = gdri_net_slots(&c->opt);
	struct gdri_qp *qps = aligned_alloc(GDRI_LINE, n * sizeof(*qps));
	int old = check_hush(), ret = -GDR_ENOMEM;

	if (qps) {
		memset(qps, 0, n * sizeof(*qps));
		ret = gdri_nic_create_queues(&c->nic->net, 1, qps);
	}
	check_unhush(old);
	free(qps);
	if (ret) {
		say(c, QUEUES, BAD, "%s", gdri_log_last_error());
		return;
	}
	say(c, QUEUES, strncmp(c->nic->ring_text, "host", 4) || !c->cuda ? GOOD : NOTE, "in %s",
	    c->nic->ring_text);
	say(c, DOORBELLS, strstr(c->nic->bell_text, "host thread") ? NOTE : GOOD, "%s",
	    c->nic->bell_text);
	say(c, ORDER, c->nic->order ? NOTE : GOOD, "%s", c->nic->order_text);
}
