/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of a kernel that leaves its stack meets the guard page: the program ends by SIGSEGV, as it does without this
 * file, but says of what, and by which option. Other faults, and this one once it is said, are those of the handler
 * that was there before. */
#define _GNU_SOURCE

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "runtime/hostdev/hostdev_fiber.h"

struct watch {
	const struct gdri_hd_stacks *stacks; /* of the worker's block; NULL: no worker's thread */
	int inside;			     /* the handler before may call this one */
};

static __thread struct watch overflow_watch __attribute__((tls_model("initial-exec")));
static struct sigaction overflow_before; /* set ahead of the handler that reads it */

/* The lowest stack may be left by more than its guard, into what is not mapped. */
static int overflow_in_guard(const struct gdri_hd_stacks *s, const char *at)
{
	size_t offset = (size_t)(at - s->base) + s->stride;

	return s->base && offset < s->stride + s->map_size &&
	       (offset < s->stride || offset % s->stride < s->stride - s->stack_size);
}

static void overflow_pass_on(int sig, siginfo_t *info, void *context)
{
	/* an earlier handler that was installed anew passes on to this function: inside counts */
	int last = overflow_before.sa_handler == SIG_DFL || overflow_before.sa_handler == SIG_IGN ||
		   overflow_watch.inside++;

	if (last) {
		signal(sig, SIG_DFL); /* the instruction faults once more */
		if (info->si_code <= 0) /* of kill(2): nothing does */
			raise(sig);
	} else if (overflow_before.sa_flags & SA_SIGINFO) {
		overflow_before.sa_sigaction(sig, info, context);
	} else {
		overflow_before.sa_handler(sig);
	}
	if (!last)
		overflow_watch.inside--;
}

static void overflow_on_fault(int sig, siginfo_t *info, void *context)
{
	static const char text[] = "gdr error: host device: a thread of a kernel has used up its stack; raise "
				   "GDR_HOST_DEVICE_STACK, or keep large arrays elsewhere\n";

	int says = overflow_watch.stacks && !overflow_watch.inside &&
		   overflow_in_guard(overflow_watch.stacks, info->si_addr);

	if (says && write(STDERR_FILENO, text, sizeof(text) - 1) < 0) {
		/* nobody hears it */
	}
	overflow_pass_on(sig, info, context);
}

/* A program may have set its own handler since the last time. */
static void overflow_take_signal(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction now, mine = {.sa_sigaction = overflow_on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	pthread_mutex_lock(&lock);
	if (!sigaction(SIGSEGV, NULL, &now) && now.sa_sigaction != overflow_on_fault) {
		overflow_before = now;
		sigaction(SIGSEGV, &mine, NULL);
	}
	pthread_mutex_unlock(&lock);
}

void gdri_hd_overflow_arm(const struct gdri_hd_stacks *stacks, void *room)
{
	stack_t own = {.ss_sp = room, .ss_size = GDRI_HD_OVERFLOW_ROOM}, old;

	/* a sanitizer has given the thread one, and takes it back */
	if (sigaltstack(NULL, &old) || !(old.ss_flags & SS_DISABLE) || sigaltstack(&own, NULL))
		return;
	overflow_watch.stacks = stacks;
	overflow_take_signal();
}

void gdri_hd_overflow_disarm(void)
{
	const stack_t none = {.ss_flags = SS_DISABLE};

	if (overflow_watch.stacks)
		sigaltstack(&none, NULL);
	overflow_watch.stacks = NULL;
}
