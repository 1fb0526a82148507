/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches over the calls of the CUDA driver that the engine makes: none of them waits for the
 * device, so one that does not return is held up by another thread of the program. The engine
 * stands meanwhile, and cannot say so itself. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "softhca/gpu/dma_impl.h"
#include "softhca/tools/log.h"

enum {
	LOOK_NS = 250000000, /* how often */
	LOOKS = 4,	     /* that see the same call: it takes longer than a second */
};

struct dma_call dma_call;

/* The QP is read beside the call: it may be that of the next one, which does no harm. */
static void dma_watch_tell(const char *symbol, unsigned long ms, bool back)
{
	uint32_t qpn = __atomic_load_n(&dma_call.qpn, __ATOMIC_RELAXED);
	char whom[32] = "no QP";

	if (qpn)
		snprintf(whom, sizeof(whom), "QP 0x%x", qpn);
	if (back)
		hca_warn("%s has returned after %lu ms (for %s)", symbol, ms, whom);
	else
		hca_warn("%s does not return (for %s): another thread of the program holds the CUDA "
			 "driver, and all queue pairs stand until it lets go", symbol, whom);
}

static void *dma_watch_main(void *arg)
{
	const struct timespec nap = { 0, LOOK_NS };
	unsigned long last = 0, ms = 0;
	unsigned seen = 0;
	const char *symbol = "";

	(void)arg;
	prctl(PR_SET_NAME, "softhca-dma");
	for (;;) {
		/* Acquire: pairs with dma_call_begin(), behind whose name it stands. */
		unsigned long now = __atomic_load_n(&dma_call.number, __ATOMIC_ACQUIRE);

		if (now != last) {
			if (seen >= LOOKS)
				dma_watch_tell(symbol, ms, true);
			seen = 0;
			ms = 0;
		}
		last = now;
		if (now & 1 && ++seen == LOOKS) {
			symbol = __atomic_load_n(&dma_call.symbol, __ATOMIC_RELAXED);
			dma_watch_tell(symbol, ms, false);
		}
		nanosleep(&nap, NULL);
		ms += LOOK_NS / 1000000;
	}
	return NULL;
}

int dma_watch_start(void)
{
	sigset_t all, old;
	pthread_t t;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = -pthread_create(&t, NULL, dma_watch_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (!ret)
		pthread_detach(t);
	return ret;
}
