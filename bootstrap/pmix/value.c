// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmix/value.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include <gdr/status.h>

static void put_le(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t get_le(const unsigned char *p, int bytes)
{
	uint64_t v = 0;

	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

void gdri_blob_write_head(unsigned char head[GDRI_BLOB_HEAD], const struct gdri_blob_id *id)
{
	put_le(head, GDRI_BLOB_MAGIC, 4);
	put_le(head + 4, id->renewed ? GDRI_BLOB_RENEWED : GDRI_BLOB_VERSION, 4);
	put_le(head + 8, id->round, 8);
	put_le(head + 16, id->pe, 4);
	put_le(head + 20, id->len, 4);
}

static enum gdri_blob_fault parse_head(const unsigned char *p, const struct gdri_blob_id *expect)
{
	uint32_t magic = (uint32_t)get_le(p, 4);

	if (magic == __builtin_bswap32(GDRI_BLOB_MAGIC))
		return GDRI_BLOB_ORDER;
	if (magic != GDRI_BLOB_MAGIC)
		return GDRI_BLOB_MAGIC_BAD;
	if (get_le(p + 4, 4) != GDRI_BLOB_VERSION && get_le(p + 4, 4) != GDRI_BLOB_RENEWED)
		return GDRI_BLOB_VERSION_BAD;
	if (get_le(p + 8, 8) != expect->round)
		return get_le(p + 8, 8) < expect->round ? GDRI_BLOB_OLD : GDRI_BLOB_ROUND;
	if (get_le(p + 16, 4) != expect->pe)
		return GDRI_BLOB_PE;
	if (get_le(p + 20, 4) != expect->len)
		return GDRI_BLOB_LEN;
	return GDRI_BLOB_OK;
}

static bool is_renewed(const unsigned char *head)
{
	return get_le(head + 4, 4) == GDRI_BLOB_RENEWED;
}

bool gdri_blob_is_renewed(const unsigned char *payload)
{
	return is_renewed(payload - GDRI_BLOB_HEAD);
}

enum gdri_blob_fault gdri_blob_parse(const pmix_value_t *v, const struct gdri_blob_id *expect,
				     const unsigned char **payload)
{
	const unsigned char *p;
	enum gdri_blob_fault fault;
	size_t room;

	*payload = NULL;
	if (!v)
		return GDRI_BLOB_NULL;
	if (v->type != PMIX_BYTE_OBJECT)
		return GDRI_BLOB_TYPE;
	p = (const unsigned char *)v->data.bo.bytes;
	if (!p)
		return GDRI_BLOB_NULL;
	if (v->data.bo.size < GDRI_BLOB_HEAD)
		return GDRI_BLOB_SHORT;
	fault = parse_head(p, expect);
	if (fault)
		return fault;
	room = v->data.bo.size - GDRI_BLOB_HEAD;
	if (is_renewed(p) ? room != GDRI_BLOB_ROOM : room != expect->len)
		return GDRI_BLOB_SIZE;
	*payload = p + GDRI_BLOB_HEAD;
	return GDRI_BLOB_OK;
}

const char *gdri_blob_fault_text(enum gdri_blob_fault fault)
{
	switch (fault) {
	case GDRI_BLOB_OK:
		return "no fault";
	case GDRI_BLOB_NULL:
		return "it holds no value";
	case GDRI_BLOB_TYPE:
		return "its type is not byte object";
	case GDRI_BLOB_SHORT:
		return "it is shorter than a header";
	case GDRI_BLOB_MAGIC_BAD:
		return "it was not written by gdr";
	case GDRI_BLOB_ORDER:
		return "it is of the other byte order";
	case GDRI_BLOB_VERSION_BAD:
		return "it is of another version of gdr";
	case GDRI_BLOB_OLD:
		return "it belongs to an earlier round: that PE has not entered this one";
	case GDRI_BLOB_ROUND:
		return "it belongs to another round: the PEs made different sequences of calls";
	case GDRI_BLOB_PE:
		return "it names another PE as its writer";
	case GDRI_BLOB_LEN:
		return "that PE called with another length";
	case GDRI_BLOB_SIZE:
		return "its size contradicts its header";
	}
	return "unknown fault";
}

static bool value_is_sane(int64_t v, uint64_t *out)
{
	*out = (uint64_t)v;
	return v >= 0;
}

/* The union member is chosen by the type: a launcher that says uint16 leaves
 * the rest of the union undefined. */
static bool take_integer(const pmix_value_t *v, uint64_t *out)
{
	switch (v->type) {
	case PMIX_BYTE:
		*out = v->data.byte;
		return true;
	case PMIX_SIZE:
		*out = v->data.size;
		return true;
	case PMIX_UINT:
		*out = v->data.uint;
		return true;
	case PMIX_UINT8:
		*out = v->data.uint8;
		return true;
	case PMIX_UINT16:
		*out = v->data.uint16;
		return true;
	case PMIX_UINT32:
		*out = v->data.uint32;
		return true;
	case PMIX_UINT64:
		*out = v->data.uint64;
		return true;
	case PMIX_PROC_RANK:
		*out = v->data.rank;
		return true;
	case PMIX_INT:
		return value_is_sane(v->data.integer, out);
	case PMIX_INT8:
		return value_is_sane(v->data.int8, out);
	case PMIX_INT16:
		return value_is_sane(v->data.int16, out);
	case PMIX_INT32:
		return value_is_sane(v->data.int32, out);
	case PMIX_INT64:
		return value_is_sane(v->data.int64, out);
	default:
		return false;
	}
}

int gdri_pmix_uint(const pmix_value_t *v, uint64_t max, uint64_t *out)
{
	uint64_t x = 0;

	if (!v || !take_integer(v, &x) || x > max)
		return -GDR_EBOOTSTRAP;
	*out = x;
	return 0;
}

int gdri_pmix_string(const pmix_value_t *v, char *out, size_t room)
{
	const char *s;
	size_t i;

	if (!v || v->type != PMIX_STRING || !v->data.string)
		return -GDR_EBOOTSTRAP;
	s = v->data.string;
	for (i = 0; i < room && s[i]; i++)
		if (!isgraph((unsigned char)s[i]))
			return -GDR_EBOOTSTRAP;
	if (!i || i == room)
		return -GDR_EBOOTSTRAP;
	memcpy(out, s, i + 1);
	return 0;
}
