// SPDX-License-Identifier: BSD-3-Clause
/* Heap memory passes between the PEs of a node and to nobody else. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "runtime/core/clock.h"
#include "runtime/mem/share.h"

#define N 8
#define SIZE (1u << 20)

struct pe {
	int pe;
	struct gdri_share share;
	struct gdri_heap heap;
	struct gdri_share_peer peers[N];
	int timeout_ms;
	uint64_t took_ns;
};
static struct pe pes[N];
/* As the bootstrap's: the option that bounds the exchange is its caller's. */
const char *gdri_boot_waited(int timeout_ms, int left_ms)
{
	static _Thread_local char text[64];

	snprintf(text, sizeof(text), "%d ms (limit: GDR_X=7ms)", timeout_ms - left_ms);
	return text;
}

static int calloc_fails; /* the how manieth from now on; 0: none */

void *__real_calloc(size_t n, size_t size); /* the linker's --wrap */
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	return calloc_fails && !--calloc_fails ? NULL : __real_calloc(n, size);
}

static bool send_fails; /* the other end, which refuses this one, has hung up first */

ssize_t __real_send(int fd, const void *p, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *p, size_t len, int flags);

ssize_t __wrap_send(int fd, const void *p, size_t len, int flags)
{
	errno = EPIPE;
	return send_fails ? -1 : __real_send(fd, p, len, flags);
}

static void *trade(void *arg)
{
	struct pe *p = arg;
	uint64_t begin = gdri_now_ns();
	int i, n = 0;

	for (i = 0; i < N; i++) {
		if (i == p->pe)
			continue;
		p->peers[n].pe = i;
		p->peers[n++].address = pes[i].share.address;
	}
	gdri_share_exchange(&p->share, p->pe, p->heap.parts[0].fd, p->pe % 2 ? p->heap.parts[0].fd : -1,
			 p->peers, n, p->timeout_ms);
	p->took_ns = gdri_now_ns() - begin;
	return NULL;
}

static int open_all(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < N; i++) {
		memset(&pes[i], 0, sizeof(pes[i]));
		pes[i].pe = i;
		pes[i].timeout_ms = 10000;
		if (gdri_heap_open(&pes[i].heap, NULL, false, SIZE, 2 * SIZE, i) || gdri_share_open(&pes[i].share))
			return 1;
	}
	return 0;
}

static int close_all(void **state)
{
	int i, j;

	(void)state;
	for (i = 0; i < N; i++) {
		for (j = 0; j < N - 1; j++) {
			if (pes[i].peers[j].fd > 0)
				close(pes[i].peers[j].fd);
			if (pes[i].peers[j].page > 0)
				close(pes[i].peers[j].page);
		}
		gdri_share_close(&pes[i].share);
		gdri_heap_close(&pes[i].heap);
	}
	return 0;
}

/* Runs the trade of all PEs but `absent` at once. */
static void exchange_all(int absent)
{
	pthread_t threads[N];
	int i;

	for (i = 0; i < N; i++) {
		if (i != absent)
			assert_int_equal(pthread_create(&threads[i], NULL, trade, &pes[i]), 0);
	}
	for (i = 0; i < N; i++) {
		if (i != absent)
			pthread_join(threads[i], NULL);
	}
}

static void everybody_gets_everybodys(void **state)
{
	uint8_t *base;
	char why[96];
	int i, j;

	(void)state;
	exchange_all(-1);
	for (i = 0; i < N; i++) {
		for (j = 0; j < N - 1; j++) {
			const struct gdri_share_peer *p = &pes[i].peers[j];

			assert_true(p->fd >= 0);
			assert_true((p->page >= 0) == (p->pe % 2)); /* as given */
			assert_int_equal(gdri_heap_map_peer(&pes[0].heap, p->fd, p->pe, &base, why,
							    sizeof(why)), 0);
			base[SIZE - 1 - (unsigned int)i] = (uint8_t)(i + 1);
			assert_int_equal(pes[p->pe].heap.base[SIZE - 1 - (unsigned int)i], i + 1);
			gdri_heap_unmap_peer(&pes[0].heap, base);
		}
	}
}

static void a_peer_that_is_gone_costs_no_time(void **state)
{
	int i, j;

	(void)state;
	gdri_share_close(&pes[3].share); /* refused at once */
	exchange_all(3);
	for (i = 0; i < N; i++) {
		if (i == 3)
			continue;
		assert_true(pes[i].took_ns < 5000000000u);
		for (j = 0; j < N - 1; j++)
			assert_true((pes[i].peers[j].fd >= 0) == (pes[i].peers[j].pe != 3));
		assert_non_null(strstr(pes[i].peers[i > 3 ? 3 : 2].why,
				       "no connection to its socket: Connection refused"));
	}
}

/* As containers with networks of their own are: nobody is left who could wake the wait. */
static void where_all_are_gone_nobody_is_waited_for(void **state)
{
	int i;

	(void)state;
	for (i = 1; i < N; i++)
		gdri_share_close(&pes[i].share);
	pes[0].timeout_ms = 600000; /* longer than the test may take */
	trade(&pes[0]);
	for (i = 0; i < N - 1; i++) {
		assert_int_equal(pes[0].peers[i].fd, -1);
		assert_non_null(strstr(pes[0].peers[i].why, "a network of its own"));
	}
}

static void a_peer_that_is_silent_is_given_up(void **state)
{
	int i, j;

	(void)state;
	for (i = 0; i < N; i++)
		pes[i].timeout_ms = 300;
	exchange_all(5); /* listens, but never serves */
	for (i = 0; i < N; i++) {
		if (i == 5)
			continue;
		assert_true(pes[i].took_ns < 3000000000u);
		for (j = 0; j < N - 1; j++)
			assert_true((pes[i].peers[j].fd >= 0) == (pes[i].peers[j].pe != 5));
		assert_non_null(strstr(pes[i].peers[i > 5 ? 5 : 4].why, "within 300 ms (limit: GDR_X=7ms)"));
	}
}

static int stranger(const struct gdri_share_address *a)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), i;

	memcpy(sa.sun_path, "\0gdr-", 5);
	for (i = 0; i < GDRI_SHARE_NAME; i++)
		snprintf(sa.sun_path + 5 + 2 * i, 3, "%02x", a->name[i]);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, offsetof(struct sockaddr_un, sun_path) + 37), 0);
	return fd;
}

/* One without the token gets no descriptor, and one that says nothing holds nobody up. */
static void strangers_get_nothing(void **state)
{
	struct {
		uint32_t magic;
		int32_t pe;
		uint8_t token[16];
	} req = {0x31726873u, 1, {0}};
	char room[256], byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = room,
			     .msg_controllen = sizeof(room)};
	int mute[4], bad, i, j;

	(void)state;
	for (i = 0; i < 4; i++)
		mute[i] = stranger(&pes[0].share.address);
	bad = stranger(&pes[0].share.address);
	memcpy(req.token, pes[0].share.address.token, 16);
	req.token[15] ^= 1;
	assert_int_equal(send(bad, &req, sizeof(req), 0), sizeof(req));
	exchange_all(-1);
	for (i = 0; i < N; i++) {
		for (j = 0; j < N - 1; j++)
			assert_true(pes[i].peers[j].fd >= 0);
	}
	assert_true(recvmsg(bad, &msg, 0) <= 0);
	assert_null(CMSG_FIRSTHDR(&msg));
	for (i = 0; i < 4; i++)
		close(mute[i]);
	close(bad);
}

/* In a process of user 65534: what it is told, 0 when all is as it must be. */
static int other_user(const struct gdri_share_address *host, int ready)
{
	struct {
		uint32_t magic;
		int32_t pe;
		uint8_t token[16];
	} req = {0x31726873u, 1, {0}};
	struct gdri_share_peer peer = {.pe = 0, .address = *host};
	struct gdri_share share;
	uint8_t byte;
	int fd;

	if (setgid(65534) || setuid(65534) || gdri_share_open(&share))
		return 2;
	fd = stranger(host); /* knows the token, and does not look who listens */
	memcpy(req.token, host->token, sizeof(req.token));
	if (send(fd, &req, sizeof(req), 0) != (ssize_t)sizeof(req))
		return 3;
	gdri_share_exchange(&share, 1, memfd_create("x", MFD_CLOEXEC), -1, &peer, 1, 2000);
	if (peer.fd >= 0 || !strstr(peer.why, "it runs as user 0, this PE as 65534"))
		return 4;
	if (write(ready, &share.address, sizeof(share.address)) != (ssize_t)sizeof(share.address))
		return 5;
	return recv(fd, &byte, 1, 0) > 0 ? 6 : 0; /* dropped without a word */
}

/* The token is not enough: memory goes to processes of the same user only, and is taken from
 * them only. */
static void another_user_is_refused(void **state)
{
	/* PE 2 listens and never serves, so that this PE looks who comes to it. */
	struct gdri_share_peer peers[2] = {{.pe = 1}, {.pe = 2, .address = pes[2].share.address}}, *peer = peers;
	int ready[2], status = -1;
	pid_t child;

	(void)state;
	if (geteuid()) {
		print_message("only root can become another user\n");
		skip();
	}
	assert_int_equal(pipe(ready), 0);
	child = fork();
	if (!child)
		_exit(other_user(&pes[0].share.address, ready[1]));
	close(ready[1]);
	assert_int_equal(read(ready[0], &peer->address, sizeof(peer->address)), sizeof(peer->address));
	send_fails = true;
	gdri_share_exchange(&pes[0].share, 0, pes[0].heap.parts[0].fd, -1, peers, 1, 1000);
	send_fails = false;
	assert_int_equal(peer->fd, -1);
	assert_non_null(strstr(peer->why, "it runs as user 65534, this PE as 0"));
	gdri_share_exchange(&pes[0].share, 0, pes[0].heap.parts[0].fd, -1, peers, 2, 1000);
	assert_int_equal(peer->fd, -1);
	assert_non_null(strstr(peer->why, "it runs as user 65534, this PE as 0"));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	close(ready[0]);
}

static void foreign_memory_is_refused(void **state)
{
	int fd = memfd_create("x", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct gdri_heap twice = pes[0].heap;
	uint8_t *base = NULL;
	char why[96];

	(void)state;
	twice.parts[0].size *= 2;
	assert_int_equal(ftruncate(fd, SIZE), 0);
	assert_int_not_equal(gdri_heap_map_peer(&pes[0].heap, fd, 1, &base, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "sealed"));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	assert_int_not_equal(gdri_heap_map_peer(&twice, fd, 1, &base, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "bytes"));
	assert_int_not_equal(gdri_heap_map_peer(&pes[0].heap, fd, 1, &base, why, sizeof(why)), 0);
	assert_non_null(strstr(why, "mark of PE 1"));
	assert_int_not_equal(gdri_heap_map_peer(&pes[0].heap, pes[2].heap.parts[0].fd, 1, &base, why,
						sizeof(why)), 0);
	assert_null(base);
	assert_int_not_equal(ftruncate(pes[2].heap.parts[0].fd, 0), 0); /* ours cannot be shrunk */
	close(fd);
}

/* Nothing is given then, and no descriptor is closed that is not the trade's. */
static void without_memory_nothing_happens(void **state)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fail, j;

	(void)state;
	assert_int_equal(dup2(null, 0), 0);
	for (fail = 1; fail <= 4; fail++) {
		calloc_fails = fail;
		trade(&pes[0]);
		assert_int_equal(calloc_fails, 0);
		for (j = 0; j < N - 1; j++) {
			assert_int_equal(pes[0].peers[j].fd, -1);
			assert_string_equal(pes[0].peers[j].why, "out of memory");
		}
		assert_int_not_equal(fcntl(0, F_GETFD), -1);
	}
	close(null);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(without_memory_nothing_happens, open_all, close_all),
		cmocka_unit_test_setup_teardown(everybody_gets_everybodys, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_peer_that_is_gone_costs_no_time, open_all, close_all),
		cmocka_unit_test_setup_teardown(where_all_are_gone_nobody_is_waited_for, open_all, close_all),
		cmocka_unit_test_setup_teardown(a_peer_that_is_silent_is_given_up, open_all, close_all),
		cmocka_unit_test_setup_teardown(strangers_get_nothing, open_all, close_all),
		cmocka_unit_test_setup_teardown(another_user_is_refused, open_all, close_all),
		cmocka_unit_test_setup_teardown(foreign_memory_is_refused, open_all, close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
