/* SPDX-License-Identifier: BSD-3-Clause */
/* What pages.c does, by UCX: ucx_pages BYTES MIB ROUNDS. Two processes; memory is UCX's own choice, so that transports
 * of one host map it. A word that is put behind a fence says that the first page is there, another one that all are. */
#include "tests/perf/times.h"

#include <ucp/api/ucp.h>

#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ASKED, FIRST, ALL, WORDS }; /* in front of the pages, of one's own memory */
#define HEAD 4096

struct side {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	ucp_mem_h mem;
	ucp_rkey_h rkey;
	char *own;
	uint64_t there;
	int fd;
};

static void must(int holds, const char *what)
{
	if (!holds) {
		fprintf(stderr, "ucx_pages: %s\n", what);
		exit(1);
	}
}

static void transfer_all(int fd, char *p, size_t n, int out)
{
	while (n) {
		ssize_t k = out ? write(fd, p, n) : read(fd, p, n);

		must(k > 0, "the other process is gone");
		p += k;
		n -= (size_t)k;
	}
}

/* n bytes go to the other side; returns what it sent. */
static void *exchange(int fd, const void *mine, uint64_t n)
{
	char *theirs;

	transfer_all(fd, (char *)&n, sizeof(n), 1);
	transfer_all(fd, (char *)(uintptr_t)mine, n, 1);
	transfer_all(fd, (char *)&n, sizeof(n), 0);
	theirs = malloc(n);
	must(!!theirs, "no memory");
	transfer_all(fd, theirs, n, 0);
	return theirs;
}

static void side_open(struct side *s, size_t bytes)
{
	ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_RMA};
	ucp_worker_params_t single = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				      .thread_mode = UCS_THREAD_MODE_SINGLE};
	ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH | UCP_MEM_MAP_PARAM_FIELD_FLAGS,
				    .length = bytes, .flags = UCP_MEM_MAP_ALLOCATE};
	ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
	ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
	ucp_address_t *address;
	uint64_t at, *there;
	size_t n;
	void *key;

	must(!ucp_init(&params, NULL, &s->context) && !ucp_worker_create(s->context, &single, &s->worker), "no worker");
	must(!ucp_mem_map(s->context, &map, &s->mem) && !ucp_mem_query(s->mem, &attr), "no memory");
	s->own = attr.address;
	memset(s->own, 0, bytes);
	at = (uintptr_t)s->own;
	there = exchange(s->fd, &at, sizeof(at));
	s->there = *there;
	must(!ucp_worker_get_address(s->worker, &address, &n), "no address");
	to.address = exchange(s->fd, address, n);
	must(!ucp_ep_create(s->worker, &to, &s->ep), "no endpoint");
	must(!ucp_rkey_pack(s->context, s->mem, &key, &n), "no key");
	must(!ucp_ep_rkey_unpack(s->ep, exchange(s->fd, key, n), &s->rkey), "the key is not taken");
}

static void put(struct side *s, const char *from, size_t n, uint64_t at)
{
	ucp_request_param_t none = {0};
	ucs_status_ptr_t r = ucp_put_nbx(s->ep, from, n, s->there + at, s->rkey, &none);

	must(!UCS_PTR_IS_ERR(r), "a put is refused");
	if (UCS_PTR_IS_PTR(r))
		ucp_request_free(r); /* goes on; the flush waits for it */
}

/* The word of the other side, behind what was put; words that are sent live until the flush. */
static void tell(struct side *s, int word, uint64_t value)
{
	static uint64_t said[WORDS];

	said[word] = value;
	must(!ucp_worker_fence(s->worker), "no fence");
	put(s, (char *)&said[word], sizeof(said[word]), (uint64_t)word * sizeof(uint64_t));
}

static void wait_word(struct side *s, int word, uint64_t value)
{
	volatile uint64_t *own = (volatile uint64_t *)s->own; /* pairs with the other side's fence */

	while (own[word] != value)
		ucp_worker_progress(s->worker);
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* the pages are read behind the word */
}

static void flush(struct side *s)
{
	ucp_request_param_t none = {0};
	ucs_status_ptr_t r = ucp_worker_flush_nbx(s->worker, &none);

	must(!UCS_PTR_IS_ERR(r), "no flush");
	while (UCS_PTR_IS_PTR(r) && ucp_request_check_status(r) == UCS_INPROGRESS)
		ucp_worker_progress(s->worker);
	if (UCS_PTR_IS_PTR(r))
		ucp_request_free(r);
}

/* The other side's progress may need ours (tcp). */
static void meet(struct side *s)
{
	fd_set set;
	struct timeval none;
	char c = 0;

	flush(s);
	transfer_all(s->fd, &c, 1, 1);
	do {
		ucp_worker_progress(s->worker);
		none = (struct timeval){0};
		FD_ZERO(&set);
		FD_SET(s->fd, &set);
	} while (!select(s->fd + 1, &set, NULL, NULL, &none));
	transfer_all(s->fd, &c, 1, 0);
}

/* A core each, as mpirun binds by itself: of two that spin on one, each waits for the end of the other's time slice. */
static void bind_to(int nth)
{
	cpu_set_t own, one;
	int cpu = 0;

	sched_getaffinity(0, sizeof(own), &own);
	for (; CPU_COUNT(&own) > 1 && (!CPU_ISSET(cpu, &own) || nth--); cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (CPU_COUNT(&own) > 1)
		sched_setaffinity(0, sizeof(one), &one);
}

static void draw(uint32_t *place, uint32_t n, unsigned seed)
{
	srand(seed);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t other = (uint32_t)rand() % (k + 1);

		place[k] = place[other];
		place[other] = k;
	}
}

static uint64_t page_word(uint64_t page, uint64_t w)
{
	return (page << 32 ^ w) * 0x9e3779b97f4a7c15u + 1;
}

static void prefill_round(struct side *s, size_t size, uint32_t n, const uint32_t *from, const uint32_t *to,
			  uint64_t round)
{
	wait_word(s, ASKED, round);
	for (uint32_t k = 0; k < n; k++) {
		put(s, s->own + HEAD + from[k] * size, size, HEAD + to[k] * size);
		if (k == 0)
			tell(s, FIRST, round);
	}
	tell(s, ALL, round);
}

int main(int argc, char **argv)
{
	size_t size = argc > 3 ? strtoul(argv[1], NULL, 0) : 0, words = size / 8;
	int rounds = argc > 3 ? atoi(argv[3]) : 0, fd[2], decode, status = 0;
	struct side s = {0};
	uint32_t n, *from, *to;
	double *first, *all;

	must(size && rounds > 0, "usage: ucx_pages BYTES MIB ROUNDS");
	n = (uint32_t)((strtoul(argv[2], NULL, 0) << 20) / size);
	from = calloc(2 * (size_t)n, sizeof(*from));
	first = calloc(2 * (size_t)rounds, sizeof(*first));
	must(from && first && !socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "no memory");
	to = from + n;
	all = first + rounds;
	draw(from, n, 1);
	draw(to, n, 2);
	decode = fork() != 0;
	if (!decode)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	bind_to(decode);
	s.fd = fd[decode];
	close(fd[!decode]);
	side_open(&s, HEAD + n * size);
	for (size_t i = 0; i < n * words && !decode; i++)
		((uint64_t *)(s.own + HEAD))[i] = page_word(i / words, i % words);
	for (int i = -3; i < rounds; i++) {
		uint64_t round = (uint64_t)(i + 4);
		double since, one;

		meet(&s);
		if (!decode) {
			prefill_round(&s, size, n, from, to, round);
			continue;
		}
		since = now_us();
		tell(&s, ASKED, round);
		wait_word(&s, FIRST, round);
		one = now_us() - since;
		wait_word(&s, ALL, round);
		if (i >= 0) {
			first[i] = one;
			all[i] = now_us() - since;
		}
	}
	meet(&s);
	if (!decode)
		_exit(0);
	for (size_t k = 0; k < n; k++)
		for (size_t w = 0; w < words; w++)
			must(((uint64_t *)(s.own + HEAD))[to[k] * words + w] == page_word(from[k], w), "WRONG");
	qsort(first, (size_t)rounds, sizeof(*first), by_value);
	qsort(all, (size_t)rounds, sizeof(*all), by_value);
	printf("%zu %.2f %.3f %u\n", size, first[rounds / 2], (double)n * (double)size / all[rounds / 2] / 1e3, n);
	must(wait(&status) > 0 && status == 0, "prefill failed");
	return 0;
}
