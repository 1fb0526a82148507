/* SPDX-License-Identifier: BSD-3-Clause */
/* A preloaded library that looks for what it stands in front of, by a name that begins as those of
 * the CUDA driver do. It ends the program: 42, nothing is behind it; 3, it found itself. */
#include <dlfcn.h>
#include <unistd.h>

__attribute__((visibility("default"))) int cunning(void);

int cunning(void)
{
	return 1;
}

__attribute__((constructor)) static void look(void)
{
	_exit(dlsym(RTLD_NEXT, "cunning") == (void *)cunning ? 3 : 42);
}
