/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of more bytes than one message of a queue may have (1 GiB): every
 * byte arrives, in one call, and a signal comes behind the last message. */
#include "tests/multi/multi.h"

#include <unistd.h>

#define LEN ((1ull << 30) + (3u << 20) + 5)
#define WORDS (LEN / 8)
#define NEEDED (5ull << 30) /* two heaps, and room for the rest of the machine */

enum { PUT, PUT_NBI, GET, PUT_SIGNAL, OPS };

struct big {
	int op;
	uint8_t *area; /* LEN bytes of each PE: source here, destination there */
	uint64_t *signal;
	struct multi_report *report;
};

/* The whole block calls: over mapped memory its threads copy, else one of them posts. */
GDR_KERNEL(transfer, struct big, a)
{
	int other = 1 - gdr_my_pe();

	switch (a.op) {
	case PUT:
		EXPECT_OK(a.report, gdr_put_block(a.area, a.area, LEN, other));
		break;
	case PUT_NBI:
		EXPECT_OK(a.report, gdr_put_nbi_block(a.area, a.area, LEN, other));
		break;
	case GET:
		EXPECT_OK(a.report, gdr_get_block(a.area, a.area, LEN, other));
		break;
	default:
		EXPECT_OK(a.report, gdr_put_signal_block(a.area, a.area, LEN, a.signal, 7,
							 GDR_SIGNAL_SET, other));
	}
	if (a.op != GET && gdr_thread_id() == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

GDR_KERNEL(await, struct big, a)
{
	EXPECT_OK(a.report, gdr_signal_wait_until_from(a.signal, GDR_CMP_EQ, 7, 0));
}

static void fill(uint8_t *area, uint64_t seed)
{
	uint64_t *w = (uint64_t *)(void *)area;

	for (uint64_t i = 0; i < WORDS; i++)
		w[i] = multi_hash(seed + i);
	for (uint64_t i = WORDS * 8; i < LEN; i++)
		area[i] = multi_byte(seed, i);
}

static void verify(const uint8_t *area, uint64_t seed)
{
	const uint64_t *w = (const uint64_t *)(const void *)area;

	for (uint64_t i = 0; i < WORDS; i++)
		if (w[i] != multi_hash(seed + i))
			multi_fail(__FILE__, __LINE__, "word %llu is %llx, not %llx",
				   (unsigned long long)i, (unsigned long long)w[i],
				   (unsigned long long)multi_hash(seed + i));
	for (uint64_t i = WORDS * 8; i < LEN; i++)
		CHECK_EQ(area[i], multi_byte(seed, i));
	CHECK_EQ(area[LEN], MULTI_POISON);
}

/* PE 0 writes to PE 1, or PE 1 reads from PE 0. */
static void one(struct big *a)
{
	uint64_t seed = 1000u * ((uint64_t)a->op + 1);
	int active = a->op == GET;

	if (multi_pe == 0)
		fill(a->area, seed);
	else
		memset(a->area, 0, LEN);
	a->area[LEN] = MULTI_POISON;
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == active)
		RUN(transfer, 1, 32, a);
	else if (a->op == PUT_SIGNAL)
		RUN(await, 1, 1, a);
	else
		CHECK_OK(gdr_barrier_all());
	if (multi_pe == 1)
		verify(a->area, seed);
	if (multi_pe == active && a->op != PUT_SIGNAL)
		CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_barrier_all());
}

/* Bytes that Linux could give without swapping. */
static uint64_t available(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kib = 0;
	char line[128];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

int main(void)
{
	uint64_t have = available();
	struct big a = {0};

	if (have < NEEDED) {
		printf("skipped: %llu MiB of memory are available, %llu MiB are needed\n",
		       (unsigned long long)(have >> 20), (unsigned long long)(NEEDED >> 20));
		return 77;
	}
	multi_begin();
	CHECK_EQ(multi_n, 2);
	a.report = multi_report_new();
	a.area = gdr_malloc(LEN + 1);
	a.signal = gdr_calloc(1, 8);
	CHECK(a.area && a.signal);
	for (a.op = 0; a.op < OPS; a.op++)
		one(&a);
	free(a.report);
	return multi_end("big");
}
