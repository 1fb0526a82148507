// SPDX-License-Identifier: BSD-3-Clause
/* The end of a process because another PE asked for the end of the job: there is no launcher that would
 * send a signal, so the PEs do it to themselves. The one place of the bootstraps that ends a process. */
#include <unistd.h>

#include "bootstrap/uniqueid/link.h"
#include "runtime/core/log.h"

void gdri_uid_end_process(uint32_t pe, uint32_t status, const char *text)
{
	gdri_error("PE %u ends the job with status %u: %s", pe, status & 0xff, text);
	gdri_flush_streams(); /* the program may be anywhere, also in a stream */
	_exit((int)(status & 0xff));
}
