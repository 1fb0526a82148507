// SPDX-License-Identifier: BSD-3-Clause
/* Chooses the bootstrap. The process environment is read here, for the
 * launcher's variables only. */
#include "bootstrap/boot.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/env/boot.h"
#include "bootstrap/detect.h"
#include "runtime/core/log.h"

extern char **environ;

void gdri_bootstrap_fill(struct gdr_bootstrap *b, const char *name)
{
	b->version = GDR_BOOTSTRAP_VERSION;
	b->size = sizeof(*b);
	b->pe = 0;
	b->n_pes = 1;
	b->node = -1;
	b->name = name;
	/* POSIX leaves a name that was cut without its terminator. */
	if (gethostname(b->hostname, sizeof(b->hostname)) || !b->hostname[0])
		snprintf(b->hostname, sizeof(b->hostname), "localhost");
	b->hostname[sizeof(b->hostname) - 1] = '\0';
}

int gdri_bootstrap_check(const struct gdr_bootstrap *b, const void *send, const void *recv,
			 size_t len, int timeout_ms)
{
	if (!b || timeout_ms <= 0) {
		gdri_error("bootstrap: a collective was called with %s",
			   b ? "a time limit of 0 or less" : "no bootstrap");
		return -GDR_EINVAL;
	}
	if (len > GDRI_ALLGATHER_MAX || (len && (!send || !recv))) {
		gdri_error(
			"bootstrap: allgather of %zu bytes a PE: at most %zu, and buffers to hold "
			"them, are possible",
			len, GDRI_ALLGATHER_MAX);
		return -GDR_EINVAL;
	}
	return 0;
}

static int refuse(const struct gdri_launcher *l)
{
	gdri_error("this process is one of several started by %s (%s), which gives it no PMIx "
		   "server: it would run as a job of its own. What to do: %s; where one PE a process is meant, "
		   "set GDR_BOOTSTRAP=single",
		   l->name, l->evidence, l->advice);
	return -GDR_EBOOTSTRAP;
}

static int open_pmix(struct gdr_bootstrap **out, const struct gdri_boot_how *how, char *const *env, int timeout_ms)
{
	(void)how;
	(void)env;
	return gdri_boot_pmix_open(out, timeout_ms);
}

static int open_single(struct gdr_bootstrap **out, const struct gdri_boot_how *how, char *const *env, int timeout_ms)
{
	(void)how;
	(void)env;
	(void)timeout_ms;
	return gdri_boot_single_open(out);
}

static const struct {
	const char *name;
	int (*open)(struct gdr_bootstrap **out, const struct gdri_boot_how *how, char *const *env, int timeout_ms);
} ways[] = {
	[GDRI_BOOT_PMIX] = {"pmix", open_pmix},
	[GDRI_BOOT_SINGLE] = {"single", open_single},
	[GDRI_BOOT_ENV] = {"env", gdri_boot_env_open},
};

static _Thread_local struct {
	const char *option; /* NULL: none was named */
	int ms;
} limit;

void gdri_boot_limit(const char *option, int ms)
{
	limit.option = option;
	limit.ms = ms;
}

const char *gdri_boot_waited(int timeout_ms, int left_ms)
{
	static _Thread_local char text[100];
	int ms = timeout_ms - (left_ms > 1 ? left_ms : 0); /* gdri_ms_left has no 0 */

	snprintf(text, sizeof(text), "%d.%03d s (limit: %s%s%dms)", ms / 1000, ms % 1000,
		 limit.option ? limit.option : "", limit.option ? "=" : "", limit.option ? limit.ms : timeout_ms);
	return text;
}

int gdri_bootstrap_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how, int timeout_ms)
{
	unsigned int way = how->way;
	struct gdri_launcher l;

	if (!out || timeout_ms <= 0) {
		gdri_error("bootstrap: open needs a place for the result and a time limit above 0 "
			   "(%d ms given)",
			   timeout_ms);
		return -GDR_EINVAL;
	}
	*out = NULL;
	gdri_launcher_detect(environ, &l);
	if (way == GDRI_BOOT_PMIX && l.kind != GDRI_LAUNCHER_PMIX) {
		gdri_error("bootstrap: GDR_BOOTSTRAP=pmix, but no launcher that speaks PMIx has started this process "
			   "(it would set PMIX_NAMESPACE and PMIX_RANK): start it with mpirun of Open MPI, prterun, or "
			   "`srun --mpi=pmix`");
		return -GDR_EBOOTSTRAP;
	}
	if (way == GDRI_BOOT_AUTO && l.kind == GDRI_LAUNCHER_FOREIGN)
		return refuse(&l);
	if (way == GDRI_BOOT_AUTO)
		way = l.kind == GDRI_LAUNCHER_PMIX ? GDRI_BOOT_PMIX : GDRI_BOOT_SINGLE;
	gdri_info("bootstrap: %s (%s)", ways[way].name,
		  *l.evidence ? l.evidence : "no launcher found in the environment");
	return ways[way].open(out, how, environ, timeout_ms);
}
