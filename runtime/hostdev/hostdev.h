/* SPDX-License-Identifier: BSD-3-Clause */
/* The host device as the rest of the library sees it: kernels run on CPU
 * threads, see gdr/launch.h and docs/host-device.md. Works before gdr_init and
 * after gdr_finalize with the defaults below. */
#ifndef GDRI_HOSTDEV_H
#define GDRI_HOSTDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/launch.h>

#define GDRI_HD_DEFAULT_BLOCKS 64u
#define GDRI_HD_DEFAULT_STACK (64u * 1024u)
#define GDRI_HD_MAX_BLOCKS 1024u
#define GDRI_HD_MIN_STACK (16u * 1024u)

struct gdri_hd_params {
	unsigned max_blocks; /* blocks that run at a time, 1..GDRI_HD_MAX_BLOCKS */
	size_t stack_size;   /* of each thread of a kernel, at least GDRI_HD_MIN_STACK */
	unsigned timeout_ms; /* GDR_TIMEOUT: as often the log says that a thread of the host still waits; 0: never */
};

/* Sets the parameters; holds for blocks that start later. NULL: the defaults. -GDR_EINVAL. What streams keep of
 * kernels that were left is over. */
int gdri_hd_init(const struct gdri_hd_params *params);

/* As gdr_launch, of what a call of the library's puts on a stream: messages are that call's, a literal. */
int gdri_hd_request(void (*kernel)(const void *arg), const char *call, unsigned grid, unsigned block,
		    gdr_stream_t stream, const void *arg, size_t arg_size);

/* Waits for all kernels of all streams, then ends the CPU threads, frees their memory and
 * goes back to the defaults; streams stay valid. -GDR_ETIMEOUT when kernels still run or are
 * queued after timeout_ms: then nothing was ended, and memory that they use must stay. */
int gdri_hd_shutdown(unsigned timeout_ms);

/* Behind a shutdown that did not end: the log says how many kernels still run or are queued after so long, and names
 * one. */
void gdri_hd_tell_runs(unsigned after_ms);

/* Behind that, for good: what runs is left to itself with its CPU threads and its memory, what is queued never runs,
 * and no later call waits for either. Streams stay valid; gdr_stream_sync of those on which such a kernel was is
 * -GDR_EABORTED, once or until gdri_hd_init. The rest as gdri_hd_shutdown. */
void gdri_hd_leave(void);

/* To be called every few 100 ms: the log names, once, a thread of a kernel that has let no other one run for so long,
 * where others of its block or a thread of the host wait. */
void gdri_hd_watch(unsigned limit_ms);

/* How a CPU thread waits when nothing in it can go on: see docs/host-device.md
 * for the measurements behind the figures. */

/* One step of waiting, after `lookers` fibers (1 outside kernels) have each looked in vain
 * `round` times. */
void gdri_hd_backoff(unsigned round, unsigned lookers);
/* For threads that are the library's own: sleeps end on time from now on. */
void gdri_hd_backoff_own_thread(void);
/* Names the set of cores that this process may use: equal sets, equal names. */
uint64_t gdri_hd_backoff_cores(void);
/* How many PEs of the node share this set, and that a block started (1) or ended (-1): where all
 * that may wait have a core each, waiting spins longer. */
void gdri_hd_backoff_pes(int n);
void gdri_hd_backoff_blocks(int more);
/* What is waited for may need so many threads of this process: who waits calls fn(of), one at a time, before it gives
 * its core away, on the stack of a CPU thread; fn says whether it did something. spare: as long as all wait there is a
 * core for each of those threads, too. NULL: nothing any more, and no thread is in it. Calls of fn are bounded. */
void gdri_hd_backoff_drives(bool (*fn)(void *of, bool spare), void *of, int threads);
void gdri_hd_backoff_forget(void); /* in a forked child: fn is of threads that it does not have */
bool gdri_hd_backoff_is_driven(void);
/* gdri_hd_backoff, and calls fn; not on a fiber's stack. */
void gdri_hd_backoff_drive(unsigned round, unsigned lookers);

#endif
