// SPDX-License-Identifier: BSD-3-Clause
/* Makes memory of a GPU known to the device: as a dma-buf of the GPU's driver, else through the kernel module
 * nvidia-peermem, which finds out by itself whose memory an address is. Data (memory regions) and control
 * buffers (umems) are tried each for itself: kernels know one and not the other. */
#include "runtime/nic_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/cuda_map.h"
#include "runtime/log.h"

#define PAGE 4096ull

static const char *advice(int err)
{
	switch (err) {
	case EOPNOTSUPP:
	case EPROTONOSUPPORT:
	case ENOSYS:
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

struct tries { /* what each way said, for the one message when none worked */
	char dma_buf[224], peermem[224];
};

static void note(char *to, size_t room, const char *call, int err)
{
	snprintf(to, room, "%s: %s (errno %d); %s", call, strerror(err), err, advice(err));
}

static int refuse(const struct gdri_nic *nic, const char *what, size_t len, const struct tries *t)
{
	gdri_error("%s: %s of %zu bytes of GPU memory failed. By dma-buf: %s. By nvidia-peermem: %s. Without "
		   "either: GDR_HEAP_KIND=host, and buffers in host memory", nic->name, what, len,
		   t->dma_buf, t->peermem);
	return -GDR_ENOTSUP;
}

struct ibv_mr *gdri_nic_gpu_mr(struct gdri_nic *nic, const char *what, void *addr, size_t len,
			       uint64_t iova, unsigned access, int *ret)
{
	uint64_t begin = (uintptr_t)addr & ~(PAGE - 1), offset = (uintptr_t)addr - begin;
	size_t whole = (size_t)((offset + len + PAGE - 1) & ~(PAGE - 1));
	struct ibv_mr *mr = NULL;
	struct tries t;
	int fd;

	fd = gdri_cuda_dma_buf(nic->cuda, (void *)(uintptr_t)begin, whole, t.dma_buf, sizeof(t.dma_buf));
	if (fd >= 0) {
		mr = ibv_reg_dmabuf_mr(nic->pd, offset, len, iova, fd, (int)access);
		if (!mr)
			note(t.dma_buf, sizeof(t.dma_buf), "ibv_reg_dmabuf_mr", errno);
		close(fd); /* the region holds the memory */
	}
	nic->data_way = mr ? "dma-buf" : "nvidia-peermem";
	if (mr)
		return mr;
	mr = ibv_reg_mr_iova2(nic->pd, addr, len, iova, access);
	if (mr)
		return mr;
	note(t.peermem, sizeof(t.peermem), "ibv_reg_mr", errno);
	*ret = refuse(nic, what, len, &t);
	return NULL;
}

struct mlx5dv_devx_umem *gdri_nic_gpu_umem(struct gdri_nic *nic, void *addr, size_t len, char *why,
					   size_t room)
{
	struct mlx5dv_devx_umem_in in = {
		.size = len,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = UINT64_MAX & ~(PAGE - 1),
		.comp_mask = MLX5DV_UMEM_MASK_DMABUF,
	};
	struct mlx5dv_devx_umem *umem = NULL;
	struct tries t;

	in.dmabuf_fd = gdri_cuda_dma_buf(nic->cuda, addr, len, t.dma_buf, sizeof(t.dma_buf));
	if (in.dmabuf_fd >= 0) {
		umem = mlx5dv_devx_umem_reg_ex(nic->ctx, &in);
		if (!umem)
			note(t.dma_buf, sizeof(t.dma_buf), "mlx5dv_devx_umem_reg_ex", errno);
		close(in.dmabuf_fd);
	}
	nic->control_way = umem ? "dma-buf" : "nvidia-peermem";
	if (umem)
		return umem;
	umem = mlx5dv_devx_umem_reg(nic->ctx, addr, len, IBV_ACCESS_LOCAL_WRITE);
	if (umem)
		return umem;
	note(t.peermem, sizeof(t.peermem), "mlx5dv_devx_umem_reg", errno);
	snprintf(why, room, "by dma-buf: %s; by nvidia-peermem: %s", t.dma_buf, t.peermem);
	return NULL;
}
