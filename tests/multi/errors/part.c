/* SPDX-License-Identifier: BSD-3-Clause */
/* The checked build on the host device: calls of a block or a warp that not all of its threads make, or with arguments
 * that differ. Who calls is refused, one text says how many these are, nothing has moved, and the next call of all is
 * not the worse for it.
 *
 *	part		blocks
 *	part warp */
#include "tests/multi/multi.h"

enum { THREADS = 40, PART = 16, LANES = 5, WORDS = 64, NOBODY = 0x11111111 };
enum { PUT, PUT_NBI, GET, PUT_BULK, PUT_SIGNAL, IPUT, CTX_PUT, REDUCE, TEAM_BARRIER, BARRIER_ALL, N_CALLS };
/* What the other threads do: they have returned, behind those that call and in front of them; they synchronise; they
 * make another call, on the second half. */
enum { GONE, FIRST_GONE, ELSEWHERE, OTHER_CALL, N_WAYS };

struct part {
	uint64_t *dst, *src, *sig; /* [WORDS] */
	int *status; /* [THREADS] */
	int call, way, pe, warp, all;
};

#define IN_SCOPE(s)                                                                                \
	GDR_DEVICE int call##s(const struct part *a, size_t at)                                    \
	{                                                                                          \
		uint64_t *d = a->dst + at;                                                         \
		const uint64_t *f = a->src + at;                                                   \
                                                                                                   \
		switch (a->call) {                                                                 \
		case PUT:                                                                          \
			return gdr_uint64_put##s(d, f, WORDS / 2, a->pe);                          \
		case PUT_NBI:                                                                      \
			return gdr_put_nbi##s(d, f, WORDS / 2 * 8, a->pe);                         \
		case GET:                                                                          \
			return gdr_get##s(d, f, WORDS / 2 * 8, a->pe);                             \
		case PUT_BULK:                                                                     \
			return gdr_put_bulk##s(d, f, WORDS / 2 * 8, gdr_shared(), 0, a->pe);       \
		case PUT_SIGNAL:                                                                   \
			return gdr_put_signal##s(d, f, WORDS / 2 * 8, a->sig, 1, GDR_SIGNAL_SET, a->pe); \
		case IPUT:                                                                         \
			return gdr_uint64_iput##s(d, f, 1, 1, WORDS / 2, a->pe);                   \
		case CTX_PUT:                                                                      \
			return gdr_ctx_put##s(GDR_CTX_DEFAULT, d, f, WORDS / 2 * 8, a->pe);        \
		case REDUCE:                                                                       \
			return gdr_uint64_max_reduce##s(GDR_TEAM_WORLD, d, f, WORDS / 2);          \
		case TEAM_BARRIER:                                                                 \
			return gdr_barrier##s(GDR_TEAM_WORLD);                                     \
		}                                                                                  \
		return gdr_barrier_all##s();                                                       \
	}
IN_SCOPE(_warp)
IN_SCOPE(_block)

GDR_KERNEL(part_calls, struct part, a)
{
	unsigned t = gdr_thread_id();
	int calls = a.all || (a.way == FIRST_GONE ? t >= THREADS - PART : t < PART);

	if (calls)
		a.status[t] = call_block(&a, 0);
	else if (a.way == OTHER_CALL)
		a.status[t] = call_block(&a, WORDS / 2);
	else if (a.way == ELSEWHERE)
		gdr_sync_block();
}

/* Of the last warp, which is not whole. */
GDR_KERNEL(lanes_call, struct part, a)
{
	unsigned t = gdr_thread_id();

	if (t >= 32 && (a.all || (a.way == FIRST_GONE ? t >= THREADS - LANES : t < 32 + LANES)))
		a.status[t] = call_warp(&a, 0);
	else if (t >= 32 && a.way == OTHER_CALL)
		a.status[t] = call_warp(&a, WORDS / 2);
	else if (t >= 32 && a.way == ELSEWHERE)
		(void)gdr_ballot(0xff, 1);
}

static const char *name_of(int call)
{
	static const char *const names[] = {"gdr_put", "gdr_put", "gdr_get", "gdr_put_bulk", "gdr_put_signal",
					    "gdr_TYPE_iput", "gdr_ctx_put", "gdr_TYPE_OP_reduce", "gdr_barrier",
					    "gdr_barrier_all"};

	return names[call];
}

/* How many threads have this status. */
static int how_many(const struct part *a, int status)
{
	int n = 0;

	for (int t = 0; t < THREADS; t++)
		n += a->status[t] == status;
	return n;
}

static void launch(struct part *a)
{
	for (int t = 0; t < THREADS; t++)
		a->status[t] = NOBODY;
	for (int i = 0; i < WORDS; i++)
		a->dst[i] = 0;
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(a->warp ? gdr_launch(lanes_call, 1, THREADS, 0, NULL, a)
			 : gdr_launch(part_calls, 1, THREADS, 0, NULL, a));
	CHECK_OK(gdr_stream_sync(NULL));
}

static void by_part(struct part *a)
{
	int n = a->warp ? LANES : PART, all = a->warp ? THREADS - 32 : THREADS, before = gdr_errors(NULL, 0);
	static struct gdr_error e[64];
	char text[128];

	a->all = 0;
	launch(a);
	CHECK_EQ(how_many(a, -GDR_EINVAL), a->way == OTHER_CALL ? all : n);
	CHECK_EQ(how_many(a, NOBODY), THREADS - how_many(a, -GDR_EINVAL));
	CHECK_EQ(gdr_errors(e, 64), before + 1);
	snprintf(text, sizeof(text), "%d of the %d threads of %sblock 0 make this call with equal arguments", n, all,
		 a->warp ? "warp 1 of " : "");
	if (!strstr(e[before].text, text) || !strstr(e[before].text, "part.c:") ||
	    strncmp(e[before].text, name_of(a->call), strlen(name_of(a->call))))
		multi_fail(__FILE__, __LINE__, "call %d, way %d: %s", a->call, a->way, e[before].text);
	CHECK_EQ(gdr_quiet(), a->call < REDUCE ? -GDR_EINVAL : 0);
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ(a->dst[i], 0);
	CHECK_EQ(*a->sig, 0);
}

static void by_all(struct part *a)
{
	int moves = a->call < TEAM_BARRIER;

	a->all = 1;
	launch(a);
	CHECK_EQ(how_many(a, 0), a->warp ? THREADS - 32 : THREADS);
	CHECK_OK(gdr_quiet());
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < WORDS; i++)
		CHECK_EQ(a->dst[i], moves && i < WORDS / 2 ? a->src[i] : 0);
	*a->sig = 0;
	CHECK_OK(gdr_barrier_all());
}

int main(int argc, char **argv)
{
	static int status[THREADS];
	struct part a = {.status = status};

	(void)argv;
	multi_begin();
	a.warp = argc > 1;
	a.pe = (multi_pe + 1) % multi_n;
	a.dst = (uint64_t *)gdr_calloc(2 * WORDS + 1, 8);
	CHECK(a.dst);
	a.src = a.dst + WORDS;
	a.sig = a.src + WORDS;
	for (int i = 0; i < WORDS; i++)
		a.src[i] = (uint64_t)i + 1;
	for (a.call = 0; a.call < N_CALLS; a.call++) {
		for (a.way = 0; a.way < N_WAYS; a.way++) {
			if (a.way == OTHER_CALL && a.call > REDUCE)
				continue; /* which has no arguments that could differ */
			by_part(&a);
			by_all(&a);
		}
	}
	CHECK_OK(gdr_finalize());
	return 0;
}
