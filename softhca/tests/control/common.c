/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the control tests (common.h). */
#include "common.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void put_bits(void *mailbox, unsigned bit, unsigned width, uint64_t value)
{
	uint8_t *m = mailbox;

	for (unsigned i = 0; i < width; i++) {
		unsigned at = bit + width - 1 - i;
		uint8_t mask = (uint8_t)(0x80 >> at % 8);

		m[at / 8] = (uint8_t)(value >> i & 1 ? m[at / 8] | mask : m[at / 8] & ~mask);
	}
}

uint64_t get_bits(const void *mailbox, unsigned bit, unsigned width)
{
	const uint8_t *m = mailbox;
	uint64_t v = 0;

	for (unsigned i = bit; i < bit + width; i++)
		v = v << 1 | (m[i / 8] >> (7 - i % 8) & 1);
	return v;
}

struct ibv_context *open_device(void)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	assert_string_equal(ibv_get_device_name(list[0]), "mlx5_0");
	assert_true(mlx5dv_is_supported(list[0]));
	ctx = mlx5dv_open_device(list[0], &attr);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

uint32_t pd_number(struct ibv_pd *pd)
{
	struct mlx5dv_pd dv;
	struct mlx5dv_obj obj = {.pd = {.in = pd, .out = &dv}};

	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD), 0);
	return dv.pdn;
}

bool link_is_ib(struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(ctx, 1, &port), 0);
	return port.link_layer == IBV_LINK_LAYER_INFINIBAND;
}

unsigned open_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	unsigned n = 0;
	char to[64];

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), e->d_name, to, sizeof(to) - 1);

		to[len > 0 ? len : 0] = '\0';
		/* An idle device has these of its own. */
		n += !strstr(to, "[userfaultfd]") && !strstr(to, "[eventfd]");
	}
	closedir(dir);
	return n;
}

void dq_memory(struct dq *q, struct ibv_context *ctx)
{
	memset(q, 0, sizeof(*q));
	q->ctx = ctx;
	q->mem = mmap(NULL, DQ_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(q->mem != MAP_FAILED);
	/* Hardware-owned, as every user of DEVX presets it. */
	memset(q->mem + DQ_CQ, 0xff, 4096);
	q->umem = mlx5dv_devx_umem_reg(ctx, q->mem, DQ_SIZE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(q->umem);
	q->uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
	assert_non_null(q->uar);
}

void dq_cq_mailbox(struct dq *q, uint8_t in[MBOX], unsigned log_size, bool collapsed, bool oi)
{
	uint32_t eqn;

	assert_int_equal(mlx5dv_devx_query_eqn(q->ctx, 0, &eqn), 0);
	memset(in, 0, MBOX);
	put_bits(in, 0x00, 16, 0x400);
	put_bits(in, CQC + 0x06, 1, 1); /* dbr_umem_valid */
	put_bits(in, CQC + 0x0b, 1, collapsed);
	put_bits(in, CQC + 0x0e, 1, oi);
	put_bits(in, CQC + 0x20, 32, q->umem->umem_id);
	put_bits(in, CQC + 0x63, 5, log_size);
	put_bits(in, CQC + 0x68, 24, q->uar->page_id);
	put_bits(in, CQC + 0xb8, 8, eqn);
	put_bits(in, CQC + 0x1c0, 64, DQ_CQ_DBR);
	put_bits(in, 0x280, 64, DQ_CQ);		/* cq_umem_offset */
	put_bits(in, 0x2c0, 32, q->umem->umem_id);
	put_bits(in, 0x2e0, 1, 1);
}

void dq_qp_mailbox(struct dq *q, uint8_t in[MBOX], uint32_t pdn)
{
	memset(in, 0, MBOX);
	put_bits(in, 0x00, 16, 0x500);
	put_bits(in, QPC + 0x13, 2, 3); /* pm_state */
	put_bits(in, QPC + 0x28, 24, pdn);
	put_bits(in, QPC + 0x51, 4, 4); /* log_sq_size */
	put_bits(in, QPC + 0x68, 24, q->uar->page_id);
	put_bits(in, QPC + 0x88, 24, 0x77); /* user_index */
	put_bits(in, QPC + 0x3e8, 24, q->cqn);
	put_bits(in, QPC + 0x4e8, 24, q->cqn);
	put_bits(in, QPC + 0x500, 64, DQ_DBR);
	put_bits(in, QPC + 0x565, 3, 3); /* rq_type: zero size */
	put_bits(in, QPC + 0x683, 1, 1); /* dbr_umem_valid */
	put_bits(in, QPC + 0x720, 32, q->umem->umem_id);
	put_bits(in, 0x800, 64, DQ_SQ);
	put_bits(in, 0x840, 32, q->umem->umem_id);
	put_bits(in, 0x860, 1, 1);
}

void klm_mailbox(uint8_t in[KLM_MBOX], uint32_t pdn, uint32_t child, const void *mem, uint32_t len)
{
	memset(in, 0, KLM_MBOX);
	put_bits(in, 0, 16, 0x200);
	put_bits(in, 0x80 + 0x12, 4, 0xf); /* rw, rr, lw, lr */
	put_bits(in, 0x80 + 0x16, 2, 2);   /* KLM */
	put_bits(in, 0x80 + 0x20, 24, 0xffffff);
	put_bits(in, 0x80 + 0x68, 24, pdn);
	put_bits(in, 0x80 + 0xc0, 64, len);
	put_bits(in, 0x80 + 0x1a0, 32, 4);
	put_bits(in, 0x300, 32, 4);
	put_bits(in, 0x880, 32, len);
	put_bits(in, 0x8a0, 32, child);
	put_bits(in, 0x8c0, 64, (uintptr_t)mem);
}

void dq_create(struct dq *q, struct ibv_context *ctx, uint32_t pdn, unsigned log_cq, bool collapsed)
{
	uint8_t in[MBOX], out[16] = {0};

	dq_memory(q, ctx);
	q->log_cq = collapsed ? 0 : log_cq;
	q->collapsed = collapsed;
	dq_cq_mailbox(q, in, log_cq, collapsed, true);
	q->cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->cq);
	q->cqn = (uint32_t)get_bits(out, 0x48, 24);
	assert_int_not_equal(q->cqn, 0);
	memset(out, 0, sizeof(out));
	dq_qp_mailbox(q, in, pdn);
	q->qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	assert_non_null(q->qp);
	q->qpn = (uint32_t)get_bits(out, 0x48, 24);
	assert_true(q->qpn > 1);
}

void dq_destroy(struct dq *q)
{
	if (q->qp)
		assert_int_equal(mlx5dv_devx_obj_destroy(q->qp), 0);
	if (q->cq)
		assert_int_equal(mlx5dv_devx_obj_destroy(q->cq), 0);
	mlx5dv_devx_free_uar(q->uar);
	assert_int_equal(mlx5dv_devx_umem_dereg(q->umem), 0);
	munmap(q->mem, DQ_SIZE);
	memset(q, 0, sizeof(*q));
}

int dq_modify(struct dq *q, const uint8_t in[MBOX])
{
	uint8_t out[16] = {0};
	int rc = mlx5dv_devx_obj_modify(q->qp, in, MBOX, out, sizeof(out));

	/* The status in the mailbox and the errno belong together. */
	assert_true((rc == EREMOTEIO) == (out[0] != 0));
	return rc ? (out[0] ? 0x10000 + out[0] : rc) : 0;
}

void dq_rtr_mailbox(struct dq *q, uint8_t in[MBOX], uint32_t remote_qpn)
{
	union ibv_gid gid;

	memset(in, 0, MBOX);
	put_bits(in, 0, 16, 0x503);
	put_bits(in, 0x48, 24, q->qpn);
	put_bits(in, QPC + 0x40, 3, q->mtu ? q->mtu : 3); /* 3: 1024 */
	put_bits(in, QPC + 0x43, 5, 30);
	put_bits(in, QPC + 0xa8, 24, remote_qpn);
	put_bits(in, QPC + 0x488, 3, 4); /* log_rra_max */
	put_bits(in, QPC + 0x4a3, 5, 12); /* min_rnr_nak */
	put_bits(in, QPC + 0x4a8, 24, 0x123456); /* next_rcv_psn */
	put_bits(in, PATH + 0x58, 8, 64); /* hop_limit */
	if (link_is_ib(q->ctx)) {
		put_bits(in, PATH + 0x30, 16, 1);
		put_bits(in, PATH + 0x64, 8, 0xa8); /* tclass */
		return;
	}
	assert_int_equal(ibv_query_gid(q->ctx, 1, 0, &gid), 0);
	memcpy(in + PATH / 8 + 0x10, gid.raw, 16);
	put_bits(in, PATH + 0x10a, 6, 42);     /* dscp */
	put_bits(in, PATH + 0x110, 16, 0xc123); /* udp_sport */
	put_bits(in, PATH + 0x130, 48, 0x525400000000ull | gid.raw[13] << 16 | gid.raw[14] << 8 |
					       (gid.raw[15] ^ q->no_mac)); /* rmac */
}

void dq_connect(struct dq *q, uint32_t remote_qpn)
{
	dq_connect_mode(q, remote_qpn, 3);
}

void dq_connect_mode(struct dq *q, uint32_t remote_qpn, unsigned atomic_mode)
{
	uint8_t in[MBOX] = {0};

	put_bits(in, 0, 16, 0x502);
	put_bits(in, 0x48, 24, q->qpn);
	put_bits(in, PATH + 0x128, 8, 1); /* port */
	put_bits(in, QPC + 0x48c, 4, atomic_mode);
	put_bits(in, QPC + 0x490, 3, 7);  /* rre rwe rae */
	assert_int_equal(dq_modify(q, in), 0);
	dq_rtr_mailbox(q, in, remote_qpn);
	assert_int_equal(dq_modify(q, in), 0);
	memset(in, 0, sizeof(in));
	put_bits(in, 0, 16, 0x504);
	put_bits(in, 0x48, 24, q->qpn);
	put_bits(in, QPC + 0x388, 3, 3);  /* log_sra_max */
	put_bits(in, QPC + 0x38d, 3, 7);  /* retry_count */
	put_bits(in, QPC + 0x390, 3, 6);  /* rnr_retry */
	put_bits(in, QPC + 0x3c8, 24, 0x123456); /* next_send_psn */
	put_bits(in, PATH + 0x40, 5, 17); /* ack_timeout */
	assert_int_equal(dq_modify(q, in), 0);
}

uint32_t dq_state(struct dq *q)
{
	uint8_t in[16] = {0}, out[MBOX] = {0};

	put_bits(in, 0, 16, 0x50b);
	put_bits(in, 0x48, 24, q->qpn);
	assert_int_equal(mlx5dv_devx_obj_query(q->qp, in, sizeof(in), out, sizeof(out)), 0);
	return (uint32_t)get_bits(out, QPC, 4);
}

void dq_post(struct dq *q, uint16_t index, const void *wqe)
{
	dq_post_blocks(q, index, wqe, 1);
}

void dq_post_blocks(struct dq *q, uint16_t index, const void *wqe, unsigned blocks)
{
	uint32_t *dbr = (uint32_t *)(void *)(q->mem + DQ_DBR);
	uint64_t first;

	for (unsigned i = 0; i < blocks; i++)
		memcpy(q->mem + DQ_SQ + (index + i) % 16 * 64u, (const uint8_t *)wqe + 64 * i, 64);
	memcpy(&first, wqe, sizeof(first));
	/* Release: the device reads the WQE after the record, the record after
	 * the register. */
	__atomic_store_n(dbr + 1, htobe32((uint32_t)(uint16_t)(index + blocks)), __ATOMIC_RELEASE);
	__atomic_store_n((uint64_t *)q->uar->reg_addr, first, __ATOMIC_RELEASE);
}

uint8_t dq_completed(const struct dq *q, uint32_t n)
{
	const uint8_t *cqe = q->mem + DQ_CQ + n * 64u;
	uint8_t op = 15;

	for (int i = 0; i < 5000 && op == 15; i++) {
		if (i)
			usleep(1000);
		/* Acquire: pairs with the device's one store of the entry's last eight bytes. */
		op = (uint8_t)be64toh(__atomic_load_n((const uint64_t *)(const void *)(cqe + 56),
						      __ATOMIC_ACQUIRE)) >> 4;
	}
	return op;
}
