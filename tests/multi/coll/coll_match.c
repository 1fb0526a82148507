/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that do not call the same: the checked build refuses the call on all of them, names what differs and both
 * PEs, and the next call is in step. `order`: members of two teams call them in another order. `mixed`: the code of
 * one member is not checked. */
#include "tests/multi/multi.h"

#define MOST 64 /* records */
#define N 4	/* elements */

struct args {
	int *d, *s;
	int which, odd; /* this PE is the one that calls something else */
	int status;	/* expected */
	struct multi_report *report;
};

/* The words that tell of the difference; the last one is refused by the odd PE itself. */
static const char *const words[] = {
	"root ", "max on PE", "of float on PE", " 12 ", " 0 ", "and sst ",
	"fcollect on PE", "barrier on PE", "team_sync on PE", "refused its own arguments",
};
#define N_KINDS ((int)(sizeof(words) / sizeof(words[0])))

#define CALLS(suffix)                                                                              \
	MULTI_BODY int call##suffix(const struct args *a)                                          \
	{                                                                                          \
		int t = GDR_TEAM_WORLD, odd = a->odd, *d = a->d, *s = a->s;                        \
                                                                                                   \
		switch (a->which) {                                                                \
		case 0:                                                                            \
			return gdr_int_broadcast##suffix(t, d, s, N, odd);                         \
		case 1:                                                                            \
			return odd ? gdr_int_max_reduce##suffix(t, d, s, N)                        \
				   : gdr_int_sum_reduce##suffix(t, d, s, N);                       \
		case 2:                                                                            \
			return odd ? gdr_float_sum_reduce##suffix(t, (float *)d, (float *)s, N)    \
				   : gdr_int_sum_reduce##suffix(t, d, s, N);                       \
		case 3:                                                                            \
			return gdr_int_sum_reduce##suffix(t, d, s, odd ? N - 1 : N);               \
		case 4:                                                                            \
			return gdr_int_sum_reduce##suffix(t, d, s, odd ? 0 : N);                   \
		case 5:                                                                            \
			return gdr_int_alltoalls##suffix(t, d, s, 1, odd ? 2 : 1, 1);              \
		case 6:                                                                            \
			return odd ? gdr_int_fcollect##suffix(t, d, s, 1)                          \
				   : gdr_int_alltoall##suffix(t, d, s, 1);                         \
		case 7:                                                                            \
			return odd ? gdr_barrier##suffix(t) : gdr_int_sum_reduce##suffix(t, d, s, N); \
		case 8:                                                                            \
			return odd ? gdr_team_sync##suffix(t) : gdr_barrier##suffix(t);            \
		case 9:                                                                            \
			return gdr_int_sum_reduce##suffix(t, odd ? (int *)((char *)d + 1) : d, s, N); \
		default: /* all alike */                                                           \
			return gdr_int_sum_reduce##suffix(t, d, s, N);                             \
		}                                                                                  \
	}                                                                                          \
	GDR_KERNEL(kernel##suffix, struct args, a)                                                 \
	{                                                                                          \
		EXPECT_EQ(a.report, call##suffix(&a), a.status);                                   \
	}
CALLS(_block)
CALLS(_warp)
CALLS()

/* The newest record says it, of both PEs. */
static void told(int which, int records)
{
	static struct gdr_error e[MOST];
	int other = (multi_pe + 1) % multi_n, odd = multi_n - 1;
	const char *text = e[records - 1].text;
	char pe[16];

	CHECK_EQ(gdr_errors(e, MOST), records);
	if (!strstr(text, "coll_match.c:"))
		multi_fail(__FILE__, __LINE__, "no file and line: %s", text);
	if (which == 5 && !strstr(text, "gdr_TYPE_alltoalls refused"))
		multi_fail(__FILE__, __LINE__, "not named: %s", text);
	if (multi_pe != odd)
		other = odd;
	else if (which == N_KINDS - 1) {
		CHECK(strstr(text, "dest 0x") && strstr(text, "no multiple of 4"));
		return;
	}
	snprintf(pe, sizeof(pe), "PE %d", other);
	if (!strstr(text, words[which]) || !strstr(text, pe))
		multi_fail(__FILE__, __LINE__, "not \"%s\", %s: %s", words[which], pe, text);
	snprintf(pe, sizeof(pe), "PE %d", multi_pe);
	if (which < N_KINDS - 1 && !strstr(text, pe))
		multi_fail(__FILE__, __LINE__, "not %s: %s", pe, text);
}

static void run(struct args *a, int scope)
{
	if (scope == 0)
		RUN(kernel, 1, 1, a);
	else if (scope == 1)
		RUN(kernel_warp, 1, 32, a);
	else
		RUN(kernel_block, 1, 64, a);
}

static int differ(struct args *a)
{
	int v[N], records = 0;

	a->odd = multi_n > 1 && multi_pe == multi_n - 1;
	for (int scope = 0; scope < 3; scope++) {
		for (int which = 0; which < N_KINDS && multi_n > 1; which++) {
			a->which = which;
			a->status = which < N_KINDS - 1 ? -GDR_EMISMATCH : -GDR_EINVAL;
			run(a, scope);
			told(which, ++records);
			a->which = -1;
			a->status = 0;
			run(a, scope);
			CHECK_OK(gdr_memcpy(v, a->d, sizeof(v)));
			for (int k = 0; k < N; k++)
				CHECK_EQ(v[k], multi_n * k + multi_n * (multi_n - 1) / 2);
		}
	}
	CHECK_OK(gdr_barrier_all());
	CHECK_OK(gdr_finalize());
	return 0;
}

/* Nobody hangs, and all say in which call the other one is. */
static int order(struct args *a)
{
	static struct gdr_error e[MOST];
	gdr_team_t one, two;
	int n, i;

	CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n, NULL, 0, &one));
	CHECK_OK(gdr_team_split_strided(GDR_TEAM_WORLD, 0, 1, multi_n, NULL, 0, &two));
	CHECK_EQ(gdr_int_sum_reduce(multi_pe ? one : two, a->d, a->s, N), -GDR_ETIMEOUT);
	n = gdr_errors(e, MOST);
	for (i = 0; i < n && !strstr(e[i].text, "all call them in one order"); i++)
		;
	CHECK(i < n);
	CHECK(strstr(e[i].text, "is in reduce of team") && strstr(e[i].text, "coll_match.c:"));
	sleep(2); /* the others' limits end as well: who still waits for a PE that finalizes has lost it */
	gdr_finalize(); /* of a job that failed */
	return 0;
}

static int mixed(struct args *a)
{
	int ret = multi_pe ? gdr_int_sum_reduce(GDR_TEAM_WORLD, a->d, a->s, N)
			   : gdri_reduce(GDRI_THREAD, GDR_TEAM_WORLD, a->d, a->s, N, GDRI_REDUCE_CODE(int, GDRI_SUM));

	CHECK(ret < 0);
	gdr_finalize(); /* of a job that failed */
	return 0;
}

int main(int argc, char **argv)
{
	struct args a;
	int v[N];

	multi_begin();
	memset(&a, 0, sizeof(a));
	a.report = multi_report_new();
	a.d = (int *)gdr_malloc(2 * sizeof(int) * (size_t)(multi_n > N ? multi_n : N));
	a.s = (int *)gdr_malloc(2 * sizeof(int) * (size_t)(multi_n > N ? multi_n : N));
	for (int k = 0; k < N; k++)
		v[k] = multi_pe + k;
	CHECK_OK(gdr_memcpy(a.s, v, sizeof(v)));
	CHECK_OK(gdr_barrier_all());
	if (argc < 2)
		return differ(&a);
	return strcmp(argv[1], "order") ? mixed(&a) : order(&a);
}
