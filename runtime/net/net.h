/* SPDX-License-Identifier: BSD-3-Clause */
/* Contract between the runtime and a transport: what carries operations to PEs whose memory is not mapped. Device code
 * posts to the queues of struct gdri_qp and polls their completions (device/gdr/impl/queue); a transport brings the
 * other end of them. It is a folder and a row below, and nothing outside its folder names it.
 *
 * All functions return 0 or -GDR_E*, after logging why. One thread at a time calls, except register_buffer and
 * deregister, which any threads may call from open to close. Keys are in host order; addresses of the heap are offsets
 * from its begin. Addresses received from other PEs are untrusted: the transport checks them. */
#ifndef GDRI_NET_H
#define GDRI_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/impl/arch/abi.h>

struct gdri_cuda;
struct gdri_options;

struct gdri_mr_keys {
	uint32_t lkey, rkey_data, rkey_sync; /* data: writes may overtake each other; sync: strict */
};

/* What a transport is opened for. */
struct gdri_net_how {
	const struct gdri_options *opt; /* copied */
	const char *near;	/* sysfs PCI path of the GPU; NULL: none */
	unsigned int turn;	/* number of the PE on its node: of devices equally near each takes another one */
	struct gdri_cuda *cuda; /* whose memory may be registered; NULL: memory of the host alone */
	bool host_posts;	/* threads of the host post and poll, though there is a GPU */
};

struct gdri_net {
	const struct gdri_net_ops *ops;
	const char *name, *text; /* of the device: "mlx5_0", and a line on it */
	/* In words, with what to do where it is not the best that there is. From register_heap on: where the heap lies,
	 * how the device knows it. From create_queues on: where the queues lie, who rings their doorbells. */
	const char *heap_text, *queue_text, *bell_text;
	/* From create_queues on. */
	size_t address_bytes; /* equal on all PEs */
	bool queues_here;     /* the host reads and writes the memory of the queues */
	bool queues_near;     /* all of a queue is the GPU's: its memory, and its threads ring */
	bool host_rings;      /* doorbells are words of host memory, which a thread polls: GDRI_DEV_HOST_RINGS */
};

struct gdri_net_ops {
	int (*open)(const struct gdri_net_how *how, struct gdri_net **out);
	void (*close)(struct gdri_net *net); /* also NULL, and after any failure; ends all that is under way */

	/* Once. page: the strict key and the local one are those of this memory, in which host threads meet, and the
	 * data key, of the heap, is strict, too; NULL: all three are of the heap. */
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
};

/* A row for each transport, whose folder defines gdri_<name>_ops; the name is its word in GDR_TRANSPORTS. A library
 * that is built for tests may have more. */
#ifndef GDRI_NET_MORE
#define GDRI_NET_MORE(row)
#endif
#define GDRI_NET_ROWS(row) row(nic) GDRI_NET_MORE(row)

#define GDRI_NET_WORD(name) "|" #name
#define GDRI_NET_WORDS	    "p2p" GDRI_NET_ROWS(GDRI_NET_WORD) /* of GDR_TRANSPORTS */

#define GDRI_NET_DECLARE(name) extern const struct gdri_net_ops gdri_##name##_ops;
GDRI_NET_ROWS(GDRI_NET_DECLARE)

/* The first row of those that GDR_TRANSPORTS allows, NULL: none. */
const struct gdri_net_ops *gdri_net_chosen(const struct gdri_options *opt);

#endif
