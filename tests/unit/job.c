// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include "tests/unit/job.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gdr/status.h>

#define MAX_PES 16
#define ROOM (64u * 1024u)

/* Two generations of contributions: a PE that is one call ahead writes the other. */
struct board {
	uint32_t arrived[MAX_PES]; /* calls entered; release by the owner, acquire by all */
	uint32_t len[2][MAX_PES];
	unsigned char data[2][MAX_PES][ROOM];
};

static struct board *board;
static int own_pe, own_n, calls, out_fd = -1;
void (*job_lie)(int call, void *send, size_t len);
int job_last_call, job_finalize_ms;

void job_note_call(int call, void *send, size_t len)
{
	(void)send;
	(void)len;
	job_last_call = call;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int gather(struct gdr_bootstrap *b, const void *send, void *recv, size_t len, int timeout_ms)
{
	uint32_t call = (uint32_t)++calls, side = call & 1;
	double end = now() + timeout_ms * 1e-3;
	int i;

	(void)b;
	if (len > ROOM)
		return -GDR_EINVAL;
	board->len[side][own_pe] = (uint32_t)len;
	if (len)
		memcpy(board->data[side][own_pe], send, len);
	if (job_lie)
		job_lie((int)call - 1, board->data[side][own_pe], len);
	__atomic_store_n(&board->arrived[own_pe], call, __ATOMIC_RELEASE);
	for (i = 0; i < own_n; i++) {
		while (__atomic_load_n(&board->arrived[i], __ATOMIC_ACQUIRE) < call) {
			if (now() > end)
				return -GDR_ETIMEOUT;
			usleep(100);
		}
		if (board->len[side][i] != len)
			return -GDR_EBOOTSTRAP;
		if (len)
			memcpy((char *)recv + (size_t)i * len, board->data[side][i], len);
	}
	return 0;
}

static int barrier(struct gdr_bootstrap *b, int timeout_ms)
{
	return gather(b, NULL, NULL, 0, timeout_ms);
}

static int do_abort(struct gdr_bootstrap *b, int code, const char *text)
{
	(void)b;
	(void)text;
	_exit(code);
}

static void finalize(struct gdr_bootstrap *b, int timeout_ms)
{
	job_finalize_ms = timeout_ms;
	free(b);
}

struct gdr_bootstrap *job_bootstrap(void)
{
	struct gdr_bootstrap *b = calloc(1, sizeof(*b));

	b->version = GDR_BOOTSTRAP_VERSION;
	b->size = sizeof(*b);
	b->pe = own_pe;
	b->n_pes = own_n;
	b->node = 0;
	b->name = "job";
	snprintf(b->hostname, sizeof(b->hostname), "here");
	b->allgather = gather;
	b->barrier = barrier;
	b->abort = do_abort;
	b->finalize = finalize;
	return b;
}

const char *job_stderr(void)
{
	static char text[16384];
	ssize_t n = pread(out_fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	return text;
}

static void child(int pe, int n, int (*body)(int pe, int n_pes))
{
	int rc;

	own_pe = pe;
	own_n = n;
	calls = 0;
	out_fd = memfd_create("stderr", 0);
	fcntl(out_fd, F_SETFL, O_APPEND);
	dup2(out_fd, 2);
	rc = body(pe, n);
	if (rc)
		dprintf(1, "PE %d said:\n%s", pe, job_stderr());
	exit(rc); /* exit, so that leak checkers report */
}

static int reap(pid_t *pids, int n, int limit_s)
{
	double end = now() + limit_s;
	int left = n, bad = 0, status, i;

	while (left) {
		for (i = 0; i < n; i++) {
			if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i])
				continue;
			if (!WIFEXITED(status) || WEXITSTATUS(status)) {
				printf("PE %d ended with status 0x%x\n", i, (unsigned int)status);
				bad++;
			}
			pids[i] = 0;
			left--;
		}
		if (left && now() > end) {
			for (i = 0; i < n; i++) {
				if (pids[i] > 0) {
					printf("PE %d hangs\n", i);
					kill(pids[i], SIGKILL);
				}
			}
			end += 60;
		}
		usleep(1000);
	}
	return bad;
}

int job_run(int n, int limit_s, int (*body)(int pe, int n_pes))
{
	pid_t pids[MAX_PES];
	int i, bad;

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED || n > MAX_PES)
		return n;
	fflush(NULL);
	for (i = 0; i < n; i++) {
		pids[i] = fork();
		if (!pids[i])
			child(i, n, body);
	}
	bad = reap(pids, n, limit_s);
	munmap(board, sizeof(*board));
	return bad;
}
