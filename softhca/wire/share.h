/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory that lies in a file (memfd, /dev/shm) and is mapped shared: other processes
 * of the host are shown the file, map it, and read long payloads by a plain copy. Here are what
 * this process shows, and what it is shown; wire_shm.c carries the messages. */
#ifndef SOFTHCA_SHARE_H
#define SOFTHCA_SHARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "softhca/gpu/cuda_api.h"

enum {
	SHARE_MAX = 32,
	SHARE_SHOW = 0x50fca211,
	SHARE_TAKE_BACK,
	SHARE_GPU, /* with a descriptor, or the handle in ipc */
};

/* Beside it, when it shows something, the file's descriptor. */
struct share_msg {
	uint32_t kind;
	uint32_t key;	  /* of the region */
	uint64_t at, len; /* in the owner's memory */
	uint64_t offset;  /* in the file */
	struct cu_ipc ipc;
};

/* ---- the owner's side ---- */

/* Calls fn for everything that is shown now; fd stays here. */
void share_each(void (*fn)(void *arg, const struct share_msg *m, int fd), void *arg);
/* Does all of this lie in what is shown? */
bool share_covers(const struct iovec *iov, int niov);
void share_forked(void); /* in the child */

/* ---- the reader's side: what one other process shows ---- */

struct shares;

/* Acts upon a message and closes fd, or keeps it. *s: NULL until there is something. */
void shares_take(struct shares **s, const struct share_msg *m, int fd);
void shares_drop(struct shares **s);
void shares_forked(const struct shares *s); /* in the child */
/* Puts the place here for that of the owner into each piece. False, and nothing changed, where
 * one of them is not in what was shown. */
/* Maps what could not be when it was shown: there was no memory of a GPU here. */
void shares_map_gpu(struct shares *s);
/* Has memory of a GPU been mapped? Is this some? */
bool shares_gpu(const struct shares *s);
bool shares_in_gpu(const struct shares *s, const struct iovec *v);
bool shares_translate(const struct shares *s, struct iovec *iov, int niov);

#endif
