// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/mem/host_view.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/core/state.h"
#include "runtime/mem/heap.h"
#include "runtime/path/hostq.h"

#define PAGE_SIZE (2 * GDRI_CTL_SIZE) /* the least that a heap has */

int gdri_page_open(struct gdri_state *st)
{
	return gdri_heap_open(st->page, NULL, false, PAGE_SIZE, 0, st->pe);
}

void gdri_page_close(struct gdri_state *st)
{
	gdri_heap_close(st->page);
}

int gdri_page_map(struct gdri_state *st, int pe, int fd, char *why, size_t room)
{
	return gdri_heap_map_peer(st->page, fd, pe, &st->page_peers[pe].base, why, room);
}

void gdri_page_unmap(struct gdri_state *st)
{
	for (int i = 0; st->page_peers && i < st->n_pes; i++) {
		if (i != st->pe)
			gdri_heap_unmap_peer(st->page, st->page_peers[i].base);
	}
	free(st->page_peers);
	st->page_peers = NULL;
}

static struct gdri_dev *host_view_create(void)
{
	struct gdri_dev *d = aligned_alloc(GDRI_LINE, sizeof(*d));

	if (!d)
		return NULL;
	memset(d, 0, sizeof(*d));
	d->errors = calloc(GDRI_MAX_ERRORS, sizeof(*d->errors));
	if (d->errors)
		return d;
	free(d);
	return NULL;
}

int gdri_host_view_up(struct gdri_state *st)
{
	struct gdri_dev *d = host_view_create();

	st->host_view = d;
	if (!d)
		return gdri_fail(-GDR_ENOMEM, "out of memory");
	d->abi_version = GDR_ABI_VERSION;
	d->struct_size = sizeof(*d);
	d->pe = st->pe;
	d->n_pes = st->n_pes;
	d->heap = st->page->base;
	d->heap_size = st->page->size;
	d->ctl = (struct gdri_ctl *)st->page->base;
	d->peers = st->page_peers;
	d->timeout_ns = (uint64_t)st->opt.timeout_ms * 1000000u;
	d->abort = st->abort_word;
	if (st->hostq)
		gdri_hostq_show(st->hostq, d);
	return 0;
}

void gdri_host_view_down(struct gdri_state *st)
{
	if (st->host_view)
		free(st->host_view->errors);
	free(st->host_view);
	st->host_view = NULL;
}
