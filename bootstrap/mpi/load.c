// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap over an MPI communicator lives in a shared object of its own: this file opens it. */
#include <dlfcn.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/mpi/module.h"
#include "runtime/core/log.h"

static void mpi_module_say(int level, const char *text)
{
	gdri_log((enum gdri_log_level)level, "%s", text);
}

bool gdri_boot_mpi_detect(const struct gdri_boot_how *how, const struct gdri_launcher *launcher)
{
	(void)launcher;
	return how->mpi_comm;
}

/* Never closed: its bootstraps may be in use. */
int gdri_boot_mpi_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how,
		       const struct gdri_launcher *launcher, int timeout_ms)
{
	void *module = dlopen(GDRI_MPI_MODULE, RTLD_NOW | RTLD_LOCAL);
	gdri_mpi_open_fn *open_fn = NULL;

	(void)launcher;
	if (module)
		*(void **)&open_fn = dlsym(module, GDRI_MPI_OPEN);
	if (!open_fn)
		return gdri_fail(-GDR_ENOTSUP,
				 "bootstrap: an MPI communicator was passed, but %s cannot be used: %s; it is built "
				 "where CMake finds MPI, and belongs beside libgdr",
				 GDRI_MPI_MODULE, dlerror());
	return open_fn(out, how->mpi_comm, timeout_ms, mpi_module_say, gdri_boot_waited);
}
