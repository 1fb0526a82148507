/* SPDX-License-Identifier: BSD-3-Clause */
/* The mlx5 namespace of the ioctl: UAR pages and the DEVX envelope. What is in
 * the envelopes, the firmware commands, is answered by prm*.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5_user_ioctl_verbs.h>

#include "softhca/engine/dp.h"
#include "softhca/firmware/prm.h"
#include "softhca/driver/uverbs.h"

/* ---- UAR ---- */

int um_uar_alloc(struct uverbs_call *call)
{
	struct ctl_uar *uar;
	uint32_t length = (uint32_t)hca_page();
	uint64_t offset;
	int rc;

	/* 0 write combining (BlueFlame), 1 not cached: memory is memory here. */
	if (ua_in_u64(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE) > 1)
		return EINVAL;
	rc = uar_alloc(call->ctx, call->fd, &uar);
	if (rc)
		return rc;
	offset = (uint64_t)uar->page * HCA_UAR_PAGE;
	ua_out_handle(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, uar->obj.handle);
	ua_out(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	ua_out(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length));
	return ua_out(call, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->page, sizeof(uar->page));
}

int um_devx_query_uar(struct uverbs_call *call)
{
	uint32_t index = (uint32_t)ua_in_u64(call, MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX);

	/* User and device index are the same; only pages in use have one. */
	if (!uar_find(call->ctx, index))
		return EINVAL;
	return ua_out(call, MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, &index, sizeof(index));
}

int um_devx_query_eqn(struct uverbs_call *call)
{
	uint64_t vector = ua_in_u64(call, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC);
	uint32_t eqn;

	if (vector >= HCA_COMP_VECTORS)
		return EINVAL;
	eqn = HCA_FIRST_EQN + (uint32_t)vector;
	return ua_out(call, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn, sizeof(eqn));
}

/* ---- DEVX ---- */

/* Runs one mailbox command. Both mailboxes are private copies: the program may
 * write to its own while the command runs. */
static int uverbs_mailbox(struct uverbs_call *call, unsigned in_attr, unsigned out_attr,
			  enum prm_kind kind, struct ctl_obj **obj)
{
	struct prm_cmd cmd = {.ctx = call->ctx, .kind = kind, .obj = obj ? *obj : NULL};
	int rc;

	cmd.in_len = ua_len(call, in_attr);
	cmd.out_len = ua_len(call, out_attr);
	if (cmd.in_len < PRM_MIN_MAILBOX || cmd.out_len < PRM_MIN_MAILBOX)
		return EINVAL;
	cmd.in = malloc(cmd.in_len);
	cmd.out = calloc(1, cmd.out_len);
	if (!cmd.in || !cmd.out) {
		rc = ENOMEM;
		goto out;
	}
	if (!ua_in(call, in_attr, cmd.in, cmd.in_len)) {
		rc = EFAULT;
		goto out;
	}
	rc = prm_run(&cmd);
	/* EREMOTEIO: the command ran and its output says what is wrong. */
	if (rc == 0 || rc == EREMOTEIO)
		ua_out(call, out_attr, cmd.out, cmd.out_len);
	if (rc == 0 && obj)
		*obj = cmd.obj;
out:
	free(cmd.in);
	free(cmd.out);
	return rc;
}

int um_devx_other(struct uverbs_call *call)
{
	return uverbs_mailbox(call, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT,
			      PRM_GENERAL, NULL);
}

int um_devx_obj_create(struct uverbs_call *call)
{
	struct ctl_obj *obj = NULL;
	int rc = uverbs_mailbox(call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN,
				MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, PRM_CREATE, &obj);

	if (!rc)
		ua_out_handle(call, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, obj->handle);
	return rc;
}

int um_devx_obj_destroy(struct uverbs_call *call)
{
	struct ctl_obj *obj =
		obj_any(call->ctx, ua_in_u64(call, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));

	if (!obj || !obj->devx)
		return ENOENT;
	if (obj->type == OBJ_QP)
		engine_begin_posted(&((struct ctl_qp *)obj)->qp);
	return obj_destroy(obj);
}

int um_devx_obj_modify(struct uverbs_call *call)
{
	struct ctl_obj *obj =
		obj_any(call->ctx, ua_in_u64(call, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE));

	if (!obj)
		return ENOENT;
	return uverbs_mailbox(call, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN,
			      MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, PRM_MODIFY, &obj);
}

int um_devx_obj_query(struct uverbs_call *call)
{
	struct ctl_obj *obj =
		obj_any(call->ctx, ua_in_u64(call, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE));

	if (!obj)
		return ENOENT;
	return uverbs_mailbox(call, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN,
			      MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, PRM_QUERY, &obj);
}

/* ---- event channels ---- */

int um_devx_event_fd(struct uverbs_call *call)
{
	uint64_t flags = ua_in_u64(call, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS);
	struct hca_comp_channel *ch;
	int fd;

	if (flags & ~(uint64_t)MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA)
		return EINVAL;
	fd = event_channel_create(call->ctx, O_DIRECT, &ch);
	if (fd < 0)
		return -fd;
	ch->devx = true;
	ch->omit_data = flags != 0;
	ch->next = call->ctx->channels;
	call->ctx->channels = ch;
	ua_out_handle(call, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, (uint64_t)fd);
	return 0;
}

int um_devx_subscribe(struct uverbs_call *call)
{
	size_t len = ua_len(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST);
	int fd = (int)ua_in_u64(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE);
	struct hca_comp_channel *ch = event_channel_find(call->ctx, fd, true);
	struct ctl_obj *obj = NULL;
	uint16_t types[16]; /* the kernel takes no more */
	int eventfd = -1;

	if (!ch)
		return EBADF;
	if (ua_has(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE)) {
		obj = obj_any(call->ctx, ua_in_u64(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE));
		if (!obj || !obj->devx)
			return ENOENT;
	}
	if (ua_has(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM)) {
		if (ua_has(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE))
			return EINVAL;
		eventfd = (int)ua_in_u64(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM);
		if (eventfd < 0)
			return EBADF;
	}
	if (!len || len % sizeof(types[0]) || len > sizeof(types))
		return EINVAL;
	if (!ua_in(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, types, sizeof(types)))
		return EFAULT;
	return devx_subscribe(ch, obj, types, (unsigned)(len / sizeof(types[0])),
			      ua_in_u64(call, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE), eventfd);
}
