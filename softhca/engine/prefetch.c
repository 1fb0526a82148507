/* SPDX-License-Identifier: BSD-3-Clause */
/* Which queue pair will be rung next? Programs that use many use them in turn: the one that followed
 * the last time. Asking for its lines while the program is busy with the last completion hides the
 * way to them; a wrong guess costs a few lines of the cache. */
#include "softhca/engine/dp.h"

enum {
	PLACES = 1 << 14, /* QPNs of a process */
	SURE = 4,	  /* right guesses in a row before one is acted upon */
};

static uint16_t follower[PLACES]; /* by place: the place of the one that was rung after it */
static uint32_t last, called; /* QPNs; called: the peer's turn has not come yet; 0: none */
static unsigned right;

void prefetch_rung(uint32_t qpn)
{
	uint16_t *f = &follower[last % PLACES];

	if (*f == qpn % PLACES) {
		right++;
	} else {
		*f = (uint16_t)(qpn % PLACES);
		right = 0;
	}
	last = qpn;
}

void prefetch_next(bool elsewhere)
{
	uint32_t qpn = last - last % PLACES + follower[last % PLACES];

	if (right < SURE || qpn == last || !engine_prefetch(qpn))
		return;
	called = qpn;
	if (elsewhere)
		engine_prefetch_user(qpn);
}

void prefetch_peer(void)
{
	const struct hca_qp *qp = called ? engine_find_qp(called) : NULL;

	called = 0;
	if (qp && qp->dest_qpn != qp->qpn)
		engine_prefetch(qp->dest_qpn);
}
