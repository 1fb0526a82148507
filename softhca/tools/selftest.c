/* SPDX-License-Identifier: BSD-3-Clause */
/* softhca --selftest: says what this machine lets softhca use, opens the device,
 * lets a queue pair write, read and count in another one of this process and in
 * one of a second process. Exit status 0 when everything works. */
#include "softhca/tools/selftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PORT = 1, ROCE_UDP_PORT = 4791, PATIENCE_S = 5, ROUNDS = 1000 };

static unsigned failed;

/* ---- report ---- */

__attribute__((format(printf, 3, 0)))
static void selftest_row(const char *mark, const char *what, const char *fmt, va_list ap)
{
	printf("  %-7s%-22s", mark, what);
	vprintf(fmt, ap);
	putchar('\n');
}

void st_report(bool ok, const char *what, const char *fmt, ...)
{
	va_list ap;

	failed += !ok;
	va_start(ap, fmt);
	selftest_row(ok ? "ok" : "FAILED", what, fmt, ap);
	va_end(ap);
}

void st_note(const char *what, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	selftest_row("", what, fmt, ap);
	va_end(ap);
}

const char *st_status(int status)
{
	return status < 0 ? "no completion" : ibv_wc_status_str((enum ibv_wc_status)status);
}

/* ---- queue pairs ---- */

bool st_open(struct st_end *e, struct ibv_context *ctx, struct ibv_pd *pd, const char **what)
{
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = 16, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	*e = (struct st_end){.ctx = ctx, .pd = pd, .mem = aligned_alloc(4096, ST_SIZE)};
	if (!e->mem)
		return false;
	memset(e->mem, 0, ST_SIZE);
	*what = "ibv_reg_mr";
	e->mr = ibv_reg_mr(pd, e->mem, ST_SIZE, all);
	if (!e->mr)
		return false;
	*what = "ibv_create_cq";
	e->cq = attr.send_cq = attr.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	if (!e->cq)
		return false;
	*what = "ibv_create_qp";
	e->qp = ibv_create_qp(pd, &attr);
	return e->qp != NULL;
}

bool st_address(const struct st_end *e, struct st_address *a)
{
	struct ibv_port_attr port;

	memset(a, 0, sizeof(*a));
	if (ibv_query_port(e->ctx, PORT, &port) || ibv_query_gid(e->ctx, PORT, 0, &a->gid))
		return false;
	a->qpn = e->qp->qp_num;
	/* At random, so that what a former process of the number left is not taken for ours. */
	a->psn = (uint32_t)(time(NULL) * 7919 + getpid()) & 0xffffff;
	a->rkey = e->mr->rkey;
	a->mem = (uintptr_t)e->mem;
	a->lid = port.lid;
	return true;
}

bool st_connect(struct st_end *e, const struct st_address *self, const struct st_address *peer)
{
	const int all = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_port_attr port;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = PORT, .qp_access_flags = all};

	if (ibv_query_port(e->ctx, PORT, &port) ||
	    ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     IBV_QP_ACCESS_FLAGS))
		return false;
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .grh = {.dgid = peer->gid, .hop_limit = 64},
			    .dlid = peer->lid,
			    .port_num = PORT},
	};
	if (ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER))
		return false;
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7,
				 .rnr_retry = 7, .sq_psn = self->psn, .max_rd_atomic = 4};
	return !ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					 IBV_QP_MAX_QP_RD_ATOMIC);
}

int st_do(struct st_end *e, enum ibv_wr_opcode op, uint32_t len, const struct st_address *peer,
	  uint64_t a, uint64_t b)
{
	struct ibv_sge sge = {.addr = (uintptr_t)e->mem, .length = len, .lkey = e->mr->lkey};
	struct ibv_send_wr wr = {.opcode = op, .sg_list = &sge, .num_sge = 1}, *bad;
	time_t until = time(NULL) + PATIENCE_S;
	struct ibv_wc wc;
	int n;

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = peer->mem + ST_HALF;
		wr.wr.atomic.rkey = peer->rkey;
		wr.wr.atomic.compare_add = a;
		wr.wr.atomic.swap = b;
	} else {
		wr.wr.rdma.remote_addr = peer->mem + ST_HALF;
		wr.wr.rdma.rkey = peer->rkey;
	}
	if (ibv_post_send(e->qp, &wr, &bad))
		return -1;
	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		if (time(NULL) > until)
			return -1;
	return n < 0 ? -1 : (int)wc.status;
}

/* ---- in this process ---- */

static double selftest_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_data(struct st_end *a, struct st_end *b, const struct st_address *to)
{
	int status;

	for (int i = 0; i < ST_HALF; i++)
		a->mem[i] = (uint8_t)(i * 13 + i / 256);
	status = st_do(a, IBV_WR_RDMA_WRITE, ST_HALF, to, 0, 0);
	st_report(!status && !memcmp(a->mem, b->mem + ST_HALF, ST_HALF), "write",
		  "%d bytes: %s", ST_HALF, st_status(status));
	memset(a->mem, 0, ST_HALF);
	status = st_do(a, IBV_WR_RDMA_READ, ST_HALF, to, 0, 0);
	st_report(!status && !memcmp(a->mem, b->mem + ST_HALF, ST_HALF), "read", "%d bytes: %s",
		  ST_HALF, st_status(status));
}

static void test_atomics(struct st_end *a, struct st_end *b, const struct st_address *to)
{
	uint64_t *old = (uint64_t *)(void *)a->mem, *there = (uint64_t *)(void *)(b->mem + ST_HALF);
	int status;
	bool ok;

	*there = 40;
	status = st_do(a, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, to, 2, 0);
	ok = !status && *old == 40 && *there == 42;
	st_report(ok, "fetch and add", "%s", st_status(status));
	status = st_do(a, IBV_WR_ATOMIC_CMP_AND_SWP, 8, to, 42, 7);
	ok = !status && *old == 42 && *there == 7;
	st_report(ok, "compare and swap", "%s", st_status(status));
}

static void test_speed(struct st_end *a, const struct st_address *to)
{
	double from = selftest_seconds();
	int status = 0;

	for (int i = 0; i < ROUNDS && !status; i++)
		status = st_do(a, IBV_WR_RDMA_WRITE, 8, to, 0, 0);
	st_report(!status, "8 bytes and back", "%.1f us on average", (selftest_seconds() - from) * 1e6 / ROUNDS);
}

static void test_refusal(struct st_end *a, const struct st_address *to)
{
	struct st_address wrong = *to;
	int status;

	wrong.rkey ^= 0x100;
	status = st_do(a, IBV_WR_RDMA_WRITE, 8, &wrong, 0, 0);
	st_report(status == IBV_WC_REM_ACCESS_ERR, "a wrong key", "%s", st_status(status));
}

static bool test_loopback(struct ibv_context *ctx, struct ibv_pd *pd)
{
	struct st_address at_a, at_b;
	struct st_end a, b;
	const char *what = "";

	if (!st_open(&a, ctx, pd, &what) || !st_open(&b, ctx, pd, &what)) {
		st_report(false, "queue pairs", "%s: %s", what, strerror(errno));
		return false;
	}
	if (!st_address(&a, &at_a) || !st_address(&b, &at_b) || !st_connect(&a, &at_a, &at_b) ||
	    !st_connect(&b, &at_b, &at_a)) {
		st_report(false, "queue pairs", "connect: %s", strerror(errno));
		return false;
	}
	st_report(true, "queue pairs", "0x%x and 0x%x of this process", at_a.qpn, at_b.qpn);
	test_data(&a, &b, &at_b);
	test_atomics(&a, &b, &at_b);
	test_speed(&a, &at_b);
	test_refusal(&a, &at_b);
	return true;
}

/* ---- what the machine allows ---- */

static void show_port(struct ibv_context *ctx)
{
	struct ibv_port_attr port;
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	if (ibv_query_port(ctx, PORT, &port) || ibv_query_gid(ctx, PORT, 0, &gid)) {
		st_report(false, "port", "%s", strerror(errno));
		return;
	}
	st_report(port.state == IBV_PORT_ACTIVE, "port", "%s, MTU %d, GID %s",
		  port.link_layer == IBV_LINK_LAYER_ETHERNET ? "RoCEv2" : "InfiniBand",
		  128 << port.active_mtu, inet_ntop(AF_INET6, gid.raw, text, sizeof(text)));
}

static void show_sockets(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(ROCE_UDP_PORT)};
	int udp = socket(AF_INET, SOCK_DGRAM, 0), raw = socket(AF_INET, SOCK_RAW, IPPROTO_UDP);
	int one = 1;

	if (udp >= 0 && !setsockopt(udp, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) &&
	    !bind(udp, (struct sockaddr *)&at, sizeof(at)))
		st_note("UDP port 4791", "free");
	else
		st_note("UDP port 4791", "in use on some address, as by other programs on softhca");
	if (raw >= 0)
		st_note("raw socket", "yes: packets of other hosts come to the right process");
	else
		st_note("raw socket", "no (CAP_NET_RAW): processes of this host hand each other's "
				      "packets on, and check the ICRC of other hosts' but for one "
				      "in 65536");
	if (udp >= 0)
		close(udp);
	if (raw >= 0)
		close(raw);
}

static void show_memory(void)
{
	int a = 1, b = 0;
	struct iovec to = {&b, sizeof(b)}, from = {&a, sizeof(a)};
	bool ok = process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof(b) && b == a;

	st_note("shared memory", "/dev/shm %s, process_vm_readv %s",
		access("/dev/shm", W_OK) ? "not writable" : "writable", ok ? "yes" : "no");
}

int main(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	bool peer = st_peer_start();
	int n = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("What this machine lets softhca use:");
	show_sockets();
	show_memory();
	puts("The device:");
	list = ibv_get_device_list(&n);
	st_report(list && n > 0, "libibverbs", "%d device%s, the first is %s", n, n == 1 ? "" : "s",
		  n > 0 ? ibv_get_device_name(list[0]) : "missing");
	ctx = n > 0 ? ibv_open_device(list[0]) : NULL;
	pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	st_report(pd, "open", "%s", pd ? "context and protection domain" : strerror(errno));
	if (pd) {
		struct st_end e;
		const char *what = "";

		show_port(ctx);
		test_loopback(ctx, pd);
		if (peer && st_open(&e, ctx, pd, &what))
			st_peer_test(&e);
		else
			st_report(false, "second process", "%s: %s", what, strerror(errno));
	}
	failed += st_peer_stop() != 0;
	printf(failed ? "softhca: %u checks failed\n" : "softhca: all checks passed\n", failed);
	return failed ? 1 : 0;
}
