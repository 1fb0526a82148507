// SPDX-License-Identifier: BSD-3-Clause
/* A library with gdrcopy's exported names, which calls them as gdrcopy does: through
 * the dynamic linker, where another library's symbols could take their place. */
#include "gdrcopy_names.h"

int standin_check(void);

#define API __attribute__((visibility("default")))
#define FUNCTION(name)                                                                             \
	API int name(void);                                                                        \
	int name(void)                                                                             \
	{                                                                                          \
		return 4711;                                                                       \
	}
GDRCOPY_FUNCTIONS(FUNCTION)

static int pointee(void)
{
	return 4711;
}
#define POINTER(name)                                                                              \
	extern API int (*name)(void);                                                              \
	int (*name)(void) = pointee;
GDRCOPY_POINTERS(POINTER)

/* Number of names that lead elsewhere. */
API int standin_check(void)
{
	int bad = 0;

#define CHECK(name) bad += name() != 4711;
	GDRCOPY_FUNCTIONS(CHECK)
	GDRCOPY_POINTERS(CHECK)
	return bad;
}
