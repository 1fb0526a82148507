// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE /* CPU_SET */
#include "runtime/core/parse.h"

#include <stdio.h>
#include <string.h>

static int parse_digit(char c, unsigned int base)
{
	int v = -1;

	if (c >= '0' && c <= '9')
		v = c - '0';
	else if (c >= 'a' && c <= 'f')
		v = c - 'a' + 10;
	else if (c >= 'A' && c <= 'F')
		v = c - 'A' + 10;
	return v >= 0 && (unsigned int)v < base ? v : -1;
}

/* Reads digits at *s and moves it behind them; false when there is none or they overflow. */
static bool take_number(const char **s, uint64_t *out)
{
	unsigned int base = 10;
	const char *p = *s;
	uint64_t v = 0;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	}
	if (parse_digit(*p, base) < 0)
		return false;
	for (; parse_digit(*p, base) >= 0; p++) {
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)parse_digit(*p, base), &v))
			return false;
	}
	*s = p;
	*out = v;
	return true;
}

bool gdri_parse_u64(const char *s, uint64_t *out)
{
	uint64_t v;

	if (!take_number(&s, &v) || *s)
		return false;
	*out = v;
	return true;
}

bool gdri_parse_i64(const char *s, int64_t *out)
{
	bool minus = *s == '-';
	uint64_t v;

	if (!gdri_parse_u64(s + minus, &v) || v > (uint64_t)INT64_MAX)
		return false;
	*out = minus ? -(int64_t)v : (int64_t)v;
	return true;
}

struct suffix {
	const char *text;
	uint64_t factor;
};

static bool parse_scaled(const char *s, const struct suffix *suffixes, uint64_t *out)
{
	uint64_t v;

	if (!take_number(&s, &v))
		return false;
	for (; suffixes->text; suffixes++) {
		if (strcmp(s, suffixes->text))
			continue;
		if (__builtin_mul_overflow(v, suffixes->factor, &v))
			return false;
		*out = v;
		return true;
	}
	return false;
}

bool gdri_parse_size(const char *s, uint64_t *out)
{
	static const struct suffix suffixes[] = {
		{"", 1},	  {"k", 1ull << 10}, {"K", 1ull << 10},
		{"m", 1ull << 20}, {"M", 1ull << 20}, {"g", 1ull << 30},
		{"G", 1ull << 30}, {"t", 1ull << 40}, {"T", 1ull << 40},
		{NULL, 0},
	};

	return parse_scaled(s, suffixes, out);
}

bool gdri_parse_time(const char *s, uint64_t *out)
{
	static const struct suffix suffixes[] = {
		{"ms", 1},	  {"s", 1000},
		{"m", 60 * 1000}, {"h", 3600 * 1000}, {"d", 86400 * 1000},
		{NULL, 0},
	};

	return parse_scaled(s, suffixes, out);
}

bool gdri_parse_bool(const char *s, bool *out)
{
	static const char words[] = "0|1|n|y|no|yes|off|on|false|true";
	unsigned int i;

	if (!gdri_parse_word(s, strlen(s), words, &i))
		return false;
	*out = i & 1; /* no and yes take turns */
	return true;
}

bool gdri_parse_word(const char *s, size_t len, const char *words, unsigned int *out)
{
	for (unsigned int i = 0; *words; i++) {
		size_t n = strcspn(words, "|");

		if (n == len && !memcmp(s, words, n)) {
			*out = i;
			return true;
		}
		words += n + (words[n] == '|');
	}
	return false;
}

bool gdri_parse_list(const char *s, const char *words, unsigned int *out)
{
	unsigned int set = 0, i;

	for (;;) {
		size_t n = strcspn(s, ",");

		if (!gdri_parse_word(s, n, words, &i) || set & (1u << i))
			return false;
		set |= 1u << i;
		if (!s[n])
			break;
		s += n + 1;
	}
	*out = set;
	return true;
}

bool gdri_parse_cpus(const char *s, cpu_set_t *out)
{
	uint64_t first, last, next = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	for (;; s++) {
		if (!take_number(&s, &first))
			return false;
		last = first;
		if (*s == '-' && (s++, !take_number(&s, &last)))
			return false;
		if (first < next || last < first || last >= CPU_SETSIZE)
			return false;
		for (next = last + 1; first < next; first++)
			CPU_SET(first, &set);
		if (*s != ',')
			break;
	}
	if (*s)
		return false;
	*out = set;
	return true;
}

static unsigned int parse_min3(unsigned int a, unsigned int b, unsigned int c)
{
	unsigned int m = a < b ? a : b;

	return m < c ? m : c;
}

unsigned int gdri_edit_distance(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), i, j;
	unsigned int row[64];

	if (na >= 64 || nb >= 64)
		return ~0u;
	for (j = 0; j <= nb; j++)
		row[j] = (unsigned int)j;
	for (i = 1; i <= na; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (j = 1; j <= nb; j++) {
			unsigned int up = row[j];

			row[j] = parse_min3(up + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = up;
		}
	}
	return row[nb];
}

void gdri_size_text(uint64_t bytes, char buf[GDRI_SIZE_TEXT])
{
	uint64_t unit = bytes >> 30 ? 1u << 30 : 1u << 20, tenths;

	if (bytes < 1u << 20) {
		snprintf(buf, GDRI_SIZE_TEXT, "%u KiB", (unsigned int)((bytes + 1023) >> 10));
		return;
	}
	tenths = bytes / unit * 10 + (bytes % unit * 10 + unit - 1) / unit;
	snprintf(buf, GDRI_SIZE_TEXT, "%llu.%llu %ciB", (unsigned long long)(tenths / 10),
		 (unsigned long long)(tenths % 10), bytes >> 30 ? 'G' : 'M');
}
