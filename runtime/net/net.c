// SPDX-License-Identifier: BSD-3-Clause
/* The table of transports. All PEs of a job use one: what the words of GDR_TRANSPORTS say, which have to agree, and not
 * what a PE finds on its machine. */
#include "runtime/net/net.h"

#include "runtime/core/options.h"

static const struct gdri_net_ops *const transports[] = {
#define ROW(name) &gdri_##name##_ops,
	GDRI_NET_ROWS(ROW)
#undef ROW
};

const struct gdri_net_ops *gdri_net_chosen(const struct gdri_options *opt)
{
	size_t i;

	for (i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (opt->transports >> i & 2) /* the first word is p2p */
			return transports[i];
	return NULL;
}
