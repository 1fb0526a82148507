/* SPDX-License-Identifier: BSD-3-Clause */
/* The control half's own view of the objects: each hca_* object of hca.h is
 * wrapped with its handle, its owner and what it refers to. A context is one
 * open of the device file; closing it frees whatever it still owns.
 *
 * An object that others refer to cannot be destroyed: obj.refs counts them and
 * the destroy calls answer EBUSY. Everything here needs hca_lock. */
#ifndef SOFTHCA_CONTROL_H
#define SOFTHCA_CONTROL_H

#include <sys/types.h>

#include <rdma/ib_user_ioctl_verbs.h>

#include "softhca/engine/hca.h"

#define HCA_UAR_PAGE	  4096u
#define HCA_UAR_PAGES	  4096u /* of all contexts of the process */
#define HCA_DM_SIZE	  262144u /* device memory of a context, */
#define HCA_DM_MOST	  131072u /* and of one allocation; bytes */
#define HCA_DM_INDEXES	  256u	  /* of pages that device memory could have */
#define HCA_COMP_VECTORS  8u
#define HCA_LOG_MAX_WQEBB 15u
#define HCA_LOG_MAX_CQ	  22u
#define HCA_MAX_RD_ATOMIC 16u
#define HCA_NEVER_ARMED	  0xffffffffu /* no arm word of a CQ is this: its command bits do not exist */
/* What works on demand: send, receive, write, read, atomic, and receive of an SRQ, from bit 0. UC has nothing. */
#define HCA_ODP_RC	  0x3fu /* DC, too */
#define HCA_ODP_UD	  0x01u

enum obj_type {
	OBJ_PD,
	OBJ_MR,
	OBJ_MW, /* a ctl_mr, too */
	OBJ_CQ,
	OBJ_QP,
	OBJ_SRQ,
	OBJ_AH,
	OBJ_UMEM,
	OBJ_UAR,
	OBJ_DM,
	OBJ_COUNTERS,
};

struct ctl_obj {
	enum obj_type type;
	uint32_t handle; /* in its context */
	uint32_t refs;	 /* objects that need this one */
	bool devx;	 /* made by a DEVX command */
	struct hca_ctx *ctx;
	struct devx_sub *subs; /* to its events */
};

struct ctl_pd {
	struct ctl_obj obj;
	struct hca_pd pd;
};

struct ctl_dm {
	struct ctl_obj obj;
	uint32_t first, pages; /* of the host, see hca_dm_offset() */
	uint64_t len;
};

struct ctl_mr {
	struct ctl_obj obj;
	struct hca_mr mr;
	struct ctl_pd *pd;
	struct ctl_dm *dm; /* in which it lies, NULL: none */
};

struct ctl_umem {
	struct ctl_obj obj;
	struct hca_umem umem;
	bool owns_map; /* va is our own mapping of a dma-buf */
	bool device;   /* memory of a GPU, dma.h */
};

struct ctl_uar {
	struct ctl_obj obj;
	uint32_t page; /* the first of a page of the host, see hca_uars() */
};

struct ctl_ah {
	struct ctl_obj obj;
	struct ctl_pd *pd;
};

struct ctl_cq {
	struct ctl_obj obj;
	struct hca_cq cq;
	struct ctl_umem *umem, *dbr_umem;
	struct ctl_uar *uar;
	uint32_t uar_page;
	uint64_t dbr_offset; /* in dbr_umem, for QUERY_CQ */
	uint32_t eqn;
	uint32_t async_events; /* delivered so far */
};

struct ctl_srq {
	struct ctl_obj obj;
	struct hca_srq srq;
	struct ctl_pd *pd;
	struct ctl_umem *umem, *dbr_umem; /* of DEVX */
	uint64_t user_handle;
	uint32_t max_wr, max_sge;
	uint32_t async_events;
};

struct ctl_counters {
	struct ctl_obj obj;
	uint32_t id; /* 1 to 255 */
	struct hca_counters counters;
};

struct ctl_qp {
	struct ctl_obj obj;
	_Alignas(HCA_QP_LINE) struct hca_qp qp;
	struct ctl_pd *pd;
	struct ctl_umem *umem, *dbr_umem;
	struct ctl_uar *uar;
	struct ctl_counters *counters;
	uint64_t dbr_offset;
	bool dbr_less; /* no doorbell record for sending */
	uint32_t live_index; /* position in the sweep's list */
	struct ib_uverbs_qp_cap cap;
	uint32_t async_events;
	uint8_t port;
	uint8_t asked; /* access flags of ibv_modify_qp, see grant() */
	uint8_t lag_port; /* of a bond, from 1 */
	uint32_t ece;	  /* options of enhanced connection establishment that are on */
	bool loopback;	  /* its path stays on the port (fl) */
	bool is_global;
	uint32_t flow_label;
};

#define ctl_of(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

/* ---- event channels (events.c): completion channels, the async fd, and those of DEVX ---- */

struct hca_comp_channel {
	struct hca_comp_channel *next; /* of the same context */
	struct hca_ctx *ctx;
	dev_t dev; /* the pipe's identity: the program names channels by fd */
	ino_t ino;
	int wfd;      /* not blocking */
	int rfd;      /* our own reader, not blocking: to take events back */
	uint32_t cqs; /* that report here */
	bool closed;  /* by the program; freed with the last CQ */
	bool devx;    /* one of DEVX, and the rest is of such alone */
	bool omit_data;
	uint64_t made;	  /* events so far, of which the last */
	size_t n_backlog; /* found no room in the pipe */
	uint8_t *backlog;
};

/* Returns the program's fd, or -errno. O_DIRECT: a read takes one event. */
int event_channel_create(struct hca_ctx *ctx, int flags, struct hca_comp_channel **out);
void event_channel_close(struct hca_comp_channel *ch);
void event_channel_put(struct hca_comp_channel *ch);
struct hca_comp_channel *event_channel_find(struct hca_ctx *ctx, int fd, bool devx);
/* Takes back events that the program has not read; how many there were. */
uint32_t event_drop_comp(struct hca_comp_channel *ch, uint64_t user_handle);
uint32_t event_drop_async(struct hca_ctx *ctx, uint64_t element);
void event_async(struct hca_ctx *ctx, uint64_t element, uint32_t type, uint32_t *count);

/* ---- events of DEVX (devx_events.c) ---- */

enum devx_event { /* PRM, "Event Type" */
	DEVX_COMP = 0x00,
	DEVX_CQ_ERROR = 0x04,
	DEVX_WQ_CATASTROPHIC = 0x05,
	DEVX_PORT_CHANGE = 0x09,
	DEVX_WQ_INVALID_REQUEST = 0x10,
	DEVX_WQ_ACCESS = 0x11,
	DEVX_LAST_WQE = 0x13,
	DEVX_SRQ_LIMIT = 0x14,
	DEVX_DCT_DRAINED = 0x1c,
};

/* Of the object with this number, to all that subscribed to it. */
void devx_event(struct ctl_obj *obj, enum devx_event type, uint32_t number);
void devx_port_event(struct hca_ctx *ctx, enum hca_port_event event);
/* To events of the object, NULL: of the port; 0 or an errno. eventfd, -1: none, is told in place of the channel. */
int devx_subscribe(struct hca_comp_channel *ch, struct ctl_obj *obj, const uint16_t *types, unsigned n, uint64_t cookie,
		   int eventfd);
void devx_object_gone(struct ctl_obj *obj);
void devx_channel_gone(struct hca_comp_channel *ch);

/* ---- contexts (device.c) ---- */

struct hca_ctx {
	struct hca_ctx *next;
	unsigned device; /* number of the device that is open */
	dev_t dev; /* of the memfd that is the open device file */
	ino_t ino;
	bool ready; /* GET_CONTEXT has been answered */
	bool adopted; /* poll_adopt() has seen it */
	struct ctl_obj **handles;
	uint32_t n_handles;
	uint32_t uars; /* pages of doorbell registers */
	struct hca_comp_channel *channels; /* completion channels, and those of DEVX */
	struct hca_comp_channel *async;
	struct devx_sub *subs; /* to the port's events */
};

/* open() of the device file: a new context; fd or -1 with errno. */
int device_open(unsigned device, int flags);
/* The program closes a file that is ours. Caller holds no lock. */
void device_closing(dev_t dev, ino_t ino);
struct hca_ctx *device_find(dev_t dev, ino_t ino);
/* From now on children of fork have no part in the device (fork.c). */
void fork_prepare(void);
struct hca_ctx *device_contexts(void); /* the first of a list */
int uar_alloc(struct hca_ctx *ctx, int fd, struct ctl_uar **out);
int uar_destroy(struct ctl_uar *uar);
bool uar_is_taken(uint32_t page);
struct ctl_uar *uar_find(struct hca_ctx *ctx, uint32_t page);
/* Without a doorbell record the registers are all that tells what was posted, and QPs that share
 * them overwrite each other's values: such a QP has its page to itself. */
bool uar_admits(uint32_t page, bool dbr_less);
void uar_qp_added(uint32_t page, bool dbr_less);
void uar_qp_removed(uint32_t page);
/* Forgets the doorbells of a page. */
void uar_clear(uint32_t page);

/* Where in the device file a page of device memory lies (uverbs_dm.c), and whether this is where one lies. */
uint64_t hca_dm_offset(uint32_t page);
bool hca_is_dm(uint64_t offset);

/* ---- handles and numbers (objects.c) ---- */

/* Allocates size bytes with a ctl_obj first and gives it a handle. */
void *obj_new(struct hca_ctx *ctx, enum obj_type type, size_t size);
void obj_free(struct ctl_obj *obj);
void *obj_get(struct hca_ctx *ctx, uint64_t handle, enum obj_type type);
struct ctl_obj *obj_any(struct hca_ctx *ctx, uint64_t handle);
/* Whether a region, a queue or a umem has memory of the program's in the page. */
bool hca_holds_page(uintptr_t page);
/* Destroys by type; EBUSY while others refer to it. */
int obj_destroy(struct ctl_obj *obj);
void obj_destroy_all(struct hca_ctx *ctx);

struct ctl_pd *pd_find(struct hca_ctx *ctx, uint32_t pdn);
struct ctl_cq *cq_find(struct hca_ctx *ctx, uint32_t cqn);
struct ctl_srq *srq_find(struct hca_ctx *ctx, uint32_t srqn);
struct ctl_umem *umem_find(struct hca_ctx *ctx, uint32_t id);
int counters_number(struct ctl_counters *c);
struct ctl_counters *counters_find(struct hca_ctx *ctx, uint32_t id);

/* Each gives the object its number; 0 or an errno. */
int pd_number(struct ctl_pd *pd);
int mr_number(struct ctl_mr *mr);
int cq_number(struct ctl_cq *cq);
int srq_number(struct ctl_srq *srq);
int qp_number(struct ctl_qp *qp);
void qp_refs(struct ctl_qp *qp, int by); /* counts the queue pair at all that it needs: 1 or -1 */
int umem_number(struct ctl_umem *umem);

/* ---- queue pairs, common to verbs and DEVX (qp.c) ---- */

/* pd, CQs, rings and numbers are set: takes the references and makes it live. An errno: it is no more. */
int qp_activate(struct ctl_qp *qp);
/* qp.state has to be a legal successor of the present one. */
void qp_set_state(struct ctl_qp *qp, enum hca_qp_state to);
/* What the device offers a queue pair that is created with these options of enhanced connection establishment. */
uint32_t qp_ece_offered(uint32_t options);
/* A transition asks for options, 0: for nothing; on is what the device has of them. False: it must not ask. */
bool qp_ece_ask(struct ctl_qp *qp, uint32_t options);
void path_set_gid(struct hca_path *path, const uint8_t gid[16]);
void gid_to_mac(const uint8_t gid[16], uint8_t mac[6]);

/* ---- the port (port.c) ---- */

/* Entry of the GID table; false, and zero, where it is empty. */
bool port_gid(unsigned device, unsigned index, uint8_t gid[16]);
uint64_t port_guid(unsigned device); /* host order */
uint16_t port_lid(unsigned device);  /* 0 on Ethernet */
bool port_is_ib(void);
bool port_is_down(void);
uint32_t port_mtu(unsigned device); /* bytes */
static inline unsigned mtu_code(uint32_t mtu)
{
	return mtu <= 256 ? 1 : mtu <= 512 ? 2 : mtu <= 1024 ? 3 : mtu <= 2048 ? 4 : 5;
}

/* ---- the program's memory (range.c) ---- */

/* Is [addr, addr + len) mapped, and writable if asked? 0 or EFAULT. */
int range_check(uint64_t addr, uint64_t len, bool write);
/* Of memory that need not be there: it is looked at when it is used. */
void range_on_demand(void);
/* A descriptor, the caller's, of the file that is mapped there shared, and where in it; -1: it is
 * no such memory, or the file cannot be had. */
int range_file(uint64_t addr, uint64_t len, uint64_t *offset);
/* Maps part of a dma-buf (or memfd); 0 or an errno. */
int range_map_fd(int fd, uint64_t offset, uint64_t len, bool write, uint8_t **va);
void range_unmap(uint8_t *va, uint64_t len);
/* range_check of what may be memory of a GPU, too, which then is remembered. */
struct dma_answer;
int range_take(const struct dma_answer *gpu, uint64_t addr, uint64_t len, bool write, bool *device);
int range_take_fd(const struct dma_answer *gpu, int fd, uint64_t offset, uint64_t len, bool write,
		  uint8_t **va, bool *device);
void range_give_back(uint8_t *va, uint64_t len, bool device, bool mapped);

/* ---- memory of GPUs (cuda_shim.c) ---- */

/* The device address of [offset, offset + len) of a dma-buf that the driver has made; 0: it is
 * none, UINT64_MAX: it is shorter. */
uint64_t cuda_dmabuf_address(int fd, uint64_t offset, uint64_t len);
bool cuda_dmabuf_by_pcie(int fd); /* the way to the memory that the program asked the driver for */

#endif
