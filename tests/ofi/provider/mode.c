// SPDX-License-Identifier: BSD-3-Clause
/* The modes, and what fi_getinfo says of them. docs/ofi.md says where each is documented. */
#include "tests/ofi/provider/fake.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/providers/fi_prov.h>

#define ORDERED (FI_ORDER_SAS | FI_ORDER_WAW | FI_ORDER_RAW | FI_ORDER_WAR | FI_ORDER_RAR)

static const struct fake_mode modes[] = {
	/* Asks for nothing. */
	{.domain = "plain",
	 .key_size = 8,
	 .inject = 4096,
	 .send = FAKE_SEND_MOST,
	 .most = 1u << 30,
	 .tx = 1024,
	 .rx = 1024,
	 .order = ORDERED},
	{.domain = "efa",
	 .mode = FI_CONTEXT2,
	 .mr = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	 .key_size = 4,
	 .inject = 32,
	 .send = 8192,
	 .most = 1u << 30,
	 .tx = 16,
	 .rx = 64,
	 .hold = 3,
	 .again = 4,
	 .inserted = true,
	 .gpus = true},
	{.domain = "cxi",
	 .mr = FI_MR_ENDPOINT | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	 .key_size = 8,
	 .inject = 192,
	 .send = FAKE_SEND_MOST,
	 .most = UINT32_MAX,
	 .tx = 256,
	 .rx = 256,
	 .order = FI_ORDER_SAS,
	 .hold = 3,
	 .gpus = true},
	{.domain = "psm3",
	 .mode = FI_CONTEXT,
	 .mr = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	 .key_size = 8,
	 .inject = 64,
	 .send = FAKE_SEND_MOST,
	 .most = UINT32_MAX,
	 .tx = 1024,
	 .rx = 1024,
	 .order = ORDERED,
	 .silent = true},
	{.domain = "opx",
	 .mode = FI_CONTEXT2,
	 .key_size = 2,
	 .inject = 16,
	 .send = FAKE_SEND_MOST,
	 .most = SIZE_MAX,
	 .tx = 128,
	 .rx = 128,
	 .hold = 2,
	 .again = 8,
	 .silent = true},
	/* Has FI_HMEM by calls of CUDA's, as tcp and shm have it: nothing for kernels that wait for others. */
	{.domain = "calls-cuda",
	 .key_size = 8,
	 .inject = 64,
	 .send = FAKE_SEND_MOST,
	 .most = 1u << 30,
	 .tx = 256,
	 .rx = 256,
	 .order = ORDERED,
	 .gpus = true,
	 .calls_cuda = true},
	{.domain = "ucx",
	 .mr = FI_MR_RAW | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	 .key_size = 8,
	 .inject = 1024,
	 .send = FAKE_SEND_MOST,
	 .most = SIZE_MAX,
	 .tx = 384,
	 .rx = 384,
	 .order = FI_ORDER_SAS,
	 .hold = 2},
	/* Gives the least and asks for the most of all these. */
	{.domain = "least",
	 .mode = FI_CONTEXT | FI_CONTEXT2,
	 .mr = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT,
	 .key_size = 8,
	 .send = 8192,
	 .most = 8192,
	 .tx = 4,
	 .rx = 16,
	 .hold = 3,
	 .again = 2,
	 .no_delivery = true},
	/* A fabric that breaks its word: what tests have to notice. */
	{.domain = "lies",
	 .mr = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY,
	 .key_size = 8,
	 .inject = 64,
	 .send = FAKE_SEND_MOST,
	 .most = 1u << 30,
	 .tx = 256,
	 .rx = 256,
	 .hold = 20,
	 .lies = true},
};

#define N_MODES (sizeof(modes) / sizeof(modes[0]))

const struct fake_mode *gdr_fake_mode(const char *domain)
{
	size_t i;

	for (i = 0; i < N_MODES; i++)
		if (!strcmp(modes[i].domain, domain))
			return &modes[i];
	return NULL;
}

/* GDRFAKE_DOMAIN: of all modes this one alone is there. */
static bool mode_is_there(const struct fake_mode *m)
{
	const char *only = getenv("GDRFAKE_DOMAIN");

	return !only || !strcmp(only, m->domain);
}

#define FAKE_CAPS                                                                    \
	(FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ | \
	 FI_REMOTE_WRITE | FI_LOCAL_COMM | FI_REMOTE_COMM)

static bool mode_wants_gpus(const struct fi_info *h)
{
	return h && h->caps & FI_HMEM;
}

/* Whether the program can live with it. */
static bool mode_suits(const struct fake_mode *m, const struct fi_info *h)
{
	uint64_t flags = h->tx_attr ? h->tx_attr->op_flags : 0;
	uint64_t order = h->tx_attr ? h->tx_attr->msg_order : 0;

	if (h->caps & ~(uint64_t)(FAKE_CAPS | FI_HMEM) || m->mode & ~h->mode)
		return false;
	if (mode_wants_gpus(h) && (!m->gpus || (h->domain_attr && !(h->domain_attr->mr_mode & FI_MR_HMEM))))
		return false;
	if (h->ep_attr && h->ep_attr->type != FI_EP_UNSPEC && h->ep_attr->type != FI_EP_RDM)
		return false;
	if (h->domain_attr && m->mr & ~h->domain_attr->mr_mode)
		return false;
	if (h->domain_attr && h->domain_attr->name && strcmp(h->domain_attr->name, m->domain) != 0)
		return false;
	return !(flags & FI_DELIVERY_COMPLETE && m->no_delivery) && !(order & ~m->order);
}

static struct fi_info *mode_info(const struct fake_mode *m, const struct fi_info *h)
{
	struct fi_info *i = fi_allocinfo();

	if (!i)
		return NULL;
	i->caps = h && h->caps ? h->caps : FAKE_CAPS;
	i->mode = m->mode;
	i->addr_format = FI_FORMAT_UNSPEC;
	i->tx_attr->caps = i->rx_attr->caps = i->caps;
	i->tx_attr->mode = i->rx_attr->mode = m->mode;
	i->tx_attr->op_flags = h && h->tx_attr ? h->tx_attr->op_flags : 0;
	i->tx_attr->msg_order = i->rx_attr->msg_order = m->order;
	i->tx_attr->inject_size = m->inject;
	i->tx_attr->size = m->tx;
	i->rx_attr->size = m->rx;
	i->tx_attr->iov_limit = i->rx_attr->iov_limit = i->tx_attr->rma_iov_limit = 1;
	i->ep_attr->type = FI_EP_RDM;
	i->ep_attr->max_msg_size = m->most > m->send ? m->most : m->send;
	i->ep_attr->tx_ctx_cnt = i->ep_attr->rx_ctx_cnt = 1;
	i->domain_attr->name = strdup(m->domain);
	i->domain_attr->threading = FI_THREAD_SAFE;
	i->domain_attr->control_progress = i->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	i->domain_attr->resource_mgmt = FI_RM_ENABLED;
	i->domain_attr->av_type = FI_AV_TABLE;
	i->domain_attr->mr_mode = m->mr | (mode_wants_gpus(h) ? FI_MR_HMEM : 0);
	i->domain_attr->mr_key_size = m->mr & FI_MR_RAW ? FAKE_RAW : m->key_size;
	i->domain_attr->mr_iov_limit = 1;
	i->domain_attr->cq_cnt = i->domain_attr->ep_cnt = i->domain_attr->mr_cnt = 65535;
	i->fabric_attr->name = strdup("gdrfake");
	return i;
}

int gdr_fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info)
{
	struct fi_info **end = info;
	size_t i;

	(void)version, (void)node, (void)service, (void)flags;
	*info = NULL;
	for (i = 0; i < N_MODES; i++) {
		if (!mode_is_there(&modes[i]) || (hints && !mode_suits(&modes[i], hints)))
			continue;
		*end = mode_info(&modes[i], hints);
		if (!*end)
			return -FI_ENOMEM;
		end = &(*end)->next;
	}
	return *info ? 0 : -FI_ENODATA;
}

static void mode_cleanup(void)
{
}

static struct fi_provider provider = {
	.version = FI_VERSION(1, 0),
	.fi_version = FI_VERSION(1, 14),
	.name = "gdrfake",
	.getinfo = gdr_fake_getinfo,
	.fabric = gdr_fake_fabric,
	.cleanup = mode_cleanup,
};

__attribute__((visibility("default"))) struct fi_provider *fi_prov_ini(void);

/* The name that libfabric looks for. */
struct fi_provider *fi_prov_ini(void)
{
	return &provider;
}
