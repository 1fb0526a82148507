/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef GDRI_BOOTSTRAP_BOOT_ENV_H
#define GDRI_BOOTSTRAP_BOOT_ENV_H

#include "bootstrap/boot.h"
#include "bootstrap/env/job.h"

/* secret "": the run's id. */
int gdri_boot_env_join(struct gdr_bootstrap **out, const struct gdri_env_job *job, const char *secret, int timeout_ms);

#endif
