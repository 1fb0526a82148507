// SPDX-License-Identifier: BSD-3-Clause
/* The memory of all queues of a PE, and the umem by which the device knows it: memory of the host, or of
 * the GPU whose threads post. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <gdr/host.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/nic/impl.h"

#define GPU_PAGE  (64u << 10) /* what nvidia-peermem pins */

/* Sizes of pages by which the device may know the queues: the smallest that it has is 4 KiB. */
uint64_t gdri_nic_umem_pages(const struct gdri_nic *nic)
{
	return (2 * gdri_net_largest_page(&nic->layout) - 1) & ~(uint64_t)4095;
}

/* Without that bound the kernel takes the largest page that the memory has (devx.c: who gives none promises that all
 * begins at offset 0), and places of queues would not be multiples of a 64th of it. */
struct mlx5dv_devx_umem *gdri_nic_umem(struct gdri_nic *nic, void *addr, size_t len)
{
	struct mlx5dv_devx_umem_in in = {
		.addr = addr,
		.size = len,
		.access = IBV_ACCESS_LOCAL_WRITE,
		.pgsz_bitmap = gdri_nic_umem_pages(nic),
	};
	struct mlx5dv_devx_umem *umem = mlx5dv_devx_umem_reg_ex(nic->ctx, &in);

	/* kernels before 5.11 know no bound, and small pages alone */
	if (!umem && errno == EPROTONOSUPPORT)
		umem = mlx5dv_devx_umem_reg(nic->ctx, addr, len, IBV_ACCESS_LOCAL_WRITE);
	return umem;
}

static int create_in_host(struct gdri_nic *nic)
{
	const struct gdri_net_layout *l = &nic->layout;
	void *p = mmap(NULL, l->total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char why[384];
	int ret;

	if (p == MAP_FAILED)
		return gdri_nic_memory_failed(nic->name, "mmap of the queues", l->total, errno);
	nic->ring = p;
	nic->net.queues_here = true;
	nic->ring_seen = p;
	/* A child would turn the pages that the NIC reads and writes into copies on the parent's
	 * next store. */
	if (madvise(p, l->total, MADV_DONTFORK))
		gdri_warn("madvise(MADV_DONTFORK) failed: %s; do not fork while gdr is in use",
			  strerror(errno));
	memset(nic->ring + l->cq, GDRI_NET_CQ_NOTHING, l->n * l->cq_stride);
	nic->umem = gdri_nic_umem(nic, p, l->total);
	if (!nic->umem)
		return gdri_nic_memory_failed(nic->name, "registering the queues (umem)", l->total,
					      errno);
	if (!nic->poster)
		return 0;
	ret = gdri_cuda_map(nic->poster, p, l->total, GDRI_CUDA_MAP_MEMORY, (void **)&nic->ring_seen, why,
			    sizeof(why));
	nic->ring_mapped = !ret;
	if (ret)
		gdri_error("%s: the queues: %s", nic->name, why);
	/* one pointer to each queue serves the GPU's threads and the host's */
	if (!ret && nic->ring_seen != nic->ring)
		ret = gdri_fail(-GDR_ENOTSUP,
				"%s: the queues: the GPU has host memory at another address than the host", nic->name);
	return ret;
}

static int fill_cqs(struct gdri_nic *nic)
{
	const struct gdri_net_layout *l = &nic->layout;
	size_t len = l->n * l->cq_stride;
	uint8_t *nothing = malloc(len);
	int ret = -GDR_ENOMEM;

	if (nothing) {
		memset(nothing, GDRI_NET_CQ_NOTHING, len);
		ret = gdri_cuda_poke(nic->poster, nic->ring_seen + l->cq, nothing, len, GDRI_COPY_MS);
	}
	free(nothing);
	return ret;
}

/* The whole pages that hold the queues, and room to begin at one. */
static void ring_alloc_gpu(struct gdri_nic *nic)
{
	size_t len = (nic->layout.total + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE + GPU_PAGE;

	nic->ring_rdma = len;
	nic->ring_gpu = gdri_cuda_alloc_rdma(nic->poster, &nic->ring_rdma);
	if (nic->ring_gpu)
		return;
	nic->ring_rdma = 0;
	nic->ring_gpu = gdri_cuda_alloc(nic->poster, len);
}

static void ring_free_gpu(struct gdri_nic *nic)
{
	if (nic->ring_gpu && nic->ring_rdma)
		gdri_cuda_free_rdma(nic->poster, nic->ring_gpu, nic->ring_rdma);
	else if (nic->ring_gpu)
		gdri_cuda_free(nic->poster, nic->ring_gpu);
	nic->ring_gpu = NULL;
}

static int create_in_gpu(struct gdri_nic *nic, char *why, size_t room)
{
	size_t len = nic->layout.total;
	int ret;

	ring_alloc_gpu(nic);
	if (!nic->ring_gpu) {
		snprintf(why, room, "out of memory of the GPU");
		return -GDR_ENOMEM;
	}
	nic->ring_seen = (uint8_t *)(((uintptr_t)nic->ring_gpu + GPU_PAGE - 1) & ~(uintptr_t)(GPU_PAGE - 1));
	ret = fill_cqs(nic);
	if (!ret)
		nic->umem = gdri_nic_gpu_umem(nic, nic->ring_seen, len, why, room);
	else
		snprintf(why, room, "%s", gdr_strerror(ret));
	if (nic->umem)
		return 0;
	ring_free_gpu(nic);
	return -GDR_ENOTSUP;
}

int gdri_nic_ring_create(struct gdri_nic *nic)
{
	char why[640];
	int ret;

	snprintf(nic->ring_text, sizeof(nic->ring_text), "host memory");
	if (!nic->poster || nic->opt.queue_mem == GDRI_MEMORY_HOST)
		return create_in_host(nic);
	ret = create_in_gpu(nic, why, sizeof(why));
	if (!ret) {
		snprintf(nic->ring_text, sizeof(nic->ring_text), "GPU memory (%s)", nic->control_way);
		return 0;
	}
	if (nic->opt.queue_mem == GDRI_MEMORY_GPU) {
		gdri_error("%s: GDR_QUEUE_MEM=gpu: queues in memory of the GPU cannot be registered: %s",
			   nic->name, why);
		return ret;
	}
	gdri_info("%s: queues in host memory, as those of the GPU cannot be registered: %s", nic->name, why);
	snprintf(nic->ring_text, sizeof(nic->ring_text), "host memory (of the GPU: %s)", why);
	return create_in_host(nic);
}

/* The NIC may write to it until the last queue is gone. */
void gdri_nic_ring_destroy(struct gdri_nic *nic)
{
	if (nic->umem)
		mlx5dv_devx_umem_dereg(nic->umem);
	nic->umem = NULL;
	if (nic->ring_mapped)
		gdri_cuda_unmap(nic->poster, nic->ring);
	nic->ring_mapped = false;
	if (nic->ring)
		munmap(nic->ring, nic->layout.total);
	nic->ring = NULL;
	ring_free_gpu(nic);
	nic->ring_seen = NULL;
}
