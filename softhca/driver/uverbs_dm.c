/* SPDX-License-Identifier: BSD-3-Clause */
/* Device memory (MEMIC): whole pages of the device file, which libmlx5 maps as it maps doorbell pages, and regions in
 * them. Which pages are taken stands in the file, too: children of fork allocate from what they inherited, as they
 * do from the kernel's driver. */
#include <errno.h>
#include <sys/mman.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "softhca/driver/uverbs.h"
#include "softhca/tools/options.h"

#define DM_CHUNK      64u		/* the device gives out so many bytes at a time */
#define DM_LOG_ALIGN  12u		/* and makes them begin at multiples of up to this */
#define DM_CHILD      0x40000000u	/* handles of a child: this, the first page, how many */
#define DM_OPERATIONS 32u		/* that an address could stand for */
#define DM_ACCESS                                                                                                      \
	(HCA_LOCAL_WRITE | HCA_REMOTE_WRITE | HCA_REMOTE_READ | HCA_REMOTE_ATOMIC | DM_ZERO_BASED |                    \
	 IB_UVERBS_ACCESS_OPTIONAL_RANGE)
#define DM_ZERO_BASED (1u << 5)

/* ---- pages ---- */

static uint32_t dm_pages(void)
{
	return (uint32_t)(HCA_DM_SIZE / hca_page());
}

/* A bit for each page that is taken, behind the last of them in the file. */
static uint64_t *dm_map_taken(int fd)
{
	void *at = mmap(NULL, sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			(off_t)(hca_dm_offset(0) + HCA_DM_SIZE));

	return at == MAP_FAILED ? NULL : at;
}

static uint64_t dm_run(uint32_t first, uint32_t n)
{
	return (n < 64 ? (1ull << n) - 1 : UINT64_MAX) << first;
}

/* Takes the first n pages in a row that are free. */
static int dm_take(int fd, uint32_t n, uint32_t *first)
{
	uint64_t *taken = dm_map_taken(fd), is;
	int rc = ENOMEM;

	if (!taken)
		return ENOMEM;
	/* Relaxed: a first guess, which the exchange checks. */
	is = __atomic_load_n(taken, __ATOMIC_RELAXED);
	for (uint32_t at = 0; rc && at + n <= dm_pages(); at++) {
		/* Acquire: pairs with the release in dm_give: what the last owner stored is there. Another process may
		 * have taken or given pages meanwhile: then from the first page on again. */
		if (is & dm_run(at, n))
			continue;
		if (__atomic_compare_exchange_n(taken, &is, is | dm_run(at, n), false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED)) {
			*first = at;
			rc = 0;
		} else {
			at = UINT32_MAX;
		}
	}
	munmap(taken, sizeof(*taken));
	return rc;
}

static void dm_give(int fd, uint32_t first, uint32_t n)
{
	uint64_t *taken = dm_map_taken(fd);

	if (!taken)
		return; /* they stay taken until the file is closed */
	/* Release: pairs with the acquire in dm_take. */
	__atomic_fetch_and(taken, ~dm_run(first, n), __ATOMIC_RELEASE);
	munmap(taken, sizeof(*taken));
}

/* ---- allocations ---- */

/* Every allocation begins with a page. */
static int dm_tell(struct uverbs_call *call, unsigned offset_attr, unsigned page_attr, uint32_t first)
{
	uint64_t offset = 0;
	uint16_t page = (uint16_t)first;

	ua_out(call, offset_attr, &offset, sizeof(offset));
	return ua_out(call, page_attr, &page, sizeof(page));
}

static int dm_check(struct uverbs_call *call, uint64_t len)
{
	if (ua_in_u64(call, MLX5_IB_ATTR_ALLOC_DM_REQ_TYPE) != MLX5_IB_UAPI_DM_TYPE_MEMIC)
		return EOPNOTSUPP; /* memory for steering */
	if (!len || len > HCA_DM_MOST || ua_in_u64(call, UVERBS_ATTR_ALLOC_DM_ALIGNMENT) > DM_LOG_ALIGN)
		return EINVAL;
	return 0;
}

/* A child of fork has no object of it but the handle. */
int um_dm_alloc(struct uverbs_call *call)
{
	uint64_t len = ua_in_u64(call, UVERBS_ATTR_ALLOC_DM_LENGTH);
	struct ctl_dm *dm = NULL;
	uint32_t first, n;
	int rc = dm_check(call, len);

	if (rc)
		return rc;
	n = (uint32_t)((len + hca_page() - 1) / hca_page());
	rc = dm_take(call->fd, n, &first);
	if (rc)
		return rc;
	if (!call->child) {
		dm = obj_new(call->ctx, OBJ_DM, sizeof(*dm));
		if (!dm) {
			dm_give(call->fd, first, n);
			return ENOMEM;
		}
		dm->first = first;
		dm->pages = n;
		dm->len = len;
	}
	ua_out_handle(call, UVERBS_ATTR_ALLOC_DM_HANDLE, dm ? dm->obj.handle : DM_CHILD | first << 8 | n);
	return dm_tell(call, MLX5_IB_ATTR_ALLOC_DM_RESP_START_OFFSET, MLX5_IB_ATTR_ALLOC_DM_RESP_PAGE_INDEX, first);
}

static int dm_free_child(struct uverbs_call *call)
{
	uint64_t handle = ua_in_u64(call, UVERBS_ATTR_FREE_DM_HANDLE);
	uint32_t first = handle >> 8 & 0xff, n = handle & 0xff;

	if ((handle & ~0xffffull) != DM_CHILD || !n || first + n > dm_pages())
		return EIO; /* the parent's */
	dm_give(call->fd, first, n);
	return 0;
}

int um_dm_free(struct uverbs_call *call)
{
	struct ctl_dm *dm;
	uint32_t first, n;
	int rc;

	if (call->child)
		return dm_free_child(call);
	dm = ua_obj(call, UVERBS_ATTR_FREE_DM_HANDLE, OBJ_DM);
	if (!dm)
		return ENOENT;
	first = dm->first;
	n = dm->pages;
	rc = obj_destroy(&dm->obj);
	if (!rc)
		dm_give(call->fd, first, n);
	return rc;
}

int um_dm_query(struct uverbs_call *call)
{
	struct ctl_dm *dm = ua_obj(call, MLX5_IB_ATTR_QUERY_DM_REQ_HANDLE, OBJ_DM);
	uint64_t len;

	if (!dm)
		return ENOENT;
	len = (dm->len + DM_CHUNK - 1) & ~(uint64_t)(DM_CHUNK - 1);
	ua_out(call, MLX5_IB_ATTR_QUERY_DM_RESP_LENGTH, &len, sizeof(len));
	return dm_tell(call, MLX5_IB_ATTR_QUERY_DM_RESP_START_OFFSET, MLX5_IB_ATTR_QUERY_DM_RESP_PAGE_INDEX, dm->first);
}

/* Addresses whose loads and stores the device turns into operations: memory is memory here. */
int um_dm_map_op(struct uverbs_call *call)
{
	if (!ua_obj(call, MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_HANDLE, OBJ_DM))
		return ENOENT;
	return ua_in_u64(call, MLX5_IB_ATTR_DM_MAP_OP_ADDR_REQ_OP) < DM_OPERATIONS ? EOPNOTSUPP : EINVAL;
}

/* ---- regions ---- */

int um_mr_reg_dm(struct uverbs_call *call)
{
	uint32_t access = (uint32_t)ua_in_u64(call, UVERBS_ATTR_REG_DM_MR_ACCESS_FLAGS);
	uint64_t offset = ua_in_u64(call, UVERBS_ATTR_REG_DM_MR_OFFSET);
	struct ctl_pd *pd = ua_obj(call, UVERBS_ATTR_REG_DM_MR_PD_HANDLE, OBJ_PD);
	struct ctl_dm *dm = ua_obj(call, UVERBS_ATTR_REG_DM_MR_DM_HANDLE, OBJ_DM);
	struct hca_mr what = {.access = access, .memic = true};
	struct ctl_mr *mr;
	int rc;

	if (!pd || !dm)
		return ENOENT;
	what.len = ua_in_u64(call, UVERBS_ATTR_REG_DM_MR_LENGTH);
	if (!(access & DM_ZERO_BASED) || access & ~(uint32_t)DM_ACCESS)
		return EINVAL;
	if (offset > dm->len || what.len > dm->len - offset)
		return EINVAL;
	rc = access_check(access);
	what.owns_map = what.len; /* one of no bytes is a region, too */
	if (!rc && what.owns_map)
		rc = range_map_fd(call->fd, hca_dm_offset(dm->first) + offset, what.len, true, &what.va);
	if (rc)
		return rc;
	rc = mr_create(call->ctx, pd, &what, &mr);
	if (rc) {
		range_give_back(what.va, what.len, false, what.owns_map);
		return rc;
	}
	mr->dm = dm;
	dm->obj.refs++;
	dp_mr_registered(&mr->mr, -1, 0); /* peers do not reach into a device */
	ua_out_handle(call, UVERBS_ATTR_REG_DM_MR_HANDLE, mr->obj.handle);
	ua_out(call, UVERBS_ATTR_REG_DM_MR_RESP_LKEY, &mr->mr.key, sizeof(mr->mr.key));
	return ua_out(call, UVERBS_ATTR_REG_DM_MR_RESP_RKEY, &mr->mr.key, sizeof(mr->mr.key));
}
