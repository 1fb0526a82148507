/* SPDX-License-Identifier: BSD-3-Clause */
/* Contract between the runtime and a bootstrap: how the PEs of a job find each
 * other before there are queues. Everything else (broadcast, node split,
 * values of varying size) is derived from these few calls.
 *
 * All functions return 0 or -GDR_E*. Every call ends within `timeout_ms`; a
 * call that expires returns -GDR_ETIMEOUT after logging what to check. Calls
 * come from one thread at a time, except `abort`, which any thread may call.
 * Values received from peers are untrusted: the bootstrap checks their length,
 * its caller their content. A bootstrap ends the process in one case alone:
 * `abort` asks the launcher to end the job, and by unique id and by environment,
 * where no launcher can be asked, each PE's process ends itself (flush, _exit)
 * when any PE has called `abort`. */
#ifndef GDR_BOOTSTRAP_H
#define GDR_BOOTSTRAP_H

#include <stddef.h>
#include <stdint.h>

#define GDR_BOOTSTRAP_VERSION 1
#define GDR_HOSTNAME_MAX 256

struct gdr_bootstrap {
	uint32_t version; /* GDR_BOOTSTRAP_VERSION */
	uint32_t size;	  /* sizeof(struct gdr_bootstrap) */
	int pe;		  /* 0..n_pes-1 */
	int n_pes;	  /* >= 1 */
	int node;	  /* this PE's node as the launcher numbers it, or -1 when unknown;
			     only for messages: locality is decided from `hostname` */
	char hostname[GDR_HOSTNAME_MAX]; /* this PE's node name as the launcher gives it */
	const char *name;		 /* see gdr_job_info.bootstrap; static */

	/* Collective: all PEs contribute `len` bytes (the same on all, at most
	 * 1 MiB), recv receives n_pes * len bytes in PE order. Also a barrier. */
	int (*allgather)(struct gdr_bootstrap *b, const void *send, void *recv, size_t len,
			 int timeout_ms);

	/* Collective: returns 0 only after all PEs have entered. */
	int (*barrier)(struct gdr_bootstrap *b, int timeout_ms);

	/* Asks the launcher to end the whole job with exit status `code`, printing
	 * `text`. May return when the launcher cannot; where there is nobody to ask,
	 * -GDR_ENOTSUP, and the caller ends its own process. */
	int (*abort)(struct gdr_bootstrap *b, int code, const char *text);

	/* Registers fn(arg, pe), called at most once per PE from a thread of the
	 * bootstrap when the launcher reports that PE dead; pe is -1 when the
	 * launcher itself was lost. Best effort: a launcher need not report, and a
	 * bootstrap that hears of no deaths returns 0 and never calls fn. NULL
	 * unregisters; after return no call is under way. */
	int (*on_peer_lost)(struct gdr_bootstrap *b, void (*fn)(void *arg, int pe), void *arg);

	/* Leaves the job's process management and frees b. Bounded by timeout_ms;
	 * never fails in a way that the caller could act on. */
	void (*finalize)(struct gdr_bootstrap *b, int timeout_ms);
};

#endif
