/* SPDX-License-Identifier: BSD-3-Clause */
/* gdrfake: a provider of libfabric for tests, between processes of one host. Each domain of it is a mode: what a fabric
 * that is not here documents of itself (mode.c). Messages and requests for RMA are datagrams of Unix sockets; the
 * target moves the bytes of RMA, as its own progress, which fi_cq_read makes and nothing else. It has the calls that
 * gdr uses; others are NULL. */
#ifndef GDR_TEST_FAKE_H
#define GDR_TEST_FAKE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#define FAKE_SEND_MOST 65536u
#define FAKE_RAW 48u /* bytes of a key of FI_MR_RAW */

struct fake_mode {
	const char *domain;
	uint64_t mode;	   /* FI_CONTEXT, FI_CONTEXT2: contexts are written to */
	int mr;		   /* what it demands of memory */
	size_t key_size;   /* bytes */
	size_t inject;	   /* most bytes */
	size_t send, most; /* bytes of a message, of RMA */
	size_t tx, rx;	   /* operations that may be under way */
	uint64_t
		order; /* FI_ORDER_*; without SAS messages come in any order, without WAW RMA does */
	unsigned int hold;  /* rounds of progress that what has no order is held back, at most */
	unsigned int again; /* one call of so many is -FI_EAGAIN, by chance; 0: none */
	bool no_delivery;   /* has no FI_DELIVERY_COMPLETE */
	bool inserted;	    /* RMA comes only from who is in the address vector */
	bool silent;	    /* does not notice that a peer died */
	bool lies;	    /* says that bytes are delivered that are not there yet */
	bool gpus;	    /* has FI_HMEM, as a form beside the one without */
	bool calls_cuda;    /* needs calls of CUDA's for that */
};

struct fake_name {
	int32_t pid;
	uint32_t n; /* by chance: process ids are those of a name space of a test, sockets the host's */
};

/* ---- on the wire ---- */

enum fake_kind { FAKE_SEND = 1, FAKE_WRITE, FAKE_READ, FAKE_DONE, FAKE_PING };

struct fake_packet {
	uint32_t kind;
	int32_t err; /* of DONE: 0 or FI_E* */
	uint64_t op; /* the sender's number; of DONE the receiver's; 0: nobody waits for it */
	struct fake_name from;
	uint64_t far, key, near, len; /* RMA: address at the target; at the source */
};

/* ---- objects ---- */

struct fake_domain {
	struct fid_domain fid;
	const struct fake_mode *mode;
	bool gpus; /* opened with FI_HMEM */
	pthread_mutex_t lock; /* of the domain and all that is in it */
	unsigned int open;    /* objects in it */
	struct fake_mr *mrs;
	struct fake_ep *eps;
	struct fake_mapped *mapped;
	uint64_t next_key;
};

struct fake_mr {
	struct fid_mr fid;
	struct fake_domain *domain;
	struct fake_mr *next;
	uint8_t *addr, *at; /* as the program names it, and where it is moved: of a GPU the processor reaches no addr */
	size_t len;
	uint64_t access, key;
	struct fake_ep *ep; /* bound to */
	bool enabled;
};

/* Another PE's key of FI_MR_RAW; its address is the key here. */
struct fake_mapped {
	struct fake_mapped *next;
	uint64_t key;
};

struct fake_av {
	struct fid_av fid;
	struct fake_domain *domain;
	struct fake_name *names;
	size_t n;
};

struct fake_cq {
	struct fid_cq fid;
	struct fake_domain *domain;
	struct fi_cq_err_entry *entries; /* [size]; err 0: a completion */
	size_t size, first, n;
	uint64_t read_ns; /* of the processor, that each look takes */
	const char *sticks; /* name of the threads whose looks do not return, from then on; NULL: all do */
	time_t sticks_s;
};

struct fake_receive {
	struct fake_receive *next;
	void *buf, *context;
	size_t len;
};

struct fake_op {
	struct fake_op *next;
	uint64_t number, flags;
	void *context, *copy; /* copy: of the data, where it completes before it is delivered */
	size_t len;
	struct fake_name to;
	bool told; /* it was completed */
};

/* What came and is not done with. */
struct fake_arrival {
	struct fake_arrival *next;
	struct fake_packet packet;
	unsigned int hold;
	uint64_t left; /* pieces of a write, a bit each */
	size_t len;    /* of data */
	uint8_t data[];
};

struct fake_departure {
	struct fake_departure *next;
	struct fake_name to;
	size_t len;
	struct fake_packet packet; /* and its data */
};

struct fake_ep {
	struct fid_ep fid;
	struct fake_domain *domain;
	struct fake_ep *next;
	struct fake_av *av;
	struct fake_cq *cq;
	struct fake_name name;
	int socket;
	bool enabled, no_cuda; /* no_cuda: calls of CUDA's are forbidden */
	bool cuts, cut; /* a source that is not mapped ends all RMA: what comes then is never answered */
	unsigned int bound; /* memory regions */
	uint64_t flags;	    /* of operations without their own */
	uint64_t next_op, pinged;
	struct fake_receive *receives, **receives_end;
	struct fake_op *ops;
	struct fake_arrival *arrivals, **arrivals_end;
	struct fake_departure *departures, **departures_end;
	size_t n_receives, n_ops, n_departures;
	uint32_t random;
};

#define FAKE_OF(type, fidp) ((struct fake_##type *)(void *)(fidp)) /* its first member */

/* A fault of the program: what no fabric would forgive. Ends the process. */
_Noreturn void gdr_fake_fault(const char *what);

/* mode.c */
const struct fake_mode *gdr_fake_mode(const char *domain);
int gdr_fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info);

/* fabric.c */
int gdr_fake_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *context);

/* memory.c */
extern struct fi_ops_mr gdr_fake_mr_ops;
/* FI_MAP_RAW_MR, FI_UNMAP_KEY. */
int gdr_fake_domain_control(struct fid *fid, int command, void *arg);
/* What the program's key is at the target. */
uint64_t gdr_fake_key(struct fake_domain *d, uint64_t key);
/* What the key names at the endpoint, if all of it lies there and may be reached so; NULL: it is refused. */
uint8_t *gdr_fake_reach(struct fake_ep *ep, uint64_t key, uint64_t addr, uint64_t len,
			uint64_t access);
/* Where what the program hands over is moved; NULL: it did not register it, and has to. */
uint8_t *gdr_fake_registered(struct fake_ep *ep, void *desc, const void *buf, size_t len, uint64_t access);

/* cq.c */
int gdr_fake_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		     void *context);
void gdr_fake_complete(struct fake_cq *cq, void *context, uint64_t flags, size_t len, int err);

/* endpoint.c */
int gdr_fake_endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out,
		      void *context);

/* post.c */
extern struct fi_ops_msg gdr_fake_msg_ops;
extern struct fi_ops_rma gdr_fake_rma_ops;
/* Where the mode says that contexts are the provider's: writes there, looks whether it is still there. */
void gdr_fake_context_take(const struct fake_mode *mode, void *context);
void gdr_fake_context_check(const struct fake_mode *mode, void *context);
/* The operation's end; it leaves the list with the last word of it. */
void gdr_fake_op_end(struct fake_ep *ep, uint64_t number, int err);

/* progress.c */
void gdr_fake_depart(struct fake_ep *ep, struct fake_name to, const struct fake_packet *p,
		     const void *data, size_t len);
void gdr_fake_progress(struct fake_ep *ep);
void gdr_fake_flush(struct fake_ep *ep);
uint32_t gdr_fake_random(struct fake_ep *ep);

/* socket.c */
int gdr_fake_socket_open(struct fake_name name);
/* 0 or errno */
int gdr_fake_socket_send(int s, struct fake_name to, const void *data, size_t len);

#endif
