/* SPDX-License-Identifier: BSD-3-Clause */
/* What gdr_info --check found, line by line as it is found, or as JSON (check.schema.json). */
#ifndef TOOLS_CHECK_REPORT_H
#define TOOLS_CHECK_REPORT_H

#include <stdbool.h>

/* What a check takes before it can be made. */
enum check_need { CHECK_HOST, CHECK_GPU_THERE, CHECK_NIC_THERE, CHECK_BOTH };

enum check_id {
#define CHECK(id, name, need, title, looked_at, right, fix) CHECK_##id,
#include "tools/check/checks.def"
#undef CHECK
	CHECK_IDS
};

/* NOTE: works, but could be better. NONE: could not be seen, or is not there and need not be. */
enum verdict { GOOD, NOTE, BAD, NONE };

struct report {
	bool json, said[CHECK_IDS];
	int n, bad;
};

void report_begin(struct report *r, bool json);
/* The value that was found, in words. Each check is said once. */
__attribute__((format(printf, 4, 5))) void report_say(struct report *r, enum check_id id,
						      enum verdict v, const char *fmt, ...);
/* The verdict; JSON also names all checks that were not made, and why. */
void report_end(struct report *r, bool gpu, bool nic);

#endif
