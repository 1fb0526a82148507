/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of a kernel that waits for another one without gdr_pause is named, with kernel, block and what to do, as
 * GDR_HOST_DEVICE_STALL or GDR_TIMEOUT say: the kernel ends when the text is there. */
#include <sys/mman.h>
#include <unistd.h>

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

int main(void)
{
	static int stop;
	struct hog a = {&stop};
	char text[4096] = "";

	multi_begin();
	said_begin();
	CHECK_OK(gdr_launch(hog, 1, 2, 0, 0, &a));
	for (int i = 0; i < 60000 && !strstr(text, "has to call gdr_pause"); i++) {
		memset(text, 0, sizeof(text));
		CHECK(pread(said_texts, text, sizeof(text) - 1, 0) >= 0);
		multi_sleep_us(1000);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED); /* as above */
	CHECK_OK(gdr_stream_sync(0));
	said_expect("warning: host device: kernel hog, block 0: thread 0 has run for ", NULL);
	return multi_end("hog");
}
