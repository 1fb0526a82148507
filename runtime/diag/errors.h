/* SPDX-License-Identifier: BSD-3-Clause */
/* Error records of device code (struct gdri_error) as users read them. */
#ifndef GDRI_ERRORS_H
#define GDRI_ERRORS_H

#include <stdbool.h>

#include <gdr/host.h>
#include <gdr/impl/arch/abi.h>

/* Fills *out, with a sentence in out->text. */
void gdri_error_describe(const struct gdri_error *e, struct gdr_error *out);

/* Copies up to max complete records, oldest first; returns how many there are. */
int gdri_errors_copy(const struct gdri_dev *dev, struct gdr_error *out, int max);

/* A complete record with that status is there. */
bool gdri_errors_have(const struct gdri_dev *dev, int status);

/* A call by a name of NVSHMEM that returns nothing has failed (GDRI_ERROR_UNSEEN). */
bool gdri_errors_unseen(const struct gdri_dev *dev);

/* Logs the records from *seen on that are complete and moves *seen behind them. */
void gdri_errors_log(const struct gdri_dev *dev, uint32_t *seen);

#endif
