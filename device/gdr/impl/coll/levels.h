/* SPDX-License-Identifier: BSD-3-Clause */
/* The two levels of a team that spans several nodes: which members share one. */
#ifndef GDRI_LEVELS_H
#define GDRI_LEVELS_H

#include <gdr/impl/arch/abi.h>
#include <gdr/impl/arch/world.h>

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
