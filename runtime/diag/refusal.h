/* SPDX-License-Identifier: BSD-3-Clause */
/* Why an argument was refused, in words. */
#ifndef GDRI_REFUSAL_H
#define GDRI_REFUSAL_H

#include <stddef.h>

#include <gdr/impl/arch/abi.h>

/* Of a record of kind GDRI_ERROR_ARG: what is wrong, its value, what it may be. */
void gdri_refusal_text(const struct gdri_error *e, char *buf, size_t room);

#endif
