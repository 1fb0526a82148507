/* SPDX-License-Identifier: BSD-3-Clause */
/* A wire for tests: packets of all QPs of the process wait in one queue, as
 * bytes; a policy decides the fate of each. No thread, no socket, no clock:
 * the same calls give the same packets. */
#ifndef SOFTHCA_TEST_FAKEWIRE_H
#define SOFTHCA_TEST_FAKEWIRE_H

#include "sim.h"
#include "softhca/transport/packet.h"

enum fake_kind { FAKE_PASS, FAKE_DROP, FAKE_DUP, FAKE_LATE };

struct fake_fate {
	enum fake_kind kind;
	unsigned by; /* late, also the second of two: after so many packets more */
};

/* n counts the packets sent since fake_clear(). NULL: all pass. */
extern struct fake_fate (*fake_policy)(unsigned n, const struct packet *p);

extern bool fake_unread; /* the peer's process takes nothing */

void fake_clear(void);	   /* forgets what is on its way, counts from 0 */
unsigned fake_sent(void);
/* Bytes from BTH to pad and ICRC; what is no packet is dropped. */
void fake_inject(const uint8_t *bytes, size_t n);
/* Works until nothing is on its way and no QP has something to do; false when
 * that takes more than a bounded number of rounds. */
bool fake_settle(void);

#endif
