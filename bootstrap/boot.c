// SPDX-License-Identifier: BSD-3-Clause
/* Chooses the bootstrap. The process environment is read here, for the
 * launcher's variables only. */
#include "bootstrap/boot.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <gdr/status.h>

#include "bootstrap/detect.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"

extern char **environ;

static int boot_barrier(struct gdr_bootstrap *b, int timeout_ms)
{
	return b->allgather(b, NULL, NULL, 0, timeout_ms);
}

void gdri_bootstrap_fill(struct gdr_bootstrap *b, const char *name)
{
	b->version = GDR_BOOTSTRAP_VERSION;
	b->size = sizeof(*b);
	b->pe = 0;
	b->n_pes = 1;
	b->node = -1;
	b->name = name;
	b->barrier = boot_barrier;
	/* POSIX leaves a name that was cut without its terminator. */
	if (gethostname(b->hostname, sizeof(b->hostname)) || !b->hostname[0])
		snprintf(b->hostname, sizeof(b->hostname), "localhost");
	b->hostname[sizeof(b->hostname) - 1] = '\0';
}

int gdri_bootstrap_check(const struct gdr_bootstrap *b, const void *send, const void *recv,
			 size_t len, int timeout_ms)
{
	if (!b || timeout_ms <= 0)
		return gdri_fail(-GDR_EINVAL, "bootstrap: a collective was called with %s",
				 b ? "a time limit of 0 or less" : "no bootstrap");
	if (len > GDRI_ALLGATHER_MAX || (len && (!send || !recv)))
		return gdri_fail(-GDR_EINVAL,
				 "bootstrap: allgather of %zu bytes a PE: at most %zu, and buffers to hold them, are "
				 "possible",
				 len, GDRI_ALLGATHER_MAX);
	return 0;
}

static const struct bootstrap {
	const char *name;
	bool (*detect)(const struct gdri_boot_how *how, const struct gdri_launcher *launcher);
	int (*open)(struct gdr_bootstrap **out, const struct gdri_boot_how *how, const struct gdri_launcher *launcher,
		    int timeout_ms);
} bootstraps[] = {
#define ROW(name) {#name, gdri_boot_##name##_detect, gdri_boot_##name##_open},
	GDRI_BOOT_PASSED(ROW) GDRI_BOOT_NAMED(ROW)
#undef ROW
};
#define ONE(name) +1
enum { N_PASSED = 0 GDRI_BOOT_PASSED(ONE), N_ALL = N_PASSED GDRI_BOOT_NAMED(ONE) };
#undef ONE

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
	int ms = timeout_ms - (left_ms > 1 ? left_ms : 0); /* gdri_limit_ms has no 0 */

	snprintf(text, sizeof(text), "%d.%03d s (limit: %s%s%dms)", ms / 1000, ms % 1000,
		 limit.option ? limit.option : "", limit.option ? "=" : "", limit.option ? limit.ms : timeout_ms);
	return text;
}

static const struct bootstrap *first_detected(const struct bootstrap *row, int n, const struct gdri_boot_how *how,
					      const struct gdri_launcher *l)
{
	for (; n; row++, n--)
		if (row->detect(how, l))
			return row;
	return NULL;
}

int gdri_bootstrap_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how, int timeout_ms)
{
	const struct bootstrap *b;
	struct gdri_launcher l;

	if (!out || timeout_ms <= 0)
		return gdri_fail(-GDR_EINVAL,
				 "bootstrap: open needs a place for the result and a time limit above 0 (%d ms given)",
				 timeout_ms);
	*out = NULL;
	gdri_launcher_detect(environ, &l);
	b = first_detected(bootstraps, N_PASSED, how, &l);
	if (b)
		return b->open(out, how, &l, timeout_ms);
	if (how->opt->bootstrap == GDRI_BOOT_AUTO)
		b = first_detected(bootstraps + N_PASSED, N_ALL - N_PASSED, how, &l);
	else
		b = &bootstraps[N_PASSED + how->opt->bootstrap - 1];
	if (!b)
		return gdri_fail(-GDR_EBOOTSTRAP,
				 "this process is one of several started by %s (%s), which gives it no PMIx server: it "
				 "would run as a job of its own. What to do: %s; where one PE a process is meant, set "
				 "GDR_BOOTSTRAP=single",
				 l.name, l.evidence, l.advice);
	gdri_info("bootstrap: %s (%s)", b->name,
		  how->opt->bootstrap != GDRI_BOOT_AUTO ? "GDR_BOOTSTRAP names it"
		  : *l.evidence				? l.evidence
							: "no launcher found in the environment");
	return b->open(out, how, &l, timeout_ms);
}
