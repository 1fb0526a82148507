// SPDX-License-Identifier: BSD-3-Clause
/* The table of launchers and the test of their variables. */
#include "bootstrap/detect.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct foreign {
	const char *size_var; /* number of processes of the job, or a list of its hosts */
	const char *marks[2]; /* must be there, too; none: size alone proves it */
	const char *name;
	const char *advice;
};

#define BY_ENV "or let the program pass a unique id (gdr_get_uniqueid)"

/* WORLD_SIZE and RANK alone prove nothing: anybody sets such names. SLURM_NTASKS is
 * not here on purpose: an allocation sets it for the batch script and for an
 * interactive shell, which are single processes. SageMaker starts a process on each
 * of its hosts, Kubeflow one in each pod (its older versions set no more than the
 * row of the training operator has). */
static const struct foreign foreigners[] = {
	{"SLURM_STEP_NUM_TASKS", {"SLURM_PROCID"}, "srun without PMIx",
	 "start the job with `srun --mpi=pmix` (`srun --mpi=list` shows whether the cluster has "
	 "it), "
	 "or with mpirun of Open MPI inside the allocation"},
	{"PMI_SIZE", {NULL}, "a PMI-1 or PMI-2 launcher (hydra, mpiexec of MPICH, srun --mpi=pmi2)",
	 "start the job with mpirun of Open MPI, prterun, or `srun --mpi=pmix`"},
	{"OMPI_COMM_WORLD_SIZE", {"OMPI_COMM_WORLD_RANK"}, "mpirun of Open MPI without PMIx",
	 "use an Open MPI built with PMIx (4.0 or later), and pass the PMIX_* variables on to the "
	 "program"},
	{"FLUX_JOB_SIZE", {"FLUX_TASK_RANK"}, "flux run without PMIx",
	 "start the job with `flux run -o pmi=pmix` where flux-pmix is installed"},
	{"JSM_NAMESPACE_SIZE", {"JSM_NAMESPACE_RANK"}, "jsrun without PMIx",
	 "start the job with mpirun of Open MPI, prterun, or `srun --mpi=pmix`"},
	{"MV2_COMM_WORLD_SIZE", {"MV2_COMM_WORLD_RANK"}, "mpirun_rsh",
	 "start the job with mpirun of Open MPI, prterun, or `srun --mpi=pmix`"},
	{"WORLD_SIZE", {"TORCHELASTIC_RUN_ID"}, "torchrun",
	 "start the job with `GDR_BOOTSTRAP=env torchrun ...`, " BY_ENV},
	{"PET_NNODES", {"PET_NODE_RANK"}, "Kubeflow's Trainer",
	 "let the pods run `GDR_BOOTSTRAP=env torchrun ...`, or set GDR_BOOTSTRAP=env where RANK, WORLD_SIZE and "
	 "MASTER_ADDR are set, " BY_ENV},
	{"WORLD_SIZE", {"MASTER_ADDR", "KUBERNETES_SERVICE_HOST"}, "Kubeflow's training operator",
	 "set GDR_BOOTSTRAP=env in the pods, " BY_ENV},
	{"SM_HOSTS", {"SM_CURRENT_HOST"}, "SageMaker",
	 "start the job with `GDR_BOOTSTRAP=env torchrun ...` or with mpirun of Open MPI (distribution=), " BY_ENV},
};

/* Variables that point a process at a PMI-1 or PMI-2 server without a size. */
static const char *const pmi_server_vars[] = {"PMI_FD", "PMI_PORT"};

/* Anything but a plain number, or a list of one, counts as "several": a launcher set it. */
static bool is_one(const char *text)
{
	if (*text == '[')
		return !strchr(text, ',');
	while (*text == '0' && text[1])
		text++;
	return !strcmp(text, "1") || !strcmp(text, "0");
}

/* The value goes into a message: no control characters, bounded. */
static void append_evidence(struct gdri_launcher *out, const char *name, const char *value)
{
	size_t n = strlen(out->evidence);
	char *p = out->evidence + n;

	snprintf(p, sizeof(out->evidence) - n, "%s%s=%.48s", n ? " " : "", name, value);
	for (; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
}

static bool test_foreign(char *const *env, const struct foreign *f, struct gdri_launcher *out)
{
	const char *size = gdri_environ_get(env, f->size_var);

	if (!size || is_one(size))
		return false;
	for (int i = 0; i < 2 && f->marks[i]; i++) {
		if (!gdri_environ_get(env, f->marks[i]))
			return false;
	}
	out->kind = GDRI_LAUNCHER_FOREIGN;
	out->name = f->name;
	out->advice = f->advice;
	append_evidence(out, f->size_var, size);
	for (int i = 0; i < 2 && f->marks[i]; i++)
		append_evidence(out, f->marks[i], gdri_environ_get(env, f->marks[i]));
	return true;
}

static bool test_pmix(char *const *env, struct gdri_launcher *out)
{
	const char *ns = gdri_environ_get(env, "PMIX_NAMESPACE");
	const char *rank = gdri_environ_get(env, "PMIX_RANK");

	if (!ns || !*ns || !rank || !*rank)
		return false;
	out->kind = GDRI_LAUNCHER_PMIX;
	out->name = "PMIx";
	append_evidence(out, "PMIX_NAMESPACE", ns);
	append_evidence(out, "PMIX_RANK", rank);
	return true;
}

/* A PMI server without a job size: the launcher cannot be asked how many. */
static bool test_pmi_server(char *const *env, struct gdri_launcher *out)
{
	const char *value;

	if (gdri_environ_get(env, "PMI_SIZE"))
		return false;
	for (size_t i = 0; i < sizeof(pmi_server_vars) / sizeof(pmi_server_vars[0]); i++) {
		value = gdri_environ_get(env, pmi_server_vars[i]);
		if (!value)
			continue;
		out->kind = GDRI_LAUNCHER_FOREIGN;
		out->name = "a PMI-1 or PMI-2 launcher that does not say its number of processes";
		out->advice = "start the job with mpirun of Open MPI, prterun, or `srun "
			      "--mpi=pmix`; for one PE unset this variable";
		append_evidence(out, pmi_server_vars[i], value);
		return true;
	}
	return false;
}

void gdri_launcher_detect(char *const *env, struct gdri_launcher *out)
{
	memset(out, 0, sizeof(*out));
	out->env = env;
	out->kind = GDRI_LAUNCHER_NONE;
	out->name = "none";
	out->advice = "";
	if (test_pmix(env, out))
		return;
	for (size_t i = 0; i < sizeof(foreigners) / sizeof(foreigners[0]); i++)
		if (test_foreign(env, &foreigners[i], out))
			return;
	test_pmi_server(env, out);
}

const char *gdri_environ_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

bool gdri_environ_number(char *const *env, const char *name, unsigned long max, unsigned long *out, char *why,
			 size_t room)
{
	const char *text = gdri_environ_get(env, name);
	char *end;

	if (!text) {
		snprintf(why, room, "%s is not set", name);
		return false;
	}
	errno = 0;
	*out = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && !errno && *out <= max)
		return true;
	snprintf(why, room, "%s=%.40s is no number from 0 to %lu", name, text, max);
	return false;
}

bool gdri_environ_pes(char *const *env, unsigned int max, int *pe, int *n_pes, char *why, size_t room)
{
	unsigned long n, rank;

	if (!gdri_environ_number(env, "WORLD_SIZE", max, &n, why, room) ||
	    !gdri_environ_number(env, "RANK", max, &rank, why, room))
		return false;
	if (rank >= n) {
		snprintf(why, room, "RANK=%lu is not below WORLD_SIZE=%lu", rank, n);
		return false;
	}
	*pe = (int)rank;
	*n_pes = (int)n;
	return true;
}
