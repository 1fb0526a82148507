/* SPDX-License-Identifier: BSD-3-Clause */
/* When the process ends, appends what trace.c has kept to the file: process, nanoseconds, stage, QP, value. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "softhca/tools/log.h"
#include "softhca/tools/options.h"
#include "softhca/driver/shim.h"
#include "softhca/engine/trace.h"

enum { LINE = 96, BUFFER = 1 << 16 };

static int trace_line(char *out, size_t room, const struct trace_mark *m)
{
	static const char *const names[] = {
#define NAME(name) #name,
		TRACE_STAGES(NAME)
#undef NAME
	};

	return snprintf(out, room, "%d %llu %s 0x%x %u\n", (int)getpid(), (unsigned long long)m->ns,
			names[m->stage], m->qpn, m->value);
}

static bool trace_report_put(int fd, const char *text, size_t n)
{
	return write(fd, text, n) == (ssize_t)n;
}

/* Runs beside an engine that may still add: what it overwrites meanwhile is lost. */
__attribute__((destructor)) static void report(void)
{
	static char text[BUFFER];
	uint64_t from = trace_count > TRACE_KEPT ? trace_count - TRACE_KEPT : 0;
	size_t n = 0;
	bool ok = true;
	int fd;

	if (!trace_on || shim_is_forked_child())
		return;
	trace_on = false;
	fd = real_open(hca_options()->trace, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0) {
		hca_warn("SOFTHCA_TRACE=%s: %s", hca_options()->trace, strerror(errno));
		return;
	}
	for (uint64_t i = from; ok && i != trace_count; i++) {
		n += (size_t)trace_line(text + n, sizeof(text) - n, &trace_marks[i % TRACE_KEPT]);
		if (n + LINE > sizeof(text)) {
			ok = trace_report_put(fd, text, n);
			n = 0;
		}
	}
	if (ok && n)
		trace_report_put(fd, text, n);
	real_close(fd);
}
