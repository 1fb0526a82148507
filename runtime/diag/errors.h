/* SPDX-License-Identifier: BSD-3-Clause */
/* Error records of device code (struct gdri_error) as users read them. */
#ifndef GDRI_ERRORS_H
#define GDRI_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gdr/host.h>
#include <gdr/impl/arch/abi.h>

/* Fills *out, with a sentence in out->text. */
void gdri_error_describe(const struct gdri_error *e, struct gdr_error *out);

/* Copies up to max complete records, oldest first; returns how many there are. */
int gdri_errors_copy(const struct gdri_dev *dev, struct gdr_error *out, int max);

/* A complete record with that status is there. */
bool gdri_errors_have(const struct gdri_dev *dev, int status);

/* A call by a name of NVSHMEM that returns nothing has failed (GDRI_ERROR_UNSEEN). */
bool gdri_errors_unseen(const struct gdri_dev *dev);

/* Logs the records from *seen on that are complete and moves *seen behind them. */
void gdri_errors_log(const struct gdri_dev *dev, uint32_t *seen);

/* ---- in words (refusal.c, syndrome.c, place.c, atomic.c) ---- */

/* Of a record of kind GDRI_ERROR_ARG: what is wrong, its value, what it may be. */
void gdri_refusal_text(const struct gdri_error *e, char *buf, size_t room);

/* Of an atomic of kind GDRI_ERROR_CQE: the function. Integers of one size are one to a queue. */
struct text;
void gdri_atomic_text(const struct gdri_error *e, struct text *t);

const char *gdri_op_name(unsigned int op); /* enum gdri_op */
/* The function, where there is one: in a job that came up by NVSHMEM's names that of NVSHMEM, and gdr's behind it. */
const char *gdri_call_name(unsigned int op);
/* Both apart; *nvshmem is "" where there is none, or the job did not come up by such names. */
void gdri_call_names(unsigned int op, const char **call, const char **nvshmem);
/* Of a WQE, as the PRM names it; "unknown". */
const char *gdri_opcode_name(unsigned int opcode);
/* What to do about a status code; "" when there is nothing to say. */
const char *gdri_status_advice(int status);
/* Vendor syndrome in words, "" for those without a published meaning. */
const char *gdri_vendor_words(unsigned int vendor_syndrome);

/* " of PE 0: byte 72 of object 3 (256 bytes)"; numbers are those of gdr_heap_list now. Empty where there is no object,
 * or another thread is changing them. */
void gdri_place_text(uint64_t offset, char *buf, size_t room);

/* What stands at the offset where it is no object of the program's: a word of the library; "" elsewhere. */
const char *gdri_place_word(uint64_t offset);

/* That it is lost, and who knows that: the launcher, or the connection to its process. */
void gdri_place_lost(int pe, char *buf, size_t room);

/* Whether it is known to have called gdr_finalize: 1, or 2 where it had failed before. */
int gdri_place_finalizes(int pe);

/* The call that the record is of: of host threads' collectives the one under way, where that began before. */
const char *gdri_place_call(const struct gdri_error *e);

/* The call that put a wait for the record's word on a stream, or NULL: none of late, or it is no record of a wait for a
 * word. */
const char *gdri_place_stream_wait(const struct gdri_error *e);
const char *gdri_place_host_wait(const struct gdri_error *e); /* of a host thread that waits itself */

/* Whether the job came up by NVSHMEM's names. */
bool gdri_place_is_nvshmem(void);

/* Whether it is this PE's number. */
bool gdri_place_is_own(int pe);

/* Whether it is of a wait of gdr_finalize, or of what ended that. */
bool gdri_place_in_finalize(const struct gdri_error *e);

/* The option to raise, behind the advice that ends with that word; "" behind others: how long a peer of a queue may be
 * silent, as the transport in use has it, or the limit of the wait. */
const char *gdri_place_limit(const struct gdri_error *e);

#endif
