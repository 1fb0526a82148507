/* SPDX-License-Identifier: BSD-3-Clause */
/* Every acquire, release and fence that a scenario reaches: function:kind[:word], #2 the second such one of the
 * function; the scenario that fails without it; or why none does. A site without a row fails the test, and so does a
 * row whose scenario holds. Names in capitals: docs/memory-model-internals.md, Posting. */
#ifndef WEAK_ROWS_HPP
#define WEAK_ROWS_HPP

struct weak_row {
	const char *site, *scenario, *why;
};

/* Why none does. */
#define WEAK_WRAP "only where 2^16 blocks go by within one look: tests/model/cq_ring.pml, tests/device/test_wrap.c"
#define WEAK_LATE "two stores, or a store and an atomic, of one thread never change places here: tests/model"
#define WEAK_AGAIN "what is read so is read again, or behind a fence, before anything depends on it"
#define WEAK_LAPS                                                                                              \
	"the compare-and-swap of cq_ci looks again; the way to gdri_cqe_latch, which has none, goes wrong only " \
	"where two laps of the ring go by within one look"

static const struct weak_row weak_rows[] = {
	/* publish.h */
	{"gdri_sq_publish_first:fence_nic", "relay", "F1, A1 of a look before the reservation"},
	{"gdri_sq_pass_on:fence_nic", "relay", "F1, A1"},
	{"gdri_sq_pass_on:fence_release_nic", "relay", "F2"},
	{"gdri_sq_pass_on:fence_gpu", "relay", "A1 and R1 of who does not ring"},
	{"gdri_sq_ring_by:fence_release_nic", "rings", "F2"},
	{"gdri_sq_ring_by:fence_gpu", NULL, "F5. " WEAK_LATE "/doorbell.pml"},
	{"gdri_sq_ring_by:fence_release_sys", NULL, "F6. " WEAK_LATE "/early.pml"},
	{"gdri_sq_publish_later:fence_release_gpu", "marks", "M1, R1 of who relays"},
	{"gdri_sq_publish_marked:acquire:ready", "window", "A1 before the look at marks"},
	{"gdri_sq_wait_turn:acquire:ready", NULL, "A1. " WEAK_AGAIN},
	/* reserve.h */
	{"gdri_sq_polled:fence_nic", "turns", "F4 before room is raised"},
	{"gdri_sq_polled:acquire:err", "flush", "err before what its record says"},
	{"gdri_sq_fence_due:acquire:fenced", "fence", "the mark before the own reservation"},
	{"gdri_sq_fence_due:fence_gpu", "fence", "fence_seq before the own reservation"},
	{"gdri_sq_fenced:fence_gpu", "fence", "the reservation before the mark"},
	{"gdri_slow_fence:fence_nic", NULL,
	 "reservations before fence_seq: the fences of their own publication, before, order them too; stores to mapped "
	 "peers are not here"},
	/* complete.h, xfer.h */
	{"gdri_qp_test:fence_nic", "marks", "F4"},
	{"gdri_qp_test:acquire:err", "error1", "err before done"},
	{"gdri_qp_wait_looks:fence_nic", "ring", "F3, F4 of a short wait"},
	{"gdri_qp_wait_looks:acquire:cq_ci", NULL, WEAK_WRAP},
	{"gdri_qp_wait_looks:acquire:done", NULL, WEAK_WRAP},
	{"gdri_poll_one:fence_nic", "marks", "F3"},
	{"gdri_poll_one:acquire:rsvd", NULL, WEAK_WRAP},
	{"gdri_poll_ring_step:fence_nic", "ring", "F3"},
	{"gdri_poll_ring_step:acquire:cq_ci", "laps", "the fence before the step of cq_ci"},
	{"gdri_poll_ring_step:acquire:rsvd", NULL, WEAK_LAPS},
	{"gdri_ring_tail:acquire:tail", "ring", "the tail before rsvd"},
	{"gdri_qp_quiet:acquire:ready", NULL,
	 "who quiets has seen its own blocks published: one word is never seen older"},
	/* error.h */
	{"gdri_cqe_read_error:fence_acquire_sys", "last", "the caller's look at the tail before rsvd"},
	{"gdri_cqe_read_error:acquire:rsvd", NULL, WEAK_WRAP},
	{"gdri_cqe_read_error:acquire:tail", "flush", "the tail before the syndrome"},
	{"gdri_cqe_read_error:acquire:52", NULL, "a flush for the cause: is told as a flush, which claims nothing"},
	{"gdri_cqe_done:fence_sys", "error1", "F3"},
	{"gdri_cqe_close:release:err", "flush", "record and done before err"},
	{"gdri_error_complete:release:state", "flush", "fields before the state"},
};

#endif
