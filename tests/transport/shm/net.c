// SPDX-License-Identifier: BSD-3-Clause
/* The transport's calls: gdri_shm_ops. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "tests/transport/shm/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gdr/status.h>

#include "runtime/core/log.h"

struct address {
	uint32_t abi, n_pes, n_slots;
	int32_t pid, fd; /* of struct shm_share */
	uint8_t token[SHM_TOKEN];
};

static struct shm_net *shm_of(struct gdri_net *net)
{
	return (struct shm_net *)(void *)net; /* its first member */
}

static int out_of_memory(void)
{
	gdri_error("shm: out of memory");
	return -GDR_ENOMEM;
}

/* ---- memory ---- */

static int shm_register_heap(struct gdri_net *net, void *heap, size_t len, void *page, size_t page_len,
				struct gdri_mr_keys *keys)
{
	struct shm_net *t = shm_of(net);

	(void)page_len;
	if (page || t->memory.n)
		return -GDR_EINVAL;
	*keys = (struct gdri_mr_keys){SHM_KEY_SYNC, SHM_KEY_DATA, SHM_KEY_SYNC};
	return shm_memory_add(&t->memory, heap, len, 0);
}

static int shm_register_buffer(struct gdri_net *net, void *addr, size_t len, uint32_t *lkey, bool *read_only,
				  void **handle)
{
	struct shm_memory *m = &shm_of(net)->memory;
	uint32_t i;

	if (read_only)
		*read_only = false; /* who registers has looked: host/register.c */
	pthread_mutex_lock(&m->lock);
	for (i = 0; i < SHM_BUFFERS && m->buffers[i].len; i++)
		;
	if (i < SHM_BUFFERS)
		m->buffers[i] = (struct shm_buffer){(uintptr_t)addr, len};
	pthread_mutex_unlock(&m->lock);
	if (i == SHM_BUFFERS)
		return out_of_memory();
	*lkey = SHM_KEY_BUFFER + i;
	*handle = &m->buffers[i];
	return 0;
}

static int shm_deregister(struct gdri_net *net, void *handle)
{
	struct shm_memory *m = &shm_of(net)->memory;
	struct shm_buffer *b = handle;

	pthread_mutex_lock(&m->lock);
	b->len = 0;
	pthread_mutex_unlock(&m->lock);
	return 0;
}

/* Keys stay as they are: they are of the heap, whatever its parts. */
static void begin_change(struct shm_memory *m, struct gdri_mr_keys *keys)
{
	int i;

	*keys = (struct gdri_mr_keys){SHM_KEY_SYNC, SHM_KEY_DATA, SHM_KEY_SYNC};
	for (i = 0; i < m->n; i++)
		m->change[i] = SHM_STAYS;
}

static int shm_grow(struct gdri_net *net, void *addr, size_t len, uint64_t offset, struct gdri_mr_keys *keys)
{
	struct shm_memory *m = &shm_of(net)->memory;

	begin_change(m, keys);
	return shm_memory_add(m, addr, len, offset);
}

static int shm_leave(struct gdri_net *net, uint64_t offset, size_t len, struct gdri_mr_keys *keys)
{
	struct shm_memory *m = &shm_of(net)->memory;
	int i;

	begin_change(m, keys);
	for (i = 0; i < m->n; i++)
		if (m->share->regions[i].offset - offset < len)
			m->change[i] = SHM_LEAVES;
	return 0;
}

static void drop_changed(struct shm_memory *m, enum shm_change what)
{
	int i;

	for (i = 0; i < m->n; i++)
		if (m->change[i] == what) /* relaxed: nobody posts to it, or no more */
			__atomic_store_n(&m->share->regions[i].live, 0, __ATOMIC_RELAXED);
}

static void shm_undo(struct gdri_net *net)
{
	struct shm_memory *m = &shm_of(net)->memory;
	struct gdri_mr_keys keys;

	drop_changed(m, SHM_COMES);
	begin_change(m, &keys);
}

static void shm_drop_left(struct gdri_net *net)
{
	drop_changed(&shm_of(net)->memory, SHM_LEAVES);
}

static void shm_drop_keys(struct gdri_net *net, int kept)
{
	(void)net;
	(void)kept;
}

/* ---- queues ---- */

static int shm_create_queues(struct gdri_net *net, int n_pes, struct gdri_qp *qps)
{
	struct shm_net *t = shm_of(net);
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

static void shm_address(struct gdri_net *net, void *buf)
{
	const struct shm_net *t = shm_of(net);
	struct address a = {GDR_ABI_VERSION, (uint32_t)t->layout.n_pes, (uint32_t)t->layout.n_slots, getpid(),
			    t->memory.share_fd, {0}};

	memcpy(a.token, t->memory.share->token, sizeof(a.token));
	memcpy(buf, &a, sizeof(a));
}

static int connect_peer(struct shm_net *t, const struct address *a, int peer)
{
	if (a->abi == GDR_ABI_VERSION && a->n_pes == (uint32_t)t->layout.n_pes &&
	    a->n_slots == (uint32_t)t->layout.n_slots)
		return shm_memory_connect(&t->memory, peer, a->pid, a->fd, a->token);
	gdri_error("shm: PE %d has ABI %u and queues to %u PEs, %u to each; expected %d, %d and %d", peer, a->abi,
		   a->n_pes, a->n_slots, GDR_ABI_VERSION, t->layout.n_pes, t->layout.n_slots);
	return -GDR_EMISMATCH;
}

static int shm_connect(struct gdri_net *net, const void *addresses, int pe, int n_pes, struct gdri_qp *qps)
{
	struct gdri_mr_keys keys = {0, SHM_KEY_DATA, SHM_KEY_SYNC};
	struct shm_net *t = shm_of(net);
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
	return ret ? ret : shm_engine_start(t);
}

/* ---- all of it ---- */

static void shm_net_close(struct gdri_net *net)
{
	struct shm_net *t = shm_of(net);

	if (!t)
		return;
	shm_engine_stop(t);
	shm_memory_close(&t->memory);
	if (t->ring)
		munmap(t->ring, t->layout.total);
	free(t->queues);
	free(t->bells);
	free(t);
}

static int shm_net_open(const struct gdri_net_how *how, struct gdri_net **out)
{
	struct shm_net *t;
	int ret;

	*out = NULL;
	if (how->cuda) {
		gdri_error("shm: for the host device alone");
		return -GDR_ENOTSUP;
	}
	t = calloc(1, sizeof(*t));
	if (!t)
		return out_of_memory();
	t->net = (struct gdri_net){.ops = &gdri_shm_ops, .name = "shm", .text = "a thread of each PE",
				   .heap_text = "host memory", .queue_text = "host memory",
				   .bell_text = "a thread looks at them"};
	t->opt = *how->opt;
	ret = shm_memory_open(&t->memory);
	if (ret)
		shm_net_close(&t->net);
	else
		*out = &t->net;
	return ret;
}

const struct gdri_net_ops gdri_shm_ops = {
	.open = shm_net_open,
	.close = shm_net_close,
	.register_heap = shm_register_heap,
	.register_buffer = shm_register_buffer,
	.deregister = shm_deregister,
	.grow = shm_grow,
	.leave = shm_leave,
	.undo = shm_undo,
	.drop_left = shm_drop_left,
	.drop_keys = shm_drop_keys,
	.create_queues = shm_create_queues,
	.address = shm_address,
	.connect = shm_connect,
};
