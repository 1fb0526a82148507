/* SPDX-License-Identifier: BSD-3-Clause */
/* The last stages passed; trace_report.c tells of them. */
#include "softhca/engine/trace.h"

#include <stdlib.h>

#include "softhca/engine/dp.h"
#include "softhca/tools/options.h"

bool trace_on;
struct trace_mark *trace_marks;
uint64_t trace_count;

void trace_start(void)
{
	if (!hca_options()->trace)
		return;
	trace_marks = calloc(TRACE_KEPT, sizeof(*trace_marks));
	trace_on = trace_marks != NULL;
}

void trace_put(enum trace_stage stage, uint32_t qpn, uint32_t value)
{
	trace_marks[trace_count++ % TRACE_KEPT] = (struct trace_mark){ dp_clock(), stage, qpn, value };
}
