// SPDX-License-Identifier: BSD-3-Clause
/* The transport where libfabric's headers were missing when the library was built, in place of all else here. */
#include <gdr/status.h>

#include "runtime/core/log.h"
#include "runtime/net/net.h"

static bool absent_present(const struct gdri_net_how *how)
{
	(void)how;
	return false;
}

static int absent_open(const struct gdri_net_how *how, struct gdri_net **out)
{
	(void)how;
	*out = NULL;
	return gdri_fail(
		-GDR_ENOTSUP,
		"ofi: the library was built without libfabric's headers: install libfabric-dev and "
		"build it anew, or take ofi out of GDR_TRANSPORTS");
}

static void absent_close(struct gdri_net *net)
{
	(void)net;
}

const struct gdri_net_ops gdri_ofi_ops = {
	.takes = "libfabric, also its headers when gdr is built (Debian: libfabric-dev)",
	.present = absent_present,
	.open = absent_open,
	.close = absent_close,
};
