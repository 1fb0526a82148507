/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: made of any team, used by kernels and threads of the host at the same time, destroyed with work
 * outstanding, and until none are left. What each form moves is the matter of the programs that are compiled with
 * on_ctx.h. */
#include "tests/multi/multi.h"

#include <pthread.h>

enum { BLOCKS = 2, HOSTS = 3, WORDS = 40, ROUNDS = 25, QUEUES = 8 /* GDR_CTX_QUEUES */ };
#define WRITERS (BLOCKS + HOSTS)

struct ctxs {
	uint64_t *area;	 /* [n_pes][WRITERS][WORDS], each written by one */
	uint64_t *count; /* [2]: everybody counts on PE 0 */
	uint64_t *back;	 /* [WRITERS][WORDS] */
	uint64_t *flag, *ack;
	gdr_ctx_t own[WRITERS]; /* of each block and thread */
	gdr_ctx_t all;		/* of all of them */
	int pe;
	struct multi_report *report;
};

static int queues; /* some PE is reached by queue */

/* For kernels and host threads. */
GDRI_INLINE uint64_t *row(const struct ctxs *a, int pe, int writer)
{
	return a->area + ((size_t)pe * WRITERS + (size_t)writer) * WORDS;
}

GDRI_INLINE uint64_t value(uint64_t round, int pe, unsigned i)
{
	return round << 32 | (uint64_t)pe << 16 | i;
}

/* ---- many at once ---- */

/* Words first, first + step, ... */
GDR_DEVICE void write_row(const struct ctxs *a, int writer, uint64_t k, unsigned first, unsigned step)
{
	uint64_t *to = row(a, gdr_my_pe(), writer);

	for (unsigned i = first; i < WORDS; i += step) {
		uint64_t v = value(k, gdr_my_pe(), i);

		EXPECT_OK(a->report, gdr_ctx_put_nbi(a->own[writer], to + i, &v, 8, a->pe));
		EXPECT_OK(a->report, gdr_ctx_uint64_atomic_inc(a->own[writer], a->count, 0));
	}
}

GDR_DEVICE void read_row(const struct ctxs *a, int writer, uint64_t k, unsigned first, unsigned step)
{
	uint64_t *from = row(a, gdr_my_pe(), writer), *back = a->back + writer * WORDS;

	for (unsigned i = first; i < WORDS; i += step) {
		EXPECT_OK(a->report, gdr_ctx_get(a->own[writer], back + i, from + i, 8, a->pe));
		EXPECT_EQ(a->report, gdri_ld_relaxed_sys_u64(back + i), value(k, gdr_my_pe(), i));
	}
}

GDR_KERNEL(blocks, struct ctxs, a)
{
	unsigned t = gdr_thread_id(), n = gdr_block_size();
	int writer = (int)gdr_block_id();

	for (uint64_t k = 1; k <= ROUNDS; k++) {
		write_row(&a, writer, k, t, n);
		EXPECT_OK(a.report, gdr_ctx_uint64_atomic_add(a.all, a.count + 1, 2, 0));
		gdr_sync_block();
		if (t == 0)
			EXPECT_OK(a.report, gdr_ctx_quiet(a.own[writer]));
		gdr_sync_block();
		read_row(&a, writer, k, t, n);
		gdr_sync_block();
	}
	if (t == 0)
		EXPECT_OK(a.report, gdr_ctx_quiet(a.all));
}

struct thread {
	struct ctxs *a;
	int writer;
	pthread_t id;
};

#ifdef __CUDACC__ /* contexts are for kernels there */
static void *host(void *arg)
{
	(void)arg;
	multi_fail(__FILE__, __LINE__, "a thread of the host");
}
#else
static void *host(void *arg)
{
	struct thread *t = (struct thread *)arg;

	for (uint64_t k = 1; k <= ROUNDS; k++) {
		write_row(t->a, t->writer, k, 0, 1);
		CHECK_OK(gdr_ctx_quiet(t->a->own[t->writer]));
		read_row(t->a, t->writer, k, 0, 1);
	}
	return NULL;
}
#endif

static int hosts_of(void)
{
	struct gdr_job_info info;

	CHECK_OK(gdr_query(&info));
	return strcmp(info.device_kind, "cuda") ? HOSTS : 0;
}

static void at_once(struct ctxs *a)
{
	int hosts = hosts_of(), writers = BLOCKS + hosts, from = (multi_pe + multi_n - 1) % multi_n;
	struct thread threads[HOSTS];

	for (int i = 0; i < writers; i++)
		CHECK_OK(gdr_ctx_create(i < BLOCKS ? GDR_CTX_BLOCK : GDR_CTX_THREAD, &a->own[i]));
	CHECK_OK(gdr_ctx_create(GDR_CTX_GPU | GDR_CTX_N_QUEUES(2), &a->all));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_launch(blocks, BLOCKS, 32, 0, NULL, a));
	for (int i = 0; i < hosts; i++) {
		threads[i].a = a;
		threads[i].writer = BLOCKS + i;
		CHECK_EQ(pthread_create(&threads[i].id, NULL, host, &threads[i]), 0);
	}
	for (int i = 0; i < hosts; i++)
		CHECK_EQ(pthread_join(threads[i].id, NULL), 0);
	CHECK_OK(gdr_stream_sync(NULL));
	if (a->report->line)
		multi_fail(__FILE__, a->report->line, "in kernel: %lld, not %lld", a->report->got,
			   a->report->want);
	for (int i = 0; i < writers; i++)
		CHECK_OK(gdr_ctx_destroy(a->own[i]));
	CHECK_OK(gdr_ctx_destroy(a->all));
	CHECK_OK(gdr_barrier_all());
	for (int w = 0; w < writers; w++)
		for (unsigned i = 0; i < WORDS; i++)
			CHECK_EQ(multi_u64(row(a, from, w) + i), value(ROUNDS, from, i));
	if (multi_pe == 0) {
		CHECK_EQ(multi_u64(a->count), multi_n * writers * WORDS * ROUNDS);
		CHECK_EQ(multi_u64(a->count + 1), multi_n * BLOCKS * 32 * ROUNDS * 2);
	}
	CHECK_OK(gdr_barrier_all());
}

/* ---- order and completion ---- */

/* The ring neighbour sees what stands before the fence when it sees the flag; of one PE, too. */
GDR_KERNEL(fenced, struct ctxs, a)
{
	int n = gdr_n_pes(), me = gdr_my_pe(), next = (me + 1) % n, prev = (me + n - 1) % n;
	uint64_t *words = row(&a, 0, 0);

	for (uint64_t k = 1; k <= 100; k++) {
		for (unsigned i = 0; i < WORDS; i += 7)
			EXPECT_OK(a.report, gdr_ctx_uint64_p(a.all, words + i, value(k, me, i), next));
		(void)gdr_ctx_uint64_atomic_fetch_add(a.all, a.count, 1, next);
		EXPECT_OK(a.report, k & 1 ? gdr_ctx_fence(a.all) : gdr_ctx_fence_pe(a.all, next));
		EXPECT_OK(a.report, gdr_ctx_uint64_p(a.all, a.flag, k, next));
		EXPECT_OK(a.report, gdr_uint64_wait_until(a.flag, GDR_CMP_GE, k));
		for (unsigned i = 0; i < WORDS; i += 7)
			EXPECT_EQ(a.report, gdri_ld_relaxed_sys_u64(words + i), value(k, prev, i));
		EXPECT_OK(a.report, gdr_fence_pe(prev));
		EXPECT_OK(a.report, gdr_uint64_p(a.ack, k, prev));
		EXPECT_OK(a.report, gdr_uint64_wait_until(a.ack, GDR_CMP_GE, k));
	}
	EXPECT_OK(a.report, gdr_ctx_quiet(a.all));
	EXPECT_OK(a.report, gdr_quiet());
}

/* What is complete at a PE is there for whoever asks it. */
GDR_KERNEL(completed, struct ctxs, a)
{
	int n = gdr_n_pes(), keeper = 1 % n, reader = 2 % n, me = gdr_my_pe();
	uint64_t *words = row(&a, 0, 1);

	for (uint64_t k = 1; k <= 100; k++) {
		if (me == 0) {
			uint64_t v[3] = {k, k + 1, k + 2};

			EXPECT_OK(a.report, gdr_ctx_put_nbi(a.all, words, v, sizeof(v), keeper));
			EXPECT_OK(a.report, k & 1 ? gdr_ctx_quiet(a.all)
						  : gdr_ctx_quiet_pe(a.all, keeper));
			EXPECT_OK(a.report, gdr_uint64_p(a.flag, k, reader));
		}
		if (me == reader) {
			EXPECT_OK(a.report, gdr_uint64_wait_until(a.flag, GDR_CMP_EQ, k));
			for (uint64_t i = 0; i < 3; i++)
				EXPECT_EQ(a.report, gdr_uint64_g(words + i, keeper), k + i);
			EXPECT_OK(a.report, gdr_uint64_p(a.ack, k, 0));
		}
		if (me == 0)
			EXPECT_OK(a.report, gdr_uint64_wait_until(a.ack, GDR_CMP_EQ, k));
	}
	EXPECT_OK(a.report, gdr_ctx_quiet(GDR_CTX_DEFAULT));
	EXPECT_OK(a.report, gdr_ctx_fence(GDR_CTX_INVALID));
	EXPECT_OK(a.report, gdr_ctx_quiet(GDR_CTX_INVALID));
}

static void reset(struct ctxs *a)
{
	CHECK_OK(gdr_barrier_all());
	multi_set_u64(a->flag, 0);
	multi_set_u64(a->ack, 0);
	CHECK_OK(gdr_barrier_all());
}

static void ordered(struct ctxs *a)
{
	CHECK_OK(gdr_ctx_create(0, &a->all));
	reset(a);
	RUN(fenced, 1, 1, a);
	reset(a);
	RUN(completed, 1, 1, a);
	reset(a);
	CHECK_OK(gdr_ctx_destroy(a->all));
}

/* ---- teams ---- */

/* PE i of the team is told who it is, by PE 0 of it. */
GDR_KERNEL(name_all, struct ctxs, a)
{
	for (int i = 0; i < a.pe; i++) {
		EXPECT_OK(a.report, gdr_ctx_uint64_p(a.all, a.flag, 99, i));
		EXPECT_OK(a.report, gdr_ctx_fence_pe(a.all, i));
		EXPECT_OK(a.report, gdr_ctx_uint64_p(a.all, a.flag, (uint64_t)i + 1, i));
		EXPECT_OK(a.report, gdr_ctx_quiet_pe(a.all, i));
		EXPECT_EQ(a.report, gdr_ctx_uint64_g(a.all, a.flag, i), i + 1);
	}
	EXPECT_OK(a.report, gdr_ctx_quiet(a.all));
}

static void of_team(struct ctxs *a, gdr_team_t team)
{
	gdr_team_t of;

	reset(a);
	if (team != GDR_TEAM_INVALID) {
		CHECK_OK(gdr_team_create_ctx(team, GDR_CTX_THREAD, &a->all));
		CHECK_OK(gdr_ctx_get_team(a->all, &of));
		CHECK_EQ(of, team);
		a->pe = gdr_host_team_n_pes(team);
		if (gdr_host_team_my_pe(team) == 0)
			RUN(name_all, 1, 1, a);
	}
	CHECK_OK(gdr_barrier_all());
	if (team != GDR_TEAM_INVALID)
		CHECK_EQ(multi_u64(a->flag), gdr_host_team_my_pe(team) + 1);
	else
		CHECK_EQ(multi_u64(a->flag), 0);
	CHECK_OK(gdr_barrier_all());
}

static void teams(struct ctxs *a)
{
	int pes[GDRI_MAX_PES], n = 0;
	gdr_team_t team, of;
	gdr_ctx_t ctx;

	CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, multi_n - 1, -1, multi_n, NULL, 0, &team));
	of_team(a, team);
	ctx = a->all;
	CHECK_OK(gdr_team_destroy(team)); /* and its contexts */
	CHECK_EQ(gdr_ctx_get_team(ctx, &of), -GDR_EINVAL);
	CHECK_EQ(of, GDR_TEAM_INVALID);
	for (int i = 0; i < multi_n; i++) /* 0, 3, 6, ..., 1, 4, ...: no stride, and not all */
		if (i * 3 % 8 < multi_n)
			pes[n++] = i * 3 % 8;
	CHECK_OK(gdr_team_create(GDR_TEAM_WORLD, pes, n, NULL, 0, &team));
	of_team(a, team);
	if (team != GDR_TEAM_INVALID) {
		CHECK_OK(gdr_ctx_destroy(a->all));
		CHECK_OK(gdr_team_destroy(team));
	}
}

/* ---- the host's own ---- */

static void host_calls(struct ctxs *a)
{
	uint64_t mine = 7000 + (uint64_t)multi_pe, want[2], got[2] = {0, 0}, *at = row(a, 0, 3);
	gdr_team_t team;
	int me, n;

	CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, multi_n - 1, -1, multi_n, NULL, 0, &team));
	CHECK_OK(gdr_team_create_ctx(team, 0, &a->all));
	me = gdr_host_team_my_pe(team);
	n = gdr_host_team_n_pes(team);
	CHECK_OK(gdr_buffer_register(got, sizeof(got)));
	CHECK_OK(gdr_host_ctx_put(a->all, at, &mine, 8, (me + 1) % n));
	CHECK_OK(gdr_host_ctx_fence(a->all));
	CHECK_OK(gdr_host_ctx_put_nbi(a->all, at + 1, &mine, 8, (me + 1) % n));
	CHECK_OK(gdr_host_ctx_quiet(a->all));
	CHECK_OK(gdr_barrier_all());
	want[0] = want[1] = 7000 + (uint64_t)((multi_pe + 1) % multi_n);
	CHECK_EQ(multi_u64(at), want[0]);
	CHECK_EQ(multi_u64(at + 1), want[1]);
	CHECK_OK(gdr_host_ctx_get(a->all, got, at, 8, me));
	CHECK_OK(gdr_host_ctx_get_nbi(a->all, got + 1, at + 1, 8, me));
	CHECK_OK(gdr_host_ctx_quiet(a->all));
	CHECK_EQ(memcmp(got, want, sizeof(got)), 0);
	CHECK_OK(gdr_host_ctx_quiet(GDR_CTX_INVALID));
	CHECK_OK(gdr_buffer_unregister(got));
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_team_destroy(team));
}

/* ---- making and unmaking ---- */

GDR_KERNEL(post_and_leave, struct ctxs, a)
{
	for (unsigned i = 0; i < WORDS; i++)
		EXPECT_OK(a.report, gdr_ctx_uint64_put_nbi(a.all, row(&a, gdr_my_pe(), 2) + i,
							   a.back + i, 1, a.pe));
}

static void outstanding(struct ctxs *a)
{
	int from = (multi_pe + multi_n - 1) % multi_n;

	a->pe = (multi_pe + 1) % multi_n;
	for (uint64_t k = 1; k <= 20; k++) {
		for (unsigned i = 0; i < WORDS; i++)
			multi_set_u64(a->back + i, value(k, multi_pe, i));
		CHECK_OK(gdr_ctx_create(GDR_CTX_THREAD, &a->all));
		RUN(post_and_leave, 1, 1, a);
		CHECK_OK(gdr_ctx_destroy(a->all));
		CHECK_OK(gdr_barrier_all());
		for (unsigned i = 0; i < WORDS; i++)
			CHECK_EQ(multi_u64(row(a, from, 2) + i), value(k, from, i));
		CHECK_OK(gdr_barrier_all());
	}
}

static void refused(void)
{
	gdr_ctx_t ctx = 7;

	CHECK_EQ(gdr_ctx_create(GDR_CTX_THREAD | GDR_CTX_GPU, &ctx), -GDR_EINVAL);
	CHECK_EQ(ctx, GDR_CTX_INVALID);
	CHECK_EQ(gdr_ctx_create(GDR_CTX_BLOCK | GDR_CTX_N_QUEUES(2), &ctx), -GDR_EINVAL);
	CHECK_EQ(gdr_ctx_create(1L << 20, &ctx), -GDR_EINVAL);
	CHECK_EQ(gdr_ctx_create(0, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_team_create_ctx(GDR_TEAM_INVALID, 0, &ctx), -GDR_EINVAL);
	CHECK_EQ(gdr_team_create_ctx(31, 0, &ctx), -GDR_EINVAL);
	CHECK_EQ(gdr_ctx_destroy(GDR_CTX_DEFAULT), -GDR_EINVAL);
	CHECK_EQ(gdr_ctx_destroy(99), -GDR_EINVAL);
	CHECK_OK(gdr_ctx_destroy(GDR_CTX_INVALID));
}

/* As many as there are, each with a put that arrives; then one more; then again. */
static void exhausted(struct ctxs *a)
{
	gdr_ctx_t ctxs[GDRI_MAX_CTXS], more;
	int n, max = queues ? QUEUES : GDRI_MAX_CTXS - 1;

	for (int again = 0; again < 2; again++) {
		for (n = 0; n < max; n++) {
			CHECK_OK(gdr_ctx_create(0, &ctxs[n]));
			a->all = ctxs[n];
			RUN(post_and_leave, 1, 1, a);
		}
		CHECK_EQ(gdr_ctx_create(0, &more), -GDR_ENOQUEUE);
		CHECK_EQ(more, GDR_CTX_INVALID);
		for (n = 0; n < max; n += 2) /* every other: no two in a row are left */
			CHECK_OK(gdr_ctx_destroy(ctxs[n]));
		CHECK_EQ(gdr_ctx_create(GDR_CTX_N_QUEUES(2), &more), queues ? -GDR_ENOQUEUE : 0);
		CHECK_OK(gdr_ctx_destroy(more));
		for (n = 1; n < max; n += 2)
			CHECK_OK(gdr_ctx_destroy(ctxs[n]));
	}
	CHECK_OK(gdr_ctx_create(GDR_CTX_N_QUEUES(QUEUES), &more));
	CHECK_OK(gdr_ctx_destroy(more));
}

int main(void)
{
	struct gdr_job_info info;
	struct ctxs a = {0};

	multi_begin();
	CHECK_OK(gdr_query(&info));
	queues = info.n_queues > 0;
	a.report = multi_report_new();
	a.area = (uint64_t *)gdr_calloc((size_t)multi_n * WRITERS * WORDS, 8);
	a.count = (uint64_t *)gdr_calloc(2, 8);
	a.back = (uint64_t *)gdr_calloc(WRITERS * WORDS, 8);
	a.flag = (uint64_t *)gdr_calloc(1, 8);
	a.ack = (uint64_t *)gdr_calloc(1, 8);
	CHECK(a.area && a.count && a.back && a.flag && a.ack);
	a.pe = (multi_pe + 1) % multi_n;
	at_once(&a);
	ordered(&a);
	teams(&a);
	host_calls(&a);
	outstanding(&a);
	refused();
	exhausted(&a);
	CHECK_OK(gdr_barrier_all());
	multi_shared_free(a.report);
	return multi_end("ctx");
}
