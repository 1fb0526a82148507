// SPDX-License-Identifier: BSD-3-Clause
/* The table of transports. All PEs of a job use one: the first of the words of GDR_TRANSPORTS, which have to agree, of
 * which any PE has what it takes. A PE that lacks it says so when it opens it. */
#include "runtime/net/net.h"

#include "runtime/core/options.h"
#include "runtime/core/text.h"

static const struct {
	const struct gdri_net_ops *ops;
	const char *word;
} transports[] = {
#define ROW(name) {&gdri_##name##_ops, #name},
	GDRI_NET_ROWS(ROW)
#undef ROW
};

#define N_TRANSPORTS (sizeof(transports) / sizeof(transports[0]))

/* N_TRANSPORTS: none. */
static size_t net_row(const struct gdri_options *opt)
{
	size_t i;

	for (i = 0; i < N_TRANSPORTS && !(opt->transports >> i & 2);
	     i++) /* the first word is p2p */
		;
	return i;
}

uint32_t gdri_net_present(const struct gdri_net_how *how)
{
	uint32_t present = 0;
	size_t i;

	for (i = 0; i < N_TRANSPORTS; i++)
		if (how->opt->transports >> i & 2 &&
		    (!transports[i].ops->present || transports[i].ops->present(how)))
			present |= 2u << i;
	return present;
}

bool gdri_net_choose(struct gdri_options *opt, uint32_t present)
{
	present &= opt->transports & ~1u; /* p2p stays */
	if (present)
		opt->transports &= 1u | ~((present & -present) - 1);
	return present != 0;
}

void gdri_net_lacks(const struct gdri_options *opt, uint32_t present, char *buf, size_t room)
{
	struct text t = {buf, room, 0};
	size_t i;

	*buf = 0;
	for (i = 0; i < N_TRANSPORTS; i++)
		if (opt->transports & ~present & (2u << i) && transports[i].ops->takes)
			text_add(&t, "%s%s takes %s", *buf ? ", " : "", transports[i].word, transports[i].ops->takes);
}

const struct gdri_net_ops *gdri_net_chosen(const struct gdri_options *opt)
{
	size_t i = net_row(opt);

	return i < N_TRANSPORTS ? transports[i].ops : NULL;
}

const char *gdri_net_word(const struct gdri_options *opt)
{
	size_t i = net_row(opt);

	return i < N_TRANSPORTS ? transports[i].word : &GDRI_NET_WORDS[sizeof("p2p")];
}
