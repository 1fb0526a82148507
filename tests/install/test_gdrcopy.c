// SPDX-License-Identifier: BSD-3-Clause
/* gdr and a library with gdrcopy's names in one process: each keeps its own. Built
 * in both link orders. */
#include <stdio.h>

#include <gdr.h>

#include "gdrcopy_names.h"

int standin_check(void);
#define DECLARE(name) int name(void);
GDRCOPY_FUNCTIONS(DECLARE)

static int own(const char *when)
{
	int bad = standin_check();

	/* the program's own references too */
#define CHECK(name) bad += name() != 4711;
	GDRCOPY_FUNCTIONS(CHECK)
	if (bad)
		fprintf(stderr, "%s: %d of gdrcopy's names lead elsewhere\n", when, bad);
	return bad;
}

int main(void)
{
	uint64_t *p, v = 1, w = 0;
	int bad = own("before gdr_init");

	if (gdr_init())
		return 1;
	bad += own("after gdr_init");
	p = gdr_calloc(1, sizeof(*p));
	if (!p || gdr_host_put(p, &v, sizeof(v), 0) || gdr_host_quiet() ||
	    gdr_host_get(&w, p, sizeof(w), 0) || w != 1 || gdr_free(p) || gdr_finalize()) {
		fprintf(stderr, "gdr does not work beside it\n");
		bad++;
	}
	return bad ? 1 : 0;
}
