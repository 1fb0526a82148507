/* SPDX-License-Identifier: BSD-3-Clause */
/* Strict parsers of option values: the whole text must be one value; sizes in words. */
#ifndef GDRI_PARSE_H
#define GDRI_PARSE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return true and set *out only when all of `s` is one value that fits. */
bool gdri_parse_u64(const char *s, uint64_t *out);  /* decimal or 0x hex */
bool gdri_parse_i64(const char *s, int64_t *out);   /* decimal or 0x hex, also with a leading '-' */
bool gdri_parse_size(const char *s, uint64_t *out); /* bytes; suffix k m g t */
bool gdri_parse_time(const char *s, uint64_t *out); /* milliseconds; unit ms s m h d, which has to be there */
bool gdri_parse_bool(const char *s, bool *out);	    /* 0 1 n y no yes off on false true */
/* Index of s in words, which are separated by '|'. */
bool gdri_parse_word(const char *s, size_t len, const char *words, unsigned int *out);
/* CPUs as the kernel lists them: "0-3,8", rising, at least one. */
bool gdri_parse_cpus(const char *s, cpu_set_t *out);
/* Words separated by commas, each at most once, at least one. */
bool gdri_parse_list(const char *s, const char *words, unsigned int *out);

/* "388 KiB", "128.5 MiB", "2.0 GiB": rounded up, never 0 for what is not. */
#define GDRI_SIZE_TEXT 32
void gdri_size_text(uint64_t bytes, char buf[GDRI_SIZE_TEXT]);

/* Number of insertions, deletions and replacements that make b of a; both shorter
 * than 64 characters, else a large number. */
unsigned int gdri_edit_distance(const char *a, const char *b);

#endif
