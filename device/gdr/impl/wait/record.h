/* SPDX-License-Identifier: BSD-3-Clause */
/* What this PE publishes in its control area about its waits (struct gdri_wait), for
 * other PEs to read. */
#ifndef GDRI_RECORD_H
#define GDRI_RECORD_H

#include <gdr/impl/wait/waiter.h>

/* Record 0 is for FAILED. With all taken the wait stays unpublished: another
 * thread of the PE speaks for it. */
GDR_DEVICE_COLD void gdri_wait_publish(struct gdri_dev *dev, struct gdri_waiter *w)
{
	struct gdri_wait *rec;
	uint32_t idle;

	for (int i = 1; i < GDRI_WAIT_RECORDS; i++) {
		rec = &dev->ctl->waits[i];
		idle = GDRI_WAIT_IDLE;
		/* a state that who looks ignores, while it is being filled */
		if (gdri_ld_relaxed_sys_u32(&rec->state) != GDRI_WAIT_IDLE ||
		    !gdri_cas_u32(&rec->state, &idle, GDRI_WAIT_FILLING))
			continue;
		gdri_st_relaxed_sys_u32((uint32_t *)&rec->peer, (uint32_t)w->peer);
		gdri_st_relaxed_sys_u32(&rec->op, w->op);
		gdri_st_relaxed_sys_u64(&rec->since_ns, w->limit.start_ns);
		gdri_st_relaxed_sys_u64(&rec->addr, w->addr);
		/* pairs with the acquire of state by who looks */
		gdri_st_release_sys_u32(&rec->state, GDRI_WAIT_WAITING);
		w->rec = (int8_t)i;
		return;
	}
}

GDR_DEVICE_COLD void gdri_wait_clear(struct gdri_dev *dev, struct gdri_waiter *w)
{
	/* pairs with the compare-and-swap of the record's next owner and with who looks */
	gdri_st_release_sys_u32(&dev->ctl->waits[w->rec].state, GDRI_WAIT_IDLE);
	w->rec = -1;
}

#define GDRI_WAIT_SAID_LEFT 0x100u /* the culprit has called gdr_finalize */

/* Nobody waits by this record: in place of a heartbeat it has what is said of the culprit, -status and that bit. */
GDR_DEVICE_COLD void gdri_wait_publish_failed(struct gdri_dev *dev, uint32_t op, uint64_t since_ns,
					      uint64_t addr, int culprit, uint32_t said)
{
	struct gdri_wait *rec = &dev->ctl->waits[0];

	gdri_st_relaxed_sys_u32(&rec->heartbeat, said);
	gdri_st_relaxed_sys_u32((uint32_t *)&rec->peer, (uint32_t)culprit);
	gdri_st_relaxed_sys_u32(&rec->op, op);
	gdri_st_relaxed_sys_u64(&rec->since_ns, since_ns);
	gdri_st_relaxed_sys_u64(&rec->addr, addr);
	/* pairs with the acquire of state by who looks */
	gdri_st_release_sys_u32(&rec->state, GDRI_WAIT_FAILED);
}

#endif
