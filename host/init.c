// SPDX-License-Identifier: BSD-3-Clause
#include <unistd.h>

#include <gdr/simt.h>

#include "host/host.h"
#include "runtime/core/host_barrier.h"
#include "runtime/core/log.h"
#include "runtime/core/range.h"
#include "runtime/cuda/cuda_state.h"
#include "runtime/diag/errors.h"
#include "runtime/diag/fault.h"
#include "runtime/path/ctx.h"

/* For callers that do not come through the header, as other languages do. */
int(gdr_init)(void)
{
	return gdri_init_abi(NULL, GDR_ABI_VERSION);
}

int(gdr_init_attr)(const struct gdr_init_attr *attr)
{
	return gdri_init_abi(attr, GDR_ABI_VERSION);
}

static int init_refused(bool elsewhere)
{
	if (gdri_hd_self->in_kernel)
		return gdri_fail(-GDR_ENOTSUP, "gdr_init: not possible inside a kernel");
	if (elsewhere)
		return gdri_fail(-GDR_ESTATE, "gdr_init is running in another thread of this process");
	if (gdri_state_forked())
		return gdri_fail(-GDR_ESTATE, "gdr_init: this process was forked by a PE, and is none: fork before "
				 "gdr_init, or have the child run a program (exec)");
	return gdri_state_get() ? gdri_fail(-GDR_ESTATE, "gdr_init: already initialised; call gdr_finalize first") : 0;
}

int gdri_init_abi(const struct gdr_init_attr *attr, int abi_version)
{
	static pid_t inside; /* a process that a thread forks meanwhile has another number, and is not refused */
	struct gdr_bootstrap *b = attr && attr->size == sizeof(*attr) ? attr->bootstrap : NULL;
	pid_t own = getpid();
	/* acquire: pairs with the release below, so that the state of who was inside is seen */
	bool elsewhere = __atomic_exchange_n(&inside, own, __ATOMIC_ACQUIRE) == own;
	int ret = init_refused(elsewhere);

	if (!ret)
		ret = gdri_state_up(attr, abi_version);
	else if (b)
		b->finalize(b, 1000); /* ours from the call on */
	if (!elsewhere)
		/* release: pairs with the acquire above */
		__atomic_store_n(&inside, 0, __ATOMIC_RELEASE);
	return ret;
}

int gdri_users(int add)
{
	struct gdri_state *st = gdri_state_get();
	int ret = st && add > 0 ? gdri_cuda_state_show(st) : 0;

	if (!st || ret)
		return ret;
	st->more_users += add;
	return 1 + st->more_users;
}

/* After an error peers may be gone or waiting elsewhere: they are not waited for. */
static bool all_well(const struct gdri_state *st)
{
	const struct gdri_dev *d = st->dev;

	/* relaxed: kernels that could still change them are not ordered with this call anyway */
	return !st->broken && !__atomic_load_n(&d->failed, __ATOMIC_RELAXED) && !gdri_host_barrier_left(st) &&
	       !gdri_fault_first(st, NULL) && !__atomic_load_n(st->abort_word, __ATOMIC_RELAXED);
}

/* Once a PE is lost others leave without a word, and no operation to them ends: what is under way to those that stay
 * has this long. */
#define LOST_MS 2000u
static void shorten_if_lost(struct gdri_state *st)
{
	struct gdri_dev *dev = gdri_host_dev(st);

	if (gdri_lost_any(st) && dev->timeout_ns > LOST_MS * 1000000ull)
		dev->timeout_ns = LOST_MS * 1000000ull;
}

/* A record of it, which says more, has been printed or is now; kernels that do not end were named. */
static void init_say(const struct gdri_state *st, int status)
{
	gdri_monitor_say();
	if (!st->kernels_late && !gdri_errors_have(st->dev, status) &&
	    !(st->host_view && gdri_errors_have(st->host_view, status)))
		gdri_error("gdr_finalize: outstanding operations failed: %s", gdr_strerror(status));
}

/* What ends the job here: an operation of this PE or of another one that failed, a PE that is lost. */
static int complete_all(struct gdri_state *st)
{
	struct gdr_error e;
	int ret = 0;

	/* kernels may still post: only then is what they posted complete */
	if (all_well(st))
		ret = gdri_end_kernels(st, (int)st->opt.init_timeout_ms);
	if (!ret)
		ret = gdri_cuda_state_pull(st); /* what all_well looks at */
	if (!ret && all_well(st)) {
		shorten_if_lost(st);
		ret = gdr_host_quiet();
		/* The first one reports what was latched and may be known; a queue's error stays. */
		if (ret && all_well(st))
			ret = gdr_host_quiet();
		if (!ret)
			ret = gdri_ctxs_quiet(st);
	}
	if (!ret && gdri_fault_first(st, &e))
		ret = e.status;
	if (!ret)
		ret = gdri_fault_heard_of(st);
	return ret ? ret : gdri_lost_any(st);
}

int gdr_finalize(void)
{
	struct gdri_state *st = gdri_state_get();
	int ret, first, told, broken;

	if (!st)
		return 0;
	if (gdri_hd_self->in_kernel) /* which it would wait for */
		return gdri_fail(-GDR_ENOTSUP, "gdr_finalize: not possible inside a kernel");
	GDRI_RANGE(st, GDRI_RANGE_INIT, "gdr_finalize");
	ret = complete_all(st);
	if (ret)
		init_say(st, ret);
	gdri_unseen_tell(st);
	gdri_fault_tell(st);
	broken = st->broken; /* these two were said when they were found */
	first = gdri_first_failure(st);
	told = gdri_state_down(st, ret ? ret : all_well(st) ? 0 : -GDR_ESTATE);
	return first ? first : ret ? ret : told ? told : broken;
}

void gdr_global_exit(int code)
{
	struct gdri_state *st = gdri_state_get();

	gdri_monitor_say();
	gdri_flush_streams();
	if (st && st->boot->abort && st->boot->abort(st->boot, code, "gdr_global_exit") != -GDR_ENOTSUP)
		sleep(2); /* the launcher's signal is on its way */
	_exit(code);
}

int gdr_get_uniqueid(gdr_uniqueid_t *id)
{
	return id ? gdri_uniqueid_create(id) : gdri_fail(-GDR_EINVAL, "gdr_get_uniqueid: id is NULL");
}
