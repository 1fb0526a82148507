// SPDX-License-Identifier: BSD-3-Clause
/* Chooses the bootstrap. The process environment is read here, for the
 * detection of the launcher only. */
#include "bootstrap/boot.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/detect.h"
#include "runtime/log.h"

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
		   "server: it would run as a job of its own. What to do: %s",
		   l->name, l->evidence, l->advice);
	return -GDR_EBOOTSTRAP;
}

int gdri_bootstrap_open(struct gdr_bootstrap **out, int timeout_ms)
{
	struct gdri_launcher l;

	if (!out || timeout_ms <= 0) {
		gdri_error("bootstrap: open needs a place for the result and a time limit above 0 "
			   "(%d ms given)",
			   timeout_ms);
		return -GDR_EINVAL;
	}
	*out = NULL;
	gdri_launcher_detect(environ, &l);
	switch (l.kind) {
	case GDRI_LAUNCHER_PMIX:
		gdri_info("bootstrap: pmix (%s)", l.evidence);
		return gdri_boot_pmix_open(out, timeout_ms);
	case GDRI_LAUNCHER_FOREIGN:
		return refuse(&l);
	case GDRI_LAUNCHER_NONE:
		break;
	}
	gdri_info("bootstrap: single PE (no launcher found in the environment)");
	return gdri_boot_single_open(out);
}
