/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of files, mapped and unmapped: nothing stays, nothing beside them goes, also where pages are
 * huge. None of those has to be there: nothing is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "softhca/memory/file_map.h"

enum { PAGE = 4096, HUGE = 2 << 20 };

/* Bytes that are mapped of files of this name. */
static uint64_t mapped(const char *name)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long from, to;
	char line[512];
	uint64_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%lx-%lx", &from, &to) == 2)
			n += to - from;
	fclose(f);
	return n;
}

static void test_any_byte(void **state)
{
	static uint8_t bytes[4 * PAGE];
	int fd = memfd_create("small pages", 0);
	uint8_t *part[2];

	(void)state;
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 2654435761u >> 24);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	for (unsigned i = 0; i < 2; i++) {
		part[i] = file_map(fd, PAGE + 77, PAGE, PROT_READ, MAP_SHARED);
		assert_non_null(part[i]);
		assert_memory_equal(part[i], bytes + PAGE + 77, PAGE);
	}
	assert_int_equal(mapped("small pages"), 4 * PAGE);
	file_unmap(part[0], PAGE);
	assert_int_equal(mapped("small pages"), 2 * PAGE);
	assert_memory_equal(part[1], bytes + PAGE + 77, PAGE);
	file_unmap(part[1], PAGE);
	assert_int_equal(mapped("small pages"), 0);
	assert_null(file_map(fd, 0, 0, PROT_READ, MAP_SHARED));
	assert_null(file_map(fd, PAGE, UINT64_MAX, PROT_READ, MAP_SHARED));
	close(fd);
}

static void test_huge_pages(void **state)
{
	static const struct {
		uint64_t offset, len, pages;
	} c[] = {
		{ 0, 5000, 1 },		    { HUGE + PAGE, 5000, 1 },	{ 2 * HUGE - 10, 20, 2 },
		{ HUGE - PAGE, PAGE, 1 },   { PAGE, 2 * HUGE, 3 },	{ 0, 4 * HUGE, 4 },
		{ HUGE, HUGE + 2 * PAGE, 2 },
	};
	int fd = memfd_create("huge pages", MFD_HUGETLB | 21u << 26 /* 2 MiB */);

	(void)state;
	if (fd < 0 || ftruncate(fd, 4 * HUGE)) {
		printf("no huge pages of 2 MiB in this kernel\n");
		skip();
	}
	for (unsigned i = 0; i < sizeof(c) / sizeof(*c); i++) {
		/* Without a reservation there need be no free page. */
		uint8_t *p = file_map(fd, c[i].offset, c[i].len, PROT_READ,
				      MAP_SHARED | MAP_NORESERVE);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % HUGE, c[i].offset % HUGE);
		assert_int_equal(mapped("huge pages"), c[i].pages * HUGE);
		file_unmap(p, c[i].len);
		assert_int_equal(mapped("huge pages"), 0);
	}
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_byte),
		cmocka_unit_test(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
