// SPDX-License-Identifier: BSD-3-Clause
/* A provider whose calls do not return any more: what waits for it ends at its limit, and so does gdr_finalize.
 * Argument: the most seconds that each of both takes. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gdr/host.h>

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	const char *slow = getenv("TEST_SLOW");
	double most = argc > 1 ? atof(argv[1]) * (slow ? atof(slow) : 1) : 0, begin, last, waited, end;
	uint64_t *word, v = 7;
	int status = 0, left;

	if (gdr_init())
		return 1;
	word = gdr_calloc(1, sizeof(*word));
	begin = last = seconds();
	while (word && !status && last < begin + 60) {
		last = seconds();
		status = gdr_host_put(word, &v, sizeof(v), 1 - gdr_host_my_pe());
		status = status ? status : gdr_host_quiet();
	}
	waited = seconds() - last;
	last = seconds();
	left = gdr_finalize();
	end = seconds() - last;
	printf("put: %s, %.1f s; gdr_finalize: %s, %.1f s\n", gdr_strerror(status), waited, gdr_strerror(left), end);
	if (!status || !left || waited > most || end > most)
		return 1;
	printf("both ended in time\n");
	return 0;
}
