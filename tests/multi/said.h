/* SPDX-License-Identifier: BSD-3-Clause */
/* What a PE says on stderr meanwhile. */
#ifndef TESTS_MULTI_SAID_H
#define TESTS_MULTI_SAID_H

#include <sys/mman.h>

#include "tests/multi/multi.h"

static int said_stderr, said_texts;
static char said_buf[65536]; /* behind said_expect */

static void said_begin(void)
{
	said_stderr = dup(2);
	said_texts = memfd_create("texts", 0);
	CHECK(said_stderr >= 0 && said_texts >= 0 && dup2(said_texts, 2) == 2);
}

/* What was said on stderr since: this, or that where it is not NULL. */
static void said_expect(const char *what, const char *instead)
{
	char *buf = said_buf;

	memset(buf, 0, sizeof(said_buf));
	CHECK(dup2(said_stderr, 2) == 2);
	CHECK(pread(said_texts, buf, sizeof(said_buf) - 1, 0) > 0);
	fputs(buf, stderr);
	close(said_texts);
	close(said_stderr);
	if (!strstr(buf, what) && !(instead && strstr(buf, instead)))
		multi_fail(__FILE__, __LINE__, "nothing says \"%s\"", what);
}

/* Nor was this said before said_expect. */
__attribute__((unused)) static void said_expect_not(const char *what)
{
	if (strstr(said_buf, what))
		multi_fail(__FILE__, __LINE__, "something says \"%s\"", what);
}

#endif
