/* SPDX-License-Identifier: BSD-3-Clause */
/* Local buffers outside the heap: stack, static, malloc and mapped memory as
 * source and destination; limits and misuse; what is not registered is refused
 * where the NIC would have to read it. */
#include "tests/multi/multi.h"

#include <sys/mman.h>

#define LEN 5000u

struct reg {
	uint8_t *local, *remote;
	size_t len;
	int pe, want;
	struct multi_report *report;
};

/* To the neighbour's memory and back into the buffer, in one go. */
GDR_KERNEL(there_and_back, struct reg, a)
{
	EXPECT_OK(a.report, gdr_put(a.remote, a.local, a.len, a.pe));
	EXPECT_OK(a.report, gdr_quiet());
	for (size_t i = 0; i < a.len; i++)
		a.local[i] ^= 0xff;
	EXPECT_OK(a.report, gdr_get(a.local, a.remote, a.len, a.pe));
	for (size_t i = 0; i < a.len; i++)
		EXPECT_EQ(a.report, a.local[i], multi_byte(7, i));
}

GDR_KERNEL(unregistered, struct reg, a)
{
	EXPECT_EQ(a.report, gdr_put(a.remote, a.local, a.len, a.pe), a.want);
}

static void one(struct reg *a, uint8_t *buffer)
{
	a->local = buffer;
	CHECK_OK(gdr_buffer_register(buffer, LEN));
	for (a->len = 1; a->len <= LEN; a->len = a->len * 3 + 1) {
		for (size_t i = 0; i < LEN; i++)
			buffer[i] = multi_byte(7, i);
		RUN(there_and_back, 1, 1, a);
	}
	CHECK_OK(gdr_buffer_unregister(buffer));
	CHECK_OK(gdr_barrier_all());
}

static void limits(void)
{
	static uint8_t many[65][64];
	uint8_t *heap = gdr_malloc(64);

	CHECK(heap);
	for (int i = 0; i < 64; i++)
		CHECK_OK(gdr_buffer_register(many[i], 64));
	CHECK_EQ(gdr_buffer_register(many[64], 64), -GDR_ENOMEM);
	CHECK_OK(gdr_buffer_unregister(many[5]));
	CHECK_OK(gdr_buffer_register(many[64], 64));
	CHECK_EQ(gdr_buffer_register(many[10] + 32, 64), -GDR_EINVAL); /* overlaps */
	CHECK_EQ(gdr_buffer_unregister(many[10] + 32), -GDR_EINVAL);
	CHECK_EQ(gdr_buffer_unregister(many[5]), -GDR_EINVAL);
	for (int i = 0; i < 30; i++)
		if (i != 5)
			CHECK_OK(gdr_buffer_unregister(many[i]));
	CHECK_OK(gdr_buffer_unregister_all());
	for (int i = 30; i < 65; i++)
		CHECK_EQ(gdr_buffer_unregister(many[i]), -GDR_EINVAL);
	CHECK_OK(gdr_buffer_unregister_all());
	CHECK_EQ(gdr_buffer_register(NULL, 64), -GDR_EINVAL);
	CHECK_EQ(gdr_buffer_register(many[0], 0), -GDR_EINVAL);
	CHECK_EQ(gdr_buffer_register(heap, 64), -GDR_EINVAL); /* the heap is anyhow */
	CHECK_OK(gdr_free(heap));
}

/* The call has told: nothing was posted, nothing is latched, one record is left. */
static void refused(const struct reg *a)
{
	struct gdr_error e;

	CHECK_EQ(gdr_errors(&e, 1), 1);
	CHECK_EQ(e.status, -GDR_EINVAL);
	CHECK_EQ(e.peer, a->pe);
	CHECK(strstr(e.text, "register.c"));
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_barrier_all());
}

int main(void)
{
	static uint8_t fixed[LEN];
	uint8_t stack[LEN], *mapped, *heap = malloc(LEN);
	struct reg a = {0};

	multi_begin();
	a.report = multi_report_new();
	a.remote = gdr_malloc(LEN);
	mapped = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(a.remote && heap && mapped != MAP_FAILED);
	a.pe = (multi_pe + 1) % multi_n;
	one(&a, fixed);
	one(&a, stack);
	one(&a, heap);
	one(&a, mapped);
	limits();
	/* Small enough to go inline: any memory. More: the NIC cannot read it. */
	a.local = fixed;
	a.len = 8;
	RUN(unregistered, 1, 1, &a);
	CHECK_OK(gdr_barrier_all());
	if (!gdr_host_ptr(a.remote, a.pe)) {
		a.len = 1000;
		a.want = -GDR_EINVAL;
		RUN(unregistered, 1, 1, &a);
		refused(&a);
	}
	munmap(mapped, LEN);
	multi_shared_free(a.report);
	free(heap);
	if (gdr_finalize())
		return 1;
	if (a.pe == 1 % multi_n)
		printf("register: all right on %d PEs\n", multi_n);
	return 0;
}
