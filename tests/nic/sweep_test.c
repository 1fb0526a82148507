// SPDX-License-Identifier: BSD-3-Clause
/* Error paths: bring-up of two connected PEs is repeated with the n-th ioctl
 * failing, for every n. Each time it must return an error (or do without, where
 * rdma-core or the runtime has another way), never crash, and leave nothing
 * behind: file descriptors and mappings are counted here, memory is the leak
 * sanitizer's part. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <gdr/status.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "runtime/core/log.h"
#include "tests/entries.h"
#include "tests/nic/pair.h"

static unsigned n_ioctls, fail_at, n_failed, failed_object, failed_method;
static int fail_errno;

/* Destroying is not made to fail: rdma-core itself then keeps the object, and so would we. All
 * destroy methods of the interface are number 1, of a protection domain, a region and an address
 * handle 0 or the write command of that name. */
static int is_destroy(const struct ib_uverbs_ioctl_hdr *h)
{
	uint64_t cmd = 0;
	unsigned i;

	if (h->object_id == UVERBS_OBJECT_DEVICE && h->method_id == UVERBS_METHOD_INVOKE_WRITE) {
		for (i = 0; i < h->num_attrs; i++) {
			if (h->attrs[i].attr_id == UVERBS_ATTR_WRITE_CMD)
				cmd = h->attrs[i].data;
		}
		return cmd == 6 /* DESTROY_AH */;
	}
	switch (h->object_id) {
	case UVERBS_OBJECT_PD:
	case UVERBS_OBJECT_AH:
		return h->method_id == 0;
	case UVERBS_OBJECT_MR:
		return h->method_id == UVERBS_METHOD_MR_DESTROY;
	default: /* driver objects (DEVX, UMEM, UAR): DESTROY follows ALLOC/CREATE */
		return h->object_id >= 0x1000 && h->method_id == 0x1001 && h->object_id != 0x1000;
	}
}

/* Defined in the program, so it comes before every preloaded library's and libc's. */
__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	static int (*next)(int, unsigned long, ...);
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	if (request == RDMA_VERBS_IOCTL && fail_at != UINT32_MAX && !is_destroy(arg) &&
	    ++n_ioctls == fail_at) {
		n_failed++;
		failed_object = ((struct ib_uverbs_ioctl_hdr *)arg)->object_id;
		failed_method = ((struct ib_uverbs_ioctl_hdr *)arg)->method_id;
		errno = fail_errno;
		return -1;
	}
	return next(fd, request, arg);
}

static unsigned count_mapped(const char *what)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[1024];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	return n;
}

/* Bytes that are mapped and not inherited by fork ("dc" in VmFlags): the queues. */
static unsigned long count_queue_memory(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long from, to, size = 0, sum = 0;
	char line[1024];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			size = to - from;
		else if (!strncmp(line, "VmFlags:", 8) && strstr(line, " dc"))
			sum += size;
	}
	fclose(f);
	return sum;
}

static int run(unsigned at, int err, int *step)
{
	static const char *const settings[] = {"QP_DEPTH=128", "QPS_PER_PE=3", "CQ=ring", NULL};
	struct gdri_options opt;
	struct pair p;
	int ret;

	pair_options(&opt, settings);
	n_ioctls = n_failed = 0;
	fail_at = at;
	fail_errno = err;
	ret = pair_up(&p, &opt, NULL);
	*step = p.failed;
	fail_at = UINT32_MAX; /* teardown is not disturbed */
	pair_down(&p);
	return ret;
}

static void sweep(int err)
{
	unsigned at, total, fds, maps, survived = 0, by_step[7] = {0};
	unsigned long queues;
	int ret, step;

	gdri_log_set_level(GDRI_LOG_WARN);
	assert_int_equal(run(0, 0, &step), 0);
	total = n_ioctls;
	assert_in_range(total, 60, 100000);
	fds = entries("/proc/self/fd");
	maps = count_mapped("uverbs");
	queues = count_queue_memory();
	gdri_log_set_level(getenv("GDR_LOG") ? GDRI_LOG_WARN : -1);
	for (at = 1; at <= total; at++) {
		ret = run(at, err, &step);
		assert_int_equal(n_failed, 1);
		assert_true(ret <= 0 && ret > -64);
		if (ret)
			by_step[step]++;
		else if (++survived && getenv("GDR_LOG"))
			printf("ioctl %u (object 0x%x, method 0x%x): done without\n", at,
			       failed_object, failed_method);
		assert_int_equal(entries("/proc/self/fd"), fds);
		assert_int_equal(count_mapped("uverbs"), maps);
	}
	assert_int_equal(count_queue_memory(), queues);
	printf("errno %d: %u ioctls, failures refused: open %u, heap %u, buffer %u, queues %u, "
	       "connect %u; done without: %u\n",
	       err, total, by_step[2], by_step[3], by_step[4], by_step[5], by_step[6], survived);
	/* Every region, queue, modify and address handle of both PEs has no other way. */
	assert_int_equal(by_step[3], 2 * 2);
	assert_int_equal(by_step[4], 2 * 1);
	assert_in_range(by_step[5], 2 * (1 + 1 + 6 + 6), 2 * (1 + 1 + 6 + 6 + 6));
	/* RoCE: an address handle looks at the GID's type first */
	assert_in_range(by_step[6], 2 * 6 * 3, 2 * (2 * 2 + 6 * 3));
	gdri_log_set_level(GDRI_LOG_WARN);
	assert_int_equal(run(0, 0, &step), 0); /* and the device still works */
}

static void test_no_memory(void **state)
{
	(void)state;
	sweep(ENOMEM);
}

static void test_io_error(void **state)
{
	(void)state;
	sweep(EIO);
}

/* What the firmware refuses comes as this errno, with the reason in the mailbox. */
static void test_firmware_error(void **state)
{
	(void)state;
	sweep(EREMOTEIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_io_error),
		cmocka_unit_test(test_firmware_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
