// SPDX-License-Identifier: BSD-3-Clause
/* What the device says by itself is logged: the link goes down and comes back, and the GID is at another place then.
 * The schedule of faults is the test's; the last of it ends the program. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "runtime/core/log.h"
#include "runtime/nic/impl.h"
#include "tests/nic/pair.h"

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
	net->ops->close(net);
	return ret;
}
