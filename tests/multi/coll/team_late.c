/* SPDX-License-Identifier: BSD-3-Clause */
/* A team that one of its members does not join: the others say which number is missing, within GDR_TIMEOUT, and make
 * the team without it afterwards. `alone`: one member that fails alone tells the other, which comes later and hears its
 * status, not that of a time limit. `stopped`: a PE that stands still and is no member costs the members nothing. */
#include <signal.h>
#include <unistd.h>

#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#define ID 0x7465616d

static void await(const uint64_t *turn, uint64_t value)
{
	while (multi_u64(turn) != value)
		multi_sleep_us(1000);
}

static int alone(void)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	uint64_t *turn, two = 2;

	multi_begin();
	turn = (uint64_t *)gdr_calloc(2, sizeof(*turn));
	CHECK(turn);
	said_begin();
	CHECK_EQ(gdr_team_join(ID + 1, 3, 0, NULL, 0, &team), -GDR_EINVAL);
	said_expect("n is 3, and a team has 1 to 2 PEs", NULL);
	said_begin();
	CHECK_EQ(gdr_team_join(ID + 2, 2, 2, NULL, 0, &team), -GDR_EINVAL);
	said_expect("me is 2, and the numbers of 2 PEs are 0 to 1", NULL);
	said_begin();
	CHECK_EQ(gdr_team_split_strided(GDR_TEAM_WORLD, 1, 4, 2, NULL, 0, &team), -GDR_EINVAL);
	said_expect("start 1, stride 4, size 2: there is no PE 5 in the team, it has 0 to 1", NULL);
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == 0) {
		CHECK_OK(gdr_abort_waits());
		said_begin();
		CHECK_EQ(gdr_team_join(ID, 2, 0, NULL, 0, &team), -GDR_EABORTED);
		said_expect("the team with id 0x7465616d", NULL);
		multi_set_u64(turn, 1);
		await(turn, 2); /* its record is looked at until then */
	} else {
		while (multi_u64(turn + 1) != 1)
			CHECK_OK(gdr_host_get(turn + 1, turn, sizeof(*turn), 0));
		said_begin();
		CHECK_EQ(gdr_team_join(ID, 2, 1, NULL, 0, &team), -GDR_EABORTED);
		said_expect("PE 0, a member of the team with id 0x7465616d, failed", NULL);
		CHECK_OK(gdr_host_put(turn, &two, sizeof(two), 0));
		CHECK_OK(gdr_host_quiet());
	}
	CHECK_EQ(team, GDR_TEAM_INVALID);
	(void)gdr_finalize(); /* of a job in which one has aborted */
	if (multi_pe == 0)
		printf("team_late: heard of by the other\n");
	return 0;
}

static int is_stopped(pid_t pid)
{
	char name[32], line[256] = "", *state;
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/stat", (int)pid);
	f = fopen(name, "r");
	CHECK(f && fgets(line, sizeof(line), f));
	fclose(f);
	state = strrchr(line, ')');
	CHECK(state);
	return state[2] == 'T';
}

static int stopped(void)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	uint64_t *pid, mine = (uint64_t)getpid();
	int last;

	multi_begin();
	last = multi_n - 1;
	pid = (uint64_t *)gdr_calloc(1, sizeof(*pid));
	CHECK(pid);
	for (int pe = 0; pe < last && multi_pe == last; pe++)
		CHECK_OK(gdr_host_put(pid, &mine, sizeof(mine), pe));
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == last) {
		multi_sleep_us(100000); /* softhca is of this process: what the barrier told the others goes out */
		raise(SIGSTOP);
	} else {
		while (!is_stopped((pid_t)multi_u64(pid)))
			multi_sleep_us(1000);
		CHECK_OK(gdr_team_join(ID, last, multi_pe, NULL, 0, &team));
		CHECK_EQ(gdr_host_team_n_pes(team), last);
		CHECK(is_stopped((pid_t)multi_u64(pid)));
		CHECK_OK(gdr_team_sync(team));
		if (multi_pe == 0)
			CHECK(!kill((pid_t)multi_u64(pid), SIGCONT));
	}
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_team_destroy(multi_pe == last ? GDR_TEAM_INVALID : team));
	CHECK_OK(gdr_finalize());
	if (multi_pe == 0)
		printf("team_late: %d members beside a stopped PE\n", last);
	return 0;
}

int main(int argc, char **argv)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	uint64_t start, *done, one = 1;

	if (argc > 1 && !strcmp(argv[1], "alone"))
		return alone();
	if (argc > 1 && !strcmp(argv[1], "stopped"))
		return stopped();
	multi_begin();
	done = (uint64_t *)gdr_calloc(1, sizeof(*done));
	CHECK(done);
	start = gdr_clock_ns();
	if (multi_pe != multi_n - 1) {
		CHECK_EQ(gdr_team_join(ID, multi_n, multi_pe, NULL, 0, &team), -GDR_ETIMEOUT);
		CHECK_EQ(team, GDR_TEAM_INVALID);
		CHECK(gdr_clock_ns() - start < 20000000000);
		CHECK_OK(gdr_team_join(ID + 1, multi_n - 1, multi_pe, NULL, 0, &team));
		CHECK_EQ(gdr_host_team_n_pes(team), multi_n - 1);
		CHECK_OK(gdr_team_destroy(team));
		if (multi_pe == 0)
			CHECK_OK(gdr_host_put(done, &one, sizeof(one), multi_n - 1));
	} else {
		await(done, 1); /* and comes to no call of all meanwhile */
	}
	CHECK_OK(gdr_finalize());
	if (multi_pe == 0)
		printf("team_late: all right on %d PEs\n", multi_n);
	return 0;
}
