/* SPDX-License-Identifier: BSD-3-Clause */
/* Contract between the runtime and a transport: what carries operations to PEs whose memory is not mapped. Device code
 * posts to the queues of struct gdri_qp and polls their completions (device/gdr/impl/queue); a transport brings the
 * other end of them. It is a folder and a row below, and nothing outside its folder includes what is in it. Where names
 * say nic (gdr_job_info.n_nic, GDRI_DEV_NIC_ATOMICS, the NIC's fences) they mean whatever transport is in use.
 *
 * All functions return 0 or -GDR_E*, after logging why. One thread at a time calls, except register_buffer,
 * deregister and drive, which any threads may call. Keys are in host order; addresses of the heap are offsets
 * from its begin. Addresses received from other PEs are untrusted: the transport checks them. */
#ifndef GDRI_NET_H
#define GDRI_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>

struct gdri_cuda;
struct gdri_inet;
struct gdri_options;

struct gdri_mr_keys {
	uint32_t lkey, rkey_data, rkey_sync; /* data: writes may overtake each other; sync: strict */
};

/* What a transport is opened for. */
struct gdri_net_how {
	const struct gdri_options *opt; /* copied */
	const char *near;	/* sysfs PCI path of the GPU; NULL: none */
	unsigned int turn;	/* number of the PE on its node: of devices equally near each takes another one */
	/* This machine's address by which the other PEs are reached, for a transport whose devices have such addresses
	 * and that has the choice; NULL or family 0: none is known. */
	const struct gdri_inet *from;
	int apart; /* 1 + a PE in another PID namespace, where process numbers mean others; 0: there is none */
	struct gdri_cuda *cuda; /* whose memory may be registered; NULL: memory of the host alone */
	bool host_posts;	/* threads of the host post and poll, though there is a GPU */
};

struct gdri_net {
	const struct gdri_net_ops *ops;
	const char *name, *text; /* of the device: "mlx5_0", and a line on it */
	const char *stays; /* why it reaches PEs of this node alone, and what to do; NULL: it reaches others */
	const char *patience; /* the option that bounds how long a peer may be silent before it is lost; NULL: none */
	/* In words, with what to do where it is not the best that there is. From register_heap on: where the heap lies,
	 * how the device knows it. From create_queues on: where the queues lie, who rings their doorbells. */
	const char *heap_text, *queue_text, *bell_text;
	bool relaxed_only; /* the keys called strict are not: writes to the heap may overtake each other on PCIe */
	/* From register_heap on: what the NIC wrote may be seen later than what it wrote behind that, although the GPU
	 * says that it keeps the order. */
	bool late_writes;
	int threads; /* of the transport's own, which carry the queues of a net with `drive` */
	const char *order_text; /* from connect on: in what order writes of a queue are placed; NULL: in theirs */
	/* From create_queues on. */
	size_t address_bytes; /* equal on all PEs */
	bool queues_here;     /* the host reads and writes the memory of the queues */
	bool queues_on_gpu;   /* all of a queue is the GPU's: its memory, and its threads ring */
	/* Doorbells are words of memory, which a thread polls, and not registers: those of a transport in software, or
	 * of a GPU that cannot map the device's. Device code then orders its stores to them: GDRI_DEV_HOST_RINGS. */
	bool host_rings;
	bool early;	/* doorbells may come before the record, and come again behind it: GDRI_DEV_EARLY */
	bool no_record; /* some queues have no doorbell record: GDRI_DEV_NO_RECORD */
	/* From connect on, equal on all PEs: two writes of a queue may be placed in any order; atomics wait for them,
	 * and what has GDRI_FM_STRONG for all that is before it. */
	bool relaxed;
	bool combines; /* GDRI_OPMOD_COMBINE is executed: sums of floats, maxima and minima are one command */
};

/* What the other end of the queues executes. The format is that of mlx5: device/gdr/impl/queue/wqe.h writes it,
 * mlx5_hw.h has the fields, execute.h is of use to such an end. Numbers are big-endian.
 *
 * Posting: blocks of 64 bytes go into gdri_qp.sq, a ring of `depth`; then the low 16 bits of the index behind them
 * into *dbrec, the doorbell record; then 8 bytes, queue number and index, into *db, the doorbell. The doorbell
 * says that the record is new, and no more: one may stand for several, and the record may be ahead of it. Who sees
 * the doorbell sees the record (fence F2); who sees the record sees the blocks and what they point to (F1). A transport
 * may have queues without a record (dbrec NULL, gdri_net.no_record), whose doorbells come in their order (F5, F6).
 *
 * WQE: byte 0 is the opmod, bytes 1 and 2 the index, byte 3 the opcode (GDRI_OP_NOP, _WRITE, _READ, _DUMP,
 * _ATOMIC_CS, _ATOMIC_FA, _MASKED_CS, _MASKED_FA, and where gdri_net.combines is set _MASKED_FA with
 * GDRI_OPMOD_COMBINE, whose local end has 4 or 8 bytes). The low 6 bits of byte 7 count segments of 16 bytes; a WQE
 * takes whole blocks, two at most, of which the second may be the ring's first. In byte 11 GDRI_CE_ALWAYS asks for
 * a completion, which else comes of an error alone, GDRI_FM_FENCE waits for the reads and atomics before,
 * and GDRI_FM_STRONG, of which gdr makes use where gdri_net.relaxed is set, for writes too.
 * Bytes 16 to 27 are an offset in the peer's heap and its rkey (not of NOP and DUMP). Then come the operands of an
 * atomic, then the local end: length, lkey, address, or, with GDRI_INLINE_BIT in the length of a WRITE, the bytes
 * themselves. The old value of an atomic arrives in host order where it has 8 bytes, big-endian where it has 4.
 * WQEs of a queue take effect in their order; but what follows a read or an atomic without the fence need not wait
 * for it.
 *
 * CQE: device code reads tail (index of the WQE's first block, GDRI_CQE_REQ or GDRI_CQE_REQ_ERR, owner bit), and
 * of errors wqe_opcode_qpn, syndrome and vendor_syndrome. tail is stored last, as a whole, with release. It says
 * that all WQEs up to this one are complete. With cq_mask 0 the CQ has one entry, which each completion
 * overwrites. Else completion i goes to entry i & cq_mask, and its owner bit is the lowest bit of its lap, i /
 * (cq_mask + 1). At first all bytes are GDRI_NET_CQ_NOTHING.
 *
 * Errors: a WQE that fails gets a completion with its syndrome (PRM), whatever byte 11 says. From then on the
 * queue executes nothing, and each WQE gets one with GDRI_SYND_FLUSH. What was under way beside the failed one, for it
 * need not wait for it (a read, an atomic without the fence; with gdri_net.relaxed also a write), may have taken effect
 * although its completion is the flush.
 *
 * The first that posts is gdr_init: on the host device its link check (runtime/path/link_check.c) has every queue,
 * also those to the PE itself, carry a write of 4 KiB, a read and an atomic, and names the queue and the operation
 * that fail. */
struct gdri_net_ops {
	/* Whether this PE has what the transport takes, be it usable or not; NULL: each has. Where GDR_TRANSPORTS
	 * allows several, the first that any PE has is opened by all. takes: that in words, with its package. */
	const char *takes;
	bool (*present)(const struct gdri_net_how *how);
	int (*open)(const struct gdri_net_how *how, struct gdri_net **out);
	/* Also NULL, and after any failure; ends all that is under way. What other PEs post to this one from then on
	 * still ends: as lost (GDRI_NET_LOST, net/execute.h), or done, where the memory is still there for them. */
	void (*close)(struct gdri_net *net);
	/* NULL: it has no threads of its own. watch: by another thread, ten times a second: one that stands still is
	 * told of, once. lost: a PE of the job is. stop: those threads end, before all else is taken down; false: one
	 * does not, in bounded time: all that the job has is left to it, and close is not called. */
	void (*watch)(struct gdri_net *net, bool lost);
	bool (*stop)(struct gdri_net *net);

	/* Once. page: the strict key and the local one are those of this memory, in which host threads meet, and the
	 * data key, of the heap, is strict, too; NULL: all three are of the heap. A transport that
	 * cannot do that refuses a page with -GDR_EINVAL. */
	int (*register_heap)(struct gdri_net *net, void *heap, size_t len, void *page, size_t page_len,
			     struct gdri_mr_keys *keys);
	/* Memory for local ends of transfers, by its own addresses. *read_only: it may be read alone; NULL: that
	 * fails. */
	int (*register_buffer)(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey, bool *read_only,
			       void **handle);
	int (*deregister)(struct gdri_net *net, void *handle);

	/* The heap has len bytes more, at addr and this offset: keys for the whole heap. Those of before stay valid for
	 * what they cover. */
	int (*grow)(struct gdri_net *net, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys);
	/* What grow() added from offset on, len bytes in all, leaves: keys for the rest. Those of before cover it
	 * until drop_left(). */
	int (*leave)(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys);
	void (*undo)(struct gdri_net *net); /* takes the last grow() or leave() back, whose keys nobody has used */
	void (*drop_left)(struct gdri_net *net);
	void (*drop_keys)(struct gdri_net *net, int kept); /* of grow() and leave(), but for the last ones */

	/* gdri_net_slots() queue pairs to each of n_pes PEs, oneself too, in the order of runtime/net/queues.h. qps:
	 * zeroed; all constants but the keys are filled. */
	int (*create_queues)(struct gdri_net *net, int n_pes, struct gdri_qp *qps);
	/* What every PE is told of this one: address_bytes. */
	void (*address)(struct gdri_net *net, void *buf);
	/* addresses: n_pes * address_bytes, in the order of PEs. Connects all queue pairs and fills their keys: from
	 * here on what is posted goes out. */
	int (*connect)(struct gdri_net *net, const void *addresses, int pe, int n_pes, struct gdri_qp *qps);

	/* A thread that waits carries the queues a step; whether it found something to do. Any thread, one at a time,
	 * from connect to close; spare: there is a core for each thread that may wait and for those of the transport.
	 * NULL: they need no thread of this process, or one of the transport's alone. */
	bool (*drive)(struct gdri_net *net, bool spare);

	/* Logs what the device has said by itself since: that its port is down, that its address has changed, that it
	 * has failed. Called ten times a second by a thread of its own; NULL: it says nothing. */
	void (*look)(struct gdri_net *net);

	/* In words, of a PE that does not answer: the way to it and what to change, behind "else". NULL: the device is
	 * stuck. */
	void (*way)(struct gdri_net *net, int pe, char *text, size_t room);
};

/* A row for each transport, whose folder defines gdri_<name>_ops; the name is its word in GDR_TRANSPORTS. A library
 * that is built for tests may have more, one or several: -D"GDRI_NET_MORE(row)=row(one) row(other)". */
#ifndef GDRI_NET_MORE
#define GDRI_NET_MORE(row)
#endif
#define GDRI_NET_ROWS(row) row(nic) row(ofi) GDRI_NET_MORE(row)

#define GDRI_NET_WORD(name) "|" #name
#define GDRI_NET_WORDS	    "p2p" GDRI_NET_ROWS(GDRI_NET_WORD) /* of GDR_TRANSPORTS */

#define GDRI_NET_DECLARE(name) extern const struct gdri_net_ops gdri_##name##_ops;
GDRI_NET_ROWS(GDRI_NET_DECLARE)

/* Rows, of those that GDR_TRANSPORTS allows, which this PE has: bits of opt->transports. */
uint32_t gdri_net_present(const struct gdri_net_how *how);
/* Takes the rows in front of the first of these away from opt; false: none is there, opt stays. */
bool gdri_net_choose(struct gdri_options *opt, uint32_t present);

/* What the rows that GDR_TRANSPORTS allows and that this PE has not take: "nic takes a ConnectX, ofi takes ...". */
void gdri_net_lacks(const struct gdri_options *opt, uint32_t present, char *buf, size_t room);

/* The first row of those that GDR_TRANSPORTS allows, NULL: none. */
const struct gdri_net_ops *gdri_net_chosen(const struct gdri_options *opt);
/* Its word, for messages; where GDR_TRANSPORTS allows none those of all rows: "nic". */
const char *gdri_net_word(const struct gdri_options *opt);

#endif
