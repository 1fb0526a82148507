// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/perform.h"

#ifdef GDRI_PERFORM_IMAGE /* the file */

__asm__(".section .rodata\n"
	".balign 64\n"
	"gdri_image:\n"
	".incbin \"" GDRI_PERFORM_IMAGE "\"\n"
	"gdri_image_end:\n"
	".previous\n");
extern const char gdri_image[] __attribute__((visibility("hidden")));
extern const char gdri_image_end[] __attribute__((visibility("hidden")));

const void *gdri_perform_image(size_t *size)
{
	*size = (size_t)(gdri_image_end - gdri_image);
	return gdri_image;
}

#else

const void *gdri_perform_image(size_t *size)
{
	*size = 0;
	return NULL;
}

#endif
