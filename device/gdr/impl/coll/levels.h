/* SPDX-License-Identifier: BSD-3-Clause */
/* Who a team's members are, and the two levels of one that spans several nodes: which of them share one. */
#ifndef GDRI_LEVELS_H
#define GDRI_LEVELS_H

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/arch/arch.h>

/* Number in the world of member i. */
GDR_DEVICE int gdri_team_pe(const struct gdri_team *t, int i)
{
	return t->stride ? t->start + i * t->stride : t->pes[i];
}

/* Number in the team of PE pe of the world; -1: none. */
GDRI_NOINLINE int gdri_team_index(const struct gdri_team *t, int pe)
{
	for (int i = 0; i < t->n; i++)
		if (gdri_team_pe(t, i) == pe)
			return i;
	return -1;
}

GDR_DEVICE int gdri_node_of(const struct gdri_team *t, int member)
{
	return t->levels[t->n + member];
}

/* Its number in its node. */
GDR_DEVICE int gdri_node_local(const struct gdri_team *t, int member)
{
	return t->levels[2 * t->n + member];
}

GDR_DEVICE int gdri_node_size(const struct gdri_team *t, int node)
{
	return t->levels[3 * t->n + node + 1] - t->levels[3 * t->n + node];
}

GDR_DEVICE int gdri_node_member(const struct gdri_team *t, int node, int local)
{
	return t->levels[t->levels[3 * t->n + node] + local];
}

#endif
