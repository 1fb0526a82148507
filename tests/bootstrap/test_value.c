// SPDX-License-Identifier: BSD-3-Clause
/* Values as a hostile or broken peer or launcher could send them. Buffers are
 * allocated to the byte, so that ASan sees any read past a value's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bootstrap/pmix/value.h"

static const struct gdri_blob_id expected = {.round = 0x1122334455667788u, .pe = 3, .len = 5};

static pmix_value_t bytes(const void *data, size_t size)
{
	pmix_value_t v;

	memset(&v, 0, sizeof(v));
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.bytes = malloc(size ? size : 1);
	assert_non_null(v.data.bo.bytes);
	memcpy(v.data.bo.bytes, data, size);
	v.data.bo.size = size;
	return v;
}

static void good_blob(unsigned char out[GDRI_BLOB_HEAD + 5])
{
	gdri_blob_write_head(out, &expected);
	memcpy(out + GDRI_BLOB_HEAD, "hello", 5);
}

static enum gdri_blob_fault parse(const void *data, size_t size)
{
	const unsigned char *payload;
	pmix_value_t v = bytes(data, size);
	enum gdri_blob_fault f = gdri_blob_parse(&v, &expected, &payload);

	if (f)
		assert_null(payload);
	else
		assert_memory_equal(payload, "hello", 5);
	assert_non_null(gdri_blob_fault_text(f));
	free(v.data.bo.bytes);
	return f;
}

static void blob_round_trip(void **state)
{
	unsigned char b[GDRI_BLOB_HEAD + 5];

	(void)state;
	good_blob(b);
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_OK);
	/* The layout on the wire, byte by byte. */
	assert_memory_equal(b, "gdrB\1\0\0\0\x88\x77\x66\x55\x44\x33\x22\x11\3\0\0\0\5\0\0\0hello",
			    sizeof(b));
}

static void blob_truncated_and_oversize(void **state)
{
	unsigned char b[GDRI_BLOB_HEAD + 6] = {0};
	size_t n;

	(void)state;
	good_blob(b);
	for (n = 0; n < GDRI_BLOB_HEAD; n++)
		assert_int_equal(parse(b, n), GDRI_BLOB_SHORT);
	for (; n < GDRI_BLOB_HEAD + 5; n++)
		assert_int_equal(parse(b, n), GDRI_BLOB_SIZE);
	assert_int_equal(parse(b, n + 1), GDRI_BLOB_SIZE);
}

static void blob_renewed_is_padded(void **state)
{
	struct gdri_blob_id id = expected;
	unsigned char b[GDRI_BLOB_HEAD + GDRI_BLOB_ROOM] = {0};

	(void)state;
	good_blob(b);
	assert_false(gdri_blob_is_renewed(b + GDRI_BLOB_HEAD));
	id.renewed = true;
	gdri_blob_write_head(b, &id);
	assert_true(gdri_blob_is_renewed(b + GDRI_BLOB_HEAD));
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_OK);
	assert_int_equal(parse(b, GDRI_BLOB_HEAD + 5), GDRI_BLOB_SIZE);
}

static void blob_every_bit_of_the_head_counts(void **state)
{
	unsigned char b[GDRI_BLOB_HEAD + 5];
	unsigned bit;

	(void)state;
	for (bit = 0; bit < GDRI_BLOB_HEAD * 8; bit++) {
		good_blob(b);
		b[bit / 8] ^= (unsigned char)(1u << bit % 8);
		assert_int_not_equal(parse(b, sizeof(b)), GDRI_BLOB_OK);
	}
}

static void swap_fields(unsigned char *b)
{
	static const unsigned width[] = {4, 4, 8, 4, 4};
	unsigned i, j;
	unsigned char t;

	for (i = 0; i < 5; b += width[i++])
		for (j = 0; j < width[i] / 2; j++) {
			t = b[j];
			b[j] = b[width[i] - 1 - j];
			b[width[i] - 1 - j] = t;
		}
}

static void blob_faults_are_told_apart(void **state)
{
	unsigned char b[GDRI_BLOB_HEAD + 5];

	(void)state;
	good_blob(b);
	swap_fields(b);
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_ORDER);
	good_blob(b);
	b[4] = 3;
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_VERSION_BAD);
	good_blob(b);
	b[8]++;
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_ROUND);
	b[8] -= 2;
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_OLD);
	good_blob(b);
	b[16]++;
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_PE);
	good_blob(b);
	memset(b + 20, 0xff, 4);
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_LEN);
	memset(b, 0, sizeof(b));
	assert_int_equal(parse(b, sizeof(b)), GDRI_BLOB_MAGIC_BAD);
}

static void blob_null_and_wrong_type(void **state)
{
	const unsigned char *payload;
	pmix_value_t v;
	unsigned type;

	(void)state;
	assert_int_equal(gdri_blob_parse(NULL, &expected, &payload), GDRI_BLOB_NULL);
	memset(&v, 0, sizeof(v));
	v.type = PMIX_BYTE_OBJECT;
	v.data.bo.size = 100;
	assert_int_equal(gdri_blob_parse(&v, &expected, &payload), GDRI_BLOB_NULL);
	/* A wrong type's union holds garbage that must not be followed. */
	memset(&v.data, 0x41, sizeof(v.data));
	for (type = 0; type < 256; type++) {
		v.type = (pmix_data_type_t)type;
		if (type != PMIX_BYTE_OBJECT)
			assert_int_equal(gdri_blob_parse(&v, &expected, &payload), GDRI_BLOB_TYPE);
	}
}

#define NUMBER(pmix_type, member, value)     \
	do {                                 \
		memset(&v, 0xff, sizeof(v)); \
		v.type = (pmix_type);        \
		v.data.member = (value);     \
	} while (0)

static void integers_of_every_type(void **state)
{
	pmix_value_t v;
	uint64_t out;

	(void)state;
#define TRY(type, member)                                         \
	do {                                                      \
		NUMBER(type, member, 7);                          \
		out = 0;                                          \
		assert_int_equal(gdri_pmix_uint(&v, 7, &out), 0); \
		assert_int_equal(out, 7);                         \
		assert_true(gdri_pmix_uint(&v, 6, &out) < 0);     \
	} while (0)
	TRY(PMIX_BYTE, byte);
	TRY(PMIX_SIZE, size);
	TRY(PMIX_INT, integer);
	TRY(PMIX_INT8, int8);
	TRY(PMIX_INT16, int16);
	TRY(PMIX_INT32, int32);
	TRY(PMIX_INT64, int64);
	TRY(PMIX_UINT, uint);
	TRY(PMIX_UINT8, uint8);
	TRY(PMIX_UINT16, uint16);
	TRY(PMIX_UINT32, uint32);
	TRY(PMIX_UINT64, uint64);
	TRY(PMIX_PROC_RANK, rank);
#undef TRY
}

static void integers_malformed(void **state)
{
	pmix_value_t v;
	uint64_t out = 99;
	unsigned type, taken = 0;

	(void)state;
	assert_true(gdri_pmix_uint(NULL, 10, &out) < 0);
	NUMBER(PMIX_INT, integer, -1);
	assert_true(gdri_pmix_uint(&v, UINT64_MAX, &out) < 0);
	NUMBER(PMIX_INT8, int8, INT8_MIN);
	assert_true(gdri_pmix_uint(&v, UINT64_MAX, &out) < 0);
	NUMBER(PMIX_INT64, int64, INT64_MIN);
	assert_true(gdri_pmix_uint(&v, UINT64_MAX, &out) < 0);
	NUMBER(PMIX_UINT64, uint64, UINT64_MAX);
	assert_true(gdri_pmix_uint(&v, INT32_MAX, &out) < 0);
	assert_int_equal(out, 99);
	memset(&v, 0, sizeof(v));
	for (type = 0; type < 65536; type++) {
		v.type = (pmix_data_type_t)type;
		taken += !gdri_pmix_uint(&v, 10, &out);
	}
	assert_int_equal(taken, 13);
}

static int string(const char *s, size_t size, char *out, size_t room)
{
	pmix_value_t v;
	int rc;

	memset(&v, 0, sizeof(v));
	v.type = PMIX_STRING;
	v.data.string = malloc(size);
	assert_non_null(v.data.string);
	memcpy(v.data.string, s, size);
	rc = gdri_pmix_string(&v, out, room);
	free(v.data.string);
	return rc;
}

static void strings(void **state)
{
	pmix_value_t v;
	char out[8];

	(void)state;
	assert_int_equal(string("node-01", 8, out, sizeof(out)), 0);
	assert_string_equal(out, "node-01");
	assert_true(string("", 1, out, sizeof(out)) < 0);
	assert_true(string("node-001", 9, out, sizeof(out)) < 0);
	/* Not terminated within what fits: read no further. */
	assert_true(string("12345678", 8, out, sizeof(out)) < 0);
	assert_true(string("a\nb", 4, out, sizeof(out)) < 0);
	assert_true(string("a b", 4, out, sizeof(out)) < 0);
	assert_true(string("\x80", 2, out, sizeof(out)) < 0);
	assert_string_equal(out, "node-01");
	assert_true(gdri_pmix_string(NULL, out, sizeof(out)) < 0);
	memset(&v, 0, sizeof(v));
	v.type = PMIX_STRING;
	assert_true(gdri_pmix_string(&v, out, sizeof(out)) < 0);
	v.type = PMIX_UINT32;
	v.data.uint32 = 0x41414141;
	assert_true(gdri_pmix_string(&v, out, sizeof(out)) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blob_round_trip),
		cmocka_unit_test(blob_truncated_and_oversize),
		cmocka_unit_test(blob_renewed_is_padded),
		cmocka_unit_test(blob_every_bit_of_the_head_counts),
		cmocka_unit_test(blob_faults_are_told_apart),
		cmocka_unit_test(blob_null_and_wrong_type),
		cmocka_unit_test(integers_of_every_type),
		cmocka_unit_test(integers_malformed),
		cmocka_unit_test(strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
