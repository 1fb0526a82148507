/* SPDX-License-Identifier: BSD-3-Clause */
#include "softhca/faults/faults_lex.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIME_MAX_NS 1e15 /* 11 days */

int lex_fail_at(struct lexer *l, const char *at, const char *what)
{
	if (l->err && l->err_n)
		snprintf(l->err, l->err_n, "SOFTHCA_FAULTS: %s at character %zu: \"%.24s\"", what,
			 (size_t)(at - l->start) + 1, at);
	return -EINVAL;
}

const char *lex_place(struct lexer *l)
{
	while (*l->at == ' ' || *l->at == '\t' || *l->at == '\n')
		l->at++;
	return l->at;
}

int lex_fail(struct lexer *l, const char *what)
{
	return lex_fail_at(l, lex_place(l), what);
}

bool lex_symbol(struct lexer *l, char c)
{
	if (*lex_place(l) != c)
		return false;
	l->at++;
	return true;
}

bool lex_word(struct lexer *l, const char *w)
{
	size_t n = strlen(w);

	lex_place(l);
	if (strncmp(l->at, w, n) || isalnum((unsigned char)l->at[n]) || l->at[n] == '_')
		return false;
	l->at += n;
	return true;
}

int lex_expect(struct lexer *l, char c)
{
	char what[] = "expected 'x'";

	if (lex_symbol(l, c))
		return 0;
	what[sizeof(what) - 3] = c;
	return lex_fail(l, what);
}

int lex_expect_word(struct lexer *l, const char *w)
{
	char what[64];

	if (lex_word(l, w))
		return 0;
	snprintf(what, sizeof(what), "expected '%s'", w);
	return lex_fail(l, what);
}

int lex_number(struct lexer *l, uint64_t min, uint64_t max, uint64_t *out)
{
	const char *at = lex_place(l);
	bool hex = at[0] == '0' && at[1] == 'x';
	unsigned long long v;
	char what[96], *end;

	/* strtoull would take signs, and a lone 0 of "0x". */
	if (!isdigit((unsigned char)at[0]) || (hex && !isxdigit((unsigned char)at[2])))
		return lex_fail(l, "expected a number");
	errno = 0;
	v = strtoull(at, &end, hex ? 16 : 10);
	if (errno || v < min || v > max) {
		snprintf(what, sizeof(what), "expected a number from %llu to %llu",
			 (unsigned long long)min, (unsigned long long)max);
		return lex_fail(l, what);
	}
	if (isalnum((unsigned char)*end) || *end == '.' || *end == '_')
		return lex_fail(l, "expected a whole number, decimal or 0x");
	l->at = end;
	*out = v;
	return 0;
}

/* Ten to the power of e, for what a number of the language may have. */
static double power_of_ten(int e)
{
	double v = 1;

	for (int i = e < 0 ? -e : e; i; i--)
		v *= 10;
	return e < 0 ? 1 / v : v;
}

/* Digits, a point, an exponent. strtod would also take nan, inf and hexadecimal
 * numbers, and the point that the program's locale asks for. */
int lex_real(struct lexer *l, double *out)
{
	const char *p = lex_place(l);
	int digits = 0, exponent = 0, e = 0;
	double v = 0;

	for (; isdigit((unsigned char)*p); p++, digits++)
		v = v * 10 + (*p - '0');
	if (*p == '.')
		for (p++; isdigit((unsigned char)*p); p++, digits++, exponent--)
			v = v * 10 + (*p - '0');
	if (!digits || digits > 30)
		return lex_fail(l, "expected a number");
	if (*p == 'e' && isdigit((unsigned char)p[1 + (p[1] == '-' || p[1] == '+')])) {
		bool minus = *++p == '-';

		for (p += *p == '-' || *p == '+'; isdigit((unsigned char)*p); p++)
			e = e < 100 ? e * 10 + (*p - '0') : e;
		exponent += minus ? -e : e;
	}
	*out = v > 0 ? v * power_of_ten(exponent) : 0; /* the power may be infinite */
	l->at = p;
	return 0;
}

struct unit {
	const char *word;
	double factor;
};

static int with_unit(struct lexer *l, const struct unit *units, double max, const char *expected,
		     uint64_t *out)
{
	const char *at = lex_place(l);
	double v;

	if (lex_real(l, &v))
		return -EINVAL;
	for (const struct unit *u = units; u->word; u++) {
		if (!lex_word(l, u->word))
			continue;
		if (v * u->factor > max)
			return lex_fail_at(l, at, "the value is too large");
		*out = (uint64_t)(v * u->factor);
		return 0;
	}
	return lex_fail(l, expected);
}

int lex_time(struct lexer *l, uint64_t *ns)
{
	static const struct unit units[] = {
		{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};

	return with_unit(l, units, TIME_MAX_NS, "expected a unit of time: ns, us, ms or s", ns);
}

int lex_rate(struct lexer *l, uint64_t *bytes_per_s)
{
	static const struct unit units[] = {
		{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {NULL, 0}};
	const char *at = lex_place(l);

	if (with_unit(l, units, 1e15, "expected a unit: B/s, kB/s, MB/s or GB/s", bytes_per_s))
		return -EINVAL;
	return *bytes_per_s ? 0 : lex_fail_at(l, at, "expected a rate of at least 1 B/s");
}
