/* SPDX-License-Identifier: BSD-3-Clause */
/* Members make a call in the same form (gdr/coll.h), but each as it is launched: blocks of other sizes, which are no
 * whole warps, another thread or another warp, also the last one, of fewer lanes. Lengths are those around which lone
 * threads and warps go another way, objects of bytes lie anywhere. Between the calls all meet in whatever form. */
#include "tests/multi/coll/coll.h"

#define MOST 9000u /* bytes of a member's part */

enum form { BY_THREAD, BY_WARP, BY_BLOCK };

struct forms {
	uint8_t *dst, *src;
	int *sums, *parts; /* of MOST / 4 */
	int form;
	struct multi_report *report;
};

/* As the form has it: f, f_warp or f_block. */
#define IN_FORM(form, f, ...)                                                                      \
	((form) == BY_THREAD ? f(__VA_ARGS__)                                                      \
	 : (form) == BY_WARP ? f##_warp(__VA_ARGS__)                                               \
			     : f##_block(__VA_ARGS__))

/* Whether the thread is one of those that make call number `call` here: each member's choice. */
GDR_DEVICE int takes_part(int form, int call)
{
	unsigned h = (unsigned)multi_hash((uint64_t)(call * 100 + gdr_my_pe())), size = gdr_block_size();

	return form == BY_THREAD ? gdr_thread_id() == h % size
	       : form == BY_WARP ? gdr_thread_id() / 32 == h % size / 32
				 : 1;
}

GDR_DEVICE uint8_t byte_of(int pe, int call, size_t k)
{
	return (uint8_t)multi_hash((uint64_t)call * 4099 + (uint64_t)pe * 65537 + k);
}

/* Source of all calls of this number, and nothing in dest. */
GDR_DEVICE void fill(const struct forms *a, int call, size_t len)
{
	size_t k, size = gdr_block_size(), all = len * (size_t)gdr_n_pes();

	for (k = gdr_thread_id(); k < len; k += size)
		a->src[k + 3] = byte_of(gdr_my_pe(), call, k);
	for (k = gdr_thread_id(); k < len / 4; k += size)
		a->parts[k] = gdr_my_pe() + (int)k + call;
	for (k = gdr_thread_id(); k <= all; k += size)
		a->dst[k + 1] = 0xa5;
	gdr_sync_block();
}

GDR_DEVICE void look(const struct forms *a, int call, size_t len, int root)
{
	size_t k, size = gdr_block_size();
	int n = gdr_n_pes(), pe;

	gdr_sync_block();
	for (pe = 0; pe < (root < 0 ? n : 1); pe++)
		for (k = gdr_thread_id(); k < len; k += size)
			EXPECT_EQ(a->report, a->dst[(size_t)pe * len + k + 1],
				  byte_of(root < 0 ? pe : root, call, k));
	EXPECT_EQ(a->report, a->dst[len * (size_t)pe + 1], 0xa5);
	for (k = gdr_thread_id(); k < len / 4 && root < 0; k += size)
		EXPECT_EQ(a->report, a->sums[k], n * (n - 1) / 2 + n * ((int)k + call));
	gdr_sync_block();
}

GDR_DEVICE void each_length(const struct forms *a, int call, size_t len)
{
	int meet = (call + gdr_my_pe()) % 3;

	fill(a, call, len);
	if (takes_part(a->form, call)) {
		EXPECT_OK(a->report, IN_FORM(a->form, gdr_fcollectmem, GDR_TEAM_WORLD, a->dst + 1, a->src + 3, len));
		EXPECT_OK(a->report, IN_FORM(a->form, gdr_int_sum_reduce, GDR_TEAM_WORLD, a->sums, a->parts, len / 4));
	}
	look(a, call, len, -1);
	if (takes_part(meet, call)) /* syncs alone: in any form on each */
		EXPECT_OK(a->report, IN_FORM(meet, gdr_team_sync, GDR_TEAM_WORLD));
	fill(a, call + 1, len);
	if (takes_part(a->form, call + 1))
		EXPECT_OK(a->report, IN_FORM(a->form, gdr_broadcastmem, GDR_TEAM_WORLD, a->dst + 1, a->src + 3, len,
					     call % gdr_n_pes()));
	look(a, call + 1, len, call % gdr_n_pes());
}

GDR_KERNEL(calls, struct forms, a)
{
	const size_t lengths[] = {1, 8, 63, 256, 257, 512, 1000, 2048, 4097, MOST};

	for (int i = 0; i < 10; i++)
		each_length(&a, 2 * i, lengths[i]);
}

int main(void)
{
	struct forms a;

	multi_begin();
	a.report = multi_report_new();
	a.dst = (uint8_t *)gdr_malloc((size_t)multi_n * MOST + 16);
	a.src = (uint8_t *)gdr_malloc(MOST + 16);
	a.sums = (int *)gdr_malloc(MOST);
	a.parts = (int *)gdr_malloc(MOST);
	CHECK(a.dst && a.src && a.sums && a.parts);
	for (a.form = BY_THREAD; a.form <= BY_BLOCK; a.form++) {
		CHECK_OK(gdr_barrier_all());
		RUN(calls, 1, (unsigned)(1 + (multi_pe * 37 + a.form * 50) % 120), &a);
	}
	multi_shared_free(a.report);
	return multi_end("coll_forms");
}
