/* SPDX-License-Identifier: BSD-3-Clause */
/* How fast the device is below libibverbs: processes of one host write to each
 * other over many QPs. Prints one line: the figures of the mode.
 *
 *   hca rate PROCS QPS	each writes 8 bytes inline to the next: Mmsg/s of all,
 *			and ns of CPU time for one, program and both engines
 *   hca flow QPS	the same of two, of which one writes: Mmsg/s
 *   hca lat QPS	8-byte ping-pong of two, both poll memory: half round trip
 *			in us, median and 99th percentile
 *   hca bw QPS SIZE [SPAN]  one writes to the other, through so many bytes in turn (4 MiB): MB/s, of
 *			memcpy of the same pieces before and after; and of process_vm_readv, which
 *			moves them, by itself: before, after
 *   hca bwfile QPS SIZE	the same from and to memory of a file (memfd), which other processes
 *			can map
 *   hca loopbw QPS SIZE	the same inside the process
 *   hca xcopy SIZE	no device: one process writes a piece of shared memory, one on another
 *			core copies it from there, in turn: MB/s of the copy, and of
 *			the writing, both medians
 *   hca loop QPS [USED]	8 bytes inside the process, QPs in turn, all of them or so
 *			many: from post to completion in us, median and 99th percentile; of
 *			the median the part that ibv_post_send took; two looks at the clock;
 *			the 10th percentile
 *   hca hop		no device: a cache line goes to another thread and back: us,
 *			median. Virtual cores move: the same machine has several speeds
 *   hca idle		share of a core in percent, after two seconds without work
 *
 *   hca naps		the same of a program that only sleeps, 2 ms at a time
 *
 * Waiting threads look 200 times and then give their core to another: there may
 * be fewer cores than posting threads and engines. */
#define _GNU_SOURCE /* memfd_create, sched_setaffinity */
#include "tests/perf/help.h"

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MAX_PROCS = 16, MAX_QPS = 1024, DEPTH = 64, BATCH = 32, AREA = 4 << 20, SAMPLES = 20000,
       LOOKS = 200 };

#define RUN_US 4e5 /* of rate and bandwidth; latencies: at most so long, or SAMPLES */


struct process {
	uint32_t qpn[2][MAX_QPS]; /* towards the next, towards the one before */
	uint32_t rkey;
	uint64_t addr;
	double rate, cpu, writes;
	pid_t pid;
};

/* Shared by all processes. Counters are sequentially consistent: a phase of one
 * is behind the phase before of all. */
static struct shared {
	int arrived, failed;
	union ibv_gid gid;
	struct process p[MAX_PROCS];
} *sh;

static int me, n_procs, n_qps, n_used;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qps[2][MAX_QPS];
static uint8_t *area;
static bool in_file;
static int busy[MAX_QPS]; /* posts of a QP (by its wr_id) that are not complete */

static void die(const char *what)
{
	fprintf(stderr, "hca: process %d: %s\n", me, what);
	__atomic_store_n(&sh->failed, 1, __ATOMIC_SEQ_CST);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static double cpu(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void meet(void)
{
	static int phase;
	double end = now() + 60e6;

	phase += n_procs;
	__atomic_add_fetch(&sh->arrived, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&sh->arrived, __ATOMIC_SEQ_CST) < phase) {
		if (now() > end || __atomic_load_n(&sh->failed, __ATOMIC_SEQ_CST))
			exit(1);
		usleep(500);
	}
}

/* ---- device ---- */

static uint8_t *file_area(void)
{
	int fd = memfd_create("hca", MFD_CLOEXEC);
	void *m = MAP_FAILED;

	if (fd >= 0 && !ftruncate(fd, 2 * AREA))
		m = mmap(NULL, 2 * AREA, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return m == MAP_FAILED ? NULL : m;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;

	if (!ctx)
		die("no device");
	area = in_file ? file_area() : aligned_alloc(4096, 2 * AREA);
	if (!area)
		die("no memory");
	memset(area, 0, 2 * AREA);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 65536, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, area, 2 * AREA, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
		: NULL;
	if (!pd || !cq || !mr || ibv_query_gid(ctx, 1, 0, &sh->gid))
		die("no PD, CQ, MR or GID");
	sh->p[me].rkey = mr->rkey;
	sh->p[me].pid = getpid();
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); /* where Yama restricts process_vm_readv */
	/* Alone, it writes from one half to the other. */
	sh->p[me].addr = (uint64_t)(uintptr_t)(area + (n_procs > 1 ? 0 : AREA));
}

static void new_qp(int way, int i)
{
	struct ibv_qp_init_attr a = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
				      .cap = { DEPTH, 1, 1, 1, 16 } };
	struct ibv_qp_attr init = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	qps[way][i] = ibv_create_qp(pd, &a);
	if (!qps[way][i] || ibv_modify_qp(qps[way][i], &init,
					  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
						  IBV_QP_ACCESS_FLAGS))
		die("no QP");
	sh->p[me].qpn[way][i] = qps[way][i]->qp_num;
}

static void connect_qp(struct ibv_qp *qp, uint32_t to)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RTR, .dest_qp_num = to,
				 .max_dest_rd_atomic = 1, .min_rnr_timer = 12 };

	if (ibv_query_port(qp->context, 1, &port))
		die("no port");
	a.path_mtu = port.active_mtu;
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.dgid = sh->gid;
	a.ah_attr.grh.hop_limit = 64;
	a.ah_attr.port_num = 1;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		die("not to RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 17;
	a.retry_cnt = a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		die("not to RTS");
}

/* A ring of processes; alone, each QP is its own peer. */
static void start(void)
{
	int next = (me + 1) % n_procs, before = (me + n_procs - 1) % n_procs;

	open_device();
	for (int i = 0; i < n_qps; i++)
		for (int way = 0; way < (n_procs > 1 ? 2 : 1); way++)
			new_qp(way, i);
	meet();
	for (int i = 0; i < n_qps; i++) {
		if (n_procs == 1) {
			connect_qp(qps[0][i], qps[0][i]->qp_num);
			continue;
		}
		connect_qp(qps[0][i], sh->p[next].qpn[1][i]);
		connect_qp(qps[1][i], sh->p[before].qpn[0][i]);
	}
	meet();
}

/* n writes of this size with one doorbell and one completion. */
static void post(int i_qp, const struct process *to, size_t off, uint32_t size, int n)
{
	struct ibv_sge sge = { (uint64_t)(uintptr_t)(area + off), size, mr->lkey };
	struct ibv_send_wr wr[BATCH], *bad;

	for (int i = 0; i < n; i++) {
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i_qp,
					      .next = i + 1 < n ? wr + i + 1 : NULL,
					      .sg_list = &sge, .num_sge = 1,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .send_flags = (i + 1 == n ? IBV_SEND_SIGNALED : 0) |
							    (size <= 16 ? IBV_SEND_INLINE : 0) };
		wr[i].wr.rdma.remote_addr = to->addr + off;
		wr[i].wr.rdma.rkey = to->rkey;
	}
	busy[i_qp]++;
	if (ibv_post_send(qps[0][i_qp], wr, &bad))
		die("post refused");
}

static void look_again(void)
{
	static int looks;

	if (++looks % LOOKS == 0)
		sched_yield();
}

static int reap(int max)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(cq, max < 16 ? max : 16, wc);

	if (!n)
		look_again();

	for (int i = 0; i < n; i++) {
		if (wc[i].status)
			die(ibv_wc_status_str(wc[i].status));
		busy[wc[i].wr_id]--;
	}
	return n;
}

/* ---- modes ---- */

static void rate(bool writes)
{
	const struct process *to = &sh->p[(me + 1) % n_procs];
	int out = 0, limit = n_qps * 2 < 64 ? n_qps * 2 : 64, qp = 0;
	double t, end, c = cpu();
	long n = 0;

	t = now();
	end = t + RUN_US;
	while (writes && now() < end) {
		/* Two batches a QP, 64 in all, QPs in turn. */
		for (int i = 0; out < limit && i < n_qps; i++, qp = (qp + 1) % n_qps) {
			if (busy[qp] == 2)
				continue;
			post(qp, to, 8192, 8, BATCH);
			out++;
			n += BATCH;
		}
		out -= reap(16);
	}
	while (out)
		out -= reap(16);
	sh->p[me].rate = (double)n / (now() - t);
	meet();
	sh->p[me].cpu = cpu() - c;
	sh->p[me].writes = (double)n;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void print_times(double *v, int n, double scale)
{
	qsort(v, (size_t)n, sizeof(*v), by_value);
	printf("%.3f %.3f\n", v[n / 2] * scale, v[n * 99 / 100] * scale);
}

/* Acquire: pairs with the device's release of the word. */
static void wait_for(uint64_t value)
{
	double end = now() + 60e6;

	for (unsigned i = 1;
	     __atomic_load_n((uint64_t *)(void *)area, __ATOMIC_ACQUIRE) != value; i++) {
		look_again();
		if (i % 4096 == 0 && (now() > end || sh->failed))
			die("no answer");
	}
}

static void lat(void)
{
	static double v[SAMPLES];
	int way = me; /* forth by the first's, back by the same QPs' other end */
	uint64_t *word = (uint64_t *)(void *)(area + 4096);
	double end = now() + RUN_US;
	int n = 0;
	bool more = true;

	while (more) {
		struct ibv_sge sge = { (uint64_t)(uintptr_t)word, 8, mr->lkey };
		struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
					  .opcode = IBV_WR_RDMA_WRITE,
					  .send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED },
				   *bad;
		double t = now();

		wr.wr.rdma.remote_addr = sh->p[!me].addr;
		wr.wr.rdma.rkey = sh->p[!me].rkey;
		if (me) {
			wait_for((uint64_t)n + 1);
			more = *(uint64_t *)(void *)(area + 8) == 0;
		} else {
			more = n + 1 < SAMPLES && t < end;
		}
		*word = (uint64_t)n + 1;
		if (!more && !me) { /* tell it first */
			*word = 1;
			wr.wr.rdma.remote_addr += 8;
			if (ibv_post_send(qps[way][n % n_qps], &wr, &bad))
				die("post refused");
			while (!reap(1))
				;
			wr.wr.rdma.remote_addr -= 8;
			*word = (uint64_t)n + 1;
		}
		if (ibv_post_send(qps[way][n % n_qps], &wr, &bad))
			die("post refused");
		if (!me)
			wait_for((uint64_t)n + 1);
		v[n++] = now() - t;
		while (!reap(1))
			;
	}
	if (!me)
		print_times(v, n, 0.5);
	meet();
}

/* Pieces of this size, through so many bytes in turn: what the writes do. */
static double copy_rate(uint32_t size, size_t span)
{
	static uint8_t to[AREA];
	double t = now(), end = t + RUN_US / 4;
	size_t done = 0;

	for (size_t off = 0; now() < end; off = (off + size) % (span - size + 1)) {
		memcpy(to + off, area + off, size);
		__asm__ volatile("" ::: "memory");
		done += size;
	}
	return (double)done / (now() - t);
}

/* The same by the system call, out of the other process; 0: it may not. */
static double call_rate(uint32_t size, size_t span)
{
	double t = now(), end = t + RUN_US / 4;
	size_t done = 0;

	for (size_t off = 0; now() < end; off = (off + size) % (span - size + 1)) {
		struct iovec to = { area + off, size };
		struct iovec from = { (uint8_t *)(uintptr_t)sh->p[!me].addr + off, size };

		if (process_vm_readv(sh->p[!me].pid, &to, 1, &from, 1, 0) != (ssize_t)size)
			return 0;
		done += size;
	}
	return (double)done / (now() - t);
}

static void bw(uint32_t size, size_t span)
{
	double t, end, before, after, call[2] = { 0 };
	size_t off = 0, n = 0;
	int out = 0, qp = 0;

	/* What receives makes the call, as it does below. */
	if (me)
		sh->p[me].rate = call_rate(size, span);
	meet();
	if (me) {
		meet();
		sh->p[me].rate = call_rate(size, span);
		meet();
		return;
	}
	call[0] = n_procs > 1 ? sh->p[1].rate : 0;
	before = copy_rate(size, span);
	t = now();
	end = t + RUN_US;
	while (now() < end || out) {
		while (out < 16 && now() < end) {
			post(qp++ % n_qps, &sh->p[n_procs - 1], off, size, 1);
			off = (off + size) % (span - size + 1);
			out++;
			n++;
		}
		out -= reap(16);
	}
	t = now() - t;
	after = copy_rate(size, span);
	meet();
	meet();
	call[1] = n_procs > 1 ? sh->p[1].rate : 0;
	printf("%.0f %.0f %.0f %.0f %.0f\n", (double)n * size / t, before, after, call[0], call[1]);
}

/* To the core of this number among those that there are. */
static void move_to(int n)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all))
		return;
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &all) && n-- == 0)
			CPU_SET(c, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

/* What handing data from core to core costs: a stream between two processes is no faster than
 * the slower of the two, where its pages do not stay in the first one's cache. */
static int xcopy(uint32_t size)
{
	enum { TURNS = 1000 };
	uint8_t *shared = mmap(NULL, 4096 + size, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0), *own = malloc(size);
	int *turn = (int *)(void *)shared, writer;
	static double v[TURNS];
	double end = now() + 6e6;
	int n;

	if (shared == MAP_FAILED || !own)
		return 1;
	memset(own, 1, size);
	memset(shared, 0, 4096 + size);
	writer = fork() != 0;
	move_to(!writer);
	for (n = 0; n < TURNS && now() < end; n++) {
		double t;

		/* Acquire and release: the piece is passed with the turn. */
		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) != 2 * n + !writer && now() < end)
			sched_yield();
		t = now();
		memcpy(writer ? shared + 4096 : own, writer ? own : shared + 4096, size);
		__asm__ volatile("" ::: "memory");
		v[n] = now() - t;
		__atomic_store_n(turn, 2 * n + 1 + !writer, __ATOMIC_RELEASE);
	}
	qsort(v, (size_t)n, sizeof(*v), by_value);
	if (writer)
		wait(NULL);
	printf(writer ? "%.0f\n" : "%.0f ", size / v[n / 2]);
	fflush(stdout);
	return 0;
}

static void loop(void)
{
	static double v[SAMPLES], posting[SAMPLES], clock[SAMPLES];
	double end = now() + RUN_US;
	int n;

	for (n = 0; n < SAMPLES && now() < end; n++) {
		double t = now();

		clock[n] = now() - t;
		t = now();
		post(n * 7 % n_used, &sh->p[0], 8192, 8, 1);
		posting[n] = now() - t;
		while (!reap(1))
			;
		v[n] = now() - t;
	}
	qsort(posting, (size_t)n, sizeof(*posting), by_value);
	qsort(clock, (size_t)n, sizeof(*clock), by_value);
	qsort(v, (size_t)n, sizeof(*v), by_value);
	printf("%.3f %.3f %.3f %.3f %.3f\n", v[n / 2], v[n * 99 / 100], posting[n / 2],
	       clock[n / 2], v[n / 10]);
}

/* Each its own line. Release and acquire: a word is passed on with all before it. */
static struct {
	_Alignas(128) uint32_t there;
	_Alignas(128) uint32_t back;
} ball;

static void *throw_back(void *arg)
{
	uint32_t n = 0;

	(void)arg;
	while (n != UINT32_MAX) {
		uint32_t v = __atomic_load_n(&ball.there, __ATOMIC_ACQUIRE);

		if (v != n)
			__atomic_store_n(&ball.back, n = v, __ATOMIC_RELEASE);
	}
	return NULL;
}

static int hop(void)
{
	static double v[SAMPLES];
	double end = now() + RUN_US;
	pthread_t other;
	int n;

	if (pthread_create(&other, NULL, throw_back, NULL))
		return 1;
	for (n = 0; n < SAMPLES && now() < end; n++) {
		double t = now();

		__atomic_store_n(&ball.there, (uint32_t)n + 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&ball.back, __ATOMIC_ACQUIRE) != (uint32_t)n + 1)
			;
		v[n] = now() - t;
	}
	__atomic_store_n(&ball.there, UINT32_MAX, __ATOMIC_RELEASE);
	pthread_join(other, NULL);
	qsort(v, (size_t)n, sizeof(*v), by_value);
	printf("%.3f\n", v[n / 2]);
	return 0;
}

static void idle(void)
{
	double t, c;

	sleep(2);
	t = now();
	c = cpu();
	sleep(3);
	printf("%.2f\n", (cpu() - c) * 100 / (now() - t));
}

/* For scale: what waking costs this machine. */
static int naps(void)
{
	struct timespec nap = { .tv_nsec = 2000000 };
	double t = now(), c = cpu();

	while (now() - t < 2e6)
		nanosleep(&nap, NULL);
	printf("%.2f\n", (cpu() - c) * 100 / (now() - t));
	return 0;
}

static int run(const char *mode, uint32_t size, size_t span)
{
	start();
	if (!strcmp(mode, "rate"))
		rate(true);
	else if (!strcmp(mode, "flow"))
		rate(me == 0);
	else if (!strcmp(mode, "lat"))
		lat();
	else if (!strcmp(mode, "bw") || !strcmp(mode, "bwfile") ||
		 !strcmp(mode, "loopbw"))
		bw(size, span);
	else if (!strcmp(mode, "loop"))
		loop();
	else
		idle();
	return 0;
}

static int number(const char *text, int max)
{
	int v = text ? atoi(text) : 1;

	if (v < 1 || v > max) {
		fprintf(stderr, "hca: %s: 1 to %d\n", text, max);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	static const char *const modes[] = { "rate", "flow", "lat", "bw", "bwfile", "loopbw", "loop",
					     "idle" };
	static const int procs[] = { 0, 2, 2, 2, 2, 1, 1, 1 };
	bool is_rate = !strcmp(mode, "rate"), is_bw = strstr(mode, "bw");
	int status, ret = 0;
	double sum = 0, time = 0, writes = 0;
	uint32_t size, span;
	size_t m = 0;

	help_if_asked(argc, argv, "hca rate PROCS QPS | flow QPS | lat QPS | bw QPS SIZE [SPAN] | bwfile QPS SIZE | "
				  "loopbw QPS SIZE |\n  loop QPS [USED] | idle QPS | naps | hop | xcopy SIZE");
	if (!strcmp(mode, "naps"))
		return naps();
	if (!strcmp(mode, "hop"))
		return hop();
	if (!strcmp(mode, "xcopy"))
		return xcopy((uint32_t)number(argv[2], AREA));
	in_file = !strcmp(mode, "bwfile");
	while (m < sizeof(procs) / sizeof(*procs) && strcmp(mode, modes[m]))
		m++;
	if (m == sizeof(procs) / sizeof(*procs)) {
		fprintf(stderr, "usage: hca rate PROCS QPS | flow QPS | lat QPS | bw QPS SIZE [SPAN] | "
				"bwfile QPS SIZE | loopbw QPS SIZE | xcopy SIZE | loop QPS [USED] | hop | "
				"idle | naps\n");
		return 2;
	}
	n_procs = is_rate ? number(argv[2], MAX_PROCS) : procs[m];
	n_qps = number(argc > 2 + is_rate ? argv[2 + is_rate] : NULL, MAX_QPS);
	n_used = argc > 3 && !strcmp(mode, "loop") ? number(argv[3], n_qps) : n_qps;
	size = (uint32_t)number(is_bw && argc > 3 ? argv[3] : NULL, AREA / 2);
	span = is_bw && argc > 4 ? (uint32_t)number(argv[4], AREA) : AREA;
	if (span < size)
		span = size;
	sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sh == MAP_FAILED)
		return 1;
	for (me = 0; me < n_procs - 1; me++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			return run(mode, size, span);
		}
	ret = run(mode, size, span);
	while (wait(&status) > 0)
		ret |= !WIFEXITED(status) || WEXITSTATUS(status);
	for (int i = 0; i < n_procs; i++) {
		sum += sh->p[i].rate;
		time += sh->p[i].cpu * 1e3;
		writes += sh->p[i].writes;
	}
	if (m < 2 && !ret)
		printf("%.3f %.0f\n", sum, time / writes);
	return ret;
}
