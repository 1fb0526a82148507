/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong arguments in a real job, from host threads of the host device. Checked: what lies in front of the first object
 * is the library's, all of it, and steps that wrap round are seen. Unchecked: a PE that there is none of is refused. In
 * both a quiet says that an operation was refused, and a call on a stream is refused by its own name.
 *
 *	misuse names	checked: functions that share an operation, each by its own name
 *	misuse latched	which refusals a quiet says */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

static struct gdr_error e[256];
static int records;

__attribute__((unused)) static void told(int ret, const char *words)
{
	CHECK_EQ(ret, -GDR_EINVAL);
	CHECK_EQ(gdr_errors(e, 256), ++records);
	if (!strstr(e[records - 1].text, words))
		multi_fail(__FILE__, __LINE__, "not \"%s\": %s", words, e[records - 1].text);
}

/* A refusal names the call by the whole of its name. */
static void told_call(int ret, const char *call, const char *words)
{
	char name[64];

	told(ret, words);
	snprintf(name, sizeof(name), "%s ", call);
	if (strncmp(e[records - 1].text, name, strlen(name)))
		multi_fail(__FILE__, __LINE__, "not of %s: %s", call, e[records - 1].text);
}

static void wrong_forms(uint64_t *w)
{
	const char *cmp = "cmp is 77";
	uint64_t seen;

	told_call(gdr_signal_wait_until(w, 77, 1), "gdr_signal_wait_until", cmp);
	told_call(gdr_signal_wait_until_from(w, 77, 1, 0), "gdr_signal_wait_until_from", cmp);
	told_call(gdr_signal_wait_until_for(w, 77, 1, 1000), "gdr_signal_wait_until_for", cmp);
	told_call(gdr_signal_wait_until_from_for(w, 77, 1, 0, 1000), "gdr_signal_wait_until_from_for", cmp);
	told_call(gdr_signal_wait_until_seen(w, 77, 1, &seen), "gdr_signal_wait_until_seen", cmp);
	told_call(gdr_signal_wait_until_from_seen(w, 77, 1, 0, &seen), "gdr_signal_wait_until_from_seen", cmp);
	told_call(gdr_uint64_wait_until(w, 77, 1), "gdr_TYPE_wait_until", cmp);
	told_call(gdr_uint64_wait_until_for(w, 77, 1, 1000), "gdr_TYPE_wait_until_for", cmp);
	told_call(gdr_uint64_wait_until_all(w, 2, NULL, 77, 1), "gdr_TYPE_wait_until_all", cmp);
	told_call(gdr_uint64_wait_until_all_vector_for(w, 2, NULL, 77, w, 1000), "gdr_TYPE_wait_until_all_vector_for",
		  cmp);
	CHECK_EQ(gdr_uint64_wait_until_any_for(w, 2, NULL, 77, 1, 1000), SIZE_MAX);
	told_call(gdr_quiet(), "gdr_TYPE_wait_until_any_for", cmp);
	CHECK_EQ(gdr_uint64_wait_until_some_vector(w, 2, (size_t *)w, NULL, 77, w), 0);
	told_call(gdr_quiet(), "gdr_TYPE_wait_until_some_vector", cmp);
}

/* Nobody can send it: refused at once, not at the limit. */
static void from_nobody(uint64_t *w, int pe)
{
	char text[64];
	uint64_t seen;

	snprintf(text, sizeof(text), "pe is %d, and there are PEs 0 to %d", pe, multi_n - 1);
	told_call(gdr_signal_wait_until_from(w, GDR_CMP_NE, 0, pe), "gdr_signal_wait_until_from", text);
	told_call(gdr_signal_wait_until_from_for(w, GDR_CMP_NE, 0, pe, 2000000000), "gdr_signal_wait_until_from_for",
		  text);
	told_call(gdr_signal_wait_until_from_seen(w, GDR_CMP_NE, 0, pe, &seen), "gdr_signal_wait_until_from_seen",
		  text);
}

/* Nothing of it is under way, and the next quiet says so, where nobody looks at the status of the call itself. */
__attribute__((unused)) static void told_twice(int ret, const char *call, const char *words)
{
	told_call(ret, call, words);
	CHECK_EQ(gdr_status(), -GDR_EINVAL);
	CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
	CHECK_OK(gdr_quiet());
}

#ifdef GDR_CHECKED
/* Functions that return no status latch it; quiet takes it. */
static void told_value(size_t out, size_t want, const char *words)
{
	CHECK_EQ(out, want);
	told(gdr_quiet(), words);
}

/* NULL, and what a field of a struct at NULL is. Each would end the process. Volatile: the compiler sees neither. */
static void no_memory(uint64_t *w)
{
	uint64_t *volatile beside = (uint64_t *)8;
	uint64_t *far = beside;
	int *status = (int *)(void *)far, pe = (multi_pe + 1) % multi_n;

	told(gdr_put(w, far, 64, pe), "source 0x8, 64 bytes, lies where NULL does");
	told(gdr_get(NULL, w, 64, pe), "dest is NULL, with 64 bytes");
	told(gdr_uint64_iput(w, far, 1, 1, 3, pe), "source 0x8");
	told(gdr_ctx_uint64_atomic_fetch_add_nbi(0, far, w, 1, pe), "fetch 0x8, 8 bytes, lies");
	told(gdr_uint64_wait_until_all(w, 2, status, GDR_CMP_EQ, 0), "status 0x8, 8 bytes, lies");
	told(gdr_uint64_wait_until_all_vector(w, 2, NULL, GDR_CMP_EQ, NULL), "values is NULL, with 16 bytes");
	told(gdr_uint64_wait_until_all_vector_for(w, 1, NULL, GDR_CMP_EQ, NULL, 1000), "values is NULL");
	told_value(gdr_uint64_wait_until_some(w, 1, NULL, NULL, GDR_CMP_EQ, 0), 0, "indices is NULL, with 8 bytes");
	told_value(gdr_uint64_wait_until_some_for(w, 1, NULL, NULL, GDR_CMP_EQ, 0, 1000), 0, "indices is NULL");
	told_value(gdr_uint64_test_some(w, 1, NULL, NULL, GDR_CMP_EQ, 0), 0, "indices is NULL");
	told_value(gdr_uint64_test_some_vector(w, 1, NULL, NULL, GDR_CMP_EQ, w), 0, "indices is NULL");
	told_value(gdr_uint64_test_some_vector(w, 1, w, NULL, GDR_CMP_EQ, NULL), 0, "values is NULL");
	told_value(gdr_uint64_wait_until_any(w, 1, status, GDR_CMP_EQ, 0), SIZE_MAX, "status 0x8");
	told_value(gdr_uint64_test_any_vector(w, 1, NULL, GDR_CMP_EQ, NULL), SIZE_MAX, "values is NULL");
	told_value((size_t)gdr_uint64_test_all_vector(w, 1, NULL, GDR_CMP_EQ, NULL), 0, "values is NULL");
	CHECK_OK(gdr_uint64_wait_until_all_vector(w, 0, NULL, GDR_CMP_EQ, NULL));
	CHECK_EQ(gdr_uint64_test_some(w, 0, NULL, NULL, GDR_CMP_EQ, 0), 0);
	CHECK_OK(gdr_quiet());
}

/* Of this PE to itself. */
static void moved_within(uint64_t *w)
{
	uint8_t *b = (uint8_t *)w;
	int me = multi_pe;

	told_call(gdr_put(b + 8, b, 16, me), "gdr_put", ", 16 bytes, overlap");
	told_call(gdr_uint64_put(w, w + 1, 2, me), "gdr_put", ", 16 bytes, overlap");
	told_call(gdr_put_nbi(b + 15, b, 16, me), "gdr_put", "overlap");
	told_call(gdr_get(b, b + 1, 16, me), "gdr_get", "overlap");
	told_call(gdr_uint64_get_nbi(w + 1, w, 2, me), "gdr_get", "overlap");
	told_call(gdr_ctx_put(0, b + 8, b, 16, me), "gdr_ctx_put", "overlap");
	told_twice(gdr_put_signal(b, b + 8, 16, w + 2, 1, GDR_SIGNAL_SET, me), "gdr_put_signal", "overlap");
	CHECK_OK(gdr_put(b, b, 16, me));
	CHECK_OK(gdr_get(b, b, 16, me));
	CHECK_OK(gdr_put(b + 8, b, 8, me));
	CHECK_OK(gdr_get(b, b + 8, 8, me));
	CHECK_OK(gdr_quiet());
}

/* Functions that have an operation in common. */
static void wrong_names(uint64_t *w, uint64_t *s)
{
	const char *no_pe = "there are PEs 0 to", *no_team = "team is 50", *no_ctx = "there is no context 77";
	long *odd = (long *)(void *)((char *)w + 4);

	told_call(gdr_put_nbi(w, s, 8, multi_n), "gdr_put", no_pe);
	told_call(gdr_uint64_iput(w, s, 1, 1, 2, multi_n), "gdr_TYPE_iput", no_pe);
	told_call(gdr_uint64_iget_nbi(w, s, 1, 1, 2, multi_n), "gdr_TYPE_iget", no_pe);
	told_call(gdr_uint64_ibput(w, s, 1, 1, 1, 2, multi_n), "gdr_TYPE_ibput", no_pe);
	told_call(gdr_uint64_ibget(w, s, 1, 1, 1, 2, multi_n), "gdr_TYPE_ibget", no_pe);
	told_call(gdr_ctx_put(0, w, s, 8, multi_n), "gdr_ctx_put", no_pe);
	told_call(gdr_ctx_uint64_iput(77, w, s, 1, 1, 2, 0), "gdr_ctx_TYPE_iput", no_ctx);
	told_call(gdr_signal_op(w, 1, GDR_SIGNAL_SET, multi_n), "gdr_signal_op", no_pe);
	told_call(gdr_signal_set(w, 1, multi_n), "gdr_signal_set", no_pe);
	told_call(gdr_ctx_signal_add(0, w, 1, multi_n), "gdr_ctx_signal_add", no_pe);
	CHECK_EQ(gdr_signal_fetch((uint64_t *)odd), 0);
	told_call(gdr_quiet(), "gdr_signal_fetch", "no multiple of 8");
	told_call(gdr_quiet_pe(multi_n), "gdr_quiet_pe", no_pe);
	told_call(gdr_fence_pe(multi_n), "gdr_fence_pe", no_pe);
	told_call(gdr_ctx_quiet(77), "gdr_ctx_quiet", no_ctx);
	told_call(gdr_ctx_fence(77), "gdr_ctx_fence", no_ctx);
	told_call(gdr_ctx_quiet_pe(0, multi_n), "gdr_ctx_quiet_pe", no_pe);
	told_call(gdr_ctx_fence_pe(0, multi_n), "gdr_ctx_fence_pe", no_pe);
	told_call(gdr_set_lock(odd), "gdr_set_lock", "no multiple of 8");
	told_call(gdr_test_lock(odd), "gdr_test_lock", "no multiple of 8");
	told_call(gdr_clear_lock(odd), "gdr_clear_lock", "no multiple of 8");
	told_call(gdr_barrier(50), "gdr_barrier", no_team);
	told_call(gdr_team_sync(50), "gdr_team_sync", no_team);
	told_call(gdr_uint64_collect(50, w, s, 1), "gdr_TYPE_collect", no_team);
	told_call(gdr_uint64_fcollect(50, w, s, 1), "gdr_TYPE_fcollect", no_team);
	told_call(gdr_uint64_alltoalls(50, w, s, 1, 1, 1), "gdr_TYPE_alltoalls", no_team);
	told_call(gdr_uint64_sum_inscan(50, w, s, 1), "gdr_TYPE_OP_inscan", no_team);
	told_call(gdr_uint64_sum_exscan(50, w, s, 1), "gdr_TYPE_OP_exscan", no_team);
}

/* Operations that were not begun, and PEs that there are none of; then what is refused by the call's status alone. */
static void not_begun(uint8_t *first, uint64_t *w, uint64_t *s)
{
	uint64_t *odd = (uint64_t *)(void *)((char *)w + 4), own[8] = {0}, *volatile null = NULL;
	int pe = (multi_pe + 1) % multi_n;

	told_twice(gdr_int_p((int *)w, 1, 5000), "gdr_TYPE_p", "pe is 5000");
	told_twice(gdr_get(w, s, 8, multi_n), "gdr_get", "there are PEs 0 to");
	told_twice(gdr_uint64_p(own, 1, pe), "gdr_TYPE_p", "is not within the symmetric heap");
	told_twice(gdr_get(w, own, 8, pe), "gdr_get", "is not within the symmetric heap");
	told_twice(gdr_put(first - 1, s, 8, pe), "gdr_put", "over the library's own words");
	told_twice(gdr_uint64_put(w, s, SIZE_MAX / 8 + 2, pe), "gdr_put", "elements of 8 bytes");
	told_twice(gdr_uint64_iput(w, s, PTRDIFF_MAX, 1, 3, pe), "gdr_TYPE_iput", "the stride of dest");
	told_twice(gdr_uint64_atomic_add(odd, 1, pe), "gdr_TYPE_atomic_OP", "no multiple of 8");
	told_twice(gdr_signal_set(odd, 1, pe), "gdr_signal_set", "no multiple of 8");
	told_twice(gdr_put_signal(w, s, 8, odd, 1, GDR_SIGNAL_SET, pe), "gdr_put_signal", "no multiple of 8");
	told_twice(gdr_ctx_put(77, w, s, 8, pe), "gdr_ctx_put", "there is no context 77");
	told_twice(gdr_signal_wait_until_from(w, GDR_CMP_NE, 0, multi_n), "gdr_signal_wait_until_from", "PEs 0 to");
	told_twice(gdr_fence_pe(multi_n), "gdr_fence_pe", "there are PEs 0 to");
	told_call(gdr_quiet_pe(multi_n), "gdr_quiet_pe", "there are PEs 0 to");
	told_call(gdr_put(w, null, 64, pe), "gdr_put", "source is NULL");
	told_call(gdr_signal_op(w, 1, 9, pe), "gdr_signal_op", "op is 9");
	told_call(gdr_uint64_wait_until(w, 77, 1), "gdr_TYPE_wait_until", "cmp is 77");
	told_call(gdr_team_sync(50), "gdr_team_sync", "team is 50");
	told_call(gdr_set_lock((long *)odd), "gdr_set_lock", "no multiple of 8");
	CHECK_OK(gdr_status());
}

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
	from_nobody(w, -1);
	from_nobody(w, multi_n);
	wrong_forms(w);
	CHECK_EQ(gdr_uint64_test(w, 77, 1), 0);
	told_call(gdr_quiet(), "gdr_TYPE_test", "cmp is 77");
	CHECK_EQ(gdr_uint64_test_any_vector(w, 2, NULL, 77, w), SIZE_MAX);
	told_call(gdr_quiet(), "gdr_TYPE_test_any_vector", "cmp is 77");
	CHECK_OK(gdr_quiet());
	no_memory(w);
	moved_within(w);
}
#else
static void wrong_names(uint64_t *w, uint64_t *s)
{
	(void)w, (void)s;
}

/* In what takes a PE to wait for: by queue it is refused; where all is mapped there is nothing to wait for. */
static void no_pe_to_wait_for(gdr_ctx_t ctx, int pe, int want)
{
	CHECK_EQ(gdr_quiet_pe(pe), want); /* which takes what it latched */
	CHECK_EQ(gdr_ctx_quiet_pe(0, pe), want);
	CHECK_EQ(gdr_ctx_quiet_pe(ctx, pe), want);
	CHECK_OK(gdr_status());
	CHECK_EQ(gdr_fence_pe(pe), want);
	CHECK_EQ(gdr_status(), want);
	CHECK_EQ(gdr_quiet(), want);
	CHECK_EQ(gdr_ctx_fence_pe(0, pe), want);
	CHECK_EQ(gdr_ctx_fence_pe(ctx, pe), want);
	CHECK_EQ(gdr_quiet(), want);
	records += want ? 6 : 0;
	CHECK_EQ(gdr_errors(e, 256), records);
}

static int by_queue_alone(void)
{
	const char *transports = getenv("GDR_TRANSPORTS");

	return transports && !strcmp(transports, "nic");
}

/* -1 is all PEs; a number that no context has is the default one. */
static void nobody_to_wait_for(const uint64_t *w)
{
	int want = by_queue_alone() ? -GDR_EINVAL : 0;
	gdr_ctx_t ctx;

	for (int pe = 0; pe < multi_n; pe++)
		want = gdr_host_ptr(w, pe) ? want : -GDR_EINVAL;
	CHECK_OK(gdr_ctx_create(GDR_CTX_GPU | GDR_CTX_N_QUEUES(1), &ctx));
	no_pe_to_wait_for(ctx, multi_n, want);
	no_pe_to_wait_for(ctx, 1023, want);
	CHECK_OK(gdr_quiet_pe(-1));
	CHECK_OK(gdr_fence_pe(-1));
	CHECK_OK(gdr_ctx_quiet(77));
	CHECK_OK(gdr_ctx_fence(77));
	CHECK_OK(gdr_status());
}

/* What is refused by the status of the call alone, as in the checked build. */
static void not_begun(uint8_t *first, uint64_t *w, uint64_t *s)
{
	uint64_t own[8] = {0};
	int pe = (multi_pe + 1) % multi_n;

	(void)first;
	told_call(gdr_signal_op(w, 1, 9, pe), "gdr_signal_op", "op is 9");
	told_call(gdr_put_signal(w, s, 8, w, 1, 9, pe), "gdr_put_signal", "op is 9");
	if (by_queue_alone())
		told_call(gdr_put(w, own, sizeof(own), pe), "gdr_put", "is neither in the symmetric heap nor");
	told_call(gdr_uint64_wait_until(w, 77, 1), "gdr_TYPE_wait_until", "cmp is 77");
	told_call(gdr_team_sync(50), "gdr_team_sync", "team is 50");
	CHECK_OK(gdr_status());
}

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
		from_nobody(w, wrong[i]);
		CHECK_EQ(gdr_status(), -GDR_EINVAL);
		CHECK_EQ(gdr_quiet(), -GDR_EINVAL);
	}
	wrong_forms(w);
	nobody_to_wait_for(w);
	CHECK_OK(gdr_quiet());
}
#endif

#define SAYS(call, status, words)                                                                  \
	do {                                                                                       \
		said_begin();                                                                      \
		CHECK_EQ(call, status);                                                            \
		said_expect(words, NULL);                                                          \
	} while (0)
#define REFUSED(call, words) SAYS(call, -GDR_EINVAL, words)

static void wrong_on_streams(int *w, uint64_t *word)
{
	gdr_stream_t stream, gone;

	CHECK_OK(gdr_stream_create(&gone));
	CHECK_OK(gdr_stream_create(&stream));
	CHECK_OK(gdr_stream_destroy(gone));
	REFUSED(gdr_int_put_on_stream(w, w, 1, multi_n, stream), "gdr_put_on_stream: there is no PE ");
	REFUSED(gdr_int_put_nbi_on_stream(w, w, 1, multi_n, stream), "gdr_put_nbi_on_stream: there is no PE ");
	REFUSED(gdr_int_get_nbi_on_stream(w, w, 1, -1, stream), "gdr_get_nbi_on_stream: there is no PE -1");
	REFUSED(gdr_int_iput_on_stream(w, w, 1, 1, 1, -1, stream), "gdr_TYPE_iput_on_stream: there is no PE -1");
	REFUSED(gdr_int_p_on_stream(w, 1, -1, stream), "gdr_TYPE_p_on_stream: there is no PE -1");
	REFUSED((gdr_int_g_on_stream(w, -1, stream), gdr_quiet()), "gdr_TYPE_g_on_stream: there is no PE -1");
	REFUSED(gdr_int_put_signal_nbi_on_stream(w, w, 1, word, 1, 9, 0, stream),
		"gdr_put_signal_nbi_on_stream: there is no signal operation 9");
	REFUSED(gdr_signal_op_on_stream(word, 1, 9, 0, stream),
		"gdr_signal_op_on_stream: there is no signal operation 9");
	REFUSED(gdr_int_wait_until_on_stream(w, 9, 0, stream),
		"gdr_TYPE_wait_until_on_stream: there is no comparison 9");
	REFUSED(gdr_int_wait_until_all_on_stream(w, 2, NULL, 9, 0, stream),
		"gdr_TYPE_wait_until_all_on_stream: there is no comparison 9");
	REFUSED(gdr_int_wait_until_all_vector_on_stream(w, 2, NULL, 9, w, stream),
		"gdr_TYPE_wait_until_all_vector_on_stream: there is no comparison 9");
	REFUSED(gdr_signal_wait_until_on_stream(word, 9, 0, stream), "gdr_signal_wait_until_on_stream or ");
	REFUSED(gdr_int_broadcast_on_stream(GDR_TEAM_WORLD, w, w, 1, 99, stream),
		"gdr_TYPE_broadcast_on_stream: root 99");
	REFUSED(gdr_barrier_on_stream(50, stream), "gdr_barrier_on_stream: this PE is in no team 50");
	REFUSED(gdr_quiet_on_stream(gone), "gdr_quiet_on_stream: no such stream");
	CHECK_OK(gdr_stream_destroy(stream));
}

int main(int argc, char **argv)
{
	uint8_t *first;
	uint64_t *w, *s;

	multi_begin();
	first = gdr_calloc(1, 64);
	w = gdr_calloc(512, 8);
	s = gdr_calloc(512, 8);
	CHECK(first && w && s);
	CHECK_OK(gdr_barrier_all());
	if (argc > 1 && !strcmp(argv[1], "names"))
		wrong_names(w, s);
	else if (argc > 1)
		not_begun(first, w, s);
	else
		misuse(first, w, s);
	wrong_on_streams((int *)w, w);
	CHECK_OK(gdr_barrier_all());
	for (int i = 0; i < 512; i++)
		CHECK_EQ(w[i], 0);
	CHECK_OK(gdr_finalize());
	SAYS(gdr_quiet_on_stream(NULL), -GDR_ESTATE, "gdr_quiet_on_stream: the library is not initialised");
	return 0;
}
