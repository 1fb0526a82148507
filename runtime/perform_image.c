// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/perform.h"

#ifdef GDRI_PERFORM_IMAGE /* the files */

#define IMAGE(name, file)                                                                          \
	__asm__(".section .rodata\n"                                                               \
		".balign 64\n" #name ":\n"                                                         \
		".incbin \"" file "\"\n" #name "_end:\n"                                           \
		".previous\n");                                                                    \
	extern const char name[] __attribute__((visibility("hidden")));                            \
	extern const char name##_end[] __attribute__((visibility("hidden")))
IMAGE(gdri_image, GDRI_PERFORM_IMAGE);
IMAGE(gdri_image_direct, GDRI_DIRECT_IMAGE);

const void *gdri_perform_image(bool direct, size_t *size)
{
	*size = direct ? (size_t)(gdri_image_direct_end - gdri_image_direct) : (size_t)(gdri_image_end - gdri_image);
	return direct ? gdri_image_direct : gdri_image;
}

#else

const void *gdri_perform_image(bool direct, size_t *size)
{
	(void)direct;
	*size = 0;
	return NULL;
}

#endif
