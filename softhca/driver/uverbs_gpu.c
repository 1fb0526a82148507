/* SPDX-License-Identifier: BSD-3-Clause */
/* Is what a call registers memory of a GPU? The driver is asked before hca_lock is taken: another
 * thread of the program may be in it for long, waiting for a kernel that waits for the engine. */
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>

#include "softhca/driver/uverbs.h"

static void ask_ring(struct uverbs_call *call, uint64_t addr, uint64_t len)
{
	dma_ask(&call->gpu, addr, len);
}

/* Payload, which other processes may map. */
static void ask_region(struct uverbs_call *call, uint64_t addr, uint64_t len)
{
	ask_ring(call, addr, len);
	if (call->gpu.is > 0)
		dma_show(&call->gpu);
}

static void ask_reg_mr(struct uverbs_call *call)
{
	struct ib_uverbs_reg_mr cmd;

	if (ua_in_u64(call, UVERBS_ATTR_WRITE_CMD) == IB_USER_VERBS_CMD_REG_MR &&
	    ua_in(call, UVERBS_ATTR_CORE_IN, &cmd, sizeof(cmd)) &&
	    cmd.start + cmd.length >= cmd.start &&
	    !(cmd.access_flags & HCA_ON_DEMAND)) /* a GPU's memory has no page faults */
		ask_region(call, cmd.start, cmd.length);
}

/* What softhca has not given out itself is a file as any other. */
static void ask_dmabuf(struct uverbs_call *call, int fd, uint64_t offset, uint64_t len, bool region)
{
	uint64_t addr = cuda_dmabuf_address(fd, offset, len);

	if (addr && addr != UINT64_MAX)
		(region ? ask_region : ask_ring)(call, addr, len);
}

static void ask_umem(struct uverbs_call *call)
{
	uint64_t addr = ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR);
	uint64_t len = ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN);

	if (ua_has(call, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD))
		ask_dmabuf(call, (int)ua_in_u64(call, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD), addr, len,
			   false);
	else if (addr + len >= addr)
		ask_ring(call, addr, len);
}

void um_ask_gpu(struct uverbs_call *call)
{
	unsigned object = call->hdr->object_id, method = call->hdr->method_id;

	if (object == UVERBS_OBJECT_DEVICE && method == UVERBS_METHOD_INVOKE_WRITE)
		ask_reg_mr(call);
	else if (object == UVERBS_OBJECT_MR && method == UVERBS_METHOD_REG_DMABUF_MR)
		ask_dmabuf(call, (int)ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_FD),
			   ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
			   ua_in_u64(call, UVERBS_ATTR_REG_DMABUF_MR_LENGTH), true);
	else if (object == MLX5_IB_OBJECT_DEVX_UMEM && method == MLX5_IB_METHOD_DEVX_UMEM_REG)
		ask_umem(call);
}
