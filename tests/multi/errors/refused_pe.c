/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that gets a heap object and puts a word into the next one's, below refuse.c. Says on one line how far it came:
 * "PE 0: init -4", "PE 0: malloc -4", "PE 0: all right". Exit status 9: an error of the library. */
#include <dlfcn.h>

#include "tests/by_uid.h"
#include "tests/multi/multi.h"

static int says(const char *what, int status)
{
	printf("PE %d: %s %d\n", multi_pe, what, status);
	fflush(stdout);
	return 9;
}

int main(void)
{
	volatile int *armed = (volatile int *)dlsym(RTLD_DEFAULT, "refuse_armed");
	uint64_t *p, v;
	int ret;

	multi_pe = atoi(getenv("RANK"));
	if (!armed)
		return 2;
	*armed = 1;
	ret = by_uid_init();
	if (ret)
		return says("init", ret);
	multi_n = gdr_host_n_pes();
	p = (uint64_t *)gdr_malloc(100000);
	*armed = 0;
	if (!p) {
		ret = gdr_host_status();
		gdr_finalize();
		return says("malloc", ret);
	}
	v = 7 + (uint64_t)multi_pe;
	CHECK_OK(gdr_host_put(p, &v, 8, (multi_pe + 1) % multi_n));
	CHECK_OK(gdr_barrier_all());
	CHECK_EQ(*p, 7 + (uint64_t)((multi_pe + multi_n - 1) % multi_n));
	CHECK_OK(gdr_finalize());
	printf("PE %d: all right\n", multi_pe);
	return 0;
}
