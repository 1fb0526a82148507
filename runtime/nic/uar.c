// SPDX-License-Identifier: BSD-3-Clause
/* Doorbell registers. Every queue pair gets a register of its own: device code
 * stores to it without a lock, and a device that watches registers sees each.
 *
 * What libmlx5 hands out (providers/mlx5/verbs.c, mlx5dv_devx_alloc_uar):
 *	NC_DEDICATED	own register, uncached; four of them share a page. Since
 *			rdma-core 45; older libraries say EOPNOTSUPP
 *	NC		always the same register of the one page per context. The
 *			page has four, of which libmlx5 uses the first, for queue
 *			pairs that nobody makes in our context
 *	BF		own register, write-combining; two share a page
 * So: dedicated; else the NC page while four are enough; else BF; else the NC
 * page with registers shared, which is correct (the store is one 8-byte MMIO
 * write) but not quick. libmlx5 keeps the pages of BF until the context is
 * closed: the NC page, which it keeps as well, is taken before them, so that
 * where BF ends too early there is one to share. */

#include <errno.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"

#define UAR_NC 1u

/* PRM, "User Access Region": registers of a page */
#define REG_FIRST    0x800
#define REG_STRIDE   0x100
#define REGS_IN_PAGE 4

void gdri_nic_uar_destroy(struct gdri_nic_qp *qps, int n)
{
	for (int i = 0; i < n; i++) {
		if (qps[i].uar)
			mlx5dv_devx_free_uar(qps[i].uar);
		qps[i].uar = NULL;
		qps[i].db = NULL;
	}
}

/* All or none, so that queue pairs do not differ in speed. Returns errno. */
static int alloc_all(struct gdri_nic *nic, struct gdri_nic_qp *qps, int n, uint32_t type)
{
	int err;

	for (int i = 0; i < n; i++) {
		qps[i].uar = mlx5dv_devx_alloc_uar(nic->ctx, type);
		if (!qps[i].uar) {
			err = errno;
			gdri_nic_uar_destroy(qps, i);
			return err ? err : EIO;
		}
		qps[i].db = qps[i].uar->reg_addr;
		if (type == UAR_NC)
			qps[i].db = (uint8_t *)qps[i].uar->base_addr + REG_FIRST +
				    i % REGS_IN_PAGE * REG_STRIDE;
	}
	return 0;
}

int gdri_nic_uar_create(struct gdri_nic *nic, struct gdri_nic_qp *qps, int n)
{
	static const struct {
		uint32_t type;
		int most; /* queue pairs that this way is good for */
		const char *text;
	} ways[] = {
		{GDRI_UAR_NC_DEDICATED, INT32_MAX, "dedicated, uncached"},
		{UAR_NC, REGS_IN_PAGE, "of the context's uncached page"},
		{GDRI_UAR_BF, INT32_MAX, "write-combining"},
		{UAR_NC, INT32_MAX,
		 "of the context's uncached page, shared by several queue pairs"},
	};
	struct mlx5dv_devx_uar *last_resort;
	int err = 0;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		if (n > ways[i].most)
			continue;
		last_resort = ways[i].type == GDRI_UAR_BF ? mlx5dv_devx_alloc_uar(nic->ctx, UAR_NC) : NULL;
		err = alloc_all(nic, qps, n, ways[i].type);
		if (last_resort)
			mlx5dv_devx_free_uar(last_resort); /* the context's still */
		if (!err) {
			gdri_debug("%s: %d doorbell registers, %s", nic->name, n, ways[i].text);
			return 0;
		}
	}
	return gdri_nic_failed(nic->name, "mlx5dv_devx_alloc_uar (doorbell registers)", err,
			       "the device's BAR may be used up by other programs: lower "
			       "GDR_QPS_PER_PE");
}
