/* SPDX-License-Identifier: BSD-3-Clause */
/* A PE that ends or stops at any time. One number decides everything (tests/multi/errors/chaos is the driver):
 *
 *	chaos_pe plan NUMBER		prints launcher, path, PEs, stage, how, victim and delay of the run
 *	chaos_pe run NUMBER FILE	one PE of it; FILE is a page that all PEs and the driver share
 *	chaos_pe guard NUMBER FILE	ends a victim that is stopped, once the others have ended
 *	chaos_pe judge NUMBER FILE	status 0: all is well; 3: nobody was gone; else what is wrong, in words
 *
 * What a call may still say once a PE is gone:
 *  - a collective call that returns 0 was entered by every PE that it needs. Each PE notes in the page which call it
 *    is about to enter, so that a 0 which nobody can have earned is seen;
 *  - quiet that returns 0 says that the memory of the peer has the bytes, not that the peer lives. Once the launcher
 *    has reported a PE dead no quiet, fence or barrier returns 0, and the status is -GDR_EPEERLOST;
 *  - bytes that a collective call with status 0 vouches for are right;
 *  - after a call that failed gdr_finalize does not return 0. */
#include "tests/by_uid.h"
#include "tests/multi/multi.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

enum { INIT, MALLOC, PUT, ATOMICS, COLLECTIVE, FINALIZE, N_STAGES };
enum { KILL, STOP, QUICK_EXIT, EXIT, N_HOWS };
static const char *const stages[] = {"init", "malloc", "put", "atomics", "collective", "finalize"};
static const char *const hows[] = {"kill", "stop", "_exit", "exit"};
static const char *const paths[] = {"p2p", "nic"};
static const char *const launchers[] = {"uid", "mpirun", "srun"};

struct plan {
	unsigned number;
	int stage, how, path, launcher, n, victim;
	unsigned delay_us; /* into the stage */
};

#define MOST 8
#define WORDS 512 /* of a transfer, at most */

struct page {
	int victim; /* its process */
	uint64_t gone; /* the victim is about to: 1 + the last call that it entered */
	struct {
		uint64_t entered; /* numbers of collective calls, from 1 on */
		int done;
		int first; /* status of the first call that failed */
		int finalize;
		char what[32]; /* its name */
		char wrong[200];
	} pe[MOST];
};

static struct plan plan;
static struct page *page;
static uint64_t *area, *words, *counter, *sums; /* in the heap */
static int failed;

/* 36 cells, each of which comes once in 36 numbers, and every stage over both paths once in 12. */
static void make_plan(unsigned number)
{
	unsigned cell = number * 13 % 36;
	uint64_t h = multi_hash(number + 1), scale;

	plan.number = number;
	plan.stage = (int)(cell % N_STAGES);
	plan.path = (int)(cell / N_STAGES % 2);
	plan.launcher = (int)(cell / N_STAGES / 2);
	plan.n = 2 + (int)(h % 7);
	plan.victim = (int)(h / 7 % (unsigned)plan.n);
	plan.how = (int)(multi_hash(h + 9) % N_HOWS);
	/* as likely within 20 us to 200 us as within 20 ms to 200 ms; init takes longer */
	scale = 20ull << (h / 401 % (plan.stage == INIT ? 16 : 14));
	plan.delay_us = (unsigned)(scale + multi_hash(h) % scale);
}

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
{
	char *text = page->pe[multi_pe].wrong;
	va_list ap;

	if (*text)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(page->pe[0].wrong), fmt, ap);
	va_end(ap);
}

/* ---- the end of the victim ---- */

static void *end_later(void *unused)
{
	struct timespec t = {plan.delay_us / 1000000, (long)(plan.delay_us % 1000000) * 1000};

	nanosleep(&t, NULL);
	/* relaxed, here and below: the page is looked at by people and the driver, and numbers only grow */
	__atomic_store_n(&page->gone, 1 + __atomic_load_n(&page->pe[multi_pe].entered, __ATOMIC_RELAXED),
			 __ATOMIC_RELAXED);
	switch (plan.how) {
	case KILL:
		kill(getpid(), SIGKILL);
		break;
	case STOP:
		kill(getpid(), SIGSTOP);
		break;
	case QUICK_EXIT:
		_exit((int)(plan.number % 2) * 3);
	default:
		/* handlers and destructors, while the other thread is in the library */
		exit((int)(plan.number % 2) * 3);
	}
	return unused;
}

static void stage_begins(int stage)
{
	pthread_t t;

	if (stage == plan.stage && multi_pe == plan.victim && pthread_create(&t, NULL, end_later, NULL))
		wrong("no thread");
}

static void crashed(int sig)
{
	wrong("signal %d after call %llu", sig, (unsigned long long)page->pe[multi_pe].entered);
	signal(sig, SIG_DFL);
	raise(sig);
}

/* ---- calls ---- */

/* Of a call that gives memory; the status of one that gave none is told once. */
static int why_none(const void *p)
{
	int ret = p ? 0 : gdr_host_status();

	return p || ret ? ret : 1;
}

static void note(const char *what, int ret)
{
	if (!ret || failed)
		return;
	failed = ret;
	page->pe[multi_pe].first = ret;
	snprintf(page->pe[multi_pe].what, sizeof(page->pe[0].what), "%s", what);
}

/* Number of the collective call that this PE is about to enter. */
static uint64_t enter(void)
{
	return __atomic_add_fetch(&page->pe[multi_pe].entered, 1, __ATOMIC_RELAXED);
}

/* Call number k returned ret: 0 only if all have entered it, or `only` that PE. After a failure the others count
 * otherwise. */
static int left_by(const char *what, uint64_t k, int ret, int only)
{
	uint64_t theirs;
	int pe;

	for (pe = 0; !ret && pe < plan.n; pe++) {
		theirs = __atomic_load_n(&page->pe[pe].entered, __ATOMIC_RELAXED);
		if (theirs < k && (only < 0 || pe == only) && (!failed || pe == plan.victim))
			wrong("%s, call %llu, returned 0; PE %d has entered %llu", what, (unsigned long long)k, pe,
			      (unsigned long long)theirs);
	}
	note(what, ret);
	return ret;
}

static int left(const char *what, uint64_t k, int ret)
{
	return left_by(what, k, ret, -1);
}

static int barrier(void)
{
	uint64_t k = enter();

	return left("barrier", k, gdr_barrier_all());
}

struct round {
	uint64_t k, *counter, *sums, *words;
	int n, me, stage;
	int *ret;
	struct multi_report *report;
};

static struct multi_report *report;
static int *answer;

GDR_KERNEL(device_round, struct round, r)
{
	int right = (r.me + 1) % r.n, before = (r.me + r.n - 1) % r.n, ret = 0;

	if (r.stage == PUT) {
		ret = gdr_put_signal(r.words + WORDS, r.words, 16, r.words + 2 * WORDS, r.k, GDR_SIGNAL_SET, right);
		if (!ret)
			ret = gdr_signal_wait_until_from(r.words + 2 * WORDS, GDR_CMP_GE, r.k, before);
	} else if (r.stage == ATOMICS) {
		gdr_uint64_atomic_add(r.counter, 1, 0);
	} else {
		ret = gdr_uint64_sum_reduce(GDR_TEAM_WORLD, r.sums + 1, r.sums, 1);
	}
	if (!ret)
		ret = gdr_quiet();
	*r.ret = ret;
}

static int by_kernel(uint64_t k, int stage)
{
	struct round r = {k, counter, sums, words, plan.n, multi_pe, stage, answer, report};
	int ret = gdr_launch(device_round, 1, 1, 0, NULL, &r);

	if (!ret)
		ret = gdr_stream_sync(NULL);
	return ret ? ret : *answer;
}

/* ---- stages: each goes on until a call fails, which the victim sees to ---- */

static void stage_malloc(void)
{
	uint64_t i, k, *p, seed = plan.number;
	size_t size;

	for (i = 0; !failed; i++) {
		size = 8 + (size_t)(multi_hash(seed + i) % 60000);
		k = enter();
		p = (uint64_t *)gdr_malloc(size);
		left("malloc", k, why_none(p));
		if (!p) {
			if (failed == 1)
				wrong("malloc returned NULL, the status is 0");
			return;
		}
		*p = i;
		k = enter();
		left("free", k, gdr_free(p));
	}
}

/* To the right, and what came from the left. */
static void put_round(uint64_t i)
{
	int right = (multi_pe + 1) % plan.n, before = (multi_pe + plan.n - 1) % plan.n;
	size_t len = i % 2 ? 16 : 8 * (1 + multi_hash(plan.number * 7 + i) % WORDS), at;

	for (at = 0; at < len / 8; at++)
		words[at] = multi_hash(i * 1000003 + (uint64_t)multi_pe) + at;
	if (i % 2)
		note("put kernel", by_kernel(i + 1, PUT));
	else
		note("put", gdr_host_put(words + WORDS, words, len, right));
	if (failed || barrier())
		return;
	for (at = 0; at < len / 8; at++)
		if (words[WORDS + at] != multi_hash(i * 1000003 + (uint64_t)before) + at)
			wrong("put, round %llu: word %zu of %zu from PE %d is wrong", (unsigned long long)i, at,
			      len / 8, before);
	barrier();
}

static void atomics_round(uint64_t i)
{
	uint64_t seen;

	if (i % 2)
		note("atomic kernel", by_kernel(i, ATOMICS));
	else {
		gdr_uint64_atomic_fetch_add(counter, 1, 0);
		note("fetch_add", gdr_host_status());
	}
	if (failed || barrier())
		return;
	seen = gdr_uint64_atomic_fetch(counter, 0);
	note("fetch", gdr_host_status());
	if (!failed && seen != (i + 1) * (uint64_t)plan.n)
		wrong("atomics, round %llu: %llu, not %llu", (unsigned long long)i, (unsigned long long)seen,
		      (unsigned long long)((i + 1) * (uint64_t)plan.n));
	if (!failed)
		barrier();
}

static void collective_round(uint64_t i)
{
	int pe, root = (int)(i % (uint64_t)plan.n);
	uint64_t k, want = 0;

	for (pe = 0; pe < plan.n; pe++)
		want += i * 100 + (uint64_t)pe;
	sums[0] = i * 100 + (uint64_t)multi_pe;
	k = enter();
	left("reduce", k, i % 2 ? by_kernel(i, COLLECTIVE) : gdr_uint64_sum_reduce(GDR_TEAM_WORLD, sums + 1, sums, 1));
	if (!failed && sums[1] != want)
		wrong("reduce, round %llu: %llu, not %llu", (unsigned long long)i, (unsigned long long)sums[1],
		      (unsigned long long)want);
	if (failed)
		return;
	sums[2] = multi_pe == root ? i + 5 : 0;
	k = enter(); /* nobody waits for those behind it */
	left_by("broadcast", k, gdr_uint64_broadcast(GDR_TEAM_WORLD, sums + 3, sums + 2, 1, root), root);
	if (!failed && sums[3] != i + 5)
		wrong("broadcast, round %llu: %llu", (unsigned long long)i, (unsigned long long)sums[3]);
	if (!failed)
		barrier();
}

/* Once with nobody gone, then until a call fails. */
static void stage_of(int stage, void (*round)(uint64_t))
{
	uint64_t i;

	for (i = 0; !failed && (i < 2 || stage == plan.stage || (stage == COLLECTIVE && plan.stage == INIT)); i++) {
		if (i == 2 && stage == plan.stage)
			stage_begins(stage);
		round(i);
	}
}

static int is_reported(void)
{
	struct gdr_error e[16];
	int i, n = gdr_errors(e, 16);

	for (i = 0; i < n && i < 16; i++)
		if (e[i].status == -GDR_EPEERLOST && !strncmp(e[i].text, "PE ", 3) && strstr(e[i].text, " is lost"))
			return 1;
	return 0;
}

/* What is said once a call has failed. */
static void afterwards(void)
{
	int lost = is_reported(), ret;
	uint64_t v = 1, k;
	void *p;

	/* not where the victim, if it goes on, looks for what was put before */
	(void)gdr_host_put(sums + 64, &v, 8, plan.victim);
	ret = gdr_host_quiet();
	if (lost && !ret)
		wrong("quiet returned 0 after a PE was reported dead");
	if (lost && !gdr_host_fence())
		wrong("fence returned 0 after a PE was reported dead");
	if (lost && !gdr_host_status())
		wrong("the status is 0 after a PE was reported dead");
	ret = barrier();
	if (lost && !ret)
		wrong("barrier returned 0 after a PE was reported dead");
	k = enter();
	p = gdr_malloc(64);
	left("malloc", k, p ? 0 : -1);
	k = enter();
	left("reduce", k, gdr_uint64_sum_reduce(GDR_TEAM_WORLD, sums + 1, sums, 1));
}

static void work(void)
{
	uint64_t k = enter();

	area = (uint64_t *)gdr_calloc(4 * WORDS, 8);
	left("calloc", k, why_none(area));
	if (failed)
		return;
	words = area;
	counter = area + 3 * WORDS;
	sums = counter + 64;
	barrier();
	stage_begins(plan.stage == MALLOC ? MALLOC : N_STAGES);
	if (plan.stage == MALLOC)
		stage_malloc();
	stage_of(PUT, put_round);
	stage_of(ATOMICS, atomics_round);
	stage_of(COLLECTIVE, collective_round);
}

static int run_pe(void)
{
	uint64_t k;
	int ret;

	report = multi_report_new();
	answer = (int *)multi_shared_new(sizeof(int));
	k = enter();
	stage_begins(INIT);
	ret = left("init", k, by_uid_init());
	if (!ret) {
		if (gdr_host_my_pe() != multi_pe)
			wrong("init: this is PE %d, not %d", gdr_host_my_pe(), multi_pe);
		work();
		if (failed && area)
			afterwards();
		stage_begins(FINALIZE);
		k = enter();
		ret = failed;
		page->pe[multi_pe].finalize = gdr_finalize();
		note("finalize", page->pe[multi_pe].finalize);
		if (ret && !page->pe[multi_pe].finalize)
			wrong("finalize returned 0 after %s had failed with %d", page->pe[multi_pe].what, ret);
	}
	page->pe[multi_pe].done = 1;
	return failed ? 9 : 0;
}

/* ---- the driver's part ---- */

/* A launcher waits for a process that is stopped, for ever where the others ended well. */
static int guard(void)
{
	int pe, done;

	do {
		multi_sleep_us(100000);
		for (done = 0, pe = 0; pe < plan.n; pe++)
			done += pe == plan.victim || page->pe[pe].done;
	} while (done < plan.n);
	multi_sleep_us(3000000); /* launchers that end the others at an error do it themselves */
	if (page->gone && page->victim > 1)
		kill(page->victim, SIGKILL);
	return 0;
}

static int number_of(const char *a, const char *b, const char *c)
{
	const char *text = getenv(a) ? getenv(a) : getenv(b) ? getenv(b) : getenv(c);

	return text ? atoi(text) : 0;
}

static int judge(void)
{
	int pe, bad = 0;

	for (pe = 0; pe < plan.n; pe++) {
		printf("%s PE %d: call %llu, %s %s %d %s\n", pe == plan.victim ? "  *" : "   ", pe,
		       (unsigned long long)page->pe[pe].entered, page->pe[pe].done ? "done;" : "ended;",
		       page->pe[pe].what, page->pe[pe].first, page->pe[pe].wrong);
		if (page->pe[pe].wrong[0])
			bad = 1;
		/* launchers end the others */
		if (pe != plan.victim && !page->pe[pe].done && plan.launcher == 0) {
			printf("PE %d ended before its time\n", pe);
			bad = 1;
		}
	}
	if (bad || page->gone || plan.stage == FINALIZE)
		return bad;
	printf("a limit passed on a machine that is too slow, before anybody was gone\n");
	return 3;
}

static void print_plan(void)
{
	printf("launcher=%s path=%s n=%d stage=%s how=%s victim=%d delay=%uus\n", launchers[plan.launcher],
	       paths[plan.path], plan.n, stages[plan.stage], hows[plan.how], plan.victim, plan.delay_us);
}

int main(int argc, char **argv)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	size_t i;
	int fd;

	if (argc < 3)
		return 2;
	make_plan((unsigned)strtoul(argv[2], NULL, 0));
	if (!strcmp(argv[1], "plan")) {
		print_plan();
		return 0;
	}
	fd = argc > 3 ? open(argv[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0 || ftruncate(fd, sizeof(*page)))
		return 2;
	page = (struct page *)mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (page == MAP_FAILED)
		return 2;
	if (!strcmp(argv[1], "judge"))
		return judge();
	if (!strcmp(argv[1], "guard"))
		return guard();
	multi_pe = number_of("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID");
	multi_n = plan.n;
	if (multi_pe == plan.victim)
		page->victim = getpid();
	for (i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++)
		signal(fatal[i], crashed);
	return run_pe();
}
