/* SPDX-License-Identifier: BSD-3-Clause */
/* What an Ethernet interface says of its priorities (IEEE 802.1Qaz), over netlink, which takes no privilege. */
#ifndef TOOLS_CHECK_DCB_H
#define TOOLS_CHECK_DCB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dcb {
	bool has_pfc;
	uint8_t pfc;	 /* bit n: priority n is lossless */
	int n_dscp;	 /* entries that map a DSCP to a priority: then the port trusts DSCP */
	int8_t prio[64]; /* -1: not mapped */
};

/* false: the interface does not say. */
bool dcb_ask(const char *interface, struct dcb *out);
/* An answer of the kernel, of n bytes. */
bool dcb_parse(const void *answer, size_t n, struct dcb *out);

#endif
