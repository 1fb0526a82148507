/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong arguments in a real job, from host threads of the host device. Checked: what lies in front of the first object
 * is the library's, all of it, and steps that wrap round are seen. Unchecked: a PE that there is none of is refused. */
#include "tests/multi/multi.h"

static struct gdr_error e[256];
static int records;

__attribute__((unused)) static void told(int ret, const char *words)
{
	CHECK_EQ(ret, -GDR_EINVAL);
	CHECK_EQ(gdr_errors(e, 256), ++records);
	if (!strstr(e[records - 1].text, words))
		multi_fail(__FILE__, __LINE__, "not \"%s\": %s", words, e[records - 1].text);
}

#ifdef GDR_CHECKED
static void misuse(uint8_t *first, uint64_t *w, uint64_t *s)
{
	int pe = (multi_pe + 1) % multi_n;
	uint64_t v = 0;

	for (int k = 1; k <= 12; k++)
		told(gdr_put(first - ((ptrdiff_t)8 << k), &v, 8, pe), "over the library's own words");
	told(gdr_put(first - 1, &v, 8, pe), "over the library's own words");
	CHECK_OK(gdr_put(first, first, 8, pe));
	told(gdr_uint64_iput(w, s, PTRDIFF_MAX, 1, 3, pe), "misuse.c:");
	told(gdr_uint64_iput(w, s, PTRDIFF_MIN, 1, 3, pe), "the stride of dest is -");
	told(gdr_uint64_iget(w, s, 1, (ptrdiff_t)1 << 61, 3, pe), "the stride of source is 2305843009213693952");
	told(gdr_uint64_ibput(w, s, 1, 1, (size_t)1 << 61, 2, pe), "2305843009213693952 elements of 8 bytes");
	told(gdr_uint64_ibget(w, s, 1, 1, ((size_t)1 << 61) + 1, 2, pe), "more than the heap's");
	told(gdr_put(w, s, 8, multi_n), "there are PEs 0 to");
	told(gdr_barrier(50), "team is 50");
	CHECK_OK(gdr_quiet());
}
#else
static void misuse(uint8_t *first, uint64_t *w, uint64_t *s)
{
	static const int wrong[] = {99, -1, 1023};
	char text[64];

	(void)first;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(text, sizeof(text), "pe is %d, and there are PEs 0 to %d", wrong[i], multi_n - 1);
		told(gdr_put(w, s, 8, wrong[i]), text);
		CHECK_EQ(gdr_status(), -GDR_EINVAL);
		CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
		told(gdr_get(w, s, 8, wrong[i]), text);
		told(gdr_uint64_p(w, 1, wrong[i]), text);
		told(gdr_uint64_atomic_add(w, 1, wrong[i]), text);
		told(gdr_signal_op(w, 1, GDR_SIGNAL_SET, wrong[i]), text);
		told(gdr_uint64_iput(w, s, 1, 1, 2, wrong[i]), text);
		CHECK_EQ(gdr_uint64_g(s, wrong[i]), 0);
		records++;
		CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
	}
	CHECK_OK(gdr_quiet());
}
#endif

int main(void)
{
	uint8_t *first;
	uint64_t *w, *s;

	multi_begin();
	first = gdr_calloc(1, 64);
	w = gdr_calloc(512, 8);
	s = gdr_calloc(512, 8);
	CHECK(first && w && s);
	CHECK_OK(gdr_barrier_all());
	misuse(first, w, s);
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < 512; i++)
		CHECK_EQ(w[i], 0);
	CHECK_OK(gdr_finalize());
	return 0;
}
