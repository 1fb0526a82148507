/* SPDX-License-Identifier: BSD-3-Clause */
/* Two PEs put to each other until that fails (tests/ofi/cable takes the network away): each call ends, and the error
 * names the other PE. ID_FILE.goes.RANK is there when it has worked for a while. */
#include "tests/by_uid.h"
#include "tests/multi/multi.h"

#define TIMES 100u

struct cut {
	uint64_t *word, *goes, peer;
	int *status;
};

GDR_KERNEL(until_it_fails, struct cut, a)
{
	uint64_t end = gdr_clock_ns() + 60000000000u;

	for (uint64_t i = 1; !*a.status && gdr_clock_ns() < end; i++) {
		*a.status = gdr_uint64_p(a.word, i, (int)a.peer);
		if (!*a.status)
			*a.status = gdr_quiet();
		/* relaxed: the host asks whether it is there, and no more */
		__atomic_store_n(a.goes, i, __ATOMIC_RELAXED);
	}
}

static void say_that_it_goes(uint64_t *goes)
{
	struct timespec nap = {0, 10000000};
	char name[300];
	FILE *f;

	while (__atomic_load_n(goes, __ATOMIC_RELAXED) < TIMES) /* see until_it_fails */
		nanosleep(&nap, NULL);
	snprintf(name, sizeof(name), "%.200s.goes.%s", getenv("ID_FILE"), getenv("RANK"));
	f = fopen(name, "w");
	CHECK(f && !fclose(f));
}

int main(void)
{
	struct gdr_error errors[8];
	int status = 0, n, named = 0;
	uint64_t goes = 0;
	struct cut a = {.status = &status, .goes = &goes};

	CHECK_OK(by_uid_init());
	CHECK_EQ(gdr_n_pes(), 2);
	a.word = gdr_calloc(1, 8);
	CHECK(a.word);
	a.peer = 1 - (uint64_t)gdr_my_pe();
	CHECK_OK(gdr_launch(until_it_fails, 1, 1, 0, NULL, &a));
	say_that_it_goes(&goes);
	(void)gdr_stream_sync(NULL);
	printf("PE %d: %s\n", gdr_my_pe(), gdr_strerror(status));
	CHECK(status == -GDR_ETIMEOUT || status == -GDR_ERETRY || status == -GDR_EPEERLOST);
	n = gdr_errors(errors, 8);
	for (int i = 0; i < n && i < 8; i++) {
		printf("PE %d: %s\n", gdr_my_pe(), errors[i].text);
		named |= errors[i].peer == (int)a.peer || errors[i].waited_for == (int)a.peer;
	}
	CHECK(named);
	(void)gdr_finalize();
	return 0;
}
