/* SPDX-License-Identifier: BSD-3-Clause */
/* A host whose pages are of 64 KiB: the kernel's calls are answered here as such a kernel answers them, so that what is
 * counted in smaller pages fails as it would there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "softhca/engine/dp.h"
#include "softhca/memory/file_map.h"
#include "softhca/memory/probe.h"
#include "softhca/tools/options.h"
#include "softhca/wire/wire_ring.h"

#define PAGE 65536u

enum { WPS = 8 };

/* ---- the kernel of such a host ---- */

unsigned long __real_getauxval(unsigned long type);
void *__real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
long __real_syscall(long number, ...);
int __real_ioctl(int fd, unsigned long request, ...);
unsigned long __wrap_getauxval(unsigned long type);
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
long __wrap_syscall(long number, ...);
int __wrap_ioctl(int fd, unsigned long request, ...);
bool __wrap_hca_uar_mappings(bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg);

static struct uffdio_writeprotect wps[WPS];
static unsigned n_wps;

unsigned long __wrap_getauxval(unsigned long type)
{
	return type == AT_PAGESZ ? PAGE : __real_getauxval(type);
}

/* Whole pages, and in place of any address one that begins such a page. */
void *__wrap_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	size_t whole = (len + PAGE - 1) / PAGE * PAGE;
	uint8_t *room;

	if (offset % PAGE || (flags & MAP_FIXED && (uintptr_t)addr % PAGE)) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	if (flags & MAP_FIXED)
		return __real_mmap(addr, whole, prot, flags, fd, offset);
	room = __real_mmap(NULL, whole + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return room;
	room += (PAGE - (uintptr_t)room % PAGE) % PAGE;
	return __real_mmap(room, whole, prot, flags | MAP_FIXED, fd, offset);
}

long __wrap_syscall(long number, ...)
{
	unsigned long a[6];
	va_list ap;

	va_start(ap, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	if (number == SYS_userfaultfd)
		return eventfd(0, EFD_NONBLOCK);
	if (number == SYS_mmap && (a[0] % PAGE || a[1] % PAGE)) {
		errno = EINVAL;
		return -1;
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int answer_writeprotect(const struct uffdio_writeprotect *wp)
{
	if (wp->range.start % PAGE || wp->range.len % PAGE) {
		errno = EINVAL;
		return -1;
	}
	assert_true(n_wps < WPS);
	wps[n_wps++] = *wp;
	return 0;
}

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	void *arg;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	switch (request) {
	case UFFDIO_WRITEPROTECT:
		return answer_writeprotect(arg);
	case UFFDIO_API:
	case UFFDIO_REGISTER:
	case UFFDIO_UNREGISTER:
	case UFFDIO_WAKE:
		return 0;
	default:
		return __real_ioctl(fd, request, arg);
	}
}

/* The program has mapped two pages of doorbells. */
static uint8_t *doorbells;

bool __wrap_hca_uar_mappings(bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg)
{
	return fn(arg, (uintptr_t)doorbells, (uintptr_t)doorbells + 2ul * PAGE);
}

/* ---- tests ---- */

static uint8_t *map_pages(unsigned n)
{
	uint8_t *p = mmap(NULL, (size_t)n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void test_device(void **state)
{
	(void)state;
	assert_int_equal(hca_page(), PAGE);
}

static void test_ring(void **state)
{
	struct ring out, in;
	const uint8_t *at;
	int fd;

	(void)state;
	assert_int_equal(ring_create(&out, &fd), 0);
	assert_int_equal(ring_open(&in, fd), 0);
	for (unsigned i = 0; i < 3; i++) { /* the second is cut by the ring's end, and lies in one piece */
		size_t n = out.size / 8 * 5;

		assert_true(ring_room(&out, n) >= n);
		memset(ring_at_tail(&out), (int)i + 1, n);
		ring_push(&out, n);
		ring_publish(&out);
		assert_int_equal(ring_readable(&in, &at), n);
		assert_int_equal(at[0], i + 1);
		assert_memory_equal(at, at + 1, n - 1);
		ring_pop(&in, n);
		ring_release(&in);
	}
	ring_close(&out);
	ring_close(&in);
	close(fd);
}

static uint8_t *memory;

static bool is_held(uintptr_t page)
{
	return page_has(page, memory + PAGE + 8192, 64);
}

/* A page that a queue has a part of is held whole. */
static void test_gone(void **state)
{
	(void)state;
	memory = map_pages(4);
	probe_arm(is_held);
	memset(memory, 7, 4ul * PAGE);
	assert_int_equal(munmap(memory + PAGE, PAGE), 0);
	assert_false(probe_mapped(memory, 4ul * PAGE, false));
	*(volatile uint8_t *)(memory + PAGE + 8200) = 1;
	for (unsigned i = 0; i < PAGE; i++)
		assert_int_equal(memory[PAGE + i], i == 8200);
	assert_true(probe_mapped(memory, 4ul * PAGE, false));
	munmap(memory, 4ul * PAGE);
}

static void test_held(void **state)
{
	const uint8_t *at = (const uint8_t *)(16ul * PAGE);

	(void)state;
	assert_true(page_has(16ul * PAGE, at + PAGE - 1, 1));
	assert_true(page_has(16ul * PAGE, at + 8192, 3ul * PAGE));
	assert_true(page_has(19ul * PAGE, at + 8192, 3ul * PAGE));
	assert_false(page_has(20ul * PAGE, at + 8192, 3ul * PAGE));
	assert_false(page_has(15ul * PAGE, at, PAGE));
	assert_false(page_has(0, NULL, PAGE));
	assert_false(page_has(16ul * PAGE, at, 0));
}

/* So many of the first pages are looked at that this one is among them. */
static void test_looks(void **state)
{
	uint8_t *p = map_pages(64);

	(void)state;
	probe_arm(NULL); /* cmocka has taken the signal */
	assert_true(probe_mapped(p, 64ul * PAGE, false));
	assert_int_equal(munmap(p + 40ul * PAGE, PAGE), 0);
	assert_false(probe_mapped(p, 64ul * PAGE, false));
	munmap(p, 64ul * PAGE);
}

/* What is protected is released, page by page. */
static void test_doorbells(void **state)
{
	(void)state;
	doorbells = map_pages(2);
	assert_true(trap_set());
	assert_int_equal(n_wps, 1);
	assert_int_equal(wps[0].range.len, 2ul * PAGE);
	trap_release();
	assert_int_equal(n_wps, 3);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(wps[1 + i].range.start, (uintptr_t)doorbells + i * PAGE);
		assert_int_equal(wps[1 + i].range.len, PAGE);
		assert_int_equal(wps[1 + i].mode, 0);
	}
	trap_forked(); /* closes what stands for the kernel's file */
	munmap(doorbells, 2ul * PAGE);
}

static void test_file(void **state)
{
	int fd = memfd_create("pages", 0);
	uint8_t *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2l * PAGE), 0);
	assert_int_equal(pwrite(fd, "here", 4, PAGE + 5000), 4);
	p = file_map(fd, PAGE + 5000, 100, PROT_READ, MAP_SHARED);
	assert_non_null(p);
	assert_memory_equal(p, "here", 4);
	file_unmap(p, 100);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_device), cmocka_unit_test(test_ring),  cmocka_unit_test(test_held),
		cmocka_unit_test(test_gone),   cmocka_unit_test(test_looks), cmocka_unit_test(test_doorbells),
		cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
