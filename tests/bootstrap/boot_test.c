// SPDX-License-Identifier: BSD-3-Clause
/* One PE of a job that exercises the bootstrap; run under a launcher, or alone.
 *
 *   boot_test [open MS] [rounds N] [sizes] [late PE MS] [barrier] [reopen N] [gatherv]
 *             [cycles N] [mismatch] [mismatch_long] [fate HOW PE] [expect CODE] [abort CODE] [timeout MS]
 *             [ls]
 *
 * `open`, the first if at all, has the limit of the opening.
 * Words are done in order. `fate` makes PE die or stall before the next word:
 * HOW is kill, stop, exit0, exit3 (without finalize), sleep. `expect` says
 * which code the last word must end with on the PEs that live (0: success).
 * Exit: 0 all as expected, 1 not. */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gdr/status.h>
#include <pmix.h>

#include "bootstrap/boot.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"

static struct gdr_bootstrap *boot;
static struct gdri_options opt;
static int limit_ms = 20000;
static int failures;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(int ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

#define CHECK(ok, ...)                                                                         \
	do {                                                                                   \
		if (!(ok)) {                                                                   \
			failures++;                                                            \
			fprintf(stderr, "boot_test[%d] %d: ", boot ? boot->pe : -1, __LINE__); \
			fprintf(stderr, __VA_ARGS__);                                          \
			fprintf(stderr, "\n");                                                 \
		}                                                                              \
	} while (0)

/* What PE pe contributes at byte i of exchange x: no two PEs or exchanges alike. */
static unsigned char pattern(int pe, unsigned x, size_t i)
{
	uint64_t z = ((uint64_t)(unsigned)pe << 40) ^ ((uint64_t)x << 24) ^ i;

	if (x % 4 == 3)
		return (unsigned char)pe; /* compressible: PMIx may pack such values */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return (unsigned char)(z >> 33);
}

static int exchange(size_t len, unsigned x)
{
	size_t n = (size_t)boot->n_pes, i, bad = 0;
	unsigned char *send = malloc(len), *recv = malloc(len * n);
	int rc, pe;

	if (!send || !recv)
		abort();
	for (i = 0; i < len; i++)
		send[i] = pattern(boot->pe, x, i);
	memset(recv, 0xee, len * n);
	rc = boot->allgather(boot, send, recv, len, limit_ms);
	for (pe = 0; !rc && pe < boot->n_pes; pe++)
		for (i = 0; i < len; i++)
			bad += recv[(size_t)pe * len + i] != pattern(pe, x, i);
	CHECK(!bad, "%zu wrong bytes of %zu in exchange %u", bad, len * n, x);
	free(send);
	free(recv);
	return rc;
}

static int do_rounds(unsigned n)
{
	unsigned x;
	int rc = 0;

	for (x = 0; x < n && !rc; x++)
		rc = exchange(1 + (x * 37u) % 600u, x);
	return rc;
}

static int do_sizes(void)
{
	static const size_t sizes[] = {1, 7, 64, 4095, 4096, 65537, 262144, 1048576};
	unsigned i;
	int rc = 0;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !rc; i++)
		rc = exchange(sizes[i], i);
	return rc;
}

/* PE `late` enters ms later; nobody may leave earlier than it enters, by the clock of the machine that all of them,
 * in whatever network namespace, run on. */
static int do_late(int late, int ms)
{
	double t[2], *all = malloc(sizeof(t) * (size_t)boot->n_pes);
	int rc;

	if (!all)
		abort();
	rc = boot->barrier(boot, limit_ms);
	if (boot->pe == late)
		nap(ms);
	t[0] = now();
	if (!rc)
		rc = boot->barrier(boot, limit_ms);
	t[1] = now();
	if (!rc)
		rc = boot->allgather(boot, t, all, sizeof(t), limit_ms);
	if (!rc && late < boot->n_pes)
		CHECK(t[1] >= all[2 * late], "left a barrier %.3f s before PE %d entered it",
		      all[2 * late] - t[1], late);
	free(all);
	return rc;
}

static int do_gatherv(void)
{
	size_t len = boot->pe == 1 ? 0 : 1000u + 300000u * (unsigned)(boot->pe % 5), i, bad = 0;
	unsigned char *send = malloc(len + 1);
	struct gdri_gathered g;
	int rc, pe;

	if (!send)
		abort();
	for (i = 0; i < len; i++)
		send[i] = pattern(boot->pe, 1000, i);
	rc = gdri_bootstrap_allgatherv(boot, send, len, 4u << 20, &g, limit_ms);
	for (pe = 0; !rc && pe < boot->n_pes; pe++) {
		len = pe == 1 ? 0 : 1000u + 300000u * (unsigned)(pe % 5);
		CHECK(g.offset[pe + 1] - g.offset[pe] == len, "length of PE %d is %zu", pe,
		      g.offset[pe + 1] - g.offset[pe]);
		for (i = 0; i < len; i++)
			bad += g.data[g.offset[pe] + i] != pattern(pe, 1000, i);
	}
	CHECK(!bad, "%zu wrong bytes", bad);
	if (!rc)
		gdri_gathered_free(&g);
	free(send);
	return rc;
}

/* PE 0 calls with another length: all must be told. */
static int do_mismatch(size_t len)
{
	unsigned char *all = calloc((size_t)boot->n_pes, len), *mine = calloc(1, len);
	int rc;

	if (!all || !mine)
		abort();
	rc = boot->allgather(boot, mine, all, boot->pe ? len : 8, limit_ms);
	free(all);
	free(mine);
	return rc;
}

/* Without a launcher: RANK, WORLD_SIZE and the file by which the id comes to all; for each open another. */
static int open_by_id(const char *file, struct gdri_boot_how *how)
{
	static int nth;
	int pe = atoi(getenv("RANK")), n = atoi(getenv("WORLD_SIZE")), rc = 0, left = limit_ms / 10;
	unsigned char id[GDRI_UID_BYTES];
	char name[2][320];
	FILE *f = NULL;

	snprintf(name[0], sizeof(name[0]), "%.300s.%d", file, nth);
	snprintf(name[1], sizeof(name[1]), "%.300s.%d.new", file, nth++);
	if (pe == atoi(getenv("ID_RANK") ? getenv("ID_RANK") : "0")) {
		rc = gdri_boot_uniqueid_create(id, "");
		f = rc ? NULL : fopen(name[1], "w");
		if (!f || fwrite(id, sizeof(id), 1, f) != 1 || fclose(f) || rename(name[1], name[0]))
			abort();
	} else {
		while (!(f = fopen(name[0], "r")) && left--)
			nap(10);
		if (!f || fread(id, sizeof(id), 1, f) != 1)
			return -GDR_ETIMEOUT;
		fclose(f);
	}
	how->uniqueid = id;
	how->pe = pe;
	how->n_pes = n;
	return gdri_bootstrap_open(&boot, how, limit_ms);
}

static bool is_in_table(const char *name)
{
#define NAME(name) #name,
	static const char *const names[] = {GDRI_BOOT_PASSED(NAME) GDRI_BOOT_NAMED(NAME) NULL};
#undef NAME
	int i;

	for (i = 0; names[i] && strcmp(names[i], name); i++)
		;
	return names[i];
}

static int do_open(void)
{
	const char *file = getenv("ID_FILE");
	struct gdri_boot_how how = {.opt = &opt};
	int rc = gdri_options_read(&opt, NULL);

	if (!rc)
		rc = file ? open_by_id(file, &how) : gdri_bootstrap_open(&boot, &how, limit_ms);
	if (rc) {
		fprintf(stderr, "boot_test: open: %d\n", rc);
		return rc;
	}
	gdri_log_set_pe(boot->pe);
	CHECK(is_in_table(boot->name), "%s is no row of bootstrap/boot.h", boot->name);
	CHECK(boot->version == GDR_BOOTSTRAP_VERSION && boot->size == sizeof(*boot), "version");
	CHECK(boot->pe >= 0 && boot->pe < boot->n_pes && boot->hostname[0], "pe, n_pes, hostname");
	return 0;
}

/* In front of PMIx's own: counts what grows in all servers, keys and values of another size than before. */
static int new_values;

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
	static struct {
		char key[32];
		size_t size;
	} seen[1024];
	pmix_status_t (*put)(pmix_scope_t, const char *, pmix_value_t *);
	size_t i = 0;

	while (seen[i].key[0] && (strcmp(seen[i].key, key) || seen[i].size != val->data.bo.size) && i < 1023)
		i++;
	if (!seen[i].key[0] || i == 1023) {
		snprintf(seen[i].key, sizeof(seen[i].key), "%s", key);
		seen[i].size = val->data.bo.size;
		new_values++;
	}
	*(void **)&put = dlsym(RTLD_NEXT, "PMIx_Put");
	return put ? put(scope, key, val) : PMIX_ERR_NOT_FOUND;
}

static int do_reopen(int n)
{
	int rc = 0;

	while (n-- > 0 && !rc) {
		boot->finalize(boot, limit_ms);
		boot = NULL;
		rc = do_open();
		if (!rc)
			rc = do_rounds(3);
		if (!rc)
			rc = boot->barrier(boot, limit_ms);
	}
	return rc;
}

/* Servers keep no more for a program that opens often; but a value for each round, of which an opening has four, where
 * clients keep what they read (PMIx 5). */
static int do_cycles(int n)
{
	const char *store = getenv("PMIX_GDS_MODULE");
	int rc = do_reopen(2), before = new_values, each = store && !strncmp(store, "ds", 2) ? 0 : 4;

	if (!rc)
		rc = do_reopen(n);
	before += each * n;
	CHECK(new_values == before, "%d openings left %d values more in the servers", n, new_values - before);
	return rc;
}

static void meet_fate(const char *how, int pe)
{
	if (boot->pe != pe)
		return;
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	else if (!strcmp(how, "stop"))
		raise(SIGSTOP);
	else if (!strcmp(how, "exit0"))
		_exit(0);
	else if (!strcmp(how, "exit3"))
		_exit(3);
	else
		nap(20000);
}

/* Takes the words of one step off argv; returns the step's code. */
static int step(char ***argv)
{
	char **a = *argv;
	const char *w = *a++;
	int rc = 0;

	if (!strcmp(w, "rounds")) {
		rc = do_rounds((unsigned)atoi(*a++));
	} else if (!strcmp(w, "sizes")) {
		rc = do_sizes();
	} else if (!strcmp(w, "late")) {
		rc = do_late(atoi(a[0]) < 0 ? boot->n_pes - 1 : atoi(a[0]), atoi(a[1]));
		a += 2;
	} else if (!strcmp(w, "barrier")) {
		rc = boot->barrier(boot, limit_ms);
	} else if (!strcmp(w, "reopen")) {
		rc = do_reopen(atoi(*a++));
	} else if (!strcmp(w, "cycles")) {
		rc = do_cycles(atoi(*a++));
	} else if (!strcmp(w, "gatherv")) {
		rc = do_gatherv();
	} else if (!strcmp(w, "mismatch")) {
		rc = do_mismatch(16);
	} else if (!strcmp(w, "mismatch_long")) {
		rc = do_mismatch(4096);
	} else if (!strcmp(w, "timeout")) {
		limit_ms = atoi(*a++);
	} else if (!strcmp(w, "fate")) {
		meet_fate(a[0], atoi(a[1]));
		a += 2;
	} else if (!strcmp(w, "abort")) {
		if (boot->pe == boot->n_pes - 1)
			rc = boot->abort(boot, atoi(*a), "asked for by boot_test");
		a++;
		nap(20000); /* the launcher ends us */
	} else if (!strcmp(w, "ls")) {
		printf("PE %d of %d on %s node %d by %s pid %d\n", boot->pe, boot->n_pes,
		       boot->hostname, boot->node, boot->name, (int)getpid());
		fflush(stdout);
	} else {
		fprintf(stderr, "boot_test: unknown word %s\n", w);
		exit(2);
	}
	*argv = a;
	return rc;
}

static void run_steps(char **argv)
{
	double begin;
	int rc, want;

	while (*argv) {
		begin = now();
		rc = step(&argv);
		want = 0;
		if (*argv && !strcmp(*argv, "expect")) {
			want = atoi(argv[1]);
			argv += 2;
		}
		CHECK(rc == want, "code %d, expected %d", rc, want);
		CHECK(now() - begin < limit_ms / 1000.0 + 10 || boot->n_pes == 1,
		      "took %.1f s with a limit of %d ms", now() - begin, limit_ms);
	}
}

int main(int argc, char **argv)
{
	(void)argc;
	if (getenv("BOOT_TEST_VERBOSE"))
		gdri_log_set_level(GDRI_LOG_DEBUG);
	argv++;
	if (*argv && !strcmp(*argv, "open")) {
		limit_ms = atoi(argv[1]);
		argv += 2;
	}
	if (do_open())
		return 1;
	limit_ms = 20000;
	run_steps(argv);
	if (boot)
		boot->finalize(boot, limit_ms);
	return failures != 0;
}
