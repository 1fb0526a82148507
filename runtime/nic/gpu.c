// SPDX-License-Identifier: BSD-3-Clause
/* Makes memory of a GPU known to the device: as a dma-buf of the GPU's driver, directly where the NIC has a function
 * beside the GPU (data direct), else through the kernel module
 * nvidia-peermem, which finds out by itself whose memory an address is. Data (memory regions) and control
 * buffers (umems) are tried each for itself: kernels know one and not the other. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/nic/impl.h"

static uint64_t nic_page(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static const char *nic_gpu_advice(int err)
{
	switch (err) {
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
	case ENOSYS:
	case 524: /* ENOTSUPP, which the kernel should not show */
		return "the kernel's mlx5_ib does not know how: Linux 5.12 (memory regions) and 6.1 (umems), or "
		       "MLNX_OFED 5.5, does";
	case EFAULT:
	case EINVAL:
		return "modprobe nvidia-peermem";
	case ENOMEM:
	case EAGAIN:
	case EPERM:
		return "raise ulimit -l; the GPU's BAR1 may be too small (nvidia-smi -q -d MEMORY)";
	default:
		return "see the kernel log (dmesg)";
	}
}

static void nic_note_gpu(char *to, size_t room, const char *call, int err)
{
	snprintf(to, room, "%s: %s (errno %d); %s", call, strerror(err), err, nic_gpu_advice(err));
}

static const char *const ways[GDRI_NIC_WAYS] = {"dma-buf, data direct", "dma-buf", "nvidia-peermem"};

/* Of rdma-core 54 and later: data goes by a PCIe function of the NIC that sits beside the GPU, and queues do not. */
__attribute__((weak)) int mlx5dv_get_data_direct_sysfs_path(struct ibv_context *ctx, char *buf, size_t len);
__attribute__((weak)) struct ibv_mr *mlx5dv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t len,
							  uint64_t iova, int fd, int access, int mlx5_access);
#define DATA_DIRECT 1 /* MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT */

static bool nic_has_data_direct(const struct gdri_nic *nic)
{
	char path[512];

	return mlx5dv_get_data_direct_sysfs_path && mlx5dv_reg_dmabuf_mr &&
	       !mlx5dv_get_data_direct_sysfs_path(nic->ctx, path, sizeof(path));
}

static struct ibv_mr *nic_mr_by_dma_buf(struct gdri_nic *nic, bool direct, void *addr, size_t len, uint64_t iova,
					unsigned access, char *why, size_t room)
{
	uint64_t page = nic_page(), offset = (uintptr_t)addr % page, begin = (uintptr_t)addr - offset;
	size_t whole = (size_t)((offset + len + page - 1) / page * page); /* the driver gives whole pages */
	struct ibv_mr *mr;
	int fd;

	if (direct && !nic_has_data_direct(nic)) {
		snprintf(why, room, "the NIC has no such function, or rdma-core is older than 54");
		return NULL;
	}
	fd = gdri_cuda_dma_buf(nic->cuda, (void *)(uintptr_t)begin, whole, direct || nic->beside, why, room);
	if (fd < 0)
		return NULL;
	if (direct)
		mr = mlx5dv_reg_dmabuf_mr(nic->pd, offset, len, iova, fd, (int)access, DATA_DIRECT);
	else
		mr = ibv_reg_dmabuf_mr(nic->pd, offset, len, iova, fd, (int)access);
	if (!mr)
		nic_note_gpu(why, room, direct ? "mlx5dv_reg_dmabuf_mr" : "ibv_reg_dmabuf_mr", errno);
	close(fd); /* the region holds the memory */
	return mr;
}

struct ibv_mr *gdri_nic_mr_by(struct gdri_nic *nic, enum gdri_nic_way way, void *addr, size_t len,
			      uint64_t iova, unsigned access, char *why, size_t room)
{
	struct ibv_mr *mr;

	if (way != GDRI_NIC_PEERMEM)
		return nic_mr_by_dma_buf(nic, way == GDRI_NIC_DATA_DIRECT, addr, len, iova, access, why, room);
	mr = ibv_reg_mr_iova2(nic->pd, addr, len, iova, access);
	if (!mr)
		nic_note_gpu(why, room, "ibv_reg_mr", errno);
	return mr;
}

struct mlx5dv_devx_umem *gdri_nic_umem_by(struct gdri_nic *nic, enum gdri_nic_way way, void *addr,
					  size_t len, char *why, size_t room)
{
	struct mlx5dv_devx_umem_in in = {
		.size = len,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = gdri_nic_umem_pages(nic),
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
	};
	struct mlx5dv_devx_umem *umem;
	size_t page = (size_t)nic_page();

	if (way == GDRI_NIC_PEERMEM) {
		umem = gdri_nic_umem(nic, addr, len);
		if (!umem)
			nic_note_gpu(why, room, "mlx5dv_devx_umem_reg", errno);
		return umem;
	}
	in.dmabuf_fd = gdri_cuda_dma_buf(nic->cuda, addr, (len + page - 1) / page * page, nic->beside, why, room);
	if (in.dmabuf_fd < 0)
		return NULL;
	umem = mlx5dv_devx_umem_reg_ex(nic->ctx, &in);
	if (!umem)
		nic_note_gpu(why, room, "mlx5dv_devx_umem_reg_ex", errno);
	close(in.dmabuf_fd); /* the umem holds the memory */
	return umem;
}

/* Where writes go by two ways, and where they cross from PCIe to another bridge, those of data may be seen later than
 * the completion that is written behind them (CUDA, cuFlushGPUDirectRDMAWrites; NCCL, pull request 2053). */
bool gdri_nic_gpu_is_late(const struct gdri_nic *nic)
{
	return nic->data_way == ways[GDRI_NIC_DATA_DIRECT] || (!nic->beside && gdri_cuda_has_bridge(nic->cuda));
}

struct ibv_mr *gdri_nic_gpu_mr(struct gdri_nic *nic, const char *what, void *addr, size_t len,
			       uint64_t iova, unsigned access, int *ret)
{
	char why[GDRI_NIC_WAYS][224] = {""};
	struct ibv_mr *mr;

	for (int way = GDRI_NIC_DATA_DIRECT; way < GDRI_NIC_WAYS; way++) {
		mr = gdri_nic_mr_by(nic, (enum gdri_nic_way)way, addr, len, iova, access, why[way],
				    sizeof(why[way]));
		nic->data_way = ways[way];
		if (mr)
			return mr;
	}
	gdri_error("%s: %s of %zu bytes of GPU memory failed. By dma-buf: %s. By nvidia-peermem: %s. Without "
		   "either: GDR_HEAP_KIND=host, and buffers in host memory", nic->name, what, len,
		   why[GDRI_NIC_DMA_BUF], why[GDRI_NIC_PEERMEM]);
	*ret = -GDR_ENOTSUP;
	return NULL;
}

struct mlx5dv_devx_umem *gdri_nic_gpu_umem(struct gdri_nic *nic, void *addr, size_t len, char *why,
					   size_t room)
{
	struct mlx5dv_devx_umem *umem;
	char said[GDRI_NIC_WAYS][224];

	for (int way = GDRI_NIC_DMA_BUF; way < GDRI_NIC_WAYS; way++) {
		umem = gdri_nic_umem_by(nic, (enum gdri_nic_way)way, addr, len, said[way], sizeof(said[way]));
		nic->control_way = ways[way];
		if (umem)
			return umem;
	}
	snprintf(why, room, "by dma-buf: %s; by nvidia-peermem: %s", said[GDRI_NIC_DMA_BUF],
		 said[GDRI_NIC_PEERMEM]);
	return NULL;
}
