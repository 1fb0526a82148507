/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of host threads take any memory of the process on every path, as source what may only be read; NULL with
 * a length is refused, by queue also memory whose pages do not allow it. "late": what was given up does not touch the
 * caller's memory any more. */
#include "tests/multi/said.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#define MOST (((size_t)1 << 20) + 333)

typedef int put_fn(void *dst, const void *src, size_t len, int pe);
typedef int get_fn(void *dst, const void *src, size_t len, int pe);

static gdr_ctx_t ctx = GDR_CTX_DEFAULT;

static int ctx_put(void *dst, const void *src, size_t len, int pe)
{
	return gdr_host_ctx_put(ctx, dst, src, len, pe);
}

static int ctx_put_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdr_host_ctx_put_nbi(ctx, dst, src, len, pe);
}

static int ctx_get(void *dst, const void *src, size_t len, int pe)
{
	return gdr_host_ctx_get(ctx, dst, src, len, pe);
}

static int ctx_get_nbi(void *dst, const void *src, size_t len, int pe)
{
	return gdr_host_ctx_get_nbi(ctx, dst, src, len, pe);
}

static put_fn *const puts_of[] = {gdr_host_put, gdr_host_put_nbi, ctx_put, ctx_put_nbi};
static get_fn *const gets_of[] = {gdr_host_get, gdr_host_get_nbi, ctx_get, ctx_get_nbi};
#define FORMS (sizeof(puts_of) / sizeof(puts_of[0]))

static void complete(void)
{
	CHECK_OK(gdr_host_quiet());
	if (ctx != GDR_CTX_DEFAULT)
		CHECK_OK(gdr_host_ctx_quiet(ctx));
}

static void fill(uint8_t *p, size_t len, unsigned seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = multi_byte(seed, i);
}

/* One byte in front and one behind stay. */
static void check_arrived(const uint8_t *p, size_t len, unsigned seed)
{
	CHECK_EQ(p[0], 0xee);
	CHECK_EQ(p[len + 1], 0xee);
	for (size_t i = 0; i < len; i++)
		CHECK_EQ(p[i + 1], multi_byte(seed, i));
}

/* To the own part of PE pe's object, and from there back to memory that nobody registered. */
static void there_and_back(uint8_t *object, const uint8_t *src, uint8_t *back, size_t len, unsigned seed, int pe)
{
	uint8_t *part = object + (size_t)multi_pe * (MOST + 2);

	for (size_t form = 0; form < FORMS; form++) {
		memset(part, 0xee, len + 2);
		CHECK_OK(gdr_host_put(part, part, len + 2, pe));
		CHECK_OK(gdr_host_quiet()); /* the next one may go by another queue */
		CHECK_OK(puts_of[form](part + 1, src, len, pe));
		complete();
		memset(back, 0xee, len + 2);
		CHECK_OK(gets_of[form](back + 1, part + 1, len, pe));
		complete();
		check_arrived(back, len, seed);
		CHECK_OK(gdr_host_get(back, part, len + 2, pe));
		check_arrived(back, len, seed);
	}
}

static void lengths(uint8_t *object, int pe)
{
	static const size_t lens[] = {1, 28, 29, 64, 4097, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 512 << 10,
				      MOST};
	uint8_t *src = malloc(MOST), *back = malloc(MOST + 2);

	CHECK(src && back);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		fill(src, lens[i], (unsigned)i);
		there_and_back(object, src, back, lens[i], (unsigned)i, pe);
	}
	free(src);
	free(back);
}

/* A file of this process, mapped for reading. */
static const uint8_t *read_only_file(size_t len, int flags)
{
	char path[] = "/tmp/gdr_any_XXXXXX";
	uint8_t *image = malloc(len);
	int fd = mkstemp(path);
	void *p;

	CHECK(fd >= 0 && image);
	unlink(path);
	fill(image, len, 5);
	CHECK_EQ(write(fd, image, len), (ssize_t)len);
	p = mmap(NULL, len, PROT_READ, flags, fd, 0);
	CHECK(p != MAP_FAILED);
	close(fd);
	free(image);
	return (const uint8_t *)p;
}

struct from {
	uint8_t *dst, *src;
	size_t len;
	int pe, want;
	struct multi_report *report;
};

GDR_KERNEL(put_from, struct from, a)
{
	EXPECT_OK(a.report, gdr_put(a.dst, a.src, a.len, a.pe));
	EXPECT_OK(a.report, gdr_quiet());
}

GDR_KERNEL(get_into, struct from, a)
{
	EXPECT_EQ(a.report, gdr_get(a.src, a.dst, a.len, a.pe), -GDR_EINVAL);
}

/* Registered, it is a source for kernels, too; as destination the NIC's way refuses it. */
static void registered(uint8_t *object, const uint8_t *src, size_t len, int pe, struct multi_report *report)
{
	struct from a = {object + (size_t)multi_pe * (MOST + 2), (uint8_t *)(uintptr_t)src, len, pe, 0, report};
	uint8_t back[4096];
	struct gdr_error e;

	memset(back, 0, len);
	CHECK_OK(gdr_host_put(a.dst, back, len, pe));
	CHECK_OK(gdr_buffer_register(a.src, len));
	RUN(put_from, 1, 1, &a);
	CHECK_OK(gdr_host_get(back, a.dst, len, pe));
	CHECK(!memcmp(back, src, len));
	CHECK_OK(gdr_host_put(a.dst, src, len, pe));
	if (!gdr_host_ptr(object, pe)) {
		int before = gdr_errors(NULL, 0);

		RUN(get_into, 1, 1, &a);
		CHECK_EQ(gdr_errors(NULL, 0), before + 1);
		CHECK(before || (gdr_errors(&e, 1) == 1 && strstr(e.text, "that may be written")));
	}
	CHECK_OK(gdr_buffer_unregister(a.src));
}

static void read_only(uint8_t *object, int pe)
{
	static const uint8_t constant[4000] = "constant";
	struct multi_report *report = multi_report_new();
	const uint8_t *files[2] = {read_only_file(MOST, MAP_PRIVATE), read_only_file(MOST, MAP_SHARED)};
	uint8_t *back = malloc(MOST + 2);

	CHECK(back);
	for (int i = 0; i < 2; i++) {
		there_and_back(object, files[i], back, MOST, 5, pe);
		registered(object, files[i] + 5, 4000, pe, report);
		munmap((void *)(uintptr_t)files[i], MOST);
	}
	registered(object, constant, sizeof(constant), pe, report);
	free(back);
	multi_shared_free(report);
}

/* The NIC knows the first part of it alone. */
static void half_registered(uint8_t *object, int pe)
{
	uint8_t *src = malloc(9000), *back = malloc(9002);

	CHECK(src && back);
	fill(src, 9000, 8);
	CHECK_OK(gdr_buffer_register(src, 4000));
	CHECK_OK(gdr_buffer_register(back, 4000));
	there_and_back(object, src, back, 9000, 8, pe);
	CHECK_OK(gdr_buffer_unregister(src));
	CHECK_OK(gdr_buffer_unregister(back));
	free(src);
	free(back);
}

static void refused(uint8_t *object)
{
	const int pes[] = {-1, multi_n, 99, INT32_MIN};
	uint8_t byte = 7;

	*object = 3;
	for (size_t form = 0; form < FORMS; form++) {
		for (size_t i = 0; i < sizeof(pes) / sizeof(pes[0]); i++) {
			CHECK_EQ(puts_of[form](object, &byte, 1, pes[i]), -GDR_EINVAL);
			CHECK_EQ(gets_of[form](&byte, object, 1, pes[i]), -GDR_EINVAL);
		}
		for (size_t len = 1; len <= 4096; len *= 8) {
			CHECK_EQ(puts_of[form](object, NULL, len, multi_pe), -GDR_EINVAL);
			CHECK_EQ(gets_of[form](NULL, object, len, multi_pe), -GDR_EINVAL);
		}
		CHECK_EQ(puts_of[form](object, (void *)(uintptr_t)-8, 64, multi_pe), -GDR_EINVAL);
		CHECK_EQ(gets_of[form]((void *)(uintptr_t)-8, object, 64, multi_pe), -GDR_EINVAL);
		CHECK_OK(puts_of[form](object, NULL, 0, multi_pe));
		CHECK_OK(gets_of[form](NULL, object, 0, multi_pe));
	}
	CHECK_EQ(gdr_put_on_stream(object, NULL, 64, multi_pe, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_get_on_stream(NULL, object, 64, multi_pe, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_int_iput_on_stream((int *)object, NULL, 1, 1, 4, multi_pe, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_int_iget_on_stream(NULL, (int *)object, 1, 1, 4, multi_pe, NULL), -GDR_EINVAL);
	CHECK_EQ(gdr_put_signal_on_stream(object, NULL, 64, (uint64_t *)object, 1, GDR_SIGNAL_SET, multi_pe, NULL),
		 -GDR_EINVAL);
	CHECK_OK(gdr_host_quiet());
	CHECK_OK(gdr_host_status());
	CHECK_EQ(*object, 3);
	CHECK_EQ(byte, 7);
}

static uint8_t *pages(size_t len, int prot)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	memset(p, 9, len);
	CHECK_EQ(mprotect(p, len, prot), 0);
	return p;
}

/* The library copies by way of its buffers, and looks first: all of the memory, its end, its begin, and a registered
 * buffer that may not be written. */
static void not_allowed(uint8_t *object, int pe)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *constant = pages(MOST, PROT_READ), *none = pages(2 * page, PROT_NONE), byte = 0;
	uint8_t *end = pages(2 * page, PROT_READ | PROT_WRITE), *begin = pages(2 * page, PROT_READ | PROT_WRITE);
	char text[120];

	CHECK_EQ(mprotect(end + page, page, PROT_NONE), 0);
	CHECK_EQ(mprotect(begin, page, PROT_READ), 0);
	said_begin();
	for (size_t form = 0; form < FORMS; form++) {
		CHECK_EQ(gets_of[form](constant, object, 1, pe), -GDR_EINVAL);
		CHECK_EQ(gets_of[form](constant, object, MOST, pe), -GDR_EINVAL);
		CHECK_EQ(gets_of[form](end + 10, object, page, pe), -GDR_EINVAL);
		CHECK_EQ(gets_of[form](begin + page - 1, object, 2, pe), -GDR_EINVAL);
		CHECK_EQ(puts_of[form](object, none, 2 * page, pe), -GDR_EINVAL);
		CHECK_EQ(puts_of[form](object, end + 10, page, pe), -GDR_EINVAL);
	}
	CHECK_OK(gdr_buffer_register(constant, page));
	CHECK_EQ(gdr_host_get(constant + 3, object, 64, pe), -GDR_EINVAL);
	CHECK_OK(gdr_buffer_unregister(constant));
	snprintf(text, sizeof(text), "gdr_host_get: dst %p, 1 bytes from PE %d, is in pages that may not be written",
		 (void *)constant, pe);
	said_expect(text, NULL);
	snprintf(text, sizeof(text), "gdr_host_ctx_put_nbi: src %p, %zu bytes to PE %d, is in pages that may not be "
		 "read", (void *)none, 2 * page, pe);
	CHECK(strstr(said_buf, text));
	CHECK_EQ(constant[0], 9);
	CHECK_OK(gdr_host_status());
	CHECK_OK(gdr_host_get(&byte, object, 1, pe));
	munmap(constant, MOST);
	munmap(none, 2 * page);
	munmap(end, 2 * page);
	munmap(begin, 2 * page);
}

struct worker {
	uint8_t *object;
	unsigned number;
	int pe;
};

/* Of several at once each finds its own bytes. */
static void *work(void *arg)
{
	const struct worker *w = arg;
	size_t len = 20000 + 300000 * (size_t)(w->number % 2);
	uint8_t *mine = malloc(len), *at = w->object + (size_t)multi_pe * (MOST + 2) + w->number * 330000;

	CHECK(mine);
	for (unsigned round = 0; round < 5; round++) {
		fill(mine, len, 10 * w->number + round);
		CHECK_OK(gdr_host_put(at, mine, len, w->pe));
		CHECK_OK(gdr_host_quiet());
		memset(mine, 0, len);
		CHECK_OK(gdr_host_get(mine, at, len, w->pe));
		for (size_t i = 0; i < len; i++)
			CHECK_EQ(mine[i], multi_byte(10 * w->number + round, i));
	}
	free(mine);
	return NULL;
}

static void threads(uint8_t *object, int pe)
{
	struct worker w[3];
	pthread_t t[3];

	for (unsigned i = 0; i < 3; i++) {
		w[i] = (struct worker){object, i, pe};
		CHECK_EQ(pthread_create(&t[i], NULL, work, &w[i]), 0);
	}
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(pthread_join(t[i], NULL), 0);
}

#define LATE 200000u /* bytes: more than the NIC sends before the first answer */

static void check_all(const uint8_t *p, uint8_t want)
{
	for (size_t i = 0; i < LATE; i++)
		CHECK_EQ(p[i], want);
}

/* A signal only asks for it: each thread stops when it is next scheduled. */
static void stop_all_threads(pid_t pid)
{
	char dir[64], name[400], line[256], *end;
	struct dirent *d;
	int running;
	DIR *tasks;
	FILE *f;

	CHECK_EQ(kill(pid, SIGSTOP), 0);
	snprintf(dir, sizeof(dir), "/proc/%d/task", (int)pid);
	do {
		running = 0;
		tasks = opendir(dir);
		CHECK(tasks);
		while ((d = readdir(tasks)) != NULL) {
			snprintf(name, sizeof(name), "%s/%s/stat", dir, d->d_name);
			f = d->d_name[0] == '.' ? NULL : fopen(name, "r");
			if (!f)
				continue;
			end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
			running += !end || end[2] != 'T'; /* behind "pid (name) " */
			fclose(f);
		}
		closedir(tasks);
	} while (running);
}

/* PE 1 stands still: what PE 0 asked of it is given up, and may come to pass when PE 1 goes on; with the bytes that
 * were asked for, and not in memory that is the caller's again. */
static void late(void)
{
	uint8_t *object = (uint8_t *)gdr_calloc(3, LATE), *mine = malloc(LATE), *other = malloc(LATE);
	uint64_t *word = (uint64_t *)gdr_calloc(2, sizeof(*word)), pid = (uint64_t)getpid(), out = 0;
	struct timespec nap = {0, 20000000};
	int tries;

	CHECK(object && word && mine && other);
	memset(object, 3, 3 * LATE);
	memset(mine, 1, LATE);
	memset(other, 2, LATE);
	if (multi_pe)
		CHECK_OK(gdr_host_put(word, &pid, sizeof(pid), 0));
	CHECK_OK(gdr_barrier_all());
	/* not amid the barrier: its limit would go on while PE 1 stands still */
	if (multi_pe)
		__atomic_store_n(word + 1, 1, __ATOMIC_RELEASE); /* alone: PE 0 reads nothing else */
	while (multi_pe)
		pause();
	while (!out)
		CHECK_OK(gdr_host_get(&out, word + 1, sizeof(out), 1));
	stop_all_threads((pid_t)*word);
	CHECK(gdr_host_put(object, mine, LATE, 1) < 0);
	CHECK(gdr_host_get(other, object + 2 * LATE, LATE, 1) < 0);
	CHECK(gdr_host_put(object + LATE, other, LATE, 1) < 0);
	CHECK_EQ(kill((pid_t)*word, SIGCONT), 0);
	for (tries = 0; tries < 1000 && gdr_host_put(object + LATE, other, LATE, 1); tries++)
		nanosleep(&nap, NULL);
	CHECK(tries < 1000);
	check_all(mine, 1);
	check_all(other, 2);
	CHECK_OK(gdr_host_get(mine, object, LATE, 1));
	check_all(mine, 1);
	CHECK_OK(gdr_host_get(mine, object + LATE, LATE, 1));
	check_all(mine, 2);
	CHECK_OK(gdr_host_get(mine, object + 2 * LATE, LATE, 1));
	check_all(mine, 3);
	gdr_global_exit(0); /* the time-out would be the result of finalize */
}

int main(int argc, char **argv)
{
	uint8_t *object;
	int pe;

	multi_begin();
	if (argc > 1 && !strcmp(argv[1], "late"))
		late();
	pe = (multi_pe + 1) % multi_n;
	object = gdr_malloc((size_t)multi_n * (MOST + 2));
	CHECK(object);
	if (gdr_ctx_create(0, &ctx))
		ctx = GDR_CTX_DEFAULT;
	CHECK_OK(gdr_barrier_all());
	refused(object);
	CHECK_OK(gdr_barrier_all()); /* before the others write to it */
	lengths(object, pe);
	read_only(object, pe);
	half_registered(object, pe);
	if (!gdr_host_ptr(object, pe))
		not_allowed(object, pe);
	threads(object, pe);
	CHECK_OK(gdr_finalize());
	if (!multi_pe)
		printf("any_memory: all right on %d PEs\n", multi_n);
	return 0;
}
