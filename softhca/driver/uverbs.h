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
	struct ib_uverbs_ioctl_hdr *hdr;
	struct dma_answer gpu; /* of the memory that the call registers */
};

typedef int (*uverbs_fn)(struct uverbs_call *call);

/* Takes hca_lock itself. 0 or an errno. */
int uverbs_ioctl(int fd, dev_t dev, ino_t ino, struct ib_uverbs_ioctl_hdr *hdr);

/* ---- attributes (uverbs_ioctl.c) ---- */

struct ib_uverbs_attr *ua_find(struct uverbs_call *call, unsigned id);
bool ua_has(struct uverbs_call *call, unsigned id);
/* Copies as much as both sides have and zeroes the rest; false if absent. */
bool ua_in(struct uverbs_call *call, unsigned id, void *dst, size_t size);
uint64_t ua_in_u64(struct uverbs_call *call, unsigned id); /* 0 if absent */
size_t ua_len(struct uverbs_call *call, unsigned id);	   /* room or length; 0 if absent */
/* Towards the program: copies as much as both sides have; no harm if it did not ask for the attribute. */
int ua_out(struct uverbs_call *call, unsigned id, const void *src, size_t size);
void ua_out_handle(struct uverbs_call *call, unsigned id, uint64_t value);
void *ua_obj(struct uverbs_call *call, unsigned id, enum obj_type type);

/* ---- methods ---- */

/* Asks whether what the call is about to register is memory of a GPU; without hca_lock. */
void um_ask_gpu(struct uverbs_call *call);

int um_invoke_write(struct uverbs_call *call);
int um_get_context(struct uverbs_call *call);
int um_query_port(struct uverbs_call *call);
int um_query_gid_table(struct uverbs_call *call);
int um_query_gid_entry(struct uverbs_call *call);
int um_pd_destroy(struct uverbs_call *call);
int um_pd_query(struct uverbs_call *call);
int um_cq_create(struct uverbs_call *call);
int um_cq_destroy(struct uverbs_call *call);
int um_qp_create(struct uverbs_call *call);
int um_qp_destroy(struct uverbs_call *call);
int um_srq_destroy(struct uverbs_call *call);
int um_ah_destroy(struct uverbs_call *call);
int um_mr_destroy(struct uverbs_call *call);
int um_mw_destroy(struct uverbs_call *call);
int um_mr_query(struct uverbs_call *call);
int um_mr_advise(struct uverbs_call *call);
int um_mr_reg_dmabuf(struct uverbs_call *call);
int um_async_alloc(struct uverbs_call *call);
int um_devx_other(struct uverbs_call *call);
int um_devx_query_uar(struct uverbs_call *call);
int um_devx_query_eqn(struct uverbs_call *call);
int um_devx_obj_create(struct uverbs_call *call);
int um_devx_obj_destroy(struct uverbs_call *call);
int um_devx_obj_modify(struct uverbs_call *call);
int um_devx_obj_query(struct uverbs_call *call);
int um_umem_reg(struct uverbs_call *call);
int um_umem_dereg(struct uverbs_call *call);
int um_uar_alloc(struct uverbs_call *call);
int um_uar_destroy(struct uverbs_call *call);

/* Write commands behind INVOKE_WRITE. */
int uw_query_device(struct uverbs_call *call);
int uw_ex_query_device(struct uverbs_call *call);
int uw_alloc_pd(struct uverbs_call *call);
int uw_reg_mr(struct uverbs_call *call);
int uw_rereg_mr(struct uverbs_call *call);
int uw_alloc_mw(struct uverbs_call *call);
int uw_resize_cq(struct uverbs_call *call);
int uw_create_comp_channel(struct uverbs_call *call);
int uw_create_srq(struct uverbs_call *call);
int uw_modify_srq(struct uverbs_call *call);
int uw_query_srq(struct uverbs_call *call);
int uw_create_ah(struct uverbs_call *call);
int uw_query_qp(struct uverbs_call *call);
int uw_modify_qp(struct uverbs_call *call);
int uw_ex_modify_qp(struct uverbs_call *call);

#endif
