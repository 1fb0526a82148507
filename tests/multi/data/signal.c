/* SPDX-License-Identifier: BSD-3-Clause */
/* put with signal in every form: whoever has seen the signal finds the data,
 * round after round without a barrier; ADD from everybody counts exactly. */
#include "tests/multi/multi.h"

enum { THREAD, THREAD_NBI, WARP, WARP_NBI, BLOCK, BLOCK_NBI, FORMS };

#define LEN_MAX 20000u

struct sig {
	int form, rounds;
	uint8_t *in, *out; /* in: two areas that alternate */
	uint64_t *arrived, *consumed, *sum, *limited;
	struct multi_report *report;
};

GDR_DEVICE int issue(const struct sig *a, uint8_t *dst, size_t len, uint64_t round, int pe)
{
	switch (a->form) {
	case THREAD:
		return gdr_put_signal(dst, a->out, len, a->arrived, round, GDR_SIGNAL_SET, pe);
	case THREAD_NBI:
		return gdr_put_signal_nbi(dst, a->out, len, a->arrived, round, GDR_SIGNAL_SET, pe);
	case WARP:
		return gdr_put_signal_warp(dst, a->out, len, a->arrived, round, GDR_SIGNAL_SET,
					   pe);
	case WARP_NBI:
		return gdr_put_signal_nbi_warp(dst, a->out, len, a->arrived, round,
					       GDR_SIGNAL_SET, pe);
	case BLOCK:
		return gdr_put_signal_block(dst, a->out, len, a->arrived, round, GDR_SIGNAL_SET,
					    pe);
	default:
		return gdr_put_signal_nbi_block(dst, a->out, len, a->arrived, round,
						GDR_SIGNAL_SET, pe);
	}
}

/* Lengths that change: none, inline, one packet, several. */
GDR_DEVICE size_t length_of(uint64_t round)
{
	static const size_t len[] = {8, 1, 0, 44, 45, 333, 4096, 4097, 12, LEN_MAX - 7};

	return len[round % 10];
}

/* A ring: data to the next PE, an acknowledgement back before the source and the
 * area are used again. */
GDR_KERNEL(ring, struct sig, a)
{
	unsigned t = gdr_thread_id(), all = gdr_block_size();
	int me = gdr_my_pe(), n = gdr_n_pes(), next = (me + 1) % n, prev = (me + n - 1) % n;
	int first = a.form < WARP ? 1 : a.form < BLOCK ? 32 : (int)all;

	for (uint64_t k = 1; k <= (uint64_t)a.rounds; k++) {
		size_t len = length_of(k);
		uint8_t *area = a.in + (k & 1) * LEN_MAX;

		for (size_t i = t; i < len; i += all)
			a.out[i] = multi_byte(k * 1000 + (uint64_t)me, i);
		gdr_sync_block();
		if ((int)t < first)
			EXPECT_OK(a.report, issue(&a, area, len, k, next));
		if (t == 0)
			EXPECT_OK(a.report,
				  gdr_signal_wait_until_from(a.arrived, GDR_CMP_GE, k, prev));
		gdr_sync_block();
		EXPECT_EQ(a.report, gdr_signal_fetch(a.arrived) >= k, 1);
		for (size_t i = t; i < len; i += all)
			EXPECT_EQ(a.report, area[i], multi_byte(k * 1000 + (uint64_t)prev, i));
		gdr_sync_block();
		if (t == 0) {
			/* what was read of it is behind us when prev hears of it */
			EXPECT_OK(a.report, gdr_fence());
			EXPECT_OK(a.report, gdr_signal_op(a.consumed, k, GDR_SIGNAL_SET, prev));
			EXPECT_OK(a.report, gdr_signal_wait_until(a.consumed, GDR_CMP_EQ, k));
		}
		gdr_sync_block();
	}
	if (t == 0)
		EXPECT_OK(a.report, gdr_quiet());
}

GDR_KERNEL(adders, struct sig, a)
{
	unsigned t = gdr_block_id() * gdr_block_size() + gdr_thread_id();
	uint64_t value = t + 1, threads = gdr_grid_size() * gdr_block_size();
	uint8_t *mine = a.in + ((uint64_t)gdr_my_pe() * threads + t) * 8;

	for (int pe = 0; pe < gdr_n_pes(); pe++) {
		EXPECT_OK(a.report, gdr_put_signal_nbi(mine, &value, 8, a.sum, value,
						       GDR_SIGNAL_ADD, pe));
		EXPECT_OK(a.report, gdr_signal_op(a.sum, 1, GDR_SIGNAL_ADD, pe));
	}
	EXPECT_OK(a.report,
		  gdr_signal_wait_until(a.sum, GDR_CMP_GE,
					(uint64_t)gdr_n_pes() *
						(threads * (threads + 1) / 2 + threads)));
}

/* Bit pe of the word comes from PE pe, which waits for that of the one before: a wait sees each as it comes. Limits
 * that end leave the job as it was. */
GDR_KERNEL(limits, struct sig, a)
{
	int me = gdr_my_pe(), n = gdr_n_pes(), prev = (me + n - 1) % n;
	uint64_t *w = a.limited, seen = 77, bit = 1ull << prev;
	const uint64_t soon = 1000000, late = 20000000000ull;

	EXPECT_EQ(a.report, gdr_signal_wait_until_for(w, GDR_CMP_NE, 0, 0), -GDR_ETIMEOUT);
	EXPECT_EQ(a.report, gdr_signal_wait_until_for(w, GDR_CMP_NE, 0, soon), -GDR_ETIMEOUT);
	EXPECT_EQ(a.report, gdr_signal_wait_until_from_for(w, GDR_CMP_EQ, bit, prev, soon), -GDR_ETIMEOUT);
	EXPECT_OK(a.report, gdr_status());
	EXPECT_OK(a.report, gdr_barrier_all());
	EXPECT_OK(a.report, gdr_signal_op(w, 1ull << me, GDR_SIGNAL_ADD, (me + 1) % n));
	EXPECT_OK(a.report, gdr_signal_wait_until_from_for(w, GDR_CMP_EQ, bit, prev, late));
	EXPECT_OK(a.report, gdr_signal_wait_until_for(w, GDR_CMP_GE, bit, late));
	EXPECT_OK(a.report, gdr_signal_wait_until_seen(w, GDR_CMP_NE, 0, &seen));
	EXPECT_EQ(a.report, seen, bit);
	EXPECT_OK(a.report, gdr_barrier_all());
	EXPECT_OK(a.report, gdr_signal_add(w, 1ull << (8 + me), (me + 1) % n));
	EXPECT_OK(a.report, gdr_signal_wait_until_from_seen(w, GDR_CMP_GT, bit, prev, &seen));
	EXPECT_EQ(a.report, seen, bit | bit << 8);
	EXPECT_EQ(a.report, gdr_signal_wait_until_for(w, GDR_CMP_LT, seen, soon), -GDR_ETIMEOUT);
	EXPECT_OK(a.report, gdr_quiet());
}

int main(void)
{
	struct sig a;
	uint64_t threads = 128;

	multi_begin();
	memset(&a, 0, sizeof(a));
	a.report = multi_report_new();
	a.in = (uint8_t *)gdr_calloc(2, LEN_MAX);
	a.out = (uint8_t *)gdr_calloc(1, LEN_MAX);
	a.arrived = (uint64_t *)gdr_calloc(4, 8);
	CHECK(a.in && a.out && a.arrived);
	a.consumed = a.arrived + 1;
	a.sum = a.arrived + 2;
	a.limited = a.arrived + 3;
	a.rounds = 40;
	for (a.form = 0; a.form < FORMS; a.form++) {
		multi_fill(a.arrived, 0, 16);
		CHECK_OK(gdr_barrier_all());
		RUN(ring, 1, 64, &a);
		CHECK_OK(gdr_barrier_all());
	}
	RUN(adders, 2, 64, &a);
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(multi_u64(a.sum), (uint64_t)multi_n * (threads * (threads + 1) / 2 + threads));
	for (uint64_t i = 0; i < (uint64_t)multi_n * threads; i++) /* of every thread of every PE */
		CHECK_EQ(multi_u64((const uint64_t *)a.in + i), i % threads + 1);
	RUN(limits, 1, 1, &a);
	multi_shared_free(a.report);
	return multi_end("signal");
}
