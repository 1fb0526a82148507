/* SPDX-License-Identifier: BSD-3-Clause */
/* Parsers of values that arrived over PMIx. Pure functions over untrusted
 * input: they never read past what the value says it holds. */
#ifndef GDRI_BOOTSTRAP_PMIX_VALUE_H
#define GDRI_BOOTSTRAP_PMIX_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pmix.h>

/* What a PE puts under a round's key: this head, then the payload. All fields
 * little-endian on the wire. */
#define GDRI_BLOB_HEAD	  24
#define GDRI_BLOB_MAGIC	  0x42726467u /* "gdrB" */
#define GDRI_BLOB_VERSION 1
#define GDRI_BLOB_RENEWED 2 /* a version too: its writer puts keys again. The payload is padded to... */
#define GDRI_BLOB_ROOM	  1024 /* ... so much; a longer one is left out here, and is under a key of its own */

struct gdri_blob_id {
	uint64_t round;
	uint32_t pe;
	uint32_t len; /* of the payload */
	bool renewed; /* write GDRI_BLOB_RENEWED; a parser takes both versions */
};

enum gdri_blob_fault {
	GDRI_BLOB_OK,
	GDRI_BLOB_NULL,
	GDRI_BLOB_TYPE,
	GDRI_BLOB_SHORT,
	GDRI_BLOB_MAGIC_BAD,
	GDRI_BLOB_ORDER,
	GDRI_BLOB_VERSION_BAD,
	GDRI_BLOB_OLD, /* of an earlier round: the PE has not entered this one */
	GDRI_BLOB_ROUND,
	GDRI_BLOB_PE,
	GDRI_BLOB_LEN, /* the PE called with another length */
	GDRI_BLOB_SIZE /* the length is right and the bytes are not there */
};

void gdri_blob_write_head(unsigned char head[GDRI_BLOB_HEAD], const struct gdri_blob_id *id);

/* Checks v against what is expected; on GDRI_BLOB_OK *payload points into v. */
enum gdri_blob_fault gdri_blob_parse(const pmix_value_t *v, const struct gdri_blob_id *expect,
				     const unsigned char **payload);
/* What a payload from gdri_blob_parse says of its writer. */
bool gdri_blob_is_renewed(const unsigned char *payload);
const char *gdri_blob_fault_text(enum gdri_blob_fault fault);

/* Any integer type, as launchers differ: 0 and *out, or -GDR_EBOOTSTRAP when v
 * is no integer, negative or above max. */
int gdri_pmix_uint(const pmix_value_t *v, uint64_t max, uint64_t *out);

/* A printable, non-empty string of less than `room` bytes: 0 or -GDR_EBOOTSTRAP. */
int gdri_pmix_string(const pmix_value_t *v, char *out, size_t room);

#endif
