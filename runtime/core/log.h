/* SPDX-License-Identifier: BSD-3-Clause */
/* One sink for all messages of the library: stderr, one write() a line,
 * prefix "gdr[pe] level: ". The level comes from GDR_LOG. An error is logged
 * once, by the function that decides that it is one; its callers only pass
 * the code on. Never called from device code.
 *
 * An error or warning that was printed before is counted instead, and told with its count when another one comes, after
 * some seconds, and at the end of the job. */
#ifndef GDRI_LOG_H
#define GDRI_LOG_H

enum gdri_log_level {
	GDRI_LOG_ERROR, /* an error code is returned */
	GDRI_LOG_WARN,	/* goes on with less */
	GDRI_LOG_INFO,	/* a screenful at init: what was chosen and why */
	GDRI_LOG_DEBUG, /* in proportion to the number of objects */
	GDRI_LOG_TRACE, /* in proportion to the number of host operations */
};

void gdri_log_set_level(enum gdri_log_level level);
/* -1 while the PE's number is not known: printed as "?". */
void gdri_log_set_pe(int pe);
int gdri_log_enabled(enum gdri_log_level level);
void gdri_log(enum gdri_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the counts of what came again, at least min_age_ms ago; forget: it is printed in full next time. */
void gdri_log_counts(int min_age_ms, int forget);

/* Text (without prefix) of the last error that the calling thread logged, or "".
 * For telling peers why a collective step failed here. */
const char *gdri_log_last_error(void);
void gdri_log_clear_error(void);

/* strerror, and where the process has come to a limit of its own (files, size of files) the limit and how to raise
 * it. The calling thread's until its next call. */
const char *gdri_errno_text(int err);

/* gdri_errno_text of a thread that does not start, and where the limits of threads are; as long as that text. */
const char *gdri_thread_text(int err);

#define gdri_error(...) gdri_log(GDRI_LOG_ERROR, __VA_ARGS__)
#define gdri_warn(...) gdri_log(GDRI_LOG_WARN, __VA_ARGS__)
#define gdri_info(...) gdri_log(GDRI_LOG_INFO, __VA_ARGS__)
#define gdri_debug(...) gdri_log(GDRI_LOG_DEBUG, __VA_ARGS__)
/* The value, for who returns it, behind the error that it stands for. */
#define gdri_fail(value, ...) (gdri_error(__VA_ARGS__), (value))

/* What the program has written to its streams, as exit() would. A stream that another thread holds, or whose
 * reader stands still, is not waited for longer than 2 s: then the caller has to leave by _exit. */
void gdri_flush_streams(void);

#endif
