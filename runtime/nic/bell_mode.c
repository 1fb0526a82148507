// SPDX-License-Identifier: BSD-3-Clause
/* How the device is told of new entries (GDR_DOORBELL_MODE): by record and doorbell, by a doorbell before the record,
 * too, or by the doorbell alone. A queue pair of the last kind has a page of doorbell registers of its own, and rings
 * where such queue pairs do (DOCA GPUNetIO). Devices make a bounded number of them, which no capability tells: who is
 * refused a page, or is refused by CREATE_QP, has a record, and so do all behind it. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"

#define UAR_PAGE      4096u /* the device's; base_addr is a page of the host */
#define REG_NO_RECORD 0x600
#define PAGE_REGS     4	    /* that libmlx5 hands out of a page at most */

static bool is_used(const struct gdri_nic *nic, uint32_t page)
{
	for (size_t i = 0; i < nic->layout.n; i++) {
		if (nic->qps[i].uar->page_id == page)
			return true;
	}
	return false;
}

/* Uncached; of older libraries (nic/uar.c) write-combining. */
static struct mlx5dv_devx_uar *mode_register(struct gdri_nic *nic)
{
	struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(nic->ctx, GDRI_UAR_NC_DEDICATED);

	return uar || errno != EOPNOTSUPP ? uar : mlx5dv_devx_alloc_uar(nic->ctx, GDRI_UAR_BF);
}

/* A register of a page in which no queue pair of ours rings. Those of other pages that come before it stay allocated,
 * or they would come again. NULL: errno */
static struct mlx5dv_devx_uar *mode_page(struct gdri_nic *nic)
{
	struct mlx5dv_devx_uar *uar;

	for (int i = 0; i <= PAGE_REGS; i++) {
		uar = mode_register(nic);
		if (!uar || !is_used(nic, uar->page_id))
			return uar;
		nic->spare[nic->n_spare++] = uar;
	}
	errno = ENOSPC;
	return NULL;
}

static void mode_pages(struct gdri_nic *nic)
{
	size_t n = nic->layout.n;
	struct mlx5dv_devx_uar *uar;
	struct gdri_nic_qp *q;

	nic->spare = calloc(n, (PAGE_REGS + 2) * sizeof(*nic->spare)); /* the shared register, too */
	if (!nic->spare) {
		snprintf(nic->bell_why, sizeof(nic->bell_why), "out of memory");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		uar = mode_page(nic);
		if (!uar) {
			snprintf(nic->bell_why, sizeof(nic->bell_why), "no more doorbell pages: %s (errno %d)",
				 gdri_errno_text(errno), errno);
			return;
		}
		q = &nic->qps[i];
		nic->spare[nic->n_spare++] = q->uar;
		q->uar = uar;
		q->db = (uint8_t *)uar->reg_addr - (uintptr_t)uar->reg_addr % UAR_PAGE + REG_NO_RECORD;
		q->no_record = true;
	}
}

void gdri_nic_bell_mode_begin(struct gdri_nic *nic)
{
	if (nic->opt.doorbell_mode != GDRI_BELL_NO_RECORD)
		return;
	if (nic->caps.no_record)
		mode_pages(nic);
	else
		snprintf(nic->bell_why, sizeof(nic->bell_why), "the device has none (send_dbr_mode_no_dbr_ext)");
}

void gdri_nic_bell_mode_refused(struct gdri_nic *nic, int i, unsigned int status, unsigned int syndrome)
{
	char name[GDRI_NIC_QP_NAME];

	snprintf(nic->bell_why, sizeof(nic->bell_why), "%s refused: status 0x%02x, syndrome 0x%08x",
		 gdri_nic_qp_name(nic, "CREATE_QP", i, name), status, syndrome);
	for (size_t at = (size_t)i; at < nic->layout.n; at++) {
		if (nic->qps[at].no_record)
			nic->qps[at].db = nic->qps[at].uar->reg_addr;
		nic->qps[at].no_record = false;
	}
}

static void mode_say(struct gdri_nic *nic, const char *text)
{
	size_t len = strlen(nic->bell_text);

	snprintf(nic->bell_text + len, sizeof(nic->bell_text) - len, "; %s", text);
}

static void mode_say_records(struct gdri_nic *nic, size_t without)
{
	char text[sizeof(nic->bell_why) + 96];

	snprintf(text, sizeof(text), "%zu of %zu queue pairs without doorbell record%s%s", without, nic->layout.n,
		 *nic->bell_why ? ": " : "", nic->bell_why);
	mode_say(nic, text);
}

void gdri_nic_bell_mode_end(struct gdri_nic *nic)
{
	size_t without = 0;

	for (size_t i = 0; i < nic->layout.n; i++)
		without += nic->qps[i].no_record;
	nic->net.no_record = without;
	if (nic->opt.doorbell_mode == GDRI_BELL_NO_RECORD)
		mode_say_records(nic, without);
	/* A word that is stored twice is one change to the host's thread: it might ring before the record, and not
	 * behind it. */
	nic->net.early = nic->opt.doorbell_mode == GDRI_BELL_EARLY && !nic->net.host_rings;
	if (nic->net.early)
		mode_say(nic, "also before the record");
	gdri_info("%s: doorbells: %s", nic->name, nic->bell_text);
}

void gdri_nic_bell_mode_destroy(struct gdri_nic *nic)
{
	while (nic->n_spare)
		mlx5dv_devx_free_uar(nic->spare[--nic->n_spare]);
	free(nic->spare);
	nic->spare = NULL;
	nic->bell_why[0] = '\0';
}
