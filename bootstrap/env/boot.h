/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GDRI_BOOTSTRAP_BOOT_ENV_H
#define GDRI_BOOTSTRAP_BOOT_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bootstrap/boot.h"

/* A job as the environment describes it: torchrun's variables, which many other launchers set, too. Pure functions over
 * an environment array. */

struct gdri_env_job {
	int pe, n_pes;
	const char *host; /* where PE 0 is; a part of the array, like run_id */
	uint16_t port;	  /* where it listens */
	const char *run_id; /* "": none */
};

/* `port`: of GDR_ENV_PORT, 0: the one behind MASTER_PORT. False: `why` says which variable is wrong. */
bool gdri_env_parse(char *const *env, unsigned int port, struct gdri_env_job *job, char *why, size_t room);

/* secret "": the run's id. */
int gdri_boot_env_join(struct gdr_bootstrap **out, const struct gdri_env_job *job, const char *secret, int timeout_ms);

#endif
