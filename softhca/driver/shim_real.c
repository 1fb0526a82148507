/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of libc that ours stand in front of. Resolved at first use, as
 * interposers run before our constructor, which resolves the rest. */
#include "softhca/driver/shim.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *shim_find_real(_Atomic(void *) *cache, const char *name)
{
	/* Relaxed: the pointer is the same whoever stores it. */
	void *fn = atomic_load_explicit(cache, memory_order_relaxed);

	if (!fn) {
		fn = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(cache, fn, memory_order_relaxed);
	}
	return fn;
}

/* ISO C has no conversion from object to function pointer; POSIX's dlsym needs it. */
#define REAL(ret, name, params, args)                                                              \
	static _Atomic(void *) name##_cache;                                                       \
	static ret (*name##_ptr(void)) params                                                      \
	{                                                                                          \
		union {                                                                            \
			void *object;                                                              \
			ret(*function) params;                                                     \
		} u = {.object = shim_find_real(&name##_cache, #name)};                            \
		return u.function;                                                                 \
	}
#define CALL(ret, name, params, args)                                                              \
	ret real_##name params                                                                     \
	{                                                                                          \
		return name##_ptr() args;                                                          \
	}

#define PLAIN(X)                                                                                   \
	X(int, close, (int fd), (fd))                                                              \
	X(int, access, (const char *path, int mode), (path, mode))                                 \
	X(long, sysconf, (int name), (name))                                                       \
	X(int, socket, (int domain, int type, int protocol), (domain, type, protocol))             \
	X(FILE *, fopen, (const char *path, const char *mode), (path, mode))                       \
	X(DIR *, opendir, (const char *path), (path))                                              \
	X(char *, realpath, (const char *path, char *resolved), (path, resolved))
#define OTHERS(X)                                                                                  \
	X(int, open, (const char *, int, ...), )                                                   \
	X(int, openat, (int, const char *, int, ...), )                                            \
	X(int, ioctl, (int, unsigned long, ...), )                                                 \
	X(int, fstat, (int, struct stat *), )                                                      \
	X(int, stat, (const char *, struct stat *), )                                              \
	X(int, lstat, (const char *, struct stat *), )                                             \
	X(void *, mmap, (void *, size_t, int, int, int, off_t), )                                  \
	X(int, madvise, (void *, size_t, int), )
PLAIN(REAL)
OTHERS(REAL)
PLAIN(CALL)

/* dlsym allocates and frees. A sanitizer that is about to print what it found calls lstat from where the memory is
 * its own: at that time it would not come back. */
__attribute__((constructor)) static void find_all(void)
{
#define FIND(ret, name, params, args) name##_ptr();
	PLAIN(FIND)
	OTHERS(FIND)
}

int real_open(const char *path, int flags, mode_t mode)
{
	return open_ptr()(path, flags, mode);
}

int real_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	return openat_ptr()(dirfd, path, flags, mode);
}

int real_ioctl(int fd, unsigned long request, void *arg)
{
	return ioctl_ptr()(fd, request, arg);
}

/* glibc before 2.33 has no stat functions to find; the system call is the same. */
int real_fstat(int fd, struct stat *st)
{
	return fstat_ptr() ? fstat_ptr()(fd, st) : (int)syscall(SYS_fstat, fd, st);
}

int real_stat(const char *path, struct stat *st)
{
	return stat_ptr() ? stat_ptr()(path, st)
			  : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int real_lstat(const char *path, struct stat *st)
{
	return lstat_ptr() ? lstat_ptr()(path, st)
			   : (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

/* What allocates memory asks before anything can be looked up: then by system call. Later by what stands behind, which
 * another library may have hooked to learn of memory that comes and goes (UCX's registration cache). Relaxed: as in
 * shim_find_real(). */
void *real_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	if (atomic_load_explicit(&mmap_cache, memory_order_relaxed))
		return mmap_ptr()(addr, len, prot, flags, fd, offset);
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset); // NOLINT(performance-no-int-to-ptr)
}

int real_madvise(void *addr, size_t len, int advice)
{
	if (atomic_load_explicit(&madvise_cache, memory_order_relaxed))
		return madvise_ptr()(addr, len, advice);
	return (int)syscall(SYS_madvise, addr, len, advice);
}
