/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on stderr (log.h), and limits of this process in words. */
#include "softhca/tools/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "softhca/tools/options.h"

ssize_t hca_write(int fd, const void *bytes, size_t n)
{
	ssize_t ret;
	int cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	ret = write(fd, bytes, n);
	pthread_setcancelstate(cancel, NULL);
	return ret;
}

/* One write, so that lines of several processes do not mix. */
__attribute__((format(printf, 2, 0))) static void log_emit(const char *prefix, const char *fmt, va_list ap)
{
	char line[512];
	int saved = errno;
	int n = snprintf(line, sizeof(line), "%s", prefix);

	n += vsnprintf(line + n, sizeof(line) - 1 - (size_t)n, fmt, ap);
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	if (hca_write(STDERR_FILENO, line, (size_t)n) < 0) {
		/* stderr is closed: nowhere left to say so */
	}
	errno = saved;
}

void hca_warn(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	log_emit("softhca: ", fmt, ap);
	va_end(ap);
}

void hca_log_debug(const char *fmt, ...)
{
	char prefix[48];
	va_list ap;

	snprintf(prefix, sizeof(prefix), "softhca[%d]: ", (int)getpid());
	va_start(ap, fmt);
	log_emit(prefix, fmt, ap);
	va_end(ap);
}

unsigned hca_debug_level(void)
{
	return hca_options()->debug;
}

struct limits_text limits_text(int err)
{
	struct limits_text text;
	struct rlimit r;

	if (err == EMFILE && !getrlimit(RLIMIT_NOFILE, &r))
		snprintf(text.s, sizeof(text.s), "%s: this process may have %llu (raise it: ulimit -n)", strerror(err),
			 (unsigned long long)r.rlim_cur);
	else if (err == EAGAIN)
		snprintf(text.s, sizeof(text.s), "%s: see ulimit -u and the pids limit of the control group",
			 strerror(err));
	else if (err == EPERM)
		snprintf(text.s, sizeof(text.s), "%s: in a container, see its filter of system calls (seccomp)",
			 strerror(err));
	else
		snprintf(text.s, sizeof(text.s), "%s", strerror(err));
	return text;
}

int hca_size_file(int fd, off_t size)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY || (rlim_t)size <= r.rlim_cur)
		return ftruncate(fd, size);
	hca_warn("a file in memory of %lld bytes is needed, and this process may make files of %llu (raise it: "
		 "ulimit -f)", (long long)size, (unsigned long long)r.rlim_cur);
	errno = EFBIG;
	return -1;
}
