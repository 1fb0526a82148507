/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the bootstrap that fits how the process was started, and what is
 * derived from the bootstrap's few calls. */
#ifndef GDRI_BOOTSTRAP_BOOT_H
#define GDRI_BOOTSTRAP_BOOT_H

#include <stdbool.h>

#include <gdr/bootstrap.h>

/* The most that one PE may contribute to one allgather call. */
#define GDRI_ALLGATHER_MAX ((size_t)1 << 20)

/* The library's GDRI_MAX_PES: a larger job is refused before any PE waits for others. With the former it also bounds
 * what a gather returns, whose length has 32 bits (bootstrap/uniqueid/wire.h). */
#define GDRI_BOOT_MAX_PES 1024

/* A row for each bootstrap: bootstrap/<name>/boot.c defines gdri_boot_<name>_detect and gdri_boot_<name>_open, and the
 * name is what it reports (gdr_bootstrap.name). One that the program passes an argument for is opened before all
 * others; GDR_BOOTSTRAP names one of the others, or auto takes the first that detects itself. uid, in the names of
 * options, functions and tests, is short for uniqueid. */
#define GDRI_BOOT_PASSED(row) row(uniqueid) row(mpi)
#define GDRI_BOOT_NAMED(row)  row(pmix) row(single) row(env)

#define GDRI_BOOT_WORD(name) "|" #name
#define GDRI_BOOT_WORDS	     "auto" GDRI_BOOT_NAMED(GDRI_BOOT_WORD) /* of GDR_BOOTSTRAP */
enum { GDRI_BOOT_AUTO };						/* the first of them */

/* The limit that the calling thread's next calls are under, for their messages. */
void gdri_boot_limit(const char *option, int ms);
/* "4.000 s (limit: GDR_INIT_TIMEOUT=5000ms)": what was waited of timeout_ms, of which left_ms remain. The calling
 * thread's until its next call. */
const char *gdri_boot_waited(int timeout_ms, int left_ms);

#define GDRI_UID_BYTES 128

struct gdri_options;
struct gdri_boot_how {
	const struct gdri_options *opt; /* runtime/core/options.h: the word of GDR_BOOTSTRAP, what a bootstrap has */
	const unsigned char *uniqueid; /* GDRI_UID_BYTES that the program passes, with pe and n_pes; NULL: none */
	int pe, n_pes;
	const void *mpi_comm; /* of an MPI_Comm that the program passes; NULL: none */
};

/* Auto: PMIx under a launcher that speaks it, one PE without a launcher. Under a
 * launcher that starts several processes without PMIx: -GDR_EBOOTSTRAP and a
 * message that says how to start the job. One bootstrap by PMIx is open at a time. */
int gdri_bootstrap_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how, int timeout_ms);

/* detect: the program passes what this bootstrap needs, or auto may choose it under this launcher. */
struct gdri_launcher;
#define GDRI_BOOT_DECLARE(name)                                                                                \
	bool gdri_boot_##name##_detect(const struct gdri_boot_how *how, const struct gdri_launcher *launcher); \
	int gdri_boot_##name##_open(struct gdr_bootstrap **out, const struct gdri_boot_how *how,               \
				    const struct gdri_launcher *launcher, int timeout_ms);
GDRI_BOOT_PASSED(GDRI_BOOT_DECLARE)
GDRI_BOOT_NAMED(GDRI_BOOT_DECLARE)

/* By unique id over TCP: every one of the job's n_pes processes comes with the id and its own number. An id serves
 * one job. Create: this process answers those that come with the id, until all of one job have left; `interface` is
 * the one whose address goes into the id, "": chosen. */
int gdri_boot_uniqueid_create(unsigned char id[GDRI_UID_BYTES], const char *interface);

/* Fills the fields that all bootstraps have, hostname by gethostname(). */
void gdri_bootstrap_fill(struct gdr_bootstrap *b, const char *name);

/* The checks of arguments that all bootstraps share: 0 or -GDR_EINVAL. */
int gdri_bootstrap_check(const struct gdr_bootstrap *b, const void *send, const void *recv,
			 size_t len, int timeout_ms);

/* Where the hub is to which this PE has a connection, if that is on another machine; else false. */
struct gdri_inet;
bool gdri_boot_hub(const struct gdr_bootstrap *b, struct gdri_inet *hub);

struct gdri_gathered {
	size_t *offset; /* n_pes + 1 offsets into data: PE i has [offset[i], offset[i + 1]) */
	unsigned char *data;
};

/* Collective: gathers a value whose length differs between PEs, of at most
 * `max` bytes (the same on all PEs; a longer one is -GDR_EINVAL on all PEs).
 * On success the caller frees with gdri_gathered_free. */
int gdri_bootstrap_allgatherv(struct gdr_bootstrap *b, const void *send, size_t len, size_t max,
			      struct gdri_gathered *out, int timeout_ms);
void gdri_gathered_free(struct gdri_gathered *g);

#endif
