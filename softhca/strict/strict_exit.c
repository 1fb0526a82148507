/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict mode at the end of the process: what was left to judge, the counts, and
 * the exit status that SOFTHCA_ERROR_EXITCODE asks for. A process that ends by
 * _exit() or by a signal has only the reports made while it ran. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "softhca/engine/hca.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"
#include "softhca/strict/strict.h"

enum { LOCK_SECONDS = 2, LOOKS = 10 };

/* Threads of the program may still run, between two stores, and the engine may be
 * behind: what looks wrong is looked at again. */
static unsigned long strict_exit_finish(void)
{
	struct timespec settle = {.tv_nsec = 20000000};
	unsigned long errors = 0;
	bool again = true;

	for (int i = 0; i < LOOKS && again; i++) {
		if (i)
			nanosleep(&settle, NULL);
		if (!hca_lock_within(LOCK_SECONDS))
			return 0;
		again = strict_finish(false);
		hca_unlock();
	}
	if (!hca_lock_within(LOCK_SECONDS))
		return 0;
	strict_finish(true);
	errors = strict_summary();
	hca_unlock();
	return errors;
}

/* Priority: after the other destructors of this library, which this may cut off. */
__attribute__((destructor(101))) static void at_exit(void)
{
	uint32_t code;

	if (!strict_on || !shim_device_opened() || shim_is_forked_child())
		return;
	code = hca_options()->error_exitcode;
	if (!strict_exit_finish() || !code)
		return;
	fflush(NULL);
	_exit((int)(code & 0xff));
}
