/* SPDX-License-Identifier: BSD-3-Clause */
/* Which grids and blocks of three dimensions are launched: CUDA's limits, on GPUs and on the host device. */
#include <gdr/launch.h>

#include "runtime/core/log.h"

struct extents_limit {
	const char *of;
	uint32_t each[3], all;
};

static int check_extents(const char *call, const char *name, struct gdr_dim3 d, const struct extents_limit *most)
{
	const uint32_t each[3] = {d.x, d.y, d.z};

	for (int i = 0; i < 3; i++)
		if (each[i] < 1 || each[i] > most->each[i])
			return gdri_fail(-GDR_EINVAL, "%s of %s: extent %c of the %s is %u: allowed are 1 to %u", call,
					 name, "xyz"[i], most->of, each[i], most->each[i]);
	if ((uint64_t)d.x * d.y * d.z > most->all) /* of 63 bits at most */
		return gdri_fail(-GDR_EINVAL, "%s of %s: extents %u x %u x %u of the %s: allowed are products up to %u",
				 call, name, d.x, d.y, d.z, most->of, most->all);
	return GDR_OK;
}

int gdri_launch_extents(const char *call, const char *name, struct gdr_dim3 grid, struct gdr_dim3 block)
{
	static const struct extents_limit of_grid = {"grid", {GDR_MAX_GRID, 65535, 65535}, GDR_MAX_GRID};
	static const struct extents_limit of_block = {"block", {GDR_MAX_BLOCK, GDR_MAX_BLOCK, 64}, GDR_MAX_BLOCK};
	int ret = check_extents(call, name, grid, &of_grid);

	return ret ? ret : check_extents(call, name, block, &of_block);
}
