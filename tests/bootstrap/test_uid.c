// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap by unique id, its PEs being threads: who is late, missing, a stranger, there twice, or of
 * another job; bytes that are no frames; what stays open. Deaths of processes: boot.uid.*. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "bootstrap/boot.h"
#include "bootstrap/uniqueid/net.h"
#include "bootstrap/uniqueid/wire.h"
#include "runtime/core/log.h"
#include "runtime/core/options.h"
#include "tests/entries.h"

#define LIMIT_MS 20000

static struct gdri_options opt;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(int ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	nanosleep(&t, NULL);
}

struct pe {
	pthread_t thread;
	const unsigned char *id;
	int pe, n, limit_ms, delay_ms, rounds;
	int rc;
	char error[512]; /* the last one that it logged */
};

static int one_round(struct gdr_bootstrap *b, int x)
{
	int mine = b->pe * 1000 + x, all[64], rc, i;

	rc = b->allgather(b, &mine, all, sizeof(mine), LIMIT_MS);
	for (i = 0; !rc && i < b->n_pes; i++) {
		if (all[i] != i * 1000 + x)
			return 1;
	}
	return rc;
}

static int open_by_id(struct gdr_bootstrap **b, const unsigned char *id, int pe, int n, int limit_ms)
{
	struct gdri_boot_how how = {.opt = &opt, .uniqueid = id, .pe = pe, .n_pes = n};

	return gdri_bootstrap_open(b, &how, limit_ms);
}

static void *pe_main(void *arg)
{
	struct pe *p = arg;
	struct gdr_bootstrap *b = NULL;
	int x;

	gdri_log_clear_error();
	nap(p->delay_ms);
	p->rc = open_by_id(&b, p->id, p->pe, p->n, p->limit_ms);
	for (x = 0; !p->rc && x < p->rounds; x++)
		p->rc = one_round(b, x);
	if (!p->rc)
		p->rc = b->barrier(b, LIMIT_MS);
	if (b)
		b->finalize(b, LIMIT_MS);
	snprintf(p->error, sizeof(p->error), "%s", gdri_log_last_error());
	return NULL;
}

static void start(struct pe *p, const unsigned char *id, int pe, int n)
{
	*p = (struct pe){.id = id, .pe = pe, .n = n, .limit_ms = LIMIT_MS, .rounds = 5};
}

static void run(struct pe *p, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&p[i].thread, NULL, pe_main, &p[i]), 0);
	for (int i = 0; i < n; i++)
		pthread_join(p[i].thread, NULL);
}

static void job(unsigned char *id, int n)
{
	struct pe p[16];

	for (int i = 0; i < n; i++)
		start(&p[i], id, i, n);
	run(p, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(p[i].rc, 0);
}

static void make(unsigned char *id)
{
	assert_int_equal(gdri_boot_uniqueid_create(id, "lo"), 0);
}

/* ---- */

static void test_sizes(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	int files = 0;

	(void)state;
	for (int n = 1; n <= 12; n++) {
		make(id);
		job(id, n);
		if (n == 1)
			files = entries("/proc/self/fd");
		assert_int_equal(entries("/proc/self/fd"), files);
	}
}

static void test_id(void **state)
{
	struct gdri_uid a = {.family = 4, .port = 7, .addr = {127, 0, 0, 1}, .token = "0123456789abcde"}, b;
	unsigned char id[GDRI_UID_BYTES];

	(void)state;
	gdri_uid_write(id, &a);
	assert_null(gdri_uid_parse(id, &b));
	assert_memory_equal(&a, &b, sizeof(a));
	for (int bit = 0; bit < 8 * GDRI_UID_BYTES; bit++) {
		id[bit / 8] ^= (unsigned char)(1 << bit % 8);
		assert_non_null(gdri_uid_parse(id, &b));
		id[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	memset(id, 0, sizeof(id));
	assert_string_equal(gdri_uid_parse(id, &b), "it was never filled");
	a.port = 0;
	gdri_uid_write(id, &a);
	assert_non_null(gdri_uid_parse(id, &b));
}

static void test_arguments(void **state)
{
	unsigned char id[GDRI_UID_BYTES] = {0};
	struct gdr_bootstrap *b = NULL;

	(void)state;
	assert_int_equal(open_by_id(&b, id, 0, 1, 1000), -GDR_EINVAL);
	assert_int_equal(gdri_boot_uniqueid_create(id, "no_such_if"), -GDR_ESYSTEM);
	make(id);
	assert_int_equal(open_by_id(&b, id, 2, 2, 1000), -GDR_EINVAL);
	assert_int_equal(open_by_id(&b, id, -1, 2, 1000), -GDR_EINVAL);
	assert_int_equal(open_by_id(&b, id, 0, 0, 1000), -GDR_EINVAL);
	assert_int_equal(open_by_id(&b, id, 0, GDRI_BOOT_MAX_PES + 1, 1000), -GDR_EINVAL);
	assert_non_null(strstr(gdri_log_last_error(), "a job has 1 to 1024 PEs"));
	job(id, 1);
}

static void test_late(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	double begin = now();
	struct pe p[3];

	(void)state;
	make(id);
	for (int i = 0; i < 3; i++)
		start(&p[i], id, i, 3);
	p[0].delay_ms = 300; /* also the one that others take for the first */
	run(p, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(p[i].rc, 0);
	assert_true(now() - begin > 0.29);
}

/* Bounded, named, and the id is not spent: all may come again. */
static void test_missing(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	double begin = now();
	struct pe p[2];

	(void)state;
	make(id);
	start(&p[0], id, 0, 4);
	start(&p[1], id, 2, 4);
	p[0].limit_ms = p[1].limit_ms = 600;
	run(p, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i].rc, -GDR_ETIMEOUT);
		assert_non_null(strstr(p[i].error, "missing: PE 1, 3;"));
		/* what was waited, which is less: some of it is for asking who is missing */
		assert_non_null(strstr(p[i].error, "within 0."));
		assert_non_null(strstr(p[i].error, "s (limit: 600ms); the rest went into asking which; missing"));
	}
	assert_true(now() - begin < 3);
	job(id, 4);
}

/* Those that the text has no room for are not named by half. */
static void test_many_missing(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	char all[600] = "missing: PE ";
	const char *said, *end;
	size_t n = strlen(all);
	struct pe p;

	(void)state;
	make(id);
	start(&p, id, 0, 100);
	p.limit_ms = 300;
	run(&p, 1);
	assert_int_equal(p.rc, -GDR_ETIMEOUT);
	for (int i = 1; i < 100; i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%d, ", i);
	said = strstr(p.error, "missing: PE ");
	end = strstr(p.error, ", ...; check");
	assert_true(said && end);
	assert_memory_equal(said, all, (size_t)(end - said) + 2);
}

/* A PE that connects, says who it is, and whose process then dies. */
static void come_and_die(const unsigned char *id, uint32_t pe, uint32_t n)
{
	struct gdri_uid_head h = {GDRI_UID_HELLO, pe, GDRI_UID_TOKEN + 8, 0};
	unsigned char frame[GDRI_UID_HEAD + GDRI_UID_TOKEN + 8] = {0};
	struct timespec deadline = {(time_t)now() + 10, 0};
	struct gdri_uid u;
	int fd;

	assert_null(gdri_uid_parse(id, &u));
	gdri_uid_head_write(frame, &h);
	memcpy(frame + GDRI_UID_HEAD, u.token, GDRI_UID_TOKEN);
	gdri_uid_put32(frame + GDRI_UID_HEAD + GDRI_UID_TOKEN, n);
	fd = gdri_uid_connect(&u, &deadline);
	assert_true(fd >= 0);
	assert_int_equal(send(fd, frame, sizeof(frame), MSG_NOSIGNAL), sizeof(frame));
	nap(100);
	close(fd);
}

/* Before all have come: who waits hears of it at once, and who comes later does, also once nobody waits any more.
 * Behind a successor of the dead one all may come again. */
static void test_dies_early(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	double begin = now();
	struct pe p[4];

	(void)state;
	make(id);
	for (int i = 0; i < 3; i++) {
		start(&p[i], id, i, i < 2 ? 4 : 5); /* the last one's job is another */
		p[i].delay_ms = 500 * i;
	}
	assert_int_equal(pthread_create(&p[0].thread, NULL, pe_main, &p[0]), 0);
	nap(100);
	come_and_die(id, 3, 4);
	pthread_join(p[0].thread, NULL);
	run(&p[1], 2);
	assert_true(now() - begin < LIMIT_MS * 1e-3 / 2);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(p[i].rc, -GDR_EPEERLOST);
		assert_non_null(strstr(p[i].error, "PE 3 is dead or cut off"));
	}
	for (int i = 0; i < 4; i++) {
		start(&p[i], id, i, 4);
		p[i].delay_ms = i < 3 ? 300 : 0;
	}
	run(p, 4);
	for (int i = 0; i < 4; i++)
		assert_int_equal(p[i].rc, 0);
}

static void test_stranger(void **state)
{
	unsigned char id[GDRI_UID_BYTES], other[GDRI_UID_BYTES];
	struct gdri_uid u;
	struct pe p[3];

	(void)state;
	make(id);
	gdri_uid_parse(id, &u);
	u.token[3] ^= 1;
	gdri_uid_write(other, &u);
	start(&p[0], id, 0, 2);
	start(&p[1], other, 1, 2);
	start(&p[2], id, 1, 2);
	p[0].delay_ms = p[2].delay_ms = 100;
	run(p, 3);
	assert_int_equal(p[0].rc, 0);
	assert_int_equal(p[2].rc, 0);
	assert_int_equal(p[1].rc, -GDR_EBOOTSTRAP);
	assert_non_null(strstr(p[1].error, "does not know this id"));
}

static int caught = -1; /* what was stderr */

static FILE *catch_stderr(void)
{
	FILE *f = tmpfile();

	assert_non_null(f);
	caught = dup(2);
	assert_true(caught >= 0 && dup2(fileno(f), 2) == 2);
	return f;
}

static void release_stderr(FILE *f, char *text, size_t room)
{
	assert_int_equal(dup2(caught, 2), 2);
	close(caught);
	rewind(f);
	text[fread(text, 1, room - 1, f)] = 0;
	fclose(f);
}

/* Who came second hears it, and the hub says it, with where both are. */
static void test_twice(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	char text[4096], *said;
	struct pe p[3];
	FILE *f = catch_stderr();

	(void)state;
	make(id);
	for (int i = 0; i < 3; i++)
		start(&p[i], id, 0, 2);
	p[1].delay_ms = 100;
	p[2].delay_ms = 200;
	p[2].pe = 1;
	run(p, 3);
	assert_int_equal(p[0].rc, 0);
	assert_int_equal(p[1].rc, -GDR_EINVAL);
	assert_non_null(strstr(p[1].error, "PE 0 has come already"));
	assert_int_equal(p[2].rc, 0);
	release_stderr(f, text, sizeof(text));
	said = strstr(text, "warning: bootstrap: two processes have the number 0 (RANK=0");
	assert_non_null(said);
	said = strstr(said, "the one at 127.0.0.1:");
	assert_non_null(said);
	assert_non_null(strstr(said + 1, "the one at 127.0.0.1:"));
}

/* Both hear it, and a job that agrees can follow. */
static void test_sizes_differ(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	struct pe p[2];

	(void)state;
	make(id);
	start(&p[0], id, 0, 2);
	start(&p[1], id, 1, 3);
	p[1].delay_ms = 50;
	run(p, 2);
	assert_int_equal(p[0].rc, -GDR_EMISMATCH);
	assert_int_equal(p[1].rc, -GDR_EMISMATCH);
	assert_non_null(strstr(p[0].error, "has 2 PEs, another one says 3"));
	job(id, 2);
}

static void test_spent(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	struct pe p;

	(void)state;
	make(id);
	job(id, 2);
	start(&p, id, 0, 2);
	run(&p, 1);
	assert_int_equal(p.rc, -GDR_EBOOTSTRAP);
	assert_non_null(strstr(p.error, "an id serves one job"));
}

/* Connections that say nothing, or nothing that makes sense, while the job comes up. */
/* Ids whose jobs never begin make room for later ones, the oldest first. */
static void test_unused(void **state)
{
	unsigned char ids[18][GDRI_UID_BYTES];
	struct pe p[1];

	(void)state;
	for (int i = 0; i < 18; i++)
		make(ids[i]);
	for (int i = 0; i < 2; i++) {
		start(&p[0], ids[i], 0, 1);
		p[0].limit_ms = 300;
		run(p, 1);
		assert_int_not_equal(p[0].rc, 0);
	}
	for (int i = 2; i < 18; i++)
		job(ids[i], 1);
}

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* A newcomer for whom the process has no descriptor waits, and does not keep the hub's thread busy. */
static void test_no_descriptors(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	struct rlimit full, was;
	struct sockaddr_in to = {.sin_family = AF_INET};
	struct gdri_uid u;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	double used;

	(void)state;
	make(id);
	assert_null(gdri_uid_parse(id, &u));
	to.sin_port = htons(u.port);
	memcpy(&to.sin_addr, u.addr, 4);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	full = was;
	full.rlim_cur = 3; /* what is open stays; poll wants no more entries than that */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &full), 0);
	used = cpu();
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	nap(200);
	used = cpu() - used;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(used < 0.05);
	job(id, 2);
	close(fd);
}

static void test_noise(void **state)
{
	unsigned char id[GDRI_UID_BYTES], junk[200];
	struct timespec deadline = {now() + 10, 0};
	struct gdri_uid u;
	int fd[40], i;

	(void)state;
	make(id);
	gdri_uid_parse(id, &u);
	for (i = 0; i < 40; i++) {
		fd[i] = gdri_uid_connect(&u, &deadline);
		assert_true(fd[i] >= 0);
		memset(junk, i * 7, sizeof(junk));
		if (i % 2 && send(fd[i], junk, sizeof(junk), MSG_NOSIGNAL) < 0)
			break;
	}
	job(id, 3);
	while (i--)
		close(fd[i]);
}

/* Keeps `n` connections open that say nothing: one that the hub closes is replaced. */
struct idlers {
	pthread_t thread;
	struct sockaddr_in to;
	int fd[300], n;
	bool stop; /* set by the test, read by the thread: pairs as relaxed, the join orders all else */
};

static void idle(struct idlers *x, int i)
{
	x->fd[i] = socket(AF_INET, SOCK_STREAM, 0);
	if (x->fd[i] >= 0 && connect(x->fd[i], (struct sockaddr *)&x->to, sizeof(x->to))) {
		close(x->fd[i]);
		x->fd[i] = -1;
	}
}

static void *idle_on(void *arg)
{
	struct idlers *x = arg;
	char c;

	while (!__atomic_load_n(&x->stop, __ATOMIC_RELAXED)) { /* pairs with the store in test_idlers */
		for (int i = 0; i < x->n; i++) {
			if (x->fd[i] >= 0 && recv(x->fd[i], &c, 1, MSG_DONTWAIT) == 0) {
				close(x->fd[i]);
				idle(x, i);
			}
		}
		nap(1);
	}
	return NULL;
}

/* They keep no PE out, as many as they are. */
static void test_idlers(void **state)
{
	static struct idlers x = {.n = 300};
	unsigned char id[GDRI_UID_BYTES];
	struct gdri_uid u;
	struct pe p[3];
	int up = 0;

	(void)state;
	make(id);
	gdri_uid_parse(id, &u);
	x.to.sin_family = AF_INET;
	x.to.sin_port = htons(u.port);
	memcpy(&x.to.sin_addr, u.addr, 4);
	for (int i = 0; i < x.n; i++) {
		idle(&x, i);
		up += x.fd[i] >= 0;
	}
	assert_true(up > 200);
	assert_int_equal(pthread_create(&x.thread, NULL, idle_on, &x), 0);
	for (int i = 0; i < 3; i++) {
		start(&p[i], id, i, 3);
		p[i].limit_ms = 5000; /* of which milliseconds are needed */
		p[i].delay_ms = 100 * i;
	}
	run(p, 3);
	__atomic_store_n(&x.stop, true, __ATOMIC_RELAXED); /* pairs with the load in idle_on */
	pthread_join(x.thread, NULL);
	for (int i = 0; i < x.n; i++) {
		if (x.fd[i] >= 0)
			close(x.fd[i]);
	}
	for (int i = 0; i < 3; i++)
		assert_int_equal(p[i].rc, 0);
}

/* A process that comes after the job has begun. */
static void test_running(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	struct gdr_bootstrap *b = NULL;
	struct pe p;

	(void)state;
	make(id);
	assert_int_equal(open_by_id(&b, id, 0, 1, 1000), 0);
	start(&p, id, 0, 1);
	run(&p, 1);
	assert_int_equal(p.rc, -GDR_ESTATE);
	b->finalize(b, 1000);
}

struct first {
	const unsigned char *id;
	int pe, rc;
	bool up, go;
};

/* A PE of a job that lasts until it is told to go on. */
static void *first_main(void *arg)
{
	struct gdr_bootstrap *b = NULL;
	struct first *f = arg;

	f->rc = open_by_id(&b, f->id, f->pe, 2, LIMIT_MS);
	__atomic_store_n(&f->up, true, __ATOMIC_RELEASE); /* pairs with the acquire of who waits for it */
	while (!__atomic_load_n(&f->go, __ATOMIC_ACQUIRE)) /* pairs with the release in test_again */
		nap(1);
	for (int x = 0; !f->rc && x < 5; x++)
		f->rc = one_round(b, x);
	if (b)
		b->finalize(b, LIMIT_MS);
	return NULL;
}

/* A whole job comes with the id of another one, larger or smaller, while that runs and when it has ended: all of it
 * hear so at once, and the first job does not notice. */
static void test_again(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	struct first first[2];
	pthread_t threads[2];
	double begin;

	(void)state;
	make(id);
	for (int i = 0; i < 2; i++) {
		first[i] = (struct first){.id = id, .pe = i};
		assert_int_equal(pthread_create(&threads[i], NULL, first_main, &first[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		while (!__atomic_load_n(&first[i].up, __ATOMIC_ACQUIRE)) /* pairs with the release in first_main */
			nap(1);
	for (int ended = 0; ended < 2; ended++) {
		for (int n = 1; n <= 3; n++) {
			struct pe p[3];

			begin = now();
			for (int i = 0; i < n; i++)
				start(&p[i], id, i, n);
			run(p, n);
			assert_true(now() - begin < LIMIT_MS * 1e-3);
			for (int i = 0; i < n; i++) {
				assert_int_equal(p[i].rc, ended ? -GDR_EBOOTSTRAP : -GDR_ESTATE);
				assert_non_null(strstr(p[i].error, "an id serves one job"));
			}
		}
		for (int i = 0; i < 2 && !ended; i++)
			/* release: pairs with the acquire in first_main */
			__atomic_store_n(&first[i].go, true, __ATOMIC_RELEASE);
		for (int i = 0; i < 2 && !ended; i++) {
			pthread_join(threads[i], NULL);
			assert_int_equal(first[i].rc, 0);
		}
	}
}

/* A child of a PE neither hides its parent's death nor can use what is its parent's. */
static void test_fork(void **state)
{
	unsigned char id[GDRI_UID_BYTES];
	struct gdr_bootstrap *b = NULL;
	int status, files;
	pid_t child;

	(void)state;
	files = entries("/proc/self/fd");
	make(id);
	assert_int_equal(open_by_id(&b, id, 0, 1, 1000), 0);
	child = fork();
	if (!child)
		_exit(entries("/proc/self/fd") == files && b->barrier(b, 1000) == -GDR_ESTATE ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(b->barrier(b, 1000), 0);
	b->finalize(b, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	  cmocka_unit_test(test_id),
		cmocka_unit_test(test_arguments), cmocka_unit_test(test_late),
		cmocka_unit_test(test_missing),	  cmocka_unit_test(test_dies_early),
		cmocka_unit_test(test_many_missing),
		cmocka_unit_test(test_stranger),
		cmocka_unit_test(test_twice),	  cmocka_unit_test(test_sizes_differ),
		cmocka_unit_test(test_spent),	  cmocka_unit_test(test_noise),
		cmocka_unit_test(test_idlers),
		cmocka_unit_test(test_no_descriptors),
		cmocka_unit_test(test_unused),	  cmocka_unit_test(test_running),
		cmocka_unit_test(test_again),	  cmocka_unit_test(test_fork),
	};

	if (gdri_options_read(&opt, NULL))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
