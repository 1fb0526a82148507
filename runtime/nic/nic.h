/* SPDX-License-Identifier: BSD-3-Clause */
/* What the runtime asks of the network: one RDMA device driven through
 * rdma-core (verbs and mlx5dv DEVX), whatever stands below it. No other folder
 * includes infiniband headers; no file here knows whether the device is
 * silicon. Functions return 0 or -GDR_E*, after logging why. */
#ifndef GDRI_NIC_H
#define GDRI_NIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>
#include "runtime/core/options.h"

struct gdri_nic;

/* Opens the device: nearest by PCIe distance to `near` (a sysfs PCI path of the
 * GPU, or NULL on the host device) among the active ports that GDR_NIC allows;
 * chooses port, GID, MTU; checks the capabilities that the device code needs. */
int gdri_nic_open(const struct gdri_options *opt, const char *near, struct gdri_nic **out);
/* gdri_nic_open, which among equally near ports takes the turn-th modulo their number (the PE's number: PEs
 * of a node share the NICs evenly). gdri_nic_open is turn 0. */
int gdri_nic_open_turn(const struct gdri_options *opt, const char *near, unsigned turn,
		       struct gdri_nic **out);
/* Right after open: a GPU's threads post, from here on its memory may be registered. */
struct gdri_cuda;
void gdri_nic_use_gpu(struct gdri_nic *nic, struct gdri_cuda *cuda);
void gdri_nic_close(struct gdri_nic *nic); /* accepts half-built objects and NULL */

const char *gdri_nic_name(const struct gdri_nic *nic); /* "mlx5_0" */
const char *gdri_nic_text(const struct gdri_nic *nic); /* one line in words */
/* Whether the queues lie in memory that the host reads and writes. */
bool gdri_nic_ring_here(const struct gdri_nic *nic);
/* Whether all of a queue is the GPU's: its memory, and its threads ring. */
bool gdri_nic_ring_near(const struct gdri_nic *nic);
/* Whether device code rings words of host memory, which a thread carries to the registers. */
bool gdri_nic_host_rings(const struct gdri_nic *nic);
/* In words, with what to do where it is not the best that there is: */
const char *gdri_nic_heap_text(const struct gdri_nic *nic); /* where the heap lies, how the NIC knows it */
const char *gdri_nic_ring_text(const struct gdri_nic *nic); /* where the queues lie */
const char *gdri_nic_bell_text(const struct gdri_nic *nic); /* who rings the doorbells */

struct gdri_mr_keys {
	uint32_t lkey, rkey_data, rkey_sync; /* host order; data: relaxed ordering, sync: strict */
};
/* Registers the heap: remote addresses are offsets (iova 0), two keys. */
int gdri_nic_register_heap(struct gdri_nic *nic, void *addr, size_t len, struct gdri_mr_keys *keys);
/* Registers for queues of host threads: the data key is that of the heap, strict, the other remote one and the
 * local one are those of the page in which they meet. */
int gdri_nic_register_page(struct gdri_nic *nic, void *heap, size_t len, void *page, size_t page_len,
			   struct gdri_mr_keys *keys);
/* The heap has len bytes more, at addr, at this offset. keys: for all of the heap. Those of before stay valid for
 * what they cover. */
int gdri_nic_grow_heap(struct gdri_nic *nic, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys);
/* The parts from offset on, len bytes in all, leave it: keys for the rest. Old keys still cover them, until they are
 * dropped. */
int gdri_nic_leave_heap(struct gdri_nic *nic, uint64_t offset, size_t len, struct gdri_mr_keys *keys);
void gdri_nic_drop_left(struct gdri_nic *nic);
/* All keys of such changes but the `kept` last ones go. */
void gdri_nic_drop_keys(struct gdri_nic *nic, int kept);
void gdri_nic_shrink_heap(struct gdri_nic *nic); /* takes the last change back: its keys must not have been used */
/* Registers a local buffer (iova = address); *handle for the deregistration. *read_only: the pages may not be written,
 * it is a source alone; NULL: then it fails. */
int gdri_nic_register_buffer(struct gdri_nic *nic, void *addr, size_t len, uint32_t *lkey, bool *read_only,
			     void **handle);
int gdri_nic_deregister(struct gdri_nic *nic, void *handle);

/* Queue pairs to each PE: those of the default context and those kept for others. */
static inline unsigned gdri_nic_slots(const struct gdri_options *opt)
{
	return opt->qps_per_pe + opt->ctx_queues;
}

/* Creates so many queue pairs to each of n_pes PEs (oneself too) in one allocation. `qps` is the device's
 * array (gdri_dev.qps), zeroed; all fields but the rkeys are filled here. Refuses more PEs than the limit,
 * naming the memory. */
int gdri_nic_create_queues(struct gdri_nic *nic, int n_pes, struct gdri_qp *qps);

/* The part of this PE's address that goes to every PE, and the part for one. */
struct gdri_nic_address; /* nic/address.h: fixed size, versioned, checked on receipt */
size_t gdri_nic_address_size(const struct gdri_nic *nic); /* same on all PEs */
void gdri_nic_get_address(const struct gdri_nic *nic, void *buf);
/* addresses: n_pes * address_size bytes in PE order, as received: untrusted. Checks
 * versions, link layer, MTU; moves every queue pair to RTS and fills the rkeys. */
int gdri_nic_connect(struct gdri_nic *nic, const void *addresses, int pe, int n_pes,
		     struct gdri_qp *qps);

/* Bytes that a PE's queues to n_pes peers take. */
size_t gdri_nic_queue_bytes(const struct gdri_options *opt, int n_pes);

#endif
