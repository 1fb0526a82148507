// SPDX-License-Identifier: BSD-3-Clause
/* How each peer is reached: heaps of the node are mapped, the transport takes the rest. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/core/agree.h"
#include "runtime/core/clock.h"
#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/cuda/units.h"
#include "runtime/exec/staging.h"
#include "runtime/mem/heap.h"
#include "runtime/mem/host_view.h"
#include "runtime/mem/share.h"
#include "runtime/mem/symmetric.h"
#include "runtime/net/net.h"
#include "runtime/net/queues.h"
#include "runtime/path/hostq.h"
#include "runtime/path/reach.h"

static bool paths_sharing(const struct gdri_state *st)
{
	return st->opt.transports & GDRI_TRANSPORT_P2P;
}

/* Not where GPUs use memory of the host: their atomics there are not atomic to each other's. */
static bool p2p_on(const struct gdri_state *st)
{
	return paths_sharing(st) && !st->heap->seen_by;
}

/* Part of the time that is left: a step that waits for a peer must leave the others
 * time to say so. */
static int part_of_left(const struct gdri_state *st)
{
	int half = gdri_left_ms(st->deadline_ns) / 2;

	return half < 10000 ? half : 10000;
}

/* The page first: a PE whose heap is mapped is one that meets there. */
static void map_peer(struct gdri_state *st, struct gdri_share_peer *p)
{
	int ret = p->fd < 0;

	if (!ret && st->cuda)
		ret = gdri_page_map(st, p->pe, p->page, p->why, sizeof(p->why));
	if (!ret && p2p_on(st))
		gdri_heap_map_peer(st->heap, p->fd, p->pe, &st->peers[p->pe].base, p->why,
				   sizeof(p->why));
	if (p->fd >= 0)
		close(p->fd);
	if (p->page >= 0)
		close(p->page);
	if (p2p_on(st) && !st->peers[p->pe].base)
		memcpy(st->reason[p->pe], p->why, sizeof(p->why));
}

static void paths_exchange(struct gdri_state *st, const struct gdri_share_address *all)
{
	struct gdri_share_peer *sp = calloc((size_t)st->n_pes, sizeof(*sp));
	uint64_t begin = gdri_now_ns(), exchanged;
	int i, n = 0;

	for (i = 0; sp && i < st->n_pes; i++) {
		if (i == st->pe || !st->same_node[i])
			continue;
		sp[n].pe = i;
		sp[n++].address = all[i];
	}
	if (n)
		st->pending = gdri_share_exchange(st->share, st->pe, st->heap->parts[0].fd,
						  st->cuda ? st->page->parts[0].fd : -1, sp, n, part_of_left(st));
	exchanged = gdri_now_ns();
	for (i = 0; i < n; i++)
		map_peer(st, &sp[i]);
	gdri_debug("init: descriptors of %d peers %llu us, mapping them %llu us", n,
		   (unsigned long long)(exchanged - begin) / 1000,
		   (unsigned long long)(gdri_now_ns() - exchanged) / 1000);
	free(sp);
}

int gdri_up_p2p(struct gdri_state *st)
{
	struct gdri_share_address *all = calloc((size_t)st->n_pes, sizeof(*all));
	int ret;

	/* Wrong numbers find an unmapped PE, which ends as gdri_no_pe says. */
	st->peers = calloc(GDRI_MAX_PES + 2, sizeof(*st->peers));
	st->peers += st->peers ? 1 : 0;
	st->reason = calloc((size_t)st->n_pes, sizeof(*st->reason));
	st->page_peers = calloc((size_t)st->n_pes, sizeof(*st->page_peers));
	if (!st->pending && (!all || !st->peers || !st->reason || !st->page_peers))
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	ret = gdri_agree(st, "init", &st->share->address, all, sizeof(*all));
	if (!ret && p2p_on(st))
		st->peers[st->pe].base = st->heap->base;
	if (!ret && paths_sharing(st) && (st->cuda || p2p_on(st))) {
		st->page_peers[st->pe].base = st->page->base;
		paths_exchange(st, all);
	}
	gdri_share_close(st->share);
	free(all);
	return ret;
}

/* Says for each PE without mapping how it is reached. */
static void paths_explain(struct gdri_state *st)
{
	for (int i = 0; i < st->n_pes; i++) {
		if (st->peers[i].base)
			continue;
		if (*st->reason[i])
			gdri_warn("PE %d shares the node but not its memory, %s is used: %s", i,
				  gdri_net_word(&st->opt), st->reason[i]);
		else
			gdri_debug("PE %d is reached by %s: %s", i, gdri_net_word(&st->opt),
				   st->heap->seen_by  ? "GDR_HEAP_KIND is host"
				   : !p2p_on(st)     ? "p2p is not in GDR_TRANSPORTS"
				   : st->same_node[i] ? "out of memory"
						      : "it is on another node");
	}
}

/* By the first PE that somebody cannot reach. */
static int refuse_without_net(struct gdri_state *st, const uint32_t *unmapped)
{
	int i;

	for (i = 0; i < st->n_pes && st->peers[i].base; i++)
		;
	if (i < st->n_pes)
		return gdri_fail(-GDR_ENOTSUP,
				 "PE %d cannot be reached from PE %d by p2p (%s), and GDR_TRANSPORTS does not allow %s",
				 i, st->pe,
				 *st->reason[i]	     ? st->reason[i]
				 : st->heap->seen_by ? "GDR_HEAP_KIND is host"
				 : st->same_node[i]  ? "its memory was not mapped"
						     : "it is on another node, by its host name or boot id",
				 gdri_net_word(&st->opt));
	for (i = 0; !unmapped[i]; i++)
		;
	return gdri_fail(-GDR_ENOTSUP,
			 "PE %d cannot reach %u of the PEs by p2p, and GDR_TRANSPORTS does not allow %s: see its "
			 "output",
			 i, unmapped[i], gdri_net_word(&st->opt));
}

static uint32_t count_unmapped(const struct gdri_state *st)
{
	uint32_t n = 0;

	for (int i = 0; i < st->n_pes; i++)
		n += !st->peers[i].base;
	return n;
}

static struct gdri_reach paths_reach(const struct gdri_state *st)
{
	const struct gdri_net_how how = {.opt = &st->opt, .cuda = st->cuda};
	struct gdri_reach own = {.unmapped = count_unmapped(st)};

	if (own.unmapped)
		own.present = gdri_net_present(&how);
	if (gdri_net_chosen(&st->opt))
		gdri_reach_look(&own, st->boot);
	return own;
}

/* The first transport goes on, and refuses. */
static void reach_lacks(const struct gdri_state *st)
{
	char lacks[240];

	gdri_net_lacks(&st->opt, 0, lacks, sizeof(lacks));
	if (st->pe == 0)
		gdri_warn("no PE has what the queues to other PEs need: %s", lacks);
}

/* The same on all PEs, for all know what each has. */
static void reach_choose(struct gdri_state *st, uint32_t present)
{
	const struct gdri_net_ops *first = gdri_net_chosen(&st->opt);
	char word[16];

	if (!first)
		return;
	snprintf(word, sizeof(word), "%s", gdri_net_word(&st->opt));
	if (!gdri_net_choose(&st->opt, present))
		reach_lacks(st);
	else if (st->pe == 0 && gdri_net_chosen(&st->opt) != first)
		gdri_warn("no PE has what %s takes: the CPU carries the queues by %s, which is slower; "
			  "GDR_TRANSPORTS=p2p,%s chooses that without a warning",
			  word, gdri_net_word(&st->opt), gdri_net_word(&st->opt));
}

static int refuse_unmapped(struct gdri_state *st, const struct gdri_reach *all)
{
	uint32_t *unmapped = calloc((size_t)st->n_pes, sizeof(*unmapped));
	int i, ret;

	if (!unmapped)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	for (i = 0; i < st->n_pes; i++)
		unmapped[i] = all[i].unmapped;
	ret = refuse_without_net(st, unmapped);
	free(unmapped);
	return ret;
}

/* Whether a transport is in use is decided for the whole job: atomics go one way everywhere. A PE that could not
 * share its memory with anybody has failed, and is told of before the ones that miss it. */
int gdri_up_reach(struct gdri_state *st)
{
	struct gdri_reach *all = calloc((size_t)st->n_pes, sizeof(*all)), own = paths_reach(st);
	uint32_t present = 0;
	bool any = false;
	int ret;

	if (!st->pending && !all)
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory");
	ret = gdri_agree(st, "init", &own, all, sizeof(own));
	for (int i = 0; !ret && i < st->n_pes; i++) {
		any |= all[i].unmapped != 0;
		present |= all[i].present;
		if (!st->apart && all[i].pids && all[st->pe].pids && all[i].pids != all[st->pe].pids)
			st->apart = i + 1;
	}
	if (!ret && any && !gdri_net_chosen(&st->opt))
		ret = refuse_unmapped(st, all);
	if (!ret)
		st->from = gdri_reach_from(all, st->n_pes, st->pe, gdri_inet_route);
	free(all);
	if (ret)
		return ret;
	if (any)
		reach_choose(st, present);
	st->any_net = any;
	paths_explain(st);
	return 0;
}

void gdri_down_p2p(struct gdri_state *st)
{
	if (st->heap->cuda) /* what is mapped behind the peers' heaps goes before them */
		gdri_symmetric_leave_all(&st->symmetric);
	for (int i = 0; st->peers && i < st->n_pes; i++) {
		if (i != st->pe)
			gdri_heap_unmap_peer(st->heap, st->peers[i].base);
	}
	gdri_page_unmap(st);
	free(st->peers ? st->peers - 1 : NULL);
	free(st->reason);
	st->peers = NULL;
	st->reason = NULL;
}

/* Equally near NICs, and GPUs, are taken in turn. */
unsigned gdri_local_rank(const struct gdri_state *st)
{
	unsigned rank = 0;

	for (int i = 0; i < st->pe; i++)
		rank += st->same_node[i];
	return rank;
}

static int paths_open_net(struct gdri_state *st, const char *near)
{
	const struct gdri_net_how how = {
		.opt = &st->opt, .near = near, .turn = gdri_local_rank(st), .from = &st->from, .apart = st->apart,
		.cuda = st->cuda};
	int ret = gdri_net_chosen(&st->opt)->open(&how, &st->net);

	return ret ? ret : st->net->ops->register_heap(st->net, st->heap->base, st->heap->size, NULL, 0, st->keys);
}

int gdri_up_net(struct gdri_state *st)
{
	size_t n = (size_t)st->n_pes * gdri_net_slots(&st->opt);
	const char *near;
	char path[64];
	int ret;

	if (!st->any_net)
		return 0;
	if (!gdri_units_have_queues())
		return gdri_fail(-GDR_ENOTSUP, "the program was compiled with GDR_NO_QUEUES, and not all PEs are "
					       "mapped: compile it without, or put all PEs on one node with p2p in "
					       "GDR_TRANSPORTS");
	near = st->cuda ? gdri_cuda_sysfs(st->cuda, path, sizeof(path)) : NULL;
	ret = paths_open_net(st, near);
	if (ret)
		return ret;
	st->qps = aligned_alloc(GDRI_LINE, n * sizeof(*st->qps));
	if (!st->qps)
		return gdri_fail(-GDR_ENOMEM, "out of memory for %zu queue pairs", n);
	memset(st->qps, 0, n * sizeof(*st->qps));
	ret = st->net->ops->create_queues(st->net, st->n_pes, st->qps);
	return ret || !st->cuda ? ret : gdri_hostq_open(st, near);
}

/* Only those that opened it know how long its address is: ask first. */
int gdri_up_net_ready(struct gdri_state *st)
{
	return st->any_net ? gdri_agree(st, "transport", NULL, NULL, 0) : 0;
}

void gdri_down_net(struct gdri_state *st)
{
	gdri_hostq_close(st);
	if (st->net)
		st->net->ops->close(st->net);
	st->net = NULL;
	gdri_staging_close(st);
	free(st->qps);
	st->qps = NULL;
}

static int connect_all(struct gdri_state *st, struct gdri_net *net, struct gdri_qp *qps)
{
	size_t len = net->address_bytes;
	uint8_t *mine = calloc(1, len), *all = calloc((size_t)st->n_pes, len);
	int ret;

	if (mine && all) {
		net->ops->address(net, mine);
	} else {
		st->pending = gdri_fail(-GDR_ENOMEM, "out of memory for the addresses of %d PEs", st->n_pes);
		len = 0; /* then the others' lengths do not match and the bootstrap says so */
	}
	ret = gdri_agree(st, "transport addresses", mine, all, len);
	if (!ret)
		st->pending = net->ops->connect(net, all, st->pe, st->n_pes, qps);
	free(mine);
	free(all);
	return ret;
}

int gdri_up_connect(struct gdri_state *st)
{
	int ret;

	if (!st->any_net)
		return 0;
	ret = connect_all(st, st->net, st->qps);
	if (ret || !st->cuda)
		return ret;
	return connect_all(st, gdri_hostq_net(st->hostq), gdri_hostq_qps(st->hostq));
}
