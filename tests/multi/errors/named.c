/* SPDX-License-Identifier: BSD-3-Clause */
/* Which PE the texts of waits that expire name.
 *
 *	named told	PE 0 does not come to a barrier: each of the others has said so when its call returns
 *	named skip	PE 1 is in another wait instead, for nobody that it could name: all name it
 *	named self	PE 0 is stopped, PE 1 waits for what it tells itself, the others for PE 1: all name PE 0
 *	named circle	each PE waits for the next one: all say that it is a circle
 *	named differ	PE 0 is in gdr_malloc, the others in a barrier: the calls differ, it says
 *	named counted	PE 0 does not come to a collective that many threads of a PE wait in: one line says it */
#include "tests/multi/multi.h"
#include "tests/multi/said.h"

#include <gdr/host_ops.h>

#include <signal.h>

/* What was said by now. */
static void expect_now(const char *what)
{
	memset(said_buf, 0, sizeof(said_buf));
	CHECK(pread(said_texts, said_buf, sizeof(said_buf) - 1, 0) >= 0);
	if (!strstr(said_buf, what))
		said_expect(what, NULL);
}

static void told(void)
{
	int ret;

	if (!multi_pe) {
		multi_sleep_us(6000000);
		return;
	}
	said_begin();
	ret = gdr_barrier_all();
	expect_now("PE 0");
	said_expect("PE 0", NULL);
	CHECK_EQ(ret, -GDR_ETIMEOUT);
}

static void skip(uint64_t *sig)
{
	int ret;

	said_begin();
	for (int i = 0; i < 2 && multi_pe == 1; i++) /* longer than the others wait for it */
		CHECK(gdr_host_signal_wait_until(sig, GDR_CMP_EQ, 1));
	ret = gdr_barrier_all();
	said_expect(multi_pe == 1 ? "because of this one" : "because of PE 1",
		    multi_pe == 1 ? NULL : "waiting for PE 1");
	CHECK_EQ(ret, -GDR_ETIMEOUT);
}

struct wait {
	uint64_t *sig;
	int pe, *got;
};

GDR_KERNEL(wait_from, struct wait, a)
{
	*a.got = gdr_signal_wait_until_from(a.sig, GDR_CMP_EQ, 1, a.pe);
}

/* The parent is stopped meanwhile. */
static void stop_for_a_while(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid)
		return;
	multi_sleep_us(500000); /* it waits */
	kill(getppid(), SIGSTOP);
	multi_sleep_us(4000000);
	kill(getppid(), SIGCONT);
	_exit(0);
}

static void self(uint64_t *sig)
{
	struct wait a = {sig, 1, (int *)multi_shared_new(sizeof(int))};

	if (!multi_pe)
		stop_for_a_while();
	else
		said_begin();
	CHECK_OK(gdr_launch(wait_from, 1, 1, 0, NULL, &a));
	CHECK_OK(gdr_stream_sync(NULL));
	if (!multi_pe) /* late, and those that it waits for have left */
		return;
	said_expect("the chain of waits ends at PE 0", NULL);
	CHECK_EQ(*a.got, -GDR_ETIMEOUT);
}

static void circle(uint64_t *sig)
{
	int *got = (int *)gdr_calloc(2, sizeof(int)), its = 0; /* got[1]: another PE's */
	struct wait a = {sig, (multi_pe + 1) % multi_n, got};

	CHECK(got);
	said_begin();
	CHECK_OK(gdr_launch(wait_from, 1, 1, 0, NULL, &a));
	CHECK_OK(gdr_stream_sync(NULL));
	/* A PE in gdr_finalize would be blamed instead, so all waits end first. One that cannot be asked has left. */
	for (int pe = 0; pe < multi_n; pe++)
		for (its = 0; !its && !gdr_host_get(&got[1], &got[0], sizeof(int), pe); multi_sleep_us(1000))
			CHECK_OK(gdr_memcpy(&its, &got[1], sizeof(its)));
	said_expect("wait for each other", NULL);
	CHECK(strstr(said_buf, "look at what each of them waits for") && !strstr(said_buf, "raise GDR_TIMEOUT"));
	CHECK_OK(gdr_memcpy(&its, &got[0], sizeof(its)));
	CHECK_EQ(its, -GDR_ETIMEOUT);
}

static void differ(void)
{
	said_begin();
	if (!multi_pe)
		CHECK(!gdr_malloc(64));
	else
		CHECK_EQ(gdr_barrier_all(), -GDR_ETIMEOUT);
	/* one that hears from another in its own call knows no more than whom that one waits for */
	said_expect("; all PEs make the calls that all make in one order", multi_pe ? "because of PE 0" : NULL);
}

static int lines_with(const char *what)
{
	int n = 0;

	for (const char *at = said_buf; (at = strstr(at, what)); at += strlen(what))
		n++;
	return n;
}

struct sum {
	int *to, *from;
};

GDR_KERNEL(sum_of_block, struct sum, a)
{
	(void)gdr_int_sum_reduce_block(GDR_TEAM_WORLD, a.to, a.from, 4096);
}

static void counted(void)
{
	struct sum a = {(int *)gdr_calloc(4096, sizeof(int)), (int *)gdr_calloc(4096, sizeof(int))};

	CHECK(a.to && a.from);
	if (!multi_pe) {
		multi_sleep_us(6000000);
		return;
	}
	said_begin();
	CHECK_OK(gdr_launch(sum_of_block, 1, 64, 0, NULL, &a));
	CHECK_OK(gdr_stream_sync(NULL));
	said_expect("PE 0", NULL);
	printf("PE %d: %d lines\n", multi_pe, lines_with("waiting for PE"));
	CHECK(lines_with("waiting for PE 0") <= 2 && lines_with("waiting for PE") <= 4);
}

int main(int argc, char **argv)
{
	const char *form = argc > 1 ? argv[1] : "";
	uint64_t *sig;

	multi_begin();
	sig = (uint64_t *)gdr_calloc(1, sizeof(*sig));
	CHECK(sig);
	if (!strcmp(form, "told"))
		told();
	else if (!strcmp(form, "skip"))
		skip(sig);
	else if (!strcmp(form, "self"))
		self(sig);
	else if (!strcmp(form, "circle"))
		circle(sig);
	else if (!strcmp(form, "differ"))
		differ();
	else
		counted();
	(void)gdr_finalize(); /* behind a failure */
	if (!multi_pe)
		printf("named: %s on %d PEs\n", form, multi_n);
	return 0;
}
