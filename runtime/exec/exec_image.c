// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/exec/exec.h"

#ifdef GDRI_EXEC_IMAGE /* the files */

#define IMAGE(name, file)                                                                          \
	__asm__(".section .rodata\n"                                                               \
		".balign 64\n" #name ":\n"                                                         \
		".incbin \"" file "\"\n" #name "_end:\n"                                           \
		".previous\n");                                                                    \
	extern const char name[] __attribute__((visibility("hidden")));                            \
	extern const char name##_end[] __attribute__((visibility("hidden")))
IMAGE(gdri_image, GDRI_EXEC_IMAGE);
IMAGE(gdri_image_direct, GDRI_EXEC_DIRECT_IMAGE);
IMAGE(gdri_image_any, GDRI_EXEC_ANY_IMAGE);
IMAGE(gdri_image_direct_any, GDRI_EXEC_DIRECT_ANY_IMAGE);

const void *gdri_exec_image(enum gdri_image which, size_t *size)
{
	static const struct {
		const char *begin, *end;
	} images[] = {
		[GDRI_IMAGE_ALL] = {gdri_image, gdri_image_end},
		[GDRI_IMAGE_DIRECT] = {gdri_image_direct, gdri_image_direct_end},
		[GDRI_IMAGE_ALL_ANY] = {gdri_image_any, gdri_image_any_end},
		[GDRI_IMAGE_DIRECT_ANY] = {gdri_image_direct_any, gdri_image_direct_any_end},
	};

	*size = (size_t)(images[which].end - images[which].begin);
	return images[which].begin;
}

#else

const void *gdri_exec_image(enum gdri_image which, size_t *size)
{
	(void)which;
	*size = 0;
	return NULL;
}

#endif
