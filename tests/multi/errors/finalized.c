/* SPDX-License-Identifier: BSD-3-Clause */
/* The last PE calls gdr_finalize, in which it waits for the others. Those make a call that needs it, and hear at once
 * that it does not come: GDR_TIMEOUT is longer than the test.
 *
 *	finalized join | split | malloc | barrier
 *	finalized fewer		gdr_team_join of the others alone is none of its business */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#define ID 0x66696e61

static int join(int n)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	int ret = gdr_team_join(ID, n, multi_pe, NULL, 0, &team);

	CHECK_EQ(gdr_host_team_n_pes(team), ret ? -1 : n);
	return ret;
}

static int split(void)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	int ret = gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n - 1, NULL, 0, &team);

	CHECK_EQ(team, GDR_TEAM_INVALID);
	return ret;
}

static int call(const char *form)
{
	if (!strcmp(form, "join"))
		return join(multi_n);
	if (!strcmp(form, "split"))
		return split();
	if (!strcmp(form, "barrier"))
		return gdr_barrier_all();
	CHECK(!gdr_malloc(64));
	return gdr_host_status();
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "";
	char text[64];
	int ret;

	multi_begin();
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == multi_n - 1) {
		ret = gdr_finalize();
		if (!strcmp(form, "barrier")) /* the others gave that up, and so all that all PEs do together */
			CHECK_EQ(ret, -GDR_EPEERLOST);
		else
			CHECK_EQ(ret, strcmp(form, "malloc") ? 0 : -GDR_EMISMATCH); /* meets nobody there */
		return 0;
	}
	if (!strcmp(form, "fewer")) {
		CHECK_OK(join(multi_n - 1));
		CHECK_OK(gdr_finalize());
		return 0;
	}
	said_begin();
	CHECK_EQ(call(form), -GDR_EPEERLOST);
	ret = gdr_finalize();
	CHECK_EQ(ret, strcmp(form, "join") ? -GDR_EPEERLOST : 0);
	snprintf(text, sizeof(text), strcmp(form, "join") ? "PE %d has called gdr_finalize" :
		 "PE %d (has called gdr_finalize)", multi_n - 1);
	said_expect(text, !strcmp(form, "join")	     ? "failed: a peer is lost; its own message says of what"
			 : !strcmp(form, "barrier") ? "gave up a gdr_barrier_all because of PE" : NULL);
	if (multi_pe == 0)
		printf("finalized: %s on %d PEs\n", form, multi_n);
	return 0;
}
