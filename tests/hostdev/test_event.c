/* SPDX-License-Identifier: BSD-3-Clause */
/* Events, copies and fills in streams, and memory of the host device's own: gdr/local.h. */
#include <gdr/local.h>

#include "tests/hostdev/test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STREAMS 4

static void limit_blocks(unsigned n)
{
	struct gdri_hd_params p = {n, GDRI_HD_DEFAULT_STACK, 0};

	assert_int_equal(gdri_hd_shutdown(10000), 0);
	assert_int_equal(gdri_hd_init(&p), 0);
}

static void open_streams(gdr_stream_t *s, gdr_event_t *e)
{
	for (int i = 0; i < STREAMS; i++) {
		assert_int_equal(gdr_stream_create(&s[i]), 0);
		assert_int_equal(gdr_event_create(&e[i]), 0);
	}
}

static void close_streams(const gdr_stream_t *s, const gdr_event_t *e)
{
	for (int i = 0; i < STREAMS; i++) {
		assert_int_equal(gdr_stream_destroy(s[i]), 0);
		assert_int_equal(gdr_event_destroy(e[i]), 0);
	}
}

static void let_go(struct results *r)
{
	__atomic_store_n(r->out, 1, __ATOMIC_RELEASE); /* pairs with wait_flag */
}

/* What waits for an event sees what stood before it, and takes no CPU thread from it. */
static void test_waits_for_another_stream(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1), two = a;
	gdr_stream_t s[STREAMS];
	gdr_event_t e[STREAMS];
	uint32_t seen = 9;

	(void)state;
	limit_blocks(1);
	open_streams(s, e);
	two.n = 2;
	assert_int_equal(run_wait_flag(1, 1, 0, s[0], &a), 0);
	assert_int_equal(run_set_flag(1, 1, 0, s[0], &two), 0);
	assert_int_equal(gdr_event_record(e[0], s[0]), 0);
	assert_int_equal(gdr_stream_wait_event(s[1], e[0]), 0);
	assert_int_equal(gdr_memcpy_async(&seen, r.out, sizeof(seen), s[1]), 0);
	assert_int_equal(gdr_event_record(e[1], s[1]), 0);
	assert_int_equal(gdr_event_query(e[0]), 0);
	assert_int_equal(gdr_event_query(e[1]), 0);
	let_go(&r);
	assert_int_equal(gdr_event_sync(e[1]), 0);
	assert_int_equal(seen, 2);
	assert_int_equal(gdr_event_query(e[0]), 1);
	close_streams(s, e);
	limit_blocks(GDRI_HD_DEFAULT_BLOCKS);
}

/* From stream to stream and back, ahead of all kernels; the digits are the order. */
static void test_chain(void **state)
{
	struct results r;
	struct kernel_args gate = args_for(&r, 1), a;
	gdr_stream_t s[STREAMS];
	gdr_event_t e[STREAMS];

	(void)state;
	open_streams(s, e);
	assert_int_equal(run_wait_flag(1, 1, 0, s[0], &gate), 0);
	a = gate;
	a.n = 3;
	for (uint32_t i = 0; i < 2 * STREAMS; i++) {
		a.id = i + 1;
		assert_int_equal(run_append(1, 1, 0, s[i % STREAMS], &a), 0);
		assert_int_equal(gdr_event_record(e[i % STREAMS], s[i % STREAMS]), 0);
		assert_int_equal(gdr_stream_wait_event(s[(i + 1) % STREAMS], e[i % STREAMS]), 0);
	}
	let_go(&r);
	assert_int_equal(gdr_stream_sync(s[0]), 0); /* waits for the last one's event */
	assert_int_equal(r.sum[0], 12345678);
	close_streams(s, e);
}

/* A second record, or the event's end, changes nothing for who waits already; one never recorded holds up nobody. */
static void test_place_stays(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1), two = a;
	gdr_stream_t s[STREAMS];
	gdr_event_t e[STREAMS], gone;
	uint32_t seen = 9;

	(void)state;
	open_streams(s, e);
	two.n = 2;
	assert_int_equal(gdr_event_create(&gone), 0);
	assert_int_equal(gdr_event_query(gone), 1);
	assert_int_equal(gdr_event_sync(gone), 0);
	assert_int_equal(gdr_stream_wait_event(s[2], gone), 0);
	assert_int_equal(gdr_stream_sync(s[2]), 0);
	assert_int_equal(run_wait_flag(1, 1, 0, s[0], &a), 0);
	assert_int_equal(run_set_flag(1, 1, 0, s[0], &two), 0);
	assert_int_equal(gdr_event_record(gone, s[0]), 0);
	assert_int_equal(gdr_stream_wait_event(s[1], gone), 0);
	assert_int_equal(gdr_memcpy_async(&seen, r.out, sizeof(seen), s[1]), 0);
	assert_int_equal(gdr_event_record(gone, s[2]), 0); /* nothing stands before it there */
	assert_int_equal(gdr_event_query(gone), 1);
	assert_int_equal(gdr_event_destroy(gone), 0);
	let_go(&r);
	assert_int_equal(gdr_stream_sync(s[1]), 0);
	assert_int_equal(seen, 2);
	close_streams(s, e);
}

static void test_elapsed(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);
	gdr_stream_t s[STREAMS];
	gdr_event_t e[STREAMS];
	float ms = -1;

	(void)state;
	open_streams(s, e);
	assert_int_equal(gdr_event_elapsed(e[0], e[1], &ms), -GDR_EINVAL); /* never recorded */
	assert_int_equal(gdr_event_record(e[0], s[0]), 0);
	assert_int_equal(run_wait_flag(1, 1, 0, s[0], &a), 0);
	assert_int_equal(gdr_event_record(e[1], s[0]), 0);
	assert_int_equal(gdr_event_elapsed(e[0], e[1], &ms), -GDR_EINVAL); /* not reached */
	usleep(2000);
	let_go(&r);
	assert_int_equal(gdr_event_sync(e[1]), 0);
	assert_int_equal(gdr_event_elapsed(e[0], e[1], &ms), 0);
	assert_true(ms >= 2.0f);
	assert_int_equal(gdr_event_elapsed(e[0], e[1], NULL), -GDR_EINVAL);
	close_streams(s, e);
}

GDR_KERNEL(from_a_kernel, struct kernel_args, a)
{
	gdr_event_t e = NULL;

	a.out[0] = (uint32_t)-gdr_event_record(e, NULL);
	a.out[1] = (uint32_t)-gdr_memset_async(a.out + 2, 1, 4, NULL);
	a.out[3] = gdr_device_malloc(8) != NULL;
	a.out[4] = (uint32_t)-gdr_device_free(NULL);
}

static void test_refusals(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);
	gdr_stream_t none = (gdr_stream_t)&r;
	gdr_event_t e;
	char c = 0;

	(void)state;
	assert_int_equal(gdr_event_create(NULL), -GDR_EINVAL);
	assert_int_equal(gdr_event_create(&e), 0);
	assert_int_equal(gdr_event_record(e, none), -GDR_EINVAL);
	assert_int_equal(gdr_event_query(e), 1);
	assert_int_equal(gdr_stream_wait_event(none, e), -GDR_EINVAL);
	assert_int_equal(gdr_event_record(e, NULL), 0);
	assert_int_equal(gdr_stream_wait_event(none, e), -GDR_EINVAL);
	assert_int_equal(gdr_event_destroy(e), 0);
	assert_int_equal(gdr_event_destroy(e), -GDR_EINVAL);
	assert_int_equal(gdr_event_query(e), -GDR_EINVAL);
	assert_int_equal(gdr_event_sync(NULL), -GDR_EINVAL);
	assert_int_equal(gdr_memcpy_async(NULL, &c, 1, NULL), -GDR_EINVAL);
	assert_int_equal(gdr_memcpy_async(&c, NULL, 1, NULL), -GDR_EINVAL);
	assert_int_equal(gdr_memcpy_async(&c, &c, 1, none), -GDR_EINVAL);
	assert_int_equal(gdr_memcpy_async(NULL, NULL, 0, NULL), 0);
	assert_int_equal(gdr_memset_async(NULL, 0, 1, NULL), -GDR_EINVAL);
	assert_int_equal(gdr_memset(NULL, 0, 1), -GDR_EINVAL);
	assert_int_equal(gdr_launch(from_a_kernel, 1, 1, 0, NULL, &a), 0);
	assert_int_equal(gdr_stream_sync(NULL), 0);
	assert_int_equal(r.out[0], GDR_ENOTSUP);
	assert_int_equal(r.out[1], GDR_ENOTSUP);
	assert_int_equal(r.out[3], 0);
	assert_int_equal(r.out[4], GDR_ENOTSUP);
}

static void test_memory(void **state)
{
	gdr_stream_t s;
	uint8_t *p = gdr_device_malloc(1000), *q = gdr_device_malloc(1), copy[1000];

	(void)state;
	assert_non_null(p);
	assert_non_null(q);
	assert_int_equal((uintptr_t)p % 256, 0);
	assert_int_equal((uintptr_t)q % 256, 0);
	assert_null(gdr_device_malloc(0));
	assert_null(gdr_device_malloc(SIZE_MAX));
	assert_int_equal(gdr_stream_create(&s), 0);
	assert_int_equal(gdr_memset_async(p, 0x5a, 1000, s), 0);
	assert_int_equal(gdr_memset_async(p + 1, 0x15b, 998, s), 0); /* a byte, as memset's */
	assert_int_equal(gdr_memcpy_async(copy, p, 1000, s), 0);
	assert_int_equal(gdr_stream_sync(s), 0);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(copy[i], i == 0 || i == 999 ? 0x5a : 0x5b);
	assert_int_equal(gdr_memset(p, 0, 1000), 0);
	assert_int_equal(p[999], 0);
	assert_int_equal(gdr_stream_destroy(s), 0);
	assert_int_equal(gdr_device_free(p), 0);
	assert_int_equal(gdr_device_free(q), 0);
	assert_int_equal(gdr_device_free(NULL), 0);
}

static int in_child(gdr_stream_t *s, gdr_event_t *e)
{
	return gdr_event_query(e[0]) != 1 || gdr_event_sync(e[0]) || gdr_event_destroy(e[0]) || gdr_stream_sync(s[1]) ||
	       gdr_stream_sync(s[0]) != -GDR_ESTATE;
}

/* Of what the parent's streams held nothing comes in the child: nobody there waits for it. */
static void test_fork(void **state)
{
	struct results r;
	struct kernel_args a = args_for(&r, 1);
	gdr_stream_t s[STREAMS];
	gdr_event_t e[STREAMS];
	int status;
	pid_t pid;

	(void)state;
#ifdef GDRI_HD_TSAN
	print_message("ThreadSanitizer supports no new threads after a fork\n");
	skip();
#endif
	open_streams(s, e);
	assert_int_equal(run_wait_flag(1, 1, 0, s[0], &a), 0);
	assert_int_equal(gdr_event_record(e[0], s[0]), 0);
	assert_int_equal(gdr_stream_wait_event(s[1], e[0]), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		alarm(20);
		_exit(in_child(s, e));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	let_go(&r);
	close_streams(s, e);
}

static int end(void **state)
{
	(void)state;
	return gdri_hd_shutdown(10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_waits_for_another_stream),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_place_stays),
		cmocka_unit_test(test_elapsed),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_fork),
	};

	alarm(300); /* a hang is a failure */
	return cmocka_run_group_tests_name("hostdev.event", tests, NULL, end);
}
