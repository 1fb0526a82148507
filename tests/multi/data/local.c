/* SPDX-License-Identifier: BSD-3-Clause */
/* gdr/local.h in a job: one stream fills memory of the device's own, another copies it to a symmetric object and puts
 * that to the next PE; two buffers in turn, so that both streams wait for events of the other. */
#include "tests/multi/multi.h"

#define WORDS 5000u
#define ROUNDS 20u
#define SLOW 20u /* rounds of a fill that others would overtake */

struct fill {
	uint32_t *to;
	uint32_t first;
};

struct send {
	uint32_t *to;
	const uint32_t *from;
	int pe, *status;
};

GDR_KERNEL(fill, struct fill, a)
{
	for (unsigned i = 0; i < SLOW; i++)
		gdr_pause(i);
	for (uint32_t i = gdr_thread_id(); i < WORDS; i += gdr_block_size())
		a.to[i] = a.first + i;
}

GDR_KERNEL(send, struct send, a)
{
	int ret = gdr_put_block(a.to, a.from, WORDS * sizeof(uint32_t), a.pe);

	if (ret && gdr_thread_id() == 0)
		*a.status = ret;
}

struct pipe {
	gdr_stream_t fills, sends;
	gdr_event_t filled[2], taken[2], begin, end;
	uint32_t *scratch[2], *from, *to;
	int *status;
};

static void pipe_open(struct pipe *p)
{
	const int poison = 1;

	memset(p, 0, sizeof(*p));
	CHECK_OK(gdr_stream_create(&p->fills));
	CHECK_OK(gdr_stream_create(&p->sends));
	CHECK_OK(gdr_event_create(&p->begin));
	CHECK_OK(gdr_event_create(&p->end));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(gdr_event_create(&p->filled[i]));
		CHECK_OK(gdr_event_create(&p->taken[i]));
		p->scratch[i] = (uint32_t *)gdr_device_malloc(WORDS * sizeof(uint32_t));
		CHECK(p->scratch[i]);
	}
	p->from = (uint32_t *)gdr_malloc(WORDS * sizeof(uint32_t));
	p->to = (uint32_t *)gdr_calloc(ROUNDS * WORDS, sizeof(uint32_t));
	p->status = (int *)gdr_malloc(sizeof(int));
	CHECK(p->from && p->to && p->status);
	CHECK_OK(gdr_memcpy(p->status, &poison, sizeof(int)));
	CHECK_OK(gdr_memset(p->status, 0, sizeof(int)));
}

static void pipe_run(struct pipe *p)
{
	struct send s = {NULL, p->from, (multi_pe + 1) % multi_n, p->status};

	CHECK_OK(gdr_event_record(p->begin, p->fills));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		struct fill f = {p->scratch[i % 2], ((uint32_t)multi_pe * ROUNDS + i) * WORDS};

		CHECK_OK(gdr_stream_wait_event(p->fills, p->taken[i % 2])); /* of two rounds before */
		CHECK_OK(gdr_launch(fill, 1, 64, 0, p->fills, &f));
		CHECK_OK(gdr_event_record(p->filled[i % 2], p->fills));
		CHECK_OK(gdr_stream_wait_event(p->sends, p->filled[i % 2]));
		CHECK_OK(gdr_memcpy_async(p->from, f.to, WORDS * sizeof(uint32_t), p->sends));
		CHECK_OK(gdr_memset_async(f.to, 0xff, WORDS * sizeof(uint32_t), p->sends));
		CHECK_OK(gdr_event_record(p->taken[i % 2], p->sends));
		s.to = p->to + i * WORDS;
		CHECK_OK(gdr_launch(send, 1, 64, 0, p->sends, &s));
	}
	CHECK_OK(gdr_event_record(p->end, p->sends));
	CHECK_OK(gdr_event_sync(p->end));
	CHECK_EQ(gdr_event_query(p->end), 1);
	CHECK_EQ(gdr_event_query(p->filled[0]), 1); /* `end` stands behind it */
}

static void pipe_check(const struct pipe *p)
{
	uint32_t *got = (uint32_t *)malloc(ROUNDS * WORDS * sizeof(uint32_t));
	uint32_t first = (uint32_t)((multi_pe + multi_n - 1) % multi_n) * ROUNDS * WORDS;
	float ms = -1;
	int status = -1;

	CHECK(got);
	CHECK_OK(gdr_memcpy(&status, p->status, sizeof(status)));
	CHECK_OK(status);
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_memcpy(got, p->to, ROUNDS * WORDS * sizeof(uint32_t)));
	for (uint32_t i = 0; i < ROUNDS * WORDS; i++)
		CHECK_EQ(got[i], first + i);
	for (int i = 0; i < 2; i++) { /* cleared behind the last copy */
		CHECK_OK(gdr_memcpy(got, p->scratch[i], WORDS * sizeof(uint32_t)));
		for (uint32_t w = 0; w < WORDS; w++)
			CHECK_EQ(got[w], 0xffffffff);
	}
	CHECK_OK(gdr_event_elapsed(p->begin, p->end, &ms));
	CHECK(ms > 0);
	free(got);
}

static void pipe_close(struct pipe *p)
{
	CHECK_OK(gdr_stream_destroy(p->fills));
	CHECK_OK(gdr_stream_destroy(p->sends));
	CHECK_OK(gdr_event_destroy(p->begin));
	CHECK_OK(gdr_event_destroy(p->end));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(gdr_event_destroy(p->filled[i]));
		CHECK_OK(gdr_event_destroy(p->taken[i]));
		CHECK_OK(gdr_device_free(p->scratch[i]));
	}
}

int main(void)
{
	struct pipe p;

	multi_begin();
	pipe_open(&p);
	pipe_run(&p);
	pipe_check(&p);
	pipe_close(&p);
	return multi_end("local");
}
