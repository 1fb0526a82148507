/* SPDX-License-Identifier: BSD-3-Clause */
/* The uverbs ioctl: attributes of a call, and the methods that answer it.
 * Layouts and numbers come from the kernel's own headers in <rdma/>.
 *
 * Methods return 0 or an errno. Two errors steer libibverbs: EPROTONOSUPPORT
 * says "this kernel has no such ioctl method" and makes it use the older write
 * command instead; EOPNOTSUPP says "the device cannot". */
#ifndef SOFTHCA_UVERBS_H
#define SOFTHCA_UVERBS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "softhca/driver/control.h"
#include "softhca/gpu/dma.h"

struct uverbs_call {
	struct hca_ctx *ctx;
	int fd; /* of the device file */
	bool child; /* of fork: it reads the context, and changes nothing */
	struct ib_uverbs_ioctl_hdr *hdr;
	struct dma_answer gpu; /* of the memory that the call registers */
};

typedef int uverbs_method(struct uverbs_call *call);

/* Takes hca_lock itself. 0 or an errno. */
int uverbs_ioctl(int fd, dev_t dev, ino_t ino, struct ib_uverbs_ioctl_hdr *hdr);
/* In a child of fork, on a file of its parent's: device memory is all that it has of it, EIO for the rest. Takes no
 * lock. */
int uverbs_ioctl_child(int fd, dev_t dev, ino_t ino, struct ib_uverbs_ioctl_hdr *hdr);

/* ---- attributes (uverbs_ioctl.c) ---- */

bool ua_has(struct uverbs_call *call, unsigned id);
/* Copies as much as both sides have and zeroes the rest; false if absent. */
bool ua_in(struct uverbs_call *call, unsigned id, void *dst, size_t size);
uint64_t ua_in_u64(struct uverbs_call *call, unsigned id); /* 0 if absent */
size_t ua_len(struct uverbs_call *call, unsigned id);	   /* room or length; 0 if absent */
/* Towards the program: copies as much as both sides have; no harm if it did not ask for the attribute. */
int ua_out(struct uverbs_call *call, unsigned id, const void *src, size_t size);
void ua_out_handle(struct uverbs_call *call, unsigned id, uint64_t value);
void *ua_obj(struct uverbs_call *call, unsigned id, enum obj_type type);

static inline uint32_t log2_ceil(uint32_t n)
{
	return n > 1 ? 32 - (uint32_t)__builtin_clz(n - 1) : 0;
}

/* ---- methods ---- */

/* Rules of registration (uverbs_mr.c): 0 or an errno. */
int access_check(uint32_t access);
/* Of a region on demand, in place of a look at its memory (uverbs_odp.c); 0 or an errno. */
int odp_check(const struct hca_mr *mr);
int mr_create(struct hca_ctx *ctx, struct ctl_pd *pd, const struct hca_mr *what, struct ctl_mr **out);

/* Asks whether what the call is about to register is memory of a GPU; without hca_lock. */
void um_ask_gpu(struct uverbs_call *call);

uverbs_method um_invoke_write, um_get_context, um_query_port, um_query_gid_table, um_query_gid_entry;
uverbs_method um_pd_query, um_cq_create, um_cq_destroy, um_qp_create, um_qp_destroy, um_srq_destroy;
uverbs_method um_mr_query, um_mr_advise, um_mr_reg_dmabuf, um_async_alloc;
uverbs_method um_dm_alloc, um_dm_free, um_dm_query, um_dm_map_op, um_mr_reg_dm;
uverbs_method um_devx_other, um_devx_query_uar, um_devx_query_eqn, um_umem_reg, um_uar_alloc;
uverbs_method um_devx_event_fd, um_devx_subscribe;
uverbs_method um_devx_obj_create, um_devx_obj_destroy, um_devx_obj_modify, um_devx_obj_query;

/* Write commands behind INVOKE_WRITE. */
uverbs_method uw_query_device, uw_ex_query_device, uw_create_comp_channel;
uverbs_method uw_alloc_pd, uw_reg_mr, uw_rereg_mr, uw_alloc_mw, uw_create_ah;
uverbs_method uw_resize_cq, uw_create_srq, uw_modify_srq, uw_query_srq;
uverbs_method uw_query_qp, uw_modify_qp, uw_ex_modify_qp;

#endif
