// SPDX-License-Identifier: BSD-3-Clause
/* The transport's calls: gdri_ofi_ops. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/ofi/ofi.h"

struct ofi_address {
	uint32_t abi, n_pes, n_slots;
	uint32_t list, page, name_len, message; /* page: the key of that, or the list's */
	uint64_t token;
	struct gdri_ofi_part heap;
	char provider[64];
	uint8_t name[GDRI_OFI_NAME];
};

static struct gdri_ofi_net *ofi_of(struct gdri_net *net)
{
	return (struct gdri_ofi_net *)(void *)net; /* its first member */
}

static int ofi_no_memory(void)
{
	return gdri_fail(-GDR_ENOMEM, "ofi: out of memory");
}

/* ---- memory ---- */

static void ofi_keys(const struct gdri_ofi_memory *m, struct gdri_mr_keys *keys)
{
	*keys = (struct gdri_mr_keys){GDRI_OFI_KEY_HEAP, m->list, m->list};
	if (m->page.len)
		keys->lkey = keys->rkey_sync = GDRI_OFI_KEY_PAGE;
}

static int ofi_register_heap(struct gdri_net *net, void *heap, size_t len, void *page,
			     size_t page_len, struct gdri_mr_keys *keys)
{
	struct gdri_ofi_memory *m = &ofi_of(net)->memory;
	int ret;

	if (m->n)
		return -GDR_EINVAL;
	if (page)
		m->page = (struct gdri_ofi_page){page, page_len};
	ofi_keys(m, keys);
	ret = gdri_ofi_memory_add(m, heap, len, 0);
	if (m->regions[0].staged && m->regions[0].mr)
		net->heap_text = "GPU memory, which the provider reaches itself; the CPU copies requests";
	else if (m->regions[0].staged)
		net->heap_text = "GPU memory, to which the CPU copies by memory of the host; a ConnectX would reach it "
				 "itself";
	return ret;
}

static int ofi_register_buffer(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey,
			       bool *read_only, void **handle)
{
	struct gdri_ofi_net *t = ofi_of(net);
	struct gdri_ofi_buffer *b = NULL;
	int ret;

	*handle = NULL;
	ret = gdri_ofi_buffer_add(&t->memory, addr, len, lkey, read_only, &b);
	*handle = b;
	return ret;
}

static int ofi_deregister(struct gdri_net *net, void *handle)
{
	gdri_ofi_buffer_drop(&ofi_of(net)->memory, handle);
	return 0;
}

static int ofi_grow(struct gdri_net *net, void *addr, size_t len, uint64_t offset,
		    struct gdri_mr_keys *keys)
{
	struct gdri_ofi_memory *m = &ofi_of(net)->memory;

	gdri_ofi_memory_begin(m);
	ofi_keys(m, keys);
	return gdri_ofi_memory_add(m, addr, len, offset);
}

static int ofi_leave(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys)
{
	struct gdri_ofi_memory *m = &ofi_of(net)->memory;

	gdri_ofi_memory_begin(m);
	ofi_keys(m, keys);
	gdri_ofi_memory_leave(m, offset, len);
	return 0;
}

static void ofi_undo(struct gdri_net *net)
{
	struct gdri_ofi_memory *m = &ofi_of(net)->memory;

	gdri_ofi_memory_drop(m, OFI_COMES);
	gdri_ofi_memory_begin(m);
}

static void ofi_drop_left(struct gdri_net *net)
{
	gdri_ofi_memory_drop(&ofi_of(net)->memory, OFI_GOES);
}

/* Keys are numbers of lists: a higher one covers what the ones before did. */
static void ofi_drop_keys(struct gdri_net *net, int kept)
{
	(void)net;
	(void)kept;
}

/* ---- queues ---- */

/* Zeroed, at addresses that all who post have. NULL: none. */
static uint8_t *ofi_ring(struct gdri_ofi_net *t)
{
	void *p;

	t->ring_len = t->layout.total + t->layout.n * sizeof(*t->bells);
	if (t->poster)
		return gdri_cuda_alloc_host(t->poster, t->ring_len);
	p = mmap(NULL, t->ring_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void ofi_free_ring(struct gdri_ofi_net *t)
{
	if (t->ring && t->poster)
		gdri_cuda_free_host(t->poster, t->ring);
	else if (t->ring)
		munmap(t->ring, t->ring_len);
	t->ring = NULL;
}

/* What is staged is copied and sent by the message: a copy costs as much for 8 bytes as for some KiB. */
static uint32_t ofi_message_bytes(const struct gdri_ofi_net *t, int n_pes)
{
	size_t most = t->fabric.message, bytes = OFI_MESSAGE_MOST;

	most = most < ((size_t)1 << 20) / (size_t)n_pes ? most : ((size_t)1 << 20) / (size_t)n_pes;
	while (bytes > OFI_MESSAGE && bytes > most)
		bytes /= 2;
	return t->memory.lane ? (uint32_t)bytes : OFI_MESSAGE;
}

static int ofi_create_queues(struct gdri_net *net, int n_pes, struct gdri_qp *qps)
{
	struct gdri_ofi_net *t = ofi_of(net);
	struct gdri_net_layout *l = &t->layout;
	size_t i;

	gdri_net_layout(&t->opt, n_pes, l);
	t->n_pes = n_pes;
	t->message = ofi_message_bytes(t, n_pes);
	t->peers = calloc((size_t)n_pes, sizeof(*t->peers));
	t->queues = calloc(l->n, sizeof(*t->queues));
	t->refuses = calloc(l->n, sizeof(*t->refuses));
	t->ring = ofi_ring(t);
	if (!t->peers || !t->queues || !t->refuses || !t->ring)
		return ofi_no_memory();
	t->bells = (uint64_t *)(void *)(t->ring + l->total);
	memset(t->ring + l->cq, GDRI_NET_CQ_NOTHING, l->n * l->cq_stride);
	for (i = 0; i < l->n; i++) {
		gdri_net_describe(l, (int)i, t->ring, &qps[i]);
		qps[i].qpn = (uint32_t)i + 2;
		qps[i].qpn_shifted = gdri_to_be32(qps[i].qpn << 8).be;
		qps[i].db = &t->bells[i];
		t->queues[i].qp = &qps[i];
	}
	net->address_bytes = sizeof(struct ofi_address);
	net->queues_here = true;
	net->host_rings = true;
	return gdri_ofi_messages_open(t);
}

static void ofi_address(struct gdri_net *net, void *buf)
{
	struct gdri_ofi_net *t = ofi_of(net);
	struct ofi_address a = {.abi = GDR_ABI_VERSION,
				.n_pes = (uint32_t)t->layout.n_pes,
				.n_slots = (uint32_t)t->layout.n_slots,
				.token = t->token,
				.message = t->message,
				.heap = t->memory.regions[0].part,
				.list = t->memory.list,
				.page = t->memory.page.len ? GDRI_OFI_KEY_PAGE : t->memory.list};
	size_t len = sizeof(a.name);
	int rc = fi_getname(&t->fabric.ep->fid, a.name, &len);

	if (rc)
		gdri_error("ofi: the address of the endpoint: %s", t->fabric.lib.strerror(-rc));
	a.name_len = rc ? 0 : (uint32_t)len;
	snprintf(a.provider, sizeof(a.provider), "%s", t->fabric.info->fabric_attr->prov_name);
	memcpy(buf, &a, sizeof(a));
}

static int connect_peer(struct gdri_ofi_net *t, const struct ofi_address *a, int pe)
{
	const char *own = t->fabric.info->fabric_attr->prov_name;
	struct gdri_ofi_peer *p = &t->peers[pe];
	int rc;

	if (a->abi != GDR_ABI_VERSION || a->message < OFI_MESSAGE || a->n_pes != (uint32_t)t->layout.n_pes ||
	    a->n_slots != (uint32_t)t->layout.n_slots)
		return gdri_fail(
			-GDR_EMISMATCH,
			"ofi: PE %d has ABI %u and queues to %u PEs, %u to each; expected %d, "
			"%d and %d",
			pe, a->abi, a->n_pes, a->n_slots, GDR_ABI_VERSION, t->layout.n_pes,
			t->layout.n_slots);
	if (strncmp(a->provider, own, sizeof(a->provider)))
		return gdri_fail(
			-GDR_EMISMATCH,
			"ofi: PE %d uses provider %.63s, this PE %s: set GDR_OFI_PROVIDER on all "
			"PEs to one that both have",
			pe, a->provider, own);
	if (!a->name_len || a->name_len > sizeof(a->name))
		return gdri_fail(-GDR_EMISMATCH, "ofi: PE %d has no address: see its output", pe);
	rc = fi_av_insert(t->fabric.av, a->name, 1, &p->addr, 0, NULL);
	if (rc != 1)
		return gdri_fail(-GDR_ESYSTEM, "ofi: the address of PE %d is none: %s", pe,
				 rc < 0 ? t->fabric.lib.strerror(-rc) : "it was not taken");
	p->token = a->token;
	p->message = a->message < t->message ? a->message : t->message;
	p->list = a->list;
	p->parts[0] = a->heap;
	p->n_parts = 1;
	return 0;
}

static int ofi_connect(struct gdri_net *net, const void *addresses, int pe, int n_pes,
		       struct gdri_qp *qps)
{
	struct gdri_ofi_net *t = ofi_of(net);
	const struct ofi_address *all = addresses;
	struct gdri_mr_keys keys = {0};
	int i, ret = 0;

	if (!t->ring || n_pes != t->layout.n_pes || pe < 0 || pe >= n_pes)
		return -GDR_EINVAL;
	t->pe = pe;
	for (i = 0; i < n_pes && !ret; i++) {
		ret = connect_peer(t, &all[i], i);
		keys.rkey_data = all[i].list;
		keys.rkey_sync = all[i].page;
		if (!ret)
			gdri_net_set_keys(&t->layout, i, &keys, qps);
	}
	net->relaxed = true;
	net->combines = true;
	net->order_text = "none: signals and p are atomics, and a fence waits";
	return ret ? ret : gdri_ofi_proxy_start(t);
}

/* ---- all of it ---- */

static void ofi_close(struct gdri_net *net)
{
	struct gdri_ofi_net *t = ofi_of(net);

	if (!t)
		return;
	gdri_ofi_proxy_stop(t);
	gdri_ofi_memory_close(&t->memory); /* before the endpoint that it may be bound to */
	if (t->fabric.mr_bound)
		gdri_ofi_mr_close(&t->fabric, &t->space_mr);
	if (t->fabric.ep) /* before the memory that it may receive to */
		fi_close(&t->fabric.ep->fid);
	t->fabric.ep = NULL;
	gdri_ofi_messages_close(t);
	gdri_ofi_fabric_close(&t->fabric);
	ofi_free_ring(t);
	free(t->queues);
	free(t->refuses);
	free(t->peers);
	pthread_mutex_destroy(&t->engine);
	free(t);
}

static bool ofi_drive(struct gdri_net *net, bool spare)
{
	return gdri_ofi_proxy_drive(ofi_of(net), spare);
}

static void ofi_describe(struct gdri_ofi_net *t)
{
	const struct fi_info *i = t->fabric.info;
	uint32_t version = t->fabric.lib.version();
	struct gdri_ofi_cpus cpus;

	gdri_ofi_place_look(&cpus);
	gdri_ofi_place_choose("", t->opt.proxy_cpus, &cpus, gdri_ofi_place_node("", i), &t->place);
	snprintf(t->name, sizeof(t->name), "%s:%s", i->fabric_attr->prov_name,
		 i->domain_attr->name);
	snprintf(t->text, sizeof(t->text),
		 "libfabric %u.%u, provider %s, domain %s, fabric %s; a thread on %s carries entries%s",
		 FI_MAJOR(version), FI_MINOR(version), i->fabric_attr->prov_name,
		 i->domain_attr->name, i->fabric_attr->name, t->place.text,
		 t->memory.lane && t->opt.heap_kind != GDRI_MEMORY_HOST ? " and copies from and to the GPU" : "");
	t->net = (struct gdri_net){.ops = &gdri_ofi_ops,
				   .name = t->name,
				   .text = t->text,
				   .patience = "GDR_TIMEOUT",
				   .heap_text = "host memory",
				   .queue_text = "host memory",
				   .bell_text = "a thread looks at them"};
}

static void ofi_way(struct gdri_net *net, int pe, char *text, size_t room)
{
	gdri_ofi_way(ofi_of(net), pe, text, room);
}

/* By the library: what its providers can do is said when one is opened. */
static bool ofi_present(const struct gdri_net_how *how)
{
	(void)how;
	return gdri_ofi_lib_is_there();
}

static int ofi_open(const struct gdri_net_how *how, struct gdri_net **out)
{
	struct gdri_ofi_net *t;
	int ret;

	*out = NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return ofi_no_memory();
	t->opt = *how->opt;
	t->poster = how->host_posts ? NULL : how->cuda;
	pthread_mutex_init(&t->engine, NULL);
	/* below GDR_TIMEOUT: a PE that waits for copies longer than twice that would count as lost */
	ret = gdri_ofi_memory_open(&t->memory, &t->fabric, how->cuda,
				   t->opt.timeout_ms < GDRI_COPY_MS ? (int)t->opt.timeout_ms : GDRI_COPY_MS);
	if (!ret)
		ret = gdri_ofi_fabric_open(&t->fabric, &t->opt, how->cuda && !gdri_cuda_late_writes(how->cuda));
	if (!ret && getrandom(&t->token, sizeof(t->token), 0) != sizeof(t->token))
		ret = gdri_fail(-GDR_ESYSTEM, "ofi: getrandom: %s", gdri_errno_text(errno));
	if (ret) {
		ofi_close(&t->net);
		return ret;
	}
	ofi_describe(t);
	*out = &t->net;
	return 0;
}

const struct gdri_net_ops gdri_ofi_ops = {
	.takes = "libfabric (Debian: libfabric1)",
	.present = ofi_present,
	.open = ofi_open,
	.close = ofi_close,
	.register_heap = ofi_register_heap,
	.register_buffer = ofi_register_buffer,
	.deregister = ofi_deregister,
	.grow = ofi_grow,
	.leave = ofi_leave,
	.undo = ofi_undo,
	.drop_left = ofi_drop_left,
	.drop_keys = ofi_drop_keys,
	.create_queues = ofi_create_queues,
	.address = ofi_address,
	.connect = ofi_connect,
	.way = ofi_way,
	.drive = ofi_drive,
};
