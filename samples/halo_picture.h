/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a field of values between 0 and 1 as a PNG: a colour map from deep
 * blue through magenta and orange to pale yellow, with fine lines of equal
 * temperature. */
#ifndef HALO_PICTURE_H
#define HALO_PICTURE_H

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void halo_colour(float v, unsigned char rgb[3])
{
	static const float stop[7][3] = {
		{11, 15, 43},	{44, 26, 99},	{112, 33, 125},	 {187, 55, 101},
		{238, 105, 63}, {252, 178, 72}, {254, 246, 198},
	};
	float at = (v < 0 ? 0 : v > 1 ? 1 : v) * 6.0f;
	int i = at >= 6.0f ? 5 : (int)at;

	for (int c = 0; c < 3; c++)
		rgb[c] = (unsigned char)(stop[i][c] +
					 (at - (float)i) * (stop[i + 1][c] - stop[i][c]) + 0.5f);
}

/* Darkens a pixel through which a line of equal temperature runs. */
static inline int halo_on_line(const float *field, int n, int row, int col)
{
	int here = (int)(field[row * n + col] * 12.0f);

	return (col + 1 < n && (int)(field[row * n + col + 1] * 12.0f) != here) ||
	       (row + 1 < n && (int)(field[(row + 1) * n + col] * 12.0f) != here);
}

/* The square root spreads the cold end, where most of the plate is. `field` is n x n. */
static inline int halo_write_picture(const char *path, const float *field, int n)
{
	size_t cells = (size_t)n * (size_t)n;
	unsigned char *rgb = (unsigned char *)malloc(cells * 3);
	float *shown = (float *)malloc(cells * sizeof(float));
	png_image image;
	int ok = 0;

	for (size_t i = 0; rgb && shown && i < cells; i++)
		shown[i] = sqrtf(field[i]);
	for (size_t i = 0; rgb && shown && i < cells; i++) {
		halo_colour(shown[i], rgb + i * 3);
		if (halo_on_line(shown, n, (int)(i / (size_t)n), (int)(i % (size_t)n)))
			for (int c = 0; c < 3; c++)
				rgb[i * 3 + (size_t)c] =
					(unsigned char)(rgb[i * 3 + (size_t)c] * 4 / 5);
	}
	if (rgb && shown) {
		memset(&image, 0, sizeof(image));
		image.version = PNG_IMAGE_VERSION;
		image.width = (png_uint_32)n;
		image.height = (png_uint_32)n;
		image.format = PNG_FORMAT_RGB;
		ok = png_image_write_to_file(&image, path, 0, rgb, 0, NULL);
		if (!ok)
			fprintf(stderr, "cannot write %s: %s\n", path, image.message);
	}
	free(rgb);
	free(shown);
	return ok ? 0 : -1;
}

#endif
