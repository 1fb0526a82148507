// SPDX-License-Identifier: BSD-3-Clause
/* Memory registration. The heap is registered twice with the same pages and
 * iova 0 (addresses in work requests are offsets): a relaxed-ordering key for
 * data, whose writes may overtake each other on PCIe, and a strict key for
 * signals, atomics and whatever says that data is there. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/cuda/cuda_map.h"
#include "runtime/nic/impl.h"

#define ACCESS_HEAP                                                                  \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* Atomics go by the strict key, and indirect keys of atomics take no relaxed region. */
#define ACCESS_RELAXED ((ACCESS_HEAP & ~IBV_ACCESS_REMOTE_ATOMIC) | IBV_ACCESS_RELAXED_ORDERING)

static int check_size(const struct gdri_nic *nic, const char *what, size_t len)
{
	if (len <= nic->max_mr_size)
		return 0;
	return gdri_fail(-GDR_ENOTSUP,
			 "%s: %s of %zu bytes is more than the device registers at once (max_mr_size %" PRIu64 " bytes)"
													       ": "
													       "registe"
													       "r less",
			 nic->name, what, len, nic->max_mr_size);
}

/* Some devices have relaxed keys alone (mkc_order_write_after_write_ro_only), and refuse others. */
static unsigned nic_access(const struct gdri_nic *nic, unsigned access)
{
	return nic->caps.relaxed_only ? access | IBV_ACCESS_RELAXED_ORDERING : access;
}

struct ibv_mr *gdri_nic_mr_plain(struct gdri_nic *nic, const char *what, void *addr, size_t len, uint64_t iova,
				 unsigned access, int *ret)
{
	/* iova2: drops optional flags (relaxed ordering) on kernels without them */
	struct ibv_mr *mr = ibv_reg_mr_iova2(nic->pd, addr, len, iova, nic_access(nic, access));

	if (!mr)
		*ret = gdri_nic_memory_failed(nic->name, what, len, errno);
	return mr;
}

static struct ibv_mr *register_memory(struct gdri_nic *nic, const char *what, void *addr,
				      size_t len, uint64_t iova, unsigned access, int *ret)
{
	if (nic->cuda && gdri_cuda_is_device(nic->cuda, addr))
		return gdri_nic_gpu_mr(nic, what, addr, len, iova, nic_access(nic, access), ret);
	return gdri_nic_mr_plain(nic, what, addr, len, iova, access, ret);
}

size_t gdri_nic_mr_slice(const struct gdri_nic *nic, size_t len)
{
	uint64_t most = nic->max_mr_size - nic->max_mr_size % ((uint64_t)2 << 20);

	most = most ? most : nic->max_mr_size;
	return len < most ? len : (size_t)most;
}

/* What one region cannot hold, behind its first bytes. */
static int register_rest(struct gdri_nic *nic, uint8_t *data, size_t first, size_t len, struct gdri_mr_keys *keys)
{
	struct gdri_mr_keys whole;
	int ret = gdri_nic_grow(&nic->net, data + first, len - first, first, &whole);

	if (ret)
		return ret;
	if (nic->heap_first == nic->heap_sync)
		*keys = whole;
	else
		keys->rkey_data = whole.rkey_data;
	return 0;
}

/* Two keys: of the same memory, or of two. */
static int register_two(struct gdri_nic *nic, void *sync, size_t sync_len, void *data, size_t len,
			unsigned data_access, struct gdri_mr_keys *keys)
{
	size_t first = gdri_nic_mr_slice(nic, len);
	int ret = nic->heap_sync ? -GDR_ESTATE : 0;

	if (ret)
		return ret;
	nic->heap_sync = register_memory(nic, "registering the heap (strict ordering)", sync,
					 sync == data ? first : sync_len, 0, ACCESS_HEAP, &ret);
	if (!nic->heap_sync)
		return ret;
	nic->heap_data = register_memory(nic, "registering the heap (relaxed ordering)", data, first,
					 0, data_access, &ret);
	if (!nic->heap_data) {
		ibv_dereg_mr(nic->heap_sync);
		nic->heap_sync = NULL;
		return ret;
	}
	nic->net.late_writes = nic->data_way && gdri_nic_gpu_is_late(nic);
	if (nic->data_way && nic->opt.sync_copies)
		gdri_cuda_sync_copies(nic->cuda);
	if (nic->data_way)
		snprintf(nic->heap_text, sizeof(nic->heap_text), "GPU memory (%s)", nic->data_way);
	else
		snprintf(nic->heap_text, sizeof(nic->heap_text), "host memory");
	nic->heap_first = sync == data ? nic->heap_sync : nic->heap_data;
	nic->relaxed = sync == data && nic->caps.relaxed && !nic->caps.relaxed_only;
	keys->lkey = nic->heap_sync->lkey; /* also where fetched values arrive */
	keys->rkey_data = nic->heap_data->rkey;
	keys->rkey_sync = nic->heap_sync->rkey;
	ret = first < len ? register_rest(nic, data, first, len, keys) : 0;
	nic->keys = *keys;
	return ret;
}

int gdri_nic_register_heap(struct gdri_net *net, void *heap, size_t len, void *page, size_t page_len,
			   struct gdri_mr_keys *keys)
{
	struct gdri_nic *nic = gdri_nic_of(net);

	if (page)
		return register_two(nic, page, page_len, heap, len, ACCESS_HEAP, keys);
	return register_two(nic, heap, len, heap, len, nic->caps.relaxed_only ? ACCESS_HEAP : ACCESS_RELAXED, keys);
}

struct ibv_mr *gdri_nic_mr_heap(struct gdri_nic *nic, void *addr, size_t len, uint64_t iova, bool relaxed, int *ret)
{
	return register_memory(nic, "registering a part of the heap", addr, len, iova,
			       relaxed ? ACCESS_RELAXED : ACCESS_HEAP, ret);
}

/* Pages that may not be written are pinned for reading: constant data, a file's read-only mapping. */
static struct ibv_mr *register_plain(struct gdri_nic *nic, void *addr, size_t len, bool *read_only, int *ret)
{
	const char *what = "registering a buffer";
	uint64_t iova = (uint64_t)(uintptr_t)addr;
	struct ibv_mr *mr;

	if (!read_only || (nic->cuda && gdri_cuda_is_device(nic->cuda, addr)))
		return register_memory(nic, what, addr, len, iova, IBV_ACCESS_LOCAL_WRITE, ret);
	mr = ibv_reg_mr_iova2(nic->pd, addr, len, iova, nic_access(nic, IBV_ACCESS_LOCAL_WRITE));
	*read_only = !mr && errno == EFAULT;
	if (*read_only)
		mr = ibv_reg_mr_iova2(nic->pd, addr, len, iova, nic_access(nic, 0));
	if (!mr)
		*ret = gdri_nic_memory_failed(nic->name, what, len, errno);
	return mr;
}

int gdri_nic_register_buffer(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey, bool *read_only,
			     void **handle)
{
	struct gdri_nic *nic = gdri_nic_of(net);
	int ret = check_size(nic, "a buffer", len);
	struct gdri_nic_mr *b;

	if (ret)
		return ret;
	b = calloc(1, sizeof(*b));
	if (!b)
		return gdri_nic_memory_failed(nic->name, "the record of a buffer", sizeof(*b), ENOMEM);
	b->mr = register_plain(nic, addr, len, read_only, &ret);
	if (!b->mr) {
		free(b);
		return ret;
	}
	pthread_mutex_lock(&nic->mr_lock);
	b->next = nic->buffers;
	nic->buffers = b;
	pthread_mutex_unlock(&nic->mr_lock);
	*lkey = b->mr->lkey;
	*handle = b;
	return 0;
}

int gdri_nic_deregister(struct gdri_net *net, void *handle)
{
	struct gdri_nic *nic = gdri_nic_of(net);
	struct gdri_nic_mr **at, *b = NULL;
	int err;

	pthread_mutex_lock(&nic->mr_lock);
	for (at = &nic->buffers; *at; at = &(*at)->next) {
		if (*at == handle) {
			b = *at;
			*at = b->next;
			break;
		}
	}
	pthread_mutex_unlock(&nic->mr_lock);
	if (!b)
		return gdri_fail(-GDR_EINVAL, "%s: not a registered buffer: %p", nic->name, handle);
	err = ibv_dereg_mr(b->mr);
	free(b);
	return err ? gdri_nic_failed(nic->name, "deregistering a buffer", err,
				     "see the kernel log (dmesg)")
		   : 0;
}

void gdri_nic_mr_destroy(struct gdri_nic *nic)
{
	struct gdri_nic_mr *b;

	while ((b = nic->buffers) != NULL) {
		nic->buffers = b->next;
		ibv_dereg_mr(b->mr);
		free(b);
	}
	gdri_nic_grow_destroy(nic);
	if (nic->heap_data)
		ibv_dereg_mr(nic->heap_data);
	if (nic->heap_sync)
		ibv_dereg_mr(nic->heap_sync);
	nic->heap_data = NULL;
	nic->heap_sync = NULL;
}
