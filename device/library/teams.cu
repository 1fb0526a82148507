// SPDX-License-Identifier: BSD-3-Clause
/* Teams, and collectives that move. */
#include "device/library/part.h"

__device__ int gdri_lib_team_my_pe(gdr_team_t team)
{
	return gdr_team_my_pe(team);
}

__device__ int gdri_lib_team_n_pes(gdr_team_t team)
{
	return gdr_team_n_pes(team);
}

__device__ int gdri_lib_team_translate_pe(gdr_team_t src_team, int src_pe, gdr_team_t dest_team)
{
	return gdr_team_translate_pe(src_team, src_pe, dest_team);
}

__device__ void *gdri_lib_team_ptr(gdr_team_t team, const void *dest, int pe)
{
	return gdr_team_ptr(team, dest, pe);
}

__device__ int gdri_lib_team_barrier(int scope, gdr_team_t team, int quiet)
{
	return gdri_team_barrier(scope, team, quiet);
}
