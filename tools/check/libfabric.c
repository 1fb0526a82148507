// SPDX-License-Identifier: BSD-3-Clause
/* What carries the queues of the host device where no NIC does: transport ofi. */
#include "runtime/core/inet.h"
#include "runtime/core/log.h"
#include "runtime/net/net.h"
#include "tools/check/check.h"

void check_libfabric(struct checks *c)
{
	struct gdri_inet from = {0};
	struct gdri_net_how how = {.opt = &c->opt, .from = &from, .cuda = c->cuda};
	struct gdri_options opt = c->opt;
	struct gdri_net *net = NULL;
	int old = check_hush(), ret;
	bool any, taken;

	gdri_inet_list("", &from, 1);
	any = gdri_net_choose(&opt, gdri_net_present(&how));
	taken = gdri_net_chosen(&opt) == &gdri_ofi_ops;
	ret = gdri_ofi_ops.open(&how, &net);
	check_unhush(old);
	c->ofi_carries = taken && !ret;
	if (!ret)
		say(c, LIBFABRIC, GOOD, "%s%s", net->text,
		    taken ? "" : "; not taken, by GDR_TRANSPORTS and what else is here");
	else
		say(c, LIBFABRIC,
		    taken		? BAD
		    : any || c->cuda ? NONE
					: NOTE,
		    "%s", gdri_log_last_error());
	gdri_ofi_ops.close(net);
}
