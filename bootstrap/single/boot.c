// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap of a process that nobody launched: a job of one PE. */
#include <stdlib.h>
#include <string.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/detect.h"
#include "runtime/core/log.h"

static int single_allgather(struct gdr_bootstrap *b, const void *send, void *recv, size_t len,
			    int timeout_ms)
{
	int rc = gdri_bootstrap_check(b, send, recv, len, timeout_ms);

	if (!rc && len)
		memmove(recv, send, len);
	return rc;
}

static int single_abort(struct gdr_bootstrap *b, int code, const char *text)
{
	(void)b;
	return gdri_fail(-GDR_ENOTSUP, "abort with status %d: %s (no launcher to ask: the caller must end the process)",
			 code, text ? text : "");
}

/* There is no other PE that could be lost. */
static int single_on_peer_lost(struct gdr_bootstrap *b, void (*fn)(void *arg, int pe), void *arg)
{
	(void)b;
	(void)fn;
	(void)arg;
	return 0;
}

static void single_finalize(struct gdr_bootstrap *b, int timeout_ms)
{
	(void)timeout_ms;
	free(b);
}

bool gdri_boot_single_detect(const struct gdri_boot_how *how, const struct gdri_launcher *launcher)
{
	(void)how;
	return launcher->kind == GDRI_LAUNCHER_NONE;
}

int gdri_boot_single_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how,
			  const struct gdri_launcher *launcher, int timeout_ms)
{
	struct gdr_bootstrap *b = calloc(1, sizeof(*b));

	(void)how;
	(void)launcher;
	(void)timeout_ms;
	if (!b)
		return gdri_fail(-GDR_ENOMEM, "bootstrap: no memory for %zu bytes", sizeof(*b));
	gdri_bootstrap_fill(b, "single");
	b->node = 0;
	b->allgather = single_allgather;
	b->abort = single_abort;
	b->on_peer_lost = single_on_peer_lost;
	b->finalize = single_finalize;
	*out = b;
	return 0;
}
