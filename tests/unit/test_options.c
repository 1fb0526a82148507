// SPDX-License-Identifier: BSD-3-Clause
/* The option table, its parsers, and what is said about wrong values. */
#define _GNU_SOURCE /* CPU_SET */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/core/options.h"
#include "runtime/core/parse.h"

/* Runs the parser with stderr caught in `text`. */
enum { TRANSPORT_NIC = 2, TRANSPORT_OFI = 4 }; /* the first rows of runtime/net/net.h */

static int read_caught(struct gdri_options *opt, char *const *env, char *text, size_t room)
{
	int p[2], saved = dup(2), ret;
	ssize_t n;

	assert_int_equal(pipe(p), 0);
	dup2(p[1], 2);
	ret = gdri_options_read(opt, env);
	dup2(saved, 2);
	close(saved);
	close(p[1]);
	n = read(p[0], text, room - 1);
	text[n > 0 ? n : 0] = 0;
	close(p[0]);
	return ret;
}

static void defaults_are_in_range(void **state)
{
	char *env[] = {NULL}, text[4096];
	struct gdri_options o;

	(void)state;
	assert_int_equal(read_caught(&o, env, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(gdri_options_check(&o), 0);
	assert_int_equal(o.heap_size, 256 << 20);
	assert_int_equal(o.transports, GDRI_TRANSPORT_P2P | TRANSPORT_NIC | TRANSPORT_OFI);
	assert_int_equal(o.timeout_ms, 30000);
	assert_int_equal(o.gid_index, -1);
	assert_int_equal(o.pkey, 0xffff);
	assert_int_equal(o.cq, GDRI_CQ_RING); /* keeps the first error */
	assert_string_equal(o.nic, "");
}

static void values_are_taken(void **state)
{
	char *env[] = {"GDR_HEAP_SIZE=3g", "GDR_TRANSPORTS=nic", "GDR_TIMEOUT=2s", "GDR_GID_INDEX=0x3",
		       "GDR_CQ=one", "GDR_NIC=mlx5_1:2", "HOME=/", "GDRCOPY_ENABLE_LOGGING=1", NULL};
	char text[4096];
	struct gdri_options o;

	(void)state;
	assert_int_equal(read_caught(&o, env, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(o.heap_size, 3ll << 30);
	assert_int_equal(o.transports, TRANSPORT_NIC);
	assert_int_equal(o.timeout_ms, 2000);
	assert_int_equal(o.gid_index, 3);
	assert_int_equal(o.cq, GDRI_CQ_ONE);
	assert_string_equal(o.nic, "mlx5_1:2");
}

static const struct {
	const char *name, *kind;
} kinds[] = {
#define GDRI_OPTION(NAME, field, kind, def, min, max, unit, text) {#NAME, #kind},
#include "runtime/core/options.def"
#undef GDRI_OPTION
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Every option refuses each of these, whatever its kind; the strings are apart. */
static void nonsense_is_refused_by_every_option(void **state)
{
	static const char *const values[] = {"",	"abc",	 "-2",
					     "1e99",	"18446744073709551616",
					     "1gg",	"1 ",	 " 1",
					     "+1",	"0x",	 "99999999999999999999999999999999999",
					     "1,",	"p2p,,nic", "p2p,p2p",
					     "\xff",	"--",	 "1.5",
					     "0x1g2"};
	char why[200];
	struct gdri_options o, before;
	size_t i, j, tried = 0;

	(void)state;
	memset(&o, 0x5a, sizeof(o));
	before = o;
	for (i = 0; i < N_KINDS; i++) {
		if (!strcmp(kinds[i].kind, "string"))
			continue;
		for (j = 0; j < sizeof(values) / sizeof(values[0]); j++) {
			why[0] = 0;
			if (gdri_option_set(&o, kinds[i].name, values[j], why, sizeof(why)) != -GDR_EOPTION)
				fail_msg("GDR_%s=%s was accepted", kinds[i].name, values[j]);
			assert_true(strlen(why) > 10);
			tried++;
		}
	}
	assert_memory_equal(&o, &before, sizeof(o));
	assert_true(tried > 18 * 15);
}

/* As docs/options.md has it: the default, where that is empty. */
static void nothing_is_a_value(void **state)
{
	static const struct {
		const char *name, *def;
	} all[] = {
#define GDRI_OPTION(NAME, field, kind, def, min, max, unit, text) {#NAME, def},
#include "runtime/core/options.def"
#undef GDRI_OPTION
	};
	struct gdri_options o;
	char var[64], text[4096];
	char *env[] = {var, NULL};
	int ret;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		snprintf(var, sizeof(var), "GDR_%s=", all[i].name);
		ret = read_caught(&o, env, text, sizeof(text));
		if (!ret)
			ret = gdri_options_check(&o);
		if (ret != (*all[i].def ? -GDR_EOPTION : 0))
			fail_msg("%s: %d %s", var, ret, text);
	}
}

static void strings_are_bounded(void **state)
{
	char long_value[GDRI_OPTION_TEXT_MAX + 1], why[200];
	struct gdri_options o;

	(void)state;
	memset(long_value, 'x', sizeof(long_value));
	long_value[GDRI_OPTION_TEXT_MAX] = 0;
	assert_int_equal(gdri_option_set(&o, "NIC", long_value, why, sizeof(why)), -GDR_EOPTION);
	long_value[GDRI_OPTION_TEXT_MAX - 1] = 0;
	assert_int_equal(gdri_option_set(&o, "NIC", long_value, why, sizeof(why)), 0);
	assert_int_equal(gdri_option_set(&o, "NIC", "a\nb", why, sizeof(why)), -GDR_EOPTION);
}

static void limits_are_exact(void **state)
{
	char why[200];
	struct gdri_options o;

	(void)state;
	assert_int_equal(gdri_option_set(&o, "QPS_PER_PE", "64", why, sizeof(why)), 0);
	assert_int_equal(gdri_option_set(&o, "QPS_PER_PE", "65", why, sizeof(why)), -GDR_EOPTION);
	assert_int_equal(gdri_option_set(&o, "QPS_PER_PE", "1", why, sizeof(why)), 0);
	assert_int_equal(gdri_option_set(&o, "QPS_PER_PE", "0", why, sizeof(why)), -GDR_EOPTION);
	assert_int_equal(gdri_option_set(&o, "HEAP_SIZE", "4t", why, sizeof(why)), 0);
	assert_int_equal(gdri_option_set(&o, "HEAP_SIZE", "4398046511105", why, sizeof(why)),
			 -GDR_EOPTION);
	assert_int_equal(gdri_option_set(&o, "GID_INDEX", "-1", why, sizeof(why)), 0);
	assert_int_equal(gdri_option_set(&o, "TIMEOUT", "10ms", why, sizeof(why)), 0);
	assert_int_equal(gdri_option_set(&o, "TIMEOUT", "9ms", why, sizeof(why)), -GDR_EOPTION);
	assert_int_equal(gdri_option_set(&o, "NO_SUCH", "1", why, sizeof(why)), -GDR_EOPTION);
}

static void ties_are_checked(void **state)
{
	char *env[] = {NULL}, text[64], why[200];
	struct gdri_options o;

	(void)state;
	read_caught(&o, env, text, sizeof(text));
	assert_int_equal(gdri_option_set(&o, "QP_DEPTH", "1000", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), -GDR_EOPTION);
	assert_non_null(strstr(gdri_log_last_error(), "GDR_QP_DEPTH=1000 is not a power of two: 512 and 1024 are"));
	read_caught(&o, env, text, sizeof(text));
	assert_int_equal(gdri_option_set(&o, "HEAP_MAX", "1m", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), -GDR_EOPTION);
	assert_non_null(strstr(gdri_log_last_error(), "GDR_HEAP_MAX=1048576 is less than the heap's size, "
						      "GDR_HEAP_SIZE=268435456"));
	assert_int_equal(gdri_option_set(&o, "HEAP_MAX", "0", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), 0);
	assert_int_equal(gdri_option_set(&o, "PROXY_CPUS", "0-3,8", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), 0);
	assert_int_equal(gdri_option_set(&o, "PROXY_CPUS", "0-3,x", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), -GDR_EOPTION);
	assert_non_null(strstr(gdri_log_last_error(), "GDR_PROXY_CPUS=\"0-3,x\" is not accepted; it takes auto, any"));
	assert_int_equal(gdri_option_set(&o, "PROXY_CPUS", "auto", why, sizeof(why)), 0);
	assert_int_equal(o.proxy_threads, 1);
	assert_int_equal(gdri_option_set(&o, "PROXY_THREADS", "8", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), 0);
	assert_int_equal(gdri_option_set(&o, "PROXY_THREADS", "0", why, sizeof(why)), -GDR_EOPTION);
	assert_int_equal(gdri_option_set(&o, "PROXY_THREADS", "9", why, sizeof(why)), -GDR_EOPTION);
	assert_int_equal(gdri_option_set(&o, "MTU", "1500", why, sizeof(why)), 0);
	assert_int_equal(gdri_options_check(&o), -GDR_EOPTION);
}

static void errors_name_variable_value_and_range(void **state)
{
	char *env[] = {"GDR_TIMEOUT=1gg", "GDR_CQ=both", NULL}, text[4096];
	struct gdri_options o;

	(void)state;
	assert_int_equal(read_caught(&o, env, text, sizeof(text)), -GDR_EOPTION);
	assert_non_null(strstr(text, "GDR_TIMEOUT=1gg"));
	assert_non_null(strstr(text, "10ms to 1d"));
	assert_non_null(strstr(text, "GDR_CQ=both"));
	assert_non_null(strstr(text, "one|ring"));
	assert_int_equal(o.timeout_ms, 30000); /* the default stays in place */
}

/* 30 may be meant as 30 s and is no longer read as 30 ms. */
static void times_need_a_unit(void **state)
{
	char *env[] = {"GDR_TIMEOUT=30", NULL}, text[4096], why[200];
	struct gdri_options o;
	size_t i, times = 0;

	(void)state;
	assert_int_equal(read_caught(&o, env, text, sizeof(text)), -GDR_EOPTION);
	assert_non_null(strstr(text, "GDR_TIMEOUT=30 is not accepted"));
	assert_non_null(strstr(text, "write 30s or 30ms"));
	for (i = 0; i < N_KINDS; i++) {
		if (strcmp(kinds[i].kind, "time"))
			continue;
		assert_int_equal(gdri_option_set(&o, kinds[i].name, "20000", why, sizeof(why)), -GDR_EOPTION);
		assert_non_null(strstr(why, "20000s or 20000ms"));
		assert_int_equal(gdri_option_set(&o, kinds[i].name, "20s", why, sizeof(why)), 0);
		times++;
	}
	assert_true(times >= 2);
}

/* First in the program: the warning comes once per process. */
static void unknown_names_are_warned_about_once(void **state)
{
	char *env[] = {"GDR_HEAPSIZE=1m", "GDR_ZZZZZZZZZZZZ=1", "GDR_FOO=1", "GDR_NIK=1", "GDR_", NULL}, text[4096];
	struct gdri_options o;

	(void)state;
	assert_int_equal(read_caught(&o, env, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "did you mean GDR_HEAP_SIZE?"));
	assert_non_null(strstr(text, "GDR_FOO is not an option; gdr_info -e"));
	assert_non_null(strstr(text, "GDR_NIK is not an option; did you mean GDR_NIC?"));
	assert_non_null(strstr(text, "GDR_ZZZZZZZZZZZZ is not an option; gdr_info -e"));
	assert_int_equal(read_caught(&o, env, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static void printed_values_parse_back(void **state)
{
	char *none[] = {NULL}, text[64], line[256];
	struct gdri_options a, b;
	char *buf = NULL, why[200], *eq;
	size_t len = 0;
	FILE *f = open_memstream(&buf, &len);

	(void)state;
	read_caught(&a, none, text, sizeof(text));
	assert_int_equal(gdri_option_set(&a, "TRANSPORTS", "nic,p2p", why, sizeof(why)), 0);
	gdri_options_print(f, &a);
	fclose(f);
	memset(&b, 0, sizeof(b));
	f = fmemopen(buf, len, "r");
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		eq = strchr(line, '=');
		*eq = 0;
		assert_int_equal(gdri_option_set(&b, line + 4, eq + 1, why, sizeof(why)), 0);
	}
	fclose(f);
	free(buf);
	assert_int_equal(a.heap_size, b.heap_size);
	assert_int_equal(a.transports, b.transports);
	assert_int_equal(a.timeout_ms, b.timeout_ms);
	assert_int_equal(a.gid_index, b.gid_index);
	assert_int_equal(a.log, b.log);
}

static void parsers(void **state)
{
	uint64_t u;
	int64_t i;
	bool b;

	(void)state;
	assert_true(gdri_parse_u64("18446744073709551615", &u) && u == UINT64_MAX);
	assert_true(gdri_parse_u64("0xFFFFffffFFFFffff", &u) && u == UINT64_MAX);
	assert_false(gdri_parse_u64("0x10000000000000000", &u));
	assert_true(gdri_parse_i64("-9223372036854775807", &i) && i == -INT64_MAX);
	assert_false(gdri_parse_i64("9223372036854775808", &i));
	assert_true(gdri_parse_size("16t", &u) && u == 16ull << 40);
	assert_false(gdri_parse_size("16777216t", &u)); /* 2^64 */
	assert_true(gdri_parse_time("2h", &u) && u == 7200000);
	assert_true(gdri_parse_bool("off", &b) && !b);
	assert_true(gdri_parse_bool("true", &b) && b);
	assert_false(gdri_parse_bool("True", &b));
	assert_false(gdri_parse_bool("2", &b));
	assert_int_equal(gdri_edit_distance("HEAP", "HEAPS"), 1);
	assert_int_equal(gdri_edit_distance("", "abc"), 3);
	assert_int_equal(gdri_edit_distance("kitten", "sitting"), 3);
}

static void expect_nvshmem_heap(bool on_gpu, uint64_t size, uint64_t max)
{
	struct gdri_options opt;

	assert_int_equal(gdri_options_read(&opt, NULL), 0);
	gdri_options_nvshmem_heap(&opt, on_gpu);
	assert_int_equal(opt.heap_size, size);
	assert_int_equal(opt.heap_max, max);
}

/* A program for NVSHMEM: its size and the library's 64 MiB; on a GPU 2 GiB at least, and the heap grows; unless
 * GDR_HEAP_SIZE is set. */
static void the_heap_of_nvshmem(void **state)
{
	static const struct {
		const char *text;
		uint64_t size; /* 0: none, or not a size */
	} sizes[] = {
		{"", 0}, {"nonsense", 0}, {"5x", 0}, {"-1G", 0}, {"1Gx", 0}, {"1048576", 1 << 20}, {"512K", 512 << 10},
		{"64m", 64 << 20}, {"1.5G", 3ull << 29}, {"3GB", 3ull << 30}, {"2e9", 2000000000}, {"1T", 1ull << 40},
	};
	const uint64_t own = 64 << 20, host = 256 << 20, least = 2ull << 30, most = 128ull << 30;
	uint64_t size;
	size_t i;

	(void)state;
	unsetenv("GDR_HEAP_SIZE");
	gdri_log_set_level(GDRI_LOG_ERROR);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		setenv("NVSHMEM_SYMMETRIC_SIZE", sizes[i].text, 1);
		size = sizes[i].size ? sizes[i].size + own : 0;
		expect_nvshmem_heap(false, size ? size : host, 0);
		size = size > least ? size : least;
		expect_nvshmem_heap(true, size, size > most ? size : most);
	}
	setenv("GDR_HEAP_SIZE", "1g", 1);
	expect_nvshmem_heap(true, 1 << 30, 0);
	unsetenv("GDR_HEAP_SIZE");
	unsetenv("NVSHMEM_SYMMETRIC_SIZE");
	setenv("GDR_HEAP_MAX", "8g", 1);
	expect_nvshmem_heap(true, least, 8ull << 30);
	unsetenv("GDR_HEAP_MAX");
}

/* All retries together come before GDR_TIMEOUT, as late as they can, and never later than others have it. */
static void patience_ends_before_waits(void **state)
{
	struct gdri_options opt;
	unsigned int n;

	(void)state;
	gdri_options_read(&opt, (char *[]){NULL});
	assert_int_equal(gdri_ack_timeout(&opt), 19);
	for (opt.retry_count = 0; opt.retry_count <= 7; opt.retry_count++) {
		for (opt.timeout_ms = 10; opt.timeout_ms < 1000000; opt.timeout_ms *= 3) {
			n = gdri_ack_timeout(&opt);
			assert_true(n >= 1 && n <= 20);
			assert_true(gdri_patience(&opt, n) < 1e-3 * (double)opt.timeout_ms);
			assert_true(n == 20 || gdri_patience(&opt, n + 1) >= 1e-3 * (double)opt.timeout_ms);
		}
	}
	opt.ack_timeout = 22;
	assert_int_equal(gdri_ack_timeout(&opt), 22);
}

static void lists_of_cpus(void **state)
{
	static const char *const none[] = {"", "x", "1,", ",1", "3-1", "2,1", "1,1", "0-3,3", "1024", "0-1024", "1-",
					   "-1", "1 2", "1,2\n", "99999999999999999999"};
	cpu_set_t set;

	(void)state;
	assert_true(gdri_parse_cpus("0-3,8,1023", &set));
	assert_int_equal(CPU_COUNT(&set), 6);
	assert_true(CPU_ISSET(0, &set) && CPU_ISSET(3, &set) && CPU_ISSET(8, &set) && CPU_ISSET(1023, &set));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(gdri_parse_cpus(none[i], &set));
	assert_int_equal(CPU_COUNT(&set), 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_names_are_warned_about_once),
		cmocka_unit_test(defaults_are_in_range),
		cmocka_unit_test(values_are_taken),
		cmocka_unit_test(nonsense_is_refused_by_every_option),
		cmocka_unit_test(nothing_is_a_value),
		cmocka_unit_test(strings_are_bounded),
		cmocka_unit_test(limits_are_exact),
		cmocka_unit_test(ties_are_checked),
		cmocka_unit_test(errors_name_variable_value_and_range),
		cmocka_unit_test(times_need_a_unit),
		cmocka_unit_test(printed_values_parse_back),
		cmocka_unit_test(parsers),
		cmocka_unit_test(lists_of_cpus),
		cmocka_unit_test(patience_ends_before_waits),
		cmocka_unit_test(the_heap_of_nvshmem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
