/* SPDX-License-Identifier: BSD-3-Clause */
/* The checked build: several threads, warps or blocks of a PE that make a call which one of each PE makes. The first
 * does, the others are refused while it waits for the PEs that are late, the text says so once, and the PEs stay in
 * step. */
#include "tests/multi/multi.h"

enum { BARRIER_ALL, SYNC_ALL, BARRIER, TEAM_SYNC, REDUCE, N_CALLS, BLOCKS = 2, THREADS = 40, ALL = BLOCKS * THREADS };
enum { NOT_YET = 1 };

struct at_once {
	int what, scope, *got; /* of the host: by number of the thread */
	int *dst, *src;
	uint64_t *go; /* of the PEs that are late */
};

#define IN_SCOPE(s)                                                                                \
	GDR_DEVICE int call##s(const struct at_once *a)                                            \
	{                                                                                          \
		switch (a->what) {                                                                 \
		case BARRIER_ALL:                                                                  \
			return gdr_barrier_all##s();                                               \
		case SYNC_ALL:                                                                     \
			return gdr_sync_all##s();                                                  \
		case BARRIER:                                                                      \
			return gdr_barrier##s(GDR_TEAM_WORLD);                                     \
		case TEAM_SYNC:                                                                    \
			return gdr_team_sync##s(GDR_TEAM_WORLD);                                   \
		}                                                                                  \
		return gdr_int_sum_reduce##s(GDR_TEAM_WORLD, a->dst, a->src, 1);                   \
	}
IN_SCOPE()
IN_SCOPE(_warp)
IN_SCOPE(_block)

GDR_KERNEL(all_call, struct at_once, a)
{
	int ret = a.scope == 1 ? call(&a) : a.scope == 32 ? call_warp(&a) : call_block(&a);

	/* pairs with nothing: the host looks at the number alone */
	__atomic_store_n(&a.got[gdr_block_id() * gdr_block_size() + gdr_thread_id()], ret, __ATOMIC_RELAXED);
}

static int how_many(const struct at_once *a, int ret)
{
	int n = 0;

	for (int i = 0; i < ALL; i++)
		n += __atomic_load_n(&a->got[i], __ATOMIC_RELAXED) == ret; /* as above */
	return n;
}

static const char *name_of(int what)
{
	static const char *const names[] = {"gdr_barrier_all", "gdr_sync_all", "gdr_barrier", "gdr_team_sync",
					    "gdr_TYPE_OP_reduce"};

	return names[what];
}

static void said_once(const struct at_once *a, int before)
{
	struct gdr_error e[64];
	char text[64];

	CHECK_EQ(gdr_errors(e, 64), before + 1);
	snprintf(text, sizeof(text), "%s refused: ", name_of(a->what));
	CHECK_EQ(e[before].status, -GDR_EINVAL);
	if (strncmp(e[before].text, text, strlen(text)) || !strstr(e[before].text, "at_once.c:") ||
	    !strstr(e[before].text, "2 threads, warps or blocks of this PE are in it at a time, the last one thread "))
		multi_fail(__FILE__, __LINE__, "%s", e[before].text);
}

/* PE 0: all of its threads; the others let it go on when all but the first of them are refused. */
static void many(struct at_once *a)
{
	int first = a->scope == 1 || a->scope == 32 ? a->scope : THREADS, before = gdr_errors(NULL, 0);

	for (int i = 0; i < ALL; i++)
		a->got[i] = NOT_YET;
	CHECK_OK(gdr_launch(all_call, BLOCKS, THREADS, 0, NULL, a));
	for (int i = 0; i < 20000 && how_many(a, -GDR_EINVAL) < ALL - first; i++)
		multi_sleep_us(1000);
	CHECK_EQ(how_many(a, -GDR_EINVAL), ALL - first);
	for (int pe = 1; pe < multi_n; pe++)
		CHECK_OK(gdr_signal_add(a->go, 1, pe));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(how_many(a, 0) + how_many(a, -GDR_EINVAL), ALL);
	said_once(a, before);
	if ((a->what == BARRIER_ALL || a->what == BARRIER) && !how_many(a, 0)) { /* it has said what was latched */
		(void)gdr_quiet();
		return;
	}
	CHECK_EQ(how_many(a, 0), first);
	CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
}

int main(void)
{
	static const int scopes[] = {1, 32, 0}; /* 0: blocks */
	static int got[ALL];
	struct at_once a = {.got = got};
	uint64_t turn = 0;

	multi_begin();
	a.go = (uint64_t *)gdr_calloc(1, 8);
	a.dst = (int *)gdr_calloc(2, sizeof(int));
	a.src = a.dst + 1;
	CHECK(a.go && a.dst);
	for (a.what = 0; a.what < N_CALLS; a.what++) {
		for (size_t i = 0; i < sizeof(scopes) / sizeof(scopes[0]); i++) {
			a.scope = scopes[i];
			if (a.what == REDUCE && a.scope != 1)
				continue; /* the members call it in one form */
			if (multi_pe == 0) {
				many(&a);
			} else {
				CHECK_OK(gdr_signal_wait_until(a.go, GDR_CMP_GE, ++turn));
				CHECK_OK(call(&a));
			}
			CHECK_OK(gdr_barrier_all());
			CHECK_OK(gdr_barrier(GDR_TEAM_WORLD));
		}
	}
	CHECK_OK(gdr_finalize());
	return 0;
}
