/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the C++ runtime, if the process has one, keeps the exceptions of a CPU thread. The library is C and does not
 * link it: a program does, or something that a program loads later. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/hostdev/hostdev_fiber.h"

typedef void *(*cxx_get)(void);

/* Of a runtime that was there when this library was loaded, also of one that is linked into the program itself. */
extern void *__cxa_get_globals(void) __attribute__((weak));

/* relaxed, both: an address, behind which all is loaded, and a number to compare; they pair with the loads below, and
 * the launch lock orders them before the blocks of that launch */
static cxx_get cxx_found;
static unsigned long long cxx_loads_seen;

static int cxx_loads(struct dl_phdr_info *info, size_t size, void *loads)
{
	(void)size;
	*(unsigned long long *)loads = info->dlpi_adds;
	return 1; /* the first object says it */
}

/* By name: a module's own dependencies are not in the scope of the program. What is found stays loaded. */
static cxx_get cxx_loaded(void)
{
	static const char *const names[] = {"libstdc++.so.6", "libc++abi.so.1"};
	cxx_get get = NULL;
	void *lib;

	for (size_t i = 0; !get && i < sizeof(names) / sizeof(names[0]); i++) {
		lib = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
		if (lib) {
			get = (cxx_get)(uintptr_t)dlsym(lib, "__cxa_get_globals");
			dlclose(lib);
		}
	}
	return get;
}

void gdri_hd_cxx_look(void)
{
	unsigned long long loads = 0;
	cxx_get get = __cxa_get_globals;

	if (__atomic_load_n(&cxx_found, __ATOMIC_RELAXED))
		return;
	if (!get) {
		dl_iterate_phdr(cxx_loads, &loads);
		if (loads == __atomic_load_n(&cxx_loads_seen, __ATOMIC_RELAXED))
			return;
		get = cxx_loaded();
		__atomic_store_n(&cxx_loads_seen, loads, __ATOMIC_RELAXED);
	}
	__atomic_store_n(&cxx_found, get, __ATOMIC_RELAXED);
}

GDRI_HD_SCHED struct gdri_hd_exceptions *gdri_hd_cxx_exceptions(void)
{
	cxx_get get = __atomic_load_n(&cxx_found, __ATOMIC_RELAXED);

	return get ? get() : NULL;
}
