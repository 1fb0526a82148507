/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared memory between processes when something goes wrong: a peer that is
 * killed in the middle and replaced, one that is stopped, one that talks
 * nonsense. With SOFTHCA_SHM=0 the stopped one over sockets. The peer serves until
 * it is killed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "sim.h"
#include "softhca/transport/rc.h"
#include "softhca/wire/wire_shm_impl.h"

enum { BUF = 1 << 22, WAIT = 30000, BIG = 1 << 16 };
enum { RING_TAIL = 64, RING_REACH = 256, RING_BYTES = 4096, RING_SIZE = 1 << 20 }; /* wire_ring.h */
enum { STUCK_NS = 1000000000 }; /* wire_shm_out.c */
enum { FD_LIMIT = 64, FD_KEPT = FD_LIMIT / 4, SEALED = 8, UNSEALED = 20 }; /* of a crowded peer */

struct hello {
	uint32_t qpn, rkey;
	uint64_t addr;
};

static uint8_t *local;
static uint64_t *peer_mapped; /* payloads that the peer copied from mapped memory */
static uint32_t lkey;
static struct hello peer;
static pid_t child;
static int chan;
static bool crowded; /* the peer shows many regions ahead of its window */
static bool turning; /* it has plain memory, which none may read from its fourth QP on */
enum { TURNS_AT = 3 };

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond);         \
			if (child)                                                                 \
				kill(child, SIGKILL);                                              \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Relaxed: the engine counts on meanwhile. */
#define STAT(field) __atomic_load_n(&hca_stats.field, __ATOMIC_RELAXED)

static void nap(long ms)
{
	struct timespec t = { .tv_nsec = ms * 1000000 };

	nanosleep(&t, NULL);
}

static struct sim_qp *new_qp(void)
{
	struct sim_qp *q = sim_qp(6, SIM_CQ_RING);

	q->qp.mtu = 4096;
	q->qp.ack_timeout = 14; /* 67 ms */
	return q;
}

/* Shared memory of a file that others may map: registered for them, too. */
static uint8_t *in_sealed_file(void *at, size_t len, uint32_t key, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);
	struct hca_mr mr = { .key = key, .len = len };

	CHECK(fd >= 0 && !ftruncate(fd, (off_t)len) && !fcntl(fd, F_ADD_SEALS, seals));
	mr.va = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
	CHECK(mr.va != MAP_FAILED);
	hca_lock();
	dp_mr_registered(&mr, fd, 0);
	hca_unlock();
	return mr.va;
}

static uint8_t *in_file_as(void *at, size_t len, uint32_t key)
{
	return in_sealed_file(at, len, key, 0);
}

static uint8_t *in_file(void *at)
{
	return in_file_as(at, BUF, 0x77);
}

static void take_back(uint32_t key)
{
	struct hca_mr mr = { .key = key };

	hca_lock();
	dp_mr_gone(&mr);
	hca_unlock();
}

static void show_many(void)
{
	for (uint32_t i = 0; i < SEALED + UNSEALED; i++)
		in_sealed_file(NULL, BIG, 0x100 + i, i < SEALED ? F_SEAL_SHRINK : 0);
}

/* The peer: a window, and a QP for each that asks. */
static void serve(int fd)
{
	static uint8_t plain[BUF];
	struct hello h;
	uint8_t *mem;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sim_init();
	if (crowded)
		show_many();
	mem = turning ? plain : in_file(0);
	h.rkey = sim_mr(mem, BUF, 0xf, 1, 0x10000);
	h.addr = 0x10000;
	for (;;) {
		static unsigned join_no;
		struct sim_qp *q = new_qp();
		uint32_t qpn;

		h.qpn = q->qp.qpn;
		if (read(fd, &qpn, 4) != 4 || write(fd, &h, sizeof(h)) != sizeof(h))
			_exit(1);
		if (turning && join_no++ == TURNS_AT)
			CHECK(!prctl(PR_SET_DUMPABLE, 0));
		*peer_mapped = STAT(shm_mapped);
		sim_connect(q, qpn);
		if (write(fd, "", 1) != 1)
			_exit(1);
	}
}

/* To be forked before this process has an engine: a child cannot have one. */
static pid_t spawn(int *fd)
{
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(1);
	pid = fork();
	if (!pid)
		serve(pair[1]);
	*fd = pair[0];
	return pid;
}

static struct sim_qp *join(void)
{
	struct sim_qp *q = new_qp();
	char c;

	CHECK(write(chan, &q->qp.qpn, 4) == 4);
	CHECK(read(chan, &peer, sizeof(peer)) == sizeof(peer));
	sim_connect(q, peer.qpn);
	CHECK(read(chan, &c, 1) == 1);
	return q;
}

static void post(struct sim_qp *q, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sim_write(q, peer.addr + i * BIG, peer.rkey, local + i * BIG, BIG, lkey, 1);
	sim_ring(q);
}

static void expect(struct sim_qp *q, unsigned n, uint8_t syndrome)
{
	struct sim_cqe c;

	for (unsigned i = 0; i < n; i++) {
		CHECK(sim_poll(q, &c, WAIT));
		if (c.syndrome != syndrome)
			fprintf(stderr, "syndrome 0x%x/0x%x\n", c.syndrome, c.vendor);
		CHECK(c.syndrome == syndrome);
	}
}

static void read_back(struct sim_qp *q)
{
	memset(local + BUF / 2, 0xee, BUF / 2);
	sim_read(q, peer.addr, peer.rkey, local + BUF / 2, BUF / 2, lkey, 1);
	sim_ring(q);
	expect(q, 1, 0);
	CHECK(!memcmp(local, local + BUF / 2, BUF / 2));
}

/* Mappings of this process that have this name. */
static unsigned mappings(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned n = 0;

	CHECK(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, name) != NULL;
	fclose(f);
	return n;
}

static unsigned rings(void)
{
	return mappings("softhca ring");
}

/* True when nothing was lost; a peer that takes nothing for a second counts as one that loses. */
static bool stopped_for(struct sim_qp *q, struct sim_qp *r, long ms)
{
	uint64_t retransmits = STAT(retransmits), dropped = STAT(pkts_dropped);

	kill(child, SIGSTOP);
	post(q, 32); /* more than the ring holds */
	post(r, 32);
	nap(ms);
	kill(child, SIGCONT);
	expect(q, 32, 0);
	expect(r, 32, 0);
	return STAT(retransmits) == retransmits && STAT(pkts_dropped) == dropped;
}

/* The engine's clock is from before it waited for a core: that time is none of the peer's. No ring has room for so long
 * a packet. */
static void full_late(const struct sim_qp *q)
{
	uint32_t slot = q->qp.rc->dest.slot;
	uint64_t start;
	unsigned room;

	hca_lock(); /* rounds are this thread's */
	engine_round_elsewhere();
	nap(600);
	nap(600); /* STUCK_NS, and more */
	start = sim_now();
	CHECK(!wire_shm_room(slot, 2 * RING_SIZE, 1));
	engine_round_elsewhere();
	room = wire_shm_room(slot, 2 * RING_SIZE, 1);
	CHECK(!room || sim_now() - start > STUCK_NS);
	CHECK(wire_shm_room(slot, 4096, 1) == 1);
	hca_unlock();
}

static void stopped(void)
{
	struct sim_qp *q = join(), *r = join();
	bool slow = true;

	q->qp.ack_timeout = r->qp.ack_timeout = 20; /* more than four seconds */
	post(q, 8);
	expect(q, 8, 0);
	full_late(q);
	/* On a busy machine it is stopped for longer than it was told: that says nothing. */
	for (unsigned i = 0; i < 10 && slow; i++) {
		uint64_t start = sim_now();
		bool kept = stopped_for(q, r, 300);

		slow = sim_now() - start > STUCK_NS - STUCK_NS / 10;
		CHECK(kept || slow);
	}
	read_back(q);
}

static void fill(uint8_t *at, uint32_t seed)
{
	for (unsigned i = 0; i < BUF / 2; i++)
		at[i] = (uint8_t)((i + seed) * 2654435761u >> 24);
}

static uint64_t mapped_by_peer(void)
{
	join();
	return __atomic_load_n(peer_mapped, __ATOMIC_RELAXED);
}

/* Another file takes the place of one that is shown still: too short to be shown itself, or
 * shown and taken back. */
static void replaced(struct sim_qp *q, uint8_t *at)
{
	static const size_t len[] = { 3 * BIG / 4, BUF };

	for (unsigned i = 0; i < 2; i++) {
		take_back(0x77);
		in_file(at);
		fill(at, 5);
		post(q, 1);
		expect(q, 1, 0);
		in_file_as(at, len[i], 0x79);
		take_back(0x79);
		fill(at, 6);
		memset(local + BUF / 2, 0xee, BUF / 2);
		sim_write(q, peer.addr, peer.rkey, at, BIG / 2, lkey, 1);
		sim_read(q, peer.addr, peer.rkey, at + BUF / 2, BIG / 2, lkey, 1);
		sim_ring(q);
		expect(q, 2, 0);
		CHECK(!memcmp(at, at + BUF / 2, BIG / 2));
	}
}

/* The peer maps what it is shown: what is there now, not what was there before. Both ways. */
static void shown(void)
{
	struct sim_qp *q = join();
	uint8_t *old = local, *at;
	uint32_t old_key = lkey;
	uint64_t reads, mapped;

	read_back(q);
	CHECK(STAT(shm_mapped));
	mapped = mapped_by_peer();
	at = in_file(NULL);
	local = at;
	lkey = sim_mr(at, BUF, 1, 1, (uint64_t)(uintptr_t)at);
	for (uint32_t i = 0; i < 4; i++) {
		fill(at, 1000 * i);
		post(q, 32);
		expect(q, 32, 0);
		read_back(q);
		take_back(0x77);
		CHECK(mapped_by_peer() >= mapped + 8); /* the window may cut messages */
		mapped = mapped_by_peer();
		in_file(at); /* another file at the same place */
	}
	replaced(q, at);
	/* Registered anew as memory of no file, without a word of its end. */
	CHECK(mmap(at, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		   0) == at);
	hca_lock();
	dp_mr_registered(&(struct hca_mr){ .key = 0x78, .va = at, .len = BUF }, -1, 0);
	hca_unlock();
	fill(at, 77);
	reads = mapped_by_peer();
	post(q, 32);
	expect(q, 32, 0);
	read_back(q);
	CHECK(mapped_by_peer() == reads);
	munmap(at, BUF);
	local = old;
	lkey = old_key;
	post(q, 32);
	expect(q, 32, 0);
	read_back(q);
}

/* A process that gets no core for longer than the retries would take has lost
 * nothing; one that gets none for good is given up. */
static void starved(void)
{
	struct sim_qp *q = join(), *r = join();

	q->qp.ack_timeout = 13; /* 0.74 s in all, five times that for the starved */
	r->qp.ack_timeout = 8;
	post(q, 32);
	expect(q, 32, 0);
	kill(child, SIGSTOP);
	post(q, 8);
	nap(900);
	post(r, 1);
	expect(r, 1, 0x15);
	kill(child, SIGCONT);
	expect(q, 8, 0);
	read_back(q);
}

static void killed(int next_chan, pid_t next)
{
	struct sim_qp *q = join();
	struct sim_cqe c;
	unsigned left = 31;

	post(q, 32);
	CHECK(sim_poll(q, &c, WAIT) && !c.syndrome);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	do {
		if (!left) { /* all had arrived before the end */
			post(q, 1);
			left = 1;
		}
		CHECK(sim_poll(q, &c, WAIT));
		left--;
	} while (!c.syndrome);
	CHECK(c.syndrome == 0x15 && c.vendor == 0x81);
	for (unsigned i = 0; rings() && i < 100; i++)
		nap(20);
	CHECK(!rings());
	/* Another process is reached as before. */
	child = next;
	chan = next_chan;
	q = join();
	post(q, 32);
	expect(q, 32, 0);
	read_back(q);
	CHECK(rings());
}

static socklen_t name_of(uint32_t slot, struct sockaddr_un *a)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			   (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1,
					    "softhca-slot-%u", slot));
}

static int dial(void)
{
	struct sockaddr_un a;
	socklen_t n = name_of(peer.qpn >> 14, &a);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	CHECK(fd >= 0);
	CHECK(!connect(fd, (struct sockaddr *)&a, n));
	return fd;
}

static void say(int fd, const uint32_t hello[6], size_t n, int pass)
{
	CHECK(message_send(fd, hello, n, pass));
}

/* True when the peer hangs up. */
static bool refused(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c;

	return poll(&p, 1, WAIT) == 1 && recv(fd, &c, 1, 0) <= 0;
}

/* A ring whose first bytes are these; tail says how many there are. */
static int fake_ring(uint64_t tail, const void *bytes, size_t n)
{
	uint32_t head[2] = { 0x50fca105, RING_SIZE };
	int fd = memfd_create("fake", MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && !ftruncate(fd, RING_BYTES + RING_SIZE));
	CHECK(pwrite(fd, head, sizeof(head), 0) == sizeof(head));
	CHECK(pwrite(fd, &tail, 8, RING_TAIL) == 8);
	CHECK(pwrite(fd, bytes, n, RING_BYTES) == (ssize_t)n);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	return fd;
}

/* Who is let in is told how payload can be had from it. */
static void wait_until_in(int ring)
{
	uint64_t end = sim_now() + WAIT * 1000000ull;
	uint32_t reach = 0;

	while (!reach) {
		CHECK(sim_now() < end);
		nap(1);
		CHECK(pread(ring, &reach, sizeof(reach), RING_REACH) == sizeof(reach));
	}
}

/* Magic number, slot, where to read a word in this process, that word. */
static const uint32_t good[6] = { 0x50fca106, 900 };

/* Is let in, and thrown out for the bytes of its first packet. */
static void bad_packet(uint64_t tail, const uint32_t packet[8])
{
	int fd = dial(), ring = fake_ring(0, packet, 32);

	say(fd, good, sizeof(good), ring);
	wait_until_in(ring);
	CHECK(pwrite(ring, &tail, 8, RING_TAIL) == 8);
	CHECK(refused(fd));
	close(fd);
	close(ring);
}

static void nonsense(void)
{
	static const uint32_t magic[6] = { 1, 900 }, slot[6] = { 0x50fca106, 5000 };
	/* Payload length, header length, packets beyond the first, pieces elsewhere: too long
	 * a payload, too long a header, past the tail, too many packets, too many pieces, no
	 * packet. */
	static const uint32_t packets[][8] = {
		{ 5000, 28 }, { 8, 200 }, { 4096, 28 }, { 8, 28, 128 }, { 8, 28, 0, 17 },
		{ 8, 28, 0, 0, 0xffffffff },
	};
	struct sim_qp *q = join();
	int fd, ring = fake_ring(0, good, 8);

	fd = dial();
	say(fd, good, 3, -1);
	CHECK(refused(fd));
	close(fd);
	for (unsigned i = 0; i < 3; i++) {
		fd = dial();
		say(fd, i == 0 ? magic : i == 1 ? slot : good, sizeof(good), i == 2 ? 0 : ring);
		CHECK(refused(fd));
		close(fd);
	}
	close(ring);
	bad_packet(1ull << 40, packets[0]);
	for (unsigned i = 0; i < sizeof(packets) / sizeof(*packets); i++)
		bad_packet(64, packets[i]);
	close(dial()); /* comes and goes without a word */
	post(q, 32);
	expect(q, 32, 0);
	read_back(q);
}

/* ---- other users ---- */

enum { OTHER_USER = 65534, FREE_SLOT = 1000 };

/* What it returns is this process's exit status; 0: as it has to be. */
static pid_t as_other_user(int (*what)(int), int arg)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	_exit(setgid(OTHER_USER) || setuid(OTHER_USER) ? 9 : what(arg));
}

static bool went_well(pid_t pid)
{
	int status;

	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* Is not let in, before it has said a word: one of this user's would be waited for. */
static int visitor(int unused)
{
	(void)unused;
	return refused(dial()) ? 0 : 1;
}

/* Has the name of a slot before its owner could take it, and gets nothing from who comes. */
static int impostor(int ready)
{
	struct pollfd p = { .fd = socket(AF_UNIX, SOCK_SEQPACKET, 0), .events = POLLIN };
	struct sockaddr_un a;
	socklen_t n = name_of(FREE_SLOT, &a);
	char c[64];

	if (bind(p.fd, (struct sockaddr *)&a, n) || listen(p.fd, 1) || write(ready, "", 1) != 1 ||
	    poll(&p, 1, WAIT) != 1)
		return 1;
	p.fd = accept(p.fd, NULL, NULL);
	/* Not a byte, so no descriptor either: the end. */
	return p.fd >= 0 && poll(&p, 1, WAIT) == 1 && recv(p.fd, c, sizeof(c), 0) == 0 ? 0 : 2;
}

static void other_users(void)
{
	struct sim_qp *q = new_qp();
	unsigned before = rings();
	int ready[2];
	pid_t pid;
	char c;

	if (geteuid()) {
		printf("not root: nobody else to be\n");
		return;
	}
	CHECK(went_well(as_other_user(visitor, 0)));
	CHECK(!pipe(ready));
	pid = as_other_user(impostor, ready[1]);
	CHECK(read(ready[0], &c, 1) == 1);
	sim_connect(q, (uint32_t)FREE_SLOT << 14 | 1);
	CHECK(went_well(pid));
	CHECK(rings() == before);
}

static unsigned open_test_files(void)
{
	char path[64], name[64];
	unsigned n = 0;

	for (int fd = 0; fd < FD_LIMIT; fd++) {
		ssize_t len;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		len = readlink(path, name, sizeof(name) - 1);
		if (len < 0)
			continue;
		name[len] = 0;
		n += strstr(name, "memfd:test") != NULL;
	}
	return n;
}

/* A peer shows more than this process has descriptors for: a part of them is its, sealed files
 * take none, and what is not mapped is read. */
static void few_descriptors(void)
{
	struct rlimit few = { FD_LIMIT, FD_LIMIT };
	struct sim_qp *q;

	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	q = join();
	post(q, 32);
	expect(q, 32, 0);
	read_back(q);
	CHECK(STAT(shm_reads) && !STAT(shm_mapped));
	CHECK(open_test_files() == FD_KEPT);
	CHECK(mappings("memfd:test") == FD_KEPT + SEALED);
	CHECK(open("/dev/null", O_RDONLY) >= 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* The ring is given back first, what was mapped behind it. */
	for (unsigned i = 0; (rings() || open_test_files() || mappings("memfd:test")) && i < 100; i++)
		nap(20);
	CHECK(!open_test_files() && !mappings("memfd:test"));
	child = 0;
}

/* Both sides may be read, until they may not any more: what is on its way then arrives all the same, of
 * queue pairs that repeat nothing and wait for no time-out. */
static void turns_unreadable(void)
{
	struct sim_qp *q[TURNS_AT];
	uint64_t naks;

	for (unsigned i = 0; i < TURNS_AT; i++) {
		q[i] = join();
		q[i]->qp.retry_cnt = q[i]->qp.ack_timeout = 0;
		post(q[i], 32);
	}
	for (unsigned i = 0; i < TURNS_AT; i++)
		expect(q[i], 32, 0);
	read_back(q[0]);
	CHECK(STAT(shm_reads) && !STAT(shm_mapped));
	naks = STAT(naks_rx);
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
	fill(local, 8);
	for (unsigned i = 0; i < TURNS_AT; i++)
		post(q[i], 32);
	for (unsigned i = 0; i < TURNS_AT; i++)
		expect(q[i], 32, 0);
	CHECK(STAT(naks_rx) > naks);
	read_back(q[0]);
	join(); /* the other side's turn */
	for (unsigned i = 0; i < TURNS_AT; i++)
		sim_read(q[i], peer.addr, peer.rkey, local + BUF / 2, BUF / 2, lkey, 1);
	for (unsigned i = 0; i < TURNS_AT; i++)
		sim_ring(q[i]);
	for (unsigned i = 0; i < TURNS_AT; i++)
		expect(q[i], 1, 0);
	read_back(q[1]);
	CHECK(!STAT(ack_timeouts));
}

/* ---- no descriptor is left ---- */

static bool refusing;	    /* read by the engine's thread, relaxed as the count that it keeps */
static bool tight;	    /* the same */
static unsigned n_refused;

static void leave_descriptors(rlim_t n)
{
	struct rlimit now;

	CHECK(!getrlimit(RLIMIT_NOFILE, &now));
	now.rlim_cur = n;
	CHECK(!setrlimit(RLIMIT_NOFILE, &now));
}

int __real_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);
int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags);

int __wrap_accept4(int fd, struct sockaddr *a, socklen_t *n, int flags)
{
	if (!__atomic_load_n(&refusing, __ATOMIC_RELAXED)) {
		int got = __real_accept4(fd, a, n, flags);

		if (got >= 0 && __atomic_exchange_n(&tight, false, __ATOMIC_RELAXED)) {
			int first = open("/dev/null", O_RDONLY); /* all below are in use */

			CHECK(first >= 0 && !close(first));
			leave_descriptors((rlim_t)first);
		}
		return got;
	}
	__atomic_fetch_add(&n_refused, 1, __ATOMIC_RELAXED);
	errno = EMFILE;
	return -1;
}

/* Who asks cannot be let in for a while: the engine sleeps, looks now and then, and lets him in. */
static void full(void)
{
	uint64_t start = sim_now(), sleeps;
	struct sim_cqe c;
	struct sim_qp *q;
	unsigned n;

	__atomic_store_n(&refusing, true, __ATOMIC_RELAXED);
	q = join();
	q->qp.ack_timeout = 0; /* no limit */
	post(q, 32);
	nap(100); /* what there is to do is done */
	sleeps = STAT(engine_sleeps);
	nap(500);
	CHECK(!sim_poll(q, &c, 0));
	CHECK(STAT(engine_sleeps) > sleeps);
	n = __atomic_load_n(&n_refused, __ATOMIC_RELAXED);
	CHECK(n > 1 && n <= 2 + (sim_now() - start) / 50000000);
	__atomic_store_n(&refusing, false, __ATOMIC_RELAXED);
	expect(q, 32, 0);
	read_back(q);
}

/* He who is let in with the last descriptor gets his ring in, too. */
static void last(pid_t next, int next_chan)
{
	struct rlimit before;
	struct sim_qp *q = join();
	pid_t first = child;
	unsigned both;

	CHECK(!getrlimit(RLIMIT_NOFILE, &before));
	post(q, 32);
	expect(q, 32, 0);
	both = rings(); /* to and from one peer */
	child = next;
	chan = next_chan;
	__atomic_store_n(&refusing, true, __ATOMIC_RELAXED);
	q = join();
	__atomic_store_n(&tight, true, __ATOMIC_RELAXED);
	__atomic_store_n(&refusing, false, __ATOMIC_RELAXED);
	q->qp.ack_timeout = 0; /* no limit */
	post(q, 32);
	expect(q, 32, 0);
	CHECK(!__atomic_load_n(&tight, __ATOMIC_RELAXED));
	leave_descriptors(before.rlim_cur);
	CHECK(rings() == 2 * both);
	read_back(q);
	kill(first, SIGKILL);
}

/* As where the kernel does not let one process read another's memory. */
static void be_unreadable(void)
{
	if (!geteuid())
		CHECK(!setgid(OTHER_USER) && !setuid(OTHER_USER));
	CHECK(!prctl(PR_SET_DUMPABLE, 0));
}

/* By its own user alone. */
static void be_readable(void)
{
	be_unreadable();
	CHECK(!prctl(PR_SET_DUMPABLE, 1));
}

int main(int argc, char **argv)
{
	const char *shm = getenv("SOFTHCA_SHM");
	bool unreadable = argc > 1 && !strcmp(argv[1], "unreadable");
	bool by_shm = !shm || strcmp(shm, "0");
	bool closed = argc > 1 && !strcmp(argv[1], "full");
	bool lasting = argc > 1 && !strcmp(argv[1], "last");
	int next_chan;
	pid_t next;

	crowded = argc > 1 && !strcmp(argv[1], "crowded");
	turning = argc > 1 && !strcmp(argv[1], "turns");
	if (unreadable)
		be_unreadable();
	else if (turning)
		be_readable();
	peer_mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = spawn(&chan);
	next = spawn(&next_chan);
	sim_init();
	local = aligned_alloc(4096, BUF);
	CHECK(local);
	for (unsigned i = 0; i < BUF; i++)
		local[i] = (uint8_t)(i * 2654435761u >> 24);
	lkey = sim_mr(local, BUF, 1, 1, (uint64_t)(uintptr_t)local);
	if (crowded || turning || closed || lasting) {
		if (lasting)
			last(next, next_chan);
		else if (crowded)
			few_descriptors();
		else if (turning)
			turns_unreadable();
		else
			full();
		goto out;
	}
	if (by_shm) {
		stopped();
		/* It may be counting. */
		CHECK(STAT(pkts_shm) + STAT(pkts_dropped) + 4 >= STAT(pkts_tx));
		shown();
	}
	starved();
	if (!by_shm)
		goto out;
	nonsense();
	other_users();
	killed(next_chan, next);
	CHECK(!unreadable || (STAT(shm_mapped) && !STAT(shm_reads)));
out:
	kill(next, SIGKILL);
	if (child)
		kill(child, SIGKILL);
	while (wait(NULL) > 0)
		;
	printf("pkts shm %lu of %lu, wakes %lu\n", STAT(pkts_shm), STAT(pkts_tx), STAT(shm_wakes));
	return 0;
}
