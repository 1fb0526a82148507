/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of struct gdri_nic, shared by the nic_*.c files and nobody else.
 * Every object is made by the one file named beside it, and destroyed by
 * that file's gdri_nic_*_destroy in the reverse order, from any state. */
#ifndef GDRI_NIC_IMPL_H
#define GDRI_NIC_IMPL_H

#include <pthread.h>
#include <stdbool.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "runtime/core/options.h"
#include "runtime/net/net.h"
#include "runtime/net/queues.h"
#include "runtime/nic/caps.h"

#define GDRI_NIC_PARTS 256 /* regions beside the first */

struct gdri_nic_mr { /* a registered buffer */
	struct gdri_nic_mr *next;
	struct ibv_mr *mr;
};

struct gdri_nic_qp {
	struct mlx5dv_devx_uar *uar;
	uint8_t *db; /* doorbell register in it */
	bool no_record; /* of sends: the page is its own */
	struct mlx5dv_devx_obj *cq, *qp;
	uint32_t cqn, qpn;
};

struct gdri_nic {
	struct gdri_net net;
	struct gdri_options opt;
	struct gdri_cuda *cuda; /* whose memory may be registered; NULL: none */
	struct gdri_cuda *poster; /* the GPU whose threads post; NULL: threads of the host do */

	/* nic/device.c */
	char name[64], firmware[32], text[384];
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	uint32_t pdn;
	uint8_t port;
	uint8_t link_layer; /* GDRI_LINK_ */
	uint8_t mtu;	    /* code 1..5 */
	bool grh_required;
	uint16_t lid, pkey, pkey_index;
	uint8_t gid_index, gid[16];
	uint64_t max_mr_size;
	struct gdri_nic_caps caps;
	unsigned lag_ports; /* of a bond; 0: no queue pair is told its port */
	uint32_t psn;

	/* nic/mr.c */
	char heap_text[64];
	struct ibv_mr *heap_data, *heap_sync;
	struct gdri_mr_keys keys; /* what other PEs are told */
	struct ibv_mr *heap_first; /* one of the two: strict, of the heap as it began */
	bool relaxed; /* heap_data is of the same memory, relaxed */
	pthread_mutex_t mr_lock; /* of buffers: several host threads may register */
	struct gdri_nic_mr *buffers;

	/* nic/grow.c: further regions of the heap, by their offsets, and the keys over all, the newest first */
	struct gdri_nic_part {
		struct ibv_mr *mr, *relaxed; /* relaxed: NULL where the data key is strict too */
		uint64_t offset;
		uint64_t from; /* where its bytes begin by the addresses of the regions: offset, or see nic/grow.c */
		bool is_new, leaves; /* of the change under way */
	} parts[GDRI_NIC_PARTS];
	int n_parts;
	struct gdri_nic_joint {
		struct gdri_nic_joint *next;
		struct mlx5dv_devx_obj *mkey[2];
	} *joints; /* old ones stay for a time: operations that use them may be under way (rkeys.c) */
	struct ibv_mr *hole; /* what joint keys have where the heap has nothing, */
	void *hole_page;     /* and its memory */

	/* nic/gpu.c */
	bool beside; /* the GPU: it reaches it by PCIe switches alone */
	const char *data_way, *control_way; /* how the device knows memory of the GPU */

	/* nic/ring.c */
	uint8_t *ring;	    /* memory of the host; or NULL, and */
	void *ring_gpu;	    /* of the GPU */
	size_t ring_rdma;   /* its size, where it is gdri_cuda_alloc_rdma()'s; else 0 */
	uint8_t *ring_seen; /* where device code finds it */
	bool ring_mapped;   /* ring, for the GPU */
	struct mlx5dv_devx_umem *umem;
	char ring_text[768];

	/* nic/bell.c */
	struct gdri_nic_bell *bell;
	char bell_text[640];

	/* nic/bell_mode.c */
	struct mlx5dv_devx_uar **spare; /* registers that nobody rings, */
	int n_spare;
	char bell_why[192]; /* and why queue pairs have a record that should not */

	/* nic/order.c */
	uint8_t order; /* GDRI_NIC_ORDER_ */
	char order_text[320];

	/* nic/ece.c */
	uint32_t ece; /* offered to all queue pairs */

	/* nic/counters.c */
	struct mlx5dv_devx_obj *counters; /* NULL: none */
	uint32_t counter_set;

	/* nic/queue.c */
	struct gdri_net_layout layout; /* n 0: there are no queues */
	uint32_t eqn;
	struct gdri_nic_qp *qps; /* [layout.n], in the order of gdri_net_index */
};

static inline struct gdri_nic *gdri_nic_of(struct gdri_net *net)
{
	return (struct gdri_nic *)(void *)net; /* its first member */
}

/* The row's functions (runtime/net/net.h): nic/device.c */
int gdri_nic_open(const struct gdri_net_how *how, struct gdri_net **out);
void gdri_nic_close(struct gdri_net *net);
/* nic/mr.c */
int gdri_nic_register_heap(struct gdri_net *net, void *heap, size_t len, void *page, size_t page_len,
			   struct gdri_mr_keys *keys);
int gdri_nic_register_buffer(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey, bool *read_only,
			     void **handle);
int gdri_nic_deregister(struct gdri_net *net, void *handle);
/* nic/grow.c */
int gdri_nic_grow(struct gdri_net *net, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys);
int gdri_nic_leave(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys);
void gdri_nic_undo(struct gdri_net *net);
void gdri_nic_drop_left(struct gdri_net *net);
void gdri_nic_drop_keys(struct gdri_net *net, int kept);
/* nic/queue.c, nic/connect.c */
int gdri_nic_create_queues(struct gdri_net *net, int n_pes, struct gdri_qp *qps);
void gdri_nic_address(struct gdri_net *net, void *buf);
int gdri_nic_connect(struct gdri_net *net, const void *addresses, int pe, int n_pes, struct gdri_qp *qps);

/* nic/events.c */
void gdri_nic_look(struct gdri_net *net);

/* nic/gpu.c: one way or the other; NULL: `why` */
enum gdri_nic_way { GDRI_NIC_DATA_DIRECT, GDRI_NIC_DMA_BUF, GDRI_NIC_PEERMEM, GDRI_NIC_WAYS };
struct ibv_mr *gdri_nic_mr_by(struct gdri_nic *nic, enum gdri_nic_way way, void *addr, size_t len,
			      uint64_t iova, unsigned access, char *why, size_t room);
struct mlx5dv_devx_umem *gdri_nic_umem_by(struct gdri_nic *nic, enum gdri_nic_way way, void *addr,
					  size_t len, char *why, size_t room);
/* Either; NULL when neither dma-buf nor nvidia-peermem does it: _mr has logged why, _umem says it in `why` */
struct ibv_mr *gdri_nic_gpu_mr(struct gdri_nic *nic, const char *what, void *addr, size_t len,
			       uint64_t iova, unsigned access, int *ret);
struct mlx5dv_devx_umem *gdri_nic_gpu_umem(struct gdri_nic *nic, void *addr, size_t len, char *why,
					   size_t room);
/* Whether data that was written to the GPU may be seen later than what was written behind it: see net.late_writes. */
bool gdri_nic_gpu_is_late(const struct gdri_nic *nic);

/* nic/counters.c; destroy says what they counted */
void gdri_nic_counters_create(struct gdri_nic *nic);
void gdri_nic_counters_destroy(struct gdri_nic *nic);

/* nic/ring.c */
uint64_t gdri_nic_umem_pages(const struct gdri_nic *nic);
struct mlx5dv_devx_umem *gdri_nic_umem(struct gdri_nic *nic, void *addr, size_t len); /* of the host; NULL: errno */
int gdri_nic_ring_create(struct gdri_nic *nic);
void gdri_nic_ring_destroy(struct gdri_nic *nic);

/* nic/bell.c: where device code rings for the i-th queue pair */
int gdri_nic_bell_create(struct gdri_nic *nic);
uint64_t *gdri_nic_bell_of(const struct gdri_nic *nic, int i);
void gdri_nic_bell_destroy(struct gdri_nic *nic);

/* What of so many bytes one region may have. */
size_t gdri_nic_mr_slice(const struct gdri_nic *nic, size_t len);
/* nic/mr.c: for this and other PEs; NULL: *ret, logged */
struct ibv_mr *gdri_nic_mr_heap(struct gdri_nic *nic, void *addr, size_t len, uint64_t iova, bool relaxed, int *ret);

/* nic/mr.c: memory of the host; NULL: *ret, logged */
struct ibv_mr *gdri_nic_mr_plain(struct gdri_nic *nic, const char *what, void *addr, size_t len, uint64_t iova,
				 unsigned access, int *ret);

/* nic/grow.c */
void gdri_nic_forget_new(struct gdri_nic *nic); /* regions of the change under way: as if it had not begun */
void gdri_nic_joint_destroy(struct gdri_nic *nic); /* the newest */
void gdri_nic_grow_destroy(struct gdri_nic *nic);

/* nic/mr.c, nic/queue.c */
void gdri_nic_mr_destroy(struct gdri_nic *nic);
void gdri_nic_queue_destroy(struct gdri_nic *nic);

/* nic/uar.c: a doorbell register for each of n queue pairs */
int gdri_nic_uar_create(struct gdri_nic *nic, struct gdri_nic_qp *qps, int n);
void gdri_nic_uar_destroy(struct gdri_nic_qp *qps, int n);

/* nic/bell_mode.c: begin gives queue pairs pages, behind uar_create; refused: the i-th one by CREATE_QP; end: they are
 * there */
#define GDRI_UAR_BF	      0u
#define GDRI_UAR_NC_DEDICATED (1u << 31) /* not in the headers of older rdma-core */
void gdri_nic_bell_mode_begin(struct gdri_nic *nic);
void gdri_nic_bell_mode_refused(struct gdri_nic *nic, int i, unsigned int status, unsigned int syndrome);
void gdri_nic_bell_mode_end(struct gdri_nic *nic);
void gdri_nic_bell_mode_destroy(struct gdri_nic *nic);

/* nic/qp.c: firmware objects of the i-th queue pair, and its name for messages */
int gdri_nic_cq_create(struct gdri_nic *nic, int i);
int gdri_nic_qp_create(struct gdri_nic *nic, int i);
#define GDRI_NIC_QP_NAME 96
const char *gdri_nic_qp_name(const struct gdri_nic *nic, const char *command, int i, char *buf);

/* nic/modify.c: RESET to RTS. `remote` is checked. */
struct gdri_nic_address;
struct gdri_nic_route { /* how packets reach one PE */
	const struct gdri_nic_address *remote;
	uint8_t mac[6]; /* RoCE */
	uint8_t mtu;	/* code: the smaller of both ends */
	bool self;	/* this PE */
};
/* nic/connect.c: of RoCE; peer -1: this PE itself, before there are numbers */
int gdri_nic_resolve_mac(struct gdri_nic *nic, int peer, struct gdri_nic_route *route);
int gdri_nic_qp_to_rts(struct gdri_nic *nic, int i, const struct gdri_nic_route *route,
		       uint32_t remote_qpn);

/* Goes to RTR, connected to itself, and back to RESET: does the device place its WRITEs in any order? */
int gdri_nic_qp_probe(struct gdri_nic *nic, int i, const struct gdri_nic_route *self, bool *relaxed);

/* nic/order.c */
bool gdri_nic_order_asks(const struct gdri_nic *nic); /* queue pairs are told to keep the order */
void gdri_nic_order_set(const struct gdri_nic *nic, void *qpc); /* on the way to RTR */
int gdri_nic_order_find(struct gdri_nic *nic); /* there are queue pairs: nic->order */
int gdri_nic_order_agree(struct gdri_nic *nic, const void *addresses); /* checked ones: net.relaxed */

/* nic/ece.c */
bool gdri_nic_ece_asks(const struct gdri_nic *nic);
void gdri_nic_ece_ask(const struct gdri_nic *nic, void *create_in);
void gdri_nic_ece_offered(struct gdri_nic *nic, int i, const void *create_out); /* the i-th queue pair; 0 first */
uint32_t gdri_nic_ece_with(const struct gdri_nic *nic, const struct gdri_nic_address *remote);
void gdri_nic_ece_say(const struct gdri_nic *nic, const void *addresses); /* checked ones */

/* nic/cmd.c: firmware commands, failures logged with status and syndrome; _try: not logged */
bool gdri_nic_obj_try(struct gdri_nic *nic, const void *in, size_t in_bytes, void *out, size_t out_bytes,
		      struct mlx5dv_devx_obj **obj);
int gdri_nic_obj_create(struct gdri_nic *nic, const char *what, const void *in, size_t in_bytes,
			void *out, size_t out_bytes, struct mlx5dv_devx_obj **obj);
int gdri_nic_obj_query(struct gdri_nic *nic, const char *what, struct mlx5dv_devx_obj *obj, const void *in,
		       size_t in_bytes, void *out, size_t out_bytes);
int gdri_nic_obj_modify(struct gdri_nic *nic, const char *what, struct mlx5dv_devx_obj *obj,
			const void *in, size_t in_bytes);

/* nic/text.c */
int gdri_nic_failed(const char *device, const char *what, int err, const char *check);
int gdri_nic_memory_failed(const char *device, const char *what, size_t bytes, int err);
int gdri_nic_command_failed(const char *device, const char *what, int err, const void *out);

#endif
