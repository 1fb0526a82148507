/* SPDX-License-Identifier: BSD-3-Clause */
/* An idle device rests and is called by the first doorbell. Each part is a process of its own:
 *
 *   test_rest first PROCESSES TIMES   so many, so often: a second without work, then a write;
 *			prints the median and the longest time to its completion, in us
 *   test_rest cases	a thread that waits for an event, a child that holds copies of all
 *			descriptors, a stop, a queue pair that is new, receives that no doorbell
 *			announces, pages that are gone
 *   test_rest gpu	from the look at a GPU's device file on it does not rest so
 *
 * rest.sh compares the device's counters with what has to be there. */
#include "pair.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX = 2000,
	REST_MS = 1100,	  /* it rests after a second, */
	LATE_MS = 400,	  /* has so much longer where nothing shows it, */
	LIMIT_MS = 10000, /* and else so long to get a core */
};

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Pages of this process whose stores are trapped, which is what rests look like from here. */
static bool trapped(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	bool found = false;
	char line[512];

	while (f && !found && fgets(line, sizeof(line), f))
		found = !strncmp(line, "VmFlags:", 8) && strstr(line, " uw");
	if (f)
		fclose(f);
	return found;
}

/* Until that is so; false: it did not come to be. */
static bool wait_trapped(bool wanted)
{
	for (unsigned ms = 0; ms < LIMIT_MS; ms += 10) {
		if (trapped() == wanted)
			return true;
		usleep(10000);
	}
	return false;
}

/* Where no page is ever to be trapped, as far as this process has seen. */
static bool never;

/* A busy machine lets it come to rest when it has a core for it. */
static void rest(void)
{
	static bool seen;

	usleep(1000 * (REST_MS + (unsigned)random() % 30));
	if (never || !wait_trapped(true))
		usleep(1000 * LATE_MS);
	else
		seen = true;
	never |= !seen; /* no userfaultfd: waited for in vain once */
}

static void write_one(struct pair *p)
{
	pair_post(p, IBV_WR_RDMA_WRITE, 8, 0, p->mr->rkey, 0, 0);
	pair_ok(p);
}

static struct pair *new_pair(void)
{
	void *state;

	pair_setup(&state);
	srandom((unsigned)getpid());
	return state;
}

/* ---- first ---- */

static double *times; /* of all processes */

static void first(int process, int n)
{
	struct pair *p = new_pair();

	for (int i = 0; i < n; i++) {
		double t;

		rest();
		p->buf[0] = (uint8_t)(i + 1);
		t = now_us();
		pair_post(p, IBV_WR_RDMA_WRITE, 1, 0, p->mr->rkey, 0, 0);
		pair_ok(p);
		times[process * n + i] = now_us() - t;
		assert_int_equal(p->buf[BUF / 2], (uint8_t)(i + 1));
	}
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* ---- cases ---- */

static void *post_later(void *p)
{
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct pair *pair = p;

	rest();
	assert_int_equal(ibv_post_recv(pair->qp[1], &wr, &bad), 0);
	pair_post(pair, IBV_WR_RDMA_WRITE_WITH_IMM, 8, 0, pair->mr->rkey, 0, 0);
	pair_ok(pair);
	return NULL;
}

/* Asking for an event rings, too; and waiting for it is rest again. */
static void event(void)
{
	struct pair *p = new_pair();
	struct ibv_cq *cq;
	pthread_t t;
	void *ctx;

	rest();
	assert_int_equal(ibv_req_notify_cq(p->cq[1], 0), 0);
	assert_int_equal(pthread_create(&t, NULL, post_later, p), 0);
	assert_int_equal(ibv_get_cq_event(p->channel, &cq, &ctx), 0);
	ibv_ack_cq_events(cq, 1);
	assert_int_equal(wait_wc(cq).opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	pthread_join(t, NULL);
}

/* A child that was made behind fork()'s back keeps what it inherits. */
static void child(void)
{
	struct pair *p = new_pair();
	pid_t pid;

	rest();
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		sleep(20);
		_exit(0);
	}
	write_one(p);
	rest();
	if (!fork())
		_exit(0); /* with the handlers */
	write_one(p);
	kill(pid, SIGKILL);
	rest();
	write_one(p);
}

static void stop(void)
{
	struct pair *p = new_pair();
	pid_t self = getpid(), pid;

	rest();
	pid = fork();
	if (!pid) {
		kill(self, SIGSTOP);
		usleep(300000);
		kill(self, SIGCONT);
		_exit(0);
	}
	usleep(100000); /* stopped meanwhile */
	write_one(p);
	waitpid(pid, NULL, 0);
}

static void new_qp(void)
{
	struct pair *p = new_pair(), *q;

	rest();
	q = new_pair(); /* another context: pages, too, that were not there */
	write_one(q);
	write_one(p);
	rest();
	write_one(q);
	rest();
	write_one(p);
}

/* A receive that is posted while the device rests is there when a message comes. */
static void receive(void)
{
	struct pair *p = new_pair();
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;

	for (int i = 0; i < 2; i++) {
		rest();
		assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
		pair_post(p, IBV_WR_SEND, 0, 0, 0, 0, 0);
		pair_ok(p);
		assert_int_equal(wait_wc(p->cq[1]).opcode, IBV_WC_RECV);
	}
	/* In the error state it is flushed, with no doorbell to tell: so it goes on looking. */
	never = true;
	assert_int_equal(ibv_modify_qp(p->qp[1], &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR },
				       IBV_QP_STATE), 0);
	rest();
	assert_int_equal(ibv_post_recv(p->qp[1], &wr, &bad), 0);
	assert_int_equal(wait_wc(p->cq[1]).status, IBV_WC_WR_FLUSH_ERR);
}

/* A device that is closed at rest. */
static void gone(void)
{
	struct pair *p = new_pair();
	void *q;

	pair_setup(&q);
	rest();
	pair_teardown(&q);
	rest();
	write_one(p);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = { { "event", event },     { "child", child },     { "stop", stop },
	      { "new_qp", new_qp },   { "receive", receive }, { "gone", gone } };

static void gpu(void)
{
	struct pair *p = new_pair();
	int fd;

	rest();
	write_one(p);
	rest();
	fd = open("/dev/nvidia-none", O_RDONLY); /* while it rests */
	assert_int_equal(fd, -1);
	assert_true(wait_trapped(false));
	never = true;
	write_one(p);
	rest();
	write_one(p);
}

/* ---- all ---- */

/* What became of a process, said where it is no success. */
static bool went_wrong(const char *what, double since, int status)
{
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return false;
	fprintf(stderr, "test_rest: %s: %s %d after %.1f s\n", what,
		WIFEXITED(status) ? "exit status" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), (now_us() - since) / 1e6);
	return true;
}

/* So many processes of the mode; those of the cases have names. */
static int start(const char *mode, int n, void (*fn)(int, int), int arg)
{
	double since = now_us();
	pid_t pids[MAX], pid;
	int bad = 0, status;

	for (int i = 0; i < n; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			alarm(100);
			fn(i, arg);
			exit(0);
		}
	}
	while ((pid = wait(&status)) > 0)
		for (int i = 0; i < n; i++)
			if (pids[i] == pid)
				bad |= went_wrong(strcmp(mode, "cases") ? mode : cases[i].name,
						  since, status);
	return bad;
}

static void run_case(int i, int arg)
{
	(void)arg;
	cases[i].run();
}

static void run_gpu(int i, int arg)
{
	(void)i;
	(void)arg;
	gpu();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int procs = argc > 3 ? atoi(argv[2]) : 1, n = argc > 3 ? atoi(argv[3]) : 1, bad;

	if (!strcmp(mode, "cases"))
		return start(mode, sizeof(cases) / sizeof(*cases), run_case, 0);
	if (!strcmp(mode, "gpu"))
		return start(mode, 1, run_gpu, 0);
	if (strcmp(mode, "first") || procs < 1 || n < 1 || procs * n > MAX)
		return 2;
	times = mmap(NULL, MAX * sizeof(*times), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bad = start(mode, procs, first, n);
	n *= procs;
	qsort(times, (size_t)n, sizeof(*times), by_value);
	printf("%.0f %.0f\n", times[n / 2], times[n - 1]);
	return bad;
}
