/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of forked PEs with a bootstrap of its own over shared memory, for tests
 * of bring-up and of collective calls without a launcher. A PE can be made to
 * lie: the hook sees each contribution before it is published. */
#ifndef TESTS_UNIT_JOB_H
#define TESTS_UNIT_JOB_H

#include <stddef.h>

#include <gdr/bootstrap.h>

/* Runs body(pe, n_pes) in n processes; returns how many did not return 0. Everything
 * ends within limit_s seconds: what still lives is killed and counted. */
int job_run(int n, int limit_s, int (*body)(int pe, int n_pes));

/* In a PE: the bootstrap to hand to gdr_init_attr; a new one for each init. */
struct gdr_bootstrap *job_bootstrap(void);

/* In a PE: sees (and may change) each contribution; `call` counts from 0. */
extern void (*job_lie)(int call, void *send, size_t len);

/* One that only notes the number of the latest call. */
extern int job_last_call;
void job_note_call(int call, void *send, size_t len);

/* What the bootstrap's latest finalize was given. */
extern int job_finalize_ms;

/* In a PE: text that the library wrote to stderr so far. */
const char *job_stderr(void);

#define JOB_CHECK(cond)                                                                            \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			dprintf(1, "PE %d: %s:%d: %s\n", pe, __FILE__, __LINE__, #cond);           \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

#endif
