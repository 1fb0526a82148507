/* SPDX-License-Identifier: BSD-3-Clause */
/* picture FILE CELLS: the halo exchange's picture is a PNG of that many cells a
 * side, with a hot edge, a cold one, and many colours between. */
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLOURS (1u << 15) /* five bits each */

static int light(const unsigned char *p)
{
	return p[0] + p[1] + p[2];
}

static int colours(const unsigned char *rgb, size_t pixels)
{
	static unsigned char seen[COLOURS];
	int n = 0;

	for (size_t i = 0; i < pixels; i++, rgb += 3) {
		unsigned c = (unsigned)(rgb[0] >> 3) << 10 | (unsigned)(rgb[1] >> 3) << 5 | rgb[2] >> 3;

		n += !seen[c];
		seen[c] = 1;
	}
	return n;
}

int main(int argc, char **argv)
{
	int cells = argc == 3 ? atoi(argv[2]) : 0, n, most = 0, least = 3 * 255;
	unsigned char *rgb;
	png_image image;

	memset(&image, 0, sizeof(image));
	image.version = PNG_IMAGE_VERSION;
	if (argc != 3 || !png_image_begin_read_from_file(&image, argv[1])) {
		fprintf(stderr, "%s: %s\n", argc == 3 ? argv[1] : "usage: picture FILE CELLS", image.message);
		return 1;
	}
	image.format = PNG_FORMAT_RGB;
	rgb = malloc(PNG_IMAGE_SIZE(image));
	if (!rgb || !png_image_finish_read(&image, NULL, rgb, 0, NULL)) {
		fprintf(stderr, "%s: %s\n", argv[1], image.message);
		return 1;
	}
	for (size_t i = 0; i < (size_t)image.width * image.height; i++) {
		most = light(rgb + 3 * i) > most ? light(rgb + 3 * i) : most;
		least = light(rgb + 3 * i) < least ? light(rgb + 3 * i) : least;
	}
	n = colours(rgb, (size_t)image.width * image.height);
	printf("%u x %u, %d colours, from %d to %d\n", image.width, image.height, n, least, most);
	free(rgb);
	return image.width != (unsigned)cells || image.height != (unsigned)cells || n < 50 ||
	       most < 500 || least > 120;
}
