// SPDX-License-Identifier: BSD-3-Clause
/* What the device says by itself is logged: the link goes down and comes back, and the GID is at another place then.
 * The schedule of faults is the test's; the last of it ends the program. What softhca does not do to a device is put in
 * the place of its events. */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"
#include "tests/nic/pair.h"

/* Reads the event as the device's; whether an error was logged that holds the text, or, for NULL, none at all. */
static int says(struct gdri_net *net, uint32_t type, uint64_t port, const char *text)
{
	struct ib_uverbs_async_event_desc e = {.element = port, .event_type = type};
	int own = gdri_nic_of(net)->ctx->async_fd, kept = dup(own), ends[2], good;

	if (kept < 0 || pipe(ends) || write(ends[1], &e, sizeof(e)) != sizeof(e))
		return 0;
	dup2(ends[0], own);
	gdri_error("nothing yet");
	net->ops->look(net);
	good = !!strstr(gdri_log_last_error(), text ? text : "nothing yet");
	dup2(kept, own);
	close(kept);
	close(ends[0]);
	close(ends[1]);
	if (!good)
		printf("event %u of port %llu: \"%s\"\n", type, (unsigned long long)port, gdri_log_last_error());
	return good;
}

int main(void)
{
	const struct timespec nap = {.tv_nsec = 10000000};
	struct gdri_options opt;
	struct gdri_net *net;
	int i, ret = 1;

	pair_options(&opt, NULL);
	if (gdri_nic_ops.open(&(struct gdri_net_how){.opt = &opt}, &net))
		return 1;
	for (i = 0; i < 2000 && ret; i++) {
		nanosleep(&nap, NULL);
		net->ops->look(net);
		ret = !strstr(gdri_log_last_error(), "other PEs may no longer be reached");
	}
	ret |= !says(net, IBV_EVENT_DEVICE_FATAL, 1, " has failed, and so will all");
	ret |= !says(net, IBV_EVENT_LID_CHANGE, 1, "its LID has changed");
	ret |= !says(net, IBV_EVENT_LID_CHANGE, 2, NULL); /* another port's */
	net->ops->close(net);
	return ret;
}
