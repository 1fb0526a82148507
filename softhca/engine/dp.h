/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the data half share among themselves. Everything here is
 * called with hca_lock held, by the engine thread or by a control call. */
#ifndef SOFTHCA_DP_H
#define SOFTHCA_DP_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "softhca/faults/faults.h"
#include "softhca/engine/hca.h"
#include "softhca/tools/options.h"
#include "softhca/transport/packet.h"

/* Counters are written by the holder of hca_lock only and read by anyone. */
#define STAT_ADD(field, n)                                                                         \
	__atomic_store_n(&hca_stats.field, hca_stats.field + (uint64_t)(n), __ATOMIC_RELAXED)
#define STAT_INC(field) STAT_ADD(field, 1)

/* ---- engine.c ---- */

uint64_t dp_now(void);			  /* monotonic ns, read once per engine round */
uint64_t dp_clock(void);		  /* dp_now's clock, read now */
void engine_activate(struct hca_qp *qp);  /* the QP has something to do */
void engine_deadline(uint64_t ns);	  /* wake no later than this */
/* Ask for what its next post will touch. */
void engine_prefetch_user(uint32_t qpn);
int engine_add_qp(struct hca_qp *qp);
void engine_remove_qp(struct hca_qp *qp); /* unknown QPs are ignored */
struct hca_qp *engine_find_qp(uint32_t qpn); /* QPs with data-half state only */
/* engine_find_qp, and asks for what a message of the QP will touch. */
struct hca_qp *engine_prefetch(uint32_t qpn);
struct hca_qp *engine_qp(unsigned i); /* each of them; NULL behind the last */
/* Looks at what is most likely to have something and at a share of the rest; how much
 * there was to do. */
unsigned engine_round(void);
/* engine_round by another thread than the engine's. */
unsigned engine_round_elsewhere(void);
/* In a control call: begins what was posted to the QP before it. Not beside a GPU, whose driver is
 * the engine's thread's alone. */
void engine_begin_posted(struct hca_qp *qp);
/* There, ahead of it: what was rung last, if that can be carried out at once, without system calls and
 * clock. False: there is nothing of the kind, or it is time for a whole round. */
bool engine_round_short(void);

/* ---- doorbell.c ---- */

int doorbell_add(struct hca_qp *qp, unsigned index); /* index: of engine.c's list */
void doorbell_remove(unsigned index);		     /* the last one takes its place */
/* The QP's state has changed: its doorbell record alone does not tell. */
void doorbell_qp_changed(const struct hca_qp *qp);
void doorbell_qp_ready(struct hca_qp *qp); /* to send, from reset */
void doorbell_forget(const struct hca_qp *qp); /* rung so far */
unsigned doorbell_look(const struct hca_qp *qp); /* has it something new? */
unsigned doorbell_poll(void);	   /* a round's share; QPs that have something new */
/* Those of the registers where doorbells were seen lately, until one has something new; QPs of it. */
unsigned doorbell_poll_first(void);
unsigned doorbell_poll_cold(void); /* the registers that this leaves out, if they are few */
unsigned doorbell_sweep_all(void); /* every register and record */

/* ---- prefetch.c ---- */

void prefetch_rung(uint32_t qpn);
/* Asks for what the doorbell that follows will need, if that doorbell was the next one the last times, too. elsewhere:
 * not in the engine's thread but in one that posts. */
void prefetch_next(bool elsewhere);
void prefetch_peer(void); /* a while later */

/* ---- address.c ---- */

bool address_is_own(const struct in6_addr *addr);
struct in6_addr address_from_v4(uint32_t v4); /* mapped into IPv6 */
bool address_is_v4(const struct in6_addr *addr);
bool address_is_loopback(const struct in6_addr *addr);
uint32_t address_v4(const struct in6_addr *addr); /* network order */
uint32_t address_scope(void); /* index of the port's interface; 0: loopback */

/* ---- wire*.c ---- */

/* Ways to other hosts: one for each GID of each device. */
enum { HCA_PORTS = HCA_GIDS * HCA_MAX_DEVICES };

enum wire_kind { WIRE_NONE, WIRE_LOCAL, WIRE_HOST, WIRE_REMOTE };

struct wire_dest {
	enum wire_kind kind;
	uint32_t addr; /* IPv4, network order; of a sender inside the process: its QPN */
	uint32_t slot; /* WIRE_HOST: of the peer's process */
	uint8_t tclass; /* between hosts: DSCP and ECN of the IP header */
	uint16_t sport; /* UDP source port, 0: 4791 */
	uint8_t sgid;  /* WIRE_REMOTE: our own GID, as dp_gid counts, and the other's GID */
	struct in6_addr gid;
};

int wire_start(void);
/* Packets of other hosts may come to this device from now on. */
void wire_listen(unsigned device);
/* The GID that the sender of a packet has. */
void wire_source_gid(const struct wire_dest *from, struct in6_addr *gid);
/* The way to a QP behind a GID; false when there is none. sgid as dp_gid counts. */
bool wire_resolve(const struct in6_addr *dgid, unsigned sgid, uint32_t dqpn, struct wire_dest *d);
/* Sends a packet of this QP to its peer, or to d. The payload pieces must stay
 * until wire_flush() or, to a QP of this process, until wire_drain_local(). */
void wire_send(struct hca_qp *qp, struct packet *p, const struct iovec *iov, int niov);
void wire_send_to(struct hca_qp *qp, const struct wire_dest *d, struct packet *p,
		  const struct iovec *iov, int niov);
void wire_flush(void);
unsigned wire_drain_local(void); /* returns packets handled */
/* The QP of this process that this one is connected to, if nothing is to come between
 * them: sockets, faults. */
struct hca_qp *wire_own_peer(const struct hca_qp *qp);
/* How many packets of a message, each so long, one packet may stand for on this way: 1
 * where each is to be seen by a socket or a fault schedule. */
unsigned wire_bulk(const struct wire_dest *d, uint32_t mtu);
/* How many of this many packets of this QP can be sent now; of long ones on a short way some
 * more. */
unsigned wire_room(const struct hca_qp *qp, unsigned want);
/* How many packets of this length can be sent to d now. */
unsigned wire_room_to(const struct wire_dest *d, uint32_t mtu, unsigned want);
/* Will the peer have a request's payload from here, in memory of a GPU, itself? */
bool wire_in_place(const struct hca_qp *qp, void *at, size_t n);
/* Does the process there have packets to take? For other hosts never. */
bool wire_unread(const struct wire_dest *d);
unsigned wire_receive(void);	 /* a batch from shared memory; packets handled */
unsigned wire_receive_sockets(void); /* a batch from the sockets: a system call */
void wire_release_held(void);	 /* delayed packets whose time has come */
/* The engine's thread sleeps until a packet comes or ns have passed: begins (false: there is
 * something to do, and it does not), without hca_lock sleeps (false: nothing lies in a socket),
 * and, with the lock again, ends what it has begun. */
bool wire_sleep_begin(void);
bool wire_sleep(uint64_t ns);
void wire_sleep_end(void);
uint32_t wire_slot(void);

/* ---- wire_raw.c ---- */

/* A raw socket that receives what other hosts send to this slot, with the IPv4
 * header, without an IPv6 header; -EPERM without CAP_NET_RAW. */
int wire_raw_open(const struct in6_addr *addr, uint32_t slot);

/* ---- wire_parse.c ---- */

/* Finds the packet in an IPv4 datagram: its offset and length, and what the ICRC
 * needs. False when the bytes are no whole, unfragmented UDP datagram. */
bool wire_raw_parse(const uint8_t *ip, size_t n, struct packet_addr *a, size_t *off, size_t *len);
/* wire_raw_parse from the UDP header on; addresses are not filled in. */
bool wire_raw_parse_udp(const uint8_t *udp, size_t n, struct packet_addr *a, size_t *off,
			size_t *len);

/* ---- cq.c ---- */

struct cqe {
	uint8_t type; /* enum cqe_type */
	uint8_t opcode; /* of the WQE, for requester CQEs */
	uint8_t syndrome, vendor;
	bool solicited; /* counts for a CQ armed for solicited events */
	bool have_imm;
	uint16_t wqe_counter, slid;
	uint32_t flags_rqpn; /* UD: the sender's QPN, and what is known of its GRH */
	uint32_t qpn, user_index, byte_cnt;
	uint32_t imm; /* network order */
	const uint8_t *inl; /* data in the CQE: 32 bytes, of a 128-byte CQE 64 */
	uint32_t inl_len;
};

enum cqe_type {
	CQE_REQ = 0,
	CQE_RESP_WRITE_IMM = 1,
	CQE_RESP_SEND = 2,
	CQE_RESP_SEND_IMM = 3,
	CQE_RESP_SEND_INV = 4,
	CQE_RESIZE_CQ = 5,
	CQE_REQ_ERR = 13,
	CQE_RESP_ERR = 14,
};

void cq_write(struct hca_cq *cq, const struct cqe *c);
/* cq_write for a request that is done, and has no answer. */
void cq_write_done(struct hca_cq *cq, const struct hca_qp *qp, uint8_t opcode, uint16_t wqe_counter);
void cq_check_arm(struct hca_cq *cq);
/* The CQ has had a CQE, and is waited for: rc_wait.c. */
void cq_waited(struct hca_cq *cq);

/* ---- memory ---- */

/* Translates [addr, addr + len) of the key; NULL when the key is unknown, of
 * another PD, lacks one of the access bits or does not cover the range. */
uint8_t *mr_translate(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access);
/* mr_translate of a key that the peer of this QP named: windows, too (window.c). */
uint8_t *mr_translate_remote(const struct hca_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
			     uint32_t access);
/* mr_translate_remote of any key, into pieces: see mkey_pieces(). */
int mr_pieces_remote(const struct hca_qp *qp, uint32_t key, uint64_t addr, uint64_t len,
		     uint32_t access, struct iovec *iov, int room);
/* ThreadSanitizer: requesters and the owner of the memory may pass it to each other by ways that
 * it does not see (a launcher's barrier). mr_translate acquires the first byte of the region,
 * this releases it; a program that knows pairs them there. Nothing in other builds. */
void mr_accessed(uint32_t key);
/* Ahead of a region's end: what queue pairs that place out of order still hold (rc_order.c). */
void rc_order_settle_all(void);
/* Copies min(sum dst, sum src) bytes from piece to piece, in order. */
void iov_copy(const struct iovec *dst, int ndst, const struct iovec *src, int nsrc);

/* Places a packet's payload, which lies at these pieces. False: it is in another
 * process and could not be read; nothing of it counts as placed. */
bool payload_copy(const struct packet *p, const struct iovec *dst, int ndst,
		  const struct iovec *src, int nsrc);

/* ---- window.c ---- */

struct wqe_umr;
struct wqe_sge;
/* Binds a memory window, fills an indirect key, or takes one back; false when that is not allowed. */
bool window_update(const struct hca_qp *qp, const struct wqe_umr *u, const struct wqe_sge *pieces,
		   unsigned n);
/* By a SEND of the peer; false when the key is of no window bound to this QP. */
bool window_invalidate(const struct hca_qp *qp, uint32_t key);

/* ---- mkey.c ---- */

/* mr_translate() of an indirect key: into how many pieces, at most room; -1 when it is none, does not
 * allow it, or there are more. iov NULL: counts. */
int mkey_pieces(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access,
		struct iovec *iov, int room);
/* NULL, or what is wrong. */
const char *mkey_update(struct hca_mr *m, const struct wqe_umr *u, const struct wqe_sge *sge,
			unsigned n);

/* ---- peer_memory.c ---- */

/* Memory of another process of this user and host, to be read where it lies. */
struct peer_memory {
	int pid;
	uint64_t at, word; /* what stands there in that process, and in no other */
	bool readable; /* until a read fails */
};

/* May it be read? */
bool peer_memory_probe(struct peer_memory *m);
/* All the bytes of the pieces, the last word last; false: not one of them counts. */
bool peer_memory_read(struct peer_memory *m, const struct iovec *dst, int ndst,
		      const struct iovec *src, int nsrc);

/* ---- atomics.c ---- */

/* Executes on naturally aligned guest memory; returns the value before. */
uint64_t atomic_execute(uint8_t *mem, const struct packet *p);
uint64_t atomic_field_add(uint64_t a, uint64_t b, uint64_t boundary);

/* Whether the engine rests by yielding its core. */

/* The engine's thread, once: to be woken amid the time slice of a thread that spins, where the kernel can. */
void yield_short_turns(void);

/* True while whoever shares the core gives it back quickly. The engine's thread only. */
bool yield_pays(uint64_t now_ns);

/* True when it is time for one. */
bool yield_due(uint64_t now_ns);

/* Yields once, and learns from how long it took. */
void yield_core(void);

/* Memory of what each queue pair has, close together and in large pages: among the program's own a
 * thousand of them would lie in as many pages, and the way to each costs more than what is done there. */

/* Zeroed, at a cache line; NULL: no memory. hca_lock held, as for the other. */
void *id_table_get(size_t size);
void id_table_put(void *p, size_t size); /* size: as p was got with; p may be NULL */

/* The long rest of an idle engine: its process's doorbell pages are write-protected
 * (userfaultfd(2)), and the first store to one wakes it. */

enum { TRAP_FDS = 2 };

/* The engine's thread, hca_lock held: from now on no store reaches a doorbell page; whoever
 * tries waits for trap_release(). What came before it has to look for afterwards. False: the
 * kernel, or something in this process, does not allow it, and nothing is protected. */
bool trap_set(void);
bool trap_is_set(void);
/* The engine's thread: the pages are as before, whoever waited goes on. */
void trap_release(void);
/* Fills in what to sleep on while it is set; how many. */
unsigned trap_poll(struct pollfd fds[TRAP_FDS]);

/* Any thread: there will be something to do that no doorbell tells of. */
void trap_wake(void);
/* Any thread: from now on there may be stores that meet no page protection. */
void trap_forbid(void);
void trap_forked(void); /* in the child */

#endif
