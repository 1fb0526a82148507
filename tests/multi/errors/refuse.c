/* SPDX-License-Identifier: BSD-3-Clause */
/* LD_PRELOAD: the n-th call of a kind that libgdr makes is refused, as a machine refuses it that has no more.
 *
 *	REFUSE=KIND:N:RANK	alloc (malloc, calloc, realloc, aligned_alloc, posix_memalign), mmap, memfd, socket,
 *				thread; in the process of that RANK
 *
 * Counting begins when the program sets refuse_armed (dlsym). A line says what was refused. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT volatile int refuse_armed;
static char kind[16];
static int number, count;

__attribute__((constructor)) static void read_environment(void)
{
	const char *text = getenv("REFUSE"), *rank = getenv("RANK");
	int pe;

	if (!text || sscanf(text, "%15[a-z]:%d:%d", kind, &number, &pe) != 3 || !rank || atoi(rank) != pe)
		number = 0; /* refuses nothing */
}

/* What libc, other libraries and the program itself ask for is not counted. */
static bool is_library(const void *from)
{
	Dl_info info;

	return dladdr(from, &info) && info.dli_fname && strstr(info.dli_fname, "libgdr");
}

static bool refuse(const char *what, const void *from)
{
	char line[64];
	int n;

	if (!refuse_armed || strcmp(what, kind) || !is_library(from))
		return false;
	n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED); /* a number */
	if (n != number)
		return false;
	n = snprintf(line, sizeof(line), "refuse: %s %d\n", what, n);
	return write(2, line, (size_t)n) > 0;
}

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define HERE __builtin_return_address(0)

/* dlsym itself allocates. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);

static void *memory(void *(*get)(size_t, size_t), size_t n, size_t size, const void *from)
{
	if (!refuse("alloc", from))
		return get(n, size);
	errno = ENOMEM;
	return NULL;
}

static void *get_malloc(size_t n, size_t size)
{
	return __libc_malloc(n * size);
}

EXPORT void *malloc(size_t size)
{
	return memory(get_malloc, 1, size, HERE);
}

EXPORT void *calloc(size_t n, size_t size)
{
	return memory(__libc_calloc, n, size, HERE);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
	return memory(__libc_memalign, align, size, HERE);
}

EXPORT void *realloc(void *p, size_t size)
{
	if (!refuse("alloc", HERE))
		return __libc_realloc(p, size);
	errno = ENOMEM;
	return NULL;
}

EXPORT int posix_memalign(void **p, size_t align, size_t size)
{
	void *got = memory(__libc_memalign, align, size, HERE);

	if (!got)
		return ENOMEM;
	*p = got;
	return 0;
}

EXPORT void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t off)
{
	NEXT(mmap);

	if (!refuse("mmap", HERE))
		return next(addr, len, prot, flags, fd, off);
	errno = ENOMEM;
	return MAP_FAILED;
}

EXPORT int memfd_create(const char *name, unsigned int flags)
{
	NEXT(memfd_create);

	if (!refuse("memfd", HERE))
		return next(name, flags);
	errno = EMFILE;
	return -1;
}

EXPORT int socket(int domain, int type, int protocol)
{
	NEXT(socket);

	if (!refuse("socket", HERE))
		return next(domain, type, protocol);
	errno = EMFILE;
	return -1;
}

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	NEXT(pthread_create);

	return refuse("thread", HERE) ? EAGAIN : next(t, attr, fn, arg);
}
