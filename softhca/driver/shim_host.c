/* SPDX-License-Identifier: BSD-3-Clause */
/* Several hosts out of one (SOFTHCA_NODES): gethostname() tells the processes of a launcher on this
 * host apart by their rank here, in equal parts, so that programs take them for so many nodes. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"

SHIM_EXPORT int gethostname(char *name, size_t len);

static long host_number(const char *const *names)
{
	for (; *names; names++) {
		const char *text = getenv(*names);

		if (text && *text)
			return strtol(text, NULL, 10);
	}
	return -1;
}

static const char *const rank[] = { "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PMIX_RANK",
				    "PMI_RANK", NULL };

/* -1: one host, as it is. */
static long host_node(void)
{
	static const char *const size[] = { "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
					    "PMI_SIZE", NULL };
	long nodes = hca_options()->nodes, r = host_number(rank), n = host_number(size);

	if (nodes < 2 || r < 0)
		return -1;
	return n >= nodes && r < n ? r * nodes / n : r % nodes;
}

/* Not in gethostname(): launchers ask, too, and have no rank. */
void shim_host_check(void)
{
	static bool said;

	if (said || hca_options()->nodes < 2 || host_number(rank) >= 0)
		return;
	said = true;
	hca_warn("SOFTHCA_NODES=%u (--nodes) has no effect on this process: none of a launcher's ranks is set "
		 "(OMPI_COMM_WORLD_LOCAL_RANK, MPI_LOCALRANKID, SLURM_LOCALID, PMIX_RANK, PMI_RANK); start it by "
		 "mpirun or srun, or set one", hca_options()->nodes);
}

int gethostname(char *name, size_t len)
{
	struct utsname u;
	char full[sizeof(u.nodename) + 32];
	long at = host_node();

	if (uname(&u))
		return -1;
	if (at < 0)
		snprintf(full, sizeof(full), "%s", u.nodename);
	else
		snprintf(full, sizeof(full), "%s-node%ld", u.nodename, at);
	if (len)
		memcpy(name, full, strlen(full) < len ? strlen(full) + 1 : len);
	if (strlen(full) < len)
		return 0;
	errno = ENAMETOOLONG;
	return -1;
}
