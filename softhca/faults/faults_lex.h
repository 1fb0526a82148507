/* SPDX-License-Identifier: BSD-3-Clause */
/* Words, numbers and units of the fault language. */
#ifndef SOFTHCA_FAULTS_LEX_H
#define SOFTHCA_FAULTS_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lexer {
	const char *start, *at;
	char *err; /* may be NULL */
	size_t err_n;
};

/* -EINVAL, and what is wrong at the present place in err. */
int lex_fail(struct lexer *l, const char *what);
/* lex_fail for the place that was kept (lex_place). */
int lex_fail_at(struct lexer *l, const char *at, const char *what);

const char *lex_place(struct lexer *l); /* after white space */
bool lex_symbol(struct lexer *l, char c);
bool lex_word(struct lexer *l, const char *w); /* a whole one, not the start of a longer one */

/* 0, or -EINVAL with the reason said. */
int lex_expect(struct lexer *l, char c);
int lex_expect_word(struct lexer *l, const char *w);
int lex_number(struct lexer *l, uint64_t min, uint64_t max, uint64_t *out); /* decimal or 0x */
int lex_real(struct lexer *l, double *out);
int lex_time(struct lexer *l, uint64_t *ns);
int lex_rate(struct lexer *l, uint64_t *bytes_per_s);

#endif
