/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of the program as part of the heap: static data and mapped memory, written by peers, by the
 * program and by kernels under both addresses; contents on the way in and out; what is refused, or fails
 * on one PE, on all; gdr_finalize with registrations left. And the list of the heap's objects. */
#include "tests/multi/multi.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WORDS 10000
#define PAGE ((size_t)GDR_SYMMETRIC_PAGE)

static int no_moves; /* calls of mremap to fail */
static int before = 11;
static GDR_SYMMETRIC(uint64_t, field, WORDS);
static int behind = 22;

struct args {
	uint64_t *words;
	int pe;
	struct multi_report *report;
};

GDR_KERNEL(write_next, struct args, a)
{
	EXPECT_OK(a.report, gdr_uint64_p(a.words + 2, 77, (a.pe + 1) % gdr_n_pes()));
	EXPECT_OK(a.report, gdr_quiet());
}

static uint64_t value(int pe, int i)
{
	return multi_hash((uint64_t)pe << 32 | (uint64_t)i);
}

static void fill(uint64_t *own)
{
	for (int i = 0; i < WORDS; i++)
		own[i] = value(multi_pe, i);
}

static void check(const uint64_t *own, int from)
{
	for (int i = from; i < WORDS; i++)
		CHECK(own[i] == value(multi_pe, i));
}

/* own: the program's address, of len bytes. */
static void both_names(uint64_t *own, size_t len)
{
	int left = (multi_pe + multi_n - 1) % multi_n, right = (multi_pe + 1) % multi_n;
	struct args a = {NULL, multi_pe, multi_report_new()};
	struct gdr_heap_info was, is;
	uint64_t v = 1000 + (uint64_t)multi_pe, *ptr, *in = gdr_malloc(sizeof(*in));

	CHECK(in);
	CHECK_OK(gdr_heap_query(&was));
	fill(own);
	ptr = gdr_symmetric_register(own, len);
	CHECK(ptr && ptr != own);
	check(own, 0);
	check(ptr, 0);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_host_put(ptr, &v, sizeof(v), right));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(own[0], 1000 + left);
	own[1] = 2000 + (uint64_t)multi_pe;
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_host_get(in, ptr + 1, sizeof(*in), left));
	CHECK_EQ(*in, 2000 + left);
	a.words = ptr;
	RUN(write_next, 1, 1, &a);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(own[2], 77);
	check(own, 3);
	CHECK_EQ(gdr_free(ptr), -GDR_EINVAL);
	CHECK(!gdr_realloc(ptr, 2 * len));
	CHECK_EQ(gdr_host_status(), -GDR_EINVAL);
	CHECK_OK(gdr_symmetric_unregister(ptr));
	CHECK_EQ(own[0], 1000 + left);
	CHECK_EQ(own[2], 77);
	check(own, 3);
	CHECK_EQ(gdr_symmetric_unregister(ptr), -GDR_EINVAL);
	CHECK_OK(gdr_heap_query(&is));
	CHECK_EQ(is.used, was.used);
	CHECK_OK(gdr_free(in));
	(void)gdr_host_quiet(); /* forgets what was latched */
	multi_shared_free(a.report);
}

/* Elsewhere on each PE. */
static uint64_t *mapped(size_t *len)
{
	uint8_t *room;

	*len = (WORDS * sizeof(uint64_t) + PAGE - 1) / PAGE * PAGE;
	room = mmap(NULL, *len + 9 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(room != MAP_FAILED);
	return (uint64_t *)(room + (size_t)(multi_pe % 8) * PAGE);
}

static void refused(void)
{
	struct gdr_heap_info was, is;
	uint64_t *ptr;
	char *one = (char *)field + (multi_pe == multi_n - 1 ? 8 : 0);

	CHECK_OK(gdr_heap_query(&was));
	CHECK(!gdr_symmetric_register(one, PAGE)); /* the last PE's is no page */
	CHECK_EQ(gdr_host_status(), -GDR_EINVAL);
	CHECK(!gdr_symmetric_register(field, PAGE - 1));
	CHECK(!gdr_symmetric_register(NULL, PAGE));
	CHECK(!gdr_symmetric_register(field, 0));
	if (multi_n > 1)
		CHECK(!gdr_symmetric_register(field, multi_pe ? sizeof(field) : PAGE));
	ptr = gdr_symmetric_register(field, sizeof(field));
	CHECK(ptr);
	CHECK(!gdr_symmetric_register((char *)field + PAGE, PAGE)); /* twice */
	CHECK(!gdr_symmetric_register(ptr, PAGE));		    /* of the heap */
	CHECK_OK(gdr_symmetric_unregister(ptr));
	CHECK(!gdr_symmetric_register(field, (size_t)1 << 40));
	CHECK_OK(gdr_heap_query(&is));
	CHECK_EQ(is.used, was.used);
	(void)gdr_host_quiet();
}

/* Instead of libc's, for the library too. */
__attribute__((visibility("default"))) void *mremap(void *old, size_t old_len, size_t len, int flags, ...)
{
	va_list ap;
	void *to;

	va_start(ap, flags);
	to = flags & MREMAP_FIXED ? va_arg(ap, void *) : NULL;
	va_end(ap);
	if (no_moves && no_moves--) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mremap, old, old_len, len, flags, to);
}

/* The last PE's system does not move its pages: into the heap, then back. */
static void not_moved(uint64_t *own, size_t len)
{
	int last = multi_pe == multi_n - 1;
	struct gdr_heap_info was, is;
	void *ptr;

	CHECK_OK(gdr_heap_query(&was));
	fill(own);
	no_moves = last;
	CHECK(!gdr_symmetric_register(own, len));
	CHECK_EQ(no_moves, 0);
	check(own, 0);
	CHECK_OK(gdr_heap_query(&is));
	CHECK_EQ(is.used, was.used);
	ptr = gdr_symmetric_register(own, len);
	CHECK(ptr);
	CHECK_OK(gdr_heap_query(&was));
	no_moves = last;
	CHECK_EQ(gdr_symmetric_unregister(ptr), -GDR_ESYSTEM);
	CHECK_EQ(no_moves, 0);
	check(own, 0);
	CHECK_OK(gdr_heap_query(&is));
	CHECK_EQ(is.used, was.used);
	CHECK_OK(gdr_symmetric_unregister(ptr));
	CHECK_OK(gdr_heap_query(&is));
	CHECK(is.used < was.used);
	check(own, 0);
	(void)gdr_host_quiet();
}

static void list(void)
{
	struct gdr_heap_object o[8];
	void *p[3] = {gdr_malloc(100), gdr_malloc(5000), gdr_align(65536, 1)};

	CHECK(p[0] && p[1] && p[2]);
	CHECK_EQ(gdr_heap_list(NULL, 0), 3);
	CHECK_EQ(gdr_heap_list(o, 2), 3);
	CHECK_EQ(gdr_heap_list(o, 8), 3);
	for (int i = 0; i < 3; i++)
		CHECK(o[i].addr == p[i]);
	CHECK(o[0].size >= 100 && o[1].size >= 5000 && o[2].size >= 1);
	CHECK_OK(gdr_free(p[1]));
	CHECK_EQ(gdr_heap_list(o, 8), 2);
	CHECK(o[0].addr == p[0] && o[1].addr == p[2]);
	CHECK_EQ(gdr_heap_list(NULL, 1), -GDR_EINVAL);
	CHECK_EQ(gdr_heap_list(o, -1), -GDR_EINVAL);
	CHECK_OK(gdr_free(p[0]));
	CHECK_OK(gdr_free(p[2]));
	CHECK_EQ(gdr_heap_list(o, 8), 0);
}

int main(void)
{
	size_t len;
	uint64_t *own;

	multi_begin();
	list();
	for (int i = 0; i < 3; i++)
		both_names(field, sizeof(field));
	own = mapped(&len);
	both_names(own, len);
	not_moved(own, len);
	refused();
	fill(own);
	CHECK(gdr_symmetric_register(own, len));
	CHECK_OK(gdr_finalize());
	check(own, 0);
	fill(own);
	multi_begin();
	CHECK(gdr_symmetric_register(own, len));
	check(own, 0);
	no_moves = 1; /* its end goes on */
	CHECK_OK(gdr_finalize());
	CHECK_EQ(no_moves, 0);
	check(own, 0);
	CHECK(before == 11 && behind == 22);
	if (multi_pe == 0)
		printf("symmetric: all right on %d PEs\n", multi_n);
	return 0;
}
