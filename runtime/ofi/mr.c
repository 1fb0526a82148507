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

static int mr_reg(struct gdri_ofi_fabric *f, void *addr, size_t len, int gpu, uint64_t access, uint64_t key,
		  struct fid_mr **mr)
{
	struct iovec range = {addr, len};
	struct fi_mr_attr attr = {.mr_iov = &range,
				  .iov_count = 1,
				  .access = access,
				  .requested_key = key,
				  .iface = FI_HMEM_CUDA,
				  .device.cuda = gpu};

	if (gpu == GDRI_OFI_HOST)
		return fi_mr_reg(f->domain, addr, len, access, 0, key, 0, mr, NULL);
	return fi_mr_regattr(f->domain, &attr, 0, mr);
}

int gdri_ofi_mr_tell(const struct gdri_ofi_fabric *f, struct fid_mr *mr, uint64_t *key, uint8_t raw[GDRI_OFI_RAW])
{
	size_t len = GDRI_OFI_RAW;
	uint64_t base;
	int rc;

	*key = fi_mr_key(mr);
	if (!f->mr_raw)
		return 0;
	rc = fi_mr_raw_attr(mr, &base, raw, &len, 0);
	*key = len;
	return rc;
}

int gdri_ofi_key_map(const struct gdri_ofi_fabric *f, uint64_t addr, uint8_t raw[GDRI_OFI_RAW], uint64_t *key)
{
	return *key > GDRI_OFI_RAW ? -FI_EINVAL : fi_mr_map_raw(f->domain, addr, raw, (size_t)*key, key, 0);
}

void gdri_ofi_key_unmap(const struct gdri_ofi_fabric *f, uint64_t key)
{
	fi_mr_unmap_key(f->domain, key);
}

int gdri_ofi_mr_open(struct gdri_ofi_fabric *f, void *addr, size_t len, int gpu, uint64_t access, struct fid_mr **mr)
{
	uint64_t key = 0;
	int rc;

	*mr = NULL;
	if (!f->mr_keys && !gdri_ofi_keys_take(&f->keys, &key))
		return -FI_ENOKEY;
	rc = mr_reg(f, addr, len, gpu, access, key, mr);
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
