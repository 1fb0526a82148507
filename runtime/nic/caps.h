/* SPDX-License-Identifier: BSD-3-Clause */
/* Capabilities of the device that the queues and the device code rely on. */
#ifndef GDRI_NIC_CAPS_H
#define GDRI_NIC_CAPS_H

#include <stdbool.h>
#include <stddef.h>

struct gdri_nic_caps {
	/* QUERY_HCA_CAP, general */
	unsigned log_max_qp_sz, log_max_cq_sz, log_max_msg, cqe_version, max_wqe_sz_sq;
	bool atomic, relaxed; /* relaxed: writes */
	bool relaxed_only;	/* memory keys have no other order */
	bool no_indirect_atomic; /* indirect keys do no atomics */
	unsigned lag_ports;	/* that a queue pair can be bound to, if they are bonded */
	unsigned log_max_klms;	/* entries of an indirect key */
	bool ece; /* queue pairs have options of enhanced connection establishment */
	bool ooo; /* queue pairs may place WRITEs in any order; order_force: unless they are told not to */
	/* general, second page; 0 where there is none */
	bool cap_2, order_force;
	bool no_record; /* queue pairs may have no doorbell record */
	/* atomic */
	unsigned operations, size_qp, endian_8b;
	/* roce */
	bool loopback; /* a queue pair may be told that it stays on the port */
	unsigned qp_ts_format, sport_min, sport_max;
	/* ibv_query_device: logarithms, rounded down */
	unsigned log_initiator, log_responder; /* reads and atomics in flight */
};

/* Parses the answers to QUERY_HCA_CAP, PRM_QUERY_HCA_CAP_OUT_BYTES each. roce may be NULL. */
void gdri_nic_caps_parse(struct gdri_nic_caps *caps, const void *general, const void *atomic,
			 const void *roce);

/* Of the second page, if there is one (cap_2). */
void gdri_nic_caps_parse_2(struct gdri_nic_caps *caps, const void *general_2);

/* 0, or -GDR_ENOTSUP with the missing capability in `why`. log_depth: of the queues. */
int gdri_nic_caps_check(const struct gdri_nic_caps *caps, unsigned log_depth, char *why,
			size_t room);

/* floor(log2(n)), 0 for n == 0 */
unsigned gdri_log2_floor(unsigned n);

#endif
