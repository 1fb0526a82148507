// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmix/job.h"

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "runtime/core/log.h"

int gdri_pmix_code(pmix_status_t status)
{
	switch (status) {
	case PMIX_SUCCESS:
	case PMIX_OPERATION_SUCCEEDED:
		return 0;
	case PMIX_ERR_TIMEOUT:
		return -GDR_ETIMEOUT;
	case PMIX_ERR_PARTIAL_SUCCESS:
	case PMIX_ERR_PROC_ABORTED_BY_SIG:
	case PMIX_ERR_PROC_TERM_WO_SYNC:
		return -GDR_EPEERLOST;
	case PMIX_ERR_NOMEM:
	case PMIX_ERR_OUT_OF_RESOURCE:
		return -GDR_ENOMEM;
	default:
		return -GDR_EBOOTSTRAP;
	}
}

const char *gdri_pmix_advice(pmix_status_t status)
{
	switch (status) {
	case PMIX_ERR_UNREACH:
		return "the PMIx server named by PMIX_SERVER_URI* does not answer: is the launcher "
		       "still running, is `lo` up in this network namespace, is the server's "
		       "directory this user's, and visible here? To run as one PE unset PMIX_NAMESPACE";
	case PMIX_ERR_LOST_CONNECTION:
	case PMIX_ERR_COMM_FAILURE:
		return "the launcher's daemon on this node has gone or closed the connection: see "
		       "its output (mpirun, prterun, slurmd's log)";
	case PMIX_ERR_TIMEOUT:
		return "the launcher gave up waiting: a PE stopped, exited or made another "
		       "sequence of calls";
	case PMIX_ERR_PARTIAL_SUCCESS:
		return "a PE left the job before it took part: look for one that exited, crashed "
		       "or "
		       "was killed";
	case PMIX_ERR_NOT_FOUND:
	case PMIX_ERR_EXISTS_OUTSIDE_SCOPE:
		return "the launcher does not know this value: a PE ended early or made another "
		       "sequence of calls";
	case PMIX_ERR_NOT_SUPPORTED:
		return "the launcher's PMIx does not have this function: Open MPI 4.1, PRRTE 3 and "
		       "Slurm 22.05 (--mpi=pmix) are known to";
	case PMIX_ERR_NOMEM:
	case PMIX_ERR_OUT_OF_RESOURCE:
		return "check free memory and the space in the launcher's temporary directory "
		       "(TMPDIR, /dev/shm)";
	case PMIX_ERR_NO_PERMISSIONS:
	case PMIX_ERR_INVALID_CRED:
		return "the launcher refused this process: same user? Slurm: is munged running?";
	case PMIX_ERR_UNPACK_FAILURE:
	case PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER:
	case PMIX_ERR_PACK_FAILURE:
		return "launcher and program may use PMIx libraries that do not fit: compare "
		       "`pmix_info` on the launcher's side with the libpmix that `ldd` shows";
	default:
		return "see the launcher's own output; more detail: PMIX_MCA_pmix_client_verbose=5 "
		       "in the environment of the program";
	}
}

int gdri_pmix_failed(const char *call, pmix_status_t status)
{
	const char *name = PMIx_Error_string(status);

	gdri_error("bootstrap: %s failed: %s (%d); %s", call, name ? name : "unknown status",
		   status, gdri_pmix_advice(status));
	return gdri_pmix_code(status) ? gdri_pmix_code(status) : -GDR_EBOOTSTRAP;
}

int gdri_pmix_run(struct gdri_call *c, const char *what, const struct timespec *deadline)
{
	int ms = gdri_limit_ms(deadline), rc = gdri_call_run(c, deadline);

	if (rc == -GDR_ETIMEOUT)
		gdri_pmix_expired(what, ms);
	else if (!rc && gdri_pmix_code(c->status))
		rc = gdri_pmix_failed(what, c->status);
	return rc;
}

int gdri_pmix_expired(const char *call, int timeout_ms)
{
	return gdri_fail(-GDR_ETIMEOUT,
			 "bootstrap: %s did not return within %s: the launcher's daemon on this node is stopped, "
			 "overloaded or cut off; check that mpirun, prted, orted or slurmstepd runs here",
			 call, gdri_boot_waited(timeout_ms, 0));
}
