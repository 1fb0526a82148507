/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of a kernel that waits for another one without gdr_pause is named, with kernel, block and what to do, as
 * GDR_HOST_DEVICE_STALL or GDR_TIMEOUT say: the kernel ends when the text is there.
 *
 *	hog pauses	the kernel calls it and goes on for longer than GDR_TIMEOUT: whoever waits for it is named */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gdr/local.h>

#include "tests/multi/said.h"

struct hog {
	int *stop; /* of the host */
};

GDR_KERNEL(hog, struct hog, a)
{
	/* relaxed: pairs with the store of the host, which tells nothing else */
	while (gdr_thread_id() == 0 && !__atomic_load_n(a.stop, __ATOMIC_RELAXED))
		;
	gdr_sync_block();
}

/* Gives the CPU thread back, and does not end either: who waits for the kernel says so. */
GDR_KERNEL(endless, struct hog, a)
{
	for (unsigned round = 0; !__atomic_load_n(a.stop, __ATOMIC_RELAXED); round++) /* as above */
		gdr_pause(round);
}

static void until_said(const char *what)
{
	char text[4096] = "";

	for (int i = 0; i < 60000 && !strstr(text, what); i++) {
		memset(text, 0, sizeof(text));
		CHECK(pread(said_texts, text, sizeof(text) - 1, 0) >= 0);
		multi_sleep_us(1000);
	}
}

static int stop;

static void *stop_when_said(void *what)
{
	until_said((const char *)what);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* as above */
	return NULL;
}

static int sync_stream(gdr_event_t event)
{
	(void)event;
	return gdr_stream_sync(0);
}

/* wait: one of the host's, which the text names. */
static void wait_long(int (*wait)(gdr_event_t), const char *said)
{
	struct hog a = {&stop};
	gdr_event_t event;
	pthread_t thread;
	char text[128];

	snprintf(text, sizeof(text), "warning: host device: %s for kernel endless, block 0: GDR_TIMEOUT", said);
	stop = 0;
	said_begin();
	CHECK_OK(gdr_event_create(&event));
	CHECK_OK(gdr_launch(endless, 3, 2, 0, 0, &a));
	CHECK_OK(gdr_event_record(event, 0));
	CHECK(!pthread_create(&thread, NULL, stop_when_said, text));
	CHECK_OK(wait(event));
	CHECK(!pthread_join(thread, NULL));
	CHECK_OK(gdr_event_destroy(event));
	said_expect(text, NULL);
}

int main(int argc, char **argv)
{
	struct hog a = {&stop};

	multi_begin();
	if (argc > 1 && !strcmp(argv[1], "pauses")) {
		wait_long(sync_stream, "gdr_stream_sync has waited 3 s");
		wait_long(gdr_event_sync, "gdr_event_sync has waited 2 s");
		return multi_end("hog");
	}
	said_begin();
	CHECK_OK(gdr_launch(hog, 1, 2, 0, 0, &a));
	until_said("has to call gdr_pause");
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* as above */
	CHECK_OK(gdr_stream_sync(0));
	said_expect("warning: host device: kernel hog, block 0: thread 0 has run for ", NULL);
	return multi_end("hog");
}
