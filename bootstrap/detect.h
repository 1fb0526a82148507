/* SPDX-License-Identifier: BSD-3-Clause */
/* Which launcher started this process, told from an environment array alone.
 * A launcher that starts several processes and does not speak PMIx must be
 * recognised: under it each process would otherwise run as a job of one PE. */
#ifndef GDRI_BOOTSTRAP_DETECT_H
#define GDRI_BOOTSTRAP_DETECT_H

#include <stdbool.h>
#include <stddef.h>

enum gdri_launcher_kind {
	GDRI_LAUNCHER_NONE,   /* started by hand, or a job of one process */
	GDRI_LAUNCHER_PMIX,   /* a PMIx server is announced */
	GDRI_LAUNCHER_FOREIGN /* several processes, no PMIx */
};

struct gdri_launcher {
	char *const *env; /* told from it */
	enum gdri_launcher_kind kind;
	const char *name;   /* of a foreign launcher; static */
	const char *advice; /* how to start the job instead; static */
	char evidence[160]; /* the variables that told, "NAME=value" */
};

/* `env` is a NULL-terminated array of "NAME=value". Reads nothing else. */
void gdri_launcher_detect(char *const *env, struct gdri_launcher *out);

/* What a launcher says in the environment. Pure functions over an array of "NAME=value" that ends with NULL: a
 * bootstrap gets it as gdri_launcher.env. Where they say false, `why` says which variable is wrong, and how. */

/* The value of a variable, or NULL. */
const char *gdri_environ_get(char *const *env, const char *name);

/* A decimal number from 0 to max. */
bool gdri_environ_number(char *const *env, const char *name, unsigned long max, unsigned long *out, char *why,
			 size_t room);

/* RANK and WORLD_SIZE, of at most max PEs. */
bool gdri_environ_pes(char *const *env, unsigned int max, int *pe, int *n_pes, char *why, size_t room);

#endif
