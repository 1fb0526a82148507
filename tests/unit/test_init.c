// SPDX-License-Identifier: BSD-3-Clause
/* Bring-up, collective allocation and shutdown of a job of forked PEs: it
 * comes up on all or on none, and nothing hangs or is left behind. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <gdr.h>
#include <gdr/bootstrap.h>

#include "tests/entries.h"
#include "tests/unit/job.h"

static int init(void)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	attr.heap_size = 4 << 20;
	attr.transports = "p2p";
	attr.bootstrap = job_bootstrap();
	return gdr_init_attr(&attr);
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static int body_heap(int pe, int n)
{
	uint64_t *a, *b, *theirs;
	struct gdr_heap_info before, after;
	int i;

	JOB_CHECK(!init());
	JOB_CHECK(gdr_host_my_pe() == pe && gdr_host_n_pes() == n);
	JOB_CHECK(!gdr_heap_query(&before));
	a = gdr_malloc(1000);
	b = gdr_calloc(100, 8);
	JOB_CHECK(a && b && (char *)b - (char *)a >= 1000);
	for (i = 0; i < 100; i++)
		JOB_CHECK(b[i] == 0);
	JOB_CHECK(!gdr_barrier_all());
	for (i = 0; i < n; i++) { /* same offset on all: what I write there, they find */
		theirs = gdr_host_ptr(b + pe, i);
		JOB_CHECK(theirs);
		__atomic_store_n(theirs, 1000u + (unsigned int)pe, __ATOMIC_RELAXED);
	}
	JOB_CHECK(!gdr_barrier_all());
	for (i = 0; i < n; i++)
		JOB_CHECK(b[i] == 1000u + (unsigned int)i);
	JOB_CHECK(!gdr_host_ptr(&i, 0) && !gdr_host_ptr(b, n) && !gdr_host_ptr(b, -1));
	JOB_CHECK(!gdr_free(a) && !gdr_free(b) && !gdr_free(NULL));
	JOB_CHECK(!gdr_heap_query(&after) && !memcmp(&before, &after, sizeof(before)));
	JOB_CHECK(!gdr_finalize());
	JOB_CHECK(gdr_host_my_pe() == -GDR_ESTATE && !gdr_malloc(1));
	return 0;
}

static int status_inside;

static void *init_inside(void *arg)
{
	(void)arg;
	status_inside = init();
	return NULL;
}

/* Another thread while this one is in gdr_init. */
static void init_beside(int call, void *send, size_t len)
{
	pthread_t thread;

	(void)send;
	(void)len;
	if (call == 0 && !pthread_create(&thread, NULL, init_inside, NULL))
		pthread_join(thread, NULL);
}

static int body_threads(int pe, int n)
{
	(void)n;
	job_lie = init_beside;
	JOB_CHECK(!init());
	JOB_CHECK(status_inside == -GDR_ESTATE);
	JOB_CHECK(strstr(job_stderr(), "gdr_init is running in another thread of this process"));
	job_lie = NULL;
	JOB_CHECK(init() == -GDR_ESTATE && strstr(job_stderr(), "already initialised"));
	JOB_CHECK(!gdr_finalize());
	JOB_CHECK(!init() && !gdr_finalize()); /* who was refused left nothing */
	return 0;
}

static int body_disagree(int pe, int n)
{
	void *p, *q;

	(void)n;
	JOB_CHECK(!init());
	JOB_CHECK(!gdr_malloc(pe == 1 ? 4096 : 8192));
	JOB_CHECK(gdr_host_status() == -GDR_EMISMATCH);
	JOB_CHECK(strstr(job_stderr(), "PE 0 allocates 8192") && strstr(job_stderr(), "PE 1 allocates 4096"));
	JOB_CHECK(!gdr_align(pe == 1 ? 64 : 128, 8));
	p = gdr_malloc(100); /* and goes on as if nothing had been */
	q = gdr_malloc(100);
	JOB_CHECK(p && q);
	JOB_CHECK(gdr_free(pe ? p : q) == -GDR_EMISMATCH);
	JOB_CHECK(!strstr(job_stderr(), "alignment 0") && !strstr(job_stderr(), "alignment 1)"));
	JOB_CHECK(gdr_free(pe == 1 ? (void *)((char *)p - 4096) : p) == -GDR_EINVAL);
	JOB_CHECK(gdr_free(pe == 1 ? NULL : p) == -GDR_EMISMATCH);
	JOB_CHECK(strstr(job_stderr(), "PE 1 frees NULL") && !strstr(job_stderr(), "18446744"));
	JOB_CHECK(pe ? gdr_free(p) == -GDR_EMISMATCH : !gdr_malloc(100));
	JOB_CHECK(gdr_free((char *)p + 8) == -GDR_EINVAL);
	JOB_CHECK(gdr_free(pe == 1 ? (void *)&p : p) == -GDR_EINVAL); /* one PE's mistake is everybody's */
	JOB_CHECK(pe == 1 || strstr(job_stderr(), "PE 1 failed: gdr_free: no object starts at"));
	JOB_CHECK(!gdr_free(p) && gdr_free(p) == -GDR_EINVAL);
	JOB_CHECK(!gdr_align(3, 8));
	JOB_CHECK(!gdr_free(q));
	return gdr_finalize();
}

static int body_exhaust(int pe, int n)
{
	(void)n;
	JOB_CHECK(!init());
	JOB_CHECK(!gdr_malloc(5 << 20));
	JOB_CHECK(gdr_host_status() == -GDR_ENOMEM);
	JOB_CHECK(strstr(job_stderr(), "no room for 5242880 bytes"));
	JOB_CHECK(strstr(job_stderr(), " are free, the largest block"));
	JOB_CHECK(strstr(job_stderr(), "raise GDR_HEAP_SIZE (now 4194304)"));
	JOB_CHECK(!gdr_calloc(SIZE_MAX / 2, 3));
	JOB_CHECK(gdr_malloc(3 << 20));
	return gdr_finalize();
}

/* A mistake that is made again is told once, and then how often. */
static int body_again(int pe, int n)
{
	const char *text, *first;
	char again[100];
	int i, *word;

	(void)n;
	JOB_CHECK(!init());
	word = gdr_malloc(sizeof(*word));
	JOB_CHECK(word);
	for (i = 0; i < 100; i++)
		JOB_CHECK(gdr_host_put(word, NULL, 4, pe) == -GDR_EINVAL);
	first = strstr(job_stderr(), "gdr_host_put: src is NULL, with 4 bytes to PE");
	JOB_CHECK(first && !strstr(first + 1, "gdr_host_put:"));
	JOB_CHECK(!gdr_finalize());
	text = job_stderr();
	snprintf(again, sizeof(again), "gdr_host_put: src is NULL, with 4 bytes to PE %d (99 more times)\n", pe);
	JOB_CHECK(strstr(text, again));
	JOB_CHECK(!init());
	JOB_CHECK(gdr_host_put(word, NULL, 4, pe) == -GDR_EINVAL);
	first = strstr(strstr(job_stderr(), "more times)"), "gdr_host_put: src is NULL"); /* a new job, told anew */
	JOB_CHECK(first);
	return gdr_finalize();
}

/* A PE that does not come: the others return within the limit. */
static int body_absent(int pe, int n)
{
	double begin;
	void *p;

	(void)n;
	setenv("GDR_TIMEOUT", "1s", 1);
	setenv("GDR_INIT_TIMEOUT", "2s", 1);
	JOB_CHECK(!init());
	if (pe == 0) {
		sleep(8);
		_exit(0);
	}
	begin = now();
	p = gdr_malloc(64);
	JOB_CHECK(!p && now() - begin < 7);
	begin = now();
	JOB_CHECK(!gdr_malloc(64) && now() - begin < 5); /* out of step: says so at once */
	/* or the other one was faster, and has told it */
	JOB_CHECK(strstr(job_stderr(), "gdr_malloc: waiting for PE 0: ") ||
		  strstr(job_stderr(), "because of PE 0"));
	JOB_CHECK(gdr_finalize() < 0); /* not as if all were well */
	JOB_CHECK(now() - begin < 7);
	return 0;
}

/* PEs that agree do not ask the launcher. */
static int body_cheap(int pe, int n)
{
	void *p;
	int i, calls;

	(void)n;
	job_lie = job_note_call;
	JOB_CHECK(!init());
	calls = job_last_call;
	for (i = 0; i < 600; i++) { /* what counts the meetings goes round */
		p = gdr_malloc(64);
		JOB_CHECK(p && !gdr_free(p));
	}
	JOB_CHECK(job_last_call == calls);
	JOB_CHECK(!gdr_malloc(pe ? 8 : 16) && job_last_call > calls);
	return gdr_finalize();
}

/* PE 1 leaves because of an error: nobody waits for it, in finalize or in another call. */
static int one_leaves(int pe, int in_malloc)
{
	double begin;
	int ret;

	setenv("GDR_TIMEOUT", "60s", 1);
	JOB_CHECK(!init());
	begin = now();
	if (pe == 1) {
		usleep(300000);
		JOB_CHECK(!gdr_abort_waits());
	} else if (in_malloc) {
		JOB_CHECK(!gdr_malloc(8) && gdr_host_status() == -GDR_EPEERLOST);
		JOB_CHECK(strstr(job_stderr(), "gdr_malloc: PE 1 has left after an error") ||
			  strstr(job_stderr(), "gdr_malloc: waiting for PE 1: a peer is lost")); /* as below */
	}
	ret = gdr_finalize();
	JOB_CHECK(pe == 1 || ret == -GDR_EPEERLOST);
	JOB_CHECK(now() - begin < 20);
	JOB_CHECK(pe == 1 || in_malloc || strstr(job_stderr(), "finalize: PE 1 has left after an error") ||
		  strstr(job_stderr(), "finalize: waiting for PE 1: a peer is lost")); /* another PE heard it first */
	return 0;
}

static int body_leaves(int pe, int n)
{
	(void)n;
	return one_leaves(pe, 0);
}

static int body_leaves_malloc(int pe, int n)
{
	(void)n;
	return one_leaves(pe, 1);
}

/* PE 2 gives up because of PE 1, which is late, and leaves; PE 0, which was stopped meanwhile, hears of both at once.
 * PE 1 is not lost. */
static int body_gives_up(int pe, int n)
{
	pid_t *pid;
	int ret;

	(void)n;
	setenv("GDR_TIMEOUT", "4s", 1);
	JOB_CHECK(!init());
	pid = gdr_calloc((size_t)n, sizeof(*pid));
	JOB_CHECK(pid);
	*pid = getpid();
	JOB_CHECK(!gdr_barrier_all());
	if (pe == 1) {
		pid = gdr_host_ptr(pid, 0);
		JOB_CHECK(pid);
		usleep(3000000);
		JOB_CHECK(!kill(*pid, SIGSTOP));
		usleep(2000000);
		JOB_CHECK(!kill(*pid, SIGCONT));
		usleep(500000);
	} else {
		if (pe == 0)
			usleep(2000000);
		JOB_CHECK(!gdr_malloc(8) && gdr_host_status() == -GDR_ETIMEOUT);
		JOB_CHECK(gdr_barrier_all() == -GDR_ETIMEOUT);
		JOB_CHECK(strstr(job_stderr(), "because of PE 1") || strstr(job_stderr(), "waiting for PE 1"));
	}
	ret = gdr_finalize();
	JOB_CHECK(pe == 1 || ret == -GDR_ETIMEOUT);
	JOB_CHECK(pe != 1 || !strstr(job_stderr(), "given up because of PE 1")); /* which it is */
	return 0;
}

#ifndef __SANITIZE_THREAD__
static uint64_t *never;
static int waited;

static void *wait_in_vain(void *arg)
{
	(void)arg;
	waited = gdr_signal_wait_until(never, GDR_CMP_EQ, 1);
	return NULL;
}

/* A thread that still waits ends with the finalize; the library comes up again. */
static int body_waits(int pe, int n)
{
	const struct gdri_wait *w;
	pthread_t thread;
	int round;

	for (round = 0; round < 2; round++) {
		JOB_CHECK(!init());
		never = gdr_calloc(1, 8);
		JOB_CHECK(never && !gdr_barrier_all());
		w = &gdri_dev_state->ctl->waits[1]; /* the first of those in progress */
		JOB_CHECK(!pthread_create(&thread, NULL, wait_in_vain, NULL));
		/* acquire: pairs with the release in gdri_wait_publish; finalize knows of a wait since then */
		while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) == GDRI_WAIT_IDLE)
			usleep(100);
		JOB_CHECK(gdr_finalize() == -GDR_EABORTED);
		JOB_CHECK(!pthread_join(thread, NULL));
		JOB_CHECK(waited == -GDR_EABORTED);
		JOB_CHECK(strstr(job_stderr(), "still in"));
	}
	JOB_CHECK(n > 0 && !init());
	return gdr_finalize();
}
#endif

/* A wait that expired and then succeeds leaves nothing behind but what gdr_finalize returns; init anew begins well. */
static int body_recovers(int pe, int n)
{
	uint64_t *word;
	int round;

	(void)n;
	setenv("GDR_TIMEOUT", "500ms", 1);
	for (round = 0; round < 2; round++) {
		JOB_CHECK(!init());
		JOB_CHECK(gdri_dev_state->ctl->waits[0].state == GDRI_WAIT_IDLE);
		JOB_CHECK(!gdri_dev_state->ctl->notice[0] && !gdri_dev_state->failed);
		word = gdr_calloc(1, 8);
		JOB_CHECK(word);
		if (round) {
			;
		} else if (pe == 0) {
			JOB_CHECK(gdr_signal_wait_until_from(word, GDR_CMP_EQ, 1, 1) ==
				  -GDR_ETIMEOUT);
			JOB_CHECK(gdri_dev_state->ctl->waits[0].state == GDRI_WAIT_FAILED);
			while (gdr_signal_wait_until_from(word, GDR_CMP_EQ, 1, 1))
				;
			JOB_CHECK(gdri_dev_state->ctl->waits[0].state == GDRI_WAIT_IDLE);
			JOB_CHECK(!gdri_dev_state->failed);
		} else {
			usleep(2500000); /* the limit and the search */
			JOB_CHECK(!gdr_signal_op(word, 1, GDR_SIGNAL_SET, 0));
		}
		JOB_CHECK(gdr_finalize() == (pe || round ? 0 : -GDR_ETIMEOUT));
		JOB_CHECK(!strstr(job_stderr(), "finalize"));
	}
	return 0;
}

static int body_one_bad_option(int pe, int n)
{
	double begin = now();

	(void)n;
	if (pe == 1)
		setenv("GDR_QP_DEPTH", "100", 1);
	JOB_CHECK(init() == -GDR_EOPTION && now() - begin < 30);
	JOB_CHECK(strstr(job_stderr(), "GDR_QP_DEPTH=100"));
	JOB_CHECK(pe == 1 || strstr(job_stderr(), "PE 1 failed"));
	unsetenv("GDR_QP_DEPTH");
	if (pe == 1) /* there is none */
		setenv("GDR_HEAP_KIND", "gpu", 1);
	JOB_CHECK(init() == -GDR_EOPTION && strstr(job_stderr(), "GDR_HEAP_KIND=gpu, but kernels run on the host"));
	unsetenv("GDR_HEAP_KIND");
	JOB_CHECK(!init()); /* nothing half-initialised is left */
	return gdr_finalize();
}

static int body_heap_sizes(int pe, int n)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	(void)n;
	attr.heap_size = pe == 2 ? 8 << 20 : 4 << 20;
	attr.transports = "p2p";
	attr.bootstrap = job_bootstrap();
	JOB_CHECK(gdr_init_attr(&attr) == -GDR_EMISMATCH);
	JOB_CHECK(strstr(job_stderr(), "GDR_HEAP_SIZE is 4194304 on PE 0 and 8388608 on PE 2"));
	return 0;
}

/* Every option that all PEs set alike: who differs is told in the option's own words. */
static int body_options(int pe, int n)
{
	static const struct {
		const char *name, *first, *other, *text;
	} rows[] = {
		{"HEAP_SIZE", "4m", "8m", "GDR_HEAP_SIZE is 4194304 on PE 0 and 8388608 on PE 1"},
		{"HEAP_MAX", "0", "512m", "GDR_HEAP_MAX is 0 on PE 0 and 536870912 on PE 1"},
		{"HEAP_CHUNK", "2m", "4m", "GDR_HEAP_CHUNK is 2097152 on PE 0 and 4194304 on PE 1"},
		{"HEAP_KIND", "auto", "host", "GDR_HEAP_KIND is host on PE 1 but not on PE 0"},
		{"TRANSPORTS", "p2p", "nic", "GDR_TRANSPORTS is p2p on PE 0 and nic on PE 1"},
		{"TRANSPORTS", "nic,p2p", "p2p", "GDR_TRANSPORTS is p2p,nic on PE 0 and p2p on PE 1"},
		{"QPS_PER_PE", "2", "3", "GDR_QPS_PER_PE is 2 on PE 0 and 3 on PE 1"},
		{"CTX_QUEUES", "2", "3", "GDR_CTX_QUEUES is 2 on PE 0 and 3 on PE 1"},
		{"MAX_PES", "2", "3", "GDR_MAX_PES is 2 on PE 0 and 3 on PE 1"},
		{"TEAMS", "4", "5", "GDR_TEAMS is 4 on PE 0 and 5 on PE 1"},
		{"COLL_SLOT", "64", "128", "GDR_COLL_SLOT is 64 on PE 0 and 128 on PE 1"},
		{"COLL_BLOCKS", "2", "3", "GDR_COLL_BLOCKS is 2 on PE 0 and 3 on PE 1"},
		{"COLL", "reduce:ring", "", "PE 0 and PE 1 choose other algorithms for collectives: set GDR_COLL"},
	};
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	char name[40];
	size_t i;

	(void)n;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name, sizeof(name), "GDR_%s", rows[i].name);
		setenv(name, pe ? rows[i].other : rows[i].first, 1);
		attr.bootstrap = job_bootstrap();
		JOB_CHECK(gdr_init_attr(&attr) == -GDR_EMISMATCH);
		JOB_CHECK(strstr(job_stderr(), rows[i].text));
		unsetenv(name);
	}
	return 0;
}

/* The first exchange after init's own agreement header (192 bytes) is the hello record:
 * magic, abi, version. */
static void lie_version(int call, void *send, size_t len)
{
	uint32_t version = 10203;

	if (call == 0 && len >= 224)
		memcpy((char *)send + 192 + 12, &version, sizeof(version));
}

static void lie_abi(int call, void *send, size_t len)
{
	uint32_t abi = GDR_ABI_VERSION + 41;

	if (call == 0 && len >= 224)
		memcpy((char *)send + 192 + 8, &abi, sizeof(abi));
}

/* The same version, but device code of another layout. */
static int body_abi_of_peer(int pe, int n)
{
	char text[80];

	(void)n;
	job_lie = pe == 1 ? lie_abi : NULL;
	JOB_CHECK(init() == -GDR_EVERSION);
	snprintf(text, sizeof(text), "PE 0 has gdr %s (ABI %d)", GDR_VERSION_STRING, GDR_ABI_VERSION);
	JOB_CHECK(strstr(job_stderr(), text));
	snprintf(text, sizeof(text), "PE 1 has %s (ABI %d)", GDR_VERSION_STRING, GDR_ABI_VERSION + 41);
	JOB_CHECK(strstr(job_stderr(), text));
	return 0;
}

static int body_version(int pe, int n)
{
	(void)n;
	job_lie = pe == 1 ? lie_version : NULL;
	JOB_CHECK(init() == -GDR_EVERSION);
	JOB_CHECK(strstr(job_stderr(), "PE 0 has gdr " GDR_VERSION_STRING));
	JOB_CHECK(strstr(job_stderr(), "PE 1 has 1.2.3"));
	return 0;
}

/* Random bytes instead of any one contribution: an error or success, never a crash or hang. */
static int garbage_call;
static void lie_garbage(int call, void *send, size_t len)
{
	unsigned char *p = send;

	if (call == garbage_call)
		for (; len; len--)
			*p++ = (unsigned char)rand();
}

static int body_garbage(int pe, int n)
{
	(void)n;
	setenv("GDR_INIT_TIMEOUT", "1s", 1);
	job_lie = pe == 1 ? lie_garbage : NULL;
	srand((unsigned int)garbage_call);
	if (!init())
		gdr_finalize();
	return 0;
}

static int count_maps(const char *with)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	int n = 0;

	while (fgets(line, sizeof(line), f))
		n += strstr(line, with) != NULL;
	fclose(f);
	return n;
}

static int body_cycles(int pe, int n)
{
	int i, fds = 0, maps = 0, tasks = 0;

	(void)n;
	for (i = 0; i < 100; i++) {
		JOB_CHECK(!init());
		JOB_CHECK(gdr_malloc(100));
		JOB_CHECK(!gdr_finalize());
		JOB_CHECK(!gdr_finalize());
		if (i == 10) { /* what is set up once is there now */
			fds = entries("/proc/self/fd");
			maps = count_maps("");
			tasks = entries("/proc/self/task");
		}
	}
	JOB_CHECK(entries("/proc/self/fd") == fds);
	JOB_CHECK(entries("/proc/self/task") == tasks);
	JOB_CHECK(count_maps("gdr-heap") == 0);
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__) /* they map for themselves */
	JOB_CHECK(count_maps("") <= maps + 4); /* the C library's arenas come and go */
#else
	JOB_CHECK(maps > 0);
#endif
	return 0;
}

static int body_forks(int pe, int n)
{
	uint64_t *p, mine = 7;
	int status = 0;
	pid_t child;

	(void)n;
	JOB_CHECK(!init());
	p = gdr_calloc(1, 8);
	JOB_CHECK(p);
	child = fork();
	if (!child) {
		if (gdr_host_my_pe() != -GDR_ESTATE || gdr_malloc(8) || gdr_finalize() ||
		    gdr_host_put(p, &mine, 8, 0) != -GDR_ESTATE)
			_exit(1);
		exit(0); /* runs the destructors of a process that never initialised */
	}
	JOB_CHECK(waitpid(child, &status, 0) == child && status == 0);
	JOB_CHECK(!gdr_host_put(p, &mine, 8, pe) && !gdr_host_quiet() && *p == 7);
	JOB_CHECK(!gdr_free(p));
	return gdr_finalize();
}

static int body_buffers(int pe, int n)
{
	char *page = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	static char buf[70][64];
	int i;

	JOB_CHECK(page != MAP_FAILED && !mprotect(page + 4096, 4096, PROT_NONE));
	(void)n;
	JOB_CHECK(gdr_buffer_register(buf, 64) == -GDR_ESTATE);
	JOB_CHECK(!init());
	JOB_CHECK(!strstr(job_stderr(), "there is no memory"));
	JOB_CHECK(gdr_buffer_register((void *)4096, 4096) == -GDR_EINVAL);
	JOB_CHECK(strstr(job_stderr(), "at 0x1000 there is no memory of this process"));
	JOB_CHECK(gdr_buffer_register(page, 12288) == -GDR_EINVAL); /* its second page cannot be read */
	JOB_CHECK(!gdr_buffer_register(page, 4096) && !gdr_buffer_unregister(page));
	JOB_CHECK(!gdr_symmetric_register((void *)4096, 4096) && !gdr_symmetric_register(page, 12288));
	JOB_CHECK(strstr(job_stderr(), "a part of it is no memory of this process"));
	munmap(page, 12288);
	JOB_CHECK(shared != MAP_FAILED && !gdr_symmetric_register(shared, 4096));
	JOB_CHECK(strstr(job_stderr(), "a part of it is shared (MAP_SHARED)"));
	JOB_CHECK(!gdr_buffer_register(shared, 4096) && !gdr_buffer_unregister(shared) && !munmap(shared, 4096));
	for (i = 0; i < 64; i++)
		JOB_CHECK(!gdr_buffer_register(buf[i], 64));
	JOB_CHECK(gdr_buffer_register(buf[64], 64) == -GDR_ENOMEM);
	JOB_CHECK(gdr_buffer_unregister(buf[64]) == -GDR_EINVAL);
	JOB_CHECK(!gdr_buffer_unregister(buf[3]));
	JOB_CHECK(gdr_buffer_unregister(buf[3]) == -GDR_EINVAL);
	JOB_CHECK(gdr_buffer_register(buf[2], 65) == -GDR_EINVAL);
	JOB_CHECK(gdr_buffer_register(buf[3] - 1, 64) == -GDR_EINVAL);
	JOB_CHECK(!gdr_buffer_register(buf[3], 64));
	JOB_CHECK(gdr_buffer_register(NULL, 8) == -GDR_EINVAL);
	JOB_CHECK(gdr_buffer_register(buf, 0) == -GDR_EINVAL);
	JOB_CHECK(gdr_buffer_register(buf, SIZE_MAX) == -GDR_EINVAL);
	JOB_CHECK(gdr_buffer_register(gdr_host_ptr(gdr_malloc(64), pe), 8) == -GDR_EINVAL);
	return gdr_finalize();
}

static int body_unreachable(int pe, int n)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	(void)n;
	attr.transports = "p2p";
	attr.bootstrap = job_bootstrap();
	snprintf(attr.bootstrap->hostname, sizeof(attr.bootstrap->hostname), "node%d", pe == 2);
	JOB_CHECK(gdr_init_attr(&attr) == -GDR_ENOTSUP);
	JOB_CHECK(strstr(job_stderr(), "cannot be reached from PE"));
	JOB_CHECK(strstr(job_stderr(), "it is on another node, by its host name"));
	JOB_CHECK(strstr(job_stderr(), "GDR_TRANSPORTS does not allow nic"));
	return 0;
}

/* With any number of files that it may open init works or says what the limit is, and waits for nothing in vain. */
static int body_few_files(int pe, int n)
{
	rlim_t open_now = (rlim_t)entries("/proc/self/fd");
	struct rlimit was, few;
	double begin = now();
	int ret = -1;

	(void)n;
	JOB_CHECK(!getrlimit(RLIMIT_NOFILE, &was));
	few = was;
	for (few.rlim_cur = open_now - 1; ret; few.rlim_cur++) {
		size_t said = strlen(job_stderr());

		JOB_CHECK(!setrlimit(RLIMIT_NOFILE, &few));
		ret = init();
		JOB_CHECK(!setrlimit(RLIMIT_NOFILE, &was));
		JOB_CHECK(!ret || (ret == -GDR_ESYSTEM && strstr(job_stderr() + said, "ulimit -n")));
		JOB_CHECK(few.rlim_cur < open_now + 40);
	}
	JOB_CHECK(few.rlim_cur > open_now + 3);
	JOB_CHECK(now() - begin < 20); /* an exchange that waits takes 20 s of GDR_INIT_TIMEOUT, half of it */
	return gdr_finalize();
}

/* What PEs share counts as files, and a file beyond the limit would be a signal. */
static int body_small_files(int pe, int n)
{
	struct rlimit was, few;
	void *p;

	(void)n;
	JOB_CHECK(!getrlimit(RLIMIT_FSIZE, &was));
	few = was;
	few.rlim_cur = 2 << 20;
	JOB_CHECK(!setrlimit(RLIMIT_FSIZE, &few));
	JOB_CHECK(init() == -GDR_ESYSTEM);
	JOB_CHECK(strstr(job_stderr(), "ulimit -f"));
	few.rlim_cur = 4 << 20; /* enough for the heap as it begins, not for a part that it grows by */
	JOB_CHECK(!setrlimit(RLIMIT_FSIZE, &few));
	setenv("GDR_HEAP_MAX", "64m", 1);
	setenv("GDR_HEAP_CHUNK", "8m", 1);
	JOB_CHECK(!init());
	JOB_CHECK(!gdr_malloc(6 << 20));
	JOB_CHECK(strstr(job_stderr(), "cannot create 8388608 bytes of shared memory"));
	JOB_CHECK(!setrlimit(RLIMIT_FSIZE, &was));
	p = gdr_malloc(6 << 20);
	JOB_CHECK(p);
	JOB_CHECK(!gdr_free(p));
	return gdr_finalize();
}

static void sleep_in_third(int call, void *send, size_t len)
{
	(void)send;
	(void)len;
	if (call == 2)
		usleep(1600000);
}

/* A step that took all the time: the next one says so, and names the option. The limit does not begin anew for what
 * follows the failure, of which a bootstrap has a second in any case. */
static int body_out_of_time(int pe, int n)
{
	(void)n;
	setenv("GDR_INIT_TIMEOUT", "1500ms", 1);
	job_lie = sleep_in_third;
	JOB_CHECK(init() == -GDR_ETIMEOUT);
	JOB_CHECK(strstr(job_stderr(), "GDR_INIT_TIMEOUT=1500ms"));
	JOB_CHECK(job_finalize_ms == 1000);
	return 0;
}

/* What a program compiled with other headers calls. */
static int body_abi(int pe, int n)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;
	char text[120];

	(void)n;
	attr.transports = "p2p";
	attr.bootstrap = job_bootstrap();
	JOB_CHECK(gdri_init_abi(&attr, GDR_ABI_VERSION + (pe == 1)) == -GDR_EVERSION);
	/* both versions, on all PEs */
	snprintf(text, sizeof(text), "compiled with headers of ABI %d, the library has ABI %d (gdr %s)",
		 GDR_ABI_VERSION + 1, GDR_ABI_VERSION, GDR_VERSION_STRING);
	JOB_CHECK(strstr(job_stderr(), text));
	JOB_CHECK(pe == 1 || strstr(job_stderr(), "PE 1 failed"));
	return 0;
}

/* More PEs than a full mesh is built for: 2000 * 2 * (64 * 1024 + 2 * 128) bytes. */
static int body_crowd(int pe, int n)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	(void)n;
	attr.bootstrap = job_bootstrap();
	attr.bootstrap->n_pes = 2000;
	JOB_CHECK(gdr_init_attr(&attr) == -GDR_ENOTSUP);
	JOB_CHECK(strstr(job_stderr(), "2000 PEs"));
	JOB_CHECK(strstr(job_stderr(), "500.5 MiB"));
	JOB_CHECK(strstr(job_stderr(), "1024"));
	return 0;
}

static int body_attr(int pe, int n)
{
	struct gdr_init_attr attr = GDR_INIT_ATTR_INITIALIZER;

	(void)n;
	attr.transports = "p2p,rumour";
	attr.bootstrap = job_bootstrap();
	JOB_CHECK(gdr_init_attr(&attr) == -GDR_EOPTION);
	JOB_CHECK(strstr(job_stderr(), "p2p|nic"));
	JOB_CHECK(!init());
	JOB_CHECK(init() == -GDR_ESTATE);
	return gdr_finalize();
}

#define JOB_TEST(name, n, limit)                                                                   \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		assert_int_equal(job_run(n, limit, body_##name), 0);                               \
	}
JOB_TEST(heap, 4, 30)
JOB_TEST(disagree, 3, 30)
JOB_TEST(exhaust, 2, 30)
JOB_TEST(absent, 3, 30)
JOB_TEST(cheap, 3, 60)
JOB_TEST(again, 2, 30)
JOB_TEST(leaves, 3, 60)
JOB_TEST(leaves_malloc, 3, 60)
JOB_TEST(gives_up, 3, 60)
#ifndef __SANITIZE_THREAD__
JOB_TEST(waits, 2, 60)
#endif
JOB_TEST(recovers, 2, 60)
JOB_TEST(one_bad_option, 3, 90)
JOB_TEST(heap_sizes, 3, 30)
JOB_TEST(options, 2, 60)
JOB_TEST(version, 3, 30)
JOB_TEST(abi_of_peer, 3, 30)
JOB_TEST(crowd, 1, 30)
JOB_TEST(cycles, 2, 120)
JOB_TEST(forks, 2, 30)
JOB_TEST(buffers, 2, 30)
JOB_TEST(unreachable, 3, 30)
JOB_TEST(out_of_time, 1, 30)
JOB_TEST(few_files, 4, 60)
JOB_TEST(small_files, 2, 30)
JOB_TEST(threads, 2, 30)
JOB_TEST(attr, 2, 30)
JOB_TEST(abi, 2, 30)

static void garbage(void **state)
{
	(void)state;
	for (garbage_call = 0; garbage_call < 10; garbage_call++)
		assert_int_equal(job_run(3, 30, body_garbage), 0);
}

static void single(void **state)
{
	(void)state;
	assert_int_equal(job_run(1, 30, body_heap), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(single),	  cmocka_unit_test(heap),
		cmocka_unit_test(disagree),	  cmocka_unit_test(exhaust),
		cmocka_unit_test(absent),	  cmocka_unit_test(one_bad_option),
		cmocka_unit_test(heap_sizes),	  cmocka_unit_test(options),
		cmocka_unit_test(version),
		cmocka_unit_test(garbage),	  cmocka_unit_test(cycles),
		cmocka_unit_test(forks),		  cmocka_unit_test(buffers),
		cmocka_unit_test(unreachable),	  cmocka_unit_test(out_of_time),
		cmocka_unit_test(few_files),	  cmocka_unit_test(small_files),
		cmocka_unit_test(attr),		  cmocka_unit_test(threads),
		cmocka_unit_test(abi),			  cmocka_unit_test(abi_of_peer),
		cmocka_unit_test(crowd),		  cmocka_unit_test(cheap),
		cmocka_unit_test(leaves),		  cmocka_unit_test(leaves_malloc),
		cmocka_unit_test(gives_up),
#ifndef __SANITIZE_THREAD__ /* it reports what the contract forbids: finalize sets the limit that the wait reads */
		cmocka_unit_test(waits),
#endif
		cmocka_unit_test(recovers),		  cmocka_unit_test(again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
