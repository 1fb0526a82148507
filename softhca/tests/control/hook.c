/* SPDX-License-Identifier: BSD-3-Clause */
/* A preloaded library that looks for what it stands in front of, by a name that begins as those of
 * the CUDA driver do, and for the program's memory, as caches of registrations do. It ends the program: 42, nothing is
 * behind it, and it saw all; 3, it found itself; 4, it did not see a mapping, or advice. */
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN int cunning(void);

static int maps, advices;

int cunning(void)
{
	return 1;
}

SHOWN void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	maps++;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

SHOWN int madvise(void *addr, size_t len, int advice)
{
	advices++;
	return (int)syscall(SYS_madvise, addr, len, advice);
}

__attribute__((constructor)) static void look(void)
{
	if (dlsym(RTLD_NEXT, "cunning") == (void *)cunning)
		_exit(3);
}

/* When softhca's constructor has run, which is later than this library's. */
__attribute__((destructor)) static void see(void)
{
	union {
		void *object;
		void *(*map)(void *, size_t, int, int, int, off_t);
		int (*advise)(void *, size_t, int);
	} map = {dlsym(RTLD_DEFAULT, "mmap")}, advise = {dlsym(RTLD_DEFAULT, "madvise")};
	int before = maps;
	void *p = map.map(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	_exit(p != MAP_FAILED && maps == before + 1 && !advise.advise(p, 4096, MADV_DONTNEED) && advices == 1 ? 42 : 4);
}
