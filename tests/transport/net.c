// SPDX-License-Identifier: BSD-3-Clause
/* The transport's calls: gdri_thread_ops. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/transport/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

struct address {
	uint32_t abi, n_pes, n_slots;
	int32_t pid, fd; /* of struct thread_share */
	uint8_t token[THREAD_TOKEN];
};

static struct thread_net *thread_of(struct gdri_net *net)
{
	return (struct thread_net *)(void *)net; /* its first member */
}

static int out_of_memory(void)
{
	gdri_error("thread: out of memory");
	return -GDR_ENOMEM;
}

/* ---- memory ---- */

static int thread_register_heap(struct gdri_net *net, void *heap, size_t len, void *page, size_t page_len,
				struct gdri_mr_keys *keys)
{
	struct thread_net *t = thread_of(net);

	(void)page_len;
	if (page || t->memory.n)
		return -GDR_EINVAL;
	*keys = (struct gdri_mr_keys){THREAD_KEY_SYNC, THREAD_KEY_DATA, THREAD_KEY_SYNC};
	return thread_memory_add(&t->memory, heap, len, 0);
}

static int thread_register_buffer(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey, bool *read_only,
				  void **handle)
{
	struct thread_memory *m = &thread_of(net)->memory;
	uint32_t i;

	if (read_only)
		*read_only = false; /* who registers has looked: host/register.c */
	pthread_mutex_lock(&m->lock);
	for (i = 0; i < THREAD_BUFFERS && m->buffers[i].len; i++)
		;
	if (i < THREAD_BUFFERS)
		m->buffers[i] = (struct thread_buffer){(uintptr_t)addr, len};
	pthread_mutex_unlock(&m->lock);
	if (i == THREAD_BUFFERS)
		return out_of_memory();
	*lkey = THREAD_KEY_BUFFER + i;
	*handle = &m->buffers[i];
	return 0;
}

static int thread_deregister(struct gdri_net *net, void *handle)
{
	struct thread_memory *m = &thread_of(net)->memory;
	struct thread_buffer *b = handle;

	pthread_mutex_lock(&m->lock);
	b->len = 0;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* Keys stay as they are: they are of the heap, whatever its parts. */
static void begin_change(struct thread_memory *m, struct gdri_mr_keys *keys)
{
	int i;

	*keys = (struct gdri_mr_keys){THREAD_KEY_SYNC, THREAD_KEY_DATA, THREAD_KEY_SYNC};
	for (i = 0; i < m->n; i++)
		m->change[i] = THREAD_STAYS;
}

static int thread_grow(struct gdri_net *net, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys)
{
	struct thread_memory *m = &thread_of(net)->memory;

	begin_change(m, keys);
	return thread_memory_add(m, addr, len, offset);
}

static int thread_leave(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys)
{
	struct thread_memory *m = &thread_of(net)->memory;
	int i;

	begin_change(m, keys);
	for (i = 0; i < m->n; i++)
		if (m->share->regions[i].offset - offset < len)
			m->change[i] = THREAD_LEAVES;
	return 0;
}

static void drop_changed(struct thread_memory *m, enum thread_change what)
{
	int i;

	for (i = 0; i < m->n; i++)
		if (m->change[i] == what) /* relaxed: nobody posts to it, or no more */
			__atomic_store_n(&m->share->regions[i].live, 0, __ATOMIC_RELAXED);
}

static void thread_undo(struct gdri_net *net)
{
	struct thread_memory *m = &thread_of(net)->memory;
	struct gdri_mr_keys keys;

	drop_changed(m, THREAD_COMES);
	begin_change(m, &keys);
}

static void thread_drop_left(struct gdri_net *net)
{
	drop_changed(&thread_of(net)->memory, THREAD_LEAVES);
}

static void thread_drop_keys(struct gdri_net *net, int kept)
{
	(void)net;
	(void)kept;
}

/* ---- queues ---- */

static int thread_create_queues(struct gdri_net *net, int n_pes, struct gdri_qp *qps)
{
	struct thread_net *t = thread_of(net);
	struct gdri_net_layout *l = &t->layout;
	size_t i;

	gdri_net_layout(&t->opt, n_pes, l);
	t->memory.n_pes = n_pes;
	t->memory.peers = calloc((size_t)n_pes, sizeof(*t->memory.peers));
	t->bells = calloc(l->n, sizeof(*t->bells));
	t->queues = calloc(l->n, sizeof(*t->queues));
	t->ring = mmap(NULL, l->total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t->ring == MAP_FAILED)
		t->ring = NULL;
	if (!t->memory.peers || !t->bells || !t->queues || !t->ring)
		return out_of_memory();
	memset(t->ring + l->cq, GDRI_NET_CQ_NOTHING, l->n * l->cq_stride);
	for (i = 0; i < l->n; i++) {
		gdri_net_describe(l, (int)i, t->ring, &qps[i]);
		qps[i].qpn = (uint32_t)i + 2;
		qps[i].qpn_shifted = gdri_to_be32(qps[i].qpn << 8).be;
		qps[i].db = &t->bells[i];
		t->queues[i].qp = &qps[i];
	}
	net->address_bytes = sizeof(struct address);
	net->queues_here = true;
	net->host_rings = true;
	return 0;
}

static void thread_address(struct gdri_net *net, void *buf)
{
	const struct thread_net *t = thread_of(net);
	struct address a = {GDR_ABI_VERSION, (uint32_t)t->layout.n_pes, (uint32_t)t->layout.n_slots, getpid(),
			    t->memory.share_fd, {0}};

	memcpy(a.token, t->memory.share->token, sizeof(a.token));
	memcpy(buf, &a, sizeof(a));
}

static int connect_peer(struct thread_net *t, const struct address *a, int peer)
{
	if (a->abi == GDR_ABI_VERSION && a->n_pes == (uint32_t)t->layout.n_pes &&
	    a->n_slots == (uint32_t)t->layout.n_slots)
		return thread_memory_connect(&t->memory, peer, a->pid, a->fd, a->token);
	gdri_error("thread: PE %d has ABI %u and queues to %u PEs, %u to each; expected %d, %d and %d", peer, a->abi,
		   a->n_pes, a->n_slots, GDR_ABI_VERSION, t->layout.n_pes, t->layout.n_slots);
	return -GDR_EMISMATCH;
}

static int thread_connect(struct gdri_net *net, const void *addresses, int pe, int n_pes, struct gdri_qp *qps)
{
	struct gdri_mr_keys keys = {0, THREAD_KEY_DATA, THREAD_KEY_SYNC};
	struct thread_net *t = thread_of(net);
	const struct address *all = addresses;
	int i, ret = 0;

	if (!t->ring || n_pes != t->layout.n_pes || pe < 0 || pe >= n_pes)
		return -GDR_EINVAL;
	t->memory.pe = pe;
	for (i = 0; i < n_pes && !ret; i++) {
		ret = connect_peer(t, &all[i], i);
		if (!ret)
			gdri_net_set_keys(&t->layout, i, &keys, qps);
	}
	return ret ? ret : thread_engine_start(t);
}

/* ---- all of it ---- */

static void thread_close(struct gdri_net *net)
{
	struct thread_net *t = thread_of(net);

	if (!t)
		return;
	thread_engine_stop(t);
	thread_memory_close(&t->memory);
	if (t->ring)
		munmap(t->ring, t->layout.total);
	free(t->queues);
	free(t->bells);
	free(t);
}

static int thread_open(const struct gdri_net_how *how, struct gdri_net **out)
{
	struct thread_net *t;
	int ret;

	*out = NULL;
	if (how->cuda) {
		gdri_error("thread: for the host device alone");
		return -GDR_ENOTSUP;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return out_of_memory();
	t->net = (struct gdri_net){.ops = &gdri_thread_ops, .name = "thread", .text = "a thread of each PE",
				   .heap_text = "host memory", .queue_text = "host memory",
				   .bell_text = "a thread looks at them"};
	t->opt = *how->opt;
	ret = thread_memory_open(&t->memory);
	if (ret)
		thread_close(&t->net);
	else
		*out = &t->net;
	return ret;
}

const struct gdri_net_ops gdri_thread_ops = {
	.open = thread_open,
	.close = thread_close,
	.register_heap = thread_register_heap,
	.register_buffer = thread_register_buffer,
	.deregister = thread_deregister,
	.grow = thread_grow,
	.leave = thread_leave,
	.undo = thread_undo,
	.drop_left = thread_drop_left,
	.drop_keys = thread_drop_keys,
	.create_queues = thread_create_queues,
	.address = thread_address,
	.connect = thread_connect,
};
