// SPDX-License-Identifier: BSD-3-Clause
#include <stdio.h>

#include "host/host.h"
#include "runtime/core/log.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/diag/errors.h"
#include "runtime/diag/fault.h"
#include "runtime/path/devstate.h"

/* For Python's exceptions: the last error that this thread logged, once. "": none since it was asked before. */
GDR_API void gdri_error_text(char *text, size_t room);

void gdri_error_text(char *text, size_t room)
{
	snprintf(text, room, "%s", gdri_log_last_error());
	gdri_log_clear_error();
}

int gdr_host_status(void)
{
	struct gdri_state *st = gdri_state_get();
	int ret;

	if (!st)
		return -GDR_ESTATE;
	ret = gdri_cuda_state_pull(st);
	if (!ret) /* relaxed: the status carries no data with it */
		ret = __atomic_load_n(&st->dev->latched, __ATOMIC_RELAXED);
	if (!ret) /* relaxed: it carries no data either */
		ret = __atomic_exchange_n(&st->refused, 0, __ATOMIC_RELAXED);
	return ret ? ret : gdri_lost_any(st);
}

void gdri_host_refused(struct gdri_state *st, int status)
{
	/* relaxed: the status carries no data with it */
	__atomic_store_n(&st->refused, status, __ATOMIC_RELAXED);
}

int gdri_host_failed(struct gdri_state *st, int status)
{
	if (status != -GDR_EINVAL && status != -GDR_ENOTSUP)
		gdri_failed(st, status);
	return status;
}

int gdr_errors(struct gdr_error *out, int max)
{
	struct gdri_state *st = gdri_need_state("gdr_errors");
	int n;

	if (!st)
		return -GDR_ESTATE;
	if (max < 0 || (max && !out))
		return gdri_fail(-GDR_EINVAL, "gdr_errors: room for %d records at %p", max, (void *)out);
	n = gdri_errors_copy(st->dev, out, max);
	if (st->host_view)
		n += gdri_errors_copy(st->host_view, out ? out + (n < max ? n : max) : NULL, n < max ? max - n : 0);
	return n;
}

int gdr_abort_waits(void)
{
	struct gdri_state *st = gdri_need_state("gdr_abort_waits");

	if (!st)
		return -GDR_ESTATE;
	gdri_devstate_abort(st);
	return 0;
}
