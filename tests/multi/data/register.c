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
	static uint8_t image[LEN];

	a->local = buffer;
	CHECK_OK(gdr_buffer_register(buffer, LEN));
	for (a->len = 1; a->len <= LEN; a->len = a->len * 3 + 1) {
		for (size_t i = 0; i < LEN; i++)
			image[i] = multi_byte(7, i);
		CHECK_OK(gdr_memcpy(buffer, image, LEN));
		RUN(there_and_back, 1, 1, a);
	}
	CHECK_OK(gdr_buffer_unregister(buffer));
	CHECK_OK(gdr_barrier_all());
}

#ifdef __CUDACC__
/* Memory of the GPU, and of the host that it may use. */
static void kinds(struct reg *a)
{
	void *gpu, *host = multi_shared_new(LEN);

	CHECK_EQ(cudaMalloc(&gpu, LEN), cudaSuccess);
	one(a, (uint8_t *)gpu);
	one(a, (uint8_t *)host);
	CHECK_EQ(cudaFree(gpu), cudaSuccess);
	multi_shared_free(host);
}
#else
static void kinds(struct reg *a)
{
	static uint8_t fixed[LEN];
	uint8_t stack[LEN], *mapped, *heap = (uint8_t *)malloc(LEN);

	mapped = (uint8_t *)mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(heap && mapped != MAP_FAILED);
	one(a, fixed);
	one(a, stack);
	one(a, heap);
	one(a, mapped);
	munmap(mapped, LEN);
	free(heap);
}
#endif

static void limits(void)
{
	static uint8_t many[65][64];
	uint8_t *heap = (uint8_t *)gdr_malloc(64);

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
#ifdef GDR_CHECKED
	CHECK(strstr(e.text, "register.c"));
#endif
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_barrier_all());
}

int main(void)
{
	struct reg a = {0};
	uint8_t *small;

	multi_begin();
	a.report = multi_report_new();
	a.remote = (uint8_t *)gdr_malloc(LEN);
	small = (uint8_t *)multi_shared_new(LEN);
	CHECK(a.remote);
	a.pe = (multi_pe + 1) % multi_n;
	kinds(&a);
	limits();
	/* Small enough to go inline: any memory. More: the NIC cannot read it. */
	a.local = small;
	a.len = 8;
	RUN(unregistered, 1, 1, &a);
	CHECK_OK(gdr_barrier_all());
	if (!gdr_host_ptr(a.remote, a.pe)) {
		a.len = 1000;
		a.want = -GDR_EINVAL;
		RUN(unregistered, 1, 1, &a);
		refused(&a);
	}
	multi_shared_free(a.report);
	multi_shared_free(small);
	if (gdr_finalize())
		return 1;
	if (a.pe == 1 % multi_n)
		printf("register: all right on %d PEs\n", multi_n);
	return 0;
}
