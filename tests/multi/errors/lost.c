/* SPDX-License-Identifier: BSD-3-Clause */
/* The last PE dies, and the launcher says so: what every call of the others returns from then on, over each path. By
 * unique id (tests/launch/plain), where no launcher ends the others.
 *
 *	lost device	kernels: the next quiet, fence, wait and barrier
 *	lost host	host threads: every transfer to it, order, collective calls
 *	lost stream	operations on streams
 *	lost join	a team of the others, who know of each other nothing but an id
 *	lost late	beside it a member does not join a team: it is the one that is named
 *	lost flood	as host, after more was put to it, while it stood still, than may be under way to one PE
 *	lost team	teams of the others, whose waits for the dead one failed; one comes late to each call */
#include "tests/by_uid.h"
#include "tests/multi/multi.h"

#include <signal.h>
#include <sys/mman.h>

#define FLOOD	   (8u << 20)
#define FLOOD_PUTS 40

struct lost {
	uint64_t *word, *sig;
	uint8_t *flood; /* FLOOD bytes */
	int dead, live; /* PEs; live: the one behind this PE, or itself */
	int queues;	/* the dead one is reached by queue */
	gdr_team_t others;
	struct multi_report *report;
};

/* Of an operation itself on a PE that is lost: a GPU's threads look at nothing, and a post may wait for nothing. */
#define EXPECT_LOST_OR_OK(report, call)                                                            \
	do {                                                                                       \
		int told = (call);                                                                 \
		EXPECT_EQ(report, told == 0 || told == -GDR_EPEERLOST, 1);                         \
	} while (0)

/* A queue to it may have found out itself before: its error stays. */
#define EXPECT_LOST(report, a, call)                                                               \
	do {                                                                                       \
		int told = (call);                                                                 \
		if (!(a).queues || told != -GDR_ERETRY)                                            \
			EXPECT_EQ(report, told, -GDR_EPEERLOST);                                   \
	} while (0)

GDR_KERNEL(device, struct lost, a)
{
	uint64_t v = 5;

	EXPECT_EQ(a.report, gdr_status(), -GDR_EPEERLOST);
	EXPECT_LOST(a.report, a, gdr_quiet());
	EXPECT_LOST(a.report, a, gdr_quiet()); /* it stays */
	EXPECT_EQ(a.report, gdr_status(), -GDR_EPEERLOST);
	EXPECT_LOST_OR_OK(a.report, gdr_put(a.word, &v, 8, a.dead));
	EXPECT_LOST(a.report, a, gdr_quiet());
	EXPECT_LOST_OR_OK(a.report, gdr_uint64_p(a.word, 6, a.dead));
	EXPECT_LOST(a.report, a, gdr_fence());
	(void)gdr_uint64_g(a.word, a.dead);
	EXPECT_LOST(a.report, a, gdr_quiet_pe(a.dead));
	(void)gdr_uint64_atomic_fetch_add(a.word, 1, a.dead);
	EXPECT_EQ(a.report, gdr_status(), -GDR_EPEERLOST);
	EXPECT_LOST(a.report, a, gdr_ctx_quiet(GDR_CTX_DEFAULT));
	EXPECT_LOST(a.report, a, gdr_signal_wait_until_from(a.sig, GDR_CMP_EQ, 77, a.dead));
	EXPECT_LOST(a.report, a, gdr_uint64_wait_until(a.sig, GDR_CMP_EQ, 77));
	EXPECT_EQ(a.report, gdr_sync_all() < 0, 1);
	EXPECT_EQ(a.report, gdr_barrier_all() < 0, 1);
	EXPECT_LOST(a.report, a, gdr_quiet());
	/* the others are as they were: what arrives there arrives, and only quiet complains */
	EXPECT_OK(a.report, gdr_uint64_p(a.word + 1, 100 + (uint64_t)gdr_my_pe(), a.live));
	EXPECT_LOST(a.report, a, gdr_quiet());
	EXPECT_EQ(a.report, gdr_uint64_g(a.word + 1, a.live), 100 + (uint64_t)gdr_my_pe());
}

static void device_form(struct lost *a)
{
	RUN(device, 1, 1, a);
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
}

#define CHECK_LOST(a, call)                                                                        \
	do {                                                                                       \
		int lost_ret = (call);                                                             \
		if (!(a)->queues || lost_ret != -GDR_ERETRY)                                       \
			CHECK_EQ(lost_ret, -GDR_EPEERLOST);                                        \
	} while (0)

static void host_form(struct lost *a)
{
	uint64_t v = 8, *mine = (uint64_t *)gdr_host_ptr(a->word, multi_pe);

	CHECK_EQ(gdr_host_put(a->word, &v, 8, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_get(mine, a->word, 8, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_put_nbi(a->word, mine, 8, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_get_nbi(mine, a->word, 8, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_ctx_put(GDR_CTX_DEFAULT, a->word, &v, 8, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_ctx_get(GDR_CTX_DEFAULT, mine, a->word, 8, a->dead), -GDR_EPEERLOST);
	CHECK_LOST(a, gdr_host_quiet());
	CHECK_LOST(a, gdr_host_quiet());
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_fence(), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_ctx_fence(GDR_CTX_DEFAULT), -GDR_EPEERLOST);
	CHECK_LOST(a, gdr_host_ctx_quiet(GDR_CTX_DEFAULT));
	CHECK_EQ(gdr_uint64_atomic_fetch_add(a->word, 1, a->dead), 0);
	CHECK_EQ(gdr_uint64_g(a->word, a->dead), 0);
	CHECK_EQ(gdr_uint64_p(a->word, 1, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_uint64_put(a->word, mine, 4, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_uint64_iput(a->word, mine, 1, 1, 4, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_uint64_atomic_inc(a->word, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_uint64_atomic_add(a->word, 1, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_signal_op(a->sig, 1, GDR_SIGNAL_SET, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_put_signal(a->word, mine, 8, a->sig, 1, GDR_SIGNAL_SET, a->dead), -GDR_EPEERLOST);
	CHECK_EQ(gdr_host_put(a->word + 1, &v, 8, a->live), 0);
	CHECK_EQ(gdr_host_get(mine + 2, a->word + 1, 8, a->live), 0);
	CHECK_EQ(multi_u64(a->word + 2), 8);
	CHECK(!gdr_malloc(64));
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
	CHECK(gdr_barrier_all() < 0);
}

static void stream_form(struct lost *a)
{
	uint64_t *mine = (uint64_t *)gdr_host_ptr(a->word, multi_pe);

	CHECK_EQ(gdr_uint64_put_on_stream(a->word, mine, 4, a->dead, NULL), -GDR_EPEERLOST);
	CHECK_EQ(gdr_uint64_get_on_stream(mine, a->word, 4, a->dead, NULL), -GDR_EPEERLOST);
	CHECK_EQ(gdr_signal_op_on_stream(a->sig, 1, GDR_SIGNAL_SET, a->dead, NULL), -GDR_EPEERLOST);
	CHECK_OK(gdr_barrier_all_on_stream(NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
	CHECK_OK(gdr_quiet_on_stream(NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
}

/* What was under way to the dead one, and may never end, takes nothing from the others. */
static void flood_form(struct lost *a)
{
	uint8_t *mine = (uint8_t *)gdr_host_ptr(a->flood, multi_pe);
	size_t part = 65536;

	memset(mine, 0x5a, part);
	CHECK_EQ(gdr_host_put(a->flood + part, mine, part, a->live), 0);
	CHECK_EQ(gdr_host_get(mine, a->flood + part, part, a->live), 0);
	CHECK(mine[0] == 0x5a && mine[part - 1] == 0x5a);
}

/* Who is no member ends nothing; the team does what teams do. */
static void join_form(struct lost *a)
{
	gdr_team_t team;

	CHECK_OK(gdr_team_join(4711, multi_n - 1, multi_pe, NULL, 0, &team));
	CHECK_EQ(gdr_host_team_n_pes(team), multi_n - 1);
	CHECK_EQ(gdr_host_team_translate_pe(team, multi_n - 2, GDR_TEAM_WORLD), multi_n - 2);
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
	/* nobody else could come as the last one: no limit is waited for */
	CHECK_EQ(gdr_team_join(4712, multi_n, multi_pe, NULL, 0, &team), -GDR_EPEERLOST);
	CHECK_EQ(team, GDR_TEAM_INVALID);
	(void)a;
}

/* A dead PE is not said to be the member that is late. */
static void late_form(void)
{
	char text[1024] = "";
	int texts = memfd_create("texts", 0), err = dup(2);
	gdr_team_t team;

	CHECK(texts >= 0 && err >= 0);
	if (multi_pe)
		return;
	CHECK(dup2(texts, 2) == 2);
	CHECK_EQ(gdr_team_join(4714, 2, 0, NULL, 0, &team), -GDR_ETIMEOUT);
	CHECK(dup2(err, 2) == 2);
	CHECK(pread(texts, text, sizeof(text) - 1, 0) > 0);
	fputs(text, stderr);
	CHECK(strstr(text, "nobody came as number 1; not there: PE 1, PE 2 (lost)\n") != NULL);
	close(texts);
	close(err);
}

/* The last one comes when the others have long been in the call, and know that its wait failed. */
static void come_late(void)
{
	if (multi_pe == multi_n - 2)
		multi_sleep_us(50000);
}

static void use_team(struct lost *a, gdr_team_t team)
{
	uint64_t *sum = a->word + 32, *mine = a->word + 33;

	for (int i = 0; i < 3; i++) {
		come_late();
		CHECK_OK(gdr_team_sync(team));
		*(uint64_t *)gdr_host_ptr(mine, multi_pe) = (uint64_t)(multi_pe + i);
		come_late();
		CHECK_OK(gdr_uint64_sum_reduce(team, sum, mine, 1));
		CHECK_EQ(multi_u64(sum), (uint64_t)((multi_n - 1) * (multi_n - 2) / 2 + (multi_n - 1) * i));
	}
}

/* That everybody's wait failed ends no call of those who live. */
static void team_form(struct lost *a)
{
	gdr_team_t joined;
	int ret = gdr_signal_wait_until_from(a->sig, GDR_CMP_EQ, 77, a->dead);

	if (!a->queues || ret != -GDR_ERETRY)
		CHECK_EQ(ret, -GDR_EPEERLOST);
	use_team(a, a->others);
	come_late();
	CHECK_OK(gdr_team_join(4713, multi_n - 1, multi_pe, NULL, 0, &joined));
	use_team(a, joined);
}

/* A record names it, for programs; what the launcher said is the first thing that is known. */
static void check_record(const struct lost *a)
{
	struct gdr_error e[8];
	int i, n = gdr_errors(e, 8), named = 0;

	for (i = 0; i < n && i < 8; i++)
		named += e[i].status == -GDR_EPEERLOST && e[i].peer == a->dead &&
			 !strncmp(e[i].text, "PE ", 3) && strstr(e[i].text, " is lost") != NULL;
	CHECK_EQ(named, 1);
}

/* Under a flood it stands still before, so that nothing of that arrives. */
static void die(const struct lost *a)
{
	pid_t pid = getpid();

	if (a->flood && !fork()) {
		multi_sleep_us(1000000);
		kill(pid, SIGKILL);
		_exit(0);
	}
	raise(a->flood ? SIGSTOP : SIGKILL);
}

/* Dies when the others have left the barrier. They notice it: bounded by 20 s, and only as long as it takes. */
static void wait_for_death(const struct lost *a)
{
	uint64_t one = 1;

	(void)gdr_host_put(a->word + 8 + multi_pe, &one, 8, a->dead); /* may be told already, once it has arrived */
	(void)gdr_host_quiet();
	for (int pe = 0; pe < multi_n && multi_pe == a->dead; pe++)
		CHECK_OK(gdr_uint64_wait_until(a->word + 8 + pe, GDR_CMP_EQ, 1));
	if (multi_pe == a->dead)
		die(a);
	if (a->flood)
		multi_sleep_us(200000); /* it stands still */
	for (int i = 0; i < FLOOD_PUTS && a->flood; i++)
		(void)gdr_host_put_nbi(a->flood, gdr_host_ptr(a->flood, multi_pe), FLOOD, a->dead);
	for (int i = 0; i < 2000 && !gdr_host_status(); i++)
		multi_sleep_us(10000);
	CHECK_EQ(gdr_host_status(), -GDR_EPEERLOST);
	check_record(a);
}

/* A PE that has finished is no longer there for those that still put to it, and no barrier is left to meet in. */
static void meet_others(const struct lost *a)
{
	uint64_t one = 1;

	for (int pe = 0; pe < a->dead; pe++)
		CHECK_EQ(gdr_host_put(a->word + 48 + multi_pe, &one, 8, pe), 0);
	for (int pe = 0; pe < a->dead; pe++) {
		for (int i = 0; i < 20000 && multi_u64(a->word + 48 + pe) != 1; i++)
			multi_sleep_us(1000);
		CHECK_EQ(multi_u64(a->word + 48 + pe), 1);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct lost a = {0};
	int ret;

	CHECK_OK(by_uid_init());
	multi_pe = gdr_host_my_pe();
	multi_n = gdr_host_n_pes();
	CHECK(multi_n > 1);
	a.report = multi_report_new();
	a.word = (uint64_t *)gdr_calloc(64, 8);
	a.sig = (uint64_t *)gdr_calloc(1, 8);
	CHECK(a.word && a.sig);
	a.dead = multi_n - 1;
	a.live = (multi_pe + 1) % (multi_n - 1);
	a.queues = !gdr_host_ptr(a.word, a.dead);
	if (!strcmp(what, "flood"))
		CHECK((a.flood = (uint8_t *)gdr_calloc(FLOOD, 1)));
	if (!strcmp(what, "team"))
		CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n - 1, NULL, 0, &a.others));
	CHECK_OK(gdr_barrier_all());
	wait_for_death(&a);
	if (!strcmp(what, "device"))
		device_form(&a);
	else if (!strcmp(what, "host"))
		host_form(&a);
	else if (!strcmp(what, "flood"))
		flood_form(&a);
	else if (!strcmp(what, "join"))
		join_form(&a);
	else if (!strcmp(what, "late"))
		late_form();
	else if (!strcmp(what, "team"))
		team_form(&a);
	else
		stream_form(&a);
	meet_others(&a);
	ret = gdr_finalize();
	if (!a.queues || ret != -GDR_ERETRY)
		CHECK_EQ(ret, -GDR_EPEERLOST);
	multi_shared_free(a.report);
	printf("lost %s: PE %d of %d was told\n", what, multi_pe, multi_n);
	return 0;
}
