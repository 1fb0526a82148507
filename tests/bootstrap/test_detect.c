// SPDX-License-Identifier: BSD-3-Clause
/* The launcher's detection over environments as launchers set them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bootstrap/detect.h"

#define ENV(...) ((char *const[]){__VA_ARGS__, NULL})

static enum gdri_launcher_kind kind_of(char *const *env)
{
	struct gdri_launcher l;

	gdri_launcher_detect(env, &l);
	assert_non_null(l.name);
	assert_non_null(l.advice);
	assert_true(strlen(l.evidence) < sizeof(l.evidence));
	return l.kind;
}

static void nothing_is_single(void **state)
{
	(void)state;
	assert_int_equal(kind_of(NULL), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("PATH=/bin", "HOME=/root")), GDRI_LAUNCHER_NONE);
	/* Names that only begin like one, or lack a value. */
	assert_int_equal(kind_of(ENV("PMI_SIZES=4", "XPMI_SIZE=4", "PMI_SIZE")),
			 GDRI_LAUNCHER_NONE);
}

static void pmix_needs_both(void **state)
{
	(void)state;
	assert_int_equal(kind_of(ENV("PMIX_NAMESPACE=slurm.pmix.3.0", "PMIX_RANK=0")),
			 GDRI_LAUNCHER_PMIX);
	assert_int_equal(kind_of(ENV("PMIX_NAMESPACE=n")), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("PMIX_RANK=1")), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("PMIX_NAMESPACE=", "PMIX_RANK=0")), GDRI_LAUNCHER_NONE);
}

static void pmix_wins(void **state)
{
	(void)state;
	assert_int_equal(kind_of(ENV("SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=1", "PMIX_RANK=1",
				     "PMIX_NAMESPACE=1123155969", "OMPI_COMM_WORLD_SIZE=4",
				     "OMPI_COMM_WORLD_RANK=1")),
			 GDRI_LAUNCHER_PMIX);
}

static void hydra_is_foreign(void **state)
{
	struct gdri_launcher l;

	(void)state;
	gdri_launcher_detect(ENV("PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=8", "MPI_LOCALRANKID=1",
				 "MPI_LOCALNRANKS=2", "HYDI_CONTROL_FD=9"),
			     &l);
	assert_int_equal(l.kind, GDRI_LAUNCHER_FOREIGN);
	assert_non_null(strstr(l.evidence, "PMI_SIZE=2"));
	assert_non_null(strstr(l.advice, "mpirun"));
	assert_int_equal(kind_of(ENV("PMI_RANK=0", "PMI_SIZE=1", "PMI_FD=8")), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("PMI_RANK=0", "PMI_SIZE=0001", "PMI_FD=8")),
			 GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("PMI_FD=8")), GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("PMI_PORT=host:1")), GDRI_LAUNCHER_FOREIGN);
}

static void srun_without_pmix_is_foreign(void **state)
{
	struct gdri_launcher l;

	(void)state;
	gdri_launcher_detect(ENV("SLURM_STEP_NUM_TASKS=2", "SLURM_PROCID=1", "SLURM_NTASKS=2"), &l);
	assert_int_equal(l.kind, GDRI_LAUNCHER_FOREIGN);
	assert_non_null(strstr(l.advice, "srun --mpi=pmix"));
	/* srun -n 1; and a batch script or shell of an allocation of many tasks. */
	assert_int_equal(kind_of(ENV("SLURM_STEP_NUM_TASKS=1", "SLURM_PROCID=0")),
			 GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("SLURM_NTASKS=8", "SLURM_PROCID=0", "SLURM_JOB_ID=7")),
			 GDRI_LAUNCHER_NONE);
}

static void others_are_foreign(void **state)
{
	(void)state;
	assert_int_equal(kind_of(ENV("OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=0")),
			 GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("OMPI_COMM_WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=0")),
			 GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("FLUX_JOB_SIZE=2", "FLUX_TASK_RANK=0")),
			 GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("JSM_NAMESPACE_SIZE=2", "JSM_NAMESPACE_RANK=0")),
			 GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_RANK=1")),
			 GDRI_LAUNCHER_FOREIGN);
}

static void torchrun_is_foreign(void **state)
{
	struct gdri_launcher l;

	(void)state;
	gdri_launcher_detect(ENV("RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "MASTER_ADDR=localhost", "MASTER_PORT=29500",
				 "TORCHELASTIC_RUN_ID=none"), &l);
	assert_int_equal(l.kind, GDRI_LAUNCHER_FOREIGN);
	assert_string_equal(l.name, "torchrun");
	assert_non_null(strstr(l.evidence, "WORLD_SIZE=2"));
	assert_non_null(strstr(l.advice, "GDR_BOOTSTRAP=env torchrun"));
	assert_int_equal(kind_of(ENV("RANK=0", "WORLD_SIZE=1", "TORCHELASTIC_RUN_ID=none")), GDRI_LAUNCHER_NONE);
	/* Anybody's names. */
	assert_int_equal(kind_of(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1")), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("WORLD_SIZE=2")), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("RANK=1")), GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("TORCHELASTIC_RUN_ID=7")), GDRI_LAUNCHER_NONE);
}

static void clouds_are_foreign(void **state)
{
	struct gdri_launcher l;

	(void)state;
	/* Kubeflow's Trainer; its training operator, without an elastic policy */
	assert_int_equal(kind_of(ENV("PET_NNODES=2", "PET_NODE_RANK=1", "PET_NPROC_PER_NODE=auto")),
			 GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("PET_NNODES=1", "PET_NODE_RANK=0")), GDRI_LAUNCHER_NONE);
	gdri_launcher_detect(ENV("KUBERNETES_SERVICE_HOST=10.0.0.1", "MASTER_ADDR=job-master-0", "MASTER_PORT=23456",
				 "WORLD_SIZE=3", "RANK=2"), &l);
	assert_int_equal(l.kind, GDRI_LAUNCHER_FOREIGN);
	assert_non_null(strstr(l.advice, "GDR_BOOTSTRAP=env"));
	assert_int_equal(kind_of(ENV("KUBERNETES_SERVICE_HOST=10.0.0.1", "WORLD_SIZE=3", "RANK=2")),
			 GDRI_LAUNCHER_NONE);
	assert_int_equal(kind_of(ENV("KUBERNETES_SERVICE_HOST=10.0.0.1")), GDRI_LAUNCHER_NONE);
	/* SageMaker */
	assert_int_equal(kind_of(ENV("SM_HOSTS=[\"algo-1\",\"algo-2\"]", "SM_CURRENT_HOST=algo-2", "SM_NUM_GPUS=8")),
			 GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("SM_HOSTS=[\"algo-1\"]", "SM_CURRENT_HOST=algo-1", "SM_NUM_GPUS=8")),
			 GDRI_LAUNCHER_NONE);
	/* and with a launcher of PMIx inside */
	assert_int_equal(kind_of(ENV("SM_HOSTS=[\"algo-1\",\"algo-2\"]", "SM_CURRENT_HOST=algo-2", "PMIX_NAMESPACE=1",
				     "PMIX_RANK=0")), GDRI_LAUNCHER_PMIX);
}

static void odd_values_are_refused_and_printable(void **state)
{
	static char huge[4096] = "PMI_SIZE=";
	struct gdri_launcher l;
	const char *p;

	(void)state;
	assert_int_equal(kind_of(ENV("PMI_SIZE=")), GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("PMI_SIZE=-1")), GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("PMI_SIZE=1x")), GDRI_LAUNCHER_FOREIGN);
	assert_int_equal(kind_of(ENV("PMI_SIZE=18446744073709551617")), GDRI_LAUNCHER_FOREIGN);
	memset(huge + strlen(huge), '\033', sizeof(huge) - strlen(huge) - 1);
	gdri_launcher_detect(ENV(huge), &l);
	assert_int_equal(l.kind, GDRI_LAUNCHER_FOREIGN);
	for (p = l.evidence; *p; p++)
		assert_in_range(*p, 0x20, 0x7e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_single),
		cmocka_unit_test(pmix_needs_both),
		cmocka_unit_test(pmix_wins),
		cmocka_unit_test(hydra_is_foreign),
		cmocka_unit_test(srun_without_pmix_is_foreign),
		cmocka_unit_test(others_are_foreign),
		cmocka_unit_test(torchrun_is_foreign),
		cmocka_unit_test(clouds_are_foreign),
		cmocka_unit_test(odd_values_are_refused_and_printable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
