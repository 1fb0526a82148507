/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring between two processes: bytes and order over many laps, room, what is
 * refused as no ring, and the sleeping reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softhca/wire/wire_ring.h"

enum { SIZE = 1 << 20, WAKES = 20000 };

static struct ring out, in;
static int fd;

static int setup(void **state)
{
	(void)state;
	return ring_create(&out, &fd) || ring_open(&in, fd);
}

static int teardown(void **state)
{
	(void)state;
	ring_close(&out);
	ring_close(&in);
	return close(fd);
}

static void test_laps(void **state)
{
	unsigned seed = 7, expect = 7;
	const uint8_t *at;

	(void)state;
	for (unsigned i = 0; i < 5000; i++) {
		size_t n = 64 * (1 + (seed = seed * 1664525u + 1013904223u) % 70);

		assert_true(ring_room(&out, n) >= n);
		memset(ring_at_tail(&out), (int)(i & 0xff), n);
		ring_push(&out, n);
		assert_int_equal(ring_readable(&in, &at), 0); /* not shown yet */
		assert_false(ring_publish(&out));
		assert_int_equal(ring_readable(&in, &at), n);
		expect = expect * 1664525u + 1013904223u;
		assert_int_equal(n, 64 * (1 + expect % 70));
		for (size_t k = 0; k < n; k++)
			assert_int_equal(at[k], i & 0xff);
		ring_pop(&in, n);
		ring_release(&in);
	}
}

static void test_full(void **state)
{
	const uint8_t *at;

	(void)state;
	assert_int_equal(ring_room(&out, SIZE), SIZE);
	ring_push(&out, SIZE);
	ring_publish(&out);
	assert_int_equal(ring_room(&out, 64), 0);
	assert_int_equal(ring_readable(&in, &at), SIZE);
	ring_pop(&in, 128);
	assert_int_equal(ring_room(&out, 64), 0); /* not given back yet */
	ring_release(&in);
	assert_int_equal(ring_room(&out, 64), 128);
}

/* The other side can write anything into the shared words. */
static void test_nonsense(void **state)
{
	uint8_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	const uint64_t much = SIZE + 64, past = 4096;
	const uint8_t *at;

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	memcpy(shared + 64, &much, 8);
	assert_int_equal(ring_readable(&in, &at), -1);
	ring_push(&out, SIZE);
	memcpy(shared + 128, &past, 8);
	assert_int_equal(ring_room(&out, 64), 4096);
	memset(shared + 128, 0xff, 8); /* read more than was written */
	assert_int_equal(ring_room(&out, SIZE), 4096);
	memset(shared + 64, 0xff, 8);
	munmap(shared, 4096);
}

static void test_no_ring(void **state)
{
	struct ring r;
	int other = memfd_create("other", MFD_ALLOW_SEALING);

	(void)state;
	assert_true(other >= 0);
	assert_true(ring_open(&r, -1) < 0);
	assert_true(ring_open(&r, 0) < 0);
	assert_int_equal(ftruncate(other, SIZE + 4096), 0);
	assert_true(ring_open(&r, other) < 0); /* could be cut */
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_true(ring_open(&r, other) < 0); /* no magic number */
	close(other);
	other = memfd_create("short", MFD_ALLOW_SEALING);
	assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_true(ring_open(&r, other) < 0);
	close(other);
}

/* A reader that waits for a byte in a pipe whenever it finds nothing: were one
 * wake-up lost, both would wait for ever. */
static int wake[2], answer[2];

static void *reader(void *arg)
{
	unsigned got = 0;
	const uint8_t *at;
	char c;

	(void)arg;
	while (got < WAKES) {
		int64_t n = ring_readable(&in, &at);

		if (!n) {
			ring_sleep(&in);
			n = ring_readable(&in, &at);
			if (!n && read(wake[0], &c, 1) != 1)
				return "pipe";
			ring_awake(&in);
		}
		if (n <= 0)
			continue;
		ring_pop(&in, (size_t)n);
		ring_release(&in);
		got += (unsigned)n / 64;
		if (write(answer[1], "", 1) != 1)
			return "pipe";
	}
	return NULL;
}

static void test_wake(void **state)
{
	pthread_t t;
	void *ret;
	char c;

	(void)state;
	assert_int_equal(pipe(wake), 0);
	assert_int_equal(pipe(answer), 0);
	assert_int_equal(pthread_create(&t, NULL, reader, NULL), 0);
	for (unsigned i = 0; i < WAKES; i++) {
		ring_push(&out, 64);
		if (ring_publish(&out))
			assert_int_equal(write(wake[1], "", 1), 1);
		assert_int_equal(read(answer[0], &c, 1), 1);
	}
	pthread_join(t, &ret);
	assert_null(ret);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_laps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_ring, setup, teardown),
		cmocka_unit_test_setup_teardown(test_wake, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
