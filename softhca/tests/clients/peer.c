/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets up verbs_data's side of the pair (peer.h). */
#include "dynamic.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ACCESS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* What one side tells the other: itself, then each queue pair. Both are the same machine type. */
struct hello {
	uint64_t digest; /* of the options: both must draw the same plan */
	uint64_t address[2];
	uint32_t rkey[2];
	union ibv_gid gid;
	uint32_t lid;
};

struct hello_qp {
	uint32_t number, psn;
};

static int complain(const char *what)
{
	perror(what);
	return -1;
}

static int tcp_listen(const struct addrinfo *at)
{
	struct timeval limit = {PEER_TIMEOUT, 0};
	int on = 1, fd = -1, s = socket(at->ai_family, SOCK_STREAM, 0);

	if (s < 0)
		return -1;
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!bind(s, at->ai_addr, at->ai_addrlen) && !listen(s, 1))
		do
			fd = accept(s, NULL, NULL);
		while (fd < 0 && errno == EINTR); /* stopped, and continued */
	close(s);
	return fd;
}

static int tcp_open(struct peer *p)
{
	const struct config *c = p->config;
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = AF_INET,
				 .ai_flags = c->host ? 0 : AI_PASSIVE};
	struct timeval limit = {PEER_TIMEOUT, 0};
	struct addrinfo *at;

	if (getaddrinfo(c->host, c->port, &hints, &at))
		return complain("getaddrinfo");
	if (!c->host) {
		p->tcp = tcp_listen(at);
	} else {
		p->tcp = socket(at->ai_family, SOCK_STREAM, 0);
		if (p->tcp >= 0 && connect(p->tcp, at->ai_addr, at->ai_addrlen)) {
			close(p->tcp);
			p->tcp = -1;
		}
	}
	freeaddrinfo(at);
	if (p->tcp < 0)
		return complain("no connection to the other side");
	setsockopt(p->tcp, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return 0;
}

static int swap(struct peer *p, const void *mine, void *theirs, size_t size)
{
	size_t have = 0;
	ssize_t n;

	if (send(p->tcp, mine, size, MSG_NOSIGNAL) != (ssize_t)size)
		return complain("the other side");
	while (have < size) {
		n = recv(p->tcp, (char *)theirs + have, size - have, MSG_WAITALL);
		if (n == 0 || (n < 0 && errno != EINTR)) /* stopped, and continued */
			return complain("the other side");
		have += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

int peer_barrier(struct peer *p)
{
	char mine = 'b', theirs;

	return swap(p, &mine, &theirs, 1);
}

static int open_device(struct peer *p)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		return complain("no device");
	p->ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	if (!p->ctx)
		return complain("ibv_open_device");
	p->pd = ibv_alloc_pd(p->ctx);
	return p->pd ? 0 : complain("ibv_alloc_pd");
}

static int make_memory(struct peer *p)
{
	const struct config *c = p->config;
	int fd = -1;

	p->plan_size = plan_memory(c);
	p->size = p->plan_size + (c->srq ? (size_t)c->size * c->ops : 0);
	p->size = (p->size + 4095) & ~(size_t)4095;
	if (c->file)
		fd = memfd_create("verbs_data", MFD_CLOEXEC);
	if (c->file && (fd < 0 || ftruncate(fd, (off_t)p->size)))
		return complain("memfd");
	p->memory = mmap(NULL, p->size, PROT_READ | PROT_WRITE,
			 c->file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (p->memory == MAP_FAILED)
		return complain("mmap");
	p->mr[0] = ibv_reg_mr(p->pd, p->memory, p->size, ACCESS);
	p->mr[1] = ibv_reg_mr_iova(p->pd, p->memory, p->size, 0, ACCESS);
	return p->mr[0] && p->mr[1] ? 0 : complain("ibv_reg_mr");
}

static int make_cqs(struct peer *p)
{
	const struct config *c = p->config;

	if (c->events) {
		p->channel = ibv_create_comp_channel(p->ctx);
		if (!p->channel)
			return complain("ibv_create_comp_channel");
	}
	p->cq[0] = ibv_create_cq(p->ctx, (int)(c->qps * c->depth), NULL, p->channel, 0);
	p->cq[1] = ibv_create_cq(p->ctx, (int)c->ops + 1, NULL, p->channel, 0);
	if (!p->cq[0] || !p->cq[1])
		return complain("ibv_create_cq");
	if (c->srq) {
		struct ibv_srq_init_attr a = {.attr = {.max_wr = c->ops, .max_sge = c->sges}};

		p->srq = ibv_create_srq(p->pd, &a);
		if (!p->srq)
			return complain("ibv_create_srq");
	}
	return 0;
}

static struct ibv_qp *make_qp(struct peer *p, struct ibv_srq *srq)
{
	const struct config *c = p->config;
	struct ibv_qp_init_attr_ex a = {
		.qp_type = c->unreliable ? IBV_QPT_UC : IBV_QPT_RC,
		.send_cq = p->cq[0], .recv_cq = p->cq[1], .srq = srq, .pd = p->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {.max_send_wr = c->depth, .max_recv_wr = srq ? 0 : c->ops,
			.max_send_sge = c->sges, .max_recv_sge = srq ? 0 : c->sges,
			.max_inline_data = c->inline_size},
	};

	if (c->new_api) {
		a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		a.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				   IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
		if (!c->unreliable)
			a.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ |
					    IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
					    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
	}
	return ibv_create_qp_ex(p->ctx, &a);
}

static int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS};

	return ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS);
}

enum ibv_mtu peer_mtu(unsigned mtu)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (mtu > 256u << (code - IBV_MTU_256) && code < IBV_MTU_4096)
		code++;
	return code;
}

static struct ibv_ah_attr path_to(const struct peer *p, const struct hello *h)
{
	return (struct ibv_ah_attr){
		.port_num = 1, .dlid = (uint16_t)h->lid, .is_global = !h->lid,
		.grh = {.dgid = h->gid, .hop_limit = 64, .sgid_index = (uint8_t)p->config->gid}};
}

static int connect_qp(struct peer *p, struct ibv_qp *qp, const struct hello *h,
		      const struct hello_qp *there, uint32_t psn)
{
	const struct config *c = p->config;
	int rtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	int rts = IBV_QP_STATE | IBV_QP_SQ_PSN;
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = peer_mtu(c->mtu),
		.dest_qp_num = there->number, .rq_psn = there->psn, .max_dest_rd_atomic = 16,
		.min_rnr_timer = 1, .ah_attr = path_to(p, h),
	};

	if (!c->unreliable) {
		rtr |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		rts |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_MAX_QP_RD_ATOMIC;
	}
	if (ibv_modify_qp(qp, &a, rtr))
		return complain("to RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				 .rnr_retry = 7, .sq_psn = psn, .max_rd_atomic = 16};
	return ibv_modify_qp(qp, &a, rts) ? complain("to RTS") : 0;
}

static uint64_t digest(const struct config *c)
{
	uint64_t s = c->seed;
	unsigned n[] = {c->unreliable, c->srq,	c->qps, c->rounds,	c->ops,	  c->size,
			c->dynamic,    c->sges, c->mtu, c->inline_size, c->depth};

	for (unsigned i = 0; i < sizeof(n) / sizeof(n[0]); i++)
		s = draw(&s) ^ n[i];
	return s;
}

static int exchange(struct peer *p)
{
	const struct config *c = p->config;
	struct hello mine = {.digest = digest(c), .address = {(uintptr_t)p->memory, 0},
			     .rkey = {p->mr[0]->rkey, p->mr[1]->rkey}}, theirs;
	struct hello_qp q[2][PLAN_QPS];
	struct ibv_port_attr port;
	struct ibv_ah_attr to;

	if (ibv_query_port(p->ctx, 1, &port) || ibv_query_gid(p->ctx, 1, (int)c->gid, &mine.gid))
		return complain("query");
	mine.lid = port.link_layer == IBV_LINK_LAYER_INFINIBAND ? port.lid : 0;
	for (unsigned i = 0; i < c->qps; i++)
		q[0][i] = (struct hello_qp){p->dct ? p->dct[i]->qp_num : p->qp[i]->qp_num,
					    (uint32_t)random() & 0xffffff};
	if (swap(p, &mine, &theirs, sizeof(mine)) || swap(p, q[0], q[1], sizeof(q[0])))
		return -1;
	if (mine.digest != theirs.digest) {
		fprintf(stderr, "the other side was given other options\n");
		return -1;
	}
	memcpy(p->remote.address, theirs.address, sizeof(theirs.address));
	memcpy(p->remote.rkey, theirs.rkey, sizeof(theirs.rkey));
	for (unsigned i = 0; i < c->qps; i++)
		if (p->dct)
			p->remote_dct[i] = q[1][i].number;
		else if (connect_qp(p, p->qp[i], &theirs, &q[1][i], q[0][i].psn))
			return -1;
	to = path_to(p, &theirs);
	if (p->dct && dynamic_connect(p, &to, q[0][0].psn))
		return complain("dynamically connected");
	return peer_barrier(p);
}

int peer_open(struct peer *p, const struct config *c)
{
	memset(p, 0, sizeof(*p));
	p->config = c;
	p->side = c->host != NULL;
	srandom((unsigned)getpid()); /* first PSNs */
	if (open_device(p) || make_memory(p) || make_cqs(p))
		return -1;
	p->first = make_qp(p, NULL);
	if (!p->first)
		return complain("queue pair");
	p->qp = calloc(c->qps, sizeof(struct ibv_qp *));
	if (c->dynamic && dynamic_open(p))
		return -1;
	for (unsigned i = 0; !c->dynamic && i < c->qps; i++) {
		p->qp[i] = make_qp(p, p->srq);
		if (!p->qp[i] || to_init(p->qp[i]))
			return complain("queue pair");
	}
	return tcp_open(p) || exchange(p) ? -1 : 0;
}

void peer_close(struct peer *p)
{
	int bad = 0;

	bad |= p->dct ? dynamic_close(p) : 0;
	for (unsigned i = 0; !p->dct && i < p->config->qps; i++)
		bad |= ibv_destroy_qp(p->qp[i]);
	free(p->qp);
	bad |= ibv_destroy_qp(p->first);
	bad |= p->srq ? ibv_destroy_srq(p->srq) : 0;
	for (int i = 0; i < 2; i++)
		bad |= ibv_destroy_cq(p->cq[i]) | ibv_dereg_mr(p->mr[i]);
	bad |= p->channel ? ibv_destroy_comp_channel(p->channel) : 0;
	bad |= ibv_dealloc_pd(p->pd) | ibv_close_device(p->ctx);
	munmap(p->memory, p->size);
	close(p->tcp);
	if (bad)
		fprintf(stderr, "something could not be destroyed\n");
}

uint64_t peer_address(const struct peer *p, unsigned key, uint32_t at)
{
	return (key ? 0 : (uintptr_t)p->memory) + at;
}
