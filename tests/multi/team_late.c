/* SPDX-License-Identifier: BSD-3-Clause */
/* A team that one of its members does not join: the others say which number is missing, within GDR_TIMEOUT, and make
 * the team without it afterwards. */
#include "tests/multi/multi.h"

#define ID 0x7465616d

int main(void)
{
	gdr_team_t team = GDR_TEAM_WORLD;
	uint64_t start;

	multi_begin();
	start = gdr_clock_ns();
	if (multi_pe != multi_n - 1) {
		CHECK_EQ(gdr_team_join(ID, multi_n, multi_pe, NULL, 0, &team), -GDR_ETIMEOUT);
		CHECK_EQ(team, GDR_TEAM_INVALID);
		CHECK(gdr_clock_ns() - start < 20000000000);
		CHECK_OK(gdr_team_join(ID + 1, multi_n - 1, multi_pe, NULL, 0, &team));
		CHECK_EQ(gdr_host_team_n_pes(team), multi_n - 1);
		CHECK_OK(gdr_team_destroy(team));
	} else {
		while (gdr_clock_ns() - start < 3500000000) /* nobody waits for it in a call of all */
			gdr_pause(1000);
	}
	CHECK_OK(gdr_finalize());
	if (multi_pe == 0)
		printf("team_late: all right on %d PEs\n", multi_n);
	return 0;
}
