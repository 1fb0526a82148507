// SPDX-License-Identifier: BSD-3-Clause
/* The bootstrap by environment: what the variables say, and jobs whose PEs are threads: PE 0 late or missing, its port
 * taken, another secret, one job after the other at one port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr/status.h>

#include "bootstrap/env/boot.h"
#include "bootstrap/call.h"
#include "bootstrap/uniqueid/net.h"
#include "runtime/core/log.h"

#define LIMIT_MS 20000
#define ENV(...) ((char *const[]){__VA_ARGS__, NULL})

/* ---- the variables ---- */

static void test_variables(void **state)
{
	struct gdri_env_job job;
	char why[200];

	(void)state;
	assert_true(gdri_env_parse(ENV("RANK=2", "WORLD_SIZE=4", "MASTER_ADDR=node-0", "MASTER_PORT=29500",
				       "TORCHELASTIC_RUN_ID=seven"), 0, &job, why, sizeof(why)));
	assert_int_equal(job.pe, 2);
	assert_int_equal(job.n_pes, 4);
	assert_int_equal(job.port, 29501); /* torch's store has the other */
	assert_string_equal(job.host, "node-0");
	assert_string_equal(job.run_id, "seven");
	assert_true(gdri_env_parse(ENV("RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=::1"), 77, &job, why, sizeof(why)));
	assert_int_equal(job.port, 77);
	assert_string_equal(job.run_id, "");
}

static void is_wrong(char *const *env, const char *text)
{
	struct gdri_env_job job;
	char why[200] = "";

	assert_false(gdri_env_parse(env, 0, &job, why, sizeof(why)));
	if (!strstr(why, text))
		fail_msg("\"%s\" does not say \"%s\"", why, text);
}

static void test_wrong_variables(void **state)
{
	(void)state;
	is_wrong(ENV("RANK=0", "MASTER_ADDR=a", "MASTER_PORT=1"), "WORLD_SIZE is not set");
	is_wrong(ENV("WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK is not set");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_PORT=1"), "MASTER_ADDR is not set");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=", "MASTER_PORT=1"), "MASTER_ADDR is not set");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a"), "MASTER_PORT is not set, and GDR_ENV_PORT is not set");
	is_wrong(ENV("RANK=2", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK=2 is not below WORLD_SIZE=2");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=0", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK=0 is not below WORLD_SIZE=0");
	is_wrong(ENV("RANK=-1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK=-1 is no number");
	is_wrong(ENV("RANK= 1", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK= 1 is no number");
	is_wrong(ENV("RANK=1x", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=1"), "RANK=1x is no number");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=1025", "MASTER_ADDR=a", "MASTER_PORT=1"), "from 0 to 1024");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=a", "MASTER_PORT=65535"), "from 0 to 65534");
	is_wrong(ENV("RANK=0", "WORLD_SIZE=99999999999999999999", "MASTER_ADDR=a", "MASTER_PORT=1"), "is no number");
}

/* ---- jobs ---- */

struct pe {
	pthread_t thread;
	struct gdri_env_job job;
	const char *secret;
	int delay_ms, limit_ms, jobs;
	int rc;
	char error[256]; /* the last one that it logged */
};

static void nap(int ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	nanosleep(&t, NULL);
}

static int one_job(struct pe *p, int x)
{
	struct gdr_bootstrap *b = NULL;
	int mine = x * 100 + p->job.pe, all[16], rc;

	rc = gdri_boot_env_join(&b, &p->job, p->secret, p->limit_ms);
	if (rc)
		return rc;
	rc = b->pe == p->job.pe && b->n_pes == p->job.n_pes ? b->allgather(b, &mine, all, sizeof(mine), LIMIT_MS) : 1;
	for (int i = 0; !rc && i < b->n_pes; i++)
		rc = all[i] != x * 100 + i;
	b->finalize(b, LIMIT_MS);
	return rc;
}

static void *pe_main(void *arg)
{
	struct pe *p = arg;

	gdri_log_clear_error();
	nap(p->delay_ms);
	for (int x = 0; !p->rc && x < p->jobs; x++)
		p->rc = one_job(p, x);
	snprintf(p->error, sizeof(p->error), "%s", gdri_log_last_error());
	return NULL;
}

/* A listening socket at a port that the system does not give to others by itself, and which that is. */
static int take_port(uint16_t *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	static int next;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	do {
		*port = (uint16_t)(10000 + (getpid() * 16 + next++) % 20000);
		a.sin_port = htons(*port);
	} while (bind(fd, (struct sockaddr *)&a, sizeof(a)));
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

static uint16_t free_port(void)
{
	uint16_t port;

	close(take_port(&port));
	return port;
}

/* A connection to oneself is none to a hub: at a port that the system gives out, until it gives out this one. */
static void test_no_self(void **state)
{
	struct timespec deadline;
	struct gdri_uid at = {.family = 4, .addr = {127, 0, 0, 1}};
	int range[2], fd;
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");

	(void)state;
	assert_true(f && fscanf(f, "%d %d", &range[0], &range[1]) == 2);
	fclose(f);
	at.port = (uint16_t)(range[0] + 1000);
	for (int i = 0; i < 2 * (range[1] - range[0]); i++) {
		gdri_deadline_in(&deadline, 2000);
		fd = gdri_uid_connect(&at, &deadline);
		if (fd >= 0)
			close(fd);
		assert_true(fd < 0);
	}
}

static void prepare(struct pe *p, int n, const char *host)
{
	uint16_t port = free_port();

	for (int i = 0; i < n; i++)
		p[i] = (struct pe){.job = {i, n, host, port, "run"}, .secret = "", .limit_ms = LIMIT_MS, .jobs = 1};
}

static void run(struct pe *p, int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(pthread_create(&p[i].thread, NULL, pe_main, &p[i]), 0);
	for (int i = 0; i < n; i++)
		pthread_join(p[i].thread, NULL);
}

static void all_well(struct pe *p, int n)
{
	run(p, n);
	for (int i = 0; i < n; i++)
		assert_int_equal(p[i].rc, 0);
}

static void test_sizes(void **state)
{
	struct pe p[8];

	(void)state;
	for (int n = 2; n <= 8; n *= 2) {
		prepare(p, n, n == 4 ? "127.0.0.1" : "localhost");
		all_well(p, n);
	}
}

/* Not loopback by name, so it listens everywhere. */
static void test_everywhere(void **state)
{
	struct pe p[3];

	(void)state;
	prepare(p, 3, "0.0.0.0");
	all_well(p, 3);
}

static void test_late_hub(void **state)
{
	struct pe p[3];

	(void)state;
	prepare(p, 3, "localhost");
	p[0].delay_ms = 300;
	all_well(p, 3);
}

/* As when a program calls gdr_init again after gdr_finalize. */
static void test_one_after_the_other(void **state)
{
	struct pe p[4];

	(void)state;
	prepare(p, 4, "localhost");
	for (int i = 0; i < 4; i++)
		p[i].jobs = 10;
	all_well(p, 4);
}

static void test_port_taken(void **state)
{
	char text[32];
	struct pe p;
	int fd;

	(void)state;
	prepare(&p, 1, "localhost");
	fd = take_port(&p.job.port);
	p.job.n_pes = 2;
	run(&p, 1);
	close(fd);
	snprintf(text, sizeof(text), "port %u", p.job.port);
	assert_int_equal(p.rc, -GDR_EBOOTSTRAP);
	assert_non_null(strstr(p.error, text));
	assert_non_null(strstr(p.error, "GDR_ENV_PORT"));
	assert_non_null(strstr(p.error, "RANK=0, too"));
}

/* The one with the right secret that comes later takes its place. */
static void test_other_secret(void **state)
{
	struct pe p[3];

	(void)state;
	prepare(p, 3, "localhost");
	p[2].job.pe = 1;
	for (int i = 0; i < 3; i++) {
		p[i].job.n_pes = 2;
		p[i].secret = i == 1 ? "hers" : "his";
	}
	p[1].delay_ms = 100;
	p[2].delay_ms = 300;
	run(p, 3);
	assert_int_equal(p[0].rc, 0);
	assert_int_equal(p[2].rc, 0);
	assert_int_equal(p[1].rc, -GDR_EBOOTSTRAP);
	assert_non_null(strstr(p[1].error, "GDR_ENV_SECRET"));
}

static void test_missing(void **state)
{
	struct pe p[3];

	(void)state;
	prepare(p, 3, "localhost");
	p[0].limit_ms = p[1].limit_ms = 600;
	run(p, 2);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(p[i].rc, -GDR_ETIMEOUT);
		assert_non_null(strstr(p[i].error, "missing: PE 2;"));
	}
	/* and may come again */
	for (int i = 0; i < 3; i++) {
		p[i].limit_ms = LIMIT_MS;
		p[i].rc = 0;
	}
	all_well(p, 3);
}

static void test_no_hub(void **state)
{
	struct pe p[2];

	(void)state;
	prepare(p, 2, "localhost");
	p[1].limit_ms = 400;
	run(&p[1], 1);
	assert_int_equal(p[1].rc, -GDR_ETIMEOUT);
	assert_non_null(strstr(p[1].error, "PE 0 does not answer at localhost"));
	prepare(p, 2, "no-such-name.invalid");
	p[1].limit_ms = 400;
	run(&p[1], 1);
	assert_int_equal(p[1].rc, -GDR_ETIMEOUT);
	assert_non_null(strstr(p[1].error, "no-such-name.invalid"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_variables),  cmocka_unit_test(test_wrong_variables),
		cmocka_unit_test(test_sizes),	   cmocka_unit_test(test_everywhere),
		cmocka_unit_test(test_late_hub),   cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_port_taken), cmocka_unit_test(test_other_secret),
		cmocka_unit_test(test_missing),	   cmocka_unit_test(test_no_hub),
		cmocka_unit_test(test_no_self),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
