/* SPDX-License-Identifier: BSD-3-Clause */
/* The interposed functions of libc, and nothing else: each hands what is ours
 * to softhca and everything else to libc. Defined without symbol versions, so
 * that they answer references to any version. None calls another of them: the
 * call could end in a sanitizer's function of that name, which calls ours. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "softhca/driver/control.h"
#include "softhca/engine/poll_round.h"
#include "softhca/driver/shim.h"
#include "softhca/engine/dp.h"
#include "softhca/driver/uverbs.h"
#include "softhca/tools/options.h"

/* The headers' fortified inlines and redirections must not rename these. */
SHIM_EXPORT FILE *fopen(const char *path, const char *mode);
SHIM_EXPORT FILE *fopen64(const char *path, const char *mode);
SHIM_EXPORT DIR *opendir(const char *path);
SHIM_EXPORT int access(const char *path, int mode);
SHIM_EXPORT char *realpath(const char *path, char *resolved);
SHIM_EXPORT char *__realpath_chk(const char *path, char *resolved, size_t len);
SHIM_EXPORT int socket(int domain, int type, int protocol);
SHIM_EXPORT int close(int fd);
SHIM_EXPORT int ioctl(int fd, unsigned long request, ...);

SHIM_EXPORT long sysconf(int name);
SHIM_EXPORT int getpagesize(void);
SHIM_EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);

_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64-bit only");

/* ---- open ---- */

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
	char buf[PATH_MAX];
	int device = path_device(path);
	const char *real;
	int fd;

	if (device >= 0)
		return device_open((unsigned)device, flags);
	if (path_is_gpu(path)) { /* its stores meet no page protection, and one thread does what concerns it */
		trap_forbid();
		poll_forbid();
	}
	real = path_rewrite(path, buf);
	if (real != path)
		fd = (flags & O_ACCMODE) == O_RDONLY ? sysfs_open_dynamic(real) : -1;
	else
		fd = sysfs_open_dynamic_at(dirfd, path);
	if (fd >= 0)
		return fd;
	return dirfd == AT_FDCWD ? real_open(real, flags, mode)
				 : real_openat(dirfd, real, flags, mode);
}

/* By its parameters in front of the mode, which is there where flags say so. */
#define OPEN_CALLS(name, name_2, dir, large, ...)                                                  \
	SHIM_EXPORT int name(__VA_ARGS__, ...);                                                    \
	SHIM_EXPORT int name_2(__VA_ARGS__);                                                       \
	int name(__VA_ARGS__, ...)                                                                 \
	{                                                                                          \
		mode_t mode = 0;                                                                   \
		va_list ap;                                                                        \
                                                                                                   \
		va_start(ap, flags);                                                               \
		if (flags & (O_CREAT | O_TMPFILE))                                                 \
			mode = va_arg(ap, mode_t);                                                 \
		va_end(ap);                                                                        \
		return open_at(dir, path, flags | (large), mode);                                  \
	}                                                                                          \
	int name_2(__VA_ARGS__)                                                                    \
	{                                                                                          \
		return open_at(dir, path, flags | (large), 0);                                     \
	}
OPEN_CALLS(open, __open_2, AT_FDCWD, 0, const char *path, int flags)
OPEN_CALLS(open64, __open64_2, AT_FDCWD, O_LARGEFILE, const char *path, int flags)
OPEN_CALLS(openat, __openat_2, dirfd, 0, int dirfd, const char *path, int flags)
OPEN_CALLS(openat64, __openat64_2, dirfd, O_LARGEFILE, int dirfd, const char *path, int flags)

FILE *fopen(const char *path, const char *mode)
{
	char buf[PATH_MAX];
	const char *real = path_rewrite(path, buf);
	bool reads = real != path && mode && mode[0] == 'r' && !strchr(mode, '+');
	int fd = reads ? sysfs_open_dynamic(real) : -1;
	FILE *f;

	if (fd < 0)
		return real_fopen(real, mode);
	f = fdopen(fd, mode);
	if (!f)
		real_close(fd);
	return f;
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));

DIR *opendir(const char *path)
{
	char buf[PATH_MAX];

	return real_opendir(path_rewrite(path, buf));
}

/* ---- names ---- */

int access(const char *path, int mode)
{
	char buf[PATH_MAX];

	if (path_device(path) >= 0) {
		if (!(mode & X_OK))
			return 0;
		errno = EACCES;
		return -1;
	}
	if (mode == F_OK && path_is_peermem(path))
		return 0;
	return real_access(path_rewrite(path, buf), mode);
}

static char *do_realpath(const char *path, char *resolved)
{
	char buf[PATH_MAX];
	const char *real = path_rewrite(path, buf);
	char *out = real_realpath(real, resolved);

	if (out && real != path)
		path_restore(out);
	return out;
}

char *realpath(const char *path, char *resolved)
{
	return do_realpath(path, resolved);
}

char *__realpath_chk(const char *path, char *resolved, size_t len)
{
	if (resolved && len < PATH_MAX)
		abort(); /* as glibc's own check: the caller would be overrun */
	return do_realpath(path, resolved);
}

/* ---- stat ---- */

static int stat_named(int (*real)(const char *, struct stat *), const char *path, struct stat *st)
{
	int device = path_device(path);
	char buf[PATH_MAX];

	if (device >= 0) {
		device_stat((unsigned)device, st);
		return 0;
	}
	return real(path_rewrite(path, buf), st);
}

static int stat_open(int (*real)(int, struct stat *), int fd, struct stat *st)
{
	int rc = real(fd, st);

	/* libibverbs wants a character device with the number that sysfs names.
	 * Of all our files only device files are regular ones. */
	if (!rc && S_ISREG(st->st_mode) && shim_file_kind(st->st_dev, st->st_ino) != SHIM_NONE)
		device_stat(shim_file_device(st->st_dev, st->st_ino), st);
	return rc;
}

/* xname: what programs linked against glibc before 2.33 call. */
#define STAT_CALLS(name, xname, shim, real, of, type)                                              \
	SHIM_EXPORT int name(of file, struct type *st);                                            \
	SHIM_EXPORT int xname(int ver, of file, struct type *st);                                  \
	int name(of file, struct type *st)                                                         \
	{                                                                                          \
		return shim(real, file, (struct stat *)st);                                        \
	}                                                                                          \
	int xname(int ver, of file, struct type *st)                                               \
	{                                                                                          \
		(void)ver;                                                                         \
		return shim(real, file, (struct stat *)st);                                        \
	}
STAT_CALLS(stat, __xstat, stat_named, real_stat, const char *, stat)
STAT_CALLS(stat64, __xstat64, stat_named, real_stat, const char *, stat64)
STAT_CALLS(lstat, __lxstat, stat_named, real_lstat, const char *, stat)
STAT_CALLS(lstat64, __lxstat64, stat_named, real_lstat, const char *, stat64)
STAT_CALLS(fstat, __fxstat, stat_open, real_fstat, int, stat)
STAT_CALLS(fstat64, __fxstat64, stat_open, real_fstat, int, stat64)

/* ---- descriptors ---- */

int socket(int domain, int type, int protocol)
{
	/* Where the kernel has RDMA support this would succeed and list no
	 * device, and libibverbs would not look into sysfs any more. */
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
		errno = EPROTONOSUPPORT;
		return -1;
	}
	return real_socket(domain, type, protocol);
}

/* The context lives until its last descriptor goes, as an open file does. */
static bool last_reference(int fd, dev_t dev, ino_t ino)
{
	DIR *dir = real_opendir("/proc/self/fd");
	struct dirent *e;
	struct stat st;
	bool last = true;

	if (!dir)
		return true;
	while (last && (e = readdir(dir))) {
		int other = atoi(e->d_name);

		if (e->d_name[0] == '.' || other == fd || real_fstat(other, &st))
			continue;
		last = st.st_dev != dev || st.st_ino != ino;
	}
	closedir(dir);
	return last;
}

int close(int fd)
{
	struct stat st;
	enum shim_kind kind = SHIM_NONE;
	int saved = errno;

	if (shim_files_any() && !real_fstat(fd, &st))
		kind = shim_file_kind(st.st_dev, st.st_ino);
	errno = saved;
	if (kind == SHIM_CHANNEL || (kind == SHIM_DEVICE && last_reference(fd, st.st_dev, st.st_ino)))
		device_closing(st.st_dev, st.st_ino);
	return real_close(fd);
}

int ioctl(int fd, unsigned long request, ...)
{
	struct stat st;
	enum shim_kind kind;
	va_list ap;
	void *arg;
	int rc;

	va_start(ap, request);
	arg = va_arg(ap, void *);
	va_end(ap);
	if (request != RDMA_VERBS_IOCTL || !shim_files_any() || real_fstat(fd, &st))
		return real_ioctl(fd, request, arg);
	kind = shim_file_kind(st.st_dev, st.st_ino);
	if (kind != SHIM_DEVICE && kind != SHIM_INHERITED)
		return real_ioctl(fd, request, arg);
	/* The memfd's own ENOTTY would make libibverbs write() into it. */
	rc = kind == SHIM_DEVICE ? uverbs_ioctl(fd, st.st_dev, st.st_ino, arg)
				 : uverbs_ioctl_child(fd, st.st_dev, st.st_ino, arg);
	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

/* ---- the host's pages ---- */

#ifndef __SANITIZE_THREAD__ /* whose runtime asks for the page before it can run what it watches */
/* Sanitizers ask while they start: then nothing else of ours may run, unless the answer is another one. */
static bool large_pages(void)
{
	const char *device = getenv("SOFTHCA_DEVICE");

	return device && strstr(device, "pages=64k") && hca_page() > 4096;
}

long sysconf(int name)
{
	return name == _SC_PAGESIZE && large_pages() ? (long)hca_page() : real_sysconf(name);
}

int getpagesize(void)
{
	return (int)(large_pages() ? (long)hca_page() : real_sysconf(_SC_PAGESIZE));
}

/* A host of large pages maps at multiples of them: doorbell registers, and what a program registers. */
static void *map_at_page(size_t len, int prot, int flags, int fd, off_t offset)
{
	size_t page = (size_t)hca_page(), room = len + page;
	uint8_t *base = real_mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0), *at;
	void *p;

	if (base == MAP_FAILED)
		return base;
	at = base + (page - (uintptr_t)base % page) % page;
	p = real_mmap(at, len, prot, flags | MAP_FIXED, fd, offset);
	if (p == MAP_FAILED)
		at = base, len = 0;
	if (at > base)
		munmap(base, (size_t)(at - base));
	if (at + len < base + room)
		munmap(at + len, (size_t)(base + room - at) - len);
	return p;
}

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (addr || flags & MAP_FIXED || !large_pages())
		return real_mmap(addr, len, prot, flags, fd, offset);
	return map_at_page(len, prot, flags, fd, offset);
}

/* 64-bit only: they are one function. */
SHIM_EXPORT void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
	__attribute__((alias("mmap")));
#endif
