/* SPDX-License-Identifier: BSD-3-Clause */
/* Options: read once at init from GDR_* environment variables, by the strict
 * parser that also reads their defaults, then frozen. options.c is the only
 * file of the library that reads the environment (the bootstraps look at the
 * launcher's variables). */
#ifndef GDRI_OPTIONS_H
#define GDRI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define GDRI_OPTION_TEXT_MAX 512 /* longest value of a string option, with its end */

/* The C type of each kind. list: bit i is set for word i; enum: index of the word. */
typedef uint64_t gdri_option_size;
typedef unsigned int gdri_option_uint;
typedef int gdri_option_int;
typedef bool gdri_option_bool;
typedef char gdri_option_string[GDRI_OPTION_TEXT_MAX];
typedef unsigned int gdri_option_list;
typedef unsigned int gdri_option_enum;
typedef int gdri_option_time; /* milliseconds */

struct gdri_options {
#define GDRI_OPTION(NAME, field, kind, def, min, max, unit, text) gdri_option_##kind field;
#include "runtime/core/options.def"
#undef GDRI_OPTION
};

/* Words of the list and enum options, in the order of options.def; BOOTSTRAP's are in bootstrap/boot.h, TRANSPORTS' in
 * runtime/net/net.h. */
enum { GDRI_TRANSPORT_P2P = 1 }; /* the others: runtime/net/net.h */
enum { GDRI_CQ_ONE, GDRI_CQ_RING };
enum { GDRI_DEVICE_AUTO, GDRI_DEVICE_CUDA };
enum { GDRI_HANDLE_AUTO, GDRI_HANDLE_FD, GDRI_HANDLE_FABRIC }; /* HEAP_HANDLE */
enum { GDRI_MEMORY_AUTO, GDRI_MEMORY_GPU, GDRI_MEMORY_HOST }; /* HEAP_KIND, QUEUE_MEM */
enum { GDRI_RANGE_INIT = 2, GDRI_RANGE_HEAP = 4, GDRI_RANGE_TRANSFER = 8, GDRI_RANGE_ORDER = 16 };
enum { GDRI_RANGE_STREAM = 32 };
enum { GDRI_UNSEEN_REPORT, GDRI_UNSEEN_ABORT }; /* NVSHMEM_ERRORS */
enum { GDRI_ORDER_AUTO, GDRI_ORDER_STRICT, GDRI_ORDER_RELAXED, GDRI_ORDER_ASSUMED };
enum { GDRI_ECE_AUTO, GDRI_ECE_OFF };
enum { GDRI_FLUSH_AUTO, GDRI_FLUSH_ON, GDRI_FLUSH_OFF };
enum { GDRI_DOORBELL_AUTO, GDRI_DOORBELL_GPU, GDRI_DOORBELL_CPU };
enum { GDRI_BELL_RECORD, GDRI_BELL_EARLY, GDRI_BELL_NO_RECORD }; /* DOORBELL_MODE */

/* Fills *opt from env (NULL: the process environment), warns once for each
 * unknown GDR_ variable. On -GDR_EOPTION every wrong value has been logged and
 * *opt has the default in its place. */
int gdri_options_read(struct gdri_options *opt, char *const *env);

/* Parses one value for the option NAME (without GDR_); on failure *opt is
 * untouched, -GDR_EOPTION, and `why` says what is accepted. */
int gdri_option_set(struct gdri_options *opt, const char *name, const char *value, char *why,
		    size_t room);

/* Seconds until a peer that does not answer counts as lost, with a local ACK timeout of 4.096 us * 2^n. Devices may
 * take up to four times as long (IBTA 9.7.6.1.3). */
double gdri_patience(const struct gdri_options *opt, unsigned int n);
/* n: GDR_ACK_TIMEOUT, or what follows from GDR_TIMEOUT and GDR_RETRY_COUNT. */
unsigned int gdri_ack_timeout(const struct gdri_options *opt);

/* The heap of a program that was written for NVSHMEM, whose heap is memory of a GPU or not, unless GDR_HEAP_SIZE
 * is set: as large as NVSHMEM_SYMMETRIC_SIZE says, and what the library needs of it. Programs count on a heap that
 * grows as long as the GPU has memory: there it has 2 GiB at least, and grows up to GDR_HEAP_MAX, 128 GiB where that
 * is not set, which is what NVSHMEM reserves. */
void gdri_options_nvshmem_heap(struct gdri_options *opt, bool on_gpu);

/* An option of libfabric itself, whose name begins with FI_; NULL: not set. */
const char *gdri_options_libfabric(const char *name);

/* Rules that tie options to each other or go beyond a range. */
int gdri_options_check(const struct gdri_options *opt);

/* The value in field, of the C type of option NAME, as the environment would have it: lists and enums in words. */
void gdri_option_text(const char *name, const void *field, char *buf, size_t room);
void gdri_options_print(FILE *f, const struct gdri_options *opt);
void gdri_options_markdown(FILE *f);

#endif
