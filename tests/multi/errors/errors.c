/* SPDX-License-Identifier: BSD-3-Clause */
/* Each error, really produced, arrives as its code, in the record and in words.
 * Built without argument checks, so that wrong addresses reach the NIC. On GPUs: those without one.
 *
 *	errors remote_write | remote_read | remote_atomic	beyond the peer's heap
 *	errors local		a source that begins in the heap and ends behind it
 *	errors unmapped		a source that was registered and is not mapped any more
 *	errors unmapped long	one of several messages, of which the first page is not mapped
 *	errors retry		puts and quiet to a PE that the fabric has lost
 *	errors timeout		nobody sends the signal
 *	errors timeout stream	a wait on a stream for it
 *	errors timeout_host	of a host thread
 *	errors abort		the host ends the waits
 *	errors running		the record is read while the kernel runs
 *	errors stopped		a chain of waits behind a PE that is stopped
 *	errors absent		a PE that does not come to a collective of a team
 *	errors mute PE		the fabric has lost PE
 *	errors silent		the NIC of a PE that lives is silent for 4 s, and answers then
 *	errors flushed cause | flush	operations behind one that fails, in its queue; which is seen
 *	errors injected CODE SYNDROME VENDOR	the device reports what it was told to
 *	errors told CODE wait | finalize	the others hear of PE 0's, in a wait or when they finish */
#include "tests/multi/multi.h"

#include <gdr/host_ops.h>

#include <signal.h>
#include <sys/mman.h>

struct err {
	uint64_t *word, *local;
	int pe, times;
	int form;
	size_t len; /* of a put */
	int status; /* expected, -GDR_E*; 0: any */
	int *got;
	struct multi_report *report;
};

enum { WRITE, READ, ATOMIC };

/* Until an error comes out or `times` operations went well. */
GDR_KERNEL(operations, struct err, a)
{
	int ret = 0;

	for (int i = 0; i < a.times && !ret; i++) {
		if (a.form == WRITE)
			ret = gdr_put_nbi(a.word, a.local, a.len, a.pe);
		else if (a.form == READ)
			ret = gdr_get_nbi(a.local, a.word, 100, a.pe);
		else
			(void)gdr_uint64_atomic_fetch_add(a.word, 1, a.pe);
		if (!ret)
			ret = gdr_status();
		if (!ret && i % 4 == 3)
			ret = gdr_quiet();
	}
	*a.got = ret ? ret : gdr_quiet();
}

GDR_KERNEL(wait_for, struct err, a)
{
	*a.got = gdr_signal_wait_until_from(a.word, GDR_CMP_EQ, 77, a.pe);
}

static struct gdr_error first_error(void)
{
	struct gdr_error e[4];

	CHECK(gdr_errors(e, 4) > 0);
	printf("PE %d: %s\n", multi_pe, e[0].text);
	fflush(stdout);
	CHECK(e[0].text[0] && e[0].op && e[0].time_ns);
	return e[0];
}

static void setup(struct err *a)
{
	a->report = multi_report_new();
	a->got = (int *)multi_shared_new(sizeof(int));
	a->word = (uint64_t *)gdr_calloc(64, 8);
	a->local = (uint64_t *)gdr_calloc(64, 8);
	CHECK(a->got && a->word && a->local);
	a->pe = (multi_pe + 1) % multi_n;
	a->times = 200;
	CHECK_OK(gdr_barrier_all());
}

/* After an error the job cannot go on; leaving it is bounded and says so, by the first one's status. */
static int leave(struct err *a)
{
	struct gdr_error e;
	int n = gdr_errors(&e, 1), ret = gdr_finalize();

	if (n > 0)
		CHECK_EQ(ret, e.status);
	else
		CHECK(ret <= 0);
	multi_shared_free(a->report);
	multi_shared_free(a->got);
	return 0;
}

GDR_KERNEL(use, struct err, a)
{
	int ret = gdr_uint64_p(a.local, 5, gdr_my_pe());

	*a.got = ret ? ret : (int)gdr_uint64_g(a.local, gdr_my_pe());
}

/* A wait that was given up leaves a device that works. */
static int leave_usable(struct err *a)
{
	RUN(use, 1, 1, a);
	CHECK_EQ(*a->got, 5);
	return leave(a);
}

/* PE 0 had an error and says so when it leaves: the others do not wait for it. Nothing here says
 * how fast that is, but GDR_INIT_TIMEOUT is 40 s. */
static int leave_soon(struct err *a)
{
	uint64_t start = multi_clock_ns();

	leave(a);
	CHECK(multi_clock_ns() - start < 20000000000ull);
	return 0;
}

#ifndef __CUDACC__
static int remote(struct err *a, int form)
{
	static const unsigned opcode[] = {[WRITE] = 0x08, [READ] = 0x10, [ATOMIC] = 0x12};
	static const char *const op[] = {[WRITE] = "put", [READ] = "get", [ATOMIC] = "atomic"};
	uint64_t start = gdr_clock_ns();
	struct gdr_heap_info info;
	uint64_t *inside = a->word;

	CHECK_OK(gdr_heap_query(&info));
	a->form = form;
	a->word = (uint64_t *)((char *)a->word + info.size + (1u << 20));
	if (multi_pe == 0) {
		struct gdr_error e;

		RUN(operations, 1, 1, a);
		CHECK_EQ(*a->got, -GDR_EREMOTEACCESS);
		e = first_error();
		CHECK_EQ(e.status, -GDR_EREMOTEACCESS);
		CHECK_EQ(e.peer, a->pe);
		/* to oneself: the other end of the queue flushes it before its answer is there */
		CHECK(e.syndrome == 0x13 || (multi_n == 1 && e.syndrome == 0x05));
		CHECK(e.qpn && e.is_cause);
		CHECK_EQ(e.opcode, opcode[form]);
		CHECK(!strncmp(e.op, op[form], strlen(op[form])));
		CHECK_EQ(e.len, form == ATOMIC ? 8 : 100);
		CHECK(e.addr > info.size && e.addr < info.size + (32u << 20));
		CHECK(e.time_ns > start && e.time_ns <= gdr_clock_ns());
		CHECK(strstr(e.text, "remote access error") && strstr(e.text, "vendor"));
	}
	for (int i = 0; i < 64; i++)
		CHECK_EQ(inside[i], 0);
	return leave_soon(a);
}

static int local_prot(struct err *a)
{
	if (multi_pe == 0) {
		struct gdr_error e;

		RUN(operations, 1, 1, a);
		CHECK_EQ(*a->got, -GDR_ELOCALPROT);
		e = first_error();
		CHECK_EQ(e.status, -GDR_ELOCALPROT);
		CHECK_EQ(e.peer, a->pe);
		CHECK_EQ(e.syndrome, 0x04);
		CHECK(e.qpn && e.is_cause);
	}
	return leave_soon(a);
}

static int local(struct err *a)
{
	struct gdr_heap_info info;
	char *rest;

	CHECK_OK(gdr_heap_query(&info));
	rest = (char *)gdr_malloc(info.largest_free); /* to the end of the heap */
	CHECK(rest);
	a->local = (uint64_t *)(rest + info.largest_free - 48);
	return local_prot(a);
}

static int unmapped(struct err *a, size_t size)
{
	a->local = (uint64_t *)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(a->local != MAP_FAILED);
	CHECK_OK(gdr_buffer_register(a->local, size));
	if (size > 65536) {
		a->len = size;
		a->word = (uint64_t *)gdr_malloc(size);
		CHECK(a->word);
	}
	/* gone, and the place stays free of stacks of threads */
	CHECK(mmap(a->local, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == a->local);
	return local_prot(a);
}

/* PE 1 cannot be heard any more. The queue keeps its error. */
static int retry(struct err *a)
{
	if (multi_pe == 0) {
		struct gdr_error e;

		a->times = 1 << 30;
		RUN(operations, 1, 1, a);
		CHECK(*a->got == -GDR_ERETRY);
		e = first_error();
		CHECK_EQ(e.status, -GDR_ERETRY);
		CHECK_EQ(e.peer, 1);
		CHECK_EQ(e.syndrome, 0x15);
		RUN(operations, 1, 1, a);
		CHECK_EQ(*a->got, -GDR_ERETRY);
	}
	return leave(a);
}

#endif

/* What the text of a wait for this word says: the object as gdr_heap_list has it. */
static void place_of(const void *word, char *buf, size_t room)
{
	struct gdr_heap_object o[64];
	int n = gdr_heap_list(o, 64);

	for (int i = 0; i < n && i < 64; i++) {
		size_t at = (size_t)((const char *)word - (const char *)o[i].addr);

		if (at < o[i].size)
			snprintf(buf, room, " of PE %d: byte %zu of object %d (%zu bytes)", multi_pe, at, i, o[i].size);
	}
}

static int timeout(struct err *a)
{
	char place[128] = "no object";
	struct gdr_error e;

	RUN(wait_for, 1, 1, a);
	if (multi_n == 1)
		CHECK_EQ(*a->got, -GDR_ETIMEOUT);
	CHECK(*a->got == -GDR_ETIMEOUT || *a->got == -GDR_EPEERLOST);
	e = first_error();
	CHECK_EQ(e.status, *a->got);
	CHECK_EQ(e.waited_for, a->pe);
	CHECK(e.waited_ns > 0);
	place_of(a->word, place, sizeof(place));
	if (!strstr(e.text, place))
		multi_fail(__FILE__, __LINE__, "\"%s\" lacks \"%s\"", e.text, place);
	/* Where the other PE's gdr_finalize ended the wait, at its limit, nobody looked at the word. */
	CHECK(*a->got == -GDR_EPEERLOST || strstr(e.text, "; the word is 0, waited for == 77"));
	return leave_usable(a);
}

/* Executed by device code, and told by the call that put it there. */
static int stream_timeout(struct err *a)
{
	struct gdr_error e;

	CHECK_OK(gdr_signal_wait_until_on_stream(a->word, GDR_CMP_EQ, 77, NULL));
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(gdr_host_status(), -GDR_ETIMEOUT);
	e = first_error();
	CHECK(strstr(e.text, "gdr_signal_wait_until_on_stream") && strstr(e.text, "was called for it"));
	CHECK(strstr(e.text, "; the word is 0, waited for == 77"));
	return leave_usable(a);
}

#ifndef __CUDACC__
/* Carried out by device code, too: the text has the host's call. */
static int host_timeout(struct err *a)
{
	struct gdr_error e;

	CHECK_EQ(gdr_host_signal_wait_until_for(a->word, GDR_CMP_EQ, 77, 1000), -GDR_ETIMEOUT); /* no error */
	CHECK_EQ(gdr_errors(&e, 1), 0);
	CHECK_EQ(gdr_host_signal_wait_until_for(a->word, GDR_CMP_EQ, 77, 300000000000ull), -GDR_ETIMEOUT);
	e = first_error();
	CHECK_EQ(e.status, -GDR_ETIMEOUT);
	if (!strstr(e.text, "gdr_host_signal_wait_until_for") || strstr(e.text, "gdr_TYPE_wait_until:"))
		multi_fail(__FILE__, __LINE__, "\"%s\" names another call", e.text);
	CHECK(strstr(e.text, "; the word is 0, waited for == 77"));
	return leave_usable(a);
}

/* Ends only when the host has told it that it read the record, at the latest after 20 s. */
GDR_KERNEL(fail_and_stay, struct err, a)
{
	uint64_t start = gdr_clock_ns();
	uint32_t round = 0;

	*a.got = gdr_put(a.word, a.local, 100, a.pe);
	while (!__atomic_load_n(&a.report->line, __ATOMIC_ACQUIRE)) { /* pairs with the host's release */
		if (gdr_clock_ns() - start > 20000000000ull) {
			*a.got = 0;
			return;
		}
		gdr_pause(round++);
	}
}

/* The host reads the record of a queue's error while the kernel that met it goes on. The next
 * operation on the queue has the same status. */
static int running(struct err *a)
{
	struct gdr_heap_info info;
	struct gdr_error e = {0};

	CHECK_OK(gdr_heap_query(&info));
	a->word = (uint64_t *)((char *)a->word + info.size + (1u << 20));
	if (multi_pe == 0) {
		CHECK_OK(gdr_launch(fail_and_stay, 1, 1, 0, NULL, a));
		for (int i = 0; i < 1000 && gdr_errors(&e, 1) == 0; i++)
			multi_sleep_us(10000);
		CHECK_EQ(e.status, -GDR_EREMOTEACCESS);
		CHECK_EQ(e.peer, a->pe);
		__atomic_store_n(&a->report->line, 1, __ATOMIC_RELEASE); /* pairs with the kernel's load */
		CHECK_OK(gdr_stream_sync(NULL));
		CHECK_EQ(*a->got, -GDR_EREMOTEACCESS); /* 0: the kernel gave up on the host */
		a->report->line = 0;
		RUN(operations, 1, 1, a);
		CHECK_EQ(*a->got, -GDR_EREMOTEACCESS);
	}
	return leave(a);
}

/* One put that the peer refuses, and good ones behind it in the same queue. Nobody looks at the
 * completions before all of them are there. */
GDR_KERNEL(fail_and_post, struct err, a)
{
	uint64_t start;
	int ret = gdr_put_nbi(a.word, a.local, 100, a.pe);

	for (int i = 0; i < 8 && !ret; i++)
		ret = gdr_put_nbi(a.local, a.local, 100, a.pe);
	start = gdr_clock_ns();
	for (uint32_t round = 0; gdr_clock_ns() - start < 2000000000ull; round++)
		gdr_pause(round);
	*a.got = ret ? ret : gdr_quiet();
}

/* The QP fails with the first; the others are flushed, none is executed. A ring of completions keeps
 * the cause; where one entry is overwritten the last flush is what is left to see, and it says so. */
static int flushed(struct err *a, int cause)
{
	int expected = cause ? -GDR_EREMOTEACCESS : -GDR_EFLUSHED;
	struct gdr_heap_info info;

	CHECK_OK(gdr_heap_query(&info));
	a->word = (uint64_t *)((char *)a->word + info.size + (1u << 20));
	memset(a->local, multi_pe == 0 ? 0xee : 0, 100);
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == 0) {
		struct gdr_error e;

		RUN(fail_and_post, 1, 1, a);
		CHECK_EQ(*a->got, expected);
		e = first_error();
		CHECK_EQ(e.status, expected);
		CHECK_EQ(e.peer, a->pe);
		CHECK_EQ(e.syndrome, cause ? 0x13 : 0x05);
		CHECK_EQ(e.vendor_syndrome, cause ? 0x88 : 0xf9);
		CHECK_EQ(!!e.is_cause, cause);
		RUN(operations, 1, 1, a); /* who comes later */
		CHECK_EQ(*a->got, expected);
	} else {
		multi_sleep_us(2500000);
	}
	for (int i = 0; i < 100; i++)
		CHECK_EQ(((unsigned char *)a->local)[i], multi_pe == 0 ? 0xee : 0);
	return leave(a);
}

#endif

static int end_waits(struct err *a)
{
	CHECK_OK(gdr_launch(wait_for, 1, 1, 0, NULL, a));
	multi_sleep_us(300000);
	CHECK_OK(gdr_abort_waits());
	CHECK_OK(gdr_stream_sync(NULL));
	CHECK_EQ(*a->got, -GDR_EABORTED);
	return leave(a);
}

/* PE i waits for PE i + 1; the last one is stopped. Everybody names that one. */
static int stopped(struct err *a)
{
	int last = multi_n - 1, pid = (int)getpid();
	struct gdr_error e;
	int *pids = (int *)gdr_calloc((size_t)multi_n, sizeof(int));

	CHECK(pids);
	CHECK_OK(gdr_host_put(pids + multi_pe, &pid, sizeof(pid), 0));
	CHECK_OK(gdr_barrier_all());
	if (multi_pe == last) {
		multi_sleep_us(300000); /* the others have left the barrier */
		raise(SIGSTOP);
		return leave(a);
	}
	RUN(wait_for, 1, 1, a);
	CHECK(*a->got == -GDR_ETIMEOUT || *a->got == -GDR_EPEERLOST);
	e = first_error();
	CHECK_EQ(e.waited_for, multi_pe + 1);
	CHECK_EQ(e.peer, last);
	multi_sleep_us(3000000); /* the others find out for themselves: a PE that leaves is lost, too */
	if (multi_pe == 0)
		CHECK_EQ(kill((pid_t)multi_u32((uint32_t *)pids + last), SIGCONT), 0);
	return leave_usable(a);
}

GDR_KERNEL(reduce_all, struct err, a)
{
	int ret = 0;

	for (int i = 0; i < a.times; i++)
		ret = gdr_uint64_sum_reduce_block(GDR_TEAM_WORLD, a.word, a.local, 1);
	if (gdr_thread_id() == 0)
		*a.got = ret;
}

#ifndef __CUDACC__
/* The last PE does something else. The others name it, and the team keeps the status. */
static int absent(struct err *a)
{
	int last = multi_n - 1, first;
	struct gdr_error e;

	a->local = (uint64_t *)gdr_calloc(1, sizeof(uint64_t));
	CHECK(a->local);
	a->times = 3; /* one behind the other: all threads of the block see the team's status */
	RUN(reduce_all, 1, 64, a);
	CHECK_OK(*a->got);
	if (multi_pe == last) {
		multi_sleep_us(5000000);
		return leave(a);
	}
	RUN(reduce_all, 1, 64, a);
	first = *a->got;
	CHECK(first == -GDR_ETIMEOUT || first == -GDR_EPEERLOST);
	e = first_error();
	CHECK_EQ(e.peer, last);
	CHECK(!strcmp(e.op, "reduce"));
	RUN(reduce_all, 1, 64, a);
	CHECK_EQ(*a->got, first);
	return leave(a);
}

/* All PEs but one exchange with it; that one cannot be heard. */
/* Posts until the NIC falls silent, and waits for what does not come. */
GDR_KERNEL(post_and_wait, struct err, a)
{
	for (int i = 0; i < 70; i++)
		(void)gdr_put_nbi(a.word + 1, a.local, 8, a.pe);
	*a.got = gdr_signal_wait_until_from(a.word, GDR_CMP_EQ, 77, a.pe);
}

/* All that was posted, then the word that ends the test, is there. */
GDR_KERNEL(answers, struct err, a)
{
	int ret = gdr_quiet();

	ret = ret ? ret : gdr_uint64_p(a.word + 2, 1, a.pe);
	ret = ret ? ret : gdr_quiet();
	ret = ret ? ret : gdr_fence();
	*a.got = ret ? ret : gdr_status();
}

/* PE 0's wait names PE 1, and calls it lost neither then nor later. */
static int silent(struct err *a)
{
	uint64_t start = multi_clock_ns();

	if (multi_pe) {
		while (!__atomic_load_n(&a->word[2], __ATOMIC_ACQUIRE)) { /* pairs with the NIC's order */
			CHECK(multi_clock_ns() - start < 60000000000ull);
			usleep(1000);
		}
		return leave(a);
	}
	RUN(post_and_wait, 1, 1, a);
	CHECK_EQ(*a->got, -GDR_ETIMEOUT);
	CHECK_EQ(first_error().peer, 1);
	CHECK_EQ(gdr_host_status(), 0);
	RUN(answers, 1, 1, a);
	CHECK_OK(*a->got);
	CHECK_EQ(gdr_host_status(), 0);
	return leave(a);
}

static int mute(struct err *a, int victim)
{
	a->times = 1 << 30;
	a->pe = victim;
	if (multi_pe == victim) {
		a->word += 32; /* one that nobody writes */
		RUN(wait_for, 1, 1, a);
		return leave(a);
	}
	RUN(operations, 1, 1, a);
	CHECK(*a->got == -GDR_ETIMEOUT || *a->got == -GDR_EPEERLOST || *a->got == -GDR_ERETRY);
	CHECK_EQ(first_error().peer, victim);
	return leave(a);
}

#endif

static int injected(struct err *a, int code, unsigned syndrome, unsigned vendor)
{
	if (multi_pe == 0) {
		struct gdr_error e;

		RUN(operations, 1, 1, a);
		CHECK_EQ(*a->got, -code);
		e = first_error();
		CHECK_EQ(e.status, -code);
		CHECK_EQ(e.peer, a->pe);
		CHECK_EQ(e.syndrome, syndrome);
		CHECK_EQ(e.vendor_syndrome, vendor);
		CHECK(e.is_cause);
	}
	return leave_soon(a);
}

GDR_KERNEL(quiet_only, struct err, a)
{
	*a.got = gdr_quiet();
}

/* Within a time that is far below the limits of waits: what PE 0 is told of its operation, all others hear,
 * whatever they do. */
static int told(struct err *a, int code, int waits)
{
	uint64_t start = multi_clock_ns();
	struct gdr_error e;
	int ret;

	if (multi_pe == 0) {
		RUN(operations, 1, 1, a);
		CHECK_EQ(*a->got, -code);
		e = first_error();
		CHECK_EQ(e.status, -code);
		CHECK_EQ(e.peer, 1);
		CHECK(!strcmp(e.op, "put") && e.len == 100);
	} else if (waits) {
		a->pe = 0;
		RUN(wait_for, 1, 1, a);
		CHECK_EQ(*a->got, -GDR_EPEERFAILED);
		e = first_error();
		CHECK_EQ(e.status, -GDR_EPEERFAILED);
		CHECK_EQ(e.peer, 0);
		CHECK(strstr(e.text, "PE 0 says: gdr_put to PE 1 failed") && strstr(e.text, gdr_strerror(code)));
		RUN(quiet_only, 1, 1, a);
		CHECK_EQ(*a->got, -GDR_EPEERFAILED);
	}
	ret = gdr_finalize();
	if (ret != (multi_pe == 0 ? -code : -GDR_EPEERFAILED))
		multi_fail(__FILE__, __LINE__, "gdr_finalize: %s", gdr_strerror(ret));
	CHECK(multi_clock_ns() - start < 12000000000ull);
	multi_shared_free(a->report);
	multi_shared_free(a->got);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	struct err a = {.len = 100};

	multi_begin();
	setup(&a);
	if (!strcmp(what, "timeout"))
		return argc > 2 ? stream_timeout(&a) : timeout(&a);
#ifndef __CUDACC__
	if (!strcmp(what, "timeout_host"))
		return host_timeout(&a);
#endif
	if (!strcmp(what, "abort"))
		return end_waits(&a);
	if (!strcmp(what, "stopped"))
		return stopped(&a);
#ifndef __CUDACC__
	if (!strcmp(what, "remote_write"))
		return remote(&a, WRITE);
	if (!strcmp(what, "remote_read"))
		return remote(&a, READ);
	if (!strcmp(what, "remote_atomic"))
		return remote(&a, ATOMIC);
	if (!strcmp(what, "local"))
		return local(&a);
	if (!strcmp(what, "unmapped"))
		return unmapped(&a, argc > 2 ? 8u << 20 : 65536);
	if (!strcmp(what, "retry"))
		return retry(&a);
	if (!strcmp(what, "running"))
		return running(&a);
	if (!strcmp(what, "absent"))
		return absent(&a);
	if (!strcmp(what, "mute") && argc == 3)
		return mute(&a, atoi(argv[2]));
	if (!strcmp(what, "silent"))
		return silent(&a);
	if (!strcmp(what, "flushed") && argc == 3)
		return flushed(&a, !strcmp(argv[2], "cause"));
#endif
	if (!strcmp(what, "injected") && argc == 5)
		return injected(&a, atoi(argv[2]), (unsigned)strtoul(argv[3], NULL, 0),
				(unsigned)strtoul(argv[4], NULL, 0));
	if (!strcmp(what, "told") && argc == 4)
		return told(&a, atoi(argv[2]), !strcmp(argv[3], "wait"));
	multi_fail(__FILE__, __LINE__, "which error? '%s'", what);
}
