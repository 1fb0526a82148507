/* SPDX-License-Identifier: BSD-3-Clause */
/* Which launcher started this process, told from an environment array alone.
 * A launcher that starts several processes and does not speak PMIx must be
 * recognised: under it each process would otherwise run as a job of one PE. */
#ifndef GDRI_BOOTSTRAP_DETECT_H
#define GDRI_BOOTSTRAP_DETECT_H

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

#endif
