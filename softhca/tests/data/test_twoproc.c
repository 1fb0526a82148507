/* SPDX-License-Identifier: BSD-3-Clause */
/* Two processes, through shared memory or UDP: random writes and reads with
 * every byte compared, inline words, sends, atomics that must count exactly.
 * With SOFTHCA_FAULTS in the environment the same must hold. Prints a few
 * figures. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#include "sim.h"

enum { BUF = 1 << 22, N_QP = 4, WAIT = 30000, LOOKS = 200 };

struct hello {
	uint32_t qpn[N_QP], rkey;
	uint64_t addr;
};

static int chan;
static uint8_t *mem, *local;
static uint32_t key, lkey;
static struct sim_qp *qp[N_QP];
static struct hello peer;
static unsigned seed = 1;

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Relaxed: the engine counts on meanwhile. */
#define STAT(field) __atomic_load_n(&hca_stats.field, __ATOMIC_RELAXED)

static unsigned rnd(void)
{
	return (seed = seed * 1664525u + 1013904223u) >> 8;
}

/* Both sides arrive. */
static void meet(void)
{
	struct pollfd p = { .fd = chan, .events = POLLIN };
	char c = 'x';

	CHECK(write(chan, &c, 1) == 1);
	CHECK(poll(&p, 1, 2 * WAIT) == 1);
	CHECK(read(chan, &c, 1) == 1);
}

static void start(void)
{
	struct hello mine;

	sim_init();
	mem = aligned_alloc(4096, BUF);
	local = aligned_alloc(4096, BUF);
	CHECK(mem && local);
	memset(mem, 0, BUF);
	key = sim_mr(mem, BUF, 0xf, 1, 0x10000);
	lkey = sim_mr(local, BUF, 1, 1, (uint64_t)(uintptr_t)local);
	mine.addr = 0x10000;
	mine.rkey = key;
	for (int i = 0; i < N_QP; i++) {
		qp[i] = sim_qp(6, SIM_CQ_RING);
		qp[i]->qp.mtu = 256u << (i + 1);
		mine.qpn[i] = qp[i]->qp.qpn;
	}
	CHECK(write(chan, &mine, sizeof(mine)) == sizeof(mine));
	CHECK(read(chan, &peer, sizeof(peer)) == sizeof(peer));
	for (int i = 0; i < N_QP; i++)
		sim_connect(qp[i], peer.qpn[i]);
	meet();
}

static void done(struct sim_qp *q)
{
	struct sim_cqe c;

	sim_ring(q);
	if (!sim_poll(q, &c, WAIT)) {
		fprintf(stderr, "no completion on QP 0x%x\n", q->qp.qpn);
		exit(1);
	}
	if (c.type) {
		fprintf(stderr, "QP 0x%x WQE %u: syndrome 0x%x/0x%x\n", q->qp.qpn, c.counter,
			c.syndrome, c.vendor);
		exit(1);
	}
}

/* Writes half of local to the peer, reads it back into the other half. */
static void write_and_read(int rounds)
{
	for (int round = 0; round < rounds; round++) {
		struct sim_qp *q = qp[rnd() % N_QP];
		uint32_t len = 1 + rnd() % (round % 10 ? 20000 : BUF / 2);
		uint64_t off = rnd() % (BUF / 2 - len + 1);

		for (uint32_t i = 0; i < len; i++)
			local[i] = (uint8_t)rnd();
		sim_write(q, peer.addr + off, peer.rkey, local, len, lkey, 0);
		sim_read(q, peer.addr + off, peer.rkey, local + BUF / 2, len, lkey, 1);
		done(q);
		CHECK(!memcmp(local, local + BUF / 2, len));
	}
}

static void count_atomics(void)
{
	uint64_t last = 0;

	for (int i = 0; i < 500; i++) {
		struct sim_qp *q = qp[i % N_QP];

		sim_fetch_add(q, peer.addr + BUF - 8, peer.rkey, local, lkey, 1, 1);
		done(q);
		CHECK(*(uint64_t *)(void *)local == last);
		last++;
	}
}

static void stream(void)
{
	static const uint32_t sizes[] = { 8, 1024, 65536, 1 << 20 };

	for (unsigned s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
		unsigned n = sizes[s] > 4096 ? (64u << 20) / sizes[s] : 40000;
		struct sim_qp *q = qp[N_QP - 1];
		uint64_t t = sim_now();

		if (getenv("SOFTHCA_FAULTS"))
			n /= 16;
		for (unsigned i = 0; i < n; i += 32) {
			for (unsigned k = 0; k < 32 && i + k < n; k++)
				sim_write(q, peer.addr, peer.rkey, local, sizes[s], lkey,
					  k == 31 || i + k + 1 == n);
			done(q);
		}
		t = sim_now() - t;
		printf("write %7u B: %8.3f Mmsg/s %9.1f MB/s\n", sizes[s], n * 1e3 / (double)t,
		       (double)n * sizes[s] * 1e3 / (double)t);
	}
}

static atomic_bool scribble;

static void *scribbler(void *arg)
{
	(void)arg;
	/* Relaxed: nothing is passed by it. */
	for (unsigned i = 0; atomic_load_explicit(&scribble, memory_order_relaxed); i++)
		__atomic_store_n((uint64_t *)(void *)local + i % 512, i, __ATOMIC_RELAXED);
	return NULL;
}

/* Memory that changes while it is sent: nothing on the wire is wrong. */
static void live_memory(void)
{
	pthread_t t;

	atomic_store(&scribble, true);
	CHECK(!pthread_create(&t, NULL, scribbler, NULL));
	for (unsigned i = 0; i < 500; i++) {
		sim_write(qp[N_QP - 1], peer.addr, peer.rkey, local, 4096, lkey, 0);
		sim_read(qp[N_QP - 1], peer.addr + 8192, peer.rkey, local + 8192, 4096, lkey, 1);
		done(qp[N_QP - 1]);
	}
	atomic_store(&scribble, false);
	pthread_join(t, NULL);
}

/* From now on the kernel lets no thread here read another process. */
static bool forbid_reading(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(*code), code };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &prog);
}

/* Long payloads are read where they lie; when that ends they come in another way. */
static void reading_ends(bool first)
{
	uint64_t reads = STAT(shm_reads), naks = STAT(naks_tx);
	bool on = reads && forbid_reading();

	printf("%s: %lu payloads read where they lay%s\n", first ? "A" : "B", reads,
	       on ? ", from here on none" : "");
	meet();
	if (first)
		write_and_read(40);
	meet();
	if (!on)
		return;
	CHECK(STAT(shm_reads) == reads);
	CHECK(first || STAT(naks_tx) > naks);
}

/* Eight-byte ping-pong, both sides poll memory. */
static void pingpong(bool first)
{
	volatile uint64_t *flag = (volatile uint64_t *)(void *)(mem + BUF - 64);
	uint64_t n = getenv("SOFTHCA_FAULTS") ? 50 : 2000, t = sim_now();
	struct sim_qp *q = qp[N_QP - 1];

	for (uint64_t i = 1; i <= n; i++) {
		if (first) {
			sim_inline(q, peer.addr + BUF - 64, peer.rkey, &i, 8, 1);
			done(q);
		}
		/* Acquire: pairs with the release store of the flag's eight bytes. */
		for (unsigned looks = 1; __atomic_load_n(flag, __ATOMIC_ACQUIRE) != i; looks++) {
			CHECK(sim_now() - t < WAIT * 1000000ull);
			if (looks % LOOKS == 0) /* the other side, or an engine, may have no core */
				sched_yield();
		}
		if (!first) {
			sim_inline(q, peer.addr + BUF - 64, peer.rkey, &i, 8, 1);
			done(q);
		}
	}
	if (first)
		printf("ping-pong 8 B: %.2f us a half round\n",
		       (double)(sim_now() - t) / 2e3 / (double)n);
}

static int run(bool first)
{
	const char *shm = getenv("SOFTHCA_SHM");

	start();
	if (first)
		write_and_read(200);
	meet();
	if (!first)
		write_and_read(200);
	meet();
	if (first)
		count_atomics();
	meet();
	if (first)
		stream();
	meet();
	if (first)
		live_memory();
	meet();
	reading_ends(first);
	CHECK(!STAT(icrc_errors));
	if (shm && !strcmp(shm, "0"))
		CHECK(STAT(pkts_shm) == 0);
	else
		CHECK(STAT(pkts_shm) + 4 >= STAT(pkts_tx)); /* it may be counting */
	pingpong(first);
	meet();
	printf("%s: pkts tx %lu rx %lu dropped %lu retransmits %lu naks tx %lu icrc %lu sleeps %lu\n",
	       first ? "A" : "B", STAT(pkts_tx), STAT(pkts_rx), STAT(pkts_dropped),
	       STAT(retransmits), STAT(naks_tx), STAT(icrc_errors), STAT(engine_sleeps));
	return 0;
}

int main(void)
{
	int pair[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 1;
	child = fork();
	chan = pair[child ? 0 : 1];
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return run(false);
	}
	if (run(true))
		return 1;
	return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
