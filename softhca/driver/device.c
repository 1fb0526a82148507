/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens of the device file and their UAR pages.
 *
 * The file that the program gets is a sparse memfd: page i of it is UAR page i,
 * so that libmlx5's own mmap() maps ordinary shared memory; device memory lies
 * where libmlx5 maps it (uverbs_dm.c). Page numbers are
 * unique in the process although each open has a file of its own. The engine's
 * view of all pages is one reserved range, in which a page that is not handed
 * out reads as zeros: the engine never faults, whatever it looks at. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/driver/control.h"
#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"

static struct hca_ctx *contexts;
static uint8_t *uar_base;
static bool uar_taken[HCA_UAR_PAGES];
static struct uar_use {
	uint32_t qps;  /* that ring here */
	bool dbr_less; /* its one QP has no doorbell record for sending */
} uar_uses[HCA_UAR_PAGES];
static uint32_t uar_used; /* 1 + highest page handed out so far */
static uint32_t uar_next = 1;
static uint32_t records_missing; /* queue pairs without one */

/* ---- contexts ---- */

uint64_t hca_dm_offset(uint32_t page)
{
	/* mmap command 8, MLX5_IB_MMAP_DEVICE_MEM; the index is in the lower byte. */
	return ((8u << 8) + page) * hca_page();
}

bool hca_is_dm(uint64_t offset)
{
	return offset >= hca_dm_offset(0) && offset < hca_dm_offset(HCA_DM_INDEXES);
}

static off_t device_file_size(void)
{
	uint64_t uars = (uint64_t)HCA_UAR_PAGES * HCA_UAR_PAGE, dm = hca_dm_offset(HCA_DM_INDEXES);

	return (off_t)(uars > dm ? uars : dm);
}

int device_open(unsigned device, int flags)
{
	struct hca_ctx *ctx;
	struct stat st;
	int fd, rc;

	if (shim_is_forked_child()) {
		hca_warn("the device cannot be opened in a child of fork whose parent has opened "
			 "it: exec first");
		errno = ENODEV;
		return -1;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx) {
		errno = ENOMEM;
		return -1;
	}
	fd = memfd_create("uverbs0", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
	if (fd < 0 || hca_size_file(fd, device_file_size()) || real_fstat(fd, &st))
		goto fail;
	ctx->device = device;
	ctx->dev = st.st_dev;
	ctx->ino = st.st_ino;
	rc = shim_file_add(SHIM_DEVICE, device, st.st_dev, st.st_ino);
	if (rc) {
		errno = rc;
		goto fail;
	}
	fork_prepare();
	hca_lock();
	ctx->next = contexts;
	contexts = ctx;
	hca_unlock();
	return fd;
fail:
	rc = errno;
	hca_warn("the device cannot be opened: %s", limits_text(rc).s);
	if (fd >= 0)
		real_close(fd);
	free(ctx);
	errno = rc;
	return -1;
}

struct hca_ctx *device_contexts(void)
{
	return contexts;
}

struct hca_ctx *device_find(dev_t dev, ino_t ino)
{
	struct hca_ctx *ctx = contexts;

	while (ctx && (ctx->dev != dev || ctx->ino != ino))
		ctx = ctx->next;
	return ctx;
}

static void context_free(struct hca_ctx *ctx)
{
	struct hca_ctx **at = &contexts;

	while (*at != ctx)
		at = &(*at)->next;
	*at = ctx->next;
	obj_destroy_all(ctx);
	while (ctx->channels)
		event_channel_close(ctx->channels);
	if (ctx->async)
		event_channel_close(ctx->async);
	shim_file_remove(ctx->dev, ctx->ino);
	free(ctx);
}

/* A channel's file may be any context's. */
static struct hca_comp_channel *channel_by_inode(dev_t dev, ino_t ino)
{
	for (struct hca_ctx *ctx = contexts; ctx; ctx = ctx->next) {
		if (ctx->async && ctx->async->dev == dev && ctx->async->ino == ino)
			return ctx->async;
		for (struct hca_comp_channel *ch = ctx->channels; ch; ch = ch->next)
			if (ch->dev == dev && ch->ino == ino)
				return ch;
	}
	return NULL;
}

void device_closing(dev_t dev, ino_t ino)
{
	struct hca_comp_channel *ch;
	struct hca_ctx *ctx;
	int saved = errno;

	hca_lock();
	ctx = device_find(dev, ino);
	ch = ctx ? NULL : channel_by_inode(dev, ino);
	if (ctx)
		context_free(ctx);
	else if (ch)
		event_channel_close(ch);
	hca_unlock();
	errno = saved;
}

/* ---- UAR pages ---- */

static int uar_reserve(void)
{
	void *base;

	if (uar_base)
		return 0;
	base = mmap(NULL, (size_t)HCA_UAR_PAGES * HCA_UAR_PAGE, PROT_READ,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return ENOMEM;
	uar_base = base;
	return 0;
}

/* Of the device, in one of the host, which is what a program gets: a process maps no less. */
static uint32_t hca_uars(void)
{
	return (uint32_t)(hca_page() / HCA_UAR_PAGE);
}

/* Page 0 is never handed out: a forgotten uar_page field must not work. */
static uint32_t uar_pick(void)
{
	uint32_t n = hca_uars(), page;

	for (uint32_t i = 0; i < HCA_UAR_PAGES; i += n) {
		if (uar_next < n || uar_next + n > HCA_UAR_PAGES)
			uar_next = n;
		page = uar_next;
		uar_next += n;
		/* Nor the page before device memory: the kernel would show both as one mapping. */
		if (!uar_taken[page] && !hca_is_dm((uint64_t)page * HCA_UAR_PAGE) &&
		    !hca_is_dm((uint64_t)page * HCA_UAR_PAGE + hca_page()))
			return page;
	}
	return 0;
}

static void uar_mark(const struct ctl_uar *uar, bool taken)
{
	memset(uar_taken + uar->page, taken, hca_uars() * sizeof(*uar_taken));
}

int uar_alloc(struct hca_ctx *ctx, int fd, struct ctl_uar **out)
{
	struct ctl_uar *uar;
	uint32_t page;
	off_t at;

	if (uar_reserve() || ctx->uars >= hca_options()->device.uar_limit)
		return ENOMEM;
	page = uar_pick();
	if (!page)
		return ENOSPC;
	at = (off_t)page * HCA_UAR_PAGE;
	uar = obj_new(ctx, OBJ_UAR, sizeof(*uar));
	if (!uar)
		return ENOMEM;
	/* A number that comes back must not show its last owner's doorbells. */
	fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)hca_page());
	/* Written by uar_clear() and guest_uar_take() only. */
	if (mmap(uar_base + at, hca_page(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, at) == MAP_FAILED) {
		obj_free(&uar->obj);
		return ENOMEM;
	}
	uar->page = page;
	uar_mark(uar, true);
	ctx->uars++;
	if (page + hca_uars() > uar_used)
		uar_used = page + hca_uars();
	*out = uar;
	return 0;
}

int uar_destroy(struct ctl_uar *uar)
{
	size_t at = (size_t)uar->page * HCA_UAR_PAGE;

	if (mmap(uar_base + at, hca_page(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
		 0) == MAP_FAILED)
		hca_debug(1, "UAR page %u stays mapped", uar->page);
	uar_mark(uar, false);
	uar->obj.ctx->uars--;
	return 0;
}

bool uar_is_taken(uint32_t page)
{
	return page < HCA_UAR_PAGES && uar_taken[page];
}

bool uar_admits(uint32_t page, bool dbr_less)
{
	const struct uar_use *use = &uar_uses[page];

	if (dbr_less && records_missing >= hca_options()->device.norecord_limit)
		return false;
	return !use->dbr_less && !(dbr_less && use->qps);
}

void uar_qp_added(uint32_t page, bool dbr_less)
{
	uar_uses[page].qps++;
	uar_uses[page].dbr_less = dbr_less;
	records_missing += dbr_less;
	if (dbr_less)
		uar_clear(page);
}

void uar_qp_removed(uint32_t page)
{
	uar_uses[page].qps--;
	records_missing -= uar_uses[page].dbr_less;
	uar_uses[page].dbr_less = false;
}

/* A QP that starts again may write the very value that lies there: the engine would see no change. */
void uar_clear(uint32_t number)
{
	uint8_t *page = uar_base + (size_t)number * HCA_UAR_PAGE;

	/* Relaxed: there is nothing to order, and the QP is not ready to send. */
	for (size_t i = 0; i < HCA_UAR_PAGE; i += 8)
		__atomic_store_n((uint64_t *)(void *)(page + i), 0, __ATOMIC_RELAXED);
}

struct ctl_uar *uar_find(struct hca_ctx *ctx, uint32_t page)
{
	for (uint32_t h = 1; h < ctx->n_handles; h++) {
		struct ctl_uar *uar = obj_get(ctx, h, OBJ_UAR);

		if (uar && page - uar->page < hca_uars())
			return uar;
	}
	return NULL;
}

uint8_t *hca_uar_page(uint32_t page)
{
	return page < uar_used ? uar_base + (size_t)page * HCA_UAR_PAGE : NULL;
}

uint32_t hca_uar_pages_used(void)
{
	return uar_used;
}
