// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/errors.h"
#include "host/host.h"
#include "runtime/cuda_state.h"
#include "runtime/devstate.h"
#include "runtime/log.h"

void gdri_host_latch(struct gdri_state *st, int status)
{
	int32_t none = 0;
	int pulled = gdri_cuda_state_pull(st);

	/* relaxed: the status carries no data with it */
	__atomic_compare_exchange_n(&st->dev->latched, &none, status, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
	if (!pulled) /* else the GPU's own stays, which nobody knows */
		gdri_cuda_state_push(st, &st->dev->latched);
}

int gdr_host_status(void)
{
	struct gdri_state *st = gdri_state_get();
	int ret;

	if (!st)
		return -GDR_ESTATE;
	ret = gdri_cuda_state_pull(st);
	/* relaxed: the status carries no data with it */
	return ret ? ret : __atomic_load_n(&st->dev->latched, __ATOMIC_RELAXED);
}

int gdr_errors(struct gdr_error *out, int max)
{
	struct gdri_state *st = gdri_need_state("gdr_errors");
	int n;

	if (!st)
		return -GDR_ESTATE;
	if (max < 0 || (max && !out)) {
		gdri_error("gdr_errors: room for %d records at %p", max, (void *)out);
		return -GDR_EINVAL;
	}
	n = gdri_errors_copy(st->dev, out, max);
	if (st->seer)
		n += gdri_errors_copy(st->seer, out ? out + (n < max ? n : max) : NULL, n < max ? max - n : 0);
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
