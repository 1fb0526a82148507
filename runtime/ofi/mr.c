// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ofi/lib.h"

#include <rdma/fi_errno.h>

void gdri_ofi_mr_close(struct gdri_ofi_fabric *f, struct fid_mr **mr)
{
	uint64_t key;

	if (!*mr)
		return;
	key = fi_mr_key(*mr);
	fi_close(&(*mr)->fid);
	*mr = NULL;
	if (!f->mr_keys)
		gdri_ofi_keys_give(&f->keys, key);
}

/* Where the provider wants that: only then it can be reached. */
static int mr_bind(struct gdri_ofi_fabric *f, struct fid_mr *mr)
{
	int rc = f->mr_bound ? fi_mr_bind(mr, &f->ep->fid, 0) : 0;

	return rc || !f->mr_bound ? rc : fi_mr_enable(mr);
}

int gdri_ofi_mr_open(struct gdri_ofi_fabric *f, void *addr, size_t len, uint64_t access, struct fid_mr **mr)
{
	uint64_t key = 0;
	int rc;

	*mr = NULL;
	if (!f->mr_keys && !gdri_ofi_keys_take(&f->keys, &key))
		return -FI_ENOKEY;
	rc = fi_mr_reg(f->domain, addr, len, access, 0, key, 0, mr, NULL);
	rc = rc ? rc : mr_bind(f, *mr);
	if (!rc)
		return 0;
	if (*mr)
		fi_close(&(*mr)->fid);
	*mr = NULL;
	if (!f->mr_keys)
		gdri_ofi_keys_give(&f->keys, key);
	return rc;
}
