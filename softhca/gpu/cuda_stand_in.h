/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the CUDA driver that softhca stands in front of. */
#ifndef SOFTHCA_CUDA_STAND_IN_H
#define SOFTHCA_CUDA_STAND_IN_H

#include <stddef.h>

struct cuda_stand_in {
	const char *name;
	void *ours;
	void *behind; /* relaxed: whatever thread stores it, it is the driver's function */
};

/* Those that wait for the device with the driver's lock held, and captures (cuda_wait.c). */
extern struct cuda_stand_in cuda_waiting[];
extern const size_t n_cuda_waiting;

/* What stands behind it; NULL: there is no driver. */
void *cuda_behind(struct cuda_stand_in *s);
/* The driver's own function, not one of ours. */
void *cuda_real_symbol(void *lib, const char *name);

#endif
