/* SPDX-License-Identifier: BSD-3-Clause */
/* The host device as the rest of the library sees it: kernels run on CPU
 * threads, see gdr/launch.h and docs/host-device.md. Works before gdr_init and
 * after gdr_finalize with the defaults below. */
#ifndef GDRI_HOSTDEV_H
#define GDRI_HOSTDEV_H

#include <stddef.h>

#define GDRI_HD_DEFAULT_BLOCKS 64u
#define GDRI_HD_DEFAULT_STACK (64u * 1024u)
#define GDRI_HD_MAX_BLOCKS 1024u
#define GDRI_HD_MIN_STACK (16u * 1024u)

struct gdri_hd_params {
	unsigned max_blocks; /* blocks that run at a time, 1..GDRI_HD_MAX_BLOCKS */
	size_t stack_size;   /* of each thread of a kernel, at least GDRI_HD_MIN_STACK */
};

/* Sets the parameters; holds for blocks that start later. NULL: the defaults. -GDR_EINVAL. */
int gdri_hd_init(const struct gdri_hd_params *params);

/* Waits for all kernels of all streams, then ends the CPU threads, frees their memory and
 * goes back to the defaults; streams stay valid. -GDR_ETIMEOUT when kernels still run or are
 * queued after timeout_ms: then nothing was ended, and memory that they use must stay. */
int gdri_hd_shutdown(unsigned timeout_ms);

#endif
