/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that gets a heap object and puts a word into the next one's, below refuse.c, or with few addresses. Says on one
 * line how far it came: "PE 0: init -4", "PE 0: malloc -4", "PE 0: all right". Exit status 9: an error of the
 * library. */
#include <dlfcn.h>
#include <sys/resource.h>

#include "tests/by_uid.h"
#include "tests/multi/multi.h"

static int says(const char *what, int status)
{
	printf("PE %d: %s %d\n", multi_pe, what, status);
	fflush(stdout);
	return 9;
}

/* REFUSE=space:N:RANK: that PE may have N times 64 KiB of addresses more than it has, whoever asks for them. */
static void few_addresses(void)
{
	const char *text = getenv("REFUSE");
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;
	int n, rank;

	if (f && text && sscanf(text, "space:%d:%d", &n, &rank) == 2 && rank == multi_pe) {
		struct rlimit most;

		CHECK(fscanf(f, "%lu", &pages) == 1);
		most.rlim_cur = most.rlim_max = pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)n << 16);
		CHECK(!setrlimit(RLIMIT_AS, &most));
		fprintf(stderr, "refuse: space %d\n", n);
	}
	if (f)
		fclose(f);
}

int main(void)
{
	volatile int *armed = (volatile int *)dlsym(RTLD_DEFAULT, "refuse_armed");
	uint64_t *p, v;
	int ret;

	multi_pe = atoi(getenv("RANK"));
	if (!armed)
		return 2;
	few_addresses();
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
