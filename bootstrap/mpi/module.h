/* SPDX-License-Identifier: BSD-3-Clause */
/* Between libgdr and libgdr_mpi, the shared object that alone needs MPI and that libgdr opens when a
 * program passes a communicator. */
#ifndef GDRI_BOOTSTRAP_MPI_MODULE_H
#define GDRI_BOOTSTRAP_MPI_MODULE_H

#include <gdr/bootstrap.h>

#define GDRI_MPI_MODULE	 "libgdr_mpi.so.0"
#define GDRI_MPI_OPEN	 "gdri_mpi_open_2" /* its number changes with what is below */

/* Messages go through libgdr's log: level of runtime/core/log.h, text without a newline. */
typedef void gdri_mpi_say(int level, const char *text);

/* gdri_boot_waited, which names the limit of the calling thread. */
typedef const char *gdri_mpi_waited(int timeout_ms, int left_ms);

/* comm: of an MPI_Comm, whose ranks are the PEs. Collective over it. */
typedef int gdri_mpi_open_fn(struct gdr_bootstrap **out, const void *comm, int timeout_ms, gdri_mpi_say *say,
			     gdri_mpi_waited *waited);

#endif
