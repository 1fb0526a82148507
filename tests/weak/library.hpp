/* SPDX-License-Identifier: BSD-3-Clause */
/* What device code needs of the library: threads are blocks of one, waits are loops. */
#ifndef WEAK_LIBRARY_HPP
#define WEAK_LIBRARY_HPP

struct gdri_dev *gdri_dev_state = &weak_mem.dev;
static const struct gdri_hd_thread weak_self = {0, 1, 0, 1, NULL, 0, 0, NULL};
__thread const struct gdri_hd_thread *gdri_hd_self __attribute__((tls_model("initial-exec"))) = &weak_self;

extern "C" {
/* No rl::yield: who yielded sees no store that is older than what it saw before. */
void gdri_hd_pause(unsigned)
{
}

uint64_t gdri_hd_clock_ns(void)
{
	return 1;
}

void gdri_hd_say_errors()
{
}

int gdri_hd_no_library(const char *)
{
	return -GDR_ESTATE;
}

void gdri_hd_sync_warp(uint32_t)
{
	abort();
}

void gdri_hd_sync_block(void)
{
	abort();
}

uint64_t gdri_hd_shfl(uint32_t, uint64_t, unsigned)
{
	abort();
}

uint32_t gdri_hd_ballot(uint32_t, int)
{
	abort();
}

uint32_t gdri_hd_group(uint64_t)
{
	abort();
}
}

/* Time goes by steps, and the second one is long enough for anything. */
int gdri_wait_step(struct gdri_dev *, struct gdri_waiter *w)
{
	w->limit.start_ns = 1;
	w->limit.next_ns = ++w->round > 1 ? w->limit.next_ns + 2 * GDRI_TURN_NS : 1;
	return w->op == GDRI_QUEUE_FULL && scen->expires && !rl::rand(4) ? -GDR_ETIMEOUT : 0;
}

void gdri_wait_end(struct gdri_dev *, struct gdri_waiter *)
{
}

void gdri_wait_leave(struct gdri_dev *, struct gdri_waiter *)
{
}

void gdri_wait_lost(struct gdri_dev *, struct gdri_waiter *, int)
{
}

#endif
