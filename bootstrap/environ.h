/* SPDX-License-Identifier: BSD-3-Clause */
/* What a launcher says in the environment. Pure functions over an array of "NAME=value" that ends with NULL: a
 * bootstrap gets it as gdri_launcher.env. Where they say false, `why` says which variable is wrong, and how. */
#ifndef GDRI_BOOTSTRAP_ENVIRON_H
#define GDRI_BOOTSTRAP_ENVIRON_H

#include <stdbool.h>
#include <stddef.h>

/* The value of a variable, or NULL. */
const char *gdri_environ_get(char *const *env, const char *name);

/* A decimal number from 0 to max. */
bool gdri_environ_number(char *const *env, const char *name, unsigned long max, unsigned long *out, char *why,
			 size_t room);

/* RANK and WORLD_SIZE, of at most max PEs. */
bool gdri_environ_pes(char *const *env, unsigned int max, int *pe, int *n_pes, char *why, size_t room);

#endif
