// SPDX-License-Identifier: BSD-3-Clause
/* The transport's calls: gdri_ofi_ops. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/ofi/ofi.h"

struct ofi_address {
	uint32_t abi, n_pes, n_slots;
	uint32_t list, page, message; /* page: the key of that, or the list's */
	uint32_t n_proxies, name_len[OFI_PROXIES];
	uint64_t token;
	uint64_t user, shm; /* that started it; the device number of its /dev/shm */
	struct gdri_ofi_part heap[OFI_PROXIES]; /* as each has it registered */
	struct gdri_ofi_landing landing[OFI_PROXIES];
	char provider[64];
	uint8_t names[GDRI_OFI_NAME]; /* one behind the other */
};

static struct gdri_ofi_net *ofi_of(struct gdri_net *net)
{
	return (struct gdri_ofi_net *)(void *)net; /* its first member */
}

static int ofi_no_memory(void)
{
	return gdri_fail(-GDR_ENOMEM, "ofi: out of memory");
}

static int ofi_shm_refused(int pe, const char *why)
{
	return gdri_fail(-GDR_ESYSTEM,
			 "ofi: provider shm does not reach the memory of PE %d: %s: it takes PEs that one user started "
			 "on one machine, with one /dev/shm and one PID namespace; set GDR_OFI_PROVIDER to another one",
			 pe, why);
}

/* ---- memory ---- */

/* All proxies have the same, by numbers of their own provider's. */
static struct gdri_ofi_memory *ofi_memory(struct gdri_ofi_net *t, int i)
{
	return &t->proxies[i]->memory;
}

static void ofi_keys(const struct gdri_ofi_memory *m, struct gdri_mr_keys *keys)
{
	*keys = (struct gdri_mr_keys){GDRI_OFI_KEY_HEAP, m->list, m->list};
	if (m->page.len)
		keys->lkey = keys->rkey_sync = GDRI_OFI_KEY_PAGE;
}

static int ofi_register_heap(struct gdri_net *net, void *heap, size_t len, void *page,
			     size_t page_len, struct gdri_mr_keys *keys)
{
	struct gdri_ofi_net *t = ofi_of(net);
	struct gdri_ofi_memory *m = ofi_memory(t, 0);
	int i, ret = 0;

	if (m->n)
		return -GDR_EINVAL;
	for (i = 0; i < t->n_proxies && !ret; i++) {
		if (page)
			ofi_memory(t, i)->page = (struct gdri_ofi_page){page, page_len};
		ret = gdri_ofi_memory_add(ofi_memory(t, i), heap, len, 0);
	}
	ofi_keys(m, keys);
	if (m->regions[0].staged && m->regions[0].mr)
		net->heap_text = "GPU memory, which the provider reaches itself; the CPU copies requests";
	else if (m->regions[0].staged)
		net->heap_text = "GPU memory, to which the CPU copies by memory of the host; a ConnectX would reach it "
				 "itself";
	return ret;
}

/* Those of the first n proxies. */
static void ofi_drop_buffers(struct gdri_ofi_net *t, int n, ptrdiff_t place)
{
	while (n--)
		gdri_ofi_buffer_drop(ofi_memory(t, n), &ofi_memory(t, n)->buffers[place]);
}

static int ofi_register_buffer(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey,
			       bool *read_only, void **handle)
{
	struct gdri_ofi_net *t = ofi_of(net);
	struct gdri_ofi_buffer *b = NULL, *first = NULL;
	bool any = false;
	int i, ret = 0;

	*handle = NULL;
	pthread_mutex_lock(&t->changes); /* pairs with its unlocks: equal places at all proxies */
	for (i = 0; i < t->n_proxies && !ret; i++) {
		ret = gdri_ofi_buffer_add(ofi_memory(t, i), addr, len, lkey, read_only, &b);
		first = first ? first : b;
		any |= read_only && *read_only;
	}
	if (ret && first)
		ofi_drop_buffers(t, i - 1, first - ofi_memory(t, 0)->buffers);
	pthread_mutex_unlock(&t->changes);
	if (read_only)
		*read_only = any;
	*handle = ret ? NULL : first;
	return ret;
}

static int ofi_deregister(struct gdri_net *net, void *handle)
{
	struct gdri_ofi_net *t = ofi_of(net);

	pthread_mutex_lock(&t->changes); /* see ofi_register_buffer */
	ofi_drop_buffers(t, t->n_proxies, (struct gdri_ofi_buffer *)handle - ofi_memory(t, 0)->buffers);
	pthread_mutex_unlock(&t->changes);
	return 0;
}

/* A list of a higher number begins. */
static void ofi_begin(struct gdri_ofi_net *t)
{
	int i;

	for (i = 0; i < t->n_proxies; i++)
		gdri_ofi_memory_begin(ofi_memory(t, i));
}

static void ofi_drop(struct gdri_ofi_net *t, enum gdri_ofi_change what)
{
	int i;

	for (i = 0; i < t->n_proxies; i++)
		gdri_ofi_memory_drop(ofi_memory(t, i), what);
}

static int ofi_grow(struct gdri_net *net, void *addr, size_t len, uint64_t offset,
		    struct gdri_mr_keys *keys)
{
	struct gdri_ofi_net *t = ofi_of(net);
	int i, ret = 0;

	ofi_begin(t);
	ofi_keys(ofi_memory(t, 0), keys);
	for (i = 0; i < t->n_proxies && !ret; i++)
		ret = gdri_ofi_memory_add(ofi_memory(t, i), addr, len, offset);
	if (ret)
		ofi_drop(t, OFI_COMES); /* where it was taken */
	return ret;
}

static int ofi_leave(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys)
{
	struct gdri_ofi_net *t = ofi_of(net);
	int i;

	ofi_begin(t);
	ofi_keys(ofi_memory(t, 0), keys);
	for (i = 0; i < t->n_proxies; i++)
		gdri_ofi_memory_leave(ofi_memory(t, i), offset, len);
	return 0;
}

static void ofi_undo(struct gdri_net *net)
{
	ofi_drop(ofi_of(net), OFI_COMES);
	ofi_begin(ofi_of(net));
}

static void ofi_drop_left(struct gdri_net *net)
{
	ofi_drop(ofi_of(net), OFI_GOES);
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
static uint32_t ofi_message_bytes(const struct gdri_ofi_proxy *t, int n_pes)
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
	int p, ret = 0;
	size_t i;

	gdri_net_layout(&t->opt, n_pes, l);
	t->n_pes = n_pes;
	t->message = ofi_message_bytes(t->proxies[0], n_pes);
	t->refuses = calloc(l->n, sizeof(*t->refuses));
	t->warned = calloc((size_t)n_pes, sizeof(*t->warned));
	t->ring = ofi_ring(t);
	if (!t->refuses || !t->warned || !t->ring)
		return ofi_no_memory();
	t->bells = (uint64_t *)(void *)(t->ring + l->total);
	memset(t->ring + l->cq, GDRI_NET_CQ_NOTHING, l->n * l->cq_stride);
	for (i = 0; i < l->n; i++) {
		gdri_net_describe(l, (int)i, t->ring, &qps[i]);
		qps[i].qpn = (uint32_t)i + 2;
		qps[i].qpn_shifted = gdri_to_be32(qps[i].qpn << 8).be;
		qps[i].db = &t->bells[i];
	}
	net->address_bytes = sizeof(struct ofi_address);
	net->queues_here = true;
	net->host_rings = true;
	for (p = 0; p < t->n_proxies && !ret; p++)
		ret = gdri_ofi_messages_open(t->proxies[p]);
	return ret;
}

/* 0: there is none. */
static uint64_t shm_of_node(void)
{
	struct stat st;

	return stat("/dev/shm", &st) ? 0 : st.st_dev;
}

/* Where all names do not fit, fewer proxies are used. */
static void address_names(struct gdri_ofi_net *t, struct ofi_address *a)
{
	size_t used = 0, len;
	int i, rc;

	for (i = 0; i < t->n_proxies; i++, used += len) {
		len = sizeof(a->names) - used;
		rc = fi_getname(&t->proxies[i]->fabric.ep->fid, a->names + used, &len);
		if (rc && i)
			break;
		if (rc)
			gdri_error("ofi: the address of the endpoint: %s", t->proxies[i]->fabric.lib.strerror(-rc));
		len = rc ? 0 : len;
		a->name_len[i] = (uint32_t)len;
		a->heap[i] = ofi_memory(t, i)->regions[0].part;
		a->landing[i] = gdri_ofi_landing(t->proxies[i]);
	}
	a->n_proxies = (uint32_t)i;
}

static void ofi_address(struct gdri_net *net, void *buf)
{
	struct gdri_ofi_net *t = ofi_of(net);
	const struct gdri_ofi_memory *m = ofi_memory(t, 0);
	struct ofi_address a = {.abi = GDR_ABI_VERSION,
				.n_pes = (uint32_t)t->layout.n_pes,
				.n_slots = (uint32_t)t->layout.n_slots,
				.token = t->token,
				.user = geteuid(),
				.shm = shm_of_node(),
				.message = t->message,
				.list = m->list,
				.page = m->page.len ? GDRI_OFI_KEY_PAGE : m->list};

	address_names(t, &a);
	snprintf(a.provider, sizeof(a.provider), "%s", m->fabric->info->fabric_attr->prov_name);
	memcpy(buf, &a, sizeof(a));
}

/* rc: fi_av_insert's. shm opens a file of the other PE's, and says of none why not. */
static int connect_refused(struct gdri_ofi_proxy *t, int pe, int rc)
{
	const char *why = rc < 0 ? t->fabric.lib.strerror(-rc) : "it was not taken";

	if (gdri_ofi_is_shm(t))
		return ofi_shm_refused(pe, why);
	return gdri_fail(-GDR_ESYSTEM, "ofi: the address of PE %d is none: %s", pe, why);
}

/* libfabric 1.17 refuses another user's address; 2.7 takes it, and what is written there never arrives. */
static int connect_check_shm(const struct ofi_address *a, int pe)
{
	char why[80];

	if (a->user == geteuid() && a->shm == shm_of_node())
		return 0;
	if (a->user == geteuid())
		return ofi_shm_refused(pe, "its /dev/shm is another one");
	snprintf(why, sizeof(why), "it is user %llu's, this PE user %llu's", (unsigned long long)a->user,
		 (unsigned long long)geteuid());
	return ofi_shm_refused(pe, why);
}

static int connect_check(struct gdri_ofi_net *t, const struct ofi_address *a, int pe)
{
	const char *own = t->proxies[0]->fabric.info->fabric_attr->prov_name;

	if (a->abi != GDR_ABI_VERSION || a->message < OFI_MESSAGE || a->n_pes != (uint32_t)t->layout.n_pes ||
	    a->n_slots != (uint32_t)t->layout.n_slots || !a->n_proxies || a->n_proxies > OFI_PROXIES)
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
	return gdri_ofi_is_shm(t->proxies[0]) ? connect_check_shm(a, pe) : 0;
}

static int connect_peer(struct gdri_ofi_proxy *t, const struct ofi_address *a, int pe)
{
	struct gdri_ofi_peer *p = &t->peers[pe];
	size_t at = 0, len = a->name_len[t->index];
	int i, rc;

	for (i = 0; i < t->index && at <= sizeof(a->names); i++)
		at += a->name_len[i];
	if (!len || at > sizeof(a->names) || len > sizeof(a->names) - at)
		return gdri_fail(-GDR_EMISMATCH, "ofi: PE %d has no address: see its output", pe);
	rc = fi_av_insert(t->fabric.av, a->names + at, 1, &p->addr, 0, NULL);
	if (rc != 1)
		return connect_refused(t, pe, rc);
	p->token = a->token + (uint64_t)t->index;
	p->message = a->message < t->net->message ? a->message : t->net->message;
	p->landing = gdri_ofi_landing_of(t, pe, a->landing[t->index]);
	p->list = a->list;
	gdri_ofi_parts_take(&t->fabric, p, &a->heap[t->index], 1);
	return 0;
}

static int connect_queues(struct gdri_ofi_proxy *t, struct gdri_qp *qps)
{
	const struct gdri_ofi_net *net = t->net;
	size_t i, n = 0;

	for (i = 0; i < net->layout.n; i++)
		n += gdri_ofi_owner(net, qps[i].slot) == t->index;
	t->queues = calloc(n, sizeof(*t->queues));
	if (!t->queues)
		return ofi_no_memory();
	for (i = 0; i < net->layout.n; i++) {
		if (gdri_ofi_owner(net, qps[i].slot) != t->index)
			continue;
		t->queues[t->n_queues].qp = &qps[i];
		t->queues[t->n_queues++].bell = &net->bells[i];
	}
	return 0;
}

static int connect_proxy(struct gdri_ofi_proxy *t, const struct ofi_address *all, struct gdri_qp *qps)
{
	int i, ret = connect_queues(t, qps);

	for (i = 0; i < t->net->n_pes && !ret; i++)
		ret = connect_peer(t, &all[i], i);
	return ret;
}

static void proxy_close(struct gdri_ofi_proxy *t)
{
	int i;

	for (i = 0; t->peers && i < t->net->n_pes; i++) {
		t->peers[i].n_moves = 0; /* the provider ends them with the endpoint */
		gdri_ofi_parts_take(&t->fabric, &t->peers[i], t->peers[i].parts, 0);
		free(t->peers[i].gone);
	}
	gdri_ofi_memory_close(&t->memory); /* before the endpoint that it may be bound to */
	if (t->fabric.mr_bound)
		gdri_ofi_mr_close(&t->fabric, &t->space_mr);
	if (t->fabric.ep) /* before the memory that it may receive to */
		fi_close(&t->fabric.ep->fid);
	t->fabric.ep = NULL;
	gdri_ofi_messages_close(t);
	gdri_ofi_fabric_close(&t->fabric);
	free(t->queues);
	free(t->peers);
	pthread_mutex_destroy(&t->engine);
	free(t);
}

/* Also after connect: there may be fewer. */
static void ofi_describe(struct gdri_ofi_net *t)
{
	const struct fi_info *i = t->proxies[0]->fabric.info;
	uint32_t version = t->proxies[0]->fabric.lib.version();
	char threads[48] = "a thread on";
	bool one = t->n_proxies == 1, copies = t->proxies[0]->memory.lane && t->opt.heap_kind != GDRI_MEMORY_HOST;

	if (!one)
		snprintf(threads, sizeof(threads), "%d threads, each with queues of its own, on", t->n_proxies);
	snprintf(t->name, sizeof(t->name), "%s:%s", i->fabric_attr->prov_name,
		 i->domain_attr->name);
	snprintf(t->text, sizeof(t->text),
		 "libfabric %u.%u, provider %s, domain %s, fabric %s; %s %s carr%s entries%s%s",
		 FI_MAJOR(version), FI_MINOR(version), i->fabric_attr->prov_name,
		 i->domain_attr->name, i->fabric_attr->name, threads, t->place.text, one ? "ies" : "y",
		 !copies ? "" : one ? " and copies" : " and copy", copies ? " from and to the GPU" : "");
	t->net.threads = t->n_proxies;
	if (gdri_ofi_stays(i))
		t->net.stays = "leads to this machine alone: GDR_OFI_PROVIDER and GDR_OFI_DOMAIN name others "
			       "(fi_info -t FI_EP_RDM lists them)";
}

/* As many as every PE has. */
static void connect_fewest(struct gdri_ofi_net *t, const struct ofi_address *all)
{
	int i, least = 0;

	for (i = 0; i < t->n_pes; i++)
		if (all[i].n_proxies < all[least].n_proxies)
			least = i;
	if ((int)all[least].n_proxies < t->n_proxies)
		gdri_info("ofi: %u of %d threads carry entries: PE %d has no more", all[least].n_proxies, t->n_proxies,
			  least);
	while (t->n_proxies > (int)all[least].n_proxies)
		proxy_close(t->proxies[--t->n_proxies]);
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
		ret = connect_check(t, &all[i], i);
		keys.rkey_data = all[i].list;
		keys.rkey_sync = all[i].page;
		if (!ret)
			gdri_net_set_keys(&t->layout, i, &keys, qps);
	}
	if (ret)
		return ret;
	connect_fewest(t, all);
	ofi_describe(t);
	for (i = 0; i < t->n_proxies && !ret; i++)
		ret = connect_proxy(t->proxies[i], all, qps);
	net->relaxed = true;
	net->combines = true;
	net->order_text = "none: signals and p are atomics, and a fence waits";
	for (i = 0; i < t->n_proxies && !ret; i++)
		ret = gdri_ofi_proxy_start(t->proxies[i]);
	return ret;
}

/* ---- all of it ---- */

static void ofi_watch(struct gdri_net *net, bool lost)
{
	struct gdri_ofi_net *t = ofi_of(net);
	int i;

	/* it may hold a lock of shm's. relaxed: a hint, pairs with nothing */
	if (lost && gdri_ofi_is_shm(t->proxies[0]))
		__atomic_store_n(&t->apart, true, __ATOMIC_RELAXED);
	for (i = 0; i < t->n_proxies; i++)
		gdri_ofi_proxy_watch(t->proxies[i]);
}

static bool ofi_stop(struct gdri_net *net)
{
	struct gdri_ofi_net *t = ofi_of(net);
	bool all = true;
	int i;

	__atomic_store_n(&t->stop, true, __ATOMIC_RELAXED); /* see proxy_main */
	for (i = 0; i < t->n_proxies; i++)
		all &= gdri_ofi_proxy_stop(t->proxies[i]);
	return all;
}

static void ofi_close(struct gdri_net *net)
{
	struct gdri_ofi_net *t = ofi_of(net);

	if (!t || !ofi_stop(net)) /* what it has is left to a thread that does not end */
		return;
	while (t->n_proxies)
		proxy_close(t->proxies[--t->n_proxies]);
	ofi_free_ring(t);
	free(t->refuses);
	free(t->warned);
	pthread_mutex_destroy(&t->changes);
	pthread_mutex_destroy(&t->staged);
	free(t);
}

static bool ofi_drive(struct gdri_net *net, bool spare)
{
	struct gdri_ofi_net *t = ofi_of(net);
	bool any = false;
	int i;

	if (__atomic_load_n(&t->apart, __ATOMIC_RELAXED)) /* see ofi_watch */
		return false;
	for (i = 0; i < t->n_proxies; i++)
		any |= gdri_ofi_proxy_drive(t->proxies[i], spare);
	return any;
}

static void ofi_place(struct gdri_ofi_net *t)
{
	struct gdri_ofi_cpus cpus;
	int node = gdri_ofi_place_node("", t->proxies[0]->fabric.info);

	gdri_ofi_place_look(&cpus);
	gdri_ofi_place_choose("", t->opt.proxy_cpus, &cpus, node, &t->place);
}

static void ofi_way(struct gdri_net *net, int pe, char *text, size_t room)
{
	gdri_ofi_way(ofi_of(net)->proxies[0], pe, text, room);
}

/* By the library: what its providers can do is said when one is opened. */
static bool ofi_present(const struct gdri_net_how *how)
{
	(void)how;
	return gdri_ofi_lib_is_there();
}

static int open_proxy(struct gdri_ofi_net *t, const struct gdri_net_how *how)
{
	struct gdri_ofi_proxy *p = calloc(1, sizeof(*p));
	bool gpus = how->cuda && !gdri_cuda_late_writes(how->cuda);
	int ret;

	if (!p)
		return ofi_no_memory();
	p->net = t;
	p->index = t->n_proxies;
	p->token = t->token + (uint64_t)p->index;
	t->proxies[t->n_proxies++] = p;
	pthread_mutex_init(&p->engine, NULL);
	/* below GDR_TIMEOUT: a PE that waits for copies longer than twice that would count as lost */
	ret = gdri_ofi_memory_open(&p->memory, &p->fabric, how->cuda,
				   t->opt.timeout_ms < GDRI_COPY_MS ? (int)t->opt.timeout_ms : GDRI_COPY_MS);
	if (!ret && !p->index)
		ret = gdri_ofi_fabric_open(&p->fabric, &t->opt, how->from, gpus);
	else if (!ret)
		ret = gdri_ofi_fabric_again(&p->fabric, &t->proxies[0]->fabric);
	return ret;
}

/* One at least; a provider may have room for fewer endpoints than are asked for. */
static int open_proxies(struct gdri_ofi_net *t, const struct gdri_net_how *how)
{
	int n = (int)t->opt.proxy_threads, slots = (int)gdri_net_slots(&t->opt), ret = 0;

	n = n < slots ? n : slots;
	while (t->n_proxies < n && !ret)
		ret = open_proxy(t, how);
	if (!ret || t->n_proxies < 2)
		return ret;
	proxy_close(t->proxies[--t->n_proxies]);
	gdri_warn("ofi: GDR_PROXY_THREADS=%u: %d carry entries, since another one does not open", t->opt.proxy_threads,
		  t->n_proxies);
	return 0;
}

static int ofi_open(const struct gdri_net_how *how, struct gdri_net **out)
{
	struct gdri_ofi_net *t;
	int ret = 0;

	*out = NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return ofi_no_memory();
	t->opt = *how->opt;
	t->poster = how->host_posts ? NULL : how->cuda;
	pthread_mutex_init(&t->changes, NULL);
	pthread_mutex_init(&t->staged, NULL);
	if (getrandom(&t->token, sizeof(t->token), 0) != sizeof(t->token))
		ret = gdri_fail(-GDR_ESYSTEM, "ofi: getrandom: %s", gdri_errno_text(errno));
	/* Before it opens: its files go by process numbers, and of two PEs with one number the second dies there. */
	if (!ret && how->apart && !strcmp(t->opt.ofi_provider, "shm"))
		ret = ofi_shm_refused(how->apart - 1, "its PID namespace is another one, as of another container");
	ret = ret ? ret : open_proxies(t, how);
	if (ret) {
		ofi_close(&t->net);
		return ret;
	}
	t->net = (struct gdri_net){.ops = &gdri_ofi_ops,
				   .name = t->name,
				   .text = t->text,
				   .patience = "GDR_TIMEOUT",
				   .heap_text = "host memory",
				   .queue_text = "host memory",
				   .bell_text = "a thread looks at them"};
	ofi_place(t);
	ofi_describe(t);
	*out = &t->net;
	return 0;
}

const struct gdri_net_ops gdri_ofi_ops = {
	.takes = "libfabric (Debian: libfabric1)",
	.present = ofi_present,
	.open = ofi_open,
	.close = ofi_close,
	.watch = ofi_watch,
	.stop = ofi_stop,
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
